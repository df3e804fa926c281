//! One form of the tables, prepared for making words: its register fields, what its shapes print, and its selectors.

use std::collections::{BTreeMap, HashMap};

use union_gen::bits::Bits;
use union_gen::family::{Family, FieldRow};

use crate::plr::File;
use crate::rules::Rules;

/// Bits 127:105: scheduling control. Access never depends on them.
pub const CONTROL: u128 = !0 << 105;

/// Where a field belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// The guard.
    Guard,
    /// A printed operand.
    Printed(u8),
    /// An operand that no text shows.
    Hidden(u8),
}

/// A register field of a form.
#[derive(Clone, Debug)]
pub struct RegField {
    /// `2.R0`.
    pub name: String,
    /// Guard, operand or hidden operand.
    pub slot: Slot,
    /// Index of the hole among those of its kind.
    pub hole: usize,
    /// Its file.
    pub file: File,
    /// Where it is; not empty.
    pub bits: Bits,
    /// Bits are inverted.
    pub inverted: bool,
    /// Added to the bits' value.
    pub offset: u32,
}

impl RegField {
    fn from_row(row: &FieldRow) -> Option<Self> {
        let file = File::of_kind(&row.kind)?;
        let (inverted, offset) = match row.map.as_str() {
            "u" => (false, 0),
            "~u" => (true, 0),
            // The second register of a pair that is printed in two places: `[R0+UR12], desc[UR13]`.
            map => (false, map.strip_prefix("u+")?.parse().ok()?),
        };
        if row.bits.is_empty() {
            return None;
        }
        let (slot, hole) = slot(&row.field)?;
        Some(Self {
            name: row.field.clone(),
            slot,
            hole,
            file,
            bits: row.bits.clone(),
            inverted,
            offset,
        })
    }

    /// The register that stands for "none": RZ, URZ, PT, UPT.
    pub fn zero(&self) -> u32 {
        match self.file {
            File::P | File::Up => 7,
            _ => (1 << self.bits.len()) - 1,
        }
    }

    /// The register named by `word`.
    pub fn get(&self, word: u128) -> u32 {
        let raw = self.bits.get(word) as u32;
        if self.inverted {
            !raw & ((1 << self.bits.len()) - 1)
        } else {
            raw + self.offset
        }
    }

    /// `word` naming `register`.
    pub fn set(&self, word: u128, register: u32) -> u128 {
        let raw = if self.inverted {
            !register
        } else {
            register.wrapping_sub(self.offset)
        };
        self.bits.set(word, u64::from(raw))
    }
}

/// `g`, `2.R0` or `h0.UR0` as slot and hole number.
fn slot(name: &str) -> Option<(Slot, usize)> {
    if name == "g" {
        return Some((Slot::Guard, 0));
    }
    let (operand, hole) = name.split_once('.')?;
    let hole = hole.trim_start_matches(|c: char| c.is_ascii_uppercase()).parse().ok()?;
    let slot = match operand.strip_prefix('h') {
        Some(n) => Slot::Hidden(n.parse().ok()?),
        None => Slot::Printed(operand.parse().ok()?),
    };
    Some((slot, hole))
}

/// How many holes of each kind a shape has.
fn holes(shape: &str) -> HashMap<&str, usize> {
    let mut out = HashMap::new();
    for (at, _) in shape.match_indices('#') {
        let start = shape[..at]
            .rfind(|c: char| !c.is_ascii_uppercase())
            .map_or(0, |i| i + 1);
        *out.entry(&shape[start..at]).or_default() += 1;
    }
    out
}

/// One operand: which shape its selector bits choose.
#[derive(Clone, Debug, Default)]
struct Shapes {
    bits: Bits,
    /// Selector value to (holes of each kind).
    values: BTreeMap<u64, [usize; 4]>,
}

/// Selector bits that are chosen together because their selectors overlap, and the values that all of them know.
#[derive(Clone, Debug)]
pub struct Group {
    /// The bits.
    pub bits: Bits,
    /// Legal values, ascending.
    pub values: Vec<u64>,
}

/// The selectors of a form: whether of a modifier slot, slot or operand, to bits and values.
type Owned = BTreeMap<(bool, u8), (Bits, Vec<u64>)>;

