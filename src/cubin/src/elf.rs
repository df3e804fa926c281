//! The ELF layer of a cubin: header, sections, segments, symbols, relocations. It knows no attribute and no code.
//!
//! Cubins are 64-bit little-endian ELF files of machine 190. `e_version` holds the toolkit's version in ABI 7, and the
//! order of the sections differs between producers, so nothing here assumes either.

use std::ops::Range;

use crate::CubinError;
use crate::bytes::{name_at, slice, u16_at, u32_at, u64_at};

/// `e_machine` of a cubin.
pub const EM_CUDA: u16 = 190;

/// Section types that matter here. CUDA's own lie at 0x7000_0000 and up.
pub mod section_type {
    #![allow(missing_docs)]
    pub const NULL: u32 = 0;
    pub const PROGBITS: u32 = 1;
    pub const SYMTAB: u32 = 2;
    pub const STRTAB: u32 = 3;
    pub const RELA: u32 = 4;
    pub const NOTE: u32 = 7;
    pub const NOBITS: u32 = 8;
    pub const REL: u32 = 9;
    pub const SYMTAB_SHNDX: u32 = 18;
    pub const CUDA_INFO: u32 = 0x7000_0000;
    pub const CUDA_CALLGRAPH: u32 = 0x7000_0001;
    pub const CUDA_PROTOTYPE: u32 = 0x7000_0002;
    /// `.nv.global` of a relocatable file: no bytes in the file.
    pub const CUDA_GLOBAL: u32 = 0x7000_0007;
    pub const CUDA_GLOBAL_INIT: u32 = 0x7000_0008;
    /// Local memory: no bytes in the file.
    pub const CUDA_LOCAL: u32 = 0x7000_0009;
    /// Shared memory of a relocatable file: no bytes in the file.
    pub const CUDA_SHARED: u32 = 0x7000_000a;
    pub const CUDA_REL_ACTION: u32 = 0x7000_000b;
    /// Reserved shared memory: no bytes in the file.
    pub const CUDA_SHARED_RESERVED: u32 = 0x7000_0015;
    pub const CUDA_CAPMERC: u32 = 0x7000_0016;
    /// `.nv.constant0`; the bank's number is added, up to 0x7000_0075 or so.
    pub const CUDA_CONSTANT0: u32 = 0x7000_0064;
    pub const CUDA_MERC_INFO: u32 = 0x7000_0083;
    pub const CUDA_COMPAT: u32 = 0x7000_0086;
}

/// The fields of the ELF header that tell cubins apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// `EI_OSABI`: 0x33 in ABI 7, 0x41 in ABI 8.
    pub os_abi: u8,
    /// `EI_ABIVERSION`: 7 or 8.
    pub abi_version: u8,
    /// `e_type`: 1 relocatable, 2 executable.
    pub kind: u16,
    /// `e_version`: the toolkit (0x81 = 12.9) in ABI 7, 1 in ABI 8.
    pub version: u32,
    /// `e_flags`: the target, see [`crate::Image::target`].
    pub flags: u32,
    /// Byte offset of the section headers.
    pub section_table: u64,
    /// Byte offset of the program headers.
    pub segment_table: u64,
}

/// One section header, with its name resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Section<'a> {
    /// Position in the section table.
    pub index: usize,
    /// Name from the section string table.
    pub name: &'a str,
    /// `sh_type`, see [`section_type`].
    pub kind: u32,
    /// `sh_flags`.
    pub flags: u64,
    /// `sh_addr` (0 in every cubin seen).
    pub address: u64,
    /// Byte offset in the file.
    pub offset: u64,
    /// Size in bytes (of memory when there are no bytes in the file).
    pub size: u64,
    /// `sh_link`.
    pub link: u32,
    /// `sh_info`.
    pub info: u32,
    /// `sh_addralign`.
    pub align: u64,
    /// `sh_entsize`.
    pub entry_size: u64,
}

