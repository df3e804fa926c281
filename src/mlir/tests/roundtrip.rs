//! Kernel to module to kernel, by memory, text and bytecode, over the bundled cubins and whatever `SASS_MLIR_CORPUS` (folders of
//! cubins, separated by colons) names besides.
#![cfg(feature = "mlir")]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use common::files;
use common::wordless::without_words;
use cubin::CubinError;
use ir::{Def, Kernel, OpKind, Source, ValueId};
use isa::{Effects, Isa};
use rayon::prelude::*;
use sass2mlir_mlir::Bridge;

/// What a test has gone through: kernels and instructions by target, and files by the reason why they were not.
#[derive(Default)]
struct Counts {
    targets: BTreeMap<String, (usize, usize)>,
    passed_over: BTreeMap<String, usize>,
}

/// Calls `check` with every kernel of every file and its code, files side by side, each with a context of its own. A file may be passed
/// over for its target alone.
fn each_kernel(check: impl Fn(&Bridge, &str, Kernel, &[u8]) + Sync) -> Counts {
    let counts = Mutex::new(Counts::default());
    files().par_iter().for_each(|file| {
        let bytes = fs::read(file).unwrap();
        let place = file.display();
        let pass_over = |why: String| *counts.lock().unwrap().passed_over.entry(why).or_default() += 1;
        let image = match cubin::Image::parse(&bytes) {
            Ok(image) => image,
            Err(e @ CubinError::UnknownTarget { .. }) => return pass_over(e.to_string()),
            Err(e) => panic!("{place}: {e}"),
        };
        let target = image.target();
        let isa = match Isa::for_target(target) {
            Ok(isa) => isa,
            Err(e) => return pass_over(e.to_string()),
        };
        let bridge = Bridge::new(false).unwrap();
        for code in image.codes() {
            let source = Source::from_code(target, code);
            let place = format!("{place}: {}", source.name);
            let kernel = ir::lift(isa, &source).unwrap_or_else(|e| panic!("{place}: {e}"));
            let mut counts = counts.lock().unwrap();
            let (kernels, instructions) = counts.targets.entry(target.to_string()).or_default();
            *kernels += 1;
            *instructions += kernel.instruction_count();
            drop(counts);
            check(&bridge, &place, kernel, source.code);
        }
    });
    counts.into_inner().unwrap()
}

/// Both readers put the same words together where the text has none.
#[test]
fn text_without_words_is_read_alike() {
    // The LLVM-free reader is held against real words by tests of its own; here one file of three families is enough.
    let files = ["sm_87/own_mul_mat", "sm_90/own_mul_mat", "sm_120a/own_mul_mat"];
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/kernels");
    let mut kernels = 0;
    for file in files.map(|file| folder.join(file).with_extension("cubin")) {
        let bytes = fs::read(&file).unwrap();
        let image = cubin::Image::parse(&bytes).unwrap();
        let isa = Isa::for_target(image.target()).unwrap();
        let bridge = Bridge::new(false).unwrap();
        for code in image.codes() {
            let kernel = ir::lift(isa, &Source::from_code(image.target(), code)).unwrap();
            let text = without_words(isa, &ir::print_module(&[kernel]));
            let free = ir::parse_module(&text).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
            let module = bridge
                .parse(text.as_bytes())
                .unwrap_or_else(|e| panic!("{}: {e}", file.display()));
            assert!(module.to_text() == ir::print_module(&free), "{}", file.display());
            kernels += 1;
        }
    }
    assert!(kernels > 5, "{kernels}");
}

impl Counts {
    /// Says them. Nothing gone through is a failure.
    fn say(&self, what: &str) {
        for (target, (kernels, instructions)) in &self.targets {
            println!("{what}: {target}: {kernels} kernels, {instructions} instructions");
        }
        for (why, files) in &self.passed_over {
            println!("{what}: {files} files passed over: {why}");
        }
        let (kernels, instructions) = self.targets.values().fold((0, 0), |sum, n| (sum.0 + n.0, sum.1 + n.1));
        println!(
            "{what}: {} targets, {kernels} kernels, {instructions} instructions",
            self.targets.len()
        );
        assert!(kernels > 0);
    }
}

