//! One kernel: operations in basic blocks, in SSA form, every value pinned to a physical register.
//!
//! Everything is a struct of arrays with `u32` ids. Ids are dense and in text order: the operations of block `b` are a contiguous range,
//! block 0 is the prologue (constants, live-ins, the pseudo terminator that enters the code), the other blocks are in address order.

use std::ops::Range;
use std::sync::Arc;

use isa::{FormId, Inst, RegFile, Target, Word};

use crate::layout::{Layout, Slot};
use crate::pin::Pin;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(transparent)]
        pub struct $name(pub u32);

        impl $name {
            /// The id as an array index.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

id! {
    /// An operation of a kernel.
    OpId
}
id! {
    /// A basic block of a kernel.
    BlockId
}
id! {
    /// An SSA value of a kernel: first the results of all operations in order, then the block arguments in order.
    ValueId
}

impl ValueId {
    /// In the operands of an edit: the constant register of a file, whether the kernel has a value for it or not.
    pub fn constant(file: RegFile) -> ValueId {
        ValueId(FIRST_CONSTANT + crate::pin::file_index(file) as u32)
    }

    /// In an edit: the n-th value that the list makes, counting the results of what it puts in and the block arguments that it adds.
    pub fn made(n: usize) -> ValueId {
        ValueId(FIRST_MADE + n as u32)
    }

    /// Which of the values that a list makes it is.
    pub(crate) fn as_made(self) -> Option<usize> {
        let n = self.0.checked_sub(FIRST_MADE)?;
        (self.0 < FIRST_CONSTANT).then_some(n as usize)
    }

    /// The file of which it stands for the constant register.
    pub(crate) fn as_constant(self) -> Option<RegFile> {
        crate::pin::FILES
            .get(self.0.checked_sub(FIRST_CONSTANT)? as usize)
            .copied()
    }
}

/// The first of the ids that stand for constant registers, by the position of their file.
const FIRST_CONSTANT: u32 = 0xffff_fff0;

/// The first of the ids that stand for values that an edit list makes.
const FIRST_MADE: u32 = 0x8000_0000;

/// No label, no layout.
pub(crate) const NONE: u32 = u32::MAX;
/// In place of a label id: the code label is the block's first successor.
pub(crate) const SUCCESSOR: u32 = u32::MAX - 1;

/// What an operation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpKind {
    /// An instruction that the tables know.
    Inst,
    /// A 128-bit word that no table knows: kept as it is, with no operands.
    Opaque,
    /// `RZ`, `URZ`, `PT` or `UPT` as a value. Lowers to nothing.
    Constant(RegFile),
    /// The content of a register at entry. Lowers to nothing.
    LiveIn,
    /// A place in the code that an operand names without branching to it. Lowers to nothing.
    Label,
    /// Pseudo terminator of the prologue: enters the code, also the parts that no branch reaches. Lowers to nothing.
    Entry,
    /// Pseudo terminator: control goes on to the next block. Lowers to nothing.
    Fall,
    /// Pseudo terminator: the code ends here without an instruction that says so. Lowers to nothing.
    End,
}

impl OpKind {
    /// True if it stands for 16 bytes of code.
    pub fn is_code(self) -> bool {
        matches!(self, OpKind::Inst | OpKind::Opaque)
    }
}

/// A control-flow edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Edge {
    pub to: BlockId,
    /// Start of the values for the block's arguments in `edge_args`.
    pub args: u32,
}

/// A kernel: the content of one `.text.X` section.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// The section's name without `.text.`.
    pub name: String,
    /// The target that the code is for.
    pub target: Target,
    /// The padding behind the code (a branch to itself, then NOPs).
    pub tail: Vec<Word>,
    /// What lifting could not know for certain, for people.
    pub notes: Vec<String>,
    /// Blocks of functions that only calls by name enter, ascending: no call through a pointer does. Lifting a cubin's code tells; a kernel
    /// that was read from text or was edited says so of none.
    pub called_by_name: Vec<BlockId>,
    pub(crate) kinds: Vec<OpKind>,
    pub(crate) words: Vec<Word>,
    pub(crate) op_layout: Vec<u32>,
    /// The id of a label operand (instructions) or of the label itself, or [`NONE`], or [`SUCCESSOR`].
    pub(crate) labels: Vec<u32>,
    /// One more entry than operations.
    pub(crate) operand_start: Vec<u32>,
    pub(crate) operands: Vec<ValueId>,
    /// One more entry than operations.
    pub(crate) result_start: Vec<u32>,
    /// By value.
    pub(crate) pins: Vec<Pin>,
    /// One more entry than blocks, as are `arg_start` and `edge_start`.
    pub(crate) block_start: Vec<u32>,
    pub(crate) arg_start: Vec<u32>,
    pub(crate) edge_start: Vec<u32>,
    pub(crate) edges: Vec<Edge>,
    pub(crate) edge_args: Vec<ValueId>,
    pub(crate) layouts: Vec<Arc<Layout>>,
}

