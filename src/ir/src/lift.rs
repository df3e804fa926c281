//! From code to a kernel: blocks, then SSA.

use isa::{Isa, RegFile, Word};

use crate::calls::Summaries;
use crate::cfg::{Cfg, Decoded, Leave};
use crate::graph::Graph;
use crate::kernel::{Edge, Kernel, NONE, OpKind, ValueId};
use crate::layouts::Layouts;
use crate::pin::{FILES, Pin};
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
    let words: Vec<Word> = Word::all(source.code).collect();
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
    kernel.layouts = layouts.into_list();
    Ok(kernel)
}

fn tangled(source: &Source<'_>, cfg: &Cfg, registers: usize) -> LiftError {
    LiftError::Tangled {
        kernel: source.name.clone(),
        blocks: cfg.len(),
        registers,
    }
}

/// The registers of every instruction, before they have values. Blocks are numbered as in the kernel: 0 is the prologue. Registers are
/// numbered densely in the order of live-ins, and behind them the constant registers.
struct Body {
    /// By instruction, one more entry: operands in `reads`, without what calls and returns read.
    read_start: Vec<u32>,
    reads: Vec<u16>,
    write_start: Vec<u32>,
    writes: Vec<u16>,
    /// By number.
    registers: Vec<Pin>,
    /// The file of each constant register that is read, by its number less that of the first.
    constants: Vec<RegFile>,
    accesses: Accesses,
    summaries: Summaries,
}

impl Body {
    fn new(code: &Decoded<'_>, cfg: &Cfg) -> Option<Body> {
        let n = cfg.code_end();
        let (mut read_start, mut write_start) = (Vec::with_capacity(n + 1), Vec::with_capacity(n + 1));
        let (mut reads, mut writes) = (Vec::with_capacity(n * 5), Vec::with_capacity(n * 2));
        for i in 0..n {
            read_start.push(reads.len() as u32);
            write_start.push(writes.len() as u32);
            if let Some(layout) = code.layout_of(i) {
                let word = code.words[i];
                reads.extend(layout.read_pins(word));
                layout.each_merge(word, |pin| reads.push(pin));
                layout.each_write(word, |pin| writes.push(pin));
            }
        }
        read_start.push(reads.len() as u32);
        write_start.push(writes.len() as u32);
        let (registers, constants, number) = number(reads.iter().chain(&writes));
        let number = |pins: Vec<Pin>| pins.iter().map(|p| number[p.to_bits() as usize]).collect();
        let mut body = Body {
            read_start,
            reads: number(reads),
            write_start,
            writes: number(writes),
            registers,
            constants,
            accesses: Accesses::new(0, 0),
            summaries: Summaries::default(),
        };
        if (cfg.len() + 1).saturating_mul(body.registers.len()) > MAX_SET_BITS {
            return None;
        }
        body.accesses = body.accesses(cfg);
        let registers = body.registers.len();
        body.summaries = Summaries::new(code, cfg, &body.accesses, registers, &|i, access| {
            let reads = body.reads_of(i).iter().map(|r| *r as usize);
            reads.filter(|r| *r < registers).for_each(|r| access(r, false));
            body.writes_of(i).iter().for_each(|r| access(*r as usize, true));
        });
        if !body.summaries.is_empty() {
            // Again, with what calls and returns read and write.
            body.accesses = body.accesses(cfg);
        }
        Some(body)
    }

    fn accesses(&self, cfg: &Cfg) -> Accesses {
        let registers = self.registers.len();
        let mut accesses = Accesses::new(cfg.len() + 1, registers + self.constants.len());
        for b in 0..cfg.len() {
            let mut block = accesses.block(b + 1);
            for i in cfg.start[b]..cfg.start[b + 1] {
                self.reads_of(i as usize).iter().for_each(|r| block.read(*r as usize));
                self.summaries.reads(i).for_each(|r| block.read(r));
                self.writes_of(i as usize).iter().for_each(|r| block.write(*r as usize));
                self.summaries.writes(i).for_each(|r| block.write(r));
            }
            // Constants were counted along, which is quicker than to ask.
            (registers..registers + self.constants.len()).for_each(|c| block.forget(c));
        }
        accesses
    }

    fn reads_of(&self, i: usize) -> &[u16] {
        &self.reads[self.read_start[i] as usize..self.read_start[i + 1] as usize]
    }

    fn writes_of(&self, i: usize) -> &[u16] {
        &self.writes[self.write_start[i] as usize..self.write_start[i + 1] as usize]
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

/// Numbers registers: those that occur, the constant registers that occur, and the number of each by [`Pin::to_bits`].
fn number<'a>(pins: impl Iterator<Item = &'a Pin>) -> (Vec<Pin>, Vec<RegFile>, Vec<u16>) {
    let mut numbers = vec![u16::MAX; Pin::END];
    pins.for_each(|p| numbers[p.to_bits() as usize] = 0);
    let (mut registers, mut constants) = (Vec::new(), Vec::new());
    for pin in (0..Pin::COUNT).map(Pin::from_index) {
        if numbers[pin.to_bits() as usize] == 0 {
            numbers[pin.to_bits() as usize] = registers.len() as u16;
            registers.push(pin);
        }
    }
    for file in FILES {
        let number = &mut numbers[Pin::zero(file).to_bits() as usize];
        if *number == 0 {
            *number = (registers.len() + constants.len()) as u16;
            constants.push(file);
        }
    }
    (registers, constants, numbers)
}

/// Renaming state: the value in each register, and what to restore on the way up the dominator tree.
struct Names {
    current: Vec<ValueId>,
    undo: Vec<(u16, ValueId)>,
    marks: Vec<usize>,
}

impl Names {
    fn set(&mut self, register: usize, value: ValueId) {
        self.undo.push((register as u16, self.current[register]));
        self.current[register] = value;
    }
}

fn build(kernel: &mut Kernel, code: &Decoded<'_>, cfg: &Cfg, body: &Body, placement: &Placement, graph: &Graph<'_>) {
    let unset = ValueId(NONE);
    let registers = body.registers.len();
    let mut names = Names {
        current: vec![unset; registers + body.constants.len()],
        undo: Vec::new(),
        marks: Vec::new(),
    };
    kernel.reserve(cfg.code_end() + registers + cfg.len(), body.writes.len() + registers);
    // The prologue: constants, then a live-in for every register that is read before it is written.
    for (k, file) in body.constants.iter().enumerate() {
        names.current[registers + k] = ValueId(kernel.pins.len() as u32);
        kernel.pins.push(Pin::zero(*file));
        kernel.finish_op(OpKind::Constant(*file), Word(0), NONE, NONE);
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
            let written = body.writes_of(at).iter();
            kernel.pins.extend(written.map(|r| body.registers[*r as usize]));
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
                    let operands = kernel.operand_start[op] as usize..kernel.operand_start[op + 1] as usize;
                    let reads = body.reads_of(i as usize);
                    let (own, implied) = kernel.operands[operands].split_at_mut(reads.len());
                    for (operand, register) in own.iter_mut().zip(reads) {
                        *operand = names.current[*register as usize];
                    }
                    for (operand, register) in implied.iter_mut().zip(body.summaries.reads(i)) {
                        *operand = names.current[register];
                    }
                    let mut result = kernel.result_start[op];
                    for register in body.writes_of(i as usize) {
                        names.set(*register as usize, ValueId(result));
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
