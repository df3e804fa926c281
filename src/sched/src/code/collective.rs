//! Collectives, as calls.

use std::collections::HashMap;

use ir::{Flow, Kernel};

use super::Code;

/// No more collectives are followed that may meet: each enters the bodies of all.
const CROWD: usize = 1024;

impl Code {
    /// A collective is as a call of all bodies that its lanes may find themselves in: whose lanes meet, the body of one of them runs for all, and
    /// behind it each lane goes on where its own collective ends. So blocks end where one begins, and where one ends there is a return.
    pub(super) fn collectives(&mut self, kernel: &Kernel) {
        let all = ir::collectives(self.isa, kernel);
        if all.is_empty() {
            return;
        }
        let code = kernel.ops().filter(|op| op.kind().is_code());
        let places: Vec<_> = code.map(|op| op.id()).collect();
        let place = |op| places.partition_point(|p| *p < op);
        let mut groups: HashMap<Vec<u128>, Vec<u32>> = HashMap::new();
        for one in all {
            let begin = place(one.begin);
            let Some(end) = one.end.map(place) else {
                self.steps[begin].class = None; // nobody knows where that leads
                continue;
            };
            self.steps[begin].flow = Flow::Call;
            self.steps[end].flow = Flow::Return;
            let body = self.steps[begin + 1..end].iter();
            let body = body.map(|s| s.word.0 & !isa::control::MASK).collect();
            groups.entry(body).or_default().push(begin as u32);
        }
        let mut groups: Vec<Vec<u32>> = groups.into_values().collect();
        groups.sort_unstable();
        for (n, begins) in groups.iter().enumerate() {
            for begin in begins {
                let step = &mut self.steps[*begin as usize];
                step.meets = Some(n as u32);
                step.class = step.class.filter(|_| begins.len() <= CROWD);
            }
        }
        self.cut_at_collectives();
        let behind = |begin: &u32| self.block_of(*begin + 1) as u32;
        self.bodies = groups.iter().map(|g| g.iter().map(behind).collect()).collect();
    }

    /// Ends blocks where a collective begins, and renumbers them.
    fn cut_at_collectives(&mut self) {
        let old = std::mem::take(&mut self.blocks);
        let (starts, succs) = (std::mem::take(&mut self.succ_start), std::mem::take(&mut self.succs));
        let mut numbers = Vec::with_capacity(old.len());
        self.succ_start.push(0);
        for (b, block) in old.into_iter().enumerate() {
            numbers.push(self.blocks.len() as u32);
            let begin = block.clone().find(|at| self.steps[*at as usize].meets.is_some());
            let first = block.start..begin.map_or(block.end, |begin| begin + 1);
            self.blocks.push(first.clone());
            self.succs.extend(&succs[starts[b] as usize..starts[b + 1] as usize]);
            self.succ_start.push(self.succs.len() as u32);
            if begin.is_some() {
                self.blocks.push(first.end..block.end);
                self.succ_start.push(self.succs.len() as u32);
            }
        }
        let callees = self.steps.iter_mut().filter_map(|s| s.callee.as_mut());
        let all = self.succs.iter_mut().chain(&mut self.named).chain(callees);
        all.for_each(|b| *b = numbers[*b as usize]);
    }

    /// Whether a block is the body of a collective: others are to be the same.
    pub(crate) fn is_body(&self, block: usize) -> bool {
        self.bodies.iter().any(|group| group.contains(&(block as u32)))
    }
}
