//! Follows what is in flight along every way through the code, and shows each dependence with the fewest cycles it ever has.

use std::borrow::Cow;
use std::ops::Range;

use ir::Flow;

use crate::class::ClassId;
use crate::code::{Code, Guard, Port, Step, Touch, VIEWS};
use crate::returns::Returns;
use crate::state::{Busy, Flight, State};

/// How two instructions depend on each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// The later reads what the earlier writes.
    Raw,
    /// The later overwrites what the earlier writes.
    Waw,
    /// The later overwrites what the earlier reads.
    War,
}

impl Kind {
    /// All of them, by number.
    pub const ALL: [Kind; 3] = [Kind::Raw, Kind::Waw, Kind::War];

    /// As the model's tables write it.
    pub fn name(self) -> &'static str {
        ["RAW", "WAW", "WAR"][self as usize]
    }
}

/// Two instructions on the same register, the earlier one still in flight as far as its scoreboards tell.
#[derive(Clone, Copy, Debug)]
pub struct Dependence {
    /// How.
    pub kind: Kind,
    /// The earlier one.
    pub flight: Flight,
    /// The later one.
    pub at: u32,
    /// What the register is for in the later one.
    pub port: Port,
    /// What the latency model calls the later one as far as the register is concerned.
    pub class: ClassId,
}

/// What the walk needs to know of the latency model, and whom it tells.
pub trait Rules {
    /// Whether the instruction may read an operand after the next one issued.
    fn reads_late(&self, step: &Step, port: Port) -> bool;
    /// Whether instructions of one class read their operands, and write their results, before later ones of another class do.
    fn in_order(&self, earlier: ClassId, later: ClassId) -> (bool, bool);
    /// Whether the instruction waits until those before it in its queue have read their operands.
    fn drains_reads(&self, step: &Step) -> bool;
    /// Cycles after which a flight without a scoreboard is done; more than [`crate::state::FAR`] if only a scoreboard could tell. It
    /// is asked once for each flight, as that begins.
    fn limit(&self, code: &Code, flight: &Flight) -> u16;
}

/// Is told of what the walk meets, once it knows the least cycles on every way.
pub trait Listener {
    /// A dependence between two instructions.
    fn dependence(&mut self, code: &Code, d: &Dependence);
    /// A scoreboard is waited for which a flight will signal; the wait may come too early to see it.
    fn wait(&mut self, code: &Code, at: u32, flight: &Flight);
    /// What is in flight where an instruction issues.
    fn issues(&mut self, _code: &Code, _at: u32, _state: &State) {}
    /// It has heard enough: nothing more is told.
    fn is_done(&self) -> bool {
        false
    }
}

/// What is in flight at the start of each block, `None` where nothing leads, and behind functions that are called.
pub struct InFlight {
    at: Vec<Option<State>>,
    returns: Returns,
}

/// Solves for what is in flight at the start of every block.
pub fn solve(code: &Code, rules: &impl Rules) -> InFlight {
    let count = code.blocks.len();
    let mut at: Vec<Option<State>> = vec![None; count];
    let mut dirty = vec![false; count];
    let mut returns = Returns::of(code);
    if count > 0 {
        (at[0], dirty[0]) = (Some(State::default()), true);
    }
    while let Some(first) = dirty.iter().position(|d| *d) {
        for b in first..count {
            if !std::mem::take(&mut dirty[b]) {
                continue;
            }
            let Some(mut state) = at[b].clone() else { continue };
            let mut enter = |to: usize, state: &State| {
                dirty[to] |= match &mut at[to] {
                    Some(old) => old.join(state),
                    none => {
                        *none = Some(state.clone());
                        true
                    }
                }
            };
            pass(code, rules, b, &mut state, &mut |step, state| {
                let call = &code.steps[step as usize];
                state.sort();
                code.callees(call).iter().for_each(|to| enter(*to as usize, state));
                returns.come_back(code, call, state)
            });
            for &to in code.successors(b) {
                enter(to as usize, on_edge(code, b, to as usize, &state).as_ref());
            }
            returns.leave(code, b, &state, &mut |caller| dirty[caller as usize] = true);
        }
    }
    InFlight { at, returns }
}

