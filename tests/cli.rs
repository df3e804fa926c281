//! The program as a user meets it, on the kernels that the project brings along.

mod common;

use std::path::Path;

use common::*;

#[test]
fn own_kernels_round_trip() {
    for file in own_cubins("sm_87") {
        let code = code_size(&std::fs::read(&file).unwrap());
        let (kernels, n) = roundtrip_lines(&succeed(&["roundtrip", arg(&file), "--arch", "sm_87"]));
        assert!(
            kernels > 0 && n > 0 && n == code / 16,
            "{}: {n} of {} instructions",
            file.display(),
            code / 16
        );
    }
}

#[test]
fn lifted_text_lowers_to_the_same_file() {
    let dir = tempfile::tempdir().unwrap();
    let (text, back) = (dir.path().join("k.mlir"), dir.path().join("k.cubin"));
    for file in own_cubins("sm_87") {
        succeed(&["lift", arg(&file), "-o", arg(&text)]);
        succeed(&["lower", arg(&text), "--into", arg(&file), "-o", arg(&back)]);
        assert!(
            std::fs::read(&back).unwrap() == std::fs::read(&file).unwrap(),
            "{}",
            file.display()
        );
    }
}

#[test]
fn every_kind_of_instruction_goes_the_whole_way() {
    let dir = tempfile::tempdir().unwrap();
    let [text, back, again] = ["k.mlir", "k.cubin", "again.cubin"].map(|n| dir.path().join(n));
    for file in own_cubins("seeds") {
        let original = std::fs::read(&file).unwrap();
        let (_, n) = roundtrip_lines(&succeed(&["roundtrip", arg(&file)]));
        assert_eq!(n, code_size(&original) / 16, "{}", file.display());
        succeed(&["lift", arg(&file), "-o", arg(&text)]);
        succeed(&["lower", arg(&text), "--into", arg(&file), "-o", arg(&back)]);
        assert!(std::fs::read(&back).unwrap() == original, "{}", file.display());
        succeed(&["regalloc", arg(&file), "--pinned", "-o", arg(&again)]);
        assert!(std::fs::read(&again).unwrap() == original, "{}", file.display());
    }
}

#[test]
fn registers_allocated_where_they_are_give_the_same_file() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("k.cubin");
    for file in own_cubins("sm_87") {
        succeed(&["regalloc", arg(&file), "--pinned", "-o", arg(&out)]);
        assert!(
            std::fs::read(&out).unwrap() == std::fs::read(&file).unwrap(),
            "{}",
            file.display()
        );
    }
}

#[test]
fn pressure_is_shown_and_drawn() {
    let dir = tempfile::tempdir().unwrap();
    let kernel = ["--kernel", "switch_k", "--pressure", "--svg", arg(dir.path())];
    let file = features();
    let text = succeed(&[&["info", arg(&file)], &kernel[..]].concat());
    assert!(
        text.contains("warps resident with 256 threads") && text.contains("switch_k: "),
        "{text}"
    );
    let svg = std::fs::read_to_string(dir.path().join("switch_k.sm_87.svg")).unwrap();
    assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>") && !svg.contains("NaN"));
    let json = succeed(&["info", arg(&file), "--kernel", "switch_k", "--pressure", "--json"]);
    assert!(json.contains("\"steps\"") && json.contains("\"peak\""), "{json}");
}

fn put_nops(file: &Path, list: &Path, out: &Path) {
    let every = ["nops", arg(file), "--every", "3", "--list"];
    succeed(&[&every[..], &[arg(list), "-o", arg(out)]].concat());
}

#[test]
fn nops_go_in_and_out() {
    let dir = tempfile::tempdir().unwrap();
    let [list, moved, back] = ["list", "moved.cubin", "back.cubin"].map(|n| dir.path().join(n));
    for file in own_cubins("sm_87") {
        let original = std::fs::read(&file).unwrap();
        put_nops(&file, &list, &moved);
        let grown = std::fs::read(&moved).unwrap();
        assert!(code_size(&grown) > code_size(&original), "{}", file.display());
        succeed(&["roundtrip", arg(&moved)]);
        succeed(&[
            "nops",
            arg(&moved),
            "--take-out",
            "--list",
            arg(&list),
            "-o",
            arg(&back),
        ]);
        assert!(std::fs::read(&back).unwrap() == original, "{}", file.display());
    }
}

