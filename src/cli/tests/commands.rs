//! The commands as a user runs them: exit codes, exact lines, wrong inputs, files that must not be harmed.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use common::{bad, entry, finished, folder, kernels, listing, mul_mat, ok, program, run, s};

#[test]
fn roundtrip_says_so_for_every_kernel() {
    let out = ok(&["roundtrip", s(&mul_mat()), "--arch", "sm_87"]);
    let lines: Vec<_> = out.lines().collect();
    let of =
        |name: &str, n: usize| format!("roundtrip: sm_87 {name}: {n}/{n} instructions byte-identical (0 mismatches)");
    let size = |name: &str| listing(&mul_mat()).iter().filter(|(k, _)| k == name).count();
    for name in ["mul_mat_q4_K", "mul_mat_f32", "rms_norm", "scale_add"] {
        assert!(lines.contains(&of(name, size(name)).as_str()), "{name} in\n{out}");
    }
    assert!(lines.last().unwrap().ends_with("file identical"), "{out}");
    let json: serde_json::Value = serde_json::from_str(&ok(&["roundtrip", s(&mul_mat()), "--json"])).unwrap();
    assert_eq!(json["file_identical"], true);
    assert_eq!(json["kernels"].as_array().unwrap().len(), 4);
    assert_eq!(json["kernels"][0]["identical"], json["kernels"][0]["instructions"]);
}

#[test]
fn one_kernel_can_be_chosen() {
    let out = ok(&["roundtrip", s(&mul_mat()), "--kernel", "*q4_K"]);
    assert_eq!(out.lines().count(), 1, "{out}");
    assert!(out.starts_with("roundtrip: sm_87 mul_mat_q4_K: "), "{out}");
    bad(
        &["roundtrip", s(&mul_mat()), "--kernel", "nothing*"],
        &["own_mul_mat.cubin", "no kernel matches"],
    );
    bad(&["roundtrip", s(&mul_mat()), "--kernel", "["], &["bad glob"]);
}

#[test]
fn lift_and_lower_give_back_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let (text, out) = (dir.path().join("k.mlir"), dir.path().join("k.cubin"));
    let said = ok(&["lift", s(&mul_mat()), "-o", s(&text)]);
    assert!(
        said.lines().any(|l| l.starts_with("lift: sm_87 mul_mat_q4_K - ")),
        "{said}"
    );
    assert_eq!(ok(&["lift", s(&mul_mat())]), fs::read_to_string(&text).unwrap());
    let said = ok(&["lower", s(&text), "--into", s(&mul_mat()), "-o", s(&out)]);
    assert!(said.lines().all(|l| l.ends_with(", no bytes changed")), "{said}");
    assert_eq!(fs::read(&out).unwrap(), fs::read(mul_mat()).unwrap());
}

#[test]
fn info_shows_what_the_file_says() {
    let out = ok(&["info", s(&mul_mat())]);
    assert!(out.contains("sm_87, ABI 8, executable"), "{out}");
    assert!(out.contains("2048 B shared"), "{out}");
    assert!(out.contains("param 0: c[0x0][0x160], 8 bytes"), "{out}");
    assert!(ok(&["info", s(&mul_mat()), "--attributes"]).contains("EIATTR_EXIT_INSTR_OFFSETS 0x"));
    let json: serde_json::Value = serde_json::from_str(&ok(&["info", s(&mul_mat()), "--json"])).unwrap();
    assert_eq!(json[0]["kernels"].as_array().unwrap().len(), 4);
}

