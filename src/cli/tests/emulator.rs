//! `run` as a user runs it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn kernels(name: &str) -> String {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/kernels")
        .join(name);
    path.to_str().expect("UTF-8 path").to_owned()
}

fn run(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sass2mlir"))
        .args(args)
        .output()
        .expect("the program starts")
}

/// Standard output of a run that ends with `code`.
fn output(args: &[&str], code: i32) -> String {
    let out = run(args);
    let err = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(code), "{args:?}\n{err}");
    String::from_utf8(out.stdout).expect("UTF-8")
}

fn error(args: &[&str], words: &[&str]) {
    let out = run(args);
    let err = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(2), "{args:?}\n{err}");
    assert!(words.iter().all(|w| err.contains(w)), "{words:?} in {err}");
}

fn scale_add(rest: &[&str]) -> Vec<String> {
    let file = kernels("sm_87/own_mul_mat.cubin");
    let head = ["run", &file, "--kernel", "scale_add", "--grid", "2", "--block", "64"];
    head.iter().chain(rest).map(|s| (*s).to_owned()).collect()
}

fn texts(args: &[String]) -> Vec<&str> {
    args.iter().map(String::as_str).collect()
}

#[test]
fn a_kernel_computes() {
    let folder = tempfile::tempdir().expect("a folder");
    let (npy, raw) = (folder.path().join("y.npy"), folder.path().join("y.bin"));
    let (dump_npy, dump_raw) = (format!("y={}", npy.display()), format!("y={}", raw.display()));
    let args = scale_add(&[
        "--arg",
        "x:f32[100]=iota",
        "--arg",
        "y:f32[100]",
        "--arg",
        "f32=2",
        "--arg",
        "f32=0.5",
        "--arg",
        "i32=100",
        "--dump",
        &dump_npy,
        "--dump",
        &dump_raw,
    ]);
    let text = output(&texts(&args), 0);
    assert!(text.contains("run: sm_87 scale_add: 2 blocks of 64 threads"), "{text}");
    assert!(text.contains("y: 100 elements changed: 0.5 2.5 4.5 6.5"), "{text}");
    let raw = std::fs::read(&raw).expect("dumped");
    assert_eq!(raw.len(), 400);
    assert_eq!(f32::from_le_bytes(raw[396..].try_into().unwrap()), 198.5);
    let npy = std::fs::read(&npy).expect("dumped");
    assert!(npy.starts_with(b"\x93NUMPY") && npy.ends_with(&raw));
    // The dump as an input.
    let input = format!("x:f32=@{}", folder.path().join("y.npy").display());
    let args = scale_add(&[
        "--arg",
        &input,
        "--arg",
        "y:f32[100]",
        "--arg",
        "f32=1",
        "--arg",
        "f32=1",
        "--arg",
        "i32=100",
        "--json",
    ]);
    let json: serde_json::Value = serde_json::from_str(&output(&texts(&args), 0)).expect("JSON");
    assert_eq!(json["buffers"][1]["first"][1], "3.5");
    assert_eq!(json["buffers"][1]["changed"], 100);
}

#[test]
fn traces_and_checks() {
    let arguments = [
        "--arg",
        "x:f32[100]=iota",
        "--arg",
        "y:f32[100]",
        "--arg",
        "f32=2",
        "--arg",
        "f32=0.5",
        "--arg",
        "i32=100",
    ];
    let trace = output(&texts(&scale_add(&[&arguments[..], &["--trace"]].concat())), 0);
    assert!(trace.contains("(0,0,0) w0  0x0170 ffffffff  IMAD"), "{trace}");
    let faults = kernels("emu/sm_87/faults.cubin");
    let check = |kernel| {
        [
            "run",
            &faults,
            "--kernel",
            kernel,
            "--block",
            "64",
            "--arg",
            "u32[64]",
            "--arg",
            "u32[64]=iota",
            "--arg",
            "i32=1",
            "--check",
        ]
        .map(str::to_owned)
    };
    output(&texts(&check("good")), 0);
    let text = output(&texts(&check("race")), 1);
    assert!(text.contains("check: race between warps: race at 0x"), "{text}");
}

