//! Passes that change scheduling bits and order, on listings with both.

mod common;

use common::isa;
use isa::asm::Assembler;
use isa::{Control, Target};
use sass2mlir_passes::{Context, Options, Pass, PassResult, Refusal, Reschedule, Resources, ReuseFlags, YieldTune};

/// Runs a pass; the listing after its edits, and what it found.
fn run(pass: &dyn Pass, listing: &str, pinned: &[u64]) -> Result<(String, PassResult), Refusal> {
    let sections = Assembler::new(isa()).listing(listing, None).expect(listing);
    let bytes: Vec<u8> = sections[0].words.iter().flat_map(|w| w.to_le_bytes()).collect();
    let mut kernel = ir::lift(isa(), &ir::Source::new("k", Target::Sm87, &bytes)).expect(listing);
    let cx = Context {
        isa: isa(),
        params: None,
        pinned,
        resources: &Resources::default(),
    };
    let found = pass.run(&cx, &kernel, &Options::default())?;
    kernel.apply(isa(), &found.edits).expect("the edits fit");
    let code = ir::lower(&kernel).expect("the pins hold");
    let mut text = String::new();
    for (n, inst) in isa().decode_all(&code).enumerate() {
        text.push_str(&format!("[{}] ", Control::of(inst.word)));
        isa().write_text(inst, 16 * n as u64, &mut text, None).expect("text");
        text.push('\n');
    }
    Ok((text, found))
}

fn trimmed(listing: &str) -> String {
    listing.lines().map(|l| format!("{}\n", l.trim())).collect()
}

/// A load whose result is awaited at once, with something behind that could be done meanwhile.
const WAITS: &str = "[B------:R-:W0:-:S02] LDS R2, [R0]
     [B0-----:R-:W-:-:S05] IADD3 R3, R2, 0x1, RZ
     [B------:R-:W-:-:S04] IADD3 R4, R0, 0x1, RZ
     [B------:R-:W-:-:S05] IADD3 R5, R4, 0x1, RZ
     [B------:R1:W-:-:S02] STS [R0], R3
     [B------:R1:W-:-:S01] STS [R0+0x4], R5
     [B------:R-:W-:-:S05] EXIT";

#[test]
fn what_waits_for_nothing_comes_before_what_waits() {
    let (text, found) = run(&Reschedule, WAITS, &[]).expect("it may run");
    let place = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what} in\n{text}"));
    assert!(
        place("IADD3 R4") < place("IADD3 R3") && place("IADD3 R5") < place("IADD3 R3"),
        "{text}"
    );
    assert!(
        place("LDS") < place("IADD3 R3") && place("IADD3 R3") < place("STS [R0], R3"),
        "{text}"
    );
    assert!(found.sites >= 2, "{}", found.sites);
}

#[test]
fn what_the_file_names_stays_in_its_place() {
    let all: Vec<u64> = (0..7).map(|n| 16 * n).collect();
    let (text, found) = run(&Reschedule, WAITS, &all).expect("it may run");
    assert_eq!(found.sites, 0, "{text}");
    // A sum that is read too early: nobody knows what the kernel relies on.
    let hazard = WAITS.replace("S04] IADD3 R4", "S01] IADD3 R4");
    let why = run(&Reschedule, &hazard, &[]).unwrap_err();
    assert!(why.0.contains("with the bits that it has"), "{why}");
}

#[test]
fn an_operand_is_kept_for_the_next_instruction() {
    let listing = "[B------:R-:W-:-:S04] FFMA R4, R2, R3, R5
         [B------:R-:W-:-:S04] FFMA R6, R2, R7, R8
         [B------:R-:W-:-:S04] FFMA R9, R7, R2, R8
         [B------:R-:W-:Y:S04] FFMA R2, R9, R10, R11
         [B------:R-:W-:-:S04] FFMA R12, R9, R2, R11
         [B------:R-:W-:-:S05] EXIT";
    let (text, found) = run(&ReuseFlags, listing, &[]).expect("it may run");
    // The second operand of the third is not the place where the second had it; the fourth lets others issue; its result is no operand.
    let wanted = "[B------:R-:W-:-:S04] FFMA R4, R2.reuse, R3, R5
         [B------:R-:W-:-:S04] FFMA R6, R2, R7, R8.reuse
         [B------:R-:W-:-:S04] FFMA R9, R7, R2, R8
         [B------:R-:W-:Y:S04] FFMA R2, R9, R10, R11
         [B------:R-:W-:-:S04] FFMA R12, R9, R2, R11
         [B------:R-:W-:-:S05] EXIT";
    assert_eq!(text, trimmed(wanted));
    assert_eq!((found.sites, found.ops), (2, 2));
    assert_eq!(run(&ReuseFlags, wanted, &[]).expect("it may run").1.sites, 0);
}

#[test]
fn a_run_of_products_keeps_issuing() {
    let product = |n: u8, control: &str| format!("[{control}] FFMA R{n}, R0, R1, R2\n");
    let run_of = |count: u8| -> String {
        let products = (0..count).map(|n| product(10 + n, "B------:R-:W-:Y:S04"));
        products.chain(["[B------:R-:W-:-:S05] EXIT\n".to_owned()]).collect()
    };
    let (text, found) = run(&YieldTune, &run_of(5), &[]).expect("it may run");
    assert_eq!(text.matches(":-:S04").count(), 4, "{text}");
    assert!(
        text.contains("[B------:R-:W-:Y:S04] FFMA R14"),
        "the last one may yield: {text}"
    );
    assert_eq!((found.sites, found.ops), (1, 4));
    let short = run(&YieldTune, &run_of(3), &[]).expect("it may run");
    assert_eq!((short.0, short.1.sites), (run_of(3), 0));
    // Too long a stall, and a batch number.
    let stays = [
        product(10, "B------:R-:W-:Y:S13"),
        product(11, "B------:R-:W-:Y:S04:b3"),
    ]
    .concat()
    .repeat(2)
        + &run_of(0);
    assert_eq!(run(&YieldTune, &stays, &[]).expect("it may run").1.sites, 0);
}

#[test]
fn where_nothing_moves_nothing_is_rewritten() {
    let tight = "[B------:R-:W-:-:S08] IADD3 R4, R0, 0x1, RZ
     [B------:R-:W-:-:S05] EXIT";
    let (text, found) = run(&Reschedule, tight, &[]).expect("it may run");
    assert_eq!((text, found.sites, found.ops), (trimmed(tight), 0, 0));
    let (_, found) = run(&Reschedule, WAITS, &[]).expect("it may run");
    assert!(found.ops >= found.sites, "{} < {}", found.ops, found.sites);
}
