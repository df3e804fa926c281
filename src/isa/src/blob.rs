//! Reads the packed tables; the layout is described where it is written, in `union-gen`'s `blob.rs`.

use crate::field::Bits;

static TABLES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/tables.bin"));
const MAGIC: &[u8; 8] = b"S2MTAB02";

/// Sections of the blob, in order.
#[derive(Clone, Copy)]
pub(crate) enum Section {
    Strings,
    Selectors,
    Fields,
    Forms,
    Families,
    Targets,
    Semantics,
    Aliases,
}

fn u32_at(at: usize) -> usize {
    match TABLES.get(at..at + 4) {
        Some(b) => u32::from_le_bytes([b[0], b[1], b[2], b[3]]) as usize,
        None => 0,
    }
}

fn section(s: Section) -> usize {
    u32_at(MAGIC.len() + 4 * s as usize)
}

/// Whether the embedded blob has the layout that this code reads.
pub(crate) fn is_known() -> bool {
    TABLES.starts_with(MAGIC)
}

/// Records in a section.
pub(crate) fn count(s: Section) -> usize {
    u32_at(section(s))
}

fn bytes(s: Section, id: usize) -> &'static [u8] {
    let base = section(s);
    let n = u32_at(base);
    if id >= n {
        return &[];
    }
    let offsets = base + 4;
    let data = offsets + 4 * (n + 1);
    let (from, to) = (u32_at(offsets + 4 * id), u32_at(offsets + 4 * (id + 1)));
    TABLES.get(data + from..data + to).unwrap_or_default()
}

/// One record.
pub(crate) fn record(s: Section, id: usize) -> Reader {
    Reader(bytes(s, id))
}

/// One string.
pub(crate) fn string(id: usize) -> &'static str {
    std::str::from_utf8(bytes(Section::Strings, id)).unwrap_or_default()
}

/// Takes values off the front of a record; past its end everything is 0.
pub(crate) struct Reader(&'static [u8]);

impl Reader {
    fn varint(&mut self) -> u128 {
        let mut value = 0;
        let mut shift = 0;
        while let Some((&b, rest)) = self.0.split_first() {
            self.0 = rest;
            value |= u128::from(b & 0x7f).wrapping_shl(shift);
            if b & 0x80 == 0 {
                break;
            }
            shift += 7;
        }
        value
    }

    pub(crate) fn u128(&mut self) -> u128 {
        self.varint()
    }

    pub(crate) fn u64(&mut self) -> u64 {
        self.varint() as u64
    }

    pub(crate) fn u8(&mut self) -> u8 {
        self.varint() as u8
    }

    pub(crate) fn size(&mut self) -> usize {
        self.varint() as usize
    }

    pub(crate) fn flag(&mut self) -> bool {
        self.varint() != 0
    }

    pub(crate) fn signed(&mut self) -> i64 {
        let v = self.u64();
        (v >> 1) as i64 ^ -((v & 1) as i64)
    }

    pub(crate) fn word(&mut self) -> u128 {
        match self.0.split_first_chunk::<16>() {
            Some((chunk, rest)) => {
                self.0 = rest;
                u128::from_le_bytes(*chunk)
            }
            None => 0,
        }
    }

    pub(crate) fn string(&mut self) -> &'static str {
        string(self.size())
    }

    pub(crate) fn bits(&mut self) -> Bits {
        let n = self.size();
        Bits::new((0..n).map(|_| (self.u8(), self.u8())).collect())
    }

    /// A counted list.
    pub(crate) fn list<T>(&mut self, mut one: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let n = self.size();
        (0..n).map(|_| one(self)).collect()
    }
}
