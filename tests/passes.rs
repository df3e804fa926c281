//! The gate of passes that keep every result bit for bit: each alone, and all in random orders, over llama.cpp and warp-lang for sm_87 and the
//! project's kernels for all targets.
//!
//! Run by `make check-passes`; with `SASS_PASSES_EVERY=8` over every eighth file only, with `SASS_PASSES_ONLY=dce` only that pass. It prints what
//! each pass brings by the estimates (after over before, geometric mean over the kernels that it rewrites), and why it leaves alone what it leaves
//! alone.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use common::*;
use serde_json::Value;

/// Passes that change no result, with options.
const PASSES: &[(&str, &str)] = &[
    ("const-bank-fold", ""),
    ("copy-prop", ""),
    ("dce", ""),
    ("dce", "remove = true"),
    ("ldg-vectorize", ""),
    ("ldg-vectorize", "widest = 64"),
    ("reg-shrink", ""),
    ("reschedule", ""),
    ("reuse-flags", ""),
    ("scalar-to-uniform", ""),
    ("spill-elim", ""),
    ("yield-tune", ""),
];

/// Random orders of all of them.
const ORDERS: usize = 3;

/// Launches that the emulator has to compare of every kernel that it can run.
const LAUNCHES: u64 = 20;

/// A file, and what is known of it before any pass.
struct Subject {
    path: PathBuf,
    group: usize,
    /// Its kernels and functions.
    names: Vec<String>,
    /// Kernels that `check` does not find clean.
    hazards: usize,
    /// Instructions by nvdisasm, by kernel; what it says if one is illegal to it.
    listed: Result<BTreeMap<String, usize>, String>,
}

/// What is counted by itself.
const GROUPS: [&str; 3] = ["q4_K", "others for sm_87", "own for other targets"];

/// The files, each once, large ones first: they take longest.
fn subjects(oracles: &Path) -> Vec<Subject> {
    let corpus = folder("SASS_CORPUS");
    let mut files = own_cubins(".");
    let own = files.len();
    files.extend(cubins_below(&corpus.join("llama")));
    files.extend(cubins_below(&corpus.join("warp-lang")));
    let (mut wanted, mut seen): (Vec<(bool, PathBuf)>, _) = (Vec::new(), BTreeSet::new());
    for (n, file) in files.into_iter().enumerate() {
        let bytes = std::fs::read(&file).unwrap();
        let sm_87 = sm_of(&bytes) == 87;
        if (sm_87 || n < own) && seen.insert(bytes) {
            wanted.push((sm_87, file));
        }
    }
    wanted.sort_by_key(|(_, f)| std::cmp::Reverse(std::fs::metadata(f).map_or(0, |m| m.len())));
    assert!(wanted.len() > 100, "only {} files", wanted.len());
    let every = std::env::var("SASS_PASSES_EVERY").map_or(1, |n| n.parse().expect("a number"));
    let wanted: Vec<_> = wanted.into_iter().step_by(every).collect();
    parallel(&wanted, |(sm_87, path)| {
        let sections = elf_sections(&std::fs::read(path).unwrap());
        let names = sections.keys().filter_map(|name| name.strip_prefix(".text."));
        Subject {
            path: path.clone(),
            group: match sm_87 {
                true => usize::from(!path.to_string_lossy().contains("q4_k")),
                false => 2,
            },
            names: names.map(str::to_owned).collect(),
            hazards: hazards(path),
            listed: nvdisasm_if_legal(oracles, path).map(|all| by_kernel(&all)),
        }
    })
}

/// How many instructions each kernel has.
fn by_kernel(listed: &[Listed]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    listed
        .iter()
        .for_each(|inst| *counts.entry(inst.kernel.clone()).or_default() += 1);
    counts
}

/// Passes in order, and the kernels that they are named for.
struct Plan {
    passes: Vec<(&'static str, &'static str)>,
    /// Only every other kernel of a file.
    half: bool,
}

impl Plan {
    fn named<'s>(&self, subject: &'s Subject) -> Vec<&'s str> {
        let names = subject.names.iter().map(String::as_str);
        names.step_by(if self.half { 2 } else { 1 }).collect()
    }

    fn config(&self, subject: &Subject) -> String {
        let names = match self.half {
            true => format!("fn = {:?}\n", self.named(subject)),
            false => String::new(),
        };
        let entry = |(name, options): &(&str, &str)| {
            format!("[[pass]]\nname = \"{name}\"\nmode = \"apply\"\n{names}{options}\n")
        };
        self.passes.iter().map(entry).collect()
    }
}

