//! The text of instructions for C: skeletons with marks for SSA operands.

use std::ffi::c_void;

use ir::{Buffer, Sink, walk};

use super::{CLayout, CWord, SinkFn, guarded};

/// `SASS_MARK`.
const MARK: u8 = 1;

/// Writes an instruction's text with marks, in as few pieces as a small buffer allows.
struct Skeleton {
    label: u32,
    out: SinkFn,
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

pub(super) extern "C" fn skeleton(layout: &CLayout, word: CWord, label: u32, out: SinkFn, user: *mut c_void) {
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
            let Ok(()) = walk(l, word.into(), &mut sink);
            sink.flush();
        }
    });
}
