//! Placing clusters: greedily, in an order that puts what failed before in front.

use std::cmp::Reverse;

use isa::RegFile;

use super::interference::Interference;
use super::search::{around, settle};
use super::webs::{Cluster, Webs};

/// Attempts with one limit, from each order, before it is taken for impossible.
const ATTEMPTS: usize = 24;

/// How a free place is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    Lowest,
    /// Any, by the generator's state.
    Random,
}

/// A small generator (xorshift64*): the same seed gives the same allocation everywhere.
pub(crate) struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Rng {
        Rng(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        ((self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) as usize * n) >> 32
    }
}

/// The registers to choose from.
#[derive(Clone, Copy)]
pub(crate) struct Palette {
    pub file: RegFile,
    /// All below it.
    pub limit: u16,
    /// Of these, those that are allowed.
    pub allowed: [bool; 256],
}

impl Palette {
    /// Where a cluster could begin if it were alone.
    pub fn places(&self, cluster: &Cluster) -> impl Iterator<Item = u16> {
        let last = (self.limit + 1).saturating_sub(cluster.span()).min(cluster.end);
        let allowed = |b: &u16| cluster.offsets.iter().all(|o| self.allowed[usize::from(b + o)]);
        (cluster.base % cluster.align..last)
            .step_by(cluster.align.into())
            .filter(allowed)
    }
}

/// Where each cluster of a file begins; `None` if no attempt succeeds.
pub(crate) fn place(
    webs: &Webs,
    interference: &Interference,
    palette: &Palette,
    choice: Choice,
    rng: &mut Rng,
) -> Option<Vec<(u32, u16)>> {
    let file = palette.file;
    let free: Vec<u32> = (0..webs.clusters.len() as u32)
        .filter(|c| webs.clusters[*c as usize].file == file && !webs.clusters[*c as usize].fixed)
        .collect();
    let placed = |base: &[Option<u16>]| free.iter().map(|c| (*c, base[*c as usize].unwrap_or(0))).collect();
    // The one with the fewest that found no place.
    let mut best: Option<(Vec<Option<u16>>, Vec<u32>)> = None;
    for mut order in orders(webs, interference, free.clone(), choice, rng) {
        for _ in 0..ATTEMPTS {
            let (base, failed) = attempt(webs, interference, &order, palette, choice, rng);
            if failed.is_empty() {
                return Some(placed(&base));
            }
            // What found no place comes first next time.
            let (front, back): (Vec<u32>, Vec<u32>) = order.iter().partition(|c| failed.binary_search(c).is_ok());
            order = front.into_iter().chain(back).collect();
            if best.as_ref().is_none_or(|b| failed.len() < b.1.len()) {
                best = Some((base, failed));
            }
        }
    }
    let (mut base, homeless) = best?;
    settle(webs, interference, palette, &mut base, homeless, rng).then(|| placed(&base))
}

/// Orders to begin with.
fn orders(webs: &Webs, interference: &Interference, mut all: Vec<u32>, choice: Choice, rng: &mut Rng) -> Vec<Vec<u32>> {
    let cluster = |c: &u32| &webs.clusters[*c as usize];
    match choice {
        Choice::Lowest => {
            let degree = |c: &u32| -> usize {
                let lanes = cluster(c).first_lane..cluster(c).first_lane + cluster(c).offsets.len() as u32;
                lanes.map(|l| interference.neighbours[l as usize].len()).sum()
            };
            // In the order of the code, which fills every gap where values only live and die; what needs much room before that; and what
            // has many neighbours before that.
            all.sort_by_key(|c| cluster(c).born);
            let in_code = all.clone();
            all.sort_by_key(|c| Reverse((cluster(c).align, cluster(c).span())));
            let wide_first = all.clone();
            all.sort_by_key(|c| Reverse((cluster(c).align, cluster(c).span(), degree(c))));
            vec![all, wide_first, in_code]
        }
        Choice::Random => {
            for i in (1..all.len()).rev() {
                all.swap(i, rng.below(i + 1));
            }
            all.sort_by_key(|c| Reverse(cluster(c).span()));
            vec![all]
        }
    }
}

/// Where a cluster can begin beside those that are placed.
pub(crate) fn free_places(
    webs: &Webs,
    interference: &Interference,
    base: &[Option<u16>],
    palette: &Palette,
    c: u32,
) -> impl Iterator<Item = u16> + use<> {
    let mut taken = [false; 256];
    for (_, offset, register) in around(webs, interference, base, c) {
        if let Some(first) = register.checked_sub(offset) {
            taken[usize::from(first).min(255)] = true;
        }
    }
    let all: Vec<u16> = palette.places(&webs.clusters[c as usize]).collect();
    all.into_iter().filter(move |b| !taken[usize::from(*b)])
}

/// One pass over `order`: where each cluster begins, and those that found no place, sorted.
fn attempt(
    webs: &Webs,
    interference: &Interference,
    order: &[u32],
    palette: &Palette,
    choice: Choice,
    rng: &mut Rng,
) -> (Vec<Option<u16>>, Vec<u32>) {
    let mut base: Vec<Option<u16>> = webs.clusters.iter().map(|c| c.fixed.then_some(c.base)).collect();
    let mut failed = Vec::new();
    for &c in order {
        let mut free = free_places(webs, interference, &base, palette, c);
        base[c as usize] = match choice {
            Choice::Lowest => free.next(),
            Choice::Random => {
                let all: Vec<u16> = free.collect();
                (!all.is_empty()).then(|| all[rng.below(all.len())])
            }
        };
        if base[c as usize].is_none() {
            failed.push(c);
        }
    }
    failed.sort_unstable();
    (base, failed)
}
