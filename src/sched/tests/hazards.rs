//! Small kernels, one hazard each: what the checker must find, and what it must not.

mod common;

use common::kernel_for;
use ir::Source;
use isa::{Isa, Target};
use sass2mlir_sched::{Finding, Hazard, Model, Source as Origin, check};

/// The findings in sm_87 code, one line an instruction: the scheduling column in brackets, then the text.
fn findings(listing: &str) -> Vec<Finding> {
    findings_on(Target::Sm87, listing)
}

fn findings_on(target: Target, listing: &str) -> Vec<Finding> {
    let isa = Isa::for_target(target).expect("the target is embedded");
    let model = Model::of(target);
    check(isa, model, &kernel_for(target, listing)).findings
}

fn clean(listing: &str) {
    clean_on(Target::Sm87, listing);
}

fn clean_on(target: Target, listing: &str) {
    let found = findings_on(target, listing);
    assert!(found.is_empty(), "{listing}\n{found:?}");
}

/// Exactly one finding: which, between which offsets.
fn one(listing: &str, hazard: Hazard, earlier: Option<u64>, at: u64) -> Finding {
    one_on(Target::Sm87, listing, hazard, earlier, at)
}

fn one_on(target: Target, listing: &str, hazard: Hazard, earlier: Option<u64>, at: u64) -> Finding {
    let found = findings_on(target, listing);
    let [only] = &found[..] else {
        panic!("{listing}\n{found:?}")
    };
    assert_eq!(
        (only.hazard, only.earlier, only.at),
        (hazard, earlier, at),
        "{listing}\n{only}"
    );
    only.clone()
}

#[test]
fn fixed_latency_needs_its_cycles() {
    let code = |stall| {
        format!(
            "[B------:R-:W-:-:S{stall:02}] IADD3 R0, R1, R2, R3
             [B------:R-:W-:-:S01] LOP3.LUT R4, R0, R5, RZ, 0xc0, !PT
             [B------:R-:W-:-:S05] EXIT"
        )
    };
    clean(&code(4));
    let found = one(&code(3), Hazard::Stall, Some(0), 0x10);
    assert_eq!((found.required, found.found), (Some(4), Some(3)));
    assert_eq!(found.register_name(), "R0");
    // A stall of 0 waits for everything of fixed latency; its word has bit 109 clear.
    clean(&code(0).replacen(":-:S00", ":Y:S00", 1));
}

/// The cycles that a product needs before its result is read, and before its first operand is overwritten.
fn of_product(target: Target, product: &str) -> (Option<u16>, Option<u16>) {
    let code = |behind: &str| {
        format!(
            "[B------:R-:W-:-:S01] {product}
             [B------:R-:W-:-:S05] {behind}
             [B------:R-:W-:-:S05] EXIT"
        )
    };
    let required = |behind: &str| findings_on(target, &code(behind)).first().and_then(|f| f.required);
    (required("IADD3 R30, R4, R31, RZ"), required("IADD3 R8, R30, R31, RZ"))
}

#[test]
fn matrix_products_take_longer_the_more_bits_they_multiply() {
    for target in [Target::Sm80, Target::Sm87, Target::Sm89, Target::Sm90] {
        let half = (Some(16), None);
        let whole = (Some(24), Some(7));
        assert_eq!(of_product(target, "HMMA.1688.F32 R4, R8, R12, R4"), half, "{target}");
        assert_eq!(of_product(target, "HMMA.16816.F32 R4, R8, R12, R4"), whole, "{target}");
        assert_eq!(
            of_product(target, "HMMA.1688.F32.TF32 R4, R8, R12, R4"),
            whole,
            "{target}"
        );
        assert_eq!(
            of_product(target, "IMMA.16816.S8.S8 R4, R8.ROW, R12.COL, R4"),
            half,
            "{target}"
        );
        assert_eq!(
            of_product(target, "IMMA.16832.S8.S8 R4, R8.ROW, R12.COL, R4"),
            whole,
            "{target}"
        );
    }
}

#[test]
fn a_barrier_that_is_there_says_nothing_of_the_register_beside_it() {
    let found = findings(
        "[B------:R-:W-:-:S08] BMOV.32 R2, B0
         [B------:R-:W-:-:S01] IADD3 R0, R2, R1, RZ
         [B------:R-:W-:-:S05] EXIT",
    );
    assert_eq!(found.first().map(|f| f.hazard), Some(Hazard::Unknown));
}

#[test]
fn another_pipe_takes_a_cycle_more() {
    let code = |stall| {
        format!(
            "[B------:R-:W-:-:S{stall:02}] IADD3 R0, R1, R2, R3
             [B------:R-:W-:-:S01] FADD R4, R0, R5
             [B------:R-:W-:-:S05] EXIT"
        )
    };
    clean(&code(5));
    one(&code(4), Hazard::Stall, Some(0), 0x10);
}

/// No scoreboard tells of it from sm_90 on; before, one does.
#[test]
fn whether_lanes_agree_is_known_after_13_cycles() {
    let code = |stall| {
        format!(
            "[B------:R-:W-:Y:S{stall:02}] R2UR P1, URZ, R0
             [B------:R-:W-:-:S05] @!P1 BRA.DIV UR7, 0x20
             [B------:R-:W-:-:S05] EXIT"
        )
    };
    for target in [Target::Sm90, Target::Sm90a, Target::Sm100, Target::Sm120] {
        clean_on(target, &code(13));
        let found = findings_on(target, &code(12));
        assert_eq!(
            found.iter().map(|f| f.required).collect::<Vec<_>>(),
            [Some(13)],
            "{target}"
        );
    }
    let found = findings_on(Target::Sm86, &code(13));
    assert_eq!(found[0].hazard, Hazard::NoScoreboard);
}

