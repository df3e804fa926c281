//! The bit notation of the tables: `81:34,23:16`, most significant chunk first.

use std::fmt;
use std::str::FromStr;

/// Positions of a field in the 128-bit word, **least significant first**; may be empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Bits(pub Vec<u8>);

impl Bits {
    /// Number of bits.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the field has no bits, so that its value is always 0.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The word bits that the field covers.
    pub fn mask(&self) -> u128 {
        self.0.iter().fold(0, |m, &b| m | 1 << b)
    }

    /// The field's raw value in `word`; fields are at most 64 bits wide.
    pub fn get(&self, word: u128) -> u64 {
        self.0
            .iter()
            .enumerate()
            .fold(0, |v, (i, &b)| v | ((word >> b) as u64 & 1) << i)
    }

    /// `word` with the field's raw value replaced; bits of `value` above the field are ignored.
    pub fn set(&self, word: u128, value: u64) -> u128 {
        let placed = self
            .0
            .iter()
            .enumerate()
            .fold(0, |w, (i, &b)| w | u128::from(value >> i & 1) << b);
        word & !self.mask() | placed
    }
}

impl fmt::Display for Bits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("-");
        }
        let mut chunks: Vec<(u8, u8)> = Vec::new(); // (low, high), least significant first
        for &b in &self.0 {
            match chunks.last_mut() {
                Some((_, high)) if *high + 1 == b => *high = b,
                _ => chunks.push((b, b)),
            }
        }
        for (i, (low, high)) in chunks.iter().rev().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            if low == high {
                write!(f, "{comma}{low}")?
            } else {
                write!(f, "{comma}{high}:{low}")?
            }
        }
        Ok(())
    }
}

/// Why a cell is not bit notation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not bit notation (like `81:34,23:16`, bits 0 to 127, none twice, at most 64)")]
pub struct BitsError(pub String);

impl FromStr for Bits {
    type Err = BitsError;

    fn from_str(s: &str) -> Result<Self, BitsError> {
        let bad = || BitsError(s.to_owned());
        if s == "-" {
            return Ok(Self::default());
        }
        let number = |t: &str| t.parse::<u8>().ok().filter(|&b| b < 128).ok_or_else(bad);
        let mut bits = Vec::new();
        for chunk in s.rsplit(',') {
            let (high, low) = chunk.split_once(':').unwrap_or((chunk, chunk));
            let (high, low) = (number(high)?, number(low)?);
            if high < low {
                return Err(bad());
            }
            bits.extend(low..=high);
        }
        let out = Self(bits);
        if out.len() > 64 || out.mask().count_ones() as usize != out.len() {
            return Err(bad());
        }
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn split_field_round_trips() {
        let b: Bits = "81:34,23:16".parse().unwrap();
        assert_eq!(b.len(), 56);
        assert_eq!(b.0[..9], [16, 17, 18, 19, 20, 21, 22, 23, 34]);
        assert_eq!(b.to_string(), "81:34,23:16");
        let w = b.set(0, 0x1ff);
        assert_eq!(w, 0xff << 16 | 1 << 34);
        assert_eq!(b.get(w), 0x1ff);
    }

    #[test]
    fn rejects_what_is_not_bits() {
        for s in ["", "128", "3:5", "4,4", "a", "7:0,3"] {
            assert!(s.parse::<Bits>().is_err(), "{s}");
        }
        assert_eq!("-".parse::<Bits>().unwrap(), Bits::default());
    }
}
