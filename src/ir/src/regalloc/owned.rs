//! Registers that belong to an instruction after it was issued.
//!
//! Loads, stores, atomics, copies and whatever else takes a variable time read their operands, and write their results, when they get to
//! it. Until something waits for the scoreboard that tells, these registers are the instruction's: its read barrier tells of operands, its
//! write barrier of results, and so of operands too. Operands leave a pipe in order, so that the barriers of a later instruction tell of
//! an earlier one's. Without any barrier it keeps them for good. What is of fixed latency keeps its registers for as many cycles as the
//! slowest of its kind take.
//!
//! Where the code at hand overwrites such a register all the same, it shows that it is safe by then, if the result comes at once: nobody
//! owns the register any more. A result that takes its time shows that of results of its kind only.

use std::collections::BTreeMap;

use isa::{Control, Effects, Isa, Latency, Pipe, RegFile, Space};

use crate::kernel::{BlockId, Kernel, Op, OpId, OpKind, ValueId};
use crate::layout::Layout;
use crate::liveness::Predecessors;
use crate::pin::Pin;

/// Cycles that the matrix and the 64-bit pipes need to read operands, and to write results: more than any latency table has for them.
const SLOW: u16 = 40;
/// Cycles after which any other result of fixed latency is written.
const FAST: u16 = 12;
/// Cycles within which another result of fixed latency may overtake it: in a general register, and in others.
const OVERTAKEN: [u16; 2] = [4, 8];
/// Cycles after which a result is in its register that another instruction was handed already.
const ON_ITS_WAY: u16 = 4;
/// In place of cycles: the clock tells nothing.
const NEVER: u16 = u16::MAX;

/// Which register of which instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Owned {
    op: OpId,
    value: ValueId,
    is_result: bool,
    queue: Pipe,
}

/// When it is free again: as soon as one of these tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Until {
    /// Scoreboards, as bits.
    boards: u8,
    /// Cycles from now.
    cycles: u16,
    /// The code showed that results of this kind come late enough.
    safe_from: Option<Kind>,
    /// Results of fixed latency, which come in the order of the code or nearly so, cannot overtake it.
    in_order: bool,
}

/// What takes about as long: instructions of one pipe on one memory.
type Kind = (Pipe, Space);

impl Until {
    /// Both must be free.
    fn and(self, other: Until) -> Until {
        Until {
            boards: self.boards & other.boards,
            cycles: self.cycles.max(other.cycles),
            safe_from: self.safe_from.filter(|kind| other.safe_from == Some(*kind)),
            in_order: self.in_order && other.in_order,
        }
    }
}

/// What is in flight at a place of the code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Flights(BTreeMap<Owned, Until>);

impl Flights {
    fn join(&mut self, other: &Flights) {
        other.0.iter().for_each(|(owned, until)| self.add(*owned, *until));
    }

    fn add(&mut self, owned: Owned, until: Until) {
        let both = self.0.get(&owned).map_or(until, |old| old.and(until));
        self.0.insert(owned, both);
    }
}

/// How long the instructions of a layout keep registers that no barrier of theirs tells of.
#[derive(Clone, Copy)]
struct Habit {
    /// Operands leave it in order; [`Pipe::None`] if they leave none.
    queue: Pipe,
    kind: Kind,
    /// Cycles; 0: they are read at issue.
    reads: u16,
    /// The same for uniform registers, which vector instructions read at issue.
    uniform_reads: u16,
    writes: u16,
    /// Everything before it in its queue has read its operands when it is through.
    drains: bool,
}

impl Habit {
    fn of(isa: &Isa, layout: &Layout) -> Habit {
        let form = isa.form(layout.form);
        let Some(s) = form.as_ref().map(|f| f.semantics()) else {
            return Habit {
                queue: Pipe::None,
                kind: (Pipe::None, Space::Generic),
                reads: NEVER,
                uniform_reads: NEVER,
                writes: NEVER,
                drains: false,
            };
        };
        let slow = matches!(s.pipe, Pipe::Tensor | Pipe::Fp64);
        let (reads, writes) = match s.latency {
            Latency::Scoreboard => (NEVER, NEVER),
            _ if slow => (SLOW, SLOW),
            _ => (0, FAST),
        };
        let drains = s.pipe == Pipe::Adu && s.effects.has(Effects::FENCE);
        let queue = match (s.pipe, s.space) {
            // Barriers of threads go through the queue of memory accesses.
            (Pipe::Adu, _) if drains => Pipe::Lsu,
            (Pipe::Lsu, Space::Generic | Space::Global | Space::Shared | Space::Local) => Pipe::Lsu,
            (Pipe::Xu, _) if s.effects.is_none() => Pipe::Xu,
            (Pipe::Tex | Pipe::Fp64 | Pipe::Tensor, _) => s.pipe,
            // Constants, special registers and what compares lanes come out when they do.
            _ => Pipe::None,
        };
        Habit {
            kind: (s.pipe, s.space),
            queue,
            reads,
            uniform_reads: if s.pipe == Pipe::Uniform { reads } else { 0 },
            writes,
            drains,
        }
    }
}