#[test]
fn disasm_has_labels_words_and_control() {
    let out = ok(&["disasm", s(&mul_mat()), "--kernel", "scale_add"]);
    assert!(
        out.contains(".text.scale_add:") && out.contains(".L_x_0:") && out.contains("`(.L_x_0)"),
        "{out}"
    );
    assert!(
        out.lines()
            .any(|l| l.trim_start().starts_with("/*0010*/") && l.ends_with(" ;")),
        "{out}"
    );
    let full = ok(&["disasm", s(&mul_mat()), "--kernel", "scale_add", "--hex", "--control"]);
    assert!(
        full.lines()
            .any(|l| l.contains("/* B------:R-:W") && l.contains("/* 0x")),
        "{full}"
    );
    let json: serde_json::Value =
        serde_json::from_str(&ok(&["disasm", s(&mul_mat()), "--kernel", "scale_add", "--json"])).unwrap();
    assert_eq!(json[0]["instructions"][1]["offset"], 16);
}

#[test]
fn disasm_shows_what_the_linker_will_fill_in() {
    let out = ok(&["disasm", s(&kernels("sm_87/relocatable.cubin"))]);
    let shown = |text: &str| {
        out.lines()
            .any(|l| l.split("*/").nth(1).is_some_and(|t| t.trim() == text))
    };
    for text in [
        "MOV R20, 32@lo((relocated + .L_x_0@srel)) ;",
        "MOV R21, 32@hi((relocated + .L_x_0@srel)) ;",
        "CALL.ABS.NOINC `(_Z9elsewheref) ;",
        "UMOV UR4, 32@lo(counters) ;",
        "STS [R19.X4+`($___ZZ9relocatedE4tile__31)], R4 ;",
        "STS [R19.X4+`((dynamic + 0x4))], R2 ;",
        "LDS R0, [R0+`(dynamic)] ;",
    ] {
        assert!(shown(text), "no {text:?} in\n{out}");
    }
}

/// Makes a fatbin file of two images, written from the format's description.
fn fatbin(images: &[(PathBuf, u32)]) -> Vec<u8> {
    let mut body = Vec::new();
    for (path, sm) in images {
        let image = fs::read(path).unwrap();
        let padded = image.len().next_multiple_of(8);
        let mut entry = [0u8; 64];
        entry[0..8].copy_from_slice(&[2, 0, 1, 1, 64, 0, 0, 0]);
        entry[8..16].copy_from_slice(&(padded as u64).to_le_bytes());
        entry[28..32].copy_from_slice(&sm.to_le_bytes());
        entry[40] = 0x11;
        body.extend(entry);
        body.extend(&image);
        body.resize(body.len() + padded - image.len(), 0);
    }
    let mut file = vec![0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0];
    file.extend((body.len() as u64).to_le_bytes());
    file.extend(body);
    file
}

#[test]
fn a_container_may_hold_other_targets() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("two.fatbin");
    let other = kernels("sm_100a/own_features.cubin");
    fs::write(&file, fatbin(&[(other, 100), (mul_mat(), 87)])).unwrap();
    let out = ok(&["roundtrip", s(&file), "--arch", "sm_87"]);
    assert!(
        out.ends_with("file identical\n") && out.contains("sm_87 mul_mat_q4_K"),
        "{out}"
    );
    assert!(ok(&["info", s(&file)]).contains("sm_100a"));
    bad(
        &["disasm", s(&file), "--arch", "sm_75"],
        &["two.fatbin", "sm_75", "sm_87, sm_100a"],
    );
    // Without --arch: what this build knows. It may know the other target too.
    let all = run(&["disasm", s(&file)]);
    assert_eq!(all.code, 0, "{}", all.err);
    assert!(all.out.contains(": sm_87\n") && all.out.contains(".text.mul_mat_q4_K:"));
    assert!(all.out.contains(": sm_100a\n") || all.err.contains("note: fatbin 1 entry 1: no tables for sm_100a"));
}

