//! A cursor over the text: white space, comments, names, strings, numbers.

use std::borrow::Cow;

use isa::RegFile;

use crate::pin::{FILES, file_type};
use crate::scan::At;

/// A place in the text and why it cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line}:{column}: {message}")]
pub struct ParseError {
    /// From 1.
    pub line: usize,
    /// From 1, in bytes.
    pub column: usize,
    /// What is wrong, and what would be right.
    pub message: String,
}

/// Reading position.
#[derive(Clone, Copy)]
pub(crate) struct Cursor<'a> {
    text: &'a str,
    pub bytes: &'a [u8],
    pub pos: usize,
}

/// A byte of a `%` or `^` name.
#[inline(always)]
pub(crate) fn is_name_byte(c: u8) -> bool {
    static NAME: [bool; 256] = {
        let mut table = [false; 256];
        let mut c = 0;
        while c < 256 {
            let byte = c as u8;
            table[c] = byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'.' | b'-');
            c += 1;
        }
        table
    };
    NAME[usize::from(c)]
}

fn is_identifier_byte(c: u8) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, b'_' | b'$' | b'.')
}

impl<'a> Cursor<'a> {
    pub fn new(text: &'a str) -> Cursor<'a> {
        Cursor {
            text,
            bytes: text.as_bytes(),
            pos: 0,
        }
    }

    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// This place, to be read as the printer writes it.
    #[inline(always)]
    pub fn exact(&self) -> At<'a> {
        At {
            text: self.bytes,
            pos: self.pos,
        }
    }

    pub fn peek(&self) -> Option<u8> {
        self.bytes.get(self.pos).copied()
    }

    pub fn rest(&self) -> &'a [u8] {
        &self.bytes[self.pos.min(self.bytes.len())..]
    }

    pub fn slice(&self, from: usize, to: usize) -> &'a str {
        self.text.get(from..to).unwrap_or("")
    }

    /// Skips white space and `//` comments.
    pub fn space(&mut self) {
        while let Some(c) = self.peek() {
            match c {
                b' ' | b'\t' | b'\r' | b'\n' => self.pos += 1,
                b'/' if self.bytes.get(self.pos + 1) == Some(&b'/') => {
                    let rest = self.rest();
                    self.pos += memchr::memchr(b'\n', rest).unwrap_or(rest.len());
                }
                _ => return,
            }
        }
    }

    /// Exactly those bytes, whatever follows them.
    #[inline]
    pub fn skip<const N: usize>(&mut self, bytes: &[u8; N]) -> bool {
        let there = self.rest().first_chunk::<N>() == Some(bytes);
        self.pos += if there { N } else { 0 };
        there
    }

    /// A register type.
    pub fn file(&mut self) -> Option<RegFile> {
        let mut cursor = *self;
        if !cursor.skip(b"!sass.") {
            return FILES.into_iter().find(|f| self.eat(file_type(*f)));
        }
        let name = cursor.identifier();
        let file = FILES.into_iter().find(|f| file_type(*f)[6..] == *name)?;
        self.pos = cursor.pos;
        Some(file)
    }

    /// The text, exactly or with other white space between its tokens. Nothing is consumed if it is not there.
    pub fn eat(&mut self, text: &str) -> bool {
        if self.rest().starts_with(text.as_bytes()) {
            let end = self.pos + text.len();
            let splits = |at: usize| {
                let inside = |i: usize| self.bytes.get(i).is_some_and(|c| is_identifier_byte(*c));
                inside(at - 1) && inside(at)
            };
            if end == 0 || !splits(end) {
                self.pos = end;
                return true;
            }
            return false;
        }
        let from = self.pos;
        let mut rest = text.as_bytes();
        loop {
            while let [b' ', tail @ ..] = rest {
                rest = tail;
            }
            let Some(&first) = rest.first() else { return true };
            let len = match first {
                b'"' => rest[1..].iter().position(|c| *c == b'"').map_or(rest.len(), |n| n + 2),
                c if is_identifier_byte(c) => rest.iter().take_while(|c| is_identifier_byte(**c)).count(),
                b'-' if rest.get(1) == Some(&b'>') => 2,
                _ => 1,
            };
            self.space();
            let token = &rest[..len];
            let ends =
                !is_identifier_byte(first) || !self.bytes.get(self.pos + len).is_some_and(|c| is_identifier_byte(*c));
            if !self.rest().starts_with(token) || !ends {
                self.pos = from;
                return false;
            }
            self.pos += len;
            rest = &rest[len..];
        }
    }

    /// A bare identifier, possibly empty.
    pub fn identifier(&mut self) -> &'a str {
        let start = self.pos;
        while self.peek().is_some_and(is_identifier_byte) {
            self.pos += 1;
        }
        self.slice(start, self.pos)
    }

    /// The rest of a `%` or `^` name, possibly empty.
    pub fn name(&mut self) -> &'a str {
        let start = self.pos;
        while self.peek().is_some_and(is_name_byte) {
            self.pos += 1;
        }
        self.slice(start, self.pos)
    }

    /// A decimal number.
    pub fn decimal(&mut self) -> Option<u32> {
        let start = self.pos;
        let mut value = 0u32;
        while let Some(c @ b'0'..=b'9') = self.peek() {
            value = value.checked_mul(10)?.checked_add((c - b'0') as u32)?;
            self.pos += 1;
        }
        (self.pos > start).then_some(value)
    }

    /// Exactly 32 hexadecimal digits behind `0x`.
    pub fn word(&mut self) -> Option<u128> {
        let digits = self.rest().strip_prefix(b"0x")?.first_chunk()?;
        let value = hex_word(digits)?;
        if self.bytes.get(self.pos + 34).is_some_and(|c| is_identifier_byte(*c)) {
            return None;
        }
        self.pos += 34;
        Some(value)
    }

    /// A string literal with MLIR's escapes.
    pub fn string(&mut self) -> Option<Cow<'a, str>> {
        let inside = self.rest().strip_prefix(b"\"")?;
        let special = memchr::memchr3(b'"', b'\\', b'\n', inside)?;
        let start = self.pos + 1;
        if inside[special] == b'"' {
            self.pos = start + special + 1;
            return Some(self.slice(start, start + special).into());
        }
        let mut out = Vec::new();
        let mut at = start;
        loop {
            match *self.bytes.get(at)? {
                b'"' => break,
                b'\n' => return None,
                b'\\' => {
                    let next = *self.bytes.get(at + 1)?;
                    match next {
                        b'\\' | b'"' => out.push(next),
                        b'n' => out.push(b'\n'),
                        b't' => out.push(b'\t'),
                        _ => {
                            let (hi, lo) = (HEX[next as usize], HEX[*self.bytes.get(at + 2)? as usize]);
                            if hi > 15 || lo > 15 {
                                return None;
                            }
                            out.push(hi << 4 | lo);
                            at += 1;
                        }
                    }
                    at += 2;
                }
                c => {
                    out.push(c);
                    at += 1;
                }
            }
        }
        self.pos = at + 1;
        String::from_utf8(out).ok().map(Cow::Owned)
    }

    /// An error at a position.
    #[cold]
    #[inline(never)]
    pub fn error_at(&self, pos: usize, message: impl Into<String>) -> ParseError {
        let pos = pos.min(self.bytes.len());
        let line = memchr::memchr_iter(b'\n', &self.bytes[..pos]).count() + 1;
        let column = pos - memchr::memrchr(b'\n', &self.bytes[..pos]).map_or(0, |n| n + 1) + 1;
        ParseError {
            line,
            column,
            message: message.into(),
        }
    }

    /// An error here.
    #[cold]
    #[inline(never)]
    pub fn error(&self, message: impl Into<String>) -> ParseError {
        self.error_at(self.pos, message)
    }
}

