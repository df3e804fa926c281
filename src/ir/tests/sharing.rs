//! Values that may not share a register though neither is live where the other is defined. Each test fails if the rule for it is taken
//! out of the interference: with 64 seeds some allocation would let them share.

mod common;

use common::assemble;
use isa::{Isa, RegFile, Target};
use sass2mlir_ir::{self as ir, Kernel, Pin, ValueId};

const SEEDS: u64 = 64;

fn lift(code: &[u8], held: &[(u64, Pin)]) -> Kernel {
    lift_for(Target::Sm87, code, held)
}

fn lift_for(target: Target, code: &[u8], held: &[(u64, Pin)]) -> Kernel {
    let isa = Isa::for_target(target).expect("tables");
    let source = ir::Source {
        held: held.to_vec(),
        ..ir::Source::new("k", target, code)
    };
    ir::lift(isa, &source).expect("lifts")
}

/// Two sets of values.
type Two = (Vec<ValueId>, Vec<ValueId>);

/// How many of the allocations put one of both sets into one register.
fn shared(kernel: &Kernel, values: &dyn Fn(&Kernel) -> Two) -> usize {
    let (first, second) = values(kernel);
    assert!(!first.is_empty() && !second.is_empty());
    let share = |seed: &u64| {
        let mut other = kernel.clone();
        let constraints = ir::Constraints::default();
        ir::allocate(&mut other, ir::Allocation::Scrambled(*seed), &constraints).expect("it can be allocated");
        ir::lower(&other).expect("it lowers");
        first
            .iter()
            .any(|a| second.iter().any(|b| other.pin(*a) == other.pin(*b)))
    };
    (0..SEEDS).filter(share).count()
}

/// What the instruction at a byte offset reads in general registers, and writes.
fn at(kernel: &Kernel, offset: u64) -> Two {
    let op = kernel
        .ops()
        .filter(|op| op.kind().is_code())
        .nth(offset as usize / 16)
        .expect("an instruction");
    let general = |v: &ValueId| kernel.pin(*v).file() == RegFile::R && !kernel.pin(*v).is_zero();
    (
        op.operands().iter().copied().filter(general).collect(),
        op.results().collect(),
    )
}

/// An instruction that owns registers at 0x40, one that writes another at 0x60, and a use of that.
fn owner(owner: &str, between: &str, waits: &str) -> Kernel {
    lift(
        &assemble(&format!(
            "[B------:R-:W-:-:S06] MOV R2, c[0x0][0x160]
             [B------:R-:W-:-:S06] MOV R3, c[0x0][0x164]
             [B------:R-:W-:-:S06] MOV R4, c[0x0][0x168]
             [B------:R-:W-:-:S06] MOV R5, c[0x0][0x16c]
             {owner}
             {between}
             [{waits}:R-:W-:Y:S15] MOV R8, 0x1
             [B------:R-:W-:-:S01] STS [RZ], R8
             [B------:R-:W-:Y:S15] EXIT"
        )),
        &[],
    )
}

const STALL: &str = "[B------:R-:W-:Y:S15] NOP";

fn reads_and_later(k: &Kernel) -> Two {
    (at(k, 0x40).0, at(k, 0x60).1)
}

#[test]
fn operands_belong_to_a_store_until_its_read_barrier_is_waited_for() {
    let store = "[B------:R0:W-:-:S02] STG.E [R2.64], R4 <0.UR0=UR4>";
    assert_eq!(shared(&owner(store, STALL, "B------"), &reads_and_later), 0);
    assert!(
        shared(&owner(store, STALL, "B0-----"), &reads_and_later) > 0,
        "nothing is left to chance"
    );
}

#[test]
fn operands_belong_to_a_load_until_its_result_is_there() {
    let load = "[B------:R-:W1:-:S02] LDG.E R6, [R2.64] <2.UR0=UR4>";
    assert_eq!(shared(&owner(load, STALL, "B0-----"), &reads_and_later), 0);
    assert!(shared(&owner(load, STALL, "B-1----"), &reads_and_later) > 0);
}

