//! The tables of one family of targets: the rows of its seven files. Columns are described in `opcodes/README.md`.

use std::fs;
use std::path::Path;

use crate::bits::Bits;
use crate::tsv::{Row, TsvError, cell, dash, flag, read, text, word, write};

/// The files of a family that always are there.
pub(crate) const FILES: [&str; 7] = [
    FormRow::FILE,
    MatchRow::FILE,
    LegalRow::FILE,
    OperandRow::FILE,
    FieldRow::FILE,
    WidthRow::FILE,
    ModifierRow::FILE,
];

/// Consecutive registers; `-` for none.
fn width(cell_text: &str) -> Result<u8, String> {
    match cell_text {
        "-" => Ok(0),
        number => cell("width", number),
    }
}

fn width_text(width: u8) -> String {
    match width {
        0 => "-".to_owned(),
        n => n.to_string(),
    }
}

/// `forms.tsv`: one instruction form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormRow {
    /// `MNEMONIC_0xOPCODE_SIGNATURE`.
    pub form: String,
    /// First dotted part of the printed name.
    pub mnemonic: String,
    /// Word bits 11:0.
    pub opcode: u16,
    /// `P`, `UP` or empty.
    pub guard: String,
    /// A legal word of the form to make new instructions from.
    pub filler: u128,
    /// Whether bits 112:110 may name a write barrier.
    pub wbar: bool,
    /// Whether bits 115:113 may name a read barrier.
    pub rbar: bool,
    /// Operand-cache flags: (bit, operand), meaningful when bit 109 is set; [`FormRow::NO_REUSE`] alone where none may be set.
    pub reuse: Vec<(u8, u8)>,
}

impl FormRow {
    /// Stands in `reuse` for `none`: bit 109 makes bits 124:122 flags, and none of them is legal.
    pub const NO_REUSE: (u8, u8) = (u8::MAX, u8::MAX);
}

impl Row for FormRow {
    const FILE: &'static str = "forms.tsv";
    const COLUMNS: &'static [&'static str] =
        &["form", "mnemonic", "opcode", "guard", "filler", "wbar", "rbar", "reuse"];

    fn from_cells(c: &[&str]) -> Result<Self, String> {
        let opcode = c[2]
            .strip_prefix("0x")
            .and_then(|h| u16::from_str_radix(h, 16).ok())
            .filter(|&o| o < 0x1000);
        let reuse = |s: &str| -> Result<Vec<(u8, u8)>, String> {
            let pair = |p: &str| {
                let (b, o) = p
                    .split_once(':')
                    .ok_or_else(|| format!("column reuse: `{p}` is not bit:operand"))?;
                Ok((cell("reuse", b)?, cell("reuse", o)?))
            };
            match s {
                "-" => Ok(vec![]),
                "none" => Ok(vec![Self::NO_REUSE]),
                pairs => pairs.split(',').map(pair).collect(),
            }
        };
        Ok(Self {
            form: c[0].to_owned(),
            mnemonic: c[1].to_owned(),
            opcode: opcode.ok_or_else(|| format!("column opcode: `{}` is not 0x000 to 0xfff", c[2]))?,
            guard: text(c[3]),
            filler: word("filler", c[4])?,
            wbar: flag("wbar", c[5])?,
            rbar: flag("rbar", c[6])?,
            reuse: reuse(c[7])?,
        })
    }

    fn to_cells(&self) -> Vec<String> {
        let pairs = self.reuse.iter().map(|(b, o)| format!("{b}:{o}"));
        let reuse = if self.reuse == [Self::NO_REUSE] {
            "none".to_owned()
        } else {
            pairs.collect::<Vec<_>>().join(",")
        };
        vec![
            self.form.clone(),
            self.mnemonic.clone(),
            format!("0x{:03x}", self.opcode),
            dash(&self.guard),
            format!("{:032x}", self.filler),
            u8::from(self.wbar).to_string(),
            u8::from(self.rbar).to_string(),
            dash(&reuse),
        ]
    }
}

/// `match.tsv`: a word is of `form` when `word & mask == value`; most mask bits win.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchRow {
    /// Form id.
    pub form: String,
    /// Bits that are compared.
    pub mask: u128,
    /// Their value; no bit outside the mask.
    pub value: u128,
}

impl Row for MatchRow {
    const FILE: &'static str = "match.tsv";
    const COLUMNS: &'static [&'static str] = &["form", "mask", "value"];

    fn from_cells(c: &[&str]) -> Result<Self, String> {
        let row = Self {
            form: c[0].to_owned(),
            mask: word("mask", c[1])?,
            value: word("value", c[2])?,
        };
        if row.value & !row.mask != 0 {
            Err("value has bits outside mask".into())
        } else {
            Ok(row)
        }
    }

    fn to_cells(&self) -> Vec<String> {
        vec![
            self.form.clone(),
            format!("{:032x}", self.mask),
            format!("{:032x}", self.value),
        ]
    }
}

