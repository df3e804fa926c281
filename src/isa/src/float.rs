//! Floating-point immediates as `nvdisasm` writes them: C's `%.20g`, or `%.20e` from 1e9 on.

use std::fmt::{self, Write};

use crate::field::FieldKind;

/// A float taken from a field.
pub(crate) struct Float {
    value: f64,
    negative: bool,
    quiet: bool,
}

impl Float {
    /// A NaN of less than 64 bits is quiet where nobody is to tell it from a signaling one.
    pub(crate) fn new(kind: FieldKind, raw: u64, names_signaling: bool) -> Self {
        let (value, sign, quiet) = match kind {
            FieldKind::F16 => (half(raw as u16), 15, 9),
            FieldKind::Bf16 => (f64::from(f32::from_bits((raw as u32 & 0xffff) << 16)), 15, 6),
            FieldKind::F64High => (f64::from_bits(raw << 32), 31, 19),
            _ => (f64::from(f32::from_bits(raw as u32)), 31, 22),
        };
        Self {
            value,
            negative: raw >> sign & 1 == 1,
            quiet: raw >> quiet & 1 == 1 || !names_signaling && kind != FieldKind::F64High,
        }
    }

    /// The bits of the number of that kind which is nearest to `v`; `None` for what is no float.
    pub(crate) fn bits_of(kind: FieldKind, v: f64) -> Option<u64> {
        Some(match kind {
            FieldKind::F16 => u64::from(to_half(v)),
            FieldKind::Bf16 => u64::from(to_bf16(v)),
            FieldKind::F32 => u64::from((v as f32).to_bits()),
            FieldKind::F64High => v.to_bits() >> 32,
            _ => return None,
        })
    }

    /// Whether a space comes between it and a comma.
    pub(crate) fn is_special(&self) -> bool {
        !self.value.is_finite() || self.value == 0.0 && self.negative
    }

    pub(crate) fn write(&self, out: &mut dyn Write) -> fmt::Result {
        let v = self.value;
        if v.is_nan() {
            let sign = if self.negative { '-' } else { '+' };
            return write!(out, "{sign}{}", if self.quiet { "QNAN" } else { "SNAN" });
        }
        if v.is_infinite() {
            return out.write_str(if v > 0.0 { "+INF" } else { "-INF" });
        }
        if v == 0.0 {
            return out.write_str(if self.negative { "-0.0" } else { "0" });
        }
        if v.abs() < 1e9 {
            general(v, out)
        } else {
            scientific(v, out)
        }
    }
}

fn half(bits: u16) -> f64 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let exponent = i32::from(bits >> 10 & 0x1f);
    let fraction = f64::from(bits & 0x3ff);
    let magnitude = match exponent {
        0 => fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1.0 + fraction / 1024.0) * 2f64.powi(exponent - 15),
    };
    sign * magnitude
}

/// The bits of a half near `v`: exact for every number that is one.
fn to_half(v: f64) -> u16 {
    let sign = if v.is_sign_negative() { 0x8000 } else { 0 };
    let magnitude = v.abs();
    if magnitude >= 65536.0 {
        return sign | 0x7c00;
    }
    let bits = magnitude.to_bits();
    let exponent = (bits >> 52) as i32 - 1023;
    if exponent < -14 {
        return sign | (magnitude * 2f64.powi(24)) as u16;
    }
    sign | ((exponent + 15) as u16) << 10 | (bits >> 42) as u16 & 0x3ff
}

/// The bits of a bfloat16 near `v`: exact for every number that is one.
fn to_bf16(v: f64) -> u16 {
    ((v as f32).to_bits() >> 16) as u16
}

/// Text on the stack, long enough for 21 digits, a point and an exponent.
struct Digits {
    buffer: [u8; 48],
    len: usize,
}

impl Digits {
    /// `-d.dddde-dd` with `places` digits after the point, correctly rounded.
    fn of(v: f64, places: usize) -> Result<Self, fmt::Error> {
        let mut d = Self {
            buffer: [0; 48],
            len: 0,
        };
        write!(d, "{v:.places$e}")?;
        Ok(d)
    }

    /// Mantissa and exponent.
    fn parts(&self) -> (&str, i32) {
        let text = std::str::from_utf8(&self.buffer[..self.len]).unwrap_or_default();
        let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
        (mantissa, exponent.parse().unwrap_or(0))
    }
}

