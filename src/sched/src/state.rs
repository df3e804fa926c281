//! What is in flight at a place of the code: results that are not there yet, and operands that may still be read.

use crate::class::ClassId;
use crate::code::{Code, GROUPS, Guard, Port, REGS, Reg, Step, Touch, ones};
use crate::walk::Rules;

/// Cycles are counted up to here.
pub const FAR: u16 = 255;

/// Registers that an instruction is about to write or still reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flight {
    /// The instruction.
    pub step: u32,
    /// Which of its touches, reads counted first.
    pub touch: u16,
    /// It writes them; else it reads them.
    pub write: bool,
    /// The first register.
    pub first: Reg,
    /// How many.
    pub width: u8,
    /// What the latency model calls the instruction as far as these registers are concerned.
    pub class: ClassId,
    /// Those of them that no later instruction has overwritten, as bits.
    pub alive: u32,
    /// Scoreboards any one of which tells that it is done, as bits; 0 if none will.
    pub release: u8,
    /// Fewest cycles between its issue and now, on any way.
    pub elapsed: u16,
    /// Cycles after which it is done where no scoreboard tells ([`Rules::limit`]).
    pub limit: u16,
    /// A scoreboard was waited for on the shortest way, so that more cycles may have gone by.
    pub waited: bool,
    /// By scoreboard, [`GROUPS`] included: fewest later instructions that signal it, as this one does, and not before this one is done.
    pub behind: [u8; GROUPS as usize + 1],
    /// Under which condition it executed, while the predicate still holds that value.
    pub guard: Option<Guard>,
    /// Its registers, and the predicate of that condition, as [`Touch::shadow`] has them: most instructions meet none of them.
    shadow: u64,
}

impl Flight {
    /// Which of an instruction's registers it is about.
    pub(crate) fn key(&self) -> (u32, u16, bool) {
        (self.step, self.touch, self.write)
    }

    /// Its registers among those of `touch`.
    #[inline]
    pub fn common(&self, touch: &Touch) -> bool {
        self.shadow & touch.shadow() != 0 && touch.of(self.first, self.width) & self.alive != 0
    }

    /// Forgets registers that an instruction overwrites, and the condition if it changes the predicate.
    fn overwritten(&mut self, by: &Step, writes: &[Touch]) {
        for touch in writes {
            if self.guard.is_some_and(|g| touch.of(g.reg, 1) != 0) {
                self.guard = None;
            }
            // Where the later write does not happen, the earlier one counts.
            if self.write && (by.guard.is_none() || by.guard == self.guard) {
                self.alive &= !touch.of(self.first, self.width);
            }
        }
    }

    /// What holds on either of two ways. Returns whether it is more than what held on the first.
    fn join(&mut self, other: &Flight) -> bool {
        let before = *self;
        self.alive |= other.alive;
        // What only one way's scoreboards tell, neither may rely on.
        self.release &= other.release;
        let both = self.behind.iter_mut().zip(other.behind);
        both.for_each(|(mine, other)| *mine = other.min(*mine));
        if self.guard != other.guard {
            self.guard = None;
        }
        match self.elapsed.cmp(&other.elapsed) {
            std::cmp::Ordering::Less => {}
            std::cmp::Ordering::Equal => self.waited |= other.waited,
            std::cmp::Ordering::Greater => (self.elapsed, self.waited) = (other.elapsed, other.waited),
        }
        before != *self
    }
}

/// Everything in flight at one place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Sorted by instruction and touch at the ends of blocks.
    pub flights: Vec<Flight>,
}

/// A set of registers.
type Registers = [u64; REGS.div_ceil(64)];

/// Registers in flight, and some that were a short while ago.
#[derive(Clone, Default)]
pub struct Busy {
    all: Registers,
    /// Those that are about to be written.
    written: Registers,
    /// Instructions that were taken in.
    age: u32,
}

/// So many instructions share a set of registers in flight.
const REFRESH: u32 = 16;

impl Busy {
    /// Takes in what an instruction leaves in flight, which begins at `new`. What is done stays in the set until that is made anew.
    pub fn issue(&mut self, state: &State, new: usize) {
        self.age += 1;
        match self.age < REFRESH {
            true => state.flights[new..].iter().for_each(|f| self.add(f)),
            false => *self = state.busy(),
        }
    }

    fn add(&mut self, flight: &Flight) {
        for r in flight.first..flight.first + Reg::from(flight.width) {
            let (word, bit) = (usize::from(r) / 64, 1 << (r % 64));
            self.all[word] |= bit;
            self.written[word] |= if flight.write { bit } else { 0 };
        }
    }

    /// Whether any of the registers is in it, about to be written if only that counts.
    #[inline]
    pub fn has(&self, touch: &Touch, written: bool) -> bool {
        let set = if written { &self.written } else { &self.all };
        (touch.first..touch.first + Reg::from(touch.width)).any(|r| set[usize::from(r) / 64] >> (r % 64) & 1 == 1)
    }
}

impl State {
    /// What is in flight where either way leads. Returns whether it is more than before.
    pub fn join(&mut self, other: &State) -> bool {
        let mut changed = false;
        let mut joined = Vec::with_capacity(self.flights.len().max(other.flights.len()));
        let (mut a, mut b) = (self.flights.iter().peekable(), other.flights.iter().peekable());
        loop {
            match (a.peek(), b.peek()) {
                (Some(x), Some(y)) if x.key() == y.key() => {
                    let mut both = **x;
                    changed |= both.join(y);
                    joined.push(both);
                    a.next();
                    b.next();
                }
                (Some(x), Some(y)) if x.key() < y.key() => joined.extend(a.next()),
                (Some(_), None) => joined.extend(a.next()),
                (_, Some(_)) => {
                    changed = true;
                    joined.extend(b.next());
                }
                (None, None) => break,
            }
        }
        self.flights = joined;
        changed
    }

