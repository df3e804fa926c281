//! What must hold between the rows of a family, beyond the syntax of each cell.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use crate::bits::Bits;
use crate::family::{Family, FieldRow, FormRow, LegalRow, MatchRow, ModifierRow, OperandRow, WidthRow};
use crate::filler::FillerRow;
use crate::names::{FILES, FieldName, KINDS, Kind, Map, Owner, holes};
use crate::tsv::Row;

/// One thing that is wrong, with file and line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}:{line}: {message}", path.display())]
pub struct Problem {
    /// The file.
    pub path: PathBuf,
    /// Line, from 1.
    pub line: usize,
    /// What is wrong.
    pub message: String,
}

struct Report<'a> {
    dir: &'a Path,
    found: Vec<Problem>,
}

impl Report<'_> {
    fn add<R: Row>(&mut self, row: usize, message: String) {
        self.found.push(Problem {
            path: self.dir.join(R::FILE),
            line: row + 2,
            message,
        });
    }
}

/// A selector seen so far: its bits, values, and the row that began it.
type Selectors<'a> = BTreeMap<(&'a str, u8), (&'a Bits, BTreeSet<u64>)>;

/// Everything that is wrong with `family`, whose files lie in `dir` with the rows in the order of the files.
pub fn check(family: &Family, dir: &Path) -> Vec<Problem> {
    let mut report = Report { dir, found: vec![] };
    let mut forms: HashMap<&str, &FormRow> = HashMap::new();
    for (i, f) in family.forms.iter().enumerate() {
        if forms.insert(&f.form, f).is_some() {
            report.add::<FormRow>(i, format!("form {} is there twice", f.form));
        }
        if !matches!(f.guard.as_str(), "" | "P" | "UP") {
            report.add::<FormRow>(i, format!("guard `{}` is none of P UP -", f.guard));
        }
        let operand = |o: u8| family.operands.iter().any(|row| row.form == f.form && row.operand == o);
        let flag = |&(bit, o): &(u8, u8)| matches!(bit, 12..105 | 122..=124) && operand(o);
        if f.reuse != [FormRow::NO_REUSE] && !f.reuse.iter().all(flag) {
            report.add::<FormRow>(
                i,
                "reuse is bit:operand with bits 12 to 104 or 122 to 124, or none".into(),
            );
        }
        if f.filler as u16 & 0xfff != f.opcode {
            report.add::<FormRow>(i, format!("filler has opcode {:#05x}", f.filler as u16 & 0xfff));
        }
        if family.forms.len() > usize::from(u16::MAX) {
            report.add::<FormRow>(i, "more than 65535 forms".into());
        }
    }
    check_matches(family, &forms, &mut report);
    check_legal(family, &forms, &mut report);
    let operands = check_operands(family, &forms, &mut report);
    check_fields(family, &forms, &operands, &mut report);
    check_modifiers(family, &forms, &mut report);
    report.found
}

/// Everything that is wrong with the fillers of `family`.
pub fn check_fillers(family: &Family, fillers: &[FillerRow], dir: &Path) -> Vec<Problem> {
    let mut report = Report { dir, found: vec![] };
    let mut left: BTreeSet<&str> = family.forms.iter().map(|f| f.form.as_str()).collect();
    for (i, row) in fillers.iter().enumerate() {
        if !left.remove(row.form.as_str()) {
            report.add::<FillerRow>(
                i,
                format!(
                    "no form {}, or a second row for it: delete the file, build, and run `probe fillers` again",
                    row.form
                ),
            );
        }
    }
    report.found
}

fn check_matches(family: &Family, forms: &HashMap<&str, &FormRow>, report: &mut Report<'_>) {
    let mut matched = BTreeSet::new();
    let mut by_opcode: HashMap<u16, Vec<usize>> = HashMap::new();
    for (i, m) in family.matches.iter().enumerate() {
        matched.insert(m.form.as_str());
        match forms.get(m.form.as_str()) {
            None => report.add::<MatchRow>(i, format!("no form {}", m.form)),
            Some(f) if m.mask & 0xfff != 0xfff || m.value as u16 & 0xfff != f.opcode => report.add::<MatchRow>(
                i,
                format!("the row must compare bits 11:0 with opcode {:#05x}", f.opcode),
            ),
            Some(_) => {}
        }
        by_opcode.entry(m.value as u16 & 0xfff).or_default().push(i);
    }
    for rows in by_opcode.values() {
        for (n, &i) in rows.iter().enumerate() {
            for &j in &rows[..n] {
                let (a, b) = (&family.matches[i], &family.matches[j]);
                let tie = a.mask.count_ones() == b.mask.count_ones();
                if a.form != b.form && tie && a.value & b.mask == b.value & a.mask {
                    report.add::<MatchRow>(
                        i,
                        format!(
                            "{} and {} (line {}) match the same words with equally many mask bits",
                            a.form,
                            b.form,
                            j + 2
                        ),
                    );
                }
            }
        }
    }
    for (i, f) in family.forms.iter().enumerate() {
        if !matched.contains(f.form.as_str()) {
            report.add::<FormRow>(i, format!("form {} has no row in {}", f.form, MatchRow::FILE));
            continue;
        }
        let rows = by_opcode.get(&f.opcode).map_or(&[][..], Vec::as_slice);
        let best = rows
            .iter()
            .map(|&r| &family.matches[r])
            .filter(|m| f.filler & m.mask == m.value)
            .max_by_key(|m| m.mask.count_ones());
        if best.is_none_or(|m| m.form != f.form) {
            let other = best.map_or("no form", |m| m.form.as_str());
            report.add::<FormRow>(i, format!("filler is a word of {other}, not of {}", f.form));
        }
    }
}

fn check_legal(family: &Family, forms: &HashMap<&str, &FormRow>, report: &mut Report<'_>) {
    for (i, row) in family.legal.iter().enumerate() {
        if !forms.contains_key(row.form.as_str()) {
            report.add::<LegalRow>(i, format!("no form {}", row.form));
        }
    }
}

/// Holes of each operand over all its shapes.
type Holes<'a> = HashMap<(&'a str, u8), BTreeSet<(u8, u8)>>;