#[test]
fn a_guard_is_read_late_in_the_pipe() {
    let code = |stall, guard| {
        format!(
            "[B------:R-:W-:Y:S{stall:02}] ISETP.NE.AND P0, PT, R0, RZ, PT
             [B------:R-:W-:-:S01] {guard} MOV R4, R5
             [B------:R-:W-:-:S05] EXIT"
        )
    };
    clean(&code(13, "@P0"));
    one(&code(12, "@P0"), Hazard::Stall, Some(0), 0x10);
    clean(&code(1, "@P1"));
}

#[test]
fn guards_that_exclude_each_other_do_not_meet() {
    let code = |guard| {
        format!(
            "[B------:R-:W-:-:S01] @P0 IADD3 R0, R1, R2, R3
             [B------:R-:W-:-:S01] {guard} IADD3 R4, R0, R2, R3
             [B------:R-:W-:-:S05] EXIT"
        )
    };
    clean(&code("@!P0"));
    one(&code("@P0"), Hazard::Stall, Some(0), 0x10);
    one(&code("@P1"), Hazard::Stall, Some(0), 0x10);
}

#[test]
fn tuples_reach_beyond_the_register_that_is_named() {
    let code = |register| {
        format!(
            "[B------:R-:W-:-:S01] IMAD.WIDE R2, R4, R5, R6
             [B------:R-:W-:-:S01] IADD3 R0, {register}, R8, R9
             [B------:R-:W-:-:S05] EXIT"
        )
    };
    one(&code("R3"), Hazard::Stall, Some(0), 0x10);
    clean(&code("R10"));
}

#[test]
fn a_load_is_awaited() {
    let code = |barrier, wait| {
        format!(
            "[B------:R-:{barrier}:-:S02] LDS R0, [R1]
             [{wait}:R-:W-:-:S01] IADD3 R2, R0, R3, R4
             [B------:R-:W-:-:S05] EXIT"
        )
    };
    clean(&code("W0", "B0-----"));
    let found = one(&code("W0", "B-1----"), Hazard::NotAwaited, Some(0), 0x10);
    assert_eq!(found.scoreboards, 1);
    one(&code("W-", "B0-----"), Hazard::NoScoreboard, Some(0), 0x10);
}

#[test]
fn a_wait_must_not_come_before_the_count_went_up() {
    let code = |stall| {
        format!(
            "[B------:R-:W0:-:S{stall:02}] LDS R0, [R1]
             [B0-----:R-:W-:-:S01] IADD3 R2, R0, R3, R4
             [B------:R-:W-:-:S05] EXIT"
        )
    };
    clean(&code(2));
    one(&code(1), Hazard::EarlyWait, Some(0), 0x10);
    // What waits by its own meaning does so later.
    clean(
        "[B------:R-:W5:-:S01] LDS R0, [R1]
         [B------:R-:W-:Y:S04] DEPBAR.LE SB0, 0x0, {5}
         [B------:R-:W-:-:S01] IADD3 R2, R0, R3, R4
         [B------:R-:W-:-:S05] EXIT",
    );
}

#[test]
fn operands_of_a_store_are_kept_until_they_are_read() {
    let code = |barrier, wait| {
        format!(
            "[B------:{barrier}:W-:-:S02] STS [R1], R0
             [{wait}:R-:W-:-:S01] IADD3 R0, R2, R3, R4
             [B------:R-:W-:-:S05] EXIT"
        )
    };
    clean(&code("R2", "B--2---"));
    one(&code("R2", "B------"), Hazard::NotAwaited, Some(0), 0x10);
    one(&code("R-", "B------"), Hazard::NoScoreboard, Some(0), 0x10);
}

#[test]
fn a_queue_tells_of_all_that_went_in_before() {
    // The second load's scoreboard covers the first load, and the store's operands.
    clean(
        "[B------:R-:W-:-:S02] STS [R1], R0
         [B------:R-:W-:-:S02] LDS R5, [R6]
         [B------:R-:W0:-:S02] LDS R7, [R8]
         [B0-----:R-:W-:-:S04] IADD3 R0, R5, R7, R4
         [B------:R-:W-:-:S05] EXIT",
    );
    // Global loads come back in any order.
    one(
        "[B------:R-:W-:-:S02] LDG.E R5, [R6.64] <2.UR0=UR4>
         [B------:R-:W0:-:S02] LDG.E R7, [R8.64] <2.UR0=UR4>
         [B0-----:R-:W-:-:S04] IADD3 R0, R5, R7, R4
         [B------:R-:W-:-:S05] EXIT",
        Hazard::NoScoreboard,
        Some(0),
        0x20,
    );
}

#[test]
fn shared_memory_answers_in_order_whoever_asks() {
    for (first, second) in [
        ("LDS R5, [R6]", "MOVM.16.MT88 R7, R8"),
        ("MOVM.16.MT88 R5, R6", "LDS R7, [R8]"),
    ] {
        clean(&format!(
            "[B------:R-:W-:-:S02] {first}
             [B------:R-:W0:-:S02] {second}
             [B0-----:R-:W-:-:S04] IADD3 R0, R5, R7, R4
             [B------:R-:W-:-:S05] EXIT"
        ));
    }
    // Whether addresses are of some memory is told in order too, not whatever else is asked.
    let queries = |second| {
        format!(
            "[B------:R-:W-:-:S02] QSPC.E.S P0, RZ, [R6]
             [B------:R-:W0:-:S02] {second}
             [B0-----:R-:W-:-:S02] SEL R0, RZ, 0x1, !P0
             [B------:R-:W-:-:S05] EXIT"
        )
    };
    clean(&queries("QSPC.E.S P1, RZ, [R8]"));
    one(&queries("LDS R7, [R8]"), Hazard::NoScoreboard, Some(0), 0x20);
}

