//! Goes through a kernel as the checker does, and puts right what it meets: cycles before an instruction that comes too early, waits for
//! scoreboards, scoreboards for who has none. Nothing is ever taken back, so that it comes to an end.

mod room;

use std::collections::{HashMap, HashSet};

use ir::Flow;
use isa::{Control, Effects};

use crate::class::ClassId;
use crate::code::{Code, GROUPS, Port, Step};
use crate::model::{Lack, Model};
use crate::returns::Returns;
use crate::scoreboard::{Interval, Place, choose};
use crate::state::{Busy, FAR, Flight, State};
use crate::time::Clock;
use crate::walk::{Dependence, Kind, Rules, dependences, on_edge};

pub(crate) use room::set_stall;

/// A block is not gone through more often in one round, nor are there more rounds.
const PATIENCE: usize = 40;

/// What cannot be put right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stuck {
    pub at: u32,
    pub why: &'static str,
}

/// Puts a kernel right.
pub(crate) struct Fixer<'m> {
    pub code: Code,
    model: &'m Model,
    /// Classes of which some instruction told by a scoreboard that its result is there (`true`), or that its operands were read; the first
    /// tells of the second.
    signalling: HashSet<(ClassId, bool)>,
    /// Nothing may be left to chance, since the scheduling bits are all new.
    anew: bool,
    /// Scoreboards that no more instructions may signal, as bits.
    pub reserved: u8,
    /// What may be in flight at some instructions, at most; of what has a fixed latency that counts only where control leaves.
    pub limits: HashMap<u32, State>,
    /// Ways into each block: from the end of a block, or from a call.
    ways: Vec<Vec<Way>>,
    /// In flight at the end of each block, and behind each call.
    ends: HashMap<Way, State>,
    /// In flight behind functions that are called.
    returns: Returns,
    /// What functions left in flight for a caller that needs to know when it is done, and no scoreboard told: they wait for it themselves.
    kept: HashSet<(u32, u16, bool)>,
    /// When each instruction issues, by a clock of its block.
    clock: Vec<u64>,
    /// In this round.
    changed: bool,
    rounds: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Way {
    Start,
    Block(u32),
    Call(u32),
}

impl<'m> Fixer<'m> {
    /// `before` are the scheduling bits that the code had; with `anew` its bits now say nothing.
    pub fn new(code: Code, model: &'m Model, before: &[Control], anew: bool) -> Self {
        let signals = code
            .steps
            .iter()
            .zip(before)
            .filter_map(|(step, c)| Some((step.class?, c)));
        let signals = signals.flat_map(|(class, c)| {
            let written = c.write_barrier.map(|_| (class, true));
            let read = c.write_barrier.or(c.read_barrier).map(|_| (class, false));
            written.into_iter().chain(read)
        });
        let signalling = signals.collect();
        let mut ways: Vec<Vec<Way>> = vec![Vec::new(); code.blocks.len()];
        if let Some(first) = ways.first_mut() {
            first.push(Way::Start);
        }
        for b in 0..code.blocks.len() {
            for &to in code.successors(b) {
                let way = Way::Block(b as u32);
                if !ways[to as usize].contains(&way) {
                    ways[to as usize].push(way);
                }
            }
        }
        for (at, step) in code.steps.iter().enumerate() {
            for &to in code.callees(step) {
                ways[to as usize].push(Way::Call(at as u32));
            }
        }
        Fixer {
            clock: vec![0; code.steps.len()],
            returns: Returns::of(&code),
            kept: HashSet::new(),
            code,
            model,
            signalling,
            anew,
            limits: HashMap::new(),
            reserved: 0,
            ways,
            ends: HashMap::new(),
            changed: false,
            rounds: 0,
        }
    }

    /// Goes round until nothing is left to be done.
    pub fn run(&mut self) -> Result<(), Stuck> {
        while self.round()? {}
        Ok(())
    }

    /// Goes round once. Says whether there was anything to do, so that another round may find more.
    pub fn round(&mut self) -> Result<bool, Stuck> {
        self.changed = false;
        self.rounds += 1;
        self.ends.clear();
        self.returns.clear();
        let count = self.code.blocks.len();
        let mut visits = vec![0; count];
        let mut dirty = vec![false; count];
        let unreached = |b: &usize| self.ways[*b].is_empty();
        (0..count)
            .filter(|b| *b == 0 || unreached(b))
            .for_each(|b| dirty[b] = true);
        while let Some(first) = dirty.iter().position(|d| *d) {
            for b in first..count {
                if std::mem::take(&mut dirty[b]) && visits[b] < PATIENCE {
                    visits[b] += 1;
                    self.block(b, &mut dirty)?;
                }
            }
        }
        Ok(self.changed && self.rounds < PATIENCE)
    }

