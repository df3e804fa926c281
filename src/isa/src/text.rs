//! `nvdisasm`'s text of one instruction.

use std::fmt::{self, Write};

use crate::field::{Field, FieldKind, OperandIx, RegFile};
use crate::float::Float;
use crate::operand::OperandView;
use crate::shape::{HOLE_L, HOLE_R, HOLE_X, Part};
use crate::tables::FormData;
use crate::{Inst, Isa, Word};

/// Gives code labels names: the byte offset in the section to the label, without decoration.
pub type Labels<'a> = &'a dyn Fn(u64) -> Option<&'a str>;

impl Isa {
    /// Writes the instruction as `nvdisasm -ndf` does, without the final ` ;`. `pc` is its byte offset in the section. Branch targets
    /// are absolute (`0x1230`), or `` `(.L_x_0) `` where `labels` knows one. An opaque word is `.opaque 0x` and 32 digits.
    pub fn write_text(&self, i: Inst, pc: u64, out: &mut dyn Write, labels: Option<Labels<'_>>) -> fmt::Result {
        let Some(form) = self.data(i.form) else {
            return write!(out, ".opaque 0x{:032x}", i.word);
        };
        self.write_guard(i, out)?;
        out.write_str(form.mnemonic)?;
        self.write_modifiers(form, i, out)?;
        let mut printed = 0;
        let mut special = false;
        for n in 0..form.operands.len() {
            let Some(view) = self.operand(i, n).filter(|v| !v.is_elided()) else {
                continue;
            };
            out.write_str(match (printed, form.space, special) {
                (0, ..) | (_, true, _) => " ",
                (_, false, false) => ", ",
                (_, false, true) => " , ",
            })?;
            printed += 1;
            let writer = OperandWriter {
                isa: self,
                word: i.word,
                pc,
                labels,
                reuse: is_reused(form, i.word, n),
            };
            special = writer.write(view, out)?;
        }
        Ok(())
    }

    fn write_guard(&self, i: Inst, out: &mut dyn Write) -> fmt::Result {
        let Some((file, reg, negated)) = self.guard(i) else {
            return Ok(());
        };
        if reg == 7 && !negated {
            return Ok(());
        }
        out.write_str(if negated { "@!" } else { "@" })?;
        self.write_register(file, reg, out)?;
        out.write_char(' ')
    }

    fn write_modifiers(&self, form: &FormData, i: Inst, out: &mut dyn Write) -> fmt::Result {
        let alias = form.aliases.iter().map(|&a| &self.tables.aliases[usize::from(a)]);
        let alias = alias.into_iter().find(|a| a.holds(self, i));
        let (drop, add) = alias.map_or((&[][..], &[][..]), |a| (&a.drop[..], &a.add[..]));
        for token in add {
            write!(out, ".{token}")?;
        }
        for slot in 0..form.modifiers.len() {
            let text = self.slot_text(form, i.word, slot);
            if text.is_empty() {
                continue;
            }
            if drop.is_empty() {
                write!(out, ".{text}")?;
                continue;
            }
            for token in text.split('.').filter(|t| !drop.contains(t)) {
                write!(out, ".{token}")?;
            }
        }
        Ok(())
    }

