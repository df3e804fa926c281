//! `.nv.info`: the attributes of a cubin (global) and of its kernels.
//!
//! An entry is `u8 format, u8 code, u16 value or size`, then, in format 4, that many bytes. Which code means what, and
//! which ones hold code offsets, was observed on ptxas 11.8 to 13.5; what is unknown stays raw.

use crate::bytes::{u16_at, u32_at};
use crate::elf::Section;
use crate::{CubinError, params::Param};

/// How an entry holds its value (the first byte).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// 1: no value; being there is the information.
    None,
    /// 2: one byte.
    Byte,
    /// 3: 16 bits.
    Half,
    /// 4: as many bytes as the size field says.
    Sized,
}

/// The codes (`EIATTR_...`) that the project reads.
pub mod code {
    #![allow(missing_docs)]
    pub const CTAIDZ_USED: u8 = 0x04;
    pub const MAX_THREADS: u8 = 0x05;
    pub const PARAM_CBANK: u8 = 0x0a;
    pub const EXTERNS: u8 = 0x0f;
    pub const REQNTID: u8 = 0x10;
    pub const FRAME_SIZE: u8 = 0x11;
    pub const MIN_STACK_SIZE: u8 = 0x12;
    pub const KPARAM_INFO: u8 = 0x17;
    pub const CBANK_PARAM_SIZE: u8 = 0x19;
    pub const MAXREG_COUNT: u8 = 0x1b;
    pub const EXIT_INSTR_OFFSETS: u8 = 0x1c;
    pub const S2RCTAID_INSTR_OFFSETS: u8 = 0x1d;
    pub const CRS_STACK_SIZE: u8 = 0x1e;
    pub const MAX_STACK_SIZE: u8 = 0x23;
    pub const LD_CACHEMOD_INSTR_OFFSETS: u8 = 0x25;
    pub const ATOM_SYS_INSTR_OFFSETS: u8 = 0x27;
    pub const COOP_GROUP_INSTR_OFFSETS: u8 = 0x28;
    pub const COOP_GROUP_MASK_REGIDS: u8 = 0x29;
    pub const WMMA_USED: u8 = 0x2b;
    pub const ATOMF16_EMUL_INSTR_OFFSETS: u8 = 0x2d;
    pub const ATOM16_EMUL_INSTR_REG_MAP: u8 = 0x2e;
    pub const REGCOUNT: u8 = 0x2f;
    pub const INT_WARP_WIDE_INSTR_OFFSETS: u8 = 0x31;
    pub const INDIRECT_BRANCH_TARGETS: u8 = 0x34;
    pub const SW_WAR: u8 = 0x36;
    pub const CUDA_API_VERSION: u8 = 0x37;
    pub const NUM_MBARRIERS: u8 = 0x38;
    pub const MBARRIER_INSTR_OFFSETS: u8 = 0x39;
    pub const COROUTINE_RESUME_ID_OFFSETS: u8 = 0x3a;
    pub const CTA_PER_CLUSTER: u8 = 0x3d;
    pub const EXPLICIT_CLUSTER: u8 = 0x3e;
    pub const INSTR_REG_MAP: u8 = 0x40;
    pub const RESERVED_SMEM_USED: u8 = 0x41;
    pub const UNUSED_LOAD_BYTE_OFFSET: u8 = 0x44;
    pub const KPARAM_INFO_V2: u8 = 0x45;
    pub const SYSCALL_OFFSETS: u8 = 0x46;
    pub const SW_WAR_MEMBAR_SYS_INSTR_OFFSETS: u8 = 0x47;
    pub const VRC_CTA_INIT_COUNT: u8 = 0x4a;
    pub const NUM_BARRIERS: u8 = 0x4c;
    pub const AT_ENTRY_FRAGMENTS: u8 = 0x4f;
    pub const SPARSE_MMA_MASK: u8 = 0x50;
    pub const TCGEN05_1CTA_USED: u8 = 0x51;
    pub const TCGEN05_2CTA_USED: u8 = 0x52;
    pub const REG_RECONFIG: u8 = 0x54;
    pub const ANNOTATIONS: u8 = 0x55;
    pub const STACK_CANARY_TRAP_OFFSETS: u8 = 0x57;
    pub const LOCAL_CTA_ASYNC_STORE_OFFSETS: u8 = 0x59;
    pub const IGNOREOOB_CP_ASYNC_BULK_INSTR_OFFSETS: u8 = 0x65;
    pub const LANGUAGE: u8 = 0x66;
    pub const NVSAL_SW_WAR: u8 = 0x6b;
    pub const INSTR_OFFSETS: u8 = 0x6c;
    pub const PREEXIT_USED: u8 = 0x6d;
}

