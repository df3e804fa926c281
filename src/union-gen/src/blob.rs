//! The packed form: pools of records, each record stored once whoever uses it, every number a varint.
//!
//! Layout: [`MAGIC`], then [`SECTIONS`] section offsets (u32, little endian, from the start), then the sections. A section is a count
//! (u32), `count + 1` record offsets (u32, from the end of the offsets), and the records. `isa` is the only reader.

use std::collections::HashMap;

use crate::bits::Bits;

/// First bytes of the blob; the digit is the layout's version.
pub const MAGIC: &[u8; 8] = b"S2MTAB02";
/// Number of sections: strings, selectors, fields, forms, families, targets, semantics, aliases.
pub const SECTIONS: usize = 8;

/// Records of one kind, each distinct one stored once.
#[derive(Default)]
pub struct Pool {
    index: HashMap<Vec<u8>, u32>,
    records: Vec<Vec<u8>>,
}

impl Pool {
    /// The number of `record`, which is added if it is new.
    pub fn intern(&mut self, record: Vec<u8>) -> u32 {
        if let Some(&id) = self.index.get(&record) {
            return id;
        }
        let id = self.records.len() as u32;
        self.index.insert(record.clone(), id);
        self.records.push(record);
        id
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend((self.records.len() as u32).to_le_bytes());
        let mut offset = 0u32;
        out.extend(offset.to_le_bytes());
        for r in &self.records {
            offset += r.len() as u32;
            out.extend(offset.to_le_bytes());
        }
        self.records.iter().for_each(|r| out.extend(r));
    }
}

/// Appends values to one record.
#[derive(Default)]
pub struct Record(pub Vec<u8>);

impl Record {
    /// An unsigned number, seven bits a byte, least significant first.
    pub fn put(&mut self, value: impl Into<u128>) -> &mut Self {
        let mut v = value.into();
        while v >= 0x80 {
            self.0.push(v as u8 | 0x80);
            v >>= 7;
        }
        self.0.push(v as u8);
        self
    }

    /// A count.
    pub fn len(&mut self, n: usize) -> &mut Self {
        self.put(n as u64)
    }

    /// A signed number, sign in the lowest bit.
    pub fn signed(&mut self, value: i64) -> &mut Self {
        self.put((value.wrapping_shl(1) ^ (value >> 63)) as u64)
    }

    /// A word, 16 bytes.
    pub fn word(&mut self, value: u128) -> &mut Self {
        self.0.extend(value.to_le_bytes());
        self
    }

    /// A bit field: its chunks as (lowest bit, length), least significant chunk first.
    pub fn bits(&mut self, bits: &Bits) -> &mut Self {
        let mut chunks: Vec<(u8, u8)> = Vec::new();
        for &b in &bits.0 {
            match chunks.last_mut() {
                Some((low, len)) if *low + *len == b => *len += 1,
                _ => chunks.push((b, 1)),
            }
        }
        self.len(chunks.len());
        for (low, len) in chunks {
            self.put(low).put(len);
        }
        self
    }
}

/// Puts the sections together.
pub fn assemble(sections: [&Pool; SECTIONS]) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    let table = out.len();
    out.resize(table + 4 * SECTIONS, 0);
    for (i, pool) in sections.into_iter().enumerate() {
        let at = (out.len() as u32).to_le_bytes();
        out[table + 4 * i..table + 4 * i + 4].copy_from_slice(&at);
        pool.write(&mut out);
    }
    out
}
