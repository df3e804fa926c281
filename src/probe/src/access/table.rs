//! From observations of one field to its rows: a default and the selector values at which it differs.

use std::collections::BTreeMap;

use union_gen::bits::Bits;

use super::words::Touch;

/// Access of one field as a function of some bits of the word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// The bits that decide.
    pub bits: Bits,
    /// Access where `rows` has no other.
    pub default: Touch,
    /// Values of `bits` at which it differs.
    pub rows: Vec<(u64, Touch)>,
}

impl Table {
    /// Access in `word`.
    pub fn get(&self, word: u128) -> Touch {
        let value = self.bits.get(word);
        self.rows
            .iter()
            .find(|(v, _)| *v == value)
            .map_or(self.default, |(_, t)| *t)
    }
}

/// Two words on which the field differs though the bits agree.
pub type Conflict = (u128, u128);

/// The table over `bits`, or a pair of words that shows that another bit decides too.
pub fn build(bits: &Bits, seen: &[(u128, Touch)]) -> Result<Table, Conflict> {
    let values = by_value(bits, seen)?;
    let mut bits = bits.clone();
    let mut values = values;
    // Leave out every bit that is not needed.
    for b in bits.0.clone() {
        let fewer = Bits(bits.0.iter().copied().filter(|&x| x != b).collect());
        if let Ok(v) = by_value(&fewer, seen) {
            bits = fewer;
            values = v;
        }
    }
    let mut counts: BTreeMap<Touch, usize> = BTreeMap::new();
    for (touch, _) in values.values() {
        *counts.entry(*touch).or_default() += 1;
    }
    // The most frequent; of equals the one that touches most registers.
    let default = counts
        .iter()
        .max_by_key(|(t, n)| (**n, **t))
        .map_or((0, 0), |(t, _)| *t);
    let rows = values
        .iter()
        .filter(|(_, (t, _))| *t != default)
        .map(|(v, (t, _))| (*v, *t))
        .collect();
    Ok(Table { bits, default, rows })
}

/// The table over `bits` by majority, for fields that no set of bits explains.
pub fn majority(bits: &Bits, seen: &[(u128, Touch)]) -> Table {
    let mut counts: BTreeMap<u64, BTreeMap<Touch, usize>> = BTreeMap::new();
    for (word, touch) in seen {
        *counts.entry(bits.get(*word)).or_default().entry(*touch).or_default() += 1;
    }
    let best: Vec<(u128, Touch)> = counts
        .into_iter()
        .filter_map(|(v, c)| {
            let top = c.into_iter().max_by_key(|(t, n)| (*n, *t))?;
            Some((bits.set(0, v), top.0))
        })
        .collect();
    build(bits, &best).unwrap_or(Table {
        bits: Bits::default(),
        default: (0, 0),
        rows: Vec::new(),
    })
}

fn by_value(bits: &Bits, seen: &[(u128, Touch)]) -> Result<BTreeMap<u64, (Touch, u128)>, Conflict> {
    let mut values: BTreeMap<u64, (Touch, u128)> = BTreeMap::new();
    for &(word, touch) in seen {
        let entry = values.entry(bits.get(word)).or_insert((touch, word));
        if entry.0 != touch {
            return Err((entry.1, word));
        }
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bits(s: &str) -> Bits {
        s.parse().unwrap()
    }

    #[test]
    fn bits_that_do_not_matter_are_left_out() {
        let seen: Vec<_> = (0..8u128)
            .map(|w| (w, if w & 4 != 0 { (2, 0) } else { (1, 0) }))
            .collect();
        let t = build(&bits("2:0"), &seen).unwrap();
        assert_eq!((t.bits.to_string(), t.rows.len()), ("2".into(), 1));
        assert_eq!((t.get(5), t.get(3)), ((2, 0), (1, 0)));
    }

    #[test]
    fn a_missing_bit_is_a_conflict() {
        let seen = [(0, (1, 0)), (4, (2, 0))];
        assert_eq!(build(&bits("1:0"), &seen).unwrap_err(), (0, 4));
    }

    #[test]
    fn majority_ignores_a_stray_word() {
        let seen = [(0, (1, 0)), (4, (1, 0)), (8, (3, 0)), (1, (2, 0))];
        let t = majority(&bits("0"), &seen);
        assert_eq!((t.get(8), t.get(1)), ((1, 0), (2, 0)));
    }
}
