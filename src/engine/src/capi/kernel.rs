//! Kernels as the arrays of `SassKernel`, and back.

use std::sync::Arc;

use ir::{Kernel, Layout, OpKind, Parts, Pin, ValueId};
use isa::{Target, Word};

use plugin::abi::{Edge as CEdge, Str, Word as CWord, op, slice};

use super::{CKernel, CLayout, layout_of};

/// The arrays that are laid out differently here and in C. The others are lent.
pub struct Arrays {
    kinds: Vec<u8>,
    words: Vec<CWord>,
    tail: Vec<CWord>,
    pins: Vec<u16>,
    edges: Vec<CEdge>,
    layouts: Vec<*const CLayout>,
    sm: String,
}

fn word(w: &Word) -> CWord {
    w.0.into()
}

impl Arrays {
    /// `None` if the tables of the kernel's target are not built in.
    pub fn new(kernel: &Kernel) -> Option<Arrays> {
        let parts = kernel.parts();
        let mut layouts: Vec<*const CLayout> = vec![std::ptr::null(); parts.layouts.len()];
        for (op, &layout) in parts.op_layout.iter().enumerate() {
            if let Some(slot) = layouts.get_mut(layout as usize).filter(|l| l.is_null()) {
                *slot = layout_of(parts.target, parts.words[op])?;
            }
        }
        let kind = |kind: &OpKind| match kind {
            OpKind::Inst => op::INST,
            OpKind::Opaque => op::OPAQUE,
            OpKind::Constant(_) => op::CONSTANT,
            OpKind::LiveIn => op::LIVE_IN,
            OpKind::Label => op::LABEL,
            OpKind::Entry => op::ENTRY,
            OpKind::Fall => op::FALL,
            OpKind::End => op::END,
        };
        Some(Arrays {
            kinds: parts.kinds.iter().map(kind).collect(),
            words: parts.words.iter().map(word).collect(),
            tail: parts.tail.iter().map(word).collect(),
            pins: parts.pins.iter().map(|p| p.to_bits()).collect(),
            edges: parts.edges.iter().map(|&(to, args)| CEdge { to, args }).collect(),
            layouts,
            sm: parts.target.to_string(),
        })
    }

    /// The view for C; both live as long as it.
    pub fn view(&self, kernel: &Kernel) -> CKernel {
        let parts = kernel.parts();
        CKernel {
            name: Str::lent(parts.name),
            sm: Str::lent(&self.sm),
            tail: self.tail.as_ptr(),
            tail_count: self.tail.len() as u32,
            op_count: self.kinds.len() as u32,
            block_count: parts.block_start.len() as u32 - 1,
            layout_count: self.layouts.len() as u32,
            kinds: self.kinds.as_ptr(),
            words: self.words.as_ptr(),
            layout: parts.op_layout.as_ptr(),
            labels: parts.labels.as_ptr(),
            operand_start: parts.operand_start.as_ptr(),
            operands: parts.operands.as_ptr().cast(),
            result_start: parts.result_start.as_ptr(),
            pins: self.pins.as_ptr(),
            block_start: parts.block_start.as_ptr(),
            arg_start: parts.arg_start.as_ptr(),
            edge_start: parts.edge_start.as_ptr(),
            edges: self.edges.as_ptr(),
            edge_args: parts.edge_args.as_ptr().cast(),
            layouts: self.layouts.as_ptr(),
        }
    }
}

/// Why arrays are no kernel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoKernel {
    /// An operation does not fit.
    #[error(transparent)]
    Operation(#[from] ir::PartsError),
    /// The arrays do not.
    #[error("{0}")]
    Arrays(String),
}

impl From<&str> for NoKernel {
    fn from(why: &str) -> NoKernel {
        NoKernel::Arrays(why.to_owned())
    }
}

/// The kernel of arrays that C hands out.
///
/// # Safety
/// All arrays have the sizes that `SassKernel` says, and live during the call.
pub unsafe fn kernel(c: &CKernel) -> Result<Kernel, NoKernel> {
    let (ops, blocks) = (c.op_count as usize, c.block_count as usize);
    // SAFETY: the caller's promise, for every array below.
    unsafe {
        let last = |starts: &[u32]| starts.last().copied().unwrap_or(0) as usize;
        let operand_start = slice(c.operand_start, ops + 1);
        let result_start = slice(c.result_start, ops + 1);
        let arg_start = slice(c.arg_start, blocks + 1);
        let edge_start = slice(c.edge_start, blocks + 1);
        let target: Target =
            c.sm.get()
                .ok_or("the target's name is no UTF-8")?
                .parse()
                .map_err(|e| NoKernel::Arrays(format!("{e}")))?;
        let pins = slice(c.pins, last(result_start) + last(arg_start));
        let pins: Vec<Pin> = pins
            .iter()
            .map(|&bits| Pin::from_bits(bits).ok_or("a value without a register"))
            .collect::<Result<_, _>>()?;
        let word = |w: &CWord| Word((*w).into());
        let kinds = slice(c.kinds, ops).iter().zip(result_start).map(|(kind, &result)| {
            Ok(match *kind {
                op::INST => OpKind::Inst,
                op::OPAQUE => OpKind::Opaque,
                op::CONSTANT => {
                    OpKind::Constant(pins.get(result as usize).ok_or("a constant without a register")?.file())
                }
                op::LIVE_IN => OpKind::LiveIn,
                op::LABEL => OpKind::Label,
                op::ENTRY => OpKind::Entry,
                op::FALL => OpKind::Fall,
                op::END => OpKind::End,
                _ => return Err("an operation of an unknown kind"),
            })
        });
        let kinds: Vec<OpKind> = kinds.collect::<Result<_, _>>()?;
        let layouts: Vec<Arc<Layout>> = slice(c.layouts, c.layout_count as usize)
            .iter()
            .map(|&l| (*l).layout().cloned().ok_or("an instruction without a layout"))
            .collect::<Result<_, _>>()?;
        let edges: Vec<(u32, u32)> = slice(c.edges, last(edge_start))
            .iter()
            .map(|e| (e.to, e.args))
            .collect();
        let arg_count = |to: u32| {
            arg_start
                .get(to as usize + 1)
                .map_or(0, |end| end - arg_start[to as usize])
        };
        let edge_arg_count = edges.last().map_or(0, |&(to, first)| first + arg_count(to)) as usize;
        let words: Vec<Word> = slice(c.words, ops).iter().map(word).collect();
        let tail: Vec<Word> = slice(c.tail, c.tail_count as usize).iter().map(word).collect();
        Ok(Kernel::from_parts(Parts {
            name: c.name.get().ok_or("the name is no UTF-8")?,
            target,
            tail: &tail,
            kinds: &kinds,
            words: &words,
            op_layout: slice(c.layout, ops),
            labels: slice(c.labels, ops),
            operand_start,
            operands: slice(c.operands.cast::<ValueId>(), last(operand_start)),
            result_start,
            pins: &pins,
            block_start: slice(c.block_start, blocks + 1),
            arg_start,
            edge_start,
            edges,
            edge_args: slice(c.edge_args.cast::<ValueId>(), edge_arg_count),
            layouts,
        })?)
    }
}
