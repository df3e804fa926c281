//! The text of one instruction, walked in the same way by the printer and by the parser: what one writes, the other expects.

use isa::Word;

use crate::layout::{Imm, Item, Layout};
use crate::pin::Pin;

/// Where the walk goes: out to a string, or against one.
pub trait Sink {
    /// What stops the walk.
    type Error;

    /// Fixed text.
    fn lit(&mut self, text: &str) -> Result<(), Self::Error>;

    /// The operand of that index.
    fn value(&mut self, operand: usize) -> Result<(), Self::Error>;

    /// A number: its position in the layout's, and what it is in the word.
    fn number(&mut self, _position: usize, text: &Buffer) -> Result<(), Self::Error> {
        self.lit(text.as_str())
    }

    /// A register that is named and not touched: which of the layout's slots, and what it is in the word.
    fn named(&mut self, _slot: usize, pin: Pin) -> Result<(), Self::Error> {
        self.lit(&pin.to_string())
    }

    /// The code label, unless it is a successor; `first` if no operand stands before it, `offset` what the field says.
    fn label(&mut self, first: bool, offset: &Buffer) -> Result<(), Self::Error>;
}

/// Name, guard, operands, merged values, hidden operands.
pub fn walk<S: Sink>(layout: &Layout, word: Word, sink: &mut S) -> Result<(), S::Error> {
    let mut text = layout.head.to_string();
    for seg in &layout.segs {
        // Text that is in several parts goes out in one.
        if !matches!(seg.item, Item::None) && !text.is_empty() {
            sink.lit(&text)?;
            text.clear();
        }
        match seg.item {
            Item::None => {}
            Item::Guard => {
                if layout.guard_negated(word) {
                    sink.lit("not ")?;
                }
                sink.value(0)?;
            }
            Item::Value(operand) => sink.value(operand as usize)?,
            Item::Named(slot) => sink.named(slot as usize, layout.slots[slot as usize].pin(word))?,
            Item::Imm(n) => sink.number(n as usize, &layout.imms[n as usize].text(word))?,
            Item::Label { first, imm } => sink.label(first, &layout.imms[imm as usize].text(word))?,
            Item::Merge => {
                for k in 0..layout.merge_count(word) {
                    sink.lit(if k > 0 { ", " } else { " merge(" })?;
                    sink.value(layout.read_count() + k)?;
                }
                if layout.merge_count(word) > 0 {
                    sink.lit(")")?;
                }
            }
        }
        text.push_str(seg.text.as_str());
    }
    match &*text {
        "" => Ok(()),
        text => sink.lit(text),
    }
}

/// A number as text, on the stack.
#[derive(Default)]
pub struct Buffer {
    /// At most 19 bytes count; what is behind them is of no meaning.
    pub(crate) bytes: [u8; 24],
    pub(crate) len: u8,
}

impl Buffer {
    /// The text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(self.as_bytes()).unwrap_or("")
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len as usize]
    }

    fn push(&mut self, byte: u8) {
        if let Some(at) = self.bytes.get_mut(self.len as usize) {
            *at = byte;
            self.len += 1;
        }
    }

    /// `0x` and at least `digits` digits.
    fn hex(&mut self, value: u64, digits: u8) {
        self.push(b'0');
        self.push(b'x');
        let needed = (64 - value.leading_zeros()).div_ceil(4).max(1);
        let len = needed.max(u32::from(digits)).min(16);
        let low = u64::from_le_bytes(hex_digits(value as u32));
        let shown = if len <= 8 {
            u128::from(low >> (64 - 8 * len))
        } else {
            let high = u64::from_le_bytes(hex_digits((value >> 32) as u32));
            (u128::from(low) << 64 | u128::from(high)) >> (128 - 8 * len)
        };
        let at = usize::from(self.len);
        if let Some(text) = self.bytes.get_mut(at..at + 16) {
            text.copy_from_slice(&shown.to_le_bytes());
            self.len += len as u8;
        }
    }
}

/// Eight digits at once, a byte each; so written that several numbers at once become vector code.
#[inline(always)]
pub(crate) fn hex_digits(value: u32) -> [u8; 8] {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let bytes = u64::from(value.swap_bytes());
    let halves = (bytes | bytes << 16) & 0x0000_ffff_0000_ffff;
    let bytes = (halves | halves << 8) & 0x00ff_00ff_00ff_00ff;
    let digits = (bytes >> 4 | bytes << 8) & (ONES * 15);
    let letters = ((digits + ONES * 6) >> 4) & ONES;
    // A letter is 39 more: 32 + 8 - 1.
    (digits + ONES * u64::from(b'0') + (letters << 5) + (letters << 3) - letters).to_le_bytes()
}

impl Imm {
    /// As the text has it.
    pub fn text(&self, word: Word) -> Buffer {
        let mut out = Buffer::default();
        let (Imm::Plain { digits, .. } | Imm::Field { digits, .. }) = *self;
        let (value, signed) = self.value(word);
        if signed && value < 0 {
            out.push(b'-');
            out.hex(value.unsigned_abs(), digits);
        } else {
            out.hex(value as u64, digits);
        }
        out
    }

    /// The word with another number, which the text has as a magnitude behind a sign or none; `None` if it does not fit.
    pub(crate) fn put(&self, word: Word, magnitude: u64, negative: bool) -> Option<Word> {
        let value = match negative {
            true => 0i64.checked_sub_unsigned(magnitude)?,
            false => magnitude as i64,
        };
        let word = match *self {
            Imm::Plain { lo, bits, shift, .. } => {
                let mask = u64::MAX >> (64 - bits);
                let raw = (value >> shift) as u64 & mask;
                Word(word.0 & !(u128::from(mask) << lo) | u128::from(raw) << lo)
            }
            Imm::Field { ref field, .. } => field.set(word, value).ok()?,
        };
        // What did not fit reads otherwise.
        let back = self.value(word);
        (back.0 == value && (back.1 || !negative)).then_some(word)
    }

    /// The number, and whether it can have a sign.
    fn value(&self, word: Word) -> (i64, bool) {
        match *self {
            Imm::Plain {
                lo,
                bits,
                signed,
                shift,
                ..
            } => {
                let raw = (word.0 >> lo) as u64 & (u64::MAX >> (64 - bits));
                let value = match signed {
                    true => ((raw << (64 - bits)) as i64) >> (64 - bits),
                    false => raw as i64,
                };
                (value << shift, signed)
            }
            Imm::Field { ref field, signed, .. } => (field.get(word), signed),
        }
    }
}
