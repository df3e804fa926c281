//! Fields of the word: where they are, what their bits mean, and who touches the registers they name.

use crate::word::Word;

/// A register file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RegFile {
    /// General registers, 32 bits a lane; 255 is `RZ`.
    R,
    /// Uniform registers, 32 bits a warp; the last one is `URZ`.
    UR,
    /// Predicates, one bit a lane; 7 is `PT`.
    P,
    /// Uniform predicates; 7 is `UPT`.
    UP,
    /// Convergence barriers.
    B,
}

impl RegFile {
    /// As it is printed.
    pub const fn name(self) -> &'static str {
        ["R", "UR", "P", "UP", "B"][self as usize]
    }

    pub(crate) fn from_code(code: u8) -> Option<Self> {
        [Self::R, Self::UR, Self::P, Self::UP, Self::B]
            .get(usize::from(code))
            .copied()
    }
}

/// What the number in a field is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FieldKind {
    /// A register of a file.
    Reg(RegFile),
    /// A scoreboard, `SB0`.
    Scoreboard,
    /// An integer: an immediate, an offset, a constant bank.
    Int,
    /// A byte offset from the next instruction.
    Rel,
    /// An IEEE half; the value is its bits.
    F16,
    /// A bfloat16; the value is its bits.
    Bf16,
    /// An IEEE single; the value is its bits.
    F32,
    /// The high half of an IEEE double; the value is its bits.
    F64High,
}

impl FieldKind {
    pub(crate) fn from_code(code: u8) -> Self {
        match code {
            5 => Self::Scoreboard,
            7 => Self::Rel,
            8 => Self::F16,
            9 => Self::Bf16,
            10 => Self::F32,
            11 => Self::F64High,
            _ => RegFile::from_code(code).map_or(Self::Int, Self::Reg),
        }
    }

    /// The register file, if it is a register.
    pub const fn file(self) -> Option<RegFile> {
        match self {
            Self::Reg(f) => Some(f),
            _ => None,
        }
    }

    /// Whether the value is the bits of a floating-point number.
    pub const fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::Bf16 | Self::F32 | Self::F64High)
    }
}

/// What an instruction does with a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dir {
    /// Names it only.
    None,
    /// Reads it.
    Read,
    /// Writes it.
    Write,
    /// Both.
    ReadWrite,
}

impl Dir {
    pub(crate) fn from_code(code: u8) -> Self {
        [Self::None, Self::Read, Self::Write, Self::ReadWrite][usize::from(code & 3)]
    }

    /// Whether it is read.
    pub const fn reads(self) -> bool {
        matches!(self, Self::Read | Self::ReadWrite)
    }

    /// Whether it is written.
    pub const fn writes(self) -> bool {
        matches!(self, Self::Write | Self::ReadWrite)
    }
}

/// The operand that a field belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OperandIx {
    /// The guard.
    Guard,
    /// An operand, counted from 0 in printed order.
    Printed(u8),
    /// An operand that the text never shows; also the index of implicit accesses, counted on.
    Hidden(u8),
}

/// A value that a field cannot hold, or an edit that changes more than it says.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    /// The number has no encoding in the field.
    #[error("{field}: {value:#x} cannot be encoded ({reason})")]
    Value {
        /// Field name.
        field: &'static str,
        /// The number.
        value: i64,
        /// Which rule it breaks.
        reason: &'static str,
    },
    /// No field of that number.
    #[error("{form} has {count} fields, there is no field {index}")]
    NoField {
        /// Form id.
        form: &'static str,
        /// What was asked for.
        index: usize,
        /// What there is.
        count: usize,
    },
    /// The new word is another form, or no legal word; choose a form that holds the value.
    #[error("{form} {field}: with value {value:#x} the word would be {becomes}; use that form instead")]
    OtherForm {
        /// Form id.
        form: &'static str,
        /// Field name.
        field: &'static str,
        /// The number.
        value: i64,
        /// Form id of the new word, or `no legal word`.
        becomes: &'static str,
    },
    /// The word is opaque: no table knows it, so nothing in it can be changed.
    #[error("the word {0:032x} is known to no table of its target")]
    Opaque(u128),
    /// The operand has no such shape.
    #[error("{form}: operand {operand} cannot be `{shape}`, its shapes are `{}`", .shapes.join("` `"))]
    NoShape {
        /// Form id.
        form: &'static str,
        /// Which printed operand.
        operand: usize,
        /// What was asked for.
        shape: String,
        /// What there is.
        shapes: Vec<&'static str>,
    },
    /// A modifier that is not there cannot be dropped.
    #[error("{form}: no modifier {token} to drop")]
    NoSuchModifier {
        /// Form id.
        form: &'static str,
        /// The token.
        token: String,
    },
    /// The modifiers asked for have no encoding that leaves everything else as it is.
    #[error("{form}: no encoding without `{drop}` and with `{add}` that keeps the other modifiers")]
    NoEncoding {
        /// Form id.
        form: &'static str,
        /// Tokens to drop.
        drop: String,
        /// Tokens to add.
        add: String,
    },
}

