//! One warp: its registers, and which of its lanes are where.
//!
//! Lanes that are at the same place run together as the active group. The others are ready, or wait: at a convergence barrier, for a mask of
//! lanes, or for the block. A group runs until it ends, waits or splits; then the next ready group does, in turn, so that lanes that spin do
//! not keep others from what they spin on. Between branches a group is never interrupted, because uniform registers are one per warp.

use crate::cta::Env;
use crate::error::Trap;
use crate::flow::{Base, Flow};
use crate::memory::{CODE, Flat};
use crate::op::{Op, Run};
use crate::program::Program;
use crate::regs::{ALL, LANES, Mask, Pred, Regs, Row, each};
use crate::sign::AsUnsigned;
use crate::timing::InFlight;

/// What a warp is doing when it gives control back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// All lanes have ended.
    Done,
    /// Every lane that is left waits for the block.
    Blocked,
    /// Its slice is over.
    Paused,
}

/// One warp.
pub struct Warp {
    /// Number in the block.
    pub number: u32,
    /// Registers.
    pub regs: Regs,
    /// Convergence barriers, as each lane knows them: the lanes that take part.
    pub barriers: [Row; 16],
    /// Local memory of the lanes, one after another.
    pub local: Flat,
    /// Bytes of it a lane.
    pub local_size: usize,
    /// Thread indices: x, y, z.
    pub tid: [Row; 3],
    /// What the last block barrier that reduces gave.
    pub reduced: u32,
    /// The lanes that run now.
    pub active: Mask,
    /// Where they are: an index into the program's ops.
    pub pc: u32,
    /// Lanes that have not ended.
    pub alive: Mask,
    /// The lane that accessed memory last.
    pub(crate) accessing: usize,
    /// Lanes that could run.
    ready: Mask,
    /// Where lanes that are not active go on.
    lane_pc: [u32; LANES],
    /// Lanes that wait at each convergence barrier.
    waiting: [Mask; 16],
    /// Lanes that wait for a mask of lanes, and the masks.
    warp_waiting: Mask,
    warp_masks: Row,
    /// The mask of those that a lane runs together with, and nobody else does; 0 if anybody may join.
    gang: Row,
    /// Lanes that are in a collective, or wait for it, and where each goes on behind it.
    collective: Mask,
    returns: [u32; LANES],
    /// Lanes that wait for the block.
    block_waiting: Mask,
    /// The block barrier that each of them waits at.
    block_barrier: [u8; LANES],
    /// The lane before the group that runs next.
    turn: usize,
    /// Results that are not there yet.
    pub(crate) in_flight: InFlight,
}

impl Warp {
    /// A warp of the lanes in `alive`, at the start of a program.
    pub fn new(number: u32, regs: Regs, alive: Mask, tid: [Row; 3], local_size: usize, entry: u32) -> Self {
        Self {
            number,
            regs,
            barriers: [[0; LANES]; 16],
            local: Flat::new(crate::error::Space::Local, local_size * LANES),
            local_size,
            tid,
            reduced: 0,
            active: alive,
            pc: entry,
            alive,
            accessing: 0,
            ready: 0,
            lane_pc: [0; LANES],
            waiting: [0; 16],
            warp_waiting: 0,
            warp_masks: [0; LANES],
            gang: [0; LANES],
            collective: 0,
            returns: [0; LANES],
            block_waiting: 0,
            block_barrier: [0; LANES],
            turn: 0,
            in_flight: InFlight::default(),
        }
    }

