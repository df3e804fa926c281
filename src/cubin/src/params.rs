//! Kernel parameters, from `EIATTR_KPARAM_INFO` and, where they are large, `EIATTR_KPARAM_INFO_V2`.

use crate::bytes::{u16_at, u32_at};

/// One parameter of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Param {
    /// First word of the entry (0 in every file seen).
    pub index: u32,
    /// Position in the parameter list, from 0.
    pub ordinal: u16,
    /// Byte offset from the start of the parameters.
    pub offset: u16,
    /// Bytes.
    pub size: u32,
    /// log2 of the pointee's alignment (bits 7:0 of the last word).
    pub log_alignment: u8,
    /// Address space (bits 11:8 of the last word).
    pub space: u8,
    /// Constant bank field (bits 16:12 of the last word), 0x1f when none is given.
    pub bank: u8,
}

impl Param {
    /// Decodes the 12 bytes of an entry of the second form: the size in the low half of the last word, the rest of it is 0
    /// in every file seen.
    pub(crate) fn from_bytes_v2(p: &[u8]) -> Param {
        let (log_alignment, space, bank) = (0, 0, 0x1f);
        let size = u32::from(u16_at(p, 8));
        Param {
            index: u32_at(p, 0),
            ordinal: u16_at(p, 4),
            offset: u16_at(p, 6),
            size,
            log_alignment,
            space,
            bank,
        }
    }

    /// Decodes the 12 bytes of an entry of the first form.
    pub(crate) fn from_bytes(p: &[u8]) -> Param {
        let last = u32_at(p, 8);
        Param {
            index: u32_at(p, 0),
            ordinal: u16_at(p, 4),
            offset: u16_at(p, 6),
            size: last >> 18,
            log_alignment: (last & 0xff) as u8,
            space: (last >> 8 & 0xf) as u8,
            bank: (last >> 12 & 0x1f) as u8,
        }
    }
}
