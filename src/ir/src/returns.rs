//! Return addresses: which instructions make the address behind a call, so that the call is known to come back.
//!
//! A call without a hardware stack (`NOINC`) that comes back finds, in some register, the offset of the instruction behind it. Code
//! makes it as an immediate, in any instruction that only moves: `MOV`, `UMOV`, `IMAD.MOV`, `HFMA2.MMA` with both halves as floats.
//! The value is followed forward, through copies and over branches, to the call; a number that merely looks like the address does not
//! count.

use std::collections::HashMap;

use isa::RegFile;

use crate::cfg::{Decoded, Role};
use crate::layout::{Flow, Layout};
use crate::pin::Pin;

/// Instructions that copy a register when it is the only one they read.
const COPIES: &[&str] = &["MOV", "UMOV", "IMAD", "R2UR", "IADD3"];
/// Instructions that one address is followed over.
const BUDGET: usize = 1 << 14;

/// The addresses that immediates make, each with the instruction that makes it; sorted.
pub(crate) struct Addresses(Vec<(u32, u32)>);

impl Addresses {
    pub fn new(code: &Decoded<'_>) -> Addresses {
        let mut made = Vec::new();
        for i in 0..code.words.len() {
            // Most immediates are no address.
            let value = code.words[i].bits(63, 32) as u32;
            if value.is_multiple_of(16) && value as usize <= code.words.len() * 16 && makes_immediate(code, i) {
                made.push((value, i as u32));
            }
        }
        made.sort_unstable();
        Addresses(made)
    }

    fn makers(&self, address: u32) -> impl Iterator<Item = u32> + '_ {
        let first = self.0.partition_point(|(made, _)| *made < address);
        let same = self.0[first..].iter().take_while(move |(made, _)| *made == address);
        same.map(|(_, maker)| *maker)
    }

    /// The instructions in a range that make an address.
    pub fn made_between(&self, address: u32, from: u32, to: u32) -> Vec<u32> {
        self.makers(address).filter(|m| (from..to).contains(m)).collect()
    }

    /// The instructions that make the address behind the call at `call`, from which it gets there in a register.
    pub fn reaching(&self, code: &Decoded<'_>, roles: &[(u32, Role)], call: u32) -> Vec<u32> {
        let makers = self.makers((call + 1) * 16);
        makers.filter(|&m| reaches(code, roles, m, call)).collect()
    }
}

/// The instruction puts a 32-bit immediate, bits 63:32, into a register and does nothing else.
fn makes_immediate(code: &Decoded<'_>, i: usize) -> bool {
    let word = code.words[i];
    // Operand form: an immediate in the second or third place, which is those bits either way.
    matches!(word.bits(11, 9), 2 | 4)
        && code.layout_of(i).is_some_and(|layout| {
            let plain = layout.flow == Flow::None && !layout.has_label;
            plain && written(layout, word).is_some() && sources(layout, word).count() == 0
        })
}

/// The only register that the instruction writes, if it is a general or a uniform one.
fn written(layout: &Layout, word: isa::Word) -> Option<Pin> {
    let (mut first, mut count) = (None, 0);
    layout.each_write(word, |pin| {
        first = Some(pin);
        count += 1;
    });
    first.filter(|p| count == 1 && matches!(p.file(), RegFile::R | RegFile::UR))
}

/// The registers that it reads beside its guard.
fn sources(layout: &Layout, word: isa::Word) -> impl Iterator<Item = Pin> {
    let slots = layout.slots.iter().skip(usize::from(layout.has_guard()));
    slots
        .filter(|s| s.reads())
        .flat_map(move |s| s.pins(word))
        .filter(|p| !p.is_zero())
}

/// Whether what instruction `maker` writes is in a register at `call`, on some path.
fn reaches(code: &Decoded<'_>, roles: &[(u32, Role)], maker: u32, call: u32) -> bool {
    let layout_of = |i: u32| code.layout_of(i as usize);
    let Some(first) = layout_of(maker).and_then(|l| written(l, code.words[maker as usize])) else {
        return false;
    };
    // Where branches and joins were passed: the registers that held the value then.
    let mut seen: HashMap<u32, Vec<Pin>> = HashMap::new();
    let mut work = vec![(maker + 1, vec![first])];
    let mut budget = BUDGET;
    while let Some((mut at, mut holders)) = work.pop() {
        while (at as usize) < code.words.len() && !holders.is_empty() {
            if at == call {
                return true;
            }
            budget -= 1;
            if budget == 0 {
                return false;
            }
            let role = roles.binary_search_by_key(&at, |r| r.0).ok().map(|r| &roles[r].1);
            let (targets, goes_on) = match role {
                Some(Role::Branch { target, conditional }) => (target.as_slice().to_vec(), *conditional),
                Some(Role::Indirect { targets, conditional }) => (targets.clone().unwrap_or_default(), *conditional),
                Some(Role::Leave { conditional }) => (Vec::new(), *conditional),
                _ => (Vec::new(), true),
            };
            for to in targets {
                let known = seen.entry(to).or_default();
                let before = known.len();
                holders.iter().for_each(|p| {
                    if !known.contains(p) {
                        known.push(*p)
                    }
                });
                if known.len() > before {
                    work.push((to, known.clone()));
                }
            }
            if !goes_on {
                break;
            }
            if let Some(layout) = layout_of(at) {
                step(code, layout, code.words[at as usize], &mut holders);
            }
            at += 1;
        }
    }
    false
}

/// What an instruction does to the set of registers that hold the value.
fn step(code: &Decoded<'_>, layout: &Layout, word: isa::Word, holders: &mut Vec<Pin>) {
    let copies = || {
        let mut read = sources(layout, word);
        let only = read.next().filter(|p| holders.contains(p) && read.next().is_none());
        let mnemonic = code.isa.form(layout.form).map_or("", |f| f.mnemonic());
        only.is_some() && COPIES.contains(&mnemonic) && !matches!(word.bits(11, 9), 2 | 4)
    };
    let to = written(layout, word).filter(|_| copies());
    if !layout.is_guarded(word) {
        layout.each_write(word, |pin| holders.retain(|h| *h != pin));
    }
    if let Some(pin) = to.filter(|p| !holders.contains(p)) {
        holders.push(pin);
    }
}
