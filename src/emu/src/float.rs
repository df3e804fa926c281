//! Single precision.

use crate::build::{Builder, Built, Decode, Missing};
use crate::compare::{self, Combine, Order};
use crate::op::on_lanes;
use crate::regs::{LANES, Mask, Row, lanes};
use crate::rows::{self, Mode, each_lane};
use crate::sign::AsSigned;
use crate::soft::{self, F32, Round};

/// What executes which mnemonic.
pub const TABLE: &[(&str, Builder)] = &[
    ("FADD", fadd),
    ("FCHK", fchk),
    ("FFMA", ffma),
    ("FMNMX", fmnmx),
    ("FMUL", fmul),
    ("FSEL", fsel),
    ("FSET", fset),
    ("FSETP", fsetp),
];

/// Rounding modifiers of arithmetic.
pub const ROUNDING: &[(&str, Round)] = &[
    ("RN", Round::Nearest),
    ("RM", Round::Down),
    ("RP", Round::Up),
    ("RZ", Round::Zero),
];

fn modes(i: &mut Decode<'_>) -> (Mode, Round) {
    let mode = Mode {
        flush: i.take("FTZ"),
        saturate: i.take("SAT"),
    };
    (mode, i.choose(ROUNDING).unwrap_or(Round::Nearest))
}

fn flushed(row: Row, mode: Mode) -> Row {
    if mode.flush { row.map(rows::flush) } else { row }
}

/// Arithmetic with a directed rounding, a lane at a time.
fn directed(mode: Mode, lane: impl Fn(usize) -> u64) -> Row {
    each_lane(|l| rows::result(f32::from_bits(lane(l) as u32), mode))
}

fn fadd(i: &mut Decode<'_>) -> Built {
    let (mode, round) = modes(i);
    let d = i.dst()?;
    let (a, b) = (i.src()?, i.src()?);
    i.end()?;
    Ok(match round {
        Round::Nearest if a.is_plain() && b.is_plain() => on_lanes(move |r, m| {
            let v = rows::add(r.row(a.row), r.row(b.row), mode);
            r.set(d, m, v);
        }),
        Round::Nearest => on_lanes(move |r, m| {
            let v = rows::add(&r.float(a), &r.float(b), mode);
            r.set(d, m, v);
        }),
        _ => on_lanes(move |r, m| {
            let (a, b) = (flushed(r.float(a), mode), flushed(r.float(b), mode));
            r.set(
                d,
                m,
                directed(mode, |l| soft::add(F32, a[l].into(), b[l].into(), round)),
            );
        }),
    })
}

fn fmul(i: &mut Decode<'_>) -> Built {
    let (mode, round) = modes(i);
    let d = i.dst()?;
    let (a, b) = (i.src()?, i.src()?);
    i.end()?;
    Ok(match round {
        Round::Nearest if a.is_plain() && b.is_plain() => on_lanes(move |r, m| {
            let v = rows::mul(r.row(a.row), r.row(b.row), mode);
            r.set(d, m, v);
        }),
        Round::Nearest => on_lanes(move |r, m| {
            let v = rows::mul(&r.float(a), &r.float(b), mode);
            r.set(d, m, v);
        }),
        _ => on_lanes(move |r, m| {
            let (a, b) = (flushed(r.float(a), mode), flushed(r.float(b), mode));
            r.set(
                d,
                m,
                directed(mode, |l| soft::mul(F32, a[l].into(), b[l].into(), round)),
            );
        }),
    })
}

fn ffma(i: &mut Decode<'_>) -> Built {
    let (mode, round) = modes(i);
    let d = i.dst()?;
    let (a, b, c) = (i.src()?, i.src()?, i.src()?);
    i.end()?;
    Ok(match round {
        // Without signs the rows need not be copied.
        Round::Nearest if [a, b, c].iter().all(|s| s.is_plain()) => on_lanes(move |r, m| {
            let v = rows::fma(r.row(a.row), r.row(b.row), r.row(c.row), mode);
            r.set(d, m, v);
        }),
        Round::Nearest => on_lanes(move |r, m| {
            let v = rows::fma(&r.float(a), &r.float(b), &r.float(c), mode);
            r.set(d, m, v);
        }),
        _ => on_lanes(move |r, m| {
            let [a, b, c] = [a, b, c].map(|s| flushed(r.float(s), mode));
            let lane = |l| soft::fma(F32, u64::from(a[l]), u64::from(b[l]), u64::from(c[l]), round);
            r.set(d, m, directed(mode, lane));
        }),
    })
}

/// A number's place in the order of all numbers, -0 below +0.
pub fn rank(bits: u32) -> i32 {
    let bits = bits.signed();
    bits ^ (bits >> 31 & 0x7fff_ffff)
}

