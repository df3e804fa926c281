//! Accesses that another family has already: taken over for forms with the same rows.

use std::collections::{BTreeMap, BTreeSet};

use union_gen::family::{Family, FieldRow};

/// What the rows of a form say, accesses aside.
type Rows<'a> = Vec<(&'a str, String)>;

/// Fills in the accesses of the forms of `family` whose rows are the same in `other`, and returns those forms.
pub fn take_over(family: &mut Family, other: &Family) -> BTreeSet<String> {
    let known = rows(other);
    let same: BTreeSet<String> = rows(family)
        .into_iter()
        .filter(|(form, rows)| known.get(form) == Some(rows))
        .map(|(form, _)| form.to_owned())
        .collect();
    family.fields.retain(|f| !same.contains(&f.form));
    family.widths.retain(|w| !same.contains(&w.form));
    family
        .fields
        .extend(other.fields.iter().filter(|f| same.contains(&f.form)).cloned());
    family
        .widths
        .extend(other.widths.iter().filter(|w| same.contains(&w.form)).cloned());
    same
}

/// The rows of each form that say what its bits mean.
fn rows(family: &Family) -> BTreeMap<&str, Rows<'_>> {
    let mut out: BTreeMap<&str, Rows<'_>> = BTreeMap::new();
    for r in &family.matches {
        let row = format!("{:x} {:x}", r.mask, r.value);
        out.entry(&r.form).or_default().push(("match", row));
    }
    for r in &family.operands {
        let row = format!("{} {} {} {}", r.operand, r.bits, r.value, r.shape);
        out.entry(&r.form).or_default().push(("operand", row));
    }
    for r in family.fields.iter().filter(|f| !is_hidden(f)) {
        let row = format!("{} {} {} {} {:?}", r.field, r.kind, r.bits, r.map, r.elide);
        out.entry(&r.form).or_default().push(("field", row));
    }
    for r in &family.modifiers {
        let row = format!("{} {} {} {}", r.slot, r.bits, r.value, r.text);
        out.entry(&r.form).or_default().push(("modifier", row));
    }
    out
}

fn is_hidden(field: &FieldRow) -> bool {
    field.field.starts_with('h')
}