/// How much of everything a kernel is going to have, so that its arrays need not grow.
#[derive(Default)]
pub(crate) struct Room {
    pub ops: usize,
    pub operands: usize,
    pub values: usize,
    pub blocks: usize,
    pub edges: usize,
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Def {
    /// The n-th result of an operation.
    Result(OpId, u32),
    /// The n-th argument of a block.
    Arg(BlockId, u32),
}

/// A read of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// The n-th operand of an operation.
    Operand(OpId, u32),
    /// Passed to the n-th argument of the block that the edge (the n-th successor) leads to.
    Edge {
        /// The block whose terminator passes it.
        from: BlockId,
        /// Which successor of that block.
        successor: u32,
        /// Which argument.
        arg: u32,
    },
}

impl Kernel {
    /// Number of instructions, padding excluded.
    pub fn instruction_count(&self) -> usize {
        self.kinds.iter().filter(|k| k.is_code()).count()
    }

    /// Size of the code in bytes, padding included.
    pub fn byte_size(&self) -> usize {
        (self.instruction_count() + self.tail.len()) * 16
    }

    /// All operations in text order.
    pub fn ops(&self) -> impl ExactSizeIterator<Item = Op<'_>> + DoubleEndedIterator + Clone {
        (0..self.kinds.len() as u32).map(|id| Op {
            kernel: self,
            id: OpId(id),
        })
    }

    /// One operation.
    pub fn op(&self, id: OpId) -> Op<'_> {
        debug_assert!(id.index() < self.kinds.len());
        Op { kernel: self, id }
    }

    /// Number of operations.
    pub fn op_count(&self) -> usize {
        self.kinds.len()
    }

    /// All blocks in text order.
    pub fn blocks(&self) -> impl ExactSizeIterator<Item = Block<'_>> + DoubleEndedIterator + Clone {
        (0..self.block_count() as u32).map(|id| Block {
            kernel: self,
            id: BlockId(id),
        })
    }

    /// One block.
    pub fn block(&self, id: BlockId) -> Block<'_> {
        Block { kernel: self, id }
    }

    /// Number of blocks.
    pub fn block_count(&self) -> usize {
        self.block_start.len() - 1
    }

    /// All values.
    pub fn values(&self) -> impl ExactSizeIterator<Item = ValueId> + Clone {
        (0..self.pins.len() as u32).map(ValueId)
    }

    /// The physical register of a value.
    pub fn pin(&self, value: ValueId) -> Pin {
        self.pins[value.index()]
    }

    /// Where a value comes from.
    pub fn def(&self, value: ValueId) -> Def {
        let results = self.result_count();
        if value.0 < results {
            let op = self.result_start.partition_point(|&s| s <= value.0) - 1;
            Def::Result(OpId(op as u32), value.0 - self.result_start[op])
        } else {
            let arg = value.0 - results;
            let block = self.arg_start.partition_point(|&s| s <= arg) - 1;
            Def::Arg(BlockId(block as u32), arg - self.arg_start[block])
        }
    }

    /// The reads of every value, computed on demand.
    pub fn uses(&self) -> Uses {
        Uses::new(self)
    }

    /// Control flow as pairs of byte offsets in the lowered code: from each instruction to those that may come next, calls to the one
    /// behind them. What the prologue enters is not in it.
    pub fn instruction_edges(&self) -> Vec<(u64, u64)> {
        let offsets = crate::check::block_offsets(self);
        let mut edges = Vec::with_capacity(self.words.len());
        for b in 1..self.block_count() {
            let (start, end) = (offsets[b], offsets[b + 1]);
            edges.extend((start + 16..end).step_by(16).map(|at| (at - 16, at)));
            let leaving = self.edge_start[b] as usize..self.edge_start[b + 1] as usize;
            if start < end {
                edges.extend(self.edges[leaving].iter().map(|e| (end - 16, offsets[e.to.index()])));
            }
        }
        edges
    }

    pub(crate) fn result_count(&self) -> u32 {
        self.result_start.last().copied().unwrap_or(0)
    }

    /// Without operations.
    pub(crate) fn empty(name: String, target: Target) -> Kernel {
        Kernel::with_room(name, target, Room::default())
    }

    /// Without operations, with room for some.
    pub(crate) fn with_room(name: String, target: Target, room: Room) -> Kernel {
        let starts = |len: usize| {
            let mut starts = Vec::with_capacity(len + 1);
            starts.push(0);
            starts
        };
        Kernel {
            name,
            target,
            tail: Vec::new(),
            notes: Vec::new(),
            called_by_name: Vec::new(),
            kinds: Vec::with_capacity(room.ops),
            words: Vec::with_capacity(room.ops),
            op_layout: Vec::with_capacity(room.ops),
            labels: Vec::with_capacity(room.ops),
            operand_start: starts(room.ops),
            operands: Vec::with_capacity(room.operands),
            result_start: starts(room.ops),
            pins: Vec::with_capacity(room.values),
            block_start: starts(room.blocks),
            arg_start: starts(room.blocks),
            edge_start: starts(room.blocks),
            edges: Vec::with_capacity(room.edges),
            edge_args: Vec::new(),
            layouts: Vec::new(),
        }
    }

    /// Appends an operation; its operands and results are what was pushed to `operands` and `pins` since the last one.
    #[inline]
    pub(crate) fn finish_op(&mut self, kind: OpKind, word: Word, layout: u32, label: u32) {
        self.kinds.push(kind);
        self.words.push(word);
        self.op_layout.push(layout);
        self.labels.push(label);
        self.operand_start.push(self.operands.len() as u32);
        self.result_start.push(self.pins.len() as u32);
    }
}

