//! The scheduling bits, 105 and up, which are the same on every target (observed with `nvdisasm` 12.8 and 13.5).

use std::fmt;
use std::str::FromStr;

use crate::word::Word;

/// The bits that [`Control`] speaks of: 125:105.
pub const MASK: u128 = ((1 << 21) - 1) << 105;
/// The reuse flags, 125:122; 124:122 say something else when bit 109 is clear.
pub const REUSE_MASK: u128 = 0xf << 122;
/// The flags among them that the text shows.
pub(crate) const SHOWN_REUSE_MASK: u128 = 7 << 122;

/// The flag of [`Control::reuse`] that no text shows.
const FOURTH: u8 = 8;

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
    /// Bits 125:122: operand-cache flags; the low three are batch control where bit 109 is clear.
    pub reuse: u8,
}

impl Control {
    /// The next instruction issues a cycle later; nothing is waited for, signalled or kept. Every form allows it.
    pub const PLAIN: Self = Self {
        stall: 1,
        yield_: true,
        write_barrier: None,
        read_barrier: None,
        wait: 0,
        reuse: 0,
    };

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
            reuse: w.bits(125, 122) as u8,
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
            .with_bits(125, 122, self.reuse as u64)
    }
}

/// The column that SASS assemblers write: `B--2---:R0:W-:Y:S04` is the scoreboards waited for, read barrier, write barrier, `Y` where
/// bit 109 is **clear** (the warp may be switched), and the stall. Operand-cache flags are not in it, the text shows them (`.reuse`);
/// where bit 109 is clear, the batch number in their place follows if it is not 0: `:b3`. `:r` follows where bit 125 is set, the flag of
/// a fourth register (of sparse products from sm_90 on), which the text does not show.
impl fmt::Display for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let barrier = |b: Option<u8>| b.map_or('-', |b| char::from(b'0' + b));
        let wait: [u8; 6] = std::array::from_fn(|n| if self.wait >> n & 1 == 1 { b'0' + n as u8 } else { b'-' });
        let wait = std::str::from_utf8(&wait).map_err(|_| fmt::Error)?;
        let (read, write) = (barrier(self.read_barrier), barrier(self.write_barrier));
        let switch = if self.yield_ { '-' } else { 'Y' };
        write!(f, "B{wait}:R{read}:W{write}:{switch}:S{:02}", self.stall)?;
        match self.reuse & 7 {
            batch if !self.yield_ && batch != 0 => write!(f, ":b{batch}")?,
            _ => {}
        }
        f.write_str(if self.reuse & FOURTH != 0 { ":r" } else { "" })
    }
}

/// A scheduling column that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no scheduling column like B--2---:R0:W-:-:S04")]
pub struct ControlError(pub String);

impl FromStr for Control {
    type Err = ControlError;

    /// Reads the column; trailing `-` of the scoreboards may be missing (`B--:R-:W0:-:S04`).
    fn from_str(s: &str) -> Result<Self, ControlError> {
        parse(s).ok_or_else(|| ControlError(s.to_owned()))
    }
}

fn parse(s: &str) -> Option<Control> {
    let mut parts = s.split(':');
    let mut part = |prefix: &str| parts.next()?.strip_prefix(prefix);
    let number = |t: &str, most: u8| {
        t.parse::<u8>()
            .ok()
            .filter(|&n| n <= most && t.bytes().all(|b| b.is_ascii_digit()))
    };
    let mut wait = 0;
    let waits = part("B")?;
    for (n, c) in waits.bytes().enumerate() {
        match c {
            b'-' => {}
            b'0'..=b'5' if usize::from(c - b'0') == n => wait |= 1 << n,
            _ => return None,
        }
    }
    if waits.len() > 6 {
        return None;
    }
    let barrier = |t: &str| match t {
        "-" => Some(None),
        t => number(t, 6).map(Some),
    };
    let read_barrier = barrier(part("R")?)?;
    let write_barrier = barrier(part("W")?)?;
    let yield_ = match part("")? {
        "-" => true,
        "Y" => false,
        _ => return None,
    };
    let stall = number(part("S")?, 15)?;
    let mut rest = parts.next();
    let mut reuse = 0;
    if let Some(batch) = rest.and_then(|part| part.strip_prefix('b')) {
        reuse = number(Some(batch).filter(|_| !yield_)?, 7)?;
        rest = parts.next();
    }
    if rest == Some("r") {
        reuse |= FOURTH;
        rest = parts.next();
    }
    rest.is_none().then_some(Control {
        stall,
        yield_,
        write_barrier,
        read_barrier,
        wait,
        reuse,
    })
}

/// Legal values of bits 109:105 as a bitmap: all but 16 and 28 to 31.
const LEGAL: u32 = 0x0ffe_ffff;

