//! Who in the file knows the address of a function: whatever a call through a pointer can enter.
//!
//! After the final link the address of a function in a kernel's section is its byte offset there, without any relocation: a number in a
//! table in global memory, in the kernel's constants (through which virtual functions are called), or an immediate of its code. What
//! the compiler puts into the section for its own use, as the long way of a division, is in none of them.

use std::collections::{HashMap, HashSet};

use crate::CubinError;
use crate::code::{Code, Function};
use crate::elf::{Elf, Section, SymbolSection, section_type};

/// A number in the file's data that is the address of a function of a section, or happens to be the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pointer {
    /// Index of the section that holds it.
    pub section: usize,
    /// Its byte offset there, a multiple of 4.
    pub offset: u64,
    /// The function's byte offset in its code.
    pub function: u64,
}

/// Finds the numbers that name functions inside of their sections, and the functions that nothing but their own section can name.
pub(crate) fn find(elf: &Elf<'_>, codes: &mut [Code<'_>]) -> Result<(), CubinError> {
    // From the number to the functions that it is the address of.
    let mut functions: HashMap<u32, Vec<(usize, usize)>> = HashMap::new();
    for (c, code) in codes.iter().enumerate() {
        for (n, _) in code.functions.iter().enumerate().filter(|(_, f)| is_inner(f)) {
            let offset = code.functions[n].offset as u32;
            functions.entry(offset).or_default().push((c, n));
        }
    }
    if functions.is_empty() {
        return Ok(());
    }
    let named = relocated(elf)?;
    for code in codes.iter_mut() {
        let section = code.section;
        for f in &mut code.functions {
            let places = [
                named.whole.contains(&section),
                named.places.contains(&(section, f.offset)),
            ];
            f.is_private =
                is_inner(f) && f.binding == 0 && !places.contains(&true) && !named.symbols.contains(&f.symbol);
        }
    }
    for s in elf.sections.iter().filter(|s| is_data(s)) {
        let owner = codes
            .iter()
            .position(|c| c.constants.iter().any(|b| b.section == s.index));
        for (at, number) in elf.data(s)?.chunks_exact(4).enumerate() {
            let number = u32::from_le_bytes([number[0], number[1], number[2], number[3]]);
            let here = functions.get(&number).into_iter().flatten();
            for &(c, n) in here.filter(|(c, _)| owner.is_none_or(|o| o == *c)) {
                let code = &mut codes[c];
                code.functions[n].is_private = false;
                code.pointers.push(Pointer {
                    section: s.index,
                    offset: at as u64 * 4,
                    function: number.into(),
                });
            }
        }
    }
    Ok(())
}

/// Whether it is behind the beginning of its section: that one is entered from outside.
fn is_inner(f: &Function<'_>) -> bool {
    f.offset != 0 && !f.is_entry
}

/// Whether running code can read it.
fn is_data(s: &Section<'_>) -> bool {
    const ALLOC: u64 = 2;
    s.flags & ALLOC != 0 && s.has_bytes() && !s.is_code() && !s.name.starts_with(".nv.merc.")
}

/// What relocations name, those of debug information aside.
#[derive(Default)]
struct Named {
    symbols: HashSet<usize>,
    /// Sections and offsets there.
    places: HashSet<(usize, u64)>,
    /// Sections somewhere in which a relocation without an addend points.
    whole: HashSet<usize>,
}

fn relocated(elf: &Elf<'_>) -> Result<Named, CubinError> {
    let mut named = Named::default();
    let relocations = |s: &&Section<'_>| matches!(s.kind, section_type::REL | section_type::RELA);
    for s in elf.sections.iter().filter(relocations) {
        let target = elf.section(s.info as usize);
        // Nothing reads those when it runs.
        let describes = |t: &Section<'_>| [".debug_", ".nv_debug_", ".line"].iter().any(|p| t.name.starts_with(p));
        if target.is_some_and(describes) {
            continue;
        }
        for r in elf.relocations_in(s)? {
            let Some(symbol) = elf.symbols.get(r.symbol as usize) else {
                continue;
            };
            named.symbols.insert(symbol.index);
            let SymbolSection::Section(section) = symbol.section else {
                continue;
            };
            match r.addend {
                Some(addend) => {
                    named.places.insert((section, symbol.value.wrapping_add_signed(addend)));
                }
                // The addend is in place: in data it is found as a number, in code its form tells where.
                None if !symbol.is_function() && target.is_none_or(Section::is_code) => {
                    named.whole.insert(section);
                }
                None => {}
            }
        }
    }
    Ok(named)
}
