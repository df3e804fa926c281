//! From code to a kernel: blocks, then SSA.

use isa::{Isa, Word};

use crate::calls::Summaries;
use crate::cfg::{Cfg, Decoded, Leave};
use crate::graph::Graph;
use crate::kernel::{Edge, Kernel, NONE, OpKind, ValueId};
use crate::layout::Layouts;
use crate::pin::{FILES, Pin, file_index};
use crate::source::Source;
use crate::ssa::{Accesses, Placement, place};

/// Why a section cannot be lifted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LiftError {
    /// Not a whole number of instructions.
    #[error(
        "{kernel}: {size} bytes of code are no whole number of 16-byte instructions; the section is cut short or is no SASS of sm_70 or newer"
    )]
    Size {
        /// Section name.
        kernel: String,
        /// Bytes.
        size: usize,
    },
    /// The tables of another target were passed.
    #[error("{kernel}: the code is for {target}, and the tables that were passed are for another target")]
    Target {
        /// Section name.
        kernel: String,
        /// The code's target.
        target: isa::Target,
    },
    /// The control flow is too large or too tangled to put into SSA form in bounded time and memory.
    #[error(
        "{kernel}: {blocks} blocks with {registers} registers are too tangled for SSA form; the section is probably no code"
    )]
    Tangled {
        /// Section name.
        kernel: String,
        /// Basic blocks.
        blocks: usize,
        /// Registers in use.
        registers: usize,
    },
}

/// Limit on blocks times registers: 32 MiB of bit sets.
const MAX_SET_BITS: usize = 1 << 28;

/// Lifts one section of code. Every input lifts or gives an error.
pub fn lift(isa: &'static Isa, source: &Source<'_>) -> Result<Kernel, LiftError> {
    if source.code.len() % 16 != 0 || source.code.len() > u32::MAX as usize {
        return Err(LiftError::Size {
            kernel: source.name.clone(),
            size: source.code.len(),
        });
    }
    let words: Vec<Word> = source
        .code
        .chunks_exact(16)
        .map(|c| {
            let mut bytes = [0; 16];
            bytes.copy_from_slice(c);
            Word::from_le_bytes(bytes)
        })
        .collect();
    let mut layouts = Layouts::new(isa, source.target);
    let layout: Vec<u32> = words.iter().map(|w| layouts.get(*w)).collect();
    let code = Decoded {
        isa,
        words: &words,
        layout: &layout,
        layouts: &layouts.list,
    };
    let cfg = Cfg::new(source, &code);
    let body = Body::new(&code, &cfg).ok_or_else(|| tangled(source, &cfg, 0))?;
    let (succ_start, succs) = body.graph(&cfg);
    let graph = Graph {
        start: &succ_start,
        succs: &succs,
    };
    let placement = place(&graph, &body.accesses).ok_or_else(|| tangled(source, &cfg, body.registers.len()))?;
    let mut kernel = Kernel::empty(source.name.clone(), source.target);
    kernel.tail = words[cfg.code_end()..].to_vec();
    kernel.notes = cfg.notes.clone();
    build(&mut kernel, &code, &cfg, &body, &placement, &graph);
    kernel.layouts = layouts.list;
    Ok(kernel)
}

fn tangled(source: &Source<'_>, cfg: &Cfg, registers: usize) -> LiftError {
    LiftError::Tangled {
        kernel: source.name.clone(),
        blocks: cfg.len(),
        registers,
    }
}

/// The registers of every instruction, before they have values. Blocks are numbered as in the kernel: 0 is the prologue.
struct Body {
    /// By instruction, one more entry: operands in `reads`, without what calls and returns read.
    read_start: Vec<u32>,
    reads: Vec<Pin>,
    write_start: Vec<u32>,
    writes: Vec<Pin>,
    /// Dense register numbers: from pin index, and back.
    dense: Vec<u16>,
    registers: Vec<Pin>,
    /// Files whose constant register is read.
    constants: [bool; 5],
    accesses: Accesses,
    summaries: Summaries,
}

