//! Collectives: what lanes of a warp do together though they come from different places.
//!
//! `WARPSYNC.COLLECTIVE Rmask, label`, a body (`SHFL`, `VOTE` and the like), `ENDCOLLECTIVE`. Lanes of several such places meet, and the body of
//! one place runs for all of them; at `ENDCOLLECTIVE` each lane goes on at the label that its own place named. So the bodies of all places that
//! may meet are the same instructions with the same registers, and a rewrite of one of them would be a rewrite of what lanes of the others do.

use isa::{Isa, RegFile};

use crate::kernel::{BlockId, Kernel, Op, OpId, OpKind};

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
    let marks: Vec<Option<Mark>> = kernel.layouts.iter().map(|l| mark(isa, l.form)).collect();
    if marks.iter().all(Option::is_none) {
        return found;
    }
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
        let begins = mark == Mark::WarpSync && op.inst().is_some_and(|i| isa.has_modifier(i, "COLLECTIVE"));
        let ends = mark == Mark::End;
        if !begins && !ends {
            continue;
        }
        let new = Collective {
            begin: op.id(),
            end: None,
            behind: named(op).filter(|_| begins),
        };
        match open.take() {
            Some(one) if ends => found.push(Collective {
                end: ends_it(isa, kernel, one, op).then_some(op.id()),
                ..one
            }),
            last => {
                found.extend(last);
                match begins {
                    true => open = Some(new),
                    false => found.push(new),
                }
            }
        }
    }
    found.extend(open);
    found
}

/// Whether lanes of the two may meet, as far as their bodies say: they are the same instructions apart from the scheduling bits. Where a body is
/// not known, they may.
pub fn same_body(kernel: &Kernel, a: Collective, b: Collective) -> bool {
    let word = |op: Op<'_>| op.word().0 & !isa::control::MASK;
    a.end.is_none() || b.end.is_none() || a.body(kernel).map(word).eq(b.body(kernel).map(word))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    WarpSync,
    End,
}

fn mark(isa: &Isa, form: isa::FormId) -> Option<Mark> {
    match isa.form(form)?.mnemonic() {
        "WARPSYNC" => Some(Mark::WarpSync),
        "ENDCOLLECTIVE" => Some(Mark::End),
        _ => None,
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