#[test]
fn without_a_barrier_nothing_tells() {
    for owns in [
        "[B------:R-:W-:-:S02] STG.E [R2.64], R4 <0.UR0=UR4>",
        "[B------:R-:W-:-:S02] RED.E.ADD.STRONG.GPU [R2.64], R4 <0.UR0=UR4>",
        "[B------:R-:W-:-:S02] LDGSTS.E [R4], [R2.64] <1.UR0=UR4>",
    ] {
        assert_eq!(shared(&owner(owns, STALL, "B012345"), &reads_and_later), 0, "{owns}");
    }
}

#[test]
fn operands_leave_a_queue_in_order() {
    let store = "[B------:R-:W-:-:S02] STG.E [R2.64], R4 <0.UR0=UR4>";
    let through_the_same = "[B------:R-:W3:-:S02] LDS R7, [RZ]";
    assert!(shared(&owner(store, through_the_same, "B---3--"), &reads_and_later) > 0);
    let another = "[B------:R-:W3:-:S02] LDC R7, c[0x0][RZ]";
    assert_eq!(shared(&owner(store, another, "B---3--"), &reads_and_later), 0);
}

#[test]
fn a_matrix_product_reads_for_some_cycles() {
    let product = |stall| format!("[B------:R-:W-:-:S{stall:02}] IMMA.8816.S8.S8 R10, R2.ROW, R4.COL, RZ");
    let short = "[B------:R-:W-:-:S01] NOP";
    assert_eq!(shared(&owner(&product(2), short, "B------"), &reads_and_later), 0);
}

#[test]
fn a_result_that_nobody_reads_still_arrives() {
    let results = |k: &Kernel| (at(k, 0x40).1, at(k, 0x60).1);
    let dead = "[B------:R-:W-:-:S01] IADD3 R6, R2, R4, RZ";
    assert_eq!(
        shared(&owner(dead, "[B------:R-:W-:-:S01] NOP", "B------"), &results),
        0
    );
}

/// The lanes of a warp take one path, then the other, and there is one uniform register for all.
#[test]
fn paths_of_a_divergent_region_share_no_uniform_register() {
    let code = |branch: &str| {
        assemble(&format!(
            "[B------:R-:W0:-:S02] S2R R0, SR_TID.X
             [B0-----:R-:W-:Y:S15] ISETP.GT.AND P0, PT, R0, 0x3, PT
             [B------:R-:W-:Y:S15] UISETP.GT.AND UP0, UPT, UR9, 0x3, UPT
             [B------:R-:W-:-:S05] {branch}
             [B------:R-:W-:Y:S15] UMOV UR4, 0x1
             [B------:R-:W-:Y:S15] MOV R2, UR4
             [B------:R-:W-:-:S05] BRA 0x90
             [B------:R-:W-:Y:S15] UMOV UR5, 0x2
             [B------:R-:W-:Y:S15] MOV R2, UR5
             [B------:R-:W-:-:S01] STS [RZ], R2
             [B------:R-:W-:Y:S15] EXIT"
        ))
    };
    let uniform = |k: &Kernel| (at(k, 0x40).1, at(k, 0x70).1);
    assert_eq!(shared(&lift(&code("@P0 BRA 0x70"), &[]), &uniform), 0);
    assert!(
        shared(&lift(&code("BRA.U UP0, 0x70 <filler>"), &[]), &uniform) > 0,
        "all lanes take one path"
    );
}

