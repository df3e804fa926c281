//! Whatever holds cubins: a cubin, a fatbin, a host program, library, object file or archive.
//!
//! In host ELF files nvcc puts fatbins into `.nv_fatbin` and `__nv_relfatbin` (`.nvFatBinSegment` only points there); other
//! compilers put fatbins or bare cubins into read-only data. So the named sections must hold sound fatbins, and the rest
//! of the file is searched for what looks like one.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memmem;
use object::read::archive::ArchiveFile;
use object::{Object, ObjectSection};

use crate::CubinError;
use crate::bytes::{slice, u16_at};
use crate::elf::{EM_CUDA, Elf};
use crate::fatbin::{self, Compression, EntryKind, Fatbin, MAX_RAW_SIZE};

/// The images of a file may take so many times its size together, if that is more than [`MAX_RAW_SIZE`]: ten times what kernels
/// compress to.
const MOST_GROWTH: u64 = 64;

/// What the file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One cubin.
    Cubin,
    /// A fatbin file.
    Fatbin,
    /// An ELF file for the host: executable, library or object.
    HostElf,
    /// An `ar` archive of them.
    Archive,
}

impl Kind {
    /// What a file is by its first bytes, of which 20 are enough.
    pub fn of(bytes: &[u8]) -> Result<Kind, CubinError> {
        match bytes {
            [0x7f, b'E', b'L', b'F', ..] if u16_at(bytes, 18) == EM_CUDA => Ok(Kind::Cubin),
            [0x7f, b'E', b'L', b'F', ..] => Ok(Kind::HostElf),
            _ if bytes.starts_with(&fatbin::MAGIC) => Ok(Kind::Fatbin),
            _ if bytes.starts_with(b"!<arch>\n") || bytes.starts_with(b"!<thin>\n") => Ok(Kind::Archive),
            _ => Err(CubinError::UnknownFile),
        }
    }
}

/// Where an image lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// A cubin with nothing around it.
    Bare {
        /// Byte offset in the file.
        offset: u64,
        /// Bytes.
        size: u64,
    },
    /// An entry of a fatbin, or one record of a concat entry.
    Entry {
        fatbin: usize,
        entry: usize,
        record: Option<usize>,
    },
}

#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub place: Place,
    pub path: String,
}

/// One cubin in a container.
#[derive(Clone, Debug)]
pub struct ImageEntry<'a> {
    /// Position among the container's images: the key for [`Container::rebuild`].
    pub index: usize,
    /// Where it is, for people: `section .nv_fatbin, fatbin 2 entry 1`. Empty for a plain cubin.
    pub path: String,
    /// The cubin.
    pub bytes: Cow<'a, [u8]>,
    /// How the container stores it.
    pub compression: Compression,
    /// Byte offset of the stored form in the file.
    pub offset: u64,
    /// Bytes that the stored form may take there.
    pub slot_size: u64,
}

/// A file and the cubins found in it.
#[derive(Clone, Debug)]
pub struct Container<'a> {
    pub(crate) bytes: &'a [u8],
    kind: Kind,
    pub(crate) fatbins: Vec<Fatbin>,
    /// For each fatbin how errors and paths name it.
    pub(crate) fatbin_paths: Vec<String>,
    pub(crate) slots: Vec<Slot>,
    /// Bytes that the images take beside the file, when all are decompressed.
    unpacked: u64,
}

impl<'a> Container<'a> {
    /// Finds the cubins in a file. It decompresses nothing yet. No cubin at all is no error: see [`Container::is_empty`].
    pub fn parse(bytes: &'a [u8]) -> Result<Container<'a>, CubinError> {
        let kind = Kind::of(bytes)?;
        let mut found = Container {
            bytes,
            kind,
            fatbins: Vec::new(),
            fatbin_paths: Vec::new(),
            slots: Vec::new(),
            unpacked: 0,
        };
        match kind {
            Kind::Cubin => {
                let size = bytes.len() as u64;
                found.slots.push(Slot {
                    place: Place::Bare { offset: 0, size },
                    path: String::new(),
                });
            }
            Kind::Fatbin => {
                let mut at = 0;
                // Several fatbins in a row happen in files that were cut out of a host file.
                loop {
                    let path = format!("fatbin {}", found.fatbins.len() + 1);
                    at = found.add_fatbin(at, path)?;
                    if !Fatbin::plausible_at(bytes, at) {
                        break;
                    }
                }
            }
            Kind::HostElf => found.add_host_elf(0..bytes.len(), "")?,
            Kind::Archive => found.add_archive()?,
        }
        Ok(found)
    }

    /// What the file is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// True when the file holds no cubin.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// How many cubins the file holds.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// The fatbins, with all their entries (PTX too).
    pub fn fatbins(&self) -> &[Fatbin] {
        &self.fatbins
    }

    /// The cubins in file order, decompressed one after the other. What cannot be decompressed is an error in its place.
    pub fn images(&self) -> Images<'_, 'a> {
        Images {
            container: self,
            next: 0,
            blob: None,
        }
    }

    /// One cubin by its index.
    pub fn image(&self, index: usize) -> Option<Result<ImageEntry<'a>, CubinError>> {
        Images {
            container: self,
            next: index,
            blob: None,
        }
        .next()
    }

