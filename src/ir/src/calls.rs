//! What calls and returns read and write without naming it.
//!
//! There is no fixed convention: what a call reads and writes is what the code of its callee does, followed through the callee's own
//! calls to a fixpoint. A call whose callee is not known reads and writes every register of the section; a return to a caller that is
//! not known hands all of them back.

use crate::cfg::{Cfg, Decoded};
use crate::layout::Flow;
use crate::ssa::Accesses;

/// Registers as a bit set over dense numbers.
type Set = Box<[u64]>;

/// Calls back with (register, written) for every register that an instruction reads, then for those that it writes.
pub(crate) type EachAccess<'a> = &'a dyn Fn(usize, &mut dyn FnMut(usize, bool));

/// What one instruction reads and writes beyond its own registers.
pub(crate) struct Summary {
    pub instruction: u32,
    reads: u32,
    writes: u32,
}

/// The extra reads and writes.
#[derive(Default)]
pub(crate) struct Summaries {
    /// Those of calls and returns, ascending.
    pub list: Vec<Summary>,
    sets: Vec<Set>,
}

/// Blocks visited for all callees together, before every call is one to an unknown callee.
const BUDGET: usize = 1 << 22;

impl Summaries {
    /// `accesses` has blocks counted with the prologue.
    pub fn new(
        code: &Decoded<'_>,
        cfg: &Cfg,
        accesses: &Accesses,
        registers: usize,
        each_access: EachAccess<'_>,
    ) -> Summaries {
        let mut summaries = Summaries::default();
        let returns: Vec<(usize, u32)> = (0..cfg.len())
            .map(|b| (b, cfg.start[b + 1] - 1))
            .filter(|(_, last)| code.layout_of(*last as usize).is_some_and(|l| l.flow == Flow::Return))
            .collect();
        if cfg.calls.is_empty() && returns.is_empty() {
            return summaries;
        }
        let words = accesses.words;
        let everything = full(registers, words);
        let none = summaries.add(vec![0; words].into());
        let all = summaries.add(everything.clone());
        let mut functions = Functions::new(code, cfg, accesses, &everything, each_access);
        let known = functions.solve();
        for call in cfg.calls.iter().filter(|c| (c.at as usize) < cfg.code_end()) {
            let callee = call.callee.filter(|_| known).and_then(|c| functions.effects_of(c));
            let (reads, writes) = match callee {
                Some(effects) => {
                    let reads = effects.reads(is_guarded(code, call.at)).collect();
                    (summaries.add(reads), summaries.add(effects.may_write.clone()))
                }
                None => (all, all),
            };
            summaries.list.push(Summary {
                instruction: call.at,
                reads,
                writes,
            });
        }
        // With an indirect call, any function may be its callee.
        let open = !known || cfg.calls.iter().any(|c| c.callee.is_none());
        for (b, last) in returns {
            let handed_back = functions.handed_back(b).filter(|_| !open);
            let reads = handed_back.map_or(all, |set| summaries.add(set));
            summaries.list.push(Summary {
                instruction: last,
                reads,
                writes: none,
            });
        }
        summaries.list.sort_unstable_by_key(|s| s.instruction);
        summaries
    }

    /// The registers that instructions read beyond their own, ascending by instruction.
    pub fn reads(&self) -> impl Iterator<Item = (u32, &[u64])> + Clone {
        self.list.iter().map(|s| (s.instruction, &*self.sets[s.reads as usize]))
    }

    /// The registers that instructions write beyond their own, ascending by instruction.
    pub fn writes(&self) -> impl Iterator<Item = (u32, &[u64])> + Clone {
        self.list
            .iter()
            .map(|s| (s.instruction, &*self.sets[s.writes as usize]))
    }

    fn add(&mut self, set: Set) -> u32 {
        self.sets.push(set);
        self.sets.len() as u32 - 1
    }
}

fn is_guarded(code: &Decoded<'_>, at: u32) -> bool {
    let at = at as usize;
    code.layout_of(at).is_some_and(|l| l.is_guarded(code.words[at]))
}

fn full(registers: usize, words: usize) -> Set {
    let word = |w: usize| match registers.saturating_sub(w * 64) {
        0 => 0,
        left @ 1..64 => (1 << left) - 1,
        _ => u64::MAX,
    };
    (0..words).map(word).collect()
}

/// What running a function does to registers.
#[derive(Clone, PartialEq)]
struct Effects {
    /// Needed at its entry.
    needs: Set,
    /// Written on some path.
    may_write: Set,
    /// Written on every path that comes back.
    must_write: Set,
}

impl Effects {
    /// What a call reads: what the callee needs, and what may pass through it unwritten.
    fn reads(&self, guarded: bool) -> impl Iterator<Item = u64> {
        let written = self.may_write.iter().zip(self.surely_writes(guarded));
        let passed = written.map(|(may, must)| may & !must);
        self.needs.iter().zip(passed).map(|(n, p)| n | p)
    }

