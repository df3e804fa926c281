//! Where the lanes of a warp are together: which instructions a warp executes once for all lanes that still run.
//!
//! Lanes part at a branch whose condition may differ between them, and at a `WARPSYNC` whose mask may: it gathers those that name the same mask,
//! and groups with other masks go on by themselves. They are together again behind a `BSYNC` that waits, at the place that its `BSSY`
//! named, if they were together at the `BSSY`: the barrier waits for all of them. Nothing else is taken to bring them together, neither that
//! all ways meet nor a `WARPSYNC`, and a barrier that a `BREAK` names or that anything but a `BSSY` has written brings nobody together.
//! Lanes that have ended do not count.
//!
//! A `BRA.DIV` asks whether the warp is whole, which all lanes answer alike that are together. Behind an `ENDCOLLECTIVE` lanes are as far apart as
//! before the collective: each goes on behind its own `WARPSYNC.COLLECTIVE`, whoever ran the body with it.

use std::collections::{BTreeMap, HashMap, VecDeque};

use ir::{BlockId, Flow, Kernel, Op, OpId, OpKind};
use isa::{Isa, RegFile};

/// Convergence barriers that a warp has.
const BARRIERS: usize = 16;

/// By block, whether all running lanes of the warp are there together, as it is entered and behind each of its instructions that changes it.
pub struct Convergence {
    /// By block: together at its start, and behind which operations of it that changes.
    blocks: Vec<(bool, Vec<(OpId, bool)>)>,
    /// By block: it belongs to the entry's own code and to no function that is called.
    own: Vec<bool>,
}

/// What is known at a place.
#[derive(Clone, PartialEq, Eq)]
struct State {
    together: bool,
    /// By barrier that a `BSSY` set: whether the lanes were together there, and the block that it named.
    armed: [Option<(bool, BlockId)>; BARRIERS],
}

impl State {
    const START: State = State {
        together: true,
        armed: [None; BARRIERS],
    };

    /// What holds on both ways.
    fn meet(&mut self, other: &State) {
        self.together &= other.together;
        for (mine, theirs) in self.armed.iter_mut().zip(&other.armed) {
            *mine = match (*mine, *theirs) {
                (Some((a, place)), Some((b, same))) if place == same => Some((a && b, place)),
                _ => None,
            };
        }
    }
}

impl Convergence {
    /// Follows a kernel from its entry, at which all lanes are together. `differs`: whether the choice that an operation makes may not be the
    /// same in all lanes.
    pub fn new(isa: &Isa, kernel: &Kernel, differs: &dyn Fn(Op<'_>) -> bool) -> Convergence {
        let mut walk = Walk::new(isa, kernel, differs);
        let (own, called) = walk.functions();
        let mut solved = walk.solve();
        while walk.summarize(&solved) {
            solved = walk.solve();
        }
        let mut blocks = vec![(false, Vec::new()); solved.len()];
        for (b, state) in solved.into_iter().enumerate() {
            let Some(mut state) = state else { continue };
            blocks[b].0 = state.together;
            for op in kernel.block(BlockId(b as u32)).ops() {
                let before = state.together;
                walk.step(op, &mut state);
                if state.together != before {
                    blocks[b].1.push((op.id(), state.together));
                }
            }
        }
        let own = own.iter().zip(&called).map(|(own, called)| *own && !called).collect();
        Convergence { blocks, own }
    }

    /// All running lanes execute the operation together.
    pub fn together(&self, op: Op<'_>) -> bool {
        let (start, changes) = &self.blocks[op.block().index()];
        let last = changes.iter().rfind(|(at, _)| *at < op.id());
        last.map_or(*start, |(_, together)| *together)
    }

    /// They come to the block together.
    pub fn at_start(&self, block: BlockId) -> bool {
        self.blocks[block.index()].0
    }

    /// They are together behind its last instruction, before it is known where that leads.
    pub fn at_end(&self, block: BlockId) -> bool {
        let (start, changes) = &self.blocks[block.index()];
        changes.last().map_or(*start, |(_, together)| *together)
    }

    /// The block is code of the kernel itself: no function leads to it that is called.
    pub fn is_own(&self, block: BlockId) -> bool {
        self.own[block.index()]
    }
}

/// A kernel with what is looked up again and again.
struct Walk<'k> {
    kernel: &'k Kernel,
    differs: &'k dyn Fn(Op<'_>) -> bool,
    /// By operation of a barrier: what it does to which barrier.
    marks: HashMap<u32, Mark>,
    /// By label id.
    labels: Vec<Option<BlockId>>,
    /// Barriers, as bits, that bring nobody together.
    broken: u16,
    /// By first block of a function that is called: what comes of it.
    callees: BTreeMap<u32, Callee>,
}

