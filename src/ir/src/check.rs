//! Holds the code labels of a kernel against its words, and register contents against the uses of values.

use isa::{Inst, Isa};

use crate::kernel::{BlockId, Kernel, NONE, OpId, OpKind, SUCCESSOR, ValueId};
use crate::pin::Pin;

/// A kernel that cannot be what its words say, or that cannot be lowered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Disagreement {
    pub op: OpId,
    pub message: String,
}

/// Byte offset in the lowered code of every block, and the size of the code.
pub(crate) fn block_offsets(kernel: &Kernel) -> Vec<u64> {
    let mut offsets = Vec::with_capacity(kernel.block_count() + 1);
    let mut at = 0;
    for b in 0..kernel.block_count() {
        offsets.push(at);
        let ops = kernel.block_start[b] as usize..kernel.block_start[b + 1] as usize;
        at += kernel.kinds[ops].iter().filter(|k| k.is_code()).count() as u64 * 16;
    }
    offsets.push(at);
    offsets
}

/// The blocks of the labels, by label id; `NONE` where there is none.
pub(crate) fn label_blocks(kernel: &Kernel) -> Result<Vec<u32>, Disagreement> {
    let mut blocks = Vec::new();
    for b in 0..kernel.block_count() {
        for op in kernel.block_start[b]..kernel.block_start[b + 1] {
            if kernel.kinds[op as usize] != OpKind::Label {
                continue;
            }
            let label = kernel.labels[op as usize] as usize;
            if label >= kernel.kinds.len() {
                return Err(Disagreement {
                    op: OpId(op),
                    message: "labels are numbered from 0 without gaps".into(),
                });
            }
            if blocks.len() <= label {
                blocks.resize(label + 1, NONE);
            }
            if blocks[label] != NONE {
                return Err(Disagreement {
                    op: OpId(op),
                    message: format!("label {label} is defined twice"),
                });
            }
            let code_before = (kernel.block_start[b]..op).any(|o| kernel.kinds[o as usize].is_code());
            if code_before {
                return Err(Disagreement {
                    op: OpId(op),
                    message: "a label stands behind code: it needs a block of its own".into(),
                });
            }
            blocks[label] = b as u32;
        }
    }
    Ok(blocks)
}

/// The byte offset that an instruction's code label must lead to; `None` if it is no local label.
pub(crate) fn label_target(
    kernel: &Kernel,
    op: OpId,
    block: usize,
    offsets: &[u64],
    labels: &[u32],
) -> Result<Option<u64>, Disagreement> {
    let fail = |message: String| Err(Disagreement { op, message });
    match kernel.labels[op.index()] {
        NONE => Ok(None),
        SUCCESSOR => match kernel.edges.get(kernel.edge_start[block] as usize) {
            Some(edge) if kernel.edge_start[block + 1] > kernel.edge_start[block] => Ok(Some(offsets[edge.to.index()])),
            _ => fail("the branch has no successor".into()),
        },
        label => match labels.get(label as usize).copied().filter(|b| *b != NONE) {
            Some(b) => Ok(Some(offsets[b as usize])),
            None => fail(format!("there is no label {label}")),
        },
    }
}

/// Where everything is in the code.
pub(crate) struct Places {
    offsets: Vec<u64>,
    labels: Vec<u32>,
}

impl Places {
    pub fn new(kernel: &Kernel) -> Result<Places, Disagreement> {
        Ok(Places {
            offsets: block_offsets(kernel),
            labels: label_blocks(kernel)?,
        })
    }

    /// How far an instruction's code label is from the instruction behind it, in bytes; `None` if it is no local label.
    pub fn distance(&self, kernel: &Kernel, op: OpId) -> Result<Option<i64>, Disagreement> {
        let block = kernel.block_start.partition_point(|start| *start <= op.0) - 1;
        let target = label_target(kernel, op, block, &self.offsets, &self.labels)?;
        let ops = kernel.block_start[block] as usize..=op.index();
        let code = kernel.kinds[ops].iter().filter(|k| k.is_code()).count() as u64;
        let behind = self.offsets[block] + 16 * code;
        Ok(target.map(|target| target.wrapping_sub(behind) as i64))
    }
}

/// Code labels that lead somewhere, and, with the tables of `words`, where the words say. (Registers are held against the words as the
/// text is read.)
pub(crate) fn labels(kernel: &Kernel, words: Option<&Isa>) -> Result<(), Disagreement> {
    let offsets = block_offsets(kernel);
    let labels = label_blocks(kernel)?;
    for b in 0..kernel.block_count() {
        let mut pc = offsets[b];
        for i in kernel.block_start[b]..kernel.block_start[b + 1] {
            let at = i as usize;
            let kind = kernel.kinds[at];
            if kind == OpKind::Entry && b > 0 {
                return Err(Disagreement {
                    op: OpId(i),
                    message: "`sass.entry` ends the first block only".into(),
                });
            }
            if kind == OpKind::Inst && kernel.labels[at] != NONE {
                let layout = &kernel.layouts[kernel.op_layout[at] as usize];
                let target = label_target(kernel, OpId(i), b, &offsets, &labels)?;
                let word = kernel.words[at];
                let inst = Inst {
                    word,
                    form: layout.form,
                };
                let named = words.map(|isa| isa.branch_target(inst, pc));
                if let Some(named) = named.filter(|named| *named != target) {
                    let (named, target) = (named.unwrap_or(0), target.unwrap_or(0));
                    let message = format!(
                        "the word leads to offset {named:#x}, the text to {target:#x}; without its word the instruction is encoded \
                         as the text says"
                    );
                    return Err(Disagreement { op: OpId(i), message });
                }
            }
            pc += if kind.is_code() { 16 } else { 0 };
        }
    }
    Ok(())
}

