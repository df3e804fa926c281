//! Base words, register and number fields, operands that vanish: everything that one changed field shows.

use std::collections::BTreeMap;

use anyhow::Result;

use super::address;
use super::float::{FloatField, FloatKind};
use super::lab::{Lab, assign, extract, field_bits, flip, quiet};
use super::model::{Elision, Key, Linear, Model};
use crate::nvdisasm::Class;
use crate::text::{Hole, Text, Value, holes};

/// Models of all classes with seeds, as far as single fields tell.
pub fn single_fields(lab: &mut Lab, seeds: &BTreeMap<Class, Vec<u128>>) -> Result<Vec<Model>> {
    let mut models = choose_bases(lab, seeds)?;
    find_relative(lab, &mut models)?;
    for _ in 0..3 {
        widen(lab, &mut models)?;
    }
    make_generic(lab, &mut models)?;
    make_bare(lab, &mut models)?;
    find_elisions(lab, &mut models, seeds)?;
    find_quiet_offsets(lab, &mut models)?;
    find_bank_registers(lab, &mut models)?;
    ask_flips(lab, &models)?;
    for model in &mut models {
        if let Some(shown) = model.see(lab, model.base) {
            model.shown = shown;
        }
        model.numbers = numbers(lab, model);
        model.single = field_bits().map(|b| (b, model.see(lab, flip(model.base, b)))).collect();
        model.floats = floats(lab, model);
    }
    Ok(models)
}

/// The simplest legal seed of each class.
fn choose_bases(lab: &mut Lab, seeds: &BTreeMap<Class, Vec<u128>>) -> Result<Vec<Model>> {
    let both = |w: &u128| [quiet(*w), *w];
    lab.ask(seeds.values().flatten().flat_map(both))?;
    let mut models = Vec::new();
    for (&class, words) in seeds {
        let usable = |w: &u128| lab.class(*w) == Some(class) && lab.is_legal(*w);
        let mut usable: Vec<u128> = words.iter().flat_map(both).filter(usable).collect();
        usable.sort_by_key(|&w| {
            let raw = lab.raw(w).unwrap_or("");
            let modifiers = lab.text(w).map_or(0, |t| t.0.modifiers.len());
            let special = raw.matches("RZ").count() + raw.matches("PT").count();
            (w != quiet(w), modifiers, special, w)
        });
        if let Some(&base) = usable.first()
            && let Some((shown, _)) = lab.text(base)
        {
            models.push(Model::new(class, base, shown));
        }
    }
    Ok(models)
}

/// A number that changes with the word's address is a code address.
fn find_relative(lab: &mut Lab, models: &mut [Model]) -> Result<()> {
    let words: Vec<u128> = models.iter().map(|m| m.base).collect();
    let here = lab.nvdisasm().texts_in_order(&words)?;
    let moved: Vec<u128> = words.first().into_iter().chain(&words).copied().collect();
    let there = lab.nvdisasm().texts_in_order(&moved)?;
    for ((model, here), there) in models.iter_mut().zip(here).zip(there.into_iter().skip(1)) {
        let (Some(here), Some(there)) = (here, there) else {
            continue;
        };
        let parse = |t: &str| Text::parse(t, lab.uniform_zero);
        let (here, there) = (parse(&here.text), parse(&there.text));
        for (i, (a, b)) in here.operands.iter().zip(&there.operands).enumerate() {
            let changed = a.values.iter().zip(&b.values).position(|(x, y)| x != y);
            if let Some(hole) = changed {
                model.relative = Some((i as u8, hole as u8));
            }
        }
        if let Some(shown) = model.see(lab, model.base) {
            model.shown = shown;
        }
    }
    Ok(())
}

fn ask_flips(lab: &mut Lab, models: &[Model]) -> Result<()> {
    lab.ask(
        models
            .iter()
            .flat_map(|m| std::iter::once(m.base).chain(field_bits().map(|b| flip(m.base, b)))),
    )
}

/// Moves each base by flips that print more operands and holes, so that nothing stays hidden by a special value.
fn widen(lab: &mut Lab, models: &mut [Model]) -> Result<()> {
    /// Operands of one instruction that special values hide.
    const HIDDEN: usize = 4;
    for _ in 0..HIDDEN {
        if !widen_by_one(lab, models)? {
            break;
        }
    }
    Ok(())
}