    fn add_fatbin(&mut self, offset: u64, path: String) -> Result<u64, CubinError> {
        let parsed = Fatbin::parse_at(self.bytes, offset, &path)?;
        let fatbin = self.fatbins.len();
        for (entry, e) in parsed.entries.iter().enumerate() {
            let number = entry + 1;
            self.unpacked = self.unpacked.saturating_add(e.unpacked_size());
            let most = MAX_RAW_SIZE.max(MOST_GROWTH.saturating_mul(self.bytes.len() as u64));
            if self.unpacked > most {
                return Err(CubinError::Compression {
                    place: format!("{path} entry {number}"),
                    offset: e.offset,
                    what: format!(
                        "the images up to here take {} bytes, of a file that may hold {most}",
                        self.unpacked
                    ),
                });
            }
            match e.kind {
                EntryKind::Cubin => self.slots.push(Slot {
                    place: Place::Entry {
                        fatbin,
                        entry,
                        record: None,
                    },
                    path: format!("{path} entry {number}"),
                }),
                EntryKind::Concat => {
                    for (record, _) in e.records.iter().enumerate().filter(|(_, r)| r.kind == EntryKind::Cubin) {
                        self.slots.push(Slot {
                            place: Place::Entry {
                                fatbin,
                                entry,
                                record: Some(record),
                            },
                            path: format!("{path} entry {number} part {}", record + 1),
                        });
                    }
                }
                EntryKind::Ptx | EntryKind::Other(_) => {}
            }
        }
        let end = parsed.offset + parsed.size;
        self.fatbins.push(parsed);
        self.fatbin_paths.push(path);
        Ok(end)
    }

    /// Adds what is in one host ELF file that lies in `range` of the whole file.
    fn add_host_elf(&mut self, range: Range<usize>, prefix: &str) -> Result<(), CubinError> {
        let file = &self.bytes[range.clone()];
        let base = range.start as u64;
        let sections = host_sections(file, base);
        let name_at = |at: u64| {
            sections
                .iter()
                .find(|(r, _)| r.contains(&at))
                .map_or("", |(_, name)| name.as_str())
        };
        let mut count = 0;
        let mut spans: Vec<Range<u64>> = Vec::new();
        let mut at = base;
        for hit in memmem::find_iter(file, &fatbin::MAGIC) {
            let offset = base + hit as u64;
            if offset < at {
                continue;
            }
            let section = name_at(offset);
            let named = matches!(section, ".nv_fatbin" | "__nv_relfatbin");
            // The magic is also a constant in code that looks for it.
            if !named && !Fatbin::plausible_at(&self.bytes[..range.end], offset) {
                continue;
            }
            count += 1;
            let path = match section {
                "" => format!("{prefix}fatbin {count}"),
                name => format!("{prefix}section {name}, fatbin {count}"),
            };
            match self.add_fatbin(offset, path) {
                Ok(end) => {
                    at = end;
                    spans.push(offset..end);
                }
                // With a sound first entry it is a fatbin, and a broken one; without, it is something else.
                Err(e) if named || Fatbin::first_entry_is_sound(&self.bytes[..range.end], offset) => return Err(e),
                Err(_) => count -= 1,
            }
        }
        let mut count = 0;
        let mut at = base;
        let mut spans = spans.into_iter().peekable();
        for hit in memmem::find_iter(file, b"\x7fELF\x02\x01") {
            let offset = base + hit as u64;
            while spans.peek().is_some_and(|s| s.end <= offset) {
                spans.next();
            }
            if offset < at || spans.peek().is_some_and(|s| s.contains(&offset)) {
                continue;
            }
            let tail = &file[hit..];
            if u16_at(tail, 18) != EM_CUDA {
                continue;
            }
            let Ok(elf) = Elf::parse(tail) else { continue };
            count += 1;
            let size = elf.file_size().min(tail.len() as u64);
            let path = match name_at(offset) {
                "" => format!("{prefix}cubin {count}"),
                name => format!("{prefix}section {name}, cubin {count}"),
            };
            self.slots.push(Slot {
                place: Place::Bare { offset, size },
                path,
            });
            at = offset + size;
        }
        Ok(())
    }

