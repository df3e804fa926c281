//! Kernels as text (lit/GRAMMAR.md).

use std::convert::Infallible;
use std::io::Write as _;

use isa::{RegFile, Word};

use crate::kernel::{BlockId, Kernel, NONE, Op, OpKind, SUCCESSOR, ValueId};
use crate::layout::Flow;
use crate::out::{Out, decimal};
use crate::pin::file_type;
use crate::shape::quote;
use crate::syntax::{Buffer, Sink, walk};

/// The text of a module.
pub fn print_module(kernels: &[Kernel]) -> String {
    let mut out = Out::with_capacity(kernels.iter().map(|k| k.op_count() * 200 + 1000).sum());
    out.push_str("module {\n");
    for kernel in kernels {
        Printer {
            names: names(kernel),
            kernel,
            out: &mut out,
            op: None,
            terminates: None,
        }
        .function();
    }
    out.push_str("}\n");
    out.finish()
}

/// What a value is called.
#[derive(Clone, Copy)]
struct Name {
    text: [u8; 24],
    len: u8,
}

impl Name {
    /// `%number`, or `%number#sub`.
    fn new(number: u32, sub: Option<u32>) -> Name {
        let mut text = [0; 24];
        text[0] = b'%';
        let (digits, mut len) = decimal(number);
        text[1..11].copy_from_slice(&digits);
        len += 1;
        if let Some(sub) = sub {
            text[len] = b'#';
            let (digits, count) = decimal(sub);
            text[len + 1..len + 11].copy_from_slice(&digits);
            len += 1 + count;
        }
        Name { text, len: len as u8 }
    }

    fn constant(file: RegFile) -> Name {
        let mut text = [0; 24];
        let name = constant_name(file);
        text[0] = b'%';
        text[1..1 + name.len()].copy_from_slice(name.as_bytes());
        Name {
            text,
            len: name.len() as u8 + 1,
        }
    }
}

/// The names of all values.
fn names(kernel: &Kernel) -> Vec<Name> {
    let mut names = vec![Name { text: [0; 24], len: 0 }; kernel.pins.len()];
    let mut next = 0;
    let results = kernel.result_count();
    for b in 0..kernel.block_count() {
        for a in kernel.arg_start[b]..kernel.arg_start[b + 1] {
            names[(results + a) as usize] = Name::new(next, None);
            next += 1;
        }
        for op in kernel.block_start[b] as usize..kernel.block_start[b + 1] as usize {
            let (first, end) = (kernel.result_start[op], kernel.result_start[op + 1]);
            if let OpKind::Constant(file) = kernel.kinds[op] {
                names[first as usize] = Name::constant(file);
                continue;
            }
            for v in first..end {
                names[v as usize] = Name::new(next, (end - first > 1).then_some(v - first));
            }
            next += (first != end) as u32;
        }
    }
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
    names: Vec<Name>,
    out: &'o mut Out,
    /// The operation that is being walked.
    op: Option<Op<'k>>,
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
        let predecessors = predecessors(kernel);
        for block in kernel.blocks() {
            let b = block.id();
            if b.0 > 0 {
                self.block_header(b, &predecessors[b.index()]);
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
                let _ = write!(self.out, "{}\"{}\"", if k > 0 { ", " } else { "" }, kernel.pin(arg));
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
            hex_word(self.out, run[0]);
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
                let _ = write!(self.out, "  // pred: ^bb{p}");
            }
            all => {
                let _ = write!(self.out, "  // {} preds: ", all.len());
                for (k, p) in all.iter().enumerate() {
                    self.out.push_str(if k > 0 { ", ^bb" } else { "^bb" });
                    self.out.decimal(*p);
                }
            }
        }
        self.out.push(b'\n');
    }

    fn operation(&mut self, op: Op<'k>) {
        self.out.push_str("    ");
        match op.kind() {
            OpKind::Constant(file) => {
                let _ = write!(self.out, "%{} = {}", constant_name(file), constant_op(file));
            }
            OpKind::LiveIn => {
                self.results(op);
                let pin = op.results().next().map(|v| self.kernel.pin(v));
                if let Some(pin) = pin {
                    self.out.push_str("builtin.unrealized_conversion_cast to ");
                    self.out.push_str(file_type(pin.file()));
                    let _ = write!(self.out, " {{sass.pin = \"{pin}\"}}");
                }
            }
            OpKind::Label => {
                self.out.push_str("sass.label ");
                self.out.decimal(op.label().unwrap_or(0));
            }
            OpKind::Entry => {
                self.out.push_str("sass.entry");
                self.successors();
            }
            OpKind::Fall => {
                self.out.push_str("sass.fall");
                self.successors();
            }
            OpKind::End => self.out.push_str("sass.end"),
            OpKind::Opaque => {
                self.out.push_str("sass.opaque");
                self.successors();
                self.out.push_str(" raw ");
                hex_word(self.out, op.word());
            }
            OpKind::Inst => self.instruction(op),
        }
        self.out.push(b'\n');
    }

    fn instruction(&mut self, op: Op<'k>) {
        let kernel = self.kernel;
        self.results(op);
        let Some(layout) = op.layout() else { return };
        let word = op.word();
        self.op = Some(op);
        let Ok(()) = walk(layout, word, self);
        let types_of_all = op.results();
        if matches!(layout.flow, Flow::Call | Flow::Return) {
            let reads = op.operands().get(layout.own_operands(word)..).unwrap_or(&[]);
            if !reads.is_empty() {
                self.out.push_str(" reads(");
                self.typed_values(reads);
                self.out.push(b')');
            }
            let own = layout.write_count(word);
            for (k, v) in op.results().skip(own).enumerate() {
                let _ = write!(
                    self.out,
                    "{}\"{}\"",
                    if k > 0 { ", " } else { " writes(" },
                    kernel.pin(v)
                );
            }
            if types_of_all.len() > own {
                self.out.push(b')');
            }
        }
        self.successors();
        self.out.push_str(" raw ");
        hex_word(self.out, word);
        let types = &layout.types;
        let mut files = types_of_all.map(|v| kernel.pins[v.index()].file());
        match (files.len(), files.next()) {
            (0, _) if !types.has_operands => {}
            (0, _) => self.out.push_pool(&layout.literals, types.start, types.end_of_none),
            (1, Some(file)) if Some(file) == types.single => {
                self.out
                    .push_pool(&layout.literals, types.start_single, types.end_single);
            }
            (_, first) => {
                self.out.push_pool(&layout.literals, types.start, types.end);
                for (k, file) in first.into_iter().chain(files).enumerate() {
                    self.out.push_str(if k > 0 { ", " } else { "" });
                    self.out.push_str(file_type(file));
                }
                self.out.push(b')');
            }
        }
    }

    /// `%4 = ` or `%4:2 = `.
    fn results(&mut self, op: Op<'k>) {
        let results = op.results();
        let count = results.len();
        if let Some(first) = results.into_iter().next() {
            let name = self.names[first.index()];
            // Without the `#0` of the first of several.
            let len = if count > 1 { name.len - 2 } else { name.len };
            self.out.push_array(&name.text, len as usize);
            if count > 1 {
                self.out.push(b':');
                self.out.decimal(count as u32);
            }
            self.out.push_str(" = ");
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
        for (k, v) in values.iter().enumerate() {
            if k > 0 {
                self.out.push_str(", ");
            }
            self.name(*v);
        }
        for (k, v) in values.iter().enumerate() {
            self.out.push_str(if k > 0 { ", " } else { " : " });
            self.out.push_str(file_type(self.kernel.pin(*v).file()));
        }
    }

    #[inline]
    fn name(&mut self, value: ValueId) {
        let name = &self.names[value.index()];
        self.out.push_array(&name.text, name.len as usize);
    }
}

