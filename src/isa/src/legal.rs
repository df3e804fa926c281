//! What makes a word of a known form illegal, beside its scheduling bits.

use crate::Word;
use crate::blob::Reader;
use crate::field::Bits;
use crate::tables::{ILLEGAL, Selector};

/// A test that a selector's value has a row; only for selectors where some values have none.
pub(crate) struct Check {
    /// (word shift, mask, result shift), least significant chunk first; two are enough for nearly all.
    chunks: [(u8, u16, u8); 2],
    /// Bitmap for up to 6 bits; otherwise 0 and `wide` holds it.
    small: u64,
    wide: Option<Box<Wide>>,
}

/// The rare case: more than two chunks or more than 6 bits.
struct Wide {
    bits: Bits,
    bitmap: Box<[u64]>,
}

impl Check {
    pub(crate) fn new(selector: &Selector) -> Option<Self> {
        if selector.dense.iter().all(|&v| v != ILLEGAL) {
            return None;
        }
        let mut bitmap = vec![0u64; selector.dense.len().div_ceil(64)];
        for (value, _) in selector.rows() {
            bitmap[value as usize / 64] |= 1 << (value % 64);
        }
        let list: Vec<(u8, u8)> = selector.bits.chunks().collect();
        let mut chunks = [(0, 0, 0); 2];
        if list.len() > 2 || bitmap.len() > 1 {
            let wide = Wide {
                bits: selector.bits.clone(),
                bitmap: bitmap.into(),
            };
            return Some(Self {
                chunks,
                small: 0,
                wide: Some(Box::new(wide)),
            });
        }
        let mut at = 0;
        for (slot, (low, len)) in chunks.iter_mut().zip(list) {
            *slot = (low, (1u16 << len) - 1, at);
            at += len;
        }
        Some(Self {
            chunks,
            small: bitmap[0],
            wide: None,
        })
    }

    #[inline]
    pub(crate) fn passes(&self, w: u128) -> bool {
        match &self.wide {
            None => {
                let [(s0, m0, a0), (s1, m1, a1)] = self.chunks;
                let value = ((w >> s0) as u64 & u64::from(m0)) << a0 | ((w >> s1) as u64 & u64::from(m1)) << a1;
                self.small >> value & 1 == 1
            }
            Some(wide) => {
                let value = wide.bits.get(Word(w)) as usize;
                wide.bitmap.get(value / 64).is_some_and(|b| b >> (value % 64) & 1 == 1)
            }
        }
    }
}

/// Whether a rule allows words with `word & mask == value`.
pub(crate) struct LegalRow {
    rule: u16,
    mask: u128,
    value: u128,
    legal: bool,
}

impl LegalRow {
    pub(crate) fn read(r: &mut Reader) -> LegalRow {
        LegalRow {
            rule: r.size() as u16,
            mask: r.u128(),
            value: r.u128(),
            legal: r.flag(),
        }
    }
}

/// Whether every rule allows `w`; in a rule the first row that matches decides.
#[inline]
pub(crate) fn allow(rows: &[LegalRow], w: u128) -> bool {
    let mut decided = None;
    for row in rows {
        if decided != Some(row.rule) && w & row.mask == row.value {
            if !row.legal {
                return false;
            }
            decided = Some(row.rule);
        }
    }
    true
}
