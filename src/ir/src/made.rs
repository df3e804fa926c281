//! Values that an edit list makes, and values that it puts elsewhere: what they are before the kernel is rebuilt.

use std::collections::{BTreeSet, HashMap};

use crate::edit::{Edit, EditError, EditList, written};
use crate::kernel::{BlockId, Kernel, OpId, OpKind, ValueId};
use crate::layouts::Layouts;
use crate::lower::registers;
use crate::pin::Pin;

/// What a list makes, in its order.
pub(crate) struct Made {
    /// By value: its register.
    pins: Vec<Pin>,
    /// By edit: the first value that it makes, or that one behind it makes.
    firsts: Vec<usize>,
    /// The block arguments among them.
    pub arguments: Vec<NewArgument>,
}

/// A block argument that is to be.
pub(crate) struct NewArgument {
    pub block: BlockId,
    pub pin: Pin,
    /// Which of the values that the list makes.
    pub made: usize,
    /// By edge that leads to the block.
    pub passed: Vec<ValueId>,
}

/// By value: the one that is read instead.
pub(crate) type Instead = HashMap<ValueId, ValueId>;

impl Made {
    /// Counts them. A word that no table knows makes none, and is refused where it is put in.
    pub fn of(layouts: &mut Layouts, list: &EditList) -> Made {
        let (mut pins, mut firsts, mut arguments) = (Vec::new(), Vec::new(), Vec::new());
        for edit in &list.edits {
            firsts.push(pins.len());
            match edit {
                Edit::Insert { inst, .. } => {
                    let layout = layouts.get(inst.word) as usize;
                    let known = layouts.list.get(layout);
                    pins.extend(known.map_or_else(Vec::new, |l| written(l, inst.word)));
                }
                Edit::Argument { block, pin, passed } => {
                    arguments.push(NewArgument {
                        block: *block,
                        pin: *pin,
                        made: pins.len(),
                        passed: passed.clone(),
                    });
                    pins.push(*pin);
                }
                _ => {}
            }
        }
        Made {
            pins,
            firsts,
            arguments,
        }
    }

    /// How many values.
    pub fn len(&self) -> usize {
        self.pins.len()
    }

    /// The first value that the n-th edit makes.
    pub fn first(&self, n: usize) -> usize {
        self.firsts[n]
    }

    /// The register of a value that an edit names, `pins` being those of the kernel's values after the edits.
    pub fn pin(&self, pins: &[Pin], value: ValueId) -> Option<Pin> {
        match (value.as_constant(), value.as_made()) {
            (Some(file), _) => Some(Pin::zero(file)),
            (_, Some(n)) => self.pins.get(n).copied(),
            _ => pins.get(value.index()).copied(),
        }
    }

    /// Refuses arguments to which not every edge passes a value in their register.
    pub fn check_arguments(&self, kernel: &Kernel, pins: &[Pin]) -> Result<(), String> {
        for argument in &self.arguments {
            let edges = kernel.edges.iter().filter(|e| e.to == argument.block).count();
            if argument.block.index() >= kernel.block_count() || edges == 0 || edges != argument.passed.len() {
                let (block, given) = (argument.block.0, argument.passed.len());
                return Err(format!("{edges} edges lead to block {block}, and pass {given} values"));
            }
            let mut passed = argument.passed.iter();
            if passed.any(|v| self.pin(pins, *v) != Some(argument.pin)) {
                return Err(format!(
                    "what is passed to an argument in {} is not there",
                    argument.pin
                ));
            }
        }
        Ok(())
    }

    /// What is read in the place of what.
    pub fn instead(&self, pins: &[Pin], list: &EditList) -> Result<Instead, String> {
        let mut instead = Instead::new();
        for edit in &list.edits {
            let Edit::ReplaceValue { value, by } = edit else {
                continue;
            };
            let pin = pins.get(value.index());
            if pin.is_none() || self.pin(pins, *by) != pin.copied() {
                return Err(format!(
                    "value {} is replaced by one that is not in its register",
                    value.0
                ));
            }
            if instead.insert(*value, *by).is_some() {
                return Err(format!("value {} is replaced twice", value.0));
            }
        }
        match instead.values().find(|by| instead.contains_key(by)) {
            Some(by) => Err(format!("value {} replaces one, and is replaced itself", by.0)),
            None => Ok(instead),
        }
    }
}

impl Kernel {
    /// The kernel with its values in the registers that a list gives them, and nothing else of the list done; `None` if it gives none.
    pub fn elsewhere(&self, list: &EditList) -> Result<Option<Kernel>, EditError> {
        if !list.edits.iter().any(|edit| matches!(edit, Edit::SetPin { .. })) {
            return Ok(None);
        }
        let mut next = self.clone();
        next.set_pins(list).map_err(|(op, why)| self.refuse(op, why))?;
        Ok(Some(next))
    }

    /// Puts values into other registers, and these into the words that stay: gives the operations whose words name them. An error: the operation that
    /// cannot name the register, where there is one.
    pub(crate) fn set_pins(&mut self, list: &EditList) -> Result<BTreeSet<OpId>, (OpId, String)> {
        let mut moved = BTreeSet::new();
        let mut others = BTreeSet::new();
        for edit in &list.edits {
            let Edit::SetPin { value, pin } = edit else {
                if let Edit::Replace { op, .. } | Edit::Erase { op } = edit {
                    others.insert(*op);
                }
                continue;
            };
            match self.pins.get_mut(value.index()) {
                Some(now) if now.file() == pin.file() && !now.is_zero() && !pin.is_zero() => *now = *pin,
                _ => return Err((OpId(0), format!("value {} cannot be in {pin}", value.0))),
            }
            moved.insert(*value);
        }
        let ops: BTreeSet<OpId> = self.naming(&moved).filter(|op| !others.contains(op)).collect();
        for op in &ops {
            let layout = self.layouts[self.op_layout[op.index()] as usize].clone();
            self.words[op.index()] = registers(self, &layout, op.0).map_err(|d| (d.op, d.message))?;
        }
        Ok(ops)
    }

    /// The instructions that read or write any of these values.
    pub fn naming<'v>(&'v self, values: &'v BTreeSet<ValueId>) -> impl Iterator<Item = OpId> + 'v {
        let known = self.ops().filter(|op| !values.is_empty() && op.kind() == OpKind::Inst);
        let names = known.filter(|op| {
            let mut all = op.operands().iter().copied().chain(op.results());
            all.any(|v| values.contains(&v))
        });
        names.map(|op| op.id())
    }
}
