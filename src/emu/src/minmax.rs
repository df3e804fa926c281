//! The least and the greatest of integers.

use crate::build::{Builder, Built, Decode};
use crate::op::on_lanes;
use crate::regs::{Mask, NO_PRED, Row};

/// What executes which mnemonic.
pub const TABLE: &[(&str, Builder)] = &[
    ("IMNMX", imnmx),
    ("UVIMNMX", imnmx),
    ("VIADDMNMX", |i| with_third(i, sum)),
    ("VIMNMX", imnmx),
    ("VIMNMX3", |i| with_third(i, choose)),
];

/// What makes signed order unsigned: the sign bit, unless the numbers are unsigned.
fn sign_flip(i: &mut Decode<'_>) -> u32 {
    let unsigned = i.take("U32");
    i.ignore(&["S32"]);
    if unsigned { 0 } else { 0x8000_0000 }
}

/// In each lane the lesser of two numbers where the bit of `least` is set, else the greater.
fn choose(least: Mask, flip: u32, a: &Row, b: &Row) -> Row {
    std::array::from_fn(|l| {
        let (x, y) = (a[l] ^ flip, b[l] ^ flip);
        flip ^ if least >> l & 1 != 0 { x.min(y) } else { x.max(y) }
    })
}

fn imnmx(i: &mut Decode<'_>) -> Built {
    let flip = sign_flip(i);
    let d = i.dst()?;
    // From sm_100 on there are two more results; compilers leave them.
    if (i.pdst_if()?, i.pdst_if()?) != (NO_PRED, NO_PRED) {
        return Err("the predicate results".to_owned());
    }
    let (a, b, least) = (i.src()?, i.src()?, i.psrc()?);
    i.end()?;
    Ok(on_lanes(move |r, m| {
        let v = choose(r.pred(least), flip, &r.int(a), &r.int(b));
        r.set(d, m, v);
    }))
}

/// The lesser or greater of the third number and what `first` makes of the other two.
fn with_third(i: &mut Decode<'_>, first: fn(Mask, u32, &Row, &Row) -> Row) -> Built {
    let flip = sign_flip(i);
    let d = i.dst()?;
    let (a, b, c, least) = (i.src()?, i.src()?, i.src()?, i.psrc()?);
    i.end()?;
    Ok(on_lanes(move |r, m| {
        let least = r.pred(least);
        let v = choose(least, flip, &first(least, flip, &r.int(a), &r.int(b)), &r.int(c));
        r.set(d, m, v);
    }))
}

fn sum(_: Mask, _: u32, a: &Row, b: &Row) -> Row {
    std::array::from_fn(|l| a[l].wrapping_add(b[l]))
}
