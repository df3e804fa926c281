//! A kernel with instructions put in, replaced, moved and taken out: all operations and values get new ids.

use std::collections::{HashMap, HashSet};

use isa::{Inst, Word};

use crate::edit::written;
use crate::kernel::{Def, Kernel, NONE, OpId, OpKind, ValueId};
use crate::layouts::Layouts;
use crate::pin::{FILES, Pin, file_index};

/// An instruction to put in, or in the place of another.
pub(crate) struct New {
    pub inst: Inst,
    pub layout: u32,
    pub operands: Vec<ValueId>,
}

/// What goes before an operation.
pub(crate) enum Put {
    New(New),
    /// An operation of the kernel that leaves its place.
    Old(OpId),
}

/// One rebuilding. Words, layouts and pins of what is replaced are in the old kernel already.
pub(crate) struct Rebuild<'k> {
    old: &'k Kernel,
    layouts: &'k Layouts,
    replaced: &'k HashMap<u32, New>,
    /// Operations that are not where they were.
    gone: &'k HashSet<u32>,
    next: Kernel,
    /// By old value.
    renamed: Vec<u32>,
    /// By file: the value of its constant register, or [`NONE`].
    constants: [u32; FILES.len()],
}

impl<'k> Rebuild<'k> {
    pub fn new(
        old: &'k Kernel,
        layouts: &'k Layouts,
        replaced: &'k HashMap<u32, New>,
        gone: &'k HashSet<u32>,
    ) -> Rebuild<'k> {
        let mut next = Kernel::empty(old.name.clone(), old.target);
        (next.tail, next.notes) = (old.tail.clone(), old.notes.clone());
        (next.arg_start, next.edge_start, next.edges) =
            (old.arg_start.clone(), old.edge_start.clone(), old.edges.clone());
        next.edge_args = old.edge_args.clone();
        Rebuild {
            old,
            layouts,
            replaced,
            gone,
            next,
            renamed: vec![NONE; old.pins.len()],
            constants: [NONE; FILES.len()],
        }
    }

    /// The new kernel. The error: an operation whose results are read and nowhere defined.
    pub fn run(mut self, mut puts: Vec<(OpId, Put)>) -> Result<Kernel, (OpId, String)> {
        puts.sort_by_key(|(before, _)| *before);
        let missing = self.missing_constants(&puts);
        let mut puts = puts.into_iter().peekable();
        for b in 0..self.old.block_count() {
            for i in self.old.block_start[b]..self.old.block_start[b + 1] {
                if b == 0 {
                    self.constants_before(i, &missing);
                }
                while let Some((_, put)) = puts.next_if(|(at, _)| at.0 == i) {
                    match put {
                        Put::New(new) => self.put(&new),
                        Put::Old(op) => self.keep(op.0),
                    }
                }
                if !self.gone.contains(&i) {
                    self.keep(i);
                }
            }
            self.next.block_start.push(self.next.kinds.len() as u32);
        }
        for v in self.old.result_count()..self.old.pins.len() as u32 {
            self.renamed[v as usize] = self.next.pins.len() as u32;
            self.next.pins.push(self.old.pins[v as usize]);
        }
        let Rebuild {
            old,
            mut next,
            renamed,
            constants,
            ..
        } = self;
        for value in next.operands.iter_mut().chain(&mut next.edge_args) {
            let new = match value.as_constant() {
                Some(file) => constants[file_index(file)],
                None => renamed[value.index()],
            };
            if new == NONE
                && let Def::Result(op, _) = old.def(*value)
            {
                return Err((op, "its results are still read".into()));
            }
            *value = ValueId(new);
        }
        Ok(next)
    }

    /// By file: edits read its constant register, and the kernel has no value for it.
    fn missing_constants(&self, puts: &[(OpId, Put)]) -> [bool; FILES.len()] {
        let mut missing = [false; FILES.len()];
        let put = puts.iter().filter_map(|(_, put)| match put {
            Put::New(new) => Some(new),
            Put::Old(_) => None,
        });
        let operands = put.chain(self.replaced.values()).flat_map(|new| &new.operands);
        operands
            .filter_map(|v| v.as_constant())
            .for_each(|file| missing[file_index(file)] = true);
        for kind in &self.old.kinds[..self.old.block_start[1] as usize] {
            if let OpKind::Constant(file) = kind {
                missing[file_index(*file)] = false;
            }
        }
        missing
    }

    /// Constants stand first, in the order of the files.
    fn constants_before(&mut self, i: u32, missing: &[bool]) {
        let next = match self.old.kinds[i as usize] {
            OpKind::Constant(file) => file_index(file),
            _ => FILES.len(),
        };
        for (n, file) in FILES.into_iter().enumerate().take(next) {
            if missing[n] && self.constants[n] == NONE {
                self.constants[n] = self.next.pins.len() as u32;
                self.next.pins.push(Pin::zero(file));
                self.next.finish_op(OpKind::Constant(file), Word(0), NONE, NONE);
            }
        }
        if next < FILES.len() {
            self.constants[next] = self.next.pins.len() as u32;
        }
    }

    fn put(&mut self, new: &New) {
        self.next.operands.extend(&new.operands);
        let results = written(&self.layouts.list[new.layout as usize], new.inst.word);
        self.next.pins.extend(results);
        self.next.finish_op(OpKind::Inst, new.inst.word, new.layout, NONE);
    }

    /// An operation of the old kernel, or what replaces it.
    fn keep(&mut self, i: u32) {
        let (old, at) = (self.old, i as usize);
        for v in old.result_start[at]..old.result_start[at + 1] {
            self.renamed[v as usize] = self.next.pins.len() as u32;
            self.next.pins.push(old.pins[v as usize]);
        }
        let operands = old.operand_start[at] as usize..old.operand_start[at + 1] as usize;
        let operands = self
            .replaced
            .get(&i)
            .map_or(&old.operands[operands], |new| &new.operands);
        self.next.operands.extend(operands);
        self.next
            .finish_op(old.kinds[at], old.words[at], old.op_layout[at], old.labels[at]);
    }
}
