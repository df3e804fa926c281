//! One variable through the code: which of its writes each read sees, and where several meet.

use std::collections::BTreeMap;

use ir::{Kernel, OpId};

/// What an instruction does with the variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Touch {
    /// Reads it.
    Read,
    /// Writes it.
    Write,
    /// Writes it or keeps it.
    MayWrite,
}

/// What a variable holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Held {
    /// What the instruction wrote.
    Written(OpId),
    /// What the block was passed.
    Argument(usize),
}

/// A variable from its writes to its reads.
pub(crate) struct Thread {
    /// By instruction that reads or keeps it: what it holds before.
    pub before: BTreeMap<OpId, Held>,
    /// Blocks where several meet, ascending, with what each edge there passes: by block, then by successor.
    pub arguments: BTreeMap<usize, Vec<Held>>,
    /// By block: it is needed at its end.
    live_out: Vec<bool>,
    touches: BTreeMap<OpId, Touch>,
}

/// What is known of a variable at the start of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entry {
    /// Nothing leads here yet.
    Unset,
    /// Nobody wrote it on some way here.
    Unwritten,
    Holds(Held),
}

impl Thread {
    /// `None` if it may be read before it is written.
    pub fn new(kernel: &Kernel, touches: BTreeMap<OpId, Touch>) -> Option<Thread> {
        let blocks = kernel.block_count();
        let mut reads_first = vec![false; blocks];
        let mut last_write: Vec<Option<OpId>> = vec![None; blocks];
        for (&op, touch) in &touches {
            let block = kernel.op(op).block().index();
            reads_first[block] |= *touch != Touch::Write && last_write[block].is_none();
            if *touch != Touch::Read {
                last_write[block] = Some(op);
            }
        }
        let live_in = live_in(kernel, reads_first, &last_write);
        let entry = entries(kernel, &live_in, &last_write);
        let needed = |b: usize| live_in[b];
        let out = |b: usize| match (last_write[b], entry[b]) {
            (Some(op), _) => Some(Held::Written(op)),
            (None, Entry::Holds(held)) => Some(held),
            _ => None,
        };
        if (0..blocks).any(|b| needed(b) && !matches!(entry[b], Entry::Holds(_))) {
            return None;
        }
        let mut arguments: BTreeMap<usize, Vec<Held>> = BTreeMap::new();
        let mut live_out = vec![false; blocks];
        for block in kernel.blocks() {
            for (to, _) in block.successors() {
                let to = to.index();
                live_out[block.id().index()] |= live_in[to];
                if needed(to) && entry[to] == Entry::Holds(Held::Argument(to)) {
                    arguments.entry(to).or_default().push(out(block.id().index())?);
                }
            }
        }
        let mut thread = Thread {
            before: BTreeMap::new(),
            arguments,
            live_out,
            touches,
        };
        thread.follow(kernel, &entry)?;
        Some(thread)
    }

    fn follow(&mut self, kernel: &Kernel, entry: &[Entry]) -> Option<()> {
        let mut now: (usize, Entry) = (usize::MAX, Entry::Unset);
        for (&op, touch) in &self.touches {
            let block = kernel.op(op).block().index();
            if now.0 != block {
                now = (block, entry[block]);
            }
            if *touch != Touch::Write {
                let Entry::Holds(held) = now.1 else { return None };
                self.before.insert(op, held);
            }
            if *touch != Touch::Read {
                now.1 = Entry::Holds(Held::Written(op));
            }
        }
        Some(())
    }

    /// Calls `f` with every operation at which the variable is needed, before or behind it, or touched.
    pub fn each_live(&self, kernel: &Kernel, mut f: impl FnMut(OpId)) {
        for block in kernel.blocks() {
            let mut live = self.live_out[block.id().index()];
            for op in block.ops().rev() {
                let touch = self.touches.get(&op.id());
                let before = match touch {
                    Some(Touch::Write) => false,
                    Some(_) => true,
                    None => live,
                };
                if live || before || touch.is_some() {
                    f(op.id());
                }
                live = before;
            }
        }
    }
}

/// By block: the variable is needed at its start.
fn live_in(kernel: &Kernel, mut live: Vec<bool>, last_write: &[Option<OpId>]) -> Vec<bool> {
    loop {
        let mut changed = false;
        for block in kernel.blocks().rev() {
            let b = block.id().index();
            if !live[b] && last_write[b].is_none() && block.successors().any(|(to, _)| live[to.index()]) {
                live[b] = true;
                changed = true;
            }
        }
        if !changed {
            return live;
        }
    }
}

/// By block: what the variable holds at its start. Where it is not needed that does not matter.
fn entries(kernel: &Kernel, live_in: &[bool], last_write: &[Option<OpId>]) -> Vec<Entry> {
    let mut entry = vec![Entry::Unset; kernel.block_count()];
    entry[0] = Entry::Unwritten;
    loop {
        let mut changed = false;
        for block in kernel.blocks() {
            let b = block.id().index();
            let out = last_write[b].map_or(entry[b], |op| Entry::Holds(Held::Written(op)));
            for (to, _) in block.successors() {
                let t = to.index();
                let met = match (entry[t], out) {
                    (old, Entry::Unset) => old,
                    (Entry::Unset, new) => new,
                    (old, new) if old == new => old,
                    (Entry::Unwritten, _) | (_, Entry::Unwritten) => Entry::Unwritten,
                    (old @ Entry::Holds(Held::Argument(at)), _) if at == t => old,
                    _ if live_in[t] => Entry::Holds(Held::Argument(t)),
                    _ => Entry::Unwritten,
                };
                changed |= met != entry[t];
                entry[t] = met;
            }
        }
        if !changed {
            return entry;
        }
    }
}
