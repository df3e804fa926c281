//! What all instructions of one form with the same modifiers share: which bits name registers, what they do to control flow, and how
//! they are written. Made once, so that lifting, printing, parsing and lowering only move register numbers.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use isa::{Dir, Field, FormId, OperandIx, RegFile, Word};

use crate::pin::{Pin, file_type};

/// What an instruction does to control flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Goes on to the next instruction.
    None,
    /// May go to a code label.
    Branch,
    /// May go to an address in a register.
    Indirect,
    /// Ends the thread.
    Exit,
    /// Goes back to a caller.
    Return,
    /// Goes to a function, and comes back or not.
    Call,
}

/// One register access of an instruction: which bits of the word name the register, and what is done with it.
#[derive(Clone, Debug)]
pub struct Slot {
    /// Index of the field in the form; `None` if the register is implied.
    pub field: Option<u8>,
    /// Register file.
    pub file: RegFile,
    /// Read, written, both, or neither (the register is named but not touched).
    pub dir: Dir,
    /// Number of consecutive 32-bit registers.
    pub width: u8,
    /// Guard, printed operand, or hidden operand.
    pub operand: OperandIx,
    /// The number that means the constant register; 256 if there is none.
    pub(crate) zero: u16,
    pub(crate) number: Number,
}

/// Where in a word a register's number is: `((word >> lo) & mask) ^ xor`, and above that number's bits, the rest of eight from bit `rest` on,
/// if that is not 0.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Number {
    pub lo: u8,
    pub mask: u8,
    pub xor: u8,
    pub rest: u8,
}

impl Number {
    /// How many bits are at `lo`.
    fn width(self) -> u32 {
        self.mask.count_ones()
    }

    pub fn get(self, word: Word) -> u8 {
        let rest = if self.rest == 0 { 0 } else { (word.0 >> self.rest) as u8 };
        ((word.0 >> self.lo) as u8 & self.mask | rest.checked_shl(self.width()).unwrap_or(0)) ^ self.xor
    }

    /// The word with the number set, where the field's bits are zero; `None` if the field cannot hold it.
    pub fn put(self, word: Word, number: u8) -> Option<Word> {
        let raw = number ^ self.xor;
        let (low, rest) = (raw & self.mask, raw & !self.mask);
        let rest = match self.rest {
            0 if rest != 0 => return None,
            lo => u128::from(rest >> self.width().min(7)) << lo,
        };
        Some(Word(word.0 | u128::from(low) << self.lo | rest))
    }

    /// Its bits in the word.
    pub fn bits(self) -> u128 {
        let rest = if self.rest == 0 {
            0
        } else {
            u128::from(!self.mask >> self.width().min(7)) << self.rest
        };
        u128::from(self.mask) << self.lo | rest
    }
}

impl Slot {
    /// The register's value matters to the instruction.
    pub fn reads(&self) -> bool {
        matches!(self.dir, Dir::Read | Dir::ReadWrite)
    }

    /// The instruction sets the register.
    pub fn writes(&self) -> bool {
        matches!(self.dir, Dir::Write | Dir::ReadWrite)
    }

    /// The register number in the word, as encoded.
    pub fn number(&self, word: Word) -> u8 {
        self.number.get(word)
    }

    /// The word with the register number set; `None` if the field cannot hold it.
    pub fn set(&self, word: Word, number: u8) -> Option<Word> {
        self.number.put(Word(word.0 & !self.bits()), number)
    }

    /// The encoded number of a register.
    pub fn encode(&self, pin: Pin) -> Option<u8> {
        match pin.is_zero() {
            true => u8::try_from(self.zero).ok(),
            false => Some(pin.number()).filter(|n| *n as u16 != self.zero),
        }
    }

    /// The first register.
    pub fn pin(&self, word: Word) -> Pin {
        self.pin_at(self.number(word) as u16)
    }

    /// The registers, `width` of them. From the constant register on, all are the constant register.
    pub fn pins(&self, word: Word) -> impl ExactSizeIterator<Item = Pin> + Clone + use<> {
        let first = self.number(word) as u16;
        let (zero, file) = (self.zero.min(256), self.file);
        (0..self.width as u16).map(move |k| {
            if first + k >= zero || first + k > 255 {
                Pin::zero(file)
            } else {
                Pin::new(file, (first + k) as u8)
            }
        })
    }

    /// [`Slot::pins`] in a form that is quick to go through.
    pub(crate) fn registers(&self) -> impl Iterator<Item = Register> + use<> {
        let Slot { number, zero, file, .. } = *self;
        let tied = self.reads();
        (0..self.width).map(move |step| Register {
            high: number.lo >= 64,
            shift: number.lo % 64,
            mask: number.mask,
            xor: number.xor,
            rest: number.rest,
            step,
            tied,
            end: zero,
            first: Pin::new(file, 0),
        })
    }

