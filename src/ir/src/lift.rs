//! From code to a kernel: blocks, then SSA.

use isa::{Isa, RegFile, Word};

use crate::addressed;
use crate::calls::Summaries;
use crate::cfg::{Cfg, Decoded, Leave};
use crate::graph::Graph;
use crate::kernel::{BlockId, Edge, Kernel, NONE, OpKind, Room, ValueId};
use crate::layouts::Layouts;
use crate::pin::{FILES, Pin};
use crate::source::Source;
use crate::ssa::{Accesses, Placement, members, place};

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
    if !source.code.len().is_multiple_of(16) || source.code.len() > u32::MAX as usize {
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
    let body = Body::new(source, &code, &cfg).ok_or_else(|| tangled(source, &cfg, 0))?;
    let (succ_start, succs) = body.graph(&cfg);
    let graph = Graph {
        start: &succ_start,
        succs: &succs,
    };
    let placement = place(&graph, &body.accesses).ok_or_else(|| tangled(source, &cfg, body.registers.len()))?;
    let room = body.room(&cfg, &placement, &graph);
    let mut kernel = Kernel::with_room(source.name.clone(), source.target, room);
    kernel.tail = words[cfg.code_end()..].to_vec();
    kernel.notes = cfg.notes.clone();
    // The prologue comes before them.
    let by_name = addressed::called_by_name(source, &code, &cfg);
    kernel.called_by_name = by_name.into_iter().map(|b| BlockId(b + 1)).collect();
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
    /// By instruction, one more entry: operands in `reads`.
    read_start: Vec<u32>,
    reads: Vec<u16>,
    write_start: Vec<u32>,
    writes: Vec<u16>,
    /// By number.
    registers: Vec<Pin>,
    /// The file of each constant register that is read, by its number less that of the first.
    constants: Vec<RegFile>,
    accesses: Accesses,
}

impl Body {
    fn new(source: &Source<'_>, code: &Decoded<'_>, cfg: &Cfg) -> Option<Body> {
        let n = cfg.code_end();
        let mut body = Body {
            read_start: Vec::with_capacity(n + 1),
            reads: Vec::with_capacity(n * 5),
            write_start: Vec::with_capacity(n + 1),
            writes: Vec::with_capacity(n * 2),
            registers: Vec::with_capacity(64),
            constants: Vec::new(),
            accesses: Accesses::new(0, 0),
        };
        // First as bits of pins, then as numbers.
        for i in 0..n {
            body.read_start.push(body.reads.len() as u32);
            body.write_start.push(body.writes.len() as u32);
            if let Some(layout) = code.layout_of(i) {
                let word = code.words[i];
                body.reads.extend(layout.read_pins(word).map(Pin::to_bits));
                layout.each_merge(word, |pin| body.reads.push(pin.to_bits()));
                layout.each_write(word, |pin| body.writes.push(pin.to_bits()));
            }
            let held = source.held.iter().filter(|(offset, _)| *offset == i as u64 * 16);
            body.reads.extend(held.map(|(_, pin)| pin.to_bits()));
        }
        body.read_start.push(body.reads.len() as u32);
        body.write_start.push(body.writes.len() as u32);
        body.number();
        let registers = body.registers.len();
        if (cfg.len() + 1).saturating_mul(registers) > MAX_SET_BITS {
            return None;
        }
        body.accesses = body.accesses(cfg);
        let summaries = Summaries::new(code, cfg, &body.accesses, registers, &|i, access| {
            let reads = body.reads_of(i).iter().map(|r| *r as usize);
            reads.filter(|r| *r < registers).for_each(|r| access(r, false));
            body.writes_of(i).iter().for_each(|r| access(*r as usize, true));
        });
        body.extend(&summaries, cfg);
        Some(body)
    }

