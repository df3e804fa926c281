//! Which words are of a class: masks and values, from flips that leave the class.
//!
//! Of the rows that match a word the one with most mask bits decides. A row fixes the opcode, bit 91 and the bits of a word whose flip
//! leaves the class. That is not all: two bits can be of the class together and neither alone, and two can leave it together. So
//! words of every kind are tried, and rows are added where none matches, and narrowed where the wrong one does.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;

use super::lab::{Lab, assign, quiet};
use super::model::Model;
use super::refine::random_word;
use crate::nvdisasm::Class;

const OPCODE: u128 = 0xfff | 1 << 91;
/// Where flips are tried.
const BITS: std::ops::Range<u8> = 12..105;
/// Words of a class from which its first rows are made.
const WORDS: usize = 8;
/// Random words tried of each model, and of each row.
const TRIALS: usize = 64;
/// Words that a class, or a row, learns from in one round; rounds.
const LESSONS: usize = 4;
const ROUNDS: usize = 40;

/// Mask and value.
pub type Row = (u128, u128);

/// A row, and a word of another class that it decides on.
type Wrong = (Row, u128);

/// The match rows of each class, and words that they match.
pub type Matched = (BTreeMap<Class, Vec<Row>>, Vec<u128>);

/// The match rows of each class, beginning with those of its `words`; `known` are words that a compiler made.
pub fn match_rows(
    lab: &mut Lab,
    models: &[Model],
    words: &BTreeMap<Class, Vec<u128>>,
    known: &[u128],
) -> Result<Matched> {
    let mut random = fastrand::Rng::with_seed(17);
    let mut rows = Rows::default();
    let first = words
        .iter()
        .flat_map(|(&c, list)| list.iter().take(WORDS).map(move |&w| (c, w)));
    rows.add(lab, first.collect())?;
    let mut fresh = of_selectors(models);
    for model in models {
        fresh.extend((0..TRIALS).filter_map(|_| random_word(model, &mut random)));
    }
    fresh.extend(known);
    let mut tried: Vec<(Class, u128)> = Vec::new();
    let mut sampled: BTreeSet<Row> = BTreeSet::new();
    for _ in 0..ROUNDS {
        for &row in rows.origin.keys().filter(|r| sampled.insert(**r)) {
            let word = |_| quiet(row.1 | random.u128(..) & !row.0);
            fresh.extend((0..TRIALS).map(word));
        }
        lab.ask(fresh.iter().copied())?; // most are known
        tried.extend(fresh.drain(..).filter_map(|w| Some((lab.class(w)?, w))));
        let (strays, wrong) = rows.judge(&tried);
        if strays.is_empty() && wrong.is_empty() {
            break;
        }
        rows.add(lab, strays)?;
        rows.narrow(lab, wrong)?;
    }
    Ok((rows.essential(), tried.into_iter().map(|t| t.1).collect()))
}

/// The base of each model with each value of each selector.
fn of_selectors(models: &[Model]) -> Vec<u128> {
    let mut out = Vec::new();
    for model in models {
        let parts = model
            .parts
            .values()
            .map(|(bits, t)| (bits, t.keys().copied().collect()));
        let groups = model
            .groups
            .iter()
            .map(|g| (&g.bits, g.table.keys().copied().collect()));
        for (bits, values) in parts.chain(groups) {
            let values: Vec<u64> = values;
            out.extend(values.into_iter().map(|v| assign(model.base, bits, v)));
        }
    }
    out
}

/// The rows found so far.
#[derive(Default)]
struct Rows {
    /// Class and the word that each was made of.
    origin: BTreeMap<Row, (Class, u128)>,
}

impl Rows {
    /// Rows by opcode.
    fn by_opcode(&self) -> BTreeMap<u128, Vec<(Row, Class)>> {
        let mut out: BTreeMap<u128, Vec<(Row, Class)>> = BTreeMap::new();
        for (&row, &(class, _)) in &self.origin {
            out.entry(row.1 & OPCODE).or_default().push((row, class));
        }
        out
    }

