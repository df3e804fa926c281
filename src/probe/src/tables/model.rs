//! What is inferred of one class of instructions.

use std::collections::{BTreeMap, BTreeSet};

use super::address;
use super::lab::{Lab, extract};
use super::schedule::Schedule;
use crate::nvdisasm::Class;
use crate::rules::Rules;
use crate::text::{Hole, Operand, Terms, Text, Value, holes};

/// Names a number in the printed text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// The guard predicate's number.
    Guard,
    /// Operand, kind, and ordinal among the operand's holes of that kind.
    Hole(u8, Hole, u8),
}

impl Key {
    /// The integer that `text` shows for it.
    pub fn int(self, text: &Text) -> Option<i64> {
        match self {
            Key::Guard => Some(text.guard_number),
            Key::Hole(operand, hole, ordinal) => match text.value(operand, hole, ordinal)? {
                Value::Int(v) => Some(*v),
                Value::Float(_) => None,
            },
        }
    }

    /// All numbers of `text`, guard first.
    pub fn all(text: &Text) -> Vec<Key> {
        let holes = text.components().into_iter().map(|(o, h, n)| Key::Hole(o, h, n));
        std::iter::once(Key::Guard).chain(holes).collect()
    }
}

/// A number that is a sum of weights of set bits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Linear {
    /// Weight of each bit.
    pub weights: BTreeMap<u8, i64>,
    /// Value with no bit set.
    pub constant: i64,
}

impl Linear {
    /// The number in `word`.
    pub fn value(&self, word: u128) -> i64 {
        self.weights
            .iter()
            .filter(|(b, _)| word >> **b & 1 == 1)
            .fold(self.constant, |v, (_, w)| v.wrapping_add(*w))
    }

    /// Bits by rising weight.
    pub fn bits(&self) -> Vec<u8> {
        let mut bits: Vec<u8> = self.weights.keys().copied().collect();
        bits.sort_by_key(|b| (self.weights[b].unsigned_abs(), *b));
        bits
    }

    /// The raw bits (see [`Self::bits`]) that give `value`, if any do.
    pub fn raw(&self, value: i64) -> Option<u64> {
        let bits = self.bits();
        let weight = |b: &u8| i128::from(self.weights[b]);
        let negative: i128 = bits.iter().map(weight).filter(|w| *w < 0).sum();
        // Greedy from the largest weight on the non-negative remainder: exact for the weights that occur (powers of two).
        let mut rest = i128::from(value) - i128::from(self.constant) - negative;
        let mut raw = 0;
        for (i, b) in bits.iter().enumerate().rev() {
            let w = weight(b);
            let take = rest >= w.abs();
            if take {
                rest -= w.abs();
            }
            if take == (w > 0) {
                raw |= 1 << i;
            }
        }
        (rest == 0).then_some(raw)
    }
}

/// An operand that is left out of the text when its number has one value.
#[derive(Clone, Debug)]
pub struct Elision {
    /// The field's bits, by rising weight, and their value there.
    pub bits: Vec<u8>,
    /// See `bits`.
    pub raw: u64,
    /// The number's value there.
    pub value: i64,
    /// What the operand would print.
    pub operand: Operand,
}

/// What a selector chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// `@P` or `@!P`.
    Guard,
    /// The shape of an operand.
    Shape(u8),
}

/// Bits that choose a text, and the text at each legal value.
pub type Selector = (Vec<u8>, BTreeMap<u64, Box<str>>);

/// One edit of the modifier list: replace tokens `from..to` of the base list by `tokens`.
pub type Splice = (usize, usize, Vec<Box<str>>);

/// Bits that choose modifiers, the effect of each legal value as edits of the base list.
#[derive(Clone, Debug)]
pub struct ModifierGroup {
    /// Selector bits.
    pub bits: Vec<u8>,
    /// Legal values.
    pub table: BTreeMap<u64, Vec<Splice>>,
    /// Rank among groups that insert at the same place.
    pub rank: usize,
}

