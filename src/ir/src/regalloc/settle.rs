//! Values that are read where their register holds something else by then, as edits leave them: they get registers of their own.

use std::collections::{HashMap, HashSet};

use isa::{Isa, RegFile};

use super::color::{Palette, free_places};
use super::interference::Interference;
use super::webs::{Webs, top};
use super::{Constraints, allowed, limit, stays};
use crate::check::pins_hold;
use crate::kernel::{Kernel, OpKind};
use crate::pin::Pin;

/// Moves as few groups of values as it takes to registers that nothing needs meanwhile, so that every use finds its value; gives their
/// number. Others stay where they are, and the kernel takes no more registers than it has. On an error nothing changed, and the error says
/// which use cannot be helped.
pub fn settle(kernel: &mut Kernel, constraints: &Constraints) -> Result<usize, String> {
    let Err(lost) = pins_hold(kernel) else {
        return Ok(0);
    };
    let mut settled = kernel.clone();
    let moved = move_apart(&mut settled, constraints).and_then(|n| match pins_hold(&settled) {
        Ok(()) => Ok(n),
        Err(_) => Err("no other registers make up for it".to_owned()),
    });
    match moved {
        Ok(n) => {
            *kernel = settled;
            Ok(n)
        }
        Err(why) => Err(format!(
            "at {:#x}: {}; {why}",
            kernel.op(lost.op).offset(),
            lost.message
        )),
    }
}

fn move_apart(kernel: &mut Kernel, constraints: &Constraints) -> Result<usize, String> {
    let isa = Isa::for_target(kernel.target).map_err(|e| e.to_string())?;
    let reserved = |pin: Pin| constraints.reserved.contains(&pin);
    let mut webs = Webs::new(isa, kernel, &reserved)?;
    let within_limits = limit::bound(isa, kernel, &mut webs);
    let interference = Interference::new(isa, kernel, &webs, constraints.in_flight.as_deref())?;
    let homeless = in_the_way(kernel, &webs, &interference);
    let mut base: Vec<Option<u16>> = webs.bases().into_iter().map(Some).collect();
    homeless.iter().for_each(|c| base[*c as usize] = None);
    let mut palettes: HashMap<RegFile, Palette> = HashMap::new();
    for &c in &homeless {
        let cluster = &webs.clusters[c as usize];
        let file = cluster.file;
        if cluster.fixed || stays(isa, kernel, &interference, within_limits, file) {
            return Err(format!("the values in {}{} cannot move", file.name(), cluster.base));
        }
        let palette = palettes.entry(file).or_insert_with(|| Palette {
            file,
            limit: top(kernel, file),
            allowed: allowed(kernel, file, &reserved),
        });
        let place = free_places(&webs, &interference, &base, palette, c).next();
        base[c as usize] =
            Some(place.ok_or_else(|| format!("no other register of file {} is free there", file.name()))?);
    }
    let base: Vec<u16> = base.into_iter().flatten().collect();
    let before = kernel.pins.clone();
    webs.put(kernel, &base);
    drop_reuse_around(kernel, &before);
    Ok(homeless.len())
}

/// Clusters to move: of every two that clash one, those in most clashes first; and those whose values are not where their first is.
fn in_the_way(kernel: &Kernel, webs: &Webs, interference: &Interference) -> Vec<u32> {
    let bases = webs.bases();
    let torn = kernel.values().filter_map(|v| {
        let lane = *webs.lane.get(v.index()).filter(|l| **l != super::webs::NO_LANE)?;
        let here = webs.register(lane, &bases) == u16::from(kernel.pin(v).number());
        (!here).then_some(webs.cluster_of[lane as usize])
    });
    let mut moved: Vec<u32> = torn.collect();
    let cluster = |lane: u32| webs.cluster_of[lane as usize];
    let mut clashes: HashSet<(u32, u32)> = interference
        .clashes
        .iter()
        .map(|(a, b)| (cluster(*a), cluster(*b)))
        .collect();
    loop {
        clashes.retain(|(a, b)| !moved.contains(a) && !moved.contains(b));
        let mut counts: HashMap<u32, usize> = HashMap::new();
        clashes
            .iter()
            .flat_map(|(a, b)| [a, b])
            .for_each(|c| *counts.entry(*c).or_default() += 1);
        let weight = |c: u32| {
            let cluster = &webs.clusters[c as usize];
            (
                !cluster.fixed,
                counts[&c],
                std::cmp::Reverse(cluster.span()),
                cluster.born,
                c,
            )
        };
        match counts.keys().copied().max_by_key(|c| weight(*c)) {
            Some(c) => moved.push(c),
            None => break,
        }
    }
    moved.sort_unstable();
    moved.dedup();
    moved
}

/// The operand cache may hold the old content of a register that a value moved into: nothing is kept in it around those.
fn drop_reuse_around(kernel: &mut Kernel, before: &[Pin]) {
    let changed = kernel.pins.iter().zip(before).filter(|(now, old)| now != old);
    let touched: HashSet<Pin> = changed.flat_map(|(now, old)| [*now, *old]).collect();
    for at in 0..kernel.kinds.len() {
        let operands = kernel.operand_start[at] as usize..kernel.operand_start[at + 1] as usize;
        let mut pins = kernel.operands[operands].iter().map(|v| kernel.pins[v.index()]);
        if kernel.kinds[at] == OpKind::Inst && pins.any(|p| touched.contains(&p)) {
            let layout = &kernel.layouts[kernel.op_layout[at] as usize];
            kernel.words[at].0 &= !layout.reuse_flags(kernel.words[at]);
        }
    }
}
