//! Random launches: dimensions, scalars, memory.

use std::collections::BTreeSet;

use super::Options;
use super::record::Record;
use crate::arg::{self, Kind};
use crate::memory::{Buffer, Fill, Memory};
use crate::program::{Param, Program};

/// Addresses that each window spans.
const WINDOW: u64 = 1 << 36;
/// Where the first window begins.
const FIRST: u64 = 0x10_0000_0000_0000;

/// One launch, as it was drawn.
#[derive(Clone, Debug)]
pub struct Trial {
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub dynamic_shared: u32,
    /// UR2 at the start.
    pub initialised: u32,
    /// The parameters' bytes, with nothing where addresses go.
    scalars: Vec<u8>,
    /// Byte offsets in the parameters of what may be an address: eight bytes each.
    pub slots: Vec<u32>,
    /// What memory holds, for each slot.
    fills: Vec<Fill>,
    /// Numbers that were drawn for scalars: offset, size, value.
    pub numbers: Vec<(u32, u32, u64)>,
}

/// A small generator; what is drawn depends on nothing else.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        crate::memory::mix(self.0)
    }

    fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[(self.next() % list.len() as u64) as usize]
    }
}

const BLOCKS: &[[u32; 3]] = &[
    [32, 1, 1],
    [64, 1, 1],
    [128, 1, 1],
    [256, 1, 1],
    [32, 4, 1],
    [16, 16, 1],
    [32, 8, 1],
    [96, 1, 1],
    [33, 1, 1],
];
const GRIDS: &[[u32; 3]] = &[[1, 1, 1], [2, 1, 1], [4, 1, 1], [2, 2, 1], [1, 3, 1], [2, 1, 2]];
/// Sizes, strides, counts: small, powers of two and their neighbours, thread counts.
const INTEGERS: &[u64] = &[
    1, 2, 3, 4, 7, 8, 16, 31, 32, 33, 48, 64, 96, 100, 128, 192, 256, 257, 512, 1024, 0,
];
const FLOATS: &[f32] = &[1.0, 0.5, 2.0, -1.0, 0.0, 1e-5, 0.125, 3.5, 100.0];

impl Trial {
    /// Draws launch number `n`.
    pub(super) fn random(program: &Program, options: &Options, n: u32, pointers: &BTreeSet<u32>) -> Self {
        let mut dice = Dice(options.seed.wrapping_mul(0x1_0000_0001).wrapping_add(n.into()));
        let block = program.required_block.unwrap_or_else(|| {
            let most = program.max_threads.unwrap_or(1024);
            let fits: Vec<_> = BLOCKS
                .iter()
                .copied()
                .filter(|b| b.iter().product::<u32>() <= most)
                .collect();
            if fits.is_empty() {
                [most, 1, 1]
            } else {
                dice.pick(&fits)
            }
        });
        let mut trial = Self {
            grid: dice.pick(GRIDS),
            block,
            dynamic_shared: if program.shared_size > 0 { 0 } else { 16 << 10 },
            initialised: n & 1,
            scalars: vec![0; program.param_bank.1 as usize],
            slots: Vec::new(),
            fills: Vec::new(),
            numbers: Vec::new(),
        };
        let floats = float_words(program);
        let integers = integers(program);
        for param in &program.params {
            trial.fill_param(param, (&floats, &integers), n > 0, pointers, &mut dice);
        }
        trial.fills = trial.slots.iter().map(|_| Fill::random(dice.next())).collect();
        trial
    }

    /// Eight bytes on an eight-byte boundary may be an address; everything else is a number.
    fn fill_param(
        &mut self,
        param: &Param,
        (floats, integers): (&[u32], &[u64]),
        learned: bool,
        pointers: &BTreeSet<u32>,
        dice: &mut Dice,
    ) {
        let (start, end) = (u32::from(param.offset), u32::from(param.offset) + param.size);
        let mut at = start;
        while at < end {
            let left = end - at;
            if left >= 8 && at % 8 == 0 && !floats.contains(&at) {
                // What was never used as an address may be a number of 64 bits.
                match learned && !pointers.contains(&at) && dice.next() & 1 == 0 {
                    true => self.set_number(at, 8, dice.pick(integers)),
                    false => self.slots.push(at),
                }
                at += 8;
                continue;
            }
            let size = if left >= 4 { 4 } else { left };
            let value = match floats.contains(&at) {
                true => u64::from(dice.pick(FLOATS).to_bits()),
                false => dice.pick(integers),
            };
            self.set_number(at, size, value);
            at += size;
        }
    }

    fn set_number(&mut self, at: u32, size: u32, value: u64) {
        let range = at as usize..(at + size) as usize;
        if let Some(to) = self.scalars.get_mut(range) {
            to.copy_from_slice(&value.to_le_bytes()[..size as usize]);
            self.numbers.retain(|(offset, ..)| *offset != at);
            self.numbers.push((at, size, value));
        }
    }

    /// Where the window of a slot begins.
    fn window(slot: usize) -> u64 {
        FIRST + slot as u64 * WINDOW
    }

