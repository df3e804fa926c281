//! Scheduling bits after a rewrite: no edit may bring a hazard that was not there.

use ir::{Kernel, Source};
use isa::control::{MASK, REUSE_MASK};
use isa::{Control, Isa, Word};
use sched::{Finding, Hazard, Model, Report};

use crate::mask::{AllowedBits, WORD, mask_verify};

/// Code whose scheduling bits were put right, and how many words that changed.
pub(crate) type Repaired = (Vec<u8>, usize);

/// The code with the instructions at `offsets`, which are others than they were, waited for one cycle less: who reads the result of another kind
/// of instruction may wait less long. Where he may not, repairing puts the cycle back.
fn eager(isa: &Isa, new: &[u8], offsets: impl Iterator<Item = u64>, allowed: &mut AllowedBits) -> Vec<u8> {
    let mut code = new.to_vec();
    for offset in offsets {
        let at = offset as usize;
        let Some(word) = code.get(at..at + WORD).and_then(|bytes| Word::all(bytes).next()) else {
            continue;
        };
        let control = Control::of(word);
        let sooner = Control {
            stall: control.stall.saturating_sub(1),
            ..control
        };
        let made = sooner.apply(word);
        if sooner.stall > 0 && isa.decode(made).form == isa.decode(word).form {
            code[at..at + WORD].copy_from_slice(&made.0.to_le_bytes());
            allowed.allow(offset, MASK);
        }
    }
    code
}

/// Holds `new` code against the kernel that it was made from, and changes as few scheduling bits as the edits make necessary; `None` if that
/// is none. `replaced`: byte offsets of instructions that are others than they were. The error says why the kernel is to stay as it was.
pub(crate) fn repair(
    isa: &'static Isa,
    old: &Source<'_>,
    new: &[u8],
    replaced: impl Iterator<Item = u64>,
) -> Result<Option<Repaired>, String> {
    let placed = Source {
        code: new,
        ..old.clone()
    };
    repair_placed(isa, old, &placed, &Some, replaced)
}

/// [`repair`] of code whose instructions have other places: `new` is what the file says of it there, and `now` the byte offset of what was at
/// one.
pub(crate) fn repair_placed(
    isa: &'static Isa,
    old: &Source<'_>,
    new: &Source<'_>,
    now: &dyn Fn(u64) -> Option<u64>,
    replaced: impl Iterator<Item = u64>,
) -> Result<Option<Repaired>, String> {
    let before = ir::lift(isa, old).map_err(|e| e.to_string())?;
    let mut repairing = Repairing {
        isa,
        source: new,
        new: new.code,
        replaced: AllowedBits::default(),
        known: Vec::new(),
    };
    let after = repairing.lift(new.code)?;
    if sched::code::same_timing(isa, &before, &after) {
        return Ok(None);
    }
    let model = Model::of(old.target);
    let report = sched::check(isa, model, &before);
    if let Some(error) = report.errors().next() {
        return Err(format!(
            "by the latency model it has a hazard as it is, so that nothing can be told of the edits: {error}"
        ));
    }
    let bare = |r: &Report| r.findings.iter().any(|f| f.hazard == Hazard::Unscheduled);
    if bare(&report) {
        return match bare(&sched::check(isa, model, &after)) {
            true => Ok(None),
            false => Err(
                "it was compiled for a debugger and has no scheduling bits, so that nothing can be told of the edits"
                    .into(),
            ),
        };
    }
    let placed = |f: Finding| {
        Some(Finding {
            at: now(f.at)?,
            earlier: f.earlier.and_then(now),
            ..f
        })
    };
    repairing.known = report.findings.into_iter().filter_map(placed).collect();
    let eager = eager(isa, new.code, replaced, &mut repairing.replaced);
    if eager != new.code
        && let Ok(sooner) = repairing.free_of_hazards(model, &eager)
    {
        return Ok(Some(sooner));
    }
    match repairing.added(model, &after) {
        None => Ok(None),
        Some(_) => repairing.free_of_hazards(model, new.code).map(Some),
    }
}

/// A kernel whose scheduling bits are put right.
struct Repairing<'a> {
    isa: &'static Isa,
    /// What the file says of the new code.
    source: &'a Source<'a>,
    new: &'a [u8],
    /// Where scheduling bits may change beside what is repaired.
    replaced: AllowedBits,
    /// What the checker found before.
    known: Vec<Finding>,
}

impl Repairing<'_> {
    fn lift(&self, code: &[u8]) -> Result<Kernel, String> {
        let source = Source {
            code,
            ..self.source.clone()
        };
        ir::lift(self.isa, &source).map_err(|e| e.to_string())
    }

    /// A finding that was not there before.
    fn added(&self, model: &Model, kernel: &Kernel) -> Option<Finding> {
        let findings = sched::check(self.isa, model, kernel).findings;
        findings.into_iter().find(|f| !is_old(&self.known, f))
    }

    /// `start` with the fewest other scheduling bits with which nothing is found that was not there before.
    fn free_of_hazards(&self, model: &Model, start: &[u8]) -> Result<Repaired, String> {
        let after = self.lift(start)?;
        let mut allowed = self.replaced.clone();
        let mut code = start.to_vec();
        if self.added(model, &after).is_some() {
            let repaired =
                sched::repair(self.isa, model, &after).map_err(|e| format!("the edits make a hazard: {e}"))?;
            for &at in &repaired.changed {
                let offset = at as usize * WORD;
                let Word(word) = repaired.words[at as usize];
                code[offset..offset + WORD].copy_from_slice(&word.to_le_bytes());
                allowed.allow(offset as u64, MASK | REUSE_MASK);
            }
            if let Some(left) = self.added(model, &self.lift(&code)?) {
                return Err(format!("the edits make a hazard that could not be repaired: {left}"));
            }
        }
        let changed = mask_verify(self.new, &code, &allowed).map_err(|e| e.to_string())?;
        Ok((code, changed))
    }
}