    /// Numbers the registers that occur, then the constant registers that occur.
    fn number(&mut self) {
        let mut occurs = [0u8; Pin::END];
        let mut mark = |bits: &u16| occurs[usize::from(*bits)] = 1;
        self.reads.iter().for_each(&mut mark);
        self.writes.iter().for_each(&mut mark);
        let mut numbers = [0u16; Pin::END];
        for (n, some) in occurs[..Pin::COUNT].chunks_exact(8).enumerate() {
            // Most registers do not occur.
            if *some == [0; 8] {
                continue;
            }
            for index in (8 * n..8 * n + 8).filter(|index| occurs[*index] != 0) {
                let pin = Pin::from_index(index);
                numbers[usize::from(pin.to_bits())] = self.registers.len() as u16;
                self.registers.push(pin);
            }
        }
        for file in FILES {
            let bits = usize::from(Pin::zero(file).to_bits());
            if occurs[bits] != 0 {
                numbers[bits] = (self.registers.len() + self.constants.len()) as u16;
                self.constants.push(file);
            }
        }
        for register in self.reads.iter_mut().chain(&mut self.writes) {
            *register = numbers[usize::from(*register)];
        }
    }

    /// Adds what calls and returns read and write without naming it.
    fn extend(&mut self, summaries: &Summaries, cfg: &Cfg) {
        if summaries.list.is_empty() {
            return;
        }
        self.reads = extended(&mut self.read_start, &self.reads, summaries.reads());
        self.writes = extended(&mut self.write_start, &self.writes, summaries.writes());
        let mut accesses = std::mem::replace(&mut self.accesses, Accesses::new(0, 0));
        let mut last = None;
        for summary in &summaries.list {
            let block = cfg.start.partition_point(|s| *s <= summary.instruction) - 1;
            if last.replace(block) != Some(block) {
                self.access(cfg, block, &mut accesses);
            }
        }
        self.accesses = accesses;
    }

    fn accesses(&self, cfg: &Cfg) -> Accesses {
        let mut accesses = Accesses::new(cfg.len() + 1, self.registers.len() + self.constants.len());
        (0..cfg.len()).for_each(|b| self.access(cfg, b, &mut accesses));
        accesses
    }

    /// What a block reads and writes, into `accesses`.
    fn access(&self, cfg: &Cfg, b: usize, accesses: &mut Accesses) {
        let registers = self.registers.len();
        let mut block = accesses.block(b + 1);
        block.clear();
        for i in cfg.start[b]..cfg.start[b + 1] {
            self.reads_of(i as usize).iter().for_each(|r| block.read(*r as usize));
            self.writes_of(i as usize).iter().for_each(|r| block.write(*r as usize));
        }
        // Constants were counted along, which is quicker than to ask.
        (registers..registers + self.constants.len()).for_each(|c| block.forget(c));
    }

    fn reads_of(&self, i: usize) -> &[u16] {
        &self.reads[self.read_start[i] as usize..self.read_start[i + 1] as usize]
    }

    fn writes_of(&self, i: usize) -> &[u16] {
        &self.writes[self.write_start[i] as usize..self.write_start[i + 1] as usize]
    }

    /// The flow graph with the prologue as block 0.
    fn graph(&self, cfg: &Cfg) -> (Vec<u32>, Vec<u32>) {
        let mut start = Vec::with_capacity(cfg.len() + 2);
        let mut succs = Vec::with_capacity(cfg.roots.len() + cfg.succs.len());
        start.push(0);
        succs.extend(cfg.roots.iter().map(|r| r + 1));
        start.push(succs.len() as u32);
        for b in 0..cfg.len() {
            succs.extend(cfg.successors(b).iter().map(|s| s + 1));
            start.push(succs.len() as u32);
        }
        (start, succs)
    }

    /// What the kernel takes; the operands are made in one go.
    fn room(&self, cfg: &Cfg, placement: &Placement, graph: &Graph<'_>) -> Room {
        let prologue = self.registers.len() + self.constants.len();
        Room {
            ops: cfg.code_end() + prologue + cfg.labels.len() + graph.len(),
            operands: 0,
            values: self.writes.len() + prologue + placement.argument_count(),
            blocks: graph.len(),
            edges: graph.succs.len(),
        }
    }
}

