//! Kernels as text (lit/GRAMMAR.md).

use std::fmt::Write as _;

use isa::{RegFile, Word};

use crate::graph::{self, Graph};
use crate::kernel::{BlockId, Kernel, NONE, Op, OpKind, SUCCESSOR, ValueId};
use crate::layout::{Flow, Item, Layout};
use crate::out::{Line, Out, decimal};
use crate::pin::{Pin, file_type};
use crate::shape::quote;
use crate::syntax::hex_digits;

/// The text of a module.
pub fn print_module(kernels: &[Kernel]) -> String {
    let mut out = Out::with_capacity(kernels.iter().map(|k| k.op_count() * 192).sum::<usize>() + 8192);
    out.push_str("module {\n");
    for kernel in kernels {
        Printer {
            names: &names(kernel),
            kernel,
            out: &mut out,
            terminates: None,
        }
        .function();
    }
    out.push_str("}\n");
    out.finish()
}

/// What a value is called, as a chunk for [`Line::array`].
#[derive(Clone, Copy)]
struct Name {
    text: [u8; Name::SIZE],
    len: u8,
}

impl Name {
    /// `%`, a number, `#`, and the number of a result, each of at most ten digits.
    const SIZE: usize = 23;

    const EMPTY: Name = Name {
        text: [0; Name::SIZE],
        len: 0,
    };

    fn new(text: &str) -> Name {
        let mut name = Name::EMPTY;
        name.push(b'%');
        text.bytes().for_each(|b| name.push(b));
        name
    }

    fn push(&mut self, byte: u8) {
        self.text[self.len as usize] = byte;
        self.len += 1;
    }

    /// Adds one to the number that the name ends with.
    fn count(&mut self) {
        for digit in self.text[1..self.len as usize].iter_mut().rev() {
            if *digit < b'9' {
                *digit += 1;
                return;
            }
            *digit = b'0';
        }
        // It was all nines.
        self.text[1] = b'1';
        self.push(b'0');
    }

    /// The name of one of several results.
    fn result(mut self, n: u32) -> Name {
        self.push(b'#');
        let (digits, len) = decimal(n);
        digits[..len].iter().for_each(|d| self.push(*d));
        self
    }
}

/// The names of all values.
fn names(kernel: &Kernel) -> Vec<Name> {
    let mut names = Vec::with_capacity(kernel.pins.len());
    let mut arguments = Vec::with_capacity(kernel.pins.len() - kernel.result_count() as usize);
    let mut next = Name::new("0");
    for b in 0..kernel.block_count() {
        for _ in kernel.arg_start[b]..kernel.arg_start[b + 1] {
            arguments.push(next);
            next.count();
        }
        for op in kernel.block_start[b] as usize..kernel.block_start[b + 1] as usize {
            match (kernel.result_start[op + 1] - kernel.result_start[op], kernel.kinds[op]) {
                (0, _) => continue,
                (1, OpKind::Constant(file)) => {
                    names.push(Name::new(constant_name(file)));
                    continue;
                }
                (1, _) => names.push(next),
                (several, _) => names.extend((0..several).map(|n| next.result(n))),
            }
            next.count();
        }
    }
    names.append(&mut arguments);
    names
}

/// The name of a file's constant register.
pub(crate) fn constant_name(file: RegFile) -> &'static str {
    match file {
        RegFile::R => "RZ",
        RegFile::UR => "URZ",
        RegFile::P => "PT",
        RegFile::UP | RegFile::B => "UPT",
    }
}

/// The operation that makes a file's constant register.
pub(crate) fn constant_op(file: RegFile) -> &'static str {
    match file {
        RegFile::R => "sass.rz",
        RegFile::UR => "sass.urz",
        RegFile::P => "sass.pt",
        RegFile::UP | RegFile::B => "sass.upt",
    }
}

struct Printer<'k, 'o> {
    kernel: &'k Kernel,
    names: &'k [Name],
    out: &'o mut Out,
    /// The block that it ends.
    terminates: Option<BlockId>,
}

