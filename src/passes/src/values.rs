//! Values of instructions that a pass replaces.

use std::collections::BTreeMap;

use ir::{Flow, Kernel, Op, OpKind, Pin, ValueId};
use isa::{Inst, Isa, RegFile};

use crate::instructions;

/// Byte offset behind the instructions that come before the kernel's first: they end with the one that sets the stack pointer, `R1`. What they
/// leave in registers may be for others than the kernel.
pub(crate) fn prologue_end(kernel: &Kernel) -> u64 {
    let stack = Pin::new(RegFile::R, 1);
    let sets = |op: Op<'_>| {
        let from_nothing = op.operands().iter().all(|v| kernel.pin(*v).is_zero());
        from_nothing && op.results().any(|v| kernel.pin(v) == stack)
    };
    let last = instructions(kernel).find(|(_, op, _)| sets(kernel.op(*op)));
    last.map_or(0, |(offset, ..)| offset + 16)
}

/// The value that an instruction computes, if it writes one general register and does so whatever its guard says.
pub(crate) fn single_result(kernel: &Kernel, op: Op<'_>) -> Option<ValueId> {
    let layout = op
        .layout()
        .filter(|l| op.kind() == OpKind::Inst && l.flow == Flow::None)?;
    let mut results = op.results();
    let value = results
        .next()
        .filter(|_| results.next().is_none() && !layout.is_guarded(op.word()))?;
    (kernel.pin(value).file() == RegFile::R).then_some(value)
}

/// What an instruction in the place of `op` reads, in the order of its accesses.
pub(crate) fn operands(
    isa: &Isa,
    kernel: &Kernel,
    op: Op<'_>,
    inst: Inst,
    registers: &BTreeMap<ValueId, u8>,
) -> Vec<ValueId> {
    let at = |v: &ValueId| match registers.get(v) {
        Some(number) => Pin::new(RegFile::UR, *number),
        None => kernel.pin(*v),
    };
    let known: BTreeMap<Pin, ValueId> = op.operands().iter().map(|v| (at(v), *v)).collect();
    let guarded = isa
        .guard(inst)
        .is_some_and(|(file, reg, negated)| negated || !isa.is_zero(file, reg));
    let accesses: Vec<isa::Access> = isa.accesses(inst).collect();
    let reads = accesses.iter().filter(|a| a.dir.reads());
    let merges = accesses
        .iter()
        .filter(|a| guarded && a.dir.writes() && !a.dir.reads() && !a.is_zero);
    let pins = reads.chain(merges).flat_map(|a| {
        let numbers = (0..a.width).map(|k| a.reg.saturating_add(k));
        numbers.map(|n| {
            if isa.is_zero(a.file, n) {
                Pin::zero(a.file)
            } else {
                Pin::new(a.file, n)
            }
        })
    });
    pins.filter_map(|pin| match pin.is_zero() {
        true => Some(ValueId::constant(pin.file())),
        false => known.get(&pin).copied(),
    })
    .collect()
}

/// The operation is an instruction that goes on to the next one, and reads a value only as operands that it names: not as what a guarded write
/// keeps.
pub(crate) fn reads_by_name(op: Op<'_>, value: ValueId) -> bool {
    let plain = op
        .layout()
        .filter(|l| op.kind() == OpKind::Inst && l.flow == Flow::None);
    plain.is_some_and(|l| !op.operands()[l.read_count()..].contains(&value))
}