/// What a called function does, if all lanes enter it together.
#[derive(Clone, Debug)]
struct Callee {
    /// Its blocks.
    blocks: Vec<u32>,
    /// Barriers that it writes, as bits.
    barriers: u16,
    /// Lanes may come back apart.
    parts: bool,
}

#[derive(Clone, Copy)]
enum Mark {
    /// `BSSY`, and the block that it names.
    Arm(usize, Option<BlockId>),
    /// `BSYNC`.
    Sync(usize),
    /// Anything else that writes the barrier.
    Disarm(usize),
    /// `WARPSYNC`.
    Gather,
}

impl<'k> Walk<'k> {
    fn new(isa: &Isa, kernel: &'k Kernel, differs: &'k dyn Fn(Op<'_>) -> bool) -> Walk<'k> {
        let mut labels = Vec::new();
        for op in kernel.ops().filter(|op| op.kind() == OpKind::Label) {
            if let Some(label) = op.label() {
                labels.resize(labels.len().max(label as usize + 1), None);
                labels[label as usize] = Some(op.block());
            }
        }
        let mut walk = Walk {
            kernel,
            differs,
            marks: HashMap::new(),
            labels,
            broken: 0,
            callees: BTreeMap::new(),
        };
        for op in kernel.ops() {
            let Some(layout) = op.layout() else { continue };
            if isa.form(layout.form).is_some_and(|f| f.mnemonic() == "WARPSYNC") {
                walk.marks.insert(op.id().0, Mark::Gather);
            }
            for slot in layout.slots.iter().filter(|s| s.file == RegFile::B) {
                let barrier = usize::from(slot.pin(op.word()).number()) % BARRIERS;
                let mark = match isa.form(layout.form).map_or("", |f| f.mnemonic()) {
                    "BSSY" if !layout.is_guarded(op.word()) => Mark::Arm(barrier, walk.named(op)),
                    "BSYNC" if !layout.is_guarded(op.word()) && waits(isa, kernel, op) => Mark::Sync(barrier),
                    "BREAK" => {
                        walk.broken |= 1 << barrier;
                        Mark::Disarm(barrier)
                    }
                    _ if slot.writes() => Mark::Disarm(barrier),
                    _ => continue,
                };
                walk.marks.insert(op.id().0, mark);
            }
        }
        let calls = kernel.ops().filter(|op| is_call(*op));
        let called: Vec<BlockId> = calls.filter_map(|op| walk.named(op)).collect();
        for first in called {
            let reached = walk.reached([first]);
            let blocks: Vec<u32> = (0..reached.len() as u32).filter(|b| reached[*b as usize]).collect();
            let ops = blocks.iter().flat_map(|b| kernel.block(BlockId(*b)).ops());
            let written = ops.filter_map(|op| walk.marks.get(&op.id().0)).map(|mark| match mark {
                Mark::Arm(barrier, _) | Mark::Disarm(barrier) => 1 << barrier,
                Mark::Sync(_) | Mark::Gather => 0,
            });
            let callee = Callee {
                barriers: written.fold(0, |all, bit| all | bit),
                parts: false,
                blocks,
            };
            walk.callees.insert(first.0, callee);
        }
        walk
    }

    /// The block that the label of an operation names.
    fn named(&self, op: Op<'_>) -> Option<BlockId> {
        self.labels.get(op.label()? as usize).copied().flatten()
    }

    /// By block: the entry leads there; a function that is called does.
    fn functions(&self) -> (Vec<bool>, Vec<bool>) {
        let mut roots = self.kernel.block(BlockId(0)).successors().map(|(to, _)| to);
        let entry = roots.next();
        (self.reached(entry), self.reached(roots))
    }

    fn reached(&self, from: impl IntoIterator<Item = BlockId>) -> Vec<bool> {
        let mut seen = vec![false; self.kernel.block_count()];
        let mut stack: Vec<BlockId> = from.into_iter().collect();
        while let Some(b) = stack.pop() {
            if !std::mem::replace(&mut seen[b.index()], true) {
                stack.extend(self.kernel.block(b).successors().map(|(to, _)| to));
            }
        }
        seen
    }

    /// The states at the starts of all blocks.
    fn solve(&self) -> Vec<Option<State>> {
        let mut states: Vec<Option<State>> = vec![None; self.kernel.block_count()];
        states[0] = Some(State::START);
        let mut work = VecDeque::from([BlockId(0)]);
        while let Some(b) = work.pop_front() {
            let Some(mut state) = states[b.index()].clone() else {
                continue;
            };
            let block = self.kernel.block(b);
            block.ops().for_each(|op| self.step(op, &mut state));
            let chooses = block.successors().len() > 1 && b.0 != 0;
            if chooses && block.ops().next_back().is_some_and(self.differs) {
                state.together = false;
            }
            for (to, _) in block.successors() {
                let met = match &states[to.index()] {
                    None => state.clone(),
                    Some(old) => {
                        let mut met = old.clone();
                        met.meet(&state);
                        met
                    }
                };
                if states[to.index()].as_ref() != Some(&met) {
                    states[to.index()] = Some(met);
                    work.push_back(to);
                }
            }
        }
        states
    }

    fn step(&self, op: Op<'_>, state: &mut State) {
        match self.marks.get(&op.id().0) {
            Some(Mark::Arm(barrier, place)) => state.armed[*barrier] = place.map(|place| (state.together, place)),
            Some(Mark::Disarm(barrier)) => state.armed[*barrier] = None,
            Some(Mark::Sync(barrier)) => {
                let armed = state.armed[*barrier].filter(|_| self.broken >> barrier & 1 == 0);
                if let Some((together, _)) = armed.filter(|(_, place)| self.leads_to(op, *place)) {
                    state.together = together;
                }
            }
            Some(Mark::Gather) => state.together &= !(self.differs)(op),
            None if is_call(op) => {
                let callee = self.named(op).and_then(|b| self.callees.get(&b.0));
                let (parts, barriers) = callee.map_or((true, u16::MAX), |c| (c.parts, c.barriers));
                state.together &= !parts && !self.is_choice(op);
                for (n, armed) in state.armed.iter_mut().enumerate() {
                    *armed = armed.filter(|_| barriers >> n & 1 == 0);
                }
            }
            None => {}
        }
    }

    /// A `BSYNC` is the instruction at the place, or the last one before it.
    fn leads_to(&self, op: Op<'_>, place: BlockId) -> bool {
        let first = |b: BlockId| self.kernel.block(b).ops().find(|op| op.kind().is_code());
        let own = op.block();
        let last = self.kernel.block(own).ops().rfind(|op| op.kind().is_code());
        first(place).is_some_and(|first| first.id() == op.id())
            || own.0 + 1 == place.0 && last.is_some_and(|last| last.id() == op.id())
    }

    /// Sees which functions lanes may leave apart; true if that is news.
    fn summarize(&mut self, solved: &[Option<State>]) -> bool {
        let parts = |callee: &Callee| callee.blocks.iter().any(|b| self.returns_apart(BlockId(*b), solved));
        let news: Vec<u32> = self
            .callees
            .iter()
            .filter(|(_, c)| !c.parts && parts(c))
            .map(|(b, _)| *b)
            .collect();
        for (b, callee) in &mut self.callees {
            callee.parts |= news.contains(b);
        }
        !news.is_empty()
    }

    /// The operation may be executed by some lanes and not by others. What it reads beyond its guard does not matter.
    fn is_choice(&self, op: Op<'_>) -> bool {
        op.layout().is_some_and(|l| l.is_guarded(op.word())) && (self.differs)(op)
    }

    /// The block ends in a return to which, or from which, lanes go apart.
    fn returns_apart(&self, block: BlockId, solved: &[Option<State>]) -> bool {
        let ops = self.kernel.block(block).ops();
        let Some(last) = ops.clone().next_back() else {
            return false;
        };
        if last.layout().is_none_or(|l| l.flow != Flow::Return) {
            return false;
        }
        let Some(mut state) = solved[block.index()].clone() else {
            return false;
        };
        ops.for_each(|op| self.step(op, &mut state));
        !state.together || self.is_choice(last)
    }
}

/// A `BSYNC` waits for the lanes of its barrier. From sm_100 on it does so only where it says that lanes must meet; behind a loop in which
/// lanes wait for a lock that one of them holds it does not.
fn waits(isa: &Isa, kernel: &Kernel, op: Op<'_>) -> bool {
    let says = |inst| isa.has_modifier(inst, "RECONVERGENT") || isa.has_modifier(inst, "RELIABLE");
    kernel.target.number() < 100 || op.inst().is_some_and(says)
}

/// A call that comes back.
pub(crate) fn is_call(op: Op<'_>) -> bool {
    op.layout().is_some_and(|l| l.flow == Flow::Call) && !op.goes_to_successor()
}
