//! Half precision and bfloat16, two numbers a register.

use crate::arg::{Arg, Kind};
use crate::build::{Builder, Built, Decode, Missing};
use crate::compare;
use crate::op::on_lanes;
use crate::regs::{LANES, Regs, Row, Src, lanes};
use crate::rows::{self, Mode};
use crate::sign::AsSigned;
use crate::soft::{BF16, F16, F32, F64, Format, Round, convert};

/// What executes which mnemonic.
pub const TABLE: &[(&str, Builder)] = &[
    ("HADD2", hadd2),
    ("HFMA2", hfma2),
    ("HMNMX2", hmnmx2),
    ("HMUL2", hmul2),
    ("HSET2", hset2),
    ("HSETP2", hsetp2),
];

/// Which halves a source gives to the low and the high result.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Swizzle {
    Both,
    Low,
    High,
}

/// A source of two halves.
#[derive(Clone, Copy)]
struct Pair {
    src: Src,
    swizzle: Swizzle,
}

impl Pair {
    fn take(i: &mut Decode<'_>) -> Result<Self, Missing> {
        if let Some(Arg {
            kind: Kind::Float(_, high),
            ..
        }) = i.peek().copied()
        {
            // An immediate is printed as two numbers, the high one first.
            i.arg()?;
            let Kind::Float(_, low) = i.arg()?.kind else {
                return Err("half an immediate".to_owned());
            };
            return Ok(Self {
                src: i.number(high << 16 | low & 0xffff),
                swizzle: Swizzle::Both,
            });
        }
        let (src, suffix) = i.src_with_suffix(1)?;
        let swizzle = match suffix {
            "" => Swizzle::Both,
            "H0_H0" => Swizzle::Low,
            "H1_H1" => Swizzle::High,
            _ => return Err(format!("the operand suffix {suffix}")),
        };
        Ok(Self { src, swizzle })
    }

    fn get(self, r: &Regs) -> Row {
        let v = r.signed(self.src, 0x8000_8000);
        match self.swizzle {
            Swizzle::Both => v,
            Swizzle::Low => v.map(|x| x & 0xffff | x << 16),
            Swizzle::High => v.map(|x| x >> 16 | x & 0xffff_0000),
        }
    }
}

/// How results are made.
#[derive(Clone, Copy)]
struct Shape {
    format: Format,
    flush: bool,
    saturate: bool,
    relu: bool,
}

impl Shape {
    fn take(i: &mut Decode<'_>) -> Self {
        // The pipe that it runs on, and the packing that is always meant.
        i.ignore(&["MMA", "PACKED"]);
        Self {
            format: if i.take("BF16_V2") { BF16 } else { F16 },
            flush: i.take("FTZ"),
            saturate: i.take("SAT"),
            relu: i.take("RELU"),
        }
    }

    fn value(self, bits: u32) -> f64 {
        let bits = u64::from(bits & 0xffff);
        let bits = if self.flush { self.format.flush(bits) } else { bits };
        f64::from_bits(widen(self.format, bits))
    }

    fn result(self, v: f64) -> u32 {
        let one = convert(F64, self.format, 1f64.to_bits(), Round::Nearest);
        let mut bits = convert(F64, self.format, v.to_bits(), Round::Nearest);
        if self.flush {
            bits = self.format.flush(bits);
        }
        let (negative, nan) = (bits & 0x8000 != 0, self.format.is_nan(bits));
        if self.saturate {
            bits = if negative || nan { 0 } else { bits.min(one) };
        }
        if self.relu && negative && !nan {
            bits = 0;
        }
        bits as u32
    }

    /// Both halves of every lane.
    fn each<const N: usize>(self, arguments: [Row; N], f: impl Fn([f64; N]) -> f64) -> Row {
        std::array::from_fn(|l| {
            let half = |by| self.result(f(arguments.map(|a| self.value(a[l] >> by))));
            half(0) | half(16) << 16
        })
    }
}

/// A half in double precision, exactly.
fn widen(format: Format, bits: u64) -> u64 {
    match format {
        BF16 => f64::from(f32::from_bits((bits as u32) << 16)).to_bits(),
        _ => f64::from(f32::from_bits(single(bits as u32))).to_bits(),
    }
}