/// A form.
#[derive(Clone, Debug)]
pub struct Model {
    /// Form id.
    pub form: String,
    /// Mnemonic.
    pub mnemonic: String,
    /// The default word.
    pub filler: u128,
    /// (mask, value) of its match rows.
    pub rows: Vec<(u128, u128)>,
    /// Register fields that `-plr` can show.
    pub fields: Vec<RegField>,
    /// Numbers in the word: bits, and whether they are a branch offset.
    pub numbers: Vec<(Bits, bool)>,
    /// Selectors.
    pub groups: Vec<Group>,
    shapes: BTreeMap<u8, Shapes>,
    /// What is legal beyond the values of selectors.
    pub rules: Rules,
}

impl Model {
    /// Every form of the family, in the order of `forms.tsv`.
    pub fn all(family: &Family) -> Vec<Self> {
        let mut models: Vec<Self> = Vec::new();
        let mut index = HashMap::new();
        for row in &family.forms {
            index.insert(row.form.as_str(), models.len());
            models.push(Self {
                form: row.form.clone(),
                mnemonic: row.mnemonic.clone(),
                filler: row.filler,
                rows: Vec::new(),
                fields: Vec::new(),
                numbers: Vec::new(),
                groups: Vec::new(),
                shapes: BTreeMap::new(),
                rules: Rules::default(),
            });
        }
        let at = |form: &str| index.get(form).copied();
        for row in &family.matches {
            if let Some(i) = at(&row.form) {
                models[i].rows.push((row.mask, row.value));
            }
        }
        for row in &family.legal {
            if let Some(i) = at(&row.form) {
                models[i].rules.add_row(row);
            }
        }
        for row in &family.fields {
            let Some(i) = at(&row.form) else { continue };
            if let Some(field) = RegField::from_row(row) {
                models[i].fields.push(field);
            } else if row.kind.starts_with(['I', 'F']) || row.kind.starts_with("BF") || row.kind == "REL" {
                models[i].numbers.push((row.bits.clone(), row.kind == "REL"));
            }
        }
        let mut selectors: Vec<BTreeMap<Bits, Vec<u64>>> = vec![BTreeMap::new(); models.len()];
        // Several selectors may have the same bits: a value is legal when each of them knows it.
        let mut owned: Vec<Owned> = vec![BTreeMap::new(); models.len()];
        for row in &family.operands {
            let Some(i) = at(&row.form) else { continue };
            let shapes = models[i].shapes.entry(row.operand).or_default();
            shapes.bits = row.bits.clone();
            let holes = holes(&row.shape);
            shapes.values.insert(
                row.value,
                File::ALL.map(|f| holes.get(f.name()).copied().unwrap_or_default()),
            );
            let entry = owned[i].entry((false, row.operand)).or_default();
            entry.0 = row.bits.clone();
            entry.1.push(row.value);
        }
        for row in &family.modifiers {
            let Some(i) = at(&row.form) else { continue };
            let entry = owned[i].entry((true, row.slot)).or_default();
            entry.0 = row.bits.clone();
            entry.1.push(row.value);
        }
        for (i, model) in models.iter_mut().enumerate() {
            // Bits of a register that also select (URZ leaves an operand out, R254 is illegal) are the register's to vary.
            let registers = model.fields.iter().fold(0, |m, f| m | f.bits.mask());
            let free = |b: &Bits| !b.is_empty() && b.mask() & registers == 0;
            for (bits, values) in owned[i].values().filter(|(b, _)| free(b)) {
                selectors[i]
                    .entry(bits.clone())
                    .and_modify(|old| old.retain(|v| values.contains(v)))
                    .or_insert_with(|| values.clone());
            }
            model.groups = groups(&selectors[i]);
        }
        models
    }

    /// Whether the shape that `word` selects prints `field`. Guards always print, hidden operands never.
    pub fn printed(&self, field: &RegField, word: u128) -> bool {
        match field.slot {
            Slot::Guard => true,
            Slot::Hidden(_) => false,
            Slot::Printed(n) => self
                .shapes
                .get(&n)
                .and_then(|s| s.values.get(&s.bits.get(word)))
                .is_some_and(|holes| holes[field.file as usize] > field.hole),
        }
    }

    /// Bits that every match row fixes.
    pub fn fixed(&self) -> u128 {
        self.rows.iter().fold(!0, |m, r| m & r.0)
    }

