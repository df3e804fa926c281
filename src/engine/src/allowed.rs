//! Which bits an edit list may move. It is worked out from the edits and the tables alone, not from what applying them did,
//! so that mask-verify is a check and not an echo.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use isa::Isa;

use crate::mask::{AllowedBits, Origin, WORD};

/// Adds the bits of the fields and modifiers that the edits name, and the order that they put the instructions into.
pub fn by_edits(isa: &Isa, kernel: &ir::Kernel, edits: &ir::EditList, allowed: &mut AllowedBits) -> Result<(), String> {
    let mut named: Vec<(ir::OpId, Named)> = registers(kernel, edits)?;
    let mut moves = Moves::default();
    // Registers are in `named` already; what a value is called, and what edges pass, is in no word.
    let of_values = |edit: &&ir::Edit| {
        use ir::Edit::{Argument, ReplaceValue, SetPin};
        matches!(edit, SetPin { .. } | Argument { .. } | ReplaceValue { .. })
    };
    let mut list = edits.edits.iter().filter(|edit| !of_values(edit)).peekable();
    while let Some(edit) = list.next() {
        match edit {
            ir::Edit::SetField { op, field, .. } => {
                let form = form_of(isa, kernel, *op)?;
                let field = form
                    .fields()
                    .get(*field)
                    .ok_or_else(|| format!("{} has no field {field}", form.name()))?;
                named.push((*op, Named::Bits(field.mask())));
            }
            ir::Edit::EditModifiers { op, drop, add } => {
                let inst = inst_of(kernel, *op)?;
                let edited = isa
                    .edit_modifiers(inst, &tokens(drop), &tokens(add))
                    .map_err(|e| e.to_string())?;
                named.push((*op, Named::Bits(edited.word.0 ^ inst.word.0)));
            }
            ir::Edit::SetControl { op, .. } => {
                inst_of(kernel, *op)?;
                named.push((*op, Named::Bits(isa::control::MASK)));
            }
            ir::Edit::ReplaceOperand { op, operand, .. } => {
                inst_of(kernel, *op)?;
                let slot = kernel.op(*op).layout().and_then(|l| l.read_slot(*operand));
                let (slot, _) = slot.ok_or_else(|| format!("operation {} does not name operand {operand}", op.0))?;
                named.push((*op, Named::Bits(slot.bits())));
            }
            ir::Edit::Replace { op, inst, .. } => {
                inst_of(kernel, *op)?;
                named.push((*op, Named::Word(inst.word.0)));
            }
            // One goes, and one that is put before it comes: everything keeps its place.
            ir::Edit::Insert { before, inst, .. }
                if list
                    .next_if(|next| matches!(next, ir::Edit::Erase { op } if op == before))
                    .is_some() =>
            {
                inst_of(kernel, *before)?;
                named.push((*before, Named::Word(inst.word.0)));
            }
            ir::Edit::Insert { before, inst, .. } => moves.put(*before, Put::New(inst.word.0)),
            ir::Edit::Move { op, before } => {
                inst_of(kernel, *op)?;
                moves.gone.insert(*op);
                moves.put(*before, Put::Old(*op));
            }
            ir::Edit::Erase { op } => {
                inst_of(kernel, *op)?;
                moves.gone.insert(*op);
            }
            ir::Edit::SetPin { .. } | ir::Edit::Argument { .. } | ir::Edit::ReplaceValue { .. } => {}
        }
    }
    named.retain(|(op, bits)| !matches!(bits, Named::Registers(_)) || !moves.gone.contains(op));
    let offsets = moves.places(kernel, allowed)?;
    for (op, bits) in named {
        let offset = offsets.get(&op).copied();
        let offset = offset.ok_or_else(|| format!("operation {} is edited, and goes", op.0))?;
        match bits {
            Named::Bits(bits) | Named::Registers(bits) => allowed.allow(offset, bits),
            Named::Word(word) => allowed.replace(offset, word),
        }
    }
    Ok(())
}