/// What the value of an entry of one code is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Plain,
    Offsets,
    Words,
    Symbols,
    SymbolValue,
    Param,
    ParamBank,
    IndirectBranches,
    /// Records of that many bytes whose first u32 is a code offset.
    Records(usize),
    /// Records of 8 bytes, a kind and then a code offset.
    Annotations,
    /// A named code that no file held: its value is not decoded, and may hold code offsets.
    Unseen,
}

/// code, name without `EIATTR_` as cuobjdump 13.5 prints it, shape; by code.
const CODES: &[(u8, &str, Shape)] = &[
    (0x00, "ERROR", Shape::Unseen),
    (0x01, "PAD", Shape::Unseen),
    (0x02, "IMAGE_SLOT", Shape::Unseen),
    (0x03, "JUMPTABLE_RELOCS", Shape::Unseen),
    (code::CTAIDZ_USED, "CTAIDZ_USED", Shape::Plain),
    (code::MAX_THREADS, "MAX_THREADS", Shape::Words),
    (0x06, "IMAGE_OFFSET", Shape::Unseen),
    (0x07, "IMAGE_SIZE", Shape::Unseen),
    (0x08, "TEXTURE_NORMALIZED", Shape::Unseen),
    (0x09, "SAMPLER_INIT", Shape::Unseen),
    (code::PARAM_CBANK, "PARAM_CBANK", Shape::ParamBank),
    (0x0b, "SMEM_PARAM_OFFSETS", Shape::Unseen),
    (0x0c, "CBANK_PARAM_OFFSETS", Shape::Unseen),
    (0x0d, "SYNC_STACK", Shape::Unseen),
    (0x0e, "TEXID_SAMPID_MAP", Shape::Unseen),
    (code::EXTERNS, "EXTERNS", Shape::Symbols),
    (code::REQNTID, "REQNTID", Shape::Words),
    (code::FRAME_SIZE, "FRAME_SIZE", Shape::SymbolValue),
    (code::MIN_STACK_SIZE, "MIN_STACK_SIZE", Shape::SymbolValue),
    (0x13, "SAMPLER_FORCE_UNNORMALIZED", Shape::Unseen),
    (0x14, "BINDLESS_IMAGE_OFFSETS", Shape::Unseen),
    (0x15, "BINDLESS_TEXTURE_BANK", Shape::Unseen),
    (0x16, "BINDLESS_SURFACE_BANK", Shape::Unseen),
    (code::KPARAM_INFO, "KPARAM_INFO", Shape::Param),
    (0x18, "SMEM_PARAM_SIZE", Shape::Unseen),
    (code::CBANK_PARAM_SIZE, "CBANK_PARAM_SIZE", Shape::Plain),
    (0x1a, "QUERY_NUMATTRIB", Shape::Unseen),
    (code::MAXREG_COUNT, "MAXREG_COUNT", Shape::Plain),
    (code::EXIT_INSTR_OFFSETS, "EXIT_INSTR_OFFSETS", Shape::Offsets),
    (code::S2RCTAID_INSTR_OFFSETS, "S2RCTAID_INSTR_OFFSETS", Shape::Offsets),
    (code::CRS_STACK_SIZE, "CRS_STACK_SIZE", Shape::Words),
    (0x1f, "NEED_CNP_WRAPPER", Shape::Unseen),
    (0x20, "NEED_CNP_PATCH", Shape::Unseen),
    (0x21, "EXPLICIT_CACHING", Shape::Unseen),
    (0x22, "ISTYPEP_USED", Shape::Unseen),
    (code::MAX_STACK_SIZE, "MAX_STACK_SIZE", Shape::SymbolValue),
    (0x24, "SUQ_USED", Shape::Unseen),
    (
        code::LD_CACHEMOD_INSTR_OFFSETS,
        "LD_CACHEMOD_INSTR_OFFSETS",
        Shape::Offsets,
    ),
    (0x26, "LOAD_CACHE_REQUEST", Shape::Unseen),
    (code::ATOM_SYS_INSTR_OFFSETS, "ATOM_SYS_INSTR_OFFSETS", Shape::Offsets),
    (
        code::COOP_GROUP_INSTR_OFFSETS,
        "COOP_GROUP_INSTR_OFFSETS",
        Shape::Offsets,
    ),
    (code::COOP_GROUP_MASK_REGIDS, "COOP_GROUP_MASK_REGIDS", Shape::Words),
    (code::WMMA_USED, "WMMA_USED", Shape::Plain),
    (0x2c, "HAS_PRE_V10_OBJECT", Shape::Unseen),
    (
        code::ATOMF16_EMUL_INSTR_OFFSETS,
        "ATOMF16_EMUL_INSTR_OFFSETS",
        Shape::Offsets,
    ),
    (
        code::ATOM16_EMUL_INSTR_REG_MAP,
        "ATOM16_EMUL_INSTR_REG_MAP",
        Shape::Records(8),
    ),
    (code::REGCOUNT, "REGCOUNT", Shape::SymbolValue),
    (
        code::INT_WARP_WIDE_INSTR_OFFSETS,
        "INT_WARP_WIDE_INSTR_OFFSETS",
        Shape::Offsets,
    ),
    (0x32, "SHARED_SCRATCH", Shape::Unseen),
    (0x33, "STATISTICS", Shape::Unseen),
    (
        code::INDIRECT_BRANCH_TARGETS,
        "INDIRECT_BRANCH_TARGETS",
        Shape::IndirectBranches,
    ),
    (code::SW_WAR, "SW_WAR", Shape::Words),
    (code::CUDA_API_VERSION, "CUDA_API_VERSION", Shape::Words),
    (code::NUM_MBARRIERS, "NUM_MBARRIERS", Shape::Plain),
    (
        code::MBARRIER_INSTR_OFFSETS,
        "MBARRIER_INSTR_OFFSETS",
        Shape::Records(16),
    ),
    (
        code::COROUTINE_RESUME_ID_OFFSETS,
        "COROUTINE_RESUME_ID_OFFSETS",
        Shape::Offsets,
    ),
    (0x3b, "SAM_REGION_STACK_SIZE", Shape::Unseen),
    (0x3c, "PER_REG_TARGET_PERF_STATS", Shape::Unseen),
    (code::CTA_PER_CLUSTER, "CTA_PER_CLUSTER", Shape::Words),
    (code::EXPLICIT_CLUSTER, "EXPLICIT_CLUSTER", Shape::Plain),
    (0x3f, "MAX_CLUSTER_RANK", Shape::Unseen),
    (code::INSTR_REG_MAP, "INSTR_REG_MAP", Shape::Records(12)),
    (code::RESERVED_SMEM_USED, "RESERVED_SMEM_USED", Shape::Plain),
    (0x42, "RESERVED_SMEM_0_SIZE", Shape::Unseen),
    (0x43, "UCODE_SECTION_DATA", Shape::Unseen),
    (
        code::UNUSED_LOAD_BYTE_OFFSET,
        "UNUSED_LOAD_BYTE_OFFSET",
        Shape::Records(8),
    ),
    (code::KPARAM_INFO_V2, "KPARAM_INFO_V2", Shape::Param),
    (code::SYSCALL_OFFSETS, "SYSCALL_OFFSETS", Shape::Offsets),
    (
        code::SW_WAR_MEMBAR_SYS_INSTR_OFFSETS,
        "SW_WAR_MEMBAR_SYS_INSTR_OFFSETS",
        Shape::Offsets,
    ),
    (0x48, "GRAPHICS_GLOBAL_CBANK", Shape::Unseen),
    (0x49, "SHADER_TYPE", Shape::Unseen),
    (code::VRC_CTA_INIT_COUNT, "VRC_CTA_INIT_COUNT", Shape::Plain),
    (0x4b, "TOOLS_PATCH_FUNC", Shape::Unseen),
    (code::NUM_BARRIERS, "NUM_BARRIERS", Shape::Plain),
    (0x4d, "TEXMODE_INDEPENDENT", Shape::Unseen),
    (0x4e, "PERF_STATISTICS", Shape::Unseen),
    (code::AT_ENTRY_FRAGMENTS, "AT_ENTRY_FRAGMENTS", Shape::Words),
    (code::SPARSE_MMA_MASK, "SPARSE_MMA_MASK", Shape::Plain),
    (code::TCGEN05_1CTA_USED, "TCGEN05_1CTA_USED", Shape::Plain),
    (code::TCGEN05_2CTA_USED, "TCGEN05_2CTA_USED", Shape::Plain),
    (0x53, "GEN_ERRBAR_AT_EXIT", Shape::Unseen),
    (code::REG_RECONFIG, "REG_RECONFIG", Shape::Plain),
    (code::ANNOTATIONS, "ANNOTATIONS", Shape::Annotations),
    (
        code::STACK_CANARY_TRAP_OFFSETS,
        "STACK_CANARY_TRAP_OFFSETS",
        Shape::Offsets,
    ),
    (0x58, "STUB_FUNCTION_KIND", Shape::Unseen),
    (
        code::LOCAL_CTA_ASYNC_STORE_OFFSETS,
        "LOCAL_CTA_ASYNC_STORE_OFFSETS",
        Shape::Offsets,
    ),
    (0x5b, "BLOCKS_ARE_CLUSTERS", Shape::Unseen),
    (0x5c, "SANITIZE", Shape::Unseen),
    (0x5d, "SYSCALLS_FALLBACK", Shape::Unseen),
    (0x5e, "CUDA_REQ", Shape::Unseen),
    (0x61, "RTCORE_ENTRY", Shape::Unseen),
    (0x62, "CLUSTER_LAUNCH_CONTROL_USED", Shape::Unseen),
    (0x64, "MIN_PER_CTA_MEMORY_SIZE", Shape::Unseen),
    (
        code::IGNOREOOB_CP_ASYNC_BULK_INSTR_OFFSETS,
        "IGNOREOOB_CP_ASYNC_BULK_INSTR_OFFSETS",
        Shape::Offsets,
    ),
    (code::LANGUAGE, "LANGUAGE", Shape::Words),
    (0x68, "GRID_ATTRIBUTES", Shape::Unseen),
    (0x69, "STACK_OFFSET", Shape::Unseen),
    (0x6a, "RT_LIVESTATE_SASS_MAP", Shape::Unseen),
    (code::NVSAL_SW_WAR, "NVSAL_SW_WAR", Shape::Plain),
    (code::INSTR_OFFSETS, "INSTR_OFFSETS", Shape::Offsets),
    (code::PREEXIT_USED, "PREEXIT_USED", Shape::Plain),
];

