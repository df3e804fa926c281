//! `.debug_frame`: call frame information of DWARF, with 64-bit lengths, as ptxas writes it.

use crate::bytes::{u16_at, u32_at, u64_at};
use crate::movement::CodeMove;

/// A frame description: byte offsets in the section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    /// Of the function's address; the length of its code is 8 bytes behind.
    pub location: usize,
    /// Of the first instruction of the frame's program, and its end.
    program: (usize, usize),
    /// Bytes of code that an advance by one stands for.
    unit: u64,
}

/// In front of a 64-bit length.
const LONG: u32 = u32::MAX;
/// In place of the offset of a common entry.
const COMMON: u64 = u64::MAX;

/// The frame descriptions; an error names the byte offset.
pub(crate) fn frames(data: &[u8]) -> Result<Vec<Frame>, (usize, String)> {
    let mut list = Vec::new();
    let mut units = std::collections::HashMap::new();
    let mut at = 0;
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
                Some(&[_, 0, unit]) if unit < 0x80 => units.insert(at as u64, u64::from(unit)),
                _ => return Err((at, "a common entry of another kind".into())),
            };
        } else {
            let unit = units.get(&u64_at(data, at + 12)).copied();
            let program = (at + 36, end);
            if program.0 > end {
                return Err((at, "a frame is cut short".into()));
            }
            list.push(Frame {
                location: at + 20,
                program,
                unit: unit.ok_or_else(|| (at, "a frame without its common entry".to_owned()))?,
            });
        }
        at = end;
    }
    Ok(list)
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
