//! How long a rewrite takes, from the file's bytes to the new file's bytes, on one core, by the time that the processor spent on it.
#![allow(missing_docs)] // criterion's macros make public functions

use std::path::Path;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use passes::Registry;
use sass2mlir_engine::{Config, Opened, Options, apply, roundtrip};

#[path = "../../ir/benches/processor_time/mod.rs"]
mod processor_time;

use processor_time::ProcessorTime;

fn benches(c: &mut Criterion<ProcessorTime>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/kernels/sm_87/own_mul_mat.cubin");
    let bytes = std::fs::read(path).expect("the bundled cubin");
    let image = cubin::Image::parse(&bytes).expect("a cubin");
    let instructions: usize = image.codes().iter().map(|c| c.bytes.len() / 16).sum();
    let text = "[[pass]]\nname = \"ffma-deftz\"\nmode = \"apply\"\n";
    let config = Config::parse(text, "pass.toml", &Registry::default()).expect("a good configuration");
    let one_core = rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .build()
        .expect("a thread");

    let mut group = c.benchmark_group("engine");
    group.throughput(Throughput::Elements(instructions as u64));
    group.bench_function("apply", |b| {
        one_core.install(|| b.iter(|| apply(&bytes, &config, &Options::default()).map(|o| o.bytes)));
    });
    // One kernel as long as those of local language models: lift, analyses, edits, code that moves, hazards, estimates, patch.
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/kernels/passes/sm_87/rows.cubin");
    let rows = std::fs::read(path).expect("the bundled cubin");
    let text = "[[pass]]\nname = \"scalar-to-uniform\"\nmode = \"apply\"\n";
    let config = Config::parse(text, "pass.toml", &Registry::default()).expect("a good configuration");
    let done = apply(&rows, &config, &Options::default()).expect("it works");
    assert!(done.bytes.is_some(), "the kernel is rewritten: {:?}", done.report);
    let kernel = &done.report.images[0].kernels[0];
    assert!(kernel.instructions >= 1_200, "{} instructions", kernel.instructions);
    group.throughput(Throughput::Elements(kernel.instructions as u64));
    group.bench_function("scalar-to-uniform", |b| {
        one_core.install(|| b.iter(|| apply(&rows, &config, &Options::default()).map(|o| o.bytes)));
    });
    group.throughput(Throughput::Elements(instructions as u64));
    group.bench_function("roundtrip", |b| {
        one_core.install(|| {
            b.iter(|| {
                let opened = Opened::new(&bytes)?;
                roundtrip(
                    &opened,
                    &opened.images(sass2mlir_engine::Which::default())?,
                    &|_| true,
                    &|| (),
                )
                .map(|r| r.holds())
            });
        });
    });
    group.finish();
}

criterion_group! {
    name = all;
    config = Criterion::default().with_measurement(ProcessorTime);
    targets = benches
}
criterion_main!(all);
