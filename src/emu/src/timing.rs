//! When results are there: until then the registers hold what they held before.
//!
//! A result of fixed latency can be read once so many cycles have gone by, that of any other instruction once a scoreboard that tells of it was
//! waited for. The emulator writes results at once and keeps what was there before; an instruction that reads too early is given that.
//! A write that should have waited for an earlier one is lost to it. Nobody else issues in between, and no wait takes time: stall counts
//! are all the time that there is, which is the least that the hardware could give.
//!
//! How long what takes is asked of [`Latencies`]. Operands are read at issue: a register that is overwritten before an earlier instruction
//! has read it shows nothing here.

use std::collections::BTreeMap;

use isa::{Control, Inst, Isa, RegFile};

use crate::arg::{self, Kind};
use crate::build::Layout;
use crate::program::Program;
use crate::regs::{ALL, Mask, Regs, Row, lanes};

/// What the giver of latencies calls an instruction, and what a register is for in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Role(pub u32);

/// Registers that an instruction touches.
#[derive(Clone, Copy, Debug)]
pub struct Touch {
    /// File.
    pub file: RegFile,
    /// The first.
    pub first: u8,
    /// How many.
    pub width: u8,
    /// What for.
    pub role: Role,
}

/// What an instruction is, as far as time matters.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Registers that it reads, its guard among them.
    pub reads: Vec<Touch>,
    /// Registers that it writes.
    pub writes: Vec<Touch>,
    /// For the order in which results come; `None` where nobody knows the instruction.
    pub role: Option<Role>,
}

/// What must have happened before an instruction may issue behind another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// So many cycles have gone by.
    Cycles(u16),
    /// A scoreboard was waited for.
    Scoreboard,
    /// Nobody knows; taken to have happened.
    Unknown,
}

/// How long instructions of a target take.
pub trait Latencies: Send + Sync {
    /// What an instruction is.
    fn facts(&self, inst: Inst) -> Facts;
    /// When what `writer` writes can be read as `reader` reads it.
    fn read(&self, writer: Role, reader: Role) -> Until;
    /// When a write lands behind an earlier one.
    fn overwrite(&self, earlier: Role, later: Role) -> Until;
    /// Whether results of an earlier instruction come before those of a later one.
    fn in_order(&self, earlier: Role, later: Role) -> bool;
    /// Cycles until a wait sees that an instruction will signal.
    fn signal(&self) -> u16;
}

/// One instruction.
struct Step {
    control: Control,
    reads: Vec<(u16, Role)>,
    writes: Vec<(u16, Role)>,
    role: Option<Role>,
    /// Scoreboards that it names as awaited.
    named: u8,
    /// A scoreboard, and the count that it waits for it to fall to.
    counted: Option<(u8, u8)>,
}

/// The times of a program.
pub(crate) struct Timing {
    steps: Vec<Step>,
    latencies: Box<dyn Latencies>,
    /// The first row of uniform registers.
    uniform: u16,
}

/// Rows below this number are registers, numbers above it predicates.
const PREDICATES: u16 = 0x8000;

impl Timing {
    pub(crate) fn new(program: &Program, latencies: Box<dyn Latencies>) -> Self {
        let steps = program
            .insts
            .iter()
            .map(|inst| step(program, &*latencies, *inst))
            .collect();
        Self {
            steps,
            latencies,
            uniform: program.layout.general,
        }
    }

    /// The lanes of a register that those of a mask share.
    fn lanes(&self, slot: u16, mask: Mask) -> Mask {
        let uniform = slot >= PREDICATES + 8 || (self.uniform..PREDICATES).contains(&slot);
        if uniform { ALL } else { mask }
    }
}

fn step(program: &Program, latencies: &dyn Latencies, inst: Inst) -> Step {
    let facts = latencies.facts(inst);
    let slots = |touches: &[Touch]| {
        let each = touches.iter().flat_map(|t| {
            let numbers = u16::from(t.first)..u16::from(t.first) + u16::from(t.width);
            numbers.filter_map(|n| Some((slot(program.layout, t.file, n)?, t.role)))
        });
        each.collect()
    };
    let (named, counted) = awaited(program.isa, inst);
    Step {
        control: Control::of(inst.word),
        reads: slots(&facts.reads),
        writes: slots(&facts.writes),
        role: facts.role,
        named,
        counted,
    }
}

/// Where a register is kept; convergence barriers never come late.
fn slot(layout: Layout, file: RegFile, n: u16) -> Option<u16> {
    match file {
        RegFile::R => (n < layout.general).then_some(n),
        RegFile::UR => (n < layout.uniform).then_some(layout.general + n),
        RegFile::P => Some(PREDICATES + n),
        RegFile::UP => Some(PREDICATES + 8 + n),
        RegFile::B => None,
    }
}