/// Moves each base to the flip that prints the most operands and holes. Returns whether one moved.
fn widen_by_one(lab: &mut Lab, models: &mut [Model]) -> Result<bool> {
    ask_flips(lab, models)?;
    let mut moved = false;
    let size = |t: &Text| {
        (
            t.operands.len(),
            t.operands.iter().map(|o| o.values.len()).sum::<usize>(),
        )
    };
    for model in models {
        let mut best = (size(&model.shown), model.base);
        for bit in field_bits().filter(|&b| b < 105) {
            let word = flip(model.base, bit);
            if let Some(text) = model.see(lab, word)
                && text.mnemonic == model.shown.mnemonic
                && text.modifiers.len() <= model.shown.modifiers.len()
                && size(&text) > best.0
            {
                best = (size(&text), word);
            }
        }
        if best.1 != model.base {
            moved = true;
            model.base = best.1;
            // A new operand before the address moves its index; it stands at the same place from the end.
            if let Some((operand, hole)) = model.relative {
                let grown = best.0.0.saturating_sub(model.shown.operands.len()) as u8;
                model.relative = Some((operand + grown, hole));
            }
            if let Some((text, _)) = lab.text(model.base) {
                model.shown = text;
            }
            if let Some(shown) = model.see(lab, model.base) {
                model.shown = shown;
            }
        }
    }
    Ok(moved)
}

/// The numbers that single flips of the base move.
fn numbers(lab: &Lab, model: &Model) -> BTreeMap<Key, Linear> {
    let Some(base) = model.see(lab, model.base) else {
        return BTreeMap::new();
    };
    let mut found: BTreeMap<Key, Linear> = BTreeMap::new();
    for key in Key::all(&base) {
        let Some(at_base) = key.int(&base) else { continue };
        let mut linear = Linear {
            weights: BTreeMap::new(),
            constant: at_base,
        };
        for bit in field_bits() {
            let Some(text) = model.see(lab, flip(model.base, bit)) else {
                continue;
            };
            if text.operands.len() != base.operands.len() {
                continue;
            }
            let Some(value) = key.int(&text) else { continue };
            let set = model.base >> bit & 1 == 1;
            let weight = value.wrapping_sub(at_base).wrapping_mul(if set { -1 } else { 1 });
            if weight != 0 {
                linear.weights.insert(bit, weight);
                if set {
                    linear.constant = linear.constant.wrapping_sub(weight);
                }
            }
        }
        found.insert(key, linear);
    }
    found
}

/// Gives registers different, ordinary numbers, integers and floats a value that no alias or elision concerns, and the
/// guard a number that prints; one field after the other, each where the word stays what it is.
fn make_generic(lab: &mut Lab, models: &mut [Model]) -> Result<()> {
    // Twice: a bit whose flip gave a special value in the first pass shows its weight in the second.
    for _ in 0..2 {
        ask_flips(lab, models)?;
        let plans: Vec<Vec<(Vec<u8>, u64)>> = models.iter().map(|m| generic_values(lab, m)).collect();
        let most = plans.iter().map(Vec::len).max().unwrap_or(0);
        for step in 0..most {
            let tries = models.iter().zip(&plans).map(|(m, plan)| {
                let (bits, raw) = plan.get(step)?;
                Some(assign(m.base, bits, *raw))
            });
            accept(lab, models, tries.collect(), |_, _| true)?;
        }
    }
    Ok(())
}

/// The ordinary value of each field: its bits and their value.
fn generic_values(lab: &Lab, model: &Model) -> Vec<(Vec<u8>, u64)> {
    let mut out = Vec::new();
    let mut index = 0;
    for (key, linear) in numbers(lab, model) {
        let bits = linear.bits();
        let Key::Hole(_, hole, _) = key else {
            out.extend(linear.raw(3).map(|raw| (bits, raw)));
            continue;
        };
        let unit = bits.first().map_or(1, |b| linear.weights[b].saturating_abs());
        let target = match hole {
            Hole::R => 16 + 8 * index,
            Hole::Ur => 8 + 4 * index,
            Hole::P | Hole::Up => [2, 4, 0][index as usize % 3],
            Hole::X | Hole::L if bits.len() > 13 => unit.wrapping_mul(0x1350),
            Hole::X | Hole::L if bits.len() >= 8 => unit.wrapping_mul(0x50),
            Hole::X | Hole::L => unit.wrapping_mul(3), // no flip of it is 0, which may be left out
            _ => continue,
        };
        index += 1;
        // With a weight still unknown, any value that is not a flip away from RZ or PT will do.
        let far = |v: &i64, zero: i64| (v ^ zero).count_ones() > 1;
        let others: Vec<i64> = match hole {
            Hole::P | Hole::Up => vec![0, 1, 2, 4],
            Hole::R => (target..256).step_by(4).filter(|v| far(v, 255)).collect(),
            Hole::Ur => (target..lab.uniform_zero)
                .step_by(4)
                .filter(|v| far(v, lab.uniform_zero))
                .collect(),
            Hole::X | Hole::L => vec![
                target.wrapping_add(linear.constant),
                linear.value(u128::MAX),
                unit.wrapping_mul(2),
                unit,
            ],
            _ => vec![],
        };
        let raw = std::iter::once(target).chain(others).find_map(|t| linear.raw(t));
        out.extend(raw.map(|raw| (bits, raw)));
    }
    if model.shown.components().iter().any(|c| c.1 == Hole::F) {
        out.push(((32..64).collect(), 0x4059_4060));
    }
    out
}