/// An operation of a kernel (a view).
#[derive(Clone, Copy)]
pub struct Op<'k> {
    kernel: &'k Kernel,
    id: OpId,
}

impl<'k> Op<'k> {
    /// Its id.
    pub fn id(self) -> OpId {
        self.id
    }

    /// What it is.
    pub fn kind(self) -> OpKind {
        self.kernel.kinds[self.id.index()]
    }

    /// The block that holds it.
    pub fn block(self) -> BlockId {
        BlockId(self.kernel.block_start.partition_point(|&s| s <= self.id.0) as u32 - 1)
    }

    /// The 128-bit word; 0 for an operation that lowers to nothing.
    pub fn word(self) -> Word {
        self.kernel.words[self.id.index()]
    }

    /// The instruction (form [`FormId::OPAQUE`] for an opaque word), or `None` for an operation that lowers to nothing.
    pub fn inst(self) -> Option<Inst> {
        self.kind().is_code().then(|| Inst {
            word: self.word(),
            form: self.form(),
        })
    }

    /// The form of the instruction.
    pub fn form(self) -> FormId {
        self.layout().map_or(FormId::OPAQUE, |l| l.form)
    }

    /// What the form and the modifiers fix: registers, text, control flow. `None` but for [`OpKind::Inst`].
    pub fn layout(self) -> Option<&'k Layout> {
        match self.kernel.op_layout[self.id.index()] {
            NONE => None,
            n => Some(&self.kernel.layouts[n as usize]),
        }
    }

    /// Byte offset in the lowered code of this operation (of the next instruction for one that lowers to nothing). Linear time.
    pub fn offset(self) -> u64 {
        self.kernel.kinds[..self.id.index()]
            .iter()
            .filter(|k| k.is_code())
            .count() as u64
            * 16
    }

    /// All values that it reads: guard, register operands, previous values of what a guarded write merges with, then what a call or a
    /// return reads without naming it.
    pub fn operands(self) -> &'k [ValueId] {
        let i = self.id.index();
        &self.kernel.operands[self.kernel.operand_start[i] as usize..self.kernel.operand_start[i + 1] as usize]
    }

    /// All values that it defines: register operands in the order of the instruction's accesses, then what a call writes.
    pub fn results(self) -> impl ExactSizeIterator<Item = ValueId> + Clone + use<> {
        let i = self.id.index();
        (self.kernel.result_start[i]..self.kernel.result_start[i + 1]).map(ValueId)
    }

    /// The registers of [`Op::operands`].
    pub(crate) fn operand_pins(self) -> impl Iterator<Item = Pin> + 'k {
        self.operands().iter().map(move |v| self.kernel.pins[v.index()])
    }

    /// As [`Op::results`].
    pub(crate) fn result_pins(self) -> &'k [Pin] {
        let i = self.id.index();
        &self.kernel.pins[self.kernel.result_start[i] as usize..self.kernel.result_start[i + 1] as usize]
    }

    /// The guard predicate and whether it is negated; `None` if the instruction has no guard field.
    pub fn guard(self) -> Option<(ValueId, bool)> {
        let layout = self.layout()?;
        layout
            .has_guard()
            .then(|| (self.operands()[0], layout.guard_negated(self.word())))
    }

    /// The register accesses with the values they read and write.
    pub fn accesses(self) -> impl Iterator<Item = OpAccess<'k>> {
        let word = self.word();
        let operands = self.operands();
        let i = self.id.index();
        let (mut operand, mut result) = (0usize, self.kernel.result_start[i]);
        let slots: &'k [Slot] = self.layout().map_or(&[], |l| &l.slots);
        slots.iter().map(move |slot| {
            let reads = if slot.reads() { slot.width as usize } else { 0 };
            let read = operands.get(operand..operand + reads).unwrap_or(&[]);
            operand += read.len();
            let writes = if slot.writes() {
                slot.pins(word).filter(|p| !p.is_zero()).count() as u32
            } else {
                0
            };
            let written = result..result + writes;
            result += writes;
            OpAccess {
                slot,
                reads: read,
                writes: written,
            }
        })
    }

    /// The label id that an operand names (`BSSY`, `LEPC`, returning `CALL`), or that this label has.
    pub fn label(self) -> Option<u32> {
        let label = self.kernel.labels[self.id.index()];
        (label < SUCCESSOR).then_some(label)
    }

    /// The code label that it names is its block's first successor: it is a branch, or a call that does not come back.
    pub fn goes_to_successor(self) -> bool {
        self.kernel.labels[self.id.index()] == SUCCESSOR
    }

    /// True if it ends its block.
    pub fn is_terminator(self) -> bool {
        self.kernel.block_start[self.block().index() + 1] == self.id.0 + 1
    }
}