impl Body {
    fn new(code: &Decoded<'_>, cfg: &Cfg) -> Option<Body> {
        let n = cfg.code_end();
        let mut body = Body {
            read_start: Vec::with_capacity(n + 1),
            reads: Vec::with_capacity(n * 4),
            write_start: Vec::with_capacity(n + 1),
            writes: Vec::with_capacity(n * 2),
            dense: vec![u16::MAX; Pin::COUNT],
            registers: Vec::new(),
            constants: [false; 5],
            accesses: Accesses::new(0, 0),
            summaries: Summaries::default(),
        };
        for i in 0..n {
            body.read_start.push(body.reads.len() as u32);
            body.write_start.push(body.writes.len() as u32);
            if let Some(layout) = code.layout_of(i) {
                let word = code.words[i];
                layout.each_read(word, |pin| body.reads.push(pin));
                layout.each_merge(word, |pin| body.reads.push(pin));
                layout.each_write(word, |pin| body.writes.push(pin));
            }
        }
        body.read_start.push(body.reads.len() as u32);
        body.write_start.push(body.writes.len() as u32);
        for pin in body.reads.iter().chain(&body.writes) {
            if pin.is_zero() {
                body.constants[file_index(pin.file())] = true;
            } else {
                body.dense[pin.index()] = 0;
            }
        }
        for index in 0..Pin::COUNT {
            if body.dense[index] == 0 {
                body.dense[index] = body.registers.len() as u16;
                body.registers.push(Pin::from_index(index));
            }
        }
        let blocks = cfg.len() + 1;
        if blocks.saturating_mul(body.registers.len()) > MAX_SET_BITS {
            return None;
        }
        let mut accesses = Accesses::new(blocks, body.registers.len());
        for b in 0..cfg.len() {
            for i in cfg.start[b] as usize..cfg.start[b + 1] as usize {
                body.reads_of(i)
                    .iter()
                    .filter(|p| !p.is_zero())
                    .for_each(|p| accesses.read(b + 1, body.dense_of(*p)));
                body.writes_of(i)
                    .iter()
                    .for_each(|p| accesses.write(b + 1, body.dense_of(*p)));
            }
        }
        body.summaries = Summaries::new(code, cfg, &accesses, body.registers.len(), &|i, access| {
            let reads = body.reads_of(i).iter().filter(|p| !p.is_zero());
            reads.for_each(|p| access(body.dense_of(*p), false));
            body.writes_of(i).iter().for_each(|p| access(body.dense_of(*p), true));
        });
        if !body.summaries.is_empty() {
            // Again, with what calls and returns read and write.
            let mut with_calls = Accesses::new(blocks, body.registers.len());
            for b in 0..cfg.len() {
                for i in cfg.start[b]..cfg.start[b + 1] {
                    let reads = body.reads_of(i as usize).iter().filter(|p| !p.is_zero());
                    reads.for_each(|p| with_calls.read(b + 1, body.dense_of(*p)));
                    body.summaries.reads(i).for_each(|r| with_calls.read(b + 1, r));
                    body.writes_of(i as usize)
                        .iter()
                        .for_each(|p| with_calls.write(b + 1, body.dense_of(*p)));
                    body.summaries.writes(i).for_each(|r| with_calls.write(b + 1, r));
                }
            }
            accesses = with_calls;
        }
        body.accesses = accesses;
        Some(body)
    }

    fn reads_of(&self, i: usize) -> &[Pin] {
        &self.reads[self.read_start[i] as usize..self.read_start[i + 1] as usize]
    }

    fn writes_of(&self, i: usize) -> &[Pin] {
        &self.writes[self.write_start[i] as usize..self.write_start[i + 1] as usize]
    }

    fn dense_of(&self, pin: Pin) -> usize {
        self.dense[pin.index()] as usize
    }

    /// The flow graph with the prologue as block 0.
    fn graph(&self, cfg: &Cfg) -> (Vec<u32>, Vec<u32>) {
        let mut start = vec![0];
        let mut succs: Vec<u32> = cfg.roots.iter().map(|r| r + 1).collect();
        start.push(succs.len() as u32);
        for b in 0..cfg.len() {
            succs.extend(cfg.successors(b).iter().map(|s| s + 1));
            start.push(succs.len() as u32);
        }
        (start, succs)
    }
}

/// Renaming state: the value in each register, and what to restore on the way up the dominator tree.
struct Names {
    current: Vec<ValueId>,
    undo: Vec<(u16, ValueId)>,
    marks: Vec<usize>,
    constants: [ValueId; 5],
}

impl Names {
    fn set(&mut self, register: usize, value: ValueId) {
        self.undo.push((register as u16, self.current[register]));
        self.current[register] = value;
    }
}