    /// What a call writes whatever happens: nothing if it may be skipped.
    fn surely_writes(&self, guarded: bool) -> impl Iterator<Item = u64> {
        let mask = if guarded { 0 } else { u64::MAX };
        self.must_write.iter().map(move |w| w & mask)
    }
}

/// Code without calls, or a call.
enum Step {
    /// Its accesses are those of that block in `runs`.
    Straight(usize),
    Call {
        /// The callee's number, if it is known.
        callee: Option<usize>,
        guarded: bool,
    },
}

/// A function as its blocks, with what the fixpoint knows of it so far.
struct Function {
    entry: u32,
    blocks: Vec<u32>,
    effects: Effects,
}

impl Function {
    /// The position of a block in `blocks`.
    fn position(&self, block: u32) -> Option<usize> {
        self.blocks.binary_search(&block).ok()
    }
}

/// The functions that known calls lead to.
struct Functions<'a> {
    cfg: &'a Cfg,
    everything: &'a Set,
    /// By entry.
    list: Vec<Function>,
    /// The accesses of blocks, counted with the prologue; behind them those of the pieces of blocks with calls.
    runs: Accesses,
    /// By block, one more entry: in `steps`. None for blocks that are in no function.
    step_start: Vec<u32>,
    steps: Vec<Step>,
    visits: usize,
}