/// What is in flight where a block leads to another.
pub(crate) fn on_edge<'s>(code: &Code, from: usize, to: usize, state: &'s State) -> Cow<'s, State> {
    let holds = branch_condition(code, from, to);
    // Round a loop `ptxas` does not wait for what a fence tells, whatever comes behind it there: only forward it always does.
    let back = code.blocks[to].start <= code.blocks[from].start;
    let gone = |f: &Flight| {
        let excluded = f.guard.zip(holds).is_some_and(|(g, holds)| excludes(g, holds));
        excluded || back && VIEWS.contains(&f.first)
    };
    if !state.flights.iter().any(gone) {
        return Cow::Borrowed(state);
    }
    let mut refined = state.clone();
    refined.flights.retain(|f| !gone(f));
    Cow::Owned(refined)
}

/// The condition that holds where a block's last instruction leads to another block.
fn branch_condition(code: &Code, from: usize, to: usize) -> Option<Guard> {
    let last = code.steps.get(code.blocks[from].end.checked_sub(1)? as usize)?;
    if code.blocks[from].is_empty() || last.flow == Flow::None {
        return None;
    }
    let guard = last.guard?;
    let next = code.blocks[from].end;
    let falls = code.blocks[to].start == next;
    let both = falls
        && code
            .successors(from)
            .iter()
            .filter(|s| code.blocks[**s as usize].start == next)
            .count()
            > 1;
    (!both).then_some(Guard {
        negated: guard.negated ^ falls,
        ..guard
    })
}

/// Whether not both conditions can hold.
pub(crate) fn excludes(a: Guard, b: Guard) -> bool {
    a.reg == b.reg && a.negated != b.negated
}

/// Who only walks has no listener.
enum Nobody {}

impl Listener for Nobody {
    fn dependence(&mut self, _: &Code, _: &Dependence) {}
    fn wait(&mut self, _: &Code, _: u32, _: &Flight) {}
}

/// [`block`] from its start, for nobody.
fn pass(code: &Code, rules: &impl Rules, b: usize, state: &mut State, call: &mut dyn FnMut(u32, &mut State) -> bool) {
    block(code, rules, code.blocks[b].clone(), state, None::<&mut Nobody>, call);
}

/// Goes through instructions of a block, and tells of what it meets if anybody listens. Where that one is done it stops. `call` adds what is in
/// flight behind a call, and says whether it did.
fn block<L: Listener>(
    code: &Code,
    rules: &impl Rules,
    range: Range<u32>,
    state: &mut State,
    mut listener: Option<&mut L>,
    call: &mut dyn FnMut(u32, &mut State) -> bool,
) {
    let mut busy = listener.as_ref().map(|_| state.busy()).unwrap_or_default();
    for at in range {
        let step = &code.steps[at as usize];
        if let Some(listener) = listener.as_mut().filter(|_| step.awaited_at_issue() != 0) {
            let awaited = state
                .flights
                .iter()
                .filter(|f| f.release & step.awaited_at_issue() != 0);
            awaited.for_each(|f| listener.wait(code, at, f));
        }
        state.wait(step.wait);
        if let Some((scoreboard, most)) = step.counted {
            state.wait_for_count(scoreboard, most);
        }
        if let Some(listener) = &mut listener {
            listener.issues(code, at, state);
            dependences(code, at, state, &busy, &mut |d| listener.dependence(code, &d));
            if listener.is_done() {
                return;
            }
        }
        let new = state.issue(code, at, rules);
        if listener.is_some() {
            busy.issue(state, new);
        }
        if step.flow == Flow::Call && call(at, state) && listener.is_some() {
            busy = state.busy();
        }
    }
    state.sort();
}

