//! Debug information of code that moved: what changes in the sections that hold code offsets outside of relocations.
//!
//! Offsets that a relocation fills in follow with it. Here are line programs, where units find theirs, and the ranges in which `ptxas`
//! keeps a virtual register. A range begins and ends where a label would.

use std::collections::{BTreeMap, HashMap};

use gimli::{AttributeValue, DebugAbbrev, DebugInfo, LittleEndian, constants as dw};

use crate::bytes::{u16_at, u32_at, u64_at};
use crate::elf::{Section, SymbolSection};
use crate::line_program::{self, Fault, Place};
use crate::movement::CodeMove;
use crate::rewrite::Rewrite;
use crate::{CubinError, Image};

const LINES: &str = ".debug_line";
const LINES_OF_PTX: &str = ".nv_debug_line_sass";
const INFO: &str = ".debug_info";
const LOCATIONS: &str = ".debug_loc";
const REGISTERS: &str = ".nv_debug_info_reg_sass";

/// What changes in the debug sections, by index of the section. `moved` tells the movement of a section of code, if it moves.
pub(crate) fn rewrites<'m>(
    image: &Image<'_>,
    moved: &dyn Fn(SymbolSection) -> Option<&'m CodeMove>,
) -> Result<BTreeMap<usize, Rewrite>, CubinError> {
    let mut all = BTreeMap::new();
    let mut lines = Rewrite::default();
    let mut sections: Vec<_> = image.sections().iter().filter(|s| s.has_bytes()).collect();
    // Units ask where their line programs are now.
    sections.sort_by_key(|s| s.name == INFO);
    for section in sections {
        let data = image.section_data(section.index)?;
        let addresses = Addresses::of(image, section, data)?;
        let fault = |(at, what): Fault| CubinError::Malformed {
            place: section.place(),
            offset: section.offset + at as u64,
            what: format!("cannot follow code that moves: {what}"),
        };
        let rewrite = match section.name {
            LINES | LINES_OF_PTX => {
                let rewrite = line_program::moved(data, &|at| addresses.place(at, moved)).map_err(fault)?;
                if section.name == LINES {
                    lines = rewrite.clone();
                }
                rewrite
            }
            INFO => {
                let abbreviations = image.elf().section_by_name(".debug_abbrev");
                let abbreviations = abbreviations.map_or(Ok(&[][..]), |s| image.section_data(s.index))?;
                units(data, abbreviations, &addresses, &lines).map_err(fault)?
            }
            LOCATIONS => {
                locations(data, &addresses).map_err(fault)?;
                continue;
            }
            REGISTERS => registers(data, image, moved).map_err(fault)?,
            _ => continue,
        };
        all.insert(section.index, rewrite);
    }
    Ok(all)
}

/// The addresses of a section that relocations fill in.
struct Addresses<'a> {
    data: &'a [u8],
    /// By byte offset: section and offset in it.
    relocated: HashMap<usize, (SymbolSection, u64)>,
}

impl<'a> Addresses<'a> {
    fn of(image: &Image<'_>, section: &Section<'_>, data: &'a [u8]) -> Result<Addresses<'a>, CubinError> {
        let mut relocated = HashMap::new();
        for r in image.relocations(section.index)? {
            let Some(symbol) = image.symbols().get(r.symbol as usize) else {
                continue;
            };
            let at = r.offset as usize;
            let addend = r.addend.map_or(u64_at(data, at), |a| a as u64);
            relocated.insert(at, (symbol.section, symbol.value.wrapping_add(addend)));
        }
        Ok(Addresses { data, relocated })
    }

    /// It is relocated, or that of a function that the linker dropped: the other addresses are relocated to theirs.
    fn is_known(&self, at: usize) -> bool {
        self.relocated.contains_key(&at) || !self.relocated.is_empty() && u64_at(self.data, at) == 0
    }

    fn place<'m>(&self, at: usize, moved: &dyn Fn(SymbolSection) -> Option<&'m CodeMove>) -> Place<'m> {
        match self.relocated.get(&at) {
            Some((section, offset)) => Some((moved(*section), *offset)),
            None => self.is_known(at).then_some((None, 0)),
        }
    }
}