/// An IEEE half as a single, exactly.
#[inline(always)]
pub fn single(half: u32) -> u32 {
    // Moving the exponent by a multiplication makes subnormal halves normal.
    const SCALE: f32 = f32::from_bits((127 + 112) << 23);
    let size = (half & 0x7fff) << 13;
    let finite = (f32::from_bits(size) * SCALE).to_bits();
    let special = size | 0x7f80_0000;
    let size = if half & 0x7c00 == 0x7c00 { special } else { finite };
    size | (half & 0x8000) << 16
}

/// `x + y` such that rounding it once more to a short format rounds the exact sum: inexact sums get an odd last bit.
pub fn sum_to_odd(x: f64, y: f64) -> f64 {
    let s = x + y;
    let part = s - x;
    let error = (x - (s - part)) + (y - part);
    if !s.is_finite() || error == 0.0 || s.to_bits() & 1 == 1 {
        return s;
    }
    // Toward the exact sum.
    let up = (error > 0.0) == (s > 0.0);
    f64::from_bits(if up { s.to_bits() + 1 } else { s.to_bits() - 1 })
}

fn hadd2(i: &mut Decode<'_>) -> Built {
    if i.take("F32") {
        return hadd2_f32(i);
    }
    let shape = Shape::take(i);
    let d = i.dst()?;
    let a = Pair::take(i)?;
    if i.peek().is_some_and(|b| b.suffix == "F32") {
        return narrowed(i, d, a);
    }
    let b = Pair::take(i)?;
    i.end()?;
    Ok(on_lanes(move |r, m| {
        let v = shape.each([a.get(r), b.get(r)], |[a, b]| sum_to_odd(a, b));
        r.set(d, m, v);
    }))
}

/// `HADD2` of zero and a number in single precision, which is how compilers for sm_75 narrow a constant.
fn narrowed(i: &mut Decode<'_>, d: u16, zero: Pair) -> Built {
    let (b, _) = i.src_with_suffix(1)?;
    if zero.src.plain() != i.zero() {
        return Err("the sum of a half and a single".to_owned());
    }
    i.end()?;
    Ok(on_lanes(move |r, m| {
        let v = r.float(b).map(|x| convert(F32, F16, x.into(), Round::Nearest) as u32);
        r.set(d, m, v.map(|x| x | x << 16));
    }))
}

/// `HADD2.F32`: the sum of two halves in single precision, which is how compilers widen one.
fn hadd2_f32(i: &mut Decode<'_>) -> Built {
    let d = i.dst()?;
    let (a, b) = (Pair::take(i)?, Pair::take(i)?);
    i.end()?;
    Ok(on_lanes(move |r, m| {
        let [a, b] = [a, b].map(|p| p.get(r).map(|x| single(x & 0xffff)));
        r.set(d, m, rows::add(&a, &b, Mode::default()));
    }))
}

fn hmul2(i: &mut Decode<'_>) -> Built {
    let shape = Shape::take(i);
    let d = i.dst()?;
    let (a, b) = (Pair::take(i)?, Pair::take(i)?);
    i.end()?;
    Ok(on_lanes(move |r, m| {
        let v = shape.each([a.get(r), b.get(r)], |[a, b]| a * b);
        r.set(d, m, v);
    }))
}

fn hfma2(i: &mut Decode<'_>) -> Built {
    let shape = Shape::take(i);
    let d = i.dst()?;
    let (a, b, c) = (Pair::take(i)?, Pair::take(i)?, Pair::take(i)?);
    if i.psrc_or_true()? != crate::regs::Pred::TRUE {
        return Err("HFMA2 with a predicate".to_owned());
    }
    i.end()?;
    Ok(on_lanes(move |r, m| {
        let v = shape.each([a.get(r), b.get(r), c.get(r)], |[a, b, c]| sum_to_odd(a * b, c));
        r.set(d, m, v);
    }))
}