/// Edits that give instructions other places.
#[derive(Default)]
struct Moves {
    /// What comes before an operation, in this order.
    puts: BTreeMap<ir::OpId, Vec<Put>>,
    /// Operations that are not where they were.
    gone: BTreeSet<ir::OpId>,
}

enum Put {
    New(u128),
    Old(ir::OpId),
}

impl Moves {
    fn put(&mut self, before: ir::OpId, put: Put) {
        self.puts.entry(before).or_default().push(put);
    }

    /// By instruction: its byte offset after the edits. `allowed` gets the new order, if it is one.
    fn places(&self, kernel: &ir::Kernel, allowed: &mut AllowedBits) -> Result<HashMap<ir::OpId, u64>, String> {
        let numbers = passes::instructions(kernel).map(|(offset, op, _)| (op, offset));
        let numbers: HashMap<ir::OpId, u64> = numbers.collect();
        if self.puts.is_empty() && self.gone.is_empty() {
            return Ok(numbers);
        }
        let number = |op: ir::OpId| match numbers.get(&op) {
            Some(offset) => Ok((offset / WORD as u64) as u32),
            None => Err(format!("operation {} is no instruction of the kernel", op.0)),
        };
        let (mut order, mut new, mut now) = (Vec::new(), Vec::new(), HashMap::new());
        for op in kernel.ops() {
            for put in self.puts.get(&op.id()).into_iter().flatten() {
                let offset = (order.len() * WORD) as u64;
                match put {
                    Put::New(word) => {
                        new.push((offset, *word));
                        order.push(Origin::New);
                    }
                    Put::Old(moved) => {
                        now.insert(*moved, offset);
                        order.push(Origin::Moved(number(*moved)?));
                    }
                }
            }
            if op.kind().is_code() && !self.gone.contains(&op.id()) {
                now.insert(op.id(), (order.len() * WORD) as u64);
                order.push(Origin::Kept(number(op.id())?));
            }
        }
        allowed.reorder(order);
        new.into_iter().for_each(|(offset, word)| allowed.replace(offset, word));
        Ok(now)
    }
}

/// The fields that name registers of values which are put elsewhere.
fn registers(kernel: &ir::Kernel, edits: &ir::EditList) -> Result<Vec<(ir::OpId, Named)>, String> {
    let mut moved = BTreeSet::new();
    for edit in &edits.edits {
        if let ir::Edit::SetPin { value, .. } = edit {
            if value.index() >= kernel.values().len() {
                return Err(format!("there is no value {}", value.0));
            }
            moved.insert(*value);
        }
    }
    let mut named = Vec::new();
    for op in kernel.naming(&moved) {
        let bits = kernel.op(op).accesses().map(|access| {
            let written = access.writes.map(ir::ValueId);
            let mut all = access.reads.iter().copied().chain(written);
            if all.any(|v| moved.contains(&v)) {
                access.slot.bits()
            } else {
                0
            }
        });
        named.push((op, Named::Registers(bits.fold(0, |all, one| all | one))));
    }
    Ok(named)
}

/// What an edit says of a word.
enum Named {
    /// It may change these bits, if the instruction stays.
    Registers(u128),
    /// It may change these bits.
    Bits(u128),
    /// It puts this word there.
    Word(u128),
}

fn tokens(list: &[String]) -> Vec<&str> {
    list.iter().map(String::as_str).collect()
}

fn form_of<'i>(isa: &'i Isa, kernel: &ir::Kernel, op: ir::OpId) -> Result<isa::Form<'i>, String> {
    isa.form(inst_of(kernel, op)?.form)
        .ok_or_else(|| format!("operation {} is opaque", op.0))
}

fn inst_of(kernel: &ir::Kernel, op: ir::OpId) -> Result<isa::Inst, String> {
    if op.index() >= kernel.op_count() {
        return Err(format!("operation {} is not in the kernel", op.0));
    }
    kernel
        .op(op)
        .inst()
        .ok_or_else(|| format!("operation {} is no instruction", op.0))
}
