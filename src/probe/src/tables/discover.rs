//! Finds every class of instruction: structured and random words under all 8,192 opcodes, then flips of what was found,
//! then legal words of each class.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;

use super::lab::{CONTROL, quiet};
use super::part::Only;
use crate::nvdisasm::{Class, Nvdisasm};

/// Bit 91 extends the opcode for uniform forms.
const OPCODE: u128 = 0xfff | 1 << 91;
const NO_BARRIER: u128 = 0x3f << 110;
const WAIT: u128 = 0x3f << 116;
const GUARD_PT: u128 = 7 << 12;
/// Words tried under each opcode in the first sweep, and in the second under each opcode that exists.
const SWEEP: usize = 64;
const SATURATE: usize = 240;
/// Words kept of each class.
const KEEP: usize = 12;
/// Of these, words that a compiler made.
const KEEP_KNOWN: usize = 6;
const FLIP_ROUNDS: usize = 4;
/// Rounds of mutations; most are for classes of which no legal word is found.
const LEGAL_ROUNDS: usize = 60;

/// What the search found.
pub struct Found {
    /// Classes with legal words (control fields made quiet where that is still legal).
    pub seeds: BTreeMap<Class, Vec<u128>>,
    /// A word, not legal, of each class for which no legal word was found.
    pub unreached: Vec<u128>,
}

struct Search<'a> {
    nv: &'a Nvdisasm,
    only: &'a Only,
    random: fastrand::Rng,
    examples: BTreeMap<Class, Vec<u128>>,
    opcodes: BTreeSet<u128>,
}

/// Runs the search under the opcodes of `only`. `known` are words that a compiler made, of our own kernels.
pub fn discover(nv: &Nvdisasm, only: &Only, known: &[u128]) -> Result<Found> {
    let random = fastrand::Rng::with_seed(5);
    let mut search = Search {
        nv,
        only,
        random,
        examples: BTreeMap::new(),
        opcodes: BTreeSet::new(),
    };
    let words = search.sweep();
    search.note(&words)?;
    let words = search.saturate();
    search.note(&words)?;
    for round in 0..FLIP_ROUNDS {
        let flips: Vec<u128> = search
            .examples
            .values()
            .filter_map(|list| list.get(round))
            .flat_map(|&w| (12..105).map(move |b| w ^ 1 << b))
            .collect();
        search.note(&flips)?;
    }
    // Last: they are all alike, and would take the place of words that lead further.
    search.note(known)?;
    search.legal(known)
}

impl Search<'_> {
    fn note(&mut self, words: &[u128]) -> Result<()> {
        for (&word, class) in words.iter().zip(self.nv.classes(words)?) {
            let Some(class) = class else { continue };
            self.opcodes.insert(word & OPCODE);
            let list = self.examples.entry(class).or_default();
            if list.len() < KEEP && !list.contains(&word) {
                list.push(word);
            }
        }
        Ok(())
    }

    /// The first sweep: every opcode, with fills that reach most forms and random ones.
    fn sweep(&mut self) -> Vec<u128> {
        let random = &mut self.random;
        let mut words = Vec::with_capacity(0x2000 * SWEEP);
        let opcodes = (0..0x2000u128).map(|o| o & 0xfff | o >> 12 << 91);
        for opcode in opcodes.filter(|&o| self.only.has(o)) {
            for k in 0..SWEEP {
                let fill = match k {
                    0..16 => {
                        let part = |on: usize, v: u128| if k & on != 0 { v } else { 0 };
                        GUARD_PT
                            | part(1, 7 << 87)
                            | part(2, 0x3f << 81)
                            | part(4, 0xff << 64)
                            | part(8, ((1 << 40) - 1) << 24)
                    }
                    16..40 => GUARD_PT | 7 << 87 | 1 << (72 + (k - 16) % 19),
                    40..48 => GUARD_PT | 7 << 87 | u128::from(random.u64(..)) << 16,
                    _ if k % 4 == 1 => random.u128(..) & random.u128(..) & random.u128(..),
                    _ if k % 4 == 2 => u128::from(random.u64(..)),
                    _ => random.u128(..),
                };
                let word = fill & !OPCODE | opcode;
                words.push(if k % 8 != 0 { (word | NO_BARRIER) & !WAIT } else { word });
            }
        }
        words
    }

    /// The second sweep: many random fills under the opcodes that exist.
    fn saturate(&mut self) -> Vec<u128> {
        let random = &mut self.random;
        let mut words = Vec::with_capacity(self.opcodes.len() * SATURATE);
        for &opcode in &self.opcodes {
            for k in 0..SATURATE {
                let fill = match k % 3 {
                    0 => random.u128(..),
                    1 => random.u128(..) & random.u128(..),
                    _ => random.u128(..) | random.u128(..),
                };
                let word = fill & !OPCODE | opcode;
                words.push(if k % 8 != 0 { (word | NO_BARRIER) & !WAIT } else { word });
            }
        }
        words
    }

    /// Legal words of each class: the known ones, then mutations of examples.
    fn legal(mut self, known: &[u128]) -> Result<Found> {
        let mut seeds: BTreeMap<Class, Vec<u128>> = BTreeMap::new();
        self.keep_legal(
            &known.iter().map(|&w| quiet(w)).collect::<Vec<_>>(),
            KEEP_KNOWN,
            &mut seeds,
        )?;
        self.keep_legal(known, KEEP_KNOWN, &mut seeds)?;
        for round in 0..LEGAL_ROUNDS {
            let mut words = Vec::new();
            for (class, examples) in &self.examples {
                let have = seeds.get(class).map_or(0, Vec::len);
                if have >= KEEP || round > 1 && have > 0 {
                    continue;
                }
                for &example in examples {
                    words.extend((0..24).map(|k| mutate(example, k, round, &mut self.random)));
                }
            }
            self.keep_legal(&words, KEEP, &mut seeds)?;
        }
        let unreached = self
            .examples
            .iter()
            .filter(|(c, _)| !seeds.contains_key(c))
            .map(|(_, e)| e[0])
            .collect();
        Ok(Found { seeds, unreached })
    }

    /// Adds legal words to `seeds`, up to `most` of a class.
    fn keep_legal(&self, words: &[u128], most: usize, seeds: &mut BTreeMap<Class, Vec<u128>>) -> Result<()> {
        let classes = self.nv.classes(words)?;
        let texts = self.nv.texts(words)?;
        for ((&word, class), text) in words.iter().zip(classes).zip(texts) {
            if let (Some(class), Some(_)) = (class, text) {
                let list = seeds.entry(class).or_default();
                if list.len() < most && !list.contains(&word) {
                    list.push(word);
                }
            }
        }
        Ok(())
    }
}

/// A word near `example`; early rounds keep control quiet, later ones vary it (a few classes want barriers or none).
fn mutate(example: u128, k: usize, round: usize, random: &mut fastrand::Rng) -> u128 {
    let mask = match k % 4 {
        _ if k == 0 => 0,
        0 => random.u128(..),
        1 => random.u128(..) & random.u128(..),
        2 => random.u128(..) & random.u128(..) & random.u128(..),
        _ => random.u128(..) & random.u128(..) & random.u128(..) & random.u128(..),
    };
    let word = example ^ mask & ((1 << 105) - 1) & !0xfff;
    if round < 4 || k.is_multiple_of(2) {
        return quiet(word);
    }
    if k % 8 == 1 {
        return quiet(word) & !(0x1f << 105); // a few want stall 0
    }
    let control = random.u128(..) & CONTROL & !(0x1f << 105) | u128::from(random.u8(0..16)) << 105;
    word & !CONTROL | control
}
