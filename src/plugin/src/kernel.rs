//! The kernel that a pass looks at.

use std::ffi::{c_char, c_void};
use std::ops::Range;

use crate::abi::{self, Engine, Layout, Word, op, slice};
use crate::host;

/// One kernel in SSA: operations in text order, those of a block side by side.
#[derive(Clone, Copy)]
pub struct Kernel<'k> {
    c: &'k abi::Kernel,
    engine: &'k Engine,
}

/// A register file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum File {
    /// General registers.
    R,
    /// Uniform registers.
    UR,
    /// Predicates.
    P,
    /// Uniform predicates.
    UP,
    /// Barriers of convergence.
    B,
}

/// The register that a value is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Register {
    /// Its file.
    pub file: File,
    /// Its number; of no meaning for a constant.
    pub number: u8,
    /// RZ, URZ, PT or UPT.
    pub is_constant: bool,
}

impl<'k> Kernel<'k> {
    /// # Safety
    /// Both are as the header says, and live for `'k`.
    pub(crate) unsafe fn new(c: &'k abi::Kernel, engine: &'k Engine) -> Kernel<'k> {
        Kernel { c, engine }
    }

    /// The arrays of the header.
    pub fn arrays(self) -> &'k abi::Kernel {
        self.c
    }

    /// What is known of words.
    pub fn engine(self) -> &'k Engine {
        self.engine
    }

    /// The kernel's name.
    pub fn name(self) -> &'k str {
        // SAFETY: a string of the header, which lives for `'k`.
        unsafe { self.c.name.get() }.unwrap_or("?")
    }

    /// The target, as `sm_87`.
    pub fn sm(self) -> &'k str {
        // SAFETY: as in `name`.
        unsafe { self.c.sm.get() }.unwrap_or("?")
    }

    /// All operations.
    pub fn ops(self) -> impl ExactSizeIterator<Item = Op<'k>> {
        (0..self.c.op_count).map(move |id| Op { kernel: self, id })
    }

    /// The instructions that the tables know, in the order of the code.
    pub fn instructions(self) -> impl Iterator<Item = Op<'k>> {
        self.ops().filter(|op| op.kind() == op::INST)
    }

    /// The basic blocks.
    pub fn blocks(self) -> impl ExactSizeIterator<Item = Block<'k>> {
        (0..self.c.block_count).map(move |id| Block { kernel: self, id })
    }

    /// The register that a value is in; `None` if there is no such value.
    pub fn register(self, value: u32) -> Option<Register> {
        let results = self.starts(self.c.result_start, self.c.op_count, self.c.op_count).start;
        let args = self
            .starts(self.c.arg_start, self.c.block_count, self.c.block_count)
            .start;
        // SAFETY: there is one for every value.
        let bits = *unsafe { slice(self.c.pins, (results + args) as usize) }.get(value as usize)?;
        let files = [File::R, File::UR, File::P, File::UP, File::B];
        Some(Register {
            file: *files.get(usize::from(bits >> 8 & 7))?,
            number: bits as u8,
            is_constant: bits >> 11 & 1 != 0,
        })
    }

    /// What belongs to index `at` by an array of starts for `count` of them; empty from the last start on where there is no such index.
    fn starts(self, starts: *const u32, count: u32, at: u32) -> Range<u32> {
        // SAFETY: arrays of starts have one entry more than what they index.
        let starts = unsafe { slice(starts, count as usize + 1) };
        let start = starts[at as usize];
        start..starts.get(at as usize + 1).copied().unwrap_or(start)
    }
}

/// One operation.
#[derive(Clone, Copy)]
pub struct Op<'k> {
    kernel: Kernel<'k>,
    id: u32,
}

impl<'k> Op<'k> {
    /// Its number, for edits.
    pub fn id(self) -> u32 {
        self.id
    }

    /// What it is: a constant of [`abi::op`].
    pub fn kind(self) -> u8 {
        // SAFETY: there is one for every operation.
        let kinds = unsafe { slice(self.kernel.c.kinds, self.kernel.c.op_count as usize) };
        kinds[self.id as usize]
    }

    /// The instruction word; of no meaning where there is no instruction.
    pub fn word(self) -> Word {
        // SAFETY: as in `kind`.
        let words = unsafe { slice(self.kernel.c.words, self.kernel.c.op_count as usize) };
        words[self.id as usize]
    }

