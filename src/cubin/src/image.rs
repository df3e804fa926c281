//! A cubin: the ELF tables plus what CUDA puts into them.

use isa::Target;

use crate::CubinError;
use crate::code::{self, Code, ConstantBank};
use crate::elf::{Elf, Header, Relocation, Section, Segment, Symbol, section_type};
use crate::nvinfo::{self, Attribute};
use crate::target::{self, Abi};

/// A parsed cubin. It borrows the file's bytes and copies none of them.
#[derive(Clone, Debug)]
pub struct Image<'a> {
    elf: Elf<'a>,
    abi: Abi,
    target: Target,
    codes: Vec<Code<'a>>,
}

impl<'a> Image<'a> {
    /// Reads a cubin of any supported target, ABI 7 or 8, executable or relocatable. Bytes after the image are ignored.
    pub fn parse(bytes: &'a [u8]) -> Result<Image<'a>, CubinError> {
        let elf = Elf::parse(bytes)?;
        let abi = target::abi(&elf)?;
        let target = target::target(&elf, abi)?;
        let codes = code::collect(&elf, abi)?;
        Ok(Image {
            elf,
            abi,
            target,
            codes,
        })
    }

    /// The file's bytes, as given.
    pub fn bytes(&self) -> &'a [u8] {
        self.elf.bytes
    }

    /// The GPU that the code is for.
    pub fn target(&self) -> Target {
        self.target
    }

    /// Fails when the cubin is for another target than `asked`.
    pub fn expect_target(&self, asked: Target) -> Result<(), CubinError> {
        match self.target == asked {
            true => Ok(()),
            false => Err(CubinError::TargetMismatch {
                found: self.target,
                asked,
            }),
        }
    }

    /// The format variant.
    pub fn abi(&self) -> Abi {
        self.abi
    }

    /// The ELF tables.
    pub fn elf(&self) -> &Elf<'a> {
        &self.elf
    }

    /// ELF header fields.
    pub fn header(&self) -> &Header {
        &self.elf.header
    }

    /// All sections in file order; index 0 is the null section.
    pub fn sections(&self) -> &[Section<'a>] {
        &self.elf.sections
    }

    /// All program headers.
    pub fn segments(&self) -> &[Segment] {
        &self.elf.segments
    }

    /// All symbols; index 0 is the null symbol.
    pub fn symbols(&self) -> &[Symbol<'a>] {
        &self.elf.symbols
    }

    /// A section's bytes; empty when the file holds none.
    pub fn section_data(&self, section: usize) -> Result<&'a [u8], CubinError> {
        self.elf.section(section).map_or(Ok(&[]), |s| self.elf.data(s))
    }

    /// Every section with machine code, in file order: kernels and device functions.
    pub fn codes(&self) -> &[Code<'a>] {
        &self.codes
    }

    /// The code of that name.
    pub fn code(&self, name: &str) -> Option<&Code<'a>> {
        self.codes.iter().find(|c| c.name == name)
    }

    /// The attributes in a `.nv.info` section; empty for any other section.
    pub fn attributes(&self, section: usize) -> Result<Vec<Attribute<'a>>, CubinError> {
        match self.elf.section(section) {
            Some(s) if matches!(s.kind, section_type::CUDA_INFO | section_type::CUDA_MERC_INFO) => {
                nvinfo::parse(s, self.elf.data(s)?)
            }
            _ => Ok(Vec::new()),
        }
    }

    /// The attributes of the cubin as a whole (`.nv.info`).
    pub fn global_attributes(&self) -> Result<Vec<Attribute<'a>>, CubinError> {
        match self.elf.section_by_name(".nv.info") {
            Some(s) => self.attributes(s.index),
            None => Ok(Vec::new()),
        }
    }

    /// The relocations that apply to a section, from every `.rel` and `.rela` section that names it.
    pub fn relocations(&self, section: usize) -> Result<Vec<Relocation>, CubinError> {
        let mut all = Vec::new();
        for s in &self.elf.sections {
            if matches!(s.kind, section_type::REL | section_type::RELA) && s.info as usize == section {
                all.extend(self.elf.relocations_in(s)?);
            }
        }
        Ok(all)
    }

    /// A constant bank that all kernels share, by its number: 3 the program's constants, 4 addresses (relocated by the
    /// driver, see [`Image::relocations`]). A kernel's own banks are in [`Code::constants`].
    pub fn constant_bank(&self, bank: u8) -> Result<Option<ConstantBank<'a>>, CubinError> {
        let name = format!(".nv.constant{bank}");
        let Some(s) = self.elf.section_by_name(&name) else {
            return Ok(None);
        };
        let bytes = self.elf.data(s)?;
        Ok(Some(ConstantBank {
            bank,
            section: s.index,
            bytes,
        }))
    }

    /// Pairs of caller and callee from `.nv.callgraph`, as symbol indices. Negative callees are ptxas's own marks.
    pub fn call_graph(&self) -> Result<Vec<(u32, i32)>, CubinError> {
        let mut pairs = Vec::new();
        for s in self
            .elf
            .sections
            .iter()
            .filter(|s| s.kind == section_type::CUDA_CALLGRAPH)
        {
            let data = self.elf.data(s)?;
            pairs.extend(
                data.chunks_exact(8)
                    .map(|r| (crate::bytes::u32_at(r, 0), crate::bytes::u32_at(r, 4) as i32)),
            );
        }
        Ok(pairs)
    }

    /// Who made the cubin, as far as it says: `ptxas 12.9` from an ABI 7 header, `ptxas 13.5.37, -arch sm_87 -m 64` from
    /// `.note.nv.tkinfo`. The options are the only place that tells a family-specific target (`sm_100f`).
    pub fn producer(&self) -> Option<String> {
        if self.abi.version == 7 {
            let v = self.elf.header.version;
            return (100..1000).contains(&v).then(|| format!("ptxas {}.{}", v / 10, v % 10));
        }
        let note = self.elf.section_by_name(".note.nv.tkinfo")?;
        let data = self.elf.data(note).ok()?;
        let printable = |s: &&[u8]| s.len() > 3 && s.iter().all(|b| (0x20..0x7f).contains(b));
        // The note's owner, the tool, its version, its build, its options.
        let strings: Vec<&str> = data
            .split(|&b| b == 0)
            .filter(printable)
            .filter_map(|s| std::str::from_utf8(s).ok())
            .collect();
        let version = |s: &&str| s.rsplit_once(", V").map(|(_, v)| v.to_owned());
        match (strings.get(1), strings.iter().find_map(version), strings.last()) {
            (Some(tool), Some(version), Some(options)) => Some(format!("{tool} {version}, {}", options.trim())),
            _ => (!strings.is_empty()).then(|| strings.join(", ")),
        }
    }
}
