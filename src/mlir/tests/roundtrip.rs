//! Kernel to module to kernel, by memory, text and bytecode, over the bundled cubins and whatever `SASS_MLIR_CORPUS` (folders of
//! cubins, separated by colons) names besides.
#![cfg(feature = "mlir")]

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
    let mut files = Vec::new();
    cubins(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/kernels"),
        &mut files,
    );
    if let Ok(more) = std::env::var("SASS_MLIR_CORPUS") {
        more.split(':').for_each(|dir| cubins(Path::new(dir), &mut files));
    }
    files.sort();
    let bridge = Bridge::new(false).unwrap();
    let (mut kernel_count, mut instructions) = (0, 0);
    for file in files {
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
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/kernels");
    let mut files = Vec::new();
    cubins(&dir, &mut files);
    let bridge = Bridge::new(true).unwrap();
    // Ops that have to stay, whatever else is folded.
    let stays = [
        "sass.label",
        "sass.entry",
        "sass.SHFL_",
        "sass.VOTE_",
        "sass.BAR_",
        "sass.BSSY_",
        "sass.BSYNC_",
        "sass.CS2R_",
        "sass.EXIT_",
    ];
    let count = |text: &str| stays.map(|name| text.matches(name).count());
    for file in files {
        let bytes = fs::read(&file).unwrap();
        for (kernel, _) in kernels(&bytes) {
            let mut module = bridge.module(std::slice::from_ref(&kernel), false).unwrap();
            let before = count(&module.to_text());
            module.run("builtin.module(canonicalize,cse)").unwrap();
            module.verify().unwrap();
            assert_eq!(before, count(&module.to_text()), "{}: {}", file.display(), kernel.name);
        }
    }
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
