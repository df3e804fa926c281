//! Fatbins: the containers in which nvcc puts cubins and PTX for several targets.
//!
//! A fatbin is a 16-byte header (magic, u16 1, u16 16, u64 bytes that follow) and entries. An entry is a header of at
//! least 64 bytes and a payload padded to 8: PTX, a cubin, or a `concat` blob that holds several cubins, each described by
//! a record in the header's extension area. Payloads are stored, LZ4 blocks, or zstd frames. Layout as observed on nvcc
//! 11.8 to 13.5; the extension area is `u32 offset, u32 size` and that many bytes padded to 8, then 8 bytes.

use std::borrow::Cow;
use std::io::Read;

use crate::CubinError;
use crate::bytes::{slice, u16_at, u32_at, u64_at};
use crate::elf::Elf;

/// The first four bytes of a fatbin: 0xBA55ED50, little-endian.
pub const MAGIC: [u8; 4] = [0x50, 0xed, 0x55, 0xba];

/// The largest payload that is decompressed, in bytes: more than any cubin, less than a decompression bomb wants.
pub const MAX_RAW_SIZE: u64 = 1 << 30;

/// Size of the header of a fatbin, in bytes.
pub(crate) const HEADER: u64 = 16;
/// Size of an entry's or record's header without extension, in bytes.
pub(crate) const ENTRY_HEADER: u64 = 64;

/// `Entry::flags`: the payload is an LZ4 block.
pub const FLAG_LZ4: u64 = 0x2000;
/// `Entry::flags`: the payload is a zstd frame.
pub const FLAG_ZSTD: u64 = 0x8000;

/// What an entry holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// 1: PTX text.
    Ptx,
    /// 2: a cubin.
    Cubin,
    /// 0x100: several cubins in one compressed blob.
    Concat,
    /// Anything else (8 is probably LTO-IR).
    Other(u16),
}

impl EntryKind {
    fn from_raw(kind: u16) -> EntryKind {
        match kind {
            1 => EntryKind::Ptx,
            2 => EntryKind::Cubin,
            0x100 => EntryKind::Concat,
            other => EntryKind::Other(other),
        }
    }
}

/// How a payload is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// As it is.
    Stored,
    /// One LZ4 block, no frame.
    Lz4,
    /// One zstd frame.
    Zstd,
}

impl std::fmt::Display for Compression {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Compression::Stored => "stored",
            Compression::Lz4 => "lz4",
            Compression::Zstd => "zstd",
        })
    }
}

/// One image of a concat blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Byte offset of the record itself in the file.
    pub header_offset: u64,
    /// Bytes of the record, extension included.
    pub header_size: u64,
    /// What it is.
    pub kind: EntryKind,
    /// Byte offset in the decompressed blob.
    pub offset: u64,
    /// Bytes in the decompressed blob.
    pub size: u64,
    /// The target's number.
    pub sm: u32,
    /// Flags, as in [`Entry::flags`].
    pub flags: u64,
}

/// One entry of a fatbin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Byte offset of the entry's header in the file.
    pub offset: u64,
    /// Bytes of the header, extension included.
    pub header_size: u64,
    /// What the payload is.
    pub kind: EntryKind,
    /// Bytes that the payload's slot takes in the file.
    pub slot_size: u64,
    /// Bytes of compressed data in the slot; 0 when stored.
    pub compressed_size: u64,
    /// Bytes after decompression; 0 when stored.
    pub raw_size: u64,
    /// Toolkit or PTX version: major, minor.
    pub version: (u16, u16),
    /// The target's number, without suffix.
    pub sm: u32,
    /// 0x11 and more; see [`FLAG_LZ4`] and [`FLAG_ZSTD`].
    pub flags: u64,
    /// The images of a concat blob.
    pub records: Vec<Record>,
}

impl Entry {
    /// Byte offset of the payload in the file.
    pub fn payload_offset(&self) -> u64 {
        self.offset + self.header_size
    }

    /// How the payload is stored, from the flags.
    pub fn compression(&self) -> Compression {
        match (self.flags & FLAG_LZ4 != 0, self.flags & FLAG_ZSTD != 0) {
            (_, true) => Compression::Zstd,
            (true, _) => Compression::Lz4,
            _ => Compression::Stored,
        }
    }

    /// Bytes that its cubins take in memory beside the file: decompressed, and parts of a blob each by itself.
    pub(crate) fn unpacked_size(&self) -> u64 {
        let raw = match (self.kind, self.compression()) {
            (EntryKind::Cubin | EntryKind::Concat, Compression::Lz4 | Compression::Zstd) => self.raw_size,
            _ => 0,
        };
        self.records.iter().fold(raw, |sum, r| sum.saturating_add(r.size))
    }

