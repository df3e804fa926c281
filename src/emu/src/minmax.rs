//! The least and the greatest of integers.

use crate::build::{Builder, Built, Decode};
use crate::op::on_lanes;
use crate::regs::{LANES, NO_PRED};

/// What executes which mnemonic.
pub const TABLE: &[(&str, Builder)] = &[
    ("IMNMX", imnmx),
    ("UVIMNMX", imnmx),
    ("VIADDMNMX", viaddmnmx),
    ("VIMNMX", imnmx),
    ("VIMNMX3", vimnmx3),
];

/// What makes signed order unsigned: the sign bit, unless the numbers are unsigned.
fn sign_flip(i: &mut Decode<'_>) -> u32 {
    let unsigned = i.take("U32");
    i.ignore(&["S32"]);
    if unsigned { 0 } else { 0x8000_0000 }
}

/// The lesser of two rows, or the greater.
fn choose(least: bool, flip: u32, a: &[u32; LANES], b: &[u32; LANES]) -> [u32; LANES] {
    std::array::from_fn(|l| {
        let (x, y) = (a[l] ^ flip, b[l] ^ flip);
        flip ^ if least { x.min(y) } else { x.max(y) }
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
        let (a, b, least) = (r.int(a), r.int(b), r.pred(least));
        let (low, high) = (choose(true, flip, &a, &b), choose(false, flip, &a, &b));
        r.set(
            d,
            m,
            std::array::from_fn(|l| if least >> l & 1 != 0 { low[l] } else { high[l] }),
        );
    }))
}

/// A sum, then the lesser or greater of it and the third number.
fn viaddmnmx(i: &mut Decode<'_>) -> Built {
    let flip = sign_flip(i);
    let d = i.dst()?;
    let (a, b, c, least) = (i.src()?, i.src()?, i.src()?, i.psrc()?);
    i.end()?;
    Ok(on_lanes(move |r, m| {
        let (a, b, c, least) = (r.int(a), r.int(b), r.int(c), r.pred(least));
        let sum = std::array::from_fn(|l| a[l].wrapping_add(b[l]));
        let (low, high) = (choose(true, flip, &sum, &c), choose(false, flip, &sum, &c));
        r.set(
            d,
            m,
            std::array::from_fn(|l| if least >> l & 1 != 0 { low[l] } else { high[l] }),
        );
    }))
}

/// The least or greatest of three numbers.
fn vimnmx3(i: &mut Decode<'_>) -> Built {
    let flip = sign_flip(i);
    let d = i.dst()?;
    let (a, b, c, least) = (i.src()?, i.src()?, i.src()?, i.psrc()?);
    i.end()?;
    Ok(on_lanes(move |r, m| {
        let (a, b, c, least) = (r.int(a), r.int(b), r.int(c), r.pred(least));
        let of = |least| choose(least, flip, &choose(least, flip, &a, &b), &c);
        let (low, high) = (of(true), of(false));
        r.set(
            d,
            m,
            std::array::from_fn(|l| if least >> l & 1 != 0 { low[l] } else { high[l] }),
        );
    }))
}
