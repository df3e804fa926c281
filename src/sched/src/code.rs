//! A kernel as the hazard rules see it: control words, registers touched, blocks.

mod collective;

use std::collections::HashMap;
use std::ops::Range;

use ir::{Flow, Kernel, OpKind};
use isa::{Control, Dir, Effects, FieldKind, FormId, Inst, Isa, Latency, OperandIx, Pipe, RegFile, Space, Word};

use crate::class::{ClassId, Classes, Parts};

/// General registers, numbered from 0.
pub(crate) const REGISTERS: usize = 256;

/// A register of any file as one number.
pub type Reg = u16;

/// How many there are.
pub const REGS: usize = 547;

/// Views of memory that fences set ([`crate::views`]): as registers, behind all others.
pub(crate) const VIEWS: [Reg; 3] = [544, 545, 546];

/// First number of each file, in the order of [`RegFile`].
const BASE: [Reg; 5] = [0, 256, 512, 520, 528];

/// The number of a register.
pub fn reg(file: RegFile, n: u8) -> Reg {
    BASE[file as usize] + Reg::from(n)
}

/// The file and number of a register that is no view.
pub fn file_of(reg: Reg) -> (RegFile, u8) {
    let files = [RegFile::R, RegFile::UR, RegFile::P, RegFile::UP, RegFile::B];
    let n = BASE.partition_point(|b| *b <= reg) - 1;
    (files[n], (reg - BASE[n]) as u8)
}

/// What a register is for in an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Port {
    /// General register.
    R,
    /// Uniform register.
    Ur,
    /// Predicate as an operand.
    P,
    /// Uniform predicate as an operand.
    Up,
    /// Convergence barrier.
    B,
    /// Predicate that decides whether the instruction executes.
    Guard,
    /// Uniform predicate that decides.
    UGuard,
    /// What a fence lets be seen.
    View,
}

impl Port {
    /// All of them, by number.
    pub const ALL: [Port; 8] = [
        Port::R,
        Port::Ur,
        Port::P,
        Port::Up,
        Port::B,
        Port::Guard,
        Port::UGuard,
        Port::View,
    ];

    /// As the model's tables write it.
    pub fn name(self) -> &'static str {
        ["R", "UR", "P", "UP", "B", "guard", "uguard", "view"][self as usize]
    }

    fn of(file: RegFile, guard: bool) -> Port {
        match (file, guard) {
            (RegFile::R, _) => Port::R,
            (RegFile::UR, _) => Port::Ur,
            (RegFile::P, false) => Port::P,
            (RegFile::UP, false) => Port::Up,
            (RegFile::P, true) => Port::Guard,
            (RegFile::UP, true) => Port::UGuard,
            (RegFile::B, _) => Port::B,
        }
    }
}

/// Registers that one operand touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touch {
    /// The first.
    pub first: Reg,
    /// How many, at most 32.
    pub width: u8,
    /// What for.
    pub port: Port,
    /// What the latency model calls the instruction as far as these registers are concerned.
    pub class: ClassId,
}

/// The most registers of one [`Touch`].
const WIDEST: u8 = 32;

impl Touch {
    /// These registers, each half with its own class where there are two; a single register is an upper half.
    fn split(self, halves: Option<[ClassId; 2]>, out: &mut Vec<Touch>) {
        match (halves, self.width) {
            (Some([lo, hi]), 2) => {
                let half = |first, class| Touch {
                    first,
                    width: 1,
                    class,
                    ..self
                };
                out.extend([half(self.first, lo), half(self.first + 1, hi)]);
            }
            (Some([_, hi]), 1) => out.push(Touch { class: hi, ..self }),
            _ => out.push(self),
        }
    }

    /// The registers as bits, each at its number modulo 64: what has no bit in common has no register in common.
    #[inline]
    pub(crate) fn shadow(&self) -> u64 {
        u64::from(ones(self.width)).rotate_left(u32::from(self.first) % u64::BITS)
    }

