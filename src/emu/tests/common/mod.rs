//! The small kernels of tests/kernels/emu, and what they are launched with.

use std::path::{Path, PathBuf};

use emu::{Channel, Edge, Image, Launch, LaunchError, Memory, Outcome, Program};

/// Elements of each input.
pub const N: usize = 2048;
/// Words of the output.
pub const WORDS_OUT: usize = 2 * N;

/// The folder of the kernels' sources.
pub fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/kernels/emu")
}

/// The cubins of one source: the one that is bundled, and what `SASS_EMU_KERNELS` has for other targets, a folder each
/// (tests/oracles/own.sh makes them).
pub fn cubins(name: &str) -> Vec<PathBuf> {
    let mut folders = vec![sources().join("sm_87")];
    let more = std::env::var_os("SASS_EMU_KERNELS").map(|folder| std::fs::read_dir(folder).expect("SASS_EMU_KERNELS"));
    folders.extend(more.into_iter().flatten().flatten().map(|entry| entry.path()));
    folders.sort();
    let files = folders
        .into_iter()
        .map(|folder| folder.join(name).with_extension("cubin"));
    files
        .filter(|file| file.starts_with(sources()) || file.exists())
        .collect()
}

/// The bytes of the three inputs.
pub fn inputs() -> Vec<Vec<u8>> {
    (1..=3).map(|seed| bytes(&numbers(seed, N))).collect()
}

/// What the handle stands for that a kernel of texture.cu gets.
fn image(kernel: &str, address: u64) -> Image {
    let plain = Image {
        address,
        size: [64, 32, 1],
        channels: 1,
        channel: Channel::F32,
        linear: false,
        edge: Edge::Clamp,
        normalized: false,
        fractions: false,
    };
    let bytes = Image {
        channels: 4,
        channel: Channel::U8,
        ..plain
    };
    let linear = Image {
        linear: true,
        fractions: true,
        ..bytes
    };
    match kernel {
        "tex_fetch" | "tex_row" => Image {
            size: [2048, 1, 1],
            ..plain
        },
        "tex_clamp" => plain,
        "tex_border" => Image {
            edge: Edge::Border,
            ..plain
        },
        "tex_wrap" => Image {
            edge: Edge::Wrap,
            normalized: true,
            ..bytes
        },
        "tex_signed" => Image {
            channels: 2,
            channel: Channel::I16,
            ..plain
        },
        "tex_layers" => Image {
            size: [32, 16, 4],
            ..plain
        },
        "tex_gather" => bytes,
        "abs_linear" => linear,
        "abs_linear_mirror" => Image {
            channels: 2,
            channel: Channel::U16,
            edge: Edge::Mirror,
            normalized: true,
            ..linear
        },
        "abs_linear_volume" => Image {
            size: [16, 16, 8],
            edge: Edge::Border,
            ..linear
        },
        "surf_plane" => Image {
            size: [32, 16, 1],
            channels: 4,
            channel: Channel::U32,
            ..plain
        },
        "surf_row" => Image {
            size: [8192, 1, 1],
            channel: Channel::U8,
            ..plain
        },
        "surf_volume" => Image {
            size: [16, 16, 8],
            channel: Channel::U32,
            ..plain
        },
        _ => panic!("no image for {kernel}"),
    }
}

/// Runs a kernel on the inputs; the words of its output.
pub fn launch(program: &Program, initialised: u32) -> Result<(Vec<u32>, Outcome), LaunchError> {
    launch_on(program, initialised, 100_000_000, 1)
}

/// The same, up to so many warp instructions, on so many cores.
pub fn launch_on(
    program: &Program,
    initialised: u32,
    max_steps: u64,
    cores: usize,
) -> Result<(Vec<u32>, Outcome), LaunchError> {
    let mut memory = Memory::new();
    let mut params = memory.place("o", vec![0xcd; 4 * WORDS_OUT], 0).to_le_bytes().to_vec();
    for (name, input) in ["a", "b", "c"].iter().zip(inputs()) {
        params.extend(memory.place(name, input, 0).to_le_bytes());
    }
    params.extend((N as i32).to_le_bytes());
    let mut images = Vec::new();
    if program.params.len() > 5 {
        let bytes = memory.buffers().iter().find(|b| b.name == "c").expect("placed");
        images.push(image(&program.name, bytes.address));
        params.extend([0; 4]);
        params.extend(Image::handle(0).to_le_bytes());
    }
    let launch = Launch {
        grid: [(N as u32).div_ceil(96), 1, 1],
        block: [96, 1, 1],
        params,
        images,
        max_steps,
        // Kernels look at this first, and go another way.
        initialised,
        cores,
        ..Launch::default()
    };
    let outcome = emu::launch(program, &launch, &mut memory, None)?;
    let out = memory.buffers().iter().find(|b| b.name == "o").expect("placed");
    Ok((words(&out.data), outcome))
}

/// Numbers of all sizes and kinds: small ones, near powers of two, floats near each other, special values.
fn numbers(seed: u64, n: usize) -> Vec<u32> {
    const SPECIAL: [u32; 24] = [
        0,
        1,
        2,
        0x7fff_ffff,
        0x8000_0000,
        0x8000_0001,
        !0,
        !1,
        0x3f80_0000,
        0xbf80_0000,
        0x4000_0000,
        0x7f80_0000,
        0xff80_0000,
        0x7fc0_0000,
        0xffc0_0001,
        0x7f80_0001,
        0x0080_0000,
        0x007f_ffff,
        0x0000_ffff,
        0x7f7f_ffff,
        0x3f00_0000,
        0x4b00_0001,
        0x4f00_0000,
        0x5f80_0000,
    ];
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    };
    let mut one = || {
        let r = next();
        let bits = (r >> 8) as u32;
        match r % 8 {
            0 => SPECIAL[bits as usize % SPECIAL.len()],
            1 => bits & 0xff,
            2 => (1 << (bits & 31)) + (bits >> 5 & 3),
            // Floats with an exponent near that of one.
            3 | 4 => bits & 0x807f_ffff | (120 + (bits >> 23 & 15)) << 23,
            // Subnormal and tiny floats.
            5 => bits & 0x81ff_ffff,
            _ => bits,
        }
    };
    (0..n).map(|_| one()).collect()
}

fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|w| w.to_le_bytes()).collect()
}

/// The words of some bytes.
pub fn words(bytes: &[u8]) -> Vec<u32> {
    bytes
        .chunks_exact(4)
        .map(|b| u32::from_le_bytes(b.try_into().unwrap()))
        .collect()
}
