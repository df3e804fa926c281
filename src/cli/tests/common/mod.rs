//! The program as a user runs it, and the bundled kernels.
#![allow(dead_code)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// What the program did.
pub struct Run {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Run {
    /// What it printed, as JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).expect("JSON")
    }
}

/// The program, for tests that set more than its arguments.
pub fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_sass2mlir"))
}

/// What a program did that has ended.
pub fn finished(output: Output) -> Run {
    Run {
        code: output.status.code().expect("not killed by a signal"),
        out: String::from_utf8(output.stdout).expect("UTF-8"),
        err: String::from_utf8(output.stderr).expect("UTF-8"),
    }
}

/// Runs the program.
pub fn run(args: &[&str]) -> Run {
    finished(program().args(args).output().expect("the program starts"))
}

/// Runs something that must work; gives what it printed.
pub fn ok(args: &[&str]) -> String {
    let r = run(args);
    assert_eq!(r.code, 0, "{args:?}\n{}{}", r.out, r.err);
    r.out
}

/// Runs something that must fail with exit code 2 and a message that holds all of `words`; gives the message.
pub fn bad(args: &[&str], words: &[&str]) -> String {
    let r = run(args);
    assert_eq!(r.code, 2, "{args:?}\n{}{}", r.out, r.err);
    assert_eq!(r.out, "", "{args:?} printed a result beside the error");
    for w in words {
        assert!(r.err.contains(w), "{args:?}: no {w:?} in\n{}", r.err);
    }
    r.err
}

/// A file of tests/kernels.
pub fn kernels(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/kernels")
        .join(name)
}

/// The kernels that most tests take.
pub fn mul_mat() -> PathBuf {
    kernels("sm_87/own_mul_mat.cubin")
}

/// A path as an argument.
pub fn s(p: &Path) -> &str {
    p.to_str().expect("UTF-8 path")
}

/// A folder with a pass.toml in it.
pub fn folder(toml: &str) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("a folder");
    let config = dir.path().join("pass.toml");
    fs::write(&config, toml).expect("a writable folder");
    (dir, config)
}

/// An entry of a pass.toml.
pub fn entry(name: &str, mode: &str, rest: &str) -> String {
    format!("[[pass]]\nname = \"{name}\"\nsm = [\"sm_87\"]\nmode = \"{mode}\"\n{rest}\n")
}

/// Lines of `disasm` as (kernel, text).
pub fn listing(file: &Path) -> Vec<(String, String)> {
    let (mut kernel, mut lines) = (String::new(), Vec::new());
    for line in ok(&["disasm", s(file)]).lines() {
        if let Some(name) = line.strip_prefix(".text.") {
            kernel = name.split(':').next().unwrap().to_owned();
        } else if let Some((_, text)) = line.trim_start().strip_prefix("/*").and_then(|l| l.split_once("*/")) {
            lines.push((kernel.clone(), text.trim().to_owned()));
        }
    }
    lines
}

/// Byte offsets of the words of two files that differ, and the two words.
pub fn differing(a: &[u8], b: &[u8]) -> Vec<(usize, u128, u128)> {
    assert_eq!(a.len(), b.len());
    let word = |c: &[u8]| u128::from_le_bytes(c.try_into().unwrap());
    let pairs = a.chunks_exact(16).zip(b.chunks_exact(16)).enumerate();
    pairs
        .filter(|(_, (x, y))| x != y)
        .map(|(n, (x, y))| (n * 16, word(x), word(y)))
        .collect()
}