/// Bit positions of a number in the word: chunks, least significant first; possibly none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bits {
    /// The first chunk, or no bits: lowest word bit and mask, kept apart because it is nearly always the only one.
    low: u8,
    mask: u64,
    width: u8,
    /// All chunks as (lowest word bit, length) if there are several.
    chunks: Box<[(u8, u8)]>,
}

impl Bits {
    pub(crate) fn new(chunks: Vec<(u8, u8)>) -> Self {
        let width = chunks.iter().map(|c| c.1).sum();
        let (low, len) = chunks.first().copied().unwrap_or_default();
        Self {
            low,
            mask: ones(u32::from(len)),
            width,
            chunks: if chunks.len() > 1 { chunks.into() } else { [].into() },
        }
    }

    /// Number of bits.
    pub fn width(&self) -> u32 {
        u32::from(self.width)
    }

    /// Chunks as (lowest word bit, length), least significant first.
    pub fn chunks(&self) -> impl Iterator<Item = (u8, u8)> + '_ {
        let single = (self.chunks.is_empty() && self.width > 0).then_some((self.low, self.width));
        single.into_iter().chain(self.chunks.iter().copied())
    }

    /// The word bits that are covered.
    pub fn mask(&self) -> u128 {
        self.chunks()
            .fold(0, |m, (low, len)| m | u128::from(ones(u32::from(len))) << low)
    }

    /// The bits as an unsigned number.
    #[inline]
    pub fn get(&self, w: Word) -> u64 {
        if self.chunks.is_empty() {
            return (w.0 >> self.low) as u64 & self.mask;
        }
        let mut out = 0;
        let mut at = 0;
        for &(low, len) in &self.chunks {
            out |= ((w.0 >> low) as u64 & ones(u32::from(len))) << at;
            at += len;
        }
        out
    }

    /// `w` with the bits replaced; bits of `value` above the width are ignored.
    pub fn set(&self, w: Word, value: u64) -> Word {
        let mut out = w.0;
        let mut rest = value;
        for (low, len) in self.chunks() {
            let m = ones(u32::from(len));
            out = out & !(u128::from(m) << low) | u128::from(rest & m) << low;
            rest = rest.checked_shr(u32::from(len)).unwrap_or(0);
        }
        Word(out)
    }
}

pub(crate) const fn ones(width: u32) -> u64 {
    if width >= 64 { u64::MAX } else { (1 << width) - 1 }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Map {
    Linear {
        invert: bool,
        signed: bool,
        scale: i64,
        offset: i64,
    },
    Weights(Box<[i64]>, i64),
}

/// Access and width where modifier bits have a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Widths {
    pub(crate) bits: Bits,
    /// (value, access, width), sorted by value.
    pub(crate) rows: Box<[(u64, Dir, u8)]>,
}