impl<'k> Printer<'k, '_> {
    fn function(&mut self) {
        let kernel = self.kernel;
        let _ = write!(self.out, "  sass.func {} attributes {{", quote(&kernel.name));
        self.pins();
        let _ = write!(self.out, "sm = \"{}\"", kernel.target);
        self.tail();
        self.out.push_str("} {\n");
        let (start, predecessors) = predecessors(kernel);
        for block in kernel.blocks() {
            let b = block.id();
            if b.0 > 0 {
                let from = start[b.index()] as usize..start[b.index() + 1] as usize;
                self.block_header(b, &predecessors[from]);
            }
            let last = block.op_range().end.wrapping_sub(1);
            for op in block.ops() {
                self.terminates = (op.id().0 == last).then_some(b);
                self.operation(op);
            }
        }
        self.out.push_str("  }\n");
    }

    /// `pins = [[], ["R4", "P0"]], `: the registers of the block arguments, for each block.
    fn pins(&mut self) {
        let kernel = self.kernel;
        if *kernel.arg_start.last().unwrap_or(&0) == 0 {
            return;
        }
        self.out.push_str("pins = [");
        for block in kernel.blocks() {
            self.out.push_str(if block.id().0 > 0 { ", [" } else { "[" });
            for (k, arg) in block.args().enumerate() {
                self.out.push_str(if k > 0 { ", " } else { "" });
                self.pin(kernel.pin(arg));
            }
            self.out.push(b']');
        }
        self.out.push_str("], ");
    }

    /// `, tail = ["0x...", "0x... x7"]`: the padding, runs of equal words counted.
    fn tail(&mut self) {
        let tail = &self.kernel.tail;
        if tail.is_empty() {
            return;
        }
        self.out.push_str(", tail = [");
        for (k, run) in tail.chunk_by(|a, b| a == b).enumerate() {
            self.out.push_str(if k > 0 { ", \"" } else { "\"" });
            self.hex_word(run[0]);
            if run.len() > 1 {
                let _ = write!(self.out, " x{}", run.len());
            }
            self.out.push(b'"');
        }
        self.out.push(b']');
    }

    /// As MLIR's own printer writes it, comment included.
    fn block_header(&mut self, b: BlockId, predecessors: &[u32]) {
        self.out.push_str("  ^bb");
        self.out.decimal(b.0);
        let args = self.kernel.block(b).args();
        if args.len() > 0 {
            for (k, arg) in args.enumerate() {
                self.out.push_str(if k > 0 { ", " } else { "(" });
                self.name(arg);
                self.out.push_str(": ");
                self.out.push_str(file_type(self.kernel.pin(arg).file()));
            }
            self.out.push(b')');
        }
        self.out.push(b':');
        match predecessors {
            [] => self.out.push_str("  // no predecessors"),
            [p] => {
                self.out.push_str("  // pred: ^bb");
                self.out.decimal(*p);
            }
            all => {
                self.out.push_str("  // ");
                self.out.decimal(all.len() as u32);
                self.out.push_str(" preds: ");
                for (k, p) in all.iter().enumerate() {
                    self.out.push_str(if k > 0 { ", ^bb" } else { "^bb" });
                    self.out.decimal(*p);
                }
            }
        }
        self.out.push(b'\n');
    }

    fn operation(&mut self, op: Op<'k>) {
        let text = match op.kind() {
            OpKind::Inst => return self.instruction(op),
            OpKind::Constant(file) => constant_op(file),
            OpKind::LiveIn => "builtin.unrealized_conversion_cast to ",
            OpKind::Label => "sass.label ",
            OpKind::Entry => "sass.entry",
            OpKind::Fall => "sass.fall",
            OpKind::End => "sass.end",
            OpKind::Opaque => "sass.opaque",
        };
        self.out.push_str("    ");
        if let Some(result) = op.results().next() {
            self.name(result);
            self.out.push_str(" = ");
        }
        self.out.push_str(text);
        self.successors();
        match (op.kind(), op.result_pins()) {
            (OpKind::LiveIn, [pin]) => {
                self.out.push_str(file_type(pin.file()));
                self.out.push_str(" {sass.pin = ");
                self.pin(*pin);
                self.out.push(b'}');
            }
            (OpKind::Label, _) => self.out.decimal(op.label().unwrap_or(0)),
            (OpKind::Opaque, _) => {
                self.out.push_str(" raw ");
                self.hex_word(op.word());
            }
            _ => {}
        }
        self.out.push(b'\n');
    }

    fn instruction(&mut self, op: Op<'k>) {
        let Some(layout) = op.layout() else { return };
        let inst = Inst {
            layout,
            word: op.word(),
            operands: op.operands(),
            names: self.names,
            result: op.results().next(),
            results: op.result_pins(),
            label: self.kernel.labels[op.id().index()],
        };
        let calls = matches!(layout.flow, Flow::Call | Flow::Return);
        if self.terminates.is_none() && !calls {
            return self.out.line(|line| {
                inst.begin(line);
                inst.end(line);
            });
        }
        self.out.line(|line| inst.begin(line));
        if calls {
            self.summary(&inst);
        }
        self.successors();
        self.out.line(|line| inst.end(line));
    }

    /// What a call or a return reads and writes without naming it.
    fn summary(&mut self, inst: &Inst<'_>) {
        let reads = inst.operands.get(inst.layout.own_operands(inst.word)..).unwrap_or(&[]);
        if !reads.is_empty() {
            self.out.push_str(" reads(");
            self.typed_values(reads);
            self.out.push(b')');
        }
        let writes = inst.results.get(inst.layout.write_count(inst.word)..).unwrap_or(&[]);
        for (k, pin) in writes.iter().enumerate() {
            self.out.push_str(if k > 0 { ", " } else { " writes(" });
            self.pin(*pin);
        }
        if !writes.is_empty() {
            self.out.push(b')');
        }
    }

    /// ` ^bb2(%61 : !sass.reg), ^bb3`, if the operation ends its block and goes anywhere.
    fn successors(&mut self) {
        let Some(block) = self.terminates else { return };
        for (k, (to, args)) in self.kernel.block(block).successors().enumerate() {
            self.out.push_str(if k > 0 { ", ^bb" } else { " ^bb" });
            self.out.decimal(to.0);
            if !args.is_empty() {
                self.out.push(b'(');
                self.typed_values(args);
                self.out.push(b')');
            }
        }
    }

    /// `%1, %2 : !sass.reg, !sass.pred`.
    fn typed_values(&mut self, values: &[ValueId]) {
        self.out.line(|line| {
            for (k, v) in values.iter().enumerate() {
                line.make_room();
                line.array(b", ", if k > 0 { 2 } else { 0 });
                let name = &self.names[v.index()];
                line.array(&name.text, name.len as usize);
            }
            line.array(b" : ", 3);
            line.types(values.iter().map(|v| self.kernel.pin(*v)));
        });
    }

    /// `"R4"`
    fn pin(&mut self, pin: Pin) {
        let (text, len) = pin.text();
        self.out.push(b'"');
        self.out.push_array(&text, len);
        self.out.push(b'"');
    }

    fn hex_word(&mut self, word: Word) {
        let text = hex_word(word);
        self.out.push_array(&text, text.len());
    }

    fn name(&mut self, value: ValueId) {
        let name = &self.names[value.index()];
        self.out.push_array(&name.text, name.len as usize);
    }
}