    /// What is in flight where a way leads into a block; `None` if that is not known yet.
    fn entering(&self, way: Way, block: usize) -> Option<State> {
        let mut state = match way {
            Way::Start => State::default(),
            Way::Block(from) => on_edge(&self.code, from as usize, block, self.ends.get(&way)?).into_owned(),
            Way::Call(_) => self.ends.get(&way)?.clone(),
        };
        // A scoreboard that was given since tells of it too.
        for f in &mut state.flights {
            f.release |= own(&self.code, f);
        }
        Some(state)
    }

    fn enter(&self, block: usize) -> State {
        let mut joined: Option<State> = None;
        for way in &self.ways[block] {
            let Some(state) = self.entering(*way, block) else {
                continue;
            };
            match &mut joined {
                Some(all) => {
                    all.join(&state);
                }
                none => *none = Some(state),
            }
        }
        joined.unwrap_or_default()
    }

    fn block(&mut self, block: usize, dirty: &mut [bool]) -> Result<(), Stuck> {
        let range = self.code.blocks[block].clone();
        let mut state = self.enter(block);
        if !range.is_empty() {
            let busy = state.busy();
            self.wait(range.start, &mut state, &busy, 0)?;
            self.hold_back(block);
            state = self.enter(block);
        }
        let mut busy = state.busy();
        let mut clock = Clock::new(self.model);
        clock.now = u64::from(FAR);
        for at in range {
            self.wait(at, &mut state, &busy, clock.now)?;
            self.space(at, &mut state, &busy)?;
            self.clock[at as usize] = clock.issue(&self.code.steps[at as usize]);
            let new = state.issue(&self.code, at, self.model);
            busy.issue(&state, new);
            let callees = self.code.callees(&self.code.steps[at as usize]);
            if !callees.is_empty() {
                let callees: Vec<usize> = callees.iter().map(|to| *to as usize).collect();
                state.sort();
                self.leave(Way::Call(at), state.clone(), callees.into_iter(), dirty);
                self.returns
                    .come_back(&self.code, &self.code.steps[at as usize], &mut state);
                busy = state.busy();
            }
        }
        state.sort();
        self.returns
            .leave(&self.code, block, &state, &mut |caller| dirty[caller as usize] = true);
        let successors: Vec<usize> = self.code.successors(block).iter().map(|s| *s as usize).collect();
        self.leave(Way::Block(block as u32), state, successors.into_iter(), dirty);
        Ok(())
    }

    fn leave(&mut self, way: Way, state: State, to: impl Iterator<Item = usize>, dirty: &mut [bool]) {
        if self.ends.get(&way) != Some(&state) {
            self.ends.insert(way, state);
            to.filter(|t| *t < dirty.len())
                .collect::<Vec<_>>()
                .into_iter()
                .for_each(|t| dirty[t] = true);
        }
    }

    fn set(&mut self, at: u32, change: impl FnOnce(&mut Control)) -> bool {
        let mut control = self.code.steps[at as usize].control;
        change(&mut control);
        let set = self.code.set_control(at, control);
        self.changed |= set;
        set
    }

    /// Makes an instruction wait for all that only a scoreboard tells of; `now` is when it would issue.
    fn wait(&mut self, at: u32, state: &mut State, busy: &Busy, now: u64) -> Result<(), Stuck> {
        let step = &self.code.steps[at as usize];
        let Step {
            wait: present, counted, ..
        } = *step;
        self.settle_signals(at, step.awaited_at_issue(), state)?;
        state.wait(present);
        if let Some((scoreboard, most)) = counted {
            state.wait_for_count(scoreboard, most);
        }
        self.drop_what_is_over(at, state, now)?;
        self.drop_what_is_kept(at, state, now)?;
        for d in self.dependences(at, state, busy) {
            let Some(flight) = state.flights.iter().find(|f| f.key() == d.flight.key()).copied() else {
                continue; // an earlier wait tells of it
            };
            let d = Dependence { flight, ..d };
            // Where some of a class signal a scoreboard, the class takes a time that is not fixed.
            let signals = self.signalling.contains(&(flight.class, flight.write));
            let scoreboard = match self.model.lack(&self.code, &d) {
                Lack::Nothing | Lack::Cycles(..) => continue,
                Lack::Wait => self.awaited(&d),
                Lack::Number if !signals && self.anew => {
                    return Err(Stuck {
                        at: flight.step,
                        why: "how long it takes is not known",
                    });
                }
                Lack::Number if !signals => continue,
                _ if self.is_left(&flight, at) => {
                    self.changed |= self.kept.insert(flight.key());
                    state.flights.retain(|f| f.key() != flight.key());
                    continue;
                }
                Lack::Scoreboard | Lack::Number => self.signal(&d, state, now)?,
            };
            if self.was_told(at, &flight, scoreboard) {
                state.flights.retain(|f| f.key() != flight.key());
            } else {
                self.wait_for(at, scoreboard, state)?;
            }
        }
        Ok(())
    }

