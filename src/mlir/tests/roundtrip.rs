//! Kernel to module to kernel, by memory, text and bytecode, over the bundled cubins and whatever `SASS_MLIR_CORPUS` (folders of
//! cubins, separated by colons) names besides.
#![cfg(feature = "mlir")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use ir::{Kernel, Source};
use isa::Isa;
use sass2mlir_mlir::Bridge;

fn cubins(dir: &Path, out: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            cubins(&path, out);
        } else if path.extension().is_some_and(|e| e == "cubin") {
            out.push(path);
        }
    }
}

/// The bundled cubins and what `SASS_MLIR_CORPUS` names.
fn files() -> Vec<PathBuf> {
    let mut files = Vec::new();
    cubins(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/kernels"),
        &mut files,
    );
    if let Ok(more) = std::env::var("SASS_MLIR_CORPUS") {
        more.split(':').for_each(|dir| cubins(Path::new(dir), &mut files));
    }
    files.sort();
    files
}

/// Every kernel of a file with its code; none if the tables for it are not built in.
fn kernels(bytes: &[u8]) -> Vec<(Kernel, Vec<u8>)> {
    let Ok(image) = cubin::Image::parse(bytes) else {
        return Vec::new();
    };
    let Ok(isa) = Isa::for_target(image.target()) else {
        return Vec::new();
    };
    let codes = image.codes().iter();
    codes
        .filter_map(|code| {
            let source = Source::from_code(image.target(), code);
            Some((ir::lift(isa, &source).ok()?, source.code.to_vec()))
        })
        .collect()
}

#[test]
fn every_bundled_kernel_comes_back() {
    let bridge = Bridge::new(false).unwrap();
    let (mut kernel_count, mut instructions) = (0, 0);
    for file in files() {
        let bytes = fs::read(&file).unwrap();
        for (kernel, code) in kernels(&bytes) {
            let place = format!("{}: {}", file.display(), kernel.name);
            kernel_count += 1;
            instructions += kernel.instruction_count();
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
        }
    }
    println!("{kernel_count} kernels, {instructions} instructions");
    assert!(kernel_count > 0);
}

#[test]
fn upstream_passes_keep_a_function_whole() {
    let bridge = Bridge::new(true).unwrap();
    let mut count = 0;
    for file in files() {
        let bytes = fs::read(&file).unwrap();
        for (kernel, _) in kernels(&bytes) {
            let place = format!("{}: {}", file.display(), kernel.name);
            let mut module = bridge.module(std::slice::from_ref(&kernel), false).unwrap();
            let before = staying(&kernel, &module.to_text());
            module
                .run("builtin.module(canonicalize,cse)")
                .unwrap_or_else(|e| panic!("{place}: {e}"));
            module.verify().unwrap_or_else(|e| panic!("{place}: {e}"));
            let after = staying(&kernel, &module.to_text());
            for (name, n) in &before {
                assert_eq!(Some(n), after.get(name), "{place}: {name} before and after");
            }
            count += 1;
        }
    }
    println!("canonicalize,cse: {count} kernels");
}

/// How often each op is there that has to stay, whatever else is folded: labels, live-ins that are read, what depends on or changes the
/// active lanes, what ends blocks for good, all that writes memory.
fn staying(kernel: &Kernel, text: &str) -> BTreeMap<String, usize> {
    let isa = Isa::for_target(kernel.target).unwrap();
    let mut stays: BTreeMap<String, usize> = BTreeMap::new();
    for op in kernel.ops() {
        let Some(inst) = op.inst() else { continue };
        let semantics = isa.semantics(inst);
        let writes = semantics.effects.has(isa::Effects::WRITE);
        if let (true, Some(layout)) = (semantics.known && (semantics.convergence || writes), op.layout()) {
            stays.entry(format!("{} ", layout.name)).or_default();
        }
    }
    for name in ["sass.label ", "sass.entry ", "sass.EXIT_", "sass.opaque "] {
        stays.entry(name.to_owned()).or_default();
    }
    for (name, n) in &mut stays {
        *n = text.matches(name.as_str()).count();
    }
    stays
}

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
