//! A kernel as its arrays, for the bridge to MLIR: both directions without a call per operation.

use std::sync::Arc;

use isa::{Isa, Target, Word};

use crate::check;
use crate::kernel::{Edge, Kernel, NONE, OpKind, ValueId};
use crate::layout::{Flow, Layout};
use crate::pin::Pin;

/// The arrays of a kernel. Operations are in text order, those of a block side by side; values are the results of all operations in
/// order, then all block arguments in order. Arrays named `..._start` have one entry more than what they index.
#[derive(Clone)]
pub struct Parts<'a> {
    /// The section's name without `.text.`.
    pub name: &'a str,
    /// The target that the code is for.
    pub target: Target,
    /// The padding behind the code.
    pub tail: &'a [Word],
    /// By operation.
    pub kinds: &'a [OpKind],
    /// By operation; 0 where it lowers to nothing.
    pub words: &'a [Word],
    /// By operation: index into `layouts`; [`Parts::NONE`] where there is none.
    pub op_layout: &'a [u32],
    /// By operation: label id, [`Parts::NONE`] or [`Parts::SUCCESSOR`].
    pub labels: &'a [u32],
    /// By operation, into `operands`.
    pub operand_start: &'a [u32],
    /// Values.
    pub operands: &'a [ValueId],
    /// By operation: its first result.
    pub result_start: &'a [u32],
    /// By value.
    pub pins: &'a [Pin],
    /// By block: its first operation.
    pub block_start: &'a [u32],
    /// By block: its first argument, counted from the first argument of all.
    pub arg_start: &'a [u32],
    /// By block: its first edge.
    pub edge_start: &'a [u32],
    /// The block that each edge leads to, and where its values start in `edge_args`.
    pub edges: Vec<(u32, u32)>,
    /// Values.
    pub edge_args: &'a [ValueId],
    /// What instructions of the same form and modifiers share.
    pub layouts: Vec<Arc<Layout>>,
}

impl Parts<'_> {
    /// No label, no layout.
    pub const NONE: u32 = NONE;
    /// The code label is the first successor.
    pub const SUCCESSOR: u32 = crate::kernel::SUCCESSOR;
}

/// The arrays are no kernel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kernel}: operation {op}: {message}")]
pub struct PartsError {
    /// The kernel's name.
    pub kernel: String,
    /// The operation, counted in text order.
    pub op: u32,
    /// What is wrong.
    pub message: String,
}

impl Kernel {
    /// The kernel's arrays.
    pub fn parts(&self) -> Parts<'_> {
        Parts {
            name: &self.name,
            target: self.target,
            tail: &self.tail,
            kinds: &self.kinds,
            words: &self.words,
            op_layout: &self.op_layout,
            labels: &self.labels,
            operand_start: &self.operand_start,
            operands: &self.operands,
            result_start: &self.result_start,
            pins: &self.pins,
            block_start: &self.block_start,
            arg_start: &self.arg_start,
            edge_start: &self.edge_start,
            edges: self.edges.iter().map(|e| (e.to.0, e.args)).collect(),
            edge_args: &self.edge_args,
            layouts: self.layouts.clone(),
        }
    }

    /// Builds a kernel from arrays and holds it against its words, as the reader of text does, but for code labels: those may lead
    /// elsewhere where code has moved, which is [`Kernel::labels_agree`]'s to say. Lowering writes them into the words.
    pub fn from_parts(parts: Parts<'_>) -> Result<Kernel, PartsError> {
        let fail = |op: u32, message: &str| PartsError {
            kernel: parts.name.to_owned(),
            op,
            message: message.to_owned(),
        };
        Isa::for_target(parts.target).map_err(|e| fail(0, &e.to_string()))?;
        shape(&parts).map_err(|message| fail(0, message))?;
        let kernel = Kernel {
            tail: parts.tail.to_vec(),
            kinds: parts.kinds.to_vec(),
            words: parts.words.to_vec(),
            op_layout: parts.op_layout.to_vec(),
            labels: parts.labels.to_vec(),
            operand_start: parts.operand_start.to_vec(),
            operands: parts.operands.to_vec(),
            result_start: parts.result_start.to_vec(),
            pins: parts.pins.to_vec(),
            block_start: parts.block_start.to_vec(),
            arg_start: parts.arg_start.to_vec(),
            edge_start: parts.edge_start.to_vec(),
            edges: parts
                .edges
                .iter()
                .map(|&(to, args)| Edge {
                    to: crate::BlockId(to),
                    args,
                })
                .collect(),
            edge_args: parts.edge_args.to_vec(),
            layouts: parts.layouts.clone(),
            ..Kernel::empty(parts.name.to_owned(), parts.target)
        };
        registers(&kernel).map_err(|op| fail(op, "its values do not fit its word"))?;
        check::labels(&kernel, None).map_err(|e| fail(e.op.0, &e.message))?;
        Ok(kernel)
    }

    /// Whether every code label leads where its word says: so it is in code that nothing has moved in.
    pub fn labels_agree(&self) -> Result<(), PartsError> {
        let fail = |op: u32, message: String| PartsError {
            kernel: self.name.clone(),
            op,
            message,
        };
        let isa = Isa::for_target(self.target).map_err(|e| fail(0, e.to_string()))?;
        check::labels(self, Some(isa)).map_err(|e| fail(e.op.0, e.message))
    }
}

