//! Every small kernel of tests/kernels/emu computes on the emulator what the same source computes when a C++ compiler makes it for this
//! machine. That compiler and its library share nothing with the emulator.

mod common;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use common::{N, WORDS_OUT, inputs, sources, words};
use emu::Program;

/// Compiles a source for this machine; the program that runs one kernel.
fn reference(name: &str) -> PathBuf {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("reference_{name}"));
    let source = sources().join(format!("{name}.cu"));
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
    // No contraction: a fused multiply-add is one only where the source says so. The rounding direction changes at run time.
    let flags = [
        "-x",
        "c++",
        "-std=c++17",
        "-O2",
        "-ffp-contract=off",
        "-frounding-math",
        "-o",
    ];
    let run = Command::new(&compiler).args(flags).arg(&out).arg(&source).output();
    let run = run.unwrap_or_else(|e| panic!("{compiler} does not start ({e}); install a C++ compiler or set CXX"));
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    out
}

fn run_reference(program: &Path, kernel: &str, input: &[u8], words_out: usize, n: usize) -> Vec<u32> {
    let mut child = Command::new(program)
        .args([kernel, &words_out.to_string(), &n.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the reference starts");
    let mut stdin = child.stdin.take().expect("piped");
    let input = input.to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let out = child.wait_with_output().expect("the reference ends");
    writer.join().expect("no panic").expect("the reference reads its input");
    assert!(out.status.success(), "{kernel}: the reference fails: {}", out.status);
    words(&out.stdout)
}

/// Whether two approximations are as near as documents promise.
fn near(kind: &str, got: u32, want: u32) -> bool {
    let (got, want) = (f32::from_bits(got), f32::from_bits(want));
    let distance = (f64::from(got) - f64::from(want)).abs();
    let bound = match kind {
        "rel" => 2.0 * f64::from(want.abs()) * 2f64.powi(-23),
        _ => 2f64.powi(-20) * f64::from(want.abs()).max(1.0),
    };
    got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan() || distance <= bound
}

/// Whether two results are the same: NaNs in floats are, whatever their bits, because processors differ in them.
fn same(kernel: &str, got: &[u32], want: &[u32], at: usize) -> bool {
    let nan = |x: u32| f32::from_bits(x).is_nan();
    let wide_nan = |v: &[u32]| f64::from_bits(u64::from(v[at | 1]) << 32 | u64::from(v[at & !1])).is_nan();
    let half_nan = |x: u32, by: u32| x >> by & 0x7fff > 0x7c00;
    match kernel.split('_').next() {
        _ if got[at] == want[at] => true,
        Some(kind @ ("rel" | "abs")) => near(kind, got[at], want[at]),
        Some("f32") => nan(got[at]) && nan(want[at]),
        Some("f64") => wide_nan(got) && wide_nan(want),
        Some("f16") => [0, 16].iter().all(|&by| {
            let part = |x: u32| x >> by & 0xffff;
            part(got[at]) == part(want[at]) || half_nan(got[at], by) && half_nan(want[at], by)
        }),
        _ => false,
    }
}

/// Compares all kernels of one source.
fn compare(name: &str, at_least: usize) {
    let reference = reference(name);
    for file in common::cubins(name) {
        compare_file(name, &file, &reference, at_least);
    }
}

fn compare_file(name: &str, file: &Path, reference: &Path, at_least: usize) {
    let cubin = std::fs::read(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    let image = cubin::Image::parse(&cubin).expect("a cubin");
    let inputs = inputs();
    let (mut compared, mut wrong) = (0, Vec::new());
    for code in image.codes().iter().filter(|c| c.is_entry) {
        let program = Program::new(&image, code.name).expect("a program");
        // What is bundled runs; of other targets' kernels those that can.
        if let Some(missing) = program.missing.first().filter(|_| !file.starts_with(sources())) {
            println!("{}: {}: not emulated: {missing}", file.display(), code.name);
            continue;
        }
        let got = common::launch(&program, compared as u32 % 2)
            .unwrap_or_else(|e| panic!("{e}"))
            .0;
        let (side_by_side, _) = common::launch_on(&program, 1, 100_000_000, 3).unwrap_or_else(|e| panic!("{e}"));
        assert!(side_by_side == got, "{}: other results on several cores", code.name);
        let want = run_reference(reference, code.name, &inputs.concat(), WORDS_OUT, N);
        let bad = (0..WORDS_OUT).find(|&at| !same(code.name, &got, &want, at));
        if let Some(at) = bad {
            let count = (0..WORDS_OUT).filter(|&at| !same(code.name, &got, &want, at)).count();
            let element = if want[N..].iter().any(|&w| w != 0xcdcd_cdcd) {
                at / 2
            } else {
                at
            };
            let input = |k: usize| words(&inputs[k])[element % N];
            wrong.push(format!(
                "{}: {count} words differ; word {at} is {:#010x}, the reference says {:#010x} (a {:#010x}, b {:#010x}, c {:#010x})",
                code.name, got[at], want[at], input(0), input(1), input(2)
            ));
        }
        compared += 1;
    }
    assert!(wrong.is_empty(), "{}: {name}\n{}", file.display(), wrong.join("\n"));
    println!("{}: {compared} kernels agree", file.display());
    assert!(
        compared >= at_least || !file.starts_with(sources()),
        "only {compared} kernels in {}",
        file.display()
    );
}

#[test]
fn integers() {
    compare("int", 60);
}

#[test]
fn single_precision() {
    compare("float", 38);
}

#[test]
fn double_precision() {
    compare("double", 23);
}

#[test]
fn conversions() {
    compare("convert", 31);
}

#[test]
fn half_precision() {
    compare("half", 31);
}

#[test]
fn approximations() {
    compare("approx", 8);
}

#[test]
fn control_flow() {
    compare("flow", 16);
}

#[test]
fn memory() {
    compare("memory", 22);
}

#[test]
fn warps() {
    compare("warp", 26);
}

#[test]
fn tensors() {
    compare("tensor", 9);
}

#[test]
fn what_came_with_newer_targets() {
    compare("newer", 2);
}

#[test]
fn textures_and_surfaces() {
    compare("texture", 14);
}
