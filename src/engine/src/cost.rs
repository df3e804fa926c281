//! What a rewrite costs and brings, by the latency model and by live registers: estimates, to hold back what makes a kernel worse.

use ir::Kernel;
use isa::RegFile;
use sched::{Model, time};
use serde::Serialize;

use crate::schedule::Timed;

/// Estimates of one kernel, before and after.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Costs {
    /// Sums of the stall counts: cycles in which the instructions issue one after the other.
    pub issue_cycles: (u64, u64),
    /// The same with the waits for scoreboards, every load taken to come from L2.
    pub cycles: (u64, u64),
    /// General registers that are live at once, at most.
    pub live_registers: (u16, u16),
}

impl Costs {
    /// Of two forms of a kernel.
    pub(crate) fn of(model: &Model, before: &Timed, after: &Timed) -> Costs {
        let time = |timed: &Timed| time::straight(&timed.code, model);
        let ((issue, cycles), (issue_after, cycles_after)) = (time(before), time(after));
        Costs {
            issue_cycles: (issue, issue_after),
            cycles: (cycles, cycles_after),
            live_registers: (live(&before.kernel), live(&after.kernel)),
        }
    }

    /// Why the rewrite is not worth it: it takes longer and frees no register.
    pub fn held_back(&self) -> Option<String> {
        let slower = self.cycles.1 > self.cycles.0;
        let frees = self.live_registers.1 < self.live_registers.0;
        (slower && !frees).then(|| {
            format!(
                "held back: by the estimate it is no gain ({} -> {} cycles, {} -> {} live registers)",
                self.cycles.0, self.cycles.1, self.live_registers.0, self.live_registers.1
            )
        })
    }
}

impl std::fmt::Display for Costs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Costs {
            issue_cycles,
            cycles,
            live_registers,
        } = self;
        write!(
            f,
            "estimate: {} -> {} issue cycles, {} -> {} with waits, {} -> {} live registers",
            issue_cycles.0, issue_cycles.1, cycles.0, cycles.1, live_registers.0, live_registers.1
        )
    }
}

fn live(kernel: &Kernel) -> u16 {
    let all = ir::pressure(kernel);
    all.iter().map(|p| p.of(RegFile::R)).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slower_is_worth_it_only_for_registers() {
        let costs = |after: u64, live: u16| Costs {
            issue_cycles: (90, 90),
            cycles: (100, after),
            live_registers: (20, live),
        };
        assert_eq!(costs(100, 20).held_back(), None);
        assert_eq!(costs(90, 21).held_back(), None);
        assert_eq!(costs(110, 19).held_back(), None);
        let why = costs(101, 20).held_back().expect("it is slower");
        assert_eq!(
            why,
            "held back: by the estimate it is no gain (100 -> 101 cycles, 20 -> 20 live registers)"
        );
    }
}