/// Units find their line programs by offset. All their addresses have to be relocated.
fn units(data: &[u8], abbreviations: &[u8], addresses: &Addresses<'_>, lines: &Rewrite) -> Result<Rewrite, Fault> {
    let mut rewrite = Rewrite::default();
    let abbreviations = DebugAbbrev::new(abbreviations, LittleEndian);
    let mut headers = DebugInfo::new(data, LittleEndian).units();
    let mut at = 0;
    let unread = |at: usize| move |e: gimli::Error| (at, e.to_string());
    while let Some(unit) = headers.next().map_err(unread(at))? {
        let known = unit.abbreviations(&abbreviations).map_err(unread(at))?;
        let mut entries = unit.entries_raw(&known, None).map_err(unread(at))?;
        while !entries.is_empty() {
            let Some(entry) = entries.read_abbreviation().map_err(unread(at))? else {
                continue;
            };
            for attribute in entry.attributes() {
                at = entries.next_offset().to_debug_info_offset(&unit).map_or(at, |o| o.0);
                let value = entries.read_attribute(*attribute).map_err(unread(at))?.raw_value();
                match (attribute.name(), value) {
                    (dw::DW_AT_stmt_list, AttributeValue::Data4(_) | AttributeValue::SecOffset(_)) => {
                        let relocated = addresses.relocated.get(&at);
                        let old = relocated.map_or(u32_at(data, at), |(_, offset)| *offset as u32);
                        let new = lines.place(old as usize) as u32;
                        if new != old && relocated.is_some() {
                            return Err((at, "a relocation tells where the lines of a unit are".into()));
                        }
                        if new != old {
                            rewrite.replace(at..at + 4, new.to_le_bytes().to_vec());
                        }
                    }
                    (_, AttributeValue::Addr(_)) if addresses.is_known(at) => {}
                    (_, AttributeValue::Addr(_)) => return Err((at, "an address without a relocation".into())),
                    (dw::DW_AT_stmt_list | dw::DW_AT_high_pc | dw::DW_AT_entry_pc | dw::DW_AT_ranges, _) => {
                        return Err((at, format!("{} of a kind that ptxas does not write", attribute.name())));
                    }
                    _ => {}
                }
            }
        }
    }
    Ok(rewrite)
}

/// Lists of (beginning, end, place of a variable), each with a pair of zeros at its end: all have to be relocated.
fn locations(data: &[u8], addresses: &Addresses<'_>) -> Result<(), Fault> {
    let mut at = 0;
    while at + 16 <= data.len() {
        let relocated = [at, at + 8].map(|at| addresses.relocated.contains_key(&at));
        let zero = u64_at(data, at) == 0 && u64_at(data, at + 8) == 0;
        at += match relocated {
            [true, true] => 18 + usize::from(u16_at(data, at + 16)),
            [false, false] if zero => 16,
            _ => return Err((at, "a range without a relocation".into())),
        };
    }
    Ok(())
}

/// By function, its name and a count: a number, the name of a virtual register, the register that holds it, and from where to where in the
/// function.
fn registers<'m>(
    data: &[u8],
    image: &Image<'_>,
    moved: &dyn Fn(SymbolSection) -> Option<&'m CodeMove>,
) -> Result<Rewrite, Fault> {
    let mut rewrite = Rewrite::default();
    let text = |at: usize| {
        let rest = data.get(at..).unwrap_or_default();
        let length = memchr::memchr(0, rest).ok_or_else(|| (at, "a name without an end".to_owned()))?;
        Ok((&rest[..length], at + length + 1))
    };
    let mut at = 0;
    while at < data.len() {
        let (name, behind) = text(at)?;
        let function = image
            .symbols()
            .iter()
            .find(|s| s.is_function() && s.name.as_bytes() == name);
        let function = function.ok_or_else(|| (at, "a function that the file does not have".to_owned()))?;
        let m = moved(function.section);
        at = behind + 4;
        for _ in 0..u32_at(data, behind) {
            let (_, behind) = text(at + 4)?;
            let end = behind + 12;
            if end > data.len() {
                return Err((at, "a range is cut short".into()));
            }
            for at in [behind + 4, behind + 8] {
                let Some(m) = m else { break };
                let now = |offset: u64| m.label_at(function.value.wrapping_add(offset));
                let offset = u32_at(data, at);
                let (Some(new), Some(start)) = (now(offset.into()), now(0)) else {
                    return Err((at, format!("{offset:#x} is no code offset")));
                };
                rewrite.replace(at..at + 4, (new.wrapping_sub(start) as u32).to_le_bytes().to_vec());
            }
            at = end;
        }
    }
    Ok(rewrite)
}
