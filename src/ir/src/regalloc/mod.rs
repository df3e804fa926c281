//! Register allocation: other physical registers for the values of a kernel.
//!
//! Values that share a register by construction (arguments and what is passed to them, tied operands) stay together, tuples stay
//! consecutive and aligned, so no copy is needed and the instructions stay the same but for register numbers. What other code expects
//! in a register stays there: arguments and results of calls, callees, barriers, what collectives read and write. The control words stay as they are, so registers that
//! an instruction owns after issue are given to nobody meanwhile, as a latency model says; without one how long that is where no scoreboard
//! tells is an estimate on the safe side ([`owned`]).
//!
//! After edits a register may hold something else than what is read from it: [`settle`] moves only what is in the way.

mod color;
mod divergence;
mod interference;
mod limit;
mod owned;
mod search;
mod settle;
mod webs;

use isa::{Isa, Latency, Pipe, RegFile, Space};

use color::{Choice, Palette, Rng, place};
use interference::Interference;
use webs::{Webs, file_size, top};

pub use settle::settle;

use crate::collective::has_collectives;
use crate::kernel::{Kernel, ValueId};
use crate::layout::Flow;
use crate::pin::Pin;

/// How registers are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allocation {
    /// As few as can be found; never more than now.
    Fresh,
    /// General registers below that number; the other files stay.
    Below(u16),
    /// Any legal ones, by a seed. May take more than now.
    Scrambled(u64),
}

/// What an allocation has to keep to besides.
#[derive(Clone, Debug, Default)]
pub struct Constraints {
    /// Registers that keep their values, and get no others.
    pub reserved: Vec<Pin>,
    /// Pairs of values, the first defined while the register of the second belongs to an instruction in flight, by a latency model. Without
    /// one that is estimated from the scheduling bits, on the safe side.
    pub in_flight: Option<Vec<(ValueId, ValueId)>>,
}

/// What an allocation did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allocated {
    /// One past the highest general register, before and after.
    pub registers: (u16, u16),
    /// Groups of registers that had to be placed together, and how many of them moved.
    pub groups: (usize, usize),
    /// Files that stayed as they were because no other allocation was found.
    pub kept: Vec<RegFile>,
}

/// Files that are allocated; barriers are the warp's, and stay.
const ALLOCATED: [RegFile; 4] = [RegFile::R, RegFile::UR, RegFile::P, RegFile::UP];

/// Gives the values of a kernel other registers. The kernel is then still the same function of its inputs; its words are written when it
/// is lowered. On an error nothing changed, and the error says what is not understood.
pub fn allocate(kernel: &mut Kernel, how: Allocation, constraints: &Constraints) -> Result<Allocated, String> {
    let isa = Isa::for_target(kernel.target).map_err(|e| e.to_string())?;
    let reserved = |pin: Pin| constraints.reserved.contains(&pin);
    let mut webs = Webs::new(isa, kernel, &reserved)?;
    let within_limits = limit::bound(isa, kernel, &mut webs);
    let interference = Interference::new(isa, kernel, &webs, constraints.in_flight.as_deref())?;
    // The kernel as it is must be understood.
    if let Some((lane, _)) = interference.clashes.first() {
        let register = webs.register(*lane, &webs.bases());
        let file = webs.file(*lane).name();
        return Err(format!("two values of {file}{register} are live at once"));
    }
    let before = top(kernel, RegFile::R);
    let mut base = webs.bases();
    let mut done = Allocated::default();
    for file in ALLOCATED {
        let now = top(kernel, file);
        if now == 0 {
            continue;
        }
        if matches!(how, Allocation::Below(_)) && file != RegFile::R {
            continue;
        }
        if stays(isa, kernel, &interference, within_limits, file) {
            done.kept.push(file);
            continue;
        }
        let palette = Palette {
            file,
            limit: now,
            allowed: allowed(kernel, file, &reserved),
        };
        let found = match how {
            Allocation::Fresh => fewest(&webs, &interference, palette),
            Allocation::Below(limit) => below(&webs, &interference, Palette { limit, ..palette }),
            Allocation::Scrambled(seed) => {
                let mut rng = Rng::new(seed ^ (file as u64) << 32);
                let size = if limit::sets_its_limit(kernel) {
                    now
                } else {
                    file_size(kernel, file)
                };
                let roomy = (now + now / 4 + 8).min(size);
                [roomy, size].into_iter().find_map(|limit| {
                    place(
                        &webs,
                        &interference,
                        &Palette { limit, ..palette },
                        Choice::Random,
                        &mut rng,
                    )
                })
            }
        };
        match found {
            Some(placed) => placed.into_iter().for_each(|(c, b)| base[c as usize] = b),
            None => done.kept.push(file),
        }
    }
    done.groups = (
        webs.clusters.len(),
        webs.clusters.iter().zip(&base).filter(|(c, b)| c.base != **b).count(),
    );
    webs.put(kernel, &base);
    done.registers = (before, top(kernel, RegFile::R));
    Ok(done)
}