    /// Runs until the warp ends, waits for the block, or has executed `slice` instructions; counts them in `env.steps`.
    pub fn run(&mut self, program: &Program, env: &mut Env<'_>, slice: u64) -> Result<Status, Trap> {
        let end = env.steps + slice;
        let watched = env.watch.is_some();
        while self.active != 0 || self.pick() {
            let at = self.pc;
            let Some(op) = program.ops.get(at as usize) else {
                return Err(Trap::BadJump(CODE + u64::from(at) * 16));
            };
            if let Some(timing) = &program.timing {
                self.in_flight.before(timing, at, self.active, &mut self.regs);
            }
            let guard = self.regs.pred(op.guard);
            let mask = if op.uniform { guard } else { guard & self.active };
            if watched {
                env.observe(self, mask);
            }
            env.steps += 1;
            let goes_on = self.execute(op, mask, program, env)?;
            if let Some(timing) = &program.timing {
                self.in_flight.after(timing, at, mask, &mut self.regs);
            }
            if !goes_on || env.steps >= end {
                return Ok(Status::Paused);
            }
        }
        Ok(if self.alive == 0 { Status::Done } else { Status::Blocked })
    }

    /// Executes one instruction on some lanes; whether the warp wants to go on.
    #[inline(always)]
    fn execute(&mut self, op: &Op, mask: Mask, program: &Program, env: &mut Env<'_>) -> Result<bool, Trap> {
        match &op.run {
            Run::Lanes(f) => {
                if mask != 0 {
                    f(&mut self.regs, mask);
                }
                self.pc += 1;
            }
            Run::Outside(f) => {
                let next = self.pc + 1;
                if mask != 0 {
                    f(self, env, mask)?;
                }
                self.pc = next;
                if self.block_waiting != 0 {
                    self.park(self.block_waiting & self.active, next);
                }
            }
            Run::Flow(Flow::Yield) => {
                self.pc += 1;
                self.rotate();
                return Ok(false);
            }
            Run::Flow(flow) => self.follow(*flow, mask, program)?,
            Run::Missing(n) => {
                if mask != 0 {
                    return Err(Trap::Missing(program.missing[*n as usize].to_string()));
                }
                self.pc += 1;
            }
        }
        Ok(true)
    }

    /// Takes lanes out of the active group; they go on at `pc` when something makes them ready.
    fn park(&mut self, lanes: Mask, pc: u32) {
        each(lanes).for_each(|l| self.lane_pc[l] = pc);
        self.active &= !lanes;
    }

    /// Makes the next ready group the active one.
    fn pick(&mut self) -> bool {
        if self.ready == 0 {
            return false;
        }
        let behind = self.ready & !(ALL >> (31 - self.turn as u32));
        let lane = if behind != 0 { behind } else { self.ready }.trailing_zeros() as usize;
        self.pc = self.lane_pc[lane];
        self.active = each(self.ready)
            .filter(|&l| self.lane_pc[l] == self.pc && self.gang[l] == self.gang[lane])
            .fold(0, |m, l| m | 1 << l);
        self.ready &= !self.active;
        self.turn = lane;
        true
    }

    /// Lets another ready group run.
    fn rotate(&mut self) {
        if self.ready != 0 && self.active != 0 {
            let (lanes, pc) = (self.active, self.pc);
            self.park(lanes, pc);
            self.ready |= lanes;
            self.pick();
        }
    }

    /// Lanes of the active group wait at a block barrier, once the instruction is over.
    pub(crate) fn wait_for_block(&mut self, lanes: Mask, barrier: u8) {
        self.block_waiting |= lanes;
        self.part(lanes);
        each(lanes).for_each(|l| self.block_barrier[l] = barrier);
    }

    /// The lanes that wait at a block barrier.
    pub(crate) fn waiting_at(&self, barrier: u8) -> Mask {
        each(self.block_waiting)
            .filter(|&l| self.block_barrier[l] == barrier)
            .fold(0, |m, l| m | 1 << l)
    }

    /// Lanes that waited for the block may go on.
    pub(crate) fn release_block(&mut self, lanes: Mask) {
        self.block_waiting &= !lanes;
        self.ready |= lanes;
    }

    /// Sends lanes of the active group to `to`; the others go on behind the instruction.
    fn jump(&mut self, lanes: Mask, to: u32) {
        let rest = self.active & !lanes;
        let next = self.pc + 1;
        if lanes == 0 {
            self.pc = next;
        } else if rest == 0 {
            self.pc = to;
            // A loop gives other groups their turn.
            if to < next && self.ready != 0 {
                self.rotate();
            }
        } else {
            self.park(rest, next);
            self.ready |= rest;
            self.pc = to;
        }
    }