#[test]
fn bulk_copies_read_their_operands_in_order() {
    let code = |barrier| {
        format!(
            "[B------:{barrier}:W-:-:S02] UTMASTG.1D [UR6], [UR4]
             [B------:R0:W-:-:S02] UTMASTG.1D [UR16], [UR14]
             [B0-----:R-:W-:-:S02] UMOV UR5, 0x1
             [B------:R-:W-:-:S05] EXIT"
        )
    };
    clean_on(Target::Sm90a, &code("R-"));
    // The first is not behind the second.
    let turned = code("R0").replacen("R0:W-:-:S02] UTMASTG.1D [UR16]", "R-:W-:-:S02] UTMASTG.1D [UR16]", 1);
    let turned = turned.replace("UMOV UR5", "UMOV UR15");
    let found = findings_on(Target::Sm90a, &turned);
    assert_eq!(
        found.iter().map(|f| f.hazard).collect::<Vec<_>>(),
        [Hazard::NoScoreboard],
        "{found:?}"
    );
}

#[test]
fn where_an_address_lies_is_known_when_it_has_been_read() {
    let code = |wait, read| {
        format!(
            "[B------:R1:W0:-:S02] ATOM.E.ADD.STRONG.GPU P0, R6, desc[UR4][R10.64], R13
             [{wait}:R-:W-:-:S05] @P0 BRA 0x40
             [B------:R-:W-:-:S05] {read}
             [B------:R-:W-:-:S05] EXIT
             [B------:R-:W-:-:S05] EXIT"
        )
    };
    clean_on(Target::Sm90, &code("B-1----", "MOV R0, R2"));
    let older = code("B-1----", "MOV R0, R2").replace("desc[UR4][R10.64]", "[R10]");
    for (target, wrong) in [
        (Target::Sm90, code("B------", "MOV R0, R2")),
        (Target::Sm90, code("B-1----", "MOV R0, R6")),
        (Target::Sm75, older),
    ] {
        let found = findings_on(target, &wrong);
        assert_eq!(
            found.iter().map(|f| f.hazard).collect::<Vec<_>>(),
            [Hazard::NotAwaited],
            "{found:?}"
        );
    }
}

#[test]
fn two_results_may_share_a_scoreboard() {
    clean(
        "[B------:R-:W0:-:S01] LDS R5, [R6]
         [B------:R-:W0:-:S02] LDS R7, [R8]
         [B0-----:R-:W-:-:S04] IADD3 R0, R5, R7, R4
         [B------:R-:W-:-:S05] EXIT",
    );
}

#[test]
fn writes_land_in_order() {
    let code = |wait| {
        format!(
            "[B------:R-:W1:-:S02] LDS R0, [R1]
             [{wait}:R-:W-:-:S05] MOV R0, R2
             [B------:R-:W-:-:S05] EXIT"
        )
    };
    clean(&code("B-1----"));
    one(&code("B------"), Hazard::NotAwaited, Some(0), 0x10);
}

#[test]
fn hidden_descriptors_are_registers_too() {
    let code = |stall| {
        format!(
            "[B------:R-:W-:-:S{stall:02}] ULDC.64 UR4, c[0x0][0x118]
             [B------:R-:W0:-:S02] LDG.E R0, [R2.64] <2.UR0=UR4>
             [B0-----:R-:W-:-:S05] EXIT"
        )
    };
    clean(&code(2));
    one(&code(1), Hazard::Stall, Some(0), 0x10);
}

#[test]
fn the_shortest_way_counts() {
    // The branch around the second block leaves 1 + 5 cycles for a guard that needs 13; through the block there are more.
    one(
        "[B------:R-:W-:-:S01] ISETP.NE.AND P0, PT, R0, RZ, PT
         [B------:R-:W-:-:S05] @P1 BRA 0x30
         [B------:R-:W-:Y:S12] MOV R1, R2
         [B------:R-:W-:-:S01] @P0 MOV R4, R5
         [B------:R-:W-:-:S05] EXIT",
        Hazard::Stall,
        Some(0),
        0x30,
    );
}

#[test]
fn loops_are_followed_round() {
    let code = |wait| {
        format!(
            "[B------:R-:W-:-:S04] MOV R0, RZ
             [{wait}:R-:W-:-:S04] IADD3 R1, R1, R0, RZ
             [B------:R-:W0:-:S02] LDS R0, [R2]
             [B------:R-:W-:-:S05] @P0 BRA 0x10
             [B------:R-:W-:-:S05] EXIT"
        )
    };
    clean(&code("B0-----"));
    one(&code("B------"), Hazard::NotAwaited, Some(0x20), 0x10);
}

#[test]
fn counts_of_a_scoreboard() {
    let code = |count| {
        format!(
            "[B------:R-:W0:-:S02] LDS R5, [R6]
             [B------:R-:W0:-:S02] LDS R7, [R8]
             [B------:R-:W-:-:S04] DEPBAR.LE SB0, {count}
             [B------:R-:W-:-:S04] IADD3 R0, R5, R3, R4
             [B0-----:R-:W-:-:S05] EXIT"
        )
    };
    clean(&code("0x1"));
    clean(&code("0x0"));
    one(&code("0x2"), Hazard::NotAwaited, Some(0), 0x30);
}

