//! Which uniform register pair holds the memory descriptor, for accesses whose text does not show it (sm_80 to sm_89).
//!
//! Compilers load the descriptor from one place of constant bank 0, and name the pair in every access. Where several pairs hold it, any
//! would do; the one that `ptxas` names is the one that was loaded last, on every way to the access. Only the loops that it makes of
//! atomic operations which the target lacks have a load of their own ([`emulated`]). A call takes away what its callee may overwrite:
//! where the section does not show the callee, all that the calling convention lets it ([`callees`]).

use std::collections::HashSet;

use super::callees;
use super::emulated::{self, Loop, Role};
use super::refuse::is_hidden;
use crate::{Inst, Isa, OperandIx, RegFile, Terminator, Word};

/// Pairs that hold the descriptor: a bit for the first register of each.
pub(super) type Pairs = u64;

/// What is written at the places of a section.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    /// No label.
    None,
    /// A label to which an instruction leads.
    Named,
    /// A label that no instruction names: `nvdisasm` makes them for what an attribute or a table of branch targets speaks of.
    Unnamed,
    /// A function's name.
    Function,
}

/// The code of a section, as far as descriptors are concerned.
pub(super) struct Code<'c> {
    pub isa: &'c Isa,
    pub insts: &'c [Inst],
    pub marks: Vec<Mark>,
    /// The pair that each instruction loads with the descriptor.
    pub loads: Vec<Option<u8>>,
    /// The pairs that may be overwritten from each instruction on, by the time that its function returns.
    overwritten_until_return: Vec<Pairs>,
}

/// What is known at a place.
trait Known: Copy + PartialEq {
    /// At the beginning of functions.
    const START: Self;
    /// Where ways meet.
    fn meet(self, other: Self) -> Self;
    /// With pairs overwritten.
    fn without(self, pairs: Pairs) -> Self;
}

/// The pairs that hold the descriptor.
impl Known for Pairs {
    const START: Self = 0;

    fn meet(self, other: Self) -> Self {
        self & other
    }

    fn without(self, pairs: Pairs) -> Self {
        self & !pairs
    }
}

/// The pair that was loaded last.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    None,
    Pair(u8),
    /// That depends on the way, or the pair was overwritten.
    Unclear,
}

impl Known for Last {
    const START: Self = Self::None;

    fn meet(self, other: Self) -> Self {
        if self == other { self } else { Self::Unclear }
    }

    fn without(self, pairs: Pairs) -> Self {
        match self {
            Self::Pair(pair) if pairs >> pair & 1 == 1 => Self::Unclear,
            known => known,
        }
    }
}

/// For each instruction of a section, the pair that it means if it is an access. `labels` are their places, and whether they name a
/// function.
pub(super) fn pairs(isa: &Isa, insts: &[Inst], labels: impl Iterator<Item = (u64, bool)>) -> Vec<Option<u8>> {
    let Some(offset) = isa.target().descriptor_offset() else {
        return vec![None; insts.len()];
    };
    let code = Code::new(isa, insts, labels, offset);
    let loops = emulated::loops(&code);
    let held = |loops| {
        let held = code.flow(loops, |pairs: Pairs, at| {
            pairs.without(code.overwritten(at)) | code.loaded(at)
        });
        move |at: usize| held[at].unwrap_or(0)
    };
    // A way that does not exist could hide that there are two pairs.
    let own = emulated::own_loads(&code, &loops, held(None));
    let held = held(Some(&loops));
    let last = code.flow(Some(&loops), |last: Last, at| match (own.role(at), code.loads[at]) {
        (Role::Other, Some(pair)) => Last::Pair(pair),
        (Role::Unclear, _) => Last::Unclear,
        _ => last.without(code.overwritten(at)),
    });
    let means = |at: usize| {
        let pair = match (own.pairs.get(&at), last[at]) {
            (Some(&pair), _) => pair?,
            (None, Some(Last::Pair(pair))) => pair,
            _ => return None,
        };
        (held(at) >> pair & 1 == 1).then_some(pair)
    };
    (0..insts.len()).map(means).collect()
}