impl std::fmt::Display for Plan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.passes[..] {
            [(name, "")] => write!(f, "`{name}`"),
            [(name, options)] => write!(f, "`{name}`, `{options}`"),
            [(first, _), ..] if self.half => write!(f, "all in random order, `{first}` first, every other kernel"),
            [(first, _), ..] => write!(f, "all in random order, `{first}` first"),
            [] => Ok(()),
        }
    }
}

/// Each pass alone, then all in random orders, which are the same in every run; in the last one not all kernels are named.
fn plans() -> Vec<Plan> {
    let alone = |pass: &(&'static str, &'static str)| Plan {
        passes: vec![*pass],
        half: false,
    };
    if let Ok(only) = std::env::var("SASS_PASSES_ONLY") {
        return PASSES.iter().filter(|(name, _)| *name == only).map(alone).collect();
    }
    let mut plans: Vec<Plan> = PASSES.iter().map(alone).collect();
    let mut state = 8u64;
    for n in 0..ORDERS {
        let mut passes = PASSES.to_vec();
        for n in (1..passes.len()).rev() {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            passes.swap(n, (state >> 33) as usize % (n + 1));
        }
        let half = n + 1 == ORDERS;
        plans.push(Plan { passes, half });
    }
    plans
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

    fn merge(&mut self, other: Sum) {
        self.kernels += other.kernels;
        self.rewritten += other.rewritten;
        self.sites += other.sites;
        self.executed = (self.executed.0 + other.executed.0, self.executed.1 + other.executed.1);
        let logarithms = self.logarithms.iter_mut().zip(other.logarithms);
        logarithms.for_each(|(sum, more)| *sum += more);
        for (mine, more) in [
            (&mut self.reasons, other.reasons),
            (&mut self.not_executed, other.not_executed),
        ] {
            more.into_iter().for_each(|(why, n)| *mine.entry(why).or_default() += n);
        }
    }

    fn mean(&self, n: usize) -> f64 {
        (self.logarithms[n] / self.rewritten.max(1) as f64).exp()
    }
}

