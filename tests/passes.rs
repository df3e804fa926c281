//! The gate of passes that keep every result bit for bit: each alone, and all in random orders, over llama.cpp, warp-lang and the project's kernels for sm_87.
//!
//! Run by `make check-passes`; with `SASS_PASSES_EVERY=8` over every eighth file only. It prints what each pass brings by the estimates, and why it leaves alone what it leaves alone.

mod common;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use common::*;
use serde_json::Value;

/// Passes that change no result, with options.
const PASSES: [(&str, &str); 10] = [
    ("const-bank-fold", ""),
    ("copy-prop", ""),
    ("dce", ""),
    ("dce", "remove = true"),
    ("reg-shrink", ""),
    ("reschedule", ""),
    ("reuse-flags", ""),
    ("scalar-to-uniform", ""),
    ("spill-elim", ""),
    ("yield-tune", ""),
];

/// Random orders of all of them.
const ORDERS: usize = 2;

/// Launches that the emulator has to compare of every kernel that it can run.
const LAUNCHES: u64 = 20;

/// The files, small ones first.
fn files() -> Vec<PathBuf> {
    let corpus = folder("SASS_CORPUS");
    let mut files = own_cubins("sm_87");
    files.extend(cubins_below(&corpus.join("llama")));
    files.extend(cubins_below(&corpus.join("warp-lang")));
    files.retain(|f| sm_of(&std::fs::read(f).unwrap()) == 87);
    files.sort_by_key(|f| std::fs::metadata(f).map_or(0, |m| m.len()));
    assert!(files.len() > 20, "only {} files for sm_87", files.len());
    let every = std::env::var("SASS_PASSES_EVERY").map_or(1, |n| n.parse().expect("a number"));
    files.into_iter().step_by(every).collect()
}

/// Each pass alone, then all in random orders, which are the same in every run.
fn lists() -> Vec<Vec<(&'static str, &'static str)>> {
    let mut lists: Vec<Vec<_>> = PASSES.iter().map(|p| vec![*p]).collect();
    let mut state = 8u64;
    for _ in 0..ORDERS {
        let mut order = PASSES.to_vec();
        for n in (1..order.len()).rev() {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            order.swap(n, (state >> 33) as usize % (n + 1));
        }
        lists.push(order);
    }
    lists
}

/// What a pass did to all kernels.
#[derive(Default)]
struct Sum {
    kernels: usize,
    rewritten: usize,
    sites: u64,
    /// Kernels that were executed, and launches of them.
    executed: (usize, u64),
    /// Logarithms of after over before: issue cycles, with waits, live registers.
    logarithms: [f64; 3],
    /// Why values and kernels stay.
    reasons: BTreeMap<String, u64>,
    not_executed: BTreeMap<String, u64>,
}

impl Sum {
    fn add(&mut self, kernel: &Value) {
        self.kernels += 1;
        let passes = || kernel["passes"].as_array().into_iter().flatten();
        let general = |why: &str| {
            why.split("0x")
                .next()
                .unwrap_or_default()
                .split(" (")
                .next()
                .unwrap_or_default()
                .to_owned()
        };
        for skipped in passes().flat_map(|p| p["skipped"].as_array().into_iter().flatten()) {
            *self.reasons.entry(general(text(&skipped["reason"]))).or_default() += 1;
        }
        let whole = passes().map(|p| &p["refused"]).chain([&kernel["left_alone"]]);
        for why in whole.filter(|why| why.is_string()) {
            *self
                .reasons
                .entry(format!("kernel: {}", general(text(why))))
                .or_default() += 1;
        }
        if kernel["changed"].as_u64() == Some(0) {
            return;
        }
        self.rewritten += 1;
        self.sites += passes().filter_map(|p| p["sites"].as_u64()).sum::<u64>();
        for (sum, key) in self
            .logarithms
            .iter_mut()
            .zip(["issue_cycles", "cycles", "live_registers"])
        {
            let number = |n: usize| kernel["costs"][key][n].as_f64().expect("an estimate").max(1.0);
            *sum += (number(1) / number(0)).ln();
        }
        let verified = &kernel["verified"];
        match verified["not_tried"].as_str() {
            Some(why) => *self.not_executed.entry(general(why)).or_default() += 1,
            None => {
                let launches = verified["launches"].as_u64().expect("it was executed");
                if launches < LAUNCHES {
                    let why = format!("on fewer than {LAUNCHES} random launches it ends");
                    *self.not_executed.entry(why).or_default() += 1;
                    return;
                }
                self.executed.0 += 1;
                self.executed.1 += launches;
            }
        }
    }

    fn mean(&self, n: usize) -> f64 {
        (self.logarithms[n] / self.rewritten.max(1) as f64).exp()
    }
}

fn text(value: &Value) -> &str {
    value.as_str().expect("text")
}

/// Kernels that `check` does not find clean.
fn hazards(file: &Path) -> usize {
    let out = run(&["check", arg(file), "--json"]);
    let report: Value = serde_json::from_slice(&out.stdout).expect("JSON");
    let kernels = report.as_array().expect("a list");
    kernels.iter().filter(|k| k["verdict"] != "clean").count()
}