/// Moves each base to its word in `tries` where that shows the same operands, and `better` agrees.
fn accept(
    lab: &mut Lab,
    models: &mut [Model],
    tries: Vec<Option<u128>>,
    better: impl Fn(&Text, &Text) -> bool,
) -> Result<()> {
    lab.ask(tries.iter().flatten().copied())?;
    for (model, word) in models.iter_mut().zip(tries) {
        let Some(word) = word else { continue };
        if let Some(text) = model.see(lab, word)
            && text.mnemonic == model.shown.mnemonic
            && text.components() == model.shown.components()
            && better(&text, &model.shown)
        {
            model.base = word;
            model.shown = text;
        }
    }
    Ok(())
}

/// Clears negations and the like from the base, bit by bit: what is left out of the text at a special value is left out
/// in the bare shape only.
fn make_bare(lab: &mut Lab, models: &mut [Model]) -> Result<()> {
    let decoration =
        |t: &Text| -> (usize, usize) { (t.operands.iter().map(|o| o.shape.len()).sum(), t.modifiers.len()) };
    let better = |new: &Text, old: &Text| {
        let (new, old) = (decoration(new), decoration(old));
        new.0 < old.0 && new.1 <= old.1
    };
    // All flips at once, then one after the other those that help alone: asking in small steps is slow.
    ask_flips(lab, models)?;
    let helps = |m: &Model, bit: u8| m.see(lab, flip(m.base, bit)).is_some_and(|t| better(&t, &m.shown));
    let plans: Vec<Vec<u8>> = models
        .iter()
        .map(|m| field_bits().filter(|&b| b != 91 && helps(m, b)).collect())
        .collect();
    for step in 0..plans.iter().map(Vec::len).max().unwrap_or(0) {
        let tries = models
            .iter()
            .zip(&plans)
            .map(|(m, plan)| Some(flip(m.base, *plan.get(step)?)));
        accept(lab, models, tries.collect(), better)?;
    }
    Ok(())
}

/// Operands with one number are tried at that number's special values, and at those of seeds that print fewer operands: is the operand left
/// out there?
fn find_elisions(lab: &mut Lab, models: &mut [Model], seeds: &BTreeMap<Class, Vec<u128>>) -> Result<()> {
    ask_flips(lab, models)?;
    let mut tries: Vec<Vec<(u8, Elision, u128)>> = Vec::new();
    for model in models.iter() {
        let fields = numbers(lab, model);
        let shorter = |w: &&u128| {
            let full = model.shown.operands.len();
            lab.accepts(**w, model.class) && lab.text(**w).is_some_and(|t| t.0.operands.len() < full)
        };
        let shorter: Vec<u128> = seeds[&model.class].iter().filter(shorter).copied().collect();
        let mut list = Vec::new();
        for (i, operand) in model.shown.operands.iter().enumerate() {
            let [hole] = holes(&operand.shape)[..] else { continue };
            let Some(linear) = fields
                .get(&Key::Hole(i as u8, hole, 0))
                .filter(|l| !l.weights.is_empty())
            else {
                continue;
            };
            let bits = linear.bits();
            let all_ones = linear.value(u128::MAX);
            let mut special = match hole.zero(lab.uniform_zero) {
                Some(zero) => vec![zero],
                None if hole == Hole::X && bits.len() <= 5 => vec![0, all_ones],
                None if hole == Hole::X => vec![0],
                None => vec![],
            };
            if hole == Hole::X {
                special.extend(shorter.iter().map(|&w| linear.value(w)));
            }
            for value in special {
                if let Some(raw) = linear.raw(value) {
                    let word = assign(model.base, &bits, raw);
                    list.push((
                        i as u8,
                        Elision {
                            bits: bits.clone(),
                            raw,
                            value,
                            operand: operand.clone(),
                        },
                        word,
                    ));
                }
            }
        }
        tries.push(list);
    }
    lab.ask(tries.iter().flatten().map(|t| t.2))?;
    for (model, list) in models.iter_mut().zip(tries) {
        // Here the raw counts matter: `see` would already put operands back.
        let count = |word: u128| {
            let text = lab.text(word).filter(|_| lab.class(word) == Some(model.class));
            text.map(|t| t.0.operands.len())
        };
        let Some(full) = count(model.base) else { continue };
        let mut found: Vec<(u8, Elision)> = Vec::new();
        for (operand, elision, word) in list {
            if count(word) == full.checked_sub(1) && extract(word, &elision.bits) == elision.raw {
                found.push((operand, elision));
            }
        }
        for (operand, mut elision) in found {
            let kind = holes(&elision.operand.shape)[0];
            if let Some(slot) = elision.operand.values.first_mut() {
                *slot = Value::Int(kind.zero(lab.uniform_zero).unwrap_or(elision.value));
            }
            model.elisions.entry(operand).or_insert(elision);
        }
    }
    Ok(())
}

