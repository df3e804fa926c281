//! One instruction: targets, tables, decode, encode, fields, text.
//!
//! The truth is the 128-bit [`Word`]; everything else is a view of it. [`Isa::for_target`] gives the embedded tables of a target,
//! [`Isa::decode`] finds the form of a word, and the other methods of [`Isa`] read and change what the form says about it.
//!
//! ```
//! # fn main() -> Result<(), isa::IsaError> {
//! let isa = isa::Isa::for_target(isa::Target::Sm87)?;
//! let inst = isa.decode(isa::Word(0x000fe200078e00280000002018107224));
//! let mut text = String::new();
//! isa.write_text(inst, 0, &mut text, None).expect("strings take any text");
//! assert_eq!(text, "IMAD.U32 R16, R24, R32, R40");
//! # Ok(())
//! # }
//! ```

mod access;
mod alias;
pub mod asm;
mod blob;
mod build;
pub mod control;
mod edit;
mod field;
mod float;
mod legal;
mod line;
mod operand;
mod pattern;
mod semantics;
mod shape;
mod tables;
pub mod target;
mod text;
mod word;

use std::fmt;
use std::sync::OnceLock;

pub use access::Access;
pub use control::Control;
pub use field::{Bits, Dir, Field, FieldError, FieldKind, OperandIx, RegFile};
pub use operand::{OperandView, Piece};
pub use pattern::Pattern;
pub use semantics::{Effects, Implicit, Latency, Pipe, Semantics, Space, Terminator};
pub use target::Target;
pub use text::Labels;
pub use word::Word;

use crate::shape::Shape;
use crate::tables::{FormData, OperandData, Tables};

/// A form's number in the tables of one target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FormId(pub u16);

impl FormId {
    /// A word that no table knows.
    pub const OPAQUE: Self = Self(u16::MAX);

    /// Whether it is [`FormId::OPAQUE`].
    pub const fn is_opaque(self) -> bool {
        self.0 == u16::MAX
    }
}

/// A decoded instruction: the word and the number of its form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Inst {
    /// All of the instruction.
    pub word: Word,
    /// What kind it is.
    pub form: FormId,
}

impl Inst {
    /// A word whose meaning is not known.
    pub const fn opaque(word: Word) -> Self {
        Self {
            word,
            form: FormId::OPAQUE,
        }
    }
}

/// Why a target has no tables here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IsaError {
    /// The program was built without this target, or the project has no tables for it yet.
    #[error(
        "no tables for {target} in this program (it has: {}); build it with SASS_ACTIVE_SMS={target}, or without that \
         variable for every target in opcodes/",
        embedded.join(" ")
    )]
    NotEmbedded {
        /// The target asked for.
        target: Target,
        /// What there is.
        embedded: Vec<&'static str>,
    },
    /// The build left tables of another layout.
    #[error("the embedded tables have another layout than this code: build again from a clean tree")]
    Layout,
}

/// One target's instruction set.
pub struct Isa {
    target: Target,
    uniform_zero: u8,
    tables: &'static Tables,
}

const TARGETS: usize = Target::ALL.len();

/// Targets in the blob, with the number of their family.
fn embedded() -> impl Iterator<Item = (&'static str, usize)> {
    (0..blob::count(blob::Section::Targets)).map(|i| {
        let mut r = blob::record(blob::Section::Targets, i);
        (r.string(), r.size())
    })
}

