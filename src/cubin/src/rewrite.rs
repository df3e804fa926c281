//! A section in which some stretches of bytes become others of another length.

use std::ops::Range;

/// Stretches to replace, ascending, and with what.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rewrite(Vec<(Range<usize>, Vec<u8>)>);

impl Rewrite {
    /// Replaces a stretch, which lies behind those replaced before.
    pub fn replace(&mut self, old: Range<usize>, new: Vec<u8>) {
        debug_assert!(self.0.last().is_none_or(|(before, _)| before.end <= old.start));
        self.0.push((old, new));
    }

    /// All of another rewrite of the same section, which lies behind.
    pub fn extend(&mut self, other: Rewrite) {
        other.0.into_iter().for_each(|(old, new)| self.replace(old, new));
    }

    /// By how many bytes what lies between two places grows. A place inside of a stretch counts as its beginning.
    pub fn growth(&self, between: Range<usize>) -> isize {
        let inside = self
            .0
            .iter()
            .filter(|(old, _)| between.start <= old.start && old.end <= between.end);
        inside.map(|(old, new)| new.len() as isize - old.len() as isize).sum()
    }

    /// Where a place outside of the stretches is now.
    pub fn place(&self, old: usize) -> usize {
        old.wrapping_add_signed(self.growth(0..old))
    }

    /// The new section. Bytes that stay are those of `old`.
    pub fn apply(&self, old: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(old.len());
        let mut copied = 0;
        for (stretch, new) in &self.0 {
            out.extend_from_slice(&old[copied..stretch.start]);
            out.extend_from_slice(new);
            copied = stretch.end;
        }
        out.extend_from_slice(&old[copied..]);
        out
    }
}