#[test]
fn every_command_refuses_a_wrong_file() {
    let dir = tempfile::tempdir().unwrap();
    let (junk, missing) = (dir.path().join("junk.bin"), dir.path().join("missing.cubin"));
    fs::write(&junk, "this is no cubin, nor anything that holds one").unwrap();
    for command in ["roundtrip", "disasm", "lift", "info"] {
        bad(&[command, s(&junk)], &["junk.bin"]);
        bad(&[command, s(&missing)], &["missing.cubin", "cannot read"]);
        bad(
            &[command, s(&mul_mat()), "--arch", "sm_90"],
            &["own_mul_mat.cubin", "sm_87", "sm_90"],
        );
        bad(&[command, s(&mul_mat()), "--arch", "sm_1"], &["sm_1"]);
    }
    let (conf, config) = folder(&entry("ffma-deftz", "apply", ""));
    let out = conf.path().join("out.cubin");
    bad(
        &["apply", s(&junk), "--config", s(&config), "-o", s(&out)],
        &["junk.bin"],
    );
    bad(
        &["apply", s(&mul_mat()), "--config", s(&missing), "-o", s(&out)],
        &["missing.cubin"],
    );
    bad(&["apply", s(&mul_mat()), "--config", s(&config)], &["--output"]);
    fs::write(&config, entry("ffma-deftz", "apply", "speed = 3")).unwrap();
    bad(
        &["apply", s(&mul_mat()), "--config", s(&config), "-o", s(&out)],
        &["pass.toml:5:1: unknown key `speed`"],
    );
    assert!(!out.exists());
    bad(
        &["lower", s(&junk), "--into", s(&mul_mat()), "-o", s(&out)],
        &["junk.bin:1:"],
    );
    assert!(!out.exists());
    bad(&["completions", "nosuchshell"], &["nosuchshell"]);
    bad(&["passes", "--nosuchflag"], &["--nosuchflag"]);
}

#[test]
fn lower_says_which_kernel_is_not_there() {
    let dir = tempfile::tempdir().unwrap();
    let (text, out) = (dir.path().join("k.mlir"), dir.path().join("k.cubin"));
    ok(&["lift", s(&mul_mat()), "-o", s(&text)]);
    let other = kernels("sm_87/own_features.cubin");
    bad(
        &["lower", s(&text), "--into", s(&other), "-o", s(&out)],
        &["has no kernel mul_mat_f32 for sm_87"],
    );
    assert!(!out.exists());
}

#[test]
fn the_input_is_never_overwritten() {
    let (dir, config) = folder(&entry("ffma-deftz", "apply", ""));
    let (input, link) = (dir.path().join("k.cubin"), dir.path().join("link.cubin"));
    fs::copy(mul_mat(), &input).unwrap();
    fs::hard_link(&input, &link).unwrap();
    let before = fs::read(&input).unwrap();
    for output in [&input, &link, &dir.path().join(".").join("k.cubin")] {
        bad(
            &["apply", s(&input), "--config", s(&config), "-o", s(output)],
            &["is the input", "give another"],
        );
    }
    bad(&["lift", s(&input), "-o", s(&input)], &["is the input"]);
    bad(
        &["lower", s(&config), "--into", s(&input), "-o", s(&input)],
        &["is the input"],
    );
    let out = dir.path().join("out");
    for [list, out] in [[&input, &out], [&out, &out], [&out, &dir.path().join(".").join("out")]] {
        bad(
            &["nops", s(&input), "--list", s(list), "-o", s(out)],
            &["is the input or another output"],
        );
    }
    let listing = dir.path().join("k.sass");
    let text = ok(&["disasm", s(&input), "--kernel", "scale_add", "--asm"]);
    fs::write(&listing, &text).unwrap();
    bad(&["asm", s(&listing), "-o", s(&listing)], &["is the input"]);
    let mut run = vec!["run", s(&input), "--kernel", "scale_add"];
    for arg in ["x:f32[9]", "y:f32[9]", "f32=2", "f32=1", "i32=9"] {
        run.extend(["--arg", arg]);
    }
    for dumps in [&[s(&input)][..], &[s(&out), s(&out)]] {
        let dumps: Vec<String> = dumps.iter().map(|path| format!("--dump=y={path}")).collect();
        let args: Vec<&str> = run.iter().copied().chain(dumps.iter().map(String::as_str)).collect();
        bad(&args, &["is the input or another output"]);
    }
    assert_eq!(fs::read(&input).unwrap(), before);
    assert_eq!(fs::read_to_string(&listing).unwrap(), text);
    assert!(!out.exists());
}