impl Isa {
    /// The tables of a target; they are built on first use and kept.
    pub fn for_target(target: Target) -> Result<&'static Self, IsaError> {
        static ISAS: [OnceLock<Isa>; TARGETS] = [const { OnceLock::new() }; TARGETS];
        static FAMILIES: [OnceLock<Tables>; TARGETS] = [const { OnceLock::new() }; TARGETS];
        if let Some(isa) = ISAS[target as usize].get() {
            return Ok(isa);
        }
        if !blob::is_known() {
            return Err(IsaError::Layout);
        }
        let family = embedded().find(|(name, _)| *name == target.name()).map(|(_, f)| f);
        let slot = family.and_then(|f| Some((f, FAMILIES.get(f)?)));
        let Some((family, slot)) = slot else {
            return Err(IsaError::NotEmbedded {
                target,
                embedded: embedded().map(|(name, _)| name).collect(),
            });
        };
        Ok(ISAS[target as usize].get_or_init(|| Self {
            target,
            uniform_zero: target.uniform_zero(),
            tables: slot.get_or_init(|| Tables::load(family)),
        }))
    }

    /// The target.
    pub fn target(&self) -> Target {
        self.target
    }

    /// Whether both targets' instructions are encoded alike: their families share one set of tables.
    pub fn same_tables(&self, other: &Isa) -> bool {
        std::ptr::eq(self.tables, other.tables)
    }

    /// The uniform register that reads as zero: 63 up to sm_90a, 255 from sm_100 on.
    pub fn uniform_zero(&self) -> u8 {
        self.uniform_zero
    }

    /// Whether a register reads as zero (or true) and ignores writes: `RZ URZ PT UPT`.
    pub fn is_zero(&self, file: RegFile, reg: u8) -> bool {
        match file {
            RegFile::R => reg == 255,
            // The second of a pair that is named by its first can be past the last one.
            RegFile::UR => reg >= self.uniform_zero,
            RegFile::P | RegFile::UP => reg == 7,
            RegFile::B => false,
        }
    }

    /// Finds the form of a word. A word that matches no form, has a shape, modifier or scheduling value that is not legal, or a
    /// barrier or reuse flag where its form allows none, is opaque.
    #[inline]
    pub fn decode(&self, w: Word) -> Inst {
        for row in self.tables.rows_for(w.0) {
            if w.0 & row.mask == row.value {
                let form = &self.tables.forms[usize::from(row.form)];
                let legal =
                    form.rules.allow(w) && form.checks.iter().all(|c| c.passes(w.0)) && legal::allow(&form.legal, w.0);
                let form = if legal { FormId(row.form) } else { FormId::OPAQUE };
                return Inst { word: w, form };
            }
        }
        Inst::opaque(w)
    }

    /// Decodes the words of a section in order.
    pub fn decode_all<'a>(&'a self, code: &'a [u8]) -> impl ExactSizeIterator<Item = Inst> + 'a {
        Word::all(code).map(|w| self.decode(w))
    }

    pub(crate) fn data(&self, id: FormId) -> Option<&'static FormData> {
        self.tables.forms.get(usize::from(id.0))
    }

    /// A form; `None` for [`FormId::OPAQUE`].
    pub fn form(&self, id: FormId) -> Option<Form<'_>> {
        Some(Form {
            tables: self.tables,
            data: self.tables.forms.get(usize::from(id.0))?,
            id,
        })
    }

    /// All forms, sorted by name.
    pub fn forms(&self) -> impl ExactSizeIterator<Item = Form<'_>> {
        let tables = self.tables;
        tables.forms.iter().enumerate().map(move |(i, data)| Form {
            tables,
            data,
            id: FormId(i as u16),
        })
    }

    /// The form with that name, for example `FFMA_0x223_R_R_R_R`.
    pub fn form_by_name(&self, name: &str) -> Option<FormId> {
        self.tables.by_name.get(name).map(|&i| FormId(i))
    }

    /// The shape of operand `n`.
    pub(crate) fn shape(&self, i: Inst, n: usize) -> Option<(&OperandData, &Shape)> {
        let operand = self.data(i.form)?.operands.get(n)?;
        let shape = self.tables.selectors[operand.selector as usize].get(i.word)?;
        Some((operand, &self.tables.shapes[shape]))
    }

    /// The text of modifier slot `slot`, without a leading dot; empty if the slot prints nothing.
    pub(crate) fn slot_text(&self, form: &FormData, w: Word, slot: usize) -> &'static str {
        let selector = &self.tables.selectors[form.modifiers[slot] as usize];
        selector.get(w).map_or("", |t| self.tables.texts[t])
    }

    /// Modifier tokens in printed order, without dots; spellings of `aliases.tsv` are not applied.
    pub fn modifiers(&self, i: Inst) -> impl Iterator<Item = &'static str> + '_ {
        let form = self.data(i.form);
        let slots = form.map_or(0, |f| f.modifiers.len());
        (0..slots).flat_map(move |slot| {
            let text = form.map_or("", |f| self.slot_text(f, i.word, slot));
            text.split('.').filter(|t| !t.is_empty())
        })
    }

    /// Whether a modifier token is there.
    pub fn has_modifier(&self, i: Inst, token: &str) -> bool {
        self.modifiers(i).any(|m| m == token)
    }

    /// The guard: file, register, and whether it is negated (bit 15). `None` if the form has none.
    pub fn guard(&self, i: Inst) -> Option<(RegFile, u8, bool)> {
        let form = self.data(i.form)?;
        let file = form.guard?;
        Some((file, i.word.bits(14, 12) as u8, i.word.bits(15, 15) != 0))
    }

    /// What the instruction does beyond the registers that it names, modifiers considered.
    pub fn semantics(&self, i: Inst) -> &Semantics {
        let rows = &self.tables.semantics;
        let opaque = &rows[rows.len() - 1];
        let Some(form) = self.data(i.form) else {
            return opaque;
        };
        let holds = |tests: &[tables::TokenTest]| tests.iter().all(|t| t.holds(&self.tables.selectors, i.word));
        let row = form.semantics.iter().find(|(tests, _)| holds(tests));
        row.map_or(opaque, |(_, n)| &rows[usize::from(*n)])
    }

    /// Whether an instruction that ends a block can also let control go on behind it: its guard or another predicate that it reads may
    /// be false, or `semantics.tsv` says so.
    pub fn is_conditional(&self, i: Inst) -> bool {
        let inverted = |a: &Access| match a.operand {
            OperandIx::Guard => self.guard(i).is_some_and(|(_, _, negated)| negated),
            OperandIx::Printed(n) => self.operand(i, n.into()).is_some_and(|o| o.shape().starts_with('!')),
            OperandIx::Hidden(_) => false,
        };
        let open = |a: Access| {
            let is_predicate = matches!(a.file, RegFile::P | RegFile::UP);
            is_predicate && a.dir.reads() && (!a.is_zero || inverted(&a))
        };
        self.semantics(i).conditional || self.accesses(i).any(open)
    }
}

