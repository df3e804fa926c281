//! Text on its way out. Short pieces are copied as whole arrays: what is copied too much is overwritten by the next piece.

use crate::layout::Phrase;
use crate::pin::{Pin, file_type_array};

/// How much text is collected before it goes on.
const ROOM: usize = 1 << 11;
/// The longest array.
const ARRAY: usize = 64;

/// See the module's description.
pub(crate) struct Out {
    text: Vec<u8>,
    /// What is not in `text` yet: `len` bytes; the rest is of no meaning.
    block: Box<[u8; ROOM + ARRAY]>,
    len: usize,
}

impl Out {
    pub fn with_capacity(bytes: usize) -> Out {
        Out {
            text: Vec::with_capacity(bytes),
            block: Box::new([0; ROOM + ARRAY]),
            len: 0,
        }
    }

    /// Lets `write` put many short pieces behind each other.
    #[inline(always)]
    pub fn line(&mut self, write: impl FnOnce(&mut Line<'_>)) {
        let mut line = Line {
            text: &mut self.text,
            block: &mut self.block,
            len: self.len,
        };
        line.make_room();
        write(&mut line);
        self.len = line.len;
    }

    pub fn push(&mut self, byte: u8) {
        self.line(|line| line.array(&[byte], 1));
    }

    pub fn push_str(&mut self, text: &str) {
        self.line(|line| line.text(text));
    }

    /// Appends a whole array, of which `len` bytes count.
    pub fn push_array<const N: usize>(&mut self, array: &[u8; N], len: usize) {
        self.line(|line| line.array(array, len));
    }

    /// A decimal number.
    pub fn decimal(&mut self, value: u32) {
        let (text, len) = decimal(value);
        self.push_array(&text, len);
    }

    /// The text; everything that was pushed must be ASCII.
    pub fn finish(mut self) -> String {
        self.text.extend_from_slice(&self.block[..self.len]);
        String::from_utf8(self.text).unwrap_or_default()
    }
}

impl std::fmt::Write for Out {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.push_str(text);
        Ok(())
    }
}

/// An [`Out`] that is being written. It is small and holds the length itself, so that all of it stays in processor registers.
pub(crate) struct Line<'a> {
    text: &'a mut Vec<u8>,
    block: &'a mut [u8; ROOM + ARRAY],
    len: usize,
}

impl Line<'_> {
    /// Makes sure that there is room for some arrays, a kilobyte together. To be called before every few of them.
    #[inline(always)]
    pub fn make_room(&mut self) {
        if self.len > ROOM - 1024 {
            self.text.extend_from_slice(&self.block[..self.len]);
            self.len = 0;
        }
    }

    /// Appends text of any length. There is room for some arrays behind it.
    pub fn text(&mut self, text: &str) {
        for piece in text.as_bytes().chunks(1024) {
            self.make_room();
            self.block[self.len..self.len + piece.len()].copy_from_slice(piece);
            self.len += piece.len();
        }
        self.make_room();
    }

    /// Appends fixed text. There is room for some arrays behind it.
    #[inline(always)]
    pub fn phrase(&mut self, phrase: &Phrase) {
        self.make_room();
        self.array(&phrase.start, usize::from(phrase.len));
        if !phrase.rest.is_empty() {
            self.text(&phrase.rest);
        }
    }

    /// Appends the types of registers, with commas between them. There is room for some arrays behind them.
    #[inline(always)]
    pub fn types(&mut self, pins: impl Iterator<Item = Pin>) {
        for (k, pin) in pins.enumerate() {
            let (text, len) = file_type_array(pin.file());
            self.array(b", ", if k > 0 { 2 } else { 0 });
            self.array(text, *len);
            self.make_room();
        }
    }

    /// Appends a whole array, of which `len` bytes count.
    #[inline(always)]
    pub fn array<const N: usize>(&mut self, array: &[u8; N], len: usize) {
        const { assert!(N <= ARRAY) };
        debug_assert!(self.len < ROOM);
        // The mask changes nothing and tells the compiler that no check is needed.
        let at = self.len & (ROOM - 1);
        self.block[at..at + N].copy_from_slice(array);
        self.len += len;
    }
}

/// The digits of a number and how many there are.
#[inline]
pub(crate) fn decimal(value: u32) -> ([u8; 10], usize) {
    let mut text = [0u8; 10];
    if value < 10 {
        text[0] = b'0' + value as u8;
        return (text, 1);
    }
    let len = value.checked_ilog10().unwrap_or(0) as usize + 1;
    let mut rest = value;
    for at in (0..len).rev() {
        text[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    (text, len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_follow_each_other() {
        let mut out = Out::with_capacity(0);
        for _ in 0..1000 {
            out.line(|line| {
                line.array(b"quick brown fox jumps", 16);
                line.array(b"quick brown fox", 5);
            });
            out.push_array(b"abc", 2);
            out.push(b' ');
            out.decimal(0);
            out.decimal(u32::MAX);
            out.push_str(";");
        }
        out.push_str(&"long".repeat(ROOM));
        let all = "quick brown fox quickab 04294967295;".repeat(1000) + &"long".repeat(ROOM);
        assert_eq!(out.finish(), all);
    }
}