fn known(code: u8) -> Option<&'static (u8, &'static str, Shape)> {
    CODES.binary_search_by_key(&code, |(c, ..)| *c).ok().map(|i| &CODES[i])
}

/// The name of a code without `EIATTR_`; `None` for an unknown one.
pub fn name(code: u8) -> Option<&'static str> {
    known(code).map(|(_, name, _)| *name)
}

/// True when the value of a code holds byte offsets into the code, so that it changes when code moves.
pub fn holds_code_offsets(code: u8) -> bool {
    let shape = known(code).map(|(.., shape)| *shape);
    matches!(
        shape,
        Some(Shape::Offsets | Shape::IndirectBranches | Shape::Records(_) | Shape::Annotations)
    )
}

/// True when it is known whether the value of a code holds code offsets, and where: code that moves must not leave behind
/// an attribute of which this is false, unless it holds no bytes.
pub fn is_understood(code: u8) -> bool {
    known(code).is_some_and(|(.., shape)| *shape != Shape::Unseen)
}

/// A packed list of little-endian 32-bit values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Words<'a>(&'a [u8]);

impl<'a> Words<'a> {
    /// The values in order.
    pub fn iter(self) -> impl ExactSizeIterator<Item = u32> + use<'a> {
        self.0.chunks_exact(4).map(|c| u32_at(c, 0))
    }

    /// How many.
    pub fn len(self) -> usize {
        self.0.len() / 4
    }

    /// True when there is none.
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }
}