    fn follow(&mut self, flow: Flow, mask: Mask, program: &Program) -> Result<(), Trap> {
        let holds = |w: &Self, p: Pred| mask & w.regs.pred(p);
        match flow {
            Flow::Branch(p, to) => {
                let to = program.local(self.pc, to);
                self.jump(holds(self, p), to);
            }
            Flow::IfConverged(p, who, converged, to) => {
                let who = self.regs.int(who)[self.active.trailing_zeros() as usize];
                let together = holds(self, p) == who & self.alive;
                let taken = together == converged;
                let to = program.local(self.pc, to);
                self.jump(if taken { self.active } else { 0 }, to);
            }
            Flow::IfAny(p, to) => {
                let to = program.local(self.pc, to);
                self.jump(if holds(self, p) != 0 { self.active } else { 0 }, to);
            }
            Flow::Absolute(p, to) => {
                let to = program.index_of(to).ok_or(Trap::BadJump(to))?;
                self.jump(holds(self, p), to);
            }
            Flow::Indirect(p, target, base) => {
                let lanes = holds(self, p);
                let from = match base {
                    Base::Section(at) => (CODE + u64::from(program.section_start(self.pc)) * 16).wrapping_add(at),
                    Base::Absolute(n) => n.unsigned(),
                    Base::Next(n) => (CODE + u64::from(self.pc + 1) * 16).wrapping_add_signed(n),
                };
                let target = self.regs.wide(target).map(|t| t.wrapping_add(from));
                let mut to = [0; LANES];
                for l in each(lanes) {
                    to[l] = program.index_of(target[l]).ok_or(Trap::BadJump(target[l]))?;
                }
                self.pc += 1;
                self.scatter(lanes, &to);
            }
            Flow::Exit(p) => {
                let lanes = holds(self, p);
                self.alive &= !lanes;
                self.active &= !lanes;
                self.pc += 1;
                if lanes != 0 {
                    self.wake(program)?;
                }
            }
            Flow::Gather(p, b) => {
                let lanes = holds(self, p);
                each(lanes).for_each(|l| self.barriers[usize::from(b)][l] = lanes);
                self.pc += 1;
            }
            Flow::Wait(p, b) => {
                let lanes = holds(self, p);
                let next = self.pc + 1;
                self.pc = next;
                if lanes == 0 {
                    return Ok(());
                }
                self.part(lanes);
                // The whole group is the whole barrier: nobody waits.
                let members = self.barriers[usize::from(b)][lanes.trailing_zeros() as usize];
                if members & self.alive & !lanes == 0 {
                    return Ok(());
                }
                self.park(lanes, next);
                self.waiting[usize::from(b)] |= lanes;
                self.wake(program)?;
            }
            Flow::Leave(p, b) => {
                let lanes = holds(self, p);
                let row = &mut self.barriers[usize::from(b)];
                let members = each(lanes).fold(0, |m, l| m | row[l]);
                each(members).for_each(|l| row[l] &= !lanes);
                self.pc += 1;
                if lanes != 0 {
                    self.wake(program)?;
                }
            }
            Flow::WarpWait(p, who, exclusive) => {
                let lanes = holds(self, p);
                let next = self.pc + 1;
                self.pc = next;
                let who = self.regs.int(who);
                self.part(lanes);
                let here = |l: usize| who[l] & self.alive & !lanes == 0 && !(exclusive && lanes & !who[l] != 0);
                if each(lanes).all(here) {
                    return Ok(());
                }
                if exclusive {
                    each(lanes).for_each(|l| self.gang[l] = who[l]);
                }
                self.meet(lanes, &who);
                self.wake(program)?;
            }
            Flow::Collective(p, who, to) => {
                let lanes = holds(self, p);
                let to = program.local(self.pc, to);
                self.pc += 1;
                let who = self.regs.int(who);
                each(lanes).for_each(|l| (self.gang[l], self.returns[l]) = (who[l], to));
                self.collective |= lanes;
                self.meet(lanes, &who);
                self.wake(program)?;
            }
            Flow::EndCollective => {
                self.pc += 1;
                let lanes = mask & self.collective;
                self.collective &= !lanes;
                self.part(lanes);
                let returns = self.returns;
                self.scatter(lanes, &returns);
            }
            Flow::Yield => self.pc += 1,
            Flow::Trap => {
                if mask != 0 {
                    return Err(Trap::Trapped);
                }
                self.pc += 1;
            }
        }
        Ok(())
    }