/// One number or register in the word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// `g`, `2.R0`, `h0.UR0`.
    pub name: &'static str,
    /// The operand it belongs to.
    pub operand: OperandIx,
    /// What it is, unless a modifier says otherwise: see [`Field::kind_in`].
    pub kind: FieldKind,
    pub(crate) bits: Bits,
    pub(crate) map: Map,
    pub(crate) elide: Box<[i64]>,
    pub(crate) access: Dir,
    pub(crate) width: u8,
    /// Touched only in shapes that print it.
    pub(crate) printed_only: bool,
    pub(crate) hole: (u8, u8),
    /// Every shape of the operand shows it, and no value of the operand hides it.
    pub(crate) always_shown: bool,
    pub(crate) kinds: Box<[(Bits, u64, FieldKind)]>,
    pub(crate) widths: Box<[Widths]>,
}

impl Field {
    /// The word bits that it occupies; none for a constant.
    pub fn mask(&self) -> u128 {
        self.bits.mask()
    }

    /// Where it is.
    pub fn bits(&self) -> &Bits {
        &self.bits
    }

    /// Whether different bits are always different numbers: not for a field that the tables give as a weight a bit.
    pub fn is_linear(&self) -> bool {
        matches!(self.map, Map::Linear { .. })
    }

    /// Its kind in `w`, where modifiers of `w` can change the float format.
    pub fn kind_in(&self, w: Word) -> FieldKind {
        let found = self.kinds.iter().find(|(bits, value, _)| bits.get(w) == *value);
        found.map_or(self.kind, |k| k.2)
    }

    /// The number in `w`: a register number, an integer, a byte offset, or a float's bits.
    pub fn get(&self, w: Word) -> i64 {
        let raw = self.bits.get(w);
        let width = self.bits.width();
        match &self.map {
            Map::Linear {
                invert,
                signed,
                scale,
                offset,
            } => {
                let raw = if *invert { !raw & ones(width) } else { raw };
                let value = if *signed && width > 0 && width < 64 {
                    ((raw << (64 - width)) as i64) >> (64 - width)
                } else {
                    raw as i64
                };
                value.wrapping_mul(*scale).wrapping_add(*offset)
            }
            Map::Weights(weights, offset) => weights
                .iter()
                .enumerate()
                .filter(|(i, _)| raw >> i & 1 == 1)
                .fold(*offset, |v, (_, w)| v.wrapping_add(*w)),
        }
    }

    /// `w` with the number replaced.
    pub fn set(&self, w: Word, value: i64) -> Result<Word, FieldError> {
        let error = |reason| FieldError::Value {
            field: self.name,
            value,
            reason,
        };
        let width = self.bits.width();
        let raw = match &self.map {
            Map::Linear {
                invert,
                signed: _,
                scale,
                offset,
            } => {
                let v = value.wrapping_sub(*offset);
                if v % scale != 0 {
                    return Err(error("not a multiple of the field's unit"));
                }
                let raw = (v / scale) as u64 & ones(width);
                if *invert { !raw & ones(width) } else { raw }
            }
            Map::Weights(weights, offset) => {
                let mut order: Vec<usize> = (0..weights.len()).collect();
                order.sort_by_key(|&i| std::cmp::Reverse(weights[i].unsigned_abs()));
                let (mut raw, mut rest) = (0u64, i128::from(value) - i128::from(*offset));
                // Negative weights first make the rest non-negative, then largest first.
                for pass_negative in [true, false] {
                    for &i in &order {
                        let weight = i128::from(weights[i]);
                        let take = if pass_negative {
                            weight < 0 && rest < 0
                        } else {
                            weight > 0 && rest >= weight
                        };
                        if take {
                            raw |= 1 << i;
                            rest -= weight;
                        }
                    }
                }
                raw
            }
        };
        let out = self.bits.set(w, raw);
        if self.get(out) != value {
            return Err(error("out of the field's range"));
        }
        Ok(out)
    }

    /// Whether the whole operand is left out of the text at this value.
    pub fn elides(&self, value: i64) -> bool {
        self.elide.contains(&value)
    }

    /// Direction and number of 32-bit registers (1 for predicates) in `w`, if the field is touched at all.
    pub(crate) fn access_in(&self, w: Word) -> (Dir, u8) {
        for group in &self.widths {
            let value = group.bits.get(w);
            if let Ok(i) = group.rows.binary_search_by_key(&value, |r| r.0) {
                return (group.rows[i].1, group.rows[i].2);
            }
        }
        (self.access, self.width)
    }
}
