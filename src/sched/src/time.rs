//! How long things take that only a scoreboard tells of, for estimates and for the choice of scoreboards: `latency/time.csv`. Nothing that
//! is to be safe rests on these numbers.

use crate::class::{ClassId, Classes};
use crate::code::{Code, Step};
use crate::model::Model;
use crate::state::FAR;

const TEXT: &str = include_str!("../latency/time.csv");

/// Cycles until results are there and operands are read, by class.
pub struct Times {
    result: Vec<Option<u32>>,
    operands: u32,
}

impl Times {
    /// The numbers that are built in.
    pub fn new(classes: &Classes) -> Times {
        let mut times = Times {
            result: vec![None; classes.all().count()],
            operands: 0,
        };
        for line in TEXT.lines().skip(1) {
            let mut cells = line.split(',');
            let (name, cycles) = (cells.next().unwrap_or(""), cells.next().and_then(|c| c.parse().ok()));
            match classes.named(name) {
                Some(class) => times.result[usize::from(class.0)] = cycles,
                None => times.operands = cycles.unwrap_or(0),
            }
        }
        times
    }

    /// Cycles until the results of a class that signals a scoreboard are there.
    pub fn result(&self, class: ClassId) -> u32 {
        self.result[usize::from(class.0)].unwrap_or(0)
    }

    /// Cycles until an instruction has read operands that it reads late.
    pub fn operands(&self) -> u32 {
        self.operands
    }
}

/// When the instructions of one straight way issue, and when what they signal is done.
pub struct Clock<'m> {
    model: &'m Model,
    /// Now.
    pub now: u64,
    /// By scoreboard: when all that signals it so far is done.
    done: [u64; 6],
    /// When everything of fixed latency is done.
    settled: u64,
}

impl<'m> Clock<'m> {
    /// A clock at 0, with nothing in flight.
    pub fn new(model: &'m Model) -> Self {
        Clock {
            model,
            now: 0,
            done: [0; 6],
            settled: 0,
        }
    }

    /// Waits for what the instruction waits for, and issues it. Gives the cycle in which it issues.
    pub fn issue(&mut self, step: &Step) -> u64 {
        let awaited = (0..6).filter(|n| step.wait >> n & 1 == 1);
        self.now = awaited.map(|n| self.done[n]).fold(self.now, u64::max);
        if let Some((n, 0)) = step.counted {
            self.now = self.done.get(usize::from(n)).map_or(self.now, |d| self.now.max(*d));
        }
        let at = self.now;
        let times = self.model.times();
        let class = step.class.unwrap_or(ClassId(0));
        let mut signal = |barrier: Option<u8>, cycles: u32| {
            if let Some(done) = barrier.and_then(|b| self.done.get_mut(usize::from(b))) {
                *done = (*done).max(at + u64::from(cycles));
            }
        };
        signal(step.control.write_barrier, times.result(class));
        signal(step.control.read_barrier, times.operands());
        let fixed = self.model.settles(class);
        self.settled = self.settled.max(at + u64::from(if fixed > FAR { 0 } else { fixed }));
        self.now = match step.control.stall {
            0 => self.settled.max(at + 1),
            n => at + u64::from(n),
        };
        at
    }
}

/// Cycles of all instructions one after the other, as if no branch were taken: the sum of the stall counts, and with the waits.
pub fn straight(code: &Code, model: &Model) -> (u64, u64) {
    let mut clock = Clock::new(model);
    code.steps.iter().for_each(|s| {
        clock.issue(s);
    });
    let stalls = code.steps.iter().map(|s| u64::from(s.control.stall)).sum();
    (stalls, clock.now)
}
