//! The gates on the kernel model over real kernels: register allocation, pinned and scrambled. The gates that hold control flow and
//! liveness against NVIDIA's tool are `probe check-flow` and `probe check-live`.
//!
//! Run by `make check-corpus`, which sets `SASS_CORPUS` (real kernels), `SASS_OWN` (own ones for all targets) and `SASS_ORACLES`.

mod common;
#[path = "common/labelled.rs"]
mod labelled;
#[path = "common/lined.rs"]
mod lined;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use common::*;

/// Every cubin of the corpus and of the project, the own kernels for all targets among them.
fn every_cubin() -> Vec<PathBuf> {
    let mut files = all_cubins();
    files.extend(cubins_below(&folder("SASS_OWN").join("kernels")));
    files
}

/// Runs `regalloc` on the cubins whose instructions the program knows; gives the outputs.
fn regalloc(files: &[PathBuf], options: &[&str]) -> Vec<String> {
    let outputs = parallel(files, |file| {
        let out = run(&[&["regalloc", arg(file)], options].concat());
        if is_unknown_target(&out) {
            return None;
        }
        let error = String::from_utf8_lossy(&out.stderr);
        assert!(matches!(out.status.code(), Some(0 | 1)), "{}: {error}", file.display());
        Some(String::from_utf8(out.stdout).expect("UTF-8"))
    });
    let outputs: Vec<String> = outputs.into_iter().flatten().collect();
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
    let outputs = regalloc(&every_cubin(), &["--pinned"]);
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
    let outputs = regalloc(&every_cubin(), &["--scramble", "7", "--fresh"]);
    // By target: kernels, those left alone, those that need no more registers than before, and those with a word that no table knows.
    let mut by_target = BTreeMap::<&str, [usize; 4]>::new();
    for output in &outputs {
        // A file without kernels names no target.
        let Some((target, _)) = output.strip_prefix("regalloc: ").and_then(|line| line.split_once(' ')) else {
            continue;
        };
        let mut numbers = totals(std::slice::from_ref(output));
        numbers.push(output.lines().filter(|line| line.contains("in no table")).count());
        let sum = by_target.entry(target).or_default();
        sum.iter_mut().zip(numbers).for_each(|(s, n)| *s += n);
    }
    let mut reasons = BTreeMap::<&str, usize>::new();
    for line in outputs.iter().flat_map(|o| o.lines()) {
        if let Some((_, why)) = line.split_once(": left alone: ") {
            *reasons.entry(why).or_default() += 1;
        }
    }
    for (target, [kernels, left_alone, fit, opaque]) in &by_target {
        println!(
            "regalloc --scramble 7 --fresh: {target}: {kernels} kernels, {left_alone} left alone ({opaque} with unknown words), {fit} with no more registers"
        );
    }
    for (why, n) in &reasons {
        println!("  {n} left alone: {why}");
    }
    // Words that no table knows are the business of the gates on text.
    let sound = |why: &&&str| {
        [
            "names registers: strip the debug information",
            "in no table",
            "make a hazard",
            "has a hazard as it is",
        ]
        .iter()
        .any(|known| why.contains(known))
    };
    assert_eq!(
        reasons.keys().filter(|w| !sound(w)).count(),
        0,
        "a kernel may only be left alone because something else names its registers"
    );
    for (target, [kernels, _, fit, opaque]) in by_target {
        let known = kernels - opaque;
        assert!(fit * 10 >= known * 9, "{target}: fewer than 90% need no more registers");
    }
}

/// What came of the kernels of a file whose registers were scrambled and allocated afresh: on the emulator, and for the hazard checker.
#[derive(Default)]
struct Judged {
    same: usize,
    not_tried: usize,
    clean: usize,
    unknown: usize,
    /// Kernels whose registers stayed, because something else names them: they are among those above.
    left_alone: usize,
}

