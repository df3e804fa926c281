//! `.debug_frame`: call frame information of DWARF, with 64-bit lengths, as ptxas writes it.

use std::collections::HashMap;

use crate::bytes::{u16_at, u32_at, u64_at};
use crate::elf::{Relocation, SymbolSection};
use crate::movement::CodeMove;
use crate::{CubinError, Image};

/// A frame description: byte offsets in the section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    /// Of the function's address; the length of its code is 8 bytes behind.
    pub location: usize,
    /// Of the first instruction of the frame's program, and its end.
    program: (usize, usize),
    /// Bytes of code that an advance by one stands for.
    unit: u64,
    /// Its common entry. Linkers of CUDA 11 and 12 leave some frames with a reference that leads to none.
    common: Option<usize>,
}

/// In front of a 64-bit length.
const LONG: u32 = u32::MAX;
/// In place of the offset of a common entry.
const COMMON: u64 = u64::MAX;

/// The frame descriptions; an error names the byte offset.
pub(crate) fn frames(data: &[u8]) -> Result<Vec<Frame>, (usize, String)> {
    entries(data).map(|(frames, _)| frames)
}

/// A common entry: where it begins and ends, and its unit.
type Common = (usize, usize, u64);

/// The frame descriptions and the common entries.
fn entries(data: &[u8]) -> Result<(Vec<Frame>, Vec<Common>), (usize, String)> {
    let (mut list, mut commons) = (Vec::new(), Vec::<Common>::new());
    let (mut at, mut alike) = (0, true);
    while at + 20 <= data.len() {
        if u32_at(data, at) != LONG {
            return Err((at, "an entry without a 64-bit length".into()));
        }
        let length = u64_at(data, at + 4) as usize;
        let end = at.checked_add(12 + length).filter(|e| length >= 8 && *e <= data.len());
        let end = end.ok_or_else(|| (at, "an entry reaches past the end".to_owned()))?;
        if u64_at(data, at + 12) == COMMON {
            // Version, an empty augmentation, the unit.
            match data.get(at + 20..at + 23) {
                Some(&[_, 0, unit]) if unit < 0x80 => {
                    alike &= commons.last().is_none_or(|c| c.2 == u64::from(unit));
                    commons.push((at, end, unit.into()));
                }
                _ => return Err((at, "a common entry of another kind".into())),
            };
        } else {
            let reference = u64_at(data, at + 12) as usize;
            let own = commons
                .binary_search_by_key(&reference, |c| c.0)
                .ok()
                .map(|n| commons[n]);
            // Any will do where all are of one kind.
            let unit = own.or(commons.last().copied().filter(|_| alike)).map(|c| c.2);
            let program = (at + 36, end);
            if program.0 > end {
                return Err((at, "a frame is cut short".into()));
            }
            list.push(Frame {
                location: at + 20,
                program,
                unit: unit.ok_or_else(|| (at, "a frame without its common entry".to_owned()))?,
                common: own.map(|c| c.0),
            });
        }
        at = end;
    }
    Ok((list, commons))
}

/// The bytes to change in a frame whose code moved, by offset in the section. `value` is the function symbol's, `addend` that of its
/// relocation, or `None` if it is in the section.
pub(crate) fn moved(
    data: &[u8],
    frame: &Frame,
    value: u64,
    addend: Option<i64>,
    m: &CodeMove,
) -> Option<Vec<(usize, Vec<u8>)>> {
    let inline = u64_at(data, frame.location);
    let start = value + addend.map_or(inline, |a| a as u64);
    let end = start + u64_at(data, frame.location + 8);
    let (new_start, new_end) = (m.label_at(start)?, m.label_at(end)?);
    let mut changes = vec![(frame.location + 8, (new_end - new_start).to_le_bytes().to_vec())];
    if addend.is_none() {
        let new = new_start - m.label_at(value)?;
        changes.push((frame.location, new.to_le_bytes().to_vec()));
    }
    let (mut at, stop) = frame.program;
    let (mut old, mut new) = (start, new_start);
    while at < stop {
        let op = data[at];
        at += 1;
        let size = match op {
            0x02 => 1,
            0x03 => 2,
            0x04 => 4,
            0x40..=0x7f => 0,
            _ => {
                at = skip(data, at, op)?;
                continue;
            }
        };
        let delta = match size {
            0 => u64::from(op & 0x3f),
            1 => u64::from(*data.get(at)?),
            2 => u64::from(u16_at(data, at)),
            _ => u64::from(u32_at(data, at)),
        };
        // ptxas also writes steps back, as 32-bit numbers of bytes that wrap.
        old = u64::from((old + delta * frame.unit) as u32);
        let to = m.instruction_at(old)?;
        let advance = u64::from((to as u32).wrapping_sub(new as u32)) / frame.unit;
        new = to;
        let fits = size == 4 || advance < if size == 0 { 0x40 } else { 1 << (8 * size) };
        match size {
            _ if !fits => return None,
            0 => changes.push((at - 1, vec![0x40 | advance as u8])),
            _ => changes.push((at, advance.to_le_bytes()[..size].to_vec())),
        }
        at += size;
    }
    Some(changes)
}

