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
            bytes: vec![0; bytes.max(64)],
            len: 0,
        }
    }

    #[inline]
    fn room(&mut self, bytes: usize) {
        if self.bytes.len() - self.len < bytes {
            self.grow(bytes);
        }
    }

    #[cold]
    fn grow(&mut self, bytes: usize) {
        let size = (self.bytes.len() * 2).max(self.len + bytes);
        self.bytes.resize(size, 0);
    }

    #[inline]
    pub fn push(&mut self, byte: u8) {
        self.room(1);
        self.bytes[self.len] = byte;
        self.len += 1;
    }

    #[inline]
    pub fn push_str(&mut self, text: &str) {
        self.room(text.len());
        self.bytes[self.len..self.len + text.len()].copy_from_slice(text.as_bytes());
        self.len += text.len();
    }

    /// Appends a whole array, of which `len` bytes count.
    #[inline]
    pub fn push_array<const N: usize>(&mut self, array: &[u8; N], len: usize) {
        self.room(N);
        if let Some(to) = self.bytes[self.len..].first_chunk_mut::<N>() {
            *to = *array;
        }
        self.len += len.min(N);
    }

    /// Appends `pool[start..end]`; the pool must have [`PAD`] more bytes.
    #[inline]
    pub fn push_pool(&mut self, pool: &[u8], start: usize, end: usize) {
        self.room(end - start + PAD);
        let mut from = start;
        let mut to = self.len;
        while from < end {
            let (Some(to_chunk), Some(from_chunk)) = (
                self.bytes[to..].first_chunk_mut::<PAD>(),
                pool[from..].first_chunk::<PAD>(),
            ) else {
                break;
            };
            *to_chunk = *from_chunk;
            from += PAD;
            to += PAD;
        }
        self.len += end - start;
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

impl std::io::Write for Out {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.room(bytes.len());
        self.bytes[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
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
            out.push_pool(&pool, 4, 20);
            out.push_pool(&pool, 4, 9);
            out.push_array(b"abc", 2);
            out.push(b' ');
            out.decimal(0);
            out.decimal(u32::MAX);
            out.push_str(";");
        }
        assert_eq!(out.finish(), "quick brown fox quickab 04294967295;".repeat(10));
    }
}