/// The value of 32 hexadecimal digits. Without branches or tables, so that it becomes vector code.
pub(crate) fn hex_word(digits: &[u8; 32]) -> Option<u128> {
    let mut values = [0u8; 32];
    let mut wrong = false;
    for (value, c) in values.iter_mut().zip(digits) {
        let (digit, letter) = (c.wrapping_sub(b'0'), (c | 0x20).wrapping_sub(b'a'));
        *value = if digit < 10 { digit } else { letter.wrapping_add(10) };
        wrong |= digit > 9 && letter > 5;
    }
    let mut bytes = [0u8; 16];
    for (byte, pair) in bytes.iter_mut().zip(values.chunks_exact(2)) {
        *byte = pair[0] << 4 | pair[1];
    }
    (!wrong).then_some(u128::from_be_bytes(bytes))
}

/// Value of a hexadecimal digit, 255 for any other byte.
static HEX: [u8; 256] = {
    let mut table = [255; 256];
    let mut i = 0;
    while i < 10 {
        table[b'0' as usize + i] = i as u8;
        i += 1;
    }
    let mut i = 0;
    while i < 6 {
        table[b'a' as usize + i] = 10 + i as u8;
        table[b'A' as usize + i] = 10 + i as u8;
        i += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_and_comments_may_differ() {
        let mut cursor = Cursor::new("foo (  // comment\n bar, 0x10)x");
        assert!(!cursor.eat("foo(bar, 0x1"));
        assert!(cursor.eat("foo(bar, 0x10)"));
        assert_eq!(cursor.rest(), b"x");
        assert!(!Cursor::new("foobar").eat("foo"));
        assert!(!Cursor::new("foo.FTZ").eat("foo"));
    }

    #[test]
    fn strings_and_words() {
        assert_eq!(Cursor::new(r#""a\22b\\c\0A""#).string().as_deref(), Some("a\"b\\c\n"));
        assert_eq!(Cursor::new("\"open").string(), None);
        assert_eq!(
            Cursor::new("0x000fe2000c1e1d0000000384fffff981 ").word(),
            Some(0x000fe2000c1e1d0000000384fffff981)
        );
        assert_eq!(Cursor::new("0x000fe2000c1e1d0000000384fffff9811").word(), None);
        assert_eq!(Cursor::new("0x00").word(), None);
    }

    #[test]
    fn errors_name_line_and_column() {
        let cursor = Cursor::new("ab\ncd");
        assert_eq!(cursor.error_at(4, "x").to_string(), "2:2: x");
        assert_eq!(cursor.error_at(99, "x").to_string(), "2:3: x");
    }
}