fn check_operands<'a>(family: &'a Family, forms: &HashMap<&str, &FormRow>, report: &mut Report<'_>) -> Holes<'a> {
    let mut selectors = Selectors::new();
    let mut all_holes = Holes::new();
    for (i, o) in family.operands.iter().enumerate() {
        if !forms.contains_key(o.form.as_str()) {
            report.add::<OperandRow>(i, format!("no form {}", o.form));
        }
        check_selector::<OperandRow>(&mut selectors, (&o.form, o.operand), &o.bits, o.value, i, report);
        let seen = all_holes.entry((&o.form, o.operand)).or_default();
        seen.extend(holes(&o.shape));
    }
    check_contiguous::<OperandRow>(&selectors, report, |r| {
        family.operands.iter().position(|o| o.form == r.0 && o.operand == r.1)
    });
    all_holes
}

fn check_fields(family: &Family, forms: &HashMap<&str, &FormRow>, operands: &Holes<'_>, report: &mut Report<'_>) {
    let mut seen = BTreeSet::new();
    for (i, f) in family.fields.iter().enumerate() {
        let Some(form) = forms.get(f.form.as_str()) else {
            report.add::<FieldRow>(i, format!("no form {}", f.form));
            continue;
        };
        if !seen.insert((f.form.as_str(), f.field.as_str())) {
            report.add::<FieldRow>(i, format!("field {} of {} is there twice", f.field, f.form));
        }
        let name = FieldName::parse(&f.field);
        match name.map(|n| (n.owner, n)) {
            None => report.add::<FieldRow>(i, format!("field `{}` is not like g, 2.R0, h0.UR0", f.field)),
            Some((Owner::Guard, _)) if form.guard != f.kind => {
                report.add::<FieldRow>(i, format!("guard is {} but forms.tsv says `{}`", f.kind, form.guard));
            }
            Some((Owner::Printed(n), name)) => {
                let known = operands
                    .get(&(f.form.as_str(), n))
                    .is_some_and(|h| h.contains(&(name.hole, name.ordinal)));
                if !known {
                    report.add::<FieldRow>(i, format!("no shape of operand {n} has a hole {}", f.field));
                }
            }
            Some(_) => {}
        }
        let kind = Kind::parse(&f.kind);
        let register = kind
            .as_ref()
            .is_ok_and(|k| usize::from(k.default) < FILES.len() || KINDS[usize::from(k.default)] == "SB");
        if let Err(e) = &kind {
            report.add::<FieldRow>(i, e.clone());
        }
        match Map::parse(&f.map) {
            Err(e) => report.add::<FieldRow>(i, e),
            Ok(Map::Weights(w, _)) if w.len() != f.bits.len() => {
                report.add::<FieldRow>(i, format!("{} weights for {} bits", w.len(), f.bits.len()));
            }
            Ok(_) => {}
        }
        check_access::<FieldRow>(i, &f.access, f.width, register, report);
        if !matches!(f.when.as_str(), "" | "always" | "printed") {
            report.add::<FieldRow>(i, format!("when `{}` is none of always printed -", f.when));
        }
    }
    let mut values = BTreeSet::new();
    for (i, w) in family.widths.iter().enumerate() {
        if !seen.contains(&(w.form.as_str(), w.field.as_str())) {
            report.add::<WidthRow>(i, format!("no field {} of {}", w.field, w.form));
        }
        if w.bits.len() < 64 && w.value >> w.bits.len() != 0 {
            report.add::<WidthRow>(i, format!("value {} does not fit bits {}", w.value, w.bits));
        }
        if !values.insert((&w.form, &w.field, &w.bits, w.value)) {
            report.add::<WidthRow>(i, "this value is there twice".into());
        }
        check_access::<WidthRow>(i, &w.access, w.width, true, report);
    }
}

