//! `check` as a user runs it: verdicts, exit codes, what a finding says, wrong inputs.

mod common;

use std::path::{Path, PathBuf};

use common::{bad, kernels, ok, run, s};

/// A file like `own_mul_mat.cubin` whose kernel `scale_add` waits for nothing.
fn without_waits(folder: &Path) -> PathBuf {
    let cubin = kernels("sm_87/own_mul_mat.cubin");
    let listing = ok(&["disasm", s(&cubin), "--kernel", "scale_add", "--asm"]);
    let mut lines = Vec::new();
    for line in listing.lines() {
        lines.push(match line.find("[B") {
            Some(at) => format!("{}[B------{}", &line[..at], &line[at + 8..]),
            None => line.to_owned(),
        });
    }
    let (sass, out) = (folder.join("K.sass"), folder.join("K.cubin"));
    std::fs::write(&sass, lines.join("\n") + "\n").expect("the folder can be written");
    ok(&["asm", s(&sass), "--into", s(&cubin), "-o", s(&out)]);
    out
}

#[test]
fn what_the_compiler_made_is_clean() {
    let done = run(&["check", s(&kernels("sm_87/own_mul_mat.cubin"))]);
    let out = &done.out;
    assert_eq!(done.code, 0, "{out}");
    assert!(out.starts_with("check: sm_87 "), "{out}");
    let last = out.lines().last().expect("a total");
    assert!(
        last.starts_with("total: 4 kernels, ") && last.ends_with(": 4 clean, 0 with hazards, 0 without a verdict"),
        "{last}"
    );
}

#[test]
fn a_dropped_wait_is_a_hazard_with_its_place() {
    let folder = tempfile::tempdir().expect("a folder");
    let broken = without_waits(folder.path());
    let done = run(&["check", s(&broken), "--kernel", "scale_add"]);
    let out = &done.out;
    assert_eq!(done.code, 1, "{out}");
    let lines: Vec<&str> = out.lines().collect();
    assert!(
        lines[0].starts_with("check: sm_87 scale_add - ") && lines[0].ends_with(": hazards"),
        "{out}"
    );
    let finding = lines
        .iter()
        .position(|l| l.contains(": not-awaited: RAW on R"))
        .expect("a finding");
    let offset = lines[finding]
        .trim()
        .split(':')
        .next()
        .expect("an offset")
        .trim_start_matches("0x");
    assert!(lines[finding].contains(", SB"), "{out}");
    // Both instructions, the one where it goes wrong last.
    assert!(lines[finding + 1].trim_start().starts_with("/*"), "{out}");
    assert!(
        lines[finding + 2].trim_start().starts_with(&format!("/*{offset}*/")),
        "{out}"
    );
    assert!(
        lines.last().expect("a total").contains("0 clean, 1 with hazards"),
        "{out}"
    );
    // The other kernels of the file are as they were.
    let others = run(&["check", s(&broken), "--kernel", "mul_mat*"]);
    assert_eq!(others.code, 0, "{}", others.out);
}

#[test]
fn explanations_say_what_cures_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let done = run(&["check", s(&without_waits(folder.path())), "--explain"]);
    let out = &done.out;
    let explained: Vec<&str> = out.lines().filter(|l| l.starts_with("not-awaited: ")).collect();
    assert_eq!(explained.len(), 1, "{out}");
    assert!(explained[0].contains("wait mask"), "{out}");
    assert!(!out.contains("\nreuse: "), "only what was found is explained:\n{out}");
}

#[test]
fn json_says_everything() {
    let folder = tempfile::tempdir().expect("a folder");
    let done = run(&["check", s(&without_waits(folder.path())), "--json"]);
    assert_eq!(done.code, 1);
    let json = done.json();
    let all = json.as_array().expect("a list of kernels");
    assert_eq!(all.len(), 4);
    for kernel in all {
        let broken = kernel["name"] == "scale_add";
        assert_eq!(kernel["verdict"], if broken { "hazards" } else { "clean" });
        assert_eq!(kernel["findings"].as_array().is_some_and(Vec::is_empty), !broken);
    }
    let broken = all.iter().find(|k| k["name"] == "scale_add").expect("the kernel");
    let finding = &broken["findings"][0];
    assert_eq!(finding["hazard"], "not-awaited");
    assert!(
        finding["offset"].as_u64() > finding["earlier_offset"].as_u64(),
        "{finding}"
    );
    assert!(
        finding["scoreboards"].as_array().is_some_and(|s| !s.is_empty()),
        "{finding}"
    );
    assert!(
        finding["text"].is_string() && finding["earlier_text"].is_string(),
        "{finding}"
    );
}

/// A word that no table knows in the middle of a kernel.
#[test]
fn what_is_not_known_has_no_verdict() {
    const OPAQUE: u128 = 0x000f_ea00_0000_0000_0000_0000_0000_0fff;
    let folder = tempfile::tempdir().expect("a folder");
    let mut bytes = std::fs::read(kernels("sm_87/own_mul_mat.cubin")).expect("a bundled file");
    let image = cubin::Image::parse(&bytes).expect("a cubin");
    let at = image.code("scale_add").expect("a kernel of it").range.start + 4 * 16;
    bytes[at..at + 16].copy_from_slice(&OPAQUE.to_le_bytes());
    let cubin = folder.path().join("K.cubin");
    std::fs::write(&cubin, bytes).expect("the folder can be written");
    let args = ["check", s(&cubin), "--kernel", "scale_add"];
    let done = run(&args);
    assert_eq!(done.code, 1, "{}", done.out);
    assert!(
        done.out.contains(": unknown\n") && done.out.contains("0x0040: unknown"),
        "{}",
        done.out
    );
    let json = run(&[&args[..], &["--json"]].concat()).json();
    assert_eq!(json[0]["verdict"], "unknown");
    assert_eq!(json[0]["findings"][0]["hazard"], "unknown", "{json}");
}

#[test]
fn code_for_a_debugger_has_no_verdict_and_is_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let cubin = kernels("debug/debugged.cubin");
    let done = run(&["check", s(&cubin), "--explain"]);
    assert_eq!(done.code, 1, "{}", done.out);
    let reason = "unscheduled: compiled for a debugger";
    for part in [
        ": unknown\n",
        reason,
        "0 with hazards, 1 without a verdict",
        "Compile it without that option.",
    ] {
        assert!(done.out.contains(part), "{part}: {}", done.out);
    }
    let out = folder.path().join("OUT.cubin");
    let done = run(&["schedule", s(&cubin), "--keep-order", "-o", s(&out)]);
    assert_eq!(done.code, 1, "{}", done.out);
    assert!(
        done.out.contains("left alone") && done.out.contains(reason),
        "{}",
        done.out
    );
}

#[test]
fn wrong_input_is_named() {
    for (args, word) in [
        (vec!["check", "/nonexistent/K.cubin"], "/nonexistent/K.cubin"),
        (vec!["check", "Cargo.toml"], "Cargo.toml"),
        (vec!["check", "K.cubin", "--json", "--explain"], "--explain"),
    ] {
        bad(&args, &[word]);
    }
}
