//! `apply` as a user runs it: what each configuration changes, and that nothing else does.

mod common;

use std::fs;

use common::{differing, entry, folder, listing, mul_mat, ok, run, s};

#[test]
fn apply_changes_one_bit_of_each_flushing_ffma_and_nothing_else() {
    let (dir, config) = folder(&entry("ffma-deftz", "apply", "fn = [\"*mul_mat*\"]"));
    let out = dir.path().join("out.cubin");
    let said = ok(&["apply", s(&mul_mat()), "--config", s(&config), "-o", s(&out)]);

    // The words of FFMA.FTZ, found without the program: opcode bits 7:0 are 0x23, and bit 80 is FTZ.
    let (old, new) = (fs::read(mul_mat()).unwrap(), fs::read(&out).unwrap());
    let changed = differing(&old, &new);
    let flushing = |l: &[(String, String)]| {
        let named = l.iter().filter(|(k, _)| k.contains("mul_mat"));
        named.filter(|(_, t)| t.contains("FFMA") && t.contains(".FTZ")).count()
    };
    let sites = flushing(&listing(&mul_mat()));
    assert!(sites > 20, "{sites} sites");
    assert_eq!(changed.len(), sites);
    for (at, a, b) in &changed {
        assert_eq!(a ^ b, 1 << 80, "at {at:#x}");
        assert_eq!((a & 0xff, a >> 80 & 1, b >> 80 & 1), (0x23, 1, 0), "at {at:#x}");
    }
    // Each listing line is as before but for the token, and kernels that are not named keep theirs.
    for ((k, a), (_, b)) in listing(&mul_mat()).iter().zip(listing(&out)) {
        match k.contains("mul_mat") && a.contains("FFMA") {
            true => assert_eq!(a.replacen(".FTZ", "", 1), b),
            false => assert_eq!(*a, b),
        }
    }
    let lines: Vec<_> = said.lines().collect();
    let lift = lines
        .iter()
        .position(|l| l.starts_with("lift: sm_87 mul_mat_q4_K - "))
        .expect("a lift line");
    assert!(lines[lift].ends_with(" instructions"), "{}", lines[lift]);
    assert!(
        lines[lift + 1].starts_with("ffma-deftz [apply]: FTZ dropped at "),
        "{}",
        lines[lift + 1]
    );
    assert!(
        lines.contains(&"patch: .text rewritten in place, .nv.info unchanged - ABI unchanged"),
        "{said}"
    );
    assert!(said.contains("changes denormal results"), "{said}");

    // Again: nothing is left to do, and the file stays as it is.
    let again = dir.path().join("again.cubin");
    let said = ok(&["apply", s(&out), "--config", s(&config), "-o", s(&again)]);
    assert!(
        said.contains("ffma-deftz [apply]: fires nowhere - no bytes changed"),
        "{said}"
    );
    assert_eq!(fs::read(&again).unwrap(), new);
}

#[test]
fn report_mode_counts_and_changes_nothing() {
    let sites = |out: &str| -> usize {
        let numbers = out.lines().filter_map(|l| {
            l.strip_prefix("ffma-deftz [report]: would fire at ")?
                .strip_suffix(" sites - no bytes changed")
        });
        numbers.map(|n| n.parse::<usize>().unwrap()).sum()
    };
    let (dir, config) = folder(&entry("ffma-deftz", "report", "fn = \"*mul_mat*\""));
    let out = dir.path().join("out.cubin");
    let said = ok(&["apply", s(&mul_mat()), "--config", s(&config), "-o", s(&out)]);
    let found = listing(&mul_mat());
    let expected = found
        .iter()
        .filter(|(k, t)| k.contains("mul_mat") && t.contains("FFMA.FTZ"))
        .count();
    assert_eq!(sites(&said), expected, "{said}");
    assert_eq!(fs::read(&out).unwrap(), fs::read(mul_mat()).unwrap());

    fs::write(&config, entry("ffma-deftz", "apply", "fn = \"*mul_mat*\"")).unwrap();
    let said = ok(&["apply", s(&mul_mat()), "--config", s(&config), "--report-only"]);
    assert_eq!(sites(&said), expected, "{said}");
}

#[test]
fn configurations_that_name_nothing_change_nothing() {
    for rest in ["fn = [\"none*\"]", ""] {
        let sm = if rest.is_empty() { "sm_90" } else { "sm_87" };
        let (dir, config) = folder(&entry("ffma-deftz", "apply", rest).replace("sm_87", sm));
        let out = dir.path().join("out.cubin");
        let said = ok(&["apply", s(&mul_mat()), "--config", s(&config), "-o", s(&out)]);
        assert!(
            said.contains("no kernel of ") && said.contains("no bytes changed"),
            "{said}"
        );
        assert_eq!(fs::read(&out).unwrap(), fs::read(mul_mat()).unwrap());
    }
}

#[test]
fn retarget_param_moves_reads() {
    let (dir, config) = folder(&entry(
        "retarget-param",
        "apply",
        "fn = [\"scale_add\"]\nfrom = 0x170\nto = 0x2e8",
    ));
    let out = dir.path().join("out.cubin");
    let said = ok(&["apply", s(&mul_mat()), "--config", s(&config), "-o", s(&out)]);
    let (before, after) = (listing(&mul_mat()), listing(&out));
    let mut moved = 0;
    for ((k, a), (_, b)) in before.iter().zip(&after) {
        match k == "scale_add" {
            true => assert_eq!(&a.replace("c[0x0][0x170]", "c[0x0][0x2e8]"), b),
            false => assert_eq!(a, b),
        }
        moved += usize::from(a != b);
    }
    assert!(moved > 0);
    assert_eq!(moved, 1);
    let line = "retarget-param [apply]: 1 read moved from c[0x0][0x170] to c[0x0][0x2e8] (1 op rewritten)";
    assert!(said.lines().any(|l| l == line), "{said}");
    assert!(
        said.contains("note: 0x2e8 is outside the kernel's declared parameters, 0x160 to 0x17c"),
        "{said}"
    );
    // Only the offset field (53:40) moved.
    for (at, a, b) in differing(&fs::read(mul_mat()).unwrap(), &fs::read(&out).unwrap()) {
        assert_eq!((a ^ b) & !(0x3fff << 40), 0, "at {at:#x}");
    }
}

