//! How long a kernel takes by its stall counts and waits, and what its results have to wait for.

use std::collections::HashMap;

use isa::Latency;

use crate::code::{Code, Reg};
use crate::model::{Model, Need};
use crate::time::Clock;
use crate::walk::Kind;

/// One block, gone through once with nothing in flight at its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Its first instruction, by number.
    pub first: u32,
    /// How many it has.
    pub instructions: u32,
    /// Sum of the stall counts.
    pub issue: u64,
    /// The same with the waits for scoreboards: until the next block may issue.
    pub cycles: u64,
    /// Cycles until its last instruction could issue if nothing held it back but operands.
    pub critical: u64,
    /// The instructions that this is the sum of, each reading what the one before it writes.
    pub path: Vec<u32>,
}

/// The blocks of a kernel in order; blocks without instructions are left out.
pub fn estimate(code: &Code, model: &Model) -> Vec<Block> {
    let blocks = code.blocks.iter().filter(|b| !b.is_empty());
    blocks
        .map(|range| {
            let steps = &code.steps[range.start as usize..range.end as usize];
            let mut clock = Clock::new(model);
            steps.iter().for_each(|s| {
                clock.issue(s);
            });
            let (critical, path) = critical_path(code, model, range.clone());
            Block {
                first: range.start,
                instructions: range.end - range.start,
                issue: steps.iter().map(|s| u64::from(s.control.stall)).sum(),
                cycles: clock.now,
                critical,
                path,
            }
        })
        .collect()
}

/// The longest chain of instructions of a block that read each other's results.
fn critical_path(code: &Code, model: &Model, range: std::ops::Range<u32>) -> (u64, Vec<u32>) {
    // Who wrote a register last; when each instruction could issue, and because of whom.
    let mut writer: HashMap<Reg, u32> = HashMap::new();
    let mut earliest: Vec<(u64, Option<u32>)> = Vec::new();
    for at in range.clone() {
        let step = &code.steps[at as usize];
        let mut bound = (0, None);
        for touch in code.reads(step) {
            for by in (touch.first..touch.first + Reg::from(touch.width)).filter_map(|r| writer.get(&r)) {
                let ready = earliest[(by - range.start) as usize].0 + takes(code, model, *by, touch.class, touch.port);
                if ready > bound.0 {
                    bound = (ready, Some(*by));
                }
            }
        }
        for touch in code.writes(step) {
            writer.extend((touch.first..touch.first + Reg::from(touch.width)).map(|r| (r, at)));
        }
        earliest.push(bound);
    }
    let last = (0..earliest.len()).max_by_key(|n| earliest[*n].0);
    let mut path = Vec::new();
    let mut next = last.map(|n| range.start + n as u32);
    while let Some(at) = next {
        path.push(at);
        next = earliest[(at - range.start) as usize].1;
    }
    path.reverse();
    (last.map_or(0, |n| earliest[n].0), path)
}

/// Cycles from the issue of an instruction until another that reads its result may issue.
fn takes(code: &Code, model: &Model, by: u32, reader: crate::class::ClassId, port: crate::code::Port) -> u64 {
    let step = &code.steps[by as usize];
    let Some(class) = step.class else { return 0 };
    let told = step.latency == Latency::Scoreboard || step.control.write_barrier.is_some();
    match model.need(Kind::Raw, port, class, reader, step.latency) {
        Need::Cycles(cycles, _) if !told => cycles.into(),
        _ => model.times().result(class).into(),
    }
}
