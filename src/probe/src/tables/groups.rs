//! Selectors: which bits choose a modifier or an operand's shape together, and what each of their values prints.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;

use super::lab::{Lab, assign, field_bits, flip};
use super::model::{Key, Model, ModifierGroup, Part};
use super::splice::splices;
use crate::rules::Rule;
use crate::text::{Hole, Terms, Text};

/// Selectors are enumerated whole, so they cannot be wider.
pub const WIDEST: usize = 11;
/// Above this many, pairs with a bit that shows nothing alone are left out.
const MANY_PAIRS: usize = 2500;

/// Adds guard, shape and modifier selectors to the models.
pub fn selectors(lab: &mut Lab, models: &mut [Model]) -> Result<()> {
    let plans: Vec<Plan> = models.iter().map(Plan::new).collect();
    lab.ask(
        models
            .iter()
            .zip(&plans)
            .flat_map(|(m, p)| p.pairs.iter().map(|&(i, j)| flip(flip(m.base, i), j))),
    )?;
    let found: Vec<Bits> = models.iter().zip(&plans).map(|(m, p)| p.analyse(lab, m)).collect();
    let every =
        |bits: &[u8], base: u128| -> Vec<u128> { (0..1u64 << bits.len()).map(|v| assign(base, bits, v)).collect() };
    lab.ask(models.iter().zip(&found).flat_map(|(m, f)| {
        f.parts
            .values()
            .chain(&f.modifiers)
            .flat_map(|bits| every(bits, m.base))
            .collect::<Vec<_>>()
    }))?;
    for (model, bits) in models.iter_mut().zip(found) {
        for (part, bits) in bits.parts {
            let table = enumerate(lab, model, &bits, |t| part_text(t, part));
            model.parts.insert(part, (bits, table));
        }
        for bits in bits.modifiers {
            let lists = enumerate(lab, model, &bits, |t| Some(t.modifiers.clone()));
            let table = lists
                .into_iter()
                .map(|(v, list)| (v, splices(&model.shown.modifiers, &list)))
                .collect();
            model.groups.push(ModifierGroup { bits, table, rank: 0 });
        }
    }
    for model in models.iter_mut() {
        for bit in fixed_bits(lab, model) {
            let refused = flip(model.base, bit) & (1 << bit);
            model.rules.0.push(Rule::refuse(1 << bit, refused));
        }
    }
    rank(lab, models)
}

/// Bits that no field or selector has, and that are not legal in any other state. (A word of no class at all is not legal either.)
fn fixed_bits(lab: &Lab, model: &Model) -> Vec<u8> {
    let known = model.known_bits();
    let refused = |word: u128| !lab.is_legal(word) && !lab.is_of_another(word, model.class);
    let candidates = field_bits().filter(|&b| b < 105 && b != 91 && known >> b & 1 == 0);
    candidates.filter(|&b| refused(flip(model.base, b))).collect()
}

/// What `text` shows for a part.
pub fn part_text(text: &Text, part: Part) -> Option<Box<str>> {
    match part {
        Part::Guard => Some(text.guard.into()),
        Part::Shape(i) => text.operands.get(i as usize).map(|o| o.shape.clone()),
    }
}

/// What each value of `bits` shows, for the values that are legal.
pub fn enumerate<T>(lab: &Lab, model: &Model, bits: &[u8], show: impl Fn(&Text) -> Option<T>) -> BTreeMap<u64, T> {
    let see = |v: u64| model.see(lab, assign(model.base, bits, v)).as_ref().and_then(&show);
    (0..1u64 << bits.len()).filter_map(|v| Some((v, see(v)?))).collect()
}

/// The selectors of a model, by bits.
struct Bits {
    parts: BTreeMap<Part, Vec<u8>>,
    modifiers: Vec<Vec<u8>>,
}

/// Which pairs of bits to flip.
struct Plan {
    bits: Vec<u8>,
    pairs: Vec<(u8, u8)>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Part(Part),
    Modifiers,
}

/// What differs between two texts, numbers aside.
fn differences(a: &Text, b: &Text) -> Vec<What> {
    let mut out = Vec::new();
    let shown = |t: &Text| if t.guard.is_empty() { None } else { Some(t.guard) };
    if shown(a).unwrap_or("@P") != shown(b).unwrap_or("@P") {
        out.push(What::Part(Part::Guard));
    }
    if a.modifiers != b.modifiers || a.mnemonic != b.mnemonic {
        out.push(What::Modifiers);
    }
    for (i, (x, y)) in a.operands.iter().zip(&b.operands).enumerate() {
        if x.shape != y.shape {
            out.push(What::Part(Part::Shape(i as u8)));
        }
    }
    out
}

