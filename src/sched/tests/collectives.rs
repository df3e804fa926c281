//! Collectives: lanes of several places meet, and the body of one place runs for all of them.

mod common;

use ir::Kernel;
use isa::{Control, Isa, Target};
use sass2mlir_sched::{Finding, Hazard, Model, assign, check, repair, schedule};

const TARGET: Target = Target::Sm90;

fn isa() -> &'static Isa {
    Isa::for_target(TARGET).expect("the target is embedded")
}

fn model() -> &'static Model {
    Model::of(TARGET)
}

fn kernel(listing: &str) -> Kernel {
    common::kernel_for(TARGET, listing)
}

fn found(listing: &str) -> Vec<Finding> {
    check(isa(), model(), &kernel(listing)).findings
}

/// Two places with the same body; each reads what that leaves.
fn places(ends: [&str; 2], readers: [&str; 2]) -> String {
    format!(
        "[B------:R-:W-:-:S07] MOV R2, 0xffffffff
         [B------:R-:W-:-:S05] @P1 BRA 0x80
         [B------:R-:W-:-:S11] MOV R11, R8
         [B------:R-:W-:-:S05] WARPSYNC.COLLECTIVE R2, 0x60
         [B------:R0:W1:-:S02] SHFL.IDX P0, R0, R11, R3, R4
         [{}:R-:W-:-:S11] ENDCOLLECTIVE
         [{}:R-:W-:-:S05] IADD3 R5, R0, R0, RZ
         [B------:R-:W-:-:S05] EXIT
         [B------:R-:W-:-:S11] MOV R11, R9
         [B------:R-:W-:-:S05] WARPSYNC.COLLECTIVE R2, 0xc0
         [B------:R2:W3:-:S02] SHFL.IDX P0, R0, R11, R3, R4
         [{}:R-:W-:-:S11] ENDCOLLECTIVE
         [{}:R-:W-:-:S05] IADD3 R6, R0, R0, RZ
         [B------:R-:W-:-:S05] EXIT",
        ends[0], readers[0], ends[1], readers[1]
    )
}

#[test]
fn what_a_collective_leaves_is_left_behind_all_that_meet() {
    let (first, second, none) = ("B01----", "B--23--", "B------");
    assert_eq!(found(&places([first, second], [none, none])), []);
    // Who waits only for what the collective of its own place signals has not waited for what the other one did.
    let wrong = found(&places([none, none], [first, second]));
    let errors: Vec<_> = wrong.iter().map(|f| (f.hazard, f.earlier, f.at)).collect();
    assert_eq!(
        errors,
        [
            (Hazard::NotAwaited, Some(0xa0), 0x60),
            (Hazard::NotAwaited, Some(0x40), 0xc0)
        ]
    );
    let repaired = repair(isa(), model(), &kernel(&places([none, none], [first, second])));
    assert!(repaired.is_ok(), "{:?}", repaired.err());
}

#[test]
fn a_body_of_other_registers_is_not_met() {
    let other = places(["B------", "B------"], ["B01----", "B--23--"]);
    let other = other.replacen("SHFL.IDX P0, R0, R11, R3, R4", "SHFL.IDX P0, R0, R11, R4, R4", 1);
    assert_eq!(found(&other), []);
}

#[test]
fn what_a_body_reads_is_there_at_every_place() {
    let early =
        places(["B01----", "B--23--"], ["B------", "B------"]).replacen("S11] MOV R11, R8", "S01] MOV R11, R8", 1);
    let early = early.replacen("S05] WARPSYNC", "S01] WARPSYNC", 1);
    let errors: Vec<_> = found(&early).iter().map(|f| (f.hazard, f.earlier, f.at)).collect();
    assert_eq!(
        errors,
        [(Hazard::Stall, Some(0x20), 0x40), (Hazard::Stall, Some(0x20), 0xa0)]
    );
    let repaired = repair(isa(), model(), &kernel(&early)).unwrap_or_else(|e| panic!("{e}"));
    assert!(
        repaired.changed.iter().all(|at| [2, 3].contains(at)),
        "{:?}",
        repaired.changed
    );
}

#[test]
fn with_new_bits_all_is_there_where_a_collective_ends() {
    let kernel = kernel(&places(["B01----", "B--23--"], ["B------", "B------"]));
    for words in [
        assign(isa(), model(), &kernel).expect("nothing is unknown"),
        schedule(isa(), model(), &kernel, &|_| true)
            .expect("nothing is unknown")
            .words,
    ] {
        let controls: Vec<Control> = words.iter().map(|w| Control::of(*w)).collect();
        for body in [4, 10] {
            let told = controls[body].write_barrier.expect("it is told of");
            assert_eq!(controls[body + 1].wait >> told & 1, 1, "{controls:?}");
        }
    }
}
