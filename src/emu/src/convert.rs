//! Conversions between formats, integers and floats.

use crate::build::{Builder, Built, Decode};
use crate::op::on_lanes;
use crate::regs::{Regs, Src, Wide};
use crate::rows::{self, each_lane, nan64, saturate};
use crate::sign::{AsSigned, AsUnsigned};
use crate::soft::{self, BF16, F16, F32, F64, Format, Round};

/// What executes which mnemonic.
pub const TABLE: &[(&str, Builder)] = &[
    ("F2F", f2f),
    ("F2FP", f2fp),
    ("F2I", f2i),
    ("FRND", frnd),
    ("I2F", i2f),
    ("I2FP", i2fp),
    ("UF2F", f2f),
    ("UF2FP", f2fp),
    ("UF2I", f2i),
    ("UFRND", frnd),
    ("UI2F", i2f),
    ("UI2FP", i2fp),
];

const FORMATS: &[(&str, Format)] = &[("F16", F16), ("BF16", BF16), ("F32", F32), ("F64", F64)];

/// Modifiers that round to integers or in a direction.
const ROUNDING: &[(&str, Round)] = &[
    ("RN", Round::Nearest),
    ("RM", Round::Down),
    ("RP", Round::Up),
    ("RZ", Round::Zero),
    ("FLOOR", Round::Down),
    ("CEIL", Round::Up),
    ("TRUNC", Round::Zero),
];

/// Integers as (signed, bits).
const INTEGERS: &[(&str, (bool, u32))] = &[
    ("S8", (true, 8)),
    ("U8", (false, 8)),
    ("S16", (true, 16)),
    ("U16", (false, 16)),
    ("S32", (true, 32)),
    ("U32", (false, 32)),
    ("S64", (true, 64)),
    ("U64", (false, 64)),
];

fn rows_of(format: Format) -> u16 {
    if format == F64 { 2 } else { 1 }
}

/// A float source as bits of its format.
fn float(r: &Regs, s: Src, format: Format) -> Wide {
    match format {
        F64 => r.double(s),
        F32 => r.float(s).map(u64::from),
        _ => r.signed(s, 0x8000).map(|x| u64::from(x & 0xffff)),
    }
}

/// Writes results of a format.
fn put(r: &mut Regs, d: u16, m: u32, format: Format, v: Wide) {
    match format {
        F64 => r.set_wide(d, m, v),
        _ => r.set(d, m, v.map(|x| x as u32)),
    }
}

fn f2f(i: &mut Decode<'_>) -> Built {
    let flush = i.take("FTZ");
    let (to, from) = (i.need(FORMATS)?, i.need(FORMATS)?);
    let round = i.choose(ROUNDING).unwrap_or(Round::Nearest);
    let d = i.dst_wide(rows_of(to))?;
    let a = i.src_wide(rows_of(from))?;
    i.end()?;
    Ok(on_lanes(move |r, m| {
        let v = float(r, a, from).map(|x| {
            let x = if flush && from == F32 { F32.flush(x) } else { x };
            let v = soft::convert(from, to, x, round);
            match to {
                F64 if F64.is_nan(v) => widened_nan(from, x),
                F32 if flush => F32.flush(v),
                _ => v,
            }
        });
        put(r, d, m, to, v);
    }))
}

/// The double that a NaN becomes.
fn widened_nan(from: Format, x: u64) -> u64 {
    match from {
        F64 => nan64(&[x]),
        F32 => f64::from(f32::from_bits(x as u32)).to_bits() | 1 << 51,
        _ => F64.nan() & !(1 << 63),
    }
}

fn f2fp(i: &mut Decode<'_>) -> Built {
    if let Some(built) = crate::bytes::convert(i) {
        return built;
    }
    let relu = i.take("RELU");
    let to = i.choose(&[("F16", F16), ("BF16", BF16)]).unwrap_or(F16);
    i.ignore(&["F32"]);
    i.need(&[("PACK_AB", ())])?;
    let round = i.choose(ROUNDING).unwrap_or(Round::Nearest);
    let d = i.dst()?;
    let (high, low) = (i.src()?, i.src()?);
    i.end()?;
    Ok(on_lanes(move |r, m| {
        let (high, low) = (r.float(high), r.float(low));
        let half = |x: u32| {
            let v = soft::convert(F32, to, x.into(), round) as u32;
            let negative = v & 0x8000 != 0 && !to.is_nan(v.into());
            if relu && negative { 0 } else { v }
        };
        r.set(d, m, each_lane(|l| half(high[l]) << 16 | half(low[l])));
    }))
}