    /// Which registers of a run are among these, as bits counted from the run's first.
    #[inline]
    pub fn of(&self, first: Reg, width: u8) -> u32 {
        let (a, b) = (u32::from(first), u32::from(self.first));
        let common = match b >= a {
            true => ones(self.width).checked_shl(b - a),
            false => ones(self.width).checked_shr(a - b),
        };
        common.unwrap_or(0) & ones(width)
    }
}

#[inline]
pub(crate) fn ones(width: u8) -> u32 {
    1u32.checked_shl(width.into()).unwrap_or(0).wrapping_sub(1)
}

/// The predicate that decides whether an instruction executes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guard {
    /// The predicate.
    pub reg: Reg,
    /// It must be false.
    pub negated: bool,
}

/// What counts groups of matrix products (`gsb0`), as a scoreboard behind the six others.
pub const GROUPS: u8 = 6;

/// One instruction.
#[derive(Clone, Debug)]
pub struct Step {
    /// All of it.
    pub word: Word,
    /// What kind.
    pub form: FormId,
    /// Its scheduling bits.
    pub control: Control,
    /// What the latency model calls it; `None` if no table knows the word or what it does.
    pub class: Option<ClassId>,
    /// Whether its results are there after a time or when a scoreboard says so.
    pub latency: Latency,
    /// What it does to control flow; a call that does not come back is a branch.
    pub flow: Flow,
    /// What it does beyond registers.
    pub effects: Effects,
    /// Its predicate says whether its address is one of shared memory, which is known when it has been read: from sm_90 on compilers wait for
    /// no more, before for the result.
    pub early_predicate: bool,
    /// `None` if it always executes.
    pub guard: Option<Guard>,
    /// Scoreboards that it waits for, one bit each, in its control word or by its own meaning (`DEPBAR`).
    pub wait: u8,
    /// A scoreboard or [`GROUPS`], and the count that it waits for it to fall to.
    pub counted: Option<(u8, u8)>,
    /// The block that a call enters, where it is known: not that of a call to an address in a register, nor of one that is yet to be linked.
    pub callee: Option<u32>,
    /// A number that collectives share whose lanes may meet: where they begin.
    pub meets: Option<u32>,
    /// Of matrix products of warpgroups the one that tells that its group is done, as a bit beside those of scoreboards; else 0.
    pub group: u8,
    /// Those of `wait` that it names by its own meaning.
    named: u8,
    /// What its form touches and its mask leaves out: nothing waits for that, but in SSA it is an operand or a result.
    left_out: Box<[(Reg, Dir)]>,
    reads: Range<u32>,
    writes: Range<u32>,
}

impl Step {
    /// Word and form.
    pub(crate) fn inst(&self) -> Inst {
        Inst {
            word: self.word,
            form: self.form,
        }
    }

    /// Whether it calls code of which nothing is known.
    pub(crate) fn leaves(&self) -> bool {
        self.flow == Flow::Call && self.callee.is_none() && self.meets.is_none()
    }

    /// What it waits for as it issues, so that a signal that is not counted yet is missed: scoreboards of its control word, and [`GROUPS`], as bits.
    /// What waits for others by its own meaning does so in its pipe, after it has issued.
    pub(crate) fn awaited_at_issue(&self) -> u8 {
        let groups = self.counted.is_some_and(|c| c.0 == GROUPS);
        self.control.wait | u8::from(groups) << GROUPS
    }
}

/// The code of one section.
#[derive(Clone)]
pub struct Code {
    /// The tables.
    pub isa: &'static Isa,
    /// Instructions in order, without the padding behind the code.
    pub steps: Vec<Step>,
    touches: Vec<Touch>,
    /// Instructions of each block.
    pub blocks: Vec<Range<u32>>,
    succ_start: Vec<u32>,
    succs: Vec<u32>,
    /// Blocks that an address can name: functions of the section, and what no branch leads to. A kernel's beginning is none of them, nor is a
    /// function of which the file shows that only calls by name enter it.
    named: Vec<u32>,
    /// By [`Step::meets`]: the blocks that are bodies of those collectives.
    bodies: Vec<Vec<u32>>,
}

