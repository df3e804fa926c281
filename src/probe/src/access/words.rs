//! Makes words of a form whose register fields hold distinct, far-apart numbers, and reads `-plr`'s answer back per field.

use union_gen::bits::Bits;

use super::model::{CONTROL, Matcher, Model, RegField, Slot};
use super::rules;
use crate::plr::{File, Usage};

/// A small deterministic generator (splitmix64).
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// Seeded by a name, so that a form's words do not depend on the other forms.
    pub fn new(name: &str, salt: u64) -> Self {
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325 ^ salt, |h, b| {
            (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3)
        });
        Self(hash)
    }

    /// The next 64 bits.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// 128 random bits.
    pub fn word(&mut self) -> u128 {
        u128::from(self.next()) << 64 | u128::from(self.next())
    }

    /// Below `n`, which is not 0.
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    /// Puts `items` in random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i + 1));
        }
    }
}

/// What one field does in one word: registers read and written from its number on.
pub type Touch = (u8, u8);

/// Everything seen in one word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// For each field of the model: none if it holds no number of its own in this word.
    pub touch: Vec<Option<Touch>>,
    /// Registers that no field explains.
    pub rest: Usage,
}

/// A register number for each field of a form; the same one in every word made from one base.
#[derive(Clone, Debug)]
pub struct Numbers(Vec<Option<u32>>);

impl Numbers {
    /// A number in field `field` only.
    pub fn only(&self, field: usize) -> Self {
        Self(
            self.0
                .iter()
                .enumerate()
                .map(|(i, n)| n.filter(|_| i == field))
                .collect(),
        )
    }
}

/// The part of a word that can be varied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// Its bits.
    pub bits: Bits,
    /// The values to try.
    pub values: Vec<u64>,
    free: bool,
}

impl Unit {
    /// Whether it is a bit that no selector has.
    pub fn is_free_bit(&self) -> bool {
        self.free
    }
}

/// Instructions after which the tool wants a valid target: their numbers stay 0.
const TARGETS: &[&str] = &[
    "BRA", "BRX", "BRXU", "JMP", "JMX", "JMXU", "CALL", "RET", "BSSY", "WARPSYNC",
];

/// Uniform registers from this one on have no column in the tool, also where a field has eight bits for them.
const SHOWN_UNIFORM: usize = 63;

/// Makes words of one form.
pub struct Maker<'a> {
    /// The form.
    pub model: &'a Model,
    index: usize,
    matcher: &'a Matcher,
}

impl<'a> Maker<'a> {
    /// For the model with index `index`.
    pub fn new(models: &'a [Model], index: usize, matcher: &'a Matcher) -> Self {
        Self {
            model: &models[index],
            index,
            matcher,
        }
    }

    /// Numbers for the fields, in random order from a pool that keeps tuples apart and aligned.
    pub fn numbers(&self, rng: &mut Rng) -> Numbers {
        let mut out = vec![None; self.model.fields.len()];
        for file in File::ALL {
            let mine = || self.model.fields.iter().enumerate().filter(|(_, f)| f.file == file);
            let mut pool: Vec<u32> = match file {
                File::P | File::Up => (0..7).collect(),
                File::R if mine().all(|(_, f)| f.bits.len() >= 8) => (1..16).map(|i| 16 * i).collect(),
                File::R | File::Ur => (1..8).map(|i| 8 * i).collect(),
            };
            rng.shuffle(&mut pool);
            for ((i, _), n) in mine().zip(pool) {
                out[i] = Some(n);
            }
        }
        Numbers(out)
    }

    /// The same as it is used: where tuples are wide, once for each register, with the zero register in the others, as nothing else
    /// would be far enough away.
    pub fn apart(&self, numbers: &Numbers) -> Vec<Numbers> {
        if !rules::is_wide(&self.model.mnemonic) {
            return vec![numbers.clone()];
        }
        let fields = &self.model.fields;
        let is_tuple = |f: &RegField| matches!(f.file, File::R | File::Ur);
        let alone = |one: usize| {
            let number = |(i, (f, n)): (usize, (&RegField, &Option<u32>))| match f.file {
                File::P | File::Up => *n,
                _ if i != one => Some(f.zero()),
                File::R => n.map(|n| 16 + n % 96),
                File::Ur => n.map(|n| 8 + n % 40),
            };
            Numbers(fields.iter().zip(&numbers.0).enumerate().map(number).collect())
        };
        let tuples = (0..fields.len()).filter(|i| is_tuple(&fields[*i]));
        tuples.map(alone).collect()
    }

    /// The same with PT and UPT in all predicate operands: some modifiers are legal only then.
    pub fn without_predicates(&self, numbers: &Numbers) -> Numbers {
        let one = |(f, n): (&RegField, &Option<u32>)| match f.file {
            File::P | File::Up if f.slot != Slot::Guard => Some(f.zero()),
            _ => *n,
        };
        Numbers(self.model.fields.iter().zip(&numbers.0).map(one).collect())
    }

    /// Numbers as real code has them: any multiple of four, sometimes the zero register; any number at all if `odd`.
    pub fn scattered(&self, rng: &mut Rng, odd: bool) -> Numbers {
        let number = |f: &RegField| {
            let end = match f.file {
                File::Ur => SHOWN_UNIFORM,
                _ => 255,
            };
            match f.file {
                _ if rng.below(8) == 0 => f.zero(),
                File::P | File::Up => rng.below(7) as u32,
                _ if odd => rng.below(end - 8) as u32,
                _ => 4 * rng.below(end / 4 - 2) as u32,
            }
        };
        Numbers(self.model.fields.iter().map(number).map(Some).collect())
    }

