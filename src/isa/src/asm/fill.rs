//! Puts the values of a text into a candidate's word.

use super::Statement;
use super::plan::Candidate;
use super::refuse::is_hidden;
use super::scan::{Scanned, Value};
use crate::control::{self, Control};
use crate::field::{Field, FieldKind, RegFile};
use crate::float::Float;
use crate::tables::FormData;
use crate::{Inst, Isa, Word};

/// Why a candidate does not take a text's values.
pub(super) enum Misfit {
    /// The guard: there is none in this form, or one of another file.
    Guard,
    /// Text that is part of the form reads otherwise.
    Literal,
    /// The number of a value that its field cannot hold.
    Value(usize),
    /// An operand that is not kept in the operand cache is marked `.reuse`.
    Reuse(usize),
    /// A note that the form cannot hold.
    Note(usize),
    /// Not reached: the form's data is there.
    Form,
}

/// The candidate's instruction with the values of the text, the scheduling and the notes in it.
pub(super) fn word(
    isa: &Isa,
    c: &Candidate,
    scanned: &Scanned,
    control: Control,
    s: &Statement<'_>,
) -> Result<Inst, Misfit> {
    let form = isa.data(c.form).ok_or(Misfit::Form)?;
    if c.literals
        .iter()
        .any(|&(n, literal)| scanned.values[usize::from(n)] != literal)
    {
        return Err(Misfit::Literal);
    }
    let mut word = guard(isa, form, scanned, Word(c.base)).ok_or(Misfit::Guard)?;
    for (n, (value, &field)) in scanned.values.iter().zip(&c.fields).enumerate() {
        if let Some(field) = field {
            let field = &form.fields[usize::from(field)];
            word = put(isa, field, value, s.pc, word).ok_or(Misfit::Value(n))?;
        }
    }
    word = schedule(form, c, scanned, control, word)?;
    for (n, note) in s.notes.iter().enumerate() {
        word = note.apply(form, word).ok_or(Misfit::Note(n))?;
    }
    let inst = isa.decode(word);
    if inst.form != c.form && c.hides {
        return Ok(with_some_hidden_register(isa, c, form, s, inst));
    }
    Ok(inst)
}

/// The instruction with a register in its hidden fields that makes it legal, if there is one: which it is must still be said.
fn with_some_hidden_register(isa: &Isa, c: &Candidate, form: &FormData, s: &Statement<'_>, inst: Inst) -> Inst {
    let said = s.notes.iter().fold(0, |m, n| m | n.mask(form));
    let shaped = Inst { form: c.form, ..inst };
    let hidden = || {
        let fields = form.fields.iter().filter(|f| f.mask() & said == 0);
        fields.filter(|f| is_hidden(isa, shaped, f))
    };
    let tried = [4, 0, 2, 8].into_iter().map(|register| {
        let set = |w: Word, f: &Field| f.set(w, register).unwrap_or(w);
        isa.decode(hidden().fold(inst.word, set))
    });
    tried.into_iter().find(|i| i.form == c.form).unwrap_or(inst)
}

fn put(isa: &Isa, field: &Field, value: &Value, pc: u64, word: Word) -> Option<Word> {
    let number = match (*value, field.kind_in(word)) {
        (Value::Register(file, n), FieldKind::Reg(own)) if file == own => match n {
            Some(n) => i64::from(n),
            None => zero(isa, own),
        },
        (Value::Number(n), FieldKind::Rel) => n.wrapping_sub(pc as i64).wrapping_sub(16),
        (Value::Number(n), FieldKind::Int | FieldKind::Scoreboard) => n,
        (Value::Float(v), kind) => Float::bits_of(kind, v)? as i64,
        // Which NaN is a note's business.
        (Value::Nan, kind) if kind.is_float() => return Some(word),
        _ => return None,
    };
    field.set(word, number).ok()
}

fn zero(isa: &Isa, file: RegFile) -> i64 {
    match file {
        RegFile::R => 255,
        RegFile::UR => i64::from(isa.uniform_zero),
        _ => 7,
    }
}

fn guard(isa: &Isa, form: &FormData, scanned: &Scanned, word: Word) -> Option<Word> {
    match (form.guard, scanned.guard) {
        (None, None) => Some(word),
        (None, Some(_)) => None,
        (Some(_), None) => Some(word.with_bits(15, 12, 7)),
        (Some(own), Some((negated, file, n))) => {
            let n = n.map_or(zero(isa, file) as u64, u64::from);
            (own == file && n < 8).then(|| word.with_bits(15, 12, n | u64::from(negated) << 3))
        }
    }
}

/// Bits 125:105. The flags of the operand cache that the text can show are those of the text, unless the form uses the bits for something else, or bit 109
/// says that they are none.
fn schedule(form: &FormData, c: &Candidate, scanned: &Scanned, control: Control, word: Word) -> Result<Word, Misfit> {
    let mut bits = control.apply(Word(0)).0;
    if control.yield_ || c.owned & control::SHOWN_REUSE_MASK != 0 {
        bits = bits & !control::SHOWN_REUSE_MASK | word.0 & c.owned & control::SHOWN_REUSE_MASK;
    }
    if scanned.reuse != 0 {
        for (n, &operand) in c.operands.iter().enumerate() {
            if scanned.reuse >> n & 1 == 1 {
                let flags = form.flags_of(operand);
                if flags == 0 || !control.yield_ {
                    return Err(Misfit::Reuse(n));
                }
                bits |= 1 << flags.trailing_zeros();
            }
        }
    }
    Ok(Word(word.0 & !form.flags() & !control::MASK | bits))
}

/// Whether `nvdisasm` writes `inst` as the text that was scanned, blanks aside, and aside from operands that it leaves out.
pub(super) fn prints_as(isa: &Isa, c: &Candidate, inst: Inst, scanned: &Scanned, pc: u64, buffer: &mut String) -> bool {
    buffer.clear();
    if isa.write_text(inst, pc, buffer, None).is_err() {
        return false;
    }
    let written = buffer.bytes().filter(|b| *b != b' ');
    if written.clone().eq(scanned.plain.bytes()) {
        return true;
    }
    c.spelled_out && written.eq(without_elided(isa, c, inst, scanned).bytes())
}

/// The scanned text without the operands that the table says are left out at the value they have.
fn without_elided(isa: &Isa, c: &Candidate, inst: Inst, scanned: &Scanned) -> String {
    let start = scanned.operands_start;
    let mut out = scanned.plain[..start].to_owned();
    let mut from = start;
    for (n, &(_, end, _)) in scanned.operands.iter().enumerate() {
        let elided = isa
            .operand(inst, usize::from(c.operands[n]))
            .is_some_and(|v| v.is_elided());
        if !elided {
            if out.len() > start {
                out.push(',');
            }
            out.push_str(&scanned.plain[from..end]);
        }
        from = end + 1;
    }
    out
}
