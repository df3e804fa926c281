//! One block: its warps, its shared memory, its barriers.

use crate::error::{Fault, Space, Trap};
use crate::launch::{Outcome, Prepared};
use crate::memory::{Flat, Memory};
use crate::program::Program;
use crate::regs::{ALL, LANES, Mask, Regs, Row};
use crate::warp::{Status, Warp};
use crate::watch::{Access, Step, Watch};

/// What instructions see beside their warp.
pub struct Env<'a> {
    /// Device memory.
    pub memory: &'a mut Memory,
    /// The block's shared memory.
    pub shared: Flat,
    /// The block's barriers.
    pub(crate) bars: [Bar; 16],
    /// Block index.
    pub ctaid: [u32; 3],
    /// Constants that are read by an address in a register.
    pub banks: &'a crate::launch::Banks,
    /// Textures and surfaces.
    pub(crate) images: &'a [crate::image::Image],
    /// Warp instructions executed in the launch so far; also the clock.
    pub steps: u64,
    /// What `printf` printed.
    pub printed: Vec<u8>,
    /// Who looks on.
    pub watch: Option<&'a mut dyn Watch>,
    /// The code, for those who look on.
    pub(crate) program: &'a Program,
}

/// A block barrier.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bar {
    /// Lanes of each warp that have arrived.
    arrived: Vec<Mask>,
    /// Warps that must arrive; all that are left, if none is said.
    warps: Option<u32>,
    /// Lanes for which the predicate held, and for which it did not.
    yes: u32,
    no: u32,
    reduction: Reduction,
}

/// What `BAR.RED` makes of the predicates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Reduction {
    #[default]
    None,
    Count,
    Or,
    And,
}

impl Bar {
    /// Lanes of a warp arrive.
    pub(crate) fn arrive(&mut self, warp: u32, lanes: Mask, threads: u32) {
        let warp = warp as usize;
        if self.arrived.len() <= warp {
            self.arrived.resize(warp + 1, 0);
        }
        self.arrived[warp] |= lanes;
        self.warps = (threads != 0).then(|| threads.div_ceil(32));
    }

    /// The predicate of lanes that arrive.
    pub(crate) fn reduce(&mut self, reduction: Reduction, yes: Mask, no: Mask) {
        self.reduction = reduction;
        self.yes += yes.count_ones();
        self.no += no.count_ones();
    }

    fn is_complete(&self, warps: &[Warp]) -> bool {
        let there = |w: &Warp| {
            let arrived = self.arrived.get(w.number as usize).copied().unwrap_or(0);
            (arrived, arrived != 0 && w.alive & !arrived == 0)
        };
        if self.arrived.iter().all(|&m| m == 0) {
            return false;
        }
        match self.warps {
            Some(n) => warps.iter().filter(|w| there(w).1).count() >= n as usize,
            None => warps.iter().filter(|w| w.alive != 0).all(|w| there(w).1),
        }
    }

    fn result(&self) -> Option<u32> {
        match self.reduction {
            Reduction::None => None,
            Reduction::Count => Some(self.yes),
            Reduction::Or => Some(u32::from(self.yes != 0)),
            Reduction::And => Some(u32::from(self.no == 0)),
        }
    }
}

impl Env<'_> {
    #[cold]
    pub(crate) fn observe(&mut self, warp: &Warp, mask: Mask) {
        let program = self.program;
        if let Some(watch) = self.watch.as_deref_mut() {
            watch.step(&Step {
                program,
                ctaid: self.ctaid,
                warp,
                mask,
                number: self.steps,
            });
        }
    }

    /// Tells who looks on about an access to memory.
    #[inline]
    pub(crate) fn accessed(&mut self, access: Access) -> Result<(), Trap> {
        match self.watch.as_deref_mut() {
            Some(watch) => watch.access(&access),
            None => Ok(()),
        }
    }
}

/// The thread indices of a warp's lanes, and which of them exist.
pub fn threads(block: [u32; 3], warp: u32) -> ([Row; 3], Mask) {
    let total = u64::from(block[0]) * u64::from(block[1]) * u64::from(block[2]);
    let number = |l: usize| u64::from(warp) * LANES as u64 + l as u64;
    let alive = crate::regs::lanes(|l| number(l) < total);
    let (x, y) = (u64::from(block[0]), u64::from(block[1]));
    let tid = [
        std::array::from_fn(|l| (number(l) % x) as u32),
        std::array::from_fn(|l| (number(l) / x % y) as u32),
        std::array::from_fn(|l| (number(l) / (x * y)) as u32),
    ];
    (tid, alive)
}

