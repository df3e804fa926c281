//! `schedule`: the kernels compute what they did, check clean, and are as long as they were.

mod common;

use std::path::Path;

use common::{kernels, ok, run, s};

/// Lines of a listing, sorted, without their places.
fn instructions(file: &Path) -> Vec<String> {
    let out = ok(&["disasm", s(file)]);
    let lines = out.lines().filter_map(|l| l.split_once("*/"));
    // Where a remark stands depends on the length of the text before it.
    let plain = |t: &str| {
        let text = t.split(['(', ';']).next().unwrap_or(t).replace(".reuse", "");
        text.trim().to_owned()
    };
    let mut lines: Vec<String> = lines.map(|(_, t)| plain(t)).collect();
    lines.sort();
    lines
}

#[test]
fn scheduled_kernels_compute_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    // The emulator takes a minute for all kernels of the file with every feature.
    for (name, run_it) in [
        ("sm_87/own_mul_mat.cubin", true),
        ("emu/sm_87/half.cubin", true),
        ("emu/sm_87/flow.cubin", true),
        ("sm_87/own_features.cubin", false),
    ] {
        let (cubin, out) = (kernels(name), folder.path().join("OUT.cubin"));
        for options in [&["--keep-order"][..], &[]] {
            let args = [&["schedule", s(&cubin), "-o", s(&out)], options].concat();
            let done = run(&args);
            let said = &done.out;
            // Matrix products of which the latency is not known stay as they are.
            let left_alone = said.lines().filter(|l| l.contains(": left alone: at ")).count();
            let code = i32::from(left_alone > 0);
            assert_eq!(done.code, code, "{name} {options:?}: {said}");
            assert!(left_alone <= 2, "{said}");
            let total = said.lines().last().expect("a total");
            assert_eq!(
                total.ends_with(", 0 instructions moved"),
                !options.is_empty(),
                "{name}: {total}"
            );
            let old = std::fs::read(&cubin).expect("a file");
            let new = std::fs::read(&out).expect("a file");
            assert!(old.len() == new.len() && old != new, "{name} {options:?}");
            assert_eq!(instructions(&cubin), instructions(&out), "{name} {options:?}");
            let checked = run(&["check", s(&out)]);
            let verdicts = &checked.out;
            assert!(
                verdicts.contains(", 0 with hazards, "),
                "{name} {options:?}: {verdicts}"
            );
            if !run_it {
                continue;
            }
            let verified = run(&["verify", s(&cubin), s(&out), "--launches", "4", "--timing"]);
            let compared = &verified.out;
            assert!(
                compared.contains(" launches, ") && !compared.contains("DIFFERENT"),
                "{name} {options:?}: {compared}"
            );
        }
    }
}

#[test]
fn what_is_not_known_is_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let (cubin, out) = (kernels("debug/debugged.cubin"), folder.path().join("OUT.cubin"));
    let done = run(&["schedule", s(&cubin), "--kernel", "debugged", "-o", s(&out)]);
    assert_eq!(done.code, 1, "{}", done.err);
    assert!(
        done.out.contains("debugged - ") && done.out.contains(": left alone: "),
        "{}",
        done.out
    );
    let total = done.out.lines().last().expect("a total");
    assert!(total.contains("1 left alone, 0 instructions moved"), "{total}");
}
