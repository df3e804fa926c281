//! Instructions that stand there exactly as the printer writes them, but for the names of values: read without looking for tokens.
//!
//! What is read here is what `parse_inst` would read. Anything else, be it another layout, a value that is defined further down, or a
//! mistake, is left to it, and so are all messages.

use isa::{RegFile, Word};

use crate::kernel::{NONE, OpKind, SUCCESSOR, ValueId};
use crate::layout::{CHUNK, Chunk, Flow, Item, Layout};
use crate::layouts::Layouts;
use crate::lex::{hex_word, is_name_byte};
use crate::parse_body::Parser;
use crate::parse_values::{CONSTANTS, Group};
use crate::pin::Pin;
use crate::syntax::Buffer;

/// A place in the text.
#[derive(Clone, Copy)]
struct At<'a> {
    text: &'a [u8],
    pos: usize,
}

impl<'a> At<'a> {
    #[inline(always)]
    fn chunk<const N: usize>(self) -> Option<&'a [u8; N]> {
        self.text.get(self.pos..)?.first_chunk()
    }

    #[inline(always)]
    fn peek(self) -> Option<u8> {
        self.text.get(self.pos).copied()
    }

    #[inline(always)]
    fn skip<const N: usize>(&mut self, bytes: &[u8; N]) -> Option<()> {
        let there = self.chunk::<N>()? == bytes;
        self.pos += N;
        there.then_some(())
    }

    #[inline(always)]
    fn literal(&mut self, wanted: &Chunk) -> Option<()> {
        let len = usize::from(wanted.len);
        let here = u128::from_le_bytes(*self.chunk()?);
        let differ = (u128::from_le_bytes(wanted.bytes) ^ here) & MASKS[len];
        self.pos += len;
        (differ == 0).then_some(())
    }

    /// A number as it must be.
    #[inline(always)]
    fn number(&mut self, wanted: &Buffer) -> Option<()> {
        let text = wanted.as_bytes();
        self.text.get(self.pos..)?.starts_with(text).then_some(())?;
        self.pos += text.len();
        Some(())
    }

    /// The code label, last of the operands: a successor, or `label(3)`.
    fn label(&mut self, first: bool) -> Option<u32> {
        if self.chunk()? == b" ^" {
            return Some(SUCCESSOR);
        }
        if !first {
            self.skip(b",")?;
        }
        self.skip(b" label(")?;
        let label = self.decimal()?;
        self.skip(b")")?;
        Some(label)
    }

    /// The name of a constant, without `%`: its position in [`CONSTANTS`].
    #[inline(always)]
    fn constant(&mut self) -> Option<usize> {
        let (constant, len) = match *self.chunk::<3>()? {
            [b'P', b'T', _] => (RegFile::P, 2),
            [b'R', b'Z', _] => (RegFile::R, 2),
            [b'U', b'P', b'T'] => (RegFile::UP, 3),
            [b'U', b'R', b'Z'] => (RegFile::UR, 3),
            _ => return None,
        };
        self.pos += len;
        CONSTANTS.iter().position(|f| *f == constant)
    }

    /// A decimal number of at most 7 digits, as numbers are printed.
    #[inline(always)]
    fn decimal(&mut self) -> Option<u32> {
        const ONES: u64 = 0x0101_0101_0101_0101;
        let text = u64::from_le_bytes(*self.chunk()?);
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

impl Parser<'_> {
    /// Reads an instruction and its line. Where it is not exactly as printed, gives false and changes nothing.
    pub(crate) fn exact(&mut self, layouts: &mut Layouts) -> bool {
        let before = self.snapshot();
        let start = self.cursor.pos;
        if self.exact_line(layouts).is_some() {
            return true;
        }
        self.restore(before);
        self.cursor.pos = start;
        false
    }

    fn exact_line(&mut self, layouts: &mut Layouts) -> Option<()> {
        let mut at = At {
            text: self.cursor.bytes,
            pos: self.cursor.pos,
        };
        let results = match at.peek()? {
            b'%' => Some(self.exact_results(&mut at)?),
            _ => None,
        };
        // Mnemonics are upper case, everything else is not.
        if !matches!(at.chunk()?, [b's', b'a', b's', b's', b'.', b'A'..=b'Z']) {
            return None;
        }
        let raw = at.pos + self.raw_finder.find(&at.text[at.pos..])?;
        let mut behind = At { pos: raw + 7, ..at };
        let word = Word(hex_word(behind.chunk()?)?);
        behind.pos += 32;
        let index = layouts.get(word);
        let layout = &**layouts.list.get(index as usize)?;
        let label = self.exact_operands(&mut at, layout, word)?;
        let mut successors = 0;
        let mut written = Vec::new();
        if layout.flow != Flow::None {
            self.cursor.pos = at.pos;
            if matches!(layout.flow, Flow::Call | Flow::Return) {
                written = self.summary().ok()?;
            }
            successors = self.successors().ok()?;
            at.pos = self.cursor.pos - usize::from(self.cursor.pos == raw + 1);
        }
        if at.pos != raw || (label == SUCCESSOR && successors == 0) {
            return None;
        }
        let first = self.kernel.pins.len();
        let pins = &mut self.kernel.pins;
        layout.each_write(word, |pin| pins.push(pin));
        pins.append(&mut written);
        exact_types(&mut behind, layout, &pins[first..])?;
        if behind.peek()? != b'\n' {
            return None;
        }
        let count = pins.len() - first;
        match results {
            None if count == 0 => {}
            Some((name, n)) if usize::from(n) == count => {
                let pin = pins[first];
                let group = &mut self.numbered[name as usize];
                if group.count != 0 {
                    return None;
                }
                *group = Group {
                    first: first as u32,
                    count: n,
                    pin,
                };
            }
            _ => return None,
        }
        self.cursor.pos = behind.pos;
        self.terminated = !matches!(layout.flow, Flow::None | Flow::Call) || successors > 0;
        self.kernel.finish_op(OpKind::Inst, word, index, label);
        Some(())
    }

    /// `%4 = ` or `%4:2 = `: name and count.
    #[inline(always)]
    fn exact_results(&mut self, at: &mut At<'_>) -> Option<(u32, u16)> {
        at.skip(b"%")?;
        let name = at.decimal()?;
        if name as usize >= self.numbered.len() {
            self.number(name)?;
        }
        let mut count = 1;
        if at.peek()? == b':' {
            at.pos += 1;
            count = u16::try_from(at.decimal()?).ok().filter(|n| *n > 1)?;
        }
        at.skip(b" = ")?;
        Some((name, count))
    }

    /// Everything from the name to the operands' end; gives the label.
    #[inline(always)]
    fn exact_operands(&mut self, at: &mut At<'_>, layout: &Layout, word: Word) -> Option<u32> {
        let first = self.kernel.operands.len();
        self.kernel.operands.resize(first + layout.reads.len(), ValueId(NONE));
        let mut label = NONE;
        for seg in &layout.segs {
            at.literal(&seg.text)?;
            match seg.item {
                Item::Value(n) => {
                    let n = usize::from(n);
                    let pin = layout.reads.get(n)?.pin(word);
                    *self.kernel.operands.get_mut(first + n)? = self.exact_value(at, pin)?;
                }
                Item::None => {}
                Item::Guard => {
                    if layout.guard_negated(word) {
                        at.skip(b"not ")?;
                    }
                    let pin = layout.reads.first()?.pin(word);
                    *self.kernel.operands.get_mut(first)? = self.exact_value(at, pin)?;
                }
                Item::Named(_) => return None,
                Item::Imm(n) => {
                    let number = layout.imms[usize::from(n)].text(word);
                    at.number(&number)?;
                }
                Item::Label { first, .. } => label = at.label(first)?,
                Item::Merge if layout.is_guarded(word) => {
                    let mut count = 0;
                    for register in &layout.writes {
                        let pin = register.pin(word);
                        if pin.is_zero() || register.tied {
                            continue;
                        }
                        match count {
                            0 => at.skip(b" merge(")?,
                            _ => at.skip(b", ")?,
                        }
                        count += 1;
                        let value = self.exact_value(at, pin)?;
                        self.kernel.operands.push(value);
                    }
                    if count > 0 {
                        at.skip(b")")?;
                    }
                }
                Item::Merge => {}
            }
        }
        Some(label)
    }

    /// A value that is defined already, in the register `pin`.
    #[inline(always)]
    fn exact_value(&self, at: &mut At<'_>, pin: Pin) -> Option<ValueId> {
        at.skip(b"%")?;
        let group = match at.decimal() {
            Some(number) => self.numbered.get(number as usize)?,
            None => self.named.get(at.constant()?)?,
        };
        let behind = at.peek()?;
        if behind != b'#' {
            let plain = group.count == 1 && group.pin == pin && !is_name_byte(behind);
            return plain.then_some(ValueId(group.first));
        }
        at.pos += 1;
        let sub = at.decimal()?;
        let value = group.first + sub;
        let fits = sub < u32::from(group.count) && self.kernel.pins.get(value as usize) == Some(&pin);
        fits.then_some(ValueId(value))
    }
}

/// The type list of an instruction with results in `pins`.
#[inline(always)]
fn exact_types(at: &mut At<'_>, layout: &Layout, pins: &[Pin]) -> Option<()> {
    let types = &layout.types;
    let (chunks, rest) = match (pins, &types.one) {
        ([], _) if !types.has_operands => return Some(()),
        ([], _) => (&types.none, pins),
        ([pin], Some((file, chunks))) if pin.file() == *file => (chunks, &[][..]),
        _ => (&types.operands, pins),
    };
    for chunk in chunks {
        at.literal(chunk)?;
    }
    match rest {
        [] => Some(()),
        pins => {
            for (k, pin) in pins.iter().enumerate() {
                if k > 0 {
                    at.skip(b", ")?;
                }
                let text = crate::pin::file_type(pin.file()).as_bytes();
                at.text.get(at.pos..)?.starts_with(text).then_some(())?;
                at.pos += text.len();
            }
            at.skip(b")")
        }
    }
}