impl Section<'_> {
    /// True when the file holds the section's bytes.
    pub fn has_bytes(&self) -> bool {
        use section_type::*;
        !matches!(
            self.kind,
            NULL | NOBITS | CUDA_GLOBAL | CUDA_LOCAL | CUDA_SHARED | CUDA_SHARED_RESERVED
        )
    }

    /// True for the sections that hold machine code in SASS: `.text` and `.text.NAME` with the executable flag.
    pub fn is_code(&self) -> bool {
        self.kind == section_type::PROGBITS && (self.name == ".text" || self.name.starts_with(".text."))
    }

    /// How errors name the section.
    pub fn place(&self) -> String {
        format!("section {} `{}`", self.index, self.name)
    }
}

/// One program header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// `p_type`.
    pub kind: u32,
    /// `p_flags`.
    pub flags: u32,
    /// Byte offset in the file.
    pub offset: u64,
    /// Bytes in the file.
    pub file_size: u64,
    /// Bytes in memory.
    pub memory_size: u64,
    /// `p_align`.
    pub align: u64,
}

/// Where a symbol is defined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SymbolSection {
    /// Not in this file.
    Undefined,
    /// In the section of that index.
    Section(usize),
    /// An absolute value.
    Absolute,
    /// Any other reserved index (common symbols among them).
    Reserved(u16),
}

/// One entry of `.symtab`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symbol<'a> {
    /// Position in the symbol table.
    pub index: usize,
    /// Name; empty for section symbols.
    pub name: &'a str,
    /// Where it is defined.
    pub section: SymbolSection,
    /// `st_value`: a byte offset in its section.
    pub value: u64,
    /// `st_size` in bytes.
    pub size: u64,
    /// Low 4 bits of `st_info`: 2 function, 3 section, 1 and 13 objects.
    pub kind: u8,
    /// High 4 bits of `st_info`: 0 local, 1 global, 2 weak.
    pub binding: u8,
    /// `st_other`; 0x10 marks a kernel.
    pub other: u8,
}

impl Symbol<'_> {
    /// True for functions (kernels and device functions).
    pub fn is_function(&self) -> bool {
        self.kind == 2
    }

    /// True for a kernel, that is an entry that the host can launch (`st_other` 0x10).
    pub fn is_entry(&self) -> bool {
        self.is_function() && self.other & 0x10 != 0
    }
}

/// One relocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relocation {
    /// Byte offset in the section that is relocated.
    pub offset: u64,
    /// `R_CUDA_...` number, see [`crate::reloc::name`].
    pub kind: u32,
    /// Index in the symbol table.
    pub symbol: u32,
    /// Addend; `None` in `.rel` sections, where the field holds it.
    pub addend: Option<i64>,
}

/// An ELF file of machine 190, any target: the raw tables.
#[derive(Clone, Debug)]
pub struct Elf<'a> {
    /// The whole file.
    pub bytes: &'a [u8],
    /// Header fields.
    pub header: Header,
    /// Section headers in file order; index 0 is the null section.
    pub sections: Vec<Section<'a>>,
    /// Program headers in file order.
    pub segments: Vec<Segment>,
    /// Symbols of `.symtab`, index 0 is the null symbol; empty when there is no table.
    pub symbols: Vec<Symbol<'a>>,
    /// Index of the section that holds the symbols.
    pub symbol_table: Option<usize>,
}

const EHDR: u64 = 64;
const SHDR: u64 = 64;
const PHDR: u64 = 56;
const SYM: u64 = 24;

