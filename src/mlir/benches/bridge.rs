//! The bridge on one kernel of 100,000 instructions: the code of a bundled kernel, over and over.
#![allow(missing_docs)] // criterion's macros make public functions

#[cfg(feature = "mlir")]
mod bench {
    use std::hint::black_box;

    use criterion::{BatchSize, Criterion, Throughput};
    use ir::{Kernel, Source};
    use sass2mlir_mlir::Bridge;

    const SIZE: usize = 100_000;

    fn kernel() -> Kernel {
        let file = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../tests/kernels/sm_87/own_features.cuda12.9.cubin"
        );
        let bytes = std::fs::read(file).expect("the bundled cubin");
        let image = cubin::Image::parse(&bytes).expect("a cubin");
        let codes = image.codes().iter();
        let largest = codes.max_by_key(|code| code.bytes.len()).expect("a kernel");
        let code: Vec<u8> = largest.bytes.iter().copied().cycle().take(SIZE * 16).collect();
        let isa = isa::Isa::for_target(image.target()).expect("tables of the cubin's target");
        ir::lift(isa, &Source::new("bench", image.target(), &code)).expect("lifts")
    }

    /// Bytes of memory that this process has in use.
    fn resident() -> usize {
        let pages = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
        pages
            .split(' ')
            .nth(1)
            .and_then(|n| n.parse::<usize>().ok())
            .unwrap_or(0)
            * 4096
    }

    pub fn bridge(c: &mut Criterion) {
        let kernels = [kernel()];
        let ops = kernels[0].op_count();
        let bridge = Bridge::new(false).expect("a context");
        drop(bridge.module(&kernels, false).expect("a module")); // what is allocated once
        let before = resident();
        let kept: Vec<_> = (0..4)
            .map(|_| bridge.module(&kernels, false).expect("a module"))
            .collect();
        println!("memory: {} bytes an operation", (resident() - before) / (4 * ops));
        drop(kept);

        let module = bridge.module(&kernels, false).expect("a module");
        let text = module.to_text();
        let bytecode = module.to_bytecode();
        let mut group = c.benchmark_group("bridge");
        group.sample_size(10);
        group.throughput(Throughput::Elements(ops as u64));
        // Whatever is made is dropped outside the time; `drop` is that of a module.
        let each = BatchSize::PerIteration;
        let make = |locations| bridge.module(&kernels, locations).expect("a module");
        group.bench_function("ir to mlir", |b| b.iter_batched(|| (), |()| make(false), each));
        group.bench_function("ir to mlir, with locations", |b| {
            b.iter_batched(|| (), |()| make(true), each)
        });
        group.bench_function("drop", |b| b.iter_batched(|| make(false), drop, each));
        group.bench_function("mlir to ir", |b| {
            b.iter_batched(|| (), |()| module.kernels().expect("kernels"), each)
        });
        group.bench_function("verify", |b| b.iter(|| module.verify().expect("verifies")));
        group.bench_function("print", |b| b.iter(|| black_box(module.to_text())));
        group.bench_function("parse", |b| {
            b.iter_batched(|| (), |()| bridge.parse(text.as_bytes()).expect("parses"), each)
        });
        group.bench_function("write bytecode", |b| b.iter(|| black_box(module.to_bytecode())));
        group.bench_function("read bytecode", |b| {
            b.iter_batched(|| (), |()| bridge.parse(&bytecode).expect("parses"), each)
        });
        group.finish();
    }
}

#[cfg(feature = "mlir")]
criterion::criterion_group!(benches, bench::bridge);
#[cfg(feature = "mlir")]
criterion::criterion_main!(benches);

#[cfg(not(feature = "mlir"))]
fn main() {}
