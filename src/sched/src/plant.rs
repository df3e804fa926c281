//! Faults to test the checker with: each breaks one dependence of a kernel that is right.

use isa::{Control, Effects, Latency, Word};

use crate::code::{Code, Step};
use crate::model::{Model, Need};
use crate::source::Source;
use crate::state::Flight;
use crate::walk::{self, Dependence, Kind, Listener, Rules};

/// How the kernel is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fault {
    /// One cycle less behind an instruction whose reader comes as early as it may.
    ShorterStall,
    /// A scoreboard is not waited for where its result is used.
    DroppedWait,
    /// A result is told of by another scoreboard than the one that its reader waits for.
    MovedBarrier,
    /// An instruction is put before its predecessor, and so too close behind one that it depends on.
    Swap,
}

impl Fault {
    /// All of them.
    pub const ALL: [Fault; 4] = [
        Fault::ShorterStall,
        Fault::DroppedWait,
        Fault::MovedBarrier,
        Fault::Swap,
    ];

    /// As reports name it.
    pub fn name(self) -> &'static str {
        ["shorter stall", "dropped wait", "moved barrier", "swap"][self as usize]
    }
}

/// A change of words that makes a hazard.
#[derive(Clone, Debug)]
pub struct Plant {
    /// How.
    pub fault: Fault,
    /// Instructions and their new words.
    pub words: Vec<(u32, Word)>,
    /// The instruction at which it goes wrong, where it is now.
    pub at: u32,
    /// The instruction that it depends on.
    pub earlier: u32,
}

/// Every fault that can be planted where a requirement is tight.
pub fn plants(code: &Code, model: &Model) -> Vec<Plant> {
    let mut planter = Planter {
        model,
        plants: Vec::new(),
    };
    walk::solve(code, model).replay(code, model, &mut planter);
    planter.plants
}

struct Planter<'m> {
    model: &'m Model,
    plants: Vec<Plant>,
}

impl Planter<'_> {
    fn plant(&mut self, fault: Fault, words: Vec<(u32, Word)>, at: u32, earlier: u32) {
        self.plants.push(Plant {
            fault,
            words,
            at,
            earlier,
        });
    }
}

fn with_control(step: &Step, change: impl FnOnce(&mut Control)) -> Word {
    let mut control = step.control;
    change(&mut control);
    control.apply(step.word)
}

impl Listener for Planter<'_> {
    fn dependence(&mut self, code: &Code, d: &Dependence) {
        let at = d.flight.step;
        let earlier = &code.steps[at as usize];
        let need = self
            .model
            .need(d.kind, d.port, d.flight.class, d.class, earlier.latency);
        let Need::Cycles(cycles, Source::Nak | Source::Kin(_) | Source::Mined { .. }) = need else {
            return;
        };
        if d.flight.elapsed != cycles || earlier.latency != Latency::Fixed {
            return;
        }
        if earlier.control.stall > 1 {
            let word = with_control(earlier, |c| c.stall -= 1);
            self.plant(Fault::ShorterStall, vec![(at, word)], d.at, at);
        }
        if let Some(before) = d.at.checked_sub(1).filter(|b| *b > at && swaps(code, *b)) {
            let (first, second) = (&code.steps[before as usize], &code.steps[d.at as usize]);
            if first.control.stall > 0 && code.block_of(at) == code.block_of(d.at) {
                self.plant(Fault::Swap, vec![(before, second.word), (d.at, first.word)], before, at);
            }
        }
    }

    fn wait(&mut self, code: &Code, at: u32, flight: &Flight) {
        let (earlier, later) = (&code.steps[flight.step as usize], &code.steps[at as usize]);
        let uses = |t: &crate::code::Touch| flight.common(t);
        let reads = flight.write && code.reads(later).iter().any(uses);
        let needed = reads || code.writes(later).iter().any(uses);
        let apart = later.guard.is_some() && flight.guard.is_some() && later.guard != flight.guard;
        if !needed || apart || earlier.latency != Latency::Scoreboard || flight.release.count_ones() != 1 {
            return;
        }
        // Between instructions of one queue the order is kept without.
        let kind = match flight.write {
            true if reads => Kind::Raw,
            true => Kind::Waw,
            false => Kind::War,
        };
        let in_order = later.class.is_none_or(|c| {
            matches!(
                self.model
                    .need(kind, crate::code::Port::R, flight.class, c, earlier.latency),
                Need::Cycles(..)
            )
        });
        if in_order || later.control.wait & flight.release == 0 {
            return;
        }
        let word = with_control(later, |c| c.wait &= !flight.release);
        self.plant(Fault::DroppedWait, vec![(at, word)], at, flight.step);
        if flight.write && reads && code.block_of(flight.step) == code.block_of(at) && flight.step < at {
            let between = &code.steps[flight.step as usize + 1..=at as usize];
            let counted = |s: &Step| s.counted.map_or(0, |(scoreboard, _)| 1u8 << scoreboard);
            let waited = between.iter().fold(0, |mask, s| mask | s.wait | counted(s));
            // A later one of the same queue would tell of it.
            let told = |s: &Step| s.class.is_some_and(|c| self.model.in_order(flight.class, c).1);
            let told = between.iter().any(|s| told(s) && s.control.write_barrier.is_some());
            let own = earlier.control.write_barrier;
            let other = (0..6).find(|b| waited >> b & 1 == 0 && own.is_some() && own != Some(*b));
            if let Some(other) = other.filter(|_| !told) {
                let word = with_control(earlier, |c| c.write_barrier = Some(other));
                self.plant(Fault::MovedBarrier, vec![(flight.step, word)], at, flight.step);
            }
        }
    }
}

/// The kernel's words with about `n` pairs of neighbours that do not depend on each other in each other's place, and the number of pairs.
/// `random` gives numbers below its argument. The scheduling bits move with their instructions.
pub fn shuffled(code: &Code, n: usize, random: &mut dyn FnMut(usize) -> usize) -> (Vec<Word>, usize) {
    let mut words = code.words();
    let mut places: Vec<u32> = (0..code.steps.len().saturating_sub(1) as u32)
        .filter(|at| swaps(code, *at))
        .collect();
    let mut swapped = 0;
    while swapped < n && !places.is_empty() {
        let at = places.swap_remove(random(places.len()));
        words.swap(at as usize, at as usize + 1);
        places.retain(|p| p.abs_diff(at) > 1);
        swapped += 1;
    }
    (words, swapped)
}

/// Whether an instruction and the next may change places: neither touches what the other writes, and neither is more than arithmetic.
fn swaps(code: &Code, first: u32) -> bool {
    let (a, b) = (&code.steps[first as usize], &code.steps[first as usize + 1]);
    let meet = |x: &Step, y: &Step| {
        let touches = code.reads(y).iter().chain(code.writes(y));
        let mut touches = touches.map(|t| (t.first, t.width));
        touches.any(|(r, w)| code.writes(x).iter().any(|t| t.of(r, w) != 0))
    };
    let loads = |s: &Step| s.effects == Effects::READ;
    let plain = |s: &Step| s.flow == ir::Flow::None && (s.effects.is_none() || loads(s)) && s.class.is_some();
    code.block_of(first) == code.block_of(first + 1) && plain(a) && plain(b) && !meet(a, b) && !meet(b, a)
}
