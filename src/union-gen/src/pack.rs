//! Rows to packed records.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use crate::bits::Bits;
use crate::blob::{Pool, Record, assemble};
use crate::check::unexplained_shapes;
use crate::family::{Family, FieldRow, FormRow, LegalRow, WidthRow};
use crate::filler::{Filler, FillerRow, expect};
use crate::hand::{AliasRow, Condition, SemanticsRow};
use crate::names::{FieldName, Kind, Map, Owner};

/// Collects families, targets and the hand-written tables, and writes the blob.
#[derive(Default)]
pub struct Packer {
    strings: Pool,
    selectors: Pool,
    fields: Pool,
    forms: Pool,
    families: Pool,
    targets: Pool,
    semantics: Pool,
    aliases: Pool,
}

fn access(text: &str) -> u8 {
    match text {
        "r" => 1,
        "w" => 2,
        "rw" => 3,
        _ => 0,
    }
}

/// Bits of a selector, and its (value, text).
type SelectorRows<'a> = (&'a Bits, Vec<(u64, &'a str)>);

/// Rows of one form, by table.
#[derive(Default)]
struct Parts<'a> {
    matches: Vec<(u128, u128)>,
    legal: Vec<&'a LegalRow>,
    operands: BTreeMap<u8, SelectorRows<'a>>,
    modifiers: BTreeMap<u8, SelectorRows<'a>>,
    fields: Vec<&'a FieldRow>,
    widths: HashMap<&'a str, Vec<&'a WidthRow>>,
}

/// Lowest bit that can be a flag of the operand cache.
const FIRST_FLAG: u32 = 12;

impl Packer {
    fn string(&mut self, text: &str) -> u32 {
        self.strings.intern(text.as_bytes().to_vec())
    }

    /// Packs one family, which must have passed [`crate::check::check`]; returns its number.
    pub fn family(&mut self, family: &Family, fillers: &[FillerRow]) -> u32 {
        let fillers = expect(family, fillers);
        let mut parts: HashMap<&str, Parts<'_>> = HashMap::new();
        for m in &family.matches {
            parts.entry(&m.form).or_default().matches.push((m.mask, m.value));
        }
        for l in &family.legal {
            parts.entry(&l.form).or_default().legal.push(l);
        }
        let unexplained = unexplained_shapes(family);
        for (i, o) in family.operands.iter().enumerate() {
            let operands = &mut parts.entry(&o.form).or_default().operands;
            let (_, rows) = operands.entry(o.operand).or_insert((&o.bits, vec![]));
            if !unexplained.contains(&i) {
                rows.push((o.value, &o.shape));
            }
        }
        for m in &family.modifiers {
            let slots = &mut parts.entry(&m.form).or_default().modifiers;
            let (_, rows) = slots.entry(m.slot).or_insert((&m.bits, vec![]));
            rows.push((m.value, &m.text));
        }
        for f in &family.fields {
            parts.entry(&f.form).or_default().fields.push(f);
        }
        for w in &family.widths {
            let widths = &mut parts.entry(&w.form).or_default().widths;
            widths.entry(&w.field).or_default().push(w);
        }
        let mut forms: Vec<&FormRow> = family.forms.iter().collect();
        forms.sort_by(|a, b| a.form.cmp(&b.form));
        let mut record = Record::default();
        record.len(forms.len());
        for f in forms {
            let part = parts.remove(f.form.as_str()).unwrap_or_default();
            let id = self.form(f, fillers[f.form.as_str()], part);
            record.put(id);
        }
        self.families.intern(record.0)
    }

    fn form(&mut self, f: &FormRow, filler: Filler, mut part: Parts<'_>) -> u32 {
        let mut r = Record::default();
        r.put(self.string(&f.form)).put(self.string(&f.mnemonic)).put(f.opcode);
        r.put(match f.guard.as_str() {
            "P" => 1u8,
            "UP" => 2,
            _ => 0,
        });
        r.word(filler.put_into(f.filler));
        r.put(u8::from(filler.is_attested)).word(filler.mask);
        r.put(filler.left_out).put(filler.reuse >> FIRST_FLAG);
        r.put(u8::from(f.wbar) | u8::from(f.rbar) << 1);
        r.len(f.reuse.len());
        for &(bit, operand) in &f.reuse {
            r.put(bit).put(operand);
        }
        part.matches.sort_unstable();
        r.len(part.matches.len());
        for (mask, value) in part.matches {
            r.put(mask).put(value);
        }
        // In the order in which they decide.
        part.legal
            .sort_by_key(|l| (l.rule, Reverse(l.mask.count_ones()), l.legal, l.mask, l.value));
        r.len(part.legal.len());
        for l in part.legal {
            r.put(l.rule).put(l.mask).put(l.value).put(u8::from(l.legal));
        }
        for selectors in [part.operands, part.modifiers] {
            r.len(selectors.len());
            for rows in selectors.into_values() {
                let id = self.selector(rows);
                r.put(id);
            }
        }
        // Operand order, which is the order of `Isa::accesses`: guard, printed operands, hidden ones.
        let mut fields: Vec<(FieldName, &FieldRow)> = part
            .fields
            .into_iter()
            .filter_map(|f| Some((FieldName::parse(&f.field)?, f)))
            .collect();
        fields.sort_by_key(|(name, _)| *name);
        r.len(fields.len());
        for (name, row) in fields {
            let widths = part.widths.remove(row.field.as_str()).unwrap_or_default();
            let id = self.field(name, row, &widths);
            r.put(id);
        }
        self.forms.intern(r.0)
    }

