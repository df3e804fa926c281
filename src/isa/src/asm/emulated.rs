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
        let first = (0..swap).rev().take_while(is_straight).find(is_first)?;
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
pub(super) struct Own {
    /// Of each load that may, its role.
    roles: Vec<(usize, Role)>,
    /// Of the first load of each loop, the pair; `None` if several loads may be its own.
    pairs: Vec<(usize, Option<u8>)>,
}

impl Own {
    pub fn of_load(&self, at: usize) -> Role {
        let known = self.roles.iter().find(|(load, _)| *load == at);
        known.map_or(Role::Other, |(_, role)| *role)
    }

    /// `None` if the instruction begins no loop.
    pub fn of_access(&self, at: usize) -> Option<Option<u8>> {
        self.pairs.iter().find(|(first, _)| *first == at).map(|(_, pair)| *pair)
    }
}

/// Finds the load of each loop. `held` has the pairs that hold the descriptor before an instruction.
///
/// It is the last on the straight way to the loop, if each one before it that is still there must be that of some access.
pub(super) fn own_loads(code: &Code<'_>, loops: &[Loop], held: impl Fn(usize) -> Pairs) -> Own {
    let mut own = Own {
        roles: Vec::new(),
        pairs: Vec::new(),
    };
    let is_other = |at: usize| code.is_access(at) && loops.iter().all(|l| l.first != at);
    let is_only = |pair: u8, at: usize| held(at) == 1 << pair && is_other(at);
    for l in loops {
        let run = code.run_start(l.first)..l.first;
        let loads: Vec<(usize, u8)> = run.filter_map(|at| Some((at, code.loads[at]?))).collect();
        let Some((&(last, pair), earlier)) = loads.split_last() else {
            own.pairs.push((l.first, None));
            continue;
        };
        let is_for_others = |&(load, pair): &(usize, u8)| {
            let is_lost = (load + 1..l.first).any(|at| code.overwrites(at, pair));
            let once = code.loads.iter().filter(|p| **p == Some(pair)).count() == 1;
            let mut reached = if once { 0..code.insts.len() } else { load..last };
            is_lost || reached.any(|at| is_only(pair, at))
        };
        let is_clear = earlier.iter().all(is_for_others);
        own.roles
            .push((last, if is_clear { Role::Loop } else { Role::Unclear }));
        own.pairs.push((l.first, is_clear.then_some(pair)));
    }
    own
}