/// Operands `R# X#`: is the offset left out at 0? (A return keeps it, an absolute call does not.)
fn find_quiet_offsets(lab: &mut Lab, models: &mut [Model]) -> Result<()> {
    ask_flips(lab, models)?;
    let mut tries: Vec<(usize, u8, u128)> = Vec::new();
    for (m, model) in models.iter().enumerate() {
        let fields = numbers(lab, model);
        for (i, operand) in model.shown.operands.iter().enumerate() {
            let offset = fields.get(&Key::Hole(i as u8, Hole::X, 0));
            if let Some(linear) = offset.filter(|_| operand.shape.ends_with(" X#"))
                && let Some(raw) = linear.raw(0)
            {
                tries.push((m, i as u8, assign(model.base, &linear.bits(), raw)));
            }
        }
    }
    lab.ask(tries.iter().map(|t| t.2))?;
    for (m, operand, word) in tries {
        let model = &mut models[m];
        let full = model.shown.operands[operand as usize].shape.clone();
        let bare = model
            .see(lab, word)
            .is_some_and(|t| t.operands.get(operand as usize).map(|o| &*o.shape) == full.strip_suffix(" X#"));
        if bare {
            model.quiet_offsets.insert(operand);
        }
    }
    Ok(())
}

/// Constants that show their registers, always zero ones, only at offset 0: `c[0x1][RZ]`, `cx[UR4][URZ]`.
fn find_bank_registers(lab: &mut Lab, models: &mut [Model]) -> Result<()> {
    ask_flips(lab, models)?;
    let mut tries: Vec<(usize, u8, u128)> = Vec::new();
    for (m, model) in models.iter().enumerate() {
        let fields = numbers(lab, model);
        for (i, operand) in model.shown.operands.iter().enumerate() {
            let Some(bank) = address::plain_bank(&operand.shape) else {
                continue;
            };
            let before = holes(bank).iter().filter(|h| **h == Hole::X).count() as u8;
            if let Some(offset) = fields.get(&Key::Hole(i as u8, Hole::X, before))
                && let Some(raw) = offset.raw(0)
            {
                tries.push((m, i as u8, assign(model.base, &offset.bits(), raw)));
            }
        }
    }
    lab.ask(tries.iter().map(|t| t.2))?;
    for (m, operand, word) in tries {
        let model = &mut models[m];
        let Some(text) = model.see(lab, word) else { continue };
        let plain = model.shown.operands[operand as usize].shape.clone();
        let full = text.operands.get(operand as usize).map(|o| o.shape.clone());
        if let Some(full) = full.filter(|f| address::registers_of_bank(f, &plain).is_some()) {
            model.bank_registers.insert(operand, full);
            model.shown = model.see(lab, model.base).unwrap_or(model.shown.clone());
        }
    }
    Ok(())
}

/// Which bits a printed float comes from, and in which format.
fn floats(lab: &Lab, model: &Model) -> BTreeMap<Key, FloatField> {
    let mut out = BTreeMap::new();
    for (operand, hole, ordinal) in model.shown.components() {
        if hole != Hole::F {
            continue;
        }
        let key = Key::Hole(operand, hole, ordinal);
        let shows = |text: &Text| match text.value(operand, hole, ordinal) {
            Some(Value::Float(f)) => Some(f.to_string()),
            _ => None,
        };
        let at_base = shows(&model.shown);
        let moving: Vec<u8> = (32..64)
            .filter(|&b| {
                model
                    .single
                    .get(&b)
                    .and_then(Option::as_ref)
                    .is_some_and(|t| shows(t) != at_base)
            })
            .collect();
        let Some(&low) = moving.first() else { continue };
        let wide = low < 48 && moving.iter().any(|&b| b >= 48);
        let low = if wide || low < 48 { 32 } else { 48 };
        let score = |kind: FloatKind| {
            let field = FloatField {
                low,
                kind,
                overrides: vec![],
            };
            let words = moving.iter().map(|&b| flip(model.base, b)).chain([model.base]);
            words
                .filter(|&w| {
                    model
                        .see(lab, w)
                        .and_then(|t| shows(&t))
                        .is_some_and(|s| field.prints(w, &s))
                })
                .count()
        };
        let kinds = FloatKind::ALL.iter().copied().filter(|k| (k.width() == 32) == wide);
        if let Some(kind) = kinds.max_by_key(|&k| (score(k), std::cmp::Reverse(k))) {
            out.insert(
                key,
                FloatField {
                    low,
                    kind,
                    overrides: vec![],
                },
            );
        }
    }
    out
}