    /// Whether a wait that stands between an instruction of the same block and this one tells of it, now that it signals that scoreboard.
    fn was_told(&self, at: u32, flight: &Flight, scoreboard: u8) -> bool {
        if self.code.block_of(flight.step) != self.code.block_of(at) || flight.step >= at {
            return false;
        }
        let tells = |c: u32| {
            let step = &self.code.steps[c as usize];
            let queued = step
                .class
                .is_some_and(|class| self.model.in_order(flight.class, class).0);
            let reads = !flight.write && queued && step.control.read_barrier == Some(scoreboard);
            c == flight.step && own(&self.code, flight) >> scoreboard & 1 == 1 || reads
        };
        let Some(teller) = (flight.step..at).find(|c| tells(*c)) else {
            return false;
        };
        (teller + 1..at).any(|w| self.code.steps[w as usize].wait >> scoreboard & 1 == 1)
    }

    fn wait_for(&mut self, at: u32, scoreboard: u8, state: &mut State) -> Result<(), Stuck> {
        if scoreboard == GROUPS {
            let why = "only a WARPGROUP.DEPBAR waits for a group of matrix products, and none does before";
            return Err(Stuck { at, why });
        }
        let bit = 1u8 << scoreboard;
        state.flights.iter_mut().for_each(|f| f.release |= own(&self.code, f));
        self.settle_signals(at, bit, state)?;
        if self.code.steps[at as usize].wait & bit == 0 && !self.set(at, |c| c.wait |= bit) {
            let why = "it cannot wait for a scoreboard";
            return Err(Stuck { at, why });
        }
        state.wait(bit);
        Ok(())
    }

    /// Waits for what only a scoreboard tells of and what may not be in flight here.
    fn drop_what_is_over(&mut self, at: u32, state: &mut State, now: u64) -> Result<(), Stuck> {
        let over = |limit: &State, f: &&Flight| !limit.flights.iter().any(|l| l.key() == f.key());
        loop {
            let told = |f: &&Flight| f.release != 0 || f.limit > FAR;
            let Some(limit) = self.limits.get(&at) else {
                return Ok(());
            };
            // A fence is for memory: it asks whether loads are done, not whether operands were read.
            let step = &self.code.steps[at as usize];
            let is_all = step.flow != Flow::None || self.code.only_waits(step);
            let counts = |f: &&Flight| {
                let effects = self.code.steps[f.step as usize].effects;
                told(f) && (is_all || f.write && effects.has(Effects::READ.union(Effects::ATOMIC)))
            };
            let mut counted = state.flights.iter().filter(counts);
            let Some(flight) = counted.find(|f| over(limit, f)).copied() else {
                return Ok(());
            };
            self.wait_until_done(at, flight, state, now)?;
        }
    }

    /// Waits, where a function returns, for what it left in flight for a caller whom nothing tells of it.
    fn drop_what_is_kept(&mut self, at: u32, state: &mut State, now: u64) -> Result<(), Stuck> {
        if self.code.steps[at as usize].flow != Flow::Return {
            return Ok(());
        }
        loop {
            let kept = |f: &&Flight| self.kept.contains(&f.key()) && !self.is_left(f, at);
            let Some(flight) = state.flights.iter().find(kept).copied() else {
                return Ok(());
            };
            self.wait_until_done(at, flight, state, now)?;
        }
    }

    /// Waits for a scoreboard that tells of a flight, which is given one if it has none.
    fn wait_until_done(&mut self, at: u32, flight: Flight, state: &mut State, now: u64) -> Result<(), Stuck> {
        let d = Dependence {
            kind: if flight.write { Kind::Raw } else { Kind::War },
            flight,
            at,
            port: Port::R,
            class: flight.class,
        };
        let scoreboard = match flight.release {
            0 => self.signal(&d, state, now)?,
            _ => self.awaited(&d),
        };
        self.wait_for(at, scoreboard, state)
    }

