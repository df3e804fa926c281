//! Relocated operands in listings: what the linker will put there, instead of the zeros that the file holds.

use std::collections::{BTreeMap, HashMap};

use cubin::elf::{Relocation, SymbolSection};
use cubin::{Code, Image};
use isa::{FieldKind, Inst, Isa};

/// What goes into one field of an instruction.
struct Hole {
    /// Lowest bit of the field, from the relocation's name.
    bit: u32,
    /// True when bank and offset of a constant operand are both filled in.
    constant: bool,
    /// As nvdisasm writes it: `` `(symbol) ``, `32@lo((symbol + 0x10))`.
    text: String,
}

/// The relocations of one piece of code, by the byte offset of the instruction.
pub struct Relocated {
    holes: HashMap<u64, Vec<Hole>>,
}

/// Byte offsets in the code that relocations refer to from the code itself (return addresses).
pub fn targets<'c>(image: &'c Image<'_>, code: &'c Code<'_>) -> impl Iterator<Item = u64> + 'c {
    code.relocations.iter().filter_map(|r| own_target(image, code, r))
}

/// `symbol + addend` as a place in this code, for a function in it.
fn own_target(image: &Image<'_>, code: &Code<'_>, r: &Relocation) -> Option<u64> {
    let symbol = image.symbols().get(r.symbol as usize)?;
    let addend = u64::try_from(r.addend.filter(|&a| a != 0)?).ok()?;
    let here = symbol.is_function() && symbol.section == SymbolSection::Section(code.section);
    Some(symbol.value + addend).filter(|&at| here && at < code.bytes.len() as u64)
}

impl Relocated {
    /// Collects the relocations whose number says which field they fill. `labels` names places in the code.
    pub fn new(image: &Image<'_>, code: &Code<'_>, labels: &BTreeMap<u64, String>) -> Relocated {
        let mut holes: HashMap<u64, Vec<Hole>> = HashMap::new();
        for r in &code.relocations {
            // The names end in the position of the field: R_CUDA_ABS32_LO_32.
            let Some(name) = cubin::reloc::name(r.kind) else {
                continue;
            };
            let Some(bit) = name.rsplit('_').next().and_then(|n| n.parse().ok()) else {
                continue;
            };
            let Some(symbol) = image.symbols().get(r.symbol as usize) else {
                continue;
            };
            let label = own_target(image, code, r).and_then(|at| labels.get(&at));
            let what = match (label, r.addend.unwrap_or(0)) {
                (Some(label), _) => format!("({} + {label}@srel)", symbol.name),
                (None, 0) => symbol.name.to_owned(),
                (None, addend) => format!("({} + {addend:#x})", symbol.name),
            };
            let text = match () {
                _ if name.contains("_LO_") => format!("32@lo({what})"),
                _ if name.contains("_HI_") => format!("32@hi({what})"),
                _ => format!("`({what})"),
            };
            let constant = name.contains("CONST_FIELD");
            holes.entry(r.offset).or_default().push(Hole { bit, constant, text });
        }
        Relocated { holes }
    }

    /// The instruction's text with the relocated operands in it; `None` when there are none, or none that the text shows.
    pub fn text(&self, isa: &Isa, inst: Inst, pc: u64, labels: isa::Labels<'_>) -> Option<String> {
        /// A number that stands for the operand while the text is made: no field of a kernel holds it in earnest.
        const STAND_IN: i64 = 0x35a5a0;
        let holes = self.holes.get(&pc)?;
        let form = isa.form(inst.form)?;
        let text_of = |inst: Inst| {
            let mut text = String::new();
            isa.write_text(inst, pc, &mut text, Some(labels)).ok().map(|()| text)
        };
        let mut filled = None;
        for hole in holes {
            if hole.constant {
                let text = text_of(inst)?;
                let start = text.find("c[")?;
                let end = start + text[start..].match_indices(']').nth(1)?.0;
                filled = Some(format!("{}c[{}]{}", &text[..start], hole.text, &text[end + 1..]));
                continue;
            }
            let covers = |f: &isa::Field| f.mask() >> hole.bit & 1 == 1 && f.kind.file().is_none();
            let Some(ix) = form.fields().iter().position(covers) else {
                continue;
            };
            let value = match form.fields()[ix].kind {
                FieldKind::Rel => STAND_IN - pc as i64 - 16,
                _ => STAND_IN,
            };
            let Ok(marked) = isa.set_field(inst, ix, value) else {
                continue;
            };
            let text = text_of(marked)?;
            let stand_in = format!("{STAND_IN:#x}");
            if text.contains(&stand_in) {
                filled = Some(text.replace(&stand_in, &hole.text));
            }
        }
        filled
    }
}
