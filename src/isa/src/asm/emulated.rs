//! The loops that `ptxas` makes of atomic operations on halves, which need to know what is there before they compare and swap:
//!
//! ```text
//!         ULDC.64 UR6, c[0x0][0x118] ;
//! .L_8:   LD.E R9, [R4.64] ;                              // through UR6
//! .L_1:   HADD2 R10, R9, R11.H0_H0 ;
//! .L_9:   ATOM.E.CAS.STRONG.GPU PT, R13, [R4], R9, R13 ;
//! ```
//!
//! Each first load has a load of the descriptor of its own, which nothing else uses, on the straight way to it. An attribute records the
//! places of both accesses, so that listings have labels there that no instruction names.

use std::collections::{HashMap, HashSet};

use super::descriptor::{Code, Mark, Pairs};
use crate::Terminator;

/// Such a loop.
pub(super) struct Loop {
    /// Its first load.
    pub first: usize,
    /// The access that compares and swaps.
    pub swap: usize,
}

/// The loops of a section whose first load names a descriptor. Those that exchange halves name none.
pub(super) fn loops(code: &Code<'_>) -> Vec<Loop> {
    let marked = |at: &usize| code.marks[*at] == Mark::Unnamed;
    let is_swap = |at: &usize| is(code, *at, &["ATOM", "ATOMG"], "CAS");
    let is_straight = |at: &usize| code.isa.semantics(code.insts[*at]).terminator == Terminator::None;
    let loop_of = |swap: usize| {
        let is_first = |at: &usize| marked(at) && is(code, *at, &["LD", "LDG"], "E");
        let is_between = |at: &usize| is_straight(at) && !(marked(at) && is_swap(at));
        let first = (0..swap).rev().take_while(is_between).find(is_first)?;
        code.is_access(first).then_some(Loop { first, swap })
    };
    (0..code.insts.len())
        .filter(marked)
        .filter(is_swap)
        .filter_map(loop_of)
        .collect()
}

fn is(code: &Code<'_>, at: usize, mnemonics: &[&str], modifier: &str) -> bool {
    let inst = code.insts[at];
    let mnemonic = code.isa.form(inst.form).map_or("", |form| form.mnemonic());
    mnemonics.contains(&mnemonic) && code.isa.has_modifier(inst, modifier)
}

/// What a load of the descriptor is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// The first load of a loop alone.
    Loop,
    /// That, or for other accesses.
    Unclear,
    /// Other accesses.
    Other,
}

/// The loads of the descriptor that belong to loops.
#[derive(Default)]
pub(super) struct Own {
    roles: HashMap<usize, Role>,
    /// Of the first load of each loop, the pair; `None` if several loads may be its own.
    pub pairs: HashMap<usize, Option<u8>>,
}

impl Own {
    /// What a load of the descriptor is for.
    pub fn role(&self, load: usize) -> Role {
        self.roles.get(&load).copied().unwrap_or(Role::Other)
    }
}

/// Finds the load of each loop. `held` has the pairs that hold the descriptor before an instruction.
///
/// It is the last on the straight way to the loop, if each one before it that is still there must be that of some access: of one between the
/// two, or, if nothing else loads the pair, of any.
pub(super) fn own_loads(code: &Code<'_>, loops: &[Loop], held: impl Fn(usize) -> Pairs) -> Own {
    let firsts: HashSet<usize> = loops.iter().map(|l| l.first).collect();
    let only_pair = |at: usize| {
        let is_other = held(at).count_ones() == 1 && code.is_access(at) && !firsts.contains(&at);
        if is_other { held(at) } else { 0 }
    };
    let taken = (0..code.insts.len()).fold(0, |pairs, at| pairs | only_pair(at)) & loaded_once(code);
    let mut own = Own::default();
    let mut end = 0;
    for l in loops {
        let way = (end..l.first).rev().take_while(|at| code.is_straight(at + 1));
        end = l.swap + 1;
        let (mut last, mut others, mut unclear) = (None, taken, false);
        for at in way {
            match (last, code.loads[at]) {
                (None, Some(pair)) => last = Some((at, pair)),
                (Some(_), Some(pair)) => unclear |= others >> pair & 1 == 0,
                (Some(_), None) => others |= only_pair(at),
                (None, None) => {}
            }
            others |= code.overwritten(at);
        }
        if let Some((load, _)) = last {
            own.roles.insert(load, if unclear { Role::Unclear } else { Role::Loop });
        }
        let pair = last.filter(|_| !unclear).map(|(_, pair)| pair);
        own.pairs.insert(l.first, pair);
    }
    own
}

/// The pairs that a section loads in one place.
fn loaded_once(code: &Code<'_>) -> Pairs {
    let loads = code.loads.iter().flatten();
    let (once, more): (Pairs, Pairs) =
        loads.fold((0, 0), |(once, more), pair| (once | 1 << pair, more | once & 1 << pair));
    once & !more
}