    /// Whether a function left it in flight that is called by the one around an instruction.
    fn is_left(&self, flight: &Flight, at: u32) -> bool {
        self.returns.is_left(&self.code, flight, self.code.block_of(at))
    }

    /// A scoreboard to wait for that tells of a dependence.
    fn awaited(&self, d: &Dependence) -> u8 {
        let own = own(&self.code, &d.flight);
        let present = self.code.steps[d.at as usize].wait;
        let bits = [d.flight.release & present, own, d.flight.release];
        bits.iter().find(|b| **b != 0).map_or(0, |b| b.trailing_zeros() as u8)
    }

    /// Gives the earlier instruction of a dependence, or one behind it that tells of it, a scoreboard.
    fn signal(&mut self, d: &Dependence, state: &mut State, now: u64) -> Result<u8, Stuck> {
        if self.is_left(&d.flight, d.at) {
            return Err(Stuck {
                at: d.flight.step,
                why: "what calls its function needs to know when it is done, and no scoreboard tells",
            });
        }
        let from = match d.kind {
            Kind::War => self.teller(d, state),
            _ => d.flight.step,
        };
        let done = |f: &Flight| {
            let times = self.model.times();
            let cycles = match f.write {
                true => times.result(f.class),
                false => times.operands(),
            };
            let near = self.code.block_of(f.step) == self.code.block_of(d.at) && f.step < d.at;
            let issued = match near {
                true => self.clock[f.step as usize],
                false => now.saturating_sub(f.elapsed.into()),
            };
            issued + u64::from(cycles)
        };
        let place = Place {
            code: &self.code,
            clock: &self.clock,
            state,
            done: &done,
            now,
            awaited: self.code.steps[d.at as usize].wait,
            reserved: self.reserved,
        };
        let interval = Interval {
            from,
            to: d.at,
            ready: done(&d.flight),
        };
        let stuck = |why| Stuck { at: from, why };
        let scoreboard = choose(&place, &interval).ok_or(stuck("no scoreboard is left"))?;
        let given = match d.kind {
            Kind::War => {
                self.set(from, |c| c.read_barrier = Some(scoreboard))
                    || self.set(from, |c| c.write_barrier = c.write_barrier.or(Some(scoreboard)))
            }
            _ => self.set(from, |c| c.write_barrier = Some(scoreboard)),
        };
        match given {
            true => Ok(scoreboard),
            false => Err(stuck(
                "its form cannot signal a scoreboard, and how long it takes is not known",
            )),
        }
    }

    /// Who is to tell that an operand was read: the last instruction of the queue behind it whose own operands are soon overwritten too.
    fn teller(&self, d: &Dependence, state: &State) -> u32 {
        let first = d.flight.step;
        let block = self.code.block_of(d.at);
        if self.code.block_of(first) != block || first > d.at {
            return first;
        }
        let end = self.code.blocks[block].end.min(d.at + LOOK_AHEAD);
        let overwritten = |f: &Flight| {
            let steps = &self.code.steps[d.at as usize..end as usize];
            steps.iter().any(|s| self.code.writes(s).iter().any(|t| f.common(t)))
        };
        let behind = state.flights.iter().filter(|f| {
            let step = &self.code.steps[f.step as usize];
            !f.write
                && f.step > first
                && f.step < d.at
                && step.guard.is_none()
                && step.control.read_barrier.is_none()
                && self.model.in_order(d.flight.class, f.class).0
                && overwritten(f)
        });
        behind.map(|f| f.step).max().unwrap_or(first)
    }

    fn dependences(&self, at: u32, state: &State, busy: &Busy) -> Vec<Dependence> {
        let mut all = Vec::new();
        dependences(&self.code, at, state, busy, &mut |d| all.push(d));
        all
    }
}

/// How far ahead is looked for registers that are overwritten.
const LOOK_AHEAD: u32 = 8;

/// The scoreboards that the instruction of a flight signals when that is done, as bits.
fn own(code: &Code, f: &Flight) -> u8 {
    let control = &code.steps[f.step as usize].control;
    let bit = |b: Option<u8>| b.map_or(0, |b| 1u8 << (b & 7));
    bit(control.write_barrier) | code.steps[f.step as usize].group | if f.write { 0 } else { bit(control.read_barrier) }
}
