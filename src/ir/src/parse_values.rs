//! Names of values: what they stand for, what they must be, and what is used before it is defined.

use isa::RegFile;

use crate::kernel::ValueId;
use crate::lex::is_name_byte;
use crate::parse::{Result, expect};
use crate::parse_body::Parser;
use crate::pin::{Pin, file_type};
use crate::print::constant_name;

/// The values that one name stands for.
#[derive(Clone, Copy)]
pub(crate) struct Group {
    pub first: u32,
    /// 0 until it is defined.
    pub count: u16,
    /// The register of the first value.
    pub pin: Pin,
}

pub(crate) const UNDEFINED: Group = Group {
    first: 0,
    count: 0,
    pin: Pin::R0,
};
/// Block arguments are numbered from here until the number of results is known.
pub(crate) const ARG: u32 = 1 << 31;

/// What a value must be, by the word or by a type.
#[derive(Clone, Copy)]
pub(crate) enum Expect {
    Any,
    Pin(Pin),
    File(RegFile),
}

/// A value that is used before it is defined.
pub(crate) struct Pending {
    pub expect: Expect,
    /// In edge arguments, else in operands.
    pub edge: bool,
    pub at: u32,
    pub name: u32,
    pub sub: u32,
    pub pos: usize,
}

/// In `operands`: the n-th of `pending`.
const PENDING: u32 = 1 << 30;

/// Names that need no table: the constants, as the printer calls them.
pub(crate) const CONSTANTS: [RegFile; 4] = [RegFile::R, RegFile::UR, RegFile::P, RegFile::UP];

