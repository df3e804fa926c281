//! Which line of which source file an instruction comes from: `.debug_line`, which `nvcc -lineinfo` writes.

use std::collections::{BTreeMap, HashMap};

use gimli::{
    AttributeValue, DebugLine, DebugLineOffset, EndianSlice, LineProgramHeader, LittleEndian, Reader, RelocateReader,
};

use crate::elf::SymbolSection;
use crate::{CubinError, Image};

/// The line tables of a cubin. Without any, every question has no answer.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    files: Vec<String>,
    /// By section: where a line begins, by offset. The end of what is known has line 0.
    rows: BTreeMap<usize, Vec<Row>>,
}

#[derive(Clone, Copy, Debug)]
struct Row {
    offset: u64,
    file: u32,
    line: u32,
}

/// A place in a source file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceLine<'l> {
    /// As the table names it, with its folder where it has one.
    pub file: &'l str,
    /// From 1.
    pub line: u32,
}

/// Addresses in the table are symbols' values, so that two functions share them: a relocation tells the section, which goes into the high
/// half.
#[derive(Clone, Debug)]
struct Addresses(HashMap<usize, u64>);

impl gimli::Relocate<usize> for &Addresses {
    fn relocate_address(&self, offset: usize, value: u64) -> gimli::Result<u64> {
        Ok(self.0.get(&offset).map_or(value, |base| base.wrapping_add(value)))
    }

    fn relocate_offset(&self, _: usize, value: usize) -> gimli::Result<usize> {
        Ok(value)
    }
}

impl Lines {
    /// Reads what a cubin has. The error says what is wrong with its table.
    pub fn read(image: &Image<'_>) -> Result<Lines, CubinError> {
        let mut lines = Lines::default();
        let Some(section) = image.elf().section_by_name(".debug_line") else {
            return Ok(lines);
        };
        let data = image.section_data(section.index)?;
        let mut bases = HashMap::new();
        for r in image.relocations(section.index)? {
            let symbol = image.symbols().get(r.symbol as usize);
            if let Some((s, SymbolSection::Section(index))) = symbol.map(|s| (s, s.section)) {
                let base = (index as u64) << 32 | (s.value & 0xffff_ffff);
                bases.insert(r.offset as usize, base.wrapping_add_signed(r.addend.unwrap_or(0)));
            }
        }
        let addresses = Addresses(bases);
        let reader = RelocateReader::new(EndianSlice::new(data, LittleEndian), &addresses);
        lines
            .units(DebugLine::from(reader), data.len())
            .map_err(|e| CubinError::Malformed {
                place: ".debug_line".to_owned(),
                offset: 0,
                what: e.to_string(),
            })?;
        for rows in lines.rows.values_mut() {
            rows.sort_by_key(|row| row.offset);
        }
        Ok(lines)
    }

    /// The line that the instruction at byte `offset` of a code section comes from.
    pub fn at(&self, section: usize, offset: u64) -> Option<SourceLine<'_>> {
        let rows = self.rows.get(&section)?;
        let row = rows[..rows.partition_point(|row| row.offset <= offset)].last()?;
        let file = self.files.get(row.file as usize)?;
        (row.line > 0).then_some(SourceLine { file, line: row.line })
    }

    fn units<R: Reader<Offset = usize>>(&mut self, table: DebugLine<R>, size: usize) -> gimli::Result<()> {
        let mut at = 0;
        while at < size {
            let program = table.program(DebugLineOffset(at), 8, None, None)?;
            at += program.header().unit_length() + program.header().format().initial_length_size() as usize;
            let mut files = HashMap::new();
            let mut rows = program.rows();
            while let Some((header, row)) = rows.next_row()? {
                let file = match files.get(&row.file_index()) {
                    Some(&known) => known,
                    None => {
                        self.files.push(file_name(header, row.file_index())?);
                        files.insert(row.file_index(), self.files.len() as u32 - 1);
                        self.files.len() as u32 - 1
                    }
                };
                let line = row.line().filter(|_| !row.end_sequence());
                self.rows.entry((row.address() >> 32) as usize).or_default().push(Row {
                    offset: row.address() & 0xffff_ffff,
                    file,
                    line: line.map_or(0, |line| u32::try_from(line.get()).unwrap_or(0)),
                });
            }
        }
        Ok(())
    }
}

/// Folder and name of a file of the table.
fn file_name<R: Reader>(header: &LineProgramHeader<R>, index: u64) -> gimli::Result<String> {
    let text = |value: AttributeValue<R>| match value {
        AttributeValue::String(name) => Ok(name.to_string_lossy()?.into_owned()),
        _ => Ok(String::new()),
    };
    let Some(file) = header.file(index) else {
        return Ok("?".to_owned());
    };
    let name = text(file.path_name())?;
    let folder = file.directory(header).map_or_else(|| Ok(String::new()), text)?;
    Ok(match folder.is_empty() || name.starts_with('/') {
        true => name,
        false => format!("{folder}/{name}"),
    })
}
