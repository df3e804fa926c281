//! What all instructions of one form with the same modifiers share: which bits name registers, what they do to control flow, and how
//! they are written. Made once, so that lifting, printing, parsing and lowering only move register numbers.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, Mutex, OnceLock, RwLock};

use isa::{Dir, Field, FormId, Inst, Isa, OperandIx, RegFile, Target, Word};

use crate::describe::describe;
use crate::kernel::NONE;
use crate::pin::Pin;

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
    /// A `!` or `~` stands in front of it (never set for the guard).
    pub negated: bool,
    /// The number that means the constant register; 256 if there is none.
    pub(crate) zero: u16,
    /// The number is `((word >> lo) & mask) ^ xor`.
    pub(crate) lo: u8,
    pub(crate) mask: u8,
    pub(crate) xor: u8,
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
        ((word.0 >> self.lo) as u8 & self.mask) ^ self.xor
    }

    /// The word with the register number set; `None` if the field cannot hold it.
    pub fn set(&self, word: Word, number: u8) -> Option<Word> {
        let raw = number ^ self.xor;
        (raw & !self.mask == 0).then(|| Word(word.0 & !((self.mask as u128) << self.lo) | (raw as u128) << self.lo))
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

    /// Calls `f` with each of [`Slot::pins`].
    #[inline]
    pub(crate) fn each_pin(&self, word: Word, mut f: impl FnMut(Pin)) {
        let first = self.number(word) as u16;
        if self.width == 1 {
            return f(self.pin_at(first));
        }
        for k in 0..self.width as u16 {
            f(self.pin_at(if first >= self.zero { first } else { first + k }));
        }
    }

    /// The register `k` behind the one of that encoded number.
    pub(crate) fn nth(&self, number: u8, k: u8) -> Option<Pin> {
        if number as u16 >= self.zero {
            return Some(Pin::zero(self.file));
        }
        let at = number as u16 + k as u16;
        Some(if at >= self.zero || at > 255 {
            Pin::zero(self.file)
        } else {
            Pin::new(self.file, at as u8)
        })
    }

    /// The word with the register number set, where the field's bits are zero; `None` if the field cannot hold it.
    pub(crate) fn put(&self, word: Word, number: u8) -> Option<Word> {
        let raw = number ^ self.xor;
        (raw & !self.mask == 0).then(|| Word(word.0 | (raw as u128) << self.lo))
    }

    fn pin_at(&self, number: u16) -> Pin {
        if number >= self.zero {
            Pin::zero(self.file)
        } else {
            Pin::new(self.file, number as u8)
        }
    }

    pub(crate) fn bits(&self) -> u128 {
        (self.mask as u128) << self.lo
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

/// A part of an instruction's text.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Seg {
    /// Bytes `start..end` of the literals.
    Lit(u32, u32),
    /// The first operand, with `not ` in front if the guard is negated.
    Guard,
    /// Values `first..first + count` of the operands.
    Values { first: u16, count: u16 },
    /// A register that is named but not touched, by slot.
    Named(u16),
    /// A number, by position in `imms`.
    Imm(u16),
    /// A code label, last of the operands; `first` if no operand is printed before it.
    Label { first: bool, imm: u16 },
    /// ` merge(...)`, if the write is conditional.
    Merge,
}

/// The type list, as places in the literals.
#[derive(Clone, Debug, Default)]
pub(crate) struct Types {
    /// `start..end` is ` : (`, the types of the printed operands, `) -> (`; `start..end_of_none` is that and `)`.
    pub start: usize,
    pub end: usize,
    pub end_of_none: usize,
    /// The whole list where there is one result, of that file.
    pub single: Option<RegFile>,
    pub start_single: usize,
    pub end_single: usize,
    /// There are operands in it.
    pub has_operands: bool,
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
    /// The field of the code label.
    pub rel_field: Option<u8>,
    /// Number of operands that the slots read.
    pub(crate) read_count: u16,
    pub(crate) segs: Vec<Seg>,
    /// Text for `segs` and `types`, and `PAD` more bytes.
    pub(crate) literals: Vec<u8>,
    pub(crate) imms: Vec<Imm>,
    pub(crate) types: Types,
}

/// Bit 15 negates the guard.
const GUARD_NEGATED: u128 = 1 << 15;

impl Layout {
    /// The first operand is a guard.
    pub fn has_guard(&self) -> bool {
        self.slots.first().is_some_and(|s| s.operand == OperandIx::Guard)
    }

    /// Number of operands that the word names as read, the guard included.
    pub fn read_count(&self) -> usize {
        self.read_count as usize
    }

    /// The types of the printed operands as the text lists them: `!sass.reg, !sass.imm`.
    pub fn operand_types(&self) -> &str {
        let list = self.literals.get(self.types.start..self.types.end).unwrap_or(&[]);
        let list = std::str::from_utf8(list).ok().and_then(|l| l.strip_prefix(" : ("));
        list.and_then(|l| l.strip_suffix(") -> (")).unwrap_or("")
    }

    /// The guard is negated.
    pub fn guard_negated(&self, word: Word) -> bool {
        word.0 & GUARD_NEGATED != 0
    }

    /// It may be skipped: its guard is not the constant true.
    pub fn is_guarded(&self, word: Word) -> bool {
        self.has_guard() && (!self.slots[0].pin(word).is_zero() || self.guard_negated(word))
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

    /// It depends on something whether control goes on behind it: its guard or any register but the barriers and an address.
    pub fn is_conditional(&self, word: Word) -> bool {
        self.is_guarded(word)
            || self.slots.iter().skip(self.has_guard() as usize).any(|s| match s.file {
                RegFile::P | RegFile::UP => s.reads() && (s.negated || !s.pin(word).is_zero()),
                RegFile::UR => s.reads() && self.flow == Flow::Branch,
                RegFile::R | RegFile::B => false,
            })
    }

    /// The previous values that a guarded instruction merges with: the registers that it writes without reading them.
    pub fn each_merge(&self, word: Word, mut f: impl FnMut(Pin)) {
        if self.is_guarded(word) {
            for slot in self.slots.iter().filter(|s| s.dir == Dir::Write) {
                slot.each_pin(word, |pin| {
                    if !pin.is_zero() {
                        f(pin);
                    }
                });
            }
        }
    }

    /// The registers that it writes, in result order.
    pub fn each_write(&self, word: Word, mut f: impl FnMut(Pin)) {
        for slot in self.slots.iter().filter(|s| s.writes()) {
            slot.each_pin(word, |pin| {
                if !pin.is_zero() {
                    f(pin);
                }
            });
        }
    }

    /// The registers that its slots read, in operand order.
    pub fn each_read(&self, word: Word, mut f: impl FnMut(Pin)) {
        for slot in self.slots.iter().filter(|s| s.reads()) {
            slot.each_pin(word, &mut f);
        }
    }

    /// How many previous values it merges with.
    pub fn merge_count(&self, word: Word) -> usize {
        let mut count = 0;
        self.each_merge(word, |_| count += 1);
        count
    }

    /// Operands that the word names: what the slots read, and merges.
    pub fn own_operands(&self, word: Word) -> usize {
        self.read_count as usize + self.merge_count(word)
    }

    /// How many registers it writes.
    pub fn write_count(&self, word: Word) -> usize {
        let mut count = 0;
        self.each_write(word, |_| count += 1);
        count
    }
}

/// Layouts by form and selector bits.
type Key = (u16, u128);

/// Mixes the few words of a key; not for hostile keys in large numbers, which only get slow in their own kernel.
#[derive(Default)]
struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut b = [0; 8];
            b[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(b));
        }
    }

    fn write_u16(&mut self, v: u16) {
        self.write_u64(v as u64);
    }

    fn write_u128(&mut self, v: u128) {
        self.write_u64(v as u64);
        self.write_u64((v >> 64) as u64);
    }

    fn write_u64(&mut self, v: u64) {
        let m = (self.0 ^ v) as u128 * 0x9e37_79b9_7f4a_7c15;
        self.0 = (m >> 64) as u64 ^ m as u64;
    }
}

