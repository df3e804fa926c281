//! Scheduling bits on the emulator: with the latencies of the model, kernels of NVIDIA's compiler compute what they compute without, and
//! where changed bits show in memory, the hazard checker, which knows nothing of the emulator, finds them.

#[path = "../../emu/tests/common/mod.rs"]
mod common;

use std::collections::BTreeMap;

use cubin::{Code, Image, Patch};
use emu::{Outcome, Program};
use ir::Source;
use isa::{Control, Isa, Word};
use sass2mlir_engine::timing::Timing;
use sched::Model;
use sched::plant;

const NAMES: [&str; 11] = [
    "int", "float", "double", "convert", "half", "approx", "flow", "memory", "warp", "tensor", "newer",
];
/// Which way kernels of newer compilers begin.
const INITIALISED: u32 = 1;

/// A program with times.
fn timed(image: &Image<'_>, kernel: &str) -> Program {
    let isa = Isa::for_target(image.target()).expect("embedded");
    let mut program = Program::new(image, kernel).expect("a program");
    program.set_timing(Box::new(Timing::new(isa, image.target())));
    program
}

/// Of so many faults one is planted, in all kernels, where `SASS_TIMING_EVERY` says so; else a few in some kernels.
fn every() -> Option<usize> {
    let every = std::env::var("SASS_TIMING_EVERY").ok()?;
    Some(every.parse().expect("SASS_TIMING_EVERY is a number"))
}

