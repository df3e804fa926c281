//! `spill-elim` on listings.

mod common;

use common::{run_with, trimmed};
use sass2mlir_passes::{OptionValue, Options, PassResult, Refusal, Resources, SpillElim};

/// The frame of all kernels here, and registers that they use all along.
const HEAD: &str = "MOV R1, c[0x0][0x28] ;
         IADD3 R1, R1, -0x10, RZ ;
         S2R R0, SR_TID.X ;";

fn run(body: &str) -> Result<(String, PassResult), Refusal> {
    limited(body, 40)
}

/// With at most so many registers, of which two are the hardware's.
fn limited(body: &str, registers: i64) -> Result<(String, PassResult), Refusal> {
    let options = Options::default().with("registers", OptionValue::Int(registers));
    let resources = Resources {
        fixed: Some(Vec::new()),
        ..Resources::default()
    };
    run_with(&SpillElim, &format!("{HEAD}\n{body}"), &[], &options, &resources)
}

/// What becomes of the code behind the frame.
fn becomes(body: &str, wanted: &str) {
    let (text, found) = run(body).expect(body);
    assert_eq!(text, trimmed(&format!("{HEAD}\n{wanted}")), "{:?}", found.skipped);
    assert!(found.sites > 0);
}

fn stays(body: &str, why: &str) {
    match run(body) {
        Ok((text, found)) => {
            assert_eq!((text, found.sites), (trimmed(&format!("{HEAD}\n{body}")), 0));
            assert!(
                found.skipped.iter().any(|s| s.reason.contains(why)),
                "{body}: {:?}",
                found.skipped
            );
        }
        Err(refused) => assert!(refused.to_string().contains(why), "{body}: {refused}"),
    }
}

#[test]
fn a_word_of_the_frame_becomes_a_register() {
    becomes(
        "STL [R1+0x4], R0 ;
         IADD3 R0, R0, 0x1, RZ ;
         LDL.LU R2, [R1+0x4] ;
         STS [R2], R0 ;
         EXIT ;",
        "MOV R3, R0 ;
         IADD3 R0, R0, 0x1, RZ ;
         MOV R2, R3 ;
         STS [R2], R0 ;
         EXIT ;",
    );
}

#[test]
fn words_that_are_accessed_together_become_registers_together() {
    becomes(
        "MOV R2, 0x1 ;
         MOV R3, 0x2 ;
         STL.64 [R1+0x8], R2 ;
         STL [R1+0xc], RZ ;
         @P0 LDL.64 R4, [R1+0x8] ;
         STS.64 [R0], R4 ;
         EXIT ;",
        "MOV R2, 0x1 ;
         MOV R3, 0x2 ;
         MOV R6, R2 ;
         MOV R7, R3 ;
         MOV R7, RZ ;
         @P0 MOV R4, R6 ;
         @P0 MOV R5, R7 ;
         STS.64 [R0], R4 ;
         EXIT ;",
    );
}

#[test]
fn ways_that_meet_and_loops_bring_what_was_stored() {
    // Stored on both ways to 0x90, then round a loop under a guard.
    becomes(
        "STL [R1], R0 ;
         @P0 BRA 0x60 ;
         STL [R1], RZ ;
         IADD3 R0, R0, 0x1, RZ ;
         LDL R2, [R1] ;
         IADD3 R2, R2, R0, RZ ;
         @P1 STL [R1], R2 ;
         @P2 BRA 0x60 ;
         LDL R3, [R1] ;
         STS [R0], R3 ;
         EXIT ;",
        "MOV R4, R0 ;
         @P0 BRA 0x60 ;
         MOV R4, RZ ;
         IADD3 R0, R0, 0x1, RZ ;
         MOV R2, R4 ;
         IADD3 R2, R2, R0, RZ ;
         @P1 MOV R4, R2 ;
         @P2 BRA 0x60 ;
         MOV R3, R4 ;
         STS [R0], R3 ;
         EXIT ;",
    );
}

