//! Notes: `<2.UR0=UR4, 90:87=0xf>` says what a text does not show.

use std::fmt;

use super::AsmError;
use super::refuse::is_hidden;
use crate::tables::FormData;
use crate::{Inst, Isa, Word};

/// One note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// `2.UR0=UR4`: a field of the form by its name in `fields.tsv`, and its number.
    Field {
        /// The field's name.
        name: String,
        /// What stands in front of the number: a register file, or nothing.
        file: String,
        /// The number.
        value: i64,
    },
    /// `90:87=0xf`: bits of the word.
    Bits {
        /// Highest bit.
        high: u32,
        /// Lowest bit.
        low: u32,
        /// Their value.
        value: u64,
    },
    /// `filler`: bits that mean nothing may be as the tables have them, though no compiler's code confirms that.
    Filler,
    /// `misaligned`: a tuple of registers may begin anywhere.
    Misaligned,
}

impl Note {
    fn parse(text: &str) -> Result<Self, AsmError> {
        let bad = || {
            AsmError::Syntax(format!(
                "`{text}` is no note like 2.UR0=UR4, 90:87=0xf, filler or misaligned"
            ))
        };
        if text == "filler" {
            return Ok(Self::Filler);
        }
        if text == "misaligned" {
            return Ok(Self::Misaligned);
        }
        let (name, value) = text.split_once('=').ok_or_else(bad)?;
        let digits = value.trim_start_matches(|c: char| c.is_ascii_uppercase());
        let file = value[..value.len() - digits.len()].to_owned();
        let value = match digits.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16).map_err(|_| bad())? as i64,
            None => digits.parse().map_err(|_| bad())?,
        };
        if name.contains('.') {
            let name = name.to_owned();
            return Ok(Self::Field { name, file, value });
        }
        let (high, low) = name.split_once(':').unwrap_or((name, name));
        let (high, low): (u32, u32) = (high.parse().map_err(|_| bad())?, low.parse().map_err(|_| bad())?);
        let (fits, value) = (low <= high && high < 128 && high - low < 64, value as u64);
        if !fits || high - low < 63 && value >> (high - low + 1) != 0 || !file.is_empty() {
            return Err(bad());
        }
        Ok(Self::Bits { high, low, value })
    }

    /// The word with what the note says; `None` if the form has no such field, or one that cannot hold the value.
    pub(super) fn apply(&self, form: &FormData, word: Word) -> Option<Word> {
        match self {
            Self::Filler | Self::Misaligned => Some(word),
            Self::Bits { high, low, value } => Some(word.with_bits(*high, *low, *value)),
            Self::Field { name, file, value } => {
                let field = form.fields.iter().find(|f| f.name == name)?;
                let own = field.kind.file().map_or("", |f| f.name());
                (file.is_empty() || file == own).then(|| field.set(word, *value).ok())?
            }
        }
    }

    /// The word bits that the note speaks of.
    pub(super) fn mask(&self, form: &FormData) -> u128 {
        match self {
            Self::Filler => !form.fields.iter().fold(0, |m, f| m | f.mask()),
            Self::Misaligned => 0,
            Self::Bits { high, low, .. } => Word(0).with_bits(*high, *low, u64::MAX).0,
            Self::Field { name, .. } => form.fields.iter().find(|f| f.name == name).map_or(0, |f| f.mask()),
        }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Filler => f.write_str("filler"),
            Self::Misaligned => f.write_str("misaligned"),
            Self::Bits { high, low, value } => write!(f, "{}={value:#x}", Range(*high, *low)),
            Self::Field { name, file, value } if file.is_empty() => write!(f, "{name}={value:#x}"),
            Self::Field { name, file, value } => write!(f, "{name}={file}{value}"),
        }
    }
}

/// What stands between `<` and `>`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes(pub Vec<Note>);

impl Notes {
    /// Reads notes, separated by commas.
    pub fn parse(text: &str) -> Result<Self, AsmError> {
        text.split(',')
            .map(|part| Note::parse(part.trim()))
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// These notes, and one that says a register's number.
    pub(super) fn with_register(&self, field: &str, register: u8) -> Self {
        let mut notes = self.clone();
        notes.0.push(Note::Field {
            name: field.to_owned(),
            file: String::new(),
            value: i64::from(register),
        });
        notes
    }

    /// Adds what `inst` has in the bits of `mask`: fields that no text shows by name, floats as numbers, the rest as bits.
    pub(super) fn say(&mut self, isa: &Isa, inst: Inst, mask: u128) {
        let mut left = mask;
        let fields = isa.form(inst.form).map_or(&[][..], |f| f.fields());
        for f in fields.iter().filter(|f| f.mask() & mask != 0) {
            if is_hidden(isa, inst, f) || f.kind_in(inst.word).is_float() {
                self.0.push(Note::Field {
                    name: f.name.to_owned(),
                    file: f.kind.file().map_or("", |file| file.name()).to_owned(),
                    value: f.get(inst.word),
                });
                left &= !f.mask();
            }
        }
        for Range(high, low) in ranges(left) {
            let value = inst.word.bits(high, low);
            self.0.push(Note::Bits { high, low, value });
        }
    }
}

impl fmt::Display for Notes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, note) in self.0.iter().enumerate() {
            let comma = if n == 0 { "" } else { "," };
            write!(f, "{comma}{note}")?;
        }
        Ok(())
    }
}

/// Highest and lowest bit.
struct Range(u32, u32);

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self(high, low) if high == low => write!(f, "{high}"),
            Self(high, low) => write!(f, "{high}:{low}"),
        }
    }
}

/// The runs of set bits, highest first, at most 64 bits each.
fn ranges(mask: u128) -> Vec<Range> {
    let mut out = Vec::new();
    let mut rest = mask;
    while rest != 0 {
        let high = 127 - rest.leading_zeros();
        let run = (rest << (127 - high)).leading_ones().min(64);
        let low = high + 1 - run;
        out.push(Range(high, low));
        rest &= (1 << low) - 1;
    }
    out
}

/// Bits in the notation of the tables: `101,37:32`.
pub fn bits(mask: u128) -> String {
    let ranges: Vec<String> = ranges(mask).iter().map(Range::to_string).collect();
    ranges.join(",")
}
