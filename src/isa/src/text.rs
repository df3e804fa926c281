//! `nvdisasm`'s text of one instruction.

use std::fmt;

use crate::field::{Field, FieldKind, OperandIx, RegFile};
use crate::float::Float;
use crate::line::Line;
use crate::operand::OperandView;
use crate::shape::{HOLE_L, HOLE_R, HOLE_UR, HOLE_X, Mark, Part, TERMS};
use crate::tables::{FormData, OperandData};
use crate::{Inst, Isa, Word};

/// Gives code labels names: the byte offset in the section to the label, without decoration.
pub type Labels<'a> = &'a dyn Fn(u64) -> Option<&'a str>;

impl Isa {
    /// Writes the instruction as `nvdisasm -ndf` does, without the final ` ;`. `pc` is its byte offset in the section. Branch targets
    /// are absolute (`0x1230`), or `` `(.L_x_0) `` where `labels` knows one. An opaque word is `.opaque 0x` and 32 digits.
    pub fn write_text(&self, i: Inst, pc: u64, out: &mut dyn fmt::Write, labels: Option<Labels<'_>>) -> fmt::Result {
        let Some(form) = self.data(i.form) else {
            return write!(out, ".opaque 0x{:032x}", i.word);
        };
        let mut line = Line::new(out);
        self.write_guard(i, &mut line)?;
        line.text(form.mnemonic)?;
        self.write_modifiers(form, i, &mut line)?;
        let mut printed = 0;
        let mut special = false;
        for n in 0..form.operands.len() {
            let Some(view) = self.operand(i, n).filter(|v| !v.is_elided()) else {
                continue;
            };
            line.text(match (printed, special) {
                (0, _) => " ",
                (_, false) => ", ",
                (_, true) => " , ",
            })?;
            printed += 1;
            let mut writer = OperandWriter {
                isa: self,
                word: i.word,
                pc,
                labels,
                reuse: is_reused(form, i.word, n),
                pending: false,
            };
            special = writer.write(view, &mut line)?;
        }
        line.flush()
    }

    fn write_guard(&self, i: Inst, line: &mut Line<'_>) -> fmt::Result {
        let Some((file, reg, negated)) = self.guard(i) else {
            return Ok(());
        };
        if reg == 7 && !negated {
            return Ok(());
        }
        line.text(if negated { "@!" } else { "@" })?;
        self.put_register(file, reg, line)?;
        line.text(" ")
    }

    fn write_modifiers(&self, form: &FormData, i: Inst, line: &mut Line<'_>) -> fmt::Result {
        let mut aliases = form.aliases.iter().map(|&a| &self.tables.aliases[usize::from(a)]);
        let alias = aliases.find(|a| a.holds(self, i));
        let (drop, add) = alias.map_or((&[][..], &[][..]), |a| (&a.drop[..], &a.add[..]));
        let mut token = |t: &str| {
            line.text(".")?;
            line.text(t)
        };
        add.iter().try_for_each(|t| token(t))?;
        for slot in 0..form.modifiers.len() {
            let text = self.slot_text(form, i.word, slot);
            if drop.is_empty() {
                if !text.is_empty() {
                    token(text)?;
                }
                continue;
            }
            let mut kept = text.split('.').filter(|t| !t.is_empty() && !drop.contains(t));
            kept.try_for_each(&mut token)?;
        }
        Ok(())
    }

    /// Writes a register's name: `R12`, `RZ`, `PT`, `URZ`.
    pub fn write_register(&self, file: RegFile, reg: u8, out: &mut dyn fmt::Write) -> fmt::Result {
        let mut line = Line::new(out);
        self.put_register(file, reg, &mut line)?;
        line.flush()
    }

    fn put_register(&self, file: RegFile, reg: u8, line: &mut Line<'_>) -> fmt::Result {
        line.text(file.name())?;
        match file {
            _ if !self.is_zero(file, reg) => line.decimal(u64::from(reg)),
            RegFile::P | RegFile::UP => line.text("T"),
            _ => line.text("Z"),
        }
    }