    fn selector(&mut self, (bits, mut rows): SelectorRows<'_>) -> u32 {
        rows.sort_by_key(|row| row.0);
        let mut r = Record::default();
        r.bits(bits).len(rows.len());
        let mut last = 0;
        for (value, text) in rows {
            let id = self.string(text);
            r.put(value - last).put(id);
            last = value;
        }
        self.selectors.intern(r.0)
    }

    fn field(&mut self, name: FieldName, row: &FieldRow, widths: &[&WidthRow]) -> u32 {
        let mut r = Record::default();
        let (tag, operand) = match name.owner {
            Owner::Guard => (0u8, 0),
            Owner::Printed(n) => (1, n),
            Owner::Hidden(n) => (2, n),
        };
        r.put(self.string(&row.field));
        r.put(tag).put(operand).put(name.hole).put(name.ordinal);
        let kind = Kind::parse(&row.kind).unwrap_or(Kind {
            default: 0,
            overrides: vec![],
        });
        r.put(kind.default).len(kind.overrides.len());
        for (bits, value, kind) in &kind.overrides {
            r.bits(bits).put(*value).put(*kind);
        }
        r.bits(&row.bits);
        match Map::parse(&row.map) {
            Ok(Map::Weights(weights, offset)) => {
                r.put(1u8).len(weights.len());
                for w in weights {
                    r.signed(w);
                }
                r.signed(offset);
            }
            Ok(Map::Linear {
                invert,
                signed,
                scale,
                offset,
            }) => {
                r.put(0u8).put(u8::from(invert) | u8::from(signed) << 1);
                r.signed(scale).signed(offset);
            }
            Err(_) => {
                r.put(0u8).put(0u8).signed(1).signed(0);
            }
        }
        r.len(row.elide.len());
        for &v in &row.elide {
            r.signed(v);
        }
        r.put(access(&row.access)).put(row.width);
        r.put(u8::from(row.when != "always"));
        let mut groups: Vec<(&Bits, Vec<&WidthRow>)> = Vec::new();
        for &w in widths {
            match groups.iter_mut().find(|(bits, _)| **bits == w.bits) {
                Some((_, rows)) => rows.push(w),
                None => groups.push((&w.bits, vec![w])),
            }
        }
        r.len(groups.len());
        for (bits, mut rows) in groups {
            rows.sort_by_key(|w| w.value);
            r.bits(bits).len(rows.len());
            for w in rows {
                r.put(w.value).put(access(&w.access)).put(w.width);
            }
        }
        self.fields.intern(r.0)
    }

    /// Names a target that uses a family.
    pub fn target(&mut self, name: &str, family: u32) {
        let mut r = Record::default();
        r.put(self.string(name)).put(family);
        self.targets.intern(r.0);
    }

    /// Adds a row of `semantics.tsv`.
    pub fn semantics(&mut self, row: &SemanticsRow) {
        let mut r = Record::default();
        r.put(self.string(&row.mnemonic)).len(row.modifiers.len());
        for m in &row.modifiers {
            r.put(self.string(m));
        }
        r.put(row.effects).put(row.space).put(u8::from(row.convergence));
        r.put(row.terminator).put(u8::from(row.conditional));
        r.put(self.string(&row.uniform));
        r.put(row.pipe).put(row.latency).len(row.implicit.len());
        for i in &row.implicit {
            r.put(i.access).put(i.file).put(i.first).put(i.last);
        }
        self.semantics.intern(r.0);
    }

    /// Adds a row of `aliases.tsv`.
    pub fn alias(&mut self, row: &AliasRow) {
        let mut r = Record::default();
        r.put(self.string(&row.mnemonic)).len(row.when.len());
        for c in &row.when {
            match c {
                Condition::Operands(n) => r.put(0u8).put(*n),
                Condition::Value {
                    operand,
                    hole,
                    value,
                    equal,
                } => r.put(1u8).put(*operand).put(*hole).signed(*value).put(u8::from(*equal)),
                Condition::PowerOfTwo(n) => r.put(2u8).put(*n),
                Condition::NoHole { operand, hole } => r.put(3u8).put(*operand).put(*hole),
                Condition::Token { token, present } => {
                    let id = self.string(token);
                    r.put(4u8).put(id).put(u8::from(*present))
                }
                Condition::NotZero { high, low } => r.put(5u8).put(*high).put(*low),
            };
        }
        for tokens in [&row.drop, &row.add] {
            r.len(tokens.len());
            for t in tokens {
                r.put(self.string(t));
            }
        }
        self.aliases.intern(r.0);
    }

    /// The blob.
    pub fn finish(&self) -> Vec<u8> {
        assemble([
            &self.strings,
            &self.selectors,
            &self.fields,
            &self.forms,
            &self.families,
            &self.targets,
            &self.semantics,
            &self.aliases,
        ])
    }
}