impl Plan {
    fn new(model: &Model) -> Self {
        let mut numeric: BTreeSet<u8> = BTreeSet::new();
        for (key, linear) in &model.numbers {
            let certain = match key {
                Key::Guard => true,
                Key::Hole(_, hole, _) => linear.weights.len() >= 5 || matches!(hole, Hole::P | Hole::Up),
            };
            if certain {
                numeric.extend(linear.weights.keys());
            }
        }
        numeric.extend(model.floats.values().flat_map(|f| f.bits()));
        let silent = |b: &u8| {
            model
                .single
                .get(b)
                .is_some_and(|t| t.as_ref().is_some_and(|t| same_but_reuse(t, &model.shown)))
        };
        let bits: Vec<u8> = field_bits().filter(|b| *b != 91 && !numeric.contains(b)).collect();
        let mut pairs = Vec::new();
        for (n, &i) in bits.iter().enumerate() {
            pairs.extend(
                bits[n + 1..]
                    .iter()
                    .map(|&j| (i, j))
                    .filter(|(i, j)| !(silent(i) && silent(j))),
            );
        }
        if pairs.len() > MANY_PAIRS {
            pairs.retain(|(i, j)| !silent(i) && !silent(j));
        }
        Self { bits, pairs }
    }

    fn analyse(&self, lab: &Lab, model: &Model) -> Bits {
        let mut touched: BTreeMap<What, BTreeSet<u8>> = BTreeMap::new();
        let mut joint: BTreeSet<(u8, u8)> = BTreeSet::new(); // pairs that move the modifiers only together
        for &bit in &self.bits {
            if let Some(text) = model.single[&bit].as_ref() {
                for what in differences(&model.shown, text) {
                    touched.entry(what).or_default().insert(bit);
                }
            }
        }
        for &(i, j) in &self.pairs {
            let Some(text) = model.see(lab, flip(flip(model.base, i), j)) else {
                continue;
            };
            // A bit that is not legal alone acts with the other.
            let from = match (&model.single[&i], &model.single[&j]) {
                (Some(_), Some(_)) => continue,
                (None, None) => &model.shown,
                (Some(one), None) | (None, Some(one)) => one,
            };
            for what in differences(from, &text) {
                touched.entry(what).or_default().extend([i, j]);
                if what == What::Modifiers {
                    joint.insert((i, j));
                }
            }
        }
        let mut parts = BTreeMap::new();
        let mut modifiers = Vec::new();
        for (what, bits) in touched {
            match what {
                What::Part(part) => {
                    let mut bits: Vec<u8> = bits.into_iter().collect();
                    if bits.len() > WIDEST {
                        bits.retain(|b| {
                            let text = model.single[b].as_ref();
                            text.is_some_and(|t| part_text(t, part) != part_text(&model.shown, part))
                        });
                        bits.truncate(WIDEST);
                    }
                    parts.insert(part, bits);
                }
                What::Modifiers => modifiers = self.group(lab, model, &bits, &joint),
            }
        }
        Bits { parts, modifiers }
    }

    /// Splits the bits that move modifiers into groups that act independently.
    fn group(&self, lab: &Lab, model: &Model, bits: &BTreeSet<u8>, joint: &BTreeSet<(u8, u8)>) -> Vec<Vec<u8>> {
        let mut root: BTreeMap<u8, u8> = bits.iter().map(|&b| (b, b)).collect();
        let find = |root: &BTreeMap<u8, u8>, mut b: u8| {
            while root[&b] != b {
                b = root[&b];
            }
            b
        };
        let list: Vec<u8> = bits.iter().copied().collect();
        for (n, &i) in list.iter().enumerate() {
            for &j in &list[n + 1..] {
                if joint.contains(&(i, j)) || self.interact(lab, model, i, j) {
                    let (a, b) = (find(&root, i), find(&root, j));
                    root.insert(a.max(b), a.min(b));
                }
            }
        }
        let mut groups: BTreeMap<u8, Vec<u8>> = BTreeMap::new();
        for &b in &list {
            groups.entry(find(&root, b)).or_default().push(b);
        }
        groups
            .into_values()
            .map(|mut g| {
                g.truncate(WIDEST);
                g
            })
            .collect()
    }