impl Write for Digits {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        let end = self.len + s.len();
        let slot = self.buffer.get_mut(self.len..end).ok_or(fmt::Error)?;
        slot.copy_from_slice(s.as_bytes());
        self.len = end;
        Ok(())
    }
}

fn exponent(e: i32, out: &mut dyn Write) -> fmt::Result {
    write!(out, "e{}{:02}", if e < 0 { '-' } else { '+' }, e.abs())
}

/// `%.20e`.
fn scientific(v: f64, out: &mut dyn Write) -> fmt::Result {
    let digits = Digits::of(v, 20)?;
    let (mantissa, e) = digits.parts();
    out.write_str(mantissa)?;
    exponent(e, out)
}

/// `%.20g` of a number below 1e9.
fn general(v: f64, out: &mut dyn Write) -> fmt::Result {
    let digits = Digits::of(v, 19)?;
    let (mantissa, e) = digits.parts();
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |m| ("-", m));
    let mantissa = mantissa.trim_end_matches('0').trim_end_matches('.');
    out.write_str(sign)?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if e < -4 {
        out.write_str(mantissa)?;
        return exponent(e, out);
    }
    if e < 0 {
        out.write_str("0.")?;
        for _ in 1..-e {
            out.write_char('0')?;
        }
        out.write_str(whole)?;
        return out.write_str(fraction);
    }
    let e = e as usize; // digits of the fraction that belong before the point
    out.write_str(whole)?;
    if fraction.len() <= e {
        out.write_str(fraction)?;
        for _ in fraction.len()..e {
            out.write_char('0')?;
        }
        return Ok(());
    }
    out.write_str(&fraction[..e])?;
    out.write_char('.')?;
    out.write_str(&fraction[e..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(kind: FieldKind, raw: u64) -> String {
        let mut s = String::new();
        Float::new(kind, raw, true).write(&mut s).unwrap();
        s
    }

    #[test]
    fn as_printf_writes_them() {
        for (kind, raw, expected) in [
            (FieldKind::F32, 0x3f80_0000, "1"),
            (FieldKind::F32, 0x3dcc_cccd, "0.10000000149011611938"),
            (FieldKind::F32, 0x42f6_e666, "123.4499969482421875"),
            (FieldKind::F32, 0x42f6_0000, "123"),
            (FieldKind::F32, 0xc120_0000, "-10"),
            (FieldKind::F32, 0x3400_0000, "1.1920928955078125e-07"),
            (FieldKind::F32, 0x3a83_126f, "0.0010000000474974513054"),
            (FieldKind::F32, 0x4f80_0000, "4.29496729600000000000e+09"),
            (FieldKind::F32, 0x4e6e_6b28, "1.00000000000000000000e+09"),
            (FieldKind::F32, 0x4cbe_bc20, "100000000"),
            (FieldKind::F32, 0x0000_0001, "1.4012984643248170709e-45"),
            (FieldKind::F32, 0x0000_0000, "0"),
            (FieldKind::F32, 0x8000_0000, "-0.0"),
            (FieldKind::F32, 0x7f80_0000, "+INF"),
            (FieldKind::F32, 0xff80_0000, "-INF"),
            (FieldKind::F32, 0x7fff_ffff, "+QNAN"),
            (FieldKind::F32, 0xff80_0001, "-SNAN"),
            (FieldKind::F16, 0x3c00, "1"),
            (FieldKind::F16, 0x0001, "5.9604644775390625e-08"),
            (FieldKind::F16, 0xfbff, "-65504"),
            (FieldKind::F16, 0x7c00, "+INF"),
            (FieldKind::Bf16, 0x3f80, "1"),
            (FieldKind::F64High, 0x3ff8_0000, "1.5"),
        ] {
            assert_eq!(text(kind, raw), expected, "{kind:?} {raw:#x}");
        }
        let mut unnamed = String::new();
        Float::new(FieldKind::F32, 0xff80_0001, false)
            .write(&mut unnamed)
            .unwrap();
        Float::new(FieldKind::F64High, 0xfff1_2e66, false)
            .write(&mut unnamed)
            .unwrap();
        assert_eq!(unnamed, "-QNAN-SNAN");
    }
}