    /// What all instructions of its form and modifiers share; `None` where there is no instruction.
    pub fn layout(self) -> Option<&'k Layout> {
        let c = self.kernel.c;
        // SAFETY: an index for every operation; those of instructions lead to a layout, which lives as long as the process.
        unsafe {
            let at = slice(c.layout, c.op_count as usize)[self.id as usize];
            slice(c.layouts, c.layout_count as usize).get(at as usize)?.as_ref()
        }
    }

    fn text_of(self, part: impl Fn(&Layout) -> abi::Str) -> &'k str {
        // SAFETY: strings of a layout live as long as the process.
        self.layout().and_then(|l| unsafe { part(l).get() }).unwrap_or("")
    }

    /// `FFMA`
    pub fn mnemonic(self) -> &'k str {
        self.text_of(|l| l.mnemonic)
    }

    /// `FFMA_0x223_R_R_R_R`
    pub fn form_name(self) -> &'k str {
        self.text_of(|l| l.form_name)
    }

    /// The modifiers that are printed, in order.
    pub fn modifiers(self) -> Vec<String> {
        unsafe extern "C" fn each(user: *mut c_void, data: *const c_char, size: usize) {
            let mut one = String::new();
            // SAFETY: `user` is the list below; the bytes live during the call.
            unsafe {
                host::text((&raw mut one).cast(), data, size);
                (*user.cast::<Vec<String>>()).push(one);
            }
        }
        let mut list: Vec<String> = Vec::new();
        if let Some(layout) = self.layout() {
            (self.kernel.engine.modifiers)(layout, self.word(), each, (&raw mut list).cast());
        }
        list
    }

    /// True if a modifier is printed.
    pub fn has_modifier(self, token: &str) -> bool {
        self.modifiers().iter().any(|m| m == token)
    }

    /// The names of the form's fields.
    pub fn field_names(self) -> impl Iterator<Item = &'k str> {
        let name = move |at| {
            let name = (self.kernel.engine.field_name)(self.layout()?, at);
            // SAFETY: the engine's strings live as long as the process.
            unsafe { name.get() }.filter(|name| !name.is_empty())
        };
        (0..).map_while(name)
    }

    /// The value of a field; `None` if the form has no such field.
    pub fn field(self, name: &str) -> Option<i64> {
        let (mut value, layout) = (0, self.layout()?);
        // SAFETY: a function of the header's type.
        let status = unsafe {
            (self.kernel.engine.get_field)(
                layout,
                self.word(),
                abi::Str::lent(name),
                &mut value,
                None,
                std::ptr::null_mut(),
            )
        };
        (status == 0).then_some(value)
    }

    /// The values that it reads, guard first where it has one, then what the word names, then what it keeps under a guard.
    pub fn operands(self) -> &'k [u32] {
        let c = self.kernel.c;
        let all = self.kernel.starts(c.operand_start, c.op_count, c.op_count).start;
        let own = self.kernel.starts(c.operand_start, c.op_count, self.id);
        // SAFETY: the last start is where the array ends.
        let operands = unsafe { slice(c.operands, all as usize) };
        &operands[own.start as usize..own.end as usize]
    }

    /// The values that it makes.
    pub fn results(self) -> Range<u32> {
        let c = self.kernel.c;
        self.kernel.starts(c.result_start, c.op_count, self.id)
    }

    /// The guard's value and whether it is negated; `None` where the instruction runs always.
    pub fn guard(self) -> Option<(u32, bool)> {
        let layout = self.layout().filter(|l| l.has_guard != 0)?;
        let (word, guard) = (u128::from(self.word()), u128::from(layout.guard));
        let guarded = word & guard != u128::from(layout.unguarded);
        // The negation is the highest bit of the guard.
        let negated = word & guard & 1 << (127 - guard.leading_zeros()) != 0;
        guarded.then(|| (self.operands()[0], negated))
    }

    /// The instruction as nvdisasm writes it; `offset` is where it is in its code (bytes), for the targets of branches.
    pub fn text(self, offset: u64) -> String {
        let mut out = String::new();
        if let Some(layout) = self.layout() {
            (self.kernel.engine.text)(layout, self.word(), offset, host::text, (&raw mut out).cast());
        }
        out
    }
}

/// A basic block.
#[derive(Clone, Copy)]
pub struct Block<'k> {
    kernel: Kernel<'k>,
    id: u32,
}

impl<'k> Block<'k> {
    /// Its number.
    pub fn id(self) -> u32 {
        self.id
    }

    /// Its operations.
    pub fn ops(self) -> impl ExactSizeIterator<Item = Op<'k>> {
        let (kernel, c) = (self.kernel, self.kernel.c);
        let ops = kernel.starts(c.block_start, c.block_count, self.id);
        ops.map(move |id| Op { kernel, id })
    }

    /// The values of its arguments.
    pub fn args(self) -> Range<u32> {
        let (kernel, c) = (self.kernel, self.kernel.c);
        let results = kernel.starts(c.result_start, c.op_count, c.op_count).start;
        let args = kernel.starts(c.arg_start, c.block_count, self.id);
        results + args.start..results + args.end
    }

    /// The blocks that control may go to, each with the values for its arguments.
    pub fn successors(self) -> impl Iterator<Item = (Block<'k>, &'k [u32])> {
        let (kernel, c) = (self.kernel, self.kernel.c);
        let all = kernel.starts(c.edge_start, c.block_count, c.block_count).start;
        let own = kernel.starts(c.edge_start, c.block_count, self.id);
        // SAFETY: the last start is where the array ends.
        let edges = unsafe { slice(c.edges, all as usize) };
        edges[own.start as usize..own.end as usize].iter().map(move |edge| {
            let block = Block { kernel, id: edge.to };
            // SAFETY: an edge has a value for each argument of its block.
            let values = unsafe { slice(c.edge_args.wrapping_add(edge.args as usize), block.args().len()) };
            (block, values)
        })
    }
}
