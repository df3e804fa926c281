//! Code sections of another size: the file with everything that follows moved, and every code offset in it changed.
//!
//! Followed are symbols, relocations and their addends, `.nv.info` attributes, tables in constant banks, `.debug_frame` and other debug
//! information, sizes and offsets in the ELF tables. What may hold code offsets that nobody here can read is refused.

use std::collections::BTreeMap;

use crate::code::Code;
use crate::elf::{Section, SymbolSection, section_type};
use crate::nvinfo::{self, Attribute, Value};
use crate::relayout::{PROGRAM_HEADER, Relayout, SECTION_HEADER};
use crate::rewrite::Rewrite;
use crate::{CubinError, Image, debug_frame, debug_moves};

/// New code for one section, and where its instructions went.
#[derive(Clone, Debug)]
pub struct CodeMove {
    /// Index of the section.
    pub section: usize,
    /// The new code.
    pub code: Vec<u8>,
    /// By position of an instruction before, and one more for the end: its byte offset now.
    pub instruction: Vec<u32>,
    /// The same for labels at it. [`CodeMove::LOST`] where it cannot be told.
    pub label: Vec<u32>,
    /// Entries of tables of code offsets.
    pub tables: Vec<TableEntry>,
}

/// An entry of a table of code offsets in another section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableEntry {
    /// The section that holds it.
    pub section: usize,
    /// Byte offset in that section.
    pub offset: usize,
    /// Bytes: 4 or 8.
    pub size: usize,
    /// Code offset that the entry is counted from.
    pub base: u32,
}

impl CodeMove {
    /// In place of an offset that is not known.
    pub const LOST: u32 = u32::MAX;

    fn map(&self, list: &[u32], offset: u64) -> Option<u64> {
        let new = *list.get(usize::try_from(offset / 16).ok()?)?;
        let inside = offset % 16;
        let whole = inside == 0 || list.len() > offset as usize / 16 + 1;
        (new != Self::LOST && whole).then(|| u64::from(new) + inside)
    }

    /// Some instructions change their order.
    fn reorders(&self) -> bool {
        let known = self.instruction.iter().filter(|at| **at != Self::LOST);
        !known.is_sorted()
    }

    /// Where the instruction that was at that byte offset is now.
    pub fn instruction_at(&self, offset: u64) -> Option<u64> {
        self.map(&self.instruction, offset)
    }

    /// Where a label that was at that byte offset is now.
    pub fn label_at(&self, offset: u64) -> Option<u64> {
        self.map(&self.label, offset)
    }
}

/// Sections that hold code offsets in ways that are not followed.
const UNREAD: &[&str] = &[
    ".debug_ranges",
    ".debug_aranges",
    ".debug_rnglists",
    ".debug_loclists",
    ".nv.uft",
    ".nv.udt",
];

/// Sections that tell something of stretches of code.
const STRETCHES: &[&str] = &[
    ".debug_line",
    ".debug_info",
    ".debug_loc",
    ".nv_debug_line_sass",
    ".nv_debug_info_reg_sass",
];

/// The file with the given sections replaced.
pub fn move_code(image: &Image<'_>, moves: &[CodeMove]) -> Result<Vec<u8>, CubinError> {
    let mut file = Mover {
        image,
        bytes: image.bytes().to_vec(),
        moves,
        rewrites: BTreeMap::new(),
    };
    if file.moves.is_empty() {
        return Ok(file.bytes);
    }
    file.check()?;
    file.rewrites = debug_moves::rewrites(image, &|section| file.moved(section))?;
    file.symbols()?;
    file.relocations()?;
    file.attributes()?;
    file.tables()?;
    file.frames()?;
    file.laid_out()
}

struct Mover<'i, 'a> {
    image: &'i Image<'a>,
    /// The file with the old layout.
    bytes: Vec<u8>,
    moves: &'i [CodeMove],
    /// Changes in other sections, by index, beyond those that keep the length.
    rewrites: BTreeMap<usize, Rewrite>,
}

/// Bytes of a symbol in the file.
const SYMBOL: usize = 24;

