//! Which words are of a class: masks and values, from flips that leave the class.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;

use super::lab::{Lab, assign};
use super::model::Model;
use super::refine::random_word;
use crate::nvdisasm::Class;

const OPCODE: u128 = 0xfff | 1 << 91;
/// Where flips are tried.
const BITS: std::ops::Range<u8> = 12..105;
/// Words of a class from which its first rows are made.
const WORDS: usize = 8;
/// Random words of a class that must match its rows.
const TRIALS: usize = 64;
/// Words of a class from which rows are made in one round, and rounds.
const STRAYS: usize = 4;
const ROUNDS: usize = 16;

type Row = (u128, u128);

/// The match rows of each class, beginning with those of its `words`. Every row fixes the opcode, bit 91 and the bits whose flip leaves
/// the class. Two bits can be of the class together and not alone, so that no flip of one row's words leads to another's: every
/// value of every selector, random words and the words in `known` are tried, and those without a row make one.
pub fn match_rows(
    lab: &mut Lab,
    models: &[Model],
    words: &BTreeMap<Class, Vec<u128>>,
    known: &[u128],
) -> Result<BTreeMap<Class, Vec<Row>>> {
    let mut rows: BTreeMap<Class, BTreeSet<Row>> = BTreeMap::new();
    let first = words
        .iter()
        .flat_map(|(&c, list)| list.iter().take(WORDS).map(move |&w| (c, w)));
    add_rows(lab, first.collect(), &mut rows)?;
    let mut tried = of_selectors(models);
    let mut random = fastrand::Rng::with_seed(17);
    for model in models {
        tried.extend((0..TRIALS).filter_map(|_| random_word(model, &mut random)));
    }
    tried.extend(known);
    let classes = lab.nvdisasm().classes(&tried)?;
    let tried: Vec<(Class, u128)> = classes
        .into_iter()
        .zip(tried)
        .filter_map(|(c, w)| Some((c?, w)))
        .collect();
    for _ in 0..ROUNDS {
        let mut strays: BTreeMap<Class, Vec<u128>> = BTreeMap::new();
        for &(class, word) in &tried {
            let Some(rows) = rows.get(&class) else { continue };
            if !rows.iter().any(|r| word & r.0 == r.1) {
                strays.entry(class).or_default().push(word);
            }
        }
        if strays.is_empty() {
            break;
        }
        let some = strays
            .into_iter()
            .flat_map(|(c, list)| list.into_iter().take(STRAYS).map(move |w| (c, w)));
        add_rows(lab, some.collect(), &mut rows)?;
    }
    Ok(rows
        .into_iter()
        .map(|(class, set)| (class, without_special_cases(set)))
        .collect())
}

/// The base of each model with each value of each selector.
fn of_selectors(models: &[Model]) -> Vec<u128> {
    let mut out = Vec::new();
    for model in models {
        let parts = model
            .parts
            .values()
            .flat_map(|(bits, t)| t.keys().map(move |&v| (bits, v)));
        let groups = model
            .groups
            .iter()
            .flat_map(|g| g.table.keys().map(move |&v| (&g.bits, v)));
        out.extend(parts.chain(groups).map(|(bits, v)| assign(model.base, bits, v)));
    }
    out
}

fn add_rows(lab: &Lab, chosen: Vec<(Class, u128)>, rows: &mut BTreeMap<Class, BTreeSet<Row>>) -> Result<()> {
    let flips: Vec<u128> = chosen
        .iter()
        .flat_map(|&(_, w)| BITS.map(move |b| w ^ 1 << b))
        .collect();
    let classes = lab.nvdisasm().classes(&flips)?;
    for (&(class, word), classes) in chosen.iter().zip(classes.chunks(BITS.len())) {
        let leaves = BITS.zip(classes).filter(|(_, c)| **c != Some(class));
        let mask = leaves.fold(OPCODE, |m, (b, _)| m | 1 << b);
        rows.entry(class).or_default().insert((mask, word & mask));
    }
    Ok(())
}

/// Drops rows that another row of the class already covers.
fn without_special_cases(rows: BTreeSet<Row>) -> Vec<Row> {
    let covers = |a: &Row, b: &Row| a.0 & b.0 == a.0 && b.1 & a.0 == a.1;
    rows.iter()
        .filter(|r| !rows.iter().any(|o| o != *r && covers(o, r)))
        .copied()
        .collect()
}