    /// The word with the register number set, where the field's bits are zero; `None` if the field cannot hold it.
    pub(crate) fn put(&self, word: Word, number: u8) -> Option<Word> {
        self.number.put(word, number)
    }

    fn pin_at(&self, number: u16) -> Pin {
        if number >= self.zero {
            Pin::zero(self.file)
        } else {
            Pin::new(self.file, number as u8)
        }
    }

    /// The bits of its field.
    pub fn bits(&self) -> u128 {
        self.number.bits()
    }
}

/// One 32-bit register of a slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Register {
    /// In which half of the word its field is, and where. (Two 64-bit shifts are quicker than one of 128.)
    high: bool,
    shift: u8,
    mask: u8,
    xor: u8,
    /// As in [`Number`]: the few fields that are in two places are not in a hurry.
    rest: u8,
    step: u8,
    /// Its slot reads it, whatever else it does.
    pub tied: bool,
    /// From this number on it is the constant register.
    end: u16,
    first: Pin,
}

impl Register {
    #[inline]
    pub fn pin(self, word: Word) -> Pin {
        self.behind(self.first_number(word))
    }

    /// The number in its slot's field.
    #[inline]
    pub fn first_number(self, word: Word) -> u8 {
        if self.rest != 0 {
            return self.number().get(word);
        }
        let half = if self.high {
            (word.0 >> 64) as u64
        } else {
            word.0 as u64
        };
        ((half >> self.shift) as u8 & self.mask) ^ self.xor
    }

    /// The register, where its slot's field has that number.
    #[inline]
    pub fn behind(self, first_number: u8) -> Pin {
        let number = u16::from(first_number) + u16::from(self.step);
        self.first.behind(number, self.end)
    }

    /// The bits of its slot's field.
    pub fn bits(self) -> u128 {
        self.number().bits()
    }

    fn number(self) -> Number {
        Number {
            lo: self.shift + if self.high { 64 } else { 0 },
            mask: self.mask,
            xor: self.xor,
            rest: self.rest,
        }
    }

    /// It is the one whose number is in the word.
    pub fn is_first(self) -> bool {
        self.step == 0
    }

    /// Writes the number of `pin` into the field, whose bits are zero; gives what the field holds then. What does not fit is another
    /// number.
    #[inline]
    pub fn put(self, word: &mut Word, pin: Pin) -> u8 {
        self.put_number(word, if pin.is_zero() { self.end as u8 } else { pin.number() })
    }

    /// As [`Register::put`], for the constant register.
    pub fn put_zero(self, word: &mut Word) -> u8 {
        self.put_number(word, self.end as u8)
    }

    #[inline]
    fn put_number(self, word: &mut Word, number: u8) -> u8 {
        if self.rest != 0 {
            *word = self.number().put(*word, number).unwrap_or(*word);
            return self.number().get(*word);
        }
        let half = u64::from((number ^ self.xor) & self.mask) << self.shift;
        word.0 |= if self.high {
            u128::from(half) << 64
        } else {
            u128::from(half)
        };
        self.first_number(*word)
    }
}

/// A number in the text.
#[derive(Clone, Debug)]
pub(crate) enum Imm {
    /// Contiguous bits, sign extended or not, shifted left.
    Plain {
        lo: u8,
        bits: u8,
        signed: bool,
        shift: u8,
        digits: u8,
    },
    /// Whatever the field says.
    Field {
        field: Box<Field>,
        signed: bool,
        digits: u8,
    },
}

/// Bytes in a [`Chunk`].
pub(crate) const CHUNK: usize = 16;

/// A piece of fixed text, short enough to be copied or compared in one go. What is behind its end is zero.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chunk {
    pub bytes: [u8; CHUNK],
    pub len: u8,
}

impl Chunk {
    /// All of a text.
    pub fn split(text: &str) -> impl Iterator<Item = Chunk> + '_ {
        text.as_bytes().chunks(CHUNK).map(|piece| {
            let mut bytes = [0; CHUNK];
            bytes[..piece.len()].copy_from_slice(piece);
            let len = piece.len() as u8;
            Chunk { bytes, len }
        })
    }

    pub const EMPTY: Chunk = Chunk {
        bytes: [0; CHUNK],
        len: 0,
    };

    /// Appends as much of a text as there is room for; gives the rest of it.
    pub fn push<'t>(&mut self, text: &'t str) -> &'t str {
        let len = usize::from(self.len);
        let (first, rest) = text.split_at(text.len().min(CHUNK - len));
        self.bytes[len..len + first.len()].copy_from_slice(first.as_bytes());
        self.len += first.len() as u8;
        rest
    }

    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..usize::from(self.len)]).unwrap_or("")
    }
}