#[test]
fn results_take_their_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let (text, broken) = (path("k.sass"), path("k.cubin"));
    let file = kernels("sm_87/own_mul_mat.cubin");
    let listing = output(&["disasm", &file, "--asm"], 0);
    assert!(listing.contains(":S05]"), "{listing}");
    std::fs::write(&text, listing.replace(":S05]", ":S01]")).expect("written");
    output(&["asm", &text, "--into", &file, "-o", &broken], 0);
    let run_it = |file: &str, timing: bool, code| {
        let mut args: Vec<&str> = "run K --kernel scale_add --block 64 --arg x:f32[64]=iota --arg y:f32[64] --arg f32=2 --arg f32=0.5 --arg i32=64"
            .split(' ')
            .chain(timing.then_some("--timing"))
            .collect();
        args[1] = file;
        output(&args, code)
    };
    let right = "y: 64 elements changed: 0.5 2.5 4.5";
    assert!(run_it(&file, true, 0).contains(right));
    assert!(run_it(&broken, false, 0).contains(right));
    let wrong = run_it(&broken, true, 1);
    assert!(!wrong.contains(right), "{wrong}");
    assert!(
        wrong.contains("timing: scale_add at 0x") && wrong.contains("before the result of"),
        "{wrong}"
    );
    let verify = ["verify", &file, &broken, "--kernel", "scale_add"];
    output(&verify, 0);
    assert!(output(&[&verify[..], &["--timing"]].concat(), 1).contains("DIFFERENT"));
}

#[test]
fn a_survey_counts() {
    let text = output(&["run", &kernels("sm_87/own_features.cubin"), "--survey"], 0);
    assert!(text.contains("kernels can run") && text.contains("TEX"), "{text}");
}

#[test]
fn mistakes_are_explained() {
    let file = kernels("sm_87/own_mul_mat.cubin");
    error(&["run", &file], &["kernels match", "--kernel"]);
    error(
        &["run", &file, "--kernel", "scale_add"],
        &["takes 5 arguments", "TYPE[COUNT]"],
    );
    let small = [
        "--arg",
        "f32[100]=1",
        "--arg",
        "y:f32[50]",
        "--arg",
        "f32=2",
        "--arg",
        "f32=0",
        "--arg",
        "i32=100",
    ];
    error(
        &texts(&scale_add(&small)),
        &["store of 4 bytes", "out of bounds", "nearest is y of 200 bytes"],
    );
    error(&texts(&scale_add(&["--arg", "f33=1"])), &["no type `f33`"]);
    error(
        &texts(&scale_add(&["--arg", "x:f32[1]", "--arg", "x:f32[1]"])),
        &["--arg x:f32[1]", "buffer `x` already"],
    );
    let folder = tempfile::tempdir().expect("a folder");
    let numbers = folder.path().join("numbers").to_str().expect("UTF-8").to_owned();
    std::fs::write(&numbers, [0; 402]).expect("written");
    error(
        &texts(&scale_add(&["--arg", &format!("f32=@{numbers}")])),
        &["402 bytes are no whole number of f32"],
    );
    error(
        &texts(&scale_add(&["--arg", &format!("u8[100]=@{numbers}")])),
        &["holds 402 numbers, 100 are asked for"],
    );
    error(&["verify", &file, &file, "--launches", "0"], &["--launches"]);
    let fits = small.map(|a| if a == "y:f32[50]" { "y:f32[100]" } else { a });
    for wrong in [["--grid", "0"], ["--grid", "1,65536"], ["--block", "1,1,65"]] {
        let file = [&["run", &file, "--kernel", "scale_add"], &fits[..], &wrong].concat();
        error(&file, &["own_mul_mat.cubin: scale_add: a ", "is possible"]);
    }
    // TXD has no execution.
    let textures = kernels("sm_87/own_features.cubin");
    let args = ["u64=0", "u64=0", "u64=0", "u64=0", "u64=0", "i32=0"]
        .map(|a| ["--arg", a])
        .concat();
    error(
        &[&["run", &textures, "--kernel", "tex_k"], &args[..]].concat(),
        &["not emulated: ", " at 0x"],
    );
    let file = kernels("emu/sm_87/texture.cubin");
    let launch = "run K --kernel tex_row --arg o:u32[32] --arg u32[32] --arg u32[32] --arg u32[32] --arg i32=32 --arg";
    let mut args: Vec<&str> = launch.split(' ').collect();
    args[1] = &file;
    error(
        &[&args[..], &["u64=7"]].concat(),
        &["no texture or surface has the handle 0x7"],
    );
    error(
        &[&args[..], &["image(linear):u32[8]"]].concat(),
        &["linear filtering of a texture of integers"],
    );
    let text = output(&[&args[..], &["image:f32[8]=2.5"]].concat(), 0);
    assert!(
        text.contains(&format!("o: 32 elements changed: {}", 2.5f32.to_bits())),
        "{text}"
    );
}

