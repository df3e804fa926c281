//! Counts of one comparison, and examples of each kind of difference.

use std::collections::BTreeMap;

struct Example {
    word: u128,
    ours: String,
    theirs: String,
}

/// The outcome of one comparison.
pub(super) struct Report {
    title: &'static str,
    shown: usize,
    equal: usize,
    kinds: BTreeMap<String, (usize, Vec<Example>)>,
}

impl Report {
    /// An empty report that keeps `shown` examples of each kind.
    pub(super) fn new(title: &'static str, shown: usize) -> Self {
        Self {
            title,
            shown,
            equal: 0,
            kinds: BTreeMap::new(),
        }
    }

    pub(super) fn equal(&mut self) {
        self.equal += 1;
    }

    pub(super) fn differs(&mut self, kind: String, word: u128, ours: String, theirs: String) {
        let (count, examples) = self.kinds.entry(kind).or_default();
        *count += 1;
        if examples.len() < self.shown {
            examples.push(Example { word, ours, theirs });
        }
    }

    fn differences(&self) -> usize {
        self.kinds.values().map(|k| k.0).sum()
    }

    pub(super) fn is_clean(&self) -> bool {
        self.kinds.is_empty()
    }

    pub(super) fn equal_per_cent(&self) -> f64 {
        let all = self.equal + self.differences();
        if all == 0 {
            100.0
        } else {
            self.equal as f64 * 100.0 / all as f64
        }
    }

    pub(super) fn print(&self) {
        let all = self.equal + self.differences();
        println!(
            "{}: {} of {all} equal ({:.4} %)",
            self.title,
            self.equal,
            self.equal_per_cent()
        );
        let mut kinds: Vec<_> = self.kinds.iter().collect();
        kinds.sort_by_key(|(_, (count, _))| std::cmp::Reverse(*count));
        for (kind, (count, examples)) in kinds {
            println!("  {count:6} {kind}");
            for e in examples {
                println!("         {:032x}", e.word);
                println!("           ours   {}", e.ours);
                println!("           theirs {}", e.theirs);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_count_every_difference() {
        let mut report = Report::new("t", 1);
        assert_eq!(report.equal_per_cent(), 100.0);
        (0..3).for_each(|_| report.equal());
        report.differs("k".into(), 0, String::new(), String::new());
        assert!(!report.is_clean());
        assert_eq!(report.equal_per_cent(), 75.0);
    }
}
