//! Small kernels with a hazard each: what repair changes, and what it leaves alone.

mod common;

use common::{isa, kernel};
use ir::Source;
use isa::{Control, Target};
use sass2mlir_sched::{Model, check, repair};

/// The scheduling columns after the repair, and which instructions changed.
fn repaired(listing: &str) -> (Vec<String>, Vec<u32>) {
    let model = Model::of(Target::Sm87);
    let kernel = kernel(listing);
    let done = repair(isa(), model, &kernel).unwrap_or_else(|e| panic!("{listing}\n{e}"));
    let words = done.code.words();
    let code: Vec<u8> = words.iter().flat_map(|w| w.0.to_le_bytes()).collect();
    let again = ir::lift(isa(), &Source::new("k", Target::Sm87, &code)).expect("whole words");
    let left = check(isa(), model, &again).findings;
    assert!(left.is_empty(), "{listing}\n{left:?}");
    let columns = words.iter().map(|w| Control::of(*w).to_string());
    (columns.collect(), done.changed)
}

#[test]
fn what_is_right_stays() {
    let (_, changed) = repaired(
        "[B------:R-:W-:-:S04] IADD3 R0, R1, R2, R3
         [B------:R-:W-:-:S01] LOP3.LUT R4, R0, R5, RZ, 0xc0, !PT
         [B------:R-:W-:-:S05] EXIT",
    );
    assert_eq!(changed, []);
}

#[test]
fn a_stall_is_raised_to_what_is_required() {
    let (columns, changed) = repaired(
        "[B------:R-:W-:-:S01] IADD3 R0, R1, R2, R3
         [B------:R-:W-:-:S01] IADD3 R6, R7, R8, R9
         [B------:R-:W-:-:S01] LOP3.LUT R4, R0, R5, RZ, 0xc0, !PT
         [B------:R-:W-:-:S01] LOP3.LUT R5, R6, R0, RZ, 0xc0, !PT
         [B------:R-:W-:-:S05] EXIT",
    );
    // Four cycles between the first and its reader; the second's comes one later and has its four by then.
    assert_eq!(changed, [1]);
    assert_eq!(columns[1], "B------:R-:W-:-:S03");
}

#[test]
fn beyond_11_cycles_the_warp_is_let_go() {
    let (columns, changed) = repaired(
        "[B------:R-:W-:-:S01] ISETP.NE.AND P0, PT, R0, RZ, PT
         [B------:R-:W-:-:S01] @P0 MOV R4, R5
         [B------:R-:W-:-:S05] EXIT",
    );
    assert_eq!((columns[0].as_str(), changed), ("B------:R-:W-:Y:S13", vec![0]));
}

#[test]
fn a_scoreboard_is_waited_for() {
    let (columns, changed) = repaired(
        "[B------:R-:W3:-:S01] LDS R0, [R1]
         [B------:R-:W-:-:S01] IADD3 R6, R7, R8, R9
         [B------:R-:W-:-:S01] IADD3 R2, R0, R3, R4
         [B------:R-:W-:-:S05] EXIT",
    );
    assert_eq!((columns[2].as_str(), changed), ("B---3--:R-:W-:-:S01", vec![2]));
}

#[test]
fn who_has_no_scoreboard_gets_one_that_delays_nobody() {
    let (columns, changed) = repaired(
        "[B------:R-:W0:-:S02] LDS R10, [R1]
         [B------:R-:W-:-:S01] LDG.E R0, [R8.64] <2.UR0=UR4>
         [B0-----:R-:W-:-:S05] IADD3 R6, R10, R8, R9
         [B------:R-:W-:-:S01] IADD3 R2, R0, R3, R4
         [B------:R-:W-:-:S05] EXIT",
    );
    assert_eq!(changed, [1, 3]);
    assert!(!columns[1].contains("W0") && !columns[1].contains("W-"), "{columns:?}");
}

#[test]
fn an_operand_that_is_read_late_is_not_overwritten() {
    let (columns, changed) = repaired(
        "[B------:R-:W-:-:S02] STG.E [R8.64], R0 <0.UR0=UR4>
         [B------:R-:W-:-:S01] IADD3 R0, R1, R2, R3
         [B------:R-:W-:-:S05] EXIT",
    );
    assert_eq!(changed, [0, 1]);
    assert!(
        !columns[0].contains(":R-:") && columns[0].contains(":W-:"),
        "{columns:?}"
    );
}

#[test]
fn each_way_into_a_block_gets_its_own_cycles() {
    let (columns, changed) = repaired(
        "[B------:R-:W-:-:S05] @P0 BRA 0x30
         [B------:R-:W-:-:S01] IADD3 R0, R1, R2, R3
         [B------:R-:W-:-:S01] IADD3 R6, R1, R2, R3
         [B------:R-:W-:-:S01] IADD3 R4, R0, R2, R3
         [B------:R-:W-:-:S05] EXIT",
    );
    assert_eq!((columns[2].as_str(), changed), ("B------:R-:W-:-:S03", vec![2]));
}

#[test]
fn a_flag_on_a_register_that_changes_is_cleared() {
    let (_, changed) = repaired(
        "[B------:R-:W-:-:S04] IADD3 R0, R0.reuse, R2, R3
         [B------:R-:W-:-:S04] IADD3 R4, R0, R2, R3
         [B------:R-:W-:-:S05] EXIT",
    );
    assert_eq!(changed, [0]);
}