#[test]
fn an_operand_that_is_kept_must_not_change() {
    let code = |second| {
        format!(
            "[B------:R-:W-:-:S05] FADD R0, R1.reuse, R2
             [B------:R-:W-:-:S05] {second}
             [B------:R-:W-:-:S05] FADD R3, R1, R4
             [B------:R-:W-:-:S05] EXIT"
        )
    };
    one(&code("MOV R1, 0x1"), Hazard::Reuse, Some(0x10), 0x20);
    clean(&code("MOV R7, 0x1"));
}

#[test]
fn scheduling_bits_that_do_not_exist() {
    let isa = Isa::for_target(Target::Sm87).expect("the target is embedded");
    // NOP with bits 109:105 = 16: keep issuing, and a stall of 0.
    let word = isa
        .form(isa.form_by_name("NOP_0x918").expect("a form"))
        .expect("a form")
        .filler();
    let bad = isa::Word(word.0 & !(31 << 105) | 16 << 105);
    let code: Vec<u8> = bad.0.to_le_bytes().into();
    let kernel = ir::lift(isa, &Source::new("k", Target::Sm87, &code)).expect("whole words");
    let report = check(isa, Model::of(Target::Sm87), &kernel);
    assert_eq!(
        report.findings.iter().map(|f| f.hazard).collect::<Vec<_>>(),
        [Hazard::Control]
    );
}

#[test]
fn what_nobody_knows_has_no_verdict() {
    let isa = Isa::for_target(Target::Sm87).expect("the target is embedded");
    let code = u128::MAX.to_le_bytes();
    let kernel = ir::lift(isa, &Source::new("k", Target::Sm87, &code)).expect("whole words");
    let report = check(isa, Model::of(Target::Sm87), &kernel);
    assert!(!report.is_clean() && report.errors().next().is_none());
}

/// What NVIDIA's compiler makes for a debugger runs, and no public word says what the hardware then waits for.
#[test]
fn code_without_scheduling_bits_has_no_verdict() {
    let code = |stall| {
        format!(
            "[B------:R-:W-:Y:S00] LDS R0, [R1]
             [B------:R-:W-:Y:S00] MOV R2, R0
             [B------:R-:W-:Y:S{stall:02}] EXIT"
        )
    };
    let never = "[B------:R-:W-:-:S01] @!PT LDS RZ, [RZ]\n";
    for code in [code(0), never.to_owned() + &code(0)] {
        let found = findings(&code);
        assert_eq!(
            found.iter().map(|f| f.hazard).collect::<Vec<_>>(),
            [Hazard::Unscheduled]
        );
        assert!(found[0].to_string().contains("compiled for a debugger"), "{}", found[0]);
    }
    one(&code(5), Hazard::NoScoreboard, Some(0), 0x10);
}

/// What a load from shared memory may overwrite, one from global memory may: its result is there no sooner.
#[test]
fn loads_overwrite_the_operands_of_products_at_once() {
    clean_on(
        Target::Sm120,
        "[B------:R-:W-:-:S01] IMMA.16832.S8.S8 R8, R4.ROW, R6.COL, R8
         [B------:R-:W0:-:S02] LDG.E R4, desc[UR4][R2.64]
         [B0-----:R-:W-:-:S05] EXIT",
    );
}

/// What a count tells holds for what comes back in order only.
#[test]
fn loads_may_come_back_in_any_order() {
    let code = |count| {
        format!(
            "[B------:R-:W0:-:S02] LDG.E R5, [R6.64] <2.UR0=UR4>
             [B------:R-:W0:-:S02] LDG.E R7, [R8.64] <2.UR0=UR4>
             [B------:R-:W-:-:S04] DEPBAR.LE SB0, {count}
             [B------:R-:W-:-:S04] IADD3 R0, R5, R3, R4
             [B0-----:R-:W-:-:S05] EXIT"
        )
    };
    clean(&code("0x0"));
    one(&code("0x1"), Hazard::NotAwaited, Some(0), 0x30);
}

/// How many stand behind one in its queue counts for the scoreboard that they signal.
#[test]
fn each_scoreboard_has_a_count_of_its_own() {
    let code = |last| {
        format!(
            "[B------:R-:W0:-:S02] LDS R4, [R8]
             [B------:R-:W1:-:S02] LDS R5, [R8+0x4]
             [B------:R-:W{last}:-:S02] LDS R6, [R8+0x8]
             [B------:R-:W-:-:S04] DEPBAR.LE SB0, 0x1
             [B------:R-:W-:-:S04] IADD3 R0, R4, R3, R2
             [B01----:R-:W-:-:S05] EXIT"
        )
    };
    clean(&code(0));
    one(&code(1), Hazard::NotAwaited, Some(0), 0x40);
}

/// Nobody knows where it leads, but for the beginning of a kernel: who is called needs what it reads.
#[test]
fn a_call_to_an_address_may_enter_any_function() {
    let code = |wait| {
        format!(
            "[B------:R-:W0:-:S02] LDS R4, [R8]
             [{wait}:R-:W-:-:S05] CALL.REL.NOINC R10 0x0
             [B------:R-:W-:-:S05] EXIT
             [B------:R-:W-:-:S05] IADD3 R0, R4, R3, R2
             [B------:R-:W-:-:S05] RET.REL.NODEC R20 0x0"
        )
    };
    clean(&code("B0-----"));
    one(&code("B------"), Hazard::NotAwaited, Some(0), 0x30);
}