/// One past the highest general register of a kernel.
pub fn top_register(kernel: &Kernel) -> u16 {
    top(kernel, RegFile::R)
}

/// Registers of the file stay where they are.
fn stays(isa: &Isa, kernel: &Kernel, interference: &Interference, within_limits: bool, file: RegFile) -> bool {
    let unknown = match file {
        RegFile::R => !within_limits,
        // A warp has one of each, and nobody knows which ways take turns there.
        RegFile::UR | RegFile::UP => interference.uniform_fixed || has_collectives(kernel),
        _ => false,
    };
    unknown || is_held(isa, kernel, file)
}

/// Why no value of the kernel may be put into a general register that the kernel does not name there.
pub fn may_take_registers(isa: &Isa, kernel: &Kernel) -> Result<(), String> {
    let refused = |why: &str| Err(why.to_owned());
    if limit::sets_its_limit(kernel) {
        return refused("its warps give registers back, or take more, as they run");
    }
    if is_held(isa, kernel, RegFile::R) {
        return refused("it has an instruction of which nobody here knows which registers it uses");
    }
    Ok(())
}

/// Something holds on to registers of the file in ways that are not known. An instruction that `semantics.tsv` does not describe may read
/// or write more of them than its operands say, and for longer. Products of warpgroups run on after issue, and take their sum from where
/// they put it. Bulk copies own their descriptors in uniform registers until they end, and no scoreboard in their words says when.
fn is_held(isa: &Isa, kernel: &Kernel, file: RegFile) -> bool {
    let forms = kernel.layouts.iter().filter_map(|l| isa.form(l.form));
    forms.map(|f| f.semantics()).any(|s| {
        let copies = s.pipe == Pipe::Uniform && s.space == Space::Generic;
        let runs_on = s.pipe == Pipe::Tensor && s.latency == Latency::Scoreboard;
        !s.known || copies && file == RegFile::UR || runs_on && file == RegFile::R
    })
}

/// Calls to unknown code, and returns to it, take and give every register that the section names: there it must name no other.
fn allowed(kernel: &Kernel, file: RegFile, reserved: &dyn Fn(Pin) -> bool) -> [bool; 256] {
    let unknown = |op: crate::Op<'_>| match op.layout().map(|l| l.flow) {
        Some(Flow::Call) => op.label().is_none(),
        Some(Flow::Return) => true,
        _ => false,
    };
    let mut allowed = [!kernel.ops().any(unknown); 256];
    let pins = kernel.pins.iter().filter(|p| p.file() == file && !p.is_zero());
    pins.for_each(|p| allowed[usize::from(p.number())] = true);
    for (number, allowed) in (0..=255).zip(&mut allowed) {
        *allowed &= !reserved(Pin::new(file, number));
    }
    allowed
}

/// An allocation within the palette's limit, if one is found.
fn below(webs: &Webs, interference: &Interference, palette: Palette) -> Option<Vec<(u32, u16)>> {
    let fixed = webs.clusters.iter().filter(|c| c.file == palette.file && c.fixed);
    let fits = fixed.map(|c| c.base + c.span()).all(|end| end <= palette.limit);
    let enough = interference.pressure[palette.file as usize] <= palette.limit;
    let rng = &mut Rng::new(1);
    (fits && enough).then(|| place(webs, interference, &palette, Choice::Lowest, rng))?
}

/// The allocation with the lowest top that is found, not above the palette's limit.
fn fewest(webs: &Webs, interference: &Interference, mut palette: Palette) -> Option<Vec<(u32, u16)>> {
    let mut rng = Rng::new(1);
    let fixed = webs.clusters.iter().filter(|c| c.file == palette.file && c.fixed);
    let fixed = fixed.map(|c| c.base + c.span()).max().unwrap_or(0);
    let mut best: Option<Vec<(u32, u16)>> = None;
    while let Some(placed) = place(webs, interference, &palette, Choice::Lowest, &mut rng) {
        let tops = placed.iter().map(|(c, b)| b + webs.clusters[*c as usize].span());
        let reached = tops.max().unwrap_or(0).max(fixed);
        best = Some(placed);
        if reached == 0 || reached <= fixed.max(interference.pressure[palette.file as usize]) {
            break;
        }
        palette.limit = reached - 1;
    }
    best
}
