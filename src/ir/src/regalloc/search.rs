//! Placing what a greedy pass found no room for: each such cluster takes the place that costs others least, who then look for another.

use super::color::{Palette, Rng};
use super::interference::Interference;
use super::webs::Webs;

/// Moves after which there is taken to be no solution.
const MOVES: usize = 20_000;
/// A cluster does not go back to where it was driven out from for at least as many moves.
const TENURE: usize = 8;

/// Completes a placement, `base` by cluster, of which `homeless` have none. True if all found one.
pub(super) fn settle(
    webs: &Webs,
    interference: &Interference,
    palette: &Palette,
    base: &mut [Option<u16>],
    mut homeless: Vec<u32>,
    rng: &mut Rng,
) -> bool {
    // By cluster: a place, and until which move it may not be taken again.
    let mut banned: Vec<(u16, usize)> = vec![(0, 0); webs.clusters.len()];
    for moves in 0..MOVES {
        if homeless.is_empty() {
            return true;
        }
        let c = homeless.swap_remove(rng.below(homeless.len()));
        let cost = costs(webs, interference, base, c);
        let places: Vec<(u32, u16)> = palette
            .places(&webs.clusters[c as usize])
            .filter(|b| banned[c as usize].0 != *b || banned[c as usize].1 <= moves)
            .map(|b| (cost[usize::from(b)], b))
            .collect();
        let Some(least) = places.iter().map(|p| p.0).min().filter(|cost| *cost < FIXED) else {
            return false;
        };
        let best: Vec<u16> = places.iter().filter(|p| p.0 == least).map(|p| p.1).collect();
        let place = best[rng.below(best.len())];
        base[c as usize] = Some(place);
        for other in in_the_way(webs, interference, base, c, place) {
            if let Some(from) = base[other as usize].take() {
                banned[other as usize] = (from, moves + TENURE + rng.below(TENURE) + homeless.len());
                homeless.push(other);
            }
        }
    }
    homeless.is_empty()
}

/// What it costs to drive out what cannot be.
const FIXED: u32 = 1 << 20;

/// By first register: how many registers a cluster there would take away from others.
fn costs(webs: &Webs, interference: &Interference, base: &[Option<u16>], c: u32) -> [u32; 256] {
    let mut cost = [0; 256];
    for (to, offset, register) in around(webs, interference, base, c) {
        if let Some(first) = register.checked_sub(offset) {
            let other = &webs.clusters[to as usize];
            cost[usize::from(first).min(255)] += if other.fixed { FIXED } else { other.offsets.len() as u32 };
        }
    }
    cost
}

/// The clusters in whose registers a cluster would be.
fn in_the_way(webs: &Webs, interference: &Interference, base: &[Option<u16>], c: u32, place: u16) -> Vec<u32> {
    let hit = around(webs, interference, base, c).filter(|(_, offset, register)| place + offset == *register);
    let mut all: Vec<u32> = hit.map(|h| h.0).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// What a cluster may not share: for each of its lanes the placed clusters, the lane's offset, and the register that they have.
pub(super) fn around<'a>(
    webs: &'a Webs,
    interference: &'a Interference,
    base: &'a [Option<u16>],
    c: u32,
) -> impl Iterator<Item = (u32, u16, u16)> + 'a {
    let cluster = &webs.clusters[c as usize];
    cluster.offsets.iter().enumerate().flat_map(move |(n, &offset)| {
        let lanes = interference.neighbours[cluster.first_lane as usize + n].iter();
        lanes.filter_map(move |&lane| {
            let to = webs.cluster_of[lane as usize];
            let other = &webs.clusters[to as usize];
            let at = base[to as usize]?;
            Some((to, offset, at + other.offsets[(lane - other.first_lane) as usize]))
        })
    })
}
