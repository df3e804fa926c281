//! Throughput of the checker on one core, over the own kernels (and `SASS_CORPUS`'s sm_87 ones where it is set), lifting aside.

#![allow(missing_docs)]

use std::path::{Path, PathBuf};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use cubin::Image;
use ir::{Kernel, Source};
use isa::Isa;
use sass2mlir_sched::{Model, check};

fn kernels(folder: &Path) -> Vec<(&'static Isa, Kernel)> {
    let mut kernels = Vec::new();
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let files: Vec<PathBuf> = files
        .map(|f| f.path())
        .filter(|p| p.extension().is_some_and(|e| e == "cubin"))
        .collect();
    for path in files {
        let Ok(bytes) = std::fs::read(&path) else { continue };
        let Ok(image) = Image::parse(&bytes) else { continue };
        let Ok(isa) = Isa::for_target(image.target()) else {
            continue;
        };
        let sources = image.codes().iter().map(|c| Source::from_code(image.target(), c));
        kernels.extend(sources.filter_map(|s| Some((isa, ir::lift(isa, &s).ok()?))));
    }
    kernels
}

fn bench(c: &mut Criterion) {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/kernels/sm_87");
    let mut sets = vec![("own", kernels(&own))];
    if let Some(corpus) = std::env::var_os("SASS_CORPUS") {
        sets.push(("warp", kernels(&Path::new(&corpus).join("warp-lang/sm_87"))));
        sets.push(("llama", kernels(&Path::new(&corpus).join("llama"))));
    }
    for (name, kernels) in sets.iter().filter(|s| !s.1.is_empty()) {
        let model = Model::of(isa::Target::Sm87);
        let instructions: usize = kernels.iter().map(|k| k.1.instruction_count()).sum();
        let mut group = c.benchmark_group("check");
        group
            .throughput(Throughput::Elements(instructions as u64))
            .sample_size(10);
        group.bench_function(*name, |b| {
            b.iter(|| {
                kernels
                    .iter()
                    .map(|(isa, k)| check(isa, model, k).findings.len())
                    .sum::<usize>()
            });
        });
        group.finish();
    }
}

criterion_group!(benches, bench);
criterion_main!(benches);
