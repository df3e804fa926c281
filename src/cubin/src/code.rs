//! The machine code in a cubin: one `Code` per `.text` section, with what the rest of the file says about it.

use std::collections::HashMap;
use std::ops::Range;

use crate::CubinError;
use crate::elf::{Elf, Relocation, Section, SymbolSection, section_type};
use crate::nvinfo::{self, Attribute, IndirectBranch, Value, code};
use crate::params::Param;
use crate::pointers::{self, Pointer};
use crate::target::Abi;

/// A function in a code section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Function<'a> {
    /// Symbol name.
    pub name: &'a str,
    /// Index in the symbol table.
    pub symbol: usize,
    /// Byte offset in the section.
    pub offset: u64,
    /// Bytes, as the symbol says.
    pub size: u64,
    /// A kernel, not a device function.
    pub is_entry: bool,
    /// 0 local, 1 global, 2 weak.
    pub binding: u8,
    /// Nothing in the file but the code of its own section can name its address: it is local, no relocation names it and no number in data
    /// is its offset. Then only that code can tell whether a call through a pointer may enter it.
    pub is_private: bool,
    /// Registers per thread (`EIATTR_REGCOUNT`).
    pub registers: Option<u32>,
    /// Bytes of local memory that its frame takes (`EIATTR_FRAME_SIZE`).
    pub frame_size: Option<u32>,
    /// `EIATTR_MIN_STACK_SIZE` in bytes.
    pub min_stack: Option<u32>,
    /// `EIATTR_MAX_STACK_SIZE` in bytes.
    pub max_stack: Option<u32>,
}

/// A name for a place in the code that is no function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label<'a> {
    /// Symbol name.
    pub name: &'a str,
    /// Byte offset in the section.
    pub offset: u64,
}

/// A kernel's own constant bank (`.nv.constantN.NAME`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConstantBank<'a> {
    /// N: 0 parameters, 2 the compiler's constants and jump tables.
    pub bank: u8,
    /// Index of the section.
    pub section: usize,
    /// Contents.
    pub bytes: &'a [u8],
}

/// Where the parameters lie in constant bank 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParamBank {
    /// Byte offset of parameter 0 in the bank (0x160 on sm_87).
    pub offset: u16,
    /// Bytes of all parameters.
    pub size: u16,
}

/// One `.text` section: a kernel with its local functions, or a device function.
#[derive(Clone, Debug)]
pub struct Code<'a> {
    /// The section's name without `.text.`.
    pub name: &'a str,
    /// Index of the section.
    pub section: usize,
    /// The bytes in the file.
    pub range: Range<usize>,
    /// The machine code.
    pub bytes: &'a [u8],
    /// True when the host can launch it.
    pub is_entry: bool,
    /// Every function symbol in the section, by offset.
    pub functions: Vec<Function<'a>>,
    /// Every other named place in the section, by offset.
    pub labels: Vec<Label<'a>>,
    /// Numbers in data that are byte offsets of its functions.
    pub pointers: Vec<Pointer>,
    /// Registers per thread: `EIATTR_REGCOUNT` of the section's function, else `sh_info` bits 31:24. It counts the two
    /// that the hardware reserves.
    pub registers: Option<u32>,
    /// Named barriers used: `EIATTR_NUM_BARRIERS` in ABI 8, `sh_flags` bits 26:20 in ABI 7.
    pub barriers: u32,
    /// Bytes of static shared memory (size of `.nv.shared.NAME`).
    pub shared_size: u64,
    /// Bytes of local memory per thread: the frame of the section's function, and of what it calls as far as the linker
    /// knew (`EIATTR_MIN_STACK_SIZE`).
    pub local_size: u64,
    /// Parameters by ordinal.
    pub params: Vec<Param>,
    /// Where the parameters are, when the kernel says.
    pub param_bank: Option<ParamBank>,
    /// Byte offsets of the EXIT instructions that the driver is told about.
    pub exit_offsets: Vec<u32>,
    /// Indirect branches with their targets.
    pub indirect_branches: Vec<IndirectBranch>,
    /// Its own constant banks.
    pub constants: Vec<ConstantBank<'a>>,
    /// Relocations of the code, by offset.
    pub relocations: Vec<Relocation>,
    /// Index of its `.nv.info.NAME` section.
    pub info_section: Option<usize>,
    /// The entries of that section.
    pub attributes: Vec<Attribute<'a>>,
}

