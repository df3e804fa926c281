//! Words put together from parts: from the filler of a form, by modifiers and shapes. What comes out need not be legal; decoding says.

use crate::edit::tokens;
use crate::tables::{FormData, Selector};
use crate::{Inst, Isa, Word};

impl Isa {
    /// All that differ from `i` in modifiers only and have `wanted` as theirs, in printed order. Where a slot says the same at several
    /// values, it keeps its own or takes the first, unless other slots have a say in the bits.
    pub fn with_modifiers(&self, i: Inst, wanted: &[&str]) -> Vec<Inst> {
        let mut words = Vec::new();
        if let Some(form) = self.data(i.form) {
            self.set_slots(form, wanted, 0, i.word, &mut words);
        }
        let made = words.into_iter().map(|word| Inst { word, form: i.form });
        made.filter(|made| self.modifiers(*made).eq(wanted.iter().copied()))
            .collect()
    }

    /// Sets the slots from `slot` on so that together they print `wanted`.
    fn set_slots(&self, form: &FormData, wanted: &[&str], slot: usize, word: Word, words: &mut Vec<Word>) {
        let Some(&selector) = form.modifiers.get(slot) else {
            words.extend(wanted.is_empty().then_some(word));
            return;
        };
        let bits = |slot: u32| self.tables.selectors[slot as usize].bits.mask();
        let mut others = form.modifiers.iter().enumerate().filter(|(n, _)| *n != slot);
        let shared = others.any(|(_, other)| bits(*other) & bits(selector) != 0);
        let before = |word: Word| (0..slot).map(move |s| self.slot_text(form, word, s));
        let start = word;
        for (text, word) in choices(&self.tables.selectors[selector as usize], word, shared) {
            if !before(word).eq(before(start)) {
                continue;
            }
            let text = || tokens(self.tables.texts[text]);
            if let Some((these, rest)) = wanted.split_at_checked(text().count())
                && text().eq(these.iter().copied())
            {
                self.set_slots(form, rest, slot + 1, word, words);
            }
        }
    }

    /// The instruction with one of `numbers` in a field that is a number and has a say in how many registers there are, or in their kind.
    pub fn with_selecting_numbers(&self, i: Inst, numbers: &[i64]) -> Vec<Inst> {
        let Some(form) = self.form(i.form) else {
            return Vec::new();
        };
        let selecting = form
            .fields()
            .iter()
            .filter(|f| f.kind.file().is_none() && f.mask() & form.selector_mask() != 0);
        let words = selecting.flat_map(|f| numbers.iter().filter_map(|n| f.set(i.word, *n).ok()));
        words.map(|word| Inst { word, form: i.form }).collect()
    }

    /// The instruction with printed operand `operand` in each of its shapes; everything else stays.
    pub fn with_shapes(&self, i: Inst, operand: usize) -> Vec<Inst> {
        let own = self.data(i.form).and_then(|form| form.operands.get(operand));
        let Some((form, own)) = self.data(i.form).zip(own) else {
            return Vec::new();
        };
        let keeps = |word: Word| {
            let operands = form.operands.iter().filter(|o| o.selector != own.selector);
            let mut others = operands.map(|o| &self.tables.selectors[o.selector as usize]);
            let mut slots = 0..form.modifiers.len();
            others.all(|s| s.get(i.word) == s.get(word))
                && slots.all(|s| self.slot_text(form, i.word, s) == self.slot_text(form, word, s))
        };
        let words = choices(&self.tables.selectors[own.selector as usize], i.word, false).into_iter();
        let words = words.map(|(_, word)| word).filter(|word| keeps(*word));
        words.map(|word| Inst { word, form: i.form }).collect()
    }
}

/// The items of a selector with the word that has them: first the word's own, unchanged; each item once, or at each of its values.
fn choices(selector: &Selector, word: Word, all: bool) -> Vec<(usize, Word)> {
    let own = selector.get(word).map(|item| (item, word));
    let rows = selector
        .rows()
        .map(|(value, item)| (item, selector.bits.set(word, value)));
    let mut found: Vec<(usize, Word)> = Vec::new();
    for (item, word) in own.into_iter().chain(rows) {
        let is_known = |(known, same): &(usize, Word)| *known == item && (!all || *same == word);
        if !found.iter().any(is_known) {
            found.push((item, word));
        }
    }
    found
}
