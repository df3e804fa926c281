//! What is known about the forms at work: their base words, and every word asked with what was seen.

use std::collections::{BTreeMap, BTreeSet};

use union_gen::bits::Bits;

use super::hidden::Base;
use super::model::{Matcher, Model, Slot};
use super::rules;
use super::words::{Maker, Numbers, Rng, Seen, Touch, Unit};
use crate::plr::{Answers, OracleError};

/// Base words of each kind: match row, tame or wild, which numbers.
const BASES: usize = 3;
/// More bits than a selector's value holds are not understood.
const MOST_DECISIVE: usize = 63;

/// A word that was asked.
pub struct Sample {
    /// What the tool showed.
    pub seen: Seen,
    /// Which fields hold a number of their own.
    pub owns: Vec<bool>,
    /// The numbers it was made with.
    pub numbers: Numbers,
}

/// A form at work.
pub struct Work<'a> {
    /// Makes its words.
    pub maker: Maker<'a>,
    /// Its own randomness.
    pub rng: Rng,
    /// What can be varied.
    pub units: Vec<Unit>,
    /// Words to start from.
    pub bases: Vec<Base>,
    /// Every word asked.
    pub data: BTreeMap<u128, Sample>,
    /// For each field the bits on which its access depends.
    pub depends: Vec<BTreeSet<u8>>,
    /// Things to look at.
    pub remarks: Vec<String>,
    /// Random words tried.
    pub tried: usize,
    /// How many of them the tool accepts.
    pub legal: usize,
}

/// A word to ask, and what it was made from.
pub struct Ask {
    /// Which form.
    pub work: usize,
    /// The word.
    pub word: u128,
    /// See [`Sample`].
    pub numbers: Numbers,
    /// See [`Sample`].
    pub owns: Vec<bool>,
}

/// Base words for each model.
pub fn prepare<'a>(
    oracle: &dyn Answers,
    models: &'a [Model],
    range: std::ops::Range<usize>,
    matcher: &'a Matcher,
    salt: u64,
) -> Result<Vec<Work<'a>>, OracleError> {
    let mut works: Vec<Work<'a>> = range
        .map(|i| {
            let maker = Maker::new(models, i, matcher);
            Work {
                rng: Rng::new(&maker.model.form, salt),
                units: maker.units(),
                depends: vec![BTreeSet::new(); maker.model.fields.len()],
                maker,
                bases: Vec::new(),
                data: BTreeMap::new(),
                remarks: Vec::new(),
                tried: 0,
                legal: 0,
            }
        })
        .collect();
    let asked = |w: &Work<'_>| !rules::UNASKED.contains(&w.maker.model.mnemonic.as_str());
    for tries in [16, 120] {
        let mut asks = Vec::new();
        let mut kinds = Vec::new();
        for (w, work) in works
            .iter_mut()
            .enumerate()
            .filter(|(_, w)| w.bases.len() < 2 && asked(w))
        {
            for row in 0..work.maker.model.rows.len() {
                for t in 0..tries {
                    let mut numbers = work.maker.numbers(&mut work.rng);
                    if t % 4 == 3 {
                        numbers = work.maker.without_predicates(&numbers);
                    }
                    let Some(word) = work.maker.base(&mut work.rng, row, t % 2 == 1) else {
                        continue;
                    };
                    for (n, numbers) in work.maker.apart(&numbers).into_iter().enumerate() {
                        let (word, owns) = work.maker.numbered(word, &numbers);
                        if let Some(word) = work.maker.own(word) {
                            asks.push(Ask {
                                work: w,
                                word,
                                numbers,
                                owns,
                            });
                            kinds.push((row, t % 2 == 1, n));
                        }
                    }
                }
            }
        }
        let answers = ask(oracle, &works, &asks)?;
        for (a, seen) in asks.iter().zip(&answers) {
            works[a.work].tried += 1;
            works[a.work].legal += usize::from(seen.is_some());
        }
        let mut count: BTreeMap<(usize, (usize, bool, usize)), usize> = BTreeMap::new();
        for ((a, seen), kind) in asks.into_iter().zip(answers).zip(kinds) {
            let Some(seen) = seen else { continue };
            let n = count.entry((a.work, kind)).or_default();
            if *n < BASES {
                *n += 1;
                works[a.work].bases.push(Base {
                    word: a.word,
                    numbers: a.numbers,
                    owns: a.owns,
                    seen,
                });
            }
        }
    }
    // Last resort: the filler, with a number in one field at a time.
    let mut asks = Vec::new();
    for (w, work) in works
        .iter_mut()
        .enumerate()
        .filter(|(_, w)| w.bases.is_empty() && asked(w))
    {
        for _ in 0..3 {
            let numbers = work.maker.numbers(&mut work.rng);
            for field in 0..=work.maker.model.fields.len() {
                let one = numbers.only(field);
                let (word, owns) = work.maker.numbered(work.maker.model.filler, &one);
                asks.extend(work.maker.own(word).map(|word| Ask {
                    work: w,
                    word,
                    numbers: one,
                    owns,
                }));
            }
        }
        work.remarks
            .push("no random word is legal: learnt from its filler".into());
    }
    let answers = ask(oracle, &works, &asks)?;
    for (a, seen) in asks.into_iter().zip(answers) {
        if let Some(seen) = seen {
            works[a.work].bases.push(Base {
                word: a.word,
                numbers: a.numbers,
                owns: a.owns,
                seen,
            });
        }
    }
    for work in &mut works {
        for base in &work.bases {
            let sample = Sample {
                seen: base.seen.clone(),
                owns: base.owns.clone(),
                numbers: base.numbers.clone(),
            };
            work.data.insert(base.word, sample);
        }
    }
    Ok(works)
}

