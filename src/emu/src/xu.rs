//! What the transcendental unit computes.
//!
//! `MUFU` on the hardware approximates; NVIDIA documents bounds on the results of the functions that use it, not its bits. Here each is the
//! exact value rounded to nearest, which lies within those bounds: 1 ulp for `RCP RSQ SQRT`, 2 ulp for `EX2`, 2^-22 absolute for `LG2` near 1,
//! 2^-20.9 absolute for `SIN COS`, 2^-11 relative for `TANH`. Subnormal arguments and results count as zero.

use crate::build::{Builder, Built, Decode};
use crate::op::on_lanes;
use crate::rows::{Mode, each_lane, flush, result};

/// What executes which mnemonic.
pub const TABLE: &[(&str, Builder)] = &[("MUFU", mufu)];

/// A function of the unit.
type Function = fn(f64) -> f64;

const FUNCTIONS: &[(&str, Function)] = &[
    ("COS", |x| turn(x, libm::cos)),
    ("EX2", libm::exp2),
    ("LG2", libm::log2),
    ("RCP", |x| 1.0 / x),
    ("RSQ", |x| 1.0 / libm::sqrt(x)),
    ("SIN", |x| turn(x, libm::sin)),
    ("SQRT", libm::sqrt),
    ("TANH", libm::tanh),
];

/// Functions of the high half of a double whose low half is zero.
const HIGH_HALVES: &[(&str, Function)] = &[("RCP64H", |x| 1.0 / x), ("RSQ64H", |x| 1.0 / libm::sqrt(x))];

/// A function of an angle in turns.
fn turn(x: f64, f: Function) -> f64 {
    let part = x - libm::rint(x);
    f(part * std::f64::consts::TAU)
}

fn mufu(i: &mut Decode<'_>) -> Built {
    if let Some(f) = i.choose(HIGH_HALVES) {
        let (d, a) = (i.dst()?, i.src()?);
        i.end()?;
        return Ok(on_lanes(move |r, m| {
            let v = r.float(a).map(|x| {
                let v = f(f64::from_bits(u64::from(x) << 32));
                if v.is_nan() {
                    0x7fff_ffff
                } else {
                    (v.to_bits() >> 32) as u32
                }
            });
            r.set(d, m, v);
        }));
    }
    let f = i.need(FUNCTIONS)?;
    let (d, a) = (i.dst()?, i.src()?);
    i.end()?;
    let mode = Mode {
        flush: true,
        saturate: false,
    };
    Ok(on_lanes(move |r, m| {
        let a = r.float(a);
        let v = each_lane(|l| {
            if m >> l & 1 == 0 {
                return 0;
            }
            result(f(f32::from_bits(flush(a[l])).into()) as f32, mode)
        });
        r.set(d, m, v);
    }))
}
