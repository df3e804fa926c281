//! `info --cycles`: sums that the listing can be held against.

mod common;

use common::{mul_mat, ok, s};

/// Stall counts of a listing with scheduling columns, without the padding behind the last branch to itself.
fn stalls(listing: &str) -> Vec<u64> {
    let lines = listing.lines().filter(|l| l.contains("/*") && !l.contains(" NOP ;"));
    let column = |l: &str| l.rsplit_once(":S").and_then(|(_, s)| s.get(..2)?.parse().ok());
    lines.filter_map(column).collect()
}

#[test]
fn stalls_are_those_of_the_listing() {
    let cubin = mul_mat();
    let cubin = s(&cubin);
    let listing = ok(&["disasm", cubin, "--kernel", "mul_mat_q4_K", "--control"]);
    let expected: u64 = stalls(&listing).iter().sum();
    let done = ok(&["info", cubin, "--kernel", "mul_mat_q4_K", "--cycles", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&done).expect("JSON");
    let kernel = &json[0];
    assert_eq!(kernel["issue_cycles"], expected);
    let blocks = kernel["blocks"].as_array().expect("blocks");
    let sum = |name: &str| blocks.iter().map(|b| b[name].as_u64().expect(name)).sum::<u64>();
    assert_eq!(kernel["cycles"], sum("cycles"));
    assert_eq!(kernel["instructions"], sum("instructions"));
    // The loop's loads are waited for, and the chain that waits for them is no longer than the block.
    let slow = blocks.iter().max_by_key(|b| b["cycles"].as_u64()).expect("a block");
    assert!(slow["cycles"].as_u64() > Some(250), "{slow}");
    assert!(slow["critical_path"]["cycles"].as_u64() > Some(250), "{slow}");
    assert!(slow["critical_path"]["texts"].to_string().contains("LDG"), "{slow}");
    for b in blocks {
        assert!(b["critical_path"]["cycles"].as_u64() <= b["cycles"].as_u64(), "{b}");
        assert!(b["issue_cycles"].as_u64() <= b["cycles"].as_u64(), "{b}");
    }
    let out = ok(&["info", cubin, "--kernel", "mul_mat_q4_K", "--cycles"]);
    let first = out.lines().next().expect("a line").to_owned();
    assert!(
        first.starts_with("cycles: sm_87 mul_mat_q4_K - ") && first.contains(&format!(" {expected} cycles of stalls")),
        "{first}"
    );
}