    /// A few of `tried` that no row matches, and a few that a row of another class decides on.
    fn judge(&self, tried: &[(Class, u128)]) -> (Vec<(Class, u128)>, Vec<Wrong>) {
        let index = self.by_opcode();
        let known: BTreeSet<Class> = self.origin.values().map(|o| o.0).collect();
        let mut strays: BTreeMap<Class, Vec<u128>> = BTreeMap::new();
        let mut wrong: BTreeMap<Row, Vec<u128>> = BTreeMap::new();
        for &(class, word) in tried {
            let rows = index.get(&(word & OPCODE)).map_or(&[][..], Vec::as_slice);
            let matching = rows.iter().filter(|(r, _)| word & r.0 == r.1);
            match matching.max_by_key(|(r, c)| (r.0.count_ones(), *c != class)) {
                Some((_, own)) if *own == class => {}
                Some((row, _)) => wrong.entry(*row).or_default().push(word),
                None if known.contains(&class) => strays.entry(class).or_default().push(word),
                None => {}
            }
        }
        let strays = strays
            .into_iter()
            .flat_map(|(c, list)| list.into_iter().take(LESSONS).map(move |w| (c, w)));
        let wrong = wrong
            .into_iter()
            .flat_map(|(r, list)| list.into_iter().take(LESSONS).map(move |w| (r, w)));
        (strays.collect(), wrong.collect())
    }

    /// Adds the row of each word.
    fn add(&mut self, lab: &Lab, words: Vec<(Class, u128)>) -> Result<()> {
        let flips: Vec<u128> = words.iter().flat_map(|&(_, w)| BITS.map(move |b| w ^ 1 << b)).collect();
        let classes = lab.nvdisasm().classes(&flips)?;
        for (&(class, word), classes) in words.iter().zip(classes.chunks(BITS.len())) {
            let leaves = BITS.zip(classes).filter(|(_, c)| **c != Some(class));
            let mask = leaves.fold(OPCODE, |m, (b, _)| m | 1 << b);
            self.origin.insert((mask, word & mask), (class, word));
        }
        Ok(())
    }

    /// Narrows rows by words that they match and that are of another class: on the way from the row's own word to such a word, one
    /// changed bit after the other, some bit is the first to leave the class.
    fn narrow(&mut self, lab: &Lab, wrong: Vec<Wrong>) -> Result<()> {
        let ways: Vec<Vec<(u8, u128)>> = wrong
            .iter()
            .map(|(row, word)| {
                let mut at = self.origin[row].1;
                let differ = BITS.filter(|b| (at ^ word) >> b & 1 == 1).collect::<Vec<_>>();
                let step = |b: u8| {
                    at ^= 1u128 << b;
                    (b, at)
                };
                differ.into_iter().map(step).collect()
            })
            .collect();
        let steps: Vec<u128> = ways.iter().flatten().map(|s| s.1).collect();
        let mut classes = lab.nvdisasm().classes(&steps)?.into_iter();
        let mut more: BTreeMap<Row, u128> = BTreeMap::new();
        for ((row, _), way) in wrong.iter().zip(&ways) {
            let class = self.origin[row].0;
            let left = classes.by_ref().take(way.len()).position(|c| c != Some(class));
            // The rest of this way has to be passed over.
            if let Some(i) = left {
                let rest = way.len() - i - 1;
                classes.by_ref().take(rest).for_each(drop);
                *more.entry(*row).or_default() |= 1 << way[i].0;
            }
        }
        for (row, bits) in more {
            if let Some((class, word)) = self.origin.remove(&row) {
                let mask = row.0 | bits;
                self.origin.insert((mask, word & mask), (class, word));
            }
        }
        Ok(())
    }

    /// The rows of each class without those that another row of the class covers, unless they decide against a third class's.
    fn essential(self) -> BTreeMap<Class, Vec<Row>> {
        let index = self.by_opcode();
        let covers = |a: &Row, b: &Row| a.0 & b.0 == a.0 && b.1 & a.0 == a.1;
        let meet = |a: &Row, b: &Row| (a.1 ^ b.1) & a.0 & b.0 == 0;
        let mut out: BTreeMap<Class, Vec<Row>> = BTreeMap::new();
        for (row, (class, _)) in &self.origin {
            let rows = &index[&(row.1 & OPCODE)];
            let decides = |wide: &Row| {
                let rivals = rows.iter().filter(|(r, c)| c != class && meet(r, row));
                rivals.map(|(r, _)| r.0.count_ones()).any(|n| n > wide.0.count_ones())
            };
            let wider = rows.iter().filter(|(r, c)| c == class && r != row && covers(r, row));
            if !wider.map(|(r, _)| r).any(|r| !decides(r)) {
                out.entry(*class).or_default().push(*row);
            }
        }
        out
    }
}
