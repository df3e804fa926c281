//! What calls and returns read and write without naming it.
//!
//! There is no fixed convention: what a call reads and writes is what the code of its callee does, followed through the callee's own
//! calls to a fixpoint. A call whose callee is not known reads and writes every register of the section; a return to a caller that is
//! not known hands all of them back.

use std::collections::HashMap;

use crate::cfg::{Cfg, Decoded};
use crate::layout::Flow;
use crate::ssa::{Accesses, members};

/// Registers as a bit set over dense numbers.
type Set = Box<[u64]>;

/// Calls back with (register, written) for every register that an instruction reads, then for those that it writes.
pub(crate) type EachAccess<'a> = &'a dyn Fn(usize, &mut dyn FnMut(usize, bool));

/// The extra reads and writes, by instruction.
#[derive(Default)]
pub(crate) struct Summaries {
    /// By instruction: sets in `sets` that it reads and writes; empty if no instruction has any.
    by_instruction: Vec<(u32, u32)>,
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
        summaries.by_instruction = vec![(none, none); cfg.code_end()];
        let mut functions = Functions::new(code, cfg, accesses, &everything, each_access);
        let known = functions.solve();
        for call in &cfg.calls {
            let callee = call.callee.filter(|_| known).and_then(|c| functions.effects_of(c));
            let sets = match callee {
                Some(effects) => {
                    let reads = effects.reads(is_guarded(code, call.at));
                    (summaries.add(reads), summaries.add(effects.may_write.clone()))
                }
                None => (all, all),
            };
            if let Some(at) = summaries.by_instruction.get_mut(call.at as usize) {
                *at = sets;
            }
        }
        // With an indirect call, any function may be its callee.
        let open = !known || cfg.calls.iter().any(|c| c.callee.is_none());
        for (b, last) in returns {
            let handed_back = functions.handed_back(b).filter(|_| !open);
            let set = handed_back.map_or(all, |set| summaries.add(set));
            summaries.by_instruction[last as usize] = (set, none);
        }
        summaries
    }

    pub fn is_empty(&self) -> bool {
        self.by_instruction.is_empty()
    }

    /// Dense numbers of the registers that the instruction reads beyond its own.
    pub fn reads(&self, instruction: u32) -> impl Iterator<Item = usize> + '_ {
        self.set(instruction, |s| s.0)
    }

    /// Dense numbers of the registers that the instruction writes beyond its own.
    pub fn writes(&self, instruction: u32) -> impl Iterator<Item = usize> + '_ {
        self.set(instruction, |s| s.1)
    }

    fn set(&self, instruction: u32, which: impl Fn(&(u32, u32)) -> u32) -> impl Iterator<Item = usize> + '_ {
        let sets = self.by_instruction.get(instruction as usize);
        // Set 0 is the empty one.
        members(
            sets.map(which)
                .filter(|s| *s != 0)
                .map_or(&[], |s| &self.sets[s as usize]),
        )
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
    fn reads(&self, guarded: bool) -> Set {
        let must = self.surely_writes(guarded);
        let passed = self.may_write.iter().zip(&must).map(|(may, must)| may & !must);
        self.needs.iter().zip(passed).map(|(n, p)| n | p).collect()
    }

    /// What a call writes whatever happens: nothing if it may be skipped.
    fn surely_writes(&self, guarded: bool) -> Set {
        match guarded {
            true => vec![0; self.must_write.len()].into(),
            false => self.must_write.clone(),
        }
    }
}

/// Code without calls, or a call.
enum Step {
    Straight {
        reads: Set,
        writes: Set,
    },
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

/// The functions that known calls lead to.
struct Functions<'a> {
    cfg: &'a Cfg,
    everything: &'a Set,
    by_entry: HashMap<u32, usize>,
    list: Vec<Function>,
    /// By block; none for those that are in no function.
    steps: Vec<Vec<Step>>,
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
        let by_entry: HashMap<u32, usize> = entries.iter().enumerate().map(|(n, e)| (*e, n)).collect();
        let mut functions = Functions {
            cfg,
            everything,
            steps: (0..cfg.len()).map(|_| Vec::new()).collect(),
            list: Vec::with_capacity(entries.len()),
            by_entry,
            visits: 0,
        };
        let nothing: Set = vec![0; accesses.words].into();
        let mut seen = vec![u32::MAX; cfg.len()];
        for (n, &entry) in entries.iter().enumerate() {
            let mut blocks = Vec::new();
            let mut stack = vec![entry];
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
        for (b, _) in seen.iter().enumerate().filter(|(_, owner)| **owner != u32::MAX) {
            let (start, end) = (cfg.start[b] as usize, cfg.start[b + 1] as usize);
            while calls.next_if(|c| (c.at as usize) < start).is_some() {}
            let steps = &mut functions.steps[b];
            let mut from = start;
            while let Some(call) = calls.next_if(|c| (c.at as usize) < end) {
                // The call's own operands are read before it.
                steps.push(straight(accesses.words, from..call.at as usize + 1, each_access));
                let callee = call.callee.and_then(|c| functions.by_entry.get(&c).copied());
                let guarded = is_guarded(code, call.at);
                steps.push(Step::Call { callee, guarded });
                from = call.at as usize + 1;
            }
            steps.push(straight(accesses.words, from..end, each_access));
        }
        functions
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
        self.by_entry.get(&entry).map(|&n| &self.list[n].effects)
    }

