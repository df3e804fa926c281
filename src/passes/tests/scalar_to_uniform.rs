//! Where lanes are together, which values they share, and what `scalar-to-uniform` makes of both, on listings.

mod common;

use std::collections::BTreeMap;

use common::{isa, kernel, kernel_for, run, trimmed};
use isa::{Isa, Target};
use sass2mlir_passes::uniformity::{Agreement, Uniformity};
use sass2mlir_passes::{PassResult, ScalarToUniform, instructions};

/// By instruction: all lanes are together there.
fn together(listing: &str) -> String {
    together_in(&kernel(listing))
}

fn together_in(kernel: &ir::Kernel) -> String {
    let isa = Isa::for_target(kernel.target).expect("the target is embedded");
    let uniformity = Uniformity::new(isa, kernel);
    let mark = |op| {
        if uniformity.convergence.together(kernel.op(op)) {
            '='
        } else {
            '<'
        }
    };
    instructions(kernel).map(|(_, op, _)| mark(op)).collect()
}

/// What lanes agree about in the last value that is written to each register.
fn agreement(listing: &str) -> BTreeMap<String, Agreement> {
    let kernel = kernel(listing);
    let uniformity = Uniformity::new(isa(), &kernel);
    let results = instructions(&kernel).flat_map(|(_, op, _)| kernel.op(op).results());
    results.map(|v| (kernel.pin(v).to_string(), uniformity.of(v))).collect()
}

fn reasons(found: &PassResult) -> Vec<(u64, &str)> {
    found.skipped.iter().map(|s| (s.offset, &*s.reason)).collect()
}

/// Lanes part on their thread index at 0x30; with `BSSY` and `BSYNC` in `around`.
fn parted(around: [&str; 2]) -> String {
    format!(
        "S2R R0, SR_TID.X ;
         ISETP.GT.AND P0, PT, R0, 0x3, PT ;
         {} ;
         @P0 BRA 0x50 ;
         IADD3 R0, R0, 0x1, RZ ;
         {} ;
         IADD3 R2, R0, 0x1, RZ ;
         EXIT ;",
        around[0], around[1]
    )
}

#[test]
fn a_barrier_brings_lanes_together_and_nothing_else() {
    assert_eq!(together(&parted(["BSSY B0, 0x60", "BSYNC B0"])), "====<<==");
    // The place that BSSY names may be the BSYNC itself.
    assert_eq!(together(&parted(["BSSY B0, 0x50", "BSYNC B0"])), "====<<==");
    assert_eq!(together(&parted(["NOP", "NOP"])), "====<<<<");
    assert_eq!(together(&parted(["NOP", "WARPSYNC 0xffffffff"])), "====<<<<");
    // Another barrier, another place, a barrier that something else has written.
    assert_eq!(together(&parted(["BSSY B0, 0x60", "BSYNC B1"])), "====<<<<");
    assert_eq!(together(&parted(["BSSY B0, 0x70", "BSYNC B0"])), "====<<<<");
    assert_eq!(together(&parted(["BMOV.32 B0, 0xffffffff", "BSYNC B0"])), "====<<<<");
}

/// Groups of lanes with other masks go on by themselves, as behind `__reduce_add_sync(mask, x)`.
#[test]
fn lanes_part_where_their_masks_differ() {
    let gathered = |mask: &str, wait: &str| {
        format!(
            "S2R R0, SR_TID.X ;
             ISETP.GT.AND P0, PT, R0, 0x3, PT ;
             {mask} ;
             BSSY B0, 0x70 ;
             {wait} ;
             REDUX.SUM UR4, R0 ;
             BSYNC B0 ;
             MOV R2, UR4 ;
             EXIT ;"
        )
    };
    let of_lane = "SEL R3, R0, 0x1, P0";
    assert_eq!(together(&gathered(of_lane, "WARPSYNC.EXCLUSIVE R3")), "=====<<==");
    assert_eq!(together(&gathered(of_lane, "WARPSYNC R3")), "=====<<==");
    assert_eq!(together(&gathered(of_lane, "@P0 WARPSYNC 0xffffffff")), "=====<<==");
    assert_eq!(
        together(&gathered("MOV R3, c[0x0][0x160]", "WARPSYNC.EXCLUSIVE R3")),
        "========="
    );
    assert_eq!(together(&gathered(of_lane, "WARPSYNC 0xffffffff")), "=========");
    // So what a group has computed is not the warp's, which has one register for all of them.
    let agreed = agreement(&gathered(of_lane, "WARPSYNC.EXCLUSIVE R3"));
    assert_eq!((agreed["UR4"], agreed["R2"]), (Agreement::Differs, Agreement::Differs));
}

