//! llama.cpp's own kernels on the emulator, on blocks that llama.cpp's own code quantised, against what its CPU side makes of them.
//!
//! Run by `make check-corpus`, which sets `SASS_CORPUS` to what `tests/oracles/` brought.

mod common;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use common::folder;
use emu::{Launch, Memory, Program};

/// Numbers of a block of q4_K, and its bytes.
const BLOCK: (usize, usize) = (256, 144);

/// llama.cpp's quantisation as a program, built from its sources.
fn quantiser() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| {
        let ggml = find(&folder("SASS_CORPUS"), "ggml-quants.c").expect("llama.cpp's sources: run `make oracles`");
        let src = ggml.parent().expect("in a folder");
        let include = src.parent().expect("in a folder").join("include");
        let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("q4_k");
        let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/oracles/q4_k.c");
        let run = Command::new("cc")
            .args(["-O1", "-w", "-o"])
            .arg(&out)
            .args([
                Path::new("-I"),
                &include,
                Path::new("-I"),
                src,
                &ours,
                &ggml,
                Path::new("-lm"),
            ])
            .output()
            .expect("cc starts");
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        out
    })
}

/// A file of that name somewhere below a folder.
fn find(folder: &Path, name: &str) -> Option<PathBuf> {
    let entries: Vec<PathBuf> = std::fs::read_dir(folder).ok()?.flatten().map(|e| e.path()).collect();
    let here = entries.iter().find(|p| p.is_file() && p.ends_with(name)).cloned();
    here.or_else(|| entries.iter().filter(|p| p.is_dir()).find_map(|p| find(p, name)))
}

/// The blocks of some numbers, and the numbers that they stand for.
fn quantise(x: &[f32]) -> (Vec<u8>, Vec<f32>) {
    let mut child = Command::new(quantiser())
        .arg(x.len().to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("starts");
    let (mut stdin, input) = (child.stdin.take().expect("piped"), bytes(x));
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let out = child.wait_with_output().expect("ends");
    writer.join().expect("no panic").expect("reads its input");
    assert!(out.status.success());
    let (blocks, back) = out.stdout.split_at(x.len() / BLOCK.0 * BLOCK.1);
    (blocks.to_vec(), floats(back))
}

fn bytes(x: &[f32]) -> Vec<u8> {
    x.iter().flat_map(|f| f.to_le_bytes()).collect()
}

fn floats(b: &[u8]) -> Vec<f32> {
    b.chunks_exact(4)
        .map(|c| f32::from_le_bytes(c.try_into().unwrap()))
        .collect()
}

fn half(x: f32) -> [u8; 2] {
    let bits = emu::soft::convert(
        emu::soft::F32,
        emu::soft::F16,
        x.to_bits().into(),
        emu::soft::Round::Nearest,
    );
    (bits as u16).to_le_bytes()
}

/// Numbers like activations: mostly small, some large.
fn numbers(count: usize, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut next = move || {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..count).map(|_| next() + next() * next() * 2.0).collect()
}

/// 32 numbers as scale, sum and bytes, as q8_1 has them.
fn q8(x: &[f32]) -> (f32, f32, Vec<i8>) {
    let most = x.iter().fold(0f32, |m, v| m.max(v.abs()));
    let scale = most / 127.0;
    let q = |v: &f32| if scale == 0.0 { 0 } else { (v / scale).round() as i8 };
    (scale, x.iter().sum(), x.iter().map(q).collect())
}

/// What llama.cpp's own tests compare by: the squared error over the squared size.
fn error(got: &[f32], want: &[f64]) -> f64 {
    let difference: f64 = got.iter().zip(want).map(|(g, w)| (f64::from(*g) - w).powi(2)).sum();
    difference / want.iter().map(|w| w * w).sum::<f64>()
}

/// The numbers that llama.cpp divides by, as its kernels take them.
fn divisor(d: u32) -> Vec<u8> {
    let shift = d.next_power_of_two().trailing_zeros();
    let factor = (1u64 << 32) * ((1u64 << shift) - u64::from(d)) / u64::from(d) + 1;
    [factor as u32, shift, d].iter().flat_map(|v| v.to_le_bytes()).collect()
}

fn u32s(values: &[u32]) -> Vec<Vec<u8>> {
    values.iter().map(|v| v.to_le_bytes().to_vec()).collect()
}

/// A cubin of the corpus and a kernel in it, whose name holds a piece of text.
struct Kernel {
    file: Vec<u8>,
    name: String,
}

impl Kernel {
    fn new(file: &str, piece: &str) -> Self {
        let path = folder("SASS_CORPUS").join("llama").join(file);
        let file = std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}; run `make oracles`", path.display()));
        let image = cubin::Image::parse(&file).expect("a cubin");
        let found = image.codes().iter().find(|c| c.is_entry && c.name.contains(piece));
        let name = found.unwrap_or_else(|| panic!("no kernel {piece}")).name.to_owned();
        Self { file, name }
    }

    /// Runs it; the contents of the buffer `out` afterwards.
    fn run(
        &self,
        memory: &mut Memory,
        arguments: &[Vec<u8>],
        grid: [u32; 3],
        block: [u32; 3],
        shared: u32,
    ) -> Vec<f32> {
        let image = cubin::Image::parse(&self.file).expect("a cubin");
        let program = Program::new(&image, &self.name).expect("a program");
        assert_eq!(program.params.len(), arguments.len(), "{}", self.name);
        let mut params = vec![0; program.param_bank.1 as usize];
        for (p, a) in program.params.iter().zip(arguments) {
            assert_eq!(p.size as usize, a.len(), "argument {}", p.ordinal);
            params[usize::from(p.offset)..][..a.len()].copy_from_slice(a);
        }
        let launch = Launch {
            grid,
            block,
            dynamic_shared: shared,
            params,
            ..Launch::default()
        };
        let outcome = emu::launch(&program, &launch, memory, None).unwrap_or_else(|e| panic!("{e}"));
        println!("{}: {} warp instructions", self.name, outcome.steps);
        let out = memory.buffers().iter().find(|b| b.name == "out").expect("an output");
        floats(&out.data)
    }
}