impl Sink for Printer<'_, '_> {
    type Error = Infallible;

    fn lit(&mut self, text: &str) -> Result<(), Infallible> {
        self.out.push_str(text);
        Ok(())
    }

    #[inline]
    fn pool(&mut self, pool: &[u8], start: usize, end: usize) -> Result<(), Infallible> {
        self.out.push_pool(pool, start, end);
        Ok(())
    }

    fn value(&mut self, operand: usize) -> Result<(), Infallible> {
        if let Some(&value) = self.op.and_then(|op| op.operands().get(operand)) {
            self.name(value);
        }
        Ok(())
    }

    fn label(&mut self, first: bool, offset: &Buffer) -> Result<(), Infallible> {
        let Some(op) = self.op else { return Ok(()) };
        let label = self.kernel.labels[op.id().index()];
        if label == SUCCESSOR {
            return Ok(());
        }
        self.out.push_str(if first { " " } else { ", " });
        if label == NONE {
            self.out.push_str("rel(");
            self.out.push_pool(&offset.bytes, 0, offset.len as usize);
        } else {
            self.out.push_str("label(");
            self.out.decimal(label);
        }
        self.out.push(b')');
        Ok(())
    }
}

/// For every block the blocks that lead to it, ascending, once for each edge.
fn predecessors(kernel: &Kernel) -> Vec<Vec<u32>> {
    let mut all = vec![Vec::new(); kernel.block_count()];
    for block in kernel.blocks() {
        for (to, _) in block.successors() {
            all[to.index()].push(block.id().0);
        }
    }
    all
}

/// `0x` and 32 digits.
fn hex_word(out: &mut Out, word: Word) {
    let mut text = *b"0x00000000000000000000000000000000";
    for (k, byte) in word.0.to_be_bytes().into_iter().enumerate() {
        let [high, low] = HEX_PAIRS[byte as usize];
        text[2 + 2 * k] = high;
        text[3 + 2 * k] = low;
    }
    out.push_array(&text, text.len());
}

/// The two digits of every byte.
static HEX_PAIRS: [[u8; 2]; 256] = {
    let digits = *b"0123456789abcdef";
    let mut pairs = [[0; 2]; 256];
    let mut i = 0;
    while i < 256 {
        pairs[i] = [digits[i >> 4], digits[i & 15]];
        i += 1;
    }
    pairs
};
