//! A byte buffer for text. Short pieces are copied sixteen bytes at a time: what is copied too much is overwritten by the next piece.

/// Bytes that must be readable behind a piece in a pool.
pub(crate) const PAD: usize = 16;

/// See the module's description.
pub(crate) struct Out {
    /// Everything behind `len` is of no meaning.
    bytes: Vec<u8>,
    len: usize,
}

impl Out {
    pub fn with_capacity(bytes: usize) -> Out {
        Out {
            bytes: vec![0; bytes],
            len: 0,
        }
    }

    #[cold]
    fn grow(&mut self, bytes: usize) {
        self.bytes.resize(self.len + self.len / 2 + bytes, 0);
    }

    /// Lets `write` fill in a line of at most `bytes` bytes, the chunks that reach over its end included.
    #[inline]
    pub fn line(&mut self, bytes: usize, write: impl FnOnce(&mut Line<'_>)) {
        if self.bytes.len() - self.len < bytes {
            self.grow(bytes);
        }
        let mut line = Line {
            bytes: &mut self.bytes[self.len..],
            len: 0,
        };
        write(&mut line);
        self.len += line.len;
    }

    pub fn push(&mut self, byte: u8) {
        self.push_str_bytes(&[byte]);
    }

    pub fn push_str(&mut self, text: &str) {
        self.push_str_bytes(text.as_bytes());
    }

    fn push_str_bytes(&mut self, bytes: &[u8]) {
        if self.bytes.len() - self.len < bytes.len() {
            self.grow(bytes.len());
        }
        self.bytes[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }

    /// Appends a whole array, of which `len` bytes count.
    pub fn push_array<const N: usize>(&mut self, array: &[u8; N], len: usize) {
        self.line(N, |line| line.array(array, len));
    }

    /// A decimal number.
    pub fn decimal(&mut self, value: u32) {
        let (text, len) = decimal(value);
        self.push_array(&text, len);
    }

    /// The text; everything that was pushed must be ASCII.
    pub fn finish(mut self) -> String {
        self.bytes.truncate(self.len);
        String::from_utf8(self.bytes).unwrap_or_default()
    }
}

impl std::fmt::Write for Out {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.push_str(text);
        Ok(())
    }
}

/// A piece of an [`Out`] that is being written; what does not fit is left out. It is small and holds its own length, so that both stay in
/// processor registers while many short pieces are put behind each other.
pub(crate) struct Line<'a> {
    bytes: &'a mut [u8],
    len: usize,
}

impl Line<'_> {
    /// Appends a whole array, of which `len` bytes count.
    #[inline(always)]
    pub fn array<const N: usize>(&mut self, array: &[u8; N], len: usize) {
        if let Some(to) = self.bytes.get_mut(self.len..).and_then(|b| b.first_chunk_mut()) {
            *to = *array;
            self.len += len;
        }
    }

    /// Appends `pool[start..end]`; the pool must have [`PAD`] more bytes.
    #[inline(always)]
    pub fn pool(&mut self, pool: &[u8], start: usize, end: usize) {
        let mut from = start;
        while from < end {
            let Some(chunk) = pool.get(from..).and_then(|p| p.first_chunk::<PAD>()) else {
                return;
            };
            self.array(chunk, PAD.min(end - from));
            from += PAD;
        }
    }
}

/// The digits of a number and how many there are.
#[inline]
pub(crate) fn decimal(value: u32) -> ([u8; 10], usize) {
    let mut text = [0u8; 10];
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
        let mut pool = b"the quick brown fox jumps".to_vec();
        pool.resize(pool.len() + PAD, 0);
        for _ in 0..10 {
            out.line(64, |line| {
                line.pool(&pool, 4, 20);
                line.pool(&pool, 4, 9);
            });
            out.push_array(b"abc", 2);
            out.push(b' ');
            out.decimal(0);
            out.decimal(u32::MAX);
            out.push_str(";");
        }
        assert_eq!(out.finish(), "quick brown fox quickab 04294967295;".repeat(10));
    }
}
