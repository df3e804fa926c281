//! A kernel with instructions put in, replaced, moved and taken out: all operations and values get new ids.

use std::collections::{HashMap, HashSet};

use isa::{Inst, Word};

use crate::edit::written;
use crate::kernel::{Def, Kernel, NONE, OpId, OpKind, ValueId};
use crate::layouts::Layouts;
use crate::made::{Instead, Made};
use crate::pin::{FILES, Pin, file_index};

/// An instruction to put in, or in the place of another.
pub(crate) struct New {
    pub inst: Inst,
    pub layout: u32,
    pub operands: Vec<ValueId>,
    /// The first of its results among the values that the list makes, where it is put in.
    pub made: usize,
}

/// What goes before an operation.
pub(crate) enum Put {
    New(New),
    /// An operation of the kernel that leaves its place.
    Old(OpId),
}

/// What becomes of what the kernel has.
pub(crate) struct Changed<'k> {
    pub replaced: &'k HashMap<u32, New>,
    /// Operations that are not where they were.
    pub gone: &'k HashSet<u32>,
    pub made: &'k Made,
    pub instead: &'k Instead,
}

/// One rebuilding. Words, layouts and pins of what is replaced are in the old kernel already.
pub(crate) struct Rebuild<'k> {
    old: &'k Kernel,
    layouts: &'k Layouts,
    changed: &'k Changed<'k>,
    next: Kernel,
    /// By old value.
    renamed: Vec<u32>,
    /// By value that the list makes.
    made: Vec<u32>,
    /// By file: the value of its constant register, or [`NONE`].
    constants: [u32; FILES.len()],
}

impl<'k> Rebuild<'k> {
    pub fn new(old: &'k Kernel, layouts: &'k Layouts, changed: &'k Changed<'k>) -> Rebuild<'k> {
        let mut next = Kernel::empty(old.name.clone(), old.target);
        (next.tail, next.notes) = (old.tail.clone(), old.notes.clone());
        (next.edge_start, next.edges) = (old.edge_start.clone(), old.edges.clone());
        Rebuild {
            old,
            layouts,
            changed,
            next,
            renamed: vec![NONE; old.pins.len()],
            made: vec![NONE; changed.made.len()],
            constants: [NONE; FILES.len()],
        }
    }

    /// The new kernel. The error: an operation whose results are read and nowhere defined, or why there is no such kernel.
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
                if !self.changed.gone.contains(&i) {
                    self.keep(i);
                }
            }
            self.next.block_start.push(self.next.kinds.len() as u32);
        }
        self.arguments();
        self.edges();
        let Rebuild {
            old,
            changed,
            mut next,
            renamed,
            made,
            constants,
            ..
        } = self;
        for value in next.operands.iter_mut().chain(&mut next.edge_args) {
            let read = changed.instead.get(value).copied().unwrap_or(*value);
            let new = match (read.as_constant(), read.as_made()) {
                (Some(file), _) => constants[file_index(file)],
                (_, Some(n)) => made[n],
                _ => renamed[read.index()],
            };
            if new == NONE
                && let Def::Result(op, _) = old.def(read)
            {
                return Err((op, "its results are still read".into()));
            }
            *value = ValueId(new);
        }
        Ok(next)
    }

    /// The arguments of each block, new ones behind those that it had.
    fn arguments(&mut self) {
        let (old, new) = (self.old, &self.changed.made.arguments);
        let first = self.next.pins.len();
        for block in old.blocks() {
            for v in block.args() {
                self.renamed[v.index()] = self.next.pins.len() as u32;
                self.next.pins.push(old.pin(v));
            }
            for argument in new.iter().filter(|a| a.block == block.id()) {
                self.made[argument.made] = self.next.pins.len() as u32;
                self.next.pins.push(argument.pin);
            }
            self.next.arg_start.push((self.next.pins.len() - first) as u32);
        }
    }

    /// What each edge passes.
    fn edges(&mut self) {
        let (old, new) = (self.old, &self.changed.made.arguments);
        let mut seen = vec![0; old.block_count()];
        for (edge, now) in old.edges.iter().zip(&mut self.next.edges) {
            let to = edge.to.index();
            let count = (old.arg_start[to + 1] - old.arg_start[to]) as usize;
            let passed = &old.edge_args[edge.args as usize..edge.args as usize + count];
            now.args = self.next.edge_args.len() as u32;
            self.next.edge_args.extend(passed);
            let arguments = new.iter().filter(|a| a.block == edge.to);
            self.next.edge_args.extend(arguments.map(|a| a.passed[seen[to]]));
            seen[to] += 1;
        }
    }

    /// By file: edits read its constant register, and the kernel has no value for it.
    fn missing_constants(&self, puts: &[(OpId, Put)]) -> [bool; FILES.len()] {
        let mut missing = [false; FILES.len()];
        let put = puts.iter().filter_map(|(_, put)| match put {
            Put::New(new) => Some(new),
            Put::Old(_) => None,
        });
        let put = put.chain(self.changed.replaced.values()).flat_map(|new| &new.operands);
        let passed = self.changed.made.arguments.iter().flat_map(|a| &a.passed);
        let operands = put.chain(passed).chain(self.changed.instead.values());
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
        for (value, made) in (self.next.pins.len() as u32..).zip(&mut self.made[new.made..new.made + results.len()]) {
            *made = value;
        }
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
            .changed
            .replaced
            .get(&i)
            .map_or(&old.operands[operands], |new| &new.operands);
        self.next.operands.extend(operands);
        self.next
            .finish_op(old.kinds[at], old.words[at], old.op_layout[at], old.labels[at]);
    }
}
