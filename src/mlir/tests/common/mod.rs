//! Files that tests go through.

#![allow(dead_code)]

#[path = "../../../ir/tests/common/wordless.rs"]
pub mod wordless;

use std::fs;
use std::path::{Path, PathBuf};

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

// For `wordless`.
use ::ir;

/// The bundled cubins and what `SASS_MLIR_CORPUS` names.
pub fn files() -> Vec<PathBuf> {
    let mut files = Vec::new();
    cubins(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/kernels"),
        &mut files,
    );
    if let Ok(more) = std::env::var("SASS_MLIR_CORPUS") {
        for dir in more.split(':') {
            let before = files.len();
            cubins(Path::new(dir), &mut files);
            assert!(files.len() > before, "SASS_MLIR_CORPUS: no cubin in {dir}");
        }
    }
    files.sort();
    files
}