/// Shows each dependence of an instruction on what is in flight; all registers of that are in `busy`.
pub(crate) fn dependences(code: &Code, at: u32, state: &State, busy: &Busy, tell: &mut dyn FnMut(Dependence)) {
    let step = &code.steps[at as usize];
    let mut each = |touches: &[Touch], kind: fn(bool) -> Option<Kind>| {
        let only_written = kind(false).is_none();
        for touch in touches.iter().filter(|t| busy.has(t, only_written)) {
            for flight in state.flights.iter().filter(|f| f.common(touch)) {
                let Some(kind) = kind(flight.write) else { continue };
                let apart = match (flight.guard, step.guard) {
                    (Some(a), Some(b)) => excludes(a, b),
                    _ => false,
                };
                if !apart {
                    tell(Dependence {
                        kind,
                        flight: *flight,
                        at,
                        port: touch.port,
                        class: touch.class,
                    });
                }
            }
        }
    };
    each(code.reads(step), |write| write.then_some(Kind::Raw));
    each(code.writes(step), |write| {
        Some(if write { Kind::Waw } else { Kind::War })
    });
}

/// A place in a block that is gone through, and what is in flight there, if no more is in flight at the block's start than was solved for.
pub(crate) struct Cursor {
    block: usize,
    at: u32,
    state: State,
}

impl Cursor {
    /// At an instruction, on from a place before it where that is in the same block.
    pub(crate) fn to(
        before: Option<Cursor>,
        solved: &InFlight,
        code: &Code,
        rules: &impl Rules,
        at: u32,
    ) -> Option<Cursor> {
        let block = code.block_of(at);
        let start = || Cursor::at_start(solved, code, block);
        let mut here = before.filter(|c| c.block == block && c.at <= at).or_else(start)?;
        let mut call = |at, state: &mut State| solved.come_back(code, at, state);
        let between = here.at..at;
        self::block(code, rules, between, &mut here.state, None::<&mut Nobody>, &mut call);
        here.at = at;
        Some(here)
    }

    /// At the start of a block; `None` where nothing leads.
    fn at_start(solved: &InFlight, code: &Code, block: usize) -> Option<Cursor> {
        let state = solved.at(block)?.clone();
        let at = code.blocks[block].start;
        Some(Cursor { block, at, state })
    }
}

impl InFlight {
    /// At the start of a block.
    pub(crate) fn at(&self, block: usize) -> Option<&State> {
        self.at[block].as_ref()
    }

    /// Adds what the functions leave in flight that an instruction calls, and says whether that is anything.
    pub(crate) fn come_back(&self, code: &Code, at: u32, state: &mut State) -> bool {
        self.returns.come_back(code, &code.steps[at as usize], state)
    }

    /// Tells of what the rest of a block and the blocks right behind it meet.
    pub(crate) fn replay_from(&self, from: &Cursor, code: &Code, rules: &impl Rules, listener: &mut impl Listener) {
        let mut state = from.state.clone();
        let mut call = |at, state: &mut State| self.come_back(code, at, state);
        let rest = from.at..code.blocks[from.block].end;
        block(code, rules, rest, &mut state, Some(listener), &mut call);
        for &to in code.successors(from.block) {
            if listener.is_done() {
                return;
            }
            let mut next = on_edge(code, from.block, to as usize, &state).into_owned();
            let whole = code.blocks[to as usize].clone();
            block(code, rules, whole, &mut next, Some(listener), &mut call);
        }
    }

    /// Tells of everything that the code meets, in order.
    pub fn replay(&self, code: &Code, rules: &impl Rules, listener: &mut impl Listener) {
        for (b, state) in self.at.iter().enumerate() {
            let Some(mut state) = state.clone() else { continue };
            let mut call = |at, state: &mut State| self.come_back(code, at, state);
            let whole = code.blocks[b].clone();
            block(code, rules, whole, &mut state, Some(listener), &mut call);
            if listener.is_done() {
                return;
            }
        }
    }
}