#[cfg(unix)]
#[test]
fn a_link_is_written_through() {
    let dir = tempfile::tempdir().unwrap();
    let (file, link) = (dir.path().join("k.mlir"), dir.path().join("link.mlir"));
    fs::write(&file, "older content").unwrap();
    std::os::unix::fs::symlink("k.mlir", &link).unwrap();
    ok(&["lift", s(&mul_mat()), "-o", s(&link)]);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(fs::read_to_string(&file).unwrap().starts_with("module {"));
}

/// What never ends, and what is too large to be what it must be, is refused at once.
#[cfg(unix)]
#[test]
fn streams_and_sizes_have_limits() {
    bad(&["info", "/dev/zero"], &["/dev/zero: ", "neither an ELF file"]);
    let dir = tempfile::tempdir().unwrap();
    let sparse = dir.path().join("sparse");
    fs::File::create(&sparse).unwrap().set_len(1 << 40).unwrap();
    bad(&["roundtrip", s(&sparse)], &["sparse: ", "neither an ELF file"]);
    let input = fs::File::open(mul_mat()).unwrap();
    let r = finished(program().args(["info", "-"]).stdin(input).output().unwrap());
    assert_eq!((r.code, r.err.as_str()), (0, ""));
    assert_eq!(r.out.replacen('-', s(&mul_mat()), 1), ok(&["info", s(&mul_mat())]));
}

#[test]
fn kernels_of_one_name_are_compared_in_pairs() {
    let (dir, config) = folder(&entry("ffma-deftz", "apply", "fn = [\"scale_add\"]"));
    let [changed, before, after] = ["changed", "before", "after"].map(|n| dir.path().join(n));
    ok(&["apply", s(&mul_mat()), "--config", s(&config), "-o", s(&changed)]);
    fs::write(&before, fatbin(&[(mul_mat(), 87), (mul_mat(), 87)])).unwrap();
    fs::write(&after, fatbin(&[(mul_mat(), 87), (changed, 87)])).unwrap();
    let verify = |a: &Path, b: &Path, kernel: &str| {
        let r = run(&["verify", s(a), s(b), "--kernel", kernel, "--launches", "60"]);
        (r.code, r.out)
    };
    let (code, text) = verify(&before, &after, "scale_add");
    assert!(
        code == 1 && text.contains("DIFFERENT") && text.contains("1 kernels are the same"),
        "{text}"
    );
    assert_eq!(verify(&before, &before, "*").0, 0);
    bad(&["verify", s(&mul_mat()), s(&before)], &["no kernel `", "which"]);
    bad(&["verify", s(&before), s(&mul_mat())], &["no kernel `"]);
}

/// The code of both kernels is the same, and what it does is not.
#[test]
fn a_table_that_differs_is_a_difference() {
    let dir = tempfile::tempdir().unwrap();
    let (file, changed) = (kernels("sm_87/jump_table.cubin"), dir.path().join("changed.cubin"));
    let mut bytes = fs::read(&file).unwrap();
    let table = {
        let image = cubin::Image::parse(&bytes).unwrap();
        let mut sections = image.sections().iter();
        let table = sections.find(|s| s.name == ".nv.constant2.jump_table").unwrap();
        table.offset as usize..(table.offset + table.size) as usize
    };
    bytes[table].reverse();
    fs::write(&changed, &bytes).unwrap();
    let r = run(&[
        "verify",
        s(&file),
        s(&changed),
        "--kernel",
        "jump_table",
        "--launches",
        "8",
    ]);
    assert!(r.code == 1 && r.out.contains("DIFFERENT"), "{}", r.out);
}

