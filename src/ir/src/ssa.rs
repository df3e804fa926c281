//! SSA construction over physical registers.
//!
//! The result is what Braun et al. (2013) define for reducible code, minimal and pruned SSA; the way there is Cytron's, because with
//! registers as bit sets one pass over dominance frontiers places the arguments for all registers at once.

use crate::graph::{Dominators, Graph, predecessors};

/// What a block does with registers, as bit sets over dense register numbers.
#[derive(Clone)]
pub(crate) struct Accesses {
    /// 64-bit words in a set.
    pub words: usize,
    /// By block: registers read before they are written in the block.
    pub reads: Vec<u64>,
    /// By block: registers written.
    pub writes: Vec<u64>,
}

impl Accesses {
    pub fn new(blocks: usize, registers: usize) -> Accesses {
        let words = registers.div_ceil(64);
        Accesses {
            words,
            reads: vec![0; blocks * words],
            writes: vec![0; blocks * words],
        }
    }

    /// One more block; gives its number.
    pub fn add_block(&mut self) -> usize {
        let number = self.reads.len().checked_div(self.words).unwrap_or(0);
        self.reads.resize(self.reads.len() + self.words, 0);
        self.writes.resize(self.writes.len() + self.words, 0);
        number
    }

    /// The registers that a block reads before it writes them.
    pub fn reads_of(&self, block: usize) -> &[u64] {
        &self.reads[block * self.words..(block + 1) * self.words]
    }

    /// The registers that a block writes.
    pub fn writes_of(&self, block: usize) -> &[u64] {
        &self.writes[block * self.words..(block + 1) * self.words]
    }

    pub fn block(&mut self, block: usize) -> BlockAccesses<'_> {
        let range = block * self.words..(block + 1) * self.words;
        BlockAccesses {
            reads: &mut self.reads[range.clone()],
            writes: &mut self.writes[range],
        }
    }
}

/// What one block does with registers; accesses are told in order.
pub(crate) struct BlockAccesses<'a> {
    reads: &'a mut [u64],
    writes: &'a mut [u64],
}

impl BlockAccesses<'_> {
    pub fn read(&mut self, register: usize) {
        self.reads[register / 64] |= (1 << (register % 64)) & !self.writes[register / 64];
    }

    pub fn write(&mut self, register: usize) {
        self.writes[register / 64] |= 1 << (register % 64);
    }

    /// As if nothing had been told yet.
    pub fn clear(&mut self) {
        self.reads.fill(0);
        self.writes.fill(0);
    }

    /// It is not read.
    pub fn forget(&mut self, register: usize) {
        self.reads[register / 64] &= !(1 << (register % 64));
    }
}

/// The registers in a bit set, ascending.
pub(crate) fn members(set: &[u64]) -> impl Iterator<Item = usize> + '_ {
    set.iter().enumerate().flat_map(|(i, &word)| {
        let mut rest = word;
        std::iter::from_fn(move || {
            if rest == 0 {
                return None;
            }
            let bit = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            Some(i * 64 + bit)
        })
    })
}

/// Where block arguments go, and in which order to visit blocks.
pub(crate) struct Placement {
    /// By block: registers that are live at its start.
    pub live_in: Vec<u64>,
    /// By block: registers that are block arguments.
    pub arguments: Vec<u64>,
    pub words: usize,
    /// Children in the dominator tree.
    pub child_start: Vec<u32>,
    pub children: Vec<u32>,
}

