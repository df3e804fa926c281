//! Models as table rows.

use std::collections::BTreeMap;

use union_gen::bits::Bits;
use union_gen::family::{Family, FieldRow, FormRow, LegalRow, MatchRow, ModifierRow, OperandRow};

use super::lab::{CONTROL, QUIET, quiet};
use super::model::{Key, Linear, Model, Part};
use crate::nvdisasm::Class;
use crate::rules::Cube;
use crate::text::{Hole, holes};

/// Facts about a form that do not come from its text.
#[derive(Clone, Debug, Default)]
pub struct Extra {
    /// Match rows.
    pub rows: Vec<(u128, u128)>,
    /// The word for new instructions.
    pub filler: u128,
}

/// The tables of a family.
pub fn emit(models: &[Model], extras: &BTreeMap<Class, Extra>) -> Family {
    let mut named: BTreeMap<String, Vec<(&Model, &Extra)>> = BTreeMap::new();
    for model in models {
        if let Some(extra) = extras.get(&model.class) {
            named.entry(name(model)).or_default().push((model, extra));
        }
    }
    let mut family = Family::default();
    for (name, mut list) in named {
        list.sort_by(|a, b| a.1.rows.cmp(&b.1.rows));
        for (i, (model, extra)) in list.into_iter().enumerate() {
            let form = if i == 0 {
                name.clone()
            } else {
                format!("{name}~{}", i + 1)
            };
            Emitter {
                form,
                model,
                extra,
                family: &mut family,
            }
            .all();
        }
    }
    family.sort();
    family
}

/// `MNEMONIC_0xOPCODE_SIGNATURE`.
fn name(model: &Model) -> String {
    let mut name = format!("{}_0x{:03x}", model.shown.mnemonic, model.base & 0xfff);
    for operand in &model.shown.operands {
        name.push('_');
        name.push_str(letter(&operand.shape));
    }
    name
}

fn letter(shape: &str) -> &'static str {
    let bare = shape.trim_start_matches(['-', '|', '~', '!']);
    if shape.contains("desc[") {
        return "D";
    }
    if bare.starts_with("c[") || bare.starts_with("cx[") {
        return "C";
    }
    if shape.contains('[') {
        return "A";
    }
    match holes(shape).first() {
        None => "E",
        Some(Hole::X) => "I",
        Some(hole) => hole.name(),
    }
}

struct Emitter<'a> {
    form: String,
    model: &'a Model,
    extra: &'a Extra,
    family: &'a mut Family,
}

