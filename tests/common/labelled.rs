//! nvdisasm's listing with its labels, in a form in which two listings of the same code at other offsets are equal.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The code of one section.
#[derive(Debug, Default)]
pub struct Section {
    /// (byte offset, text), in order.
    pub lines: Vec<(u64, String)>,
    /// Labels and function names, with the position in `lines` that they stand before.
    pub labels: BTreeMap<String, usize>,
}

/// The sections that `nvdisasm -c` lists.
pub fn listing(oracles: &Path, cubin: &Path) -> BTreeMap<String, Section> {
    let text = crate::common::nvdisasm_c(oracles, cubin, &[]);
    let mut sections: BTreeMap<String, Section> = BTreeMap::new();
    let mut current = None;
    let mut before: Vec<String> = Vec::new();
    for line in text.lines() {
        if line.starts_with("//---") {
            (current, before) = (None, Vec::new());
        } else if let Some(label) = line.strip_suffix(':').filter(|l| !l.starts_with([' ', '\t'])) {
            match label.strip_prefix(".text.") {
                Some(name) => current = Some(name.to_owned()),
                None => before.push(label.to_owned()),
            }
        } else if let (Some(name), Some(rest)) = (&current, line.trim_start().strip_prefix("/*")) {
            let Some((offset, text)) = rest.split_once("*/") else {
                continue;
            };
            let section = sections.entry(name.clone()).or_default();
            let offset = u64::from_str_radix(offset, 16).expect("an offset in hex");
            before.drain(..).for_each(|l| {
                section.labels.insert(l, section.lines.len());
            });
            section
                .lines
                .push((offset, text.trim().replace(['{', '}'], "").trim().to_owned()));
        }
    }
    sections
}

impl Section {
    /// Position of the first line that is not taken out, at a byte offset or behind it; `None` for what is no code offset.
    fn resolve(&self, offset: i64, out: &BTreeSet<u64>) -> Option<usize> {
        let at = self.lines.iter().position(|(o, _)| *o as i64 == offset)?;
        Some(self.kept_before(at, out))
    }

    /// How many lines before a position are not taken out.
    fn kept_before(&self, at: usize, out: &BTreeSet<u64>) -> usize {
        self.lines[..at].iter().filter(|(o, _)| !out.contains(o)).count()
    }
}

/// The first difference between a section and one whose lines at the offsets in `out` do not count: in text, in what labels name, in where
/// labels are. Numbers may differ if both are offsets of the same line.
pub fn difference(old: &Section, new: &Section, out: &BTreeSet<u64>) -> Option<String> {
    let none = BTreeSet::new();
    let (a, b) = (kept(old, &none), kept(new, out));
    for (n, (x, y)) in a.iter().zip(&b).enumerate() {
        if !same_text((old, x, &none), (new, y, out)) {
            return Some(format!("line {n}: `{}` became `{}`", x.1, y.1));
        }
    }
    if a.len() != b.len() {
        return Some(format!("{} lines became {}", a.len(), b.len()));
    }
    let places = |s: &Section, out: &BTreeSet<u64>| -> BTreeSet<usize> {
        let places = s.labels.values().map(|at| s.kept_before(*at, out));
        places.filter(|p| *p < a.len()).collect()
    };
    let (x, y) = (places(old, &none), places(new, out));
    (x != y).then(|| {
        let odd: Vec<_> = x.symmetric_difference(&y).collect();
        format!("labels stand before other lines: {odd:?}")
    })
}

/// The lines that count, without the padding's NOPs.
fn kept<'s>(section: &'s Section, out: &BTreeSet<u64>) -> Vec<&'s (u64, String)> {
    let mut lines: Vec<_> = section.lines.iter().filter(|(o, _)| !out.contains(o)).collect();
    while lines.last().is_some_and(|(_, t)| t.starts_with("NOP")) {
        lines.pop();
    }
    lines
}

type Side<'s> = (&'s Section, &'s (u64, String), &'s BTreeSet<u64>);

fn same_text(a: Side<'_>, b: Side<'_>) -> bool {
    let (x, y) = (tokens(&a.1.1), tokens(&b.1.1));
    x.len() == y.len()
        && x.iter()
            .zip(&y)
            .all(|(x, y)| x == y && !x.starts_with(".L_") || same_place(a, x, b, y))
}

/// Words, with their sign; and what is between them.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens: Vec<String> = Vec::new();
    let inside = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '.');
    for c in text.chars().filter(|c| !c.is_whitespace()) {
        match tokens.last_mut() {
            Some(last) if inside(c) && last.ends_with(inside) => last.push(c),
            Some(last) if last == "-" && c.is_ascii_digit() => last.push(c),
            _ => tokens.push(c.to_string()),
        }
    }
    tokens
}

/// Two labels, or two numbers, that mean the same line.
fn same_place(a: Side<'_>, x: &str, b: Side<'_>, y: &str) -> bool {
    let label = |(section, _, out): Side<'_>, name: &str| Some(section.kept_before(*section.labels.get(name)?, out));
    if x.starts_with(".L_") && y.starts_with(".L_") {
        // A label of another section (`.L_x_5@srel`) is in neither.
        return label(a, x) == label(b, y);
    }
    let number = |t: &str| {
        let (sign, digits) = t.strip_prefix('-').map_or((1, t), |d| (-1, d));
        Some(sign * i64::from_str_radix(digits.strip_prefix("0x")?, 16).ok()?)
    };
    let (Some(m), Some(n)) = (number(x), number(y)) else {
        return false;
    };
    let same = |from: i64, to: i64| {
        let place = a.0.resolve(from, a.2);
        place.is_some() && place == b.0.resolve(to, b.2)
    };
    same(m, n) || same(m + a.1.0 as i64 + 16, n + b.1.0 as i64 + 16)
}
