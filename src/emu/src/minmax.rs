//! The least and the greatest of integers.

use crate::build::{Builder, Built, Decode};
use crate::op::on_lanes;
use crate::regs::{Mask, NO_PRED, Row};
use crate::wide;

/// What executes which mnemonic.
pub const TABLE: &[(&str, Builder)] = &[
    ("IMNMX", imnmx),
    ("UVIMNMX", imnmx),
    ("VIADDMNMX", |i| with_third(i, sum)),
    ("VIMNMX", imnmx),
    ("VIMNMX3", |i| with_third(i, choose)),
];

/// A register as one number or as several that lie side by side.
#[derive(Clone, Copy)]
pub struct Parts {
    /// Bits of each.
    pub bits: u32,
    /// What makes signed order unsigned: the sign bits, unless the numbers are unsigned.
    flip: u32,
}

impl Parts {
    /// Takes the modifier that says so.
    pub fn take(i: &mut Decode<'_>) -> Self {
        let (bits, flip) = i
            .choose(&[
                ("U32", (32, 0)),
                ("S32", (32, 0x8000_0000)),
                ("U16x2", (16, 0)),
                ("S16x2", (16, 0x8000_8000)),
                ("U8x4", (8, 0)),
                ("S8x4", (8, 0x8080_8080)),
            ])
            .unwrap_or((32, 0x8000_0000));
        Self { bits, flip }
    }

    /// What `f` makes of each two parts.
    #[inline(always)]
    pub fn each(self, a: u32, b: u32, f: impl Fn(u32, u32) -> u32) -> u32 {
        let ones = !0 >> (32 - self.bits);
        (0..32 / self.bits).fold(0, |v, n| {
            let at = n * self.bits;
            v | (f(a >> at & ones, b >> at & ones) & ones) << at
        })
    }
}

/// In each lane the lesser of two numbers where the bit of `least` is set, else the greater.
fn choose(least: Mask, parts: Parts, a: &Row, b: &Row) -> Row {
    let flip = parts.flip;
    std::array::from_fn(|l| {
        let (x, y) = (a[l] ^ flip, b[l] ^ flip);
        let least = least >> l & 1 != 0;
        flip ^ parts.each(x, y, |x, y| if least { x.min(y) } else { x.max(y) })
    })
}

fn imnmx(i: &mut Decode<'_>) -> Built {
    if wide::is_wide(i) {
        return wide::min_max(i);
    }
    let parts = Parts::take(i);
    let d = i.dst()?;
    // From sm_100 on there are two more results; compilers leave them.
    if (i.pdst_if()?, i.pdst_if()?) != (NO_PRED, NO_PRED) {
        return Err("the predicate results".to_owned());
    }
    let (a, b, least) = (i.src()?, i.src()?, i.psrc()?);
    i.end()?;
    Ok(on_lanes(move |r, m| {
        let v = choose(r.pred(least), parts, &r.int(a), &r.int(b));
        r.set(d, m, v);
    }))
}

/// The lesser or greater of the third number and what `first` makes of the other two.
fn with_third(i: &mut Decode<'_>, first: fn(Mask, Parts, &Row, &Row) -> Row) -> Built {
    let parts = Parts::take(i);
    let d = i.dst()?;
    let (a, b, c, least) = (i.src()?, i.src()?, i.src()?, i.psrc()?);
    i.end()?;
    Ok(on_lanes(move |r, m| {
        let least = r.pred(least);
        let v = choose(least, parts, &first(least, parts, &r.int(a), &r.int(b)), &r.int(c));
        r.set(d, m, v);
    }))
}

fn sum(_: Mask, parts: Parts, a: &Row, b: &Row) -> Row {
    std::array::from_fn(|l| parts.each(a[l], b[l], u32::wrapping_add))
}