/// JSON that a command prints; it may find something.
fn json(args: &[&str]) -> serde_json::Value {
    let out = run(args);
    assert!(
        matches!(out.status.code(), Some(0 | 1)),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
    serde_json::from_slice(&out.stdout).expect("JSON")
}

fn judge(file: &Path) -> Option<Judged> {
    let dir = tempfile::tempdir().unwrap();
    let other = dir.path().join("other.cubin");
    let out = run(&["regalloc", arg(file), "--scramble", "7", "--fresh", "-o", arg(&other)]);
    if is_unknown_target(&out) {
        return None;
    }
    let mut judged = Judged {
        left_alone: String::from_utf8_lossy(&out.stdout).matches(": left alone: ").count(),
        ..Judged::default()
    };
    let verdicts = json(&["verify", arg(file), arg(&other), "--launches", "4", "--json"]);
    for kernel in verdicts.as_array().expect("a list") {
        match kernel["outcome"].as_str() {
            Some("same") => judged.same += 1,
            Some("not_tried") => judged.not_tried += 1,
            _ => panic!("{}: {kernel:#}", file.display()),
        }
    }
    let (before, after) = (
        json(&["check", arg(file), "--json"]),
        json(&["check", arg(&other), "--json"]),
    );
    for (old, new) in before
        .as_array()
        .expect("a list")
        .iter()
        .zip(after.as_array().expect("a list"))
    {
        match (new["verdict"].as_str(), old["verdict"].as_str()) {
            (Some("clean"), _) => judged.clean += 1,
            (Some("unknown"), Some("unknown")) => judged.unknown += 1,
            _ => panic!("{}: {new:#}", file.display()),
        }
    }
    Some(judged)
}

/// Kernels with other registers compute the same, where the emulator can run them, and have no hazards: all own ones, and every tenth file of
/// the corpus (`SASS_EVERY=1`: all).
#[test]
fn other_registers_compute_the_same_without_hazards() {
    let every = std::env::var("SASS_EVERY").map_or(10, |n| n.parse().expect("a number"));
    let mut files = own_cubins(".");
    files.extend(cubins_below(&folder("SASS_OWN").join("kernels")));
    files.extend(cubins_below(&folder("SASS_CORPUS")).into_iter().step_by(every));
    let all: Vec<Judged> = parallel(&files, |file| judge(file)).into_iter().flatten().collect();
    let sum = |f: fn(&Judged) -> usize| all.iter().map(f).sum::<usize>();
    println!(
        "regalloc --scramble 7 --fresh: {} kernels compute the same, {} could not be tried; {} have no hazards, {} no verdict as before; {} of them were left alone",
        sum(|j| j.same),
        sum(|j| j.not_tried),
        sum(|j| j.clean),
        sum(|j| j.unknown),
        sum(|j| j.left_alone)
    );
    assert!(sum(|j| j.same) > 0 && sum(|j| j.clean) > 0, "nothing was tried");
}

/// How many instructions have lines in the tables of a file, each of which names the same in the moved file, where there are NOPs besides.
fn followed(oracles: &Path, file: &Path, moved: &Path, nops: &BTreeSet<(String, u64)>) -> usize {
    if !elf_sections(&std::fs::read(file).unwrap()).contains_key(".debug_line") {
        return 0;
    }
    let mut followed = 0;
    for option in ["-gi", "-gp"] {
        let before = lined::lines(oracles, file, option);
        let mut after = lined::lines(oracles, moved, option);
        after.retain(|place, _| !nops.contains(place));
        for ((kernel, offset), lines) in &before {
            let shift = nops
                .iter()
                .filter(|(k, _)| k == kernel)
                .fold(0, |n, (_, nop)| n + u64::from(*nop <= offset + 16 * n));
            // Padding at the end is no instruction.
            let Some(now) = after.get(&(kernel.clone(), offset + 16 * shift)) else {
                continue;
            };
            assert_eq!(now, lines, "{} {kernel} at {offset:#x}", file.display());
            followed += usize::from(option == "-gi" && !lines.is_empty());
        }
    }
    followed
}

/// What the storm did to one file.
#[derive(Default)]
struct Storm {
    kernels: usize,
    nops: usize,
    /// Instructions whose lines in the source followed.
    lines: usize,
    /// Why kernels were left alone.
    left: Vec<String>,
}

fn storm(oracles: &Path, file: &Path) -> Option<Storm> {
    let dir = tempfile::tempdir().unwrap();
    let [list, moved, back] = ["list", "moved.cubin", "back.cubin"].map(|n| dir.path().join(n));
    let seed = ["--seed", "7", "--list", arg(&list), "-o"];
    let out = run(&[&["nops", arg(file)], &seed[..], &[arg(&moved)]].concat());
    if is_unknown_target(&out) {
        return None;
    }
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(
        matches!(out.status.code(), Some(0 | 1)),
        "{}: {}",
        file.display(),
        String::from_utf8_lossy(&out.stderr)
    );
    let places: BTreeSet<(String, u64)> = std::fs::read_to_string(&list)
        .unwrap()
        .lines()
        .map(|l| {
            let parts: Vec<&str> = l.split('\t').collect();
            (parts[1].to_owned(), u64::from_str_radix(&parts[2][2..], 16).unwrap())
        })
        .collect();
    let (before, after) = (labelled::listing(oracles, file), labelled::listing(oracles, &moved));
    assert!(before.keys().eq(after.keys()), "{}: other sections", file.display());
    for (name, section) in &before {
        let out: BTreeSet<u64> = places.iter().filter(|(k, _)| k == name).map(|(_, o)| *o).collect();
        let nops = after[name]
            .lines
            .iter()
            .filter(|(o, t)| out.contains(o) && t.starts_with("NOP"))
            .count();
        assert_eq!(
            nops,
            out.len(),
            "{} {name}: the list is not of this file",
            file.display()
        );
        let found = labelled::difference(section, &after[name], &out);
        assert_eq!(found, None, "{} {name}", file.display());
    }
    let lines = followed(oracles, file, &moved, &places);
    succeed(&[
        "nops",
        arg(&moved),
        "--take-out",
        "--list",
        arg(&list),
        "-o",
        arg(&back),
    ]);
    let same = std::fs::read(&back).unwrap() == std::fs::read(file).unwrap();
    assert!(
        same,
        "{}: taking the NOPs out does not give the file back",
        file.display()
    );
    let left = text
        .lines()
        .filter_map(|l| Some(l.split_once(": left alone: ")?.1.to_owned()));
    Some(Storm {
        kernels: before.len(),
        nops: places.len(),
        lines,
        left: left.collect(),
    })
}

#[test]
fn nops_move_code_and_everything_follows() {
    let oracles = folder("SASS_ORACLES");
    let mut files = every_cubin();
    files.extend(cubins_below(&folder("SASS_OWN").join("lines")));
    let done: Vec<Storm> = parallel(&files, |file| storm(&oracles, file))
        .into_iter()
        .flatten()
        .collect();
    let sum = |f: fn(&Storm) -> usize| done.iter().map(f).sum::<usize>();
    let (nops, lines, left) = (sum(|d| d.nops), sum(|d| d.lines), sum(|d| d.left.len()));
    println!(
        "nops: {nops} put into {} kernels of {} files, {left} kernels left alone; lines of {lines} instructions followed",
        sum(|d| d.kernels),
        done.len()
    );
    let reasons: BTreeSet<&String> = done.iter().flat_map(|d| &d.left).collect();
    reasons.iter().take(20).for_each(|why| println!("  {why}"));
    assert!(nops > 0 && lines > 0 && left == 0, "some kernels cannot be moved");
}

/// The comparison can fail: a label at another line, another text, a NOP that was not put in.
#[test]
fn the_comparison_of_listings_sees_differences() {
    let oracles = folder("SASS_ORACLES");
    let sections = labelled::listing(&oracles, &features());
    let none = BTreeSet::new();
    let section = &sections["switch_k"];
    assert_eq!(labelled::difference(section, section, &none), None);
    let changed = |change: &dyn Fn(&mut labelled::Section)| {
        let mut other = labelled::listing(&oracles, &features()).remove("switch_k").unwrap();
        change(&mut other);
        labelled::difference(section, &other, &none)
    };
    assert!(changed(&|s| *s.labels.values_mut().next().unwrap() += 1).is_some());
    assert!(changed(&|s| s.lines[3].1 = "EXIT".into()).is_some());
    assert!(changed(&|s| s.lines.insert(2, (8, "NOP".into()))).is_some());
}

/// NVIDIA's occupancy calculation, compiled from the header that the toolkit brings.
fn occupancy(oracles: &Path, dir: &Path, questions: &str) -> Vec<String> {
    use std::io::Write;
    use std::process::{Command, Stdio};
    let found = Command::new("find")
        .arg(oracles.join("venv"))
        .args(["-name", "cuda_occupancy.h"])
        .output();
    let found = String::from_utf8(found.expect("find").stdout).expect("UTF-8");
    let header = Path::new(found.lines().next().expect("cuda_occupancy.h: run `make oracles`"));
    let (source, program) = (
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/oracles/occupancy.c"),
        dir.join("occupancy"),
    );
    let mut cc = Command::new("cc");
    cc.arg("-I")
        .arg(header.parent().expect("a folder"))
        .arg("-o")
        .arg(&program)
        .arg(source);
    assert!(cc.status().expect("cc").success());
    let mut child = Command::new(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut input = child.stdin.take().expect("piped");
    let questions = questions.to_owned();
    let writer = std::thread::spawn(move || input.write_all(questions.as_bytes()));
    let out = child.wait_with_output().expect("it ends");
    writer.join().expect("no panic").expect("it reads");
    String::from_utf8(out.stdout)
        .expect("UTF-8")
        .lines()
        .map(str::to_owned)
        .collect()
}

/// The warps that `info --pressure` says are resident, and the steps of occupancy, are those of NVIDIA's calculation.
#[test]
fn occupancy_is_that_of_the_toolkit() {
    let oracles = folder("SASS_ORACLES");
    // A file a target.
    let mut files = BTreeMap::new();
    for file in every_cubin() {
        files.entry(sm_of(&std::fs::read(&file).unwrap())).or_insert(file);
    }
    let (mut questions, mut ours, mut targets) = (String::new(), Vec::new(), BTreeSet::new());
    let mut unknown = BTreeSet::new();
    for (sm, file) in &files {
        for threads in ["32", "64", "96", "128", "256", "352", "512", "1024"] {
            let out = run(&["info", arg(file), "--pressure", "--json", "--block-threads", threads]);
            if is_unknown_target(&out) {
                continue;
            }
            let kernels: serde_json::Value = serde_json::from_slice(&out.stdout).expect("JSON");
            for kernel in kernels.as_array().expect("a list") {
                let number = |v: &serde_json::Value| v.as_u64().expect("a number");
                let (threads, shared) = (number(&kernel["threads"]), number(&kernel["shared_bytes"]));
                let mut ask = |registers: u64, warps: u64| {
                    questions += &format!("{} {} {registers} {threads} {shared}\n", sm / 10, sm % 10);
                    ours.push(format!("{warps}"));
                };
                if kernel["warps"].is_null() {
                    unknown.insert(*sm);
                    continue;
                }
                targets.insert(*sm);
                ask(number(&kernel["registers"]), number(&kernel["warps"][0]));
                // At each step so many warps fit, and with one register more fewer do.
                let mut fewer = 0;
                for step in kernel["steps"].as_array().expect("a list") {
                    let (registers, warps) = (number(&step[0]), number(&step[1]));
                    ask(registers, warps);
                    if registers < 255 {
                        ask(registers + 1, fewer);
                    }
                    fewer = warps;
                }
            }
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let theirs = occupancy(&oracles, dir.path(), &questions);
    assert_eq!(theirs.len(), ours.len());
    for ((question, theirs), ours) in questions.lines().zip(&theirs).zip(&ours) {
        assert_eq!(theirs, ours, "target, registers, threads, shared memory: {question}");
    }
    assert!(unknown.iter().all(|sm| *sm == 88), "no limits for {unknown:?}");
    println!(
        "occupancy: {} launches on {} targets as NVIDIA's calculation has them",
        ours.len(),
        targets.len()
    );
}
