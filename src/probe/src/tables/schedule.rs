//! What the scheduling bits of a class may be: barriers, operand-cache flags.

use anyhow::Result;

use super::lab::{Lab, field_bits, flip, quiet};
use super::model::Model;
use crate::rules::Rule;

/// The scoreboards to wait for.
const WAIT: std::ops::Range<u8> = 116..122;

/// Barriers and flags of a class.
#[derive(Clone, Debug, Default)]
pub struct Schedule {
    /// Whether a write barrier is legal.
    pub write: bool,
    /// Whether a read barrier is legal.
    pub read: bool,
    /// Operand-cache flags: bit and operand.
    pub reuse: Vec<(u8, u8)>,
    /// Bits 124:122 are no such flags at any stall.
    pub batch: bool,
}

/// Finds them for every model; needs the texts of single flips.
pub fn schedules(lab: &mut Lab, models: &mut [Model]) -> Result<()> {
    let write = |m: &Model| m.base & !(7 << 110);
    let read = |m: &Model| m.base & !(7 << 113);
    let batch = |m: &Model| quiet(m.base) | 5 << 122;
    lab.ask(models.iter().flat_map(|m| [write(m), read(m), batch(m)]))?;
    lab.ask(models.iter().flat_map(|m| WAIT.map(|b| flip(m.base, b))))?;
    for model in models {
        let operand_of = |bit: u8| {
            let text = model.single.get(&bit)?.as_ref()?;
            let mut pairs = text.operands.iter().zip(&model.shown.operands);
            let same = text.operands.len() == model.shown.operands.len();
            let index = pairs.position(|(a, b)| a.reuse != b.reuse).filter(|_| same)?;
            Some((bit, index as u8))
        };
        let reuse: Vec<(u8, u8)> = field_bits().filter_map(operand_of).collect();
        for bit in WAIT.filter(|&b| !lab.accepts(flip(model.base, b), model.class)) {
            model
                .rules
                .0
                .push(Rule::refuse(1 << bit, flip(model.base, bit) & 1 << bit));
        }
        model.schedule = Schedule {
            write: lab.is_legal(write(model)),
            read: lab.is_legal(read(model)),
            batch: !reuse.iter().any(|r| r.0 >= 122) && lab.is_legal(batch(model)),
            reuse,
        };
    }
    Ok(())
}

impl Schedule {
    /// `word` with random scheduling bits; those in `taken` mean something else here.
    pub fn random(&self, word: u128, taken: u128, random: &mut fastrand::Rng) -> u128 {
        let issue = Some(random.u128(0..28)).filter(|&s| s != 16).unwrap_or(1);
        // One of six scoreboards, or none.
        let mut barrier = |legal: bool| Some(random.u128(0..8)).filter(|&b| legal && b != 6).unwrap_or(7);
        let (write, read) = (barrier(self.write), barrier(self.read));
        let wait = random.u128(0..64);
        let flags = self
            .reuse
            .iter()
            .filter(|r| r.0 >= 122)
            .fold(0, |m, r| m | 1u128 << r.0)
            >> 122;
        let top = match issue {
            0 => 0,
            1..16 => random.u128(0..6),
            _ if self.batch => random.u128(0..6),
            _ => random.u128(0..8) & flags,
        };
        let mask = (0x1ffff << 105 | 7 << 122) & !taken;
        let bits = issue << 105 | write << 110 | read << 113 | wait << 116 | top << 122;
        word & !mask | bits & mask
    }

    /// Whether the scheduling bits of `word` are what a class with this schedule may have, whatever else it says; those in `taken`
    /// mean something else here.
    pub fn allows(&self, word: u128, taken: u128) -> bool {
        let bits = |low: u8, mask: u128| word >> low & mask;
        let (issue, top) = (bits(105, 31), bits(122, 7));
        let stall = issue != 16 && issue < 28;
        let flags = issue >= 16 || top < 6 && (issue > 0 || top == 0) || taken >> 122 & 7 != 0;
        let barrier = |low: u8, legal: bool| bits(low, 7) == 7 || legal;
        stall && flags && barrier(110, self.write) && barrier(113, self.read)
    }

    /// Whether the flag of `operand` is set in `word`; bit 109 says whether bits 124:122 are flags.
    pub fn reuses(&self, word: u128, operand: u8) -> bool {
        let holds = |bit: u8| word >> bit & 1 == 1 && (bit < 105 || word >> 109 & 1 == 1);
        self.reuse.iter().any(|&(bit, o)| o == operand && holds(bit))
    }
}