const PRODUCT: &str = "HGMMA.64x8x16.F32 R24, R36, gdesc[UR4], R24, UP0, gsb0";

/// Two products of a warpgroup on registers of their own, what waits for them, and who comes behind.
fn products(arrive: &str, first: &str, wait: &str, behind: &str) -> String {
    format!(
        "[B------:R-:W0:-:S02] LDG.E R24, desc[UR8][R2.64]
         [{arrive}:R-:W-:Y:S15] WARPGROUP.ARRIVE
         [B------:R-:W-:-:S01] {first}
         [B------:R-:W-:-:S03] HGMMA.64x8x16.F32 R28, R40, gdesc[UR4], R28, UP0, gsb0
         [B------:R-:W-:-:S02] {wait}
         [B------:R-:W-:Y:S15] {behind}
         [B------:R-:W-:-:S02] WARPGROUP.DEPBAR.LE gsb0, 0x0
         [B0-----:R-:W-:-:S05] EXIT"
    )
}

#[test]
fn products_of_warpgroups_own_their_registers_until_their_group_is_waited_for() {
    let target = Target::Sm90a;
    let wait = |count| format!("WARPGROUP.DEPBAR.LE gsb0, {count:#x}");
    let (reads, overwrites) = ("IADD3 R0, R24, R3, R4", "MOV R36, 0x1");
    for behind in [reads, overwrites] {
        let code = |wait: &str| products("B0-----", PRODUCT, wait, behind);
        clean_on(target, &code(&wait(0)));
        clean_on(target, &code(&wait(1)));
        one_on(target, &code(&wait(2)), Hazard::NotAwaited, Some(0x20), 0x50);
        one_on(target, &code("NOP"), Hazard::NotAwaited, Some(0x20), 0x50);
    }
    let second = products("B0-----", PRODUCT, &wait(1), "IADD3 R0, R28, R3, R4");
    one_on(target, &second, Hazard::NotAwaited, Some(0x30), 0x50);
}

/// Without a signal of its own a product is in the group of the next that has one.
#[test]
fn a_group_has_one_signal() {
    let target = Target::Sm90a;
    let first = PRODUCT.replace(", gsb0", "");
    let code = |count, behind| {
        products(
            "B0-----",
            &first,
            &format!("WARPGROUP.DEPBAR.LE gsb0, {count:#x}"),
            behind,
        )
    };
    clean_on(target, &code(0, "IADD3 R0, R24, R3, R4"));
    one_on(
        target,
        &code(1, "IADD3 R0, R24, R3, R4"),
        Hazard::NotAwaited,
        Some(0x20),
        0x50,
    );
    let alone = code(0, "NOP").replace("R28, UP0, gsb0", "R28, UP0");
    let found = findings_on(
        target,
        &(alone.replace("EXIT", "IADD3 R0, R24, R28, R4") + "\n[B------:R-:W-:-:S05] EXIT"),
    );
    assert!(
        found.iter().all(|f| f.hazard == Hazard::NoScoreboard) && found.len() == 2,
        "{found:?}"
    );
}

#[test]
fn the_registers_of_a_product_are_there_when_the_warpgroup_arrives() {
    let late = products("B------", PRODUCT, "NOP", "NOP");
    let late = late.replace("[B------:R-:W-:-:S01] HGMMA", "[B0-----:R-:W-:-:S01] HGMMA");
    one_on(Target::Sm90a, &late, Hazard::NotAwaited, Some(0), 0x10);
}

#[test]
fn a_wait_for_a_group_comes_when_that_can_have_been_counted() {
    let early = products("B0-----", PRODUCT, "WARPGROUP.DEPBAR.LE gsb0, 0x0", "NOP").replace("S03", "S02");
    one_on(Target::Sm90a, &early, Hazard::EarlyWait, Some(0x30), 0x40);
}

/// Products in one group follow each other on one sum; what a product adds to lies nowhere else in code that was seen.
#[test]
fn a_sum_is_handed_on_where_it_is() {
    let code = |sum| {
        products(
            "B0-----",
            &PRODUCT.replace("R24, UP0", &format!("{sum}, UP0")),
            "WARPGROUP.DEPBAR.LE gsb0, 0x0",
            "NOP",
        )
    };
    let chain = |sum| code(sum).replace("R28, R40, gdesc[UR4], R28", "R24, R40, gdesc[UR4], R24");
    clean_on(Target::Sm90a, &chain("R24"));
    clean_on(Target::Sm90a, &code("RZ"));
    one_on(Target::Sm90a, &code("R44"), Hazard::Unknown, None, 0x20);
}

/// Tuples of more than 32 registers, and the last of several that tells of all.
#[test]
fn loads_from_tensor_memory_come_back_in_order() {
    let code = |first, wait| {
        format!(
            "[B------:R-:W{first}:-:S01] LDTM.x64 R4, tmem[UR4]
             [B------:R-:W1:-:S02] LDTM.x32 R68, tmem[UR4+0x40]
             [{wait}:R-:W-:-:S05] IADD3 R0, PT, PT, R67, R3, R2
             [B01----:R-:W-:-:S05] EXIT"
        )
    };
    let target = Target::Sm100a;
    clean_on(target, &code("-", "B-1----"));
    clean_on(target, &code("0", "B0-----"));
    one_on(target, &code("-", "B------"), Hazard::NotAwaited, Some(0), 0x20);
}

