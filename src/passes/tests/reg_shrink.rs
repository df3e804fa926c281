//! `reg-shrink` on listings.

mod common;

use common::{run_with, trimmed};
use ir::Pin;
use isa::RegFile;
use sass2mlir_passes::{OptionValue, Options, PassResult, Refusal, RegShrink, Resources};

/// What a file says of a kernel with so many registers.
fn resources(registers: u32) -> Resources {
    Resources {
        registers: Some(registers),
        fixed: Some(Vec::new()),
        ..Resources::default()
    }
}

fn to(registers: i64) -> Options {
    Options::default().with("registers", OptionValue::Int(registers))
}

fn run(listing: &str, options: &Options, resources: &Resources) -> Result<(String, PassResult), Refusal> {
    run_with(&RegShrink, listing, &[], options, resources)
}

const LISTING: &str = "S2R R9, SR_TID.X ;
     IMAD.WIDE R30, R9, 0x4, R2 ;
     IADD3 R5, R9, 0x1, RZ ;
     STG.E [R30], R5 ;
     EXIT ;";

#[test]
fn values_move_together_into_fewer_registers() {
    let (text, found) = run(LISTING, &to(8), &resources(34)).expect("it may run");
    assert_eq!(found.sites, 1, "{:?}", found.skipped);
    // R2 and R3 are there when the kernel begins; a pair stays a pair.
    assert!(text.contains("0x4, R2 ;"), "{text}");
    for line in text.lines() {
        let names = line.split(|c: char| !c.is_ascii_alphanumeric());
        let numbers = names.filter_map(|name| name.strip_prefix('R')?.parse::<u32>().ok());
        assert!(numbers.clone().all(|n| n < 6), "{text}");
    }
    let pair = text
        .split("IMAD.WIDE R")
        .nth(1)
        .and_then(|t| t.split(',').next())
        .expect("a pair");
    assert_eq!(pair.parse::<u32>().map(|n| n % 2), Ok(0), "{text}");
    assert!(text.contains(&format!("[R{pair}]")), "{text}");
}

#[test]
fn the_next_step_is_where_more_warps_are_resident() {
    // 42 registers: 40 warps of blocks of 256 threads; 40 registers: 48.
    let (_, found) = run(&LISTING.replace("R30", "R38"), &Options::default(), &resources(42)).expect("it may run");
    let headline = found.headline.expect("a headline");
    assert!(
        headline.contains("instead of 42, 48 warps resident instead of 40"),
        "{headline}"
    );
    // With 40 all warps are there.
    let (text, found) = run(LISTING, &Options::default(), &resources(40)).expect("it may run");
    assert_eq!((text, found.sites), (trimmed(LISTING), 0));
    assert!(found.skipped[0].reason.contains("no more warps"), "{:?}", found.skipped);
}

#[test]
fn where_there_is_no_such_allocation_nothing_changes() {
    let stays =
        |listing: &str, options: &Options, resources: &Resources, why: &str| match run(listing, options, resources) {
            Ok((text, found)) => {
                assert_eq!((text, found.edits.edits.len()), (trimmed(listing), 0));
                assert!(found.skipped[0].reason.contains(why), "{:?}", found.skipped);
            }
            Err(refused) => assert!(refused.to_string().contains(why), "{refused}"),
        };
    // Four values at once, two of which stay in R2 and R3.
    stays(LISTING, &to(5), &resources(34), "no allocation with 5 registers");
    let mut named = resources(34);
    named.fixed = Some(vec![Pin::new(RegFile::R, 30), Pin::new(RegFile::R, 31)]);
    stays(LISTING, &to(8), &named, "no allocation");
    named.fixed = None;
    stays(LISTING, &to(8), &named, "names registers");
    let mut function = resources(34);
    function.registers = None;
    stays(LISTING, &to(8), &function, "it is no kernel");
    let calls = LISTING.replace("EXIT", "CALL.ABS.NOINC R4 ;\nEXIT");
    stays(&calls, &to(8), &resources(34), "calls code that is not known");
}
