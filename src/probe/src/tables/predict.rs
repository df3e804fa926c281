//! What a model says a word prints, to be held against what it does print.

use std::collections::BTreeMap;

use super::lab::{Lab, extract};
use super::model::{Key, Model, Part};
use super::splice;
use crate::text::{Hole, Operand, Text, Value, holes};

/// How a word differs from its model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fault {
    /// The model calls it legal, the disassembler does not.
    Refused,
    /// The guard, or the shape of an operand.
    Part(Part),
    /// The modifiers.
    Modifiers,
    /// A number of an operand.
    Number(Key),
    /// Something else, such as the count of operands.
    Other,
}

impl Model {
    /// Whether every selector of `word` has a legal value, and the rules allow it.
    pub fn calls_legal(&self, word: u128) -> bool {
        self.selects(word) && self.rules.allow(word)
    }

    /// Whether every selector of `word` has a legal value.
    pub fn selects(&self, word: u128) -> bool {
        self.parts
            .values()
            .all(|(bits, table)| table.contains_key(&extract(word, bits)))
            && self
                .groups
                .iter()
                .all(|g| g.table.contains_key(&extract(word, &g.bits)))
    }

    /// The modifiers of `word`, which the model calls legal.
    pub fn modifiers(&self, word: u128) -> Vec<Box<str>> {
        let edits: Vec<_> = self
            .groups
            .iter()
            .filter_map(|g| Some((g.rank, g.table.get(&extract(word, &g.bits))?.as_slice())))
            .collect();
        splice::apply(&self.shown.modifiers, &edits)
    }

    /// What of `word` the model gets wrong. `None`: nothing, or the word is another model's.
    pub fn fault(&self, lab: &Lab, word: u128) -> Option<Fault> {
        if lab.is_of_another(word, self.class) {
            return None;
        }
        let Some(text) = self.see(lab, word) else {
            return Some(Fault::Refused);
        };
        if text.operands.len() != self.shown.operands.len() || text.mnemonic != self.shown.mnemonic {
            return Some(Fault::Other);
        }
        for (&part, (bits, table)) in &self.parts {
            let Some(said) = table.get(&extract(word, bits)) else {
                continue;
            };
            if super::groups::part_text(&text, part).as_ref() != Some(said)
                && !(part == Part::Guard && text.guard.is_empty())
            {
                return Some(Fault::Part(part));
            }
        }
        for (i, (a, b)) in text.operands.iter().zip(&self.shown.operands).enumerate() {
            let part = Part::Shape(i as u8);
            if !self.parts.contains_key(&part) && a.shape != b.shape {
                return Some(Fault::Part(part));
            }
        }
        if self.modifiers(word) != text.modifiers {
            return Some(Fault::Modifiers);
        }
        let reuse = |(i, o): (usize, &Operand)| o.reuse == self.schedule.reuses(word, i as u8);
        if !text.operands.iter().enumerate().all(reuse) {
            return Some(Fault::Other);
        }
        self.number_fault(lab, word, &text)
    }

    fn number_fault(&self, lab: &Lab, word: u128, text: &Text) -> Option<Fault> {
        let mut seen: BTreeMap<(u8, Hole), u8> = BTreeMap::new();
        for (i, operand) in text.operands.iter().enumerate() {
            for (hole, value) in holes(&operand.shape).into_iter().zip(&operand.values) {
                let ordinal = seen.entry((i as u8, hole)).or_default();
                let key = Key::Hole(i as u8, hole, *ordinal);
                *ordinal += 1;
                let good = match value {
                    // The second of a pair that is named by its first can be past the last one.
                    Value::Int(v) if hole == Hole::Ur => {
                        let number = self.numbers.get(&key);
                        number.is_some_and(|n| n.value(word).min(lab.uniform_zero) == *v)
                    }
                    Value::Int(v) => self.numbers.get(&key).is_some_and(|n| n.value(word) == *v),
                    Value::Float(f) => self.floats.get(&key).is_some_and(|k| k.prints(word, f)),
                };
                if !good {
                    return Some(Fault::Number(key));
                }
            }
        }
        let guard = self
            .numbers
            .get(&Key::Guard)
            .is_none_or(|n| n.value(word) == text.guard_number);
        (!guard).then_some(Fault::Number(Key::Guard))
    }
}
