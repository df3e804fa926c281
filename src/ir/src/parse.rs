//! Text to kernels: the reader of lit/GRAMMAR.md without LLVM.
//!
//! The word of an instruction says how its text must read; the reader holds the text against it. So a text whose mnemonic, modifiers,
//! immediates or registers disagree with its word is an error at the place where it disagrees.

use std::borrow::Cow;
use std::ops::Range;
use std::str::FromStr;

use isa::{Isa, Target, Word};

use crate::kernel::{Kernel, Room};
use crate::lex::{Cursor, ParseError};
use crate::parse_body::Parser;
use crate::pin::Pin;

pub(crate) type Result<T> = std::result::Result<T, ParseError>;

/// Reads a module.
pub fn parse_module(text: &str) -> Result<Vec<Kernel>> {
    let mut cursor = Cursor::new(text);
    cursor.space();
    let wrapped = cursor.eat("module");
    if wrapped {
        expect(&mut cursor, "{")?;
    }
    let mut kernels = Vec::new();
    loop {
        cursor.space();
        if wrapped && cursor.eat("}") {
            break;
        }
        if !wrapped && cursor.peek().is_none() {
            break;
        }
        if !cursor.eat("sass.func") {
            return Err(cursor.error(if wrapped {
                "expected `sass.func` or `}`"
            } else {
                "expected `module {` or `sass.func`"
            }));
        }
        let (kernel, end) = function(cursor)?;
        cursor.pos = end;
        kernels.push(kernel);
    }
    cursor.space();
    match cursor.peek() {
        None => Ok(kernels),
        Some(_) => Err(cursor.error("expected the end of the text")),
    }
}

pub(crate) fn expect(cursor: &mut Cursor<'_>, text: &str) -> Result<()> {
    cursor.space();
    match cursor.eat(text) {
        true => Ok(()),
        false => Err(cursor.error(format!("expected `{}`", text.trim()))),
    }
}

pub(crate) fn string<'a>(cursor: &mut Cursor<'a>, what: &str) -> Result<Cow<'a, str>> {
    cursor.space();
    cursor
        .string()
        .ok_or_else(|| cursor.error(format!("expected {what} as a string")))
}

/// The registers of all block arguments.
#[derive(Default)]
pub(crate) struct ArgPins {
    pins: Vec<Pin>,
    /// By block: how many its arguments and those of all blocks before have.
    ends: Vec<usize>,
}

impl ArgPins {
    /// The positions of the registers of a block's arguments.
    pub fn of_block(&self, block: u32) -> Range<usize> {
        let end = |block: Option<usize>| block.map_or(Some(0), |b| self.ends.get(b).copied());
        match (end((block as usize).checked_sub(1)), end(Some(block as usize))) {
            (Some(start), Some(end)) => start..end,
            _ => 0..0,
        }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.pins.len()
    }

    /// The register at a position.
    pub fn get(&self, n: usize) -> Option<Pin> {
        self.pins.get(n).copied()
    }
}

/// What stands in the braces behind `attributes`.
#[derive(Default)]
struct Attributes {
    pins: ArgPins,
    sm: Option<Target>,
    tail: Vec<Word>,
}

/// The elements of `[a, b, ...]`, each read by `element`.
fn list<'a>(cursor: &mut Cursor<'a>, mut element: impl FnMut(&mut Cursor<'a>) -> Result<()>) -> Result<()> {
    expect(cursor, "[")?;
    cursor.space();
    if cursor.eat("]") {
        return Ok(());
    }
    loop {
        element(cursor)?;
        if cursor.skip(b", ") {
            continue;
        }
        cursor.space();
        if cursor.eat("]") {
            return Ok(());
        }
        expect(cursor, ",")?;
    }
}

pub(crate) fn pin(cursor: &mut Cursor<'_>) -> Result<Pin> {
    cursor.space();
    let at = cursor.pos;
    let mut exact = cursor.exact();
    if let Some(pin) = exact.pin() {
        cursor.pos = exact.pos;
        return Ok(pin);
    }
    let text = string(cursor, "a register")?;
    Pin::parse(&text)
        .filter(|p| !p.is_zero())
        .ok_or_else(|| cursor.error_at(at, format!("`{text}` is no register")))
}

fn attributes(cursor: &mut Cursor<'_>) -> Result<Attributes> {
    let mut attributes = Attributes::default();
    expect(cursor, "{")?;
    loop {
        cursor.space();
        let at = cursor.pos;
        let key = cursor.identifier();
        expect(cursor, "=")?;
        match key {
            "sm" => {
                let text = string(cursor, "a target")?;
                attributes.sm = Some(Target::from_str(&text).map_err(|e| cursor.error_at(at, e.to_string()))?);
            }
            "pins" => list(cursor, |cursor| {
                let ArgPins { pins, ends } = &mut attributes.pins;
                pins.reserve(32);
                list(cursor, |cursor| {
                    pins.push(pin(cursor)?);
                    Ok(())
                })?;
                ends.push(pins.len());
                Ok(())
            })?,
            "tail" => list(cursor, |cursor| {
                let at = cursor.pos;
                let text = string(cursor, "padding")?;
                let bad = || cursor.error_at(at, "expected \"0x<32 digits>\" or \"0x<32 digits> x<count>\"");
                let (word, count) = match text.split_once(" x") {
                    Some((word, count)) => (word, count.parse::<usize>().map_err(|_| bad())?),
                    None => (&*text, 1),
                };
                let word = Cursor::new(word).word().filter(|_| word.len() == 34).ok_or_else(bad)?;
                if count > 1 << 16 {
                    return Err(bad());
                }
                attributes.tail.extend(std::iter::repeat_n(Word(word), count));
                Ok(())
            })?,
            _ => return Err(cursor.error_at(at, format!("unknown attribute `{key}`; known: pins, sm, tail"))),
        }
        cursor.space();
        if cursor.eat("}") {
            return Ok(attributes);
        }
        expect(cursor, ",")?;
    }
}

/// Enough for a function of usual instructions, as many as the text has left or not too many.
fn room(cursor: &Cursor<'_>) -> Room {
    let ops = (cursor.rest().len() / 128).min(1 << 10);
    Room {
        ops,
        operands: 5 * ops,
        values: 2 * ops,
        blocks: 32.min(ops),
        edges: 32.min(ops),
    }
}

/// Behind `sass.func`; gives the kernel and the position behind it.
fn function(mut cursor: Cursor<'_>) -> Result<(Kernel, usize)> {
    let start = cursor.pos;
    let name = string(&mut cursor, "the kernel's name")?;
    expect(&mut cursor, "attributes")?;
    let attributes = attributes(&mut cursor)?;
    let sm = attributes
        .sm
        .ok_or_else(|| cursor.error_at(start, "the function has no attribute `sm`"))?;
    let isa = Isa::for_target(sm).map_err(|e| cursor.error_at(start, e.to_string()))?;
    expect(&mut cursor, "{")?;
    let mut kernel = Kernel::with_room(name.into_owned(), sm, room(&cursor));
    kernel.tail = attributes.tail;
    Parser::new(cursor, isa, kernel, attributes.pins).body()
}
