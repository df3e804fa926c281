//! Scheduling bits after a rewrite: no edit may bring a hazard that was not there.

use ir::{Kernel, Source};
use isa::control::{MASK, REUSE_MASK};
use isa::{Control, Isa};
use sched::{Finding, Model, Report};

use crate::mask::{AllowedBits, WORD, mask_verify};

/// A kernel, and what the hazard rules see of it: read once, for all that ask.
pub(crate) struct Timed {
    pub kernel: Kernel,
    pub code: sched::code::Code,
}

impl Timed {
    pub fn lift(isa: &'static Isa, source: &Source<'_>) -> Result<Timed, String> {
        let kernel = ir::lift(isa, source).map_err(|e| e.to_string())?;
        Ok(Timed::of(isa, kernel))
    }

    /// Of a kernel as it was lifted.
    pub fn of(isa: &'static Isa, kernel: Kernel) -> Timed {
        let code = sched::code::Code::new(isa, Model::of(kernel.target).classes(), &kernel);
        Timed { kernel, code }
    }
}

/// The code with the instructions at `offsets`, which are others than they were, waited for one cycle less: who reads the result of another kind
/// of instruction may wait less long. Where he may not, repairing puts the cycle back.
fn eager(code: &sched::code::Code, offsets: impl Iterator<Item = u64>, allowed: &mut AllowedBits) -> sched::code::Code {
    let mut code = code.clone();
    for offset in offsets {
        let at = offset as usize / WORD;
        let Some(control) = code.steps.get(at).map(|step| step.control) else {
            continue;
        };
        let sooner = Control {
            stall: control.stall.saturating_sub(1),
            ..control
        };
        if sooner.stall > 0 && code.set_control(at as u32, sooner) {
            allowed.allow(offset, MASK);
        }
    }
    code
}

/// Holds `new` code of a kernel, `after`, against the kernel `before` that it was made from, and changes as few scheduling bits as the edits make
/// necessary: in `after` and, if that is any, in the code that it gives. `now`: the byte offset of what was at one; `replaced`: byte offsets of
/// instructions that are others than they were. The error says why the kernel is to stay as it was.
pub(crate) fn repair(
    model: &Model,
    before: &Timed,
    after: &mut Timed,
    new: &[u8],
    now: &dyn Fn(u64) -> Option<u64>,
    replaced: impl Iterator<Item = u64>,
) -> Result<Option<Repaired>, String> {
    if sched::code::same_timing(&before.code, &after.code) {
        return Ok(None);
    }
    if before.code.is_unscheduled() {
        return match after.code.is_unscheduled() {
            true => Ok(None),
            false => Err(
                "it was compiled for a debugger and has no scheduling bits, so that nothing can be told of the edits"
                    .into(),
            ),
        };
    }
    let report = sched::check_code(model, &before.code);
    if let Some(error) = report.errors().next() {
        return Err(format!(
            "by the latency model it has a hazard as it is, so that nothing can be told of the edits: {error}"
        ));
    }
    let known = known(report, now);
    let mut allowed = AllowedBits::default();
    let eager = eager(&after.code, replaced, &mut allowed);
    let repaired = match free_of_hazards(model, eager, &known) {
        Ok(repaired) => repaired,
        Err(_) => {
            allowed = AllowedBits::default();
            free_of_hazards(model, after.code.clone(), &known)?
        }
    };
    for at in &repaired.changed {
        allowed.allow(u64::from(*at) * WORD as u64, MASK | REUSE_MASK);
    }
    let mut code = new.to_vec();
    for (bytes, step) in code.chunks_exact_mut(WORD).zip(&repaired.code.steps) {
        bytes.copy_from_slice(&step.word.0.to_le_bytes());
    }
    let changed = mask_verify(new, &code, &allowed).map_err(|e| e.to_string())?;
    after.code = repaired.code;
    Ok((changed > 0).then_some((code, changed)))
}

/// Findings where they are by now.
fn known(report: Report, now: &dyn Fn(u64) -> Option<u64>) -> Vec<Finding> {
    let placed = |f: Finding| {
        Some(Finding {
            at: now(f.at)?,
            earlier: f.earlier.and_then(now),
            ..f
        })
    };
    report.findings.into_iter().filter_map(placed).collect()
}

/// The first hazard of new code that the old code did not have. `now` tells where an instruction went.
pub(crate) fn added(model: &Model, old: &Timed, new: &Timed, now: &dyn Fn(u64) -> Option<u64>) -> Option<String> {
    if sched::code::same_timing(&old.code, &new.code) {
        return None;
    }
    let known = known(sched::check_code(model, &old.code), now);
    let report = sched::check_code(model, &new.code);
    report.errors().find(|f| !is_old(&known, f)).map(ToString::to_string)
}

/// Code whose scheduling bits were put right, and how many words that changed.
pub(crate) type Repaired = (Vec<u8>, usize);

/// `code` with the fewest other scheduling bits with which nothing is found that is not known.
fn free_of_hazards(model: &Model, code: sched::code::Code, known: &[Finding]) -> Result<sched::Repaired, String> {
    let repaired = sched::repair_code(model, code).map_err(|e| format!("the edits make a hazard: {e}"))?;
    match repaired.unknown.iter().find(|f| !is_old(known, f)) {
        Some(left) => Err(format!("the edits make a hazard that could not be repaired: {left}")),
        None => Ok(repaired),
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

    /// The code that [`super::repair`] gives for `new` in place of `old`.
    fn repair(old: &[u8], new: &[u8], replaced: &[u64]) -> Result<Option<Repaired>, String> {
        let lift = |code| Timed::lift(isa(), &Source::new("k", Target::Sm87, code)).expect("it lifts");
        let replaced = replaced.iter().copied();
        super::repair(
            Model::of(Target::Sm87),
            &lift(old),
            &mut lift(new),
            new,
            &Some,
            replaced,
        )
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
        let repaired = repair(&old, &reads(sum, 5), &[0]);
        assert_eq!(repaired, Ok(Some((reads(sum, 4), 1))));
        // There and back: the cycle is put back.
        let old = reads(sum, 4);
        let repaired = repair(&old, &reads(product, 4), &[0]);
        assert_eq!(repaired, Ok(Some((reads(product, 5), 1))));
    }

    #[test]
    fn a_hazard_that_edits_make_is_repaired() {
        let old = two(1, "@!P0");
        assert_eq!(repair(&old, &two(1, "@P0"), &[]), Ok(Some((two(4, "@P0"), 1))));
        // What makes none stays as the edits left it.
        assert_eq!(repair(&old, &two(4, "@P0"), &[]), Ok(None));
        assert_eq!(repair(&old, &old, &[]), Ok(None));
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
        let edited = |new: &[u8]| repair(&old, new, &[]);
        assert_eq!(edited(&bare("LDS R0, [R2]", 0)), Ok(None));
        let why = edited(&bare("LDS R0, [R1]", 5)).err();
        assert!(why.is_some_and(|w| w.contains("compiled for a debugger")));
    }

    #[test]
    fn a_kernel_with_hazards_is_left_alone() {
        let old = two(1, "@P0");
        let why = repair(&old, &two(1, "@!P0"), &[]).err();
        assert_eq!(
            why,
            Some(format!(
                "by the latency model it has a hazard as it is, so that nothing can be told of the edits: {}",
                "0x0020: stall: RAW on R0, behind 0x0010: 4 cycles required, 1 found (Mesa NAK)"
            ))
        );
    }
}
