//! The assembler: `nvdisasm`'s text of an instruction, with its scheduling, to the word.
//!
//! It never gives a word that prints otherwise, and never guesses: text that has several encodings is refused with what tells
//! them apart, until a note says which is meant.

mod callees;
mod descriptor;
mod emulated;
mod fill;
mod line;
mod listing;
mod notes;
mod plan;
mod refuse;
mod scan;
mod shapes;

use std::collections::HashMap;

use crate::control::Control;
use crate::{Inst, Isa};

use plan::Plan;
use scan::Scanned;
use shapes::Shapes;

pub use line::Line;
pub use listing::{LineError, Section};
pub use notes::{Note, Notes, bits};
pub use scan::Places;

/// Why a text gives no word.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AsmError {
    /// It is no instruction's text.
    #[error("{0}")]
    Syntax(String),
    /// No place of that name.
    #[error("no label `{0}` here")]
    Label(String),
    /// No instruction of that name on this target.
    #[error("{target} has no instruction `{mnemonic}`")]
    Mnemonic {
        /// The target.
        target: crate::Target,
        /// As written.
        mnemonic: String,
    },
    /// The mnemonic is known, but not with these modifiers and operands.
    #[error("no form of {mnemonic} has these modifiers and operands; {hint}")]
    NoForm {
        /// The mnemonic.
        mnemonic: String,
        /// What there is.
        hint: String,
    },
    /// The nearest form cannot hold a value, or `nvdisasm` writes the instruction in another way.
    #[error("{form}: {why}")]
    Value {
        /// Form id.
        form: &'static str,
        /// What is wrong.
        why: String,
    },
    /// A part of the word that the text does not show, and that differs from word to word.
    #[error("the text does not show {what} (bits {}); say it in a note like `<{note}>`", bits(*mask))]
    Hidden {
        /// What is not shown.
        what: String,
        /// Word bits.
        mask: u128,
        /// A note that says it.
        note: String,
        /// The field, if it is a register.
        register: Option<&'static str>,
    },
    /// A tuple of registers does not begin at a multiple of its size.
    #[error(
        "{register} begins {width} registers in `{form}`, so its number must be a multiple of {alignment}; the note `<misaligned>` takes it as it is"
    )]
    Misaligned {
        /// Form id.
        form: &'static str,
        /// The first register.
        register: String,
        /// Registers of the tuple.
        width: u8,
        /// What its number must be a multiple of.
        alignment: u8,
    },
    /// Several words print this text.
    #[error("{count} words have this text, and differ in bits {} ({forms}); say which in a note like `<{note}>`", bits(*mask))]
    Ambiguous {
        /// How many.
        count: usize,
        /// Bits in which they differ.
        mask: u128,
        /// Their forms.
        forms: String,
        /// A note that means the first of them.
        note: String,
    },
}

/// One instruction's text and what goes with it.
#[derive(Clone, Copy, Default)]
pub struct Statement<'s> {
    /// As `nvdisasm` writes it, without the final `;`. Operands that it leaves out (`PT`) may be there.
    pub text: &'s str,
    /// Byte offset in the section.
    pub pc: u64,
    /// What the text does not show.
    pub notes: &'s [Note],
    /// Names of places in the code.
    pub places: Option<Places<'s>>,
}

/// Assembles for one target. It keeps what it learned about the structure of a text, so use one for many lines.
pub struct Assembler<'a> {
    isa: &'a Isa,
    shapes: Shapes,
    mnemonics: HashMap<&'static str, Vec<u16>>,
    plans: HashMap<Box<str>, Plan>,
    scanned: Scanned,
    text: String,
    found: Vec<(usize, Inst)>,
}

impl<'a> Assembler<'a> {
    /// An assembler for the target of `isa`.
    pub fn new(isa: &'a Isa) -> Self {
        let mut mnemonics: HashMap<&'static str, Vec<u16>> = HashMap::new();
        for (n, form) in isa.tables.forms.iter().enumerate() {
            mnemonics.entry(form.mnemonic).or_default().push(n as u16);
        }
        Self {
            isa,
            shapes: Shapes::new(isa),
            mnemonics,
            plans: HashMap::new(),
            scanned: Scanned::default(),
            text: String::new(),
            found: Vec::new(),
        }
    }

