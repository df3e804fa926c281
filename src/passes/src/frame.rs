//! What a kernel keeps in its frame in local memory, where nothing but loads and stores at fixed places can get at it.

use std::collections::BTreeSet;

use ir::{Def, Flow, Kernel, Op, OpId, OpKind, Pin, Use, Uses, ValueId};
use isa::{Inst, Isa, RegFile, Space};

use crate::{Refusal, instructions};

/// Modifiers of local loads and stores that say how long a cache may keep a line: to registers they mean nothing.
const HINTS: [&str; 4] = ["LU", "EL", "EF", "NA"];

/// A load or a store of the frame.
pub(crate) struct FrameAccess {
    /// The instruction.
    pub op: OpId,
    /// Its byte offset in the code.
    pub offset: u64,
    /// It loads.
    pub is_load: bool,
    /// The bytes of the frame, from the stack pointer on.
    pub bytes: std::ops::Range<i64>,
    /// What it loads or stores, by word; nothing where these are not whole words in registers of their own.
    pub values: Vec<ValueId>,
}

/// All accesses of the frame in the order of the code; none if the kernel has none. Refuses where the frame's address may be known to anything
/// else, or local memory is accessed by any other.
pub(crate) fn accesses(isa: &Isa, kernel: &Kernel) -> Result<Vec<FrameAccess>, Refusal> {
    let refuse = |why: &str| Err(Refusal(why.to_owned()));
    let mut found = Vec::new();
    let mut bases = BTreeSet::new();
    for (offset, id, inst) in instructions(kernel) {
        if isa.semantics(inst).space != Space::Local {
            continue;
        }
        let op = kernel.op(id);
        let Some((base, access)) = access(isa, kernel, op, inst, offset) else {
            return refuse("it accesses local memory in another way than by the stack pointer and a number");
        };
        bases.insert(base);
        found.push(access);
    }
    let Some(&base) = bases.first() else {
        return Ok(found);
    };
    let own: BTreeSet<OpId> = found.iter().map(|access| access.op).collect();
    let uses = kernel.uses();
    let hands_on = |op: OpId| matches!(kernel.op(op).layout().map(|l| l.flow), Some(Flow::Call | Flow::Return));
    if uses
        .of(base)
        .iter()
        .any(|used| matches!(used, Use::Operand(op, _) if hands_on(*op)))
    {
        return refuse("what it calls, or what called it, may know its frame");
    }
    let only_addresses = uses.of(base).iter().all(|used| match used {
        Use::Operand(op, _) => own.contains(op),
        Use::Edge { .. } => false,
    });
    if bases.len() > 1
        || uses.of(base).len() != own.len()
        || !only_addresses
        || !comes_from_bank(isa, kernel, &uses, base)
    {
        return refuse("the address of its frame is used for more than loads and stores");
    }
    Ok(found)
}

/// A load or store at the stack pointer and a number, and the stack pointer's value.
fn access(isa: &Isa, kernel: &Kernel, op: Op<'_>, inst: Inst, offset: u64) -> Option<(ValueId, FrameAccess)> {
    let form = isa.form(inst.form)?;
    let is_load = match form.mnemonic() {
        "LDL" => true,
        "STL" => false,
        _ => return None,
    };
    let mut text = String::new();
    isa.write_text(inst, offset, &mut text, None).ok()?;
    let (_, operands) = text.split_once(form.mnemonic())?;
    let address = operands.split_once('[')?.1.split_once(']')?.0;
    let first = match address.strip_prefix("R1")? {
        "" => 0,
        number => number.strip_prefix('+').and_then(parse)?,
    };
    let mut size = 4;
    let mut whole = true;
    for modifier in isa.modifiers(inst) {
        match modifier {
            "64" => size = 8,
            "128" => size = 16,
            "U8" | "S8" => (size, whole) = (1, false),
            "U16" | "S16" => (size, whole) = (2, false),
            hint => whole &= HINTS.contains(&hint),
        }
    }
    let stack = Pin::new(RegFile::R, 1);
    let mut bases = op.operands().iter().copied().filter(|v| kernel.pin(*v) == stack);
    let base = bases.next().filter(|_| bases.next().is_none())?;
    let values = match is_load {
        true => op.results().collect(),
        false => {
            let data = op
                .accesses()
                .filter(|a| a.slot.file == RegFile::R && !a.reads.contains(&base));
            data.flat_map(|a| a.reads.to_vec()).collect::<Vec<_>>()
        }
    };
    let whole = whole && values.len() * 4 == size && first % 4 == 0;
    let access = FrameAccess {
        op: op.id(),
        offset,
        is_load,
        bytes: first..first + size as i64,
        values: if whole { values } else { Vec::new() },
    };
    Some((base, access))
}

/// A number as it stands in a text: `0x8`, `-0x8`.
pub(crate) fn parse(text: &str) -> Option<i64> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text),
    };
    Some(sign * i64::from_str_radix(digits.strip_prefix("0x")?, 16).ok()?)
}

/// A value is made of a number of the constant banks, which nothing else reads, by instructions on the way of which nothing else reads it
/// either.
fn comes_from_bank(isa: &Isa, kernel: &Kernel, uses: &Uses, value: ValueId) -> bool {
    let mut value = value;
    loop {
        let Def::Result(id, _) = kernel.def(value) else {
            return false;
        };
        let op = kernel.op(id);
        if op.kind() != OpKind::Inst || op.results().len() != 1 {
            return false;
        }
        let mut read = op.operands().iter().filter(|v| !kernel.pin(**v).is_zero());
        match (read.next(), read.next()) {
            (Some(from), None) if uses.of(*from).len() == 1 => value = *from,
            (None, None) => return is_only_reader(isa, kernel, id),
            _ => return false,
        }
    }
}

/// No other instruction names the number of the constant banks that one reads.
fn is_only_reader(isa: &Isa, kernel: &Kernel, reader: OpId) -> bool {
    let text = |inst: Inst| {
        let mut text = String::new();
        isa.write_text(inst, 0, &mut text, None).ok().map(|()| text)
    };
    let Some(own) = kernel.op(reader).inst().and_then(text) else {
        return false;
    };
    let Some(constant) = own.find("c[").map(|at| own[at..].trim_end_matches([' ', ';'])) else {
        return false;
    };
    let others = instructions(kernel).filter(|(_, op, _)| *op != reader);
    let mut texts = others.map(|(.., inst)| text(inst));
    texts.all(|text| text.is_some_and(|text| !text.contains(constant)))
}
