//! Edits that a pass asks for, and what applying them changed.

use std::collections::HashSet;

use isa::{FieldError, FormId, Inst, Isa, Word};

use crate::kernel::{Kernel, NONE, OpId, OpKind, ValueId};
use crate::layout::Layout;
use crate::layouts::Layouts;
use crate::pin::Pin;

/// One change to a kernel. Operation ids are those of the kernel that the list is applied to, before any of its edits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edit {
    /// Gives a field of the word another value: an immediate, a constant address, an offset. Not a register: see `ReplaceOperand`.
    SetField {
        /// The instruction.
        op: OpId,
        /// Position in the form's fields.
        field: usize,
        /// The new value, as `isa::Field::get` would give it.
        value: i64,
    },
    /// Takes modifiers away and adds others; the other modifiers stay.
    EditModifiers {
        /// The instruction.
        op: OpId,
        /// Tokens to take away.
        drop: Vec<String>,
        /// Tokens to add.
        add: Vec<String>,
    },
    /// Lets an operand read another value, which must be in a register of the same file.
    ReplaceOperand {
        /// The instruction.
        op: OpId,
        /// Position in [`crate::Op::operands`].
        operand: usize,
        /// What it reads from now on.
        value: ValueId,
    },
    /// Puts a new instruction before another one.
    Insert {
        /// The operation that it goes before.
        before: OpId,
        /// Its word; the registers in it are the pins of its results.
        inst: Inst,
        /// What it reads, in the order of its accesses. The pins must be the registers in its word.
        operands: Vec<ValueId>,
    },
    /// Takes an instruction out. Nothing may read its results any more.
    Erase {
        /// The instruction.
        op: OpId,
    },
}

/// The edits of one pass on one kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EditList {
    /// In any order; an operation's own edits are applied in the order of the list.
    pub edits: Vec<Edit>,
}

/// A word that an edit list changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The instruction, by its id before the edits.
    pub op: OpId,
    /// Byte offset in the code before the edits.
    pub offset: u64,
    /// The word before.
    pub old: Word,
    /// The word after.
    pub new: Word,
    /// The bits that the edits were allowed to change.
    pub mask: u128,
}

/// What applying an edit list changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Changed words, by operation.
    pub words: Vec<Change>,
    /// Instructions put in.
    pub inserted: usize,
    /// Instructions taken out.
    pub erased: usize,
}

/// Why an edit list cannot be applied. The kernel is then as it was.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// isa refuses.
    #[error("{kernel} at {offset:#x}: {source}")]
    Field {
        /// Section name.
        kernel: String,
        /// Byte offset.
        offset: u64,
        /// Why.
        source: FieldError,
    },
    /// The edit makes no sense for its operation.
    #[error("{kernel} at {offset:#x}: {reason}")]
    Refused {
        /// Section name.
        kernel: String,
        /// Byte offset.
        offset: u64,
        /// Why.
        reason: String,
    },
}