/// A BRX or JMX and where it can go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndirectBranch {
    /// Byte offset of the branch in its section.
    pub offset: u32,
    /// The second word of the record; 0 in every file seen.
    pub reserved: u32,
    /// Byte offsets of its targets in the same section, in the attribute's order, repeats included.
    pub targets: Vec<u32>,
}

/// The decoded value of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// Present, no value.
    Flag,
    /// An 8- or 16-bit number.
    Number(u16),
    /// Byte offsets of instructions.
    Offsets(Words<'a>),
    /// 32-bit numbers that are no code offsets.
    Words(Words<'a>),
    /// Symbol indices.
    Symbols(Words<'a>),
    /// A number for one function.
    SymbolValue {
        /// Index in the symbol table.
        symbol: u32,
        /// The number.
        value: u32,
    },
    /// One kernel parameter.
    Param(Param),
    /// Where the parameters lie in constant bank 0.
    ParamBank {
        /// Symbol of the `.nv.constant0` section.
        symbol: u32,
        /// Byte offset of the first parameter in the bank.
        offset: u16,
        /// Bytes of all parameters.
        size: u16,
    },
    /// Indirect branches and their targets.
    IndirectBranches(Vec<IndirectBranch>),
    /// Fixed-size records, each starting with a code offset.
    Records {
        /// Bytes of one record.
        size: usize,
        /// All records.
        bytes: &'a [u8],
    },
    /// Pairs of a kind and a code offset.
    Annotations(Words<'a>),
    /// An unknown code, or an unknown format of a known one: the payload.
    Raw(&'a [u8]),
}

/// One entry of a `.nv.info` section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attribute<'a> {
    /// Byte offset of the entry in the file.
    pub offset: u64,
    /// First byte.
    pub format: Format,
    /// Second byte, see [`code`].
    pub code: u8,
    /// The 16-bit field: the value in formats 1 to 3, the size in bytes in format 4.
    pub immediate: u16,
    /// The bytes that follow, in format 4.
    pub payload: &'a [u8],
}

impl<'a> Attribute<'a> {
    /// The name of the code without `EIATTR_`.
    pub fn name(&self) -> Option<&'static str> {
        name(self.code)
    }

    /// The typed value; an error when a known code's payload cannot be what it should be.
    pub fn value(&self) -> Result<Value<'a>, CubinError> {
        let (name, shape) = match known(self.code) {
            Some((_, name, shape)) => (*name, *shape),
            None => ("", Shape::Plain),
        };
        match self.format {
            Format::None => return Ok(Value::Flag),
            Format::Byte => return Ok(Value::Number(self.immediate & 0xff)),
            Format::Half => return Ok(Value::Number(self.immediate)),
            Format::Sized => {}
        }
        let p = self.payload;
        let malformed = |what: &str| CubinError::Malformed {
            place: format!("attribute EIATTR_{name}"),
            offset: self.offset,
            what: format!("{what} ({} bytes)", p.len()),
        };
        let multiple = |record: usize| match p.len() % record {
            0 => Ok(()),
            _ => Err(malformed(&format!("its size is no multiple of {record}"))),
        };
        let exactly = |size: usize| match p.len() == size {
            true => Ok(()),
            false => Err(malformed(&format!("its size is not {size}"))),
        };
        Ok(match shape {
            Shape::Plain | Shape::Unseen => Value::Raw(p),
            Shape::Offsets => multiple(4).map(|()| Value::Offsets(Words(p)))?,
            Shape::Words => multiple(4).map(|()| Value::Words(Words(p)))?,
            Shape::Symbols => multiple(4).map(|()| Value::Symbols(Words(p)))?,
            Shape::Annotations => multiple(8).map(|()| Value::Annotations(Words(p)))?,
            Shape::Records(size) => multiple(size).map(|()| Value::Records { size, bytes: p })?,
            Shape::SymbolValue => {
                exactly(8)?;
                Value::SymbolValue {
                    symbol: u32_at(p, 0),
                    value: u32_at(p, 4),
                }
            }
            Shape::ParamBank => {
                exactly(8)?;
                Value::ParamBank {
                    symbol: u32_at(p, 0),
                    offset: u16_at(p, 4),
                    size: u16_at(p, 6),
                }
            }
            Shape::Param => {
                exactly(12)?;
                Value::Param(match self.code {
                    code::KPARAM_INFO_V2 => Param::from_bytes_v2(p),
                    _ => Param::from_bytes(p),
                })
            }
            Shape::IndirectBranches => Value::IndirectBranches(indirect_branches(p).map_err(malformed)?),
        })
    }

    /// The code offsets that the entry holds, in the order in which they are written.
    pub fn code_offsets(&self) -> Result<Vec<u32>, CubinError> {
        Ok(match self.value()? {
            Value::Offsets(words) => words.iter().collect(),
            Value::Annotations(words) => words.iter().skip(1).step_by(2).collect(),
            Value::Records { size, bytes } => bytes.chunks_exact(size).map(|r| u32_at(r, 0)).collect(),
            Value::IndirectBranches(list) => list
                .iter()
                .flat_map(|b| std::iter::once(b.offset).chain(b.targets.iter().copied()))
                .collect(),
            _ => Vec::new(),
        })
    }
}

fn indirect_branches(p: &[u8]) -> Result<Vec<IndirectBranch>, &'static str> {
    let mut list = Vec::new();
    let mut rest = p;
    while !rest.is_empty() {
        let (head, tail) = rest.split_at_checked(12).ok_or("a record is cut short")?;
        let bytes = (u32_at(head, 8) as usize)
            .checked_mul(4)
            .ok_or("a record has too many targets")?;
        let (targets, tail) = tail
            .split_at_checked(bytes)
            .ok_or("a record has more targets than bytes")?;
        list.push(IndirectBranch {
            offset: u32_at(head, 0),
            reserved: u32_at(head, 4),
            targets: Words(targets).iter().collect(),
        });
        rest = tail;
    }
    Ok(list)
}

