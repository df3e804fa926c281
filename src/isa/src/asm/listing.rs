//! A whole listing: code sections with labels.

use std::collections::HashMap;

use super::{AsmError, Assembler, Line, Statement};
use crate::Word;
use crate::control::Control;

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
    labels: HashMap<&'t str, u64>,
    instructions: Vec<Placed<'t>>,
}

impl Assembler<'_> {
    /// Assembles a listing as `nvdisasm -c` or `sass2mlir disasm --asm` write it: `.section .text.NAME` or `.text.NAME:` begins a
    /// section, `NAME:` is a label, other directives are passed over. An instruction without a scheduling column gets `default`; it is
    /// an error if there is none. Every line that is wrong is reported.
    pub fn listing(&mut self, text: &str, default: Option<Control>) -> Result<Vec<Section>, Vec<LineError>> {
        let (sections, mut errors) = read(text);
        let mut out = Vec::new();
        for section in sections {
            let places = |name: &str| section.labels.get(name).copied();
            let mut words = Vec::with_capacity(section.instructions.len());
            for Placed { line, pc, parsed } in &section.instructions {
                let statement = Statement {
                    text: parsed.text,
                    pc: *pc,
                    notes: &parsed.notes.0,
                    places: Some(&places),
                };
                let none =
                    || AsmError::Syntax("no scheduling column like B------:R-:W-:-:S01 before the instruction".into());
                let word = parsed
                    .control
                    .or(default)
                    .ok_or_else(none)
                    .and_then(|c| self.assemble(&statement, c));
                match word {
                    Ok(inst) => words.push(inst.word),
                    Err(error) => errors.push(LineError {
                        line: *line,
                        text: format!("{}: ", parsed.text),
                        error,
                    }),
                }
            }
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
    let named = parsed
        .label
        .and_then(|l| l.strip_prefix(".text."))
        .or_else(|| parsed.directive.and_then(code_section));
    if let Some(name) = named.filter(|name| sections.last().is_some_and(|s| s.name != *name)) {
        sections.push(Open {
            name,
            ..Open::default()
        });
    }
    let Some(section) = sections.last_mut() else {
        return Ok(());
    };
    let pc = (section.instructions.len() * Word::BYTES) as u64;
    if let Some(label) = parsed.label {
        if section.labels.insert(label, pc).is_some_and(|before| before != pc) {
            return Err(AsmError::Syntax(format!("label `{label}` is there twice")));
        }
    }
    if parsed.text.is_empty() {
        return Ok(());
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

/// `.section .text.NAME,"ax",@progbits` -> NAME.
fn code_section(directive: &str) -> Option<&str> {
    let rest = directive.strip_prefix(".section")?.trim_start();
    let name = rest.split([',', ' ', '\t']).next()?.trim_matches('"');
    name.strip_prefix(".text.")
}