/// Whether a finding was there before.
fn is_old(known: &[Finding], f: &Finding) -> bool {
    known
        .iter()
        .any(|k| (k.hazard, k.kind, k.earlier, k.at) == (f.hazard, f.kind, f.earlier, f.at))
}

#[cfg(test)]
mod tests {
    use isa::Target;
    use isa::asm::Assembler;

    use super::*;

    fn isa() -> &'static Isa {
        Isa::for_target(Target::Sm87).expect("the target is embedded")
    }

    fn code(listing: &str) -> Vec<u8> {
        let sections = Assembler::new(isa()).listing(listing, None).expect("instructions");
        sections[0].words.iter().flat_map(|w| w.to_le_bytes()).collect()
    }

    /// One of two instructions executes, or both: then the second must wait for the first.
    fn two(stall: u8, guard: &str) -> Vec<u8> {
        code(&format!(
            "[B------:R-:W-:Y:S13] ISETP.NE.AND P0, PT, R3, RZ, PT
             [B------:R-:W-:-:S{stall:02}] @P0 IADD3 R0, R1, R2, R3
             [B------:R-:W-:-:S01] {guard} IADD3 R4, R0, R2, R3
             [B------:R-:W-:-:S05] EXIT"
        ))
    }

    fn none() -> std::iter::Empty<u64> {
        std::iter::empty()
    }

    #[test]
    fn what_replaces_another_instruction_is_waited_for_as_long_as_it_takes() {
        // The product takes 5 cycles until an integer instruction may read it, the sum that replaces it 4.
        let reads = |by: &str, stall: u8| {
            code(&format!(
                "[B------:R-:W-:-:S{stall:02}] {by}
                 [B------:R-:W-:-:S04] LOP3.LUT R4, R0, R1, RZ, 0xc0, !PT
                 [B------:R-:W-:-:S05] EXIT"
            ))
        };
        let (product, sum) = ("IMAD.IADD R0, R1, 0x1, R2", "IADD3 R0, R1, R2, RZ");
        let old = reads(product, 5);
        let source = Source::new("k", Target::Sm87, &old);
        let repaired = repair(isa(), &source, &reads(sum, 5), [0].into_iter());
        assert_eq!(repaired, Ok(Some((reads(sum, 4), 1))));
        // There and back: the cycle is put back.
        let old = reads(sum, 4);
        let source = Source::new("k", Target::Sm87, &old);
        let repaired = repair(isa(), &source, &reads(product, 4), [0].into_iter());
        assert_eq!(repaired, Ok(Some((reads(product, 5), 1))));
    }

    #[test]
    fn a_hazard_that_edits_make_is_repaired() {
        let old = two(1, "@!P0");
        let source = Source::new("k", Target::Sm87, &old);
        assert_eq!(
            repair(isa(), &source, &two(1, "@P0"), none()),
            Ok(Some((two(4, "@P0"), 1)))
        );
        // What makes none stays as the edits left it.
        assert_eq!(repair(isa(), &source, &two(4, "@P0"), none()), Ok(None));
        assert_eq!(repair(isa(), &source, &old, none()), Ok(None));
    }

    #[test]
    fn code_for_a_debugger_gets_no_scheduling_bits() {
        let bare = |by: &str, stall: u8| {
            code(&format!(
                "[B------:R-:W-:Y:S00] {by}
                 [B------:R-:W-:Y:S{stall:02}] EXIT"
            ))
        };
        let old = bare("LDS R0, [R1]", 0);
        let source = Source::new("k", Target::Sm87, &old);
        let edited = |new: &[u8]| repair(isa(), &source, new, none());
        assert_eq!(edited(&bare("LDS R0, [R2]", 0)), Ok(None));
        let why = edited(&bare("LDS R0, [R1]", 5)).err();
        assert!(why.is_some_and(|w| w.contains("compiled for a debugger")));
    }

    #[test]
    fn a_kernel_with_hazards_is_left_alone() {
        let old = two(1, "@P0");
        let source = Source::new("k", Target::Sm87, &old);
        let why = repair(isa(), &source, &two(1, "@!P0"), none()).err();
        assert_eq!(
            why,
            Some(format!(
                "by the latency model it has a hazard as it is, so that nothing can be told of the edits: {}",
                "0x0020: stall: RAW on R0, behind 0x0010: 4 cycles required, 1 found (Mesa NAK)"
            ))
        );
    }
}