impl fmt::Debug for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Isa({})", self.target)
    }
}

/// What the tables say about one form.
#[derive(Clone, Copy)]
pub struct Form<'a> {
    tables: &'a Tables,
    data: &'a FormData,
    id: FormId,
}

impl<'a> Form<'a> {
    /// The number.
    pub fn id(&self) -> FormId {
        self.id
    }

    /// `MNEMONIC_0xOPCODE_SIGNATURE`.
    pub fn name(&self) -> &'static str {
        self.data.name
    }

    /// First dotted part of the printed name.
    pub fn mnemonic(&self) -> &'static str {
        self.data.mnemonic
    }

    /// Word bits 11:0.
    pub fn opcode(&self) -> u16 {
        self.data.opcode
    }

    /// File of the guard, if it has one.
    pub fn guard(&self) -> Option<RegFile> {
        self.data.guard
    }

    /// A legal word of the form, to make new instructions from.
    pub fn filler(&self) -> Word {
        Word(self.data.filler)
    }

    /// Whether it may release a scoreboard when its results are written.
    pub fn allows_write_barrier(&self) -> bool {
        self.data.rules.wbar()
    }

    /// Whether it may release a scoreboard when its sources have been read.
    pub fn allows_read_barrier(&self) -> bool {
        self.data.rules.rbar()
    }

    /// Operand-cache flags as (word bit, operand). Those in bits 124:122 are meaningful when bit 109 is set.
    pub fn reuse(&self) -> &'a [(u8, u8)] {
        &self.data.reuse
    }

    /// Fields: the guard, then printed operands in order, then hidden ones.
    pub fn fields(&self) -> &'a [Field] {
        &self.data.fields
    }

    /// Bits that choose the form, the shapes of its operands and its modifiers, and the guard's negation: two words of the form that
    /// agree in them have the same text and accesses but for register numbers and immediates.
    pub fn selector_mask(&self) -> u128 {
        self.data.fixed
    }

    /// Number of a field by name.
    pub fn field(&self, name: &str) -> Option<usize> {
        self.data.fields.iter().position(|f| f.name == name)
    }

    /// Printed operands, elided ones included.
    pub fn operand_count(&self) -> usize {
        self.data.operands.len()
    }

    /// What it does whatever its modifiers are; [`Isa::semantics`] is more exact.
    pub fn semantics(&self) -> &'a Semantics {
        let rows = &self.tables.semantics;
        let last = self
            .data
            .semantics
            .last()
            .map_or(rows.len() - 1, |(_, n)| usize::from(*n));
        &rows[last]
    }
}

impl fmt::Debug for Form<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