impl Parser<'_> {
    /// `%12`, without `#1`: a key into `numbered`, or with the top bit set into `named`.
    pub fn value_name(&mut self) -> Result<u32> {
        if self.cursor.peek() != Some(b'%') {
            return Err(self.cursor.error("expected a value"));
        }
        self.cursor.pos += 1;
        let mut at = self.cursor.exact();
        let number = at.decimal().filter(|_| !at.peek().is_some_and(is_name_byte));
        if let Some(number) = number.filter(|n| self.number(*n).is_some()) {
            self.cursor.pos = at.pos;
            return Ok(number);
        }
        let name = self.cursor.name();
        if name.is_empty() {
            return Err(self.cursor.error("expected the name of a value"));
        }
        if let Some(constant) = CONSTANTS.iter().position(|f| constant_name(*f) == name) {
            return Ok(constant as u32 | ARG);
        }
        let next = self.named.len() as u32;
        let id = *self.names.entry(name).or_insert(next);
        if id == next {
            self.named.push(UNDEFINED);
        }
        Ok(id | ARG)
    }

    /// Makes room for the value of that number; `None` for a number that no printed text of this size has.
    pub fn number(&mut self, number: u32) -> Option<()> {
        let there = (number as usize) < self.cursor.len();
        if there && number as usize >= self.numbered.len() {
            self.numbered.resize(number as usize + 1, UNDEFINED);
        }
        there.then_some(())
    }

    pub fn group(&mut self, name: u32) -> &mut Group {
        match name & ARG {
            0 => &mut self.numbered[name as usize],
            _ => &mut self.named[(name & !ARG) as usize],
        }
    }

    pub fn define(&mut self, name: u32, first: u32, count: u16, pin: Pin, pos: usize) -> Result<()> {
        let group = self.group(name);
        if group.count != 0 {
            return Err(self.cursor.error_at(pos, "the value is defined twice"));
        }
        *group = Group { first, count, pin };
        Ok(())
    }

    /// A use of a value: its id, or its place in `pending` with the bit `PENDING`.
    pub fn value_use(&mut self) -> Result<u32> {
        let pos = self.cursor.pos;
        let name = self.value_name()?;
        let mut sub = 0;
        let mut indexed = false;
        if self.cursor.peek() == Some(b'#') {
            self.cursor.pos += 1;
            sub = self
                .cursor
                .decimal()
                .ok_or_else(|| self.cursor.error("expected the position of a result"))?;
            indexed = true;
        }
        let group = *self.group(name);
        if group.count == 0 {
            self.pending.push(Pending {
                expect: Expect::Any,
                edge: false,
                at: 0,
                name,
                sub,
                pos,
            });
            return Ok(PENDING | (self.pending.len() as u32 - 1));
        }
        self.pick(group, sub, indexed, pos)
    }

    pub fn pick(&self, group: Group, sub: u32, indexed: bool, pos: usize) -> Result<u32> {
        if sub >= u32::from(group.count) {
            return Err(self
                .cursor
                .error_at(pos, format!("the operation has only {} results", group.count)));
        }
        if !indexed && group.count > 1 {
            return Err(self.cursor.error_at(
                pos,
                format!("one of {} results is meant: write `#0` behind it", group.count),
            ));
        }
        Ok(group.first + sub)
    }

    /// Stores a value that was read at the end of the operands or edge arguments, and holds it against what is expected.
    pub fn store(&mut self, value: u32, edge: bool, expect: Expect, pos: usize) -> Result<()> {
        let list = if edge {
            &mut self.kernel.edge_args
        } else {
            &mut self.kernel.operands
        };
        let at = list.len() as u32;
        list.push(ValueId(value));
        if value & (PENDING | ARG) == PENDING {
            let pending = &mut self.pending[(value & !PENDING) as usize];
            (pending.edge, pending.at, pending.expect) = (edge, at, expect);
            return Ok(());
        }
        self.agrees(self.pin_of(value), expect, pos)
    }

    /// The register of a defined value.
    pub fn pin_of(&self, value: u32) -> Pin {
        match value & ARG {
            0 => self.kernel.pins[value as usize],
            _ => self.arg_pins[(value & !ARG) as usize],
        }
    }

    #[inline]
    pub fn agrees(&self, pin: Pin, expect: Expect, pos: usize) -> Result<()> {
        match expect {
            Expect::Pin(p) if p != pin => {
                let message = format!("the word reads {p} where the text has a value in {pin}");
                Err(self.cursor.error_at(pos, message))
            }
            Expect::File(f) if f != pin.file() => {
                let message = format!("the value is in {pin}, which is no {}", file_type(f));
                Err(self.cursor.error_at(pos, message))
            }
            _ => Ok(()),
        }
    }

    /// Defines the results of the current operation: the last `count` values.
    pub fn results(&mut self, results: Option<(u32, u16)>, count: usize, pos: usize) -> Result<()> {
        let first = self.kernel.pins.len() - count;
        match results {
            Some((name, n)) if usize::from(n) == count => {
                let pin = self.kernel.pins[first];
                self.define(name, first as u32, n, pin, pos)
            }
            None if count == 0 => Ok(()),
            _ => {
                let written = results.map_or(0, |r| r.1);
                Err(self
                    .cursor
                    .error_at(pos, format!("the operation has {count} results, not {written}")))
            }
        }
    }

    /// `%1, %2 : !sass.reg, !sass.pred)` behind the parenthesis.
    pub fn typed_values(&mut self, edge: bool) -> Result<u32> {
        if let Some(count) = self.exact_typed_values(edge) {
            return Ok(count);
        }
        let pos = self.cursor.pos;
        let mut values = std::mem::take(&mut self.operands);
        values.clear();
        loop {
            self.cursor.space();
            values.push(self.value_use()?);
            self.cursor.space();
            if self.cursor.skip(b":") {
                break;
            }
            expect(&mut self.cursor, ",")?;
        }
        for (k, &value) in values.iter().enumerate() {
            if k > 0 {
                expect(&mut self.cursor, ",")?;
            }
            self.cursor.space();
            let file = self
                .cursor
                .file()
                .ok_or_else(|| self.cursor.error("expected a register type"))?;
            self.store(value, edge, Expect::File(file), pos)?;
        }
        let count = values.len() as u32;
        self.operands = values;
        expect(&mut self.cursor, ")")?;
        Ok(count)
    }
}
