//! What the tables say an instruction touches, computed straight from the rows: the second opinion beside `isa`.

use std::collections::HashMap;

use union_gen::tsv::Family;

use super::model::{Matcher, Model};
use super::table::Table;
use super::words::Touch;
use crate::plr::{File, Usage};

/// The tables of a family, ready to be asked.
pub struct Tables {
    /// Every form.
    pub models: Vec<Model>,
    /// Finds the form of a word.
    pub matcher: Matcher,
    /// For each model and field: access, and whether it holds in shapes that do not print the field.
    access: Vec<Vec<(Table, bool)>>,
}

fn touch(access: &str, width: u8) -> Touch {
    let one = |c| if access.contains(c) { width } else { 0 };
    (one('r'), one('w'))
}

impl Tables {
    /// From the rows.
    pub fn new(family: &Family) -> Self {
        let models = Model::all(family);
        let rows: HashMap<(&str, &str), _> = family
            .fields
            .iter()
            .map(|f| ((f.form.as_str(), f.field.as_str()), f))
            .collect();
        let mut widths: HashMap<(&str, &str), Vec<_>> = HashMap::new();
        for w in &family.widths {
            widths.entry((w.form.as_str(), w.field.as_str())).or_default().push(w);
        }
        let access = models
            .iter()
            .map(|m| {
                m.fields
                    .iter()
                    .map(|f| {
                        let key = (m.form.as_str(), f.name.as_str());
                        let row = rows[&key];
                        let special = widths.get(&key).map_or(&[][..], Vec::as_slice);
                        let table = Table {
                            bits: special.first().map(|w| w.bits.clone()).unwrap_or_default(),
                            default: touch(&row.access, row.width),
                            rows: special.iter().map(|w| (w.value, touch(&w.access, w.width))).collect(),
                        };
                        (table, row.when == "always")
                    })
                    .collect()
            })
            .collect();
        Self {
            matcher: Matcher::new(&models),
            access,
            models,
        }
    }

    /// What `word` touches; none if no form matches.
    pub fn usage(&self, word: u128) -> Option<Usage> {
        Some(self.usage_of(word)?.0)
    }

    /// What `word` touches, and its mnemonic.
    pub fn usage_of(&self, word: u128) -> Option<(Usage, &str)> {
        let i = self.matcher.find(word)?;
        let m = &self.models[i];
        let mut usage = Usage::default();
        for (field, (table, always)) in m.fields.iter().zip(&self.access[i]) {
            let n = field.get(word);
            if n == field.zero() || !(*always || m.printed(field, word)) {
                continue;
            }
            let (r, w) = table.get(word);
            let file = field.file as usize;
            let top = if matches!(field.file, File::P | File::Up) {
                7
            } else {
                field.zero()
            };
            (n..top.min(n + u32::from(r))).for_each(|x| usage.read[file].add(x));
            (n..top.min(n + u32::from(w))).for_each(|x| usage.write[file].add(x));
        }
        Some((usage, &m.mnemonic))
    }
}
