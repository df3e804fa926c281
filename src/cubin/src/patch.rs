//! Writing back: code replaced in place, every other byte as it was.

use crate::code::Code;
use crate::nvinfo::{self, Attribute, Value};
use crate::{CubinError, Image};

/// A copy of a cubin in which code is replaced. Sizes never change, so nothing else moves.
#[derive(Clone, Debug)]
pub struct Patch<'i, 'a> {
    image: &'i Image<'a>,
    bytes: Vec<u8>,
}

impl<'i, 'a> Patch<'i, 'a> {
    /// Starts with an exact copy of the image's bytes.
    pub fn new(image: &'i Image<'a>) -> Patch<'i, 'a> {
        Patch {
            image,
            bytes: image.bytes().to_vec(),
        }
    }

    /// The image as it was.
    pub fn image(&self) -> &'i Image<'a> {
        self.image
    }

    /// Replaces the machine code of one section by code of the same size.
    pub fn replace_code(&mut self, code: &Code<'_>, bytes: &[u8]) -> Result<(), CubinError> {
        let section = self.image.elf().section(code.section).filter(|s| s.is_code());
        let own = section.filter(|s| s.offset as usize == code.range.start && s.size as usize == code.range.len());
        let Some(section) = own else {
            return Err(CubinError::Malformed {
                place: format!("section {} `.text.{}`", code.section, code.name),
                offset: code.range.start as u64,
                what: "this code is not of the image that is patched".to_owned(),
            });
        };
        if bytes.len() != code.range.len() {
            return Err(CubinError::SizeChanged {
                place: section.place(),
                offset: section.offset,
                old: section.size,
                new: bytes.len() as u64,
            });
        }
        self.bytes[code.range.clone()].copy_from_slice(bytes);
        Ok(())
    }

    /// Sets the register count of a section's function: its `EIATTR_REGCOUNT`, and `sh_info` bits 31:24 where they hold one. A kernel's own
    /// maximum, `EIATTR_MAXREG_COUNT`, rises to it where it is less: linkers hold it against what the kernel calls.
    pub fn set_registers(&mut self, code: &Code<'_>, count: u32) -> Result<(), CubinError> {
        let section = &self.image.sections()[code.section];
        let refused = |what: String| CubinError::Malformed {
            place: section.place(),
            offset: section.offset,
            what,
        };
        let byte = u8::try_from(count).map_err(|_| refused(format!("{count} registers are more than 255")))?;
        let symbol = code.function().map(|f| f.symbol as u32);
        let counts = self
            .image
            .global_attributes()?
            .into_iter()
            .filter(|a| a.code == nvinfo::code::REGCOUNT);
        for attribute in counts {
            if matches!(attribute.value()?, Value::SymbolValue { symbol: s, .. } if Some(s) == symbol) {
                let at = attribute.offset as usize + 8;
                self.bytes[at..at + 4].copy_from_slice(&count.to_le_bytes());
            }
        }
        if section.info >> 24 != 0 {
            // `sh_info` is the 12th 32-bit word of a section header; the count is its high byte.
            let header = self.image.header().section_table as usize + 64 * code.section;
            self.bytes[header + 47] = byte;
        }
        if code.most_registers().is_some_and(|most| most < count)
            && let Some(attribute) = code.attribute(nvinfo::code::MAXREG_COUNT)
        {
            // The value of a format without payload is in its head.
            self.bytes[attribute.offset as usize + 2] = byte;
        }
        Ok(())
    }

    /// Overwrites bytes in the payload of an attribute of the image, from a position in it on.
    pub fn set_attribute(&mut self, attribute: &Attribute<'_>, at: usize, bytes: &[u8]) -> Result<(), CubinError> {
        let payload = attribute.offset as usize + 4;
        if at + bytes.len() > attribute.payload.len() {
            return Err(CubinError::Malformed {
                place: format!("attribute EIATTR_{}", attribute.name().unwrap_or("?")),
                offset: attribute.offset,
                what: format!("it has no {} bytes at {at:#x}", bytes.len()),
            });
        }
        self.bytes[payload + at..payload + at + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    /// The patched file.
    pub fn finish(self) -> Vec<u8> {
        self.bytes
    }
}