/// `legal.tsv`: whether rule `rule` allows a word of `form` with `word & mask == value`. In a rule most mask bits win, and of equally
/// many `false`; every rule must allow a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LegalRow {
    /// Form id.
    pub form: String,
    /// Number of the rule.
    pub rule: u16,
    /// Bits that are compared, scheduling bits included.
    pub mask: u128,
    /// Their value; no bit outside the mask.
    pub value: u128,
    /// The verdict.
    pub legal: bool,
}

impl Row for LegalRow {
    const FILE: &'static str = "legal.tsv";
    const COLUMNS: &'static [&'static str] = &["form", "rule", "mask", "value", "legal"];

    fn from_cells(c: &[&str]) -> Result<Self, String> {
        let row = Self {
            form: c[0].to_owned(),
            rule: cell("rule", c[1])?,
            mask: word("mask", c[2])?,
            value: word("value", c[3])?,
            legal: flag("legal", c[4])?,
        };
        if row.value & !row.mask != 0 {
            Err("value has bits outside mask".into())
        } else {
            Ok(row)
        }
    }

    fn to_cells(&self) -> Vec<String> {
        vec![
            self.form.clone(),
            self.rule.to_string(),
            format!("{:032x}", self.mask),
            format!("{:032x}", self.value),
            u8::from(self.legal).to_string(),
        ]
    }
}

/// `operands.tsv`: the text of operand `operand` when its selector bits have `value`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperandRow {
    /// Form id.
    pub form: String,
    /// Index in printed order.
    pub operand: u8,
    /// Selector bits.
    pub bits: Bits,
    /// Selector value.
    pub value: u64,
    /// Text with holes.
    pub shape: String,
}

impl Row for OperandRow {
    const FILE: &'static str = "operands.tsv";
    const COLUMNS: &'static [&'static str] = &["form", "operand", "bits", "value", "shape"];

    fn from_cells(c: &[&str]) -> Result<Self, String> {
        Ok(Self {
            form: c[0].to_owned(),
            operand: cell("operand", c[1])?,
            bits: cell("bits", c[2])?,
            value: cell("value", c[3])?,
            shape: c[4].to_owned(),
        })
    }

    fn to_cells(&self) -> Vec<String> {
        vec![
            self.form.clone(),
            self.operand.to_string(),
            self.bits.to_string(),
            self.value.to_string(),
            self.shape.clone(),
        ]
    }
}

/// `fields.tsv`: one number or register in the word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldRow {
    /// Form id.
    pub form: String,
    /// `g`, `2.R0` or `h0.UR0`.
    pub field: String,
    /// `R UR P UP B SB I REL F16 BF16 F32 F64H`, with overrides after `;`.
    pub kind: String,
    /// Where it is.
    pub bits: Bits,
    /// How raw bits become the value: `u`, `s`, `~u`, `u*4`, `u+1`, `w:1,2,-4`.
    pub map: String,
    /// Values at which the whole operand is not printed.
    pub elide: Vec<i64>,
    /// `r`, `w`, `rw` or empty.
    pub access: String,
    /// Consecutive 32-bit registers; 0 when not a register.
    pub width: u8,
    /// `always`, `printed` or empty.
    pub when: String,
}

impl Row for FieldRow {
    const FILE: &'static str = "fields.tsv";
    const COLUMNS: &'static [&'static str] = &[
        "form", "field", "kind", "bits", "map", "elide", "access", "width", "when",
    ];

    fn from_cells(c: &[&str]) -> Result<Self, String> {
        let elide = |s: &str| -> Result<Vec<i64>, String> {
            if s == "-" {
                Ok(vec![])
            } else {
                s.split(',').map(|v| cell("elide", v)).collect()
            }
        };
        Ok(Self {
            form: c[0].to_owned(),
            field: c[1].to_owned(),
            kind: c[2].to_owned(),
            bits: cell("bits", c[3])?,
            map: c[4].to_owned(),
            elide: elide(c[5])?,
            access: text(c[6]),
            width: width(c[7])?,
            when: text(c[8]),
        })
    }

    fn to_cells(&self) -> Vec<String> {
        let elide = self.elide.iter().map(i64::to_string).collect::<Vec<_>>().join(",");
        vec![
            self.form.clone(),
            self.field.clone(),
            self.kind.clone(),
            self.bits.to_string(),
            self.map.clone(),
            dash(&elide),
            dash(&self.access),
            width_text(self.width),
            dash(&self.when),
        ]
    }
}

/// `widths.tsv`: access and width of a field where they depend on modifier bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WidthRow {
    /// Form id.
    pub form: String,
    /// Field name.
    pub field: String,
    /// Selector bits.
    pub bits: Bits,
    /// Selector value.
    pub value: u64,
    /// `r`, `w`, `rw` or empty.
    pub access: String,
    /// Consecutive 32-bit registers; 0 when not touched.
    pub width: u8,
}

