//! The text of instructions for C: skeletons with marks for SSA operands, and what nvdisasm writes.

use std::ffi::c_void;

use ir::{Buffer, Sink, walk};
use isa::{FormId, Word};
use plugin::abi::{self, Str, Word as CWord};

use super::{CLayout, guarded, inst};

/// `SASS_MARK`.
const MARK: u8 = 1;

/// Writes an instruction's text with marks, in as few pieces as a small buffer allows.
struct Skeleton {
    label: u32,
    out: abi::Sink,
    user: *mut c_void,
    /// Nothing was written yet: the first text begins with the dialect's name, which C++ writes itself.
    first: bool,
    buffer: [u8; 256],
    len: usize,
}

impl Skeleton {
    fn flush(&mut self) {
        // SAFETY: a function of the header's type.
        unsafe { (self.out)(self.user, self.buffer.as_ptr().cast(), self.len) };
        self.len = 0;
    }

    fn literal(&mut self, text: &[u8]) {
        match std::mem::take(&mut self.first) {
            true => self.push(text.strip_prefix(b"sass.").unwrap_or(text)),
            false => self.push(text),
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        if self.len + bytes.len() > self.buffer.len() {
            self.flush();
        }
        if bytes.len() > self.buffer.len() {
            // SAFETY: a function of the header's type.
            unsafe { (self.out)(self.user, bytes.as_ptr().cast(), bytes.len()) };
            return;
        }
        self.buffer[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }
}

impl Sink for Skeleton {
    type Error = std::convert::Infallible;

    fn lit(&mut self, text: &str) -> Result<(), Self::Error> {
        self.literal(text.as_bytes());
        Ok(())
    }

    fn value(&mut self, operand: usize) -> Result<(), Self::Error> {
        self.push(&[MARK, 0x40 | (operand & 0x3f) as u8, 0x40 | (operand >> 6 & 0x3f) as u8]);
        Ok(())
    }

    fn label(&mut self, first: bool, offset: &Buffer) -> Result<(), Self::Error> {
        if self.label == u32::MAX - 1 {
            return Ok(());
        }
        self.push(if first { b" " } else { b", " });
        if self.label == u32::MAX {
            self.push(b"rel(");
            self.push(offset.as_str().as_bytes());
        } else {
            self.push(b"label(");
            self.push(self.label.to_string().as_bytes());
        }
        self.push(b")");
        Ok(())
    }
}

pub(super) extern "C" fn skeleton(layout: &CLayout, word: CWord, label: u32, out: abi::Sink, user: *mut c_void) {
    guarded((), || {
        if let Some(l) = &layout.layout {
            let mut sink = Skeleton {
                label,
                out,
                user,
                first: true,
                buffer: [0; 256],
                len: 0,
            };
            let Ok(()) = walk(l, Word(word.into()), &mut sink);
            sink.flush();
        }
    });
}

pub(super) extern "C" fn field_name(layout: &CLayout, index: u32) -> Str {
    guarded(Str::new(""), || {
        let form = layout.isa.form(FormId(layout.form));
        let field = form.and_then(|form| form.fields().get(index as usize));
        field.map_or(Str::new(""), |field| Str::new(field.name))
    })
}

pub(super) extern "C" fn modifiers(layout: &CLayout, word: CWord, each: abi::Sink, user: *mut c_void) {
    guarded((), || {
        for token in layout.isa.modifiers(inst(layout, word)) {
            // SAFETY: a function of the header's type.
            unsafe { each(user, token.as_ptr().cast(), token.len()) };
        }
    });
}

pub(super) extern "C" fn text(layout: &CLayout, word: CWord, offset: u64, out: abi::Sink, user: *mut c_void) {
    guarded((), || {
        let mut line = String::new();
        let Ok(()) = layout.isa.write_text(inst(layout, word), offset, &mut line, None) else {
            return;
        };
        // SAFETY: a function of the header's type.
        unsafe { out(user, line.as_ptr().cast(), line.len()) };
    });
}
