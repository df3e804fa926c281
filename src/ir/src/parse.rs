//! Text to kernels: the reader of lit/GRAMMAR.md without LLVM.
//!
//! The word of an instruction says how its text must read; the reader holds the text against it. So a text whose mnemonic, modifiers,
//! immediates or registers disagree with its word is an error at the place where it disagrees.

use std::collections::HashMap;
use std::str::FromStr;

use isa::{Isa, RegFile, Target, Word};

use crate::check;
use crate::kernel::{BlockId, Edge, Kernel, NONE, OpKind, SUCCESSOR, ValueId};
use crate::layout::{Flow, Layout, Layouts};
use crate::lex::{Cursor, ParseError};
use crate::pin::{FILES, Pin, file_type};
use crate::print::constant_op;
use crate::syntax::{Sink, walk};

type Result<T> = std::result::Result<T, ParseError>;

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

fn expect(cursor: &mut Cursor<'_>, text: &str) -> Result<()> {
    cursor.space();
    match cursor.eat(text) {
        true => Ok(()),
        false => Err(cursor.error(format!("expected `{}`", text.trim()))),
    }
}

fn string(cursor: &mut Cursor<'_>, what: &str) -> Result<String> {
    cursor.space();
    cursor
        .string()
        .ok_or_else(|| cursor.error(format!("expected {what} as a string")))
}

/// What stands in the braces behind `attributes`.
#[derive(Default)]
struct Attributes {
    pins: Vec<Vec<Pin>>,
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
        cursor.space();
        if cursor.eat("]") {
            return Ok(());
        }
        expect(cursor, ",")?;
    }
}