impl<'a> Functions<'a> {
    fn new(
        code: &Decoded<'_>,
        cfg: &'a Cfg,
        accesses: &Accesses,
        everything: &'a Set,
        each_access: EachAccess<'_>,
    ) -> Functions<'a> {
        let mut entries: Vec<u32> = cfg.calls.iter().filter_map(|c| c.callee).collect();
        entries.sort_unstable();
        entries.dedup();
        let mut functions = Functions {
            cfg,
            everything,
            list: Vec::with_capacity(entries.len()),
            runs: accesses.clone(),
            step_start: Vec::with_capacity(cfg.len() + 1),
            steps: Vec::new(),
            visits: 0,
        };
        let nothing: Set = vec![0; accesses.words].into();
        let mut seen = vec![u32::MAX; cfg.len()];
        let mut stack = Vec::new();
        for (n, &entry) in entries.iter().enumerate() {
            let mut blocks = Vec::new();
            stack.clear();
            stack.push(entry);
            while let Some(b) = stack.pop().filter(|_| functions.visits < BUDGET) {
                if std::mem::replace(&mut seen[b as usize], n as u32) != n as u32 {
                    functions.visits += 1;
                    blocks.push(b);
                    stack.extend(cfg.successors(b as usize));
                }
            }
            blocks.sort_unstable();
            functions.list.push(Function {
                entry,
                blocks,
                effects: Effects {
                    needs: nothing.clone(),
                    may_write: nothing.clone(),
                    must_write: everything.clone(),
                },
            });
        }
        // Only blocks of functions are asked for their steps.
        let mut calls = cfg.calls.iter().peekable();
        for (b, owner) in seen.into_iter().enumerate() {
            functions.step_start.push(functions.steps.len() as u32);
            if owner == u32::MAX {
                continue;
            }
            let (start, end) = (cfg.start[b] as usize, cfg.start[b + 1] as usize);
            while calls.next_if(|c| (c.at as usize) < start).is_some() {}
            if calls.peek().is_none_or(|c| c.at as usize >= end) {
                functions.steps.push(Step::Straight(b + 1));
                continue;
            }
            let mut from = start;
            while let Some(call) = calls.next_if(|c| (c.at as usize) < end) {
                // The call's own operands are read before it.
                functions.straight(from..call.at as usize + 1, each_access);
                let callee = call.callee.and_then(|c| entries.binary_search(&c).ok());
                let guarded = is_guarded(code, call.at);
                functions.steps.push(Step::Call { callee, guarded });
                from = call.at as usize + 1;
            }
            functions.straight(from..end, each_access);
        }
        functions.step_start.push(functions.steps.len() as u32);
        functions
    }

    /// Adds a step that is a run of instructions.
    fn straight(&mut self, range: std::ops::Range<usize>, each_access: EachAccess<'_>) {
        let run = self.runs.add_block();
        let mut block = self.runs.block(run);
        for i in range {
            each_access(i, &mut |register, written| match written {
                true => block.write(register),
                false => block.read(register),
            });
        }
        self.steps.push(Step::Straight(run));
    }

    fn steps_of(&self, block: u32) -> &[Step] {
        let b = block as usize;
        &self.steps[self.step_start[b] as usize..self.step_start[b + 1] as usize]
    }

    /// Grows the effects until nothing changes; false if that takes too long.
    fn solve(&mut self) -> bool {
        loop {
            let mut changed = false;
            for n in 0..self.list.len() {
                self.visits += 4 * self.list[n].blocks.len();
                if self.visits >= BUDGET {
                    return false;
                }
                let effects = Effects {
                    may_write: self.may_write(n),
                    must_write: self.must_write(n),
                    needs: self.needs(n),
                };
                changed |= effects != self.list[n].effects;
                self.list[n].effects = effects;
            }
            if !changed {
                return true;
            }
        }
    }

    fn effects_of(&self, entry: u32) -> Option<&Effects> {
        let n = self.list.binary_search_by_key(&entry, |f| f.entry).ok()?;
        Some(&self.list[n].effects)
    }

    /// What a return at the end of the block may hand back: all that the functions it belongs to write. `None` if it belongs to none.
    fn handed_back(&self, block: usize) -> Option<Set> {
        let mut owners = self.list.iter().filter(|f| f.position(block as u32).is_some());
        let mut set = owners.next()?.effects.may_write.clone();
        owners.for_each(|f| add(&mut set, f.effects.may_write.iter().copied()));
        Some(set)
    }

    fn may_write(&self, n: usize) -> Set {
        let function = &self.list[n];
        let mut set = function.effects.may_write.clone();
        for step in function.blocks.iter().flat_map(|b| self.steps_of(*b)) {
            let writes = match step {
                Step::Straight(run) => self.runs.writes_of(*run),
                Step::Call { callee, .. } => callee.map_or(self.everything, |c| &self.list[c].effects.may_write),
            };
            add(&mut set, writes.iter().copied());
        }
        set
    }

    /// Forward over the blocks, meeting paths by intersection; the result is that of all blocks that nothing follows.
    fn must_write(&self, n: usize) -> Set {
        let function = &self.list[n];
        let words = self.everything.len();
        let mut before = vec![0; function.blocks.len() * words];
        let mut reached = vec![false; function.blocks.len()];
        let mut work = vec![function.entry];
        let mut set = vec![0; words];
        let mut result = self.everything.clone();
        while let Some(b) = work.pop() {
            let Some(i) = function.position(b) else { continue };
            reached[i] = true;
            set.copy_from_slice(&before[i * words..(i + 1) * words]);
            for step in self.steps_of(b) {
                match step {
                    Step::Straight(run) => add(&mut set, self.runs.writes_of(*run).iter().copied()),
                    Step::Call { callee: None, .. } => {}
                    Step::Call {
                        callee: Some(c),
                        guarded,
                    } => add(&mut set, self.list[*c].effects.surely_writes(*guarded)),
                }
            }
            let successors = self.cfg.successors(b as usize);
            if successors.is_empty() {
                result.iter_mut().zip(&set).for_each(|(a, b)| *a &= b);
            }
            for &s in successors {
                let Some(i) = function.position(s) else { continue };
                let first = !std::mem::replace(&mut reached[i], true);
                let mut changed = first;
                for (met, set) in before[i * words..(i + 1) * words].iter_mut().zip(&set) {
                    let new = if first { *set } else { *met & set };
                    changed |= new != *met;
                    *met = new;
                }
                if changed {
                    work.push(s);
                }
            }
        }
        result
    }

    /// Backward over the blocks: what is read before it is written.
    fn needs(&self, n: usize) -> Set {
        let function = &self.list[n];
        let words = self.everything.len();
        let mut before = vec![0; function.blocks.len() * words];
        let mut live = vec![0; words];
        loop {
            let mut changed = false;
            for (i, &b) in function.blocks.iter().enumerate().rev() {
                live.fill(0);
                let successors = self.cfg.successors(b as usize).iter();
                for s in successors.filter_map(|s| function.position(*s)) {
                    add(&mut live, before[s * words..(s + 1) * words].iter().copied());
                }
                for step in self.steps_of(b).iter().rev() {
                    match step {
                        Step::Straight(run) => {
                            let (reads, writes) = (self.runs.reads_of(*run), self.runs.writes_of(*run));
                            transfer(&mut live, reads.iter().copied(), writes.iter().copied());
                        }
                        Step::Call { callee: None, .. } => live.copy_from_slice(self.everything),
                        Step::Call {
                            callee: Some(c),
                            guarded,
                        } => {
                            let effects = &self.list[*c].effects;
                            transfer(&mut live, effects.reads(*guarded), effects.surely_writes(*guarded));
                        }
                    }
                }
                let before = &mut before[i * words..(i + 1) * words];
                changed |= live != before;
                before.copy_from_slice(&live);
            }
            if !changed {
                let entry = function.position(function.entry);
                return entry.map_or_else(
                    || self.everything.clone(),
                    |i| before[i * words..(i + 1) * words].into(),
                );
            }
        }
    }
}

/// Adds registers to a set.
fn add(set: &mut [u64], more: impl Iterator<Item = u64>) {
    set.iter_mut().zip(more).for_each(|(a, b)| *a |= b);
}

/// What is live before a step, from what is live behind it.
fn transfer(live: &mut [u64], reads: impl Iterator<Item = u64>, writes: impl Iterator<Item = u64>) {
    let sets = reads.zip(writes);
    live.iter_mut().zip(sets).for_each(|(l, (r, w))| *l = *l & !w | r);
}