impl Code {
    /// Reads a lifted kernel.
    pub fn new(isa: &'static Isa, classes: &Classes, kernel: &Kernel) -> Code {
        let mut code = Code {
            isa,
            steps: Vec::with_capacity(kernel.instruction_count()),
            touches: Vec::new(),
            blocks: Vec::with_capacity(kernel.block_count()),
            succ_start: vec![0],
            succs: Vec::new(),
            named: Vec::new(),
            bodies: Vec::new(),
        };
        let labels = labels(kernel);
        let mut writes = Vec::new();
        for block in kernel.blocks() {
            let first = code.steps.len() as u32;
            for op in block.ops().filter(|op| op.kind().is_code()) {
                code.push(classes, op, &labels, &mut writes);
            }
            code.blocks.push(first..code.steps.len() as u32);
            code.succs.extend(block.successors().map(|(to, _)| to.index() as u32));
            code.succ_start.push(code.succs.len() as u32);
        }
        let mut entered = code.succs[..code.succ_start.get(1).map_or(0, |end| *end as usize)].to_vec();
        entered.sort_unstable();
        let by_name = |b: &u32| kernel.called_by_name.iter().any(|known| known.0 == *b);
        code.named.extend(entered.into_iter().skip(1).filter(|b| !by_name(b)));
        if let Some((arrive, product)) = classes.named("arrive").zip(classes.named("gmma")) {
            code.products(arrive, product);
        }
        code.collectives(kernel);
        code
    }

    /// Products of warpgroups. `WARPGROUP.ARRIVE` says that the registers are there which those behind it use, up to the next one: so it is as
    /// if it read them.
    fn products(&mut self, arrive: ClassId, product: ClassId) {
        for block in self.blocks.clone() {
            let mut used: Vec<Touch> = Vec::new();
            for at in block.rev() {
                let step = &self.steps[at as usize];
                let start = self.touches.len() as u32;
                if step.class == Some(product) {
                    let registers = self.reads(step).iter().filter(|t| t.port == Port::R);
                    used.extend(registers.map(|t| Touch { class: arrive, ..*t }));
                    if !sums_in_place(self.isa, step) {
                        self.steps[at as usize].class = None;
                    }
                } else if step.class == Some(arrive) {
                    let own = self.reads(step).to_vec();
                    self.touches.extend(own);
                    self.touches.append(&mut used);
                    self.steps[at as usize].reads = start..self.touches.len() as u32;
                }
            }
        }
    }

    /// `writes` is empty, and is so again: room that many instructions use.
    fn push(&mut self, classes: &Classes, op: ir::Op<'_>, labels: &HashMap<u32, u32>, writes: &mut Vec<Touch>) {
        let isa = self.isa;
        let inst = isa.decode(op.word());
        let semantics = isa.semantics(inst);
        let guard = isa
            .guard(inst)
            .filter(|(file, reg, negated)| *negated || !isa.is_zero(*file, *reg))
            .map(|(file, n, negated)| Guard {
                reg: reg(file, n),
                negated,
            });
        let class = classes.of(isa, inst);
        let mask = implicit_mask(isa, inst);
        let masked = mask.into_iter().flat_map(|_| isa.accesses(inst));
        let left_out = masked.filter(|a| !a.is_zero && is_left_out(a, mask));
        let start = self.touches.len() as u32;
        touches_of(isa, classes, inst, class, mask, &mut self.touches, writes);
        classes.views().touches(isa, inst, class, &mut self.touches, writes);
        let middle = self.touches.len() as u32;
        let flow = match op.layout().map_or(Flow::None, |l| l.flow) {
            Flow::Call if op.goes_to_successor() => Flow::Branch,
            flow => flow,
        };
        let label = op.label().filter(|_| flow == Flow::Call);
        // What may be skipped has waited for nothing.
        let (set, counted) = match guard {
            None => awaited(isa, inst),
            Some(_) => (0, None),
        };
        let control = Control::of(op.word());
        self.touches.append(writes);
        self.steps.push(Step {
            word: op.word(),
            form: inst.form,
            control,
            class,
            latency: semantics.latency,
            effects: semantics.effects,
            early_predicate: semantics.effects.has(Effects::ATOMIC)
                && semantics.space == Space::Generic
                && isa.target().number() >= 90,
            flow,
            guard,
            wait: control.wait | set,
            group: u8::from(class.is_some() && is_last_of_group(isa, inst)) << GROUPS,
            named: set,
            left_out: left_out.map(|a| (reg(a.file, a.reg), a.dir)).collect(),
            counted,
            meets: None,
            callee: label.and_then(|label| labels.get(&label).copied()),
            reads: start..middle,
            writes: middle..self.touches.len() as u32,
        });
    }