fn check_access<R: Row>(row: usize, access: &str, width: u8, register: bool, report: &mut Report<'_>) {
    match access {
        "" => {}
        "r" | "w" | "rw" if !register => report.add::<R>(row, "access of a field that is no register".into()),
        "r" | "w" | "rw" if width == 0 => report.add::<R>(row, "a register that is touched needs a width".into()),
        "r" | "w" | "rw" => {}
        other => report.add::<R>(row, format!("access `{other}` is none of r w rw -")),
    }
}

fn check_modifiers(family: &Family, forms: &HashMap<&str, &FormRow>, report: &mut Report<'_>) {
    let mut selectors = Selectors::new();
    for (i, m) in family.modifiers.iter().enumerate() {
        if !forms.contains_key(m.form.as_str()) {
            report.add::<ModifierRow>(i, format!("no form {}", m.form));
        }
        check_selector::<ModifierRow>(&mut selectors, (&m.form, m.slot), &m.bits, m.value, i, report);
    }
    check_contiguous::<ModifierRow>(&selectors, report, |r| {
        family.modifiers.iter().position(|o| o.form == r.0 && o.slot == r.1)
    });
}

fn check_selector<'a, R: Row>(
    selectors: &mut Selectors<'a>,
    key: (&'a str, u8),
    bits: &'a Bits,
    value: u64,
    row: usize,
    report: &mut Report<'_>,
) {
    let (known, values) = selectors.entry(key).or_insert_with(|| (bits, BTreeSet::new()));
    if *known != bits {
        report.add::<R>(row, format!("bits {bits} here, {known} above"));
    }
    if bits.len() > 16 {
        report.add::<R>(row, format!("bits {bits}: a selector is at most 16 bits wide"));
    }
    if bits.len() < 64 && value >> bits.len() != 0 {
        report.add::<R>(row, format!("value {value} does not fit bits {bits}"));
    }
    if !values.insert(value) {
        report.add::<R>(row, format!("value {value} is there twice"));
    }
}

/// Operands and slots count from 0 without a gap.
fn check_contiguous<R: Row>(
    selectors: &Selectors<'_>,
    report: &mut Report<'_>,
    row_of: impl Fn(&(&str, u8)) -> Option<usize>,
) {
    for key in selectors.keys() {
        if key.1 > 0 && !selectors.contains_key(&(key.0, key.1 - 1)) {
            let row = row_of(key).unwrap_or(0);
            report.add::<R>(row, format!("{} has {} but not {}", key.0, key.1, key.1 - 1));
        }
    }
}

/// Rows of `operands.tsv` (by index) whose shape has a hole that no row of `fields.tsv` explains. They cannot be printed or edited, so
/// their words are left opaque.
pub fn unexplained_shapes(family: &Family) -> BTreeSet<usize> {
    let fields: BTreeSet<(&str, FieldName)> = family
        .fields
        .iter()
        .filter_map(|f| Some((f.form.as_str(), FieldName::parse(&f.field)?)))
        .collect();
    let explained = |o: &OperandRow| {
        holes(&o.shape).into_iter().all(|(hole, ordinal)| {
            let owner = Owner::Printed(o.operand);
            let name = FieldName { owner, hole, ordinal };
            fields.contains(&(o.form.as_str(), name))
        })
    };
    let rows = family.operands.iter().enumerate();
    rows.filter(|(_, o)| !explained(o)).map(|(i, _)| i).collect()
}
