//! Throughput of one core on the bundled sm_87 kernels: `decode` is instructions a second, and so are the others.
#![allow(missing_docs)]

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use isa::{Inst, Isa, Target, Word};

const CUBIN: &[u8] = include_bytes!("../../../tests/kernels/sm_87/own_features.cubin");

fn words() -> Vec<Word> {
    let image = cubin::Image::parse(CUBIN).expect("the bundled cubin is well-formed");
    let codes = image.codes().iter();
    codes.flat_map(|c| Word::all(&CUBIN[c.range.clone()])).collect()
}

fn isa(c: &mut Criterion) {
    let isa = Isa::for_target(Target::Sm87).expect("sm_87 is embedded");
    let words = words();
    let insts: Vec<Inst> = words.iter().map(|&w| isa.decode(w)).collect();
    let mut group = c.benchmark_group("isa");
    group.throughput(Throughput::Elements(words.len() as u64));
    group.bench_function("decode", |b| {
        b.iter(|| {
            let sum = |n: u32, &w: &Word| n.wrapping_add(u32::from(isa.decode(black_box(w)).form.0));
            words.iter().fold(0, sum)
        });
    });
    group.bench_function("accesses", |b| {
        b.iter(|| insts.iter().map(|&i| isa.accesses(black_box(i)).count()).sum::<usize>());
    });
    group.bench_function("text", |b| {
        let mut text = String::with_capacity(1 << 20);
        b.iter(|| {
            text.clear();
            for (n, &i) in insts.iter().enumerate() {
                let written = isa.write_text(black_box(i), n as u64 * 16, &mut text, None);
                assert!(written.is_ok(), "strings take any text");
            }
            text.len()
        });
    });
    group.finish();
}

criterion_group!(benches, isa);
criterion_main!(benches);
