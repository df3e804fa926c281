//! The words of one kind, to be recognized without a search through the tables.

use crate::control::Rules;
use crate::legal::{self, LegalRow};
use crate::{FormId, Inst, Isa, Word, tables};

/// Words that [`Isa::decode`] takes for the same form and that agree in its [selector bits](crate::Form::selector_mask): they have the same
/// text and accesses but for register numbers and immediates.
#[derive(Clone, Copy)]
pub struct Pattern {
    /// The selector bits, and whatever else decides that the word is of this form and no other.
    mask: u128,
    value: u128,
    rules: Rules,
    legal: &'static [LegalRow],
}

impl Pattern {
    /// The bits in which all of them are alike.
    pub fn mask(&self) -> u128 {
        self.mask
    }

    /// Whether the word is one of them.
    #[inline]
    pub fn matches(&self, w: Word) -> bool {
        w.0 & self.mask == self.value && self.rules.allow(w) && legal::allow(self.legal, w.0)
    }
}

impl Isa {
    /// The words of the same kind as a decoded one. `None` for an opaque word.
    pub fn pattern(&self, inst: Inst) -> Option<Pattern> {
        let Inst { word, form } = inst;
        let data = self.data(form)?;
        let mut mask = data.fixed | tables::BUCKET_BITS;
        for row in self.tables.rows_for(word.0) {
            mask |= row.mask;
            if word.0 & row.mask == row.value {
                return (FormId(row.form) == form).then_some(Pattern {
                    mask,
                    value: word.0 & mask,
                    rules: data.rules,
                    legal: &data.legal,
                });
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Target;

    /// A pattern may miss words of its kind, but takes no others.
    #[test]
    fn patterns_agree_with_decode() {
        for isa in Target::ALL.into_iter().filter_map(|t| Isa::for_target(t).ok()) {
            for form in isa.forms() {
                let filler = isa.decode(form.filler());
                let Some(pattern) = isa.pattern(filler) else { continue };
                assert!(pattern.matches(filler.word), "{form:?} does not match its filler");
                for bits in (0..128)
                    .map(|bit| 1u128 << bit)
                    .chain([0xff << 64, 0xff << 24, 0x1f << 105])
                {
                    let other = isa.decode(Word(filler.word.0 ^ bits));
                    let same = bits & form.selector_mask() == 0 && other.form == filler.form;
                    let matches = pattern.matches(other.word);
                    assert!(same || !matches, "{form:?} with {bits:#x} changed");
                    // Bits that only other forms of the opcode look at are the exception.
                    assert!(
                        matches || !same || bits & pattern.mask() != 0,
                        "{form:?} with {bits:#x} is missed"
                    );
                }
            }
        }
    }
}