impl<'a> Code<'a> {
    /// The constant bank of that number.
    pub fn constant_bank(&self, bank: u8) -> Option<&ConstantBank<'a>> {
        self.constants.iter().find(|c| c.bank == bank)
    }

    /// The function that the section is named after.
    pub fn function(&self) -> Option<&Function<'a>> {
        self.functions.iter().find(|f| f.name == self.name)
    }

    /// The first attribute of that code.
    pub fn attribute(&self, code: u8) -> Option<&Attribute<'a>> {
        self.attributes.iter().find(|a| a.code == code)
    }

    /// The most registers a thread that it was compiled for (`EIATTR_MAXREG_COUNT`), where the kernel says: 255 without `-maxrregcount`.
    pub fn most_registers(&self) -> Option<u32> {
        let attribute = self.attribute(code::MAXREG_COUNT)?;
        match attribute.value().ok()? {
            Value::Number(most @ 1..) => Some(most.into()),
            _ => None,
        }
    }

    /// Threads of a block, where the kernel fixes or limits them.
    pub fn threads(&self) -> Option<u32> {
        let dimensions = |which: u8| match self.attribute(which)?.value().ok()? {
            Value::Words(words) => {
                let each = words.iter().take(3);
                Some(each.fold(1u32, |all, n| all.saturating_mul(n.max(1))))
            }
            _ => None,
        };
        dimensions(code::REQNTID).or_else(|| dimensions(code::MAX_THREADS))
    }
}

/// Per symbol: registers, frame, minimum and maximum stack.
#[derive(Clone, Copy, Default)]
struct PerFunction {
    registers: Option<u32>,
    frame: Option<u32>,
    min_stack: Option<u32>,
    max_stack: Option<u32>,
}

/// Builds the codes of a file.
pub(crate) fn collect<'a>(elf: &Elf<'a>, abi: Abi) -> Result<Vec<Code<'a>>, CubinError> {
    let per_function = per_function(elf)?;
    let mut codes = Vec::new();
    // From section index to position in `codes`.
    let mut by_section: HashMap<usize, usize> = HashMap::new();
    let mut by_name: HashMap<&str, usize> = HashMap::new();
    for s in elf.sections.iter().filter(|s| s.is_code()) {
        by_section.insert(s.index, codes.len());
        let name = s.name.strip_prefix(".text.").unwrap_or("");
        by_name.entry(name).or_insert(codes.len());
        codes.push(new_code(elf, s, name, abi)?);
    }
    for symbol in &elf.symbols {
        let SymbolSection::Section(section) = symbol.section else {
            continue;
        };
        let Some(&i) = by_section.get(&section) else { continue };
        let code: &mut Code<'a> = &mut codes[i];
        if symbol.is_function() {
            if symbol.value > code.bytes.len() as u64 || symbol.size > code.bytes.len() as u64 - symbol.value {
                return Err(CubinError::Malformed {
                    place: elf.sections[section].place(),
                    offset: elf.sections[section].offset,
                    what: format!(
                        "function `{}` at {:#x} with {:#x} bytes reaches past its end ({:#x})",
                        symbol.name,
                        symbol.value,
                        symbol.size,
                        code.bytes.len()
                    ),
                });
            }
            let info = per_function.get(&symbol.index).copied().unwrap_or_default();
            code.functions.push(Function {
                name: symbol.name,
                symbol: symbol.index,
                offset: symbol.value,
                size: symbol.size,
                is_entry: symbol.is_entry(),
                binding: symbol.binding,
                is_private: false,
                registers: info.registers,
                frame_size: info.frame,
                min_stack: info.min_stack,
                max_stack: info.max_stack,
            });
        } else if symbol.kind != 3 && !symbol.name.is_empty() {
            code.labels.push(Label {
                name: symbol.name,
                offset: symbol.value,
            });
        }
    }
    for s in &elf.sections {
        let by_link = || by_section.get(&(s.info as usize)).copied();
        let named = |prefix: &str| Some(by_name.get(s.name.strip_prefix(prefix)?).copied());
        if s.kind == section_type::CUDA_INFO {
            if let Some(i) = named(".nv.info.").and_then(|i| i.or_else(by_link)) {
                let attributes = nvinfo::parse(s, elf.data(s)?)?;
                add_attributes(&mut codes[i], s, &attributes)?;
                codes[i].attributes.extend(attributes);
            }
        } else if let Some(Some(i)) = named(".nv.shared.") {
            codes[i].shared_size = s.size;
        } else if let Some((bank, i)) = constant_bank(s.name).and_then(|(b, name)| Some((b, *by_name.get(name)?))) {
            codes[i].constants.push(ConstantBank {
                bank,
                section: s.index,
                bytes: elf.data(s)?,
            });
        } else if matches!(s.kind, section_type::REL | section_type::RELA)
            && let Some(i) = by_link()
        {
            codes[i].relocations.extend(elf.relocations_in(s)?);
        }
    }
    for code in &mut codes {
        code.functions.sort_by_key(|f| (f.offset, f.symbol));
        code.labels.sort_by_key(|l| l.offset);
        code.params.sort_by_key(|p| p.ordinal);
        code.relocations.sort_by_key(|r| r.offset);
        code.is_entry = code.functions.iter().any(|f| f.is_entry);
        if let Some(f) = code.function().copied() {
            code.registers = f.registers.or(code.registers);
            code.local_size = u64::from(f.frame_size.max(f.min_stack).unwrap_or(0));
        }
        check_relocations(elf, code)?;
    }
    pointers::find(elf, &mut codes)?;
    Ok(codes)
}

