//! Faults at the places that the compiler's own scheduling bits name, with a judge that knows nothing of the latency model: it reads off
//! the code of one block, without any way around, what depends on what, and says nothing where that does not settle it.

use isa::{Control, Inst, Isa, OperandIx, Pipe, RegFile, Target, Word};
use sched::code::Code;

/// What is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// A scoreboard is not waited for any more.
    Wait,
    /// An instruction no longer tells that its result is there.
    Result,
    /// An instruction no longer tells that it has read its operands.
    Operands,
    /// A cycle less behind an instruction.
    Stall,
    /// One more may be under way behind a `DEPBAR` that counts.
    Count,
    /// An operand is kept whose register the instruction overwrites, and the next reads it.
    Reuse,
    /// A fence no longer tells that it is over.
    Fence,
    /// A `WARPGROUP.ARRIVE` becomes a `NOP`.
    Arrive,
}

impl Change {
    /// All of them.
    pub const ALL: [Change; 8] = [
        Change::Wait,
        Change::Result,
        Change::Operands,
        Change::Stall,
        Change::Count,
        Change::Reuse,
        Change::Fence,
        Change::Arrive,
    ];

    /// As reports name it.
    pub fn name(self) -> &'static str {
        [
            "wait bit cleared",
            "write barrier cleared",
            "read barrier cleared",
            "stall one shorter",
            "count of DEPBAR one higher",
            "reuse flag set",
            "fence's barrier cleared",
            "WARPGROUP.ARRIVE dropped",
        ][self as usize]
    }
}

/// One changed word.
#[derive(Clone, Copy, Debug)]
pub struct Mutant {
    /// What is changed.
    pub change: Change,
    /// Where: an instruction by number.
    pub at: u32,
    /// What it becomes.
    pub word: Word,
    /// The instruction that then goes wrong, if the judge knows that one does.
    pub victim: Option<u32>,
}

/// Arithmetic whose results another of these may read 4 cycles later, and no sooner (measured on a card by basalt-sass, the same in every
/// public table).
const SIMPLE: [&str; 7] = ["IADD3", "IMAD", "FFMA", "FADD", "FMUL", "LOP3", "SHF"];
const SIMPLE_LATENCY: u32 = 4;

/// A register of any file.
type Reg = (RegFile, u8);

/// What the judge sees of an instruction.
struct Line {
    inst: Inst,
    control: Control,
    name: &'static str,
    pipe: Pipe,
    guard: Option<(RegFile, u8, bool)>,
    reads: Vec<Reg>,
    writes: Vec<Reg>,
    simple: bool,
}

impl Line {
    fn new(isa: &Isa, word: Word) -> Line {
        let inst = isa.decode(word);
        let (mut reads, mut writes) = (Vec::new(), Vec::new());
        for a in isa.accesses(inst).filter(|a| !a.is_zero) {
            let registers = (0..a.width).filter_map(|n| Some((a.file, a.reg.checked_add(n)?)));
            let registers: Vec<Reg> = registers.filter(|(file, n)| !isa.is_zero(*file, *n)).collect();
            if a.dir.reads() {
                reads.extend(&registers);
            }
            if a.dir.writes() {
                writes.extend(&registers);
            }
        }
        let name = isa.form(inst.form).map_or("", |f| f.mnemonic());
        let wide = ["WIDE", "HI"].iter().any(|m| isa.has_modifier(inst, m));
        Line {
            inst,
            control: Control::of(word),
            name,
            pipe: isa.semantics(inst).pipe,
            guard: isa
                .guard(inst)
                .filter(|(file, n, negated)| *negated || !isa.is_zero(*file, *n)),
            reads,
            writes,
            simple: SIMPLE.contains(&name) && !wide,
        }
    }

    fn waits(&self, scoreboard: u8) -> bool {
        self.control.wait >> scoreboard & 1 == 1 || self.name == "DEPBAR"
    }

    fn tells(&self) -> impl Iterator<Item = u8> {
        self.control.write_barrier.into_iter().chain(self.control.read_barrier)
    }