    fn add_archive(&mut self) -> Result<(), CubinError> {
        let malformed = |offset: u64, what: String| CubinError::Malformed {
            place: "archive".to_owned(),
            offset,
            what,
        };
        let bytes = self.bytes;
        let archive = ArchiveFile::parse(bytes).map_err(|e| malformed(0, e.to_string()))?;
        if archive.is_thin() {
            return Err(malformed(
                0,
                "a thin archive: its members are files of their own; name those instead".to_owned(),
            ));
        }
        let mut end = 8;
        for member in archive.members() {
            let member = member.map_err(|e| malformed(end, e.to_string()))?;
            let (offset, size) = member.file_range();
            let data = slice(bytes, offset, size, || "archive member".to_owned())?;
            end = offset + size;
            let prefix = format!("member {}, ", String::from_utf8_lossy(member.name()));
            let range = offset as usize..(offset + size) as usize;
            match Kind::of(data) {
                Ok(Kind::HostElf) => self.add_host_elf(range, &prefix)?,
                Ok(Kind::Cubin) => {
                    let path = prefix.trim_end_matches(", ").to_owned();
                    self.slots.push(Slot {
                        place: Place::Bare { offset, size },
                        path,
                    });
                }
                Ok(Kind::Fatbin) => {
                    self.add_fatbin(offset, format!("{prefix}fatbin 1"))?;
                }
                // Archives in archives and files of other kinds (indices, texts) hold nothing for us.
                Ok(Kind::Archive) | Err(_) => {}
            }
        }
        Ok(())
    }
}

/// The sections of a host file with bytes: where (in the whole file) and their names. Best effort: without a readable
/// section table (a stripped file) the search goes on without names.
fn host_sections(file: &[u8], base: u64) -> Vec<(Range<u64>, String)> {
    let Ok(parsed) = object::File::parse(file) else {
        return Vec::new();
    };
    let mut list = Vec::new();
    for section in parsed.sections() {
        let (Some((offset, size)), Ok(name)) = (section.file_range(), section.name()) else {
            continue;
        };
        if let Some(end) = offset
            .checked_add(size)
            .filter(|&end| size != 0 && end <= file.len() as u64)
        {
            list.push((base + offset..base + end, name.to_owned()));
        }
    }
    list
}

struct Blob<'a> {
    fatbin: usize,
    entry: usize,
    bytes: Cow<'a, [u8]>,
}

/// The cubins of a container.
pub struct Images<'c, 'a> {
    container: &'c Container<'a>,
    next: usize,
    /// The concat blob that was decompressed last.
    blob: Option<Blob<'a>>,
}

impl<'a> Iterator for Images<'_, 'a> {
    type Item = Result<ImageEntry<'a>, CubinError>;

    fn next(&mut self) -> Option<Self::Item> {
        let slot = self.container.slots.get(self.next)?;
        let index = self.next;
        self.next += 1;
        Some(self.load(index, slot))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.container.slots.len() - self.next;
        (left, Some(left))
    }
}

impl<'a> Images<'_, 'a> {
    fn load(&mut self, index: usize, slot: &Slot) -> Result<ImageEntry<'a>, CubinError> {
        let c = self.container;
        let path = slot.path.clone();
        let (fatbin, entry, record) = match slot.place {
            Place::Bare { offset, size } => {
                let bytes = Cow::Borrowed(slice(c.bytes, offset, size, || path.clone())?);
                let compression = Compression::Stored;
                return Ok(ImageEntry {
                    index,
                    path,
                    bytes,
                    compression,
                    offset,
                    slot_size: size,
                });
            }
            Place::Entry { fatbin, entry, record } => (fatbin, entry, record),
        };
        let e = &c.fatbins[fatbin].entries[entry];
        let compression = e.compression();
        let (offset, slot_size) = (e.payload_offset(), e.slot_size);
        let bytes = match record {
            None => e.payload(c.bytes, &path)?,
            Some(record) => {
                let same = |b: &Blob<'_>| (b.fatbin, b.entry) == (fatbin, entry);
                if !self.blob.as_ref().is_some_and(same) {
                    self.blob = Some(Blob {
                        fatbin,
                        entry,
                        bytes: e.payload(c.bytes, &path)?,
                    });
                }
                let blob = self.blob.as_ref().map_or(&[][..], |b| &b.bytes);
                let r = &e.records[record];
                Cow::Owned(slice(blob, r.offset, r.size, || format!("{path}, in the decompressed blob"))?.to_vec())
            }
        };
        Ok(ImageEntry {
            index,
            path,
            bytes,
            compression,
            offset,
            slot_size,
        })
    }
}
