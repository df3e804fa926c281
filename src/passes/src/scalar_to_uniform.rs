//! `scalar-to-uniform`: values that all lanes of a warp share, from general registers to uniform registers.
//!
//! **What.** Instructions whose result is the same in all lanes ([`crate::uniformity`]) compute it once, on the uniform datapath, into a
//! uniform register, and whatever read the general register reads that: `IMAD.MOV.U32 R9, RZ, RZ, c[0x0][0x210]` becomes
//! `ULDC UR9, c[0x0][0x210]`, `S2R R0, SR_CTAID.X` becomes `S2UR UR4, SR_CTAID.X`, and `IADD3 R2, R9, R3, RZ` behind it reads `UR9`. Values
//! that are computed from each other move together: a web moves whole or not at all. Each instruction is replaced in its place by one other;
//! the general registers become free.
//!
//! **When legal.** A uniform register is one per warp, so it is written only where all running lanes are proven to be together
//! ([`crate::convergence`]), by an instruction without a guard, in the kernel's own code and behind the prologue, which ends with the
//! instruction that sets the stack pointer. Every reader must have a form with a uniform register in that place (of some, operands change
//! places whose order does not matter), and none may be a block argument, a call, or a guarded write's previous value. Only uniform registers
//! are used that the section names nowhere, one for each value; a kernel that calls code of which the section does not tell is refused. An
//! instruction that the file names stays. All results stay bit for bit.
//!
//! **What it costs.** A uniform register may be read later than a general one, and code that waits for it is rescheduled; it pays where
//! general registers limit occupancy. The engine keeps the kernel as it was where the estimate says that it gets slower for no register.

use std::collections::{BTreeMap, BTreeSet};

use ir::{BlockId, Edit, Kernel, Op, OpId, Use, Uses, ValueId};
use isa::{Inst, Isa, RegFile};

use crate::convergence::is_call;
use crate::other_form::OtherForms;
use crate::uniformity::{Agreement, Uniformity};
use crate::values::{operands, prologue_end, reads_by_name, single_result};
use crate::{Context, OptionSpec, Options, Pass, PassResult, Refusal, Skipped, count, instructions};

/// See the module's text.
pub struct ScalarToUniform;

impl ScalarToUniform {
    pub(crate) const NAME: &str = "scalar-to-uniform";
    pub(crate) const OPTIONS: &[OptionSpec] = &[];
}

impl Pass for ScalarToUniform {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn summary(&self) -> &str {
        "compute what all lanes of a warp share in uniform registers"
    }

    fn is_for_gain(&self) -> bool {
        true
    }

    fn options(&self) -> &[OptionSpec] {
        Self::OPTIONS
    }

    fn run(&self, cx: &Context<'_>, kernel: &Kernel, _options: &Options) -> Result<PassResult, Refusal> {
        let free = free_registers(cx.isa, kernel)?;
        let offsets: BTreeMap<OpId, u64> = instructions(kernel).map(|(offset, op, _)| (op, offset)).collect();
        let mut search = Search::new(cx, kernel);
        search.settle();
        let mut result = PassResult::default();
        let webs = search.webs();
        let mut free = free.into_iter();
        let mut registers: BTreeMap<ValueId, u8> = BTreeMap::new();
        for web in &webs {
            let taken: Vec<u8> = free.by_ref().take(web.len()).collect();
            if taken.len() < web.len() {
                web.iter()
                    .for_each(|v| search.drop_value(*v, "no uniform register is free"));
                continue;
            }
            registers.extend(web.iter().copied().zip(taken));
            result.sites += 1;
        }
        result.edits.edits = search.edits(&registers);
        result.ops = result
            .edits
            .edits
            .iter()
            .filter(|e| matches!(e, Edit::Replace { .. }))
            .count();
        result.headline = Some(format!("{} migrated", count(result.sites, "warp-uniform web")));
        let skipped = search.skipped.iter().map(|(op, reason)| Skipped {
            offset: offsets[op],
            reason: (*reason).to_owned(),
        });
        result.skipped = skipped.collect();
        Ok(result)
    }
}