    /// Both run, as far as their guards show.
    fn runs_with(&self, other: &Line) -> bool {
        self.guard.is_none() || other.guard.is_none() || self.guard == other.guard
    }

    fn word(&self, change: impl FnOnce(&mut Control)) -> Word {
        let mut control = self.control;
        change(&mut control);
        control.apply(self.inst.word)
    }

    /// Vector arithmetic, which overwrites a register a few cycles after its issue.
    fn is_arithmetic(&self) -> bool {
        matches!(self.pipe, Pipe::Alu | Pipe::Fma | Pipe::Fp16)
    }
}

fn general(registers: &[Reg]) -> impl Iterator<Item = Reg> + '_ {
    registers.iter().copied().filter(|r| r.0 == RegFile::R)
}

/// Every change of one place, with the judge's word.
pub fn mutants(code: &Code) -> Vec<Mutant> {
    let mut found = Vec::new();
    for block in &code.blocks {
        let steps = &code.steps[block.start as usize..block.end as usize];
        let lines: Vec<Line> = steps.iter().map(|s| Line::new(code.isa, s.word)).collect();
        let judge = Judge {
            isa: code.isa,
            lines: &lines,
        };
        for i in 0..lines.len() {
            judge.changes(i, &mut |change, word, victim: Option<usize>| {
                if code.isa.decode(word).form.is_opaque() {
                    return;
                }
                found.push(Mutant {
                    change,
                    at: block.start + i as u32,
                    word,
                    victim: victim.map(|v| block.start + v as u32),
                });
            });
        }
    }
    found
}

/// The instructions of one block.
struct Judge<'a> {
    isa: &'a Isa,
    lines: &'a [Line],
}

