//! An edit as a plugin asks for it, and as the engine knows it.

use ir::{BlockId, Edit, OpId, OpKind, Pin, ValueId};
use isa::{Control, FormId, Inst, Isa, Word};
use plugin::abi::{self, edit as kind, slice};
use serde::{Deserialize, Serialize};

use crate::capi::field_of;

/// No instruction has as many operands.
const MAX_OPERANDS: u32 = 256;

/// `SassEdit`, with everything that it points to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    kind: u32,
    pub op: u32,
    field: String,
    value: i64,
    drop: String,
    add: String,
    operand: u32,
    new_value: u32,
    /// Low and high half.
    word: (u64, u64),
    operands: Vec<u32>,
}

impl Asked {
    /// Copies an edit.
    ///
    /// # Safety
    /// Strings and operands are there as the header says.
    pub unsafe fn copy(edit: &abi::Edit) -> Result<Asked, String> {
        if edit.operand_count > MAX_OPERANDS {
            return Err(format!("an edit with {} operands", edit.operand_count));
        }
        // SAFETY: the caller's promise.
        let (field, drop, add) = unsafe { (edit.field.get(), edit.drop.get(), edit.add.get()) };
        let text = |text: Option<&str>| text.map(str::to_owned).ok_or("an edit with a name that is no UTF-8");
        Ok(Asked {
            kind: edit.kind,
            op: edit.op,
            field: text(field)?,
            value: edit.value,
            drop: text(drop)?,
            add: text(add)?,
            operand: edit.operand,
            new_value: edit.new_value,
            word: (edit.word.lo, edit.word.hi),
            // SAFETY: the caller's promise.
            operands: unsafe { slice(edit.operands, edit.operand_count as usize) }.to_vec(),
        })
    }

    /// The edit, if everything that it names is there. Whether it can be applied shows when it is.
    pub fn edit(&self, isa: &Isa, kernel: &ir::Kernel) -> Result<Edit, String> {
        self.named(isa, kernel)
            .map_err(|why| format!("an edit of operation {}: {why}", self.op))
    }

    fn named(&self, isa: &Isa, kernel: &ir::Kernel) -> Result<Edit, String> {
        if let Some(edit) = self.of_values(kernel)? {
            return Ok(edit);
        }
        let op = there(kernel, self.op)?;
        let known = kernel.op(op).inst().filter(|_| kernel.op(op).kind() == OpKind::Inst);
        let inst = match self.kind {
            kind::INSERT => Ok(None),
            _ => known.map(Some).ok_or("it is no instruction that the tables know"),
        }?;
        let operands = || self.operands.iter().map(|&value| ValueId(value)).collect();
        Ok(match (self.kind, inst) {
            (kind::FIELD, Some(inst)) => Edit::SetField {
                op,
                field: field_of(isa, inst, &self.field)?,
                value: self.value,
            },
            (kind::MODIFIERS, Some(_)) => Edit::EditModifiers {
                op,
                drop: tokens(&self.drop),
                add: tokens(&self.add),
            },
            (kind::OPERAND, Some(_)) if self.operand as usize >= kernel.op(op).operands().len() => {
                return Err(format!("it has no operand {}", self.operand));
            }
            (kind::OPERAND, Some(_)) => Edit::ReplaceOperand {
                op,
                operand: self.operand as usize,
                value: ValueId(self.new_value),
            },
            (kind::INSERT, _) => Edit::Insert {
                before: op,
                inst: self.inst(isa)?,
                operands: operands(),
            },
            (kind::REPLACE, _) => Edit::Replace {
                op,
                inst: self.inst(isa)?,
                operands: operands(),
            },
            (kind::CONTROL, _) => Edit::SetControl {
                op,
                control: Control::of(Word(
                    (self.value as u128) << isa::control::MASK.trailing_zeros() & isa::control::MASK,
                )),
            },
            (kind::ERASE, _) => Edit::Erase { op },
            (kind::MOVE, _) => Edit::Move {
                op,
                before: there(kernel, self.operand)?,
            },
            (other, _) => return Err(format!("there is no kind {other} of edits")),
        })
    }

    /// The edit, if it is one that names values and no operation.
    fn of_values(&self, kernel: &ir::Kernel) -> Result<Option<Edit>, String> {
        let pin = || Pin::from_bits(self.operand as u16).filter(|_| self.operand <= u32::from(u16::MAX));
        let pin = || pin().ok_or_else(|| format!("{:#x} is no register", self.operand));
        let value = |number: u32| match (number as usize) < kernel.values().len() {
            true => Ok(ValueId(number)),
            false => Err(format!("there is no value {number}")),
        };
        Ok(Some(match self.kind {
            kind::ARGUMENT => Edit::Argument {
                block: BlockId(self.op),
                pin: pin()?,
                passed: self.operands.iter().map(|&value| ValueId(value)).collect(),
            },
            kind::VALUE => Edit::ReplaceValue {
                value: value(self.operand)?,
                by: ValueId(self.new_value),
            },
            kind::PIN => Edit::SetPin {
                value: value(self.new_value)?,
                pin: pin()?,
            },
            _ => return Ok(None),
        }))
    }

    fn inst(&self, isa: &Isa) -> Result<Inst, String> {
        let inst = isa.decode(Word(u128::from(self.word.1) << 64 | u128::from(self.word.0)));
        match inst.form {
            FormId::OPAQUE => Err("the new word is in no table".to_owned()),
            _ => Ok(inst),
        }
    }
}

fn there(kernel: &ir::Kernel, op: u32) -> Result<OpId, String> {
    match (op as usize) < kernel.op_count() {
        true => Ok(OpId(op)),
        false => Err(format!("the kernel has {} operations and no {op}", kernel.op_count())),
    }
}

fn tokens(list: &str) -> Vec<String> {
    crate::capi::tokens(list).into_iter().map(str::to_owned).collect()
}