/// Every instruction has as many values as its word names, of the right files. Numbers may differ: lowering writes them from the pins.
fn registers(kernel: &Kernel) -> Result<(), u32> {
    for op in kernel.ops() {
        let Some(layout) = op.layout() else { continue };
        let (word, mut fits) = (op.word(), true);
        let mut reads = op.operands().iter();
        let mut check = |value: Option<ValueId>, pin: Pin| {
            fits &= value.is_some_and(|v| kernel.pin(v).file() == pin.file());
        };
        layout.each_read(word, |pin| check(reads.next().copied(), pin));
        layout.each_merge(word, |pin| check(reads.next().copied(), pin));
        let mut writes = op.results();
        layout.each_write(word, |pin| check(writes.next(), pin));
        let is_call = matches!(layout.flow, Flow::Call | Flow::Return);
        if !fits || (!is_call && (reads.len() > 0 || writes.len() > 0)) {
            return Err(op.id().0);
        }
    }
    Ok(())
}

/// Every index is within its array.
fn shape(p: &Parts<'_>) -> Result<(), &'static str> {
    let starts = |s: &[u32], count: usize, total: usize| {
        s.len() == count + 1 && s[0] == 0 && s[count] as usize == total && s.windows(2).all(|w| w[0] <= w[1])
    };
    let ops = p.kinds.len();
    let blocks = p.block_start.len().checked_sub(1).ok_or("no blocks")?;
    let results = p.result_start.last().copied().unwrap_or(0) as usize;
    let args = p.arg_start.last().copied().unwrap_or(0) as usize;
    let fits = [p.words.len(), p.op_layout.len(), p.labels.len()]
        .iter()
        .all(|&n| n == ops)
        && starts(p.operand_start, ops, p.operands.len())
        && starts(p.result_start, ops, results)
        && starts(p.block_start, blocks, ops)
        && starts(p.arg_start, blocks, args)
        && starts(p.edge_start, blocks, p.edges.len())
        && p.pins.len() == results + args;
    if !fits {
        return Err("the arrays do not fit together");
    }
    let value = |v: &ValueId| v.index() < p.pins.len();
    let layout = |(kind, &l): (&OpKind, &u32)| match kind {
        OpKind::Inst => (l as usize) < p.layouts.len(),
        _ => l == NONE,
    };
    let edge = |&(to, first): &(u32, u32)| {
        let to = to as usize;
        to < blocks && first as usize + (p.arg_start[to + 1] - p.arg_start[to]) as usize <= p.edge_args.len()
    };
    match p.operands.iter().chain(p.edge_args).all(value)
        && p.kinds.iter().zip(p.op_layout).all(layout)
        && p.edges.iter().all(edge)
    {
        true => Ok(()),
        false => Err("an index is out of range"),
    }
}