fn pointer(memory: &mut Memory, name: &str, data: Vec<u8>) -> Vec<u8> {
    memory.place(name, data, 0).to_le_bytes().to_vec()
}

fn null() -> Vec<u8> {
    vec![0; 8]
}

/// The tolerance of llama.cpp's own tests for products of quantised matrices.
const TOLERANCE: f64 = 5e-4;

#[test]
fn q4_k_matrix_times_vector() {
    let (rows, columns) = (6, 1024);
    let (blocks, weights) = quantise(&numbers(rows * columns, 1));
    let x = numbers(columns, 2);
    let (mut y, mut x_back) = (Vec::new(), Vec::new());
    for group in x.chunks(32) {
        let (scale, sum, q) = q8(group);
        y.extend([half(scale), half(sum)].concat());
        y.extend(q.iter().map(|v| *v as u8));
        x_back.extend(q.iter().map(|v| f32::from(*v) * scale));
    }
    let kernel = Kernel::new("mmvq.sm_87.cubin", "13mul_mat_vec_qIL9ggml_type12ELi1ELb0ELb0ELb0E");
    let mut memory = Memory::new();
    let mut arguments = vec![
        pointer(&mut memory, "weights", blocks),
        pointer(&mut memory, "y", y),
        null(),
        vec![0; 48],
    ];
    arguments.push(pointer(&mut memory, "out", vec![0; 4 * rows]));
    let (row_blocks, x_groups) = ((columns / 256) as u32, (columns / 32) as u32);
    arguments.extend(u32s(&[columns as u32]));
    arguments.push(divisor(1));
    arguments.extend(u32s(&[row_blocks, x_groups, rows as u32]));
    arguments.push(divisor(1));
    arguments.extend(u32s(&[row_blocks * rows as u32, x_groups, rows as u32]));
    arguments.push(divisor(1));
    arguments.extend(u32s(&[row_blocks * rows as u32, x_groups, rows as u32, 0]));
    let got = kernel.run(&mut memory, &arguments, [rows as u32, 1, 1], [32, 4, 1], 0);
    let product = |x: &[f32]| -> Vec<f64> {
        let row = |w: &[f32]| w.iter().zip(x).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
        weights.chunks(columns).map(row).collect()
    };
    let (quantised, exact) = (error(&got, &product(&x_back)), error(&got, &product(&x)));
    println!("error {quantised:e} against the quantised vector, {exact:e} against the vector");
    assert!(quantised < 1e-6 && exact < TOLERANCE, "{got:?}");
}

