//! Line programs whose code moved: `.debug_line`, and `.nv_debug_line_sass`, which has the same format and tells the lines of the PTX.
//!
//! A line program counts addresses forward from one that a relocation fills in. A step of another width is written as ptxas would have
//! written it, so that the way back gives the old bytes; a program whose steps that are to change are written otherwise is refused.

use gimli::{DebugLine, DebugLineOffset, EndianSlice, Format, LittleEndian, Reader as _};

use crate::movement::CodeMove;
use crate::rewrite::Rewrite;

/// Where in a section something is wrong, and what.
pub(crate) type Fault = (usize, String);

/// What an address that the program sets is: `None` if nothing tells, else the section's movement, if it moves, and the offset in it.
pub(crate) type Place<'m> = Option<(Option<&'m CodeMove>, u64)>;

/// What a line program of a section says of its own encoding.
struct Header {
    line_base: i64,
    line_range: i64,
    opcode_base: u8,
    /// Operands of the standard opcodes, from 1.
    operands: Vec<u8>,
}

/// What changes in the section; `place` tells what the 8 bytes at an offset of it, an address that a program sets, stand for.
pub(crate) fn moved<'m>(data: &[u8], place: &dyn Fn(usize) -> Place<'m>) -> Result<Rewrite, Fault> {
    let table = DebugLine::new(data, LittleEndian);
    let mut rewrite = Rewrite::default();
    let mut at = 0;
    while at < data.len() {
        let read = table.program(DebugLineOffset(at), 8, None, None);
        let program = read.map_err(|e| (at, format!("no line program: {e}")))?;
        let unit = program.header();
        if unit.format() != Format::Dwarf32 || unit.minimum_instruction_length() != 1 {
            return Err((at, "a line program of another kind".into()));
        }
        let end = at + 4 + unit.unit_length();
        let buffer = unit.raw_program_buf();
        let header = Header {
            line_base: unit.line_base().into(),
            line_range: unit.line_range().into(),
            opcode_base: unit.opcode_base(),
            operands: unit.standard_opcode_lengths().to_vec(),
        };
        // The length is in front of what changes, and follows from it.
        let mut steps = Rewrite::default();
        let mut reader = Reader {
            data,
            at: end - buffer.len(),
            end,
        };
        header.program(&mut reader, place, &mut steps)?;
        let length = (unit.unit_length() as u32).wrapping_add_signed(steps.growth(at..end) as i32);
        rewrite.replace(at..at + 4, length.to_le_bytes().to_vec());
        rewrite.extend(steps);
        at = end;
    }
    Ok(rewrite)
}

/// What moves while a program is read: the code, and the address that the program is at. `None` where its code stays.
type At<'m> = Option<(&'m CodeMove, u64)>;

/// By how many bytes the step is now over which `at` goes.
fn step(at: &mut At<'_>, bytes: i64, offset: usize) -> Result<i64, Fault> {
    let Some((m, address)) = at else { return Ok(bytes) };
    let next = address.wrapping_add_signed(bytes);
    let (Some(from), Some(to)) = (m.label_at(*address), m.label_at(next)) else {
        return Err((offset, format!("a line at {next:#x}, where there is no instruction")));
    };
    *address = next;
    Ok(to as i64 - from as i64)
}

