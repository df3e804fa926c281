//! Containers with some images replaced.
//!
//! A cubin file becomes the new image; a fatbin file is rebuilt with the new images stored uncompressed; in a host file
//! nothing may move, so a new image must fit into the slot of the old one.

use crate::CubinError;
use crate::bytes::u64_at;
use crate::container::{Container, Kind, Place};
use crate::elf::Elf;
use crate::fatbin::{Compression, Entry, FLAG_LZ4, FLAG_ZSTD, Fatbin, HEADER};
use crate::lz4;

/// A new image for one of a container's: its [`crate::container::ImageEntry::index`] and the bytes.
pub type Replacement<'r> = (usize, &'r [u8]);

impl Container<'_> {
    /// The file with the given images replaced, and every byte that belongs to nothing replaced as it was. An image that
    /// equals the old one is not rewritten. Later replacements of the same image win.
    pub fn rebuild(&self, replacements: &[Replacement<'_>]) -> Result<Vec<u8>, CubinError> {
        let mut new: Vec<Option<&[u8]>> = vec![None; self.slots.len()];
        for &(index, bytes) in replacements {
            let Some(slot) = new.get_mut(index) else {
                return Err(CubinError::Malformed {
                    place: "replacement".to_owned(),
                    offset: 0,
                    what: format!("image {index} does not exist; the file holds {}", self.slots.len()),
                });
            };
            *slot = Some(bytes);
        }
        for (index, new) in new.iter_mut().enumerate().filter(|(_, new)| new.is_some()) {
            // An old image that cannot be read can still be replaced.
            let old = self.image(index).and_then(Result::ok);
            if old.is_some_and(|old| *new == Some(&*old.bytes)) {
                *new = None;
            }
        }
        if new.iter().all(Option::is_none) {
            return Ok(self.bytes.to_vec());
        }
        match self.kind() {
            Kind::Cubin => Ok(new[0].unwrap_or(self.bytes).to_vec()),
            Kind::Fatbin => self.rebuild_fatbins(&new),
            Kind::HostElf | Kind::Archive => self.fill_slots(&new),
        }
    }

    fn rebuild_fatbins(&self, new: &[Option<&[u8]>]) -> Result<Vec<u8>, CubinError> {
        let mut out = Vec::with_capacity(self.bytes.len());
        let mut copied = 0;
        for (f, fatbin) in self.fatbins.iter().enumerate() {
            let start = fatbin.offset as usize;
            out.extend_from_slice(&self.bytes[copied..start]);
            self.rebuild_fatbin(f, fatbin, new, &mut out)?;
            copied = start + fatbin.size as usize;
        }
        out.extend_from_slice(&self.bytes[copied..]);
        Ok(out)
    }

    fn rebuild_fatbin(
        &self,
        f: usize,
        fatbin: &Fatbin,
        new: &[Option<&[u8]>],
        out: &mut Vec<u8>,
    ) -> Result<(), CubinError> {
        let start = out.len();
        let file = self.bytes;
        let header = fatbin.offset as usize;
        out.extend_from_slice(&file[header..header + HEADER as usize]);
        for (e, entry) in fatbin.entries.iter().enumerate() {
            let replaced = self.slots.iter().zip(new).filter_map(|(slot, new)| match slot.place {
                Place::Entry { fatbin, entry, record } if (fatbin, entry) == (f, e) => new.map(|n| (record, n)),
                _ => None,
            });
            let replaced: Vec<(Option<usize>, &[u8])> = replaced.collect();
            let at = entry.offset as usize;
            let payload = entry.payload_offset() as usize;
            match replaced.first() {
                None => out.extend_from_slice(&file[at..payload + entry.slot_size as usize]),
                Some((None, image)) => put_entry(out, &file[at..payload], image),
                Some((Some(_), _)) => self.split_concat(entry, &replaced, &self.fatbin_paths[f], out)?,
            }
        }
        let body = (out.len() - start) as u64 - HEADER;
        out[start + 8..start + 16].copy_from_slice(&body.to_le_bytes());
        Ok(())
    }

    /// Writes each part of a concat entry as an entry of its own, stored: a record is shaped like an entry's header.
    fn split_concat(
        &self,
        entry: &Entry,
        replaced: &[(Option<usize>, &[u8])],
        place: &str,
        out: &mut Vec<u8>,
    ) -> Result<(), CubinError> {
        let blob = entry.payload(self.bytes, place)?;
        for (r, record) in entry.records.iter().enumerate() {
            let header = record.header_offset as usize;
            let header = &self.bytes[header..header + record.header_size as usize];
            let old = crate::bytes::slice(&blob, record.offset, record.size, || {
                format!("{place}, concat part {}", r + 1)
            })?;
            let image = replaced
                .iter()
                .find(|(n, _)| *n == Some(r))
                .map_or(old, |(_, image)| image);
            put_entry(out, header, image);
        }
        Ok(())
    }

    fn fill_slots(&self, new: &[Option<&[u8]>]) -> Result<Vec<u8>, CubinError> {
        let mut out = self.bytes.to_vec();
        for (slot, image) in self.slots.iter().zip(new) {
            let Some(image) = *image else { continue };
            match slot.place {
                Place::Bare { offset, size } => {
                    if image.len() as u64 != size {
                        return Err(does_not_fit(&slot.path, offset, image.len() as u64, size));
                    }
                    out[offset as usize..(offset + size) as usize].copy_from_slice(image);
                }
                Place::Entry {
                    fatbin,
                    entry,
                    record: None,
                } => {
                    let entry = &self.fatbins[fatbin].entries[entry];
                    fill_entry(&mut out, entry, image, &slot.path)?;
                }
                Place::Entry {
                    fatbin,
                    entry,
                    record: Some(_),
                } => {
                    let entry = &self.fatbins[fatbin].entries[entry];
                    return Err(CubinError::Malformed {
                        place: slot.path.clone(),
                        offset: entry.offset,
                        what: "an image in a concat entry of a host file cannot be replaced in place; extract the cubin and \
                               load it separately, or rebuild the program without -concat"
                            .to_owned(),
                    });
                }
            }
        }
        Ok(out)
    }
}

