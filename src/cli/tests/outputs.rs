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

/// A file's name and content.
#[cfg(target_os = "linux")]
type Named = (String, Vec<u8>);

/// What `apply` makes of the bundled cubin in a folder, under limits of the shell: how it ends, what it says, and what is in the folder then.
#[cfg(target_os = "linux")]
fn applied_under(limits: &str) -> (Option<i32>, String, Vec<Named>) {
    let dir = tempfile::tempdir().expect("a folder");
    let (config, out) = (dir.path().join("pass.toml"), dir.path().join("out.cubin"));
    fs::write(&config, "[[pass]]\nname = \"ffma-deftz\"\nmode = \"apply\"\n").expect("writes");
    fs::write(&out, "older content").expect("writes");
    let run = format!("{limits} exec \"$0\" apply \"$1\" --config \"$2\" -o \"$3\"");
    let program = program();
    let done = std::process::Command::new("sh")
        .args(["-c", &run])
        .arg(program.get_program())
        .args([&cubin(), s(&config), s(&out)])
        .output()
        .expect("a shell");
    let files = fs::read_dir(dir.path()).expect("the folder").map(|e| {
        let path = e.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        (name, fs::read(&path).expect("reads"))
    });
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    (done.status.code(), said, files.collect())
}

#[cfg(target_os = "linux")]
#[test]
fn what_was_there_stays_when_the_disk_is_full_or_the_program_is_killed() {
    let older = |files: &[Named]| {
        let out = files.iter().find(|(name, _)| name == "out.cubin").expect("the output");
        assert_eq!(out.1, b"older content");
    };
    // A file may have 4 KiB, and the program hears of it.
    let (code, said, files) = applied_under("trap '' XFSZ; ulimit -f 8;");
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("out.cubin: cannot write"), "{said}");
    older(&files);
    assert_eq!(files.len(), 2, "something was left behind");
    // Or it is killed while it writes.
    let (code, _, files) = applied_under("ulimit -c 0; ulimit -f 8;");
    assert_eq!(code, None, "killed by a signal");
    older(&files);
    let (code, said, files) = applied_under("");
    assert_eq!(code, Some(0), "{said}");
    assert!(
        files
            .iter()
            .any(|(name, bytes)| name == "out.cubin" && bytes.starts_with(b"\x7fELF"))
    );
}

#[cfg(target_os = "linux")]
#[test]
fn a_folder_where_nothing_can_be_written() {
    let dir = tempfile::tempdir().expect("a folder");
    let config = dir.path().join("pass.toml");
    fs::write(&config, "[[pass]]\nname = \"ffma-deftz\"\nmode = \"apply\"\n").expect("writes");
    let said = refused(
        &["apply", &cubin(), "--config", s(&config), "-o", "/proc/out.cubin"],
        Stdio::null(),
    );
    assert!(said.contains("/proc/out.cubin: cannot write"), "{said}");
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

#[cfg(unix)]
#[test]
fn a_link_is_followed_whether_or_not_it_leads_to_a_file() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = |name: &str| dir.path().join(name);
    fs::create_dir(path("far")).expect("a folder");
    for (link, to) in [("one", "far/k.mlir"), ("two", "one")] {
        std::os::unix::fs::symlink(to, path(link)).expect("a link");
    }
    // First nothing is there, then a file.
    for _ in 0..2 {
        let done = finished(
            program()
                .args(["lift", &cubin(), "-o", s(&path("two"))])
                .output()
                .expect("it runs"),
        );
        assert_eq!(done.code, 0, "{}", done.err);
        assert!(path("one").is_symlink() && path("two").is_symlink());
        assert!(!path("far/k.mlir").is_symlink() && path("far/k.mlir").is_file());
    }
    let input = path("far/none.cubin");
    fs::copy(cubin(), &input).expect("a copy");
    std::os::unix::fs::symlink("far/none.cubin", path("same")).expect("a link");
    let said = refused(&["lift", s(&input), "-o", s(&path("same"))], Stdio::null());
    assert!(said.contains("is the input"), "{said}");
}

/// Standard output takes the file and nothing else, wherever it leads.
#[cfg(target_os = "linux")]
#[test]
fn a_result_on_standard_output_is_alone() {
    let (dir, config) = common::folder(&common::entry("ffma-deftz", "apply", ""));
    let file = dir.path().join("k.cubin");
    let (cubin, config) = (cubin(), s(&config).to_owned());
    let apply = |to: &str, stdout: Stdio| {
        let args = ["apply", &cubin, "--config", &config, "-o", to];
        let started = program().args(args).stdout(stdout).stderr(Stdio::piped()).spawn();
        started.and_then(|p| p.wait_with_output()).expect("the program runs")
    };
    let report = apply(s(&file), Stdio::piped());
    let bytes = fs::read(&file).expect("the result");
    for name in ["/dev/stdout", "/dev/fd/1"] {
        let done = apply(name, Stdio::piped());
        assert!(done.stdout == bytes, "{name}");
        assert!(done.stderr.ends_with(&report.stdout), "{name}");
    }
    let log = dir.path().join("log");
    fs::write(&log, "before").expect("a file");
    let end = fs::OpenOptions::new().append(true).open(&log).expect("the file");
    apply("/dev/stdout", end.into());
    assert!(fs::read(&log).expect("the file") == [b"before", &bytes[..]].concat());
}