/// The scoreboards that `DEPBAR` waits for: those in braces until they are empty, the one before the number until no more are left.
fn awaited(isa: &Isa, inst: Inst) -> (u8, Option<(u8, u8)>) {
    let is_depbar = isa.form(inst.form).is_some_and(|f| f.mnemonic() == "DEPBAR");
    if !is_depbar
        || isa
            .guard(inst)
            .is_some_and(|(file, n, not)| not || !isa.is_zero(file, n))
    {
        return (0, None);
    }
    let (mut named, mut numbers) = (0, Vec::new());
    for arg in arg::args(isa, inst, 0).unwrap_or_default() {
        match arg.kind {
            Kind::Int(n) => numbers.push(n as u8),
            Kind::Name(list) => {
                let list = list.trim_matches(['{', '}']).split(',');
                let list = list.filter_map(|n| n.parse::<u32>().ok());
                list.for_each(|n| named |= 1u8.checked_shl(n).unwrap_or(0));
            }
            _ => {}
        }
    }
    match numbers[..] {
        [scoreboard @ 0..6, most, ..] => (named, Some((scoreboard, most))),
        _ => (named, None),
    }
}

/// A register's contents.
#[derive(Clone, Copy)]
enum Held {
    Row(Row),
    Bits(Mask),
}

impl Held {
    fn read(regs: &Regs, slot: u16) -> Self {
        match slot.checked_sub(PREDICATES) {
            None => Self::Row(*regs.row(slot)),
            Some(p) => Self::Bits(regs.pred_bits(p as u8)),
        }
    }

    fn write(self, regs: &mut Regs, slot: u16, lanes: Mask) {
        match self {
            Self::Row(v) => regs.set(slot, lanes, v),
            Self::Bits(v) => regs.set_pred((slot - PREDICATES) as u8, lanes, v),
        }
    }

    /// The lanes in which two differ.
    fn differ(self, other: Self) -> Mask {
        match (self, other) {
            (Self::Row(a), Self::Row(b)) => lanes(|l| a[l] != b[l]),
            (Self::Bits(a), Self::Bits(b)) => a ^ b,
            _ => ALL,
        }
    }
}

/// A result that may not be there yet.
struct Pending {
    pc: u32,
    slot: u16,
    role: Role,
    order: Option<Role>,
    /// The lanes that it was written in, and what was there before.
    mask: Mask,
    old: Held,
    issued: u64,
    /// The scoreboard that tells of it, as a bit, and those of later instructions that do, with the times of these.
    own: u8,
    lent: u8,
    lent_at: [u64; 6],
    /// By scoreboard: later instructions that signal it, as this one does, and whose results come behind its own.
    behind: [u8; 6],
}

/// An instruction that read or overwrote a register too early: its index, and that of the one whose result it is.
pub type Early = (u32, u32);

/// What one warp has in flight.
#[derive(Default)]
pub(crate) struct InFlight {
    now: u64,
    pending: Vec<Pending>,
    /// What registers held that were given back their old contents for the instruction that is executed now, and in which lanes.
    held: Vec<(u16, Mask, Held)>,
    /// What registers hold that it is going to write.
    before: Vec<Held>,
    /// How often what came too early.
    pub(crate) early: BTreeMap<Early, u64>,
}

impl InFlight {
    /// Before an instruction looks at any register: what it waits for is over, and what it reads too early is as it was.
    pub(crate) fn before(&mut self, t: &Timing, pc: u32, active: Mask, regs: &mut Regs) {
        let Some(step) = t.steps.get(pc as usize) else {
            // A function that the driver brings waits for everything.
            self.pending.clear();
            return;
        };
        self.wait(step, t.latencies.signal());
        self.before.clear();
        self.before.extend(step.writes.iter().map(|w| Held::read(regs, w.0)));
        for &read in &step.reads {
            let lanes = t.lanes(read.0, active);
            self.look(t, pc, read, lanes, regs);
        }
    }

    fn wait(&mut self, step: &Step, signal: u16) {
        let (now, signal) = (self.now, u64::from(signal));
        let mask = step.control.wait | step.named;
        self.pending.retain(|p| {
            let own = p.own & mask != 0 && now - p.issued >= signal;
            let lent = (0..6).any(|n| (p.lent & mask) >> n & 1 != 0 && now - p.lent_at[n] >= signal);
            let counted = step.counted.is_some_and(|(scoreboard, most)| {
                let behind = p.behind.get(usize::from(scoreboard));
                (p.own | p.lent) >> scoreboard & 1 != 0 && behind.is_some_and(|n| *n >= most)
            });
            !(own || lent || counted)
        });
    }