fn does_not_fit(place: &str, offset: u64, need: u64, have: u64) -> CubinError {
    CubinError::DoesNotFit {
        place: place.to_owned(),
        offset,
        need,
        have,
    }
}

/// Appends an entry with a stored payload. `header` is the old header with its extension.
fn put_entry(out: &mut Vec<u8>, header: &[u8], image: &[u8]) {
    let start = out.len();
    out.extend_from_slice(header);
    let padded = image.len().next_multiple_of(8);
    set_entry(
        &mut out[start..],
        header.len() as u32,
        padded as u64,
        Compression::Stored,
        0,
        0,
    );
    out.extend_from_slice(image);
    out.resize(out.len() + padded - image.len(), 0);
}

/// Writes the fields of an entry's header that depend on its payload.
fn set_entry(header: &mut [u8], header_size: u32, slot: u64, compression: Compression, compressed: u32, raw: u64) {
    let flags = u64_at(header, 40) & !(FLAG_LZ4 | FLAG_ZSTD);
    let flags = flags
        | match compression {
            Compression::Stored => 0,
            Compression::Lz4 => FLAG_LZ4,
            Compression::Zstd => FLAG_ZSTD,
        };
    header[4..8].copy_from_slice(&header_size.to_le_bytes());
    header[8..16].copy_from_slice(&slot.to_le_bytes());
    header[16..20].copy_from_slice(&compressed.to_le_bytes());
    header[40..48].copy_from_slice(&flags.to_le_bytes());
    header[56..64].copy_from_slice(&raw.to_le_bytes());
}

/// Puts an image into an entry's slot in the smallest change that fits: the encoding that is there, else another one.
fn fill_entry(out: &mut [u8], entry: &Entry, image: &[u8], place: &str) -> Result<(), CubinError> {
    let at = entry.payload_offset() as usize;
    let slot = entry.slot_size as usize;
    let raw = image.len() as u64;
    let mut smallest = raw;
    let now = entry.compression();
    let mut encodings = Vec::new();
    for compression in [now, Compression::Lz4, Compression::Zstd, Compression::Stored] {
        let efforts: &[usize] = if compression == Compression::Lz4 {
            &lz4::EFFORTS
        } else {
            &[0]
        };
        encodings.extend(efforts.iter().map(|&effort| (compression, effort)));
    }
    let mut tried: Vec<(Compression, usize, usize)> = Vec::new();
    for (compression, effort) in encodings {
        // Not the same again, and not the same with more effort where that cannot bring enough.
        let hopeless =
            |&(c, e, len): &(Compression, usize, usize)| c == compression && (e == effort || len > slot + slot / 16);
        if tried.iter().any(hopeless) {
            continue;
        }
        let data = match compression {
            Compression::Stored => image.to_vec(),
            Compression::Lz4 => lz4::compress(image, effort),
            Compression::Zstd => ruzstd::encoding::compress_to_vec(image, ruzstd::encoding::CompressionLevel::Fastest),
        };
        tried.push((compression, effort, data.len()));
        smallest = smallest.min(data.len() as u64);
        if data.len() > slot {
            continue;
        }
        // Padding of a stored payload that keeps its size stays as it was.
        let keep = compression == Compression::Stored
            && now == Compression::Stored
            && Elf::parse(&out[at..at + slot]).is_ok_and(|old| old.file_size() == raw);
        out[at..at + data.len()].copy_from_slice(&data);
        if !keep {
            out[at + data.len()..at + slot].fill(0);
        }
        let header = &mut out[entry.offset as usize..at];
        let (compressed, raw) = match compression {
            Compression::Stored => (0, 0),
            _ => (data.len() as u32, raw),
        };
        set_entry(
            header,
            entry.header_size as u32,
            entry.slot_size,
            compression,
            compressed,
            raw,
        );
        return Ok(());
    }
    Err(does_not_fit(place, entry.payload_offset(), smallest, entry.slot_size))
}
