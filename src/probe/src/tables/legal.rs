//! Learns which words of a class are legal, beyond the values of selectors: refused words teach rules, legal ones exceptions.

use anyhow::Result;

use super::lab::{Lab, flip};
use super::model::Model;
use crate::rules::Cube;

/// Where legality can be decided: everything but the opcode and the bits that must be preserved.
const FREE: std::ops::Range<u8> = 12..125;
/// Bit 91 extends the opcode.
const OPCODE_HIGH: u8 = 91;
/// Random words asked of what was learnt last, and how often what they teach is asked again.
const TRIALS: usize = 48;
const ROUNDS: usize = 8;
/// More rows are not understood.
const MOST_ROWS: usize = 96;

/// Words to teach with: model and word.
pub type Lesson = (usize, u128);

/// Which words a model should allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aim {
    /// Those that the disassembler accepts.
    Accepted,
    /// Of those the ones whose text the model gets right: what it cannot explain it refuses.
    Explained,
}

impl Aim {
    fn allows(self, lab: &Lab, model: &Model, word: u128) -> bool {
        lab.accepts(word, model.class) && (self == Self::Accepted || model.fault(lab, word).is_none())
    }

    /// Whether a model's rules say something else about a word whose selectors have legal values.
    fn contradicts(self, lab: &Lab, model: &Model, word: u128) -> bool {
        !lab.is_of_another(word, model.class) && model.rules.allow(word) != self.allows(lab, model, word)
    }
}

/// Learns from words of which the rules do not say what they should. `random` makes words of a model inside a cube, whatever its
/// rules say.
pub fn teach(
    lab: &mut Lab,
    models: &mut [Model],
    aim: Aim,
    mut lessons: Vec<Lesson>,
    mut random: impl FnMut(&Model, Cube) -> Option<u128>,
) -> Result<usize> {
    let mut learnt = 0;
    for _ in 0..ROUNDS {
        let mut taught: Vec<(usize, Cube)> = Vec::new();
        lessons.retain(|&(m, word)| aim.contradicts(lab, &models[m], word));
        let flips = |word: u128| FREE.filter(|&b| b != OPCODE_HIGH).map(move |b| (b, flip(word, b)));
        lab.ask(lessons.iter().flat_map(|&(_, w)| flips(w).map(|f| f.1)))?;
        for &(m, word) in &lessons {
            let model = &mut models[m];
            if !aim.contradicts(lab, model, word) || model.rules.rows() >= MOST_ROWS {
                continue; // what another word of this round taught covers it
            }
            let legal = aim.allows(lab, model, word);
            let taken = model.known_bits();
            let decides = |w: u128| {
                aim.allows(lab, model, w) != legal
                    && !lab.is_of_another(w, model.class)
                    && model.schedule.allows(w, taken) // what is never legal says nothing
            };
            let mask = flips(word).filter(|f| decides(f.1)).fold(0, |m, f| m | 1 << f.0);
            taught.extend(model.rules.learn(word, legal, mask).into_iter().map(|c| (m, c)));
        }
        if taught.is_empty() {
            break;
        }
        learnt += taught.len();
        lessons.clear();
        for (m, cube) in taught {
            lessons.extend((0..TRIALS).filter_map(|_| Some((m, random(&models[m], cube)?))));
        }
        lab.ask(lessons.iter().map(|l| l.1))?;
    }
    Ok(learnt)
}
