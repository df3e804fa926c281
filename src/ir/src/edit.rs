//! Edits that a pass asks for, and what applying them changed.

use std::collections::{HashMap, HashSet};

use isa::{Control, FieldError, FormId, Inst, Isa, Word};

use crate::collective::same_collectives;
use crate::kernel::{BlockId, Kernel, NONE, OpId, OpKind, ValueId};
use crate::layout::{Flow, Layout};
use crate::layouts::Layouts;
use crate::made::Made;
use crate::pin::Pin;
use crate::rebuild::{Changed, New, Put, Rebuild};

/// One change to a kernel. Operation and value ids are those of the kernel that the list is applied to, before any of its edits. The values
/// that the list makes are [`ValueId::made`]: results of what it puts in and block arguments, counted in the order of the list.
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
    /// Gives an instruction other scheduling bits.
    SetControl {
        /// The instruction.
        op: OpId,
        /// All of its scheduling bits.
        control: Control,
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
    /// Puts another instruction in the place of one. Its results are those of the old one, in order, in the registers that the new word
    /// names; whatever reads them must be able to read them there.
    Replace {
        /// The instruction.
        op: OpId,
        /// The new word.
        inst: Inst,
        /// What it reads, in the order of its accesses. The pins, after the edits, must be the registers in its word.
        operands: Vec<ValueId>,
    },
    /// Takes an instruction from its place and puts it before another operation, which is not moved itself.
    Move {
        /// The instruction.
        op: OpId,
        /// The operation that it goes before.
        before: OpId,
    },
    /// Takes an instruction out. Nothing may read its results any more.
    Erase {
        /// The instruction.
        op: OpId,
    },
    /// Gives a block one more argument.
    Argument {
        /// The block.
        block: BlockId,
        /// Its register.
        pin: Pin,
        /// What is passed to it, which is in that register: a value for each edge that leads to the block, in the order of the blocks and of
        /// their successors.
        passed: Vec<ValueId>,
    },
    /// Lets everything that reads a value read another one instead, which is in the same register after the edits.
    ReplaceValue {
        /// The value that is read.
        value: ValueId,
        /// The one that is read from now on. Nothing replaces it.
        by: ValueId,
    },
    /// Puts a value into another register of its file. Words follow; so must all that has to be in one register with it, or beside it.
    SetPin {
        /// The value.
        value: ValueId,
        /// Where it is from now on.
        pin: Pin,
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
        next.called_by_name.clear();
        let renamed = next.set_pins(list).map_err(|(op, why)| self.refuse(op, why))?;
        let registers = |op: OpId| (op, self.op(op).layout().map_or(0, |l| l.register_mask));
        let mut touched: Vec<(OpId, u128)> = renamed.into_iter().map(registers).collect();
        let mut layouts = Layouts::continued(isa, self.target, std::mem::take(&mut next.layouts));
        let (mut puts, mut moved) = (Vec::new(), HashSet::new());
        let mut erased = HashSet::new();
        let made = Made::of(&mut layouts, list);
        let replaced = self.replaced(&mut layouts, &mut next, &made, list)?;
        for (n, edit) in list.edits.iter().enumerate() {
            let op = match edit {
                Edit::SetField { op, .. }
                | Edit::EditModifiers { op, .. }
                | Edit::SetControl { op, .. }
                | Edit::ReplaceOperand { op, .. }
                | Edit::Erase { op } => *op,
                Edit::Replace { .. } | Edit::Argument { .. } | Edit::ReplaceValue { .. } | Edit::SetPin { .. } => {
                    continue;
                }
                Edit::Insert { before, .. } | Edit::Move { before, .. } => *before,
            };
            if op.index() >= self.kinds.len() {
                return Err(self.refuse(OpId(0), format!("there is no operation {}", op.0)));
            }
            let at = op.index();
            if let Edit::Insert { inst, operands, .. } = edit {
                let new = self.check_new(&mut layouts, &next.pins, &made, op, *inst, operands)?;
                let made = made.first(n);
                puts.push((op, Put::New(New { made, ..new })));
                continue;
            }
            if let Edit::Move { op, before } = edit {
                self.check_loose(*op)?;
                if !moved.insert(op.0) {
                    return Err(self.refuse(*op, "it is moved twice".into()));
                }
                puts.push((*before, Put::Old(*op)));
                continue;
            }
            if replaced.contains_key(&op.0) {
                return Err(self.refuse(op, "it is replaced, and edited besides".into()));
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
                Edit::SetControl { control, .. } => {
                    let word = control.apply(inst.word);
                    (Inst { word, form }, isa::control::MASK)
                }
                Edit::ReplaceOperand { operand, value, .. } => {
                    let layout = layouts.list[next.op_layout[at] as usize].clone();
                    let pin = made.pin(&next.pins, *value);
                    let pin = pin.ok_or_else(|| self.refuse(op, format!("there is no value {}", value.0)))?;
                    next.replace_operand(&layout, op, *operand, (*value, pin))
                        .map_err(|reason| self.refuse(op, reason))?
                }
                Edit::Erase { .. } => {
                    if self.labels[at] == crate::kernel::SUCCESSOR || self.op(op).is_terminator() {
                        return Err(self.refuse(op, "a terminator cannot be taken out".into()));
                    }
                    erased.insert(op.0);
                    continue;
                }
                _ => continue,
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
        for (op, new) in &replaced {
            (next.words[*op as usize], next.op_layout[*op as usize]) = (new.inst.word, new.layout);
            touched.push((OpId(*op), u128::MAX));
        }
        let inserted = puts.iter().filter(|(_, put)| matches!(put, Put::New(_))).count();
        let changes = self.changes(&next, touched, inserted, erased.len());
        if let Some((_, before)) = puts
            .iter()
            .map(|(before, _)| (before, before.0))
            .find(|(_, b)| moved.contains(b))
        {
            return Err(self.refuse(
                OpId(before),
                "something is put before it, and it is moved itself".into(),
            ));
        }
        let instead = made
            .check_arguments(self, &next.pins)
            .and_then(|()| made.instead(&next.pins, list))
            .map_err(|why| self.refuse(OpId(0), why))?;
        let rebuilds = puts.len() + erased.len() + replaced.len() + made.len() + instead.len() > 0;
        if rebuilds {
            erased.extend(moved);
            let changed = Changed {
                replaced: &replaced,
                gone: &erased,
                made: &made,
                instead: &instead,
            };
            let rebuilt = Rebuild::new(&next, &layouts, &changed).run(puts);
            next = rebuilt.map_err(|(op, reason)| self.refuse(op, reason))?;
        }
        next.layouts = layouts.into_list();
        if !list.edits.is_empty() {
            same_collectives(isa, self, &next).map_err(|why| self.refuse(OpId(0), why))?;
        }
        *self = next;
        Ok(changes)
    }

    pub(crate) fn refuse(&self, op: OpId, reason: String) -> EditError {
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
        (value, pin): (ValueId, Pin),
    ) -> Result<(Inst, u128), String> {
        let at = op.index();
        let word = self.words[at];
        let Some((slot, k)) = layout.read_slot(operand) else {
            return Err(format!("operand {operand} is not read by the instruction itself"));
        };
        if slot.writes() || slot.field.is_none() {
            return Err("the operand is tied to a result or implied".into());
        }
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

    /// The instructions that take the place of others, by operation; gives `next` the registers of their results.
    fn replaced(
        &self,
        layouts: &mut Layouts,
        next: &mut Kernel,
        made: &Made,
        list: &EditList,
    ) -> Result<HashMap<u32, New>, EditError> {
        let edits = list.edits.iter().filter_map(|edit| match edit {
            Edit::Replace { op, inst, operands } => Some((*op, *inst, operands)),
            _ => None,
        });
        for (op, inst, _) in edits.clone() {
            self.check_loose(op)?;
            let at = op.index();
            let results = self.result_start[at] as usize..self.result_start[at + 1] as usize;
            let layout = layouts.get(inst.word);
            let pins = layouts.list.get(layout as usize).map(|l| written(l, inst.word));
            match pins.filter(|pins| pins.len() == results.len()) {
                Some(pins) => next.pins[results].copy_from_slice(&pins),
                None => return Err(self.refuse(op, "the new instruction has not as many results".into())),
            }
        }
        let mut replaced = HashMap::new();
        for (op, inst, operands) in edits {
            let new = self.check_new(layouts, &next.pins, made, op, inst, operands)?;
            if replaced.insert(op.0, new).is_some() {
                return Err(self.refuse(op, "it is replaced twice".into()));
            }
        }
        Ok(replaced)
    }

    /// Control flow does not know the operation: it may be replaced and moved.
    fn check_loose(&self, op: OpId) -> Result<(), EditError> {
        if op.index() >= self.kinds.len() {
            return Err(self.refuse(OpId(0), format!("there is no operation {}", op.0)));
        }
        let tied = self.labels[op.index()] != NONE || self.op(op).is_terminator();
        let plain = self.op(op).layout().is_some_and(|l| l.flow == Flow::None);
        match self.kinds[op.index()] == OpKind::Inst && plain && !tied {
            true => Ok(()),
            false => Err(self.refuse(
                op,
                "control flow hangs on it, or it is in no table: it stays as it is".into(),
            )),
        }
    }

    /// A new instruction, if it is what the tables say and its operands are in the registers of its word. `pins`: those of all values, after
    /// the edits.
    fn check_new(
        &self,
        layouts: &mut Layouts,
        pins: &[Pin],
        made: &Made,
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
        if known.flow != Flow::None || known.has_label {
            return Err(self.refuse(op, "an instruction that controls flow cannot be put in".into()));
        }
        let mut wanted: Vec<Pin> = Vec::new();
        known.each_read(inst.word, |pin| wanted.push(pin));
        known.each_merge(inst.word, |pin| wanted.push(pin));
        let given = operands.iter().map(|v| made.pin(pins, *v));
        if !given.eq(wanted.iter().map(|p| Some(*p))) {
            return Err(self.refuse(
                op,
                "the operands are not in the registers that the new instruction reads".into(),
            ));
        }
        Ok(New {
            inst,
            layout,
            operands: operands.to_vec(),
            made: 0,
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
}

pub(crate) fn written(layout: &Layout, word: Word) -> Vec<Pin> {
    let mut pins = Vec::new();
    layout.each_write(word, |pin| pins.push(pin));
    pins
}