impl Row for WidthRow {
    const FILE: &'static str = "widths.tsv";
    const COLUMNS: &'static [&'static str] = &["form", "field", "bits", "value", "access", "width"];

    fn from_cells(c: &[&str]) -> Result<Self, String> {
        Ok(Self {
            form: c[0].to_owned(),
            field: c[1].to_owned(),
            bits: cell("bits", c[2])?,
            value: cell("value", c[3])?,
            access: text(c[4]),
            width: width(c[5])?,
        })
    }

    fn to_cells(&self) -> Vec<String> {
        vec![
            self.form.clone(),
            self.field.clone(),
            self.bits.to_string(),
            self.value.to_string(),
            dash(&self.access),
            width_text(self.width),
        ]
    }
}

/// `modifiers.tsv`: what slot `slot` prints when its selector bits have `value`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModifierRow {
    /// Form id.
    pub form: String,
    /// Position among the slots.
    pub slot: u8,
    /// Selector bits; none for a constant slot.
    pub bits: Bits,
    /// Selector value.
    pub value: u64,
    /// Dotted tokens without the leading dot, or empty.
    pub text: String,
}

impl Row for ModifierRow {
    const FILE: &'static str = "modifiers.tsv";
    const COLUMNS: &'static [&'static str] = &["form", "slot", "bits", "value", "text"];

    fn from_cells(c: &[&str]) -> Result<Self, String> {
        Ok(Self {
            form: c[0].to_owned(),
            slot: cell("slot", c[1])?,
            bits: cell("bits", c[2])?,
            value: cell("value", c[3])?,
            text: text(c[4]),
        })
    }

    fn to_cells(&self) -> Vec<String> {
        vec![
            self.form.clone(),
            self.slot.to_string(),
            self.bits.to_string(),
            self.value.to_string(),
            dash(&self.text),
        ]
    }
}

/// The tables of one family, each sorted by its key columns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Family {
    /// `forms.tsv`.
    pub forms: Vec<FormRow>,
    /// `match.tsv`.
    pub matches: Vec<MatchRow>,
    /// `legal.tsv`.
    pub legal: Vec<LegalRow>,
    /// `operands.tsv`.
    pub operands: Vec<OperandRow>,
    /// `fields.tsv`.
    pub fields: Vec<FieldRow>,
    /// `widths.tsv`.
    pub widths: Vec<WidthRow>,
    /// `modifiers.tsv`.
    pub modifiers: Vec<ModifierRow>,
}

impl Family {
    /// Reads the seven files of `dir`.
    pub fn read(dir: &Path) -> Result<Self, TsvError> {
        Ok(Self {
            forms: read(dir)?,
            matches: read(dir)?,
            legal: read(dir)?,
            operands: read(dir)?,
            fields: read(dir)?,
            widths: read(dir)?,
            modifiers: read(dir)?,
        })
    }

    /// Sorts the rows and writes the seven files into `dir`, which is made if needed.
    pub fn write(&mut self, dir: &Path) -> Result<(), TsvError> {
        self.sort();
        fs::create_dir_all(dir).map_err(|source| TsvError::Io {
            path: dir.to_owned(),
            source,
        })?;
        write(dir, &self.forms)?;
        write(dir, &self.matches)?;
        write(dir, &self.legal)?;
        write(dir, &self.operands)?;
        write(dir, &self.fields)?;
        write(dir, &self.widths)?;
        write(dir, &self.modifiers)
    }

    /// Puts every table in the order in which it is written.
    pub fn sort(&mut self) {
        self.forms.sort_by(|a, b| a.form.cmp(&b.form));
        self.matches
            .sort_by(|a, b| (&a.form, a.mask, a.value).cmp(&(&b.form, b.mask, b.value)));
        self.legal
            .sort_by(|a, b| (&a.form, a.rule, a.mask, a.value).cmp(&(&b.form, b.rule, b.mask, b.value)));
        self.operands
            .sort_by(|a, b| (&a.form, a.operand, a.value).cmp(&(&b.form, b.operand, b.value)));
        self.fields
            .sort_by(|a, b| (&a.form, &a.field).cmp(&(&b.form, &b.field)));
        self.widths
            .sort_by(|a, b| (&a.form, &a.field, a.value).cmp(&(&b.form, &b.field, b.value)));
        self.modifiers
            .sort_by(|a, b| (&a.form, a.slot, a.value).cmp(&(&b.form, b.slot, b.value)));
    }

    /// Rows in all seven files.
    pub fn row_count(&self) -> usize {
        self.forms.len()
            + self.matches.len()
            + self.legal.len()
            + self.operands.len()
            + self.fields.len()
            + self.widths.len()
            + self.modifiers.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn committed_tables_round_trip() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../opcodes/SM87");
        let mut family = Family::read(&root).unwrap();
        let dir = tempfile::tempdir().unwrap();
        family.write(dir.path()).unwrap();
        for file in FILES {
            let committed = fs::read_to_string(root.join(file)).unwrap();
            assert!(
                committed == fs::read_to_string(dir.path().join(file)).unwrap(),
                "{file} is not in written form"
            );
        }
    }
}