impl<'a> Elf<'a> {
    /// Reads header, section table, program headers and symbols; checks that they lie in the file and that no code
    /// shares bytes with anything else.
    pub fn parse(bytes: &'a [u8]) -> Result<Elf<'a>, CubinError> {
        if bytes.get(..4) != Some(b"\x7fELF") {
            return Err(CubinError::NotElf);
        }
        let head = slice(bytes, 0, EHDR, || "ELF header".to_owned())?;
        let unsupported = |offset, what| Err(CubinError::Unsupported { offset, what });
        if head[4] != 2 || head[5] != 1 {
            return unsupported(4, "not a 64-bit little-endian ELF file".to_owned());
        }
        let machine = u16_at(head, 18);
        if machine != EM_CUDA {
            return unsupported(18, format!("machine {machine}, not {EM_CUDA} (CUDA): not a cubin"));
        }
        let header = Header {
            os_abi: head[7],
            abi_version: head[8],
            kind: u16_at(head, 16),
            version: u32_at(head, 20),
            flags: u32_at(head, 48),
            segment_table: u64_at(head, 32),
            section_table: u64_at(head, 40),
        };
        let sections = parse_sections(bytes, head, &header)?;
        let segments = parse_segments(bytes, head, &header, &sections)?;
        let symbol_table = sections.iter().position(|s| s.kind == section_type::SYMTAB);
        let symbols = match symbol_table {
            Some(i) => parse_symbols(bytes, &sections, i)?,
            None => Vec::new(),
        };
        let elf = Elf {
            bytes,
            header,
            sections,
            segments,
            symbols,
            symbol_table,
        };
        elf.check_overlaps()?;
        Ok(elf)
    }

    /// The section of that index.
    pub fn section(&self, index: usize) -> Option<&Section<'a>> {
        self.sections.get(index)
    }

    /// The first section of that name.
    pub fn section_by_name(&self, name: &str) -> Option<&Section<'a>> {
        self.sections.iter().find(|s| s.name == name)
    }

    /// A section's bytes; empty when the file holds none.
    pub fn data(&self, section: &Section<'_>) -> Result<&'a [u8], CubinError> {
        section_data(self.bytes, section)
    }

    /// The relocations in a `.rel` or `.rela` section.
    pub fn relocations_in(&self, section: &Section<'_>) -> Result<Vec<Relocation>, CubinError> {
        let (record, with_addend) = match section.kind {
            section_type::REL => (16usize, false),
            section_type::RELA => (24, true),
            _ => return Ok(Vec::new()),
        };
        let data = self.data(section)?;
        if data.len() % record != 0 {
            return Err(CubinError::Malformed {
                place: section.place(),
                offset: section.offset,
                what: format!("{} bytes are no multiple of a relocation's {record}", data.len()),
            });
        }
        let mut relocations = Vec::with_capacity(data.len() / record);
        for r in data.chunks_exact(record) {
            relocations.push(Relocation {
                offset: u64_at(r, 0),
                kind: u32_at(r, 8),
                symbol: u32_at(r, 12),
                addend: with_addend.then(|| u64_at(r, 16) as i64),
            });
        }
        Ok(relocations)
    }

    /// Bytes that the image takes: the end of the furthest table or section. What follows is padding.
    pub fn file_size(&self) -> u64 {
        let h = &self.header;
        let sections = h.section_table + SHDR * self.sections.len() as u64;
        let segments = match self.segments.len() as u64 {
            0 => 0,
            n => h.segment_table + PHDR * n,
        };
        let data = self
            .sections
            .iter()
            .filter(|s| s.has_bytes())
            .map(|s| s.offset.saturating_add(s.size))
            .max();
        sections.max(segments).max(data.unwrap_or(0)).max(EHDR)
    }

    /// Code must share no byte with anything else, and tables no byte with each other: else a patch of one thing changes
    /// another, and a small file can claim to hold a lot. (Constant sections may share: ptxas does so for Mercury.)
    fn check_overlaps(&self) -> Result<(), CubinError> {
        #[derive(Clone, Copy, PartialEq)]
        enum Part {
            Header,
            SectionTable,
            SegmentTable,
            Section(usize),
        }
        let mut parts: Vec<(Range<u64>, Part)> = vec![
            (0..EHDR, Part::Header),
            (
                self.header.section_table..self.header.section_table + SHDR * self.sections.len() as u64,
                Part::SectionTable,
            ),
            (
                self.header.segment_table
                    ..self
                        .header
                        .segment_table
                        .saturating_add(PHDR * self.segments.len() as u64),
                Part::SegmentTable,
            ),
        ];
        parts.extend(
            self.sections
                .iter()
                .filter(|s| s.has_bytes())
                .map(|s| (s.offset..s.offset.saturating_add(s.size), Part::Section(s.index))),
        );
        parts.retain(|(range, _)| !range.is_empty());
        parts.sort_by_key(|(range, _)| (range.start, range.end));
        let name = |part: Part| match part {
            Part::Header => "ELF header".to_owned(),
            Part::SectionTable => "section header table".to_owned(),
            Part::SegmentTable => "program header table".to_owned(),
            Part::Section(i) => self.sections[i].place(),
        };
        // 0 code, 1 table, 2 anything; the furthest end so far of parts that are at least that strict.
        let mut reach: [Option<(u64, Part)>; 3] = [None; 3];
        for (range, part) in parts {
            use section_type::*;
            let strictness = match part {
                Part::Section(i) => match &self.sections[i] {
                    s if s.is_code() => 0,
                    s if matches!(s.kind, SYMTAB | STRTAB | REL | RELA | CUDA_INFO | CUDA_MERC_INFO) => 1,
                    _ => 2,
                },
                _ => 1,
            };
            // Code collides with all, a table with code and tables, the rest with code only.
            let against = 2 - strictness;
            if let Some((end, other)) = reach[against]
                && range.start < end
            {
                return Err(CubinError::Overlap {
                    place: name(part),
                    offset: range.start,
                    other: format!("{} (ends at {end:#x})", name(other)),
                });
            }
            for slot in &mut reach[strictness..] {
                if slot.is_none_or(|(end, _)| range.end > end) {
                    *slot = Some((range.end, part));
                }
            }
        }
        Ok(())
    }
}