    /// The payload as it is in the file, without the padding of compressed data. `file` is the file that was parsed.
    pub fn stored<'a>(&self, file: &'a [u8], place: &str) -> Result<&'a [u8], CubinError> {
        let size = match self.compression() {
            Compression::Stored => self.slot_size,
            _ if self.compressed_size != 0 => self.compressed_size,
            _ => self.slot_size,
        };
        slice(file, self.payload_offset(), size, || place.to_owned())
    }

    /// The payload, decompressed. A stored cubin loses the padding behind it.
    pub fn payload<'a>(&self, file: &'a [u8], place: &str) -> Result<Cow<'a, [u8]>, CubinError> {
        let stored = self.stored(file, place)?;
        let failed = |what: String| CubinError::Compression {
            place: place.to_owned(),
            offset: self.payload_offset(),
            what,
        };
        match self.compression() {
            Compression::Stored => {
                let size = match Elf::parse(stored) {
                    Ok(elf) if self.kind == EntryKind::Cubin => elf.file_size().min(stored.len() as u64) as usize,
                    _ => stored.len(),
                };
                Ok(Cow::Borrowed(&stored[..size]))
            }
            Compression::Lz4 => lz4(stored, self.raw_size).map(Cow::Owned).map_err(failed),
            Compression::Zstd => zstd(stored, self.raw_size).map(Cow::Owned).map_err(failed),
        }
    }
}

/// A fatbin in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fatbin {
    /// Byte offset of its magic in the file.
    pub offset: u64,
    /// Bytes, header included.
    pub size: u64,
    /// Its entries in file order.
    pub entries: Vec<Entry>,
}

impl Fatbin {
    /// Cheap test of a place where the magic was seen: version and header size right, and the body within the file.
    pub fn plausible_at(file: &[u8], offset: u64) -> bool {
        let header = slice(file, offset, HEADER, String::new);
        header.is_ok_and(|h| {
            h[..4] == MAGIC
                && u16_at(h, 4) == 1
                && u64::from(u16_at(h, 6)) == HEADER
                && u64_at(h, 8) <= file.len() as u64 - offset - HEADER
        })
    }

    /// True when the first entry of a plausible fatbin is one.
    pub(crate) fn first_entry_is_sound(file: &[u8], offset: u64) -> bool {
        let at = offset.saturating_add(HEADER);
        at < file.len() as u64 && parse_entry(file, at, file.len() as u64, "").is_ok()
    }

    /// Reads the fatbin at `offset` of a file. `place` names it in errors.
    pub fn parse_at(file: &[u8], offset: u64, place: &str) -> Result<Fatbin, CubinError> {
        let malformed = |offset: u64, what: String| CubinError::Malformed {
            place: place.to_owned(),
            offset,
            what,
        };
        let header = slice(file, offset, HEADER, || place.to_owned())?;
        if header[..4] != MAGIC {
            return Err(malformed(offset, "no fatbin magic (50 ed 55 ba)".to_owned()));
        }
        let (version, header_size) = (u16_at(header, 4), u64::from(u16_at(header, 6)));
        if version != 1 || header_size != HEADER {
            return Err(malformed(
                offset + 4,
                format!("fatbin version {version} with a {header_size}-byte header"),
            ));
        }
        let body = u64_at(header, 8);
        slice(file, offset + HEADER, body, || place.to_owned())?;
        // Both lie in the file, so this does not overflow.
        let end = offset + HEADER + body;
        let mut entries = Vec::new();
        let mut at = offset + HEADER;
        while at < end {
            let entry = parse_entry(file, at, end, &format!("{place} entry {}", entries.len() + 1))?;
            at = entry.payload_offset() + entry.slot_size;
            entries.push(entry);
        }
        Ok(Fatbin {
            offset,
            size: HEADER + body,
            entries,
        })
    }
}

/// Reads one entry that must end at or before `end`, which lies in the file.
fn parse_entry(file: &[u8], at: u64, end: u64, place: &str) -> Result<Entry, CubinError> {
    let truncated = |offset: u64, need: u64| CubinError::Truncated {
        place: place.to_owned(),
        offset,
        need,
        have: end.saturating_sub(offset),
    };
    if end - at < ENTRY_HEADER {
        return Err(truncated(at, ENTRY_HEADER));
    }
    let h = slice(file, at, ENTRY_HEADER, || place.to_owned())?;
    let malformed = |offset: u64, what: String| CubinError::Malformed {
        place: place.to_owned(),
        offset,
        what,
    };
    let header_size = u64::from(u32_at(h, 4));
    let slot_size = u64_at(h, 8);
    if header_size < ENTRY_HEADER {
        return Err(malformed(
            at + 4,
            format!("an entry header of {header_size} bytes, less than {ENTRY_HEADER}"),
        ));
    }
    if header_size > end - at {
        return Err(truncated(at, header_size));
    }
    if slot_size > end - at - header_size {
        return Err(truncated(at + header_size, slot_size));
    }
    let mut entry = Entry {
        offset: at,
        header_size,
        kind: EntryKind::from_raw(u16_at(h, 0)),
        slot_size,
        compressed_size: u64::from(u32_at(h, 16)),
        raw_size: u64_at(h, 56),
        version: (u16_at(h, 26), u16_at(h, 24)),
        sm: u32_at(h, 28),
        flags: u64_at(h, 40),
        records: Vec::new(),
    };
    if entry.compressed_size > slot_size {
        let what = format!("{} compressed bytes in a slot of {slot_size}", entry.compressed_size);
        return Err(malformed(at + 16, what));
    }
    if entry.flags & FLAG_LZ4 != 0 && entry.flags & FLAG_ZSTD != 0 {
        return Err(malformed(at + 40, "flagged as LZ4 and as zstd".to_owned()));
    }
    if entry.kind == EntryKind::Concat {
        let extension = u64::from(u32_at(h, 20));
        entry.records = parse_records(file, &entry, extension, place)?;
    }
    Ok(entry)
}

