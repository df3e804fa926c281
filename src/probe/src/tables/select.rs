//! Which words are of a class: masks and values, from flips that leave the class.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;

use crate::nvdisasm::{Class, Nvdisasm};

const OPCODE: u128 = 0xfff | 1 << 91;
/// Words of a class from which its rows are made.
const WORDS: usize = 8;

/// The match rows of each class. Every row fixes the opcode, bit 91 and the bits whose flip leaves the class.
pub fn match_rows(nv: &Nvdisasm, words: &BTreeMap<Class, Vec<u128>>) -> Result<BTreeMap<Class, Vec<(u128, u128)>>> {
    let chosen: Vec<(Class, u128)> = words
        .iter()
        .flat_map(|(&c, list)| list.iter().take(WORDS).map(move |&w| (c, w)))
        .collect();
    let flips: Vec<u128> = chosen
        .iter()
        .flat_map(|&(_, w)| (12..105).map(move |b| w ^ 1 << b))
        .collect();
    let mut rows: BTreeMap<Class, BTreeSet<(u128, u128)>> = BTreeMap::new();
    for (&(class, word), classes) in chosen.iter().zip(nv.classes(&flips)?.chunks(93)) {
        let leaves = (12u8..105).zip(classes).filter(|(_, c)| **c != Some(class));
        let mask = leaves.fold(OPCODE, |m, (b, _)| m | 1 << b);
        rows.entry(class).or_default().insert((mask, word & mask));
    }
    Ok(rows
        .into_iter()
        .map(|(class, set)| (class, without_special_cases(set)))
        .collect())
}

/// Drops rows that another row of the class already covers.
fn without_special_cases(rows: BTreeSet<(u128, u128)>) -> Vec<(u128, u128)> {
    let covers = |a: &(u128, u128), b: &(u128, u128)| a.0 & b.0 == a.0 && b.1 & a.0 == a.1;
    rows.iter()
        .filter(|r| !rows.iter().any(|o| o != *r && covers(o, r)))
        .copied()
        .collect()
}