fn section_data<'a>(bytes: &'a [u8], section: &Section<'_>) -> Result<&'a [u8], CubinError> {
    if !section.has_bytes() {
        return Ok(&[]);
    }
    slice(bytes, section.offset, section.size, || section.place())
}

fn parse_sections<'a>(bytes: &'a [u8], head: &[u8], header: &Header) -> Result<Vec<Section<'a>>, CubinError> {
    let place = || "section header table".to_owned();
    let at = header.section_table;
    let mut count = u64::from(u16_at(head, 60));
    let mut names_index = u32::from(u16_at(head, 62));
    if at == 0 {
        return Err(CubinError::Malformed {
            place: place(),
            offset: 40,
            what: "there is none".to_owned(),
        });
    }
    if u16_at(head, 58) as u64 != SHDR {
        let what = format!("{}-byte section headers, not {SHDR}", u16_at(head, 58));
        return Err(CubinError::Unsupported { offset: 58, what });
    }
    // More than 65279 sections: the real numbers are in the null section.
    let null = slice(bytes, at, SHDR, place)?;
    if count == 0 {
        count = u64_at(null, 32);
    }
    if names_index == 0xffff {
        names_index = u32_at(null, 40);
    }
    let table = slice(bytes, at, count.saturating_mul(SHDR), place)?;
    let mut sections = Vec::with_capacity(table.len() / SHDR as usize);
    for (index, h) in table.chunks_exact(SHDR as usize).enumerate() {
        sections.push(Section {
            index,
            name: "",
            kind: u32_at(h, 4),
            flags: u64_at(h, 8),
            address: u64_at(h, 16),
            offset: u64_at(h, 24),
            size: u64_at(h, 32),
            link: u32_at(h, 40),
            info: u32_at(h, 44),
            align: u64_at(h, 48),
            entry_size: u64_at(h, 56),
        });
    }
    let names = sections
        .get(names_index as usize)
        .filter(|s| s.kind == section_type::STRTAB)
        .copied();
    let names = names.ok_or_else(|| CubinError::Malformed {
        place: place(),
        offset: 62,
        what: format!("section {names_index} does not hold the section names"),
    })?;
    let strings = section_data(bytes, &names)?;
    for (section, h) in sections.iter_mut().zip(table.chunks_exact(SHDR as usize)) {
        let index = section.index;
        section.name = name_at(strings, names.offset, u64::from(u32_at(h, 0)), || {
            format!("name of section {index}")
        })?;
    }
    for section in &sections {
        section_data(bytes, section)?;
    }
    Ok(sections)
}

