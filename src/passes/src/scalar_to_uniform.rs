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
//! are used that compilers use on the target (from UR4 on: nobody says what the others are for) and that the section names nowhere, the lowest
//! first, one for each value; a kernel that calls code of which the section does not tell is refused. An instruction that the file names stays.
//! All results stay bit for bit.
//!
//! **What it costs.** A uniform register may be read later than a general one, and code that waits for it is rescheduled; it pays where
//! general registers limit occupancy. The engine keeps the kernel as it was where the estimate says that it gets slower for no register.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use ir::{BlockId, Edit, Kernel, Op, OpId, Use, Uses, ValueId};
use isa::{Control, Inst, RegFile, Word};

use crate::other_form::OtherForms;
use crate::uniformity::{Agreement, Uniformity};
use crate::values::{operands, prologue_end, reads_by_name, single_result};
use crate::{
    Context, OptionSpec, Options, Pass, PassResult, Refusal, Skipped, count, instructions, of_collective,
    uniform_registers,
};

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
        let free = uniform_registers::free(kernel)?;
        let mut offsets = vec![0; kernel.op_count()];
        instructions(kernel).for_each(|(offset, op, _)| offsets[op.index()] = offset);
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
            offset: offsets[op.index()],
            reason: (*reason).to_owned(),
        });
        result.skipped = skipped.collect();
        Ok(result)
    }
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
    /// What [`Search::can`] has found.
    known: HashMap<(Role, Word), bool>,
    candidates: BTreeMap<ValueId, Candidate>,
    /// Where they are to be computed that lanes may be apart for: the first instruction behind the prologue.
    beginning: Option<OpId>,
    /// Candidates that have to go there.
    apart: BTreeSet<ValueId>,
    /// Whether an operation is of a collective.
    stays: Box<dyn Fn(OpId) -> bool>,
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
            known: HashMap::new(),
            candidates: BTreeMap::new(),
            beginning: None,
            apart: BTreeSet::new(),
            stays: Box::new(of_collective(cx.isa, kernel)),
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
            } else if (search.stays)(id) {
                "lanes of several places run it"
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

    /// Drops values until every one that is left can be computed and read on the uniform datapath. A value is looked at again only where one
    /// was dropped that is read or computed together with it.
    fn settle(&mut self) {
        // Which register it is to be does not matter here.
        let mut registers: BTreeMap<ValueId, u8> = self.candidates.keys().map(|v| (*v, ANY)).collect();
        let mut next: BTreeSet<ValueId> = registers.keys().copied().collect();
        while !next.is_empty() {
            let mut now = std::mem::take(&mut next);
            while let Some(value) = now.pop_first() {
                if !self.candidates.contains_key(&value) {
                    continue;
                }
                let Err(why) = self.moves(value, &registers) else {
                    continue;
                };
                for other in self.neighbours(value) {
                    if other > value {
                        now.insert(other);
                    }
                    next.insert(other);
                }
                self.drop_value(value, why);
            }
            registers.retain(|v, _| self.candidates.contains_key(v));
            next.extend(self.spread_apart());
        }
    }

    /// Values that are computed from a candidate, or it from them, or that are read together with it.
    fn neighbours(&self, value: ValueId) -> Vec<ValueId> {
        let kernel = self.kernel;
        let readers = self.uses.of(value).iter().filter_map(|used| match used {
            Use::Operand(op, _) => Some(*op),
            Use::Edge { .. } => None,
        });
        let ops = readers.chain([self.candidates[&value].op]).map(|op| kernel.op(op));
        ops.flat_map(|op| op.operands().iter().copied().chain(single_result(kernel, op)))
            .collect()
    }

    /// What goes to the beginning takes along what it is computed from: gives what was not to go there before.
    fn spread_apart(&mut self) -> Vec<ValueId> {
        let mut new = Vec::new();
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
                    new.push(*operand);
                }
            }
        }
        new
    }

    fn drop_value(&mut self, value: ValueId, why: &'static str) {
        if let Some(candidate) = self.candidates.remove(&value) {
            self.skipped.insert(candidate.op, why);
        }
    }

    /// Whether a value can move if all that are to be in `registers` do.
    fn moves(&mut self, value: ValueId, registers: &BTreeMap<ValueId, u8>) -> Result<(), &'static str> {
        let Candidate { op, inst } = self.candidates[&value];
        let kernel = self.kernel;
        let mut operands = kernel.op(op).operands().iter();
        let goes_along = |v: &ValueId| self.kernel.pin(*v).is_zero() || self.candidates.contains_key(v);
        if self.apart.contains(&value) && !operands.all(goes_along) {
            return Err("lanes may be apart there, and it is computed from what stays");
        }
        let op = self.kernel.op(op);
        if !self.can(Role::Computes, op, inst, registers) {
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
            if (self.stays)(reader) {
                return Err("lanes of several places run what reads it");
            }
            let becomes_uniform = single_result(self.kernel, self.kernel.op(reader));
            if becomes_uniform.is_some_and(|v| self.candidates.contains_key(&v)) {
                continue;
            }
            let op = self.kernel.op(reader);
            let can = |inst| moving_are_named(op, registers) && self.can(Role::Reads, op, inst, registers);
            if !op.inst().is_some_and(can) {
                return Err("an instruction that reads it takes no uniform register there");
            }
        }
        Ok(())
    }

    /// Whether the target has an instruction that does this with uniform registers. Which ones does not matter, so that it is asked once for all
    /// instructions that differ in nothing but register numbers.
    fn can(&mut self, role: Role, op: Op<'_>, inst: Inst, registers: &BTreeMap<ValueId, u8>) -> bool {
        let held = held(self.kernel, op, registers);
        let known = renumbered(op, inst, &held).map(|(word, held)| (self.forms.isa.decode(word), held));
        let Some((alike, renumbered)) = known.filter(|(alike, _)| alike.form == inst.form) else {
            return self.forms.made(role, inst, &held, ANY).is_some();
        };
        if let Some(can) = self.known.get(&(role, alike.word)) {
            return *can;
        }
        let can = self.forms.made(role, alike, &renumbered, ANY).is_some();
        self.known.insert((role, alike.word), can);
        can
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
            let (role, to) = own.map_or((Role::Reads, ANY), |to| (Role::Computes, to));
            let held = held(self.kernel, op, registers);
            let made = op.inst().and_then(|inst| self.forms.made(role, inst, &held, to));
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

/// What an instruction has to do with values that move.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Role {
    Computes,
    Reads,
}

