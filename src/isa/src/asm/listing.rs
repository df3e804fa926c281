//! A whole listing: code sections with labels.

use std::collections::HashMap;

use super::{AsmError, Assembler, Line, Notes, Statement, descriptor};
use crate::control::Control;
use crate::{Inst, Word};

/// The code of one section.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Section {
    /// Without `.text.`; empty for code before any section is named.
    pub name: String,
    /// The words, in order.
    pub words: Vec<Word>,
}

/// A line that cannot be assembled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line}: {text}{error}")]
pub struct LineError {
    /// Counted from 1.
    pub line: usize,
    /// The instruction, with a colon behind it, or nothing.
    pub text: String,
    /// Why.
    pub error: AsmError,
}

/// One instruction with its place.
struct Placed<'t> {
    line: usize,
    pc: u64,
    parsed: Line<'t>,
}

/// A section being read.
#[derive(Default)]
struct Open<'t> {
    name: &'t str,
    /// A section that holds something else: what is in it is passed over.
    foreign: bool,
    labels: HashMap<&'t str, u64>,
    instructions: Vec<Placed<'t>>,
}

impl Assembler<'_> {
    /// Assembles a listing as `nvdisasm -c` or `sass2mlir disasm --asm` write it: `.section .text.NAME` or `.text.NAME:` begins a
    /// section, `NAME:` is a label; directives that put no bytes into code are passed over, as is all that other sections hold. An instruction without a scheduling column gets `default`; it is
    /// an error if there is none. A descriptor that the text does not show is the one that the code before it loaded last, into one register
    /// pair on all ways. Every line that is wrong is reported.
    pub fn listing(&mut self, text: &str, default: Option<Control>) -> Result<Vec<Section>, Vec<LineError>> {
        let (sections, mut errors) = read(text);
        let mut out = Vec::new();
        for section in sections.into_iter().filter(|s| !s.foreign) {
            let words = self.section(&section, default, &mut errors);
            if !words.is_empty() || !section.name.is_empty() {
                out.push(Section {
                    name: section.name.to_owned(),
                    words,
                });
            }
        }
        errors.sort_by_key(|e| e.line);
        if errors.is_empty() { Ok(out) } else { Err(errors) }
    }

    /// Assembles a section: first what its text says, then the accesses whose descriptor the rest of the code tells.
    fn section(&mut self, section: &Open<'_>, default: Option<Control>, errors: &mut Vec<LineError>) -> Vec<Word> {
        let places = |name: &str| section.labels.get(name).copied();
        let mut insts = Vec::with_capacity(section.instructions.len());
        let mut waiting = Vec::new();
        for (n, placed) in section.instructions.iter().enumerate() {
            match self.placed(placed, default, &placed.parsed.notes, &places) {
                Ok(inst) => insts.push(inst),
                Err(AsmError::Hidden {
                    register: Some(field), ..
                }) => {
                    // Any register will do to see what the instruction does to others.
                    let stand_in = SOME.iter().find_map(|&r| {
                        let notes = placed.parsed.notes.with_register(field, r);
                        self.placed(placed, default, &notes, &places).ok()
                    });
                    insts.push(stand_in.unwrap_or(Inst::opaque(Word(0))));
                    waiting.push((n, field));
                }
                Err(error) => {
                    insts.push(Inst::opaque(Word(0)));
                    errors.push(placed.error(error));
                }
            }
        }
        let pairs = if waiting.is_empty() {
            vec![]
        } else {
            let labels = section.labels.iter().map(|(name, &pc)| (pc, !name.starts_with('.')));
            descriptor::pairs(self.isa, &insts, labels)
        };
        for (n, field) in waiting {
            let placed = &section.instructions[n];
            let notes = match pairs[n] {
                Some(pair) => placed.parsed.notes.with_register(field, pair),
                None => placed.parsed.notes.clone(),
            };
            match self.placed(placed, default, &notes, &places) {
                Ok(inst) => insts[n] = inst,
                Err(error) => errors.push(placed.error(error)),
            }
        }
        insts.into_iter().map(|i| i.word).collect()
    }

    fn placed(
        &mut self,
        placed: &Placed<'_>,
        default: Option<Control>,
        notes: &Notes,
        places: &dyn Fn(&str) -> Option<u64>,
    ) -> Result<Inst, AsmError> {
        let none = || AsmError::Syntax("no scheduling column like B------:R-:W-:-:S01 before the instruction".into());
        let control = placed.parsed.control.or(default).ok_or_else(none)?;
        let statement = Statement {
            text: placed.parsed.text,
            pc: placed.pc,
            notes: &notes.0,
            places: Some(places),
        };
        self.assemble(&statement, control)
    }
}