/// Calls `conflict` with each result and each value whose register belongs to an earlier instruction when the result is written.
pub(super) fn conflicts(isa: &Isa, kernel: &Kernel, mut conflict: impl FnMut(ValueId, ValueId)) {
    let habits: Vec<Habit> = kernel.layouts.iter().map(|l| Habit::of(isa, l)).collect();
    let predecessors = Predecessors::new(kernel);
    let mut out: Vec<Option<Flights>> = vec![None; kernel.block_count()];
    let mut work: Vec<u32> = (1..kernel.block_count() as u32).rev().collect();
    let mut queued = vec![true; kernel.block_count()];
    while let Some(b) = work.pop() {
        queued[b as usize] = false;
        let mut flights = Flights::default();
        let before = predecessors.of(b).iter().filter_map(|p| out[*p as usize].as_ref());
        before.for_each(|f| flights.join(f));
        for op in kernel.block(BlockId(b)).ops().filter(|op| op.kind() == OpKind::Inst) {
            let Some(layout) = op.layout() else { continue };
            let habit = habits[kernel.op_layout[op.id().index()] as usize];
            flights.issue(kernel, op, layout, habit, &mut conflict);
        }
        if out[b as usize].as_ref() != Some(&flights) {
            out[b as usize] = Some(flights);
            for (to, _) in kernel.block(BlockId(b)).successors() {
                if !std::mem::replace(&mut queued[to.index()], true) {
                    work.push(to.0);
                }
            }
        }
    }
}

impl Flights {
    fn issue(
        &mut self,
        kernel: &Kernel,
        op: Op<'_>,
        layout: &Layout,
        habit: Habit,
        conflict: &mut impl FnMut(ValueId, ValueId),
    ) {
        let control = Control::of(op.word());
        let bit = |board: Option<u8>| board.map_or(0, |b| 1u8 << b);
        let (read, written) = (bit(control.read_barrier), bit(control.write_barrier));
        let reads = &op.operands()[..layout.read_count().min(op.operands().len())];
        let guarded = layout.is_guarded(op.word());
        self.0.retain(|_, until| until.boards & control.wait == 0);
        // Who reads a result shows that it is there, and that the operands were read. If it is of fixed latency the reader may have got it on
        // its way to the register.
        let seen = |owned: &Owned| owned.is_result && reads.contains(&owned.value);
        let done: Vec<OpId> = self.0.keys().filter(|o| seen(o)).map(|o| o.op).collect();
        self.0.retain(|owned, until| {
            if seen(owned) && until.cycles != NEVER {
                until.cycles = until.cycles.min(ON_ITS_WAY);
                until.in_order = true;
                return true;
            }
            !seen(owned) && (owned.is_result || !done.contains(&owned.op))
        });
        let quick = habit.writes == FAST && written == 0;
        for result in op.results() {
            let held = |until: &Until| match quick {
                true => !until.in_order,
                false => until.safe_from != Some(habit.kind),
            };
            let held = self.0.iter().filter(|(_, until)| held(until));
            held.for_each(|(owned, _)| conflict(result, owned.value));
        }
        if !guarded {
            let overwritten: Vec<Pin> = op.results().map(|v| kernel.pin(v)).collect();
            self.0.retain(|owned, until| {
                let hit = overwritten.contains(&kernel.pin(owned.value));
                if hit {
                    until.safe_from = Some(habit.kind);
                }
                !(hit && quick)
            });
        }
        for (_, until) in self
            .0
            .iter_mut()
            .filter(|(o, _)| !o.is_result && o.queue == habit.queue && o.queue != Pipe::None)
        {
            until.boards |= read | written;
        }
        if habit.drains && !guarded {
            self.0.retain(|owned, _| owned.is_result || owned.queue != habit.queue);
        }
        let mut keep = |value: ValueId, is_result: bool, boards: u8, cycles: u16| {
            let cycles = if boards == 0 { cycles } else { NEVER };
            if cycles > 0 && !kernel.pin(value).is_zero() {
                self.add(
                    Owned {
                        op: op.id(),
                        value,
                        is_result,
                        queue: habit.queue,
                    },
                    Until {
                        boards,
                        cycles,
                        safe_from: None,
                        in_order: false,
                    },
                );
            }
        };
        for &value in reads {
            match kernel.pin(value).file() {
                RegFile::R => keep(value, false, read | written, habit.reads),
                RegFile::UR => keep(value, false, read | written, habit.uniform_reads),
                // Read at issue.
                _ => {}
            }
        }
        op.results().for_each(|v| keep(v, true, written, habit.writes));
        // A stall of 0 waits for all that is of fixed latency.
        let passed = if control.stall == 0 { SLOW } else { control.stall.into() };
        self.0.retain(|owned, until| {
            until.cycles = if until.cycles == NEVER {
                NEVER
            } else {
                until.cycles.saturating_sub(passed)
            };
            let overtaken = OVERTAKEN[usize::from(kernel.pin(owned.value).file() != RegFile::R)];
            until.in_order |= until.cycles <= FAST - overtaken;
            until.cycles > 0
        });
    }
}