    /// What a return at the end of the block may hand back: all that the functions it belongs to write. `None` if it belongs to none.
    fn handed_back(&self, block: usize) -> Option<Set> {
        let owners = self
            .list
            .iter()
            .filter(|f| f.blocks.binary_search(&(block as u32)).is_ok());
        owners.fold(None, |all, f| {
            let mut set = all.unwrap_or_else(|| vec![0; f.effects.may_write.len()].into());
            set.iter_mut().zip(&f.effects.may_write).for_each(|(a, b)| *a |= b);
            Some(set)
        })
    }

    fn may_write(&self, n: usize) -> Set {
        let mut set = self.list[n].effects.may_write.clone();
        for step in self.list[n].blocks.iter().flat_map(|b| &self.steps[*b as usize]) {
            let writes = match step {
                Step::Straight { writes, .. } => writes,
                Step::Call { callee, .. } => callee.map_or(self.everything, |c| &self.list[c].effects.may_write),
            };
            set.iter_mut().zip(writes).for_each(|(a, b)| *a |= b);
        }
        set
    }

    /// Forward over the blocks, meeting paths by intersection; the result is that of all blocks that nothing follows.
    fn must_write(&self, n: usize) -> Set {
        let function = &self.list[n];
        let at = |b: u32| function.blocks.binary_search(&b).ok();
        let mut before: Vec<Option<Set>> = vec![None; function.blocks.len()];
        let mut work = vec![function.entry];
        if let Some(entry) = at(function.entry) {
            before[entry] = Some(vec![0; self.everything.len()].into());
        }
        let mut result = self.everything.clone();
        while let Some(b) = work.pop() {
            let Some(mut set) = at(b).and_then(|i| before[i].clone()) else {
                continue;
            };
            for step in &self.steps[b as usize] {
                let writes = match step {
                    Step::Straight { writes, .. } => writes.clone(),
                    Step::Call { callee: None, .. } => continue,
                    Step::Call {
                        callee: Some(c),
                        guarded,
                    } => self.list[*c].effects.surely_writes(*guarded),
                };
                set.iter_mut().zip(&writes).for_each(|(a, b)| *a |= b);
            }
            let successors = self.cfg.successors(b as usize);
            if successors.is_empty() {
                result.iter_mut().zip(&set).for_each(|(a, b)| *a &= b);
            }
            for &s in successors {
                let Some(i) = at(s) else { continue };
                let old = before[i].clone();
                let met: Set = match &old {
                    Some(old) => old.iter().zip(&set).map(|(a, b)| a & b).collect(),
                    None => set.clone(),
                };
                if old.as_ref() != Some(&met) {
                    before[i] = Some(met);
                    work.push(s);
                }
            }
        }
        result
    }

    /// Backward over the blocks: what is read before it is written.
    fn needs(&self, n: usize) -> Set {
        let function = &self.list[n];
        let mut before: Vec<Set> = vec![vec![0; self.everything.len()].into(); function.blocks.len()];
        let at = |b: u32| function.blocks.binary_search(&b).ok();
        loop {
            let mut changed = false;
            for (i, &b) in function.blocks.iter().enumerate().rev() {
                let mut live: Set = vec![0; self.everything.len()].into();
                for s in self.cfg.successors(b as usize).iter().filter_map(|s| at(*s)) {
                    live.iter_mut().zip(&before[s]).for_each(|(a, b)| *a |= b);
                }
                for step in self.steps[b as usize].iter().rev() {
                    match step {
                        Step::Straight { reads, writes } => transfer(&mut live, reads, writes),
                        Step::Call { callee: None, .. } => live.copy_from_slice(self.everything),
                        Step::Call {
                            callee: Some(c),
                            guarded,
                        } => {
                            let effects = &self.list[*c].effects;
                            transfer(&mut live, &effects.reads(*guarded), &effects.surely_writes(*guarded));
                        }
                    }
                }
                changed |= live != before[i];
                before[i] = live;
            }
            if !changed {
                return at(function.entry).map_or_else(|| self.everything.clone(), |i| before[i].clone());
            }
        }
    }
}

fn transfer(live: &mut Set, reads: &Set, writes: &Set) {
    let sets = reads.iter().zip(writes);
    live.iter_mut().zip(sets).for_each(|(l, (r, w))| *l = *l & !w | r);
}

/// What a run of instructions reads before it writes, and writes.
fn straight(words: usize, range: std::ops::Range<usize>, each_access: EachAccess<'_>) -> Step {
    let mut run = Accesses {
        words,
        reads: vec![0; words],
        writes: vec![0; words],
    };
    let mut block = run.block(0);
    for i in range {
        each_access(i, &mut |register, written| match written {
            true => block.write(register),
            false => block.read(register),
        });
    }
    Step::Straight {
        reads: run.reads.into(),
        writes: run.writes.into(),
    }
}
