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

#[cfg(test)]
mod tests {
    use super::*;

    /// Header fields as toolkits write them: ABI, `e_flags`, first bytes of `.nv.compat`, target.
    const SEEN: &[(u8, u32, &[u8], &str)] = &[
        (7, 0x46_0546, &[], "sm_70"),
        (7, 0x48_0548, &[], "sm_72"),
        (7, 0x4b_054b, &[], "sm_75"),
        (7, 0x50_0550, &[], "sm_80"),
        (7, 0x56_0556, &[], "sm_86"),
        (7, 0x57_0557, &[], "sm_87"),
        (7, 0x59_0559, &[], "sm_89"),
        (7, 0x5a_055a, &[], "sm_90"),
        (7, 0x5a_0d5a, &[], "sm_90a"),
        (8, 0x600_4b04, &[], "sm_75"),
        (8, 0x600_5004, &[], "sm_80"),
        (8, 0x600_5604, &[], "sm_86"),
        (8, 0x600_5704, &[], "sm_87"),
        (8, 0x600_5804, &[], "sm_88"),
        (8, 0x600_5904, &[], "sm_89"),
        (8, 0x600_5a04, &[2, 9, 0, 0], "sm_90"),
        (8, 0x600_5a04, &[2, 9, 1, 0], "sm_90a"),
        (8, 0x600_6402, &[2, 9, 0, 0, 2, 12, 0, 0], "sm_100"),
        (
            8,
            0x600_6402,
            &[2, 2, 2, 0, 4, 11, 8, 0, 9, 0, 0, 0, 0, 0, 0, 0, 2, 9, 1, 0],
            "sm_100a",
        ),
        (8, 0x600_640a, &[], "sm_100a"),
        (8, 0x600_6502, &[], "sm_101"),
        (8, 0x600_650a, &[], "sm_101a"),
        (8, 0x600_6702, &[], "sm_103"),
        (8, 0x600_6702, &[2, 9, 1, 0], "sm_103a"),
        (8, 0x600_6e02, &[], "sm_110"),
        (8, 0x600_6e02, &[2, 9, 1, 0], "sm_110a"),
        (8, 0x600_7802, &[], "sm_120"),
        (8, 0x600_7802, &[2, 9, 1, 0], "sm_120a"),
        (8, 0x600_7902, &[], "sm_121"),
        (8, 0x600_790a, &[], "sm_121a"),
    ];

    #[test]
    fn every_target_is_told_from_its_header() {
        let mut left: Vec<Target> = Target::ALL.to_vec();
        for &(version, flags, compat, name) in SEEN {
            // A header, the null section, `.shstrtab` and `.nv.compat`.
            let mut file = vec![0u8; 64];
            file[..9].copy_from_slice(b"\x7fELF\x02\x01\x01\x41\x08");
            if version == 7 {
                file[7..9].copy_from_slice(&[0x33, 7]);
            }
            file[16..20].copy_from_slice(&[2, 0, 190, 0]);
            file[48..52].copy_from_slice(&flags.to_le_bytes());
            let names = b"\0.shstrtab\0.nv.compat\0";
            let data = file.len() as u64;
            file.extend_from_slice(names);
            file.extend_from_slice(compat);
            let table = file.len() as u64;
            file[40..48].copy_from_slice(&table.to_le_bytes());
            file[58..64].copy_from_slice(&[64, 0, 3, 0, 1, 0]);
            let after = data + names.len() as u64;
            let sections = [
                (0u32, 0u32, 0, 0),
                (1, 3, data, names.len()),
                (11, 0x7000_0086, after, compat.len()),
            ];
            for (name, kind, offset, size) in sections {
                let mut header = [0u8; 64];
                header[..4].copy_from_slice(&name.to_le_bytes());
                header[4..8].copy_from_slice(&kind.to_le_bytes());
                header[24..32].copy_from_slice(&offset.to_le_bytes());
                header[32..40].copy_from_slice(&(size as u64).to_le_bytes());
                file.extend_from_slice(&header);
            }
            let image = crate::Image::parse(&file).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert_eq!(image.target().name(), name, "{flags:#x} {compat:?}");
            assert_eq!(image.abi().version, version);
            left.retain(|t| t.name() != name);
        }
        assert!(left.is_empty(), "no case for {left:?}");
    }
}