/// Other registers and other places for the code, and the emulator finds the same memory. (Kernels that read the clock are not asked.)
#[test]
fn moved_and_scrambled_kernels_compute_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let (list, out) = (dir.path().join("list"), dir.path().join("out.cubin"));
    let file = features();
    let kernels = [
        "virt_k",
        "indirect_k",
        "printf_k",
        "switch_k",
        "f64_ops",
        "shfl_vote",
        "mma_bf16",
        "cpasync_k",
    ];
    let check = |what: &str| {
        for kernel in kernels {
            let text = succeed(&["verify", arg(&file), arg(&out), "--kernel", kernel, "--launches", "4"]);
            assert!(text.contains("the same memory"), "{what}: {text}");
        }
    };
    for how in [&["--scramble", "3"][..], &["--scramble", "3", "--fresh"]] {
        let done = run(&[&["regalloc", arg(&file)], how, &["-o", arg(&out)]].concat());
        // Exit code 1 is a kernel that was left alone.
        assert!(matches!(done.status.code(), Some(0 | 1)), "{how:?}: {:?}", done.status);
        check(&how.join(" "));
        std::fs::remove_file(&out).unwrap();
    }
    put_nops(&file, &list, &out);
    check("moved");
}

#[test]
fn another_target_is_refused() {
    let file = &features();
    let error = fail(&["roundtrip", arg(file), "--arch", "sm_90"]);
    assert!(error.contains("sm_87") && error.contains("sm_90"), "{error}");
}

#[test]
fn report_mode_and_no_match_leave_the_file_alone() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out.cubin");
    let file = &features();
    let original = std::fs::read(file).unwrap();
    for rest in [
        "fn = [\"*\"]\nmode = \"report\"",
        "fn = [\"*no_such_kernel*\"]\nmode = \"apply\"",
    ] {
        let toml = config(dir.path(), "ffma-deftz", &format!("sm = [\"sm_87\"]\n{rest}"));
        succeed(&["apply", arg(file), "--config", arg(&toml), "-o", arg(&out)]);
        assert!(std::fs::read(&out).unwrap() == original, "{rest}");
    }
}

#[test]
fn a_mistake_in_pass_toml_is_named_with_line_and_column() {
    let dir = tempfile::tempdir().unwrap();
    let (path, out) = (dir.path().join("pass.toml"), dir.path().join("out.cubin"));
    let good = [
        "[[pass]]",
        "name = \"ffma-deftz\"",
        "sm = [\"sm_87\"]",
        "fn = [\"*mul_mat*\"]",
        "mode = \"apply\"",
    ];
    // (line to replace, counted from 1; its text; column of the mistake; a word that the message must hold)
    let mistakes = [
        (2, "name = \"ffma-defzt\"", 8, "ffma-defzt"),
        (3, "sm = [\"sm_1\"]", 7, "sm_1"),
        (4, "fn = [\"[\"]", 7, "["),
        (5, "mode = \"aply\"", 8, "aply"),
        (5, "mod = \"apply\"", 1, "mod"),
        (5, "mode = \"apply\"\nspeed = 3", 1, "speed"),
    ];
    let cubin = &features();
    for (line, text, column, word) in mistakes {
        let mut lines = good.map(String::from);
        lines[line - 1] = text.to_string();
        std::fs::write(&path, lines.join("\n")).unwrap();
        let error = fail(&["apply", arg(cubin), "--config", arg(&path), "-o", arg(&out)]);
        let place = format!("pass.toml:{}:{column}", line + text.matches('\n').count());
        assert!(error.contains(&place), "{text:?}: no {place:?} in {error}");
        assert!(error.contains(word), "{text:?}: no {word:?} in {error}");
        assert!(!out.exists(), "{text:?}: an output file was written");
    }
}

#[test]
fn broken_files_are_refused_with_their_name() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("broken.cubin");
    let whole = std::fs::read(features()).unwrap();
    for length in [0, 3, 16, 63, 64, 200, whole.len() / 2, whole.len() - 1] {
        std::fs::write(&path, &whole[..length]).unwrap();
        for command in ["roundtrip", "disasm", "lift", "info"] {
            let error = fail(&[command, arg(&path)]);
            assert!(error.contains("broken.cubin"), "{command} on {length} bytes: {error}");
        }
    }
    let missing = dir.path().join("missing.cubin");
    assert!(fail(&["info", arg(&missing)]).contains("missing.cubin"));
}
