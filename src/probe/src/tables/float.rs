//! Float immediates: which format the bits have, told by comparing values (not spellings) with what is printed.

/// A format of float immediates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FloatKind {
    /// IEEE half.
    F16,
    /// bfloat16.
    Bf16,
    /// IEEE single.
    F32,
    /// The high half of an IEEE double, low half zero.
    F64h,
}

impl FloatKind {
    /// All formats.
    pub const ALL: [FloatKind; 4] = [FloatKind::F16, FloatKind::Bf16, FloatKind::F32, FloatKind::F64h];

    /// The name in `fields.tsv`.
    pub fn name(self) -> &'static str {
        ["F16", "BF16", "F32", "F64H"][self as usize]
    }

    /// Width in bits.
    pub fn width(self) -> u8 {
        [16, 16, 32, 32][self as usize]
    }

    /// The number, and the position of the quiet bit of a NaN.
    fn value(self, raw: u64) -> (f64, u64) {
        match self {
            FloatKind::F16 => (half(raw as u16), raw >> 9 & 1),
            FloatKind::Bf16 => (f64::from(f32::from_bits((raw as u32) << 16)), raw >> 6 & 1),
            FloatKind::F32 => (f64::from(f32::from_bits(raw as u32)), raw >> 22 & 1),
            FloatKind::F64h => (f64::from_bits(raw << 32), raw >> 19 & 1),
        }
    }

    /// Whether `raw` in this format prints as `text`.
    pub fn prints(self, raw: u64, text: &str) -> bool {
        let (value, quiet) = self.value(raw);
        let negative = raw >> (self.width() - 1) & 1 == 1;
        if value.is_nan() {
            let word = text.strip_prefix(if negative { '-' } else { '+' });
            // nvdisasm of CUDA 12 calls all of them quiet.
            return word == Some("QNAN") || quiet == 0 && word == Some("SNAN");
        }
        if value.is_infinite() {
            return text == if negative { "-INF" } else { "+INF" };
        }
        text.parse::<f64>()
            .is_ok_and(|t| t == value && t.is_sign_negative() == negative)
    }
}

/// An IEEE half as a double.
fn half(bits: u16) -> f64 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 0x3ff));
    sign * match exponent {
        0 => fraction * (-24f64).exp2(),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        e => (1.0 + fraction / 1024.0) * f64::from(e - 15).exp2(),
    }
}

/// Where a float immediate is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FloatField {
    /// Lowest bit.
    pub low: u8,
    /// Format where no override applies.
    pub kind: FloatKind,
    /// Selector bits, value, and the format there.
    pub overrides: Vec<(Vec<u8>, u64, FloatKind)>,
}

impl FloatField {
    /// Bits, least significant first.
    pub fn bits(&self) -> std::ops::Range<u8> {
        self.low..self.low + self.kind.width()
    }

    /// The format in `word`.
    pub fn kind_in(&self, word: u128) -> FloatKind {
        let chosen = self
            .overrides
            .iter()
            .find(|(bits, v, _)| super::lab::extract(word, bits) == *v);
        chosen.map_or(self.kind, |o| o.2)
    }

    /// Whether the field of `word` prints as `text`.
    pub fn prints(&self, word: u128, text: &str) -> bool {
        let kind = self.kind_in(word);
        kind.prints((word >> self.low) as u64 & ((1 << kind.width()) - 1), text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_told_apart() {
        assert!(FloatKind::F32.prints(0x3fc0_0000, "1.5"));
        assert!(FloatKind::F16.prints(0x3e00, "1.5"));
        assert!(!FloatKind::Bf16.prints(0x3e00, "1.5"));
        assert!(FloatKind::F64h.prints(0x3ff8_0000, "1.5"));
        assert!(FloatKind::F32.prints(0x8000_0000, "-0"));
        assert!(FloatKind::F32.prints(0x7fc0_0000, "+QNAN"));
        assert!(!FloatKind::F32.prints(0x7fc0_0000, "+SNAN") && FloatKind::F32.prints(0x7f80_0001, "+SNAN"));
        assert!(FloatKind::F16.prints(0x0001, "5.9604644775390625e-08"));
    }
}
