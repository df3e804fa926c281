//! The 128-bit instruction word.

use std::fmt;

/// One instruction as the machine reads it: 16 bytes, little endian.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Word(pub u128);

impl Word {
    /// Bytes of one instruction.
    pub const BYTES: usize = 16;

    /// The word at the given bytes of a section.
    pub const fn from_le_bytes(bytes: [u8; 16]) -> Self {
        Self(u128::from_le_bytes(bytes))
    }

    /// The bytes that a section holds.
    pub const fn to_le_bytes(self) -> [u8; 16] {
        self.0.to_le_bytes()
    }

    /// Bits `high:low` as a number; at most 64 bits.
    pub const fn bits(self, high: u32, low: u32) -> u64 {
        let width = high - low + 1;
        let value = (self.0 >> low) as u64;
        if width >= 64 { value } else { value & ((1 << width) - 1) }
    }

    /// The word with bits `high:low` replaced; bits of `value` above the range are ignored.
    pub const fn with_bits(self, high: u32, low: u32, value: u64) -> Self {
        let width = high - low + 1;
        let ones = if width >= 64 { u64::MAX } else { (1 << width) - 1 };
        let mask = (ones as u128) << low;
        Self(self.0 & !mask | ((value & ones) as u128) << low)
    }

    /// The words of a section; a last piece shorter than 16 bytes is left out.
    pub fn all(code: &[u8]) -> impl ExactSizeIterator<Item = Word> + '_ {
        code.chunks_exact(16).map(|c| {
            let mut bytes = [0; 16];
            bytes.copy_from_slice(c);
            Self::from_le_bytes(bytes)
        })
    }
}

impl fmt::LowerHex for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::LowerHex::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bit_ranges() {
        let w = Word(0x1_0000_0000_0000_0000 | 0xf0);
        assert_eq!(w.bits(7, 4), 0xf);
        assert_eq!(w.bits(127, 64), 1);
        assert_eq!(w.with_bits(7, 4, 0x15).bits(7, 0), 0x50);
        assert_eq!(w.with_bits(127, 64, u64::MAX).bits(127, 64), u64::MAX);
        assert_eq!(Word::from_le_bytes(w.to_le_bytes()), w);
        assert_eq!(Word::all(&[0; 33]).len(), 2);
    }
}
