//! Finds registers that an instruction touches and no text shows, and the bits that name them.
//!
//! A word is given distinct numbers in all known fields. If the tool still reports another register, each bit that no field
//! covers is flipped in turn: a bit that moves the register by a power of two is part of its field.

use std::collections::BTreeMap;

use union_gen::bits::Bits;

use super::model::{CONTROL, RegField, Slot};
use super::words::{Maker, Numbers, Seen};
use crate::plr::{File, Usage};

/// A base word of the search.
pub struct Base {
    /// The word, numbered.
    pub word: u128,
    /// Its numbers.
    pub numbers: Numbers,
    /// Which fields hold them.
    pub owns: Vec<bool>,
    /// What the tool says.
    pub seen: Seen,
}

/// A run of registers that are touched alike: file, first, count, read, written.
type Run = (File, u32, u8, bool, bool);

fn runs(usage: &Usage) -> Vec<Run> {
    let mut out: Vec<Run> = Vec::new();
    for file in File::ALL {
        for n in 0..256 {
            let (r, w) = (usage.read[file as usize].has(n), usage.write[file as usize].has(n));
            if !r && !w {
                continue;
            }
            match out.last_mut() {
                Some(last)
                    if matches!(file, File::R | File::Ur)
                        && (last.0, last.1 + u32::from(last.2), last.3, last.4) == (file, n, r, w) =>
                {
                    last.2 += 1
                }
                _ => out.push((file, n, 1, r, w)),
            }
        }
    }
    out
}

/// The bits to flip in `base`: all but control, the form's match bits and the fields that hold numbers.
pub fn flips(maker: &Maker<'_>, base: &Base) -> Vec<(u8, u128)> {
    let m = maker.model;
    let mut taken = m.fixed() | CONTROL;
    for (field, owns) in m.fields.iter().zip(&base.owns) {
        if *owns {
            taken |= field.bits.mask();
        }
    }
    (0..105u8)
        .filter(|b| taken >> b & 1 == 0)
        .filter_map(|b| Some((b, maker.own(base.word ^ 1 << b)?)))
        .collect()
}

/// Evidence: (file, power of two) to (bit, inverted) with votes.
#[derive(Default)]
pub struct Votes(BTreeMap<(File, u8, u8, bool), usize>);

impl Votes {
    /// Takes in one base and its flipped words.
    pub fn add(&mut self, base: &Base, flipped: &[(u8, Option<Usage>)]) {
        let before = runs(&base.seen.rest);
        for (bit, rest) in flipped {
            let Some(rest) = rest else { continue };
            let after = runs(rest);
            let gone: Vec<&Run> = before.iter().filter(|r| !after.contains(r)).collect();
            let new: Vec<&Run> = after.iter().filter(|r| !before.contains(r)).collect();
            let ([old], [new]) = (gone.as_slice(), new.as_slice()) else {
                continue;
            };
            let moved = old.1 ^ new.1;
            if (old.0, old.2, old.3, old.4) == (new.0, new.2, new.3, new.4) && moved.is_power_of_two() {
                let k = moved.trailing_zeros() as u8;
                let inverted = (old.1 >> k & 1) != (base.word >> bit & 1) as u32;
                *self.0.entry((old.0, k, *bit, inverted)).or_default() += 1;
            }
        }
    }

    /// The fields that the votes agree on, and remarks on what does not fit.
    pub fn fields(&self, width: impl Fn(File) -> u8, taken: u128) -> (Vec<RegField>, Vec<String>) {
        let mut fields: Vec<RegField> = Vec::new();
        let mut remarks = Vec::new();
        // A field is contiguous in every known case: bit - power is the same for all its bits.
        let mut clusters: BTreeMap<(File, i16, bool), (Vec<u8>, usize)> = BTreeMap::new();
        for (&(file, k, bit, inverted), &votes) in &self.0 {
            let c = clusters
                .entry((file, i16::from(bit) - i16::from(k), inverted))
                .or_default();
            c.0.push(k);
            c.1 += votes;
        }
        let mut hidden = 0;
        for ((file, low, inverted), (powers, votes)) in clusters {
            let n = width(file);
            let bits: Vec<u8> = (0..n).map(|k| (low + i16::from(k)).clamp(0, 127) as u8).collect();
            let mask = Bits(bits.clone()).mask();
            if powers.len() * 2 < usize::from(n) || mask & taken != 0 || mask.count_ones() != u32::from(n) {
                remarks.push(format!(
                    "{}{n} at {low}: powers {powers:?}, {votes} votes: not a field",
                    file.name()
                ));
                continue;
            }
            if powers.len() < usize::from(n) {
                remarks.push(format!("{} at {low}: only powers {powers:?} seen", file.name()));
            }
            fields.push(RegField {
                name: format!("h{hidden}.{}0", file.name()),
                slot: Slot::Hidden(hidden),
                hole: 0,
                file,
                bits: Bits(bits),
                inverted,
                offset: 0,
            });
            hidden += 1;
        }
        (fields, remarks)
    }
}
