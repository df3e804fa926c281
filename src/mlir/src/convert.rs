//! Kernels as the arrays of `SassKernel`, and back.

use std::sync::Arc;

use engine::capi::{self, CLayout};
use ir::{Kernel, Layout, OpKind, Parts};
use isa::{RegFile, Target, Word};

use crate::ffi::{CEdge, CKernel, CWord, Str};

/// The arrays that are laid out differently here and in C. The others are lent.
pub(crate) struct Arrays {
    kinds: Vec<u8>,
    words: Vec<CWord>,
    tail: Vec<CWord>,
    pins: Vec<u16>,
    edges: Vec<CEdge>,
    layouts: Vec<*const CLayout>,
    sm: String,
}

fn word(w: &Word) -> CWord {
    CWord { lo: w.0 as u64, hi: (w.0 >> 64) as u64 }
}

impl Arrays {
    /// `None` if the tables of the kernel's target are not built in.
    pub fn new(kernel: &Kernel) -> Option<Arrays> {
        let parts = kernel.parts();
        let mut layouts = vec![std::ptr::null(); parts.layouts.len()];
        for (op, &layout) in parts.op_layout.iter().enumerate() {
            if let Some(slot) = layouts.get_mut(layout as usize).filter(|l| l.is_null()) {
                *slot = capi::layout_of(parts.target, parts.words[op])?;
            }
        }
        let kind = |kind: &OpKind| match kind {
            OpKind::Inst => 0,
            OpKind::Opaque => 1,
            OpKind::Constant(_) => 2,
            OpKind::LiveIn => 3,
            OpKind::Label => 4,
            OpKind::Entry => 5,
            OpKind::Fall => 6,
            OpKind::End => 7,
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
            name: Str::new(parts.name),
            sm: Str::new(&self.sm),
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
