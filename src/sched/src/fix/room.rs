//! Cycles: how many are missing before an instruction, and where they are put.

use ir::Flow;
use isa::Control;

use super::{Fixer, Stuck, Way};
use crate::check::signal;
use crate::model::Lack;
use crate::state::{Busy, FAR, Flight, State};

/// The largest stall count.
const LONGEST: u8 = 15;
/// With more than this the bit that keeps the warp issuing must be clear.
const LONGEST_WITHOUT_YIELD: u8 = 11;

impl Fixer<'_> {
    /// Makes room between instructions that will signal scoreboards and a wait for those.
    pub(super) fn settle_signals(&mut self, at: u32, mask: u8, state: &mut State) -> Result<(), Stuck> {
        if mask == 0 {
            return Ok(());
        }
        loop {
            let early = |f: &&Flight| f.release & mask != 0 && f.elapsed < signal(f.release);
            let Some(flight) = state.flights.iter().find(early).copied() else {
                return Ok(());
            };
            if !self.delay(at, &flight, signal(flight.release) - flight.elapsed, state)? {
                return Ok(());
            }
        }
    }

    /// Makes room between an instruction and those of fixed latency that it depends on.
    pub(super) fn space(&mut self, at: u32, state: &mut State, busy: &Busy) -> Result<(), Stuck> {
        loop {
            let mut worst: Option<(u16, Flight)> = None;
            for d in self.dependences(at, state, busy) {
                match self.model.lack(&self.code, &d) {
                    Lack::Cycles(cycles, _) if worst.is_none_or(|w| cycles - d.flight.elapsed > w.0) => {
                        worst = Some((cycles - d.flight.elapsed, d.flight));
                    }
                    _ => {}
                }
            }
            for (missing, f) in self.all_until_over(at, state) {
                if missing > worst.map_or(0, |w| w.0) {
                    worst = Some((missing, *f));
                }
            }
            let Some((missing, flight)) = worst else { return Ok(()) };
            if !self.delay(at, &flight, missing, state)? {
                return Ok(());
            }
        }
    }

    /// The flights of fixed latency with the cycles until they may be in flight at an instruction as they are.
    fn all_until_over<'s>(&self, at: u32, state: &'s State) -> impl Iterator<Item = (u16, &'s Flight)> {
        let leaves = self.code.steps[at as usize].flow != Flow::None;
        let limit = self.limits.get(&at).filter(|_| leaves);
        limit.into_iter().flat_map(|limit| {
            let fixed = state.flights.iter().filter(|f| f.release == 0 && f.limit <= FAR);
            fixed.map(move |f| {
                let same = limit.flights.iter().find(|l| l.key() == f.key());
                let required = same.map_or(f.limit, |l| l.elapsed.min(f.limit));
                (required.saturating_sub(f.elapsed), f)
            })
        })
    }

    /// Lets more cycles go by before an instruction, since that of a flight. At the start of a block it does nothing and says so: there
    /// each way in needs another number ([`Self::hold_back`]).
    fn delay(&mut self, at: u32, flight: &Flight, cycles: u16, state: &mut State) -> Result<bool, Stuck> {
        let start = self.code.blocks[self.code.block_of(at)].start;
        let call = self.left_by(flight, start..at);
        let first = match flight.step >= start && flight.step < at {
            true => flight.step,
            false => call.map_or(start, |call| call + 1),
        };
        for before in (first..at).rev() {
            let added = self.stall(before, cycles);
            if added > 0 {
                let gains = |f: &&mut Flight| !(before < f.step && f.step < at);
                let flights = state.flights.iter_mut().filter(gains);
                flights.for_each(|f| f.elapsed = (f.elapsed + u16::from(added)).min(FAR));
                return Ok(true);
            }
        }
        match (first < at, call) {
            (false, None) => Ok(false),
            (false, Some(call)) => self.return_later(call, flight, cycles, state),
            (true, _) => {
                self.drain(at - 1)?;
                state.flights.iter_mut().for_each(|f| f.elapsed = FAR);
                Ok(true)
            }
        }
    }

    /// The last call among instructions of a block, if the function left the flight behind.
    fn left_by(&self, flight: &Flight, mut steps: std::ops::Range<u32>) -> Option<u32> {
        let first = steps.start;
        let call = steps.rfind(|n| self.code.steps[*n as usize].flow == Flow::Call)?;
        self.is_left(flight, first).then_some(call)
    }

    /// Lets more cycles go by where the functions return that an instruction calls.
    fn return_later(&mut self, call: u32, flight: &Flight, cycles: u16, state: &mut State) -> Result<bool, Stuck> {
        self.end_later(call, cycles)?;
        self.returns
            .delay(&self.code, &self.code.steps[call as usize], flight, cycles);
        let same = state.flights.iter_mut().filter(|f| f.key() == flight.key());
        same.for_each(|f| f.elapsed = (f.elapsed + cycles).min(FAR));
        Ok(true)
    }

    /// So many cycles more where what an instruction calls returns, or more.
    fn end_later(&mut self, call: u32, cycles: u16) -> Result<(), Stuck> {
        for end in self.returns.ends(&self.code, &self.code.steps[call as usize]) {
            if u16::from(self.stall(end, cycles)) < cycles {
                self.drain(end)?;
            }
        }
        Ok(())
    }

    /// Raises a stall count by up to so many cycles, and says by how many.
    fn stall(&mut self, at: u32, cycles: u16) -> u8 {
        let old = self.code.steps[at as usize].control.stall;
        if old == 0 || old >= LONGEST {
            return 0;
        }
        let new = (u16::from(old) + cycles).min(LONGEST.into()) as u8;
        let set = self.set(at, |c| set_stall(c, new));
        if set { new - old } else { 0 }
    }

    /// Lets everything of fixed latency finish behind an instruction.
    fn drain(&mut self, at: u32) -> Result<(), Stuck> {
        match self.code.steps[at as usize].control.stall == 0 || self.set(at, |c| set_stall(c, 0)) {
            true => Ok(()),
            false => Err(Stuck {
                at,
                why: "its stall count cannot be raised",
            }),
        }
    }

    /// Makes room before the first instruction of a block, on each way in by itself.
    pub(super) fn hold_back(&mut self, block: usize) {
        let first = self.code.blocks[block].start;
        for way in self.ways[block].clone() {
            let last = match way {
                Way::Start => continue,
                Way::Block(from) => self.code.blocks[from as usize].end.checked_sub(1),
                Way::Call(at) => Some(at),
            };
            let (Some(state), Some(last)) = (self.entering(way, block), last) else {
                continue;
            };
            let missing = self.missing(first, &state);
            if missing == 0 {
                continue;
            }
            // What a collective leaves is not there sooner because that begins later.
            let meets = self.code.steps[last as usize].meets.is_some() && way != Way::Call(last);
            if meets && self.end_later(last, missing).is_err() {
                return;
            }
            let added = u16::from(self.stall(last, missing));
            let elapsed = match added < missing {
                true if self.drain(last).is_ok() => FAR,
                _ => added,
            };
            if let Some(end) = self.ends.get_mut(&way) {
                end.flights
                    .iter_mut()
                    .for_each(|f| f.elapsed = (f.elapsed + elapsed).min(FAR));
            }
        }
    }

    /// Cycles that an instruction comes too early where that is in flight.
    fn missing(&self, at: u32, state: &State) -> u16 {
        let mut state = state.clone();
        let step = &self.code.steps[at as usize];
        let awaited = step.awaited_at_issue();
        let awaited = state.flights.iter().filter(|f| f.release & awaited != 0);
        let early = awaited.map(|f| signal(f.release).saturating_sub(f.elapsed)).max();
        let early = early.unwrap_or(0);
        state.wait(step.wait);
        let each = self.dependences(at, &state, &state.busy()).into_iter();
        let each = each.map(|d| match self.model.lack(&self.code, &d) {
            Lack::Cycles(cycles, _) => cycles - d.flight.elapsed,
            _ => 0,
        });
        let over = self
            .all_until_over(at, &state)
            .map(|(cycles, _)| cycles)
            .max()
            .unwrap_or(0);
        each.fold(early.max(over), u16::max)
    }
}

/// Another stall count, with the bits beside it that go with it: operand-cache flags only mean that where the warp keeps issuing.
pub(crate) fn set_stall(control: &mut Control, stall: u8) {
    control.stall = stall;
    if stall == 0 || stall > LONGEST_WITHOUT_YIELD {
        if control.yield_ {
            control.reuse = 0;
        }
        control.yield_ = false;
    }
    if stall == 0 {
        control.reuse = 0;
    }
}