    /// A random word of match row `row`: selectors are drawn from their legal values; bits that nothing owns, and
    /// numbers, are the filler's, or random ones if `wild`. None if it would be of another form.
    pub fn base(&self, rng: &mut Rng, row: usize, wild: bool) -> Option<u128> {
        let m = self.model;
        let owned = m.fields.iter().fold(m.selected() | CONTROL, |o, f| o | f.bits.mask());
        let noise = if wild { rng.word() & !owned } else { 0 };
        let mut word = m.filler ^ noise;
        if self.has_target() {
            word = m.numbers.iter().fold(word, |w, (bits, _)| bits.set(w, 0));
        }
        for g in &m.groups {
            if !g.values.is_empty() {
                word = g.bits.set(word, g.values[rng.below(g.values.len())]);
            }
        }
        let (mask, value) = m.rows[row];
        self.own(word & !mask | value)
    }

    /// `word` if it is of this form, and its rules allow it.
    pub fn own(&self, word: u128) -> Option<u128> {
        (self.matcher.find(word) == Some(self.index) && self.model.rules.allow(word)).then_some(word)
    }

    /// Whether a number of the form is a place in the code.
    pub fn has_target(&self) -> bool {
        TARGETS.contains(&self.model.mnemonic.as_str()) || self.model.numbers.iter().any(|(_, rel)| *rel)
    }

    /// `word` with the numbers in every field that owns its bits, and which fields those are.
    pub fn numbered(&self, word: u128, numbers: &Numbers) -> (u128, Vec<bool>) {
        let m = self.model;
        let fixed = m.fixed_in(word);
        let mut taken = m.selected() | CONTROL;
        let mut out = word;
        let mut owns = vec![false; m.fields.len()];
        for printed in [true, false] {
            if !printed {
                taken = m.numbers.iter().fold(taken, |t, (bits, _)| t | bits.mask());
            }
            for (i, field) in m.fields.iter().enumerate() {
                let mask = field.bits.mask();
                let Some(n) = numbers.0[i].filter(|_| m.printed(field, word) == printed && taken & mask == 0) else {
                    continue;
                };
                let set = field.set(out, n);
                // A match row may fix bits of a field; another row of the form may allow the number.
                if fixed & mask == 0 || self.own(set).is_some() {
                    out = set;
                    owns[i] = n != field.zero();
                    taken |= mask;
                }
            }
        }
        // A hidden operand may lie on bits that the text takes for a word: its number is what the word says.
        for (i, field) in m.fields.iter().enumerate() {
            let n = field.get(out);
            if owns[i] || !matches!(field.slot, Slot::Hidden(_)) || n == field.zero() {
                continue;
            }
            let apart = if matches!(field.file, File::P | File::Up) { 1 } else { 8 };
            let near = |j: &usize| m.fields[*j].file == field.file && m.fields[*j].get(out).abs_diff(n) < apart;
            let close: Vec<usize> = (0..owns.len()).filter(|j| *j != i && near(j)).collect();
            owns[i] = close.is_empty();
            close.into_iter().for_each(|j| owns[j] = false);
        }
        (out, owns)
    }

    /// What can be varied: selectors, and each other bit of 104:0 that no match row fixes and no register field covers.
    pub fn units(&self) -> Vec<Unit> {
        let m = self.model;
        let mut units: Vec<Unit> = m
            .groups
            .iter()
            .map(|g| Unit {
                bits: g.bits.clone(),
                values: g.values.clone(),
                free: false,
            })
            .collect();
        let mut taken = m.fixed() | m.selected() | CONTROL;
        taken = m.fields.iter().fold(taken, |t, f| t | f.bits.mask());
        if self.has_target() {
            taken = m.numbers.iter().fold(taken, |t, (bits, _)| t | bits.mask());
        }
        units.extend((0..105u8).filter(|b| taken >> b & 1 == 0).map(|b| Unit {
            bits: Bits(vec![b]),
            values: vec![0, 1],
            free: true,
        }));
        units
    }

    /// Splits the tool's answer on `word` among the fields.
    pub fn seen(&self, word: u128, owns: &[bool], usage: &Usage) -> Seen {
        let mut rest = *usage;
        let alone = rules::is_wide(&self.model.mnemonic);
        let touch = self.model.fields.iter().zip(owns).map(|(field, &owns)| {
            owns.then(|| {
                let (n, file) = (field.get(word), field.file as usize);
                let width = |set: &crate::plr::RegSet| match field.file {
                    File::P | File::Up => u8::from(set.has(n)),
                    _ if alone => set.run(n),
                    File::R => set.run(n).min(16), // numbers are 16 apart
                    File::Ur => set.run(n).min(7),
                };
                let touch = (width(&usage.read[file]), width(&usage.write[file]));
                (n..n + u32::from(touch.0)).for_each(|r| rest.read[file].remove(r));
                (n..n + u32::from(touch.1)).for_each(|r| rest.write[file].remove(r));
                touch
            })
        });
        let touch = touch.collect();
        Seen { touch, rest }
    }

    /// Whether `field` is printed in `word`.
    pub fn printed(&self, field: &RegField, word: u128) -> bool {
        self.model.printed(field, word)
    }
}