/// Least or greatest of two single-precision numbers; a NaN loses unless it must win.
pub fn pick(a: u32, b: u32, least: bool, nan_wins: bool) -> u32 {
    let (x, y) = (f32::from_bits(a).is_nan(), f32::from_bits(b).is_nan());
    match (x, y) {
        (true, true) => F32.nan() as u32,
        (true, _) | (_, true) if nan_wins => F32.nan() as u32,
        (true, false) => b,
        (false, true) => a,
        _ if (rank(a) < rank(b)) == least => a,
        _ => b,
    }
}

fn fmnmx(i: &mut Decode<'_>) -> Built {
    let (flush, nan_wins) = (i.take("FTZ"), i.take("NAN"));
    let d = i.dst()?;
    let (a, b, least) = (i.src()?, i.src()?, i.psrc()?);
    i.end()?;
    let mode = Mode { flush, saturate: false };
    Ok(on_lanes(move |r, m| {
        let (a, b, least) = (flushed(r.float(a), mode), flushed(r.float(b), mode), r.pred(least));
        r.set(d, m, each_lane(|l| pick(a[l], b[l], least >> l & 1 != 0, nan_wins)));
    }))
}

fn fsel(i: &mut Decode<'_>) -> Built {
    let flush = i.take("FTZ");
    let d = i.dst()?;
    let (a, b, p) = (i.src()?, i.src()?, i.psrc()?);
    i.end()?;
    let mode = Mode { flush, saturate: false };
    Ok(on_lanes(move |r, m| {
        let (a, b, p) = (r.float(a), r.float(b), r.pred(p));
        let v = std::array::from_fn(|l| if p >> l & 1 != 0 { a[l] } else { b[l] });
        r.set(d, m, flushed(v, mode));
    }))
}

/// Where an order holds between two rows of floats.
pub fn holds(order: Order, a: &[f32; LANES], b: &[f32; LANES]) -> Mask {
    let less = lanes(|l| a[l] < b[l]);
    let equal = lanes(|l| a[l] == b[l]);
    let nan = lanes(|l| a[l].is_nan() | b[l].is_nan());
    order.of(less, equal, nan)
}

fn comparison(i: &mut Decode<'_>) -> Result<(Order, Combine, Mode), Missing> {
    let order = i.need(compare::FLOAT)?;
    let flush = i.take("FTZ");
    Ok((order, i.need(compare::COMBINE)?, Mode { flush, saturate: false }))
}

fn fsetp(i: &mut Decode<'_>) -> Built {
    let (order, combine, mode) = comparison(i)?;
    let (p, q) = (i.pdst()?, i.pdst()?);
    let (a, b, with) = (i.src()?, i.src()?, i.psrc()?);
    i.end()?;
    Ok(on_lanes(move |r, m| {
        let [a, b] = [a, b].map(|s| flushed(r.float(s), mode).map(f32::from_bits));
        let (holds, with) = (holds(order, &a, &b), r.pred(with));
        r.set_pred(p, m, combine.of(holds, with));
        r.set_pred(q, m, combine.of(!holds, with));
    }))
}

fn fset(i: &mut Decode<'_>) -> Built {
    let truth = if i.take("BF") { 1f32.to_bits() } else { !0 };
    let (order, combine, mode) = comparison(i)?;
    let d = i.dst()?;
    let (a, b, with) = (i.src()?, i.src()?, i.psrc()?);
    i.end()?;
    Ok(on_lanes(move |r, m| {
        let [a, b] = [a, b].map(|s| flushed(r.float(s), mode).map(f32::from_bits));
        let v = combine.of(holds(order, &a, &b), r.pred(with));
        r.set(d, m, std::array::from_fn(|l| if v >> l & 1 != 0 { truth } else { 0 }));
    }))
}

/// Whether a quotient needs the careful way. What the hardware takes for granted is not public; this asks for care wherever a Newton step
/// could leave the normal range, and the careful way gives the same quotient.
fn fchk(i: &mut Decode<'_>) -> Built {
    i.ignore(&["DIVIDE"]);
    let p = i.pdst()?;
    let (a, b) = (i.src()?, i.src()?);
    i.end()?;
    Ok(on_lanes(move |r, m| {
        let [a, b] = [a, b].map(|s| r.float(s).map(|x| (x >> 23 & 0xff) as i32));
        let careful = |a: i32, b: i32| !(32..=254).contains(&a) || !(1..=252).contains(&b) || (a - b).abs() > 120;
        r.set_pred(p, m, lanes(|l| careful(a[l], b[l])));
    }))
}