/// The registers of all instructions, with more behind those of some, which are told in ascending order. `start` follows.
fn extended<'s>(start: &mut [u32], list: &[u16], more: impl Iterator<Item = (u32, &'s [u64])> + Clone) -> Vec<u16> {
    let added: u32 = more.clone().flat_map(|(_, set)| set).map(|w| w.count_ones()).sum();
    let mut longer = Vec::with_capacity(list.len() + added as usize);
    let (mut copied, mut next) = (0, 0);
    for (i, set) in more {
        let i = i as usize;
        let end = start[i + 1] as usize;
        let shift = (longer.len() - copied) as u32;
        start[next..=i].iter_mut().for_each(|s| *s += shift);
        longer.extend_from_slice(&list[copied..end]);
        longer.extend(members(set).map(|r| r as u16));
        (copied, next) = (end, i + 1);
    }
    let shift = (longer.len() - copied) as u32;
    start[next..].iter_mut().for_each(|s| *s += shift);
    longer.extend_from_slice(&list[copied..]);
    longer
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
        undo: Vec::with_capacity(body.writes.len()),
        marks: Vec::with_capacity(32),
    };
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
    // From here on only instructions have operands and results, so theirs are numbered as in `body`.
    let first_result = kernel.result_count();
    kernel.operands = vec![unset; body.reads.len()];
    let written = body.writes.iter();
    kernel.pins.extend(written.map(|r| body.registers[usize::from(*r)]));
    operations(kernel, code, cfg, body, first_result);

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

    // Renaming, down the dominator tree.
    placement.walk(
        &mut (kernel, &mut names),
        |(kernel, names), b| {
            names.marks.push(names.undo.len());
            for (k, register) in placement.arguments_of(b).enumerate() {
                names.set(register, ValueId(results + kernel.arg_start[b] + k as u32));
            }
            let instructions = if b > 0 { cfg.start[b - 1]..cfg.start[b] } else { 0..0 };
            for i in instructions.start as usize..instructions.end as usize {
                let operands = &mut kernel.operands[body.read_start[i] as usize..body.read_start[i + 1] as usize];
                for (operand, register) in operands.iter_mut().zip(body.reads_of(i)) {
                    *operand = names.current[usize::from(*register)];
                }
                let first = first_result + body.write_start[i];
                for (value, register) in (first..).zip(body.writes_of(i)) {
                    names.set(usize::from(*register), ValueId(value));
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

/// All operations behind the prologue, in text order.
fn operations(kernel: &mut Kernel, code: &Decoded<'_>, cfg: &Cfg, body: &Body, first_result: u32) {
    let mut labels = cfg.labels.iter().enumerate().peekable();
    let mut label_uses = cfg.label_uses.iter().peekable();
    let pseudo = |kernel: &mut Kernel, kind, label, at: u32| {
        kernel.kinds.push(kind);
        kernel.words.push(Word(0));
        kernel.op_layout.push(NONE);
        kernel.labels.push(label);
        kernel.operand_start.push(body.read_start[at as usize]);
        kernel.result_start.push(first_result + body.write_start[at as usize]);
    };
    for b in 0..cfg.len() {
        let (start, end) = (cfg.start[b], cfg.start[b + 1]);
        while let Some((label, _)) = labels.next_if(|(_, at)| **at == b as u32) {
            pseudo(kernel, OpKind::Label, label as u32, start);
        }
        let at = kernel.kinds.len();
        let range = start as usize..end as usize;
        let kind = |layout: &u32| match *layout {
            NONE => OpKind::Opaque,
            _ => OpKind::Inst,
        };
        kernel.kinds.extend(code.layout[range.clone()].iter().map(kind));
        kernel.words.extend_from_slice(&code.words[range.clone()]);
        kernel.op_layout.extend_from_slice(&code.layout[range.clone()]);
        kernel.labels.resize(at + range.len(), NONE);
        let ends = range.start + 1..range.end + 1;
        kernel.operand_start.extend_from_slice(&body.read_start[ends.clone()]);
        let results = body.write_start[ends].iter();
        kernel.result_start.extend(results.map(|end| first_result + end));
        while let Some((i, label)) = label_uses.next_if(|(i, _)| *i < end) {
            kernel.labels[at + (i - start) as usize] = *label;
        }
        match cfg.leave[b] {
            Leave::Terminator => {}
            Leave::Fall => pseudo(kernel, OpKind::Fall, NONE, end),
            Leave::End => pseudo(kernel, OpKind::End, NONE, end),
        }
        kernel.block_start.push(kernel.kinds.len() as u32);
    }
}