impl Kernel {
    /// Applies a list of edits, all or none.
    pub fn apply(&mut self, isa: &'static Isa, list: &EditList) -> Result<Changes, EditError> {
        let mut next = self.clone();
        let mut layouts = Layouts::continued(isa, self.target, std::mem::take(&mut next.layouts));
        let mut touched: Vec<(OpId, u128)> = Vec::new();
        let mut inserts = Vec::new();
        let mut erased = HashSet::new();
        for edit in &list.edits {
            let op = match edit {
                Edit::SetField { op, .. }
                | Edit::EditModifiers { op, .. }
                | Edit::ReplaceOperand { op, .. }
                | Edit::Erase { op } => *op,
                Edit::Insert { before, .. } => *before,
            };
            if op.index() >= self.kinds.len() {
                return Err(self.refuse(OpId(0), format!("there is no operation {}", op.0)));
            }
            let at = op.index();
            if let Edit::Insert { inst, operands, .. } = edit {
                inserts.push((op, self.check_insert(&mut layouts, op, *inst, operands)?));
                continue;
            }
            if self.kinds[at] != OpKind::Inst {
                return Err(self.refuse(op, "only an instruction that the tables know can be edited".into()));
            }
            let form = layouts.list[next.op_layout[at] as usize].form;
            let inst = Inst {
                word: next.words[at],
                form,
            };
            let (new, mask) = match edit {
                Edit::SetField { field, value, .. } => self.set_field(isa, op, inst, *field, *value)?,
                Edit::EditModifiers { drop, add, .. } => {
                    let drop: Vec<&str> = drop.iter().map(String::as_str).collect();
                    let add: Vec<&str> = add.iter().map(String::as_str).collect();
                    let new = isa
                        .edit_modifiers(inst, &drop, &add)
                        .map_err(|e| self.field_error(op, e))?;
                    (new, inst.word.0 ^ new.word.0)
                }
                Edit::ReplaceOperand { operand, value, .. } => {
                    let layout = layouts.list[next.op_layout[at] as usize].clone();
                    next.replace_operand(&layout, op, *operand, *value)
                        .map_err(|reason| self.refuse(op, reason))?
                }
                Edit::Erase { .. } => {
                    if self.labels[at] == crate::kernel::SUCCESSOR || self.op(op).is_terminator() {
                        return Err(self.refuse(op, "a terminator cannot be taken out".into()));
                    }
                    erased.insert(op.0);
                    continue;
                }
                Edit::Insert { .. } => continue,
            };
            if (new.word.0 ^ inst.word.0) & !mask != 0 {
                return Err(self.refuse(op, "the edit moves bits that it does not name".into()));
            }
            let layout = layouts.get(new.word);
            let same_operands = layout != NONE && {
                let (old, new_layout) = (
                    &layouts.list[next.op_layout[at] as usize],
                    &layouts.list[layout as usize],
                );
                old.read_count() == new_layout.read_count()
                    && written(old, inst.word) == written(new_layout, new.word)
                    && old.own_operands(inst.word) == new_layout.own_operands(new.word)
            };
            if !same_operands {
                return Err(self.refuse(
                    op,
                    "the edited word has other operands: insert a new instruction instead".into(),
                ));
            }
            next.words[at] = new.word;
            next.op_layout[at] = layout;
            touched.push((op, mask));
        }
        let changes = self.changes(&next, touched, inserts.len(), erased.len());
        if !inserts.is_empty() || !erased.is_empty() {
            next = next
                .rebuilt(&layouts, inserts, &erased)
                .map_err(|(op, reason)| self.refuse(op, reason))?;
        }
        next.layouts = layouts.into_list();
        *self = next;
        Ok(changes)
    }

    fn refuse(&self, op: OpId, reason: String) -> EditError {
        EditError::Refused {
            kernel: self.name.clone(),
            offset: self.op(op).offset(),
            reason,
        }
    }

    fn field_error(&self, op: OpId, source: FieldError) -> EditError {
        EditError::Field {
            kernel: self.name.clone(),
            offset: self.op(op).offset(),
            source,
        }
    }

    fn set_field(&self, isa: &Isa, op: OpId, inst: Inst, field: usize, value: i64) -> Result<(Inst, u128), EditError> {
        let form = isa.form(inst.form);
        let Some(known) = form.as_ref().and_then(|f| f.fields().get(field)) else {
            return Err(self.refuse(op, format!("the form has no field {field}")));
        };
        if known.kind.file().is_some() {
            return Err(self.refuse(
                op,
                format!("field {} is a register: replace the operand instead", known.name),
            ));
        }
        if self.labels[op.index()] != NONE && known.kind == isa::FieldKind::Rel {
            return Err(self.refuse(op, "a code label follows its block and cannot be set".into()));
        }
        let mask = known.mask();
        let new = isa.set_field(inst, field, value).map_err(|e| self.field_error(op, e))?;
        Ok((new, mask))
    }

    /// Sets the operand and its register in the word; gives the new word and the bits of its field.
    fn replace_operand(
        &mut self,
        layout: &Layout,
        op: OpId,
        operand: usize,
        value: ValueId,
    ) -> Result<(Inst, u128), String> {
        let at = op.index();
        let word = self.words[at];
        if value.index() >= self.pins.len() {
            return Err(format!("there is no value {}", value.0));
        }
        let Some((slot, k)) = layout.read_slot(operand) else {
            return Err(format!("operand {operand} is not read by the instruction itself"));
        };
        if slot.writes() || slot.field.is_none() {
            return Err("the operand is tied to a result or implied".into());
        }
        let pin = self.pin(value);
        let number = slot.encode(pin).filter(|_| pin.file() == slot.file);
        let number = number.ok_or_else(|| format!("{pin} cannot be this operand"))?;
        self.operands[self.operand_start[at] as usize + operand] = value;
        // The word names the first register of a tuple.
        let new = match k {
            0 => slot
                .set(word, number)
                .ok_or_else(|| format!("{pin} cannot be encoded in this operand"))?,
            _ => word,
        };
        let inst = Inst {
            word: new,
            form: layout.form,
        };
        Ok((inst, slot.bits()))
    }