    /// Whether two bits, each legal alone, do together something else than the sum of what they do alone.
    fn interact(&self, lab: &Lab, model: &Model, i: u8, j: u8) -> bool {
        let (Some(a), Some(b)) = (&model.single[&i], &model.single[&j]) else {
            return false;
        };
        let word = flip(flip(model.base, i), j);
        let Some(both) = model.see(lab, word) else {
            return lab.class(word).is_some() && j == i + 1;
        };
        let count = |t: &Text| {
            let mut c: BTreeMap<Box<str>, i32> = BTreeMap::new();
            t.modifiers.iter().for_each(|m| *c.entry(m.clone()).or_default() += 1);
            c
        };
        let (base, a, b, both) = (count(&model.shown), count(a), count(b), count(&both));
        let of = |c: &BTreeMap<Box<str>, i32>, k: &str| c.get(k).copied().unwrap_or(0);
        let names: BTreeSet<&Box<str>> = base.keys().chain(a.keys()).chain(b.keys()).chain(both.keys()).collect();
        names
            .into_iter()
            .any(|k| of(&a, k) + of(&b, k) - of(&base, k) != of(&both, k))
    }
}

fn same_but_reuse(a: &Text, b: &Text) -> bool {
    let plain = |t: &Text| {
        let mut t = t.clone();
        t.operands
            .iter_mut()
            .for_each(|o| (o.reuse, o.terms) = (false, Terms::default()));
        t
    };
    plain(a) == plain(b)
}

/// Orders the groups that insert at the same place by what pairs of them print.
fn rank(lab: &mut Lab, models: &mut [Model]) -> Result<()> {
    struct Trial {
        model: usize,
        groups: (usize, usize),
        tokens: (Box<str>, Box<str>),
        word: u128,
    }
    let mut trials = Vec::new();
    for (m, model) in models.iter().enumerate() {
        let mut inserts: BTreeMap<usize, Vec<(usize, u64, Box<str>)>> = BTreeMap::new();
        for (g, group) in model.groups.iter().enumerate() {
            for (&v, edits) in &group.table {
                for (from, _, tokens) in edits {
                    if let Some(first) = tokens.first() {
                        inserts.entry(*from).or_default().push((g, v, first.clone()));
                    }
                }
            }
        }
        for list in inserts.values() {
            for a in list {
                for b in list.iter().filter(|b| a.0 < b.0 && a.2 != b.2) {
                    let pair = trials.iter().rev().take_while(|t: &&Trial| t.model == m);
                    if pair.filter(|t| t.groups == (a.0, b.0)).count() >= 24 {
                        continue;
                    }
                    let word = assign(model.base, &model.groups[a.0].bits, a.1);
                    let word = assign(word, &model.groups[b.0].bits, b.1);
                    let tokens = (a.2.clone(), b.2.clone());
                    trials.push(Trial {
                        model: m,
                        groups: (a.0, b.0),
                        tokens,
                        word,
                    });
                }
            }
        }
    }
    lab.ask(trials.iter().map(|t| t.word))?;
    let mut votes: BTreeMap<(usize, usize, usize), i32> = BTreeMap::new();
    for t in &trials {
        let Some(text) = models[t.model].see(lab, t.word) else {
            continue;
        };
        let place = |token: &str| text.modifiers.iter().position(|m| &**m == token);
        if let (Some(a), Some(b)) = (place(&t.tokens.0), place(&t.tokens.1)) {
            *votes.entry((t.model, t.groups.0, t.groups.1)).or_default() += if a < b { 1 } else { -1 };
        }
    }
    for (m, model) in models.iter_mut().enumerate() {
        let count = model.groups.len();
        let before = |a: usize, b: usize| {
            let vote = |x, y| votes.get(&(m, x, y)).copied().unwrap_or(0);
            if a < b { vote(a, b) > 0 } else { vote(b, a) < 0 }
        };
        let mut left: Vec<usize> = (0..count).collect();
        let mut next = 0;
        while !left.is_empty() {
            let free = left
                .iter()
                .position(|&g| !left.iter().any(|&o| o != g && before(o, g)))
                .unwrap_or(0);
            model.groups[left.remove(free)].rank = next;
            next += 1;
        }
    }
    Ok(())
}
