//! Where everything in a file goes when some of its sections change size.
//!
//! What began at the first place of its alignment behind what is before it, as linkers lay files out, still does; anything else keeps its
//! distance. So the layout follows from the sizes alone: with the old sizes again it is the old one, byte for byte.

use std::ops::Range;

use crate::elf::Segment;
use crate::{CubinError, Image};

/// Bytes of the ELF header, of a section header and of a program header.
const HEADER: u64 = 64;
pub(crate) const SECTION_HEADER: usize = 64;
pub(crate) const PROGRAM_HEADER: usize = 56;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Section(usize),
    SectionTable,
    SegmentTable,
}

/// Something that has a place of its own in the file.
struct Part {
    what: What,
    align: u64,
    /// Byte offset and bytes in the old file.
    old: u64,
    old_size: u64,
    /// The same in the new one.
    new: u64,
    new_size: u64,
}

/// Where everything is, before and now.
pub(crate) struct Relayout {
    /// By old offset; what has no bytes in the file comes before what has.
    parts: Vec<Part>,
    /// Bytes of the old file that are in the new one, and where.
    copies: Vec<(Range<usize>, usize)>,
    size: u64,
}

impl Relayout {
    /// The layout with new sizes of sections, by index. What lies between two sections and is no padding cannot change its size.
    pub fn new(image: &Image<'_>, new_size: impl Fn(usize) -> Option<u64>) -> Result<Relayout, CubinError> {
        let bytes = image.bytes();
        let mut layout = Relayout {
            parts: parts(image, new_size),
            copies: vec![(0..HEADER as usize, 0)],
            size: 0,
        };
        let (mut old_end, mut new_end) = (HEADER, HEADER);
        for part in &mut layout.parts {
            part.new = match old_end.checked_next_multiple_of(part.align) {
                Some(first) if first == part.old => new_end.next_multiple_of(part.align),
                _ => part.old.wrapping_sub(old_end).wrapping_add(new_end),
            };
            let gap = (old_end as usize).min(bytes.len())..(part.old as usize).min(bytes.len());
            let stays = part.new.wrapping_sub(new_end) == part.old.wrapping_sub(old_end);
            let moves_well = part.new.is_multiple_of(part.align) || !part.old.is_multiple_of(part.align);
            if !moves_well || !stays && bytes[gap.clone()].iter().any(|b| *b != 0) {
                return Err(part.refused(
                    image,
                    "what is before it changes its size, and between them is no padding",
                ));
            }
            if stays && !gap.is_empty() {
                layout.copies.push((gap, new_end as usize));
            }
            if part.old_size == part.new_size && part.old_size > 0 {
                let old = part.old as usize..(part.old + part.old_size) as usize;
                layout.copies.push((old, part.new as usize));
            }
            if part.old + part.old_size >= old_end && part.old <= bytes.len() as u64 {
                (old_end, new_end) = (part.old + part.old_size, part.new + part.new_size);
            }
            if new_end > 2 * (bytes.len() as u64 + part.new_size) {
                return Err(part.refused(image, "its alignment would make the file more than twice as large"));
            }
        }
        let rest = (old_end as usize).min(bytes.len())..bytes.len();
        layout.size = new_end + rest.len() as u64;
        layout.copies.push((rest, new_end as usize));
        Ok(layout)
    }

    fn place(&self, what: What) -> Option<u64> {
        Some(self.parts.iter().find(|p| p.what == what)?.new)
    }

    /// Byte offset of a section now.
    pub fn section(&self, index: usize) -> Option<u64> {
        self.place(What::Section(index))
    }

    /// Byte offsets of the section headers and the program headers now.
    pub fn tables(&self) -> (Option<u64>, Option<u64>) {
        (self.place(What::SectionTable), self.place(What::SegmentTable))
    }

    /// Byte offset of a segment and its bytes in the file now. It begins with a section and ends with one; one that takes more memory than
    /// bytes ends with a section that has none.
    pub fn segment(&self, segment: &Segment) -> Option<(u64, u64)> {
        let (start, end) = (segment.offset, segment.offset + segment.file_size);
        let empty = segment.memory_size > segment.file_size;
        let first = self.parts.iter().filter(|p| p.old == start);
        let first = first.min_by_key(|p| (p.old_size == 0) != empty)?.new;
        let last = self.parts.iter().filter(|p| p.old + p.old_size == end);
        let last = last.rev().min_by_key(|p| (p.old_size == 0) != empty)?;
        Some((first, (last.new + last.new_size).checked_sub(first)?))
    }

    /// The new file, but for the sections that changed their size: those are 0.
    pub fn apply(&self, bytes: &[u8]) -> Vec<u8> {
        let mut out = vec![0; self.size as usize];
        for (from, to) in &self.copies {
            out[*to..*to + from.len()].copy_from_slice(&bytes[from.clone()]);
        }
        out
    }
}

fn parts(image: &Image<'_>, new_size: impl Fn(usize) -> Option<u64>) -> Vec<Part> {
    let header = image.header();
    let part = |what, align: u64, old, size, new_size| Part {
        what,
        align: align.max(1),
        old,
        old_size: size,
        new: old,
        new_size,
    };
    let table = |what, at, bytes: usize| part(what, 1, at, bytes as u64, bytes as u64);
    let section_headers = SECTION_HEADER * image.sections().len();
    let mut parts = vec![table(What::SectionTable, header.section_table, section_headers)];
    if !image.segments().is_empty() {
        let segment_headers = PROGRAM_HEADER * image.segments().len();
        parts.push(table(What::SegmentTable, header.segment_table, segment_headers));
    }
    parts.extend(image.sections().iter().skip(1).map(|s| {
        let size = if s.has_bytes() { s.size } else { 0 };
        let now = new_size(s.index).unwrap_or(size);
        part(What::Section(s.index), s.align, s.offset, size, now)
    }));
    parts.sort_by_key(|p| (p.old, p.old_size > 0, p.what));
    parts
}

impl Part {
    fn refused(&self, image: &Image<'_>, what: &str) -> CubinError {
        CubinError::Malformed {
            place: match self.what {
                What::Section(n) => image.sections()[n].place(),
                What::SectionTable => "section headers".to_owned(),
                What::SegmentTable => "program headers".to_owned(),
            },
            offset: self.old,
            what: what.to_owned(),
        }
    }
}