/// From sm_100 on a `BSYNC` says whether it waits.
#[test]
fn a_barrier_that_does_not_wait_brings_nobody_together() {
    let parted = |kind: &str| {
        let listing = format!(
            "S2R R0, SR_TID.X ;
             ISETP.GT.AND P0, PT, R0, 0x3, PT ;
             BSSY{kind} B0, 0x60 ;
             @P0 BRA 0x50 ;
             MOV R1, R0 ;
             BSYNC{kind} B0 ;
             MOV R2, R0 ;
             EXIT ;"
        );
        together_in(&kernel_for(Target::Sm100, &listing))
    };
    assert_eq!(parted(".RECONVERGENT"), "====<<==");
    assert_eq!(parted(""), "====<<<<");
}

#[test]
fn lanes_that_break_out_of_a_barrier_are_not_waited_for() {
    let listing = "S2R R0, SR_TID.X ;
         ISETP.GT.AND P0, PT, R0, 0x3, PT ;
         BSSY B0, 0x80 ;
         @P0 BRA 0x70 ;
         ISETP.GT.AND P0, PT, R0, 0x1, PT ;
         @P0 BREAK B0 ;
         @P0 BRA 0x80 ;
         BSYNC B0 ;
         EXIT ;";
    assert_eq!(together(listing), "====<<<<<");
}

#[test]
fn a_choice_that_all_lanes_make_parts_nobody() {
    let listing = "S2R R0, SR_CTAID.X ;
         ISETP.GT.AND P0, PT, R0, c[0x0][0x160], PT ;
         @P0 BRA 0x40 ;
         IADD3 R0, R0, 0x1, RZ ;
         EXIT ;";
    assert_eq!(together(listing), "=====");
    // Lanes that end do not count.
    let listing = "S2R R0, SR_TID.X ;
         ISETP.GT.AND P0, PT, R0, 0x3, PT ;
         @P0 EXIT ;
         EXIT ;";
    assert_eq!(together(listing), "====");
}

#[test]
fn a_loop_that_lanes_leave_one_by_one_keeps_them_apart() {
    let looped = |bound: &str| {
        format!(
            "S2R R2, SR_TID.X ;
             MOV R0, RZ ;
             IADD3 R0, R0, 0x1, RZ ;
             ISETP.LT.AND P0, PT, R0, {bound}, PT ;
             @P0 BRA 0x20 ;
             IADD3 R3, R0, 0x1, RZ ;
             EXIT ;"
        )
    };
    assert_eq!(together(&looped("c[0x0][0x160]")), "=======");
    assert_eq!(agreement(&looped("c[0x0][0x160]"))["R3"], Agreement::Together);
    assert_eq!(together(&looped("R2")), "==<<<<<");
    // The counter is the same in all lanes that still count, and another in those that have left.
    assert_eq!(agreement(&looped("R2"))["R3"], Agreement::Differs);
}

#[test]
fn functions_count_as_their_callers_do() {
    let called = |inside: &str| {
        format!(
            "S2R R0, SR_TID.X ;
             ISETP.GT.AND P0, PT, R0, 0x3, PT ;
             MOV R4, 0x40 ;
             CALL.REL.NOINC 0x60 ;
             IADD3 R2, R0, 0x1, RZ ;
             EXIT ;
             {inside} ;
             IADD3 R0, R0, 0x1, RZ ;
             MOV R5, 0x0 ;
             RET.REL.NODEC R4 0x0 ;"
        )
    };
    assert_eq!(together(&called("NOP")), "==========");
    assert_eq!(together(&called("@P0 BRA 0x80")), "====<<=<<<");
    // Behind this call another block begins.
    let repeated = "S2R R0, SR_TID.X ;\nCALL.ABS.NOINC R4 ;\n@P1 BRA 0x20 ;\nEXIT ;";
    assert_eq!(together(repeated), "==<<");
}

