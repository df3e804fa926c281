//! Mask-verify: the proof that a rewrite changed what its edits name and not a bit more.

use std::collections::BTreeMap;

/// Bytes of one instruction.
pub const WORD: usize = 16;

/// What edits leave of a kernel's code: for each instruction that may change (by its byte offset now) the bits that may, or the word that takes
/// its place; and where each instruction was.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowedBits {
    leave: BTreeMap<u64, Leave>,
    /// By number of an instruction now; `None` if every one is where it was.
    order: Option<Vec<Origin>>,
}

/// What may become of one word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Leave {
    /// The word that an edit puts there; `None` for the old one.
    word: Option<u128>,
    /// Bits of it that edits may change.
    bits: u128,
}

/// Where an instruction comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// From the code as it was, where it had this number, and in the same order as all others that were kept.
    Kept(u32),
    /// The same, but for the order.
    Moved(u32),
    /// From an edit.
    New,
}

impl Origin {
    /// Its number in the code as it was.
    pub fn number(self) -> Option<u32> {
        match self {
            Origin::Kept(n) | Origin::Moved(n) => Some(n),
            Origin::New => None,
        }
    }
}

impl AllowedBits {
    /// Allows more bits of the word at `offset`.
    pub fn allow(&mut self, offset: u64, bits: u128) {
        self.leave.entry(offset).or_default().bits |= bits;
    }

    /// Puts another word at `offset`: what was allowed of the one before counts no more.
    pub fn replace(&mut self, offset: u64, word: u128) {
        let leave = Leave {
            word: Some(word),
            bits: 0,
        };
        self.leave.insert(offset, leave);
    }

    /// Puts the instructions into another order, before anything is allowed of them.
    pub fn reorder(&mut self, order: Vec<Origin>) {
        self.order = Some(order);
    }

    /// Where edits put another word.
    pub fn replaced(&self) -> impl Iterator<Item = u64> + '_ {
        self.leave
            .iter()
            .filter(|(_, leave)| leave.word.is_some())
            .map(|(at, _)| *at)
    }

    /// The order of the instructions now, if it is another one than it was.
    pub fn order(&self) -> Option<&[Origin]> {
        self.order.as_deref()
    }

    /// Byte offsets now of instructions that were kept, given those (ascending) of which it is asked in the code as it was.
    pub fn kept(&self, offsets: &[u64]) -> Vec<u64> {
        let Some(order) = &self.order else {
            return offsets.to_vec();
        };
        let is_kept = |origin: &Origin| match origin {
            Origin::Kept(n) => offsets.binary_search(&(u64::from(*n) * WORD as u64)).is_ok(),
            Origin::Moved(_) | Origin::New => false,
        };
        let places = (0u64..).step_by(WORD).zip(order);
        places.filter(|(_, origin)| is_kept(origin)).map(|(at, _)| at).collect()
    }

    /// Byte offset in the code as it was of the instruction that is at `offset` now; nothing for a new one.
    pub fn before(&self, offset: u64) -> Option<u64> {
        let Some(order) = &self.order else { return Some(offset) };
        let number = order.get(usize::try_from(offset / WORD as u64).ok()?)?.number()?;
        Some(u64::from(number) * WORD as u64)
    }

    /// Allows what `other`, of a later pass, allows too.
    pub fn add(&mut self, other: &AllowedBits) {
        if let Some(order) = &other.order {
            self.follow(order);
        }
        for (&offset, leave) in &other.leave {
            match leave.word {
                Some(_) => drop(self.leave.insert(offset, *leave)),
                None => self.allow(offset, leave.bits),
            }
        }
    }

    /// What was allowed goes where its instruction goes.
    fn follow(&mut self, order: &[Origin]) {
        let before = std::mem::take(&mut self.leave);
        for (at, from) in order.iter().enumerate() {
            let leave = from.number().and_then(|n| before.get(&(u64::from(n) * WORD as u64)));
            leave.map(|leave| self.leave.insert((at * WORD) as u64, *leave));
        }
        let first = self.order.take();
        let origin = |n: u32| match &first {
            Some(first) => first.get(n as usize).copied().unwrap_or(Origin::New),
            None => Origin::Kept(n),
        };
        let through = |now: &Origin| match (*now, now.number().map(origin)) {
            (Origin::Moved(_), Some(Origin::Kept(n))) => Origin::Moved(n),
            (_, Some(before)) => before,
            (now, None) => now,
        };
        self.order = Some(order.iter().map(through).collect());
    }

    /// The word at `offset` as edits leave it but for the bits that they may change, and those bits.
    fn at(&self, offset: u64, old: u128) -> (u128, u128) {
        let leave = self.leave.get(&offset).copied().unwrap_or_default();
        (leave.word.unwrap_or(old), leave.bits)
    }

    /// The word at `offset` that edits leave of `old`, bits aside that they may change.
    pub fn word(&self, offset: u64, old: u128) -> u128 {
        self.at(offset, old).0
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
    fn what_is_allowed_goes_where_its_instruction_goes() {
        use Origin::{Kept, Moved, New};
        let at = |n: u64| n * WORD as u64;
        let mut first = AllowedBits::default();
        first.reorder(vec![Kept(0), New, Kept(2), Moved(1), Kept(3)]);
        first.replace(at(1), 9);
        first.allow(at(3), 1);
        let mut all = AllowedBits::default();
        all.allow(at(3), 2);
        all.add(&first);
        assert_eq!(all.order(), first.order());
        assert_eq!(all.leave[&at(4)].bits, 2);
        // Then the first instruction goes, and the one behind the new one comes before that.
        let mut second = AllowedBits::default();
        second.reorder(vec![Moved(2), Kept(1), Kept(3), Kept(4)]);
        second.allow(at(0), 4);
        all.add(&second);
        assert_eq!(all.order(), Some(&[Moved(2), New, Moved(1), Kept(3)][..]));
        assert_eq!(
            (all.at(at(0), 0), all.at(at(1), 0), all.at(at(2), 0), all.at(at(3), 0)),
            ((0, 4), (9, 0), (0, 1), (0, 2))
        );
        assert_eq!(all.kept(&[at(0), at(2), at(3)]), [at(3)]);
        assert_eq!((all.before(at(2)), all.before(at(1))), (Some(at(1)), None));
    }

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
