//! `asm` and `disasm --asm` as a user runs them.

mod common;

use std::fs;
use std::io::Write;
use std::process::Stdio;

use common::{Run, bad, finished, kernels, ok, program, s};

/// Runs `asm -` over a text.
fn assemble(args: &[&str], input: &str) -> Run {
    let mut command = program();
    command.args(["asm", "-"]).args(args);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    // A command line that is wrong is refused before the text is read.
    let _ = child.stdin.take().expect("a pipe").write_all(input.as_bytes());
    finished(child.wait_with_output().expect("it ends"))
}

#[test]
fn disasm_and_asm_give_back_the_file() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let (listing, back) = (dir.path().join("k.sass"), dir.path().join("k.cubin"));
    for name in [
        "sm_87/own_features.cubin",
        "sm_87/own_mul_mat.cubin",
        "sm_87/relocatable.cubin",
        "sm_87/jump_table.cubin",
    ] {
        let file = kernels(name);
        fs::write(&listing, ok(&["disasm", s(&file), "--asm"])).expect("a writable folder");
        let out = ok(&["asm", s(&listing), "--into", s(&file), "-o", s(&back)]);
        assert!(out.lines().all(|l| l.ends_with(", no bytes changed")), "{out}");
        assert!(
            fs::read(&file).expect("a file") == fs::read(&back).expect("a file"),
            "{name}"
        );
    }
}

#[test]
fn an_edited_line_changes_its_word() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let (listing, back) = (dir.path().join("k.sass"), dir.path().join("k.cubin"));
    let file = kernels("sm_87/own_mul_mat.cubin");
    let source = ok(&["disasm", s(&file), "--asm"]);
    let ffma = source
        .lines()
        .find(|l| l.contains(" FFMA.FTZ "))
        .expect("the kernel multiplies");
    let edited = source.replacen(ffma, &ffma.replace("FFMA.FTZ", "FFMA"), 1);
    fs::write(&listing, edited).expect("a writable folder");
    let out = ok(&["asm", s(&listing), "--into", s(&file), "-o", s(&back)]);
    assert_eq!(out.lines().filter(|l| l.ends_with(", 1 changed")).count(), 1, "{out}");
    let before = ok(&["disasm", s(&file)]);
    let after = ok(&["disasm", s(&back)]);
    let changed: Vec<_> = before.lines().zip(after.lines()).filter(|(a, b)| a != b).collect();
    assert!(
        matches!(changed[..], [(a, b)] if a.replace(".FTZ", "") == b),
        "{changed:?}"
    );
}

/// The hardware gives a warp what the file declares, and no more.
#[test]
fn registers_and_barriers_are_declared() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str| dir.path().join(name);
    let (listing, more, back, none) = (path("k.sass"), path("more.cubin"), path("k.cubin"), path("none"));
    let file = kernels("sm_87/own_mul_mat.cubin");
    let source = ok(&["disasm", s(&file), "--asm"]);
    let (own, others) = source.split_once(".text.rms_norm:").expect("scale_add is the first");
    let own = own.replace("R7", "R200");
    fs::write(&listing, format!("{own}.text.rms_norm:{others}")).expect("a writable folder");
    let out = ok(&["asm", s(&listing), "--into", s(&file), "-o", s(&more)]);
    assert!(
        out.contains("scale_add - 48 instructions, 3 changed, now 203 registers\n"),
        "{out}"
    );
    assert_eq!(out.matches(" registers").count(), 1, "{out}");
    let json = ok(&["asm", s(&listing), "--into", s(&file), "-o", s(&more), "--json"]);
    assert!(json.contains("\"registers\": 203"), "{json}");
    let registers = |file: &std::path::Path| {
        let info = ok(&["info", s(file)]);
        let line = info.lines().find(|l| l.contains("scale_add: ")).expect("the kernel");
        line.split(", ").nth(1).expect("its registers").to_owned()
    };
    assert_eq!(
        (registers(&file), registers(&more)),
        ("10 registers".into(), "203 registers".into())
    );
    // Nothing lowers the count again.
    fs::write(&listing, &source).expect("a writable folder");
    let out = ok(&["asm", s(&listing), "--into", s(&more), "-o", s(&back)]);
    assert!(out.contains("scale_add - 48 instructions, 3 changed\n"), "{out}");
    assert_eq!(registers(&back), "203 registers");

    let into = ["asm", s(&listing), "--into", s(&file), "-o", s(&none)];
    for (old, new, why) in [
        (
            "SYNC.DEFER_BLOCKING 0x0",
            "SYNC.DEFER_BLOCKING 0x7",
            "barriers up to 0x7, and the file declares 1",
        ),
        (
            "SYNC.DEFER_BLOCKING 0x0",
            "SYNC.DEFER_BLOCKING R0, R0",
            "barriers up to 0xf, and the file declares 1",
        ),
        (
            "MOV R7, c",
            "MOV R254, c",
            "R254 needs 257 registers, not 10: a thread has at most 255",
        ),
    ] {
        fs::write(&listing, source.replacen(old, new, 1)).expect("a writable folder");
        bad(&into, &[why]);
    }
    assert!(!none.exists());
}

