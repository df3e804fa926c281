//! `fillers.tsv`: what compilers write into bits that mean nothing, and which of several encodings they take.

use std::collections::HashMap;
use std::path::Path;

use crate::family::{Family, FormRow};
use crate::tsv::{self, Row, TsvError, word};

/// One form that compilers use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FillerRow {
    /// Form id.
    pub form: String,
    /// Bits that mean nothing in some of the words seen, and then always had the same value.
    pub mask: u128,
    /// That value.
    pub value: u128,
    /// Distinct words seen.
    pub words: u32,
    /// Operands that the text of some of them leaves out.
    pub left_out: Vec<u8>,
    /// Flags of the operand cache, as word bits, that some of them have.
    pub reuse: Vec<u8>,
}

impl Row for FillerRow {
    const FILE: &'static str = "fillers.tsv";
    const COLUMNS: &'static [&'static str] = &["form", "mask", "value", "words", "left_out", "reuse"];

    fn from_cells(c: &[&str]) -> Result<Self, String> {
        let row = Self {
            form: c[0].to_owned(),
            mask: word("mask", c[1])?,
            value: word("value", c[2])?,
            words: c[3].parse().map_err(|e| format!("column words: `{}`: {e}", c[3]))?,
            left_out: numbers("left_out", c[4], 32)?,
            reuse: numbers("reuse", c[5], 128)?,
        };
        match row.value & !row.mask {
            0 => Ok(row),
            _ => Err("value has bits outside mask".into()),
        }
    }

    fn to_cells(&self) -> Vec<String> {
        vec![
            self.form.clone(),
            format!("{:032x}", self.mask),
            format!("{:032x}", self.value),
            self.words.to_string(),
            list(&self.left_out),
            list(&self.reuse),
        ]
    }
}

/// Numbers below `end`, separated by commas, or nothing.
fn numbers(column: &str, cell: &str, end: u8) -> Result<Vec<u8>, String> {
    let number = |n: &str| match n.parse() {
        Ok(n) if n < end => Ok(n),
        _ => Err(format!("column {column}: `{n}` is no number below {end}")),
    };
    match cell {
        "-" => Ok(vec![]),
        _ => cell.split(',').map(number).collect(),
    }
}

fn list(numbers: &[u8]) -> String {
    let list: Vec<String> = numbers.iter().map(u8::to_string).collect();
    if list.is_empty() {
        "-".to_owned()
    } else {
        list.join(",")
    }
}

/// How compilers write a form, where its text has several encodings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Filler {
    /// Bits whose filling is known.
    pub mask: u128,
    /// The filling.
    pub value: u128,
    /// Compilers' code with the form was seen.
    pub is_attested: bool,
    /// A bit for each operand that its text left out.
    pub left_out: u32,
    /// The flags of the operand cache that it had.
    pub reuse: u128,
}

/// The rows of the folder `dir`; none where no compiler's code of the family was at hand, and so no such file is.
pub fn read(dir: &Path) -> Result<Vec<FillerRow>, TsvError> {
    if dir.join(FillerRow::FILE).exists() {
        tsv::read(dir)
    } else {
        Ok(vec![])
    }
}

/// What is known of every form of `family`: what was seen of it, and what other forms let one expect.
///
/// A bit that no field, selector or match row of a form owns is expected to be as in the forms seen that have the same mnemonic and
/// the same opcode bits 8:0, which are the same instruction with other kinds of operands, if these agree; or as in all forms seen, if
/// these are many and agree. Taking each form out and predicting it from the others is a test.
pub fn expect<'f>(family: &'f Family, rows: &[FillerRow]) -> HashMap<&'f str, Filler> {
    let (owned, forced) = (owned(family), forced(family));
    let seen: HashMap<&str, &FillerRow> = rows.iter().map(|r| (r.form.as_str(), r)).collect();
    let everywhere = Agreement::of(rows.iter());
    let mut kin: HashMap<(&str, u16), Vec<&FillerRow>> = HashMap::new();
    for form in &family.forms {
        kin.entry(kind(form)).or_default().extend(seen.get(form.form.as_str()));
    }
    let of_form = |form: &'f FormRow| {
        let free = !owned.get(form.form.as_str()).copied().unwrap_or(u128::MAX) & !SCHEDULING;
        let own = seen.get(form.form.as_str());
        let mut filler = Filler::default();
        if own.is_none() {
            filler = everywhere.agreed(MANY, free);
            filler.replace(Agreement::of(kin[&kind(form)].iter().copied()).agreed(KIN, free));
        }
        filler.replace(forced.get(form.form.as_str()).copied().unwrap_or_default());
        // A free bit that is not in the mask differs from word to word: nothing may be expected of it.
        filler.replace(own.map_or(Filler::default(), |row| Filler {
            mask: row.mask,
            value: row.value,
            is_attested: true,
            left_out: row.left_out.iter().fold(0, |m, n| m | 1 << n),
            reuse: row.reuse.iter().fold(0, |m, bit| m | 1 << bit),
        }));
        (form.form.as_str(), filler)
    };
    family.forms.iter().map(of_form).collect()
}

