//! What kernels do wrong is found, named, and placed.

use std::path::Path;

use emu::check::Checker;
use emu::{Launch, LaunchError, Memory, Program};

const THREADS: usize = 64;

/// Runs a kernel of faults.cu with the checker; its findings, and why it stopped.
fn run(kernel: &str) -> (Vec<String>, Option<String>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/kernels/emu/sm_87/faults.cubin");
    let file = std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let image = cubin::Image::parse(&file).expect("parses");
    let program = Program::new(&image, kernel).expect("a program");
    let mut memory = Memory::new();
    let mut params = memory.place("out", vec![0; 4 * THREADS], 0).to_le_bytes().to_vec();
    let input = (0..THREADS as u32).flat_map(|n| if kernel == "endless" { [0; 4] } else { n.to_le_bytes() });
    params.extend(memory.place("in", input.collect(), 0).to_le_bytes());
    params.extend(1i32.to_le_bytes());
    let launch = Launch {
        block: [THREADS as u32, 1, 1],
        params,
        max_steps: 10_000,
        ..Launch::default()
    };
    let mut checker = Checker::new(&memory, |name| name == "out");
    let stop = match emu::launch(&program, &launch, &mut memory, Some(&mut checker)) {
        Ok(_) => None,
        Err(LaunchError::Fault(f)) => Some(f.to_string()),
        Err(e) => panic!("{e}"),
    };
    (checker.findings().map(|f| f.text(&program)).collect(), stop)
}

#[track_caller]
fn found(kernel: &str, words: &[&str]) {
    let (findings, stop) = run(kernel);
    assert_eq!(stop, None);
    let fits = |f: &String| words.iter().all(|w| f.contains(w));
    assert!(findings.iter().any(fits), "{words:?} in {findings:#?}");
}

#[track_caller]
fn stops(kernel: &str, words: &[&str]) {
    let stop = run(kernel).1.expect("it stops");
    assert!(words.iter().all(|w| stop.contains(w)), "{words:?} in {stop}");
}

#[test]
fn a_kernel_without_mistakes_has_no_findings() {
    assert_eq!(run("good"), (vec![], None));
}

#[test]
fn races() {
    found("race", &["race between warps", "LDS", "STS", "shared address"]);
    found(
        "write_after_read",
        &["race between warps", "STS", "with write_after_read", "LDS"],
    );
}

#[test]
fn reads_of_what_nobody_wrote() {
    found("unwritten_shared", &["nobody wrote", "LDS", "warp 1"]);
    found("unwritten_global", &["nobody wrote", "LDG", "64 times"]);
}

#[test]
fn addresses() {
    stops(
        "out_of_bounds",
        &[
            "LDG",
            "load of 4 bytes",
            "out of bounds",
            "nearest is in of 256 bytes, at its offset 256",
            "thread (63,0,0)",
        ],
    );
    stops("misaligned", &["misaligned", "thread (1,0,0)"]);
}

#[test]
fn lanes_that_are_missing() {
    stops("part_of_warp", &["IMMA", "only lanes 0xaaaaaaaa are here"]);
}

#[test]
fn what_never_ends() {
    stops("endless", &["no end after 10000 warp instructions"]);
    stops("trapped", &["trapped", "BPT"]);
    stops("never_meets", &["deadlock", "warp 0: lanes 0xffffffff at BAR"]);
}
