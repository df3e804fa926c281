//! Names of places in the code, numbered over the whole file as nvdisasm does.

use std::collections::{BTreeMap, HashMap};

use cubin::{Code, Image};
use isa::{Isa, Word};

use crate::relocated;

/// The names of one section's places, by byte offset.
pub type Names = BTreeMap<u64, String>;

/// The names in all code sections of an image.
pub struct Labels(HashMap<usize, Names>);

/// Hands out numbers.
#[derive(Default)]
struct Numbers {
    labels: HashMap<usize, Names>,
    next: usize,
}

impl Numbers {
    /// Names a place that has no name, and counts it.
    fn name(&mut self, section: usize, offset: u64) {
        if !self.labels.entry(section).or_default().contains_key(&offset) {
            self.count(section, offset);
        }
    }

    /// Counts a place, and names it if it has no name.
    fn count(&mut self, section: usize, offset: u64) {
        let names = self.labels.entry(section).or_default();
        names.entry(offset).or_insert_with(|| format!(".L_x_{}", self.next));
        self.next += 1;
    }
}

impl Labels {
    /// Symbols keep their names. `.L_x_N` goes to the places that relocations refer to, the targets of branches in the order of the
    /// branches, then the places that `.nv.info` lists, each counted whether it needs a name or not, and the ends of functions in the
    /// order of the symbols.
    pub fn new(isa: &Isa, image: &Image<'_>) -> Self {
        let mut numbers = Numbers::default();
        for code in image.codes() {
            let names = numbers.labels.entry(code.section).or_default();
            names.extend(code.labels.iter().map(|l| (l.offset, l.name.to_owned())));
            names.extend(code.functions.iter().map(|f| (f.offset, f.name.to_owned())));
        }
        for code in image.codes() {
            relocated::targets(image, code).for_each(|t| numbers.name(code.section, t));
        }
        for code in image.codes() {
            branch_targets(isa, code.bytes).for_each(|t| numbers.name(code.section, t));
        }
        for code in image.codes() {
            let offsets = code.attributes.iter().flat_map(|a| {
                let offsets = a.code_offsets().unwrap_or_default();
                // Of the records of INSTR_REG_MAP the tool counts only the first.
                let first_only = a.code == cubin::nvinfo::code::INSTR_REG_MAP;
                offsets.into_iter().take(if first_only { 1 } else { usize::MAX })
            });
            offsets.for_each(|offset| numbers.count(code.section, u64::from(offset)));
        }
        let functions = image.symbols().iter().filter(|s| s.is_function());
        for symbol in functions {
            if let cubin::elf::SymbolSection::Section(section) = symbol.section {
                numbers.count(section, symbol.value + symbol.size);
            }
        }
        Self(numbers.labels)
    }

    /// The names for code without a file around it: the targets of its branches.
    pub fn of_raw(isa: &Isa, code: &[u8]) -> Names {
        let mut numbers = Numbers::default();
        branch_targets(isa, code).for_each(|t| numbers.name(0, t));
        numbers.labels.remove(&0).unwrap_or_default()
    }

    /// The names in one section.
    pub fn of(&self, code: &Code<'_>) -> &Names {
        static NONE: Names = Names::new();
        self.0.get(&code.section).unwrap_or(&NONE)
    }
}

fn branch_targets<'c>(isa: &'c Isa, code: &'c [u8]) -> impl Iterator<Item = u64> + 'c {
    let insts = isa.decode_all(code).enumerate();
    insts.filter_map(|(n, inst)| isa.branch_target(inst, (n * Word::BYTES) as u64))
}
