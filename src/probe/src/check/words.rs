//! Random words that the tables call legal.

use std::collections::BTreeMap;

use isa::{FormId, Isa, Word};
use union_gen::bits::Bits;
use union_gen::family::Family;

const CONTROL: u128 = 0xfffff << 105; // bits 124:105
/// Tries before a form is given up on.
const TRIES: usize = 60;

/// A selector: its bits and their legal values.
type Selector<'a> = (&'a Bits, Vec<u64>);

/// Makes words; the same words in every run.
pub(super) struct Maker<'a> {
    isa: &'a Isa,
    selectors: BTreeMap<&'a str, Vec<Selector<'a>>>,
    random: fastrand::Rng,
}

impl<'a> Maker<'a> {
    pub(super) fn new(isa: &'a Isa, family: &'a Family) -> Self {
        let operands = family
            .operands
            .iter()
            .map(|r| (&r.form, 0u8, r.operand, &r.bits, r.value));
        let modifiers = family
            .modifiers
            .iter()
            .map(|r| (&r.form, 1u8, r.slot, &r.bits, r.value));
        let mut grouped: BTreeMap<(&str, u8, u8), Selector<'a>> = BTreeMap::new();
        for (form, table, index, bits, value) in operands.chain(modifiers) {
            let (_, values) = grouped.entry((form, table, index)).or_insert((bits, Vec::new()));
            values.push(value);
        }
        let mut selectors: BTreeMap<&str, Vec<Selector<'a>>> = BTreeMap::new();
        for ((form, ..), selector) in grouped {
            selectors.entry(form).or_default().push(selector);
        }
        Self {
            isa,
            selectors,
            random: fastrand::Rng::with_seed(87),
        }
    }

    /// Up to `count` words of a form: random legal selector values, random fields, random scheduling.
    pub(super) fn legal(&mut self, form: FormId, count: usize) -> Vec<u128> {
        let Some(data) = self.isa.form(form) else { return vec![] };
        let mut out = Vec::with_capacity(count);
        let fields = data.fields().iter().fold(0, |m, f| m | f.mask());
        for n in 0..count * TRIES {
            if out.len() == count {
                break;
            }
            let mut word = data.filler().0;
            // Special values meet often enough only if they are tried on purpose.
            for field in data.fields() {
                word = match self.random.u8(0..8) {
                    0 => word & !field.mask(),
                    1 => word | field.mask(),
                    2 => word,
                    _ => self.random_bits(word, field.mask()),
                };
            }
            let selectors = self.selectors.get(data.name()).map_or(&[][..], Vec::as_slice);
            for (bits, values) in selectors {
                // A selector over field bits keeps most of their variety.
                if bits.mask() & fields != 0 && values.contains(&bits.get(word)) {
                    continue;
                }
                if let Some(value) = self.random.choice(values) {
                    word = bits.set(word, *value);
                }
            }
            word = self.schedule(
                word,
                data.allows_write_barrier(),
                data.allows_read_barrier(),
                !data.reuse().is_empty(),
            );
            if n % 4 == 3 {
                let inst = self.isa.decode(Word(word));
                let free = !self.isa.known_mask(inst) & !CONTROL & !data.selector_mask() & !(7 << 125) & !fields;
                word = self.random_bits(word, free);
            }
            if self.isa.decode(Word(word)).form == form {
                out.push(word);
            }
        }
        out
    }

    /// Random scheduling bits that every form allows, and barriers where this one does.
    fn schedule(&mut self, word: u128, wbar: bool, rbar: bool, reuse: bool) -> u128 {
        let random = &mut self.random;
        let issue = Some(random.u128(0..28)).filter(|&s| s != 16).unwrap_or(1);
        let mut barrier = |legal: bool| if legal { random.u128(0..6) } else { 7 };
        let (write, read) = (barrier(wbar), barrier(rbar));
        let wait = random.u128(0..64);
        let flags = if reuse && issue & 16 != 0 { random.u128(0..8) } else { 0 };
        word & !CONTROL | issue << 105 | write << 110 | read << 113 | wait << 116 | flags << 122
    }

    /// `word` with random values in the bits of `mask`.
    pub(super) fn random_bits(&mut self, word: u128, mask: u128) -> u128 {
        word & !mask | self.random.u128(..) & mask
    }

    /// `word` with one or two bits outside opcode and scheduling flipped.
    pub(super) fn near(&mut self, word: u128) -> u128 {
        let bit = |r: &mut fastrand::Rng| 1u128 << r.u8(12..105);
        let second = if self.random.bool() { bit(&mut self.random) } else { 0 };
        word ^ bit(&mut self.random) ^ second
    }

    /// A random number below `n`; `None` if there is none.
    pub(super) fn below(&mut self, n: usize) -> Option<usize> {
        (n > 0).then(|| self.random.usize(0..n))
    }
}
