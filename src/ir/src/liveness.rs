//! Which values are live where.

use isa::RegFile;

use crate::kernel::{BlockId, Def, Kernel, Use, ValueId};
use crate::pin::{Pin, file_index};

/// The values that are live at the start of each block, its arguments not among them.
///
/// A value is live from its definition to its last use; passing it to a block argument is a use at the end of the passing block.
pub struct Liveness {
    /// By block, one more entry.
    start: Vec<u32>,
    values: Vec<ValueId>,
}

impl Liveness {
    /// Follows every use up to the definition: time and memory grow with the number of pairs of a block and a value that is live there.
    pub fn new(kernel: &Kernel) -> Liveness {
        let uses = kernel.uses();
        let predecessors = Predecessors::new(kernel);
        let block_of_op = block_of_op(kernel);
        let blocks = kernel.block_count();
        let mut seen = vec![u32::MAX; blocks];
        let mut pairs: Vec<(u32, ValueId)> = Vec::new();
        let mut stack: Vec<u32> = Vec::new();
        for value in kernel.values() {
            let home = match kernel.def(value) {
                Def::Result(op, _) => block_of_op[op.index()],
                Def::Arg(block, _) => block.0,
            };
            for user in uses.of(value) {
                let at = match *user {
                    Use::Operand(op, _) => block_of_op[op.index()],
                    Use::Edge { from, .. } => from.0,
                };
                // In its own block the definition stands above every use.
                if at != home {
                    stack.push(at);
                }
            }
            while let Some(b) = stack.pop() {
                if std::mem::replace(&mut seen[b as usize], value.0) == value.0 {
                    continue;
                }
                pairs.push((b, value));
                stack.extend(predecessors.of(b).iter().filter(|p| **p != home));
            }
        }
        let mut start = vec![0u32; blocks + 1];
        pairs.iter().for_each(|(b, _)| start[*b as usize + 1] += 1);
        for b in 0..blocks {
            start[b + 1] += start[b];
        }
        let mut at = start.clone();
        let mut values = vec![ValueId(0); pairs.len()];
        for (b, value) in pairs {
            values[at[b as usize] as usize] = value;
            at[b as usize] += 1;
        }
        Liveness { start, values }
    }

    /// The values that are live at the start of a block, arguments aside, ascending.
    pub fn live_in(&self, block: BlockId) -> &[ValueId] {
        &self.values[self.start[block.index()] as usize..self.start[block.index() + 1] as usize]
    }

    /// Calls `f` with every value that is live behind a block's last operation; a value may come more than once.
    pub fn each_live_out(&self, kernel: &Kernel, block: BlockId, mut f: impl FnMut(ValueId)) {
        for (to, args) in kernel.block(block).successors() {
            self.live_in(to).iter().for_each(|v| f(*v));
            args.iter().for_each(|v| f(*v));
        }
    }
}

/// The block of every operation.
pub(crate) fn block_of_op(kernel: &Kernel) -> Vec<u32> {
    let mut blocks = vec![0; kernel.op_count()];
    for b in kernel.blocks() {
        b.op_range().for_each(|op| blocks[op as usize] = b.id().0);
    }
    blocks
}

/// The blocks that lead to each block.
pub(crate) struct Predecessors {
    start: Vec<u32>,
    blocks: Vec<u32>,
}

impl Predecessors {
    pub fn new(kernel: &Kernel) -> Predecessors {
        let succs: Vec<u32> = kernel.edges.iter().map(|e| e.to.0).collect();
        let graph = crate::graph::Graph {
            start: &kernel.edge_start,
            succs: &succs,
        };
        let (start, blocks) = crate::graph::predecessors(&graph);
        Predecessors { start, blocks }
    }

    pub fn of(&self, block: u32) -> &[u32] {
        &self.blocks[self.start[block as usize] as usize..self.start[block as usize + 1] as usize]
    }
}

