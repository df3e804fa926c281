//! Which values may not share a register: the later would be written while the earlier is still on its way, or still read.

use std::collections::HashSet;

use ir::{Kernel, Op, ValueId};
use isa::Isa;

use crate::code::{Code, Reg, file_of, reg};
use crate::model::{Lack, Model};
use crate::state::{Flight, State};
use crate::walk::{self, Dependence, Kind, Listener};

/// Pairs of values, the first defined while the register of the second belongs to an instruction that was issued before: with the
/// scheduling bits as they are, both in one register would be a hazard, or nobody knows.
pub fn conflicts(isa: &'static Isa, model: &Model, kernel: &Kernel) -> Vec<(ValueId, ValueId)> {
    let code = Code::new(isa, model.classes(), kernel);
    let mut found = Found {
        model,
        kernel,
        ops: kernel.ops().filter(|op| op.kind().is_code()).collect(),
        pairs: HashSet::new(),
    };
    walk::solve(&code, model).replay(&code, model, &mut found);
    let mut pairs: Vec<_> = found.pairs.into_iter().collect();
    pairs.sort_unstable();
    pairs
}

struct Found<'k> {
    model: &'k Model,
    kernel: &'k Kernel,
    /// By instruction.
    ops: Vec<Op<'k>>,
    pairs: HashSet<(ValueId, ValueId)>,
}

impl Found<'_> {
    fn result(&self, at: u32, register: Reg) -> Option<ValueId> {
        let mut results = self.ops[at as usize].results();
        results.find(|v| self.is_in(*v, register))
    }

    /// The value that an instruction has in flight in a register.
    fn owned(&self, flight: &Flight, register: Reg) -> Option<ValueId> {
        match flight.write {
            true => self.result(flight.step, register),
            false => {
                let mut operands = self.ops[flight.step as usize].operands().iter();
                operands.find(|v| self.is_in(**v, register)).copied()
            }
        }
    }

    fn is_in(&self, value: ValueId, register: Reg) -> bool {
        let pin = self.kernel.pin(value);
        !pin.is_zero() && reg(pin.file(), pin.number()) == register
    }
}

impl Listener for Found<'_> {
    fn dependence(&mut self, _: &Code, _: &Dependence) {}

    fn wait(&mut self, _: &Code, _: u32, _: &Flight) {}

    fn issues(&mut self, code: &Code, at: u32, state: &State) {
        let step = &code.steps[at as usize];
        for touch in code.writes(step) {
            for flight in &state.flights {
                let apart = flight.guard.zip(step.guard).is_some_and(|(a, b)| walk::excludes(a, b));
                let other_file = file_of(flight.first).0 != file_of(touch.first).0;
                let d = Dependence {
                    kind: if flight.write { Kind::Waw } else { Kind::War },
                    flight: *flight,
                    at,
                    port: touch.port,
                    class: touch.class,
                };
                if apart || other_file || self.model.lack(code, &d) == Lack::Nothing {
                    continue;
                }
                for register in touch.first..touch.first + Reg::from(touch.width) {
                    let Some(result) = self.result(at, register) else {
                        continue;
                    };
                    let alive = (0..flight.width).filter(|n| flight.alive >> n & 1 == 1);
                    let owned = alive.filter_map(|n| self.owned(flight, flight.first + Reg::from(n)));
                    self.pairs
                        .extend(owned.filter(|v| *v != result).map(|v| (result, v)).collect::<Vec<_>>());
                }
            }
        }
    }
}
