//! Takes every kernel of the cubins under the given paths the whole way: lift, print, parse, clear the registers, lower, compare.
//!
//! `cargo run --release -p sass2mlir-ir --example roundtrip -- PATH...`; `--text NAME` prints the kernels of that name, `--repeat N` goes the way
//! N times and keeps the least time of each step, which other work on the machine does not disturb.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rayon::prelude::*;
use sass2mlir_ir as ir;

#[derive(Default)]
struct Sum {
    kernels: usize,
    instructions: usize,
    opaque: usize,
    failures: Vec<String>,
    text_bytes: usize,
    times: [Duration; 4],
}

fn main() {
    let mut paths = Vec::new();
    let mut wanted = None;
    let mut repeat = 1;
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--text" => wanted = args.next(),
            "--repeat" => repeat = args.next().and_then(|n| n.parse().ok()).unwrap_or(1),
            path => collect(Path::new(path), &mut paths),
        }
    }
    paths.sort();
    let start = Instant::now();
    let sums: Vec<Sum> = paths.par_iter().map(|p| file(p, wanted.as_deref(), repeat)).collect();
    let total = sums.into_iter().fold(Sum::default(), |mut a, b| {
        a.kernels += b.kernels;
        a.instructions += b.instructions;
        a.opaque += b.opaque;
        a.text_bytes += b.text_bytes;
        a.failures.extend(b.failures);
        a.times.iter_mut().zip(b.times).for_each(|(a, b)| *a += b);
        a
    });
    for failure in total.failures.iter().take(30) {
        println!("{failure}");
    }
    println!(
        "{} files, {} kernels, {} instructions ({} opaque, {:.1} bytes of text each), {} failures, {:.2} s",
        paths.len(),
        total.kernels,
        total.instructions,
        total.opaque,
        total.text_bytes as f64 / total.instructions.max(1) as f64,
        total.failures.len(),
        start.elapsed().as_secs_f64()
    );
    let names = ["lift", "print", "parse", "lower"];
    let all: Duration = total.times.iter().sum();
    for (name, time) in names.iter().zip(total.times).chain([(&"all", all)]) {
        let each = time.as_nanos() as f64 / total.instructions.max(1) as f64;
        println!("{name}: {each:.0} ns an instruction and core");
    }
    if !total.failures.is_empty() {
        std::process::exit(1);
    }
}

fn collect(path: &Path, out: &mut Vec<PathBuf>) {
    match std::fs::read_dir(path) {
        Ok(entries) => entries.flatten().for_each(|e| collect(&e.path(), out)),
        Err(_) if path.extension().is_some_and(|e| e == "cubin") => out.push(path.to_owned()),
        Err(_) => {}
    }
}

fn file(path: &Path, wanted: Option<&str>, repeat: usize) -> Sum {
    let mut sum = Sum::default();
    let result = std::fs::read(path).map_err(|e| e.to_string()).and_then(|bytes| {
        let image = cubin::Image::parse(&bytes).map_err(|e| e.to_string())?;
        let isa = isa::Isa::for_target(image.target()).map_err(|e| e.to_string())?;
        let mut least = vec![[Duration::MAX; 4]; image.codes().len()];
        for pass in 0..repeat.max(1) {
            for (code, least) in image.codes().iter().zip(&mut least) {
                let first = (pass == 0).then_some(&mut sum);
                match kernel(isa, image.target(), code, wanted, first) {
                    Ok(times) => least.iter_mut().zip(times).for_each(|(a, b)| *a = b.min(*a)),
                    Err(e) if pass == 0 => sum.failures.push(format!("{}: {}: {e}", path.display(), code.name)),
                    Err(_) => {}
                }
            }
        }
        for least in least.iter().filter(|l| l[0] != Duration::MAX) {
            sum.times.iter_mut().zip(least).for_each(|(sum, time)| *sum += *time);
        }
        Ok(())
    });
    if let Err(e) = result {
        sum.failures.push(format!("{}: {e}", path.display()));
    }
    sum
}

fn kernel(
    isa: &'static isa::Isa,
    target: isa::Target,
    code: &cubin::Code<'_>,
    wanted: Option<&str>,
    sum: Option<&mut Sum>,
) -> Result<[Duration; 4], String> {
    let t0 = Instant::now();
    let lifted = ir::lift(isa, &ir::Source::from_code(target, code)).map_err(|e| format!("lift: {e}"))?;
    let t1 = Instant::now();
    let text = ir::print_module(std::slice::from_ref(&lifted));
    let t2 = Instant::now();
    if sum.is_some() && wanted.is_some_and(|w| code.name.contains(w)) {
        print!("{text}");
    }
    let mut parsed = ir::parse_module(&text).map_err(|e| {
        let line = text.lines().nth(e.line - 1).unwrap_or("");
        format!("parse: {e}\n  {line}")
    })?;
    let t3 = Instant::now();
    let again = ir::print_module(&parsed);
    if again != text {
        return Err("the text changes when it is read and written again".into());
    }
    let t4 = Instant::now();
    parsed[0].clear_registers();
    let bytes = ir::lower(&parsed[0]).map_err(|e| format!("lower: {e}"))?;
    let t5 = Instant::now();
    if let Some(sum) = sum {
        sum.kernels += 1;
        sum.instructions += lifted.byte_size() / 16;
        sum.opaque += lifted.ops().filter(|o| o.kind() == ir::OpKind::Opaque).count();
        sum.text_bytes += text.len();
    }
    match bytes.iter().zip(code.bytes).position(|(a, b)| a != b) {
        Some(at) => Err(format!("byte {at:#x} differs")),
        None if bytes.len() != code.bytes.len() => Err(format!("{} bytes, not {}", bytes.len(), code.bytes.len())),
        None => Ok([t1 - t0, t2 - t1, t3 - t2, t5 - t4]),
    }
}