/// Register content that is not known to be one value.
const CONFLICT: u32 = u32::MAX;
/// Not reached yet.
const UNSET: u32 = u32::MAX - 1;
/// Blocks times registers, above which a kernel is refused (256 MiB).
const MAX_STATE: usize = 1 << 26;

/// Follows every register through the code: each use must find its value in the register that the value is pinned to, on every path.
pub(crate) fn pins_hold(kernel: &Kernel) -> Result<(), Disagreement> {
    let mut dense = vec![u16::MAX; Pin::COUNT];
    let mut n = 0usize;
    for pin in kernel.pins.iter().filter(|p| !p.is_zero()) {
        if dense[pin.index()] == u16::MAX {
            dense[pin.index()] = n as u16;
            n += 1;
        }
    }
    let blocks = kernel.block_count();
    if n.saturating_mul(blocks) > MAX_STATE {
        let message = format!("{blocks} blocks with {n} registers are too many to follow");
        return Err(Disagreement { op: OpId(0), message });
    }
    // By value: its register's dense number; the constant registers need no following.
    let register: Vec<u16> = kernel
        .pins
        .iter()
        .map(|p| if p.is_zero() { u16::MAX } else { dense[p.index()] })
        .collect();
    let results = kernel.result_count();
    let mut entry = vec![UNSET; blocks * n];
    let mut is_arg = vec![false; blocks * n];
    for b in 0..blocks {
        for a in kernel.arg_start[b]..kernel.arg_start[b + 1] {
            let value = results + a;
            let at = b * n + register[value as usize] as usize;
            entry[at] = value;
            is_arg[at] = true;
        }
    }
    entry[..n].fill(CONFLICT);
    let mut queued = vec![false; blocks];
    let mut work = std::collections::VecDeque::from([0u32]);
    let mut state = vec![0u32; n];
    let mut visited = vec![false; blocks];
    while let Some(b) = work.pop_front() {
        let b = b as usize;
        queued[b] = false;
        visited[b] = true;
        state.copy_from_slice(&entry[b * n..(b + 1) * n]);
        let (from, to) = (kernel.block_start[b] as usize, kernel.block_start[b + 1] as usize);
        for value in kernel.result_start[from]..kernel.result_start[to] {
            if let Some(at) = state.get_mut(register[value as usize] as usize) {
                *at = value;
            }
        }
        for e in kernel.edge_start[b]..kernel.edge_start[b + 1] {
            let to = kernel.edges[e as usize].to.index();
            let range = to * n..(to + 1) * n;
            let mut changed = 0;
            for ((old, arg), new) in entry[range.clone()].iter_mut().zip(&is_arg[range]).zip(&state) {
                let met = if *old == UNSET {
                    *new
                } else if *old == *new {
                    *old
                } else {
                    CONFLICT
                };
                let met = if *arg { *old } else { met };
                changed |= met ^ *old;
                *old = met;
            }
            if (changed != 0 || !visited[to]) && !std::mem::replace(&mut queued[to], true) {
                work.push_back(to as u32);
            }
        }
    }
    for b in 0..blocks {
        state.copy_from_slice(&entry[b * n..(b + 1) * n]);
        for i in kernel.block_start[b]..kernel.block_start[b + 1] {
            let at = i as usize;
            for &value in &kernel.operands[kernel.operand_start[at] as usize..kernel.operand_start[at + 1] as usize] {
                if let Some(held) = state.get(register[value.index()] as usize).filter(|h| **h != value.0) {
                    return Err(lost(kernel, OpId(i), value, *held));
                }
            }
            for value in kernel.result_start[at]..kernel.result_start[at + 1] {
                if let Some(slot) = state.get_mut(register[value as usize] as usize) {
                    *slot = value;
                }
            }
        }
        for (to, args) in kernel.block(BlockId(b as u32)).successors() {
            let last = OpId(kernel.block_start[b + 1] - 1);
            for (&value, arg) in args.iter().zip(kernel.block(to).args()) {
                let (from, into) = (kernel.pin(value), kernel.pin(arg));
                if from != into {
                    let message =
                        format!("a value in {from} is passed to a block argument in {into}: that needs a copy");
                    return Err(Disagreement { op: last, message });
                }
                if let Some(held) = state.get(register[value.index()] as usize).filter(|h| **h != value.0) {
                    return Err(lost(kernel, last, value, *held));
                }
            }
        }
    }
    Ok(())
}

fn lost(kernel: &Kernel, op: OpId, value: ValueId, held: u32) -> Disagreement {
    let pin = kernel.pin(value);
    let why = match held {
        CONFLICT | UNSET => "it may hold another value on some path".to_owned(),
        v => match kernel.def(ValueId(v)) {
            crate::kernel::Def::Result(by, _) => {
                format!("the operation at offset {:#x} wrote it", kernel.op(by).offset())
            }
            crate::kernel::Def::Arg(block, _) => format!("it holds an argument of block {}", block.0),
        },
    };
    Disagreement {
        op,
        message: format!("{pin} does not hold the value that is read: {why}"),
    }
}