    /// All instructions in order, without the padding behind them.
    pub fn words(&self) -> Vec<Word> {
        self.steps.iter().map(|s| s.word).collect()
    }

    /// Gives an instruction other scheduling bits. Refuses those that its form cannot have.
    pub fn set_control(&mut self, at: u32, control: Control) -> bool {
        let step = &mut self.steps[at as usize];
        let word = control.apply(step.word);
        let legal = self.isa.decode(word).form == step.form;
        if legal {
            (step.word, step.control, step.wait) = (word, control, control.wait | step.named);
        }
        legal
    }

    /// The code with its instructions in another order, each still in its block: at each place the number of the one that goes there.
    pub(crate) fn ordered(mut self, order: &[u32]) -> Code {
        self.steps = order.iter().map(|at| self.steps[*at as usize].clone()).collect();
        self
    }

    /// Whether no instruction has scheduling bits of its own, as where NVIDIA's compiler is told to leave code for a debugger (`-G`, `-O0`):
    /// a stall of 0, no scoreboard set, none waited for. What is never executed does not count: it puts `@!PT LDS RZ, [RZ]` there, too.
    pub fn is_unscheduled(&self) -> bool {
        let bare = |c: &Control| {
            let signals = c.write_barrier.is_some() || c.read_barrier.is_some();
            c.stall == 0 && !c.yield_ && c.wait == 0 && c.reuse == 0 && !signals
        };
        let mut steps = self.steps.iter().filter(|s| !self.never_happens(s)).peekable();
        steps.peek().is_some() && steps.all(|s| bare(&s.control))
    }

    /// Whether an instruction is never executed, as `@!PT LDS RZ, [RZ]` is not.
    pub fn never_happens(&self, step: &Step) -> bool {
        let guard = self.isa.guard(step.inst());
        guard.is_some_and(|(file, n, negated)| negated && self.isa.is_zero(file, n))
    }

    /// Whether an instruction does nothing but wait (`NOP`). `ptxas` puts one behind what acquires in a block of threads: what comes behind it relies on
    /// what was over there, even if an instruction before it did the waiting.
    pub(crate) fn only_waits(&self, step: &Step) -> bool {
        let touches = self
            .reads(step)
            .iter()
            .any(|t| !matches!(t.port, Port::Guard | Port::UGuard))
            || !step.writes.is_empty();
        step.class.is_some() && !touches && step.effects.is_none() && step.flow == Flow::None
    }

    /// The block of an instruction.
    pub fn block_of(&self, step: u32) -> usize {
        self.blocks.partition_point(|b| b.end <= step)
    }

    /// The registers that an instruction reads.
    pub fn reads(&self, step: &Step) -> &[Touch] {
        &self.touches[step.reads.start as usize..step.reads.end as usize]
    }

    /// Whether an instruction names in SSA what another one touches, although its mask leaves that out: their order must stay.
    pub(crate) fn left_out_meets(&self, masked: &Step, other: &Step) -> bool {
        let any = |touches: &[Touch], reg: Reg| touches.iter().any(|t| t.of(reg, 1) != 0);
        let meets =
            |(reg, dir): &(Reg, Dir)| any(self.writes(other), *reg) || dir.writes() && any(self.reads(other), *reg);
        masked.left_out.iter().any(meets)
    }

    /// The registers that an instruction writes.
    pub fn writes(&self, step: &Step) -> &[Touch] {
        &self.touches[step.writes.start as usize..step.writes.end as usize]
    }

