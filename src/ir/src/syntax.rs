//! The text of one instruction, walked in the same way by the printer and by the parser: what one writes, the other expects.

use isa::Word;

use crate::layout::{Imm, Layout, Seg};

/// Where the walk goes: out to a string, or against one.
pub trait Sink {
    /// What stops the walk.
    type Error;

    /// Fixed text.
    fn lit(&mut self, text: &str) -> Result<(), Self::Error>;

    /// Fixed text: `pool[start..end]`, with `PAD` more bytes in the pool.
    fn pool(&mut self, pool: &[u8], start: usize, end: usize) -> Result<(), Self::Error>;

    /// The operand of that index.
    fn value(&mut self, operand: usize) -> Result<(), Self::Error>;

    /// The code label, unless it is a successor; `first` if no operand stands before it, `offset` what the field says.
    fn label(&mut self, first: bool, offset: &Buffer) -> Result<(), Self::Error>;
}

/// Name, guard, operands, merged values, hidden operands.
pub fn walk<S: Sink>(layout: &Layout, word: Word, sink: &mut S) -> Result<(), S::Error> {
    for seg in &layout.segs {
        match *seg {
            Seg::Lit(start, end) => sink.pool(&layout.literals, start as usize, end as usize)?,
            Seg::Guard => {
                if layout.guard_negated(word) {
                    sink.lit("not ")?;
                }
                sink.value(0)?;
            }
            Seg::Values { first, count } => values(sink, first as usize, count as usize)?,
            Seg::Named(slot) => sink.lit(&layout.slots[slot as usize].pin(word).to_string())?,
            Seg::Imm(n) => {
                let mut buffer = Buffer::default();
                layout.imms[n as usize].write(word, &mut buffer);
                sink.pool(&buffer.bytes, 0, buffer.len as usize)?;
            }
            Seg::Label { first, imm } => {
                let mut buffer = Buffer::default();
                layout.imms[imm as usize].write(word, &mut buffer);
                sink.label(first, &buffer)?;
            }
            Seg::Merge => {
                let count = layout.merge_count(word);
                if count > 0 {
                    sink.lit(" merge(")?;
                    values(sink, layout.read_count as usize, count)?;
                    sink.lit(")")?;
                }
            }
        }
    }
    Ok(())
}

fn values<S: Sink>(sink: &mut S, first: usize, count: usize) -> Result<(), S::Error> {
    for k in 0..count {
        if k > 0 {
            sink.lit(", ")?;
        }
        sink.value(first + k)?;
    }
    Ok(())
}

/// A number as text, on the stack.
pub struct Buffer {
    /// At most 19 bytes, and `PAD` more.
    pub(crate) bytes: [u8; 40],
    pub(crate) len: u8,
}

impl Default for Buffer {
    fn default() -> Buffer {
        Buffer { bytes: [0; 40], len: 0 }
    }
}

impl Buffer {
    /// The text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.len as usize]).unwrap_or("")
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
        let needed = (64 - value.leading_zeros())
            .div_ceil(4)
            .max(1)
            .max(digits as u32)
            .min(16) as usize;
        let at = self.len as usize;
        if let Some(text) = self.bytes.get_mut(at..at + needed) {
            let mut rest = value;
            for digit in text.iter_mut().rev() {
                *digit = b"0123456789abcdef"[rest as usize & 15];
                rest >>= 4;
            }
            self.len += needed as u8;
        }
    }
}

impl Imm {
    fn write(&self, word: Word, out: &mut Buffer) {
        let (value, signed, digits) = match *self {
            Imm::Plain {
                lo,
                bits,
                signed,
                shift,
                digits,
            } => {
                let raw = (word.0 >> lo) as u64 & (u64::MAX >> (64 - bits));
                let value = match signed {
                    true => ((raw << (64 - bits)) as i64) >> (64 - bits),
                    false => raw as i64,
                };
                (value << shift, signed, digits)
            }
            Imm::Field {
                ref field,
                signed,
                digits,
            } => (field.get(word), signed, digits),
        };
        if signed && value < 0 {
            out.push(b'-');
            out.hex(value.unsigned_abs(), digits);
        } else {
            out.hex(value as u64, digits);
        }
    }
}
