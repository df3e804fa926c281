//! Kernels as text (lit/GRAMMAR.md).

use std::convert::Infallible;
use std::io::Write as _;

use isa::{RegFile, Word};

use crate::kernel::{BlockId, Kernel, NONE, Op, OpKind, SUCCESSOR, ValueId};
use crate::layout::Flow;
use crate::pin::file_type;
use crate::shape::quote;
use crate::syntax::{Sink, walk};

/// The text of a module.
pub fn print_module(kernels: &[Kernel]) -> String {
    let mut out = Vec::with_capacity(kernels.iter().map(|k| k.op_count() * 220 + 1000).sum());
    out.push_str("module {\n");
    for kernel in kernels {
        Printer {
            names: Names::new(kernel),
            kernel,
            out: &mut out,
            op: None,
            terminates: None,
        }
        .function();
    }
    out.push_str("}\n");
    // Everything written is ASCII.
    String::from_utf8(out).unwrap_or_default()
}

/// Text into bytes.
trait PushStr {
    fn push_str(&mut self, text: &str);
}

impl PushStr for Vec<u8> {
    #[inline]
    fn push_str(&mut self, text: &str) {
        self.extend_from_slice(text.as_bytes());
    }
}

/// What each value is called.
struct Names {
    /// By value: the number behind `%`, and the position in its group plus one, 0 if it is alone.
    names: Vec<(u32, u32)>,
}

impl Names {
    fn new(kernel: &Kernel) -> Names {
        let mut names = vec![(0, 0); kernel.pins.len()];
        let mut next = 0;
        let results = kernel.result_count();
        for b in 0..kernel.block_count() {
            for a in kernel.arg_start[b]..kernel.arg_start[b + 1] {
                names[(results + a) as usize] = (next, 0);
                next += 1;
            }
            for op in kernel.block_start[b] as usize..kernel.block_start[b + 1] as usize {
                let (first, end) = (kernel.result_start[op], kernel.result_start[op + 1]);
                if first == end || matches!(kernel.kinds[op], OpKind::Constant(_)) {
                    continue;
                }
                let alone = end - first == 1;
                for v in first..end {
                    names[v as usize] = (next, if alone { 0 } else { v - first + 1 });
                }
                next += 1;
            }
        }
        Names { names }
    }
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
    names: Names,
    out: &'o mut Vec<u8>,
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
        decimal(self.out, b.0);
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
                    decimal(self.out, *p);
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
                decimal(self.out, op.label().unwrap_or(0));
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
        if layout.has_operand_types || types_of_all.len() > 0 {
            self.out.push_str(&layout.type_prefix);
            for (k, v) in types_of_all.enumerate() {
                if k > 0 {
                    self.out.push_str(", ");
                }
                self.out.push_str(file_type(kernel.pin(v).file()));
            }
            self.out.push(b')');
        }
    }

    /// `%4 = ` or `%4:2 = `.
    fn results(&mut self, op: Op<'k>) {
        let results = op.results();
        let count = results.len();
        if let Some(first) = results.into_iter().next() {
            self.out.push(b'%');
            decimal(self.out, self.names.names[first.index()].0);
            if count > 1 {
                self.out.push(b':');
                decimal(self.out, count as u32);
            }
            self.out.push_str(" = ");
        }
    }

    /// ` ^bb2(%61 : !sass.reg), ^bb3`, if the operation ends its block and goes anywhere.
    fn successors(&mut self) {
        let Some(block) = self.terminates else { return };
        for (k, (to, args)) in self.kernel.block(block).successors().enumerate() {
            self.out.push_str(if k > 0 { ", ^bb" } else { " ^bb" });
            decimal(self.out, to.0);
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

    fn name(&mut self, value: ValueId) {
        self.out.push(b'%');
        let pin = self.kernel.pins[value.index()];
        if pin.is_zero() {
            self.out.push_str(constant_name(pin.file()));
            return;
        }
        let (number, sub) = self.names.names[value.index()];
        decimal(self.out, number);
        if sub > 0 {
            self.out.push(b'#');
            decimal(self.out, sub - 1);
        }
    }
}

impl Sink for Printer<'_, '_> {
    type Error = Infallible;

    fn lit(&mut self, text: &str) -> Result<(), Infallible> {
        self.out.push_str(text);
        Ok(())
    }

    fn value(&mut self, operand: usize) -> Result<(), Infallible> {
        if let Some(&value) = self.op.and_then(|op| op.operands().get(operand)) {
            self.name(value);
        }
        Ok(())
    }

    fn label(&mut self, first: bool, offset: &str) -> Result<(), Infallible> {
        let Some(op) = self.op else { return Ok(()) };
        let label = self.kernel.labels[op.id().index()];
        if label == SUCCESSOR {
            return Ok(());
        }
        self.out.push_str(if first { " " } else { ", " });
        if label == NONE {
            self.out.push_str("rel(");
            self.out.push_str(offset);
        } else {
            self.out.push_str("label(");
            decimal(self.out, label);
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
pub(crate) fn hex_word(out: &mut Vec<u8>, word: Word) {
    let mut text = *b"0x00000000000000000000000000000000";
    for (k, byte) in word.0.to_be_bytes().into_iter().enumerate() {
        text[2 + 2 * k] = b"0123456789abcdef"[byte as usize >> 4];
        text[3 + 2 * k] = b"0123456789abcdef"[byte as usize & 15];
    }
    out.extend_from_slice(&text);
}

/// A decimal number.
pub(crate) fn decimal(out: &mut Vec<u8>, value: u32) {
    let mut buffer = [0u8; 10];
    let mut at = buffer.len();
    let mut rest = value;
    loop {
        at -= 1;
        buffer[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&buffer[at..]);
}