/// Who touches only an image that has no Mercury form, or nothing, is not warned of one.
#[test]
fn the_warning_of_mercury_is_for_what_was_rewritten() {
    let dir = tempfile::tempdir().unwrap();
    let [file, out, list] = ["two.fatbin", "out", "list"].map(|n| dir.path().join(n));
    fs::write(
        &file,
        fatbin(&[(kernels("sm_100a/own_features.cubin"), 100), (mul_mat(), 87)]),
    )
    .unwrap();
    let warned = |args: &[&str]| {
        let r = run(args);
        assert!(matches!(r.code, 0 | 1), "{}", r.err);
        r.err.contains("Mercury")
    };
    let rewrite = |sm: &str, rest: &[&str]| {
        let args = ["nops", s(&file), "--arch", sm, "--list", s(&list), "-o", s(&out)];
        warned(&[&args[..], rest].concat())
    };
    assert!(rewrite("sm_100a", &[]));
    assert!(!rewrite("sm_100a", &["--strip-mercury"]));
    assert!(!rewrite("sm_87", &[]));
    let text = dir.path().join("k.mlir");
    ok(&["lift", s(&file), "--arch", "sm_100a", "-o", s(&text)]);
    assert!(!warned(&["lower", s(&text), "--into", s(&file), "-o", s(&out)]));
}

#[test]
fn blocks_have_between_1_and_1024_threads() {
    for threads in ["0", "1025", "99999"] {
        let file = mul_mat();
        let args = ["info", s(&file), "--pressure", "--block-threads", threads];
        bad(&args, &["--block-threads", "1..=1024"]);
    }
}

#[cfg(unix)]
#[test]
fn output_is_atomic_and_keeps_permissions() {
    use std::os::unix::fs::PermissionsExt;
    let (dir, config) = folder(&entry("ffma-deftz", "apply", ""));
    let (input, out) = (dir.path().join("k.cubin"), dir.path().join("out.cubin"));
    fs::copy(mul_mat(), &input).unwrap();
    fs::set_permissions(&input, fs::Permissions::from_mode(0o751)).unwrap();
    fs::write(&out, "older content").unwrap();
    ok(&["apply", s(&input), "--config", s(&config), "-o", s(&out)]);
    assert_eq!(fs::metadata(&out).unwrap().permissions().mode() & 0o777, 0o751);
    let names: Vec<_> = fs::read_dir(dir.path())
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    assert_eq!(names.len(), 3, "something was left behind: {names:?}");
    let nowhere = dir.path().join("no/such/folder/out.cubin");
    bad(
        &["apply", s(&input), "--config", s(&config), "-o", s(&nowhere)],
        &["out.cubin: cannot write"],
    );
}

#[test]
fn a_closed_pipe_is_no_error() {
    let mut child = program()
        .args(["lift", s(&kernels("sm_87/own_features.cubin"))])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let r = finished(child.wait_with_output().unwrap());
    assert_eq!((r.code, r.err.as_str()), (0, ""));
}

#[test]
fn help_has_examples_and_exit_codes() {
    let top = ok(&["--help"]);
    assert!(top.contains("Exit codes:") && top.contains("NO_COLOR"), "{top}");
    for command in [
        "roundtrip",
        "disasm",
        "lift",
        "lower",
        "info",
        "apply",
        "passes",
        "completions",
    ] {
        let help = ok(&[command, "--help"]);
        assert!(
            help.contains("Example") && help.contains("  sass2mlir "),
            "{command}: {help}"
        );
    }
    assert!(ok(&["passes"]).contains("ffma-deftz: "));
    for shell in ["bash", "zsh", "fish"] {
        assert!(ok(&["completions", shell]).contains("roundtrip"));
    }
}
