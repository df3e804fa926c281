//! Words to test with.
#![allow(dead_code)]

use std::collections::BTreeSet;

use isa::{Isa, Target, Word};

/// The tables under test, which every build of the tests embeds.
pub fn sm87() -> &'static Isa {
    Isa::for_target(Target::Sm87).expect("sm_87 is embedded unless SASS_ACTIVE_SMS leaves it out")
}

/// Every distinct word of the bundled kernels, in order of first appearance.
pub fn own_words() -> Vec<Word> {
    let mut seen = BTreeSet::new();
    let mut out = Vec::new();
    for bytes in [
        &include_bytes!("../../../../tests/kernels/sm_87/own_features.cubin")[..],
        include_bytes!("../../../../tests/kernels/sm_87/own_features.cuda12.9.cubin"),
    ] {
        let image = cubin::Image::parse(bytes).expect("the bundled cubin is well-formed");
        for code in image.codes() {
            out.extend(Word::all(&bytes[code.range.clone()]).filter(|w| seen.insert(*w)));
        }
    }
    out
}

/// Random numbers from a seed.
pub struct Random(pub u64);

impl Random {
    /// The next one.
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A word of the form with known bits at random; it may not be legal.
    pub fn word(&mut self, isa: &Isa, form: isa::Form<'_>) -> Word {
        let known = isa.known_mask(isa.decode(form.filler()));
        let random = u128::from(self.next()) << 64 | u128::from(self.next());
        let rarely = random & (u128::from(self.next()) << 64 | u128::from(self.next()));
        let flips = if self.next().is_multiple_of(2) {
            random
        } else {
            rarely & rarely.rotate_left(17)
        };
        Word(form.filler().0 ^ flips & known)
    }

    /// Up to `n` legal words of the form.
    pub fn legal_words(&mut self, isa: &Isa, form: isa::Form<'_>, n: usize) -> Vec<Word> {
        let tries = (0..n * 20).map(|_| self.word(isa, form));
        tries.filter(|&w| isa.decode(w).form == form.id()).take(n).collect()
    }
}

/// The text of a word at address 0.
pub fn text(isa: &Isa, w: Word) -> String {
    let mut out = String::new();
    isa.write_text(isa.decode(w), 0, &mut out, None)
        .expect("strings take any text");
    out
}