#[test]
fn values_agree_as_far_as_what_they_come_from() {
    let found = agreement(
        "S2R R0, SR_TID.X ;
         S2R R1, SR_CTAID.X ;
         IMAD.MOV.U32 R2, RZ, RZ, c[0x0][0x160] ;
         IADD3 R3, R1, R2, RZ ;
         IADD3 R4, R1, R0, RZ ;
         LDC R5, c[0x0][R1+0x160] ;
         LDG.E R6, [R2.64] <2.UR0=UR4> ;
         ISETP.GT.AND P0, PT, R1, R2, PT ;
         ISETP.GT.AND P1, PT, R0, R2, PT ;
         VOTE.ANY R7, PT, P1 ;
         R2UR UR5, R0 ;
         @P1 MOV R8, RZ ;
         S2R R9, SR_LANEID ;
         EXIT ;",
    );
    let of = |list: &[&str], wanted: Agreement| list.iter().for_each(|r| assert_eq!(found[*r], wanted, "{r}"));
    of(&["R1", "R2", "R3", "R5", "P0"], Agreement::Always);
    of(&["R7", "UR5"], Agreement::Together);
    of(&["R0", "R4", "R6", "P1", "R8", "R9"], Agreement::Differs);
}

#[test]
fn a_parameter_moves_with_all_that_read_it() {
    let listing = "IMAD.MOV.U32 R1, RZ, RZ, c[0x0][0x28] ;
         S2R R0, SR_TID.X ;
         IMAD.MOV.U32 R9, RZ, RZ, c[0x0][0x210] ;
         IADD3 R2, R0, R9, RZ ;
         IADD3 R3, -R9, R0, RZ ;
         IMAD R4, R9, R0, R2 ;
         ISETP.GT.AND P0, PT, R0, R9, PT ;
         @P0 IADD3 R5, R9, R7, R4 ;
         EXIT ;";
    let (text, found) = run(&ScalarToUniform, listing, &[]).expect("it may run");
    let wanted = "IMAD.MOV.U32 R1, RZ, RZ, c[0x0][0x28] ;
         S2R R0, SR_TID.X ;
         ULDC UR4, c[0x0][0x210] ;
         IADD3 R2, R0, UR4, RZ ;
         IADD3 R3, R0, -UR4, RZ ;
         IMAD R4, R0, UR4, R2 ;
         ISETP.GT.AND P0, PT, R0, UR4, PT ;
         @P0 IADD3 R5, R7, UR4, R4 ;
         EXIT ;";
    assert_eq!(text, trimmed(wanted), "{:?}", found.skipped);
    assert_eq!((found.sites, found.ops), (1, 6));
    assert_eq!(found.headline.as_deref(), Some("1 warp-uniform web migrated"));
}

#[test]
fn what_is_computed_from_each_other_moves_together() {
    let listing = "S2R R0, SR_TID.X ;
         ULDC UR5, c[0x0][0x160] ;
         S2R R2, SR_CTAID.X ;
         IADD3 R3, R2, 0x1, RZ ;
         SHF.L.U32 R3, R3, 0x3, RZ ;
         LOP3.LUT R4, R0, R3, RZ, 0xc0, !PT ;
         MOV R6, c[0x0][0x164] ;
         IADD3 R5, R0, R6, R4 ;
         EXIT ;";
    let (text, found) = run(&ScalarToUniform, listing, &[]).expect("it may run");
    let wanted = "S2R R0, SR_TID.X ;
         ULDC UR5, c[0x0][0x160] ;
         S2UR UR4, SR_CTAID.X ;
         UIADD3 UR6, UR4, 0x1, URZ ;
         USHF.L.U32 UR7, UR6, 0x3, URZ ;
         LOP3.LUT R4, R0, UR7, RZ, 0xc0, !PT ;
         ULDC UR8, c[0x0][0x164] ;
         IADD3 R5, R0, UR8, R4 ;
         EXIT ;";
    assert_eq!(text, trimmed(wanted));
    assert_eq!((found.sites, found.ops), (2, 6));
}