/// The end of an instruction's operands; `None` for an unknown one.
fn skip(data: &[u8], at: usize, op: u8) -> Option<usize> {
    let number = |at: usize| Some(at + data.get(at..)?.iter().position(|b| b & 0x80 == 0)? + 1);
    let block = |at: usize| {
        let end = number(at)?;
        (end == at + 1).then(|| end + usize::from(data[at]))
    };
    match op {
        0x00 | 0x0a | 0x0b => Some(at),
        0x06 | 0x07 | 0x08 | 0x0d | 0x0e | 0x13 | 0x80..=0xbf => number(at),
        0xc0..=0xff => Some(at),
        0x05 | 0x09 | 0x0c | 0x11 | 0x12 | 0x14 => number(number(at)?),
        0x0f => block(at),
        0x10 | 0x16 => block(number(at)?),
        _ => None,
    }
}

/// The registers (of the file that DWARF numbers with 5 in bits 31:24: `R`) that a frame description and its common entry name, or all
/// that could be its; `None` if they cannot be read.
fn registers(data: &[u8], frame: &Frame, commons: &[Common]) -> Option<Vec<u8>> {
    let mut named = Vec::new();
    let own = |c: &&Common| frame.common.is_none_or(|at| at == c.0);
    for (at, end, _) in commons.iter().filter(own) {
        let mut common = Reader { data, at: at + 23 };
        // Behind version, augmentation and unit: the factor of offsets, the return address.
        common.number()?;
        common.number()?;
        program(&mut common, *end, &mut named)?;
    }
    let mut own = Reader {
        data,
        at: frame.program.0,
    };
    program(&mut own, frame.program.1, &mut named)?;
    named.retain(|n| n >> 24 == 5 && n & 0xff_ffff < 0xff);
    Some(named.into_iter().map(|n| n as u8).collect())
}

struct Reader<'a> {
    data: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn byte(&mut self) -> Option<u8> {
        self.at += 1;
        self.data.get(self.at - 1).copied()
    }

    /// An LEB128, whose sign does not matter here.
    fn number(&mut self) -> Option<u64> {
        let (mut value, mut shift) = (0u64, 0);
        loop {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f).checked_shl(shift)?;
            shift += 7;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
    }
}

/// The registers that the instructions up to `end` name.
fn program(r: &mut Reader<'_>, end: usize, named: &mut Vec<u64>) -> Option<()> {
    while r.at < end {
        match r.byte()? {
            0x00 | 0x0a | 0x0b | 0x40..=0x7f => {}
            0x02 => r.at += 1,
            0x03 => r.at += 2,
            0x04 => r.at += 4,
            // The number of a register is part of the instruction, and too small for one of file 5.
            0x80..=0xbf => drop(r.number()?),
            0xc0..=0xff => {}
            0x06 | 0x07 | 0x08 | 0x0d => named.push(r.number()?),
            0x0e | 0x13 => drop(r.number()?),
            0x09 => named.extend([r.number()?, r.number()?]),
            0x05 | 0x0c | 0x11 | 0x12 | 0x14 => {
                named.push(r.number()?);
                r.number()?;
            }
            0x0f => expression(r, named)?,
            0x10 | 0x16 => {
                named.push(r.number()?);
                expression(r, named)?;
            }
            _ => return None,
        }
    }
    (r.at == end).then_some(())
}

/// The registers of an expression: an address, a register and a number, a sum.
fn expression(r: &mut Reader<'_>, named: &mut Vec<u64>) -> Option<()> {
    let length = r.number()? as usize;
    let end = r.at.checked_add(length)?;
    while r.at < end {
        match r.byte()? {
            0x03 => r.at += 8,
            0x22 => {}
            0x92 => {
                named.push(r.number()?);
                r.number()?;
            }
            _ => return None,
        }
    }
    (r.at == end).then_some(())
}

/// The registers that the frames of a section's code name, ascending. Whoever unwinds the stack looks for them by these numbers.
pub fn frame_registers(image: &Image<'_>, code: usize) -> Result<Vec<u8>, CubinError> {
    let mut sections = image.sections().iter();
    let Some(section) = sections.find(|s| s.name == ".debug_frame" && s.has_bytes()).copied() else {
        return Ok(Vec::new());
    };
    let malformed = |at: usize, what: String| CubinError::Malformed {
        place: section.place(),
        offset: section.offset + at as u64,
        what,
    };
    let relocations = image.relocations(section.index)?;
    let data = image.section_data(section.index)?;
    let mut all = Vec::new();
    let (frames, commons) = entries(data).map_err(|(at, what)| malformed(at, what))?;
    let by_offset: HashMap<u64, &Relocation> = relocations.iter().map(|r| (r.offset, r)).collect();
    for frame in frames {
        let relocation = by_offset.get(&(frame.location as u64));
        let symbol = relocation.and_then(|r| image.symbols().get(r.symbol as usize));
        // A frame of nobody knows whom counts too.
        if symbol.is_some_and(|s| s.section != SymbolSection::Section(code)) {
            continue;
        }
        let named = registers(data, &frame, &commons);
        all.extend(
            named.ok_or_else(|| malformed(frame.location, "a frame that cannot be read names registers".into()))?,
        );
    }
    all.sort_unstable();
    all.dedup();
    Ok(all)
}
