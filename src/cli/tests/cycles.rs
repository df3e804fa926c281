//! `info --cycles`: sums that the listing can be held against.

mod common;

use common::{entry, folder, mul_mat, ok, s};

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
    // What a block has begun, another one may wait for.
    assert!(kernel["cycles"].as_u64() >= Some(sum("cycles")), "{kernel}");
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

/// `apply` prints of a kernel what `info --cycles` says of the file before and after.
#[test]
fn estimates_are_the_same_everywhere() {
    let (dir, config) = folder(&entry("reschedule", "apply", ""));
    let new = dir.path().join("new.cubin");
    let done = ok(&["apply", s(&mul_mat()), "--config", s(&config), "-o", s(&new), "--json"]);
    let report: serde_json::Value = serde_json::from_str(&done).expect("JSON");
    let cycles = |file: &std::path::Path, name: &str| {
        let done = ok(&["info", s(file), "--kernel", name, "--cycles", "--json"]);
        let json: serde_json::Value = serde_json::from_str(&done).expect("JSON");
        (json[0]["issue_cycles"].clone(), json[0]["cycles"].clone())
    };
    let kernels = report["images"][0]["kernels"].as_array().expect("kernels");
    let costs = kernels.iter().filter(|k| !k["costs"].is_null());
    let mut compared = 0;
    for kernel in costs {
        let name = kernel["name"].as_str().expect("a name");
        for (n, file) in [mul_mat(), new.clone()].iter().enumerate() {
            let costs = &kernel["costs"];
            let said = (costs["issue_cycles"][n].clone(), costs["cycles"][n].clone());
            assert_eq!(said, cycles(file, name), "{name}");
            compared += 1;
        }
    }
    assert!(compared >= 4, "{report}");
}