impl<'c> Code<'c> {
    fn new(isa: &'c Isa, insts: &'c [Inst], labels: impl Iterator<Item = (u64, bool)>, offset: i64) -> Self {
        let mut marks = vec![Mark::None; insts.len()];
        for (pc, is_function) in labels {
            if let Some(mark) = marks.get_mut(pc as usize / Word::BYTES) {
                *mark = match is_function {
                    true => Mark::Function,
                    false if *mark == Mark::None => Mark::Unnamed,
                    false => *mark,
                };
            }
        }
        let mut code = Self {
            isa,
            insts,
            loads: insts.iter().map(|&inst| loaded(isa, inst, offset)).collect(),
            marks,
            overwritten_until_return: Vec::new(),
        };
        for at in 0..insts.len() {
            if let Some(target) = code.target(at)
                && let Some(mark @ Mark::Unnamed) = code.marks.get_mut(target)
            {
                *mark = Mark::Named;
            }
        }
        code.overwritten_until_return = callees::overwritten_until_return(&code);
        code
    }

    /// Where the label of an instruction leads, if that is all that says where it goes.
    pub fn target(&self, at: usize) -> Option<usize> {
        let inst = self.insts[at];
        let by_register =
            |a: crate::Access| a.operand != OperandIx::Guard && matches!(a.file, RegFile::R | RegFile::UR);
        match self.isa.semantics(inst).terminator {
            Terminator::BranchIndirect => return None,
            Terminator::Call if self.isa.accesses(inst).any(by_register) => return None,
            _ => {}
        }
        let target = self.isa.branch_target(inst, (at * Word::BYTES) as u64)?;
        usize::try_from(target / Word::BYTES as u64).ok()
    }

    /// What a call leads to may overwrite these pairs before it comes back.
    pub fn overwritten_by_callee(&self, at: usize) -> Pairs {
        let callee = self
            .target(at)
            .and_then(|target| self.overwritten_until_return.get(target));
        callee.copied().unwrap_or(callees::UNSHOWN)
    }

    /// What is known before each instruction, if control reaches it, from what is known `after` an instruction. An indirect branch may lead to all labels of its function that no instruction names, but those of
    /// `loops`; without them, it is not followed.
    fn flow<S: Known>(&self, loops: Option<&Vec<Loop>>, after: impl Fn(S, usize) -> S) -> Vec<Option<S>> {
        let mut before: Vec<Option<S>> = vec![None; self.insts.len()];
        let is_start = |at: &usize| *at == 0 || self.marks[*at] == Mark::Function;
        let starts: Vec<usize> = (0..self.insts.len()).filter(is_start).collect();
        let places_of_loops: HashSet<usize> = loops.into_iter().flatten().flat_map(|l| [l.first, l.swap]).collect();
        // Of each function, what is known at its indirect branches.
        let mut branches: Vec<Option<S>> = vec![None; starts.len()];
        let mut todo: Vec<(usize, S)> = starts.iter().map(|&at| (at, S::START)).collect();
        while let Some((at, state)) = todo.pop() {
            let Some(state) = before.get_mut(at).and_then(|known| join(known, state)) else {
                continue;
            };
            let after = after(state, at);
            let ways = ways_out(self.isa, self.insts[at]);
            if ways.falls_through {
                let over = match ways.calls {
                    true => after.without(self.overwritten_by_callee(at)),
                    false => after,
                };
                todo.push((at + 1, over));
            }
            if let Some(target) = self.target(at).filter(|_| ways.jumps) {
                todo.push((target, after));
            }
            if loops.is_some() && ways.anywhere {
                let function = starts.partition_point(|&start| start <= at) - 1;
                let end = starts.get(function + 1).copied().unwrap_or(self.insts.len());
                if let Some(state) = join(&mut branches[function], after) {
                    let unnamed = (starts[function]..end).filter(|&at| self.marks[at] == Mark::Unnamed);
                    todo.extend(unnamed.filter(|at| !places_of_loops.contains(at)).map(|at| (at, state)));
                }
            }
        }
        before
    }