/// Splits a section's bytes into entries.
pub fn parse<'a>(section: &Section<'_>, data: &'a [u8]) -> Result<Vec<Attribute<'a>>, CubinError> {
    let mut list = Vec::new();
    let mut at = 0usize;
    while at < data.len() {
        let offset = section.offset + at as u64;
        let head = crate::bytes::slice(data, at as u64, 4, || section.place());
        let head = head.map_err(|_| CubinError::Truncated {
            place: section.place(),
            offset,
            need: 4,
            have: (data.len() - at) as u64,
        })?;
        let format = match head[0] {
            1 => Format::None,
            2 => Format::Byte,
            3 => Format::Half,
            4 => Format::Sized,
            other => {
                let what = format!("attribute format {other} is none of 1 to 4");
                return Err(CubinError::Malformed {
                    place: section.place(),
                    offset,
                    what,
                });
            }
        };
        let immediate = u16_at(head, 2);
        at += 4;
        let size = if format == Format::Sized {
            usize::from(immediate)
        } else {
            0
        };
        let Some(payload) = data.get(at..at + size) else {
            let have = (data.len() - at) as u64;
            return Err(CubinError::Truncated {
                place: section.place(),
                offset,
                need: size as u64,
                have,
            });
        };
        at += size;
        list.push(Attribute {
            offset,
            format,
            code: head[1],
            immediate,
            payload,
        });
    }
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_by_code() {
        assert!(CODES.windows(2).all(|w| w[0].0 < w[1].0));
        assert_eq!(name(code::EXIT_INSTR_OFFSETS), Some("EXIT_INSTR_OFFSETS"));
        assert_eq!(name(0xff), None);
    }

    #[test]
    fn offsets_are_found_where_they_are() {
        let words = |list: &[u32]| -> Vec<u8> { list.iter().flat_map(|w| w.to_le_bytes()).collect() };
        let offsets = |code: u8, list: &[u32]| {
            let payload = words(list);
            let immediate = payload.len() as u16;
            let attribute = Attribute {
                offset: 0,
                format: Format::Sized,
                code,
                immediate,
                payload: &payload,
            };
            assert!(holds_code_offsets(code) && is_understood(code));
            attribute.code_offsets().map_err(|e| e.to_string())
        };
        assert_eq!(offsets(code::EXIT_INSTR_OFFSETS, &[0x10, 0x40]), Ok(vec![0x10, 0x40]));
        assert_eq!(offsets(code::ANNOTATIONS, &[1, 0x20, 1, 0x30]), Ok(vec![0x20, 0x30]));
        assert_eq!(
            offsets(code::UNUSED_LOAD_BYTE_OFFSET, &[0x20, 0xff0, 0x80, 0xfff]),
            Ok(vec![0x20, 0x80])
        );
        assert_eq!(
            offsets(code::MBARRIER_INSTR_OFFSETS, &[0xd0, 255, 0, 0x60100]),
            Ok(vec![0xd0])
        );
        let branches = [0x70, 0, 2, 0xf0, 0x100, 0xe0, 0, 0];
        assert_eq!(
            offsets(code::INDIRECT_BRANCH_TARGETS, &branches),
            Ok(vec![0x70, 0xf0, 0x100, 0xe0])
        );
        assert!(offsets(code::INDIRECT_BRANCH_TARGETS, &[0x70, 0, 9, 0xf0]).is_err());
        assert!(offsets(code::MBARRIER_INSTR_OFFSETS, &[0xd0, 255, 0]).is_err());
    }

    #[test]
    fn a_parameter_is_decoded() {
        let payload = [0, 0, 0, 0, 4, 0, 0x20, 0, 0, 0xf0, 1, 2];
        let attribute = Attribute {
            offset: 0,
            format: Format::Sized,
            code: code::KPARAM_INFO,
            immediate: 12,
            payload: &payload,
        };
        let Ok(Value::Param(p)) = attribute.value() else {
            panic!("{:?}", attribute.value())
        };
        assert_eq!((p.ordinal, p.offset, p.size, p.bank), (4, 0x20, 128, 0x1f));
    }
}