    /// Whether a result cannot be read yet.
    fn is_late(&self, t: &Timing, p: &Pending, reader: Role) -> bool {
        if p.own != 0 {
            return true;
        }
        match t.latencies.read(p.role, reader) {
            Until::Cycles(n) => self.now - p.issued < n.into(),
            Until::Scoreboard => true,
            Until::Unknown => false,
        }
    }

    /// Gives a register its old contents in the lanes where its last write is not there yet.
    fn look(&mut self, t: &Timing, pc: u32, (slot, reader): (u16, Role), mut open: Mask, regs: &mut Regs) {
        let new = Held::read(regs, slot);
        let mut late = 0;
        for p in self.pending.iter().rev().filter(|p| p.slot == slot) {
            let here = p.mask & open;
            if here == 0 {
                continue;
            }
            if !self.is_late(t, p, reader) {
                // What was written before it is hidden.
                open &= !here;
                continue;
            }
            // The oldest of several late writes says what is there.
            p.old.write(regs, slot, here);
            *self.early.entry((pc, p.pc)).or_default() += 1;
            late |= here;
        }
        if late != 0 && Held::read(regs, slot).differ(new) != 0 {
            self.held.push((slot, late, new));
        }
    }

    /// After an instruction: what it was not meant to see is there again, and its own results are in flight.
    pub(crate) fn after(&mut self, t: &Timing, pc: u32, mask: Mask, regs: &mut Regs) {
        let Some(step) = t.steps.get(pc as usize) else { return };
        let written = |slot| if mask == 0 { 0 } else { t.lanes(slot, mask) };
        for (slot, lanes, new) in std::mem::take(&mut self.held).into_iter().rev() {
            let own = step.writes.iter().any(|w| w.0 == slot);
            let kept = if own { written(slot) } else { 0 };
            new.write(regs, slot, lanes & !kept);
        }
        self.signal(t, step);
        for (n, &(slot, role)) in step.writes.iter().enumerate() {
            let old = self.before[n];
            let mask = written(slot);
            let mask = mask & !self.lose(t, pc, (slot, role), mask, old, regs);
            if mask == 0 {
                continue;
            }
            self.pending.retain(|p| (p.pc, p.slot) != (pc, slot));
            self.pending.push(Pending {
                pc,
                slot,
                role,
                order: step.role,
                mask,
                old,
                issued: self.now,
                own: bit(step.control.write_barrier),
                lent: 0,
                lent_at: [0; 6],
                behind: [0; 6],
            });
        }
        self.pass(step);
    }

    /// Tells of what is in flight that an instruction will signal a scoreboard.
    fn signal(&mut self, t: &Timing, step: &Step) {
        let (written, read) = (bit(step.control.write_barrier), bit(step.control.read_barrier));
        for p in &mut self.pending {
            let in_order = p.order.zip(step.role).is_some_and(|(a, b)| t.latencies.in_order(a, b));
            if in_order {
                let both = (p.own | p.lent) & (written | read);
                let signalled = p.behind.iter_mut().enumerate().filter(|(n, _)| both >> n & 1 != 0);
                signalled.for_each(|(_, count)| *count = count.saturating_add(1));
            }
            if in_order && let Some(at) = p.lent_at.get_mut(written.trailing_zeros() as usize) {
                (p.lent, *at) = (p.lent | written, self.now);
            }
        }
    }

    /// Where an earlier write of the register is still to land, it is what remains; gives the lanes.
    fn lose(&mut self, t: &Timing, pc: u32, (slot, role): (u16, Role), mask: Mask, old: Held, regs: &mut Regs) -> Mask {
        let mut lost = 0;
        for p in self
            .pending
            .iter()
            .filter(|p| p.slot == slot && p.pc != pc && p.mask & mask != 0)
        {
            let too_early = match t.latencies.overwrite(p.role, role) {
                Until::Cycles(n) => self.now - p.issued < n.into(),
                Until::Scoreboard => true,
                Until::Unknown => false,
            };
            if too_early {
                lost |= p.mask & mask;
                *self.early.entry((pc, p.pc)).or_default() += 1;
            }
        }
        old.write(regs, slot, lost);
        lost
    }

    /// The stall count goes by.
    fn pass(&mut self, step: &Step) {
        /// Longer than anything of fixed latency takes; a stall count of 0 waits for all of that.
        const FAR: u64 = 255;
        self.now += match step.control.stall {
            0 => FAR,
            n => n.into(),
        };
        let now = self.now;
        self.pending.retain(|p| p.own | p.lent != 0 || now - p.issued <= FAR);
    }
}

fn bit(scoreboard: Option<u8>) -> u8 {
    scoreboard.map_or(0, |n| 1u8.checked_shl(n.into()).unwrap_or(0))
}