    /// Waits until the counts of the scoreboards in `mask` are 0.
    pub fn wait(&mut self, mask: u8) {
        if mask != 0 {
            self.keep(|f| {
                f.waited = true;
                f.release & mask == 0
            });
        }
    }

    /// Waits until the count of a scoreboard is at most `most`: who has more of them behind it in its queue is done by then.
    pub fn wait_for_count(&mut self, scoreboard: u8, most: u8) {
        let done = |f: &Flight| f.behind.get(usize::from(scoreboard)).is_some_and(|n| *n >= most);
        self.keep(|f| {
            f.waited = true;
            f.release >> scoreboard & 1 == 0 || !done(f)
        });
    }

    /// Changes flights, and forgets those of which it is said to. Each is moved to its place before it is changed: what was changed just now in
    /// part cannot be copied as a whole at once.
    #[inline]
    fn keep(&mut self, mut change: impl FnMut(&mut Flight) -> bool) {
        let mut kept = 0;
        for at in 0..self.flights.len() {
            if kept < at {
                self.flights[kept] = self.flights[at];
            }
            kept += usize::from(change(&mut self.flights[kept]));
        }
        self.flights.truncate(kept);
    }

    /// Issues an instruction, and lets cycles go by until the next one may issue. What it leaves in flight stands behind what was there;
    /// gives where that begins.
    pub fn issue(&mut self, code: &Code, at: u32, rules: &impl Rules) -> usize {
        let step = &code.steps[at as usize];
        let writes = code.writes(step);
        let shadow = writes.iter().fold(0, |all, t| all | t.shadow());
        let bit = |b: Option<u8>| b.map_or(0, |b| 1u8.checked_shl(b.into()).unwrap_or(0));
        let (written, read) = (
            bit(step.control.write_barrier) | step.group,
            bit(step.control.read_barrier),
        );
        let drains = rules.drains_reads(step);
        // Who tells nothing tells of nothing before it.
        let teller = step.class.filter(|_| drains || written | read != 0);
        // A stall of 0 waits until everything with a fixed latency is done.
        let cycles = if step.control.stall == 0 {
            FAR
        } else {
            step.control.stall.into()
        };
        let passes = |f: &mut Flight| {
            f.elapsed = (f.elapsed + cycles).min(FAR);
            f.release != 0 || f.elapsed < f.limit
        };
        let stays = |f: &mut Flight| {
            if f.shadow & shadow != 0 {
                f.overwritten(step, writes);
            }
            f.alive != 0 && passes(f)
        };
        // The same instruction, the last time round a loop, counts no more.
        match teller {
            None => self.keep(|f| f.step != at && stays(f)),
            Some(teller) => self.keep(|f| {
                // In a queue, who comes out tells of all before; also where its guard is false: vendor code from sm_70 on counts on that.
                let (reads, results) = rules.in_order(f.class, teller);
                let ordered = if f.write { results } else { reads };
                // A count that was not raised says nothing of who is behind.
                if ordered && step.guard.is_none() {
                    let both = f.release & (written | read);
                    let signalled = f.behind.iter_mut().enumerate().filter(|(n, _)| both >> n & 1 != 0);
                    signalled.for_each(|(_, count)| *count = count.saturating_add(1));
                }
                match f.write {
                    true if results => f.release |= written,
                    false if reads && drains => return false,
                    false if reads => f.release |= written | read,
                    _ => {}
                }
                f.step != at && stays(f)
            }),
        }
        // A changed guard predicate says nothing about whether the instruction executed.
        let own = |g: &Guard| writes.iter().any(|t| t.of(g.reg, 1) != 0);
        let guard = step.guard.filter(|g| !own(g));
        let of_guard = guard.map_or(0, |g| 1u64.rotate_left(u32::from(g.reg) % u64::BITS));
        let reads = code.reads(step);
        let new = self.flights.len();
        let mut push = |touch: usize, t: &Touch, write: bool, release: u8| {
            let mut flight = Flight {
                step: at,
                touch: touch as u16,
                write,
                first: t.first,
                width: t.width,
                class: t.class,
                alive: ones(t.width),
                release,
                elapsed: 0,
                limit: 0,
                waited: false,
                behind: [0; GROUPS as usize + 1],
                guard,
                shadow: t.shadow() | of_guard,
            };
            flight.limit = rules.limit(code, &flight);
            if passes(&mut flight) {
                self.flights.push(flight);
            }
        };
        for (n, t) in reads.iter().enumerate() {
            if rules.reads_late(step, t.port) {
                push(n, t, false, written | read);
            }
        }
        let results = writes.iter().enumerate();
        results.for_each(|(n, t)| {
            let tells = match t.port {
                Port::P if step.early_predicate => written | read,
                _ => written,
            };
            push(reads.len() + n, t, true, tells);
        });
        new
    }

    /// Puts it into the order that [`State::join`] needs.
    pub fn sort(&mut self) {
        self.flights.sort_unstable_by_key(Flight::key);
    }

    /// The registers that anything here touches.
    pub fn busy(&self) -> Busy {
        let mut busy = Busy::default();
        self.flights.iter().for_each(|f| busy.add(f));
        busy
    }
}