type KeyMap<V> = HashMap<Key, V, BuildHasherDefault<KeyHasher>>;

/// All layouts of a target that any kernel needed so far, up to a limit.
struct Shared {
    /// By form: the bits that select text and accesses.
    key_masks: Vec<u128>,
    layouts: RwLock<KeyMap<Option<Arc<Layout>>>>,
}

/// More distinct layouts than any real corpus has; beyond it, kernels keep their own.
const SHARED_LIMIT: usize = 1 << 17;

fn shared(isa: &'static Isa, target: Target) -> &'static Shared {
    static ALL: OnceLock<Mutex<HashMap<Target, &'static Shared>>> = OnceLock::new();
    let mut all = ALL
        .get_or_init(Default::default)
        .lock()
        .unwrap_or_else(|e| e.into_inner());
    all.entry(target).or_insert_with(|| {
        let key_masks = isa.forms().map(|f| f.selector_mask()).collect();
        Box::leak(Box::new(Shared {
            key_masks,
            layouts: RwLock::default(),
        }))
    })
}

/// The layouts of one kernel.
pub(crate) struct Layouts {
    isa: &'static Isa,
    target: Target,
    shared: &'static Shared,
    /// Position in `list`, or `NONE` for a word that is treated as opaque.
    known: KeyMap<u32>,
    pub list: Vec<Arc<Layout>>,
}

impl Layouts {
    pub fn new(isa: &'static Isa, target: Target) -> Layouts {
        Layouts {
            isa,
            target,
            shared: shared(isa, target),
            known: KeyMap::default(),
            list: Vec::new(),
        }
    }

    /// More layouts for a kernel that has some.
    pub fn continued(isa: &'static Isa, target: Target, list: Vec<Arc<Layout>>) -> Layouts {
        Layouts {
            list,
            ..Layouts::new(isa, target)
        }
    }

    /// The position of the word's layout in `list`; [`NONE`] for an opaque word.
    pub fn get(&mut self, word: Word) -> u32 {
        let inst = self.isa.decode(word);
        if inst.form == FormId::OPAQUE {
            return NONE;
        }
        let key = self.shared.key(inst);
        if let Some(&at) = self.known.get(&key) {
            return at;
        }
        let layout = self.share(key, inst);
        let at = layout.map_or(NONE, |l| {
            self.list.push(l);
            self.list.len() as u32 - 1
        });
        self.known.insert(key, at);
        at
    }

    fn share(&self, key: Key, inst: Inst) -> Option<Arc<Layout>> {
        self.shared.get(self.isa, self.target, key, inst)
    }
}

impl Shared {
    fn get(&self, isa: &'static Isa, target: Target, key: Key, inst: Inst) -> Option<Arc<Layout>> {
        if let Some(layout) = self.layouts.read().unwrap_or_else(|e| e.into_inner()).get(&key) {
            return layout.clone();
        }
        let layout = describe(isa, target, inst).map(Arc::new);
        let mut layouts = self.layouts.write().unwrap_or_else(|e| e.into_inner());
        if layouts.len() < SHARED_LIMIT {
            return layouts.entry(key).or_insert(layout).clone();
        }
        layout
    }

    fn key(&self, inst: Inst) -> Key {
        let mask = self.key_masks.get(inst.form.0 as usize).copied().unwrap_or(u128::MAX);
        (inst.form.0, inst.word.0 & mask)
    }
}

/// The layouts of a target, one word at a time, for callers without a kernel.
#[derive(Clone, Copy)]
pub struct LayoutCache {
    isa: &'static Isa,
    target: Target,
    shared: &'static Shared,
}

impl LayoutCache {
    /// The layouts of `target`, whose tables `isa` has.
    pub fn new(isa: &'static Isa, target: Target) -> LayoutCache {
        LayoutCache {
            isa,
            target,
            shared: shared(isa, target),
        }
    }

    /// The layout of a word; `None` for an opaque one. Two words of the same form and modifiers share it (up to a number of layouts that no
    /// real code reaches).
    pub fn get(&self, word: Word) -> Option<Arc<Layout>> {
        let inst = self.isa.decode(word);
        if inst.form == FormId::OPAQUE {
            return None;
        }
        self.shared.get(self.isa, self.target, self.shared.key(inst), inst)
    }
}