#[test]
fn q4_k_matrix_times_matrix() {
    let (rows, columns, inner) = (130, 8, 512);
    let (blocks, weights) = quantise(&numbers(rows * inner, 3));
    let x = numbers(columns * inner, 4);
    // Chunks of 128 numbers of all columns, one after another; scales and sums first.
    let mut y = Vec::new();
    for chunk in 0..inner / 128 {
        for column in 0..columns {
            let values = &x[column * inner + chunk * 128..][..128];
            let groups: Vec<_> = values.chunks(32).map(q8).collect();
            y.extend(
                groups
                    .iter()
                    .flat_map(|(scale, sum, _)| [half(*scale), half(*sum)].concat()),
            );
            y.extend(groups.iter().flat_map(|(_, _, q)| q.iter().map(|v| *v as u8)));
        }
    }
    // The kernel loads whole tiles.
    y.resize(y.len() + 128 * 144, 0);
    let kernel = Kernel::new("mmq-instance-q4_k.sm_87.cubin", "9mul_mat_qIL9ggml_type12ELi8ELb1E");
    let mut memory = Memory::new();
    let mut arguments = vec![
        pointer(&mut memory, "weights", blocks),
        pointer(&mut memory, "y", y),
        null(),
        null(),
    ];
    arguments.push(pointer(&mut memory, "out", vec![0; 4 * rows * columns]));
    arguments.push(pointer(&mut memory, "fixup", vec![0; 1 << 20]));
    arguments.extend([null(), divisor(inner as u32 / 256)]);
    arguments.extend(u32s(&[
        rows as u32,
        columns as u32,
        inner as u32 / 256,
        columns as u32,
        rows as u32,
    ]));
    arguments.extend([divisor(1), divisor(1)]);
    arguments.extend(u32s(&[0, 0, 0]));
    arguments.extend([divisor(1), divisor(1)]);
    arguments.extend(u32s(&[0, 0, 0]));
    arguments.push(divisor(1));
    let got = kernel.run(&mut memory, &arguments, [1, 1, 1], [32, 8, 1], 96 << 10);
    let want: Vec<f64> = (0..columns * rows)
        .map(|n| {
            let (column, row) = (n / rows, n % rows);
            let pairs = weights[row * inner..][..inner]
                .iter()
                .zip(&x[column * inner..][..inner]);
            pairs.map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
        })
        .collect();
    let error = error(&got, &want);
    println!("error {error:e}");
    assert!(error < TOLERANCE, "{error:e}");
}

#[test]
fn softmax() {
    let (rows, columns) = (3, 300);
    let x = numbers(rows * columns, 5);
    let scale = 3.0;
    let kernel = Kernel::new("softmax.sm_87.cubin", "12soft_max_f32ILb1ELi0ELi0EfE");
    let mut memory = Memory::new();
    let mut arguments = vec![pointer(&mut memory, "x", bytes(&x)), null(), null()];
    arguments.push(pointer(&mut memory, "out", vec![0; 4 * rows * columns]));
    let (c, r) = (columns as i64, rows as i64);
    let mut p = vec![1i64, 1, c, r, r, c, r, 1, 1, 0, 0, 0, 1, 1]
        .iter()
        .flat_map(|v| v.to_le_bytes())
        .collect::<Vec<u8>>();
    p.extend([scale, 0.0, 1.0, 1.0f32].iter().flat_map(|v| v.to_le_bytes()));
    arguments.push(p);
    let got = kernel.run(
        &mut memory,
        &arguments,
        [rows as u32, 1, 1],
        [128, 1, 1],
        4 * (32 + columns as u32),
    );
    for (got, x) in got.chunks(columns).zip(x.chunks(columns)) {
        let top = x.iter().fold(f64::MIN, |m, v| m.max(f64::from(*v * scale)));
        let e: Vec<f64> = x.iter().map(|v| (f64::from(*v * scale) - top).exp()).collect();
        let sum: f64 = e.iter().sum();
        let want: Vec<f64> = e.iter().map(|e| e / sum).collect();
        assert!(error(got, &want) < 1e-9, "{}", error(got, &want));
    }
}

#[test]
fn rope() {
    let (dims, heads, tokens) = (64usize, 3usize, 4usize);
    let x = numbers(dims * heads * tokens, 6);
    let positions = [0i32, 5, 17, 300];
    let theta_scale = 10000f32.powf(-2.0 / dims as f32);
    let kernel = Kernel::new("rope.sm_87.cubin", "9rope_normILb1ELb0EffE");
    let mut memory = Memory::new();
    let mut arguments = vec![
        pointer(&mut memory, "x", bytes(&x)),
        pointer(&mut memory, "out", vec![0; 4 * x.len()]),
    ];
    let (d, h, t) = (dims as u32, heads as u32, tokens as u32);
    arguments.extend(u32s(&[d, h, t, d, d * h, d * h * t, d, d * h, d * h * t, d, 0]));
    arguments.push(pointer(
        &mut memory,
        "positions",
        positions.iter().flat_map(|p| p.to_le_bytes()).collect(),
    ));
    arguments.extend([1.0f32, 0.0, 1.0].map(|v| v.to_le_bytes().to_vec()));
    arguments.extend([
        vec![0; 8],
        theta_scale.to_le_bytes().to_vec(),
        null(),
        null(),
        vec![0; 4],
        vec![0],
    ]);
    let rows = (heads * tokens) as u32;
    let got = kernel.run(&mut memory, &arguments, [rows, dims as u32 / 2 / 32, 1], [1, 32, 1], 0);
    let mut want = Vec::new();
    for (n, x) in x.chunks(2).enumerate() {
        let (pair, row) = (n % (dims / 2), n / (dims / 2));
        let angle = f64::from(positions[row / heads]) * f64::from(theta_scale).powi(pair as i32);
        let (a, b) = (f64::from(x[0]), f64::from(x[1]));
        want.extend([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()]);
    }
    assert!(error(&got, &want) < 1e-7, "{:e}", error(&got, &want));
}