/// Uniform registers that nothing in the section names; a refusal where code runs that is not in it.
fn free_registers(isa: &Isa, kernel: &Kernel) -> Result<Vec<u8>, Refusal> {
    let unknown = |op: &Op<'_>| is_call(*op) && op.label().is_none();
    if let Some(call) = kernel.ops().find(unknown) {
        let why = "code is called that the section does not hold, and may use any uniform register";
        return Err(Refusal(format!("{why} (at {:#06x})", call.offset())));
    }
    let mut used = [false; 256];
    for op in kernel.ops() {
        for slot in op
            .layout()
            .into_iter()
            .flat_map(|l| &l.slots)
            .filter(|s| s.file == RegFile::UR)
        {
            let first = usize::from(slot.number(op.word()));
            let width = usize::from(slot.width.max(1));
            used[first..(first + width).min(256)].fill(true);
        }
    }
    Ok((0..isa.uniform_zero()).filter(|n| !used[usize::from(*n)]).collect())
}

/// A value that may move, with what is known of it.
struct Candidate {
    op: OpId,
    inst: Inst,
}

/// Values that may move, fewer and fewer until all that are left can.
struct Search<'k> {
    kernel: &'k Kernel,
    uses: Uses,
    forms: OtherForms,
    candidates: BTreeMap<ValueId, Candidate>,
    /// Where they are to be computed that lanes may be apart for: the first instruction behind the prologue.
    beginning: Option<OpId>,
    /// Candidates that have to go there.
    apart: BTreeSet<ValueId>,
    /// Uniform values that stay, by operation, and why.
    skipped: BTreeMap<OpId, &'static str>,
}

