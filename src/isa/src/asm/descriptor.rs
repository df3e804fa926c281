//! Which uniform register pair holds the memory descriptor, for accesses whose text does not show it (sm_80 to sm_89).
//!
//! Compilers load the descriptor from one place of constant bank 0 and name it in every access. Where the code before an access leaves it
//! in one pair only, on every way that leads there, that is the pair; in vendor code for sm_86 and sm_87 (184,223 accesses) it always was.

use crate::{Inst, Isa, RegFile, Terminator, Word};

/// Pairs that hold the descriptor: a bit for the first register of each.
type Pairs = u64;

/// For each instruction of a section, the one pair that holds the descriptor when it is reached.
pub(super) fn pairs(isa: &Isa, insts: &[Inst]) -> Vec<Option<u8>> {
    let Some(offset) = isa.target().descriptor_offset() else {
        return vec![None; insts.len()];
    };
    let mut before: Vec<Option<Pairs>> = vec![None; insts.len()];
    let mut todo = vec![(0usize, 0)];
    while let Some((at, pairs)) = todo.pop() {
        let Some(slot) = before.get_mut(at) else { continue };
        let met = slot.map_or(pairs, |known| known & pairs);
        if *slot == Some(met) {
            continue;
        }
        *slot = Some(met);
        let after = step(isa, insts[at], offset, met);
        let pc = (at * Word::BYTES) as u64;
        let (falls_through, jumps) = ways_out(isa, insts[at]);
        if falls_through {
            todo.push((at + 1, after));
        }
        if let Some(target) = isa.branch_target(insts[at], pc).filter(|_| jumps) {
            todo.push((target as usize / Word::BYTES, after));
        }
    }
    let only = |pairs: Pairs| (pairs.count_ones() == 1).then(|| pairs.trailing_zeros() as u8);
    before.into_iter().map(|pairs| pairs.and_then(only)).collect()
}

/// The pairs after an instruction.
fn step(isa: &Isa, inst: Inst, offset: i64, mut pairs: Pairs) -> Pairs {
    for a in isa
        .accesses(inst)
        .filter(|a| a.file == RegFile::UR && a.dir.writes() && !a.is_zero)
    {
        let first = u32::from(a.reg).saturating_sub(1);
        for register in first..(u32::from(a.reg) + u32::from(a.width)).min(Pairs::BITS) {
            pairs &= !(1 << register);
        }
    }
    match loaded(isa, inst, offset) {
        Some(pair) if pair < 64 => pairs | 1 << pair,
        _ => pairs,
    }
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
    here.then(|| field("0.UR0").map(|n| n as u8))?
}

/// Whether control can go on to the next instruction, and to the label that the instruction names.
fn ways_out(isa: &Isa, inst: Inst) -> (bool, bool) {
    let falls = isa.is_conditional(inst);
    let never = isa.guard(inst).is_some_and(|(_, n, negated)| n == 7 && negated);
    match isa.semantics(inst).terminator {
        Terminator::None => (true, false),
        Terminator::Call => (true, true),
        Terminator::Branch => (falls, !never),
        _ => (falls, false),
    }
}
