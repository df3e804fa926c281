//! List scheduling: another order of the instructions of a block, in which results have more time to arrive.
//!
//! What controls flow, orders memory, or is not known stays in its place, and so does what the caller wants to; between two of these,
//! instructions move as far as registers and memory allow. Registers stay, so that no more of them are needed.

use isa::{Effects, Space};

use crate::code::{Code, Step};
use crate::model::{Model, Need};
use crate::walk::Kind;

/// An order of all instructions: at each place, the number of the one that goes there.
pub(crate) fn order(code: &Code, model: &Model, may_move: &dyn Fn(u32) -> bool) -> Vec<u32> {
    let mut order: Vec<u32> = (0..code.steps.len() as u32).collect();
    for (_, block) in code.blocks.iter().enumerate().filter(|(b, _)| !code.is_body(*b)) {
        let mut start = block.start;
        for at in block.clone() {
            if is_wall(code, &code.steps[at as usize]) || !may_move(at) {
                region(code, model, start..at, &mut order);
                start = at + 1;
            }
        }
        region(code, model, start..block.end, &mut order);
    }
    order
}

/// Whether an instruction stays where it is, and nothing passes it. What is never executed has its place for the hardware's sake.
fn is_wall(code: &Code, step: &Step) -> bool {
    let orders = [Effects::FENCE, Effects::BARRIER, Effects::CONTROL, Effects::STATE];
    step.class.is_none()
        || step.flow != ir::Flow::None
        || step.counted.is_some()
        || step.wait != step.control.wait
        || code.never_happens(step)
        || code.only_waits(step)
        || orders.iter().any(|e| step.effects.has(*e))
}

/// A dependence of one instruction of a region on another, by position there.
struct Edge {
    from: usize,
    to: usize,
    /// Cycles between the two issues.
    cycles: u64,
}

fn region(code: &Code, model: &Model, range: std::ops::Range<u32>, order: &mut [u32]) {
    let count = range.len();
    if count < 2 {
        return;
    }
    let edges = edges(code, model, range.clone());
    let mut out: Vec<Vec<(usize, u64)>> = vec![Vec::new(); count];
    let mut open = vec![0; count];
    for e in &edges {
        out[e.from].push((e.to, e.cycles));
        open[e.to] += 1;
    }
    // Cycles from an instruction's issue to the end of the longest chain that begins with it.
    let mut rest = vec![0; count];
    for n in (0..count).rev() {
        let tails = out[n].iter().map(|(to, cycles)| cycles + rest[*to]);
        rest[n] = tails
            .max()
            .unwrap_or_else(|| latency(code, model, range.start + n as u32));
    }
    let mut ready: Vec<usize> = (0..count).filter(|n| open[*n] == 0).collect();
    let mut earliest = vec![0; count];
    let mut now = 0;
    for place in range.clone() {
        let best = ready.iter().enumerate().min_by_key(|(_, n)| {
            let issue = now.max(earliest[**n]);
            (issue, std::cmp::Reverse(rest[**n]), **n)
        });
        let Some((at, _)) = best else { return };
        let n = ready.swap_remove(at);
        now = now.max(earliest[n]);
        for (to, cycles) in &out[n] {
            earliest[*to] = earliest[*to].max(now + cycles);
            open[*to] -= 1;
            if open[*to] == 0 {
                ready.push(*to);
            }
        }
        now += 1;
        order[place as usize] = range.start + n as u32;
    }
}

/// Cycles until the results of an instruction are there, whoever reads them.
fn latency(code: &Code, model: &Model, at: u32) -> u64 {
    let step = &code.steps[at as usize];
    let Some(class) = step.class else { return 1 };
    if step.control.write_barrier.is_some() {
        return model.times().result(class).into();
    }
    match code.writes(step).is_empty() {
        true => 1,
        false => u64::from(model.settles(class)).min(16),
    }
}

