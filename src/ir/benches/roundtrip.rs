//! How fast kernels are decoded, written as nvdisasm does, and taken through text and back, in memory, next to nvdisasm itself on the same files.
//!
//! One core is measured by the time that the processor spent on it, so that other work on the machine does not count. The own kernels are
//! always measured; with `SASS_CORPUS` (a folder of cubins) those for which there are tables, too. nvdisasm is looked for in `SASS_ORACLES`
//! and on the path.

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use criterion::{BenchmarkGroup, Criterion, Throughput};
use isa::Isa;
use rayon::prelude::*;
use sass2mlir_ir as ir;

mod processor_time;

use processor_time::ProcessorTime;

/// Cubins of one folder, all for targets that have tables.
struct Files {
    name: &'static str,
    files: Vec<(PathBuf, Vec<u8>)>,
}

impl Files {
    fn in_folder(name: &'static str, folder: &Path) -> Files {
        let mut paths = Vec::new();
        collect(folder, &mut paths);
        paths.sort();
        let read = |path: PathBuf| {
            let bytes = std::fs::read(&path).ok()?;
            let target = cubin::Image::parse(&bytes).ok()?.target();
            Isa::for_target(target).ok().map(|_| (path, bytes))
        };
        let files = paths.into_iter().filter_map(read).collect();
        Files { name, files }
    }

    /// Every kernel, with its tables.
    fn sources(&self) -> Vec<(&'static Isa, ir::Source<'_>)> {
        self.files.iter().flat_map(|(_, bytes)| sources(bytes)).collect()
    }
}

fn sources(bytes: &[u8]) -> Vec<(&'static Isa, ir::Source<'_>)> {
    let image = cubin::Image::parse(bytes).expect("parsed before");
    let isa = Isa::for_target(image.target()).expect("found before");
    let source = |code| (isa, ir::Source::from_code(image.target(), code));
    image.codes().iter().map(source).collect()
}

fn collect(path: &Path, out: &mut Vec<PathBuf>) {
    match std::fs::read_dir(path) {
        Ok(entries) => entries.flatten().for_each(|e| collect(&e.path(), out)),
        Err(_) if path.extension().is_some_and(|e| e == "cubin") => out.push(path.to_owned()),
        Err(_) => {}
    }
}

fn all_files() -> Vec<Files> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/kernels/sm_87");
    let mut all = vec![Files::in_folder("own", &own)];
    if let Some(corpus) = std::env::var_os("SASS_CORPUS") {
        all.push(Files::in_folder("corpus", Path::new(&corpus)));
    }
    all
}

