//! How fast cubins and containers are read: `cargo bench -p sass2mlir-cubin`.

#![allow(missing_docs)] // criterion's macros make undocumented functions

use std::hint::black_box;
use std::path::PathBuf;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use sass2mlir_cubin::{Container, Image, Patch};

fn read(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/kernels")
        .join(name);
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn parse(c: &mut Criterion) {
    let mut group = c.benchmark_group("cubin");
    for name in ["sm_87/own_features.cubin", "sm_100a/own_features.cubin"] {
        let bytes = read(name);
        group.throughput(Throughput::Bytes(bytes.len() as u64));
        group.bench_function(format!("parse {name}"), |b| {
            b.iter(|| Image::parse(black_box(&bytes)).expect("a cubin"))
        });
        let image = Image::parse(&bytes).expect("a cubin");
        group.bench_function(format!("patch {name}"), |b| {
            b.iter(|| {
                let mut patch = Patch::new(&image);
                for code in image.codes() {
                    patch.replace_code(code, code.bytes).expect("same size");
                }
                patch.finish()
            })
        });
    }
    for name in [
        "containers/libtwo.so",
        "containers/zstd.fatbin",
        "containers/lz4.fatbin",
    ] {
        let bytes = read(name);
        group.throughput(Throughput::Bytes(bytes.len() as u64));
        group.bench_function(format!("find and decompress {name}"), |b| {
            b.iter(|| {
                Container::parse(black_box(&bytes))
                    .expect("a container")
                    .images()
                    .filter(|i| i.is_ok())
                    .count()
            })
        });
    }
    group.finish();
}

criterion_group!(benches, parse);
criterion_main!(benches);
