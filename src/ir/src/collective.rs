//! Collectives: what lanes of a warp do together though they come from different places.
//!
//! `WARPSYNC.COLLECTIVE Rmask, label`, a body (`SHFL`, `VOTE` and the like), `ENDCOLLECTIVE`. Lanes of several such places meet, and the body of
//! one place runs for all of them; at `ENDCOLLECTIVE` each lane goes on at the label that its own place named. So the bodies of all places that
//! may meet are the same instructions with the same registers, and a rewrite of one of them would be a rewrite of what lanes of the others do.

use std::collections::HashMap;

use isa::{FormId, Isa, RegFile};

use crate::kernel::{BlockId, Kernel, Op, OpId, OpKind, ValueId};
use crate::layout::Layout;
use crate::pin::Pin;

/// A collective of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Collective {
    /// The `WARPSYNC.COLLECTIVE`; an `ENDCOLLECTIVE` that ends none, or what no table knows of either.
    pub begin: OpId,
    /// The `ENDCOLLECTIVE`, which is in the same block. `None` where it is not known what the body is: none follows in the block, another one
    /// begins before it, one of the two has a guard, or lanes do not go on right behind it. Who changes anything refuses such a kernel.
    pub end: Option<OpId>,
    /// Where lanes that begin here go on: the block that the label names. `None` where the label leads out of the kernel.
    pub behind: Option<BlockId>,
}

impl Collective {
    /// The operations of the body, none if it is not known.
    pub fn body(self, kernel: &Kernel) -> impl DoubleEndedIterator<Item = Op<'_>> + Clone {
        let end = self.end.map_or(0, |end| end.0);
        (self.begin.0 + 1..end).map(|id| kernel.op(OpId(id)))
    }

    /// It is the `WARPSYNC.COLLECTIVE`, the `ENDCOLLECTIVE`, or between them.
    pub fn holds(self, op: OpId) -> bool {
        (self.begin..=self.end.unwrap_or(self.begin)).contains(&op)
    }

    /// Whatever is put before the operation is put into the body.
    pub fn splits_at(self, before: OpId) -> bool {
        self.holds(before) && before != self.begin
    }
}

/// All collectives of a kernel, in text order.
pub fn collectives(isa: &Isa, kernel: &Kernel) -> Vec<Collective> {
    let mut found: Vec<Collective> = Vec::new();
    if !has_collectives(kernel) {
        return found;
    }
    let marks: Vec<Option<Mark>> = kernel.layouts.iter().map(|l| Mark::of(l)).collect();
    let labels = crate::check::label_blocks(kernel).unwrap_or_default();
    let named = |op: Op<'_>| {
        let block = labels.get(op.label()? as usize).copied();
        block.filter(|b| *b != crate::kernel::NONE).map(BlockId)
    };
    let mut open: Option<Collective> = None;
    for (at, layout) in kernel.op_layout.iter().enumerate() {
        let Some(mark) = marks.get(*layout as usize).copied().flatten() else {
            continue;
        };
        let op = kernel.op(OpId(at as u32));
        let new = Collective {
            begin: op.id(),
            end: None,
            behind: named(op),
        };
        match (mark, open.take()) {
            (Mark::Begin, last) => {
                found.extend(last);
                open = Some(new);
            }
            (Mark::End, Some(one)) => found.push(Collective {
                end: ends_it(isa, kernel, one, op).then_some(op.id()),
                ..one
            }),
            (Mark::End, None) => found.push(new),
        }
    }
    found.extend(open);
    found
}

/// Whether the kernel may have collectives, at a glance.
pub(crate) fn has_collectives(kernel: &Kernel) -> bool {
    kernel.layouts.iter().any(|l| Mark::of(l).is_some())
}

/// Whether lanes of the two may meet, as far as their bodies say: they are the same instructions with the same registers. Scheduling bits do not
/// count. Where a body is not known, they may.
pub fn same_body(kernel: &Kernel, a: Collective, b: Collective) -> bool {
    a.end.is_none() || b.end.is_none() || same_ops(a.body(kernel), b.body(kernel))
}

/// Fails where `new`, which was made of `old`, has other collectives: lanes of several places run each, so none may change but for its
/// scheduling bits and its label. Where it is not known what a collective holds, nobody can tell.
pub fn same_collectives(isa: &Isa, old: &Kernel, new: &Kernel) -> Result<(), String> {
    let (before, after) = (collectives(isa, old), collectives(isa, new));
    let at = |c: &Collective| old.op(c.begin).offset();
    if let Some(one) = before.iter().find(|c| c.end.is_none()) {
        return Err(unknown_end(at(one)));
    }
    let changed = |why: &str, c: &Collective| {
        let rule = "lanes that come from other places run it too, so it must stay as it is";
        Err(format!("the collective at {:#x} {why}: {rule}", at(c)))
    };
    for (n, a) in before.iter().enumerate() {
        let Some(b) = after.get(n).filter(|b| b.end.is_some()) else {
            return changed("is gone, or cut", a);
        };
        let begins = same_registers(old.op(a.begin), new.op(b.begin));
        if !begins || !same_ops(a.body(old), b.body(new)) {
            return changed("is another one", a);
        }
    }
    match after.len() == before.len() {
        true => Ok(()),
        false => Err("there are more collectives than before".to_owned()),
    }
}