/// The model of a class.
pub struct Model {
    /// Key while probing.
    pub class: Class,
    /// A legal word with quiet control, generic register numbers, and every operand printed.
    pub base: u128,
    /// The text of `base`.
    pub shown: Text,
    /// Operand and hole that print an absolute code address.
    pub relative: Option<(u8, u8)>,
    /// By operand.
    pub elisions: BTreeMap<u8, Elision>,
    /// Operands `R# X#` whose offset is left out when it is 0.
    pub quiet_offsets: BTreeSet<u8>,
    /// Operands `c[X#][X#]` with registers, always zero ones, that are printed at offset 0 only: their shape there.
    pub bank_registers: BTreeMap<u8, Box<str>>,
    /// Numbers.
    pub numbers: BTreeMap<Key, Linear>,
    /// Floats: kind and lowest bit; see [`super::float`].
    pub floats: BTreeMap<Key, super::float::FloatField>,
    /// Texts of the base with one bit flipped.
    pub single: BTreeMap<u8, Option<Text>>,
    /// Guard and shape selectors: bits and legal values.
    pub parts: BTreeMap<Part, Selector>,
    /// Modifier selectors.
    pub groups: Vec<ModifierGroup>,
    /// What is legal beyond the values of selectors.
    pub rules: Rules,
    /// What the scheduling bits may be.
    pub schedule: Schedule,
    /// How the addresses of an operand's shape are spelled when terms are zero, by operand and shape.
    pub marked: BTreeMap<(u8, Box<str>), Box<str>>,
}

impl Model {
    /// A model that knows only its base word.
    pub fn new(class: Class, base: u128, shown: Text) -> Self {
        Self {
            class,
            base,
            shown,
            relative: None,
            elisions: BTreeMap::new(),
            quiet_offsets: BTreeSet::new(),
            bank_registers: BTreeMap::new(),
            numbers: BTreeMap::new(),
            floats: BTreeMap::new(),
            single: BTreeMap::new(),
            parts: BTreeMap::new(),
            groups: Vec::new(),
            rules: Rules::default(),
            schedule: Schedule::default(),
            marked: BTreeMap::new(),
        }
    }

    /// The text of `word` in this model's terms: of its class, addresses made relative, operands that are left out put back.
    pub fn see(&self, lab: &Lab, word: u128) -> Option<Text> {
        if lab.class(word) != Some(self.class) {
            return None;
        }
        let (mut text, address) = lab.text(word)?;
        self.make_relative(&mut text, address);
        let mut text = self.restore(word, text)?;
        self.restore_offsets(&mut text);
        self.restore_banks(lab, word, &mut text);
        self.restore_uniform(lab, word, &mut text);
        Some(text)
    }

    /// Replaces the absolute address by the distance from the next instruction.
    fn make_relative(&self, text: &mut Text, address: u64) {
        let Some((operand, hole)) = self.relative else { return };
        // Operands that are left out shift the index: count from the end, where the address stands.
        let full = self.shown.operands.len().max(operand as usize + 1);
        let from_end = full - operand as usize;
        let Some(o) = text
            .operands
            .len()
            .checked_sub(from_end)
            .and_then(|i| text.operands.get_mut(i))
        else {
            return;
        };
        if holes(&o.shape).get(hole as usize) == Some(&Hole::X)
            && let Some(Value::Int(v)) = o.values.get_mut(hole as usize)
        {
            *v = v.wrapping_sub(address as i64 + 16);
            o.shape = rename_hole(&o.shape, hole as usize, "L");
        }
    }

    /// Puts back an offset of 0 that is left out.
    fn restore_offsets(&self, text: &mut Text) {
        for &i in &self.quiet_offsets {
            let (Some(operand), Some(full)) = (text.operands.get_mut(i as usize), self.shown.operands.get(i as usize))
            else {
                continue;
            };
            if full.shape.strip_suffix(" X#") == Some(&*operand.shape) {
                operand.shape = full.shape.clone();
                operand.values.push(Value::Int(0));
            }
        }
    }

    /// Puts back the zero registers that the address of a constant leaves out where its offset is printed: `c[0x3][0x10]`.
    fn restore_banks(&self, lab: &Lab, word: u128, text: &mut Text) {
        for (i, operand) in text.operands.iter_mut().enumerate() {
            let operand_number = i as u8;
            let Some(bank) = address::plain_bank(&operand.shape) else {
                continue;
            };
            let selected = || match self.parts.get(&Part::Shape(operand_number)) {
                Some((bits, table)) => table.get(&extract(word, bits)),
                None => self.shown.operands.get(i).map(|o| &o.shape),
            };
            let full = self.bank_registers.get(&operand_number).or_else(selected);
            let Some((full, address)) = full.and_then(|f| Some((f, address::registers_of_bank(f, &operand.shape)?)))
            else {
                continue;
            };
            let before = holes(bank);
            let zero = |hole: &Hole| {
                let ordinal = before.iter().filter(|h| *h == hole).count() as u8;
                let number = self.numbers.get(&Key::Hole(operand_number, *hole, ordinal));
                let zero = hole.zero(lab.uniform_zero)?;
                number.is_none_or(|n| n.value(word) >= zero).then_some(Value::Int(zero))
            };
            let registers: Option<Vec<Value>> = holes(address).iter().map(zero).collect();
            if let Some(registers) = registers {
                operand.values.splice(before.len()..before.len(), registers);
                operand.shape = full.clone();
            }
        }
    }