/// Calls `f` for every kernel, or a part of them, that can run.
fn each_kernel(mut f: impl FnMut(&Image<'_>, &Code<'_>)) {
    const PART: usize = 16;
    let mut n = 0;
    for file in NAMES.iter().flat_map(|name| common::cubins(name)) {
        let bytes = std::fs::read(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        let image = Image::parse(&bytes).expect("a cubin");
        for code in image.codes().iter().filter(|c| c.is_entry) {
            n += 1;
            let wanted = every().is_some() || n % PART == 0;
            if wanted && Program::new(&image, code.name).expect("a program").missing.is_empty() {
                f(&image, code);
            }
        }
    }
}

/// What came too early, in words.
fn early(program: &Program, outcome: &Outcome) -> String {
    let text = |pc: u32| format!("{:#x} `{}`", program.place(pc).1, program.text(pc));
    let pairs = outcome
        .early
        .keys()
        .map(|(at, of)| format!("{} behind {}", text(*at), text(*of)));
    pairs.collect::<Vec<_>>().join("; ")
}

#[test]
fn kernels_compute_the_same_with_their_timing() {
    let mut kernels = BTreeMap::new();
    each_kernel(|image, code| {
        for initialised in 0..2 {
            let plain = Program::new(image, code.name).expect("a program");
            let (want, _) = common::launch(&plain, initialised).unwrap_or_else(|e| panic!("{e}"));
            let (got, outcome) =
                common::launch(&timed(image, code.name), initialised).unwrap_or_else(|e| panic!("{e}"));
            let early = early(&plain, &outcome);
            assert!(early.is_empty(), "{} {}: {early}", image.target(), code.name);
            assert!(got == want, "{} {}", image.target(), code.name);
        }
        *kernels.entry(image.target().to_string()).or_insert(0) += 1;
    });
    println!("kernels that compute the same with their timing: {kernels:?}");
    assert!(kernels["sm_87"] >= if every().is_some() { 280 } else { 15 });
}

/// How a kernel is broken, and its new words.
type Broken = (&'static str, Vec<(u32, Word)>);

/// Faults that the checker's own planter makes, and changes that ask no model: every stall count one less and as short as can be, every wait
/// dropped, every scoreboard not set.
fn faults(isa: &'static Isa, model: &Model, kernel: &ir::Kernel, words: &[Word]) -> Vec<Broken> {
    let code = sched::code::Code::new(isa, model.classes(), kernel);
    let plants = plant::plants(&code, model)
        .into_iter()
        .map(|p| (p.fault.name(), p.words));
    let mut out: Vec<Broken> = plants.collect();
    for (at, &word) in words.iter().enumerate().take(code.steps.len()) {
        let control = Control::of(word);
        let mut change = |name, control: Control| {
            let changed = control.apply(word);
            if changed != word && isa.decode(changed).form == isa.decode(word).form {
                out.push((name, vec![(at as u32, changed)]));
            }
        };
        let stall = control.stall;
        if stall > 1 {
            change(
                "any stall count, one less",
                Control {
                    stall: stall - 1,
                    ..control
                },
            );
            change("any stall count, 1", Control { stall: 1, ..control });
        }
        change("any wait, dropped", Control { wait: 0, ..control });
        let none = Control {
            write_barrier: None,
            ..control
        };
        change("any scoreboard, not set", none);
    }
    out
}

/// What the gate counts for one kind of fault: planted, shown by the emulator in memory, and of those found by the checker.
type Count = [usize; 3];

#[test]
fn what_the_emulator_shows_in_memory_the_checker_finds() {
    let mut counts: BTreeMap<(String, &str), Count> = BTreeMap::new();
    let mut missed = Vec::new();
    let every = every().unwrap_or(199);
    let mut n = 0;
    each_kernel(|image, code| {
        let isa = Isa::for_target(image.target()).expect("embedded");
        let model = Model::of(image.target());
        let source = Source::from_code(image.target(), code);
        let kernel = ir::lift(isa, &source).expect("lifts");
        let words: Vec<Word> = Word::all(code.bytes).collect();
        let want = std::cell::OnceCell::new();
        for (name, changes) in faults(isa, model, &kernel, &words) {
            n += 1;
            if n % every != 0 {
                continue;
            }
            let mut bytes = code.bytes.to_vec();
            for (at, word) in &changes {
                bytes[*at as usize * 16..][..16].copy_from_slice(&word.to_le_bytes());
            }
            let mut patch = Patch::new(image);
            patch.replace_code(code, &bytes).expect("fits");
            let file = patch.finish();
            let broken = Image::parse(&file).expect("a cubin");
            let want = want.get_or_init(|| {
                let program = Program::new(image, code.name).expect("a program");
                {
                    let (words, outcome) = common::launch(&program, INITIALISED).unwrap_or_else(|e| panic!("{e}"));
                    (words, outcome.steps)
                }
            });
            let program = timed(&broken, code.name);
            let got = common::launch_on(&program, INITIALISED, 4 * want.1, 1);
            let count = counts.entry((image.target().to_string(), name)).or_default();
            count[0] += 1;
            let early = got
                .as_ref()
                .map_or_else(ToString::to_string, |(_, outcome)| early(&program, outcome));
            if got.is_ok_and(|(got, _)| got == want.0) {
                continue;
            }
            count[1] += 1;
            let source = Source {
                code: &bytes,
                ..source.clone()
            };
            let lifted = ir::lift(isa, &source).expect("lifts");
            if sched::check(isa, model, &lifted).errors().next().is_some() {
                count[2] += 1;
            } else {
                missed.push(format!(
                    "{} {}: {name} at {:#x}: {early}",
                    image.target(),
                    code.name,
                    changes[0].0 * 16
                ));
            }
        }
    });
    for ((target, name), [planted, shown, found]) in &counts {
        println!("{target} {name}: {planted} planted, {shown} show in memory, {found} of those are found");
    }
    let [planted, shown, found] = counts.values().fold([0; 3], |s, c| [0, 1, 2].map(|n| s[n] + c[n]));
    println!("all: {planted} planted, {shown} show in memory, {found} of those are found");
    for line in missed.iter().take(40) {
        println!("missed: {line}");
    }
    assert!(shown * 4 > planted, "only {shown} of {planted} show in memory");
    assert!(found * 1000 >= shown * 999, "{found} of {shown}");
    let by_planter = counts.iter().filter(|((_, name), _)| !name.starts_with("any "));
    let [shown, found] = by_planter.fold([0; 2], |s, (_, c)| [s[0] + c[1], s[1] + c[2]]);
    println!("of the checker's own planter: {shown} show in memory, {found} of those are found");
    assert!(found * 1000 >= shown * 999, "{found} of {shown}");
}