/// Values that keep their registers: what collectives read and write. Fails where that does not do: it is not known what one holds, or two differ
/// in registers and in nothing else, so that nobody knows whether their lanes meet.
pub(crate) fn fixed_values(isa: &Isa, kernel: &Kernel) -> Result<Vec<ValueId>, String> {
    let mut fixed = Vec::new();
    // By what the body does, whatever the registers; the constant one is none.
    let mut kinds: HashMap<Vec<(FormId, u128, Vec<Pin>)>, Collective> = HashMap::new();
    let any = |pin: Pin| if pin.is_zero() { pin } else { Pin::new(pin.file(), 0) };
    let kind_of = |op: Op<'_>| {
        let pins = op.operand_pins().chain(op.result_pins().iter().copied());
        (op.form(), but_registers(op), pins.map(any).collect())
    };
    for c in collectives(isa, kernel) {
        if c.end.is_none() {
            return Err(unknown_end(kernel.op(c.begin).offset()));
        }
        let kind = c.body(kernel).map(kind_of).collect();
        let first = *kinds.entry(kind).or_insert(c);
        if !same_body(kernel, first, c) {
            let (a, b) = (kernel.op(first.begin).offset(), kernel.op(c.begin).offset());
            return Err(format!(
                "the collectives at {a:#x} and {b:#x} differ in registers only: it is not known whether their lanes meet"
            ));
        }
        for op in std::iter::once(kernel.op(c.begin)).chain(c.body(kernel)) {
            fixed.extend(op.operands().iter().copied().chain(op.results()));
        }
    }
    Ok(fixed)
}

fn unknown_end(at: u64) -> String {
    format!("it is not known where the collective at {at:#x} ends")
}

fn same_ops<'k>(a: impl Iterator<Item = Op<'k>>, mut b: impl Iterator<Item = Op<'k>>) -> bool {
    let mut same = true;
    for op in a {
        let other = b.next();
        same &= other
            .is_some_and(|b| op.form() == b.form() && but_registers(op) == but_registers(b) && same_registers(op, b));
    }
    same && b.next().is_none()
}

/// What the word says beside registers and scheduling.
fn but_registers(op: Op<'_>) -> u128 {
    op.word().0 & !isa::control::MASK & !op.layout().map_or(0, |l| l.register_mask)
}

/// The registers are those of its values: words follow when the kernel is lowered.
fn same_registers(a: Op<'_>, b: Op<'_>) -> bool {
    a.operand_pins().eq(b.operand_pins()) && a.result_pins() == b.result_pins()
}

/// What an instruction is to a collective.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    Begin,
    End,
}

impl Mark {
    /// That of the instructions of a layout, which are all alike in it.
    pub fn of(layout: &Layout) -> Option<Mark> {
        let name = layout.name.as_str();
        if name.starts_with("sass.WARPSYNC_") && name.split('.').any(|m| m == "COLLECTIVE") {
            return Some(Mark::Begin);
        }
        name.starts_with("sass.ENDCOLLECTIVE_").then_some(Mark::End)
    }
}

/// The `ENDCOLLECTIVE` ends the collective for all of its lanes, and those that began here go on right behind it.
fn ends_it(isa: &Isa, kernel: &Kernel, one: Collective, end: Op<'_>) -> bool {
    let begin = kernel.op(one.begin);
    let block = end.block();
    let mut rest = (end.id().0 + 1..kernel.block_start[block.index() + 1]).map(|id| kernel.kinds[id as usize]);
    begin.block() == block
        && always(isa, kernel, begin)
        && always(isa, kernel, end)
        && rest.all(|kind| kind == OpKind::Fall)
        && one.behind.is_some_and(|behind| behind.0 == block.0 + 1)
}

/// It hangs on no predicate: neither on its guard nor on the one behind that, which is not written where it is true.
fn always(isa: &Isa, kernel: &Kernel, op: Op<'_>) -> bool {
    let mut text = String::new();
    let known = op.inst().is_some_and(|i| isa.write_text(i, 0, &mut text, None).is_ok());
    let chosen = |v: &crate::ValueId| kernel.pin(*v).file() == RegFile::P && !kernel.pin(*v).is_zero();
    known && !text.contains(['@', '!']) && !op.operands().iter().any(chosen)
}