    fn check_insert(
        &self,
        layouts: &mut Layouts,
        op: OpId,
        inst: Inst,
        operands: &[ValueId],
    ) -> Result<New, EditError> {
        let layout = layouts.get(inst.word);
        let known = layouts
            .list
            .get(layout as usize)
            .filter(|l| inst.form != FormId::OPAQUE && l.form == inst.form);
        let Some(known) = known.cloned() else {
            return Err(self.refuse(op, "the new instruction is not of the form that it says".into()));
        };
        if known.flow != crate::layout::Flow::None || known.has_label {
            return Err(self.refuse(op, "an instruction that controls flow cannot be put in".into()));
        }
        let mut pins: Vec<Pin> = Vec::new();
        known.each_read(inst.word, |pin| pins.push(pin));
        known.each_merge(inst.word, |pin| pins.push(pin));
        let given = operands.iter().map(|v| self.pins.get(v.index()).copied());
        if !given.eq(pins.iter().map(|p| Some(*p))) {
            return Err(self.refuse(
                op,
                "the operands are not in the registers that the new instruction reads".into(),
            ));
        }
        Ok(New {
            inst,
            layout,
            operands: operands.to_vec(),
        })
    }

    fn changes(&self, next: &Kernel, mut touched: Vec<(OpId, u128)>, inserted: usize, erased: usize) -> Changes {
        touched.sort_by_key(|t| t.0);
        let mut changes = Changes {
            words: Vec::new(),
            inserted,
            erased,
        };
        let mut offset = 0u64;
        let mut from = 0;
        for (op, mask) in touched {
            if let Some(last) = changes.words.last_mut().filter(|c| c.op == op) {
                last.mask |= mask;
                continue;
            }
            let at = op.index();
            offset += self.kinds[from..at].iter().filter(|k| k.is_code()).count() as u64 * 16;
            from = at;
            changes.words.push(Change {
                op,
                offset,
                old: self.words[at],
                new: next.words[at],
                mask,
            });
        }
        changes
    }

    /// The kernel with instructions put in and taken out; ids change.
    fn rebuilt(
        &self,
        layouts: &Layouts,
        mut inserts: Vec<(OpId, New)>,
        erased: &HashSet<u32>,
    ) -> Result<Kernel, (OpId, String)> {
        inserts.sort_by_key(|i| i.0);
        let mut next = Kernel::empty(self.name.clone(), self.target);
        (next.tail, next.notes) = (self.tail.clone(), self.notes.clone());
        (next.arg_start, next.edge_start, next.edges) =
            (self.arg_start.clone(), self.edge_start.clone(), self.edges.clone());
        let mut renamed = vec![NONE; self.pins.len()];
        let mut inserts = inserts.into_iter().peekable();
        for b in 0..self.block_count() {
            for i in self.block_start[b]..self.block_start[b + 1] {
                while let Some((_, new)) = inserts.next_if(|(at, _)| at.0 == i) {
                    next.operands.extend(&new.operands);
                    next.pins
                        .extend(written(&layouts.list[new.layout as usize], new.inst.word));
                    next.finish_op(OpKind::Inst, new.inst.word, new.layout, NONE);
                }
                let at = i as usize;
                if erased.contains(&i) {
                    continue;
                }
                for v in self.result_start[at]..self.result_start[at + 1] {
                    renamed[v as usize] = next.pins.len() as u32;
                    next.pins.push(self.pins[v as usize]);
                }
                let operands = self.operand_start[at] as usize..self.operand_start[at + 1] as usize;
                next.operands.extend(&self.operands[operands]);
                next.finish_op(self.kinds[at], self.words[at], self.op_layout[at], self.labels[at]);
            }
            next.block_start.push(next.kinds.len() as u32);
        }
        for v in self.result_count()..self.pins.len() as u32 {
            renamed[v as usize] = next.pins.len() as u32;
            next.pins.push(self.pins[v as usize]);
        }
        next.edge_args = self.edge_args.clone();
        for value in next.operands.iter_mut().chain(&mut next.edge_args) {
            let new = renamed[value.index()];
            if new == NONE
                && let crate::kernel::Def::Result(op, _) = self.def(*value)
            {
                return Err((op, "its results are still read".into()));
            }
            *value = ValueId(new);
        }
        Ok(next)
    }
}

fn written(layout: &Layout, word: Word) -> Vec<Pin> {
    let mut pins = Vec::new();
    layout.each_write(word, |pin| pins.push(pin));
    pins
}

/// An instruction to put in.
struct New {
    inst: Inst,
    layout: u32,
    operands: Vec<ValueId>,
}
