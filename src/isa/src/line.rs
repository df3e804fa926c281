//! A short buffer in front of a writer, so that an instruction's many small pieces reach it in one call.

use std::fmt::{self, Write};

const SIZE: usize = 256;

/// Collects text; [`Line::flush`] at the end is the caller's duty.
pub(crate) struct Line<'a> {
    out: &'a mut dyn Write,
    buffer: [u8; SIZE],
    len: usize,
}

impl<'a> Line<'a> {
    pub(crate) fn new(out: &'a mut dyn Write) -> Self {
        Self {
            out,
            buffer: [0; SIZE],
            len: 0,
        }
    }

    /// Hands everything on.
    pub(crate) fn flush(&mut self) -> fmt::Result {
        let len = std::mem::take(&mut self.len);
        let text = std::str::from_utf8(&self.buffer[..len]).map_err(|_| fmt::Error)?;
        self.out.write_str(text)
    }

    pub(crate) fn text(&mut self, s: &str) -> fmt::Result {
        if self.len + s.len() > SIZE {
            self.flush()?;
            if s.len() > SIZE {
                return self.out.write_str(s);
            }
        }
        self.buffer[self.len..self.len + s.len()].copy_from_slice(s.as_bytes());
        self.len += s.len();
        Ok(())
    }

    pub(crate) fn decimal(&mut self, mut v: u64) -> fmt::Result {
        let mut digits = [0u8; 20];
        let mut at = digits.len();
        loop {
            at -= 1;
            digits[at] = b'0' + (v % 10) as u8;
            v /= 10;
            if v == 0 {
                break;
            }
        }
        self.text(std::str::from_utf8(&digits[at..]).map_err(|_| fmt::Error)?)
    }

    /// `0x1f`, `-0x20`.
    pub(crate) fn hex(&mut self, v: i64) -> fmt::Result {
        if v < 0 {
            self.text("-")?;
        }
        self.unsigned_hex(v.unsigned_abs())
    }

    /// `0x1f`.
    pub(crate) fn unsigned_hex(&mut self, v: u64) -> fmt::Result {
        let mut digits = [0u8; 18];
        let mut at = digits.len();
        let mut rest = v;
        loop {
            at -= 1;
            digits[at] = b"0123456789abcdef"[(rest & 15) as usize];
            rest >>= 4;
            if rest == 0 {
                break;
            }
        }
        for b in [b'x', b'0'] {
            at -= 1;
            digits[at] = b;
        }
        self.text(std::str::from_utf8(&digits[at..]).map_err(|_| fmt::Error)?)
    }
}

impl Write for Line<'_> {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        self.text(s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_long_text() {
        let mut s = String::new();
        let mut line = Line::new(&mut s);
        for v in [0, 0x1f, -0x20, i64::MIN, i64::MAX] {
            line.hex(v).unwrap();
            line.text(" ").unwrap();
        }
        line.decimal(0).unwrap();
        line.decimal(u64::MAX).unwrap();
        line.text(&"a".repeat(200)).unwrap();
        line.text(&"b".repeat(300)).unwrap();
        line.flush().unwrap();
        let numbers = "0x0 0x1f -0x20 -0x8000000000000000 0x7fffffffffffffff 018446744073709551615";
        assert_eq!(s, format!("{numbers}{}{}", "a".repeat(200), "b".repeat(300)));
    }
}