#[test]
fn copies_and_sums_that_are_spelled_as_products_take_a_uniform_register() {
    let listing = "S2R R0, SR_TID.X ;
         MOV R2, c[0x0][0x160] ;
         IMAD.IADD R3, R0, 0x1, -R2 ;
         @P0 IMAD.IADD R4, R2, 0x1, R0 ;
         IMAD.MOV.U32 R5, RZ, RZ, R2 ;
         STS [R0], R5 ;
         EXIT ;";
    let (text, found) = run(&ScalarToUniform, listing, &[]).expect("it may run");
    let wanted = "S2R R0, SR_TID.X ;
         ULDC UR4, c[0x0][0x160] ;
         IADD3 R3, R0, -UR4, RZ ;
         @P0 IADD3 R4, R0, UR4, RZ ;
         MOV R5, UR4 ;
         STS [R0], R5 ;
         EXIT ;";
    assert_eq!(text, trimmed(wanted), "{:?}", found.skipped);
}

#[test]
fn what_cannot_move_stays_and_is_told() {
    let read = "an instruction that reads it takes no uniform register there";
    let cases = [
        // No place for a uniform register beside a number, none in an address, none for two.
        (
            "MOV R2, c[0x0][0x160] ;\nIMAD R3, R2, 0x20, R0 ;\nEXIT ;",
            &[(0x10, read)][..],
        ),
        (
            "MOV R2, c[0x0][0x160] ;\nMOV R3, c[0x0][0x164] ;\nLDG.E R4, [R2.64] <2.UR0=UR4> ;\nEXIT ;",
            &[(0x10, read), (0x20, read)],
        ),
        // A function of the number that no lane shares.
        (
            "MOV R2, c[0x0][0x160] ;\nIADD3 R3, R2, R2, RZ ;\nEXIT ;",
            &[(0x10, read)],
        ),
        // Lanes are apart.
        (
            "ISETP.GT.AND P0, PT, R0, 0x3, PT ;\n@P0 BRA 0x40 ;\nNOP ;\nMOV R1, c[0x0][0x28] ;\nMOV R2, c[0x0][0x160] ;\nIADD3 R3, R0, R2, RZ ;\nEXIT ;",
            &[(0x50, "lanes may be apart there")],
        ),
        // What a guarded write keeps, also where it reads it besides.
        (
            "MOV R2, c[0x0][0x160] ;\n@P0 IADD3 R2, R0, R2, RZ ;\nSTS [R0], R2 ;\nEXIT ;",
            &[(0x10, read)],
        ),
        (
            "MOV R2, c[0x0][0x160] ;\nISETP.GT.AND P0, PT, R0, 0x3, PT ;\n@P0 MOV R2, R0 ;\nSTS [R0], R2 ;\nEXIT ;",
            &[(0x10, read)],
        ),
    ];
    for (listing, wanted) in cases {
        let listing = format!("S2R R0, SR_TID.X ;\n{listing}");
        let (text, found) = run(&ScalarToUniform, &listing, &[]).expect("it may run");
        assert_eq!((found.sites, found.edits.edits.len()), (0, 0), "{listing}");
        let reasons = reasons(&found);
        assert!(wanted.iter().all(|r| reasons.contains(r)), "{listing}: {reasons:?}");
        assert!(!text.contains("ULDC"), "{text}");
    }
}