    /// Bits that some match row fixes and no register field covers.
    pub fn fixed_somewhere(&self) -> u128 {
        let covered = self.fields.iter().fold(0, |m, f| m | f.bits.mask());
        self.rows.iter().fold(0, |m, r| m | r.0) & !covered
    }

    /// Bits fixed by the match row that `word` falls under.
    pub fn fixed_in(&self, word: u128) -> u128 {
        let rows = self.rows.iter().filter(|(mask, value)| word & mask == *value);
        rows.map(|(mask, _)| *mask)
            .max_by_key(|mask| mask.count_ones())
            .unwrap_or_default()
    }

    /// Bits of selectors.
    pub fn selected(&self) -> u128 {
        self.groups.iter().fold(0, |m, g| m | g.bits.mask())
    }
}

/// Joins selectors that share bits, and keeps the values that every one of them has a row for.
fn groups(selectors: &BTreeMap<Bits, Vec<u64>>) -> Vec<Group> {
    let mut out: Vec<(u128, Vec<u128>)> = Vec::new(); // bits, values in place
    for (bits, values) in selectors {
        let mut mask = bits.mask();
        let mut placed: Vec<u128> = values.iter().map(|&v| bits.set(0, v)).collect();
        let (touching, apart) = out.into_iter().partition::<Vec<_>, _>(|(m, _)| m & mask != 0);
        out = apart;
        for (other, theirs) in touching {
            let shared = mask & other;
            let mut by_shared: BTreeMap<u128, Vec<u128>> = BTreeMap::new();
            for t in theirs {
                by_shared.entry(t & shared).or_default().push(t);
            }
            placed = placed
                .iter()
                .flat_map(|p| by_shared.get(&(p & shared)).into_iter().flatten().map(move |t| p | t))
                .collect();
            mask |= other;
        }
        placed.sort_unstable();
        placed.dedup();
        out.push((mask, placed));
    }
    out.sort_by_key(|(m, _)| m.trailing_zeros());
    out.into_iter()
        .map(|(mask, placed)| {
            let bits = Bits((0..128).filter(|b| mask >> b & 1 == 1).collect());
            let mut values: Vec<u64> = placed.iter().map(|&p| bits.get(p)).collect();
            values.sort_unstable();
            Group { bits, values }
        })
        .collect()
}

/// Finds the form of a word as `isa` does: of the rows that match, the one with most mask bits.
pub struct Matcher {
    by_opcode: HashMap<u16, Vec<(u128, u128, usize)>>,
}

impl Matcher {
    /// From all forms of a family.
    pub fn new(models: &[Model]) -> Self {
        let mut by_opcode: HashMap<u16, Vec<_>> = HashMap::new();
        for (i, model) in models.iter().enumerate() {
            for &(mask, value) in &model.rows {
                by_opcode
                    .entry((value & 0xfff) as u16)
                    .or_default()
                    .push((mask, value, i));
            }
        }
        for rows in by_opcode.values_mut() {
            rows.sort_by_key(|(mask, value, _)| (std::cmp::Reverse(mask.count_ones()), *value));
        }
        Self { by_opcode }
    }

    /// Index of the model, if any row matches.
    pub fn find(&self, word: u128) -> Option<usize> {
        let rows = self.by_opcode.get(&((word & 0xfff) as u16))?;
        rows.iter()
            .find(|(mask, value, _)| word & mask == *value)
            .map(|(_, _, i)| *i)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_are_counted_by_kind() {
        let h = holes("desc[UR#][R#.64+UR#+X#]");
        assert_eq!((h["UR"], h["R"], h["X"], h.get("P")), (2, 1, 1, None));
    }

    #[test]
    fn overlapping_selectors_share_values() {
        let b = |s: &str| s.parse::<Bits>().unwrap();
        let selectors = BTreeMap::from([
            (b("75:73"), vec![0, 1, 2, 5]),
            (b("74:72"), vec![0, 3, 6]),
            (b("80"), vec![0, 1]),
        ]);
        let g = groups(&selectors);
        assert_eq!(
            (g.len(), g[0].bits.to_string(), g[1].bits.to_string()),
            (2, "75:72".into(), "80".into())
        );
        // 75:72 with 74:72 in {0, 3, 6} and 75:73 in {0, 1, 2, 5}: 0b0000, 0b0011, 0b1011
        assert_eq!(g[0].values, [0, 3, 11]);
        assert_eq!(g[1].values, [0, 1]);
    }
}
