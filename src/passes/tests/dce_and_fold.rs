//! `const-bank-fold`, `copy-prop` and `dce` on listings.

mod common;

use common::{run, run_with, trimmed};
use sass2mlir_passes::{ConstBankFold, CopyProp, Dce, OptionValue, Options, Resources};

#[test]
fn a_constant_is_read_where_it_is_used() {
    let listing = "IMAD.MOV.U32 R1, RZ, RZ, c[0x0][0x28] ;
         S2R R0, SR_TID.X ;
         MOV R9, c[0x0][0x210] ;
         IADD3 R2, P0, R9, R0, RZ ;
         @P1 IMAD R3, R9, R0, R2 ;
         ISETP.GT.AND P0, PT, R0, R9, PT ;
         IADD3 R4, R1, R2, R3 ;
         EXIT ;";
    let (text, found) = run(&ConstBankFold, listing, &[]).expect("it may run");
    let wanted = "IMAD.MOV.U32 R1, RZ, RZ, c[0x0][0x28] ;
         S2R R0, SR_TID.X ;
         MOV R9, c[0x0][0x210] ;
         IADD3 R2, P0, R0, c[0x0][0x210], RZ ;
         @P1 IMAD R3, R0, c[0x0][0x210], R2 ;
         ISETP.GT.AND P0, PT, R0, c[0x0][0x210], PT ;
         IADD3 R4, R1, R2, R3 ;
         EXIT ;";
    assert_eq!(text, trimmed(wanted), "{:?}", found.skipped);
    assert_eq!((found.sites, found.ops), (1, 3));
}

#[test]
fn a_constant_that_one_reader_cannot_take_is_read_by_none() {
    for reader in [
        "STS [R9], R0",
        "IADD3 R3, R9, R9, RZ",
        "IADD3 R3, R9, c[0x0][0x160], RZ",
        "@P1 IADD3 R9, R0, R2, RZ ;\nSTS [R0], R9",
    ] {
        let listing =
            format!("S2R R0, SR_TID.X ;\nMOV R9, c[0x0][0x210] ;\nIADD3 R2, R9, R0, RZ ;\n{reader} ;\nEXIT ;");
        let (_, found) = run(&ConstBankFold, &listing, &[]).expect("it may run");
        assert_eq!(
            (found.sites, found.edits.edits.len(), found.skipped.len()),
            (0, 0, 1),
            "{listing}"
        );
    }
    let pinned = "S2R R0, SR_TID.X ;\nMOV R9, c[0x0][0x210] ;\nIADD3 R2, R9, R0, RZ ;\nEXIT ;";
    assert_eq!(run(&ConstBankFold, pinned, &[]).expect("it may run").1.sites, 1);
    assert_eq!(run(&ConstBankFold, pinned, &[0x20]).expect("it may run").1.sites, 0);
}

#[test]
fn a_copied_register_is_read_at_its_source() {
    let listing = "IMAD.MOV.U32 R1, RZ, RZ, c[0x0][0x28] ;
         S2R R0, SR_TID.X ;
         MOV R9, R0 ;
         IMAD.MOV.U32 R8, RZ, RZ, R9 ;
         @P1 IMAD R3, R9, R1, R9 ;
         IADD3 R4, R8, R9, R3 ;
         EXIT ;";
    let (text, found) = run(&CopyProp, listing, &[]).expect("it may run");
    let wanted = "IMAD.MOV.U32 R1, RZ, RZ, c[0x0][0x28] ;
         S2R R0, SR_TID.X ;
         MOV R9, R0 ;
         IMAD.MOV.U32 R8, RZ, RZ, R0 ;
         @P1 IMAD R3, R0, R1, R0 ;
         IADD3 R4, R9, R0, R3 ;
         EXIT ;";
    assert_eq!(text, trimmed(wanted), "{:?}", found.skipped);
    assert_eq!((found.sites, found.ops), (2, 5));
    assert_eq!(run(&CopyProp, listing, &[0x20, 0x30]).expect("it may run").1.sites, 0);
}

