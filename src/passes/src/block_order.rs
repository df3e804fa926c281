//! The instructions of a block in another order, some of them as one: whether every value still is where it is read.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;

use ir::{Block, Kernel, Liveness, OpId, Pin, ValueId};
use isa::RegFile;

/// Operations that are executed as one, in general just one.
type Step = Rc<[OpId]>;

/// A block as it is to be.
#[derive(Clone)]
pub(crate) struct BlockOrder<'k> {
    kernel: &'k Kernel,
    steps: Vec<Step>,
    /// What is read behind the block.
    out: Rc<[ValueId]>,
    /// Values that have another register.
    moved: BTreeMap<ValueId, Pin>,
}

impl<'k> BlockOrder<'k> {
    /// The order that the block has.
    pub fn new(kernel: &'k Kernel, liveness: &Liveness, block: Block<'_>) -> BlockOrder<'k> {
        let mut out = Vec::new();
        liveness.each_live_out(kernel, block.id(), |v| out.push(v));
        BlockOrder {
            kernel,
            steps: block.ops().map(|op| [op.id()].into()).collect(),
            out: out.into(),
            moved: BTreeMap::new(),
        }
    }

    /// The same with `ops`, which are steps of their own now, all at once where `place`, which is one of them, is.
    pub fn joined(&self, ops: &[OpId], place: OpId) -> BlockOrder<'k> {
        let mut next = self.clone();
        next.steps.retain(|step| step[0] == place || !ops.contains(&step[0]));
        if let Some(step) = next.steps.iter_mut().find(|step| step[0] == place) {
            *step = ops.into();
        }
        next
    }

    /// The same with a value in another register.
    pub fn moved(mut self, value: ValueId, to: Pin) -> BlockOrder<'k> {
        self.moved.insert(value, to);
        self
    }

    /// Where a value is.
    pub fn pin(&self, value: ValueId) -> Pin {
        let moved = self.moved.get(&value).copied();
        moved.unwrap_or_else(|| self.kernel.pin(value))
    }

    /// No value is read before it is there, and none loses its register while it is needed.
    pub fn holds(&self) -> bool {
        self.walk(|_, _, _| {}).is_some()
    }

    /// For each of `values`, by number, general registers that hold, or get, anything but these from the step of `from` on until it is read for
    /// the last time. `None` if the order does not hold wherever they are.
    pub fn taken(&self, from: OpId, values: &[ValueId]) -> Option<Vec<[bool; 256]>> {
        let place = self.steps.iter().position(|step| step.contains(&from)).unwrap_or(0);
        let last = |value: &ValueId| {
            let last = self
                .steps
                .iter()
                .rposition(|step| self.reads(step).any(|v| v == *value));
            last.unwrap_or(place)
        };
        let lasts: Vec<usize> = values.iter().map(last).collect();
        // Out of everybody's way: no instruction names these.
        let nowhere = (0u8..).map(|n| Pin::new(RegFile::B, u8::MAX - n));
        let apart = values.iter().zip(nowhere);
        let apart = apart.fold(self.clone(), |order, (v, pin)| order.moved(*v, pin));
        let mut taken = vec![[false; 256]; values.len()];
        apart.walk(|at, behind, live| {
            // Who reads it for the last time may write its register.
            let needed = |last: usize| (place..=last).contains(&at) && (at == place || at < last || !behind);
            let within = taken.iter_mut().zip(&lasts).filter(|(_, last)| needed(**last));
            within.for_each(|(taken, _)| {
                let general = live.keys().filter(|pin| pin.file() == RegFile::R);
                general.for_each(|pin| taken[usize::from(pin.number())] = true);
            });
        })?;
        Some(taken)
    }

    /// From the last step to the first: calls `each` with what registers hold just behind a step (`true`), and just before it. `None` where it
    /// does not hold.
    fn walk(&self, mut each: impl FnMut(usize, bool, &HashMap<Pin, ValueId>)) -> Option<()> {
        let mut live: HashMap<Pin, ValueId> = HashMap::new();
        let mut made: HashSet<ValueId> = HashSet::new();
        let named = |v: &ValueId| !self.kernel.pin(*v).is_zero();
        let keep = |live: &mut HashMap<Pin, ValueId>, v: ValueId| {
            let before = live.insert(self.pin(v), v);
            before.is_none_or(|before| before == v).then_some(())
        };
        for v in self.out.iter().copied().filter(named) {
            keep(&mut live, v)?;
        }
        for (at, step) in self.steps.iter().enumerate().rev() {
            for v in self.writes(step).filter(named) {
                keep(&mut live, v)?;
                made.insert(v);
            }
            each(at, true, &live);
            for v in self.writes(step).filter(named) {
                live.remove(&self.pin(v));
            }
            for v in self.reads(step).filter(named) {
                if made.contains(&v) {
                    return None;
                }
                keep(&mut live, v)?;
            }
            each(at, false, &live);
        }
        Some(())
    }

    fn reads(&self, step: &Step) -> impl Iterator<Item = ValueId> {
        let ops: Step = step.clone();
        let kernel = self.kernel;
        (0..ops.len()).flat_map(move |n| kernel.op(ops[n]).operands().iter().copied())
    }

    fn writes(&self, step: &Step) -> impl Iterator<Item = ValueId> {
        let ops: Step = step.clone();
        let kernel = self.kernel;
        (0..ops.len()).flat_map(move |n| kernel.op(ops[n]).results())
    }
}