    /// Where a branch goes: the absolute byte offset in the section that a `REL` field names, `pc` being the instruction's own.
    pub fn branch_target(&self, i: Inst, pc: u64) -> Option<u64> {
        let form = self.data(i.form)?;
        let active = |f: &&Field| match f.operand {
            OperandIx::Printed(n) => self.shape(i, usize::from(n)).is_some_and(|(_, s)| s.has(f.hole)),
            _ => true,
        };
        let field = form.fields.iter().filter(|f| f.kind == FieldKind::Rel).find(active)?;
        Some(target(field, i.word, pc))
    }
}

fn target(field: &Field, w: Word, pc: u64) -> u64 {
    pc.wrapping_add(16).wrapping_add(field.get(w) as u64)
}

/// Whether the operand-cache flag of operand `n` is set; bit 109 says whether the scheduling bits are flags.
fn is_reused(form: &FormData, w: Word, n: usize) -> bool {
    let holds = |bit: u8| w.0 >> bit & 1 == 1 && (bit < 105 || w.0 >> 109 & 1 == 1);
    let mut flags = form.reuse.iter().filter(|&&(_, operand)| usize::from(operand) == n);
    flags.any(|&(bit, _)| holds(bit))
}

struct OperandWriter<'a, 'l> {
    isa: &'a Isa,
    word: Word,
    pc: u64,
    labels: Option<Labels<'l>>,
    /// The operand's register is to be marked.
    reuse: bool,
    /// The register is written, its mark is not: it stands behind a `|`.
    pending: bool,
}

impl OperandWriter<'_, '_> {
    /// Writes one operand; says whether a comma after it is set off by a space.
    fn write(&mut self, view: OperandView<'_>, line: &mut Line<'_>) -> Result<bool, fmt::Error> {
        let (operand, shape, fields) = view.data();
        let word = self.word;
        let parts = &shape.parts;
        let mut special = false;
        let mut at = 0;
        while let Some(&part) = parts.get(at) {
            if let [Part::Text(" "), Part::Hole(_, HOLE_X, n)] = parts[at..] {
                let field = operand.field((HOLE_X, n)).map(|n| &fields[n]);
                if field.is_some_and(|f| f.elides(f.get(word))) {
                    break; // `R2 0x0` without its offset
                }
            }
            if std::mem::take(&mut special) {
                line.text(" ")?; // `-QNAN .H1`
            }
            match part {
                Part::Open(len, marks) => {
                    let close = at + usize::from(len);
                    self.write_address(&parts[at + 1..close], marks, operand, fields, line)?;
                    at = close;
                    self.write_part(Part::Close, operand, fields, line)?;
                }
                _ => special = self.write_part(part, operand, fields, line)?,
            }
            at += 1;
        }
        self.mark(line)?;
        Ok(special)
    }

    /// Writes `[` and the terms of an address that are not left out.
    fn write_address(
        &mut self,
        group: &[Part],
        marks: [Mark; TERMS],
        operand: &OperandData,
        fields: &[Field],
        line: &mut Line<'_>,
    ) -> fmt::Result {
        let is_zero = |kind: u8, n: u8| {
            let value = operand.field((kind, n)).map_or(0, |n| fields[n].get(self.word));
            match kind {
                HOLE_R => self.isa.is_zero(RegFile::R, value as u8),
                HOLE_UR => self.isa.is_zero(RegFile::UR, value as u8),
                _ => value == 0,
            }
        };
        let shown = shown_terms(group, marks, is_zero);
        line.text("[")?;
        let mut first = true;
        for (term, _) in group.split(|p| *p == Part::Plus).zip(shown).filter(|(_, shown)| *shown) {
            if !std::mem::take(&mut first) {
                self.write_part(Part::Plus, operand, fields, line)?;
            }
            for &part in term {
                self.write_part(part, operand, fields, line)?;
            }
        }
        Ok(())
    }