#[test]
fn what_works_on_tensor_memory_reads_its_operands_late() {
    let code = |wait| {
        format!(
            "[B------:R0:W-:-:S01] STTM.x8 tmem[UR4], R8
             [B------:R1:W-:Y:S12] UTCBAR [UR6], URZ
             [{wait}:R-:W-:-:S05] IADD3 R15, PT, PT, R1, R3, R2
             [{wait}:R-:W-:-:S05] UMOV UR6, 0x1
             [B01----:R-:W-:-:S05] EXIT"
        )
    };
    let target = Target::Sm100a;
    clean_on(target, &code("B01----"));
    one_on(target, &code("B-1----"), Hazard::NotAwaited, Some(0), 0x20);
    one_on(target, &code("B0-----"), Hazard::NotAwaited, Some(0x10), 0x30);
}

/// `tcgen05.wait::st` is a fence whose scoreboard tells of the stores before it, which then have none of their own.
#[test]
fn a_wait_for_tensor_memory_tells_that_stores_have_read_their_operands() {
    let code = |fence, wait| {
        format!(
            "[B------:R-:W0:-:S02] LDTM.x4 R4, tmem[UR4]
             [B0-----:R-:W-:-:S04] IADD3 R7, PT, PT, R7, R3, RZ
             [B------:R-:W-:-:S01] STTM.x4 tmem[UR4], R4
             [B------:R-:{fence}:-:S02] FENCE.VIEW.ASYNC.T
             [{wait}:R-:W-:-:S02] MOV R4, R2
             [B-1----:R-:W-:-:S05] EXIT"
        )
    };
    for target in [Target::Sm100a, Target::Sm103a, Target::Sm110a] {
        clean_on(target, &code("W1", "B-1----"));
        one_on(target, &code("W1", "B------"), Hazard::NotAwaited, Some(0x20), 0x40);
        one_on(target, &code("W-", "B------"), Hazard::NoScoreboard, Some(0x20), 0x40);
        // Another fence tells nothing of them.
        let other = code("W1", "B-1----").replace("ASYNC.T", "ASYNC.S");
        one_on(target, &other, Hazard::NoScoreboard, Some(0x20), 0x40);
    }
}

#[test]
fn a_scoreboard_tells_of_special_and_constant_uniform_registers() {
    let hazards = |listing: &str| {
        findings_on(Target::Sm120, listing)
            .into_iter()
            .map(|f| f.hazard)
            .collect::<Vec<_>>()
    };
    for load in ["S2UR UR4, SR_CTAID.X", "LDCU UR4, c[0x0][0x380]"] {
        let with = |load_control: &str, wait: &str| {
            format!(
                "[B------:R-:{load_control}:-:S08] {load} ;\n[{wait}:R-:W-:-:S08] IMAD R0, R0, UR4, R0 ;\n[B------:R-:W-:-:S05] EXIT ;\n"
            )
        };
        assert_eq!(hazards(&with("W0", "B0-----")), [], "{load}");
        assert!(
            matches!(hazards(&with("W-", "B------"))[..], [Hazard::NoScoreboard]),
            "{load}"
        );
        assert!(!hazards(&with("W0", "B------")).is_empty(), "{load}");
    }
}

#[test]
fn special_registers_reach_uniform_ones_in_order() {
    let hazards = |wait: &str| {
        let listing = format!(
            "[B------:R-:W-:-:S02] S2UR UR4, SR_CTAID.X
             [B------:R-:W0:-:S02] S2UR UR5, SR_CTAID.Y
             [{wait}:R-:W-:-:S08] IMAD R0, R0, UR4, R0
             [B0-----:R-:W-:-:S05] EXIT"
        );
        let found = findings_on(Target::Sm120, &listing).into_iter();
        found.map(|f| f.hazard).collect::<Vec<_>>()
    };
    assert_eq!(hazards("B0-----"), []);
    assert_eq!(hazards("B------"), [Hazard::NotAwaited]);
}

#[test]
fn constants_by_a_uniform_register_read_it_late() {
    let hazards = |wait: &str| {
        let listing = format!(
            "[B------:R-:W1:-:S02] LDCU UR6, c[0x0][UR4+0x380]
             [{wait}:R-:W-:-:S08] UMOV UR4, 0x5
             [B-1----:R-:W-:-:S05] EXIT"
        );
        let found = findings_on(Target::Sm120, &listing).into_iter();
        found.map(|f| f.hazard).collect::<Vec<_>>()
    };
    assert_eq!(hazards("B-1----"), []);
    assert_eq!(hazards("B------"), [Hazard::NotAwaited]);
}

