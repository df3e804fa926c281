//! Mask-verify: the proof that a rewrite changed what its edits name and not a bit more.

use std::collections::BTreeMap;

/// Bytes of one instruction.
pub const WORD: usize = 16;

/// For each instruction that may change (by byte offset), the bits that may, or the word that takes its place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowedBits(BTreeMap<u64, Leave>);

/// What may become of one word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Leave {
    /// The word that an edit puts there; `None` for the old one.
    word: Option<u128>,
    /// Bits of it that edits may change.
    bits: u128,
}

impl AllowedBits {
    /// Allows more bits of the word at `offset`.
    pub fn allow(&mut self, offset: u64, bits: u128) {
        self.0.entry(offset).or_default().bits |= bits;
    }

    /// Puts another word at `offset`: what was allowed of the one before counts no more.
    pub fn replace(&mut self, offset: u64, word: u128) {
        let leave = Leave {
            word: Some(word),
            bits: 0,
        };
        self.0.insert(offset, leave);
    }

    /// Where edits put another word.
    pub fn replaced(&self) -> impl Iterator<Item = u64> + '_ {
        self.0
            .iter()
            .filter(|(_, leave)| leave.word.is_some())
            .map(|(at, _)| *at)
    }

    /// Allows what `other`, of a later pass, allows too.
    pub fn add(&mut self, other: &AllowedBits) {
        for (&offset, leave) in &other.0 {
            match leave.word {
                Some(_) => drop(self.0.insert(offset, *leave)),
                None => self.allow(offset, leave.bits),
            }
        }
    }

    /// The word at `offset` as edits leave it but for the bits that they may change, and those bits.
    fn at(&self, offset: u64, old: u128) -> (u128, u128) {
        let leave = self.0.get(&offset).copied().unwrap_or_default();
        (leave.word.unwrap_or(old), leave.bits)
    }
}

/// A bit that moved and should not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MaskError {
    /// The code has another length.
    #[error("mask-verify: the code has {new} bytes after the rewrite, {old} before")]
    Length {
        /// Bytes before.
        old: usize,
        /// Bytes after.
        new: usize,
    },
    /// A word changed outside the fields that the edits name.
    #[error(
        "mask-verify: at {offset:#06x} the bits {stray:#034x} changed, which no edit names ({old:032x} to {new:032x})"
    )]
    Stray {
        /// Byte offset of the instruction.
        offset: u64,
        /// The bits that changed without leave.
        stray: u128,
        /// The word before.
        old: u128,
        /// The word after.
        new: u128,
    },
}

/// Checks every word of the code and returns how many changed.
pub fn mask_verify(old: &[u8], new: &[u8], allowed: &AllowedBits) -> Result<usize, MaskError> {
    if old.len() != new.len() {
        return Err(MaskError::Length {
            old: old.len(),
            new: new.len(),
        });
    }
    let mut changed = 0;
    for (ix, (a, b)) in old.chunks(WORD).zip(new.chunks(WORD)).enumerate() {
        changed += usize::from(a != b);
        let (offset, a, b) = ((ix * WORD) as u64, word(a), word(b));
        let (expected, bits) = allowed.at(offset, a);
        let stray = (expected ^ b) & !bits;
        if stray != 0 {
            return Err(MaskError::Stray {
                offset,
                stray,
                old: a,
                new: b,
            });
        }
    }
    Ok(changed)
}

/// A little-endian word; a short last chunk is padded with zeros.
fn word(bytes: &[u8]) -> u128 {
    let mut full = [0; WORD];
    full[..bytes.len()].copy_from_slice(bytes);
    u128::from_le_bytes(full)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_named_bits_may_move() {
        let old = [0u8; 48];
        let mut allowed = AllowedBits::default();
        allowed.allow(16, 1 << 80);
        allowed.allow(16, 1 << 127);
        let mut new = old;
        assert_eq!(mask_verify(&old, &new, &allowed), Ok(0));
        new[16 + 10] = 1;
        assert_eq!(mask_verify(&old, &new, &allowed), Ok(1));
        new[16 + 15] = 0x80;
        assert_eq!(mask_verify(&old, &new, &allowed), Ok(1));
        new[16 + 10] = 3;
        let stray = 1 << 81;
        assert!(
            matches!(mask_verify(&old, &new, &allowed), Err(MaskError::Stray { offset: 16, stray: s, .. }) if s == stray)
        );
        let mut replaced = allowed.clone();
        replaced.replace(16, 7 << 80);
        (new[16 + 10], new[16 + 15]) = (7, 0);
        assert_eq!(mask_verify(&old, &new, &replaced), Ok(1));
        assert!(matches!(
            mask_verify(&old, &old, &replaced),
            Err(MaskError::Stray { offset: 16, .. })
        ));
        allowed.add(&replaced);
        assert_eq!(allowed, replaced);
        let mut elsewhere = new;
        elsewhere[47] = 1;
        assert!(matches!(
            mask_verify(&old, &elsewhere, &allowed),
            Err(MaskError::Stray { offset: 32, .. })
        ));
        assert_eq!(
            mask_verify(&old, &old[..32], &AllowedBits::default()),
            Err(MaskError::Length { old: 48, new: 32 })
        );
    }
}