    fn mark(&mut self, line: &mut Line<'_>) -> fmt::Result {
        if std::mem::take(&mut self.pending) {
            line.text(".reuse")?;
        }
        Ok(())
    }

    fn write_part(
        &mut self,
        part: Part,
        operand: &OperandData,
        fields: &[Field],
        line: &mut Line<'_>,
    ) -> Result<bool, fmt::Error> {
        match part {
            Part::Text(t) => match t.strip_prefix('|').filter(|_| self.pending) {
                Some(rest) => {
                    line.text("|")?;
                    self.mark(line)?;
                    line.text(rest)?;
                }
                None => {
                    self.mark(line)?;
                    line.text(t)?;
                }
            },
            Part::Hole(text, kind, ordinal) => {
                self.mark(line)?;
                match operand.field((kind, ordinal)) {
                    None => line.text(text)?,
                    Some(n) if kind == HOLE_L => self.write_label(&fields[n], line)?,
                    Some(n) => return self.write_field(&fields[n], line),
                }
            }
            Part::Plus | Part::Close => {
                self.mark(line)?;
                line.text(if part == Part::Plus { "+" } else { "]" })?;
            }
            Part::Open(..) => {}
        }
        Ok(false)
    }

    fn write_label(&self, f: &Field, line: &mut Line<'_>) -> fmt::Result {
        let target = target(f, self.word, self.pc);
        match self.labels.and_then(|l| l(target)) {
            Some(label) => {
                line.text("`(")?;
                line.text(label)?;
                line.text(")")
            }
            None => line.hex(target as i64),
        }
    }

    /// Writes a field's value; says whether it is a float that a space sets off.
    fn write_field(&mut self, f: &Field, line: &mut Line<'_>) -> Result<bool, fmt::Error> {
        let v = f.get(self.word);
        match f.kind_in(self.word) {
            FieldKind::Reg(file) => {
                // The second of a pair that is named by its first can be past the last one.
                self.isa.put_register(file, v.clamp(0, 255) as u8, line)?;
                self.pending = std::mem::take(&mut self.reuse);
            }
            FieldKind::Scoreboard => {
                line.text("SB")?;
                line.decimal(v as u64)?;
            }
            FieldKind::Int if f.bits.width() == 64 => line.unsigned_hex(v as u64)?,
            FieldKind::Int | FieldKind::Rel => line.hex(v)?,
            kind => {
                let float = Float::new(kind, v as u64, self.isa.target().names_signaling_nans());
                float.write(line)?;
                return Ok(float.is_special());
            }
        }
        Ok(false)
    }
}

/// Which terms of an address are written: `[RZ+0x0]` is `[RZ]`, `[R2+0x0]` `[R2]`, `[RZ+0x8]` `[0x8]`, but `a[R#?+X#]` at zero is `a[0x0]`.
fn shown_terms(group: &[Part], marks: [Mark; TERMS], is_zero: impl Fn(u8, u8) -> bool) -> [bool; TERMS] {
    let mut shown = [false; TERMS];
    let mut zero = [None; TERMS]; // the kind of a term that is zero
    for (n, term) in group.split(|p| *p == Part::Plus).enumerate().take(TERMS) {
        shown[n] = true;
        zero[n] = match term.first() {
            Some(&Part::Hole(_, kind, ordinal)) if is_zero(kind, ordinal) => Some(kind),
            _ => None,
        };
    }
    let mut leave_out = |n: usize| {
        if shown.iter().filter(|s| **s).count() > 1 {
            shown[n] = false;
        }
    };
    let marked = |n: usize, mark: Mark| zero[n].is_some() && marks[n] == mark;
    (0..TERMS).filter(|&n| marked(n, Mark::First)).for_each(&mut leave_out);
    let usual = |&n: &usize| marked(n, Mark::Usual) && zero[n] != Some(HOLE_UR);
    (0..TERMS).rev().filter(usual).for_each(&mut leave_out);
    (0..TERMS).filter(|&n| marked(n, Mark::Last)).for_each(&mut leave_out);
    shown
}