impl Judge<'_> {
    fn changes(&self, i: usize, add: &mut dyn FnMut(Change, Word, Option<usize>)) {
        let line = &self.lines[i];
        for b in (0..6).filter(|b| line.control.wait >> b & 1 == 1) {
            add(
                Change::Wait,
                line.word(|c| c.wait &= !(1 << b)),
                self.needs_wait(i, b).then_some(i),
            );
        }
        let is_fence = line.name == "FENCE";
        if let Some(b) = line.control.write_barrier {
            let (change, victim) = match is_fence {
                true => (Change::Fence, self.behind_fence(i, b)),
                // Public tables have numbers for matrix products: the scoreboards that `ptxas` gives them besides are not needed.
                false => (Change::Result, self.reader(i, b).filter(|_| line.pipe != Pipe::Tensor)),
            };
            add(change, line.word(|c| c.write_barrier = None), victim);
        }
        if let Some(b) = line.control.read_barrier {
            add(
                Change::Operands,
                line.word(|c| c.read_barrier = None),
                self.overwriter(i, b),
            );
        }
        if line.control.stall > 1 {
            add(Change::Stall, line.word(|c| c.stall -= 1), self.tight(i));
        }
        if let Some((word, victim)) = self.count(i) {
            add(Change::Count, word, victim);
        }
        if let Some(word) = self.keeps(i) {
            add(Change::Reuse, word, Some(i + 1));
        }
        if line.name == "WARPGROUP" && self.isa.has_modifier(line.inst, "ARRIVE") {
            let nop = self.isa.form_by_name("NOP_0x918").and_then(|f| self.isa.form(f));
            if let Some(nop) = nop {
                add(Change::Arrive, line.control.apply(nop.filler()), self.unarrived(i));
            }
        }
    }

    /// NVIDIA's compilers do not agree whether a scoreboard must tell of it: on sm_100 that of CUDA 12.9 relies on cycles, that of 13.5 never does.
    fn may_be_fixed(&self, line: &Line) -> bool {
        let disputed = line.pipe == Pipe::Fp64 && line.name != "DMMA" || line.name == "IMMA";
        disputed && matches!(self.isa.target(), Target::Sm100 | Target::Sm100a)
    }

    /// Whether an instruction of the pipe of `from` comes behind it and is known to be done at `to`: it may tell of both. `BAR` comes out of
    /// the memory pipe when all before it has left.
    fn told_by_another(&self, from: usize, to: usize) -> bool {
        let memory = |p: Pipe| matches!(p, Pipe::Lsu | Pipe::Adu | Pipe::Tex);
        let first = self.lines[from].pipe;
        let same = |p: Pipe| p == first || memory(p) && memory(first);
        (from + 1..to).any(|t| {
            let tells = |b: u8| (t + 1..=to).any(|w| self.lines[w].waits(b));
            same(self.lines[t].pipe) && (self.lines[t].name == "BAR" || self.lines[t].tells().any(tells))
        })
    }

    /// Registers that nobody between the two writes, of those.
    fn left<'a>(
        &'a self,
        registers: impl Iterator<Item = Reg> + 'a,
        from: usize,
        to: usize,
    ) -> impl Iterator<Item = Reg> + 'a {
        registers.filter(move |r| !self.lines[from + 1..to].iter().any(|l| l.writes.contains(r)))
    }

    /// Whether who set the scoreboard last has a result that `i` reads, or an operand that it overwrites, and no other wait tells of it.
    fn needs_wait(&self, i: usize, b: u8) -> bool {
        let line = &self.lines[i];
        let Some(s) = (0..i).rev().find(|j| self.lines[*j].tells().any(|t| t == b)) else {
            return false;
        };
        let setter = &self.lines[s];
        if self.lines[s + 1..i].iter().any(|l| l.waits(b)) || self.told_by_another(s, i) || !setter.runs_with(line) {
            return false;
        }
        // A result that is there was computed from operands.
        let result = setter.control.write_barrier;
        if result.is_some_and(|r| r != b && self.lines[s + 1..=i].iter().any(|l| l.waits(r))) {
            return false;
        }
        // What waits by its own meaning waits without the bit.
        if line.name == "DEPBAR" {
            return false;
        }
        match setter.control.write_barrier == Some(b) {
            true => self
                .left(general(&setter.writes), s, i)
                .any(|r| line.reads.contains(&r)),
            false => {
                line.is_arithmetic()
                    && !self.may_be_fixed(setter)
                    && self
                        .left(general(&setter.reads), s, i)
                        .any(|r| line.writes.contains(&r))
            }
        }
    }

    /// The first that waits for a scoreboard behind its setter.
    fn waiter(&self, setter: usize, b: u8) -> Option<usize> {
        (setter + 1..self.lines.len()).find(|w| self.lines[*w].waits(b))
    }

    /// Who reads the result of `i` behind the wait for its scoreboard.
    fn reader(&self, i: usize, b: u8) -> Option<usize> {
        let waiter = self.waiter(i, b)?;
        let line = &self.lines[i];
        let reader =
            (i + 1..self.lines.len()).find(|j| general(&line.writes).any(|r| self.lines[*j].reads.contains(&r)))?;
        let reads = |r: Reg| self.lines[reader].reads.contains(&r);
        let certain = reader >= waiter
            && !self.told_by_another(i, reader)
            && !self.may_be_fixed(line)
            && line.runs_with(&self.lines[reader])
            && self.left(general(&line.writes), i, reader).any(reads);
        certain.then_some(reader)
    }

    /// Which arithmetic overwrites an operand of `i` behind the wait for its scoreboard.
    fn overwriter(&self, i: usize, b: u8) -> Option<usize> {
        let waiter = self.waiter(i, b)?;
        let line = &self.lines[i];
        let later =
            (i + 1..self.lines.len()).find(|j| general(&line.reads).any(|r| self.lines[*j].writes.contains(&r)))?;
        // A result that is there was computed from operands.
        let done = line
            .control
            .write_barrier
            .is_some_and(|b| (i + 1..=later).any(|w| self.lines[w].waits(b)));
        let certain = later >= waiter
            && !done
            && !self.told_by_another(i, later)
            && !self.may_be_fixed(line)
            && line.runs_with(&self.lines[later])
            && self.lines[later].is_arithmetic();
        certain.then_some(later)
    }

    /// Who reads a result of simple arithmetic exactly as soon as it is there, with the cycles behind `i` among those between.
    fn tight(&self, i: usize) -> Option<usize> {
        let first = i.saturating_sub(SIMPLE_LATENCY as usize - 1);
        for from in first..=i {
            let line = &self.lines[from];
            let mut cycles = 0;
            if !line.simple {
                continue;
            }
            for to in from + 1..self.lines.len() {
                cycles += u32::from(self.lines[to - 1].control.stall);
                let (reader, step) = (&self.lines[to], &self.lines[to - 1]);
                if cycles > SIMPLE_LATENCY
                    || step.control.stall == 0
                    || reader.control.wait != 0
                    || reader.name == "DEPBAR"
                {
                    break;
                }
                let reads = reader.simple
                    && self
                        .left(general(&line.writes), from, to)
                        .any(|r| reader.reads.contains(&r));
                if reads && to > i && cycles == SIMPLE_LATENCY && line.runs_with(reader) {
                    return Some(to);
                }
            }
        }
        None
    }

    /// A `DEPBAR` that lets one more be under way, and who reads what that one would have told of.
    fn count(&self, i: usize) -> Option<(Word, Option<usize>)> {
        let line = &self.lines[i];
        let form = self.isa.form(line.inst.form).filter(|_| line.name == "DEPBAR")?;
        let field = |name: &str| Some((form.field(name)?, form.fields().get(form.field(name)?)?));
        let (scoreboard, (at, count)) = (field("0.SB0")?.1.get(line.inst.word) as u8, field("1.X0")?);
        let most = count.get(line.inst.word);
        let word = self.isa.set_field(line.inst, at, most + 1).ok()?.word;
        let setters = (0..i)
            .rev()
            .filter(|j| self.lines[*j].control.write_barrier == Some(scoreboard));
        let exposed = setters.clone().nth(most as usize);
        // Only what comes back in order is counted; what waited before waited for all.
        let reader = exposed
            .filter(|s| !self.lines[s + 1..i].iter().any(|l| l.waits(scoreboard)))
            .and_then(|s| {
                let setter = &self.lines[s];
                let end = (i + 1..self.lines.len())
                    .find(|w| self.lines[*w].waits(scoreboard))
                    .unwrap_or(self.lines.len());
                let reads = |j: &usize| {
                    self.left(general(&setter.writes), s, *j)
                        .any(|r| self.lines[*j].reads.contains(&r))
                };
                let reader = (i + 1..end).find(reads)?;
                (!self.told_by_another(i, reader) && setter.runs_with(&self.lines[reader])).then_some(reader)
            });
        Some((word, reader.filter(|_| line.guard.is_none())))
    }

    /// The word with a flag on an operand that the instruction overwrites and the next reads from the same slot.
    fn keeps(&self, i: usize) -> Option<Word> {
        let (line, next) = (&self.lines[i], self.lines.get(i + 1)?);
        let kept = if line.control.yield_ { line.control.reuse } else { 0 };
        let plain = (1..12).contains(&line.control.stall)
            && kept == line.control.reuse
            && line.guard.is_none()
            && next.guard.is_none()
            && line.is_arithmetic();
        let again = self.slots(next);
        let stale = |(bit, register): &(u8, Reg)| {
            *bit >= 122 && line.writes.contains(register) && again.contains(&(*bit, *register))
        };
        let (bit, _) = self
            .slots(line)
            .into_iter()
            .find(stale)
            .filter(|_| plain && next.is_arithmetic())?;
        let word = line.word(|c| (c.yield_, c.reuse) = (true, c.reuse | 1 << (bit - 122)));
        (self.isa.decode(word).form == line.inst.form && word != line.inst.word).then_some(word)
    }

    /// Bits of operand-cache flags, and the general registers that they are about.
    fn slots(&self, line: &Line) -> Vec<(u8, Reg)> {
        let Some(form) = self.isa.form(line.inst.form) else {
            return Vec::new();
        };
        let accesses = self
            .isa
            .accesses(line.inst)
            .filter(|a| a.dir.reads() && !a.is_zero && a.file == RegFile::R);
        let slots = accesses.flat_map(|a| {
            let of = form
                .reuse()
                .iter()
                .filter(move |(_, operand)| a.operand == OperandIx::Printed(*operand));
            of.map(move |(bit, _)| (*bit, (a.file, a.reg)))
        });
        slots.collect()
    }

    /// The copy that must come behind a fence, if it is what waits for that.
    fn behind_fence(&self, i: usize, b: u8) -> Option<usize> {
        let shared = ["S", "G"].iter().any(|m| self.isa.has_modifier(self.lines[i].inst, m));
        let waiter = self.waiter(i, b)?;
        let copies = ["UBLKCP", "UBLKRED", "UTMASTG", "UTMALDG", "UTMAREDG"];
        let fenced = self.lines[i + 1..waiter].iter().any(|l| l.name == "FENCE");
        (shared && !fenced && copies.contains(&self.lines[waiter].name)).then_some(waiter)
    }

    /// The product that reads a register which was written before a warpgroup arrives, and behind the arrival before that.
    fn unarrived(&self, i: usize) -> Option<usize> {
        let arrives = |l: &Line| l.name == "WARPGROUP" && self.isa.has_modifier(l.inst, "ARRIVE");
        let is_product = |l: &Line| l.name.ends_with("GMMA");
        let before = self.lines[..i]
            .iter()
            .rev()
            .take_while(|l| !arrives(l))
            .filter(|l| !is_product(l));
        let written: Vec<Reg> = before.flat_map(|l| general(&l.writes).collect::<Vec<_>>()).collect();
        let mut behind = (i + 1..self.lines.len()).take_while(|j| !arrives(&self.lines[*j]));
        behind.find(|j| is_product(&self.lines[*j]) && written.iter().any(|r| self.lines[*j].reads.contains(r)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Changes of sm_87 code that the judge calls hazards: what, where, and who goes wrong.
    fn judged(listing: &str) -> Vec<(Change, u32, u32)> {
        let isa = Isa::for_target(Target::Sm87).expect("the target is embedded");
        let sections = isa::asm::Assembler::new(isa).listing(listing, None).expect("a listing");
        let bytes: Vec<u8> = sections[0].words.iter().flat_map(|w| w.to_le_bytes()).collect();
        let kernel = ir::lift(isa, &ir::Source::new("k", Target::Sm87, &bytes)).expect("whole words");
        let code = Code::new(isa, sched::Model::of(Target::Sm87).classes(), &kernel);
        let all = mutants(&code).into_iter();
        all.filter_map(|m| Some((m.change, m.at, m.victim?))).collect()
    }

    #[test]
    fn the_judge_says_what_depends_on_what() {
        let code = |second: &str| {
            format!(
                "[B------:R1:W0:-:S02] LDS R0, [R1]
                 {second}
                 [B0-----:R-:W-:-:S04] IADD3 R2, R0, R3, R4
                 [B------:R-:W-:-:S04] IADD3 R5, R2, R3, R4
                 [B-1----:R-:W-:-:S05] MOV R1, RZ
                 [B------:R-:W-:-:S05] EXIT"
            )
        };
        // The operands were read when the result is there.
        let alone = [(Change::Result, 0, 2), (Change::Wait, 2, 2), (Change::Stall, 2, 3)];
        assert_eq!(judged(&code("[B------:R-:W-:-:S01] NOP")), alone);
        // Who comes behind in the queue tells of both.
        let told = code("[B------:R-:W2:-:S02] LDS R6, [R7]").replace("[B0-----", "[B0-2---");
        assert!(!judged(&told).contains(&(Change::Result, 0, 2)));
    }

    #[test]
    fn a_kept_operand_that_changes_is_a_hazard() {
        let code = "[B------:R-:W-:-:S04] FADD R1, R1, R2
                    [B------:R-:W-:-:S04] FADD R3, R1, R4
                    [B------:R-:W-:-:S05] EXIT";
        assert!(judged(code).contains(&(Change::Reuse, 0, 1)), "{:?}", judged(code));
        assert!(judged(&code.replace("R3, R1", "R3, R5")).is_empty());
    }
}
