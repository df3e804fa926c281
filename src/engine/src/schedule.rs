//! Scheduling bits after a rewrite: no edit may bring a hazard that was not there.

use ir::{Kernel, Source};
use isa::control::{MASK, REUSE_MASK};
use isa::{Isa, Word};
use sched::{Finding, Model};

use crate::mask::{AllowedBits, WORD, mask_verify};

/// Code whose scheduling bits were put right, and how many words that changed.
pub(crate) type Repaired = (Vec<u8>, usize);

/// Holds `new` code against the kernel that it was made from, and changes as few scheduling bits as the edits make necessary; `None` if that
/// is none. The error says why the kernel is to stay as it was.
pub(crate) fn repair(isa: &'static Isa, old: &Source<'_>, new: &[u8]) -> Result<Option<Repaired>, String> {
    let lift = |source: &Source<'_>| ir::lift(isa, source).map_err(|e| e.to_string());
    let rewritten = Source {
        code: new,
        ..old.clone()
    };
    let (before, after) = (lift(old)?, lift(&rewritten)?);
    if sched::code::same_timing(isa, &before, &after) {
        return Ok(None);
    }
    let model = Model::new(old.target).map_err(|e| {
        format!("the edits change what depends on what, or how long instructions take, and there is {e}")
    })?;
    let report = sched::check(isa, &model, &before);
    if let Some(error) = report.errors().next() {
        return Err(format!(
            "by the latency model it has a hazard as it is, so that nothing can be told of the edits: {error}"
        ));
    }
    let known = report.findings;
    let added = |kernel: &Kernel| {
        sched::check(isa, &model, kernel)
            .findings
            .into_iter()
            .find(|f| !is_old(&known, f))
    };
    if added(&after).is_none() {
        return Ok(None);
    }
    let repaired = sched::repair(isa, &model, &after).map_err(|e| format!("the edits make a hazard: {e}"))?;
    let mut code = new.to_vec();
    let mut allowed = AllowedBits::default();
    for &at in &repaired.changed {
        let offset = at as usize * WORD;
        let Word(word) = repaired.words[at as usize];
        code[offset..offset + WORD].copy_from_slice(&word.to_le_bytes());
        allowed.allow(offset as u64, MASK | REUSE_MASK);
    }
    let changed = mask_verify(new, &code, &allowed).map_err(|e| e.to_string())?;
    let lifted = lift(&Source {
        code: &code,
        ..old.clone()
    })?;
    match added(&lifted) {
        Some(left) => Err(format!("the edits make a hazard that could not be repaired: {left}")),
        None => Ok(Some((code, changed))),
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

    #[test]
    fn a_hazard_that_edits_make_is_repaired() {
        let old = two(1, "@!P0");
        let source = Source::new("k", Target::Sm87, &old);
        assert_eq!(repair(isa(), &source, &two(1, "@P0")), Ok(Some((two(4, "@P0"), 1))));
        // What makes none stays as the edits left it.
        assert_eq!(repair(isa(), &source, &two(4, "@P0")), Ok(None));
        assert_eq!(repair(isa(), &source, &old), Ok(None));
    }

    #[test]
    fn without_a_model_only_what_takes_as_long_may_change() {
        let old = two(1, "@!P0");
        let source = Source::new("k", Target::Sm90, &old);
        let isa = Isa::for_target(Target::Sm90).expect("the target is embedded");
        assert_eq!(repair(isa, &source, &old), Ok(None));
        let why = repair(isa, &source, &two(1, "@P0")).expect_err("no model");
        assert!(why.contains("no latency model for sm_90"), "{why}");
    }

    #[test]
    fn a_kernel_with_hazards_is_left_alone() {
        let old = two(1, "@P0");
        let source = Source::new("k", Target::Sm87, &old);
        let why = repair(isa(), &source, &two(1, "@!P0")).err();
        assert_eq!(
            why,
            Some(format!(
                "by the latency model it has a hazard as it is, so that nothing can be told of the edits: {}",
                "0x0020: stall: RAW on R0, behind 0x0010: 4 cycles required, 1 found (Mesa NAK)"
            ))
        );
    }
}