fn instructions(sources: &[(&Isa, ir::Source<'_>)]) -> u64 {
    sources.iter().map(|(_, s)| s.code.len() as u64 / 16).sum()
}

/// Decode, SSA, text, parse, clear every register field, lower, compare.
fn whole((isa, source): &(&'static Isa, ir::Source<'_>)) {
    let text = ir::print_module(&[ir::lift(isa, source).expect("lifts")]);
    let mut kernels = ir::parse_module(&text).expect("parses");
    kernels[0].clear_registers();
    assert!(ir::lower(&kernels[0]).expect("lowers") == source.code);
}

fn steps(group: &mut BenchmarkGroup<'_, ProcessorTime>, sources: &[(&'static Isa, ir::Source<'_>)]) {
    let lift = |(isa, source): &(&'static Isa, _)| ir::lift(isa, source).expect("lifts");
    let kernels: Vec<ir::Kernel> = sources.iter().map(lift).collect();
    let texts: Vec<String> = kernels
        .iter()
        .map(|k| ir::print_module(std::slice::from_ref(k)))
        .collect();
    group.bench_function("decode", |b| {
        let decode = |(isa, s): &(&Isa, ir::Source<'_>)| isa.decode_all(s.code).filter(|i| i.form.is_opaque()).count();
        b.iter(|| sources.iter().map(decode).sum::<usize>());
    });
    group.bench_function("decode and write", |b| {
        let mut text = String::new();
        b.iter(|| {
            for (isa, source) in sources {
                text.clear();
                for (n, inst) in isa.decode_all(source.code).enumerate() {
                    let written = isa.write_text(inst, n as u64 * 16, &mut text, None);
                    assert!(written.is_ok(), "strings take any text");
                }
                black_box(&text);
            }
        });
    });
    group.bench_function("lift", |b| {
        b.iter(|| sources.iter().for_each(|s| drop(black_box(lift(s)))))
    });
    group.bench_function("print", |b| {
        let print = |k| drop(black_box(ir::print_module(std::slice::from_ref(k))));
        b.iter(|| kernels.iter().for_each(print));
    });
    group.bench_function("parse", |b| {
        let parse = |t: &String| drop(black_box(ir::parse_module(t).expect("parses")));
        b.iter(|| texts.iter().for_each(parse));
    });
    group.bench_function("lower", |b| {
        b.iter(|| {
            kernels
                .iter()
                .map(|k| ir::lower(k).expect("lowers").len())
                .sum::<usize>()
        });
    });
    group.bench_function("roundtrip", |b| b.iter(|| sources.iter().for_each(whole)));
}

fn one_core(c: &mut Criterion<ProcessorTime>) {
    for files in all_files() {
        let sources = files.sources();
        let mut group = c.benchmark_group(format!("one core, {} kernels", files.name));
        group.throughput(Throughput::Elements(instructions(&sources)));
        steps(&mut group, &sources);
        group.finish();
    }
}

fn all_cores(c: &mut Criterion) {
    for files in all_files() {
        let sources = files.sources();
        let mut group = c.benchmark_group(format!("all cores, {} kernels", files.name));
        group.throughput(Throughput::Elements(instructions(&sources)));
        group.bench_function("roundtrip", |b| b.iter(|| sources.par_iter().for_each(whole)));
        group.finish();
    }
}

/// The processor time of processes that this one started and that are done, as Linux counts it, in hundredths of a second.
fn children() -> Option<Duration> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let behind_name = stat.rsplit_once(')')?.1;
    let mut ticks = behind_name.split_whitespace().skip(13).map(|t| t.parse::<u64>().ok());
    Some(Duration::from_millis(10 * (ticks.next()?? + ticks.next()??)))
}

/// nvdisasm on the same files by processor time, the best of some runs: it starts a process for each file.
fn nvdisasm(_: &mut Criterion) {
    let oracles = std::env::var_os("SASS_ORACLES").map(|o| Path::new(&o).join("bin/nvdisasm"));
    let program = oracles.filter(|p| p.exists()).unwrap_or_else(|| "nvdisasm".into());
    for files in all_files() {
        let run = || {
            let start = children()?;
            for (path, _) in &files.files {
                let status = Command::new(&program)
                    .arg(path)
                    .stdout(Stdio::null())
                    .stderr(Stdio::null())
                    .status();
                status.ok().filter(|s| s.success())?;
            }
            children()?.checked_sub(start)
        };
        let best: Option<Duration> = (0..3)
            .map(|_| run())
            .collect::<Option<Vec<_>>>()
            .and_then(|t| t.into_iter().min());
        let name = files.name;
        match best {
            Some(time) => {
                let speed = instructions(&files.sources()) as f64 / time.as_secs_f64() / 1e6;
                println!(
                    "nvdisasm, {name} kernels: {speed:.3} M instructions/s ({time:.2?} of processor time for {} files)",
                    files.files.len()
                );
            }
            None => {
                println!("nvdisasm, {name} kernels: not found, or it fails (set SASS_ORACLES, or put it on the path)")
            }
        }
    }
}

#[allow(missing_docs)]
mod groups {
    use super::{ProcessorTime, all_cores, nvdisasm, one_core};
    use criterion::Criterion;

    criterion::criterion_group! {
        name = one;
        config = Criterion::default().with_measurement(ProcessorTime).sample_size(30);
        targets = one_core
    }
    criterion::criterion_group! {
        name = all;
        config = Criterion::default().sample_size(20);
        targets = all_cores, nvdisasm
    }
}
use groups::{all, one};
criterion::criterion_main!(one, all);
