//! The scheduling bits, 105 and up, which are the same on every target (observed with `nvdisasm` 12.8 and 13.5).

use crate::word::Word;

/// The bits that [`Control`] speaks of: 121:105 and 124:122.
pub const MASK: u128 = ((1 << 20) - 1) << 105;
/// The reuse flags, 124:122, which say something else when bit 109 is clear.
pub const REUSE_MASK: u128 = 7 << 122;

/// An instruction's scheduling bits as numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Control {
    /// Bits 108:105, cycles before the next instruction of the warp may issue.
    pub stall: u8,
    /// Bit 109: 1 = keep issuing this warp.
    pub yield_: bool,
    /// Bits 112:110, the scoreboard that is released when results are written; 7 is none.
    pub write_barrier: Option<u8>,
    /// Bits 115:113, the scoreboard that is released when sources have been read; 7 is none.
    pub read_barrier: Option<u8>,
    /// Bits 121:116, scoreboards to wait for, one bit each.
    pub wait: u8,
    /// Bits 124:122: operand-cache flags when bit 109 is set, batch control otherwise.
    pub reuse: u8,
}

impl Control {
    /// Reads the bits of `w`.
    pub const fn of(w: Word) -> Self {
        const fn barrier(n: u64) -> Option<u8> {
            if n == 7 { None } else { Some(n as u8) }
        }
        Self {
            stall: w.bits(108, 105) as u8,
            yield_: w.bits(109, 109) != 0,
            write_barrier: barrier(w.bits(112, 110)),
            read_barrier: barrier(w.bits(115, 113)),
            wait: w.bits(121, 116) as u8,
            reuse: w.bits(124, 122) as u8,
        }
    }

    /// `w` with these bits; numbers that do not fit lose their high bits.
    pub const fn apply(self, w: Word) -> Word {
        const fn barrier(b: Option<u8>) -> u64 {
            match b {
                Some(n) => n as u64,
                None => 7,
            }
        }
        w.with_bits(108, 105, self.stall as u64)
            .with_bits(109, 109, self.yield_ as u64)
            .with_bits(112, 110, barrier(self.write_barrier))
            .with_bits(115, 113, barrier(self.read_barrier))
            .with_bits(121, 116, self.wait as u64)
            .with_bits(124, 122, self.reuse as u64)
    }
}

/// Legal values of bits 109:105 as a bitmap: all but 16 and 28 to 31.
const LEGAL: u32 = 0x0ffe_ffff;

/// Whether the hardware's tools accept bits 115:105 of `w` for a form that may or may not set barriers.
pub(crate) const fn is_legal(w: Word, wbar: bool, rbar: bool) -> bool {
    let bits = w.bits(115, 105);
    // With bit 109 clear, 124:122 are a number from 0 to 5; with 109:105 all zero it is 0.
    let top = w.bits(124, 122);
    let top_is_legal = match bits & 31 {
        0 => top == 0,
        1..16 => top < 6,
        _ => true,
    };
    LEGAL >> (bits & 31) & 1 == 1 && top_is_legal && (wbar || bits >> 5 & 7 == 7) && (rbar || bits >> 8 & 7 == 7)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip_touches_only_the_mask() {
        for seed in [0u128, u128::MAX, 0x0123_4567_89ab_cdef_0123_4567_89ab_cdef] {
            let w = Word(seed);
            assert_eq!(Control::of(w).apply(w), w);
            assert_eq!(Control::of(w).apply(Word(!seed)).0 & !MASK, !seed & !MASK);
            assert_eq!(Control::of(w).apply(Word(!seed)).0 & MASK, seed & MASK);
        }
    }

    #[test]
    fn legal_stalls() {
        let illegal: Vec<u64> = (0..32)
            .filter(|&s| !is_legal(Word(0).with_bits(109, 105, s), true, true))
            .collect();
        assert_eq!(illegal, [16, 28, 29, 30, 31]);
        assert!(!is_legal(Word(0), false, true));
        let flags = |issue, top| is_legal(Word(0).with_bits(109, 105, issue).with_bits(124, 122, top), true, true);
        assert!(flags(0, 0) && !flags(0, 1) && flags(1, 5) && !flags(1, 6) && flags(17, 7));
    }
}