/// The loader patches and believes what the file says of single instructions.
#[test]
fn what_the_file_says_of_an_instruction_stays_true() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let (listing, back) = (dir.path().join("k.sass"), dir.path().join("k.cubin"));
    let file = kernels("sm_87/relocatable.cubin");
    let source = ok(&["disasm", s(&file), "--asm"]);
    let symbolic = ok(&["disasm", s(&file)]);
    let place = |line: &str| line.split_once("/*").map(|(_, l)| l[..4].to_owned());
    let relocated = symbolic
        .lines()
        .find(|l| l.contains("32@lo("))
        .and_then(place)
        .expect("relocated");
    for (line, text, why) in [
        (
            "EXIT ".to_owned(),
            "NOP ;",
            "EIATTR_EXIT_INSTR_OFFSETS is about `EXIT`, and the new code has `NOP` there",
        ),
        (
            format!("/*{relocated}*/"),
            "MOV R3, 0x10 <filler> ;",
            "the linker fills in `",
        ),
    ] {
        let old = source.lines().find(|l| l.contains(&line)).expect("the line");
        let column = old.split_once("/*").expect("an address").0;
        fs::write(&listing, source.replacen(old, &format!("{column}{text}"), 1)).expect("a writable folder");
        let args = ["asm", s(&listing), "--into", s(&file), "-o", s(&back)];
        bad(&args, &[why, "relocatable.cubin: 0x"]);
        assert!(!back.exists());
    }
}

#[test]
fn words_code_and_json() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let code = dir.path().join("k.code");
    let line = "[B------:R-:W-:-:S04] FADD R0, R1, R2 ;\n";
    let words = assemble(&["--arch", "sm_87"], line);
    assert_eq!(
        words.out,
        "/*0000*/ 0x000fe80000000000000000020100".to_owned() + "7221\n"
    );
    let json = assemble(&["--arch", "sm_87", "--json"], line);
    assert!(json.out.contains("\"0x000fe800000000000000000201007221\""));
    let raw = assemble(&["-o", s(&code)], &format!(".target sm_87\n{line}"));
    assert!(raw.code == 0);
    assert_eq!(fs::read(&code).expect("it wrote the code").len(), 16);
    let listing = ok(&["disasm", s(&code), "--arch", "sm_87", "--control"]);
    assert!(
        listing.contains("/*0000*/                   FADD R0, R1, R2 ;"),
        "{listing}"
    );
    assert!(listing.contains("/* B------:R-:W-:-:S04 */"), "{listing}");
    bad(&["disasm", s(&code)], &["--arch"]);
}

#[test]
fn what_is_refused_names_the_line_and_the_cure() {
    let refused = |args: &[&str], input: &str, words: &[&str]| {
        let out = assemble(args, input);
        assert_eq!(out.code, 2, "{input}: {}", out.out);
        let error = &out.err;
        for w in words {
            assert!(error.contains(w), "{input}: no {w:?} in {error}");
        }
    };
    let arch = ["--arch", "sm_87"];
    refused(&arch, "EXIT ;\n", &["-:1: EXIT: no scheduling column"]);
    refused(
        &arch,
        "\n[B------:R-:W0:-:S01] LDG.E R0, [R2.64] ;\n",
        &["-:2: LDG.E", "<2.UR0=UR4>"],
    );
    refused(&arch, "// nothing\n", &["no instruction"]);
    refused(
        &arch,
        ".target sm_90\nEXIT ;\n",
        &["is for sm_90, not for --arch sm_87"],
    );
    refused(&[], "EXIT ;\n", &["--arch"]);
    refused(
        &["--arch", "sm_87", "--schedule", "S1"],
        "EXIT ;\n",
        &["no scheduling column like"],
    );
    let json = assemble(&["--arch", "sm_87", "--json"], "FOO ;\n");
    assert!(json.out.contains("\"line\": 1"), "{}", json.out);
    let default = assemble(&["--arch", "sm_87", "--schedule", "B------:R-:W-:Y:S15"], "EXIT ;\n");
    assert!(default.code == 0);
}
