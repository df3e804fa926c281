//! Modifier lists as edits of a base list.

use super::model::Splice;

/// The edits that turn `base` into `list`; empty when they are equal.
pub fn splices(base: &[Box<str>], list: &[Box<str>]) -> Vec<Splice> {
    if base.len() == list.len() {
        // Same length: tokens were replaced in place (S8.S8 to U8.S8 must not read as an insertion and a removal).
        let changed = |i: &usize| base[*i] != list[*i];
        return (0..base.len())
            .filter(changed)
            .map(|i| (i, i + 1, vec![list[i].clone()]))
            .collect();
    }
    let keep = common(base, list);
    let mut out = Vec::new();
    let (mut i, mut j) = (0, 0);
    for (a, b) in keep.into_iter().chain([(base.len(), list.len())]) {
        if i < a || j < b {
            out.push((i, a, list[j..b].to_vec()));
        }
        (i, j) = (a + 1, b + 1);
    }
    out
}

/// A longest common subsequence as index pairs, the leftmost one.
fn common(a: &[Box<str>], b: &[Box<str>]) -> Vec<(usize, usize)> {
    let mut length = vec![vec![0usize; b.len() + 1]; a.len() + 1];
    for i in (0..a.len()).rev() {
        for j in (0..b.len()).rev() {
            length[i][j] = if a[i] == b[j] {
                1 + length[i + 1][j + 1]
            } else {
                length[i + 1][j].max(length[i][j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut out = Vec::new();
    while i < a.len() && j < b.len() {
        if a[i] == b[j] && length[i][j] == 1 + length[i + 1][j + 1] {
            out.push((i, j));
            (i, j) = (i + 1, j + 1);
        } else if length[i + 1][j] >= length[i][j + 1] {
            i += 1;
        } else {
            j += 1;
        }
    }
    out
}

/// Applies edits of several groups to `base`: `(rank, edits)`, insertions at one place in rank order.
pub fn apply(base: &[Box<str>], edits: &[(usize, &[Splice])]) -> Vec<Box<str>> {
    let mut removed = vec![false; base.len()];
    type Insertion<'a> = (usize, &'a [Box<str>]); // rank, tokens
    let mut inserted: Vec<Vec<Insertion<'_>>> = vec![Vec::new(); base.len() + 1];
    for (rank, list) in edits {
        for (from, to, tokens) in *list {
            removed[*from..*to].fill(true);
            inserted[*from].push((*rank, tokens));
        }
    }
    let mut out = Vec::new();
    for (i, list) in inserted.iter_mut().enumerate() {
        list.sort_by_key(|l| l.0);
        out.extend(list.iter().flat_map(|l| l.1.iter().cloned()));
        if i < base.len() && !removed[i] {
            out.push(base[i].clone());
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(s: &str) -> Vec<Box<str>> {
        s.split('.').filter(|t| !t.is_empty()).map(Box::from).collect()
    }

    #[test]
    fn edits_rebuild_the_list() {
        for (base, other) in [
            ("E", "EF.E.U8"),
            ("S8.S8", "U8.S8"),
            ("E.U8", "E"),
            ("", "FTZ.SAT"),
            ("A.B.C", "A.X.C.D"),
        ] {
            let (base, other) = (list(base), list(other));
            let edits = splices(&base, &other);
            assert_eq!(apply(&base, &[(0, &edits)]), other);
        }
    }
}