/// One register access of an instruction, with its values.
#[derive(Clone, Debug)]
pub struct OpAccess<'k> {
    /// Which field, file, direction and width.
    pub slot: &'k Slot,
    /// The values read, one per 32-bit register.
    pub reads: &'k [ValueId],
    /// The ids of the values written; fewer than the width where the constant register is written.
    pub writes: Range<u32>,
}

/// A basic block (a view).
#[derive(Clone, Copy)]
pub struct Block<'k> {
    kernel: &'k Kernel,
    id: BlockId,
}

impl<'k> Block<'k> {
    /// Its id.
    pub fn id(self) -> BlockId {
        self.id
    }

    /// Its operations.
    pub fn ops(self) -> impl ExactSizeIterator<Item = Op<'k>> + DoubleEndedIterator + Clone {
        let kernel = self.kernel;
        self.op_range().map(move |id| Op { kernel, id: OpId(id) })
    }

    /// Number of its instructions.
    pub fn instruction_count(self) -> usize {
        self.ops().filter(|op| op.kind().is_code()).count()
    }

    pub(crate) fn op_range(self) -> Range<u32> {
        self.kernel.block_start[self.id.index()]..self.kernel.block_start[self.id.index() + 1]
    }

    /// Its arguments.
    pub fn args(self) -> impl ExactSizeIterator<Item = ValueId> + Clone + use<> {
        let base = self.kernel.result_count();
        let b = self.id.index();
        (base + self.kernel.arg_start[b]..base + self.kernel.arg_start[b + 1]).map(ValueId)
    }

    /// The blocks that its terminator leads to, with the values for their arguments.
    pub fn successors(self) -> impl ExactSizeIterator<Item = (BlockId, &'k [ValueId])> + Clone {
        let kernel = self.kernel;
        let b = self.id.index();
        kernel.edges[kernel.edge_start[b] as usize..kernel.edge_start[b + 1] as usize]
            .iter()
            .map(move |e| {
                let t = e.to.index();
                let count = (kernel.arg_start[t + 1] - kernel.arg_start[t]) as usize;
                (e.to, &kernel.edge_args[e.args as usize..e.args as usize + count])
            })
    }
}

/// The reads of every value.
pub struct Uses {
    start: Vec<u32>,
    uses: Vec<Use>,
}

impl Uses {
    fn new(kernel: &Kernel) -> Uses {
        let mut start = vec![0u32; kernel.pins.len() + 1];
        Self::each(kernel, |v, _| start[v.index() + 1] += 1);
        for i in 1..start.len() {
            start[i] += start[i - 1];
        }
        let mut at = start.clone();
        let mut uses = vec![Use::Operand(OpId(0), 0); *start.last().unwrap_or(&0) as usize];
        Self::each(kernel, |v, u| {
            uses[at[v.index()] as usize] = u;
            at[v.index()] += 1;
        });
        Uses { start, uses }
    }

    fn each(kernel: &Kernel, mut f: impl FnMut(ValueId, Use)) {
        for op in kernel.ops() {
            for (n, &v) in op.operands().iter().enumerate() {
                f(v, Use::Operand(op.id(), n as u32));
            }
        }
        for block in kernel.blocks() {
            for (s, (_, args)) in block.successors().enumerate() {
                for (n, &v) in args.iter().enumerate() {
                    f(
                        v,
                        Use::Edge {
                            from: block.id(),
                            successor: s as u32,
                            arg: n as u32,
                        },
                    );
                }
            }
        }
    }

    /// The reads of one value, in text order, those by operations first.
    pub fn of(&self, value: ValueId) -> &[Use] {
        &self.uses[self.start[value.index()] as usize..self.start[value.index() + 1] as usize]
    }
}