fn hmnmx2(i: &mut Decode<'_>) -> Built {
    let shape = Shape::take(i);
    let nan_wins = i.take("NAN");
    let d = i.dst()?;
    let (a, b, least) = (Pair::take(i)?, Pair::take(i)?, i.psrc()?);
    i.end()?;
    let format = shape.format;
    let pick = move |a: u32, b: u32, least: bool| {
        let (a, b) = (u64::from(a & 0xffff), u64::from(b & 0xffff));
        let rank = |x: u64| {
            let x = (x as u16).signed();
            x ^ (x >> 15 & i16::MAX)
        };
        let v = match (format.is_nan(a), format.is_nan(b)) {
            (true, true) => format.nan(),
            (true, _) | (_, true) if nan_wins => format.nan(),
            (true, false) => b,
            (false, true) => a,
            _ if (rank(a) < rank(b)) == least => a,
            _ => b,
        };
        (if shape.flush { format.flush(v) } else { v }) as u32
    };
    Ok(on_lanes(move |r, m| {
        let (a, b, least) = (a.get(r), b.get(r), r.pred(least));
        let v = std::array::from_fn(|l| {
            let least = least >> l & 1 != 0;
            pick(a[l], b[l], least) | pick(a[l] >> 16, b[l] >> 16, least) << 16
        });
        r.set(d, m, v);
    }))
}

/// Where an order holds between the halves that lie `by` bits up.
fn holds(shape: Shape, order: compare::Order, a: &Row, b: &Row, by: u32) -> u32 {
    let [a, b]: [[f64; LANES]; 2] = [a, b].map(|r| r.map(|x| shape.value(x >> by)));
    let less = lanes(|l| a[l] < b[l]);
    let equal = lanes(|l| a[l] == b[l]);
    order.of(less, equal, lanes(|l| a[l].is_nan() | b[l].is_nan()))
}

fn hsetp2(i: &mut Decode<'_>) -> Built {
    let shape = Shape::take(i);
    let together = i.take("H_AND");
    let order = i.need(compare::FLOAT)?;
    let combine = i.need(compare::COMBINE)?;
    let (p, q) = (i.pdst()?, i.pdst()?);
    let (a, b, with) = (Pair::take(i)?, Pair::take(i)?, i.psrc()?);
    i.end()?;
    Ok(on_lanes(move |r, m| {
        let (a, b, with) = (a.get(r), b.get(r), r.pred(with));
        let (low, high) = (holds(shape, order, &a, &b, 0), holds(shape, order, &a, &b, 16));
        let (first, second) = if together {
            (low & high, !(low & high))
        } else {
            (low, high)
        };
        r.set_pred(p, m, combine.of(first, with));
        r.set_pred(q, m, combine.of(second, with));
    }))
}

fn hset2(i: &mut Decode<'_>) -> Built {
    let as_float = i.take("BF");
    let shape = Shape::take(i);
    let order = i.need(compare::FLOAT)?;
    let combine = i.need(compare::COMBINE)?;
    let d = i.dst()?;
    let (a, b, with) = (Pair::take(i)?, Pair::take(i)?, i.psrc()?);
    i.end()?;
    let truth = if as_float { shape.result(1.0) } else { 0xffff };
    Ok(on_lanes(move |r, m| {
        let (a, b, with) = (a.get(r), b.get(r), r.pred(with));
        let [low, high] = [0, 16].map(|by| combine.of(holds(shape, order, &a, &b, by), with));
        let half = |holds: u32, l: usize| if holds >> l & 1 != 0 { truth } else { 0 };
        r.set(d, m, std::array::from_fn(|l| half(low, l) | half(high, l) << 16));
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widens_every_half() {
        for h in 0..=0xffffu32 {
            let want = convert(F16, crate::soft::F32, h.into(), Round::Nearest) as u32;
            let got = single(h);
            match f32::from_bits(want).is_nan() {
                true => assert!(f32::from_bits(got).is_nan()),
                false => assert_eq!(got, want, "{h:#x}"),
            }
        }
    }

    #[test]
    fn a_sum_rounded_to_odd_keeps_ties_apart() {
        let one = 1.0f64;
        let tie = one + 2f64.powi(-8);
        let tiny = 2f64.powi(-80);
        let short = |x: f64| convert(F64, BF16, x.to_bits(), Round::Nearest);
        assert_eq!(short(tie), 0x3f80);
        assert_eq!(short(sum_to_odd(tie, tiny)), 0x3f81);
        assert_eq!(short(sum_to_odd(tie, -tiny)), 0x3f80);
        assert_eq!(short(sum_to_odd(-tie, -tiny)), 0xbf81);
    }
}