#[test]
fn every_kernel_comes_back() {
    let counts = each_kernel(|bridge, place, kernel, code| {
        let expected = ir::print_module(std::slice::from_ref(&kernel));
        let module = bridge
            .module(std::slice::from_ref(&kernel), true)
            .unwrap_or_else(|e| panic!("{place}: {e}"));
        module.verify().unwrap_or_else(|e| panic!("{place}: {e}"));
        let lower = |module: &sass2mlir_mlir::Module<'_>, way: &str| {
            let back = module.kernels().unwrap_or_else(|e| panic!("{place}: {way}: {e}"));
            assert_eq!(back.len(), 1, "{place}: {way}");
            let lowered = ir::lower(&back[0]).unwrap_or_else(|e| panic!("{place}: {way}: {e}"));
            assert!(lowered == code, "{place}: other bytes by {way}");
        };
        lower(&module, "memory");

        let text = module.to_text();
        if text != expected {
            let differs = text.lines().zip(expected.lines()).find(|(a, b)| a != b);
            let (mlir, internal) = differs.unwrap_or(("more or fewer lines", ""));
            panic!("{place}: the texts differ:\n  mlir     {mlir}\n  internal {internal}");
        }
        let parsed = bridge.parse(text.as_bytes()).unwrap_or_else(|e| panic!("{place}: {e}"));
        lower(&parsed, "text");
        assert!(
            parsed.to_text() == text,
            "{place}: text, parsed and printed, is other text"
        );

        let binary = module.to_bytecode();
        let read = bridge
            .parse(&binary)
            .unwrap_or_else(|e| panic!("{place}: bytecode: {e}"));
        lower(&read, "bytecode");
        assert!(read.to_text() == text, "{place}: the bytecode's text is other text");
    });
    counts.say("memory, text, bytecode");
}

#[test]
fn upstream_passes_keep_a_function_whole() {
    let (live_ins, unread) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let counts = each_kernel(|bridge, place, kernel, _| {
        let mut module = bridge.module(std::slice::from_ref(&kernel), false).unwrap();
        module
            .run("builtin.module(canonicalize,cse)")
            .unwrap_or_else(|e| panic!("{place}: {e}"));
        module.verify().unwrap_or_else(|e| panic!("{place}: {e}"));
        // (It has moved, so that words of branches disagree with their labels, and is a kernel again when it has been lowered.)
        let (before, mut after) = (Whole::of(&kernel), Whole::of_text(&module.to_text()));
        after.stays.retain(|name, _| before.stays.contains_key(name));
        assert_eq!(before.stays, after.stays, "{place}: what has an effect");
        assert_eq!(before.labels, after.labels, "{place}: labels");
        assert_eq!(
            before.entered, after.entered,
            "{place}: blocks that the prologue enters"
        );
        let lost: Vec<_> = before.read.difference(&after.live_ins).collect();
        assert!(lost.is_empty(), "{place}: live-ins {lost:?} are gone");
        assert!(after.live_ins.is_subset(&before.live_ins), "{place}: new live-ins");
        live_ins.fetch_add(before.live_ins.len(), Relaxed);
        unread.fetch_add(before.live_ins.len() - before.read.len(), Relaxed);
    });
    counts.say("canonicalize,cse");
    let (live_ins, unread) = (live_ins.into_inner(), unread.into_inner());
    println!("canonicalize,cse: {live_ins} live-ins, {unread} of them read by nothing that has an effect");
}

/// What has to be there after any upstream pass.
#[derive(Default)]
struct Whole {
    /// Instructions with an effect, and those that end blocks, by name.
    stays: BTreeMap<String, usize>,
    labels: Vec<u32>,
    /// Where the code begins, functions, and code that no branch reaches.
    entered: usize,
    live_ins: BTreeSet<String>,
    /// Those whose value gets, over whatever is computed from it, to an instruction that stays. Another may go: it lowers to nothing, and
    /// nobody is left who reads it.
    read: BTreeSet<String>,
}

impl Whole {
    fn of(kernel: &Kernel) -> Whole {
        let isa = Isa::for_target(kernel.target).unwrap();
        let mut whole = Whole::default();
        let mut todo: Vec<ValueId> = Vec::new();
        for op in kernel.ops() {
            match op.kind() {
                OpKind::Label => whole.labels.extend(op.label()),
                OpKind::Entry => whole.entered = kernel.block(op.block()).successors().len(),
                OpKind::LiveIn => whole.live_ins.extend(op.results().map(|v| kernel.pin(v).to_string())),
                _ => {}
            }
            let Some(inst) = op.inst() else { continue };
            let semantics = isa.semantics(inst);
            let reads_only = !semantics.effects.has(EFFECTS) && !semantics.convergence;
            if semantics.known && reads_only && !op.is_terminator() {
                continue;
            }
            let name = op.layout().map_or("sass.opaque", |layout| &layout.name);
            *whole.stays.entry(name.to_owned()).or_default() += 1;
            todo.extend(op.operands());
        }
        let mut passed: Vec<Vec<&[ValueId]>> = vec![Vec::new(); kernel.block_count()];
        for (to, args) in kernel.blocks().flat_map(|block| block.successors()) {
            passed[to.index()].push(args);
        }
        let mut seen = vec![false; kernel.values().len()];
        while let Some(value) = todo.pop() {
            if std::mem::replace(&mut seen[value.index()], true) {
                continue;
            }
            match kernel.def(value) {
                Def::Result(op, _) if kernel.op(op).kind() == OpKind::LiveIn => {
                    whole.read.insert(kernel.pin(value).to_string());
                }
                Def::Result(op, _) => todo.extend(kernel.op(op).operands()),
                Def::Arg(to, n) => todo.extend(passed[to.index()].iter().map(|args| args[n as usize])),
            }
        }
        whole
    }