    /// The parameters, with the addresses of the buffers in `memory`.
    pub(super) fn params(&self, memory: &Memory) -> Vec<u8> {
        let mut out = self.scalars.clone();
        for (n, &at) in self.slots.iter().enumerate() {
            let start = Self::window(n);
            let buffer = memory
                .buffers()
                .iter()
                .find(|b| b.address >= start && b.address < start + WINDOW);
            // A slot that nothing was found behind is a number as much as an address.
            let address = buffer.map_or(start, |b| b.origin);
            out[at as usize..at as usize + 8].copy_from_slice(&address.to_le_bytes());
        }
        out
    }

    /// The slots behind which memory was touched.
    pub(super) fn touched(&self, record: &Record<'_>) -> impl Iterator<Item = u32> {
        let windows = self.slots.iter().enumerate();
        windows
            .filter(|(n, _)| record.extent(Self::window(*n), Self::window(n + 1)).is_some())
            .map(|(_, at)| *at)
    }

    /// Memory that appears where it is touched.
    pub(super) fn growing(&self, limit: u64) -> Memory {
        let mut memory = Memory::new();
        for (n, fill) in self.fills.iter().enumerate() {
            memory.insert(&Buffer {
                name: format!("param[{:#x}]", self.slots[n]),
                address: Self::window(n),
                origin: Self::window(n),
                data: Vec::new(),
                growth: Some((limit, *fill)),
            });
        }
        memory
    }

    /// Memory that reaches exactly as far as it was touched, with no more alignment than was used.
    pub(super) fn exact(&self, probe: &Memory, record: &Record<'_>) -> Memory {
        let mut memory = Memory::new();
        for (n, fill) in self.fills.iter().enumerate() {
            let start = Self::window(n);
            let Some(extent) = record.extent(start, start + WINDOW) else {
                continue;
            };
            let Some(buffer) = probe.buffers().iter().find(|b| b.address == start) else {
                continue;
            };
            let (low, high) = (extent.low - start, extent.high - start);
            // An odd multiple of the largest access: whoever loads more at once is misaligned.
            let shift = u64::from(extent.largest);
            memory.insert(&Buffer {
                name: buffer.name.clone(),
                address: start + low + shift,
                origin: start + shift,
                data: (low..high).map(|at| fill.byte(at)).collect(),
                growth: None,
            });
        }
        memory
    }

    /// The same launch made smaller in one way each.
    pub(super) fn smaller(&self) -> Vec<Self> {
        let mut out = Vec::new();
        for n in 0..3 {
            if self.grid[n] > 1 {
                let mut trial = self.clone();
                trial.grid[n] /= 2;
                out.push(trial);
            }
            let least = if n == 0 { 32 } else { 1 };
            if self.block[n] > least {
                let mut trial = self.clone();
                trial.block[n] = (self.block[n] / 2).max(least);
                out.push(trial);
            }
        }
        for &(at, size, value) in self.numbers.iter().filter(|n| n.2 > 1 && n.2 <= 1024) {
            let mut trial = self.clone();
            trial.set_number(at, size, value / 2);
            out.push(trial);
        }
        out
    }
}

/// Numbers to try: the usual ones, and those that the kernel compares with.
fn integers(program: &Program) -> Vec<u64> {
    const MOST: i64 = 4096;
    let mut out = INTEGERS.to_vec();
    for &inst in &program.insts {
        if program.isa.form(inst.form).is_none_or(|f| f.mnemonic() != "ISETP") {
            continue;
        }
        for arg in arg::args(program.isa, inst, 0).unwrap_or_default() {
            if let Some(i @ 1..MOST) = arg.int() {
                out.extend([i as u64 - 1, i as u64, i as u64 + 1]);
            }
        }
    }
    out
}

/// Byte offsets in the parameters of what instructions on floats read directly.
fn float_words(program: &Program) -> Vec<u32> {
    let base = i64::from(program.param_bank.0);
    let mut out = Vec::new();
    for &inst in &program.insts {
        let Some(form) = program.isa.form(inst.form) else {
            continue;
        };
        if !is_float(form.mnemonic()) {
            continue;
        }
        for arg in arg::args(program.isa, inst, 0).unwrap_or_default() {
            if let Kind::Const(0, address) = arg.kind
                && address.offset >= base
            {
                out.push((address.offset - base) as u32);
            }
        }
    }
    out
}

/// Whether a mnemonic's numbers are single or double precision.
fn is_float(mnemonic: &str) -> bool {
    const NAMES: &[&str] = &["FADD", "FFMA", "FMUL", "FMNMX", "FSEL", "FSET", "FSETP", "MUFU", "FCHK"];
    NAMES.contains(&mnemonic)
}

/// A fault without the addresses and threads that make each one different.
pub(super) fn reason(text: &str) -> String {
    let cut = text.find(", block (").unwrap_or(text.len());
    let what = text.rfind("): ").map_or("", |at| &text[at + 3..]);
    let what = ["out of bounds", "misaligned"]
        .into_iter()
        .find(|w| what.contains(w))
        .unwrap_or(what);
    match what.is_empty() {
        true => text.to_owned(),
        false => format!("{}: {what}", &text[..cut]),
    }
}
