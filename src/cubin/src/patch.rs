//! Writing back: code replaced in place, every other byte as it was.

use crate::code::Code;
use crate::{CubinError, Image};

/// A copy of a cubin in which code is replaced. Sizes never change, so nothing else does.
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

    /// The patched file.
    pub fn finish(self) -> Vec<u8> {
        self.bytes
    }
}
