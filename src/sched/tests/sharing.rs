//! Which values may not share a register while the scheduling bits stay as they are.

mod common;

use common::{isa, kernel};
use isa::Target;
use sass2mlir_sched::{Model, conflicts};

/// Registers of the pairs that must be apart: of a result, and of what belongs to an instruction before it.
fn apart(listing: &str) -> Vec<(String, String)> {
    let kernel = kernel(listing);
    let name = |v| kernel.pin(v).to_string();
    let pairs = conflicts(isa(), Model::of(Target::Sm87), &kernel);
    pairs.into_iter().map(|(a, b)| (name(a), name(b))).collect()
}

/// A load whose operands and result nothing tells of until the last instruction but one; before it, `wait` scoreboards are waited for.
fn load(wait: &str) -> String {
    format!(
        "[B------:R0:W1:-:S02] LDS R4, [R2]
         [B{wait}:R-:W-:-:S05] IADD3 R6, R7, R8, RZ
         [B01----:R-:W-:-:S05] STS [R3], R6
         [B------:R-:W-:-:S05] EXIT"
    )
}

#[test]
fn what_is_in_flight_belongs_to_its_instruction() {
    let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
    let found = apart(&load("------"));
    assert!(found.contains(&pair("R6", "R2")), "the address is read late: {found:?}");
    assert!(found.contains(&pair("R6", "R4")), "the result comes late: {found:?}");
    assert_eq!(apart(&load("0-----")), [pair("R6", "R4")]);
    assert_eq!(apart(&load("-1----")), []);
}

#[test]
fn who_issues_late_enough_may_share() {
    let two = |stall| {
        format!(
            "[B------:R-:W-:-:S{stall:02}] IADD3 R4, R1, R2, R3
             [B------:R-:W-:-:S05] IMAD.WIDE R6, R2, R3, RZ
             [B------:R-:W-:-:S05] EXIT"
        )
    };
    // NAK: the lower half of a product is written 2 cycles behind a sum.
    assert!(!apart(&two(1)).is_empty());
    assert_eq!(apart(&two(2)), []);
}