#[test]
fn what_never_changes_is_computed_before_lanes_part() {
    // The sum of two constants and the block's number take them along, also the one that could stay.
    let listing = "MOV R1, c[0x0][0x28] ;
         S2R R0, SR_TID.X ;
         MOV R5, c[0x0][0x164] ;
         ISETP.GT.AND P0, PT, R0, 0x3, PT ;
         @P0 BRA 0x60 ;
         NOP ;
         S2R R2, SR_CTAID.X ;
         IADD3 R3, R2, R5, RZ ;
         IADD3 R4, R0, R3, R1 ;
         EXIT ;";
    let (text, found) = run(&ScalarToUniform, listing, &[]).expect("it may run");
    let wanted = "MOV R1, c[0x0][0x28] ;
         ULDC UR4, c[0x0][0x164] ;
         S2UR UR5, SR_CTAID.X ;
         UIADD3 UR6, UR5, UR4, URZ ;
         S2R R0, SR_TID.X ;
         ISETP.GT.AND P0, PT, R0, 0x3, PT ;
         @P0 BRA 0x80 ;
         NOP ;
         IADD3 R4, R0, UR6, R1 ;
         EXIT ;";
    assert_eq!(text, trimmed(wanted), "{:?}", found.skipped);
    assert_eq!((found.sites, found.ops), (1, 4));
}

#[test]
fn prologue_pinned_instructions_and_kernels_with_unknown_calls_stay() {
    let listing = "MOV R3, c[0x0][0x160] ;
         IMAD.MOV.U32 R1, RZ, RZ, c[0x0][0x28] ;
         S2R R0, SR_TID.X ;
         MOV R2, c[0x0][0x160] ;
         IADD3 R3, R0, R3, R2 ;
         IADD3 R3, R1, R0, R3 ;
         EXIT ;";
    let (text, found) = run(&ScalarToUniform, listing, &[]).expect("it may run");
    assert_eq!(found.sites, 1, "{text}");
    assert!(
        text.contains("ULDC UR4, c[0x0][0x160]") && text.contains("IADD3 R3, R0, UR4, R3"),
        "{text}"
    );
    let (_, found) = run(&ScalarToUniform, listing, &[0x30]).expect("it may run");
    assert_eq!(reasons(&found), [(0x30, "the file names the instruction")]);
    // Another block may begin behind the call.
    for behind in ["EXIT ;", "@P0 BRA 0x20 ;\nEXIT ;"] {
        let listing = format!("MOV R2, c[0x0][0x160] ;\nCALL.ABS.NOINC R4 ;\n{behind}");
        let refused = run(&ScalarToUniform, &listing, &[]).unwrap_err();
        assert!(
            refused.0.contains("code is called that the section does not hold"),
            "{refused}"
        );
    }
}

#[test]
fn registers_that_the_code_names_are_not_taken() {
    let listing = "S2R R0, SR_TID.X ;
         ULDC.64 UR4, c[0x0][0x118] ;
         MOV R2, c[0x0][0x160] ;
         IADD3 R3, R0, R2, RZ ;
         EXIT ;";
    let (text, _) = run(&ScalarToUniform, listing, &[]).expect("it may run");
    assert!(text.contains("ULDC UR6, c[0x0][0x160]"), "{text}");
}

#[test]
fn registers_that_compilers_do_not_take_are_not_taken() {
    // As many parameters as there are uniform registers.
    let mut listing = "S2R R0, SR_TID.X ;\n".to_owned();
    for n in 0..63 {
        listing += &format!("MOV R2, c[0x0][{:#x}] ;\nIADD3 R0, R0, R2, RZ ;\n", 0x160 + 4 * n);
    }
    let (text, found) = run(&ScalarToUniform, &(listing + "EXIT ;"), &[]).expect("it may run");
    let taken: Vec<&str> = text
        .lines()
        .filter_map(|l| l.strip_prefix("ULDC ")?.split(',').next())
        .collect();
    let wanted: Vec<String> = (4..=45).map(|n| format!("UR{n}")).collect();
    assert_eq!(taken, wanted);
    assert_eq!(reasons(&found).len(), 63 - wanted.len());
    assert!(
        reasons(&found)
            .iter()
            .all(|(_, why)| *why == "no uniform register is free")
    );
}