fn ask(oracle: &dyn Answers, works: &[Work<'_>], asks: &[Ask]) -> Result<Vec<Option<Seen>>, OracleError> {
    let lines = oracle.usage(&asks.iter().map(|a| a.word).collect::<Vec<_>>())?;
    let seen = asks
        .iter()
        .zip(lines)
        .map(|(a, line)| Some(works[a.work].maker.seen(a.word, &a.owns, &line?.usage)));
    Ok(seen.collect())
}

/// Asks and keeps the answers.
pub fn ask_and_keep(oracle: &dyn Answers, works: &mut [Work<'_>], asks: Vec<Ask>) -> Result<(), OracleError> {
    let answers = ask(oracle, works, &asks)?;
    for (a, seen) in asks.into_iter().zip(answers) {
        if let Some(seen) = seen {
            works[a.work].data.insert(
                a.word,
                Sample {
                    seen,
                    owns: a.owns,
                    numbers: a.numbers,
                },
            );
        }
    }
    Ok(())
}

impl Work<'_> {
    /// `word` with `unit` set to `value`, numbered again; none if it is another form's.
    pub fn variant(&self, word: u128, bits: &Bits, value: u64, numbers: &Numbers) -> Option<(u128, Vec<bool>)> {
        let word = self.maker.own(bits.set(word, value))?;
        let (word, owns) = self.maker.numbered(word, numbers);
        Some((self.maker.own(word)?, owns))
    }

    /// Whether the field is touched in shapes that do not print it.
    pub fn always(&self, field: usize) -> bool {
        let f = &self.maker.model.fields[field];
        matches!(f.slot, Slot::Hidden(_))
            || self
                .data
                .iter()
                .any(|(w, s)| s.seen.touch[field].is_some_and(|t| t != (0, 0)) && !self.maker.printed(f, *w))
    }

    /// The words that show `field`.
    pub fn shown(&self, field: usize, always: bool) -> Vec<(u128, Touch)> {
        let f = &self.maker.model.fields[field];
        self.data
            .iter()
            .filter(|(w, _)| always || self.maker.printed(f, **w))
            .filter_map(|(w, s)| Some((*w, s.seen.touch[field]?)))
            .collect()
    }

    pub fn decisive(&self, field: usize) -> Bits {
        let depends = &self.depends[field];
        let understood = depends.len() <= MOST_DECISIVE;
        Bits(depends.iter().copied().filter(|_| understood).collect())
    }

    /// Notes that the field changes between two words that differ in the units' bits.
    pub fn note(&mut self, field: usize, a: u128, b: u128) -> bool {
        let free = self.units.iter().fold(0, |m, u| m | u.bits.mask()) | self.maker.model.fixed_somewhere();
        let before = self.depends[field].len();
        self.depends[field].extend((0..128u8).filter(|i| (a ^ b) & free & (1 << i) != 0));
        self.depends[field].len() > before
    }

    /// The units that cover the field's decisive bits.
    pub fn units_of(&self, field: usize) -> Vec<usize> {
        let mask = self.decisive(field).mask();
        (0..self.units.len())
            .filter(|&u| self.units[u].bits.mask() & mask != 0)
            .collect()
    }
}