impl OtherForms {
    /// An instruction that does with uniform registers what `inst` does with the general ones of `held`; one that computes, into `to`.
    fn made(&mut self, role: Role, inst: Inst, held: &BTreeMap<u8, u8>, to: u8) -> Option<Inst> {
        match role {
            Role::Computes => self.on_uniform(inst, to, &|register| held.get(&register).copied()),
            Role::Reads => held
                .iter()
                .try_fold(inst, |inst, (register, from)| self.reading(inst, *register, *from)),
        }
    }
}

/// All values that move and that the operation reads are operands that it names.
fn moving_are_named(op: Op<'_>, registers: &BTreeMap<ValueId, u8>) -> bool {
    let mut moving = op.operands().iter().filter(|v| registers.contains_key(v));
    moving.all(|v| reads_by_name(op, *v))
}

/// The instruction with other numbers in place of its general registers, and `held` with these: the same of all that differ in nothing else but
/// scheduling bits, as far as the same registers are among those that move. `None` where there is no room for a number.
fn renumbered(op: Op<'_>, inst: Inst, held: &BTreeMap<u8, u8>) -> Option<(Word, BTreeMap<u8, u8>)> {
    let mut word = Control::PLAIN.apply(inst.word);
    let general = op
        .layout()?
        .slots
        .iter()
        .filter(|s| s.file == RegFile::R && !s.pin(inst.word).is_zero());
    let mut numbers: Vec<(u8, u8)> = Vec::new();
    // Pairs and quadruples first, whose numbers are multiples of how many they are.
    for wide in [true, false] {
        for slot in general.clone().filter(|s| (s.width > 1) == wide) {
            let old = slot.number(inst.word);
            let known = numbers.iter().find(|(known, _)| *known == old);
            let new = known.map_or(
                8 * numbers.len() as u8 + if held.contains_key(&old) { 0 } else { 128 },
                |(_, new)| *new,
            );
            if known.is_none() {
                numbers.push((old, new));
            }
            word = slot.set(word, new)?;
        }
    }
    let new = |old: &u8| numbers.iter().find(|(known, _)| known == old).map(|(_, new)| *new);
    let held = held.iter().map(|(old, to)| Some((new(old)?, *to)));
    Some((word, held.collect::<Option<_>>()?))
}

/// General registers that an operation reads and that move: to which uniform register.
fn held(kernel: &Kernel, op: Op<'_>, registers: &BTreeMap<ValueId, u8>) -> BTreeMap<u8, u8> {
    let moving = op
        .operands()
        .iter()
        .filter_map(|v| Some((kernel.pin(*v).number(), *registers.get(v)?)));
    moving.collect()
}
