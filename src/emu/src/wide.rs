//! Integers of 64 bits in one instruction, as sm_120 has them, in pairs of registers.

use crate::build::{Built, Decode};
use crate::compare;
use crate::int::NO_CARRY;
use crate::op::on_lanes;
use crate::regs::{Mask, NO_PRED, Wide, lanes};
use crate::rows::each_lane;

/// What makes signed order unsigned.
const SIGN: u64 = 1 << 63;

fn sign_flip(i: &mut Decode<'_>) -> Result<u64, String> {
    i.need(&[("U64", 0), ("S64", SIGN)])
}

/// Whether the numbers are of 64 bits.
pub fn is_wide(i: &Decode<'_>) -> bool {
    ["64", "U64", "S64"].iter().any(|m| i.has(m))
}

/// `IADD.64`: `-x` is `!x + 1`, so that its carry is that of a subtraction.
pub fn add(i: &mut Decode<'_>) -> Built {
    let extended = i.take("64") && i.take("X");
    let d = i.dst_wide(2)?;
    let p = i.pdst_if()?;
    let (a, b) = (i.src_wide(2)?, i.src_wide(2)?);
    let x = if extended { i.psrc()? } else { NO_CARRY };
    i.end()?;
    Ok(on_lanes(move |r, m| {
        let part = |s: crate::regs::Src| {
            let v = r.wide(s.plain());
            v.map(|x| u128::from(if s.neg || s.not { !x } else { x }) + u128::from(s.neg))
        };
        let (a, b, x) = (part(a), part(b), r.pred(x));
        let sum = each_lane(|l| a[l] + b[l] + u128::from(x >> l & 1));
        r.set_wide(d, m, sum.map(|s| s as u64));
        r.set_pred(p, m, lanes(|l| sum[l] >> 64 != 0));
    }))
}

/// `MOV.64`.
pub fn mov(i: &mut Decode<'_>) -> Built {
    i.take("64");
    let d = i.dst_wide(2)?;
    let a = i.src_wide(2)?;
    i.end()?;
    Ok(on_lanes(move |r, m| r.set_wide(d, m, r.wide(a))))
}

/// `SEL.64`.
pub fn select(i: &mut Decode<'_>) -> Built {
    i.take("64");
    let d = i.dst_wide(2)?;
    let (a, b, p) = (i.src_wide(2)?, i.src_wide(2)?, i.psrc()?);
    i.end()?;
    Ok(on_lanes(move |r, m| {
        let (a, b, p) = (r.wide(a), r.wide(b), r.pred(p));
        r.set_wide(d, m, each_lane(|l| if p >> l & 1 != 0 { a[l] } else { b[l] }));
    }))
}

/// The lanes in which `a < b`, and in which they are equal.
fn order(flip: u64, a: &Wide, b: &Wide) -> (Mask, Mask) {
    (lanes(|l| a[l] ^ flip < b[l] ^ flip), lanes(|l| a[l] == b[l]))
}

/// `ISETP` of 64 bits.
pub fn compare(i: &mut Decode<'_>) -> Built {
    let relation = i.need(compare::INTEGER)?;
    let flip = sign_flip(i)?;
    let combine = i.need(compare::COMBINE)?;
    let (p, q) = (i.pdst()?, i.pdst()?);
    let (a, b) = (i.src_wide(2)?, i.src_wide(2)?);
    let with = i.psrc_or_true()?;
    i.end()?;
    Ok(on_lanes(move |r, m| {
        let (less, equal) = order(flip, &r.wide(a), &r.wide(b));
        let holds = relation.of(less, equal, 0);
        let with = r.pred(with);
        r.set_pred(p, m, combine.of(holds, with));
        r.set_pred(q, m, combine.of(!holds, with));
    }))
}

/// `IMNMX` of 64 bits, with two results and an operand that compilers leave out.
pub fn min_max(i: &mut Decode<'_>) -> Built {
    let flip = sign_flip(i)?;
    if (i.pdst()?, i.pdst()?) != (NO_PRED, NO_PRED) {
        return Err("the predicate results".to_owned());
    }
    let d = i.dst_wide(2)?;
    let (a, b, least) = (i.src_wide(2)?, i.src_wide(2)?, i.psrc()?);
    if i.psrc()? != NO_CARRY {
        return Err("the second predicate".to_owned());
    }
    i.end()?;
    Ok(on_lanes(move |r, m| {
        let (a, b) = (r.wide(a), r.wide(b));
        let (less, _) = order(flip, &a, &b);
        let first = !(less ^ r.pred(least));
        r.set_wide(d, m, each_lane(|l| if first >> l & 1 != 0 { a[l] } else { b[l] }));
    }))
}