    /// The blocks that a call may enter: of one to an address, all that an address can name; where a collective begins, those that its lanes may
    /// go through.
    pub fn callees<'a>(&'a self, step: &'a Step) -> &'a [u32] {
        match (step.meets, step.flow) {
            (Some(group), _) => &self.bodies[group as usize],
            (None, Flow::Call) if step.callee.is_none() => &self.named,
            _ => step.callee.as_slice(),
        }
    }

    /// The blocks that a block leads to.
    pub fn successors(&self, block: usize) -> &[u32] {
        &self.succs[self.succ_start[block] as usize..self.succ_start[block + 1] as usize]
    }
}

/// The blocks of code labels that operands name.
fn labels(kernel: &Kernel) -> HashMap<u32, u32> {
    let labels = kernel.ops().filter(|op| op.kind() == OpKind::Label);
    labels.filter_map(|op| Some((op.label()?, op.block().0))).collect()
}

/// Adds the registers that an instruction reads, and those that it writes.
pub fn touches(isa: &Isa, classes: &Classes, inst: Inst, reads: &mut Vec<Touch>, writes: &mut Vec<Touch>) {
    let (class, mask) = (classes.of(isa, inst), implicit_mask(isa, inst));
    touches_of(isa, classes, inst, class, mask, reads, writes);
}

/// [`touches`] of an instruction whose class and mask are known.
fn touches_of(
    isa: &Isa,
    classes: &Classes,
    inst: Inst,
    class: Option<ClassId>,
    mask: Option<u64>,
    reads: &mut Vec<Touch>,
    writes: &mut Vec<Touch>,
) {
    for access in isa
        .accesses(inst)
        .filter(|a| !a.is_zero && a.dir != Dir::None && a.width > 0)
    {
        if is_left_out(&access, mask) {
            continue;
        }
        let port = Port::of(access.file, access.operand == OperandIx::Guard);
        let class = class.unwrap_or(ClassId(0));
        let parts = classes.parts(class, port);
        let is_sum = |a: isa::Access| a.dir.writes() && (a.file, a.reg) == (access.file, access.reg);
        let class = match parts {
            Some(Parts::Sums([sum, _])) if isa.accesses(inst).any(is_sum) => sum,
            Some(Parts::Sums([_, operand])) => operand,
            _ => class,
        };
        let [halves_read, halves_written] = match parts {
            Some(Parts::Halves([lo, hi, clo, chi])) => [(access.width == 2).then_some([clo, chi]), Some([lo, hi])],
            _ => [None, None],
        };
        if access.dir.reads() {
            pieces(isa, &access, port, class).for_each(|t| t.split(halves_read, reads));
        }
        if access.dir.writes() {
            pieces(isa, &access, port, class).for_each(|t| t.split(halves_written, writes));
        }
    }
}

/// The registers of an access in runs that are not too long. The zero register ends a file: no tuple goes on behind it.
fn pieces(isa: &Isa, access: &isa::Access, port: Port, class: ClassId) -> impl Iterator<Item = Touch> + use<> {
    let is_there = |n: &u8| access.reg.checked_add(*n).is_some_and(|r| !isa.is_zero(access.file, r));
    let width = (0..access.width).take_while(is_there).count() as u8;
    let first = reg(access.file, access.reg);
    (0..width).step_by(WIDEST.into()).map(move |n| Touch {
        first: first + Reg::from(n),
        width: (width - n).min(WIDEST),
        port,
        class,
    })
}

/// Whether two kernels are the same to the hazard rules: one scheduled as the other is free of hazards if that is.
pub fn same_timing(a: &Code, b: &Code) -> bool {
    let same = |(x, y): (&Step, &Step)| {
        let of = |s: &Step| {
            (
                s.control,
                s.class,
                s.latency,
                s.flow,
                s.guard,
                s.wait,
                s.counted,
                s.group,
                (s.callee, s.meets),
                s.effects,
                s.early_predicate,
            )
        };
        of(x) == of(y) && a.reads(x) == b.reads(y) && a.writes(x) == b.writes(y)
    };
    (&a.blocks, &a.succ_start, &a.succs) == (&b.blocks, &b.succ_start, &b.succs)
        && a.steps.iter().zip(&b.steps).all(same)
}

