//! Why a text is refused, in words that say what to do. None of this runs for text that assembles.

use std::collections::HashMap;

use super::fill::{self, Misfit};
use super::notes::{Note, Notes};
use super::plan::{Candidate, Plan};
use super::scan::{Scanned, Value};
use super::{AsmError, Statement};
use crate::control::{self, Control};
use crate::field::OperandIx;
use crate::{Inst, Isa};

/// No candidate has the text.
pub(super) fn nothing_fits(
    isa: &Isa,
    plan: &Plan,
    scanned: &Scanned,
    control: Control,
    s: &Statement<'_>,
    mnemonics: &HashMap<&'static str, Vec<u16>>,
) -> AsmError {
    let mut best: Option<(u8, AsmError)> = None;
    for c in &plan.candidates {
        let (rank, error) = misfit(isa, c, scanned, control, s);
        if best.as_ref().is_none_or(|(r, _)| rank > *r) {
            best = Some((rank, error));
        }
    }
    if let Some((_, error)) = best {
        return error;
    }
    let mnemonic = scanned.skeleton.split([' ', '.']).next().unwrap_or_default();
    let forms = mnemonics.get(mnemonic).map_or(&[][..], Vec::as_slice);
    const SHOWN: usize = 6;
    let mut names: Vec<&str> = forms
        .iter()
        .filter_map(|&f| Some(isa.form(crate::FormId(f))?.name()))
        .collect();
    let more = if names.len() > SHOWN { ", ..." } else { "" };
    names.truncate(SHOWN);
    AsmError::NoForm {
        mnemonic: mnemonic.to_owned(),
        hint: format!("{} knows {}{more}", isa.target(), names.join(", ")),
    }
}

/// A tuple that begins where none can, if no note takes it.
pub(super) fn misaligned(isa: &Isa, inst: Inst, notes: &[Note]) -> Option<AsmError> {
    let access = isa.accesses(inst).find(|access| access.is_misaligned())?;
    (!notes.contains(&Note::Misaligned)).then(|| AsmError::Misaligned {
        form: isa.form(inst.form).map_or("", |f| f.name()),
        register: format!("{}{}", access.file.name(), access.reg),
        width: access.width,
        alignment: access.alignment(),
    })
}

/// Why one candidate does not have the text, and how near it comes.
fn misfit(isa: &Isa, c: &Candidate, scanned: &Scanned, control: Control, s: &Statement<'_>) -> (u8, AsmError) {
    let form = isa.form(c.form).map_or("", |f| f.name());
    let value = |why: String| AsmError::Value { form, why };
    match fill::word(isa, c, scanned, control, s) {
        Err(Misfit::Form) => (0, value("not in the tables".into())),
        Err(Misfit::Literal) => (0, value("other text in an operand".into())),
        Err(Misfit::Guard) => (1, value("has no guard, or one of the other predicate file".into())),
        Err(Misfit::Value(n)) => {
            let field = c.fields[n].and_then(|f| isa.form(c.form).map(|form| form.fields()[usize::from(f)].name));
            let why = format!(
                "{} does not fit {}",
                spelled(scanned.values[n]),
                field.unwrap_or("the operand")
            );
            (2, value(why))
        }
        Err(Misfit::Reuse(n)) if !control.yield_ => {
            let why = format!(
                "operand {n} is marked .reuse, but the scheduling column has Y: the flags count without it only"
            );
            (4, value(why))
        }
        Err(Misfit::Reuse(n)) => (4, value(format!("operand {n} cannot be marked .reuse"))),
        Err(Misfit::Note(n)) => (3, value(format!("cannot hold the note `{}`", s.notes[n]))),
        Ok(inst) => {
            let nan = scanned
                .values
                .iter()
                .position(|v| *v == Value::Nan)
                .and_then(|n| c.fields[n]);
            let field = nan.and_then(|n| Some(&isa.form(c.form)?.fields()[usize::from(n)]));
            if let Some(field) = field.filter(|f| notes_mask(isa, c, s.notes) & f.mask() == 0) {
                let hidden = AsmError::Hidden {
                    what: "which NaN is meant".into(),
                    mask: field.mask(),
                    note: format!("{}=0x7fffffff", field.name),
                    register: None,
                };
                return (6, hidden);
            }
            if inst.form != c.form {
                let other = isa.form(inst.form).map_or("no legal word", |f| f.name());
                return (
                    4,
                    value(format!("with these values, scheduling and notes it would be {other}")),
                );
            }
            let mut text = String::new();
            let _ = isa.write_text(inst, s.pc, &mut text, None);
            (5, value(format!("nvdisasm writes that as `{text}`")))
        }
    }
}