#[test]
fn two_files_are_compared() {
    let file = kernels("sm_87/own_mul_mat.cubin");
    let text = output(&["verify", &file, &file], 0);
    assert_eq!(text, "verify: 4 kernels are the same in both files and were not run\n");
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let (config, changed) = (path("pass.toml"), path("out.cubin"));
    std::fs::write(
        &config,
        "[[pass]]\nname = \"ffma-deftz\"\nfn = [\"scale_add\", \"rms_norm\"]\nmode = \"apply\"\n",
    )
    .expect("written");
    output(&["apply", &file, "--config", &config, "-o", &changed], 0);
    // Keeping subnormal numbers shows where there are some.
    let text = output(
        &["verify", &file, &changed, "--kernel", "scale_add", "--launches", "60"],
        1,
    );
    assert!(
        text.contains("scale_add: ") && text.contains("DIFFERENT") && text.contains("`STG.E"),
        "{text}"
    );
    let json = output(
        &[
            "verify",
            &file,
            &changed,
            "--kernel",
            "rms_norm",
            "--launches",
            "6",
            "--json",
        ],
        0,
    );
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json[0]["outcome"], "same");
    assert!(json[0]["before"]["instructions_executed"].as_u64() > Some(100));
}

#[test]
fn a_kernel_that_is_not_emulated_does_not_keep_others_from_being_compared() {
    let file = kernels("sm_87/own_features.cubin");
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out.cubin").to_str().expect("UTF-8").to_owned();
    run(&["regalloc", &file, "--scramble", "1", "-o", &out]);
    let text = output(&["verify", &file, &out, "--kernel", "tex_k", "--kernel", "switch_k"], 1);
    assert!(
        text.contains("tex_k: not tried: ") && text.contains(" launches, the same memory"),
        "{text}"
    );
}

/// Other registers, and code moved by NOPs at random places, compute the same: 264 kernels each.
#[test]
fn rewrites_that_change_nothing_compute_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let (out, list) = (path("out.cubin"), path("list"));
    let rewrites: [&[&str]; 3] = [
        &["regalloc", "--scramble", "7", "-o", &out],
        &["regalloc", "-o", &out],
        &["nops", "--seed", "3", "--list", &list, "-o", &out],
    ];
    let mut kernels_compared = 0;
    for source in [
        "int", "float", "double", "half", "convert", "flow", "memory", "warp", "tensor",
    ] {
        let file = kernels(&format!("emu/sm_87/{source}.cubin"));
        for rewrite in rewrites {
            // Exit code 1 is a kernel that was left alone.
            let done = run(&[&rewrite[..1], &[&file], &rewrite[1..]].concat());
            assert!(
                matches!(done.status.code(), Some(0 | 1)),
                "{}",
                String::from_utf8_lossy(&done.stderr)
            );
            let text = output(&["verify", &file, &out, "--launches", "2", "--json"], 0);
            let reports: serde_json::Value = serde_json::from_str(&text).expect("JSON");
            kernels_compared += reports.as_array().expect("a list").len();
        }
    }
    assert!(kernels_compared > 750, "{kernels_compared}");
}
