//! A place in text that is read as the printer writes it. Nothing is skipped; `None` where the text is anything else.

use isa::RegFile;

use crate::layout::{CHUNK, Chunk, Phrase};
use crate::pin::{FILES, Pin, file_type_array};
use crate::syntax::Buffer;

/// See the module's description.
#[derive(Clone, Copy)]
pub(crate) struct At<'a> {
    pub text: &'a [u8],
    pub pos: usize,
}

impl<'a> At<'a> {
    #[inline(always)]
    fn rest(self) -> Option<&'a [u8]> {
        self.text.get(self.pos..)
    }

    /// The next bytes, which stay.
    #[inline(always)]
    pub fn chunk<const N: usize>(self) -> Option<&'a [u8; N]> {
        self.rest()?.first_chunk()
    }

    #[inline(always)]
    pub fn peek(self) -> Option<u8> {
        self.text.get(self.pos).copied()
    }

    #[inline(always)]
    pub fn skip<const N: usize>(&mut self, bytes: &[u8; N]) -> Option<()> {
        let there = self.chunk::<N>()? == bytes;
        self.pos += if there { N } else { 0 };
        there.then_some(())
    }

    /// Fixed text.
    #[inline(always)]
    pub fn literal(&mut self, wanted: &Chunk) -> Option<()> {
        self.start_of(&wanted.bytes, usize::from(wanted.len))
    }

    /// The first `len` bytes of an array.
    #[inline(always)]
    fn start_of(&mut self, wanted: &[u8; CHUNK], len: usize) -> Option<()> {
        let here = u128::from_le_bytes(*self.chunk()?);
        let differ = (u128::from_le_bytes(*wanted) ^ here) & MASKS[len];
        self.pos += len;
        (differ == 0).then_some(())
    }

    /// Fixed text.
    #[inline(always)]
    pub fn phrase(&mut self, wanted: &Phrase) -> Option<()> {
        let len = usize::from(wanted.len);
        let Some(here) = self.chunk::<{ Phrase::START }>() else {
            return self.text(wanted.to_string().as_bytes());
        };
        let mask = FIRST[Phrase::START - len..].first_chunk::<{ Phrase::START }>()?;
        let bytes = here.iter().zip(mask).zip(&wanted.start);
        let differ = bytes.fold(0, |differ, ((here, mask), wanted)| differ | (here & mask ^ wanted));
        self.pos += len;
        match differ {
            0 if wanted.rest.is_empty() => Some(()),
            0 => self.text(wanted.rest.as_bytes()),
            _ => None,
        }
    }

    /// Fixed text of any length.
    #[inline(always)]
    pub fn text(&mut self, wanted: &[u8]) -> Option<()> {
        self.rest()?.starts_with(wanted).then_some(())?;
        self.pos += wanted.len();
        Some(())
    }

    /// A number.
    #[inline(always)]
    pub fn number(&mut self, wanted: &Buffer) -> Option<()> {
        let len = usize::from(wanted.len);
        match wanted.bytes.first_chunk() {
            Some(start) if len <= CHUNK => self.start_of(start, len),
            _ => self.text(wanted.as_bytes()),
        }
    }

    /// The type of a register.
    #[inline(always)]
    pub fn file_type(&mut self, file: RegFile) -> Option<()> {
        let (text, len) = file_type_array(file);
        self.start_of(text, *len)
    }

    /// Any type of a register.
    pub fn any_file_type(&mut self) -> Option<RegFile> {
        let from = *self;
        FILES.into_iter().find(|file| {
            *self = from;
            self.file_type(*file).is_some()
        })
    }

    /// A decimal number of at most 7 digits, as numbers are printed.
    #[inline(always)]
    pub fn decimal(&mut self) -> Option<u32> {
        const ONES: u64 = 0x0101_0101_0101_0101;
        let text = self
            .chunk()
            .map_or_else(|| self.last_bytes(), |c| u64::from_le_bytes(*c));
        let digits = text ^ (ONES * u64::from(b'0'));
        // The high bit of each byte that is no digit; a carry only reaches bytes behind the first of them.
        let others = (digits.wrapping_add(ONES * 0x76) | digits) & (ONES * 0x80);
        let len = others.trailing_zeros() / 8;
        if len == 0 || len == 8 || (digits as u8 == 0 && len > 1) {
            return None;
        }
        self.pos += len as usize;
        // Leading zeros up to eight digits, then pairs, fours and eight of them in one step each.
        let pairs = (digits << (64 - 8 * len)).wrapping_mul(10 << 8 | 1) >> 8 & 0x00ff_00ff_00ff_00ff;
        let fours = pairs.wrapping_mul(100 << 16 | 1) >> 16 & 0x0000_ffff_0000_ffff;
        Some((fours.wrapping_mul(10_000 << 32 | 1) >> 32) as u32)
    }

    /// The bytes up to the end of the text where these are fewer than eight, and zeros.
    #[cold]
    fn last_bytes(self) -> u64 {
        let rest = self.rest().unwrap_or_default();
        rest.iter().rev().fold(0, |bytes, b| bytes << 8 | u64::from(*b))
    }

    /// `RZ`, `URZ`, `PT` or `UPT`.
    #[inline(always)]
    pub fn constant(&mut self) -> Option<RegFile> {
        let (file, len) = match *self.chunk::<3>()? {
            [b'P', b'T', _] => (RegFile::P, 2),
            [b'R', b'Z', _] => (RegFile::R, 2),
            [b'U', b'P', b'T'] => (RegFile::UP, 3),
            [b'U', b'R', b'Z'] => (RegFile::UR, 3),
            _ => return None,
        };
        self.pos += len;
        Some(file)
    }

    /// `"R4"`: a register that is no constant.
    pub fn pin(&mut self) -> Option<Pin> {
        let (file, len) = match *self.chunk::<3>()? {
            [b'"', b'R', _] => (RegFile::R, 2),
            [b'"', b'P', _] => (RegFile::P, 2),
            [b'"', b'B', _] => (RegFile::B, 2),
            [b'"', b'U', b'R'] => (RegFile::UR, 3),
            [b'"', b'U', b'P'] => (RegFile::UP, 3),
            _ => return None,
        };
        self.pos += len;
        let number = u8::try_from(self.decimal()?).ok()?;
        self.skip(b"\"")?;
        Some(Pin::new(file, number))
    }

    /// Goes to the next ` raw 0x`.
    #[inline(always)]
    pub fn find_raw(&mut self) -> Option<()> {
        const RAW: &[u8; 7] = b" raw 0x";
        // `w` is rare: but in operations that call, it is in nothing else.
        let mut from = self.pos;
        loop {
            let w = from + memchr::memchr(b'w', self.text.get(from..)?)?;
            from = w + 1;
            if w >= self.pos + 3 && self.text.get(w - 3..w + 4) == Some(RAW) {
                self.pos = w - 3;
                return Some(());
            }
        }
    }
}

/// The first bytes of a chunk.
static MASKS: [u128; CHUNK + 1] = {
    let mut masks = [0; CHUNK + 1];
    let mut len = 1;
    while len <= CHUNK {
        masks[len] = u128::MAX >> (128 - 8 * len);
        len += 1;
    }
    masks
};

/// From some place on, as many bytes with all bits as the text has that counts, and then zeros.
static FIRST: [u8; 2 * Phrase::START] = {
    let mut bytes = [0; 2 * Phrase::START];
    let mut n = 0;
    while n < Phrase::START {
        bytes[n] = 0xff;
        n += 1;
    }
    bytes
};
