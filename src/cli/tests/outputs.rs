//! Where results go: an output that cannot be written is an error that says which and what to do, and no half of it is left.

mod common;

use std::fs;
use std::process::Stdio;

use common::{finished, mul_mat, program, s};

fn cubin() -> String {
    s(&mul_mat()).to_owned()
}

fn refused(args: &[&str], stdout: Stdio) -> String {
    let started = program().args(args).stdout(stdout).stderr(Stdio::piped()).spawn();
    let done = finished(started.and_then(|p| p.wait_with_output()).expect("the program runs"));
    assert_eq!(done.code, 2, "{args:?}");
    done.err
}

#[test]
fn a_folder_that_is_not_there() {
    let dir = tempfile::tempdir().expect("a folder");
    let out = dir.path().join("new/k.mlir");
    let said = refused(&["lift", &cubin(), "-o", s(&out)], Stdio::null());
    assert!(said.contains("k.mlir: cannot write: there is no folder"), "{said}");
    assert!(!said.contains(".sass2mlir-"), "a temporary file's name: {said}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk() {
    for args in [
        &["lift", &cubin(), "-o", "/dev/full"][..],
        &["lift", &cubin()],
        &["info", &cubin(), "--json"],
        &["completions", "bash"],
    ] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("/dev/full");
        let said = refused(args, full.into());
        let which = if args.contains(&"-o") {
            "/dev/full"
        } else {
            "standard output"
        };
        assert!(
            said.contains(&format!("{which}: ")) && said.contains("No space left"),
            "{said}"
        );
    }
}

#[test]
fn a_text_without_kernels_is_not_lowered() {
    let dir = tempfile::tempdir().expect("a folder");
    let (text, out) = (dir.path().join("k.mlir"), dir.path().join("k.cubin"));
    for nothing in ["", "module {\n}\n", "// only a comment\n"] {
        fs::write(&text, nothing).expect("writes");
        let said = refused(&["lower", s(&text), "--into", &cubin(), "-o", s(&out)], Stdio::null());
        assert!(said.contains("k.mlir: holds no kernel"), "{said}");
        assert!(!out.exists());
    }
}

#[test]
fn more_threads_than_any_machine_has_are_refused() {
    for n in ["0", "99999999"] {
        let said = refused(&["info", &cubin(), "--threads", n], Stdio::null());
        assert!(said.contains("1..=1024"), "{said}");
    }
}