/// Reads the records of a concat entry from its extension: `u32 count, u32 size`, then records that are shaped like entry
/// headers, each with its own extension if it has one.
fn parse_records(file: &[u8], entry: &Entry, extension: u64, place: &str) -> Result<Vec<Record>, CubinError> {
    let malformed = |offset: u64, what: &str| CubinError::Malformed {
        place: place.to_owned(),
        offset,
        what: what.to_owned(),
    };
    let base = entry.offset + extension;
    let room = entry
        .header_size
        .checked_sub(extension)
        .filter(|_| extension >= ENTRY_HEADER);
    let room = room.ok_or_else(|| malformed(entry.offset + 20, "the extension lies outside of the entry header"))?;
    if room < 8 {
        return Err(malformed(base, "the extension is too small for its count"));
    }
    let area = slice(file, base, room, || place.to_owned())?;
    let (count, size) = (u32_at(area, 0), u64::from(u32_at(area, 4)));
    if size > room || size < 8 {
        return Err(malformed(base + 4, "the records do not fit into the entry header"));
    }
    let area = &area[..size as usize];
    let mut records = Vec::new();
    let mut at = 8u64;
    for _ in 0..count {
        let record = slice(area, at, ENTRY_HEADER, String::new)
            .map_err(|_| malformed(base + at, "there are fewer records than the count says"))?;
        let own_extension = u64::from(u32_at(record, 20));
        let header_size = match own_extension {
            0 => ENTRY_HEADER,
            _ => {
                let options = slice(area, at + own_extension, 8, String::new)
                    .map_err(|_| malformed(base + at + 20, "a record's extension lies outside of the records"))?;
                own_extension + 16 + u64::from(u32_at(options, 4)).next_multiple_of(8)
            }
        };
        if header_size < ENTRY_HEADER || header_size > size - at {
            return Err(malformed(
                base + at + 20,
                "a record's extension lies outside of the records",
            ));
        }
        records.push(Record {
            header_offset: base + at,
            header_size,
            kind: EntryKind::from_raw(u16_at(record, 0)),
            offset: u64::from(u32_at(record, 4)),
            size: u64_at(record, 8),
            sm: u32_at(record, 28),
            flags: u64_at(record, 40),
        });
        at += header_size;
    }
    Ok(records)
}

/// Decompresses one LZ4 block of known size.
fn lz4(data: &[u8], raw_size: u64) -> Result<Vec<u8>, String> {
    // A byte of an LZ4 block yields at most 255: what claims more is a lie, and is not worth the memory.
    let most = (data.len() as u64).saturating_mul(255).saturating_add(64);
    if raw_size > MAX_RAW_SIZE || raw_size > most {
        return Err(format!("{} bytes of LZ4 cannot hold {raw_size} bytes", data.len()));
    }
    let raw = lz4_flex::block::decompress(data, raw_size as usize).map_err(|e| format!("LZ4: {e}"))?;
    match raw.len() as u64 == raw_size {
        true => Ok(raw),
        false => Err(format!("LZ4 gave {} bytes, its header says {raw_size}", raw.len())),
    }
}

/// Decompresses one zstd frame of known size.
fn zstd(data: &[u8], raw_size: u64) -> Result<Vec<u8>, String> {
    if raw_size > MAX_RAW_SIZE {
        return Err(format!(
            "{raw_size} bytes after decompression, more than the {MAX_RAW_SIZE} that are read"
        ));
    }
    let decoder = ruzstd::decoding::StreamingDecoder::new(data).map_err(|e| format!("zstd: {e}"))?;
    let mut raw = Vec::with_capacity(raw_size.min(1 << 22) as usize);
    decoder
        .take(raw_size + 1)
        .read_to_end(&mut raw)
        .map_err(|e| format!("zstd: {e}"))?;
    match raw.len() as u64 {
        n if n == raw_size => Ok(raw),
        n if n > raw_size => Err(format!(
            "zstd gives more than the {raw_size} bytes that its header says"
        )),
        n => Err(format!("zstd gave {n} bytes, its header says {raw_size}")),
    }
}
