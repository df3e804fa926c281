//! Plugins as a user runs them: the examples in C and Rust do what they say, and one that goes wrong does no harm and is named.

mod common;
#[path = "../../../tests/common/plugin.rs"]
mod plugin;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use common::{Run, differing, entry, kernels, listing, ok, run, s};
use plugin::{EVICT_FIRST, compile};
use tempfile::TempDir;

const FAULTY: &str = "tests/plugins/faulty.c";

/// The example in Rust, which cargo has built for this test.
fn tune_constant(folder: &Path) {
    let built = std::env::current_exe().unwrap();
    let built = built.parent().unwrap().join("libsass2mlir_tune_constant.so");
    fs::create_dir_all(folder).unwrap();
    fs::copy(&built, folder.join("tune_constant.so")).unwrap_or_else(|e| panic!("{}: {e}", built.display()));
}

/// A configuration, a folder of plugins, and what `apply` makes of bundled kernels with them.
struct Case {
    dir: TempDir,
    kernels: PathBuf,
}

impl Case {
    fn new(kernels_of: &str, toml: &str) -> Case {
        let case = Case {
            dir: tempfile::tempdir().expect("a folder"),
            kernels: kernels(kernels_of),
        };
        case.configure(toml);
        case
    }

    fn configure(&self, toml: &str) {
        fs::write(self.path("pass.toml"), toml).expect("a writable folder");
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// With the examples and the plugin that goes wrong.
    fn with_all(self) -> Case {
        tune_constant(&self.path("passes"));
        compile(EVICT_FIRST, &["-Werror"], &self.path("passes"), "evict_first.so");
        compile(FAULTY, &[], &self.path("passes"), "faulty.so");
        self
    }

    fn apply(&self, more: &[&str]) -> Run {
        self.apply_to(&self.kernels, "out.cubin", more)
    }

    fn apply_to(&self, kernels: &Path, out: &str, more: &[&str]) -> Run {
        let (passes, config, out) = (self.path("passes"), self.path("pass.toml"), self.path(out));
        let all = [
            "apply",
            s(kernels),
            "--passes",
            s(&passes),
            "--config",
            s(&config),
            "-o",
            s(&out),
        ];
        run(&[&all[..], more].concat())
    }

    /// What must be an error before any kernel is read, of one line that holds `words`.
    fn refused(&self, words: &[&str]) {
        let r = self.apply(&["--pass-time-limit", "1"]);
        assert_eq!((r.code, &*r.out), (2, ""), "{}", r.err);
        assert_eq!(r.err.trim_end().lines().count(), 1, "{}", r.err);
        words
            .iter()
            .for_each(|w| assert!(r.err.contains(w), "no {w:?} in {}", r.err));
    }

    fn old(&self) -> Vec<u8> {
        fs::read(&self.kernels).unwrap()
    }

    fn new_bytes(&self) -> Vec<u8> {
        fs::read(self.path("out.cubin")).unwrap()
    }

    /// Holds each line of the listing against what `expected` makes of its kernel and its text before; gives how many lines are new.
    fn compare(&self, expected: impl Fn(&str, &str) -> String) -> usize {
        let pairs = listing(&self.kernels).into_iter().zip(listing(&self.path("out.cubin")));
        let changed = pairs.filter(|((kernel, before), (_, after))| {
            assert_eq!(*after, expected(kernel, before));
            after != before
        });
        changed.count()
    }
}

const MUL_MAT: &str = "sm_87/own_mul_mat.cubin";

#[test]
fn the_example_in_c_hints_loads_and_changes_nothing_else() {
    let case = Case::new(MUL_MAT, &entry("evict-first", "apply", "fn = [\"*mul_mat*\"]")).with_all();
    let r = case.apply(&["--verify"]);
    assert_eq!(r.code, 0, "{}", r.err);
    let hinted = case.compare(
        |kernel, before| match kernel.contains("mul_mat") && before.contains("LDG.E") {
            true => before.replacen("LDG.E", "LDG.E.EF", 1),
            false => before.to_owned(),
        },
    );
    assert!(hinted > 20, "{hinted}");
    assert!(
        r.out.contains("evict-first [apply]: ") && r.out.contains("loads hinted"),
        "{}",
        r.out
    );
    assert!(r.out.contains("the same memory"), "{}", r.out);
    // No more than the eviction bits of so many words moved.
    let new = case.new_bytes();
    let moved = differing(&case.old(), &new);
    assert_eq!(moved.len(), hinted);
    let bits = moved.iter().fold(0, |bits, (_, a, b)| bits | (a ^ b));
    assert!(bits.count_ones() <= 3, "{bits:#034x}");

    // Again: the loads have a hint now.
    let r = case.apply_to(&case.path("out.cubin"), "again.cubin", &[]);
    assert!(
        r.out.contains("stays: it has a hint or an order of its own"),
        "{}",
        r.out
    );
    assert_eq!(fs::read(case.path("again.cubin")).unwrap(), new);
}

#[test]
fn the_example_in_rust_tunes_constants_and_takes_turns_with_other_passes() {
    let tune = entry(
        "tune-constant",
        "apply",
        "fn = [\"f32_ops\"]\nfrom = \"0.5\"\nto = \"0.25\"",
    );
    let text = entry("ffma-deftz", "apply", "fn = [\"f32_ops\"]") + &tune + &entry("evict-first", "report", "");
    let case = Case::new("sm_87/own_features.cubin", &text).with_all();
    let r = case.apply(&[]);
    assert!(r.out.contains("tune-constant [apply]: 4 constants tuned"), "{}", r.out);
    assert!(
        r.out
            .contains("caution: tune-constant [apply]: changes what the kernel computes")
    );
    case.compare(|kernel, before| {
        let mut expected = before.to_owned();
        if kernel == "f32_ops" {
            if before.contains("FFMA") {
                expected = expected.replacen(".FTZ", "", 1);
            }
            expected = expected.replacen(", 0.5 ;", ", 0.25 ;", 1);
        }
        expected
    });
    // What it does shows when the kernel runs, and then the kernel stays as it was.
    case.configure(&tune);
    let r = case.apply(&["--verify", "--strict"]);
    assert_eq!(r.code, 1, "{}{}", r.out, r.err);
    assert!(r.err.contains("f32_ops: left byte-identical: "), "{}", r.err);
    assert_eq!(case.new_bytes(), case.old());
}

#[test]
fn options_of_plugins_are_checked_as_those_of_built_in_passes() {
    let case = Case::new(MUL_MAT, "").with_all();
    for (name, rest, words) in [
        (
            "evict-frist",
            "",
            &["pass.toml:2:8: unknown pass `evict-frist`; did you mean `evict-first`?"][..],
        ),
        (
            "nothing-like-it",
            "",
            &["known: ", "ffma-deftz, ", "evict-first", "MLIR"][..],
        ),
        (
            "evict-first",
            "hnt = \"EF\"",
            &["pass.toml:5:1: unknown key `hnt`; did you mean `hint`?"][..],
        ),
        (
            "evict-first",
            "hint = \"XX\"",
            &["pass.toml:5:8: ", "one of EF, EL, LU, EU, NA"][..],
        ),
        (
            "tune-constant",
            "from = \"1\"",
            &["pass.toml:1:1: pass `tune-constant` needs `to`"][..],
        ),
        (
            "tune-constant",
            "from = 1\nto = \"2\"",
            &["pass.toml:5:8: `from` does not fit: expected a string"][..],
        ),
        (
            "deep",
            "depth = 9",
            &["pass.toml:5:9: ", "a whole number from 0x1 to 0x8"][..],
        ),
    ] {
        case.configure(&entry(name, "apply", rest));
        case.refused(words);
    }
    // Without the folder the program says what would find it.
    let config = case.path("pass.toml");
    fs::write(&config, entry("evict-first", "apply", "")).unwrap();
    let args = ["apply", s(&case.kernels), "--config", s(&config), "--report-only"];
    common::bad(
        &args,
        &["unknown pass `evict-first`", "passes of plugins need `--passes DIR`"],
    );
    let listed = ok(&["passes", "--passes", s(&case.path("passes"))]);
    assert!(listed.contains("evict-first: tell the cache"), "{listed}");
    assert!(
        listed.contains("  hint (optional): ") && listed.contains("one of EF, EL"),
        "{listed}"
    );
}

/// Each pass of faulty.so makes nothing of the bundled kernels: everything stays, and every kernel's reason has one of the pass's `words`.
fn go_wrong(limit: &str, passes: &[(&str, &[&str])]) {
    let case = Case::new(MUL_MAT, "");
    compile(FAULTY, &[], &case.path("passes"), "faulty.so");
    for (name, words) in passes {
        case.configure(&entry(name, "apply", ""));
        let r = case.apply(&["--strict", "--json", "--pass-time-limit", limit]);
        assert_eq!(r.code, 1, "{name}\n{}{}", r.out, r.err);
        assert_eq!(case.new_bytes(), case.old(), "{name}");
        let report = r.json();
        let kernels = report["images"][0]["kernels"].as_array().unwrap();
        assert_eq!(kernels.len(), 4);
        for kernel in kernels {
            let why = kernel["left_alone"]
                .as_str()
                .unwrap_or_else(|| panic!("{name}: {kernel}"));
            assert!(why.contains(name) && why.contains("faulty.so: "), "{name}: {why}");
            assert!(words.iter().any(|w| why.contains(w)), "{name}: {why}");
            assert!(r.err.contains(why), "{name}: {}", r.err);
        }
    }
}

#[test]
fn a_plugin_that_goes_wrong_leaves_every_kernel_as_it_was_and_is_named() {
    go_wrong(
        "10",
        &[
            ("crash", &["faulty.so: its process ended: signal: 11 (SIGSEGV)"]),
            ("aborts", &["faulty.so: its process ended: signal: 6 (SIGABRT)"]),
            ("leaves", &["faulty.so: its process ended: exit status: 0"]),
            ("overflow", &["faulty.so: its process ended: signal: "]),
            ("fails", &["faulty.so: it returned 77"]),
            ("far-skip", &["it skips operation "]),
            ("far-sites", &["it says that it fires at 4294967295 places"]),
            ("garbles", &["faulty.so: its process said something else: "]),
            ("far-op", &["operations and no"]),
            ("far-operand", &["it has no operand 1000000000"]),
            ("far-value", &["there is no value 4000000000"]),
            ("many-operands", &["an edit with 4294967295 operands"]),
            ("no-kind", &["there is no kind 99 of edits"]),
            ("no-field", &["has no field `9.Z9`; it has "]),
            ("no-modifier", &["FASTER"]),
            ("wide-value", &["1.X0"]),
            ("sets-register", &["replace the operand instead"]),
            ("no-word", &["the new word is in no table"]),
            ("no-exit", &["a terminator cannot be taken out"]),
            ("asks-for-ever", &["it asks for more than "]),
        ],
    );
}

#[test]
fn a_plugin_that_does_not_end_is_stopped() {
    let words = &[
        "it was stopped after 1 seconds",
        "it ran past the time limit on 3 kernels",
    ];
    go_wrong("1", &[("loop", words), ("stubborn", words)]);
}

#[test]
fn other_kernels_and_other_passes_go_on() {
    let text = entry("ffma-deftz", "apply", "fn = [\"*mul_mat*\"]") + &entry("crash-once", "apply", "");
    let case = Case::new(MUL_MAT, &text).with_all();
    let r = case.apply(&["--threads", "1"]);
    assert_eq!(r.code, 0, "{}", r.err);
    assert!(r.out.contains("FTZ dropped at 112 sites"), "{}", r.out);
    let line = "scale_add: left byte-identical: pass crash-once: ";
    assert!(r.err.contains(line) && r.err.lines().count() == 1, "{}", r.err);

    // A refusal is no fault: what other passes do to the kernel stays.
    case.configure(&text.replace("crash-once", "refuses"));
    let r = case.apply(&["--strict"]);
    assert_eq!(r.code, 1, "{}", r.err);
    assert!(r.out.contains("FTZ dropped at 112 sites"), "{}", r.out);
    assert!(r.out.contains("refuses [apply]: refused - not this one"), "{}", r.out);
    let told = r.err.matches(": refuses: refused - not this one").count();
    assert_eq!((told, r.err.lines().count()), (4, 4), "{}", r.err);
    assert!(case.new_bytes() != case.old());

    // What a plugin prints and reads has nothing to do with what its process says.
    case.configure(&text.replace("crash-once", "chatty"));
    let r = case.apply(&[]);
    assert!(
        r.out.contains("note: read nothing") && !r.out.contains('{'),
        "{}",
        r.out
    );
    assert!(r.err.contains("{\"Ok\": []}"), "{}", r.err);
}

#[test]
fn a_plugin_sees_what_the_passes_before_it_made() {
    let shorter = entry("copy-prop", "apply", "") + &entry("dce", "apply", "remove = true");
    let hint = entry("evict-first", "apply", "");
    let case = Case::new("sm_87/own_features.cubin", &shorter).with_all();
    let r = case.apply_to(&case.kernels, "shorter.cubin", &[]);
    assert!(r.out.contains("rewritten)"), "{}", r.out);
    case.configure(&hint);
    let r = case.apply_to(&case.path("shorter.cubin"), "one-by-one.cubin", &[]);
    assert!(r.out.contains("loads hinted (2 ops rewritten)"), "{}", r.out);
    case.configure(&(shorter + &hint));
    let r = case.apply(&[]);
    let one_by_one = fs::read(case.path("one-by-one.cubin")).unwrap();
    assert!(one_by_one == case.new_bytes(), "{}", r.out);
}

#[test]
fn what_is_no_plugin_is_an_error_with_the_file() {
    let case = Case::new(MUL_MAT, &entry("ffma-deftz", "report", ""));
    let passes = case.path("passes");
    case.refused(&["--passes ", "cannot read the folder"]);
    fs::create_dir_all(&passes).unwrap();
    fs::write(passes.join("text.so"), "no library").unwrap();
    case.refused(&["text.so: it is no shared library"]);
    fs::remove_file(passes.join("text.so")).unwrap();
    let pipe = passes.join("pipe.so");
    plugin::done(Command::new("mkfifo").arg(&pipe));
    case.refused(&["pipe.so: it is no regular file"]);
    fs::remove_file(pipe).unwrap();
    for (define, words) in [
        ("sassGetPlugin=other", "faulty.so: it is no plugin: it exports neither"),
        (
            "PLUGIN_ABI=7",
            "faulty.so: it was compiled with SASS_PLUGIN_ABI 7, this program has 1: ",
        ),
        (
            "ENGINE_ABI=2",
            "faulty.so: it was compiled with SASS_ENGINE_ABI 2, this program has 4: ",
        ),
        ("NOTHING", "faulty.so: `sassGetPlugin` returned nothing"),
        ("ON_LOAD=abort()", "faulty.so: its process ended: signal: 6 (SIGABRT)"),
        (
            "ON_LOAD=sleep(100)",
            "faulty.so: it was stopped after 1 seconds, the time limit",
        ),
        (
            "EXTRA={.name=SASS_STR(\"quiet\")}",
            "faulty.so: pass `quiet`: it has no function `run`",
        ),
        ("EXTRA=PASS(\"a b\",loop)", "faulty.so: `a b` is no name for a pass"),
        ("EXTRA=PASS(\"a\\nb\",loop)", "faulty.so: `a\\nb` is no name for a pass"),
        (
            "EXTRA=PASS(\"ffma-deftz\",loop)",
            "faulty.so: a pass named `ffma-deftz` is already there",
        ),
        (
            "EXTRA={.name=SASS_STR(\"x\"),.run=loop,.options=twice,.optionCount=2}",
            "`x`: option `depth`: the name is taken",
        ),
        (
            "EXTRA={.name=SASS_STR(\"x\"),.run=loop,.options=own,.optionCount=1}",
            "`x`: option `mode`: the name is taken",
        ),
        (
            "EXTRA={.name=SASS_STR(\"x\"),.run=loop,.options=untyped,.optionCount=1}",
            "option `depth`: there is no type 9",
        ),
        (
            "EXTRA={.name=SASS_STR(\"x\"),.run=loop,.optionCount=1}",
            "pass `x`: its table says that there are 1 options",
        ),
    ] {
        compile(FAULTY, &[&format!("-D{define}")], &passes, "faulty.so");
        case.refused(&[words]);
    }
}

/// The processes of plugins from a folder, by what the system says of their arguments.
fn processes(passes: &Path) -> usize {
    let folder = s(passes);
    let all = fs::read_dir("/proc").expect("/proc").flatten();
    let lines = all.filter_map(|entry| fs::read_to_string(entry.path().join("cmdline")).ok());
    lines
        .filter(|line| line.contains("serve-plugin") && line.contains(folder))
        .count()
}

/// Waits until there are as many processes of plugins from a folder as is wanted.
fn wait(passes: &Path, until: fn(usize) -> bool) -> bool {
    (0..500).any(|_| {
        std::thread::sleep(Duration::from_millis(20));
        until(processes(passes))
    })
}

#[test]
fn what_a_plugin_starts_ends_with_it() {
    let forks = entry("forks", "apply", "");
    let case = Case::new(MUL_MAT, &forks);
    compile(FAULTY, &[], &case.path("passes"), "faulty.so");
    let r = case.apply(&[]);
    assert_eq!(r.code, 0, "{}", r.err);
    assert!(wait(&case.path("passes"), |n| n == 0), "a process is left");
    case.configure(&(forks + &entry("loop", "apply", "")));
    let r = case.apply(&["--pass-time-limit", "1"]);
    assert!(r.err.contains("it was stopped after 1 seconds"), "{}", r.err);
    assert!(wait(&case.path("passes"), |n| n == 0), "a process is left");
}

#[test]
fn a_plugin_is_no_place_for_the_output() {
    let case = Case::new(MUL_MAT, &entry("refuses", "apply", ""));
    let library = compile(FAULTY, &[], &case.path("passes"), "faulty.so");
    let before = fs::read(&library).unwrap();
    let r = case.apply_to(&case.kernels, "passes/faulty.so", &[]);
    assert_eq!(r.code, 2, "{}", r.err);
    assert!(r.err.contains("is the input or another output"), "{}", r.err);
    assert_eq!(fs::read(&library).unwrap(), before);
}

#[test]
fn no_process_of_a_plugin_outlives_the_program() {
    let case = Case::new(MUL_MAT, &entry("loop", "apply", ""));
    let passes = case.path("passes");
    compile(FAULTY, &[], &passes, "faulty.so");
    let mut program = common::program()
        .args(["apply", s(&case.kernels), "--passes", s(&passes), "--report-only"])
        .args(["--config", s(&case.path("pass.toml")), "--pass-time-limit", "600"])
        .spawn()
        .expect("the program starts");
    assert!(wait(&passes, |n| n > 0), "no process has started");
    program.kill().unwrap();
    program.wait().unwrap();
    assert!(wait(&passes, |n| n == 0), "a process is left");
}