/// As `nvcc -G` makes them. The copies around it are none the worse for it.
#[test]
fn a_register_copied_into_itself_stays() {
    let listing = "S2R R0, SR_TID.X ;\nMOV R0, R0 ;\nMOV R9, R0 ;\nSTS [R0], R9 ;\nEXIT ;";
    let (text, found) = run(&CopyProp, listing, &[]).expect("it may run");
    assert_eq!(text, trimmed(&listing.replace("R9 ;\nEXIT", "R0 ;\nEXIT")));
    assert_eq!(found.skipped[0].reason, "it is copied to where it is");
}

#[test]
fn a_copy_that_one_reader_needs_is_read_by_all() {
    for (reader, why) in [
        ("STS.64 [R0], R8", "as a part of something"),
        ("@P1 IADD3 R9, R0, R2, RZ ;\nSTS [R0], R9", "does not name it"),
        ("IADD3 R5, R5, 0x1, RZ ;\nSTS [R0], R9", "overwritten before it is read"),
        ("@P0 BRA 0x50 ;\nSTS [R0], R9", "in another block"),
    ] {
        let listing =
            format!("S2R R0, SR_TID.X ;\nLDS R5, [R0] ;\nMOV R9, R5 ;\nSTS [R0+0x4], R9 ;\n{reader} ;\nEXIT ;");
        let (_, found) = run(&CopyProp, &listing, &[]).expect("it may run");
        assert_eq!((found.sites, found.edits.edits.len()), (0, 0), "{listing}");
        assert!(
            found.skipped.iter().any(|s| s.reason.contains(why)),
            "{listing}: {:?}",
            found.skipped
        );
    }
}

#[test]
fn what_nobody_reads_becomes_a_nop_that_waits_as_long() {
    let listing = "UMOV UR2, 0x1 ;
         IMAD.MOV.U32 R1, RZ, RZ, c[0x0][0x28] ;
         S2R R0, SR_TID.X ;
         MOV R2, c[0x0][0x160] ;
         IADD3 R3, R2, 0x1, RZ ;
         ISETP.GT.AND P0, PT, R3, R0, PT ;
         LDS R4, [R0] ;
         ATOMS.ADD R5, [R0], R0 ;
         IADD3 R6, R0, 0x1, RZ ;
         STS [R0], R6 ;
         EXIT ;";
    let (text, found) = run(&Dce, listing, &[]).expect("it may run");
    // The sum and the number die with the comparison; loads and special registers may be more than they seem.
    let wanted = "UMOV UR2, 0x1 ;
         IMAD.MOV.U32 R1, RZ, RZ, c[0x0][0x28] ;
         S2R R0, SR_TID.X ;
         NOP ;
         NOP ;
         NOP ;
         LDS R4, [R0] ;
         ATOMS.ADD R5, [R0], R0 ;
         IADD3 R6, R0, 0x1, RZ ;
         STS [R0], R6 ;
         EXIT ;";
    assert_eq!(text, trimmed(wanted));
    assert_eq!(found.sites, 3);
    let remove = Options::default().with("remove", OptionValue::Bool(true));
    let (text, found) = run_with(&Dce, listing, &[], &remove, &Resources::default()).expect("it may run");
    assert_eq!(
        (text, found.sites),
        (trimmed(&wanted.replace("         NOP ;\n", "")), 3)
    );
    assert_eq!(run(&Dce, listing, &[0x50]).expect("it may run").1.sites, 0);
}

#[test]
fn registers_in_which_the_kernel_finds_something_are_left_as_they_are() {
    let listing = "ISETP.NE.U32.AND P0, PT, RZ, UR2, PT ;
         @P0 EXIT ;
         UMOV UR2, 0x1 ;
         UMOV UR3, 0x1 ;
         EXIT ;";
    let (text, _) = run(&Dce, listing, &[]).expect("it may run");
    assert!(text.contains("UMOV UR2, 0x1 ;\nNOP ;"), "{text}");
}

#[test]
fn what_goes_round_a_loop_is_read() {
    let listing = "MOV R0, RZ ;
         IADD3 R0, R0, 0x1, RZ ;
         ISETP.LT.AND P0, PT, R0, c[0x0][0x160], PT ;
         @P0 BRA 0x10 ;
         EXIT ;";
    let (text, found) = run(&Dce, listing, &[]).expect("it may run");
    assert_eq!((text, found.sites), (trimmed(listing), 0));
}
