//! What calls and returns read and write without naming it.
//!
//! A call that comes back may read and write whatever its callee does; a return hands back what its function wrote. The sets are those
//! of all code that the callee reaches, so they are complete though not exact.

use std::collections::HashMap;

use crate::cfg::{Cfg, Decoded};
use crate::layout::Flow;
use crate::ssa::{Accesses, members};

/// Registers as a bit set over dense numbers.
type Set = Box<[u64]>;

/// The extra reads and writes, by instruction.
#[derive(Default)]
pub(crate) struct Summaries {
    /// By instruction: sets in `sets` that it reads and writes; empty if no instruction has any.
    by_instruction: Vec<(u32, u32)>,
    sets: Vec<Set>,
}

/// Blocks visited for all callees together, before one common set is used for every call.
const BUDGET: usize = 1 << 22;

impl Summaries {
    pub fn new(code: &Decoded<'_>, cfg: &Cfg, accesses: &Accesses, registers: usize) -> Summaries {
        let mut summaries = Summaries::default();
        let returns: Vec<(usize, u32)> = (0..cfg.len())
            .map(|b| (b, cfg.start[b + 1] - 1))
            .filter(|(_, last)| code.layout_of(*last as usize).is_some_and(|l| l.flow == Flow::Return))
            .collect();
        if cfg.calls.is_empty() && returns.is_empty() {
            return summaries;
        }
        let words = accesses.words;
        let none = summaries.add(vec![0; words].into());
        summaries.by_instruction = vec![(none, none); cfg.code_end()];
        let everything: Set = full(registers, words);
        let mut callees: Vec<u32> = cfg.calls.iter().filter_map(|c| c.callee).collect();
        callees.sort_unstable();
        callees.dedup();
        // Calls made by each block, and whether it makes one that goes anywhere.
        let mut calls_of: HashMap<u32, Vec<Option<u32>>> = HashMap::new();
        for call in &cfg.calls {
            let block = cfg.start.partition_point(|&s| s <= call.at) as u32 - 1;
            calls_of.entry(block).or_default().push(call.callee);
        }
        let mut budget = BUDGET;
        let mut returned = vec![false; cfg.len()];
        let mut written: Set = vec![0; words].into();
        let mut by_callee: HashMap<u32, (u32, u32)> = HashMap::new();
        let mut seen = vec![u32::MAX; cfg.len()];
        for (round, &callee) in callees.iter().enumerate() {
            let mut touched: Set = vec![0; words].into();
            let mut writes: Set = vec![0; words].into();
            let mut stack = vec![callee];
            while let Some(b) = stack.pop() {
                let at = b as usize;
                if std::mem::replace(&mut seen[at], round as u32) == round as u32 {
                    continue;
                }
                if budget == 0 {
                    touched.copy_from_slice(&everything);
                    writes.copy_from_slice(&everything);
                    returned.fill(true);
                    break;
                }
                budget -= 1;
                returned[at] = true;
                for w in 0..words {
                    // Block numbers of `accesses` count the prologue.
                    let i = (at + 1) * words + w;
                    touched[w] |= accesses.reads[i] | accesses.writes[i];
                    writes[w] |= accesses.writes[i];
                }
                stack.extend(cfg.successors(at));
                for target in calls_of.get(&b).into_iter().flatten() {
                    match target {
                        Some(t) => stack.push(*t),
                        None => {
                            touched.copy_from_slice(&everything);
                            writes.copy_from_slice(&everything);
                        }
                    }
                }
            }
            written.iter_mut().zip(&writes).for_each(|(a, b)| *a |= b);
            let reads = summaries.add(touched);
            let writes = summaries.add(writes);
            by_callee.insert(callee, (reads, writes));
        }
        let all = summaries.add(everything);
        for call in &cfg.calls {
            let sets = call
                .callee
                .and_then(|c| by_callee.get(&c).copied())
                .unwrap_or((all, all));
            if let Some(at) = summaries.by_instruction.get_mut(call.at as usize) {
                *at = sets;
            }
        }
        let written = summaries.add(written);
        for (b, last) in returns {
            // A return that no call of this section leads to goes to a caller that is not known.
            summaries.by_instruction[last as usize] = (if returned[b] { written } else { all }, none);
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

    /// How many those are.
    pub fn read_count(&self, instruction: u32) -> u32 {
        self.reads(instruction).count() as u32
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

fn full(registers: usize, words: usize) -> Set {
    let mut set: Set = vec![u64::MAX; words].into();
    if let Some(last) = set.last_mut().filter(|_| registers % 64 != 0) {
        *last = (1 << (registers % 64)) - 1;
    }
    set
}
