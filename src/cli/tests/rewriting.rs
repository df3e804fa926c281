//! Passes that rewrite what a kernel keeps where, on kernels that were compiled for them: other code, the same memory on the emulator.

mod common;

use common::{folder, kernels, listing, run, s};
use serde_json::Value;

/// Targets for which these kernels are bundled.
const TARGETS: [&str; 5] = ["sm_75", "sm_80", "sm_87", "sm_90a", "sm_120a"];

/// Launches of which `apply --verify` has to compare the memory.
const LAUNCHES: u64 = 20;

/// Runs a pass over a bundled file for every target; gives the kernels that it rewrote, each as in `--json`, with its listing.
fn rewritten(pass: &str, options: &str, file: &str) -> Vec<(&'static str, Value, String)> {
    let (dir, config) = folder(&format!("[[pass]]\nname = \"{pass}\"\nmode = \"apply\"\n{options}\n"));
    let mut all = Vec::new();
    for target in TARGETS {
        let input = kernels(&format!("passes/{target}/{file}"));
        let out = dir.path().join(format!("{target}.cubin"));
        let said = run(&[
            "apply",
            s(&input),
            "--config",
            s(&config),
            "-o",
            s(&out),
            "--verify",
            "--json",
            "--strip-mercury",
        ]);
        let report = said.json();
        let lines = listing(&out);
        for kernel in report["images"][0]["kernels"].as_array().expect("kernels") {
            if kernel["changed"].as_u64() > Some(0) {
                let verified = &kernel["verified"];
                assert!(verified["launches"].as_u64() >= Some(LAUNCHES), "{target}: {kernel}");
                let own = lines.iter().filter(|(name, _)| kernel["name"] == **name);
                let text = own.map(|(_, text)| format!("{text}\n"));
                all.push((target, kernel.clone(), text.collect()));
            }
        }
    }
    all
}

#[test]
fn registers_are_given_back() {
    let all = rewritten("reg-shrink", "registers = 14", "registers.cubin");
    for target in TARGETS {
        let mut own = all.iter().filter(|(t, ..)| *t == target).peekable();
        assert!(own.peek().is_some(), "{target}");
        for (_, kernel, _) in own {
            assert!(kernel["registers"].as_u64() <= Some(14), "{target}: {kernel}");
        }
    }
}

#[test]
fn values_leave_local_memory() {
    let all = rewritten("spill-elim", "", "spills.cubin");
    for target in TARGETS {
        assert!(
            all.iter()
                .any(|(t, kernel, _)| *t == target && kernel["name"] == "sums"),
            "{target}"
        );
    }
    assert!(all.iter().any(|(_, kernel, _)| kernel["name"] == "pairs"));
    // Who indexes an array in its frame keeps it.
    assert!(all.iter().all(|(_, kernel, _)| kernel["name"] != "indexed"));
    let (.., listing) = all
        .iter()
        .find(|(target, kernel, _)| *target == "sm_87" && kernel["name"] == "sums")
        .expect("rewritten");
    assert!(!listing.contains("LDL") && !listing.contains("STL"), "{listing}");
}

#[test]
fn neighbouring_loads_become_one() {
    let all = rewritten("ldg-vectorize", "", "loads.cubin");
    for target in TARGETS {
        let mut names: Vec<&str> = all
            .iter()
            .filter(|(t, ..)| *t == target)
            .filter_map(|(_, kernel, _)| kernel["name"].as_str())
            .collect();
        names.sort_unstable();
        // A store parts those of another kernel, and of the last one nothing proves that they may be one.
        assert_eq!(names, ["behind_load", "behind_store"], "{target}");
    }
    for (_, kernel, listing) in &all {
        let wide = if kernel["name"] == "behind_store" {
            ".128"
        } else {
            ".64"
        };
        let loads = || listing.lines().filter(|line| line.contains("LDG.E"));
        assert!(loads().any(|line| line.contains(wide)), "{listing}");
        assert!(
            loads().all(|line| line.contains(".64") || line.contains(".128")),
            "{listing}"
        );
    }
}

/// The file declares blocks of 1024 threads and gives 64 registers: with as many more as would be taken, no block could be launched.
#[test]
fn blocks_still_fit_with_more_registers() {
    let input = kernels("sm_87/own_features.cubin");
    let kernel = ["--kernel", "*spill_regs*"];
    let (dir, config) =
        folder("[[pass]]\nname = \"spill-elim\"\nfn = [\"*spill_regs*\"]\nmode = \"apply\"\nregisters = 255\n");
    let out = dir.path().join("OUT.cubin");
    let apply = run(&["apply", s(&input), "--config", s(&config), "-o", s(&out)]);
    let scramble = run(&[&["regalloc", s(&input), "--scramble", "3"][..], &kernel[..]].concat());
    assert_eq!((apply.code, apply.err.as_str()), (0, ""), "as many are taken as fit");
    let json = run(&["info", s(&out), "--json"]).json().to_string();
    assert!(
        !json.contains("\"registers\":65") && json.contains("\"registers\":64"),
        "{json}"
    );
    assert!(
        scramble
            .out
            .contains("a block of the 1024 threads that it declares would not fit"),
        "{}",
        scramble.out
    );
}