/// Somebody looks for a value that the code itself does not read.
#[test]
fn a_held_register_keeps_its_value_until_it_is_looked_for() {
    let code = assemble(
        "[B------:R-:W-:-:S06] MOV R7, 0xffff
         [B------:R-:W-:-:S06] MOV R8, 0x1
         [B------:R-:W-:Y:S15] STS [RZ], R8
         [B------:R-:W-:Y:S15] NOP
         [B------:R-:W-:Y:S15] EXIT",
    );
    let mask = |k: &Kernel| (at(k, 0x00).1, at(k, 0x10).1);
    let held = lift(&code, &[(0x30, Pin::new(RegFile::R, 7))]);
    assert_eq!(shared(&held, &mask), 0);
    let [reads, _] = [at(&held, 0x30).0, Vec::new()];
    assert_eq!(reads, at(&held, 0x00).1, "the NOP reads it");
    assert!(ir::same_def_use(&held, &held).is_ok());
    let elsewhere = lift(&code, &[(0x30, Pin::new(RegFile::R, 8))]);
    assert!(
        ir::same_def_use(&held, &elsewhere).is_err(),
        "another value is looked for"
    );
}

/// What unwinds the stack looks for registers by number.
#[test]
fn reserved_registers_stay_and_take_no_other_value() {
    let code = assemble(
        "[B------:R-:W-:-:S06] MOV R1, c[0x0][0x28]
         [B------:R-:W-:-:S06] MOV R8, 0x1
         [B------:R-:W-:-:S06] MOV R9, 0x2
         [B------:R-:W-:Y:S15] IADD3 R8, R8, R9, RZ
         [B------:R-:W-:Y:S15] STS [RZ], R8
         [B------:R-:W-:Y:S15] EXIT",
    );
    let stack = Pin::new(RegFile::R, 1);
    let constraints = ir::Constraints {
        reserved: vec![stack],
        in_flight: None,
    };
    for seed in 0..SEEDS {
        let mut kernel = lift(&code, &[]);
        ir::allocate(&mut kernel, ir::Allocation::Scrambled(seed), &constraints).unwrap();
        let there: Vec<_> = kernel.values().filter(|v| kernel.pin(*v) == stack).collect();
        assert_eq!(there, at(&kernel, 0x00).1, "seed {seed}");
    }
}

/// A warp that has given registers back uses none of those, whichever way it came.
#[test]
fn a_warp_keeps_to_the_registers_that_it_has() {
    let kernel = |given_back: &str| {
        let listing = format!(
            "[B------:R-:W-:-:S06] MOV R40, 0x1
             [B------:R-:W-:-:S06] MOV R3, 0x1
             [B------:R-:W-:-:S06] @P0 BRA 0x50
             {given_back}
             [B------:R-:W-:-:S06] NOP
             [B------:R-:W-:Y:S15] MOV R2, R3
             [B------:R-:W-:-:S01] STS [R2], R3
             [B------:R-:W-:Y:S15] EXIT"
        );
        lift_for(Target::Sm90a, &common::assemble_for(Target::Sm90a, &listing), &[])
    };
    let most = |given_back: &str| {
        let kernel = kernel(given_back);
        let highest = (0..SEEDS).map(|seed| {
            let mut other = kernel.clone();
            let constraints = ir::Constraints::default();
            ir::allocate(&mut other, ir::Allocation::Scrambled(seed), &constraints).expect("it can be allocated");
            ir::lower(&other).expect("it lowers");
            let registers = [0x50, 0x60]
                .map(|offset| at(&other, offset))
                .into_iter()
                .flat_map(|(r, w)| [r, w].concat());
            registers.map(|v| other.pin(v).number()).max().expect("registers")
        });
        highest.max().expect("some seeds")
    };
    let gives_back = "[B------:R-:W-:-:S06] USETMAXREG.DEALLOC.CTAPOOL 0x18";
    assert!(most(gives_back) < 0x18);
    assert!(most("[B------:R-:W-:-:S06] NOP") > 0x18);
    // Code that does not keep to the number is not understood.
    let mut breaks_it = kernel("[B------:R-:W-:-:S06] USETMAXREG.DEALLOC.CTAPOOL 0x2");
    let done = ir::allocate(
        &mut breaks_it,
        ir::Allocation::Scrambled(1),
        &ir::Constraints::default(),
    );
    assert_eq!(done.expect("it can be allocated").kept, [RegFile::R]);
}
