//! Double precision.

use crate::build::{Builder, Built, Decode};
use crate::compare::{self, Order};
use crate::float::ROUNDING;
use crate::op::on_lanes;
use crate::regs::{LANES, Wide, lanes};
use crate::rows::{self, each_lane, nan64};
use crate::sign::AsSigned;
use crate::soft::{self, F64, Round};

/// What executes which mnemonic.
pub const TABLE: &[(&str, Builder)] = &[("DADD", dadd), ("DFMA", dfma), ("DMUL", dmul), ("DSETP", dsetp)];

/// Arithmetic with a directed rounding, a lane at a time.
fn directed<const N: usize>(arguments: [Wide; N], lane: impl Fn([u64; N]) -> u64) -> Wide {
    each_lane(|l| {
        let a = arguments.map(|r| r[l]);
        let v = lane(a);
        if F64.is_nan(v) { nan64(&a) } else { v }
    })
}

fn dadd(i: &mut Decode<'_>) -> Built {
    let round = i.choose(ROUNDING).unwrap_or(Round::Nearest);
    let d = i.dst_wide(2)?;
    let (a, b) = (i.src_wide(2)?, i.src_wide(2)?);
    i.end()?;
    Ok(on_lanes(move |r, m| {
        let (a, b) = (r.double(a), r.double(b));
        let v = match round {
            Round::Nearest => rows::add64(&a, &b),
            _ => directed([a, b], |[a, b]| soft::add(F64, a, b, round)),
        };
        r.set_wide(d, m, v);
    }))
}

fn dmul(i: &mut Decode<'_>) -> Built {
    let round = i.choose(ROUNDING).unwrap_or(Round::Nearest);
    let d = i.dst_wide(2)?;
    let (a, b) = (i.src_wide(2)?, i.src_wide(2)?);
    i.end()?;
    Ok(on_lanes(move |r, m| {
        let (a, b) = (r.double(a), r.double(b));
        let v = match round {
            Round::Nearest => rows::mul64(&a, &b),
            _ => directed([a, b], |[a, b]| soft::mul(F64, a, b, round)),
        };
        r.set_wide(d, m, v);
    }))
}

fn dfma(i: &mut Decode<'_>) -> Built {
    let round = i.choose(ROUNDING).unwrap_or(Round::Nearest);
    let d = i.dst_wide(2)?;
    let (a, b, c) = (i.src_wide(2)?, i.src_wide(2)?, i.src_wide(2)?);
    i.end()?;
    Ok(on_lanes(move |r, m| {
        let (a, b, c) = (r.double(a), r.double(b), r.double(c));
        let v = match round {
            Round::Nearest => rows::fma64(&a, &b, &c),
            _ => directed([a, b, c], |[a, b, c]| soft::fma(F64, a, b, c, round)),
        };
        r.set_wide(d, m, v);
    }))
}

fn dsetp(i: &mut Decode<'_>) -> Built {
    if let Some(least) = i.choose(&[("MIN", true), ("MAX", false)]) {
        return choose(i, least);
    }
    let order = i.need(compare::FLOAT)?;
    let combine = i.need(compare::COMBINE)?;
    let (p, q) = (i.pdst()?, i.pdst()?);
    let (a, b, with) = (i.src_wide(2)?, i.src_wide(2)?, i.psrc()?);
    i.end()?;
    Ok(on_lanes(move |r, m| {
        let (a, b) = (r.double(a).map(f64::from_bits), r.double(b).map(f64::from_bits));
        let (holds, with) = (holds(order, &a, &b), r.pred(with));
        r.set_pred(p, m, combine.of(holds, with));
        r.set_pred(q, m, combine.of(!holds, with));
    }))
}

fn holds(order: Order, a: &[f64; LANES], b: &[f64; LANES]) -> u32 {
    let less = lanes(|l| a[l] < b[l]);
    let equal = lanes(|l| a[l] == b[l]);
    order.of(less, equal, lanes(|l| a[l].is_nan() | b[l].is_nan()))
}

/// `DSETP.MIN` and `.MAX`, the first half of `fmin` and `fmax`: whether the first argument is the result, and whether both are NaN, as
/// the selections that compilers put behind it show.
fn choose(i: &mut Decode<'_>, least: bool) -> Built {
    i.need(&[("AND", ())])?;
    let (p, q) = (i.pdst()?, i.pdst()?);
    let (a, b) = (i.src_wide(2)?, i.src_wide(2)?);
    if i.psrc()? != crate::regs::Pred::TRUE {
        return Err("DSETP.MIN or MAX with a predicate".to_owned());
    }
    i.end()?;
    let rank = |x: u64| {
        let x = x.signed();
        x ^ (x >> 63 & i64::MAX)
    };
    Ok(on_lanes(move |r, m| {
        let (a, b) = (r.double(a), r.double(b));
        let first = |l: usize| match (F64.is_nan(a[l]), F64.is_nan(b[l])) {
            (false, true) => true,
            (true, _) => false,
            _ => (rank(a[l]) < rank(b[l])) == least,
        };
        r.set_pred(p, m, lanes(first));
        r.set_pred(q, m, lanes(|l| F64.is_nan(a[l]) && F64.is_nan(b[l])));
    }))
}