fn spelled(value: Value) -> String {
    match value {
        Value::Register(file, Some(n)) => format!("{}{n}", file.name()),
        Value::Register(file, None) => format!("{}Z", file.name()),
        Value::Number(n) if n < 0 => format!("-{:#x}", n.unsigned_abs()),
        Value::Number(n) => format!("{n:#x}"),
        Value::Float(v) => v.to_string(),
        Value::Nan => "NaN".into(),
    }
}

fn notes_mask(isa: &Isa, c: &Candidate, notes: &[Note]) -> u128 {
    let Some(form) = isa.data(c.form) else { return 0 };
    notes.iter().fold(0, |m, n| m | n.mask(form))
}

/// What neither the text nor the notes say of the only word that has the text, if that may differ. `reuse` has a bit for each operand
/// that is marked `.reuse`.
pub(super) fn not_said(isa: &Isa, c: &Candidate, inst: Inst, reuse: u32, notes: &[Note]) -> Option<AsmError> {
    let form = isa.data(c.form)?;
    if reuse != 0
        && let Some(e) = flag_not_said(isa, c, inst, reuse, notes)
    {
        return Some(e);
    }
    let meaningless = c.meaningless & !form.filled;
    if !c.hides && meaningless == 0 {
        return None;
    }
    let said = notes_mask(isa, c, notes);
    let hidden = |f: &&crate::Field| is_hidden(isa, inst, f) && f.mask() & !said != 0;
    if let Some(f) = form.fields.iter().find(hidden) {
        let file = f.kind.file().map_or("", |file| file.name());
        return Some(AsmError::Hidden {
            what: format!("the register of operand {} of {}", f.name, form.name),
            mask: f.mask(),
            note: format!("{}={file}4", f.name),
            register: Some(f.name),
        });
    }
    let mask = meaningless & !said;
    if mask == 0 {
        return None;
    }
    let what = format!(
        "what compilers write into bits of {} that mean nothing: no code seen tells",
        form.name
    );
    Some(AsmError::Hidden {
        what,
        mask,
        note: "filler".into(),
        register: None,
    })
}

/// Two flags of the operand cache that mark the same operand, as on sm_70: which one is set, or both, must be said unless compilers set one only.
fn flag_not_said(isa: &Isa, c: &Candidate, inst: Inst, reuse: u32, notes: &[Note]) -> Option<AsmError> {
    let form = isa.data(c.form)?;
    let said = notes_mask(isa, c, notes);
    let marked = c.operands.iter().enumerate().filter(|(n, _)| reuse >> n & 1 == 1);
    marked.map(|(_, &operand)| operand).find_map(|operand| {
        let mask = form.flags_of(operand);
        (mask.count_ones() > 1 && mask & !said != 0).then(|| {
            let mut note = Notes::default();
            note.say(isa, inst, mask);
            AsmError::Hidden {
                what: format!(
                    "which flag of the operand cache marks operand {operand} of {}",
                    form.name
                ),
                mask,
                note: note.to_string(),
                register: None,
            }
        })
    })
}

/// Whether a field is part of the instruction although its text never shows it.
pub(super) fn is_hidden(isa: &Isa, inst: Inst, f: &crate::Field) -> bool {
    match f.operand {
        _ if f.access == crate::Dir::None || f.bits.width() == 0 => false,
        OperandIx::Guard => false,
        OperandIx::Hidden(_) => true,
        OperandIx::Printed(n) => {
            !f.printed_only && isa.shape(inst, usize::from(n)).is_some_and(|(_, s)| !s.has(f.hole))
        }
    }
}

/// Several words have the text.
pub(super) fn ambiguous(isa: &Isa, found: &[(usize, Inst)]) -> AsmError {
    let first = found[0].1;
    let mask = found.iter().fold(0, |m, (_, i)| m | (i.word.0 ^ first.word.0)) & !control::MASK;
    let mut forms: Vec<&str> = found
        .iter()
        .filter_map(|(_, i)| Some(isa.form(i.form)?.name()))
        .collect();
    forms.dedup();
    let mut notes = Notes::default();
    notes.say(isa, first, mask);
    AsmError::Ambiguous {
        count: found.len(),
        mask,
        forms: forms.join(", "),
        note: notes.to_string(),
    }
}