impl Header {
    fn program<'m>(
        &self,
        r: &mut Reader<'_>,
        place: &dyn Fn(usize) -> Place<'m>,
        rewrite: &mut Rewrite,
    ) -> Result<(), Fault> {
        let mut at: At<'m> = None;
        // The lines gone over by the instruction before, and where that began.
        let mut lines = None;
        while r.at < r.end {
            let start = r.at;
            let before = lines.take();
            match r.byte()? {
                0 => self.extended(r, place, &mut at)?,
                opcode if opcode >= self.opcode_base => {
                    let number = i64::from(opcode - self.opcode_base);
                    let (lines, bytes) = (self.line_base + number % self.line_range, number / self.line_range);
                    let now = step(&mut at, bytes, start)?;
                    change(r, start, self.row(lines, bytes), self.row(lines, now), rewrite)?;
                }
                ADVANCE_LINE => lines = Some((start, r.signed()?)),
                ADVANCE_PC => {
                    let bytes = r.signed()?;
                    let now = step(&mut at, bytes, start)?;
                    match before {
                        Some((start, lines)) if r.peek() == Some(COPY) => {
                            r.byte()?;
                            change(r, start, self.row(lines, bytes), self.row(lines, now), rewrite)?;
                        }
                        _ => change(r, start, advance(bytes), advance(now), rewrite)?,
                    }
                }
                CONST_ADD_PC | FIXED_ADVANCE_PC => {
                    return Err((start, "a step of a kind that ptxas does not write".into()));
                }
                opcode => {
                    for _ in 0..self.operands.get(usize::from(opcode) - 1).copied().unwrap_or(0) {
                        r.unsigned()?;
                    }
                }
            }
        }
        Ok(())
    }

    /// The rest of an extended instruction. Of those that are not known, ptxas has one that names an inlined function.
    fn extended<'m>(
        &self,
        r: &mut Reader<'_>,
        place: &dyn Fn(usize) -> Place<'m>,
        at: &mut At<'m>,
    ) -> Result<(), Fault> {
        let start = r.at;
        let length = r.unsigned()? as usize;
        let next = r.at.checked_add(length).filter(|next| length > 0 && *next <= r.end);
        let next = next.ok_or_else(|| (start, "an instruction reaches past the end".to_owned()))?;
        match r.byte()? {
            END_SEQUENCE => *at = None,
            SET_ADDRESS if length == 9 => {
                let told = place(r.at).ok_or_else(|| (r.at, "an address of no known code".to_owned()))?;
                *at = told.0.map(|m| (m, told.1));
            }
            SET_ADDRESS => return Err((start, "an address that is not of 8 bytes".into())),
            _ => {}
        }
        r.at = next;
        Ok(())
    }

    /// A row so many lines and bytes further, as ptxas writes it.
    fn row(&self, lines: i64, bytes: i64) -> Vec<u8> {
        let above = lines.wrapping_sub(self.line_base);
        if bytes > 0 && (0..self.line_range).contains(&above) {
            let number = self
                .line_range
                .checked_mul(bytes)
                .map(|n| n.saturating_add(above + i64::from(self.opcode_base)));
            if let Some(opcode) = number.and_then(|n| u8::try_from(n).ok()) {
                return vec![opcode];
            }
        }
        let mut out = vec![ADVANCE_LINE];
        put_signed(&mut out, lines);
        out.extend(advance(bytes));
        out.push(COPY);
        out
    }
}

fn advance(bytes: i64) -> Vec<u8> {
    let mut out = vec![ADVANCE_PC];
    put_signed(&mut out, bytes);
    out
}

/// Replaces what was read since `start` if it changes. It has to be written as `old` is.
fn change(r: &Reader<'_>, start: usize, old: Vec<u8>, new: Vec<u8>, rewrite: &mut Rewrite) -> Result<(), Fault> {
    if old == new {
        return Ok(());
    }
    if r.data[start..r.at] != old {
        return Err((start, "a step that is written in another way than by ptxas".into()));
    }
    rewrite.replace(start..r.at, new);
    Ok(())
}

const COPY: u8 = 1;
const ADVANCE_PC: u8 = 2;
const ADVANCE_LINE: u8 = 3;
const CONST_ADD_PC: u8 = 8;
const FIXED_ADVANCE_PC: u8 = 9;
/// Behind a zero and a length.
const END_SEQUENCE: u8 = 1;
const SET_ADDRESS: u8 = 2;

/// Reads a program up to its end.
struct Reader<'a> {
    data: &'a [u8],
    at: usize,
    end: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        (self.at < self.end).then(|| self.data[self.at])
    }

    fn byte(&mut self) -> Result<u8, Fault> {
        let byte = self
            .peek()
            .ok_or_else(|| (self.at, "the program is cut short".to_owned()))?;
        self.at += 1;
        Ok(byte)
    }

    fn number<T>(&mut self, read: impl Fn(&mut EndianSlice<'_, LittleEndian>) -> gimli::Result<T>) -> Result<T, Fault> {
        let mut rest = EndianSlice::new(&self.data[self.at..self.end], LittleEndian);
        let number = read(&mut rest).map_err(|e| (self.at, e.to_string()))?;
        self.at = self.end - rest.len();
        Ok(number)
    }

    fn unsigned(&mut self) -> Result<u64, Fault> {
        self.number(|rest| rest.read_uleb128())
    }

    fn signed(&mut self) -> Result<i64, Fault> {
        self.number(|rest| rest.read_sleb128())
    }
}

/// An LEB128 of as few bytes as hold the number and its sign.
fn put_signed(out: &mut Vec<u8>, mut number: i64) {
    loop {
        let byte = (number & 0x7f) as u8;
        number >>= 7;
        if number == -i64::from(byte & 0x40 != 0) {
            return out.push(byte);
        }
        out.push(byte | 0x80);
    }
}