impl Emitter<'_> {
    fn all(mut self) {
        self.form_row();
        self.legal_rows();
        self.operand_rows();
        self.field_rows();
        self.modifier_rows();
    }

    fn guard(&self) -> &'static str {
        let weights = self.model.numbers.get(&Key::Guard).map_or(0, |n| n.weights.len());
        if weights != 3 {
            return "";
        }
        let shown = self
            .model
            .parts
            .get(&Part::Guard)
            .and_then(|p| p.1.values().next())
            .map_or("@P", |g| g);
        if shown.contains("UP") { "UP" } else { "P" }
    }

    fn form_row(&mut self) {
        let (model, extra, schedule) = (self.model, self.extra, &self.model.schedule);
        self.family
            .matches
            .extend(extra.rows.iter().map(|&(mask, value)| MatchRow {
                form: self.form.clone(),
                mask,
                value,
            }));
        self.family.forms.push(FormRow {
            form: self.form.clone(),
            mnemonic: model.shown.mnemonic.to_string(),
            opcode: (model.base & 0xfff) as u16,
            guard: self.guard().to_owned(),
            filler: self.filler(),
            wbar: schedule.write,
            rbar: schedule.read,
            reuse: if schedule.reuse.is_empty() && !schedule.batch {
                vec![FormRow::NO_REUSE]
            } else {
                schedule.reuse.clone()
            },
        });
    }

    /// Stall 1 and no barriers, unless that is not legal.
    fn filler(&self) -> u128 {
        let (model, filler) = (self.model, self.extra.filler);
        let own = CONTROL & model.known_bits();
        let plain = filler & !CONTROL | QUIET & !(0x1f << 105) | 1 << 105 | filler & own;
        if model.base & !own == quiet(model.base) & !own {
            plain
        } else {
            filler
        }
    }

    /// The rules, but for those about words that no match row has.
    fn legal_rows(&mut self) {
        let rows = &self.extra.rows;
        let meets = |cube: &Cube| {
            rows.iter()
                .any(|(mask, value)| (cube.value ^ value) & cube.mask & mask == 0)
        };
        let rules = self.model.rules.0.iter().filter(|r| r.0.iter().any(|(c, _)| meets(c)));
        for (rule, cubes) in rules.enumerate() {
            self.family.legal.extend(cubes.0.iter().map(|(cube, legal)| LegalRow {
                form: self.form.clone(),
                rule: rule as u16,
                mask: cube.mask,
                value: cube.value,
                legal: *legal,
            }));
        }
    }

    fn operand_rows(&mut self) {
        for (i, operand) in self.model.shown.operands.iter().enumerate() {
            let mut row = |bits: &[u8], value: u64, shape: &str| {
                let marked = self.model.marked.get(&(i as u8, shape.into()));
                let shape = marked.map_or(shape, |m| m);
                let shape = if shape.is_empty() { "-" } else { shape };
                self.family.operands.push(OperandRow {
                    form: self.form.clone(),
                    operand: i as u8,
                    bits: Bits(bits.to_vec()),
                    value,
                    shape: shape.to_owned(),
                });
            };
            match self.model.parts.get(&Part::Shape(i as u8)) {
                Some((bits, table)) => table.iter().for_each(|(&v, shape)| row(bits, v, shape)),
                None => row(&[], 0, &operand.shape),
            }
        }
    }

    fn field_rows(&mut self) {
        let model = self.model;
        let mut push = |field: String, kind: String, bits: Vec<u8>, map: String, elide: Vec<i64>, first: bool| {
            let register = ["R", "UR", "P", "UP", "B"].contains(&kind.as_str());
            let access = if !register {
                ""
            } else if first {
                "w"
            } else {
                "r"
            };
            self.family.fields.push(FieldRow {
                form: self.form.clone(),
                field,
                kind,
                bits: Bits(bits),
                map,
                elide,
                access: access.to_owned(),
                width: u8::from(register),
                when: if register { "printed" } else { "" }.to_owned(),
            });
        };
        for (key, linear) in &model.numbers {
            let (bits, map) = mapping(linear);
            match key {
                Key::Guard if linear.weights.len() == 3 => {
                    let uniform = model
                        .parts
                        .get(&Part::Guard)
                        .is_some_and(|p| p.1.values().any(|g| g.contains("UP")));
                    push(
                        "g".into(),
                        if uniform { "UP" } else { "P" }.into(),
                        bits,
                        map,
                        vec![],
                        false,
                    );
                }
                Key::Guard => {}
                Key::Hole(operand, hole, ordinal) => {
                    let kind = match hole {
                        Hole::X => "I",
                        Hole::L => "REL",
                        other => other.name(),
                    };
                    let quiet = *hole == Hole::X && model.quiet_offsets.contains(operand);
                    let elision = model.elisions.get(operand).map(|e| e.value);
                    let elide = elision.into_iter().chain(quiet.then_some(0)).collect();
                    let name = format!("{operand}.{}{ordinal}", hole.name());
                    push(name, kind.into(), bits, map, elide, *operand == 0);
                }
            }
        }
        for (key, float) in &model.floats {
            let Key::Hole(operand, hole, ordinal) = key else {
                continue;
            };
            let mut kind = float.kind.name().to_owned();
            for (bits, value, other) in &float.overrides {
                kind.push_str(&format!(";{}={value}:{}", Bits(bits.clone()), other.name()));
            }
            let name = format!("{operand}.{}{ordinal}", hole.name());
            push(name, kind, float.bits().collect(), "u".into(), vec![], false);
        }
    }

    fn modifier_rows(&mut self) {
        let model = self.model;
        let base = &model.shown.modifiers;
        let mut order: Vec<usize> = (0..model.groups.len()).collect();
        order.sort_by_key(|&g| model.groups[g].rank);
        let owners = |p: usize| -> Vec<usize> {
            let removes = |g: &&usize| {
                model.groups[**g]
                    .table
                    .values()
                    .flatten()
                    .any(|(i, j, _)| *i <= p && p < *j)
            };
            order.iter().filter(removes).copied().collect()
        };
        let mut slot = 0;
        let mut rows: Vec<ModifierRow> = Vec::new();
        let mut push = |bits: &[u8], table: Vec<(u64, String)>| {
            rows.extend(table.into_iter().map(|(value, text)| ModifierRow {
                form: self.form.clone(),
                slot,
                bits: Bits(bits.to_vec()),
                value,
                text,
            }));
            slot += 1;
        };
        for p in 0..=base.len() {
            let own = if p < base.len() { owners(p) } else { vec![] };
            let sole = if let [g] = own[..] { Some(g) } else { None };
            let inserted = |g: usize, edits: &[super::model::Splice]| -> String {
                let here = edits.iter().filter(|(i, j, _)| *i == p && !(sole == Some(g) && *j > p));
                here.flat_map(|e| e.2.iter().map(|t| &**t))
                    .collect::<Vec<_>>()
                    .join(".")
            };
            for &g in &order {
                let group = &model.groups[g];
                let table: Vec<_> = group.table.iter().map(|(&v, e)| (v, inserted(g, e))).collect();
                if table.iter().any(|t| !t.1.is_empty()) {
                    push(&group.bits, table);
                }
            }
            if p == base.len() {
                break;
            }
            match (sole, &own[..]) {
                (_, []) => push(&[], vec![(0, base[p].to_string())]),
                (Some(g), _) => {
                    let group = &model.groups[g];
                    let text = |edits: &[super::model::Splice]| match edits.iter().find(|(i, j, _)| *i <= p && p < *j) {
                        None => base[p].to_string(),
                        Some((i, _, tokens)) if *i == p => tokens.join("."),
                        Some(_) => String::new(),
                    };
                    push(&group.bits, group.table.iter().map(|(&v, e)| (v, text(e))).collect());
                }
                (None, several) => {
                    let bits: Vec<u8> = several
                        .iter()
                        .flat_map(|&g| model.groups[g].bits.iter().copied())
                        .collect();
                    let table = (0..1u64 << bits.len()).filter_map(|v| {
                        let word = super::lab::assign(0, &bits, v);
                        let mut stays = true;
                        for &g in several {
                            let group = &model.groups[g];
                            let edits = group.table.get(&super::lab::extract(word, &group.bits))?;
                            stays &= !edits.iter().any(|(i, j, _)| *i <= p && p < *j);
                        }
                        Some((v, if stays { base[p].to_string() } else { String::new() }))
                    });
                    push(&bits, table.collect());
                }
            }
        }
        for group in &model.groups {
            let prints = group.table.values().any(|e| !e.is_empty());
            if !prints && group.table.len() < 1 << group.bits.len() {
                push(&group.bits, group.table.keys().map(|&v| (v, String::new())).collect());
            }
        }
        self.family.modifiers.extend(rows);
    }
}