/// What a form allows in its scheduling bits.
#[derive(Clone, Copy)]
pub(crate) struct Rules {
    /// The bits of 115:105 that name a scoreboard which it may release: all are set where it releases none.
    barriers: u16,
    /// The values that bits 124:122 may have when bit 109 is set.
    tops: u8,
}

impl Rules {
    /// The bits of 115:105 that name scoreboards to be released.
    const BARRIERS: u16 = 0b111_111 << 5;

    /// `wbar`: it may release a scoreboard when its results are written. `rbar`: when its sources have been read. `batch`: bits 124:122
    /// are no flags even when bit 109 is set, but a number below 6. `no_reuse`: bits of 124:122 that must be clear when bit 109 is set,
    /// as those three bits.
    pub(crate) const fn new(wbar: bool, rbar: bool, batch: bool, no_reuse: u8) -> Rules {
        let mut tops = 0;
        let mut top = 0;
        while top < if batch { 6 } else { 8 } {
            if top & no_reuse == 0 {
                tops |= 1 << top;
            }
            top += 1;
        }
        Rules {
            barriers: ((wbar as u16 * 0b111) | (rbar as u16 * 0b111_000)) << 5,
            tops,
        }
    }

    /// It may release a scoreboard when its results are written.
    pub(crate) const fn wbar(self) -> bool {
        self.barriers & 0b111 << 5 != 0
    }

    /// It may release a scoreboard when its sources have been read.
    pub(crate) const fn rbar(self) -> bool {
        self.barriers & 0b111_000 << 5 != 0
    }

    /// Whether the hardware's tools accept bits 115:105 and 124:122 of `w`.
    #[inline]
    pub(crate) const fn allow(self, w: Word) -> bool {
        let bits = w.bits(115, 105);
        // With bit 109 clear, 124:122 are a number from 0 to 5; with 109:105 all zero it is 0.
        let top = w.bits(124, 122);
        // Bitmaps and no branches: the bits differ from word to word.
        let issue = bits as u32 & 31;
        let tops = if issue > 0 { 0b11_1111 } else { 0b1 };
        let tops = if issue > 15 { self.tops } else { tops };
        let barriers_are_legal = (bits as u16 | self.barriers) & Rules::BARRIERS == Rules::BARRIERS;
        (LEGAL >> issue & 1 == 1) & (tops >> top & 1 == 1) & barriers_are_legal
    }
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
    fn columns() {
        for (text, word) in [
            ("B------:R-:W-:-:S01", 0x000f_e200u128 << 96),
            ("B------:R-:W-:Y:S01", 0x000f_c200 << 96),
            ("B------:R-:W2:-:S01", 0x000e_a200 << 96),
            ("B0-2---:R0:W-:Y:S15:b3", 0x0c51_de00 << 96),
            ("B0-2---:R0:W-:Y:S15:b3:r", 0x2c51_de00 << 96),
            ("B------:R-:W-:-:S06:r", 0x200f_ec00 << 96),
        ] {
            let control = Control::of(Word(word));
            assert_eq!(control.to_string(), text);
            assert_eq!(text.parse(), Ok(control));
        }
        assert_eq!(
            "B--:R-:W0:-:S4".parse::<Control>().map(|c| c.to_string()),
            Ok("B------:R-:W0:-:S04".into())
        );
        for bad in [
            "",
            "B",
            "B1-----:R-:W-:-:S01",
            "B-------:R-:W-:-:S01",
            "B:R7:W-:-:S01",
            "B:R-:W-:-:S16",
            "B:R-:W-:-:S1:b1",
            "B:R-:W-:-:S1:r:r",
            "B:R-:W-:Y:S1:r:b1",
            "B:R-:W-:Y:S+1",
        ] {
            assert!(bad.parse::<Control>().is_err(), "{bad}");
        }
    }

    #[test]
    fn legal_stalls() {
        let rules = Rules::new(true, true, false, 0);
        let illegal: Vec<u64> = (0..32)
            .filter(|&s| !rules.allow(Word(0).with_bits(109, 105, s)))
            .collect();
        assert_eq!(illegal, [16, 28, 29, 30, 31]);
        assert!(!Rules::new(false, true, false, 0).allow(Word(0)));
        let word = |issue, top| Word(0).with_bits(109, 105, issue).with_bits(124, 122, top);
        let flags = |issue, top| rules.allow(word(issue, top));
        assert!(flags(0, 0) && !flags(0, 1) && flags(1, 5) && !flags(1, 6) && flags(17, 7));
        let batch = Rules::new(true, true, true, 0);
        assert!(batch.allow(word(17, 5)) && !batch.allow(word(17, 6)) && !batch.allow(word(17, 7)));
        let no_reuse = Rules::new(true, true, false, 1);
        assert!(no_reuse.allow(word(17, 6)) && !no_reuse.allow(word(17, 1)) && no_reuse.allow(word(1, 1)));
    }
}