/// Bits 125:105, which the tables of a family do not speak of.
const SCHEDULING: u128 = ((1 << 21) - 1) << 105;
/// So many forms must agree before a bit is taken to be the same in every form.
const MANY: u32 = 20;

/// So many forms of one kind must agree.
const KIN: u32 = 3;

/// Forms of one kind are one instruction with other kinds of operands.
fn kind(form: &FormRow) -> (&str, u16) {
    (&form.mnemonic, form.opcode & 0x1ff)
}

/// For each form the bits that its rows give a meaning.
fn owned(family: &Family) -> HashMap<&str, u128> {
    let mut owned: HashMap<&str, u128> = HashMap::new();
    let mut add = |form, mask: u128| *owned.entry(form).or_default() |= mask;
    for f in &family.forms {
        add(f.form.as_str(), if f.guard.is_empty() { 0 } else { 0xf000 });
    }
    family.matches.iter().for_each(|r| add(&r.form, r.mask));
    family.operands.iter().for_each(|r| add(&r.form, r.bits.mask()));
    family.fields.iter().for_each(|r| add(&r.form, r.bits.mask()));
    family.modifiers.iter().for_each(|r| add(&r.form, r.bits.mask()));
    family.legal.iter().for_each(|r| add(&r.form, r.mask));
    owned
}

/// Bits that have one legal value: a rule that refuses the other, without exceptions.
fn forced(family: &Family) -> HashMap<&str, Filler> {
    let mut rows: HashMap<(&str, u16), usize> = HashMap::new();
    for row in &family.legal {
        *rows.entry((&row.form, row.rule)).or_default() += 1;
    }
    let mut out: HashMap<&str, Filler> = HashMap::new();
    for row in family
        .legal
        .iter()
        .filter(|r| !r.legal && r.mask.count_ones() == 1 && r.mask & SCHEDULING == 0)
    {
        if rows[&(row.form.as_str(), row.rule)] == 1 {
            out.entry(&row.form).or_default().replace(Filler {
                mask: row.mask,
                value: !row.value & row.mask,
                ..Filler::default()
            });
        }
    }
    out
}

/// How many of some rows have each bit set, and clear.
struct Agreement {
    set: [u32; 128],
    clear: [u32; 128],
}

impl Agreement {
    fn of<'r>(rows: impl Iterator<Item = &'r FillerRow>) -> Self {
        let mut out = Self {
            set: [0; 128],
            clear: [0; 128],
        };
        for row in rows {
            for bit in (0..128).filter(|bit| row.mask >> bit & 1 == 1) {
                let counts = if row.value >> bit & 1 == 1 {
                    &mut out.set
                } else {
                    &mut out.clear
                };
                counts[bit] += 1;
            }
        }
        out
    }

    /// Bits of `free` in which at least `least` rows agree and none differs.
    fn agreed(&self, least: u32, free: u128) -> Filler {
        let mut filler = Filler::default();
        for bit in (0..128).filter(|bit| free >> bit & 1 == 1) {
            let (set, clear) = (self.set[bit], self.clear[bit]);
            if set.min(clear) == 0 && set.max(clear) >= least {
                filler.mask |= 1 << bit;
                filler.value |= u128::from(set > 0) << bit;
            }
        }
        filler
    }
}

impl Filler {
    /// `word` with the bits that are known filled in.
    pub fn put_into(self, word: u128) -> u128 {
        word & !self.mask | self.value
    }

    /// Takes over what `better` knows.
    fn replace(&mut self, better: Self) {
        self.mask |= better.mask;
        self.value = self.value & !better.mask | better.value;
        self.is_attested |= better.is_attested;
        self.left_out |= better.left_out;
        self.reuse |= better.reuse;
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::tsv;

    /// Each form that was seen is predicted from the others: what is predicted is right.
    #[test]
    fn other_forms_let_one_expect_the_right_filling() {
        for family in ["SM75", "SM87"] {
            let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../opcodes").join(family);
            let family = Family::read(&dir).expect("the tables are right");
            let rows: Vec<FillerRow> = tsv::read(&dir).expect("the tables are right");
            let mut predicted = 0;
            for n in 0..rows.len() {
                let mut others = rows.clone();
                let row = others.remove(n);
                let filler = expect(&family, &others)[row.form.as_str()];
                assert!(!filler.is_attested);
                let both = filler.mask & row.mask;
                assert_eq!(filler.value & both, row.value & both, "{}: {}", dir.display(), row.form);
                predicted += usize::from(both == row.mask);
            }
            assert!(predicted * 3 > rows.len(), "only {predicted} of {} forms", rows.len());
        }
    }
}