    /// The pair that an instruction loads, if it does.
    fn loaded(&self, at: usize) -> Pairs {
        self.loads[at].map_or(0, |pair| 1 << pair)
    }

    /// The pairs of which an instruction writes a register.
    pub fn overwritten(&self, at: usize) -> Pairs {
        let accesses = self.isa.accesses(self.insts[at]);
        let written = accesses.filter(|a| a.file == RegFile::UR && a.dir.writes() && !a.is_zero);
        written.fold(0, |pairs, a| {
            let end = u32::from(a.reg) + u32::from(a.width);
            let touched = u32::from(a.reg).saturating_sub(1)..end.min(Pairs::BITS);
            touched.fold(pairs, |pairs, first| pairs | 1 << first)
        })
    }

    /// Whether an instruction names a descriptor that its text does not show.
    pub fn is_access(&self, at: usize) -> bool {
        let inst = self.insts[at];
        let Some(form) = self.isa.data(inst.form) else {
            return false;
        };
        let is_descriptor = |f: &crate::Field| f.kind.file() == Some(RegFile::UR) && is_hidden(self.isa, inst, f);
        form.fields.iter().any(is_descriptor)
    }

    /// Whether control comes to an instruction from the one before it only, and always.
    pub fn is_straight(&self, at: usize) -> bool {
        let follows = |before: usize| self.isa.semantics(self.insts[before]).terminator == Terminator::None;
        !matches!(self.marks[at], Mark::Named | Mark::Function) && at.checked_sub(1).is_some_and(follows)
    }
}

/// What is known where one more way leads, if that changes something.
fn join<S: Known>(known: &mut Option<S>, state: S) -> Option<S> {
    let met = Some(known.map_or(state, |known| known.meet(state)));
    (*known != met).then(|| *known = met)?;
    met
}

/// The pair that an unguarded `ULDC.64` loads from the descriptor's place.
fn loaded(isa: &Isa, inst: Inst, offset: i64) -> Option<u8> {
    let form = isa.form(inst.form)?;
    let always = isa.guard(inst).is_none_or(|(_, n, negated)| n == 7 && !negated);
    if form.mnemonic() != "ULDC" || !always || !isa.has_modifier(inst, "64") {
        return None;
    }
    let field = |name| Some(form.fields()[form.field(name)?].get(inst.word));
    let here = isa.operand(inst, 1)?.shape() == "c[X#][X#]" && field("1.X0")? == 0 && field("1.X1")? == offset;
    let pair = here.then(|| field("0.UR0").map(|n| n as u8))??;
    (u32::from(pair) < Pairs::BITS).then_some(pair)
}

/// Where control can go on behind an instruction.
pub(super) struct WaysOut {
    pub falls_through: bool,
    /// To the label that the instruction names.
    pub jumps: bool,
    /// To a label that it does not name.
    pub anywhere: bool,
    /// And comes back from there.
    pub calls: bool,
}

pub(super) fn ways_out(isa: &Isa, inst: Inst) -> WaysOut {
    let falls_through = isa.is_conditional(inst);
    let can_leave = isa.guard(inst).is_none_or(|(_, n, negated)| n != 7 || !negated);
    let terminator = isa.semantics(inst).terminator;
    WaysOut {
        falls_through: falls_through || matches!(terminator, Terminator::None | Terminator::Call),
        jumps: matches!(terminator, Terminator::Call | Terminator::Branch) && can_leave,
        anywhere: terminator == Terminator::BranchIndirect && can_leave,
        calls: terminator == Terminator::Call && can_leave,
    }
}
