//! Part of a family made anew, the rest kept: forms of different opcodes share no rows.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result};
use union_gen::family::Family;

/// The opcodes that are looked at: bits 11:0, in order; none means all.
#[derive(Debug)]
pub struct Only(BTreeSet<u16>);

/// Reads an opcode as form ids have it: `0x23e`.
pub fn opcode(text: &str) -> Result<u16, String> {
    let hex = text.strip_prefix("0x").ok_or("an opcode is written like 0x23e")?;
    match u16::from_str_radix(hex, 16) {
        Ok(opcode) if opcode < 0x1000 => Ok(opcode),
        _ => Err("an opcode is at most 0xfff".into()),
    }
}

impl Only {
    /// These opcodes, or all if there are none.
    pub fn new(opcodes: &[u16]) -> Self {
        Self(opcodes.iter().copied().collect())
    }

    /// Whether the opcode of `word` is looked at.
    pub fn has(&self, word: u128) -> bool {
        self.0.is_empty() || self.0.contains(&((word & 0xfff) as u16))
    }

    /// `made` with the rows that the tables in `dir` have of other opcodes.
    pub fn put_into(&self, mut made: Family, dir: &Path) -> Result<Family> {
        if self.0.is_empty() {
            return Ok(made);
        }
        let old = Family::read(dir).with_context(|| format!("{}: the rows of other opcodes", dir.display()))?;
        let others = old.forms.iter().filter(|f| !self.0.contains(&f.opcode));
        let others: BTreeSet<String> = others.map(|f| f.form.clone()).collect();
        macro_rules! keep {
            ($($rows:ident),*) => { $(made.$rows.extend(old.$rows.into_iter().filter(|r| others.contains(&r.form)));)* };
        }
        keep!(forms, matches, legal, operands, fields, widths, modifiers);
        Ok(made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opcodes_are_read_as_form_ids_have_them() {
        assert_eq!(opcode("0x23e"), Ok(0x23e));
        assert!(opcode("23e").is_err() && opcode("0x1000").is_err() && opcode("0x").is_err());
    }

    #[test]
    fn rows_of_other_opcodes_stay() {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../opcodes/SM87");
        let mut whole = Family::read(&dir).expect("the tables are right");
        let mut rest = Only::new(&[0x23e]).put_into(Family::default(), &dir).expect("readable");
        assert!(rest.row_count() < whole.row_count());
        assert!(rest.fields.iter().all(|r| !r.form.contains("_0x23e")));
        // What was taken out and put back makes the whole.
        rest.forms
            .extend(whole.forms.iter().filter(|f| f.opcode == 0x23e).cloned());
        rest.fields
            .extend(whole.fields.iter().filter(|f| f.form.contains("_0x23e")).cloned());
        rest.sort();
        whole.sort();
        assert_eq!((rest.forms, rest.fields), (whole.forms, whole.fields));
    }
}