    /// Puts back a URZ that an address leaves out.
    fn restore_uniform(&self, lab: &Lab, word: u128, text: &mut Text) {
        let zero = lab.uniform_zero;
        for (i, operand) in text.operands.iter_mut().enumerate() {
            let key = Key::Hole(i as u8, Hole::Ur, 0);
            if self.numbers.get(&key).is_none_or(|n| n.value(word) < zero) {
                continue;
            }
            let full = match self.parts.get(&Part::Shape(i as u8)) {
                Some((bits, table)) => table.get(&extract(word, bits)),
                None => self.shown.operands.get(i).map(|o| &o.shape),
            };
            if let Some(full) = full
                && address::without_uniform(full).as_deref() == Some(&*operand.shape)
                && let Some(at) = holes(full).iter().position(|h| *h == Hole::Ur)
            {
                operand.shape = full.clone();
                operand.values.insert(at, Value::Int(zero));
            }
        }
    }

    fn restore(&self, word: u128, mut text: Text) -> Option<Text> {
        let full = self.shown.operands.len();
        if text.operands.len() >= full {
            return Some(text);
        }
        // Operands at the value where they vanish, and words (a set) that may for one value of their selector.
        let at_value = |i: &u8| self.elisions.get(i).is_some_and(|e| extract(word, &e.bits) == e.raw);
        let is_word = |i: &u8| self.shown.operands[*i as usize].values.is_empty();
        let gone: Vec<u8> = (0..full as u8).filter(|i| at_value(i) || is_word(i)).collect();
        let choices = choose(&gone, full - text.operands.len());
        let exact = choices.iter().find(|p| self.fits(&text, p, true));
        if let Some(places) = exact.or_else(|| choices.iter().find(|p| self.fits(&text, p, false))) {
            for &i in places {
                let word = Operand {
                    shape: "".into(),
                    values: vec![],
                    reuse: false,
                    terms: Terms::default(),
                };
                let operand = self.elisions.get(&i).map_or(word, |e| e.operand.clone());
                text.operands.insert(i as usize, operand);
            }
        }
        Some(text)
    }

    /// Whether `text` with operands put back at `places` has the base's kinds of operands, exactly or nearly.
    fn fits(&self, text: &Text, places: &[u8], exactly: bool) -> bool {
        let mut rest = text.operands.iter();
        let alike = |a: &str, b: &str| {
            let (a, b) = (holes(a), holes(b));
            a == b || !exactly && (a.is_empty() || b.is_empty() || a.iter().any(|h| b.contains(h)))
        };
        (0..self.shown.operands.len() as u8).all(|i| {
            places.contains(&i)
                || rest
                    .next()
                    .is_some_and(|o| alike(&o.shape, &self.shown.operands[i as usize].shape))
        }) && rest.next().is_none()
    }

    /// Every bit that means something to this model.
    pub fn known_bits(&self) -> u128 {
        let mut bits: Vec<u8> = self.numbers.values().flat_map(|n| n.weights.keys().copied()).collect();
        bits.extend(self.floats.values().flat_map(|f| f.bits()));
        bits.extend(self.parts.values().flat_map(|p| p.0.iter().copied()));
        bits.extend(self.groups.iter().flat_map(|g| g.bits.iter().copied()));
        bits.extend(self.schedule.reuse.iter().map(|r| r.0).filter(|&b| b < 105));
        bits.iter().fold(self.rules.fixed(), |m, b| m | 1 << b)
    }
}

/// All subsets of `items` of size `n`, later items first.
fn choose(items: &[u8], n: usize) -> Vec<Vec<u8>> {
    if n == 0 {
        return vec![vec![]];
    }
    let mut out = Vec::new();
    for (i, &item) in items.iter().enumerate().rev() {
        for mut rest in choose(&items[..i], n - 1) {
            rest.push(item);
            out.push(rest);
        }
    }
    out
}

/// `shape` with hole `n` renamed.
pub fn rename_hole(shape: &str, n: usize, name: &str) -> Box<str> {
    let Some((end, _)) = shape.match_indices('#').nth(n) else {
        return shape.into();
    };
    let start = shape[..end]
        .rfind(|c: char| !c.is_ascii_uppercase())
        .map_or(0, |i| i + 1);
    format!("{}{name}{}", &shape[..start], &shape[end..]).into()
}