/// Compares, minima and maxima of halves are a pipe of their own, as `tests/oracles/pairs.py` shows: from and to sums and integer instructions it is
/// a cycle more than within it.
#[test]
fn halves_are_compared_on_a_pipe_of_their_own() {
    let (max, compare, logic) = (
        "HMNMX2 R4, R5, R6, !PT",
        "HSET2.BF.GT.AND R4, R5, R6, PT",
        "LOP3.LUT R4, R5, R6, R7, 0x1e, !PT",
    );
    for (target, earlier, later, cycles) in [
        (Target::Sm87, logic, max, 5),
        (Target::Sm87, max, logic, 5),
        (Target::Sm87, max, compare, 4),
        (Target::Sm87, compare, max, 4),
        (Target::Sm120, compare, max, 4),
        (Target::Sm120, logic, max, 5),
        (Target::Sm89, "HADD2 R4, R5, R6", max, 5),
        (Target::Sm89, compare, "HADD2 R4, R5, R6", 5),
        (Target::Sm90, "HMUL2 R4, R5, R6", compare, 5),
        (Target::Sm90, "HFMA2.MMA R4, R5, R6, R7", "HFMA2.MMA R4, R5, R6, R7", 8),
        (Target::Sm80, "HFMA2.MMA R4, R5, R6, R7", "HFMA2.MMA R4, R5, R6, R7", 6),
        (
            Target::Sm100,
            "ISETP.GT.AND P0, PT, R5, R6, PT",
            "HSETP2.LT.AND P1, PT, R5, R6, P0",
            13,
        ),
        (
            Target::Sm120,
            "ISETP.GT.AND P0, PT, R5, R6, PT",
            "HSETP2.LT.AND P1, PT, R5, R6, P0",
            5,
        ),
        (
            Target::Sm87,
            "HSETP2.GT.AND P0, PT, R5, R6, PT",
            "HSETP2.LT.AND P1, PT, R5, R6, P0",
            5,
        ),
    ] {
        let later = later.replacen("R4, R5", "R10, R4", 1);
        let code = |stall: u32| {
            let (yields, stall) = if stall > 11 { ("Y", stall) } else { ("-", stall) };
            format!(
                "[B------:R-:W-:{yields}:S{stall:02}] {earlier}\n[B------:R-:W-:-:S05] {later}\n[B------:R-:W-:-:S05] EXIT"
            )
        };
        clean_on(target, &code(cycles));
        one_on(target, &code(cycles - 1), Hazard::Stall, Some(0), 0x10);
    }
}

/// A region in which nothing is has its end right behind its beginning; who leaves a barrier that others wait at takes its time.
#[test]
fn a_barrier_may_be_waited_for_at_once() {
    let code = |first: &str, stall: u32| {
        format!("[B------:R-:W-:-:S{stall:02}] {first}\n[B------:R-:W-:-:S05] BSYNC B0\n[B------:R-:W-:-:S05] EXIT")
    };
    for target in [Target::Sm90a, Target::Sm100, Target::Sm120] {
        clean_on(target, &code("BSSY B0, 0x10", 1));
        clean_on(target, &code("BREAK P0, B0", 9));
        one_on(target, &code("BREAK P0, B0", 8), Hazard::Stall, Some(0), 0x10);
    }
}

/// Mined: sums, logic, shifts and the like are 4 cycles apart there, all others 5, and what makes 64 bits is late for the others.
#[test]
fn integers_of_sm_120_are_on_several_pipes() {
    for (earlier, later, cycles) in [
        ("LOP3.LUT R4, R5, R6, R7, 0x1e, !PT", "SHF.L.U32 R10, R4, R5, RZ", 4),
        ("LOP3.LUT R4, R5, R6, R7, 0x1e, !PT", "MOV R10, R4", 5),
        ("MOV R4, R5", "LOP3.LUT R10, R4, R6, R7, 0x1e, !PT", 5),
        ("MOV R4, R5", "IADD R10, R4, R6", 5),
        ("ISETP.GT.AND P0, PT, R5, R6, PT", "SEL R10, R5, R6, P0", 5),
        ("IADD.64 R4, R6, R8", "IADD.64 R10, R4, R8", 4),
        ("IADD.64 R4, R6, R8", "MOV R10, R4", 6),
        ("IADD.64 R4, R6, R8", "LOP3.LUT R10, R4, R6, R7, 0x1e, !PT", 5),
    ] {
        let code = |stall: u32| {
            format!(
                "[B------:R-:W-:-:S{stall:02}] {earlier}\n[B------:R-:W-:-:S05] {later}\n[B------:R-:W-:-:S05] EXIT"
            )
        };
        clean_on(Target::Sm120, &code(cycles));
        one_on(Target::Sm120, &code(cycles - 1), Hazard::Stall, Some(0), 0x10);
    }
}

/// Mined, from kernels whose uniform addresses `tests/oracles/latencies.py` makes; no number of another load is taken for it.
#[test]
fn a_uniform_address_is_there_before_a_constant_is_loaded_from_it() {
    for target in [Target::Sm100, Target::Sm110, Target::Sm120] {
        let code = |stall| {
            format!(
                "[B------:R-:W-:Y:S{stall:02}] UIADD3 UR4, UPT, UPT, UR4, 0x4, URZ
                 [B------:R-:W0:-:S02] LDCU UR6, c[0x3][UR4]
                 [B0-----:R-:W-:-:S05] EXIT"
            )
        };
        clean_on(target, &code(12));
        let found = one_on(target, &code(11), Hazard::Stall, Some(0), 0x10);
        assert!(matches!(found.source, Some(Origin::Mined { .. })), "{target}: {found}");
    }
}

