//! How fast kernels go through text and back, in memory, on one core and on all. Set `SASS_BENCH_CUBIN` to measure another file than the bundled
//! one.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_main};
use rayon::prelude::*;
use sass2mlir_ir as ir;

fn roundtrip(c: &mut Criterion) {
    let bundled = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/kernels/sm_87/own_features.cuda12.9.cubin"
    );
    let path = std::env::var("SASS_BENCH_CUBIN").unwrap_or_else(|_| bundled.to_owned());
    let bytes = std::fs::read(&path).expect("the bench needs its cubin");
    let image = cubin::Image::parse(&bytes).expect("a cubin");
    let isa = isa::Isa::for_target(image.target()).expect("tables of the cubin's target");
    let sources: Vec<_> = image
        .codes()
        .iter()
        .map(|code| ir::Source::from_code(image.target(), code))
        .collect();
    let instructions: usize = sources.iter().map(|s| s.code.len() / 16).sum();
    let lift = || {
        sources
            .iter()
            .map(|s| ir::lift(isa, s).expect("lifts"))
            .collect::<Vec<_>>()
    };
    let kernels = lift();
    let text = ir::print_module(&kernels);

    let mut group = c.benchmark_group("roundtrip");
    group.throughput(Throughput::Elements(instructions as u64));
    group.bench_function("lift", |b| b.iter(|| black_box(lift())));
    group.bench_function("print", |b| b.iter(|| black_box(ir::print_module(&kernels))));
    group.bench_function("parse", |b| {
        b.iter(|| black_box(ir::parse_module(&text).expect("parses")))
    });
    group.bench_function("lower", |b| {
        b.iter(|| {
            kernels
                .iter()
                .map(|k| ir::lower(k).expect("lowers").len())
                .sum::<usize>()
        })
    });
    let whole = |source: &ir::Source<'_>| {
        let text = ir::print_module(&[ir::lift(isa, source).expect("lifts")]);
        let kernels = ir::parse_module(&text).expect("parses");
        assert!(ir::lower(&kernels[0]).expect("lowers") == source.code);
    };
    group.bench_function("whole", |b| b.iter(|| sources.iter().for_each(whole)));
    group.bench_function("whole, all cores", |b| b.iter(|| sources.par_iter().for_each(whole)));
    group.finish();
}

#[allow(missing_docs)]
mod group {
    use super::roundtrip;
    criterion::criterion_group!(benches, roundtrip);
}
use group::benches;
criterion_main!(benches);
