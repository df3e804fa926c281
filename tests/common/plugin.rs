//! Plugins in C for tests, compiled where the test runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The example in C.
pub const EVICT_FIRST: &str = "src/plugin/examples/evict_first.c";

/// A path below the project's folder.
pub fn in_project(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// The C compiler with the header's folder and this source; `-o` and flags are up to the caller.
pub fn compiler(source: &Path) -> Command {
    let mut command = Command::new(std::env::var("CC").unwrap_or_else(|_| "cc".to_owned()));
    command.args(["-std=c11", "-D_POSIX_C_SOURCE=200809L", "-Wall", "-Wextra", "-O1"]);
    command.arg("-I").arg(in_project("src/engine/include")).arg(source);
    command
}

/// Runs a compiler.
pub fn done(command: &mut Command) {
    let made = command.output().expect("a C compiler");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

/// Compiles a plugin into a folder for `--passes`.
pub fn compile(source: &str, flags: &[&str], folder: &Path, name: &str) -> PathBuf {
    let file = folder.join(name);
    fs::create_dir_all(folder).expect("a writable folder");
    let mut command = compiler(&in_project(source));
    done(command.args(["-shared", "-fPIC"]).args(flags).arg("-o").arg(&file));
    file
}