/// Registers of which one is legal wherever a register pair is.
const SOME: [u8; 2] = [4, 0];

impl Placed<'_> {
    fn error(&self, error: AsmError) -> LineError {
        LineError {
            line: self.line,
            text: format!("{}: ", self.parsed.text),
            error,
        }
    }
}

/// Sections with their labels and instructions, and what cannot be read.
fn read(text: &str) -> (Vec<Open<'_>>, Vec<LineError>) {
    let mut sections = vec![Open::default()];
    let mut errors = Vec::new();
    for (n, line) in text.lines().enumerate() {
        if let Err(error) = take(line, n + 1, &mut sections) {
            errors.push(LineError {
                line: n + 1,
                text: String::new(),
                error,
            });
        }
    }
    (sections, errors)
}

fn take<'t>(line: &'t str, number: usize, sections: &mut Vec<Open<'t>>) -> Result<(), AsmError> {
    let parsed = Line::parse(line)?;
    let directive = parsed.directive.and_then(section_named);
    let named = parsed.label.filter(|l| l.starts_with(".text.")).or(directive);
    if let Some(name) = named {
        let code = if name == ".text" {
            Some("")
        } else {
            name.strip_prefix(".text.")
        };
        let (name, foreign) = (code.unwrap_or(name), code.is_none());
        if sections.last().is_none_or(|s| (s.name, s.foreign) != (name, foreign)) {
            sections.push(Open {
                name,
                foreign,
                ..Open::default()
            });
        }
    }
    let Some(section) = sections.last_mut() else {
        return Ok(());
    };
    let pc = (section.instructions.len() * Word::BYTES) as u64;
    if let Some(label) = parsed.label
        && section.labels.insert(label, pc).is_some_and(|before| before != pc)
    {
        return Err(AsmError::Syntax(format!("label `{label}` is there twice")));
    }
    if parsed.text.is_empty() {
        return match parsed.directive {
            _ if parsed.control.is_some() => Err(AsmError::Syntax("a scheduling column without an instruction".into())),
            Some(d) if !section.foreign && !WITHOUT_BYTES.contains(&first_word(d)) => Err(AsmError::Syntax(format!(
                "`{}` is no directive that is known here; words of code are instructions, or `.opaque 0x...`",
                first_word(d)
            ))),
            _ => Ok(()),
        };
    }
    if section.foreign {
        return Err(AsmError::Syntax(format!(
            "an instruction in `{}`, which holds no code",
            section.name
        )));
    }
    if let Some(address) = parsed.address.filter(|&a| a != pc) {
        return Err(AsmError::Syntax(format!(
            "the comment says {address:#x}, but this instruction is at {pc:#x}"
        )));
    }
    section.instructions.push(Placed {
        line: number,
        pc,
        parsed,
    });
    Ok(())
}

/// Directives of code sections, none of which puts bytes into them.
const WITHOUT_BYTES: &[&str] = &[
    ".align",
    ".elftype",
    ".file",
    ".global",
    ".headerflags",
    ".loc",
    ".local",
    ".other",
    ".section",
    ".sectionentsize",
    ".sectionflags",
    ".sectioninfo",
    ".size",
    ".target",
    ".text",
    ".type",
    ".weak",
];

fn first_word(directive: &str) -> &str {
    directive.split_whitespace().next().unwrap_or_default()
}

/// `.section .text.NAME,"ax",@progbits` -> `.text.NAME`.
fn section_named(directive: &str) -> Option<&str> {
    let rest = directive.strip_prefix(".section")?;
    if !rest.starts_with([' ', '\t']) {
        return None; // `.sectioninfo`
    }
    let name = rest.trim_start().split([',', ' ', '\t']).next()?;
    Some(name.trim_matches('"'))
}
