//! Live registers straight from the instructions: the textbook equations over sets of registers, with neither SSA nor blocks.

use ir::Kernel;
use isa::Isa;

use crate::access::predict;
use crate::plr::{File, RegSet, Usage};

/// Live registers at one instruction, by [`File`]: those needed before it, and those it writes.
pub type Live = [RegSet; 4];

/// Where the equations leave room.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// A guarded write keeps the register's old content where the guard is false, so that is needed; `P2R` and the like read every
    /// predicate.
    Most,
    /// A guarded write forgets the old content; only what a field names is read.
    Least,
}

/// An instruction as the equations see it.
struct Step {
    usage: Usage,
    named: Usage,
    guarded: bool,
    next: Vec<u32>,
}

/// The code of a kernel without calls.
pub struct Equations(Vec<Step>);

impl Equations {
    /// Reads and writes come from the tables, edges from the kernel.
    pub fn new(isa: &Isa, kernel: &Kernel) -> Equations {
        let mut steps: Vec<Step> = Vec::new();
        for op in kernel.ops().filter(|op| op.kind().is_code()) {
            let inst = isa.decode(op.word());
            let guard = isa.guard(inst);
            steps.push(Step {
                usage: predict::usage(isa, op.word().0).map_or_else(Usage::default, |u| u.0),
                named: predict::named_usage(isa, op.word().0).unwrap_or_default(),
                guarded: guard.is_some_and(|(file, reg, negated)| negated || !isa.is_zero(file, reg)),
                next: Vec::new(),
            });
        }
        for (from, to) in kernel.instruction_edges() {
            if to / 16 < steps.len() as u64 {
                steps[from as usize / 16].next.push(to as u32 / 16);
            }
        }
        Equations(steps)
    }

    /// The least solution.
    pub fn solve(&self, bound: Bound) -> Vec<Live> {
        let mut before: Vec<Live> = vec![Live::default(); self.0.len()];
        let mut at: Vec<Live> = before.clone();
        let mut changed = true;
        while changed {
            changed = false;
            for i in (0..self.0.len()).rev() {
                let step = &self.0[i];
                let (mut live, mut marks) = (Live::default(), Live::default());
                for f in File::ALL {
                    let f = f as usize;
                    let writes = &step.usage.write[f];
                    let reads = match bound {
                        Bound::Most => &step.usage.read[f],
                        Bound::Least => &step.named.read[f],
                    };
                    let mut after = RegSet::default();
                    step.next.iter().for_each(|&n| after.add_all(&before[n as usize][f]));
                    live[f] = after;
                    if !step.guarded || bound == Bound::Least {
                        live[f].remove_all(writes);
                    } else {
                        live[f].add_all(writes);
                    }
                    live[f].add_all(reads);
                    marks[f] = after;
                    marks[f].add_all(writes);
                    marks[f].add_all(reads);
                }
                at[i] = marks;
                if before[i] != live {
                    before[i] = live;
                    changed = true;
                }
            }
        }
        at
    }
}
