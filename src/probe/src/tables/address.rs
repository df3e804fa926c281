//! How an address is spelled when some of its terms are zero: `[RZ+0x0]` is `[RZ]`, but `a[RZ+0x0]` is `a[0x0]`.
//!
//! The tables mark the terms of a shape (`a[R#?+X#]`, see opcodes/README.md); the marks are those that explain what is printed for
//! every combination of zeros.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;

use super::lab::{Lab, assign, extract};
use super::model::{Key, Model, Part};
use crate::text::{Hole, Terms, holes};

/// The bank of a constant whose address is an offset alone: `c[X#]` of `c[X#][X#]`.
pub fn plain_bank(shape: &str) -> Option<&str> {
    shape.strip_suffix("[X#]").filter(|bank| bank.starts_with('c'))
}

/// The registers in the address of `full`, which is `plain` with registers before the offset: `[R#+UR#` of `cx[UR#][R#+UR#+X#]`.
pub fn registers_of_bank<'a>(full: &'a str, plain: &str) -> Option<&'a str> {
    full.strip_prefix(plain_bank(plain)?)?.strip_suffix("+X#]")
}

/// The terms of a shape's address with the text around them, if it has one of several terms.
fn split(shape: &str) -> Option<(&str, Vec<&str>, &str)> {
    let open = shape.match_indices('[').map(|m| m.0).find(|&open| {
        let close = shape[open..].find(']').map_or(shape.len(), |c| open + c);
        shape[open..close].contains('+')
    })?;
    let close = open + shape[open..].find(']')?;
    Some((
        &shape[..=open],
        shape[open + 1..close].split('+').collect(),
        &shape[close..],
    ))
}

/// The shape without the uniform register of its address.
pub fn without_uniform(shape: &str) -> Option<String> {
    let (head, terms, tail) = split(shape)?;
    let left: Vec<&str> = terms.iter().copied().filter(|t| !t.starts_with("UR#")).collect();
    (left.len() == terms.len() - 1).then(|| format!("{head}{}{tail}", left.join("+")))
}

/// What is printed of an address: which terms are zero, and which are there.
type Seen = BTreeSet<(Vec<bool>, Terms)>;

/// A shape of an operand of a model.
type Spelled = (usize, u8, Box<str>);

/// Finds the marks of every address.
pub fn spell(lab: &mut Lab, models: &mut [Model]) -> Result<()> {
    let mut tries: Vec<(Spelled, Vec<bool>, u128)> = Vec::new();
    for (m, model) in models.iter().enumerate() {
        for i in 0..model.shown.operands.len() as u8 {
            for (shape, word) in shapes(model, i) {
                let zeros = zeros(model, i, &shape, word, lab.uniform_zero);
                tries.extend(zeros.into_iter().map(|(zero, w)| ((m, i, shape.clone()), zero, w)));
            }
        }
    }
    lab.ask(tries.iter().map(|t| t.2))?;
    let mut seen: BTreeMap<Spelled, Seen> = BTreeMap::new();
    for ((m, operand, shape), zero, word) in tries {
        let Some(text) = models[m].see(lab, word) else { continue };
        if text.operands.len() == models[m].shown.operands.len() && text.operands[operand as usize].shape == shape {
            let terms = text.operands[operand as usize].terms;
            seen.entry((m, operand, shape)).or_default().insert((zero, terms));
        }
    }
    for ((m, operand, shape), seen) in seen {
        if let Some(marked) = mark(&shape, &seen).filter(|s| **s != *shape) {
            models[m].marked.insert((operand, shape), marked.into());
        }
    }
    Ok(())
}

/// The shapes of an operand that have an address, each with words that select it.
fn shapes(model: &Model, operand: u8) -> Vec<(Box<str>, u128)> {
    let shown = &model.shown.operands[operand as usize].shape;
    let mut out: Vec<(Box<str>, u128)> = match model.parts.get(&Part::Shape(operand)) {
        Some((bits, table)) => {
            let placed = table
                .iter()
                .map(|(&v, shape)| (shape.clone(), assign(model.base, bits, v)));
            placed.collect()
        }
        None => vec![(shown.clone(), model.base)],
    };
    out.retain(|(shape, _)| split(shape).is_some());
    out
}