fn edges(code: &Code, model: &Model, range: std::ops::Range<u32>) -> Vec<Edge> {
    let mut edges = Vec::new();
    let steps = &code.steps[range.start as usize..range.end as usize];
    let accesses: Vec<Option<Access>> = steps.iter().map(|step| Access::of(code, step)).collect();
    let access = |at: u32| accesses[(at - range.start) as usize];
    for to in range.clone() {
        for from in range.start..to {
            let memory = access(from).zip(access(to)).is_some_and(|(a, b)| a.stays_before(b));
            if let Some(cycles) = dependence(code, model, from, to, memory) {
                edges.push(Edge {
                    from: (from - range.start) as usize,
                    to: (to - range.start) as usize,
                    cycles,
                });
            }
        }
    }
    edges
}

/// Cycles that must lie between two instructions, if their order must stay; with `memory` it must for the memory that they access.
fn dependence(code: &Code, model: &Model, from: u32, to: u32, memory: bool) -> Option<u64> {
    let (a, b) = (&code.steps[from as usize], &code.steps[to as usize]);
    let (earlier, later) = (a.class?, b.class?);
    let in_order = memory || code.left_out_meets(a, b) || code.left_out_meets(b, a);
    let mut cycles = in_order.then_some(1);
    let mut add = |n: u64| cycles = Some(cycles.unwrap_or(1).max(n));
    let told = a.control.write_barrier.is_some();
    for written in code.writes(a) {
        for read in code.reads(b).iter().filter(|t| t.of(written.first, written.width) != 0) {
            add(
                match model.need(Kind::Raw, read.port, written.class, read.class, a.latency) {
                    Need::Cycles(n, _) if !told => n.into(),
                    _ => model.times().result(earlier).into(),
                },
            );
        }
        for again in code
            .writes(b)
            .iter()
            .filter(|t| t.of(written.first, written.width) != 0)
        {
            add(
                match model.need(Kind::Waw, again.port, written.class, again.class, a.latency) {
                    Need::Cycles(n, _) if !told => n.into(),
                    _ => model.times().result(earlier).into(),
                },
            );
        }
    }
    for read in code.reads(a) {
        for _ in code.writes(b).iter().filter(|t| t.of(read.first, read.width) != 0) {
            let late = a.latency != isa::Latency::Fixed && !model.in_order_reads(earlier, later);
            add(if late { model.times().operands().into() } else { 1 });
        }
    }
    cycles
}

/// What an instruction does to memory that others may see.
#[derive(Clone, Copy)]
struct Access {
    space: Space,
    writes: bool,
    /// What comes behind it may rely on what it saw: it may be volatile, or acquire. A load of shared memory does not say whether it is; of what
    /// releases a fence says so, which is a wall.
    leads: bool,
}

impl Access {
    fn of(code: &Code, step: &Step) -> Option<Access> {
        let inst = step.inst();
        let space = code.isa.semantics(inst).space;
        let is_atomic = step.effects.has(Effects::ATOMIC);
        let reads = step.effects.has(Effects::READ);
        let writes = is_atomic || step.effects.has(Effects::WRITE);
        let strong = || {
            ["STRONG", "MMIO"]
                .iter()
                .any(|token| code.isa.has_modifier(inst, token))
        };
        (reads || writes).then(|| Access {
            space,
            writes,
            leads: is_atomic || reads && space == Space::Shared || strong(),
        })
    }

    /// Whether a later access must stay behind this one: either writes, or this one leads, and both may mean memory that somebody else writes.
    fn stays_before(self, later: Access) -> bool {
        let (x, y) = (self.space, later.space);
        let either = |space: Space| x == space || y == space;
        let own = |s: Space| matches!(s, Space::Shared | Space::Local | Space::Global | Space::Tensor);
        let meets = (self.writes || later.writes) && (x == y || !own(x) || !own(y));
        !either(Space::Constant) && (meets || self.leads && !either(Space::Local))
    }
}