/// `fence.proxy.async` is over when its scoreboard says so; what works asynchronously, or tells others, waits for that.
#[test]
fn who_must_come_behind_a_fence_waits_for_it() {
    let code = |fence, wait, behind| {
        format!(
            "[B------:R-:W{fence}:-:S02] FENCE.VIEW.ASYNC.S
             [{wait}:R-:W-:-:S01] {behind}
             [B------:R-:W-:-:S05] EXIT"
        )
    };
    let copies = ["UBLKCP.G.S [UR4], [UR6], UR8", "UTMASTG.1D [UR16], [UR14]"];
    for behind in copies
        .into_iter()
        .chain(["BAR.SYNC.DEFER_BLOCKING 0x0", "WARPGROUP.ARRIVE"])
    {
        clean_on(Target::Sm90a, &code("1", "B-1----", behind));
        one_on(
            Target::Sm90a,
            &code("1", "B------", behind),
            Hazard::NotAwaited,
            Some(0),
            0x10,
        );
        one_on(
            Target::Sm90a,
            &code("-", "B------", behind),
            Hazard::NoScoreboard,
            Some(0),
            0x10,
        );
    }
    clean_on(Target::Sm90a, &code("-", "B------", "STS [R2], R3"));
    // Of several the last has the only scoreboard.
    let two = format!(
        "[B------:R-:W-:-:S01] FENCE.VIEW.ASYNC.S\n{}",
        code("1", "B-1----", copies[0])
    );
    clean_on(Target::Sm90a, &two);
    let stored = |wait, behind| {
        format!(
            "[B------:R-:W1:-:S02] FENCE.VIEW.ASYNC.T
             [{wait}:{behind}
             [B-1----:R-:W-:-:S05] EXIT"
        )
    };
    for behind in [
        "R-:W2:-:S02] LDTM.x4 R4, tmem[UR4]",
        "R2:W-:-:S02] STTM.x4 tmem[UR4], R4",
    ] {
        clean_on(Target::Sm100a, &stored("B-1----", behind));
        one_on(
            Target::Sm100a,
            &stored("B------", behind),
            Hazard::NotAwaited,
            Some(0),
            0x10,
        );
    }
}

/// Round a loop `ptxas` waits for no fence.
#[test]
fn a_fence_is_waited_for_forward() {
    clean_on(
        Target::Sm90a,
        "[B------:R-:W-:-:S01] UBLKCP.G.S [UR4], [UR6], UR8
         [B------:R-:W1:-:S02] FENCE.VIEW.ASYNC.S
         [B------:R-:W-:-:S05] @P0 BRA 0x0
         [B------:R-:W-:-:S05] EXIT",
    );
}

/// What is accessed between the arrival of a warpgroup and its product, the product may see as it was.
#[test]
fn a_warpgroup_arrives_behind_every_other_access_to_the_registers_of_its_products() {
    let target = Target::Sm90a;
    let code = |before: &str, behind: &str| {
        format!(
            "[B------:R-:W-:Y:S15] MOV R36, R2
             [B------:R-:W-:Y:S15] {before}
             [B------:R-:W-:Y:S15] {behind}
             [B------:R-:W-:Y:S15] {PRODUCT}
             [B------:R-:W-:-:S02] WARPGROUP.DEPBAR.LE gsb0, 0x0
             [B------:R-:W-:-:S05] EXIT"
        )
    };
    let arrive = "WARPGROUP.ARRIVE";
    clean_on(target, &code("NOP", arrive));
    // Registers of no product.
    clean_on(target, &code(arrive, "MOV R3, R2"));
    one_on(target, &code("NOP", "NOP"), Hazard::NotArrived, Some(0), 0x30);
    let written = one_on(
        target,
        &code(arrive, "MOV R37, R2"),
        Hazard::NotArrived,
        Some(0x20),
        0x30,
    );
    assert_eq!(written.register_name(), "R37");
    one_on(
        target,
        &code(arrive, "MOV R24, R2"),
        Hazard::NotArrived,
        Some(0x20),
        0x30,
    );
    // Read before it is overwritten.
    one_on(
        target,
        &code(arrive, "MOV R2, R24"),
        Hazard::NotArrived,
        Some(0x20),
        0x30,
    );
    clean_on(target, &code(arrive, "MOV R2, R36"));
}

/// Of products of 64 bits a scoreboard tells, if not their own then that of one behind them; on sm_90 they take a number of cycles.
#[test]
fn a_scoreboard_tells_of_double_precision() {
    let code = |first, wait| {
        format!(
            "[B------:R-:W{first}:Y:S15] DFMA R4, R6, R8, R4
             [{wait}:R-:W-:-:S10] IADD3 R0, R4, R1, R2
             [B------:R-:W-:-:S05] EXIT"
        )
    };
    for target in [Target::Sm75, Target::Sm87, Target::Sm89] {
        clean_on(target, &code("0", "B0-----"));
        one_on(target, &code("-", "B------"), Hazard::NoScoreboard, Some(0), 0x10);
    }
    clean_on(Target::Sm90, &code("-", "B------"));
}

/// As the compiler leaves it for sm_75 where it runs out of convergence barriers and of registers: a barrier is saved as soon as it is set.
#[test]
fn a_barrier_may_be_saved_right_behind_its_setting() {
    let code = |stall| {
        format!(
            "[B------:R-:W-:-:S01] BMOV.32.CLEAR RZ, B0
             [B------:R-:W-:-:S{stall:02}] BSSY B0, 0x60
             [B------:R-:W-:-:S01] BMOV.32.CLEAR RZ, B10
             [B------:R-:W-:-:S01] BSSY B10, 0x60
             [B------:R-:W0:-:S02] BMOV.32.CLEAR R60, B0
             [B0-----:R-:W-:-:S05] EXIT
             [B------:R-:W-:-:S05] EXIT"
        )
    };
    clean_on(Target::Sm75, &code(1));
    // Without the other barrier between the two nobody has seen it.
    let near = code(1)
        .lines()
        .filter(|line| !line.contains("B10"))
        .collect::<Vec<_>>()
        .join("\n");
    let found = findings_on(Target::Sm75, &near.replace("0x60", "0x40"));
    assert!(
        found.iter().any(|f| (f.required, f.found) == (Some(3), Some(1))),
        "{found:?}"
    );
}