#[test]
fn a_refused_kernel_stays_and_strict_makes_it_an_error() {
    // 0x2ea is not a multiple of four.
    let (dir, config) = folder(&entry(
        "retarget-param",
        "apply",
        "fn = [\"scale_add\"]\nfrom = 0x170\nto = 0x2ea",
    ));
    let out = dir.path().join("out.cubin");
    let input = mul_mat();
    let args = ["apply", s(&input), "--config", s(&config), "-o", s(&out)];
    let r = run(&args);
    assert_eq!(r.code, 0, "{}", r.err);
    assert!(r.out.contains("retarget-param [apply]: refused - "), "{}", r.out);
    assert!(
        r.err
            .contains("own_mul_mat.cubin: scale_add: retarget-param: refused - "),
        "{}",
        r.err
    );
    assert_eq!(fs::read(&out).unwrap(), fs::read(mul_mat()).unwrap());
    let strict: Vec<_> = args.iter().copied().chain(["--strict"]).collect();
    assert_eq!(run(&strict).code, 1);
}

#[test]
fn texts_are_kept_on_demand() {
    let (dir, config) = folder(&entry("ffma-deftz", "apply", "fn = [\"mul_mat_q4_K\", \"scale_add\"]"));
    let (out, texts) = (dir.path().join("out.cubin"), dir.path().join("texts"));
    ok(&[
        "apply",
        s(&mul_mat()),
        "--config",
        s(&config),
        "-o",
        s(&out),
        "--keep-mlir",
        s(&texts),
    ]);
    let read = |name: &str| fs::read_to_string(texts.join(name)).unwrap();
    let (before, after) = (read("mul_mat_q4_K.before.mlir"), read("mul_mat_q4_K.after.mlir"));
    assert!(before.contains("sass.FFMA_0x223.FTZ ") && !before.contains("sass.FFMA_0x223 "));
    assert!(after.contains("sass.FFMA_0x223 ") && !after.contains("sass.FFMA_0x223.FTZ "));
    assert_eq!(fs::read_dir(&texts).unwrap().count(), 4);
    // The text after is the rewritten kernel: lowering it into the original gives the same code.
    let lowered = dir.path().join("lowered.cubin");
    let first = dir.path().join("first.cubin");
    ok(&[
        "lower",
        s(&texts.join("mul_mat_q4_K.after.mlir")),
        "--into",
        s(&mul_mat()),
        "-o",
        s(&first),
    ]);
    ok(&[
        "lower",
        s(&texts.join("scale_add.after.mlir")),
        "--into",
        s(&first),
        "-o",
        s(&lowered),
    ]);
    assert_eq!(fs::read(&lowered).unwrap(), fs::read(&out).unwrap());
}

#[test]
fn apply_reports_as_json() {
    let (_dir, config) = folder(&entry("ffma-deftz", "apply", ""));
    let json: serde_json::Value = serde_json::from_str(&ok(&[
        "apply",
        s(&mul_mat()),
        "--config",
        s(&config),
        "--report-only",
        "--json",
    ]))
    .unwrap();
    let image = &json["images"][0];
    assert_eq!(
        (image["target"].as_str(), image["patch"].is_null()),
        (Some("sm_87"), true)
    );
    let kernel = image["kernels"]
        .as_array()
        .unwrap()
        .iter()
        .find(|k| k["name"] == "scale_add")
        .unwrap();
    assert_eq!(kernel["passes"][0]["sites"], 1);
    assert_eq!(kernel["passes"][0]["mode"], "report");
}

#[test]
fn what_computes_something_else_on_the_emulator_stays() {
    // The kernel reads its first parameter where the second lies: the same code otherwise.
    let retarget = "from = 0x160\nto = 0x168\nfn = [\"*scale_add*\"]";
    let toml = [
        entry("retarget-param", "apply", retarget),
        entry("ffma-deftz", "apply", "fn = [\"*rms_norm*\"]"),
    ]
    .concat();
    let (dir, config) = folder(&toml);
    let out = dir.path().join("out.cubin");
    let input = mul_mat();
    let args = ["apply", s(&input), "--config", s(&config), "-o", s(&out)];
    ok(&args);
    assert!(fs::read(&out).unwrap() != fs::read(mul_mat()).unwrap());
    let r = run(&[&args[..], &["--verify", "--strict", "--json"]].concat());
    assert_eq!(r.code, 1, "{}", r.err);
    assert!(
        r.err
            .contains("scale_add: left byte-identical: on the emulator it does something else"),
        "{}",
        r.err
    );
    let said = r.json();
    let kernel = |name: &str| {
        said["images"][0]["kernels"]
            .as_array()
            .unwrap()
            .iter()
            .find(|k| k["name"] == name)
            .unwrap()
            .clone()
    };
    assert_eq!(kernel("scale_add")["changed"], 0);
    // Few random numbers are denormal: without flushing the other kernel gives the same.
    let norm = kernel("rms_norm");
    assert!(
        norm["changed"].as_u64() > Some(0) && norm["verified"]["launches"].as_u64() >= Some(20),
        "{norm}"
    );
    let lines = ok(&[&args[..], &["--verify"]].concat());
    assert!(lines.contains(" launches, the same memory\n"), "{lines}");
}
