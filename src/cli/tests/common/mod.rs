//! The program as a user runs it, and the bundled kernels.
#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Runs the program.
pub fn run(args: &[&str]) -> Output {
    let mut program = Command::new(env!("CARGO_BIN_EXE_sass2mlir"));
    program.args(args).output().expect("the program starts")
}

/// What it wrote.
pub fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("UTF-8")
}

/// A file of tests/kernels.
pub fn kernels(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/kernels")
        .join(name)
}

/// A path as an argument.
pub fn s(p: &Path) -> &str {
    p.to_str().expect("UTF-8 path")
}