/// An instruction on its way into a line.
struct Inst<'a> {
    layout: &'a Layout,
    word: Word,
    operands: &'a [ValueId],
    names: &'a [Name],
    result: Option<ValueId>,
    results: &'a [Pin],
    label: u32,
}

impl Inst<'_> {
    /// Results, name, guard, operands, merged values, hidden operands, code label.
    #[inline(always)]
    fn begin(&self, line: &mut Line<'_>) {
        let Inst { layout, word, .. } = *self;
        line.array(b"    ", 4);
        if let Some(name) = self.result.and_then(|v| self.names.get(v.index())) {
            match self.results.len() {
                1 => line.array(&name.text, name.len as usize),
                several => {
                    // Without the `#0` of the first.
                    line.array(&name.text, name.len as usize - 2);
                    line.array(b":", 1);
                    let (digits, len) = decimal(several as u32);
                    line.array(&digits, len);
                }
            }
            line.array(b" = ", 3);
        }
        line.phrase(&layout.head);
        for seg in &layout.segs {
            line.make_room();
            match seg.item {
                Item::None => {}
                Item::Guard => {
                    if layout.guard_negated(word) {
                        line.array(b"not ", 4);
                    }
                    self.value(line, 0);
                }
                Item::Value(n) => self.value(line, usize::from(n)),
                Item::Imm(n) => {
                    let number = layout.imms[usize::from(n)].text(word);
                    line.array(&number.bytes, number.len as usize);
                }
                Item::Named(slot) => {
                    let (name, len) = layout.slots[usize::from(slot)].pin(word).text();
                    line.array(&name, len);
                }
                Item::Merge if layout.is_guarded(word) => self.merged(line),
                Item::Merge => {}
                Item::Label { .. } if self.label == SUCCESSOR => {}
                Item::Label { first, imm } => {
                    line.array(b", ", 2 * usize::from(!first));
                    line.array(b" ", usize::from(first));
                    if self.label == NONE {
                        let number = layout.imms[usize::from(imm)].text(word);
                        line.array(b"rel(", 4);
                        line.array(&number.bytes, number.len as usize);
                    } else {
                        let (digits, len) = decimal(self.label);
                        line.array(b"label(", 6);
                        line.array(&digits, len);
                    }
                    line.array(b")", 1);
                }
            }
            line.array(&seg.text.bytes, usize::from(seg.text.len));
        }
    }

    /// The previous values of what a guarded instruction writes.
    fn merged(&self, line: &mut Line<'_>) {
        let first = self.layout.reads.len();
        let merged = first..self.layout.own_operands(self.word);
        for n in merged.clone() {
            line.make_room();
            match n == first {
                true => line.array(b" merge(", 7),
                false => line.array(b", ", 2),
            }
            self.value(line, n);
        }
        line.array(b")", usize::from(!merged.is_empty()));
    }

    #[inline(always)]
    fn value(&self, line: &mut Line<'_>, operand: usize) {
        let value = self.operands.get(operand);
        if let Some(name) = value.and_then(|v| self.names.get(v.index())) {
            line.array(&name.text, name.len as usize);
        }
    }

    /// The word, the types, the line's end.
    #[inline(always)]
    fn end(&self, line: &mut Line<'_>) {
        line.make_room();
        line.array(b" raw ", 5);
        let word = hex_word(self.word);
        line.array(&word, word.len());
        let types = &self.layout.types;
        let (phrase, listed) = match (self.results, &types.one) {
            ([], _) if !types.has_operands => return line.array(b"\n", 1),
            ([], _) => (&types.none, self.results),
            ([pin], Some((file, phrase))) if pin.file() == *file => (phrase, &[][..]),
            _ => (&types.operands, self.results),
        };
        line.phrase(phrase);
        line.types(listed.iter().copied());
        line.array(b")", usize::from(!listed.is_empty()));
        line.array(b"\n", 1);
    }
}

/// For every block the blocks that lead to it, ascending, once for each edge: where they start, and all of them.
fn predecessors(kernel: &Kernel) -> (Vec<u32>, Vec<u32>) {
    let succs: Vec<u32> = kernel.edges.iter().map(|e| e.to.0).collect();
    graph::predecessors(&Graph {
        start: &kernel.edge_start,
        succs: &succs,
    })
}

/// `0x` and 32 digits.
fn hex_word(word: Word) -> [u8; 34] {
    let mut text = *b"0x00000000000000000000000000000000";
    let parts = [96, 64, 32, 0].map(|shift| hex_digits((word.0 >> shift) as u32));
    text[2..].copy_from_slice(parts.as_flattened());
    text
}