fn pin(cursor: &mut Cursor<'_>) -> Result<Pin> {
    cursor.space();
    let at = cursor.pos;
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
                let mut pins = Vec::new();
                list(cursor, |cursor| {
                    pins.push(pin(cursor)?);
                    Ok(())
                })?;
                attributes.pins.push(pins);
                Ok(())
            })?,
            "tail" => list(cursor, |cursor| {
                let at = cursor.pos;
                let text = string(cursor, "padding")?;
                let bad = || cursor.error_at(at, "expected \"0x<32 digits>\" or \"0x<32 digits> x<count>\"");
                let (word, count) = match text.split_once(" x") {
                    Some((word, count)) => (word, count.parse::<usize>().map_err(|_| bad())?),
                    None => (text.as_str(), 1),
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

/// The values that one name stands for.
#[derive(Clone, Copy)]
struct Group {
    first: u32,
    count: u32,
}

const UNDEFINED: Group = Group { first: 0, count: 0 };
/// Block arguments are numbered from here until the number of results is known.
const ARG: u32 = 1 << 31;

/// A value that is used before it is defined.
struct Pending {
    /// In edge arguments, else in operands.
    edge: bool,
    at: u32,
    name: u32,
    sub: u32,
    pos: usize,
}

struct Parser<'a> {
    cursor: Cursor<'a>,
    isa: &'static Isa,
    layouts: Layouts,
    kernel: Kernel,
    /// Values by name: numbers first, then other names.
    numbered: Vec<Group>,
    named: Vec<Group>,
    names: HashMap<&'a str, u32>,
    block_names: HashMap<&'a str, u32>,
    /// Block of each block name, `NONE` until it is defined.
    blocks: Vec<u32>,
    block_uses: Vec<usize>,
    arg_pins: Vec<Pin>,
    pins: Vec<Vec<Pin>>,
    pending: Vec<Pending>,
    /// Position of each operation.
    positions: Vec<usize>,
    /// The operands of the operation that is being read.
    operands: Vec<u32>,
    label: u32,
}

/// In `operands`: the n-th of `pending`.
const PENDING: u32 = 1 << 30;

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
    let mut kernel = Kernel::empty(name, sm);
    kernel.tail = attributes.tail;
    let parser = Parser {
        cursor,
        isa,
        layouts: Layouts::new(isa, sm),
        kernel,
        numbered: Vec::new(),
        named: Vec::new(),
        names: HashMap::new(),
        block_names: HashMap::new(),
        blocks: Vec::new(),
        block_uses: Vec::new(),
        arg_pins: Vec::new(),
        pins: attributes.pins,
        pending: Vec::new(),
        positions: Vec::new(),
        operands: Vec::new(),
        label: NONE,
    };
    parser.body()
}

impl<'a> Parser<'a> {
    fn body(mut self) -> Result<(Kernel, usize)> {
        let mut block = 0u32;
        let mut first = true;
        loop {
            self.cursor.space();
            match self.cursor.peek() {
                Some(b'}') => break,
                Some(b'^') => {
                    if !first {
                        self.end_block()?;
                        block += 1;
                    }
                    self.block_header(block)?;
                }
                Some(_) => {
                    if first {
                        self.kernel.arg_start.push(0);
                    }
                    if self.kernel.edges.len() as u32 > *self.kernel.edge_start.last().unwrap_or(&0) {
                        return Err(self
                            .cursor
                            .error("an operation follows the terminator of its block; expected `^` or `}`"));
                    }
                    self.operation()?;
                }
                None => return Err(self.cursor.error("expected `}` at the end of the function")),
            }
            first = false;
        }
        if first {
            return Err(self.cursor.error("the function has no operations"));
        }
        self.end_block()?;
        self.cursor.pos += 1;
        let end = self.cursor.pos;
        Ok((self.finish()?, end))
    }

    fn end_block(&mut self) -> Result<()> {
        let from = *self.kernel.block_start.last().unwrap_or(&0) as usize;
        let ends = self.kernel.kinds[from..].last().is_some_and(|kind| match kind {
            OpKind::Entry | OpKind::Fall | OpKind::End => true,
            OpKind::Inst => self.last_layout().is_some_and(|l| l.flow != Flow::None),
            _ => false,
        });
        if !ends {
            return Err(self
                .cursor
                .error("the block before this place does not end with a terminator"));
        }
        self.kernel.block_start.push(self.kernel.kinds.len() as u32);
        self.kernel.edge_start.push(self.kernel.edges.len() as u32);
        Ok(())
    }

    fn last_layout(&self) -> Option<&Layout> {
        let layout = *self.kernel.op_layout.last()?;
        self.layouts.list.get(layout as usize).map(|l| &**l)
    }

    /// `^bb2(%1: !sass.reg, ...):`
    fn block_header(&mut self, block: u32) -> Result<()> {
        let at = self.cursor.pos;
        self.cursor.pos += 1;
        let name = self.block_name()?;
        if std::mem::replace(&mut self.blocks[name as usize], block) != NONE {
            return Err(self.cursor.error_at(at, "the block is defined twice"));
        }
        let pins = self
            .pins
            .get_mut(block as usize)
            .map(std::mem::take)
            .unwrap_or_default();
        let mut pins = pins.into_iter();
        self.cursor.space();
        if self.cursor.eat("(") {
            loop {
                self.cursor.space();
                let at = self.cursor.pos;
                let name = self.value_name()?;
                let Some(pin) = pins.next() else {
                    return Err(self
                        .cursor
                        .error_at(at, "the function's `pins` names no register for this block argument"));
                };
                expect(&mut self.cursor, ":")?;
                expect(&mut self.cursor, file_type(pin.file()))?;
                self.define(name, ARG | self.arg_pins.len() as u32, 1, at)?;
                self.arg_pins.push(pin);
                self.cursor.space();
                if self.cursor.eat(")") {
                    break;
                }
                expect(&mut self.cursor, ",")?;
            }
        }
        if pins.next().is_some() {
            return Err(self.cursor.error_at(
                at,
                "the function's `pins` names more registers than the block has arguments",
            ));
        }
        self.kernel.arg_start.push(self.arg_pins.len() as u32);
        expect(&mut self.cursor, ":")
    }

    fn block_name(&mut self) -> Result<u32> {
        let at = self.cursor.pos;
        let name = self.cursor.name();
        if name.is_empty() {
            return Err(self.cursor.error("expected the name of a block"));
        }
        let next = self.blocks.len() as u32;
        let id = *self.block_names.entry(name).or_insert(next);
        if id == next {
            self.blocks.push(NONE);
            self.block_uses.push(at);
        }
        Ok(id)
    }

    /// `%12`, without `#1`: a key into `numbered`, or with the top bit set into `named`.
    fn value_name(&mut self) -> Result<u32> {
        if self.cursor.peek() != Some(b'%') {
            return Err(self.cursor.error("expected a value"));
        }
        self.cursor.pos += 1;
        let start = self.cursor.pos;
        if let Some(number) = self.cursor.decimal() {
            let plain = !self
                .cursor
                .peek()
                .is_some_and(|c| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'$' | b'.' | b'-'));
            let canonical = self.cursor.pos - start == 1 || !self.cursor.slice(start, start + 1).starts_with('0');
            if plain && canonical && (number as usize) < self.cursor.len() {
                if number as usize >= self.numbered.len() {
                    self.numbered.resize(number as usize + 1, UNDEFINED);
                }
                return Ok(number);
            }
        }
        self.cursor.pos = start;
        let name = self.cursor.name();
        if name.is_empty() {
            return Err(self.cursor.error("expected the name of a value"));
        }
        let next = self.named.len() as u32;
        let id = *self.names.entry(name).or_insert(next);
        if id == next {
            self.named.push(UNDEFINED);
        }
        Ok(id | ARG)
    }

    fn group(&mut self, name: u32) -> &mut Group {
        match name & ARG {
            0 => &mut self.numbered[name as usize],
            _ => &mut self.named[(name & !ARG) as usize],
        }
    }

    fn define(&mut self, name: u32, first: u32, count: u32, pos: usize) -> Result<()> {
        let group = self.group(name);
        if group.count != 0 {
            return Err(self.cursor.error_at(pos, "the value is defined twice"));
        }
        *group = Group { first, count };
        Ok(())
    }

    /// A use of a value: its id, or its place in `pending` with the bit `PENDING`.
    fn value_use(&mut self) -> Result<u32> {
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

    fn pick(&self, group: Group, sub: u32, indexed: bool, pos: usize) -> Result<u32> {
        if sub >= group.count {
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

    /// Stores a value that was read at the end of the operands or edge arguments.
    fn store(&mut self, value: u32, edge: bool) {
        let list = if edge {
            &mut self.kernel.edge_args
        } else {
            &mut self.kernel.operands
        };
        if value & (PENDING | ARG) == PENDING {
            let pending = &mut self.pending[(value & !PENDING) as usize];
            (pending.edge, pending.at) = (edge, list.len() as u32);
        }
        list.push(ValueId(value));
    }

    fn operation(&mut self) -> Result<()> {
        let start = self.cursor.pos;
        self.positions.push(start);
        let mut results = None;
        if self.cursor.peek() == Some(b'%') {
            let name = self.value_name()?;
            let mut count = 1;
            self.cursor.space();
            if self.cursor.eat(":") {
                self.cursor.space();
                count = self
                    .cursor
                    .decimal()
                    .filter(|n| *n > 1 && *n < 1 << 16)
                    .ok_or_else(|| self.cursor.error("expected a number of results above 1"))?;
                self.cursor.space();
            }
            expect(&mut self.cursor, "=")?;
            self.cursor.space();
            results = Some((name, count));
        }
        let at = self.cursor.pos;
        let name = self.cursor.identifier();
        if let Some(file) = FILES.into_iter().find(|f| *f != RegFile::B && constant_op(*f) == name) {
            self.results(results, 1, at)?;
            self.kernel.pins.push(Pin::zero(file));
            self.kernel.finish_op(OpKind::Constant(file), Word(0), NONE, NONE);
            return Ok(());
        }
        let kind = match name {
            "builtin.unrealized_conversion_cast" => return self.live_in(results, at),
            "sass.label" => {
                self.cursor.space();
                let label = self.cursor.decimal().filter(|l| *l < SUCCESSOR);
                let label = label.ok_or_else(|| self.cursor.error("expected the number of a label"))?;
                self.results(results, 0, at)?;
                self.kernel.finish_op(OpKind::Label, Word(0), NONE, label);
                return Ok(());
            }
            "sass.entry" => OpKind::Entry,
            "sass.fall" => OpKind::Fall,
            "sass.end" => OpKind::End,
            "sass.opaque" => {
                expect(&mut self.cursor, "raw")?;
                self.cursor.space();
                let word = self
                    .cursor
                    .word()
                    .ok_or_else(|| self.cursor.error("expected `0x` and 32 hexadecimal digits"))?;
                self.results(results, 0, at)?;
                self.kernel.finish_op(OpKind::Opaque, Word(word), NONE, NONE);
                return Ok(());
            }
            name if name.starts_with("sass.") => return self.instruction(results, at),
            "" => return Err(self.cursor.error_at(at, "expected an operation")),
            other => {
                let message = format!(
                    "`{other}` is no operation of the sass dialect; functions that hold other dialects' operations need the MLIR build"
                );
                return Err(self.cursor.error_at(at, message));
            }
        };
        self.results(results, 0, at)?;
        let count = self.successors()?;
        match (kind, count) {
            (OpKind::Fall, 1) | (OpKind::End, 0) | (OpKind::Entry, _) => {}
            _ => {
                return Err(self
                    .cursor
                    .error_at(at, format!("`{name}` cannot have {count} successors")));
            }
        }
        self.kernel.finish_op(kind, Word(0), NONE, NONE);
        Ok(())
    }

    /// Defines the results of the current operation, which has `count` of them.
    fn results(&mut self, results: Option<(u32, u32)>, count: u32, pos: usize) -> Result<()> {
        let first = self.kernel.pins.len() as u32;
        match results {
            Some((name, n)) if n == count => self.define(name, first, count, pos),
            None if count == 0 => Ok(()),
            _ => {
                let written = results.map_or(0, |r| r.1);
                Err(self
                    .cursor
                    .error_at(pos, format!("the operation has {count} results, not {written}")))
            }
        }
    }

    fn live_in(&mut self, results: Option<(u32, u32)>, at: usize) -> Result<()> {
        expect(&mut self.cursor, "to")?;
        self.cursor.space();
        let file = FILES.into_iter().find(|f| self.cursor.eat(file_type(*f)));
        let file = file.ok_or_else(|| self.cursor.error("expected a register type"))?;
        expect(&mut self.cursor, "{sass.pin =")?;
        let at_pin = self.cursor.pos;
        let pin = pin(&mut self.cursor)?;
        if pin.file() != file {
            return Err(self.cursor.error_at(at_pin, format!("{pin} is no {}", file_type(file))));
        }
        expect(&mut self.cursor, "}")?;
        self.results(results, 1, at)?;
        self.kernel.pins.push(pin);
        self.kernel.finish_op(OpKind::LiveIn, Word(0), NONE, NONE);
        Ok(())
    }

    /// The position of `raw` of the instruction whose name starts here.
    fn find_raw(&self, from: usize) -> Option<usize> {
        let rest = &self.cursor.rest();
        let line = &rest[..memchr::memchr(b'\n', rest).unwrap_or(rest.len())];
        if let Some(at) = memchr::memmem::find(line, b" raw 0x") {
            return Some(from + at + 1);
        }
        // Spread over several lines, or not there.
        let mut cursor = self.cursor;
        let mut depth = 0usize;
        loop {
            cursor.space();
            let at = cursor.pos;
            match cursor.peek()? {
                c if c.is_ascii_alphabetic() || c == b'_' => match cursor.identifier() {
                    "raw" => return Some(at),
                    name if at > from && (name.starts_with("sass.") || name.starts_with("builtin.")) => return None,
                    _ => {}
                },
                b'"' => {
                    cursor.string()?;
                }
                b'{' => {
                    depth += 1;
                    cursor.pos += 1;
                }
                b'}' => {
                    depth = depth.checked_sub(1)?;
                    cursor.pos += 1;
                }
                b'=' => return None,
                _ => cursor.pos += 1,
            }
        }
    }

    fn instruction(&mut self, results: Option<(u32, u32)>, at: usize) -> Result<()> {
        self.cursor.pos = at;
        let no_raw = "the instruction has no `raw 0x<32 digits>`: that needs the assembler, which is not there yet";
        let raw = self.find_raw(at).ok_or_else(|| self.cursor.error_at(at, no_raw))?;
        let mut behind = self.cursor;
        behind.pos = raw;
        behind.eat("raw");
        behind.space();
        let word = Word(
            behind
                .word()
                .ok_or_else(|| behind.error("expected `0x` and 32 hexadecimal digits"))?,
        );
        let index = self.layouts.get(word);
        if index == NONE {
            return Err(self.cursor.error_at(
                at,
                format!(
                    "the word is in no table of {}; an unknown word is written `sass.opaque raw 0x...`",
                    self.kernel.target
                ),
            ));
        }
        let layout = self.layouts.list[index as usize].clone();
        let own = layout.own_operands(word);
        self.operands.clear();
        self.operands.resize(own, NONE);
        self.label = NONE;
        if let Err(Mismatch(error)) = walk(&layout, word, self) {
            return Err(match error {
                Some(error) => error,
                None => self.disagrees(word, index),
            });
        }
        for k in 0..own {
            self.store(self.operands[k], false);
        }
        let mut written = Vec::new();
        let (first, mut count) = (self.kernel.pins.len(), layout.writes(word).count());
        if matches!(layout.flow, Flow::Call | Flow::Return) {
            if self.cursor.eat(" reads(") {
                self.typed_values(false)?;
            }
            self.cursor.space();
            if self.cursor.eat("writes(") {
                loop {
                    written.push(pin(&mut self.cursor)?);
                    count += 1;
                    self.cursor.space();
                    if self.cursor.eat(")") {
                        break;
                    }
                    expect(&mut self.cursor, ",")?;
                }
            }
        }
        let successors = self.successors()?;
        if successors > 0 && layout.flow == Flow::None {
            return Err(self
                .cursor
                .error_at(at, "the instruction is no terminator and cannot have successors"));
        }
        if self.label == SUCCESSOR && successors == 0 {
            return Err(self.cursor.error("expected a code label or a successor"));
        }
        self.cursor.space();
        if self.cursor.pos != raw {
            return Err(self.disagrees(word, index));
        }
        self.cursor.pos = behind.pos;
        self.results(results, count as u32, at)?;
        self.kernel.pins.extend(layout.writes(word));
        self.kernel.pins.extend(written);
        if !layout.operand_types.is_empty() || count > 0 {
            let mut agree =
                self.cursor.eat(" : (") && self.cursor.eat(&layout.operand_types) && self.cursor.eat(") -> (");
            for k in 0..count {
                let file = self.kernel.pins[first + k].file();
                agree = agree && (k == 0 || self.cursor.eat(", ")) && self.cursor.eat(file_type(file));
            }
            if !(agree && self.cursor.eat(")")) {
                return Err(self.disagrees(word, index));
            }
        }
        self.kernel.finish_op(OpKind::Inst, word, index, self.label);
        Ok(())
    }

    /// The text at the cursor is not what the word says.
    fn disagrees(&self, word: Word, layout: u32) -> ParseError {
        let mut text = String::new();
        let inst = isa::Inst {
            word,
            form: self.layouts.list[layout as usize].form,
        };
        let _ = self.isa.write_text(inst, 0, &mut text, None);
        let mut cursor = self.cursor;
        cursor.space();
        let found: String = cursor
            .slice(cursor.pos, cursor.len())
            .chars()
            .take_while(|c| *c != '\n')
            .take(24)
            .collect();
        cursor.error(format!(
            "the text does not agree with the word at `{found}`; the word 0x{:032x} is `{text}`",
            word.0
        ))
    }

    /// `%1, %2 : !sass.reg, !sass.pred)` behind the parenthesis; the types are held against the registers later.
    fn typed_values(&mut self, edge: bool) -> Result<u32> {
        let mut count = 0;
        loop {
            self.cursor.space();
            let value = self.value_use()?;
            self.store(value, edge);
            count += 1;
            self.cursor.space();
            if self.cursor.eat(":") {
                break;
            }
            expect(&mut self.cursor, ",")?;
        }
        for k in 0..count {
            if k > 0 {
                expect(&mut self.cursor, ",")?;
            }
            self.cursor.space();
            if !FILES.into_iter().any(|f| self.cursor.eat(file_type(f))) {
                return Err(self.cursor.error("expected a register type"));
            }
        }
        expect(&mut self.cursor, ")")?;
        Ok(count)
    }

    /// `^bb2(%1 : !sass.reg), ^bb3`, or nothing.
    fn successors(&mut self) -> Result<u32> {
        let mut count = 0;
        self.cursor.space();
        while self.cursor.peek() == Some(b'^') {
            self.cursor.pos += 1;
            let name = self.block_name()?;
            let args = self.kernel.edge_args.len() as u32;
            self.kernel.edges.push(Edge {
                to: BlockId(name),
                args,
            });
            count += 1;
            self.cursor.space();
            if self.cursor.eat("(") {
                self.typed_values(true)?;
                self.cursor.space();
            }
            if !self.cursor.eat(",") {
                break;
            }
            self.cursor.space();
            if self.cursor.peek() != Some(b'^') {
                return Err(self.cursor.error("expected a successor"));
            }
        }
        Ok(count)
    }

    /// Resolves names that were used before they were defined, and holds everything against the words.
    fn finish(mut self) -> Result<Kernel> {
        let results = self.kernel.result_count();
        for pending in std::mem::take(&mut self.pending) {
            let group = *self.group(pending.name);
            if group.count == 0 {
                return Err(self
                    .cursor
                    .error_at(pending.pos, "the value is not defined in this function"));
            }
            let value = ValueId(self.pick(group, pending.sub, true, pending.pos)?);
            let list = if pending.edge {
                &mut self.kernel.edge_args
            } else {
                &mut self.kernel.operands
            };
            list[pending.at as usize] = value;
        }
        for value in self.kernel.operands.iter_mut().chain(&mut self.kernel.edge_args) {
            if value.0 & ARG != 0 {
                value.0 = results + (value.0 & !ARG);
            }
        }
        self.kernel.pins.append(&mut self.arg_pins);
        for (name, &block) in self.blocks.iter().enumerate() {
            if block == NONE {
                return Err(self
                    .cursor
                    .error_at(self.block_uses[name], "the block is not defined in this function"));
            }
        }
        let total = self.kernel.edge_args.len() as u32;
        for e in 0..self.kernel.edges.len() {
            let to = self.blocks[self.kernel.edges[e].to.index()];
            self.kernel.edges[e].to = BlockId(to);
            let end = self.kernel.edges.get(e + 1).map_or(total, |next| next.args);
            let expected = self.kernel.arg_start[to as usize + 1] - self.kernel.arg_start[to as usize];
            if end - self.kernel.edges[e].args != expected {
                let from = self.kernel.edge_start.partition_point(|&s| s as usize <= e) - 1;
                let op = self.kernel.block_start[from + 1] as usize - 1;
                let message = format!("a successor takes {expected} values");
                return Err(self.cursor.error_at(self.positions[op], message));
            }
        }
        self.kernel.layouts = std::mem::take(&mut self.layouts.list);
        check::structure(&self.kernel, self.isa)
            .map_err(|e| self.cursor.error_at(self.positions[e.op.index()], e.message))?;
        Ok(self.kernel)
    }
}

/// The text is not what the walk expects; with a message of its own, or not.
struct Mismatch(Option<ParseError>);

impl From<ParseError> for Mismatch {
    fn from(error: ParseError) -> Mismatch {
        Mismatch(Some(error))
    }
}

impl Sink for Parser<'_> {
    type Error = Mismatch;

    fn lit(&mut self, text: &str) -> std::result::Result<(), Mismatch> {
        match self.cursor.eat(text) {
            true => Ok(()),
            false => Err(Mismatch(None)),
        }
    }

    fn value(&mut self, operand: usize) -> std::result::Result<(), Mismatch> {
        if self.cursor.peek() != Some(b'%') {
            self.cursor.space();
            if self.cursor.peek() != Some(b'%') {
                return Err(Mismatch(None));
            }
        }
        let value = self.value_use()?;
        if let Some(at) = self.operands.get_mut(operand) {
            *at = value;
        }
        Ok(())
    }

    fn label(&mut self, first: bool, offset: &str) -> std::result::Result<(), Mismatch> {
        let from = self.cursor.pos;
        if !first && !self.cursor.eat(",") {
            self.label = SUCCESSOR;
            return Ok(());
        }
        self.cursor.space();
        if self.cursor.eat("label(") {
            self.cursor.space();
            let label = self.cursor.decimal().filter(|l| *l < SUCCESSOR);
            self.label = label.ok_or_else(|| self.cursor.error("expected the number of a label"))?;
            self.lit(")")
        } else if self.cursor.eat("rel(") {
            self.lit(offset)?;
            self.lit(")")
        } else if first {
            self.cursor.pos = from;
            self.label = SUCCESSOR;
            Ok(())
        } else {
            Err(Mismatch(None))
        }
    }
}