/// Bits and `map` column of a number.
fn mapping(linear: &Linear) -> (Vec<u8>, String) {
    let bits = linear.bits();
    let weights: Vec<i64> = bits.iter().map(|b| linear.weights[b]).collect();
    let offset = |o: i64| if o == 0 { String::new() } else { format!("{o:+}") };
    let Some(&first) = weights.first() else {
        return (bits, format!("u{}", offset(linear.constant)));
    };
    let unit = first.saturating_abs();
    let scale = if unit == 1 { String::new() } else { format!("*{unit}") };
    let regular = weights
        .iter()
        .enumerate()
        .all(|(i, w)| w.wrapping_abs() == unit.wrapping_shl(i as u32));
    let negative = weights.iter().filter(|w| **w < 0).count();
    if regular && negative == 0 {
        return (bits, format!("u{scale}{}", offset(linear.constant)));
    }
    if regular && negative == 1 && weights.last().is_some_and(|w| *w < 0) {
        return (bits, format!("s{scale}{}", offset(linear.constant)));
    }
    if regular && negative == weights.len() {
        let shift = unit.wrapping_mul(1i64.checked_shl(bits.len() as u32).unwrap_or(0).wrapping_sub(1));
        return (
            bits,
            format!("~u{scale}{}", offset(linear.constant.wrapping_sub(shift))),
        );
    }
    let list: Vec<String> = weights.iter().map(i64::to_string).collect();
    (bits, format!("w:{}{}", list.join(","), offset(linear.constant)))
}
