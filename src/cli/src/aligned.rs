//! Two listings of a kernel, aligned by instruction.

use isa::{Control, Isa, Word};
use serde::Serialize;
use similar::{Algorithm, DiffOp, capture_diff_slices};

use crate::labels::Names;

/// One instruction of a listing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Line {
    /// Byte offset in its code.
    pub offset: u64,
    /// As nvdisasm writes it, code labels by name.
    pub text: String,
    /// The scheduling column.
    pub control: String,
    #[serde(skip)]
    word: u128,
    /// The text without the places it names: these move with the code.
    #[serde(skip)]
    key: String,
}

/// What became of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// Nothing but its place, and that of what it names.
    Same,
    /// Its scheduling bits.
    Scheduling,
    /// What it is.
    Changed,
    /// It is in the first listing only.
    Removed,
    /// It is in the second listing only.
    Added,
}

/// One row of two listings side by side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// What is the matter.
    pub change: Change,
    /// Of the first listing.
    pub before: Option<Line>,
    /// Of the second.
    pub after: Option<Line>,
}

/// The instructions of a section up to its padding.
pub fn lines(isa: &Isa, code: &[u8], names: &Names) -> Vec<Line> {
    let all: Vec<Word> = Word::all(code).collect();
    let padding = all
        .iter()
        .rev()
        .take_while(|w| isa.form(isa.decode(**w).form).is_some_and(|f| f.mnemonic() == "NOP"));
    let used = all.len() - padding.count();
    let line = |(n, word): (usize, &Word)| {
        let offset = (n * Word::BYTES) as u64;
        let text = |labels: isa::Labels<'_>| {
            let mut text = String::new();
            // A string takes any text.
            let _ = isa.write_text(isa.decode(*word), offset, &mut text, Some(labels));
            text
        };
        Line {
            offset,
            text: text(&|at| names.get(&at).map(String::as_str)),
            control: Control::of(*word).to_string(),
            word: word.0,
            key: text(&|_| Some("")),
        }
    };
    all[..used].iter().enumerate().map(line).collect()
}

/// Aligns two listings: first what is the same, then, in between, instructions of the same name.
pub fn align(before: &[Line], after: &[Line]) -> Vec<Row> {
    let mut rows = Vec::with_capacity(before.len());
    let keys = |lines: &[Line]| -> Vec<String> { lines.iter().map(|l| l.key.clone()).collect() };
    for op in capture_diff_slices(Algorithm::Patience, &keys(before), &keys(after)) {
        let (a, b) = (&before[op.old_range()], &after[op.new_range()]);
        match op {
            DiffOp::Replace { .. } => between(a, b, &mut rows),
            _ => side_by_side(a, b, &mut rows),
        }
    }
    rows
}

/// Stretches that have no instruction in common: those of the same name stand side by side, else in order.
fn between(before: &[Line], after: &[Line], rows: &mut Vec<Row>) {
    let names = |lines: &[Line]| -> Vec<String> {
        let name = |l: &Line| {
            l.key
                .trim_start_matches(['@', '!'])
                .split([' ', '.'])
                .next()
                .unwrap_or("")
                .to_owned()
        };
        lines.iter().map(name).collect()
    };
    for op in capture_diff_slices(Algorithm::Myers, &names(before), &names(after)) {
        side_by_side(&before[op.old_range()], &after[op.new_range()], rows);
    }
}

fn side_by_side(before: &[Line], after: &[Line], rows: &mut Vec<Row>) {
    for n in 0..before.len().max(after.len()) {
        let (a, b) = (before.get(n), after.get(n));
        let change = match (a, b) {
            (Some(_), None) => Change::Removed,
            (None, _) => Change::Added,
            (Some(a), Some(b)) if a.word == b.word => Change::Same,
            (Some(a), Some(b)) if a.key != b.key => Change::Changed,
            (Some(a), Some(b)) if a.control != b.control => Change::Scheduling,
            // What no text shows.
            (Some(a), Some(b)) if a.text == b.text => Change::Changed,
            _ => Change::Same,
        };
        rows.push(Row {
            change,
            before: a.cloned(),
            after: b.cloned(),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str, stall: u8) -> Line {
        Line {
            offset: 0,
            text: text.into(),
            control: format!("S{stall:02}"),
            word: text.len() as u128 * 100 + u128::from(stall) + text.bytes().map(u128::from).sum::<u128>() * 100_000,
            key: text.into(),
        }
    }

    fn changes(before: &[&str], after: &[&str]) -> Vec<Change> {
        let lines = |texts: &[&str]| -> Vec<Line> { texts.iter().map(|t| line(t, 1)).collect() };
        align(&lines(before), &lines(after)).iter().map(|r| r.change).collect()
    }

    #[test]
    fn what_is_the_same_stands_side_by_side() {
        use Change::{Added, Changed, Removed, Same, Scheduling};
        assert_eq!(changes(&["A 1", "B 1", "C 1"], &["A 1", "C 1"]), [Same, Removed, Same]);
        assert_eq!(changes(&["A 1", "C 1"], &["A 1", "B 1", "C 1"]), [Same, Added, Same]);
        assert_eq!(
            changes(&["A 1", "B 1", "C 1"], &["A 1", "B 2", "C 1"]),
            [Same, Changed, Same]
        );
        // The one of the same name, not the first.
        assert_eq!(
            changes(&["A 1", "B 1", "C 1"], &["A 1", "X 9", "B 2", "C 1"]),
            [Same, Added, Changed, Same]
        );
        let rows = align(&[line("A 1", 1)], &[line("A 1", 2)]);
        assert_eq!(rows[0].change, Scheduling);
    }
}