/// Block 0 is the entry, which no edge leads to; every block is reached from it. `None` if the graph is too tangled for the budget.
pub(crate) fn place(graph: &Graph<'_>, accesses: &Accesses) -> Option<Placement> {
    let blocks = graph.len();
    let words = accesses.words;
    let (pred_start, preds) = predecessors(graph);
    let preds_of = |b: usize| &preds[pred_start[b] as usize..pred_start[b + 1] as usize];

    // Liveness, backwards over a work list.
    let mut live_in = accesses.reads.clone();
    let mut queued = vec![true; blocks];
    let mut work: Vec<u32> = (0..blocks as u32).collect();
    let mut live_out = vec![0u64; words];
    let mut budget = 256 * blocks + (1 << 16);
    while let Some(b) = work.pop() {
        budget = budget.checked_sub(1)?;
        let b = b as usize;
        queued[b] = false;
        live_out.fill(0);
        for &s in graph.successors(b) {
            let s = s as usize * words;
            live_out
                .iter_mut()
                .zip(&live_in[s..s + words])
                .for_each(|(out, live)| *out |= live);
        }
        let mut changed = false;
        for (w, out) in live_out.iter().enumerate() {
            let i = b * words + w;
            let live = accesses.reads[i] | (out & !accesses.writes[i]);
            changed |= live != live_in[i];
            live_in[i] = live;
        }
        if changed {
            for &p in preds_of(b) {
                if !std::mem::replace(&mut queued[p as usize], true) {
                    work.push(p);
                }
            }
        }
    }

    // Iterated dominance frontiers of the writes. The entry writes every register.
    let dominators = Dominators::new(graph, &pred_start, &preds);
    let budget = 256 * (blocks + preds.len()) + (1 << 23);
    let mut frontier: Vec<(u32, u32)> = Vec::new();
    if !dominators.frontiers(&pred_start, &preds, budget, |b, join| {
        if frontier.last() != Some(&(b, join)) {
            frontier.push((b, join));
        }
    }) {
        return None;
    }
    let mut frontier_start = vec![0u32; blocks + 1];
    frontier.iter().for_each(|(b, _)| frontier_start[*b as usize + 1] += 1);
    for i in 0..blocks {
        frontier_start[i + 1] += frontier_start[i];
    }
    let mut at = frontier_start.clone();
    let mut joins = vec![0u32; frontier.len()];
    for (b, join) in frontier {
        joins[at[b as usize] as usize] = join;
        at[b as usize] += 1;
    }
    let mut arguments = vec![0u64; blocks * words];
    let mut queued = vec![true; blocks];
    let mut work: Vec<u32> = (1..blocks as u32).rev().collect();
    while let Some(b) = work.pop() {
        let b = b as usize;
        queued[b] = false;
        for &join in &joins[frontier_start[b] as usize..frontier_start[b + 1] as usize] {
            let j = join as usize;
            let mut changed = false;
            for w in 0..words {
                let defined = accesses.writes[b * words + w] | arguments[b * words + w];
                let new = defined & live_in[j * words + w] & !arguments[j * words + w];
                arguments[j * words + w] |= new;
                changed |= new != 0;
            }
            if changed && !std::mem::replace(&mut queued[j], true) {
                work.push(join);
            }
        }
    }
    let (child_start, children) = dominators.children();
    Some(Placement {
        live_in,
        arguments,
        words,
        child_start,
        children,
    })
}

impl Placement {
    pub fn arguments_of(&self, block: usize) -> impl Iterator<Item = usize> + '_ {
        members(&self.arguments[block * self.words..(block + 1) * self.words])
    }

    /// All block arguments together.
    pub fn argument_count(&self) -> usize {
        self.arguments.iter().map(|set| set.count_ones() as usize).sum()
    }

    pub fn live_in_of(&self, block: usize) -> impl Iterator<Item = usize> + '_ {
        members(&self.live_in[block * self.words..(block + 1) * self.words])
    }

    /// Visits the dominator tree: `enter(block)` before its children, `leave(block)` after them.
    pub fn walk<S>(&self, state: &mut S, mut enter: impl FnMut(&mut S, usize), mut leave: impl FnMut(&mut S, usize)) {
        let mut stack = Vec::with_capacity(32);
        stack.push((0u32, false));
        while let Some((block, done)) = stack.pop() {
            let b = block as usize;
            if done {
                leave(state, b);
                continue;
            }
            enter(state, b);
            stack.push((block, true));
            let children = &self.children[self.child_start[b] as usize..self.child_start[b + 1] as usize];
            stack.extend(children.iter().rev().map(|&c| (c, false)));
        }
    }
}