    /// From the text of one function; what is read is not told, and all instructions stay.
    fn of_text(text: &str) -> Whole {
        let mut whole = Whole::default();
        for line in text.lines() {
            let op = line.split_once(" = ").map_or(line, |(_, op)| op).trim_start();
            let (name, rest) = op.split_once(' ').unwrap_or((op, ""));
            match name {
                "sass.label" => whole.labels.extend(rest.parse::<u32>()),
                "sass.entry" => whole.entered = rest.matches('^').count(),
                "builtin.unrealized_conversion_cast" => {
                    whole.live_ins.extend(rest.split('"').nth(1).map(str::to_owned))
                }
                _ => *whole.stays.entry(name.to_owned()).or_default() += 1,
            }
        }
        whole
    }
}

/// Everything beyond reading.
const EFFECTS: Effects = Effects::WRITE
    .union(Effects::ATOMIC)
    .union(Effects::FENCE)
    .union(Effects::BARRIER)
    .union(Effects::CONTROL)
    .union(Effects::STATE);

#[test]
fn diagnostics_are_errors_with_their_place() {
    let bridge = Bridge::new(false).unwrap();
    let error = bridge
        .parse(b"module {\n  sass.func \"k\" attributes {sm = \"sm_1\"} {\n  }\n}\n")
        .err()
        .unwrap();
    let text = error.to_string();
    assert!(text.contains(":2:") && text.contains("sm_1"), "{text}");
}

/// A kernel for sm_87 of these words.
fn planted(words: &[u128]) -> Kernel {
    let target = isa::Target::Sm87;
    let mut code: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
    code.extend(0x000f_ea00_0380_0000_0000_0000_0000_794d_u128.to_le_bytes()); // EXIT
    ir::lift(Isa::for_target(target).unwrap(), &Source::new("planted", target, &code)).unwrap()
}

/// How often `name` is there after upstream cleanup.
fn after_cse(words: &[u128], name: &str) -> usize {
    let bridge = Bridge::new(false).unwrap();
    let mut module = bridge.module(&[planted(words)], false).unwrap();
    let before = module.to_text();
    assert_eq!(before.matches(name).count(), 2, "{before}");
    module.run("builtin.module(canonicalize,cse)").unwrap();
    module.verify().unwrap();
    module.to_text().matches(name).count()
}

#[test]
fn a_duplicate_with_other_registers_and_stalls_is_merged() {
    let words = [
        0x000f_e200_0000_0000_8000_0003_0405_7221, // FADD R5, R4, -R3
        0x000f_c800_0000_0000_8000_0003_0406_7221, // FADD R6, R4, -R3, another stall
        0x000f_c600_0040_0000_0000_0006_0504_7220, // FMUL R4, R5, R6
        0x000f_e200_0c10_1924_0000_0004_1000_7986, // STG [R16.64], R4
    ];
    assert_eq!(after_cse(&words, "sass.FADD_"), 1);
}

#[test]
fn other_operands_or_modifiers_are_no_duplicate() {
    let words = [
        0x000f_e200_0000_0000_8000_0003_0405_7221, // FADD R5, R4, -R3
        0x000f_e200_0000_0000_0000_0003_0406_7221, // FADD R6, R4, R3
        0x000f_c600_0040_0000_0000_0006_0504_7220, // FMUL R4, R5, R6
        0x000f_e200_0c10_1924_0000_0004_1000_7986, // STG [R16.64], R4
    ];
    assert_eq!(after_cse(&words, "sass.FADD_"), 2);
}

#[test]
fn what_depends_on_the_active_lanes_or_the_clock_is_not_merged() {
    let shfl = 0x001e_2400_000e_0000_0e00_1f00_0900_7f89; // SHFL.BFLY
    assert_eq!(after_cse(&[shfl, shfl], "sass.SHFL_"), 2);
    let clock = 0x001f_e400_0000_5200_0000_0000_0005_7805; // CS2R.32 R5, SR_GLOBALTIMERLO
    assert_eq!(after_cse(&[clock, clock], "sass.CS2R_"), 2);
}