/// Fixed text, as much of which as most texts have can be copied or compared in one go.
#[derive(Clone, Debug)]
pub(crate) struct Phrase {
    /// What is behind the end is zero.
    pub start: [u8; Phrase::START],
    /// How much of `start` counts.
    pub len: u8,
    /// What did not fit into `start`.
    pub rest: Box<str>,
}

impl Phrase {
    /// The longest text that is in one piece.
    pub const START: usize = 64;

    /// The text, which is ASCII.
    pub fn new(text: &str) -> Phrase {
        let (first, rest) = text.split_at(text.len().min(Phrase::START));
        let mut start = [0; Phrase::START];
        start[..first.len()].copy_from_slice(first.as_bytes());
        Phrase {
            start,
            len: first.len() as u8,
            rest: rest.into(),
        }
    }
}

impl fmt::Display for Phrase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let start = std::str::from_utf8(&self.start[..usize::from(self.len)]);
        write!(f, "{}{}", start.unwrap_or(""), self.rest)
    }
}

/// A part of an instruction's text: an item, then fixed text. Text that is too long for one chunk is in several parts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seg {
    pub item: Item,
    pub text: Chunk,
}

/// What changes from word to word.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Item {
    None,
    /// The first operand, with `not ` in front if the guard is negated.
    Guard,
    /// An operand.
    Value(u16),
    /// A register that is named but not touched, by slot.
    Named(u16),
    /// A number, by position in `imms`.
    Imm(u16),
    /// A code label, last of the operands; `first` if no operand is printed before it.
    Label {
        first: bool,
        imm: u16,
    },
    /// ` merge(...)`, if the write is conditional.
    Merge,
}

/// The type list.
#[derive(Clone, Debug)]
pub(crate) struct Types {
    /// There are operands in it.
    pub has_operands: bool,
    /// ` : (`, the types of the printed operands, `) -> (`.
    pub operands: Phrase,
    /// The whole list where there are no results.
    pub none: Phrase,
    /// The whole list where there is one result, of that file.
    pub one: Option<(RegFile, Phrase)>,
}

impl Types {
    /// `operands` are the types of the printed operands; `file` is where the first result is, if there may be one. Layouts with the same
    /// types share them: there are few, so they stay at hand in the processor's cache.
    pub fn shared(operands: &[&str], file: Option<RegFile>) -> Arc<Types> {
        type Known = HashMap<(String, Option<RegFile>), Arc<Types>>;
        static KNOWN: LazyLock<Mutex<Known>> = LazyLock::new(Mutex::default);
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let types = || Types::new(operands, file).into();
        known.entry((operands.join(", "), file)).or_insert_with(types).clone()
    }

    fn new(operands: &[&str], file: Option<RegFile>) -> Types {
        let list = format!(" : ({}) -> (", operands.join(", "));
        let with = |result: &str| Phrase::new(&format!("{list}{result})"));
        Types {
            has_operands: !operands.is_empty(),
            none: with(""),
            one: file.map(|file| (file, with(file_type(file)))),
            operands: Phrase::new(&list),
        }
    }
}

/// See the module's description.
#[derive(Debug)]
pub struct Layout {
    /// The form.
    pub form: FormId,
    /// `sass.FFMA_0x223.FTZ`: mnemonic, opcode, modifiers.
    pub name: String,
    /// The registers in the order of the form's accesses, the guard first.
    pub slots: Vec<Slot>,
    /// What it does to control flow.
    pub flow: Flow,
    /// It names a place in the code relative to itself.
    pub has_label: bool,
    /// It does nothing.
    pub nop: bool,
    /// A call that leaves no return address on the hardware's stack.
    pub no_increment: bool,
    /// All bits of register fields that are read or written.
    pub register_mask: u128,
    /// Word bits that are operand-cache flags when bit 109 is set.
    pub(crate) reuse: u128,
    /// The field of the code label.
    pub rel_field: Option<u8>,
    /// What an unguarded instruction has in some bits: (the bits, their value).
    pub(crate) unguarded: (u128, u128),
    /// The registers that the slots read, in operand order.
    pub(crate) reads: Box<[Register]>,
    /// The registers that the slots write, in result order; a write to the constant register has no result.
    pub(crate) writes: Box<[Register]>,
    /// The text up to the first item.
    pub(crate) head: Phrase,
    pub(crate) segs: Box<[Seg]>,
    pub(crate) imms: Box<[Imm]>,
    pub(crate) types: Arc<Types>,
}

/// Bit 15 negates the guard.
pub(crate) const GUARD_NEGATED: u128 = 1 << 15;

