//! Asks the disassembler about words, each once.

use std::collections::{HashMap, HashSet};

use anyhow::Result;

use crate::nvdisasm::{Class, Nvdisasm, Printed};
use crate::text::Text;

/// Control bits 121:105 (stall, yield, barriers, wait mask) and 124:122.
pub const CONTROL: u128 = 0x1ffff << 105 | 7 << 122;
/// The control field of every probe: stall 1, bit 109 set (so that reuse flags show), no barriers.
pub const QUIET: u128 = 0x11 << 105 | 0x3f << 110;

/// Where an instruction's own fields can be: everything but opcode, control and the bits that must be preserved.
pub fn field_bits() -> impl Iterator<Item = u8> + Clone {
    (12..105).chain(122..125)
}

/// `word` with [`QUIET`] control.
pub fn quiet(word: u128) -> u128 {
    word & !CONTROL | QUIET
}

/// `word` with one bit flipped.
pub fn flip(word: u128, bit: u8) -> u128 {
    word ^ 1 << bit
}

/// `word` with `bits` (least significant first) set to `value`.
pub fn assign(word: u128, bits: &[u8], value: u64) -> u128 {
    bits.iter()
        .enumerate()
        .fold(word, |w, (i, &b)| w & !(1 << b) | u128::from(value >> i & 1) << b)
}

/// The value of `bits` in `word`.
pub fn extract(word: u128, bits: &[u8]) -> u64 {
    bits.iter()
        .enumerate()
        .fold(0, |v, (i, &b)| v | ((word >> b & 1) as u64) << i)
}

struct Answer {
    text: Option<Printed>,
    class: Option<Class>,
}

/// What is known about words so far.
pub struct Lab<'a> {
    nv: &'a Nvdisasm,
    /// 63 or 255: the number of URZ on this target.
    pub uniform_zero: i64,
    seen: HashMap<u128, Answer>,
    /// Classes that have a model.
    pub modelled: HashSet<Class>,
}

impl<'a> Lab<'a> {
    /// A lab that knows nothing yet.
    pub fn new(nv: &'a Nvdisasm, uniform_zero: i64) -> Self {
        Self {
            nv,
            uniform_zero,
            seen: HashMap::new(),
            modelled: HashSet::new(),
        }
    }

    /// Number of different words asked about.
    pub fn asked(&self) -> usize {
        self.seen.len()
    }

    /// Asks about those of `words` that are not known yet.
    pub fn ask(&mut self, words: impl IntoIterator<Item = u128>) -> Result<()> {
        let mut fresh: Vec<u128> = Vec::new();
        let mut queued = HashSet::new();
        for w in words {
            if !self.seen.contains_key(&w) && queued.insert(w) {
                fresh.push(w);
            }
        }
        drop(queued);
        let texts = self.nv.texts(&fresh)?;
        let classes = self.nv.classes(&fresh)?;
        for ((word, text), class) in fresh.into_iter().zip(texts).zip(classes) {
            self.seen.insert(word, Answer { text, class });
        }
        Ok(())
    }

    /// The class of a word that was asked about.
    pub fn class(&self, word: u128) -> Option<Class> {
        self.seen.get(&word)?.class
    }

    /// Whether a word that was asked about is of a class that has a model, but not `class`.
    pub fn is_of_another(&self, word: u128, class: Class) -> bool {
        let own = self.class(word);
        own != Some(class) && own.is_some_and(|c| self.modelled.contains(&c))
    }

    /// Whether a word that was asked about is a legal word of `class`.
    pub fn accepts(&self, word: u128, class: Class) -> bool {
        self.class(word) == Some(class) && self.is_legal(word)
    }

    /// Whether a word that was asked about is legal.
    pub fn is_legal(&self, word: u128) -> bool {
        self.seen.get(&word).is_some_and(|a| a.text.is_some())
    }

    /// The text of a word that was asked about, and the address it had then; `None` where it is not legal.
    pub fn text(&self, word: u128) -> Option<(Text, u64)> {
        let printed = self.seen.get(&word)?.text.as_ref()?;
        Some((Text::parse(&printed.text, self.uniform_zero), printed.address))
    }

    /// The raw text of a word that was asked about.
    pub fn raw(&self, word: u128) -> Option<&str> {
        Some(&*self.seen.get(&word)?.text.as_ref()?.text)
    }

    /// The disassembler itself.
    pub fn nvdisasm(&self) -> &Nvdisasm {
        self.nv
    }
}
