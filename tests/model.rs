//! The gates on the kernel model over real kernels: register allocation, pinned and scrambled. The gates that hold control flow and
//! liveness against NVIDIA's tool are `probe check-flow` and `probe check-live`.
//!
//! Run by `make check-corpus`, which sets `SASS_CORPUS`.

mod common;

use common::*;

/// Runs `regalloc` on every cubin of the corpus and of the project whose instructions the program knows; gives the outputs.
fn regalloc(options: &[&str]) -> Vec<String> {
    let mut files = cubins_below(&folder("SASS_CORPUS"));
    files.extend(own_cubins("."));
    let mut outputs = Vec::new();
    for file in files {
        let out = run(&[&["regalloc", arg(&file)], options].concat());
        let error = String::from_utf8_lossy(&out.stderr);
        match out.status.code() {
            Some(0 | 1) => outputs.push(String::from_utf8(out.stdout).expect("UTF-8")),
            _ => assert!(
                error.contains("no tables for") || error.contains("unknown target"),
                "{}: {error}",
                file.display()
            ),
        }
    }
    assert!(!outputs.is_empty(), "no cubin of a known target: run `make oracles`");
    outputs
}

/// `total: 12 kernels, 1 left alone, ...`: the numbers, added up.
fn totals(outputs: &[String]) -> Vec<usize> {
    let mut sum = Vec::new();
    for line in outputs.iter().filter_map(|o| o.lines().last()) {
        let numbers = line.split(|c: char| !c.is_ascii_digit()).filter(|w| !w.is_empty());
        let numbers: Vec<usize> = numbers.map(|w| w.parse().expect("a number")).collect();
        sum.resize(sum.len().max(numbers.len()), 0);
        sum.iter_mut().zip(numbers).for_each(|(s, n)| *s += n);
    }
    sum
}

#[test]
fn pinned_allocation_gives_the_bytes_back() {
    let outputs = regalloc(&["--pinned"]);
    for output in &outputs {
        assert!(output.ends_with("0 left alone, file identical\n"), "{output}");
    }
    println!(
        "regalloc --pinned: {} kernels in {} files, all bytes identical",
        totals(&outputs)[0],
        outputs.len()
    );
}

#[test]
fn scrambled_then_fresh_allocation_is_the_same_kernel() {
    let outputs = regalloc(&["--scramble", "7", "--fresh"]);
    let [kernels, left_alone, fit] = totals(&outputs)[..] else {
        panic!("{outputs:?}")
    };
    let mut reasons = std::collections::BTreeMap::<&str, usize>::new();
    for line in outputs.iter().flat_map(|o| o.lines()) {
        if let Some((_, why)) = line.split_once(": left alone: ") {
            *reasons.entry(why).or_default() += 1;
        }
    }
    println!(
        "regalloc --scramble 7 --fresh: {kernels} kernels, {left_alone} left alone, {fit} with no more registers than before"
    );
    for (why, n) in &reasons {
        println!("  {n} left alone: {why}");
    }
    let unsound = reasons.keys().filter(|w| !w.contains("names registers")).count();
    assert_eq!(
        unsound, 0,
        "a kernel may only be left alone because something else names its registers"
    );
    assert!(fit * 10 >= kernels * 9, "fewer than 90% need no more registers");
}