#[test]
fn words_whose_times_do_not_meet_share_a_register() {
    let (text, found) = run("STL [R1], R0 ;
         LDL R2, [R1] ;
         STL [R1+0x4], R2 ;
         LDL R0, [R1+0x4] ;
         STS [R0], R0 ;
         EXIT ;")
    .expect("it may run");
    assert_eq!(found.sites, 2);
    assert!(text.contains("MOV R3, R0") && text.contains("MOV R3, R2"), "{text}");
}

#[test]
fn a_callee_keeps_the_registers_that_it_uses() {
    // It returns by R4 and R5, and writes R3.
    let body = |first: &str, second: &str| {
        format!(
            "{first} ;
         MOV R4, 0x60 ;
         CALL.REL.NOINC 0x90 ;
         {second} ;
         STS [R0], R2 ;
         EXIT ;
         IADD3 R3, R0, R0, RZ ;
         RET.REL.NODEC R4 0x0 ;"
        )
    };
    becomes(&body("STL [R1], R0", "LDL R2, [R1]"), &body("MOV R6, R0", "MOV R2, R6"));
}

#[test]
fn where_no_register_is_free_the_word_stays() {
    let body = "STL [R1], R0 ;
         IADD3 R0, R0, 0x1, RZ ;
         LDL R2, [R1] ;
         STS [R0], R2 ;
         EXIT ;";
    // R0 to R2 are taken.
    let (_, found) = limited(body, 8).expect("it may run");
    assert_eq!(found.sites, 1);
    let (text, found) = limited(
        &body
            .replace("R2", "R5")
            .replace("R0, R0", "R4, R0")
            .replace("[R0]", "[R4]"),
        8,
    )
    .expect("it may run");
    assert!(text.contains("MOV R2, R0"), "a gap between registers: {text}");
    assert_eq!(found.sites, 1);
    let full = "MOV R2, 0x1 ;\nMOV R3, 0x1 ;\nMOV R4, 0x1 ;\nMOV R5, 0x1 ;
         STL [R1], R0 ;
         IADD3 R0, R0, 0x1, RZ ;
         STS.128 [R0], R2 ;
         LDL R2, [R1] ;
         STS [R0], R2 ;
         EXIT ;";
    let full = full.replace("STS.128 [R0], R2", "STS.64 [R0], R2 ;\nSTS.64 [R0], R4");
    let (_, found) = limited(&full, 8).expect("it may run");
    assert_eq!(found.sites, 0);
    assert!(
        found.skipped[0].reason.contains("no register is free"),
        "{:?}",
        found.skipped
    );
    let (_, found) = limited(&full, 9).expect("it may run");
    assert_eq!(found.sites, 1);
}

#[test]
fn no_more_registers_are_taken_than_a_block_can_be_launched_with() {
    let others = |text: &str| -> String { (2..62).map(|n| text.replace('#', &n.to_string())).collect() };
    let body = format!(
        "{} STL [R1], R0 ;\nIADD3 R0, R0, 0x1, RZ ;\n{} LDL R2, [R1] ;\nSTS [R0], R2 ;\nEXIT ;",
        others("MOV R#, 0x1 ;\n"),
        others("STS [R0], R# ;\n")
    );
    let options = Options::default().with("registers", OptionValue::Int(128));
    let sites = |threads| {
        let resources = Resources {
            fixed: Some(Vec::new()),
            threads,
            ..Resources::default()
        };
        let done = run_with(&SpillElim, &format!("{HEAD}\n{body}"), &[], &options, &resources);
        done.expect("it may run").1.sites
    };
    // 1024 threads have 64 registers each.
    assert_eq!((sites(None), sites(Some(512)), sites(Some(1024))), (1, 1, 0));
}

#[test]
fn what_is_not_known_for_certain_stays() {
    let stored = "STL [R1], R0 ;\n";
    let loaded = "LDL R2, [R1] ;\nSTS [R0], R2 ;\nEXIT ;";
    for (code, why) in [
        ("@P0 STL [R1], R0 ;\n", "read before it is written"),
        ("@P0 BRA 0x50 ;\nSTL [R1], R0 ;\n", "read before it is written"),
        ("STL [R1], R0 ;\nSTL.U8 [R1+0x1], R0 ;\n", "less than a word"),
        (
            "STL [R1], R0 ;\nSTL [R0], R0 ;\n",
            "in another way than by the stack pointer",
        ),
        ("STL [R1], R1 ;\n", "in another way than by the stack pointer"),
        (
            "STL [R1], R0 ;\nIADD3 R3, R1, 0x4, RZ ;\n",
            "used for more than loads and stores",
        ),
        (
            "STL [R1], R0 ;\nMOV R3, c[0x0][0x28] ;\n",
            "used for more than loads and stores",
        ),
        (
            "STL [R1], R0 ;\nIADD3 R1, R1, 0x4, RZ ;\n",
            "used for more than loads and stores",
        ),
        (
            "STL [R1], R0 ;\n@P0 CALL.REL.NOINC 0x10 ;\n",
            "used for more than loads and stores",
        ),
    ] {
        stays(&format!("{code}{loaded}"), why);
    }
    stays(&format!("{stored}EXIT ;"), "nothing reads it");
    // Who does not know which registers the file names takes none.
    let options = Options::default();
    let listing = format!("{HEAD}\n{stored}{loaded}");
    let refused = run_with(&SpillElim, &listing, &[], &options, &Resources::default()).expect_err("it may not run");
    assert!(refused.to_string().contains("names registers"), "{refused}");
}
