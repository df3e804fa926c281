//! Blocks side by side on several cores.
//!
//! Each core runs a range of the blocks on a copy of the memory, and what they changed is put together in the order of the blocks. So it is
//! done only where blocks cannot tell in which order they run; and if any of them fails, the launch begins again with one after another, which
//! says what fails first.

use crate::arg::{self, Kind};
use crate::cta::Block;
use crate::launch::{Outcome, Prepared};
use crate::memory::Memory;
use crate::program::Program;

/// Warps of a launch for which another core is worth starting.
const WORTH: u64 = 16;
/// Bytes of memory that are copied for each core at most.
const MOST_MEMORY: usize = 1 << 28;

/// The block with that number.
pub(crate) fn block(grid: [u32; 3], n: u64) -> [u32; 3] {
    let [x, y] = [u64::from(grid[0]), u64::from(grid[1])];
    [(n % x) as u32, (n / x % y) as u32, (n / (x * y)) as u32]
}

/// Whether blocks can tell in which order they run: by atomics or accesses that others see at once, by the clock, by functions of the driver.
fn order_shows(program: &Program) -> bool {
    let shows = |inst: &isa::Inst| {
        let Some(form) = program.isa.form(inst.form) else {
            return true;
        };
        let seen = |scope| program.isa.has_modifier(*inst, scope);
        match form.mnemonic() {
            "ATOM" | "ATOMG" | "RED" | "REDG" => true,
            "MEMBAR" | "LD" | "LDG" | "ST" | "STG" => {
                (seen("STRONG") || seen("SC") || seen("MMIO")) && (seen("GPU") || seen("SYS"))
            }
            "S2R" | "S2UR" | "CS2R" | "CS2UR" => arg::args(program.isa, *inst, 0)
                .unwrap_or_default()
                .iter()
                .any(|a| matches!(a.kind, Kind::Name(n) if n.contains("CLOCK") || n.contains("TIMER"))),
            _ => false,
        }
    };
    program.ops.len() > program.insts.len() || program.insts.iter().any(shows)
}

/// Runs the blocks of a launch on several cores; `None` if they have to run one after another.
pub(crate) fn run(
    program: &Program,
    prepared: &Prepared<'_>,
    grid: [u32; 3],
    cores: usize,
    memory: &mut Memory,
) -> Option<Outcome> {
    let blocks = grid.iter().map(|&n| u64::from(n)).product::<u64>();
    let warps = prepared.block.iter().product::<u32>().div_ceil(32);
    let cores = (cores as u64).min(blocks).min(blocks * u64::from(warps) / WORTH);
    let size: usize = memory.buffers().iter().map(|b| b.data.len()).sum();
    if cores < 2 || size > MOST_MEMORY || order_shows(program) {
        return None;
    }
    let part = |core: u64| {
        let (mut copy, mut outcome) = (memory.clone(), Outcome::default());
        for n in blocks * core / cores..blocks * (core + 1) / cores {
            let block = Block::new(program, prepared, block(grid, n));
            block.run(program, prepared, &mut copy, None, &mut outcome).ok()?;
        }
        Some((copy, outcome))
    };
    let parts: Option<Vec<(Memory, Outcome)>> = std::thread::scope(|scope| {
        let part = &part;
        let threads: Vec<_> = (0..cores).map(|core| scope.spawn(move || part(core))).collect();
        threads.into_iter().map(|t| t.join().ok()?).collect()
    });
    let mut parts = parts?.into_iter();
    let (mut result, mut outcome) = parts.next()?;
    for (copy, more) in parts {
        for ((to, from), old) in result
            .buffers_mut()
            .iter_mut()
            .zip(copy.buffers())
            .zip(memory.buffers())
        {
            merge(&mut to.data, &from.data, &old.data);
        }
        outcome.steps += more.steps;
        for (pair, n) in more.early {
            *outcome.early.entry(pair).or_default() += n;
        }
    }
    if outcome.steps > prepared.max_steps {
        return None;
    }
    *memory = result;
    Some(outcome)
}

/// Takes over the bytes that are not what they were.
fn merge(to: &mut [u8], from: &[u8], old: &[u8]) {
    const STEP: usize = 64;
    let parts = to.chunks_mut(STEP).zip(from.chunks(STEP)).zip(old.chunks(STEP));
    for ((to, from), old) in parts.filter(|((_, from), old)| from != old) {
        for ((to, from), old) in to.iter_mut().zip(from).zip(old) {
            if from != old {
                *to = *from;
            }
        }
    }
}