fn build(kernel: &mut Kernel, code: &Decoded<'_>, cfg: &Cfg, body: &Body, placement: &Placement, graph: &Graph<'_>) {
    let unset = ValueId(NONE);
    let mut names = Names {
        current: vec![unset; body.registers.len()],
        undo: Vec::new(),
        marks: Vec::new(),
        constants: [unset; 5],
    };
    // The prologue: constants, then a live-in for every register that is read before it is written.
    for file in FILES {
        if body.constants[file_index(file)] {
            names.constants[file_index(file)] = ValueId(kernel.pins.len() as u32);
            kernel.pins.push(Pin::zero(file));
            kernel.finish_op(OpKind::Constant(file), Word(0), NONE, NONE);
        }
    }
    for register in placement.live_in_of(0) {
        names.current[register] = ValueId(kernel.pins.len() as u32);
        kernel.pins.push(body.registers[register]);
        kernel.finish_op(OpKind::LiveIn, Word(0), NONE, NONE);
    }
    kernel.finish_op(OpKind::Entry, Word(0), NONE, NONE);
    kernel.block_start.push(kernel.kinds.len() as u32);

    // All operations in text order; the operands are filled in below.
    let n = cfg.code_end();
    let mut instruction_op = vec![0u32; n];
    let mut labels = cfg.labels.iter().enumerate().peekable();
    let mut label_uses = cfg.label_uses.iter().peekable();
    let mut operand_count = 0u32;
    for b in 0..cfg.len() {
        while let Some((label, _)) = labels.next_if(|(_, at)| **at == b as u32) {
            kernel.finish_op(OpKind::Label, Word(0), NONE, label as u32);
            set_last(&mut kernel.operand_start, operand_count);
        }
        for i in cfg.start[b]..cfg.start[b + 1] {
            let at = i as usize;
            instruction_op[at] = kernel.kinds.len() as u32;
            kernel.pins.extend(body.writes_of(at));
            kernel.pins.extend(body.summaries.writes(i).map(|r| body.registers[r]));
            let label = label_uses.next_if(|(j, _)| *j == i).map_or(NONE, |(_, l)| *l);
            let kind = if code.layout[at] == NONE {
                OpKind::Opaque
            } else {
                OpKind::Inst
            };
            kernel.finish_op(kind, code.words[at], code.layout[at], label);
            operand_count += body.reads_of(at).len() as u32 + body.summaries.read_count(i);
            set_last(&mut kernel.operand_start, operand_count);
        }
        let pseudo = match cfg.leave[b] {
            Leave::Terminator => None,
            Leave::Fall => Some(OpKind::Fall),
            Leave::End => Some(OpKind::End),
        };
        if let Some(kind) = pseudo {
            kernel.finish_op(kind, Word(0), NONE, NONE);
            set_last(&mut kernel.operand_start, operand_count);
        }
        kernel.block_start.push(kernel.kinds.len() as u32);
    }

    // Block arguments and edges.
    let results = kernel.result_count();
    for b in 0..graph.len() {
        kernel.pins.extend(placement.arguments_of(b).map(|r| body.registers[r]));
        kernel.arg_start.push(kernel.pins.len() as u32 - results);
    }
    let mut edge_args = 0u32;
    for b in 0..graph.len() {
        for &to in graph.successors(b) {
            kernel.edges.push(Edge {
                to: crate::kernel::BlockId(to),
                args: edge_args,
            });
            edge_args += kernel.arg_start[to as usize + 1] - kernel.arg_start[to as usize];
        }
        kernel.edge_start.push(kernel.edges.len() as u32);
    }
    kernel.edge_args = vec![unset; edge_args as usize];
    kernel.operands = vec![unset; operand_count as usize];

    // Renaming, down the dominator tree.
    placement.walk(
        &mut (kernel, &mut names),
        |(kernel, names), b| {
            names.marks.push(names.undo.len());
            for (k, register) in placement.arguments_of(b).enumerate() {
                names.set(register, ValueId(results + kernel.arg_start[b] + k as u32));
            }
            if b > 0 {
                for i in cfg.start[b - 1]..cfg.start[b] {
                    let op = instruction_op[i as usize] as usize;
                    let mut at = kernel.operand_start[op] as usize;
                    let mut operand = |value| {
                        kernel.operands[at] = value;
                        at += 1;
                    };
                    for &pin in body.reads_of(i as usize) {
                        operand(match pin.is_zero() {
                            true => names.constants[file_index(pin.file())],
                            false => names.current[body.dense_of(pin)],
                        });
                    }
                    body.summaries.reads(i).for_each(|r| operand(names.current[r]));
                    let mut result = kernel.result_start[op];
                    for &pin in body.writes_of(i as usize) {
                        names.set(body.dense_of(pin), ValueId(result));
                        result += 1;
                    }
                    for register in body.summaries.writes(i) {
                        names.set(register, ValueId(result));
                        result += 1;
                    }
                }
            }
            for e in kernel.edge_start[b]..kernel.edge_start[b + 1] {
                let edge = kernel.edges[e as usize];
                for (k, register) in placement.arguments_of(edge.to.index()).enumerate() {
                    kernel.edge_args[edge.args as usize + k] = names.current[register];
                }
            }
        },
        |(_, names), _| {
            let mark = names.marks.pop().unwrap_or(0);
            for (register, value) in names.undo.drain(mark..).rev() {
                names.current[register as usize] = value;
            }
        },
    );
}

fn set_last(starts: &mut [u32], value: u32) {
    if let Some(last) = starts.last_mut() {
        *last = value;
    }
}