    /// The word that has the statement's text, `control` as its scheduling (the operand-cache flags are in the text), and whatever
    /// its notes say.
    ///
    /// What the text does not show is as compilers write it (`opcodes/README.md`, fillers.tsv). Where they do not always write the
    /// same, or no compiler's code with the form is known, the text is refused with the bits in question.
    pub fn assemble(&mut self, s: &Statement<'_>, control: Control) -> Result<Inst, AsmError> {
        if let Some(digits) = s.text.trim().strip_prefix(".opaque 0x") {
            let word = u128::from_str_radix(digits, 16)
                .map_err(|_| AsmError::Syntax("an opaque word has 32 hex digits".into()))?;
            return Ok(self.isa.decode(crate::Word(word)));
        }
        self.scan(s)?;
        let plan = &self.plans[self.scanned.skeleton.as_str()];
        if plan.is_cut {
            return Err(AsmError::Syntax(
                "too many encodings have this text; write the word as `.opaque 0x` and 32 digits".into(),
            ));
        }
        self.found.clear();
        for (n, candidate) in plan.candidates.iter().enumerate() {
            let Ok(inst) = fill::word(self.isa, candidate, &self.scanned, control, s) else {
                continue;
            };
            if inst.form == candidate.form
                && self.found.iter().all(|(_, other)| *other != inst)
                && fill::prints_as(self.isa, candidate, inst, &self.scanned, s.pc, &mut self.text)
            {
                self.found.push((n, inst));
            }
        }
        if self.found.len() > 1 {
            prefer(self.isa, plan, &mut self.found);
        }
        match self.found[..] {
            [] => Err(refuse::nothing_fits(
                self.isa,
                plan,
                &self.scanned,
                control,
                s,
                &self.mnemonics,
            )),
            [(n, inst)] => match refuse::not_said(self.isa, &plan.candidates[n], inst, self.scanned.reuse, s.notes) {
                None => refuse::misaligned(self.isa, inst, s.notes).map_or(Ok(inst), Err),
                Some(e) => Err(e),
            },
            _ => Err(refuse::ambiguous(self.isa, &self.found)),
        }
    }

    /// Scans the text and makes sure that there is a plan for its skeleton.
    fn scan(&mut self, s: &Statement<'_>) -> Result<(), AsmError> {
        /// Skeletons of real code number in the thousands; text from elsewhere must not fill the memory.
        const MOST_PLANS: usize = 1 << 16;
        self.scanned.read(s.text, s.places)?;
        if self.plans.contains_key(self.scanned.skeleton.as_str()) {
            return Ok(());
        }
        let head = self.scanned.skeleton.split([' ', '.']).next().unwrap_or_default();
        let forms = self.mnemonics.get(head).ok_or_else(|| AsmError::Mnemonic {
            target: self.isa.target,
            mnemonic: head.to_owned(),
        })?;
        if self.plans.len() >= MOST_PLANS {
            self.plans.clear();
        }
        let plan = plan::build(self.isa, forms, &self.shapes, &self.scanned);
        self.plans.insert(self.scanned.skeleton.as_str().into(), plan);
        Ok(())
    }

    /// The notes with which the text of `inst` gives its word: empty where the text says all. `None` if no notes do that.
    pub fn notes_for(&mut self, inst: Inst, pc: u64) -> Option<Notes> {
        let mut text = String::new();
        self.isa.write_text(inst, pc, &mut text, None).ok()?;
        let control = Control::of(inst.word);
        let mut notes = Notes::default();
        // Each round says one thing more.
        for _ in 0..8 {
            let statement = Statement {
                text: &text,
                pc,
                notes: &notes.0,
                places: None,
            };
            let missing = match self.assemble(&statement, control) {
                Ok(found) if found == inst => return Some(notes),
                Ok(found) => found.word.0 ^ inst.word.0,
                Err(AsmError::Hidden { mask, .. } | AsmError::Ambiguous { mask, .. }) => mask,
                Err(AsmError::Misaligned { .. }) => {
                    notes.0.push(Note::Misaligned);
                    continue;
                }
                Err(_) => return None,
            };
            notes.say(self.isa, inst, missing);
        }
        None
    }
}

/// Of several words with the text, keeps those that a compiler would have written: forms that compilers use, with operands left out
/// that they leave out, and of the operands that may be left out the last ones left out (`IADD3 R0, P0, R1, R2, R3` has its carry in bits
/// 83:81, not 86:84).
fn prefer(isa: &Isa, plan: &Plan, found: &mut Vec<(usize, Inst)>) {
    let attested = |inst: &Inst| isa.data(inst.form).is_some_and(|f| f.is_attested);
    if found.iter().any(|(_, inst)| attested(inst)) {
        found.retain(|(_, inst)| attested(inst));
    }
    let operands = |n: usize| &plan.candidates[n].operands;
    let usual = |&(n, inst): &(usize, Inst)| {
        isa.data(inst.form).is_some_and(|form| {
            let shown = operands(n).iter().fold(0, |m, operand| m | 1u32 << operand);
            (0..form.operands.len()).all(|operand| (shown | form.left_out) >> operand & 1 == 1)
        })
    };
    if found.iter().any(usual) {
        found.retain(usual);
    }
    let mut first: HashMap<crate::FormId, &[u8]> = HashMap::new();
    for &(n, inst) in found.iter() {
        let known = first.entry(inst.form).or_insert(operands(n));
        *known = (*known).min(operands(n));
    }
    found.retain(|(n, inst)| first[&inst.form] == &operands(*n)[..]);
}