impl<'i> Mover<'i, '_> {
    fn refused<T>(&self, section: &Section<'_>, offset: u64, what: impl Into<String>) -> Result<T, CubinError> {
        Err(CubinError::Malformed {
            place: section.place(),
            offset: section.offset + offset,
            what: what.into(),
        })
    }

    fn moved(&self, section: SymbolSection) -> Option<&'i CodeMove> {
        match section {
            SymbolSection::Section(n) => self.moves.iter().find(|m| m.section == n),
            _ => None,
        }
    }

    fn check(&self) -> Result<(), CubinError> {
        for section in self.image.sections() {
            if section.has_bytes() && UNREAD.iter().any(|u| section.name.starts_with(u)) {
                return self.refused(
                    section,
                    0,
                    "holds code offsets that cannot be moved: strip the debug information first",
                );
            }
            if section.has_bytes() && STRETCHES.contains(&section.name) && self.moves.iter().any(CodeMove::reorders) {
                return self.refused(
                    section,
                    0,
                    "tells of stretches of code whose instructions change their order: strip the debug information first",
                );
            }
        }
        for m in self.moves {
            let section = &self.image.sections()[m.section];
            let n = section.size as usize / 16 + 1;
            if !section.is_code() || m.instruction.len() != n || m.label.len() != n {
                return self.refused(section, 0, "the movement is of other code");
            }
        }
        Ok(())
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn symbols(&mut self) -> Result<(), CubinError> {
        let Some(table) = self
            .image
            .elf()
            .symbol_table
            .and_then(|t| self.image.sections().get(t))
            .copied()
        else {
            return Ok(());
        };
        let mut changes = Vec::new();
        for symbol in self.image.symbols().iter().filter(|s| s.kind != 3) {
            let Some(m) = self.moved(symbol.section) else { continue };
            let (start, end) = (m.label_at(symbol.value), m.label_at(symbol.value + symbol.size));
            let (Some(start), Some(end)) = (start, end) else {
                return self.refused(
                    &table,
                    0,
                    format!("symbol `{}` begins or ends inside the padding", symbol.name),
                );
            };
            let size = if symbol.size == 0 { 0 } else { end - start };
            changes.push((table.offset as usize + SYMBOL * symbol.index + 8, start, size));
        }
        for (at, value, size) in changes {
            self.put(at, &value.to_le_bytes());
            self.put(at + 8, &size.to_le_bytes());
        }
        Ok(())
    }

    fn relocations(&mut self) -> Result<(), CubinError> {
        for section in self.image.sections() {
            let record = match section.kind {
                section_type::REL => 16,
                section_type::RELA => 24,
                _ => continue,
            };
            let target = self.image.sections().get(section.info as usize).copied();
            let moved_target = self.moved(SymbolSection::Section(section.info as usize));
            let rewritten = self.rewrites.get(&(section.info as usize)).cloned();
            for (n, r) in self.image.elf().relocations_in(section)?.iter().enumerate() {
                let at = section.offset as usize + n * record;
                if let Some(m) = moved_target {
                    match m.instruction_at(r.offset) {
                        Some(new) => self.put(at, &new.to_le_bytes()),
                        None => return self.refused(section, (n * record) as u64, "relocates the padding"),
                    }
                }
                if let Some(rewrite) = &rewritten {
                    self.put(at, &(rewrite.place(r.offset as usize) as u64).to_le_bytes());
                }
                let symbol = self.image.symbols().get(r.symbol as usize);
                let Some((symbol, m)) = symbol.and_then(|s| Some((s, self.moved(s.section)?))) else {
                    continue;
                };
                let moved = |addend: u64| Some(m.label_at(symbol.value + addend)? - m.label_at(symbol.value)?);
                let lost = |this: &Self| this.refused(section, (n * record) as u64, "its addend is no code offset");
                if let Some(addend) = r.addend {
                    match moved(addend as u64) {
                        Some(new) => self.put(at + 16, &new.to_le_bytes()),
                        None => return lost(self),
                    }
                    continue;
                }
                // The addend is in the field: 64 bits of data, or 32 bits of an instruction.
                let Some(target) = target.filter(|t| t.name != ".debug_frame") else {
                    continue;
                };
                let field = target.offset as usize + r.offset as usize;
                let (field, size) = match r.kind {
                    R_CUDA_64 => (field, 8),
                    R_CUDA_ABS32_LO_32 => (field + 4, 4),
                    _ => continue,
                };
                let mut old = [0; 8];
                match self.bytes.get(field..field + size) {
                    Some(bytes) => old[..size].copy_from_slice(bytes),
                    None => return lost(self),
                }
                match moved(u64::from_le_bytes(old)) {
                    // Code is replaced as a whole: what a word of it holds is not changed here.
                    Some(new) if moved_target.is_none() => {
                        self.put(field, &new.to_le_bytes()[..size]);
                    }
                    Some(0) => {}
                    _ => return lost(self),
                }
            }
        }
        Ok(())
    }

    fn attributes(&mut self) -> Result<(), CubinError> {
        for m in self.moves {
            let code = self.image.codes().iter().find(|c| c.section == m.section);
            for attribute in code.map_or(&[][..], |c: &Code<'_>| &c.attributes) {
                if !nvinfo::is_understood(attribute.code) && !attribute.payload.is_empty() {
                    let name = attribute
                        .name()
                        .map_or_else(|| format!("{:#04x}", attribute.code), |n| format!("EIATTR_{n}"));
                    return Err(unreadable(
                        attribute,
                        format!("{name} may hold code offsets that cannot be moved"),
                    ));
                }
                if nvinfo::holds_code_offsets(attribute.code) {
                    self.attribute(attribute, m)?;
                }
            }
        }
        Ok(())
    }

    /// Every code offset of one attribute.
    fn attribute(&mut self, attribute: &Attribute<'_>, m: &CodeMove) -> Result<(), CubinError> {
        let payload = attribute.offset as usize + 4;
        // (position in the payload, it is a label)
        let places: Vec<(usize, bool)> = match attribute.value()? {
            Value::Offsets(words) => {
                let is_label = attribute.code == nvinfo::code::COROUTINE_RESUME_ID_OFFSETS;
                (0..words.len()).map(|n| (4 * n, is_label)).collect()
            }
            Value::Annotations(words) => (0..words.len() / 2).map(|n| (8 * n + 4, false)).collect(),
            Value::Records { size, bytes } => (0..bytes.len() / size).map(|n| (size * n, false)).collect(),
            Value::IndirectBranches(list) => {
                let mut places = Vec::new();
                let mut at = 0;
                for branch in list {
                    places.push((at, false));
                    places.extend((0..branch.targets.len()).map(|n| (at + 12 + 4 * n, true)));
                    at += 12 + 4 * branch.targets.len();
                }
                places
            }
            _ => Vec::new(),
        };
        for (at, is_label) in places {
            let old = u64::from(crate::bytes::u32_at(attribute.payload, at));
            let new = if is_label {
                m.label_at(old)
            } else {
                m.instruction_at(old)
            };
            let Some(new) = new else {
                return Err(unreadable(
                    attribute,
                    format!("names code offset {old:#x}, where there is no instruction"),
                ));
            };
            self.put(payload + at, &(new as u32).to_le_bytes());
        }
        Ok(())
    }

    fn tables(&mut self) -> Result<(), CubinError> {
        for m in self.moves {
            for entry in &m.tables {
                let section = self.image.sections()[entry.section];
                let at = section.offset as usize + entry.offset;
                let old = match self.bytes.get(at..at + entry.size) {
                    Some(bytes) if entry.size == 8 => crate::bytes::u64_at(bytes, 0),
                    Some(bytes) => u64::from(crate::bytes::u32_at(bytes, 0)),
                    None => return self.refused(&section, entry.offset as u64, "the table reaches past its end"),
                };
                let base = u64::from(entry.base);
                let (Some(new), Some(base)) = (m.label_at(base + old), m.label_at(base)) else {
                    return self.refused(&section, entry.offset as u64, "the table names no instruction");
                };
                self.put(at, &(new - base).to_le_bytes()[..entry.size]);
            }
        }
        Ok(())
    }

    fn frames(&mut self) -> Result<(), CubinError> {
        let Some(section) = self
            .image
            .sections()
            .iter()
            .find(|s| s.name == ".debug_frame" && s.has_bytes())
            .copied()
        else {
            return Ok(());
        };
        let relocations = self.image.relocations(section.index)?;
        let place = |offset: u64| {
            let r = relocations.iter().find(|r| r.offset == offset)?;
            let symbol = self.image.symbols().get(r.symbol as usize)?;
            Some((symbol.section, symbol.value, r.addend))
        };
        let start = section.offset as usize;
        let data = self.image.section_data(section.index)?;
        let mut changes = Vec::new();
        for frame in debug_frame::frames(data).map_err(|(at, what)| CubinError::Malformed {
            place: section.place(),
            offset: section.offset + at as u64,
            what,
        })? {
            let Some((code, value, addend)) = place(frame.location as u64) else {
                // Of a function that the linker dropped: the other frames are relocated to theirs.
                if !relocations.is_empty() && crate::bytes::u64_at(data, frame.location) == 0 {
                    continue;
                }
                return self.refused(&section, frame.location as u64, "a frame of no known function");
            };
            let Some(m) = self.moved(code) else { continue };
            let moved = debug_frame::moved(data, &frame, value, addend, m);
            match moved {
                Some(list) => changes.extend(list),
                None => {
                    return self.refused(
                        &section,
                        frame.location as u64,
                        "a frame's offsets are those of no instruction",
                    );
                }
            }
        }
        for (at, bytes) in changes {
            self.put(start + at, &bytes);
        }
        Ok(())
    }

    /// The file with everything where it goes now.
    fn laid_out(mut self) -> Result<Vec<u8>, CubinError> {
        let rewritten = |n: usize| {
            let section = &self.image.sections()[n];
            let old = self
                .bytes
                .get(section.offset as usize..)?
                .get(..section.size as usize)?;
            Some(self.rewrites.get(&n)?.apply(old))
        };
        let mut contents: BTreeMap<usize, Vec<u8>> = self
            .rewrites
            .keys()
            .filter_map(|n| Some((*n, rewritten(*n)?)))
            .collect();
        contents.extend(self.moves.iter().map(|m| (m.section, m.code.clone())));
        let layout = Relayout::new(self.image, |n| contents.get(&n).map(|bytes| bytes.len() as u64))?;
        let header = *self.image.header();
        for section in self.image.sections().iter().skip(1) {
            let at = header.section_table as usize + SECTION_HEADER * section.index;
            let size = contents
                .get(&section.index)
                .map_or(section.size, |bytes| bytes.len() as u64);
            let offset = layout.section(section.index).unwrap_or(section.offset);
            self.put(at + 24, &offset.to_le_bytes());
            self.put(at + 32, &size.to_le_bytes());
        }
        for (n, segment) in self.image.segments().iter().enumerate() {
            let Some((start, size)) = layout.segment(segment) else {
                return Err(CubinError::Malformed {
                    place: format!("segment {n}"),
                    offset: segment.offset,
                    what: "it does not begin and end with a section".to_owned(),
                });
            };
            let at = header.segment_table as usize + PROGRAM_HEADER * n;
            let memory = (segment.memory_size + size).wrapping_sub(segment.file_size);
            self.put(at + 8, &start.to_le_bytes());
            self.put(at + 32, &size.to_le_bytes());
            self.put(at + 40, &memory.to_le_bytes());
        }
        let (sections, segments) = layout.tables();
        sections.into_iter().for_each(|at| self.put(40, &at.to_le_bytes()));
        segments.into_iter().for_each(|at| self.put(32, &at.to_le_bytes()));
        let mut out = layout.apply(&self.bytes);
        for (section, bytes) in &contents {
            let at = layout.section(*section).unwrap_or_default() as usize;
            out[at..at + bytes.len()].copy_from_slice(bytes);
        }
        Ok(out)
    }
}

/// Relocations whose field holds an addend in `.rel` sections.
const R_CUDA_64: u32 = 2;
const R_CUDA_ABS32_LO_32: u32 = 56;

fn unreadable(attribute: &Attribute<'_>, what: String) -> CubinError {
    CubinError::Malformed {
        place: "attribute".to_owned(),
        offset: attribute.offset,
        what,
    }
}
