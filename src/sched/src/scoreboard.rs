//! Which scoreboard an instruction is to signal: the one that costs the fewest cycles.

use crate::code::Code;
use crate::state::State;

/// An instruction that is to signal a scoreboard, and the one that will wait for it.
pub(crate) struct Interval {
    /// Who signals.
    pub from: u32,
    /// Who waits.
    pub to: u32,
    /// When the wait is over, by the clock of `to`'s block.
    pub ready: u64,
}

/// What is known where the one waits.
pub(crate) struct Place<'a> {
    /// The code.
    pub code: &'a Code,
    /// When each instruction issues that the block of the waiting one has before it, by the block's clock; 0 for others.
    pub clock: &'a [u64],
    /// What is in flight.
    pub state: &'a State,
    /// When a flight is done, by the block's clock.
    pub done: &'a dyn Fn(&crate::state::Flight) -> u64,
    /// The block's clock where the one waits.
    pub now: u64,
    /// Scoreboards that are waited for there anyway, as bits.
    pub awaited: u8,
    /// Scoreboards that may not be taken, as bits.
    pub reserved: u8,
}

/// The scoreboard to take; none if all are reserved. A count of one scoreboard falls to 0 only when all are done that signal it: taking one
/// that is in use delays other waits or this one.
pub(crate) fn choose(place: &Place<'_>, interval: &Interval) -> Option<u8> {
    let Place { code, clock, .. } = place;
    let block = code.block_of(interval.to);
    let start = code.blocks[block].start;
    let near = code.block_of(interval.from) == block && interval.from < interval.to;
    let between = match near {
        true => interval.from + 1..interval.to,
        false => start..interval.to,
    };
    let before = match near {
        true => start..interval.from + 1,
        false => start..start,
    };
    let rest = match near {
        true => 0..0,
        false => interval.from + 1..code.blocks[code.block_of(interval.from)].end,
    };
    let cost = |b: u8| -> u64 {
        let waits = |at: &u32| code.steps[*at as usize].wait >> b & 1 == 1;
        let delayed = between.clone().filter(waits).map(|at| {
            let then = clock[at as usize];
            interval
                .ready
                .saturating_sub(then)
                .min(place.now.saturating_sub(then))
                .max(1)
        });
        // On another way the clock is not known.
        let elsewhere = rest.clone().filter(waits).map(|_| 100);
        let held = place
            .state
            .flights
            .iter()
            .filter(|f| f.release >> b & 1 == 1 && f.step != interval.from);
        let held = held.map(|f| (place.done)(f).saturating_sub(interval.ready.max(place.now)));
        delayed.chain(elsewhere).chain(held).max().unwrap_or(0)
    };
    let last = |b: u8| {
        before
            .clone()
            .rev()
            .find(|at| code.steps[*at as usize].wait >> b & 1 == 1)
    };
    // Of those that cost nothing the one that was freed last: the others stay free for longer intervals.
    (0..6u8)
        .filter(|b| place.reserved >> b & 1 == 0)
        .min_by_key(|&b| (cost(b), place.awaited >> b & 1 == 0, std::cmp::Reverse(last(b))))
}
