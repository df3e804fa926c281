//! What words that a compiler made teach of their models: values of selectors that no change of a bit or two reaches, and exceptions
//! from rules.

use anyhow::Result;

use super::groups::WIDEST;
use super::lab::{Lab, assign, extract, field_bits};
use super::legal::{self, Aim, Lesson};
use super::model::Model;
use super::refine::join_groups;
use crate::rules::Cube;

/// Words of a model that are looked into.
const WORDS: usize = 8;

/// The words of `known` that are of each model.
pub fn of_models(lab: &mut Lab, models: &[Model], known: &[u128]) -> Result<Vec<Vec<u128>>> {
    lab.ask(known.iter().copied())?;
    let of = |m: &Model| known.iter().copied().filter(|&w| lab.accepts(w, m.class)).collect();
    Ok(models.iter().map(of).collect())
}

/// Turns known words that the rules refuse into exceptions: up to `most` of a model.
pub fn teach(
    lab: &mut Lab,
    models: &mut [Model],
    known: &[Vec<u128>],
    most: usize,
    random: impl FnMut(&Model, Cube) -> Option<u128>,
) -> Result<usize> {
    let refused = |(m, words): (usize, &Vec<u128>)| -> Vec<Lesson> {
        let model = &models[m];
        let wrongly = words.iter().filter(|&&w| model.selects(w) && !model.rules.allow(w));
        wrongly.take(most).map(|&w| (m, w)).collect()
    };
    let lessons = known.iter().enumerate().flat_map(refused).collect();
    legal::teach(lab, models, Aim::Accepted, lessons, random)
}

/// Joins modifier selectors, with bits that are thought to be fixed, where a known word has values that are legal together only.
/// Returns how often.
pub fn join(lab: &mut Lab, models: &mut [Model], known: &[Vec<u128>]) -> Result<usize> {
    let mut joined = 0;
    for (model, words) in models.iter_mut().zip(known) {
        for _ in 0..WORDS {
            let Some(&word) = words.iter().find(|&&w| !model.selects(w)) else {
                break;
            };
            if !join_for(lab, model, word)? {
                break;
            }
            joined += 1;
        }
    }
    Ok(joined)
}

/// Puts all that does not matter back to what the base has, and joins what is left.
fn join_for(lab: &mut Lab, model: &mut Model, mut word: u128) -> Result<bool> {
    let mut settings: Vec<Vec<u8>> = model.numbers.values().map(|n| n.bits()).collect();
    settings.extend(model.floats.values().map(|f| f.bits().collect()));
    settings.extend(model.parts.values().map(|p| p.0.clone()));
    settings.push((105..125).collect());
    let others = settings.len();
    settings.extend(model.groups.iter().map(|g| g.bits.clone()));
    let taken = model.known_bits() & !model.rules.fixed();
    settings.extend(
        field_bits()
            .filter(|&b| b < 105 && b != 91 && taken >> b & 1 == 0)
            .map(|b| vec![b]),
    );
    for bits in &settings {
        let tried = assign(word, bits, extract(model.base, bits));
        lab.ask([tried])?;
        if lab.accepts(tried, model.class) && !model.selects(tried) {
            word = tried;
        }
    }
    let differs = |bits: &&Vec<u8>| extract(word, bits) != extract(model.base, bits);
    if settings[..others].iter().any(|bits| differs(&bits)) {
        return Ok(false); // the shape of an operand, or a number, takes part
    }
    let mut bits: Vec<u8> = settings[others..].iter().filter(differs).flatten().copied().collect();
    bits.sort_unstable();
    let touched = |g: &usize| model.groups[*g].bits.iter().any(|b| bits.contains(b));
    let groups: Vec<usize> = (0..model.groups.len()).filter(touched).collect();
    if bits.len() > WIDEST || !join_groups(lab, model, bits.clone(), &groups)? {
        return Ok(false);
    }
    // The values that are not legal now have no row.
    let joined = bits.iter().fold(0, |m, b| m | 1 << b);
    model.rules.free(joined);
    Ok(model.selects(word))
}