/// A block that has started.
pub(crate) struct Block {
    warps: Vec<Warp>,
    shared: Flat,
    bars: [Bar; 16],
    ctaid: [u32; 3],
}

impl Block {
    /// All warps at the start of the program.
    pub(crate) fn new(program: &Program, launch: &Prepared<'_>, ctaid: [u32; 3]) -> Self {
        let block = launch.block;
        let threads_in_all = block[0] * block[1] * block[2];
        let warps = (0..threads_in_all.div_ceil(LANES as u32)).map(|n| {
            let (tid, alive) = threads(block, n);
            let mut regs = Regs::new(program.layout.rows().into(), launch.pool.clone());
            regs.set(program.layout.general + 2, ALL, [launch.initialised; LANES]);
            Warp::new(n, regs, alive, tid, launch.local_size, program.entry)
        });
        Self {
            warps: warps.collect(),
            shared: Flat::new(Space::Shared, launch.shared_size),
            bars: Default::default(),
            ctaid,
        }
    }

    /// Runs to the end, or until the launch has executed `limit` instructions.
    pub(crate) fn run<'r>(
        mut self,
        program: &'r Program,
        launch: &'r Prepared<'_>,
        memory: &'r mut Memory,
        watch: Option<&'r mut (dyn Watch + 'r)>,
        outcome: &mut Outcome,
    ) -> Result<(), Box<Fault>> {
        let mut env = Env {
            memory,
            shared: self.shared,
            bars: self.bars,
            ctaid: self.ctaid,
            banks: &launch.banks,
            images: launch.images,
            steps: outcome.steps,
            printed: std::mem::take(&mut outcome.printed),
            watch,
            program,
        };
        let end = run_warps(&mut self.warps, program, &mut env, launch);
        outcome.steps = env.steps;
        outcome.printed = env.printed;
        for (&pair, n) in self.warps.iter().flat_map(|w| &w.in_flight.early) {
            *outcome.early.entry(pair).or_default() += n;
        }
        end.map_err(|(warp, trap)| {
            let w = &self.warps[warp];
            Box::new(program.fault(w.pc, self.ctaid, w, trap))
        })
    }
}

fn run_warps(
    warps: &mut [Warp],
    program: &Program,
    env: &mut Env<'_>,
    launch: &Prepared<'_>,
) -> Result<(), (usize, Trap)> {
    let limit = launch.max_steps;
    let mut done = vec![false; warps.len()];
    loop {
        let mut moved = false;
        for n in 0..warps.len() {
            if done[n] {
                continue;
            }
            let before = env.steps;
            let slice = launch.turn.min(limit.saturating_sub(env.steps));
            match warps[n].run(program, env, slice).map_err(|t| (n, t))? {
                Status::Done => done[n] = true,
                Status::Paused if env.steps >= limit => return Err((n, Trap::TooLong(limit))),
                Status::Blocked | Status::Paused => {}
            }
            moved |= env.steps != before || done[n];
            moved |= release(warps, env);
        }
        let Some(first) = done.iter().position(|d| !d) else {
            return Ok(());
        };
        if !moved {
            let waits = warps.iter().filter(|w| w.alive != 0).map(Warp::waits);
            return Err((first, Trap::Deadlock(waits.collect::<Vec<_>>().join("; "))));
        }
    }
}

/// Opens the barriers at which everybody is.
fn release(warps: &mut [Warp], env: &mut Env<'_>) -> bool {
    let mut opened = false;
    for id in 0..env.bars.len() {
        if !env.bars[id].is_complete(warps) {
            continue;
        }
        let bar = std::mem::take(&mut env.bars[id]);
        opened = true;
        for w in warps.iter_mut() {
            let lanes = w.waiting_at(id as u8);
            if lanes != 0 {
                w.reduced = bar.result().unwrap_or(w.reduced);
                w.release_block(lanes);
            }
        }
        if let Some(watch) = env.watch.as_deref_mut() {
            watch.barrier(env.ctaid);
        }
    }
    opened
}
