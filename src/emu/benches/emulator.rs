//! Lane instructions a second: a loop of multiply-adds, and a product with 4-bit weights; with the processor's vector instructions, and
//! without.

use std::path::Path;

use criterion::{Criterion, Throughput, criterion_main};
use emu::{Launch, Memory, Program};

/// A kernel of the project with its arguments.
struct Case {
    file: Vec<u8>,
    kernel: &'static str,
    launch: Launch,
    memory: Memory,
}

fn own(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/kernels")
        .join(name);
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn multiply_add() -> Case {
    let mut memory = Memory::new();
    let mut params = memory.place("o", vec![0; 4 * 256], 0).to_le_bytes().to_vec();
    params.extend([0.999f32, 0.5].iter().flat_map(|v| v.to_le_bytes()));
    params.extend(2000i32.to_le_bytes());
    Case {
        file: own("emu/sm_87/speed.cubin"),
        kernel: "multiply_add",
        launch: Launch {
            block: [256, 1, 1],
            params,
            ..Launch::default()
        },
        memory,
    }
}

fn mul_mat_q4_k() -> Case {
    const ROWS: usize = 64;
    const COLUMNS: usize = 1024;
    let mut memory = Memory::new();
    let weights = (0..ROWS * COLUMNS / 256 * 144).map(|n| (n * 37 % 61) as u8).collect();
    let mut params = memory.place("weights", weights, 0).to_le_bytes().to_vec();
    let x = (0..COLUMNS).flat_map(|n| (n as f32).to_le_bytes()).collect();
    params.extend(memory.place("x", x, 0).to_le_bytes());
    params.extend(memory.place("y", vec![0; 4 * ROWS], 0).to_le_bytes());
    params.extend([COLUMNS as i32, ROWS as i32].iter().flat_map(|v| v.to_le_bytes()));
    Case {
        file: own("sm_87/own_mul_mat.cubin"),
        kernel: "mul_mat_q4_K",
        launch: Launch {
            grid: [ROWS as u32 / 4, 1, 1],
            block: [32, 4, 1],
            params,
            ..Launch::default()
        },
        memory,
    }
}

fn bench(c: &mut Criterion) {
    for mut case in [multiply_add(), mul_mat_q4_k()] {
        let image = cubin::Image::parse(&case.file).expect("parses");
        let program = Program::new(&image, case.kernel).expect("a program");
        let steps = emu::launch(&program, &case.launch, &mut case.memory, None)
            .expect("runs")
            .steps;
        let mut group = c.benchmark_group(case.kernel);
        group
            .throughput(Throughput::Elements(steps * emu::LANES as u64))
            .sample_size(20);
        for (name, portable) in [("vector", false), ("portable", true)] {
            group.bench_function(name, |b| {
                emu::use_portable(portable);
                b.iter(|| emu::launch(&program, &case.launch, &mut case.memory, None).expect("runs"));
                emu::use_portable(false);
            });
        }
    }
}

mod groups {
    #![allow(missing_docs)]
    criterion::criterion_group!(benches, super::bench);
}
criterion_main!(groups::benches);