impl<'k> Search<'k> {
    fn new(cx: &Context<'_>, kernel: &'k Kernel) -> Search<'k> {
        let uniformity = Uniformity::new(cx.isa, kernel);
        let mut search = Search {
            kernel,
            uses: kernel.uses(),
            forms: OtherForms::new(cx.isa),
            candidates: BTreeMap::new(),
            beginning: None,
            apart: BTreeSet::new(),
            skipped: BTreeMap::new(),
        };
        let prologue = prologue_end(kernel);
        let beginning = instructions(kernel).find(|(offset, ..)| *offset == prologue);
        let beginning = beginning.map(|(_, op, _)| kernel.op(op)).filter(|op| {
            let convergence = &uniformity.convergence;
            convergence.is_own(op.block()) && convergence.together(*op)
        });
        let not_behind = beginning.map(|op| reached_without(kernel, op.block()));
        let behind = |block: BlockId| not_behind.as_ref().is_some_and(|other| !other[block.index()]);
        search.beginning = beginning.map(|op| op.id());
        for (offset, id, inst) in instructions(kernel) {
            let op = kernel.op(id);
            let Some(value) = single_result(kernel, op) else {
                continue;
            };
            if uniformity.of(value) == Agreement::Differs || offset < prologue || search.uses.of(value).is_empty() {
                continue;
            }
            let why = if !uniformity.convergence.is_own(op.block()) {
                "it is in a function that is called"
            } else if !uniformity.convergence.together(op) && !behind(op.block()) {
                "lanes may be apart there"
            } else if cx.pinned.binary_search(&offset).is_ok() {
                "the file names the instruction"
            } else {
                search.candidates.insert(value, Candidate { op: id, inst });
                if !uniformity.convergence.together(op) {
                    search.apart.insert(value);
                }
                continue;
            };
            search.skipped.insert(id, why);
        }
        search
    }

    /// Drops values until every one that is left can be computed and read on the uniform datapath.
    fn settle(&mut self) {
        loop {
            // Which register it is to be does not matter here.
            let registers: BTreeMap<ValueId, u8> = self.candidates.keys().map(|v| (*v, ANY)).collect();
            let before = registers.len();
            for value in registers.keys() {
                if let Err(why) = self.moves(*value, &registers) {
                    self.drop_value(*value, why);
                }
            }
            self.spread_apart();
            if self.candidates.len() == before {
                return;
            }
        }
    }

    /// What goes to the beginning takes along what it is computed from.
    fn spread_apart(&mut self) {
        let mut work: Vec<ValueId> = self.apart.iter().copied().collect();
        while let Some(value) = work.pop() {
            let Some(candidate) = self.candidates.get(&value) else {
                self.apart.remove(&value);
                continue;
            };
            let operands = self.kernel.op(candidate.op).operands();
            for operand in operands.iter().filter(|v| self.candidates.contains_key(v)) {
                if self.apart.insert(*operand) {
                    work.push(*operand);
                }
            }
        }
    }

    fn drop_value(&mut self, value: ValueId, why: &'static str) {
        if let Some(candidate) = self.candidates.remove(&value) {
            self.skipped.insert(candidate.op, why);
        }
    }

    /// Whether a value can move if all that are to be in `registers` do.
    fn moves(&mut self, value: ValueId, registers: &BTreeMap<ValueId, u8>) -> Result<(), &'static str> {
        let Candidate { op, inst } = self.candidates[&value];
        let mut operands = self.kernel.op(op).operands().iter();
        let goes_along = |v: &ValueId| self.kernel.pin(*v).is_zero() || self.candidates.contains_key(v);
        if self.apart.contains(&value) && !operands.all(goes_along) {
            return Err("lanes may be apart there, and it is computed from what stays");
        }
        if self.computed(op, inst, registers, ANY).is_none() {
            let op = self.kernel.op(op);
            let general = |v: &ValueId| self.kernel.pin(*v).file() == RegFile::R && !self.kernel.pin(*v).is_zero();
            return Err(
                match op
                    .operands()
                    .iter()
                    .filter(|v| general(v))
                    .all(|v| self.candidates.contains_key(v))
                {
                    true => "the uniform datapath has no such instruction",
                    false => "it is computed from a general register that stays",
                },
            );
        }
        for used in self.uses.of(value).to_vec() {
            let Use::Operand(reader, _) = used else {
                return Err("it is passed to a block argument");
            };
            let becomes_uniform = single_result(self.kernel, self.kernel.op(reader));
            if becomes_uniform.is_some_and(|v| self.candidates.contains_key(&v)) {
                continue;
            }
            if self.reader(reader, registers).is_none() {
                return Err("an instruction that reads it takes no uniform register there");
            }
        }
        Ok(())
    }

    /// An instruction that computes a value on the uniform datapath.
    fn computed(&mut self, op: OpId, inst: Inst, registers: &BTreeMap<ValueId, u8>, to: u8) -> Option<Inst> {
        let kernel = self.kernel;
        let held = held(kernel, kernel.op(op), registers);
        self.forms
            .on_uniform(inst, to, &|register| held.get(&register).copied())
    }

    /// An instruction that reads uniform registers in place of the general ones that move.
    fn reader(&mut self, op: OpId, registers: &BTreeMap<ValueId, u8>) -> Option<Inst> {
        let kernel = self.kernel;
        let mut inst = kernel.op(op).inst()?;
        let mut moving = kernel.op(op).operands().iter().filter(|v| registers.contains_key(v));
        if !moving.all(|v| reads_by_name(kernel.op(op), *v)) {
            return None;
        }
        for (register, from) in held(kernel, kernel.op(op), registers) {
            inst = self.forms.reading(inst, register, from)?;
        }
        Some(inst)
    }

    /// Values that are computed from each other or read together, those of a web side by side, in the order of the code.
    fn webs(&self) -> Vec<Vec<ValueId>> {
        let mut web: BTreeMap<ValueId, ValueId> = self.candidates.keys().map(|v| (*v, *v)).collect();
        fn root(web: &BTreeMap<ValueId, ValueId>, mut v: ValueId) -> ValueId {
            while web[&v] != v {
                v = web[&v];
            }
            v
        }
        for value in self.candidates.keys() {
            for used in self.uses.of(*value) {
                let Use::Operand(reader, _) = *used else { continue };
                let reader = self.kernel.op(reader);
                let others = reader
                    .operands()
                    .iter()
                    .copied()
                    .chain(single_result(self.kernel, reader));
                for other in others.filter(|v| self.candidates.contains_key(v)) {
                    let (a, b) = (root(&web, *value), root(&web, other));
                    web.insert(a.max(b), a.min(b));
                }
            }
        }
        let mut webs: BTreeMap<ValueId, Vec<ValueId>> = BTreeMap::new();
        for value in self.candidates.keys() {
            webs.entry(root(&web, *value)).or_default().push(*value);
        }
        webs.into_values().collect()
    }

    /// The replacements, in the order of the code.
    fn edits(&mut self, registers: &BTreeMap<ValueId, u8>) -> Vec<Edit> {
        let computing = registers.keys().map(|v| self.candidates[v].op);
        let reading = registers
            .keys()
            .flat_map(|v| self.uses.of(*v))
            .filter_map(|used| match used {
                Use::Operand(op, _) => Some(*op),
                Use::Edge { .. } => None,
            });
        let ops: BTreeSet<OpId> = computing.chain(reading).collect();
        let mut edits = Vec::new();
        for id in ops {
            let op = self.kernel.op(id);
            let own = single_result(self.kernel, op).and_then(|v| registers.get(&v).copied());
            let made = match (own, op.inst()) {
                (Some(to), Some(inst)) => self.computed(id, inst, registers, to),
                _ => self.reader(id, registers),
            };
            let Some(inst) = made else { continue };
            let operands = operands(self.forms.isa, self.kernel, op, inst, registers);
            edits.push(Edit::Replace { op: id, inst, operands });
        }
        edits.extend(self.to_the_beginning(registers));
        edits
    }

    /// The moves of what is to be computed before lanes part, in the order of the code.
    fn to_the_beginning(&self, registers: &BTreeMap<ValueId, u8>) -> Vec<Edit> {
        let moving = registers.keys().filter(|v| self.apart.contains(v));
        let moving: BTreeSet<OpId> = moving.map(|v| self.candidates[v].op).collect();
        let code = instructions(self.kernel).map(|(_, op, _)| op);
        let behind = code.skip_while(|op| Some(*op) != self.beginning);
        let Some(before) = behind.into_iter().find(|op| !moving.contains(op)) else {
            return Vec::new();
        };
        let moving = moving.into_iter().filter(|op| *op > before);
        moving.map(|op| Edit::Move { op, before }).collect()
    }
}

/// By block: the entry leads there without passing another one.
fn reached_without(kernel: &Kernel, without: BlockId) -> Vec<bool> {
    let mut reached = vec![false; kernel.block_count()];
    let entry = kernel.block(BlockId(0)).successors().map(|(to, _)| to).next();
    let mut work: Vec<BlockId> = entry.into_iter().collect();
    while let Some(block) = work.pop() {
        if block != without && !std::mem::replace(&mut reached[block.index()], true) {
            work.extend(kernel.block(block).successors().map(|(to, _)| to));
        }
    }
    reached
}

/// A uniform register's number where it does not matter which.
const ANY: u8 = 0;

/// General registers that an operation reads and that move: to which uniform register.
fn held(kernel: &Kernel, op: Op<'_>, registers: &BTreeMap<ValueId, u8>) -> BTreeMap<u8, u8> {
    let moving = op
        .operands()
        .iter()
        .filter_map(|v| Some((kernel.pin(*v).number(), *registers.get(v)?)));
    moving.collect()
}
