//! What was executed of a kernel.

use crate::flow::Flow;
use crate::op::Run;
use crate::program::Program;
use crate::watch::Step;

/// Instructions executed, and branches taken, not taken, or both.
#[derive(Clone, Debug)]
pub struct Coverage {
    executed: Vec<bool>,
    taken: Vec<bool>,
    not_taken: Vec<bool>,
    /// Instructions before the padding at the end of the kernel.
    instructions: usize,
}

impl Coverage {
    pub(super) fn new(program: &Program) -> Self {
        let count = program.insts.len();
        Self {
            executed: vec![false; count],
            taken: vec![false; count],
            not_taken: vec![false; count],
            instructions: program.code_end() as usize,
        }
    }

    pub(super) fn step(&mut self, step: &Step<'_>) {
        let pc = step.warp.pc as usize;
        let Some(executed) = self.executed.get_mut(pc) else {
            return;
        };
        // An instruction whose guard no lane passes was still decided on.
        *executed = true;
        if let Some(Run::Flow(Flow::Branch(p, _))) = step.program.ops.get(pc).map(|o| &o.run) {
            let taken = step.mask & step.warp.regs.pred(*p);
            self.taken[pc] |= taken != 0;
            self.not_taken[pc] |= step.warp.active & !taken != 0;
        }
    }

    /// A count that grows with everything new.
    pub(super) fn reached(&self) -> usize {
        let lists = [&self.executed, &self.taken, &self.not_taken];
        lists.iter().flat_map(|l| l.iter()).filter(|b| **b).count()
    }

    /// Instructions executed, and instructions in all, without the padding at the end.
    pub fn instructions(&self) -> (usize, usize) {
        let executed = self.executed[..self.instructions].iter().filter(|e| **e).count();
        (executed, self.instructions)
    }

    /// Branches that went both ways, and branches that could have: those that are executed and have a condition.
    pub fn branches(&self, program: &Program) -> (usize, usize) {
        let conditional = |pc: &usize| {
            let op = &program.ops[*pc];
            let Run::Flow(Flow::Branch(p, _)) = &op.run else {
                return false;
            };
            op.guard != crate::regs::Pred::TRUE || *p != crate::regs::Pred::TRUE
        };
        let all: Vec<usize> = (0..self.instructions).filter(conditional).collect();
        let both = all.iter().filter(|&&pc| self.taken[pc] && self.not_taken[pc]).count();
        (both, all.len())
    }
}