/// Bytes that differ lie in the code of the kernels that were rewritten, or, where they have other register counts, where those are.
fn only_code_differs(old: &[u8], new: &[u8], rewritten: &[String], counts: bool) {
    assert_eq!(old.len(), new.len());
    let sections = elf_sections(old);
    let mut allowed: Vec<_> = rewritten
        .iter()
        .filter_map(|name| sections.get(&format!(".text.{name}")).copied())
        .collect();
    if counts {
        let number = |at: usize| u64::from_le_bytes(old[at..at + 8].try_into().unwrap()) as usize;
        // The section headers: where they begin, and how many there are.
        allowed.push((number(0x28), 64 * (number(0x38) >> 32 & 0xffff)));
        allowed.extend(sections.get(".nv.info").copied());
    }
    for at in (0..old.len()).filter(|at| old[*at] != new[*at]) {
        let inside = allowed.iter().any(|(start, size)| (*start..start + size).contains(&at));
        assert!(inside, "byte {at:#x} is in no kernel that was rewritten");
    }
}

/// Sections that differ belong to the kernels that were rewritten, or say where symbols and calls are.
fn only_their_sections_differ(old: &[u8], new: &[u8], rewritten: &[String]) {
    let (before, after) = (elf_sections(old), elf_sections(new));
    assert!(before.keys().eq(after.keys()));
    for (name, (start, size)) in &before {
        let (now, length) = after[name];
        let same = old[*start..start + size] == new[now..now + length];
        let places = [".symtab", ".debug_frame"].contains(&&**name) || name.starts_with(".rel");
        let own = rewritten.iter().any(|kernel| name.ends_with(&format!(".{kernel}")));
        assert!(
            same || places || own,
            "section {name} is of no kernel that was rewritten"
        );
    }
}

fn one_file(file: &Path, config: &Path, out: &Path, oracles: &Path, sum: &mut Sum) {
    let said = succeed(&[
        "apply",
        arg(file),
        "--config",
        arg(config),
        "-o",
        arg(out),
        "--verify",
        "--json",
    ]);
    let report: Value = serde_json::from_str(&said).expect("JSON");
    let mut rewritten = Vec::new();
    for kernel in report["images"]
        .as_array()
        .into_iter()
        .flatten()
        .flat_map(|i| i["kernels"].as_array().unwrap())
    {
        sum.add(kernel);
        let different = kernel["left_alone"]
            .as_str()
            .is_some_and(|why| why.contains("emulator"));
        assert!(
            !different,
            "{} {}: {}",
            file.display(),
            kernel["name"],
            kernel["left_alone"]
        );
        if kernel["changed"].as_u64() > Some(0) {
            rewritten.push(text(&kernel["name"]).to_owned());
        }
    }
    if rewritten.is_empty() {
        return;
    }
    let (old, new) = (std::fs::read(file).unwrap(), std::fs::read(out).unwrap());
    let moved = |image: &Value| image["patch"]["moved"].as_u64() > Some(0);
    let moved = report["images"].as_array().into_iter().flatten().any(moved);
    let counts = report["images"]
        .as_array()
        .into_iter()
        .flatten()
        .any(|image| image["patch"]["nv_info_updated"] == true);
    match moved {
        true => only_their_sections_differ(&old, &new, &rewritten),
        false => only_code_differs(&old, &new, &rewritten, counts),
    }
    assert_eq!(hazards(out), hazards(file), "{}: kernels with hazards", file.display());
    // It decodes all; where nothing moves there is as much of it.
    let count = nvdisasm(oracles, out).len();
    assert!(
        moved || count == nvdisasm(oracles, file).len(),
        "{}: {count} instructions by nvdisasm",
        file.display()
    );
}

#[test]
fn passes_change_no_result() {
    let oracles = folder("SASS_ORACLES");
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out.cubin");
    println!(
        "pass: kernels rewritten, sites; executed; issue cycles, with waits, live registers (after over before, geometric mean)"
    );
    for list in lists() {
        let names = list
            .iter()
            .map(|(name, options)| format!("{name} {options}").trim_end().to_owned());
        let pass = names.collect::<Vec<_>>().join(", ");
        let config = dir.path().join("pass.toml");
        let entries = list
            .iter()
            .map(|(name, options)| format!("[[pass]]\nname = \"{name}\"\nmode = \"apply\"\n{options}\n"));
        std::fs::write(&config, entries.collect::<String>()).unwrap();
        let (mut all, mut q4_k) = (Sum::default(), Sum::default());
        for file in files() {
            let is_q4_k = file.to_string_lossy().contains("q4_k");
            let sum = if is_q4_k { &mut q4_k } else { &mut all };
            one_file(&file, &config, &out, &oracles, sum);
        }
        for (name, sum) in [("q4_K", &q4_k), ("others", &all)] {
            println!(
                "{pass}, {name}: {} of {} kernels, {} sites; {} executed, {} launches, the same memory; {:.4} {:.4} {:.4}",
                sum.rewritten,
                sum.kernels,
                sum.sites,
                sum.executed.0,
                sum.executed.1,
                sum.mean(0),
                sum.mean(1),
                sum.mean(2)
            );
            sum.reasons.iter().for_each(|(why, n)| println!("  {n} stay: {why}"));
            sum.not_executed
                .iter()
                .for_each(|(why, n)| println!("  {n} not executed: {why}"));
        }
        for sum in [&all, &q4_k] {
            let others: u64 = sum.not_executed.values().sum();
            assert!(
                sum.executed.0 as u64 >= others,
                "{pass}: {} executed, {others} not",
                sum.executed.0
            );
        }
        if pass == "scalar-to-uniform" && q4_k.kernels > 0 {
            assert!(
                q4_k.rewritten * 2 >= q4_k.kernels,
                "{} of {}",
                q4_k.rewritten,
                q4_k.kernels
            );
        }
    }
}