/// Which of the registers that no operand names are touched: `P2R` and the like have a mask as their last operand.
fn implicit_mask(isa: &Isa, inst: Inst) -> Option<u64> {
    if isa.semantics(inst).implicit.is_empty() {
        return None;
    }
    let last = isa.operand(inst, isa.operand_count(inst).checked_sub(1)?)?;
    let (_, field) = last.fields().next()?;
    (field.kind == FieldKind::Int).then(|| field.get(inst.word) as u64)
}

fn is_left_out(access: &isa::Access, mask: Option<u64>) -> bool {
    access.field.is_none() && mask.is_some_and(|m| m >> access.reg & 1 == 0)
}

/// The scoreboards that an instruction names as awaited: a set, and one with the count that it is to fall to.
fn awaited(isa: &Isa, inst: Inst) -> (u8, Option<(u8, u8)>) {
    let Some(form) = isa.form(inst.form) else {
        return (0, None);
    };
    let number = |name: &str| form.field(name).map(|f| form.fields()[f].get(inst.word) as u8);
    match form.mnemonic() {
        "WARPGROUP" if isa.has_modifier(inst, "DEPBAR") => (0, number("1.X0").map(|most| (GROUPS, most))),
        "DEPBAR" => {
            let mut set = 0;
            for shape in shapes(isa, inst) {
                let names = shape.strip_prefix('{').and_then(|s| s.strip_suffix('}'));
                let names = names.into_iter().flat_map(|s| s.split(','));
                let names = names.filter_map(|n| n.parse::<u8>().ok());
                names.for_each(|n| set |= 1u8.checked_shl(n.into()).unwrap_or(0));
            }
            let one = number("0.SB0").filter(|n| *n < GROUPS);
            (set & !(1 << GROUPS), one.zip(number("1.X0")))
        }
        _ => (0, None),
    }
}

/// Whether a product of warpgroups adds to what it writes, or to nothing: what it does else nobody has seen.
fn sums_in_place(isa: &Isa, step: &Step) -> bool {
    let inst = step.inst();
    let descriptor = shapes(isa, inst).position(|shape| shape.starts_with("gdesc"));
    let sum = |a: &isa::Access| descriptor.is_some_and(|n| a.operand == OperandIx::Printed(n as u8 + 1));
    let written = isa.accesses(inst).find(|a| a.dir.writes());
    isa.accesses(inst)
        .filter(sum)
        .all(|a| a.is_zero || written.is_some_and(|w| w.reg == a.reg))
}

/// Whether an instruction signals [`GROUPS`].
fn is_last_of_group(isa: &Isa, inst: Inst) -> bool {
    isa.semantics(inst).pipe == Pipe::Tensor
        && isa.semantics(inst).latency == Latency::Scoreboard
        && shapes(isa, inst).any(|shape| shape == "gsb0")
}

fn shapes(isa: &Isa, inst: Inst) -> impl Iterator<Item = &'static str> {
    (0..isa.operand_count(inst)).filter_map(move |n| Some(isa.operand(inst, n)?.shape()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_shares_a_register_shares_a_bit() {
        let touch = |first, width| Touch {
            first,
            width,
            port: Port::R,
            class: ClassId(0),
        };
        for (a, b) in (0..REGS as Reg).flat_map(|a| (a.saturating_sub(40)..a + 40).map(move |b| (a, b))) {
            for (x, y) in [1, 2, 4, 31, WIDEST]
                .into_iter()
                .flat_map(|x| [1, 3, WIDEST].map(|y| (x, y)))
            {
                let (x, y) = (touch(a, x), touch(b, y));
                let common = x.of(y.first, y.width) != 0;
                assert!(!common || x.shadow() & y.shadow() != 0, "{x:?} {y:?}");
            }
        }
        assert_eq!(touch(0, 1).shadow() & touch(1, 1).shadow(), 0);
    }
}