/// Live registers at one instruction: those that hold a value that is still needed before or behind it, or that it writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pressure {
    /// Byte offset of the instruction in the lowered code.
    pub offset: u64,
    /// By register file, in the order R, UR, P, UP, B.
    pub live: [u16; 5],
}

impl Pressure {
    /// Live registers of one file.
    pub fn of(&self, file: RegFile) -> u16 {
        self.live[file_index(file)]
    }
}

/// What is live at each instruction, in the order of the code.
pub fn pressure(kernel: &Kernel) -> Vec<Pressure> {
    let mut all = Vec::with_capacity(kernel.instruction_count());
    each_live(kernel, &Liveness::new(kernel), |offset, live| {
        let live = live.registers;
        all.push(Pressure { offset, live });
    });
    all.sort_by_key(|p| p.offset);
    all
}

/// Calls `f` for every instruction, from the last of a block to its first, with its offset and the values live at it: those live
/// before it, and what it writes.
pub fn each_instruction(kernel: &Kernel, liveness: &Liveness, mut f: impl FnMut(u64, &[ValueId])) {
    each_live(kernel, liveness, |offset, live| f(offset, &live.values));
}

fn each_live(kernel: &Kernel, liveness: &Liveness, mut f: impl FnMut(u64, &LiveSet<'_>)) {
    let offsets = crate::check::block_offsets(kernel);
    let mut live = LiveSet::new(kernel);
    for block in kernel.blocks() {
        live.clear();
        liveness.each_live_out(kernel, block.id(), |v| live.insert(v));
        let mut offset = offsets[block.id().index() + 1];
        for op in block.ops().rev() {
            if !op.kind().is_code() {
                continue;
            }
            offset -= 16;
            let mut written = op.results();
            written.clone().for_each(|v| live.insert(v));
            op.operands().iter().for_each(|v| live.insert(*v));
            f(offset, &live);
            written.by_ref().for_each(|v| live.remove(v));
        }
    }
}

/// A set of values without the constants, with its members in no order.
pub(crate) struct LiveSet<'k> {
    kernel: &'k Kernel,
    place: Vec<u32>,
    pub values: Vec<ValueId>,
    /// By [`Pin::index`]: how many of the values are in that register. A result may take the register of an operand that ends there.
    held: Vec<u32>,
    /// Registers that hold any of the values, by file.
    registers: [u16; 5],
}

impl<'k> LiveSet<'k> {
    pub fn new(kernel: &'k Kernel) -> LiveSet<'k> {
        LiveSet {
            kernel,
            place: vec![u32::MAX; kernel.values().len()],
            values: Vec::new(),
            held: vec![0; Pin::COUNT],
            registers: [0; 5],
        }
    }

    pub fn insert(&mut self, value: ValueId) {
        let pin = self.kernel.pin(value);
        let place = &mut self.place[value.index()];
        if *place == u32::MAX && !pin.is_zero() {
            *place = self.values.len() as u32;
            self.values.push(value);
            let held = &mut self.held[pin.index()];
            *held += 1;
            self.registers[file_index(pin.file())] += u16::from(*held == 1);
        }
    }

    pub fn remove(&mut self, value: ValueId) {
        let place = std::mem::replace(&mut self.place[value.index()], u32::MAX);
        if place != u32::MAX {
            self.values.swap_remove(place as usize);
            if let Some(moved) = self.values.get(place as usize) {
                self.place[moved.index()] = place;
            }
            self.let_go(value);
        }
    }

    pub fn clear(&mut self) {
        while let Some(value) = self.values.pop() {
            self.place[value.index()] = u32::MAX;
            self.let_go(value);
        }
    }

    /// A register holds one value less.
    fn let_go(&mut self, value: ValueId) {
        let pin = self.kernel.pin(value);
        let held = &mut self.held[pin.index()];
        *held -= 1;
        self.registers[file_index(pin.file())] -= u16::from(*held == 0);
    }
}