    /// Writes a register's name: `R12`, `RZ`, `PT`, `URZ`.
    pub fn write_register(&self, file: RegFile, reg: u8, out: &mut dyn Write) -> fmt::Result {
        out.write_str(file.name())?;
        match file {
            _ if !self.is_zero(file, reg) => write!(out, "{reg}"),
            RegFile::P | RegFile::UP => out.write_char('T'),
            _ => out.write_char('Z'),
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

/// Whether the operand-cache flag of operand `n` is set; bit 109 says whether those bits are flags.
fn is_reused(form: &FormData, w: Word, n: usize) -> bool {
    let flag = |&(bit, operand): &(u8, u8)| usize::from(operand) == n && w.0 >> bit & 1 == 1;
    !form.reuse.is_empty() && w.0 >> 109 & 1 == 1 && form.reuse.iter().any(flag)
}

struct OperandWriter<'a, 'l> {
    isa: &'a Isa,
    word: Word,
    pc: u64,
    labels: Option<Labels<'l>>,
    reuse: bool,
}

impl OperandWriter<'_, '_> {
    /// Writes one operand; says whether a comma after it is set off by a space.
    fn write(&self, view: OperandView<'_>, out: &mut dyn Write) -> Result<bool, fmt::Error> {
        let (operand, shape, fields) = view.data();
        let field = |hole| operand.field(hole).map(|n| &fields[n]);
        let value = |hole| field(hole).map_or(0, |f| f.get(self.word));
        let parts = &shape.parts;
        let mut special = false;
        let mut skip_plus = false;
        let mut at = 0;
        while let Some(&part) = parts.get(at) {
            at += 1;
            special = false;
            match part {
                Part::Text(t) => out.write_str(t)?,
                Part::Close => out.write_char(']')?,
                Part::Plus => {
                    if !std::mem::take(&mut skip_plus) {
                        out.write_char('+')?;
                    }
                }
                Part::Hole(text, kind, ordinal) => match field((kind, ordinal)) {
                    None => out.write_str(text)?,
                    Some(f) if kind == HOLE_L => self.write_label(f, out)?,
                    Some(f) => special = self.write_field(f, out)?,
                },
                Part::Open(len) => {
                    out.write_char('[')?;
                    // `[RZ+0x0]` is written `[RZ]`, `[R2+0x0]` `[R2]`, `[RZ+0x8]` `[0x8]`.
                    let close = at + usize::from(len) - 1;
                    let group = &parts[at..close];
                    let drop_last = match group {
                        [.., Part::Plus, Part::Hole(_, HOLE_X, n)] => value((HOLE_X, *n)) == 0,
                        _ => false,
                    };
                    let terms = 1 + group.iter().filter(|p| **p == Part::Plus).count() - usize::from(drop_last);
                    let drop_first = match group {
                        [Part::Hole(_, HOLE_R, n), Part::Plus, ..] => terms > 1 && value((HOLE_R, *n)) == 255,
                        _ => false,
                    };
                    let end = if drop_last { close - 2 } else { close };
                    let begin = if drop_first { at + 2 } else { at };
                    for part in &parts[begin..end] {
                        match *part {
                            Part::Hole(text, kind, ordinal) => match field((kind, ordinal)) {
                                Some(f) => {
                                    self.write_field(f, out)?;
                                }
                                None => out.write_str(text)?,
                            },
                            Part::Text(t) => out.write_str(t)?,
                            Part::Plus => out.write_char('+')?,
                            Part::Open(_) | Part::Close => {}
                        }
                    }
                    at = close;
                }
            }
        }
        Ok(special)
    }

    fn write_label(&self, f: &Field, out: &mut dyn Write) -> fmt::Result {
        let target = target(f, self.word, self.pc);
        match self.labels.and_then(|l| l(target)) {
            Some(label) => write!(out, "`({label})"),
            None => write_integer(target as i64, out),
        }
    }

    /// Writes a field's value; says whether it is a float that a space sets off.
    fn write_field(&self, f: &Field, out: &mut dyn Write) -> Result<bool, fmt::Error> {
        let v = f.get(self.word);
        match f.kind_in(self.word) {
            FieldKind::Reg(file) => {
                self.isa.write_register(file, v as u8, out)?;
                if self.reuse {
                    out.write_str(".reuse")?;
                }
            }
            FieldKind::Scoreboard => write!(out, "SB{v}")?,
            FieldKind::Int | FieldKind::Rel => write_integer(v, out)?,
            kind => {
                let float = Float::new(kind, v as u64);
                float.write(out)?;
                return Ok(float.is_special());
            }
        }
        Ok(false)
    }
}

fn write_integer(v: i64, out: &mut dyn Write) -> fmt::Result {
    write!(out, "{}{:#x}", if v < 0 { "-" } else { "" }, v.unsigned_abs())
}