fn parse_segments(
    bytes: &[u8],
    head: &[u8],
    header: &Header,
    sections: &[Section<'_>],
) -> Result<Vec<Segment>, CubinError> {
    let count = match u16_at(head, 56) {
        // The null section holds the count when it does not fit.
        0xffff => u64::from(sections.first().map_or(0, |s| s.info)),
        n => u64::from(n),
    };
    if count == 0 {
        return Ok(Vec::new());
    }
    if u64::from(u16_at(head, 54)) != PHDR {
        let what = format!("{}-byte program headers, not {PHDR}", u16_at(head, 54));
        return Err(CubinError::Unsupported { offset: 54, what });
    }
    let table = slice(bytes, header.segment_table, count * PHDR, || {
        "program header table".to_owned()
    })?;
    let segment = |h: &[u8]| Segment {
        kind: u32_at(h, 0),
        flags: u32_at(h, 4),
        offset: u64_at(h, 8),
        file_size: u64_at(h, 32),
        memory_size: u64_at(h, 40),
        align: u64_at(h, 48),
    };
    Ok(table.chunks_exact(PHDR as usize).map(segment).collect())
}

fn parse_symbols<'a>(bytes: &'a [u8], sections: &[Section<'a>], table: usize) -> Result<Vec<Symbol<'a>>, CubinError> {
    let section = &sections[table];
    let data = section_data(bytes, section)?;
    let malformed = |offset: u64, what: String| CubinError::Malformed {
        place: section.place(),
        offset,
        what,
    };
    if !(data.len() as u64).is_multiple_of(SYM) {
        return Err(malformed(
            section.offset,
            format!("{} bytes are no multiple of a symbol's {SYM}", data.len()),
        ));
    }
    let names = sections
        .get(section.link as usize)
        .filter(|s| s.kind == section_type::STRTAB)
        .ok_or_else(|| {
            malformed(
                section.offset,
                format!("section {} does not hold its names", section.link),
            )
        })?;
    let strings = section_data(bytes, names)?;
    let extended = sections
        .iter()
        .find(|s| s.kind == section_type::SYMTAB_SHNDX && s.link as usize == table)
        .map(|s| section_data(bytes, s))
        .transpose()?;
    let mut symbols = Vec::with_capacity(data.len() / SYM as usize);
    for (index, s) in data.chunks_exact(SYM as usize).enumerate() {
        let at = section.offset + index as u64 * SYM;
        let place = || format!("{}, symbol {index}", section.place());
        let where_ = match u16_at(s, 6) {
            0 => SymbolSection::Undefined,
            0xfff1 => SymbolSection::Absolute,
            0xffff if extended.is_some() => {
                SymbolSection::Section(u32_at(extended.unwrap_or(&[]), index.saturating_mul(4)) as usize)
            }
            n @ 0xff00.. => SymbolSection::Reserved(n),
            n => SymbolSection::Section(n.into()),
        };
        if let SymbolSection::Section(n) = where_
            && n >= sections.len()
        {
            return Err(CubinError::Malformed {
                place: place(),
                offset: at + 6,
                what: format!("it is defined in section {n}, and there are {}", sections.len()),
            });
        }
        symbols.push(Symbol {
            index,
            name: name_at(strings, names.offset, u64::from(u32_at(s, 0)), place)?,
            section: where_,
            value: u64_at(s, 8),
            size: u64_at(s, 16),
            kind: s[4] & 15,
            binding: s[4] >> 4,
            other: s[5],
        });
    }
    Ok(symbols)
}