    /// Sends lanes of the active group to a place of each one's own; the others go on.
    fn scatter(&mut self, lanes: Mask, to: &[u32; LANES]) {
        if lanes == 0 {
            return;
        }
        let (active, next) = (self.active, self.pc);
        self.park(active, next);
        self.ready |= active;
        each(lanes).for_each(|l| self.lane_pc[l] = to[l]);
        self.pick();
    }

    /// From now on anybody may join these lanes.
    fn part(&mut self, lanes: Mask) {
        each(lanes).for_each(|l| self.gang[l] = 0);
    }

    /// Lanes of the active group wait for each other, by masks.
    fn meet(&mut self, lanes: Mask, who: &Row) {
        self.park(lanes, self.pc);
        self.warp_waiting |= lanes;
        each(lanes).for_each(|l| self.warp_masks[l] = who[l]);
    }

    /// Looks for lanes whose wait is over.
    fn wake(&mut self, program: &Program) -> Result<(), Trap> {
        for b in 0..self.waiting.len() {
            let mut left = self.waiting[b];
            while left != 0 {
                let lane = left.trailing_zeros() as usize;
                // Lanes that know the same members wait for each other. Others at the same barrier may be of a call further up, which
                // has its members in a register meanwhile.
                let members = self.barriers[b][lane];
                let group = each(left)
                    .filter(|&l| self.barriers[b][l] == members)
                    .fold(0, |m, l| m | 1 << l);
                left &= !group;
                if members & self.alive & !group == 0 {
                    self.waiting[b] &= !group;
                    self.ready |= group;
                }
            }
        }
        let mut left = self.warp_waiting;
        while left != 0 {
            let lane = left.trailing_zeros() as usize;
            let members = self.warp_masks[lane];
            let group = each(left)
                .filter(|&l| self.warp_masks[l] == members)
                .fold(0, |m, l| m | 1 << l);
            left &= !group;
            if members & self.alive & !self.warp_waiting == 0 {
                self.warp_waiting &= !group;
                self.ready |= group;
                self.unite(group, program)?;
            }
        }
        Ok(())
    }

    /// Lanes that begin a collective may have come from several places, where the same instructions follow.
    fn unite(&mut self, group: Mask, program: &Program) -> Result<(), Trap> {
        let first = group.trailing_zeros() as usize;
        let at = self.lane_pc[first];
        for l in each(group & self.collective) {
            if !program.same_until_end_of_collective(at, self.lane_pc[l]) {
                return Err(Trap::Missing(
                    "lanes that do different things in one collective".to_owned(),
                ));
            }
            self.lane_pc[l] = at;
        }
        Ok(())
    }

    /// In words, what the lanes that are left wait for.
    pub fn waits(&self) -> String {
        let mut parts = Vec::new();
        for (b, lanes) in self.waiting.iter().enumerate().filter(|(_, l)| **l != 0) {
            parts.push(format!("lanes {lanes:#010x} at B{b}"));
        }
        if self.warp_waiting != 0 {
            parts.push(format!("lanes {:#010x} at WARPSYNC", self.warp_waiting));
        }
        if self.block_waiting != 0 {
            parts.push(format!("lanes {:#010x} at BAR", self.block_waiting));
        }
        format!("warp {}: {}", self.number, parts.join(", "))
    }
}