impl Layout {
    /// The first operand is a guard.
    pub fn has_guard(&self) -> bool {
        self.slots.first().is_some_and(|s| s.operand == OperandIx::Guard)
    }

    /// Number of operands that the word names as read, the guard included.
    pub fn read_count(&self) -> usize {
        self.reads.len()
    }

    /// The access that reads operand `operand` (registers, counted from the guard on), and which of its registers that is.
    pub fn read_slot(&self, operand: usize) -> Option<(&Slot, usize)> {
        let mut first = 0;
        self.slots.iter().filter(|slot| slot.reads()).find_map(|slot| {
            let within = operand.checked_sub(first).filter(|k| *k < usize::from(slot.width));
            first += usize::from(slot.width);
            within.map(|k| (slot, k))
        })
    }

    /// The word with `pin` as operand `operand`, which counts registers: the second of a pair has to be the one behind the first.
    pub fn with_operand(&self, word: Word, operand: usize, pin: Pin) -> Result<Word, String> {
        let none = || format!("there is no operand {operand}");
        let (slot, k) = self.read_slot(operand).ok_or_else(none)?;
        if k > 0 || slot.field.is_none() {
            return match slot.pins(word).nth(k).ok_or_else(none)? {
                wanted if wanted == pin => Ok(word),
                wanted => Err(format!("operand {operand} is {pin} and has to be {wanted}")),
            };
        }
        let number = slot.encode(pin).filter(|_| pin.file() == slot.file);
        let changed = number.and_then(|number| slot.set(word, number));
        changed.ok_or_else(|| format!("operand {operand} cannot be {pin}"))
    }

    /// The types of the printed operands as the text lists them: `!sass.reg, !sass.imm`.
    pub fn operand_types(&self) -> String {
        let list = self.types.operands.to_string();
        let list = list.strip_prefix(" : (").and_then(|l| l.strip_suffix(") -> ("));
        list.unwrap_or("").to_owned()
    }

    /// The guard is negated.
    pub fn guard_negated(&self, word: Word) -> bool {
        word.0 & GUARD_NEGATED != 0
    }

    /// It may be skipped: its guard is not the constant true.
    pub fn is_guarded(&self, word: Word) -> bool {
        word.0 & self.unguarded.0 != self.unguarded.1
    }

    /// How to tell from a word whether it is guarded: the bits of its guard, and what they are for the constant true. No bits for an
    /// instruction without a guard.
    pub fn guard_bits(&self) -> (u128, u128) {
        let guard = self.slots.first().filter(|_| self.has_guard());
        let always = guard.and_then(|slot| slot.set(Word(0), u8::try_from(slot.zero).ok()?));
        match (guard, always) {
            (Some(slot), Some(word)) => (slot.bits() | GUARD_NEGATED, word.0),
            _ => (0, 0),
        }
    }

    /// The previous values that a guarded instruction merges with: the registers that it writes without reading them.
    #[inline]
    pub fn each_merge(&self, word: Word, f: impl FnMut(Pin)) {
        if self.is_guarded(word) {
            let merges = self.writes.iter().filter(|r| !r.tied);
            let pins = merges.map(|r| r.pin(word));
            pins.filter(|p| !p.is_zero()).for_each(f);
        }
    }

    /// The registers that it writes, in result order.
    #[inline]
    pub fn each_write(&self, word: Word, f: impl FnMut(Pin)) {
        let pins = self.writes.iter().map(|r| r.pin(word));
        pins.filter(|p| !p.is_zero()).for_each(f);
    }

    /// The registers that its slots read, in operand order.
    #[inline]
    pub fn each_read(&self, word: Word, f: impl FnMut(Pin)) {
        self.read_pins(word).for_each(f);
    }

    /// As [`Layout::each_read`].
    #[inline]
    pub(crate) fn read_pins(&self, word: Word) -> impl ExactSizeIterator<Item = Pin> {
        self.reads.iter().map(move |r| r.pin(word))
    }

    /// The word's bits that are operand-cache flags.
    pub(crate) fn reuse_flags(&self, word: Word) -> u128 {
        if word.0 >> 109 & 1 == 1 { self.reuse } else { 0 }
    }

    /// How many previous values it merges with.
    pub fn merge_count(&self, word: Word) -> usize {
        let mut count = 0;
        self.each_merge(word, |_| count += 1);
        count
    }

    /// Operands that the word names: what the slots read, and merges.
    pub fn own_operands(&self, word: Word) -> usize {
        self.reads.len() + self.merge_count(word)
    }

    /// How many registers it writes.
    pub fn write_count(&self, word: Word) -> usize {
        let mut count = 0;
        self.each_write(word, |_| count += 1);
        count
    }
}