/// `word` with every combination of zeros in the terms of an address: which terms are zero, and the word.
fn zeros(model: &Model, operand: u8, shape: &str, word: u128, uniform_zero: i64) -> Vec<(Vec<bool>, u128)> {
    let Some((_, terms, _)) = split(shape) else {
        return vec![];
    };
    let before = split(shape).map_or(vec![], |s| holes(s.0));
    let mut out: Vec<(Vec<bool>, u128)> = vec![(vec![], word)];
    for term in terms {
        let Some(&hole) = holes(term).first() else {
            return vec![];
        };
        let ordinal = before.iter().filter(|h| **h == hole).count() as u8;
        let zero = hole.zero(uniform_zero).unwrap_or(0);
        let number = model.numbers.get(&Key::Hole(operand, hole, ordinal));
        let mut next = Vec::new();
        for (flags, word) in out {
            let mut with = |flag: bool, word: u128| {
                let mut flags = flags.clone();
                flags.push(flag);
                next.push((flags, word));
            };
            let Some(number) = number else {
                with(hole == Hole::R, word); // a register that is always RZ
                continue;
            };
            with(number.value(word) == zero, word);
            if let Some(raw) = number.raw(zero).filter(|_| number.value(word) != zero) {
                let bits = number.bits();
                if extract(word, &bits) != raw {
                    with(true, assign(word, &bits, raw));
                }
            }
        }
        out = next;
    }
    out
}

/// The shape with the fewest marks that explain everything seen, if any do.
fn mark(shape: &str, seen: &Seen) -> Option<String> {
    let (head, terms, tail) = split(shape)?;
    let kinds: Vec<Hole> = terms.iter().filter_map(|t| holes(t).first().copied()).collect();
    let choices = |hole: &Hole| match hole {
        Hole::Ur => ["", "?", "*"],
        _ => ["", "!", "?"],
    };
    let count = 3usize.pow(kinds.len() as u32);
    let marks = |code: usize| -> Vec<&str> {
        let digit = |(n, k)| choices(k)[code / 3usize.pow(n as u32) % 3];
        kinds.iter().enumerate().map(digit).collect()
    };
    let explains = |code: &usize| {
        let marks = marks(*code);
        seen.iter().all(|(zero, terms)| printed(&kinds, &marks, zero) == *terms)
    };
    let fewest = |code: &usize| marks(*code).iter().filter(|m| !m.is_empty()).count();
    let best = (0..count).filter(explains).min_by_key(fewest)?;
    let marked: Vec<String> = terms.iter().zip(marks(best)).map(|(t, m)| format!("{t}{m}")).collect();
    Some(format!("{head}{}{tail}", marked.join("+")))
}

/// The terms that marks leave: those with `?` go first, from left to right, then register and offset without a mark from right to
/// left, then those with `*`; one stays.
fn printed(kinds: &[Hole], marks: &[&str], zero: &[bool]) -> Terms {
    let mut left: Vec<bool> = vec![true; kinds.len()];
    let mut leave_out = |n: usize| {
        if zero[n] && left.iter().filter(|l| **l).count() > 1 {
            left[n] = false;
        }
    };
    let with = |mark: &'static str| (0..kinds.len()).filter(move |&n| marks[n] == mark);
    with("?").for_each(&mut leave_out);
    with("")
        .rev()
        .filter(|&n| kinds[n] != Hole::Ur)
        .for_each(&mut leave_out);
    with("*").for_each(&mut leave_out);
    let terms = kinds.iter().zip(&left).filter(|(_, l)| **l);
    Terms(terms.fold(0, |m, (k, _)| m | Terms::of(*k)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_explain_what_is_printed() {
        let seen = |list: &[(&[bool], u8)]| list.iter().map(|(z, t)| (z.to_vec(), Terms(*t))).collect::<Seen>();
        let usual = seen(&[(&[true, true], 1), (&[true, false], 4), (&[false, true], 1)]);
        assert_eq!(mark("[R#.64+X#]", &usual).as_deref(), Some("[R#.64+X#]"));
        let attribute = seen(&[(&[true, true], 4), (&[false, true], 1)]);
        assert_eq!(mark("a[R#+X#]", &attribute).as_deref(), Some("a[R#?+X#]"));
        let kept = seen(&[(&[true, false], 5), (&[true, true], 1)]);
        assert_eq!(mark("desc[UR#][R#+X#]", &kept).as_deref(), Some("desc[UR#][R#!+X#]"));
        assert_eq!(without_uniform("c[X#][R#+UR#+X#]").as_deref(), Some("c[X#][R#+X#]"));
    }
}
