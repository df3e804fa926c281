//! `lower`: texts that a person changed.

mod common;

use std::fs;

use common::{kernels, ok, run, s};

/// The kernel `scale_add`, its text changed by `change`, on the emulator: what `lower` and `run` print, and what `lower` warns of.
struct Changed {
    dir: tempfile::TempDir,
    said: String,
    warned: String,
}

const STORE: &str = " raw 0x000fe2000c1019040000000704007986";

impl Changed {
    fn new(change: impl Fn(&str) -> Vec<String>) -> Changed {
        let dir = tempfile::tempdir().expect("a folder");
        let path = |name: &str| s(&dir.path().join(name)).to_owned();
        let file = s(&kernels("sm_87/own_mul_mat.cubin")).to_owned();
        ok(&["lift", &file, "--kernel", "scale_add", "-o", &path("text")]);
        let text = fs::read_to_string(path("text")).expect("the text");
        let lines: Vec<String> = text.lines().flat_map(change).collect();
        fs::write(path("text"), lines.join("\n") + "\n").expect("written");
        let done = run(&["lower", &path("text"), "--into", &file, "-o", &path("out")]);
        assert_eq!(done.code, 0, "{}{}", done.out, done.err);
        let (said, warned) = (done.out, done.err);
        Changed { dir, said, warned }
    }

    fn out(&self) -> String {
        s(&self.dir.path().join("out")).to_owned()
    }

    fn results(&self) -> String {
        let out = self.out();
        let launch = ["run", &out, "--kernel", "scale_add", "--grid", "2", "--block", "64"];
        let arrays = ["--arg", "f32[100]=iota", "--arg", "y:f32[100]"];
        let numbers = ["--arg", "f32=2", "--arg", "f32=0.5", "--arg", "i32=100"];
        ok(&[&launch[..], &arrays, &numbers].concat())
    }
}

/// The result is added to itself before it is stored, with so many cycles in between.
fn doubled(line: &str, stall: u32) -> Vec<String> {
    if !line.ends_with("-> ()") || !line.contains(STORE) {
        return vec![line.to_owned()];
    }
    let add = format!(
        "    %900 = sass.FADD_0x221 guard(%PT) %31, %31 regs(\"R7\") sched(\"B------:R-:W-:-:S{stall:02}\") : (!sass.reg, !sass.reg) -> (!sass.reg)"
    );
    let store = line
        .replace(STORE, " sched(\"B------:R-:W-:-:S01\")")
        .replace("], %31 ", "], %900 ");
    vec![add, store]
}

#[test]
fn code_grows_by_what_a_text_has_more() {
    let changed = Changed::new(|line| doubled(line, 6));
    assert_eq!(changed.warned, "");
    assert_eq!(changed.said, "lower: sm_87 scale_add - 48 instructions, 1 changed\n");
    let results = changed.results();
    assert!(
        results.contains("0 elements changed") && results.contains(": 1 5 9 13 17 21 25 29 ..."),
        "{results}"
    );
    ok(&["check", &changed.out(), "--kernel", "scale_add"]);
}

#[test]
fn code_shrinks_by_what_a_text_has_less() {
    let changed = Changed::new(|line| match line.contains("sass.FFMA_0x623.FTZ") {
        true => vec![],
        false => vec![
            line.replace("], %31 ", "], %28 ")
                .replace(STORE, " sched(\"B--2---:R-:W-:-:S01\")"),
        ],
    });
    let results = changed.results();
    assert!(results.contains(": 0 1 2 3 4 5 6 7 ..."), "{results}");
}

#[test]
fn a_text_that_brings_a_hazard_is_told() {
    let changed = Changed::new(|line| doubled(line, 1));
    assert!(
        changed
            .warned
            .contains("scale_add: warning: a hazard that the old code does not have"),
        "{}",
        changed.warned
    );
}