fn f2i(i: &mut Decode<'_>) -> Built {
    let (flush, nan_to_zero) = (i.take("FTZ"), i.take("NTZ"));
    let (signed, bits) = i.choose(INTEGERS).unwrap_or((true, 32));
    let from = i.choose(FORMATS).unwrap_or(F32);
    let round = i.choose(ROUNDING).unwrap_or(Round::Nearest);
    let d = i.dst_wide(if bits == 64 { 2 } else { 1 })?;
    let a = i.src_wide(rows_of(from))?;
    i.end()?;
    let nan = if nan_to_zero { 0 } else { 1 << (bits - 1) };
    Ok(on_lanes(move |r, m| {
        let v = float(r, a, from).map(|x| {
            let x = if flush { from.flush(x) } else { x };
            soft::to_integer(from, x, signed, bits, round).unwrap_or(nan)
        });
        match bits {
            64 => r.set_wide(d, m, v),
            // Narrow results fill the register with their sign.
            _ if signed => r.set(d, m, v.map(|x| ((x << (64 - bits)).signed() >> (64 - bits)) as u32)),
            _ => r.set(d, m, v.map(|x| x as u32)),
        }
    }))
}

/// An integer source as sign and size.
fn integer(r: &Regs, s: Src, signed: bool, bits: u32) -> [(bool, u64); 32] {
    let v = match bits {
        64 => r.wide(s),
        _ => r.int(s).map(u64::from),
    };
    v.map(|x| {
        let x = (x << (64 - bits)).signed() >> (64 - bits);
        match signed {
            true => (x < 0, x.unsigned_abs()),
            false => (false, x.unsigned() << (64 - bits) >> (64 - bits)),
        }
    })
}

fn i2f(i: &mut Decode<'_>) -> Built {
    let (signed, bits) = i.choose(INTEGERS).unwrap_or((true, 32));
    let to = i.choose(FORMATS).unwrap_or(F32);
    let round = i.choose(ROUNDING).unwrap_or(Round::Nearest);
    let d = i.dst_wide(rows_of(to))?;
    let a = i.src_wide(if bits == 64 { 2 } else { 1 })?;
    i.end()?;
    if to == F32 && round == Round::Nearest && bits < 64 {
        let unused = 32 - bits;
        return Ok(on_lanes(move |r, m| {
            let v = match signed {
                true => r.int(a).map(|x| ((x << unused).signed() >> unused).unsigned()),
                false => r.int(a).map(|x| x << unused >> unused),
            };
            r.set(d, m, rows::to_float(&v, signed));
        }));
    }
    Ok(on_lanes(move |r, m| {
        let v = integer(r, a, signed, bits).map(|(neg, size)| soft::from_integer(to, neg, size, round));
        put(r, d, m, to, v);
    }))
}

fn i2fp(i: &mut Decode<'_>) -> Built {
    i.need(&[("F32", ())])?;
    let signed = i.need(&[("S32", true), ("U32", false)])?;
    let round = i.choose(ROUNDING).unwrap_or(Round::Nearest);
    let d = i.dst()?;
    let a = i.src()?;
    i.end()?;
    Ok(on_lanes(move |r, m| {
        let v = match (round, signed) {
            (Round::Nearest, _) => rows::to_float(&r.int(a), signed),
            _ => integer(r, a, signed, 32).map(|(neg, size)| soft::from_integer(F32, neg, size, round) as u32),
        };
        r.set(d, m, v);
    }))
}

fn frnd(i: &mut Decode<'_>) -> Built {
    let (flush, sat) = (i.take("FTZ"), i.take("SAT"));
    let format = i.choose(FORMATS).unwrap_or(F32);
    let round = i.choose(ROUNDING).unwrap_or(Round::Nearest);
    if sat && format != F32 {
        return Err("FRND.SAT of this format".to_owned());
    }
    let d = i.dst_wide(rows_of(format))?;
    let a = i.src_wide(rows_of(format))?;
    i.end()?;
    Ok(on_lanes(move |r, m| {
        let v = float(r, a, format).map(|x| {
            let x = if flush { format.flush(x) } else { x };
            let v = soft::to_integral(format, x, round);
            match format {
                F64 if F64.is_nan(v) => nan64(&[x]),
                F32 if sat => saturate(v as u32).into(),
                _ => v,
            }
        });
        put(r, d, m, format, v);
    }))
}