/// A reason without what is different in every kernel: numbers, names and what stands in brackets.
fn general(why: &str) -> String {
    let words = why.split(" (").next().unwrap_or_default().split(' ');
    let word = |word: &str| match word.contains(|c: char| c.is_ascii_digit()) || word.starts_with("_Z") {
        true => "..".to_owned(),
        false => word.to_owned(),
    };
    words.map(word).collect::<Vec<_>>().join(" ")
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

/// Sections that differ belong to the kernels that were rewritten, or say where symbols, calls and lines of the source are.
fn only_their_sections_differ(old: &[u8], new: &[u8], rewritten: &[String], counts: bool) {
    let (before, after) = (elf_sections(old), elf_sections(new));
    assert!(before.keys().eq(after.keys()));
    for (name, (start, size)) in &before {
        let (now, length) = after[name];
        let same = old[*start..start + size] == new[now..now + length];
        let debug = name.starts_with(".debug_") || name.starts_with(".nv_debug_");
        let places = debug || name == ".symtab" || name.starts_with(".rel");
        let own = rewritten.iter().any(|kernel| name.ends_with(&format!(".{kernel}")));
        assert!(
            same || places || own || counts && name == ".nv.info",
            "section {name} is of no kernel that was rewritten"
        );
    }
}

/// By the estimates it takes no longer, or fewer registers are live, or it is given another number of them.
fn is_worth_it(kernel: &Value) -> bool {
    let costs = |key: &str, n: usize| kernel["costs"][key][n].as_u64().expect("an estimate");
    let frees = costs("live_registers", 1) < costs("live_registers", 0) || kernel["registers"].is_u64();
    frees || costs("cycles", 1) <= costs("cycles", 0)
}

/// Runs passes over a file and holds the outcome against what it was.
fn one_file(subject: &Subject, plan: &Plan, dir: &Path, oracles: &Path) -> Sum {
    let (file, config, out) = (&subject.path, dir.join("pass.toml"), dir.join("out.cubin"));
    std::fs::write(&config, plan.config(subject)).unwrap();
    let said = succeed(&[
        "apply",
        arg(file),
        "--config",
        arg(&config),
        "-o",
        arg(&out),
        "--verify",
        "--json",
    ]);
    let report: Value = serde_json::from_str(&said).expect("JSON");
    let images = || report["images"].as_array().into_iter().flatten();
    let named = plan.named(subject);
    let (mut sum, mut rewritten) = (Sum::default(), Vec::new());
    for kernel in images().flat_map(|i| i["kernels"].as_array().unwrap()) {
        sum.add(kernel);
        let (name, place) = (text(&kernel["name"]), file.display());
        assert!(named.contains(&name), "{place}: {name} is not named");
        let failed = |why: &str| ["emulator", "mask-verify", "panic"].iter().any(|f| why.contains(f));
        let why = kernel["left_alone"].as_str();
        assert!(!why.is_some_and(failed), "{plan}: {place} {name}: {why:?}");
        if kernel["changed"].as_u64() > Some(0) {
            assert!(is_worth_it(kernel), "{plan}: {place} {name}: {}", kernel["costs"]);
            rewritten.push(name.to_owned());
        }
    }
    rewritten.sort();
    let (old, new) = (std::fs::read(file).unwrap(), std::fs::read(&out).unwrap());
    if rewritten.is_empty() {
        assert!(old == new, "{plan}: {}: other bytes", file.display());
        return sum;
    }
    let moved = images().any(|image| image["patch"]["moved"].as_u64() > Some(0));
    let counts = images().any(|image| image["patch"]["nv_info_updated"] == true);
    match moved {
        true => only_their_sections_differ(&old, &new, &rewritten, counts),
        false => only_code_differs(&old, &new, &rewritten, counts),
    }
    assert_eq!(hazards(&out), subject.hazards, "{plan}: {}: hazards", file.display());
    // It decodes all that was rewritten; where nothing moves there is as much of it.
    match (nvdisasm_of(oracles, &out, Some(&rewritten)), &subject.listed) {
        (Ok(now), Ok(before)) => {
            let now = by_kernel(&now);
            assert!(
                rewritten.iter().eq(now.keys()),
                "{plan}: {}: nvdisasm lists others",
                file.display()
            );
            let as_many = now.iter().all(|(name, count)| before.get(name) == Some(count));
            assert!(moved || as_many, "{plan}: {}", file.display());
        }
        // Some of what ptxas makes is illegal to it.
        (now, before) => assert!(before.is_err(), "{plan}: {}: {now:?}", file.display()),
    }
    sum
}

/// The row of a table.
fn row(name: &str, sum: &Sum) -> String {
    let means = [0, 1, 2].map(|n| format!("{:.4}", sum.mean(n))).join(" | ");
    let (executed, launches) = sum.executed;
    format!(
        "| {name} | {} of {} | {} | {executed} ({launches}) | {means} |",
        sum.rewritten, sum.kernels, sum.sites
    )
}

#[test]
fn passes_change_no_result() {
    let oracles = folder("SASS_ORACLES");
    let (subjects, plans) = (subjects(&oracles), plans());
    let mut sums: Vec<[Sum; GROUPS.len()]> = plans.iter().map(|_| Default::default()).collect();
    let work: Vec<(&Subject, usize)> = subjects
        .iter()
        .flat_map(|subject| (0..plans.len()).map(move |plan| (subject, plan)))
        .collect();
    let done = parallel(&work, |(subject, plan)| {
        let dir = tempfile::tempdir().unwrap();
        // What fails is told at the end, so that one run shows all of it.
        catch_unwind(AssertUnwindSafe(|| {
            one_file(subject, &plans[*plan], dir.path(), &oracles)
        }))
    });
    let failed = done.iter().filter(|one| one.is_err()).count();
    for ((subject, plan), sum) in work.iter().zip(done) {
        sum.into_iter().for_each(|sum| sums[*plan][subject.group].merge(sum));
    }
    println!("| pass | kernels rewritten | sites | executed (launches) | issue cycles | with waits | live registers |");
    println!("|---|---|---|---|---|---|---|");
    for (plan, groups) in plans.iter().zip(sums) {
        for (name, sum) in GROUPS.iter().zip(&groups) {
            println!("{}", row(&format!("{plan}, {name}"), sum));
        }
        let is_uniform = plan.passes == [("scalar-to-uniform", "")];
        if is_uniform && groups[0].kernels > 0 {
            let (some, all) = (groups[0].rewritten, groups[0].kernels);
            assert!(
                some * 2 >= all,
                "only {some} of {all} q4_K kernels have a web rewritten"
            );
        }
        // Of the newest targets the emulator does not know all.
        for sum in &groups[..2] {
            let others: u64 = sum.not_executed.values().sum();
            let executed = sum.executed.0;
            assert!(executed as u64 >= others, "{plan}: {executed} executed, {others} not");
        }
        let mut all = Sum::default();
        groups.into_iter().for_each(|sum| all.merge(sum));
        println!("{}", row(&plan.to_string(), &all));
        for (what, reasons) in [("stay", &all.reasons), ("not executed", &all.not_executed)] {
            let mut reasons: Vec<_> = reasons.iter().collect();
            reasons.sort_by_key(|(_, n)| std::cmp::Reverse(**n));
            reasons.iter().for_each(|(why, n)| println!("  {n} {what}: {why}"));
        }
    }
    assert_eq!(
        failed,
        0,
        "of {} files times plans so many failed; see above",
        work.len()
    );
}
