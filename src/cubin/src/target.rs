//! Which GPU and which ABI a cubin is for.

use isa::Target;

use crate::CubinError;
use crate::bytes::u16_at;
use crate::elf::{Elf, section_type};

/// The variant of the file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Abi {
    /// 7 (toolkits up to 12.9) or 8 (12.8 for sm_100 and up, 13.0 for all).
    pub version: u8,
    /// True for a file that still has to be linked (`e_type` 1).
    pub relocatable: bool,
    /// True when the kernels are there in Mercury form too (sm_100 and up). A driver could rebuild the code from it.
    pub mercury: bool,
}

/// Decodes the header's ABI.
pub(crate) fn abi(elf: &Elf<'_>) -> Result<Abi, CubinError> {
    let h = &elf.header;
    let version = match (h.os_abi, h.abi_version) {
        (0x33, 7) => 7,
        (0x41, 8) => 8,
        (os, version) => {
            let what = format!("OS/ABI {os:#x} version {version}; known are 0x33 version 7 and 0x41 version 8");
            return Err(CubinError::Unsupported { offset: 7, what });
        }
    };
    if !matches!(h.kind, 1 | 2) {
        let what = format!("file type {}, neither 1 (relocatable) nor 2 (executable)", h.kind);
        return Err(CubinError::Unsupported { offset: 16, what });
    }
    let mercury = elf.sections.iter().any(|s| s.kind == section_type::CUDA_CAPMERC);
    Ok(Abi {
        version,
        relocatable: h.kind == 1,
        mercury,
    })
}

/// Decodes `e_flags`, and `.nv.compat` for the `a` that CUDA 13 no longer writes into the flags.
pub(crate) fn target(elf: &Elf<'_>, abi: Abi) -> Result<Target, CubinError> {
    let flags = elf.header.flags;
    let (number, mut specific) = match abi.version {
        7 => (flags & 0xff, flags & 0x800 != 0),
        _ => (flags >> 8 & 0xff, flags & 0x8 != 0),
    };
    for section in elf.sections.iter().filter(|s| s.kind == section_type::CUDA_COMPAT) {
        specific |=
            compat(elf.data(section)?).any(|(code, value)| code == COMPAT_ARCH_SPECIFIC && value.first() == Some(&1));
    }
    Target::ALL
        .into_iter()
        .find(|t| t.number() == number && t.is_arch_specific() == specific)
        .ok_or(CubinError::UnknownTarget {
            number,
            suffix: if specific { "a" } else { "" },
        })
}

/// Attribute of `.nv.compat` that is 1 in architecture-specific cubins.
const COMPAT_ARCH_SPECIFIC: u8 = 9;

/// The entries of `.nv.compat`: code and value. They look like attributes: `02 code u8 0`, `03 code u16`, or `04 code u16
/// size` and the bytes. Stops at what it does not know.
fn compat(data: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    let mut rest = data;
    std::iter::from_fn(move || {
        let (head, tail) = rest.split_at_checked(4)?;
        let size = match head[0] {
            4 => usize::from(u16_at(head, 2)),
            1..=3 => 0,
            _ => return None,
        };
        let (payload, tail) = tail.split_at_checked(size)?;
        rest = tail;
        Some((head[1], if head[0] == 4 { payload } else { &head[2..4] }))
    })
}