fn new_code<'a>(elf: &Elf<'a>, s: &Section<'a>, name: &'a str, abi: Abi) -> Result<Code<'a>, CubinError> {
    let bytes = elf.data(s)?;
    if bytes.len() % 16 != 0 {
        return Err(CubinError::Malformed {
            place: s.place(),
            offset: s.offset,
            what: format!("{} bytes of code are no multiple of an instruction's 16", bytes.len()),
        });
    }
    let start = s.offset as usize;
    let registers = s.info >> 24;
    Ok(Code {
        name,
        section: s.index,
        range: start..start + bytes.len(),
        bytes,
        is_entry: false,
        functions: Vec::new(),
        labels: Vec::new(),
        pointers: Vec::new(),
        registers: (registers != 0).then_some(registers),
        barriers: if abi.version == 7 {
            (s.flags >> 20 & 0x7f) as u32
        } else {
            0
        },
        shared_size: 0,
        local_size: 0,
        params: Vec::new(),
        param_bank: None,
        exit_offsets: Vec::new(),
        indirect_branches: Vec::new(),
        constants: Vec::new(),
        relocations: Vec::new(),
        info_section: None,
        attributes: Vec::new(),
    })
}

/// `.nv.constant2.NAME` -> 2 and the name.
fn constant_bank(section: &str) -> Option<(u8, &str)> {
    let (bank, name) = section.strip_prefix(".nv.constant")?.split_once('.')?;
    Some((bank.parse().ok()?, name))
}

fn per_function(elf: &Elf<'_>) -> Result<HashMap<usize, PerFunction>, CubinError> {
    let mut map: HashMap<usize, PerFunction> = HashMap::new();
    for s in elf
        .sections
        .iter()
        .filter(|s| s.kind == section_type::CUDA_INFO && s.name == ".nv.info")
    {
        for attribute in nvinfo::parse(s, elf.data(s)?)? {
            let Value::SymbolValue { symbol, value } = attribute.value()? else {
                continue;
            };
            let entry = map.entry(symbol as usize).or_default();
            match attribute.code {
                code::REGCOUNT => entry.registers = Some(value),
                code::FRAME_SIZE => entry.frame = Some(value),
                code::MIN_STACK_SIZE => entry.min_stack = Some(value),
                code::MAX_STACK_SIZE => entry.max_stack = Some(value),
                _ => {}
            }
        }
    }
    Ok(map)
}

fn add_attributes<'a>(code: &mut Code<'a>, s: &Section<'_>, list: &[Attribute<'a>]) -> Result<(), CubinError> {
    code.info_section.get_or_insert(s.index);
    let size = code.bytes.len() as u64;
    let in_code = |attribute: &Attribute<'_>, offset: u32| match u64::from(offset) <= size {
        true => Ok(()),
        false => Err(CubinError::Malformed {
            place: s.place(),
            offset: attribute.offset,
            what: format!("code offset {offset:#x} lies outside of the code ({size:#x} bytes)"),
        }),
    };
    for attribute in list {
        match (attribute.code, attribute.value()?) {
            (code::EXIT_INSTR_OFFSETS, Value::Offsets(words)) => {
                for offset in words.iter() {
                    in_code(attribute, offset)?;
                    code.exit_offsets.push(offset);
                }
            }
            (code::INDIRECT_BRANCH_TARGETS, Value::IndirectBranches(branches)) => {
                for branch in &branches {
                    in_code(attribute, branch.offset)?;
                    branch.targets.iter().try_for_each(|&t| in_code(attribute, t))?;
                }
                code.indirect_branches.extend(branches);
            }
            (code::KPARAM_INFO | code::KPARAM_INFO_V2, Value::Param(param)) => code.params.push(param),
            (code::PARAM_CBANK, Value::ParamBank { offset, size, .. }) => {
                code.param_bank = Some(ParamBank { offset, size });
            }
            (code::NUM_BARRIERS, Value::Number(n)) => code.barriers = n.into(),
            _ => {}
        }
    }
    Ok(())
}

fn check_relocations(elf: &Elf<'_>, code: &Code<'_>) -> Result<(), CubinError> {
    for r in &code.relocations {
        let section = &elf.sections[code.section];
        let malformed = |what: String| CubinError::Malformed {
            place: section.place(),
            offset: section.offset,
            what,
        };
        if r.offset >= code.bytes.len() as u64 {
            return Err(malformed(format!("a relocation at {:#x} lies outside of it", r.offset)));
        }
        if r.symbol as usize >= elf.symbols.len() {
            return Err(malformed(format!(
                "the relocation at {:#x} names symbol {}",
                r.offset, r.symbol
            )));
        }
    }
    Ok(())
}
