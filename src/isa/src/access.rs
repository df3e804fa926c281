//! Which registers an instruction touches.

use crate::field::{Dir, OperandIx, RegFile};
use crate::semantics::Implicit;
use crate::tables::{FormData, Register};
use crate::{Inst, Isa};

/// One register operand of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Access {
    /// Index into the form's fields; `None` for a register that no field names (`semantics.tsv`).
    pub field: Option<u8>,
    /// Register file.
    pub file: RegFile,
    /// What is done with it; `None` if it is only named.
    pub dir: Dir,
    /// The first register.
    pub reg: u8,
    /// Consecutive registers: 32-bit ones, or predicates. 0 if it is only named.
    pub width: u8,
    /// The operand.
    pub operand: OperandIx,
    /// Whether the text shows it.
    pub printed: bool,
    /// `RZ`, `URZ`, `PT` or `UPT`: reads as a constant, ignores writes.
    pub is_zero: bool,
}

impl Access {
    /// What the number of the first register has to be a multiple of: of its width in registers, three counting as four, and more than four as
    /// four. So it is in every distinct word of compilers that was looked at (2.4 million tuples of all targets).
    pub fn alignment(&self) -> u8 {
        match self.file {
            RegFile::R | RegFile::UR => self.width.clamp(1, 4).next_power_of_two(),
            _ => 1,
        }
    }

    /// It names a tuple that begins where the hardware can have none.
    pub fn is_misaligned(&self) -> bool {
        !self.is_zero && !self.reg.is_multiple_of(self.alignment())
    }
}

/// Iterates over the accesses of one instruction.
struct Accesses<'a> {
    isa: &'a Isa,
    inst: Inst,
    registers: &'a [Register],
    hidden: u8,
    implicit: &'a [Implicit],
    /// Next register of the first implicit range.
    at: u8,
}

impl Isa {
    /// Registers that the instruction names or touches: the guard, then fields in operand order, hidden ones, and last the implicit
    /// ones of `semantics.tsv`, one register at a time.
    pub fn accesses(&self, i: Inst) -> impl Iterator<Item = Access> + '_ {
        let form = self.data(i.form);
        let implicit: &[Implicit] = match form {
            Some(_) => &self.semantics(i).implicit,
            None => &[],
        };
        Accesses {
            isa: self,
            inst: i,
            registers: form.map_or(&[], |f: &FormData| &f.registers),
            hidden: 0,
            implicit,
            at: implicit.first().map_or(0, |r| r.first),
        }
    }

    /// The access of one field, if it is a register that plays a part in this word.
    pub fn access(&self, i: Inst, field: usize) -> Option<Access> {
        let f = self.data(i.form)?.fields.get(field)?;
        let file = f.kind.file()?;
        let printed = f.always_shown
            || match f.operand {
                OperandIx::Guard => true,
                OperandIx::Hidden(_) => false,
                OperandIx::Printed(n) => {
                    let view = self.operand(i, usize::from(n))?;
                    let shown = view.data().1.has(f.hole);
                    if f.printed_only && !shown {
                        return None;
                    }
                    shown && !view.is_elided()
                }
            };
        let (dir, width) = f.access_in(i.word);
        let reg = f.get(i.word) as u8;
        let is_zero = self.is_zero(file, reg);
        Some(Access {
            field: Some(field as u8),
            file,
            dir,
            reg,
            width: if dir == Dir::None { 0 } else { width },
            operand: f.operand,
            printed: printed && !(f.operand == OperandIx::Guard && is_zero && i.word.bits(15, 15) == 0),
            is_zero,
        })
    }
}

impl Iterator for Accesses<'_> {
    type Item = Access;

    fn next(&mut self) -> Option<Access> {
        while let Some((r, rest)) = self.registers.split_first() {
            self.registers = rest;
            if let OperandIx::Hidden(n) = r.operand {
                self.hidden = n + 1;
            }
            if !r.is_fixed {
                match self.isa.access(self.inst, usize::from(r.field)) {
                    Some(access) => return Some(access),
                    None => continue,
                }
            }
            let word = self.inst.word;
            let reg = r.get(word);
            let is_zero = self.isa.is_zero(r.file, reg);
            let silent = r.operand == OperandIx::Guard && is_zero && word.bits(15, 15) == 0;
            return Some(Access {
                field: Some(r.field),
                file: r.file,
                dir: r.dir,
                reg,
                width: r.width,
                operand: r.operand,
                printed: r.printed && !silent,
                is_zero,
            });
        }
        let (range, rest) = self.implicit.split_first()?;
        let access = Access {
            field: None,
            file: range.file,
            dir: range.dir,
            reg: self.at,
            width: 1,
            operand: OperandIx::Hidden(self.hidden),
            printed: false,
            is_zero: false,
        };
        self.hidden = self.hidden.saturating_add(1);
        if self.at >= range.last {
            self.implicit = rest;
            self.at = rest.first().map_or(0, |r| r.first);
        } else {
            self.at += 1;
        }
        Some(access)
    }
}
