//! The body of a function: blocks, names of values, operations but for the text of instructions.

use std::collections::HashMap;

use isa::{Isa, RegFile, Word};

use crate::check;
use crate::kernel::{BlockId, Edge, Kernel, NONE, OpKind, SUCCESSOR, ValueId};
use crate::layout::Flow;
use crate::layouts::Layouts;
use crate::lex::{Cursor, is_name_byte};
use crate::parse::{ArgPins, Result, expect, pin};
use crate::parse_values::{ARG, CONSTANTS, Group, Pending, UNDEFINED};
use crate::pin::{FILES, Pin, file_type};
use crate::print::constant_op;

pub(crate) struct Parser<'a> {
    pub cursor: Cursor<'a>,
    pub isa: &'static Isa,
    pub kernel: Kernel,
    /// Values by name: numbers first, then other names.
    pub numbered: Vec<Group>,
    pub named: Vec<Group>,
    pub names: HashMap<&'a str, u32>,
    /// By the number in `^bb12`; `NONE` until it is used.
    numbered_blocks: Vec<u32>,
    block_names: HashMap<&'a str, u32>,
    /// Block of each block name, `NONE` until it is defined.
    blocks: Vec<u32>,
    block_uses: Vec<usize>,
    /// The registers of the block arguments so far.
    pub arg_pins: Vec<Pin>,
    /// The register of each block argument.
    declared: ArgPins,
    pub pending: Vec<Pending>,
    /// Position of each operation.
    pub positions: Vec<usize>,
    /// The operands of the operation that is being read, and the registers that its word names for them.
    pub operands: Vec<u32>,
    pub expected: Vec<Pin>,
    pub label: u32,
    /// Instructions whose words have no registers for their operands yet, and how many operands the word names.
    pub unbound: Vec<(usize, usize)>,
    /// The block has its terminator.
    pub terminated: bool,
}

impl<'a> Parser<'a> {
    pub fn new(cursor: Cursor<'a>, isa: &'static Isa, kernel: Kernel, declared: ArgPins) -> Parser<'a> {
        Parser {
            cursor,
            isa,
            numbered: Vec::with_capacity(kernel.kinds.capacity()),
            named: vec![UNDEFINED; CONSTANTS.len()],
            names: HashMap::new(),
            numbered_blocks: Vec::with_capacity(32),
            block_names: HashMap::new(),
            blocks: Vec::with_capacity(32),
            block_uses: Vec::with_capacity(32),
            arg_pins: Vec::with_capacity(declared.count()),
            declared,
            pending: Vec::new(),
            positions: Vec::with_capacity(kernel.kinds.capacity()),
            operands: Vec::with_capacity(32),
            expected: Vec::with_capacity(32),
            label: NONE,
            unbound: Vec::new(),
            terminated: false,
            kernel,
        }
    }

    /// What an attempt to read an instruction may add to.
    pub fn snapshot(&self) -> [usize; 5] {
        let kernel = &self.kernel;
        [
            kernel.operands.len(),
            kernel.edges.len(),
            kernel.edge_args.len(),
            kernel.pins.len(),
            self.pending.len(),
        ]
    }

    /// Takes back what was added since. A name that was defined meanwhile stays defined: that is an error anyway.
    pub fn restore(&mut self, [operands, edges, edge_args, pins, pending]: [usize; 5]) {
        self.kernel.operands.truncate(operands);
        self.kernel.edges.truncate(edges);
        self.kernel.edge_args.truncate(edge_args);
        self.kernel.pins.truncate(pins);
        self.pending.truncate(pending);
    }

    pub fn body(mut self) -> Result<(Kernel, usize)> {
        let mut layouts = Layouts::new(self.isa, self.kernel.target);
        let mut block = 0u32;
        let mut first = true;
        loop {
            self.cursor.skip(b"\n    ");
            self.cursor.space();
            match self.cursor.peek() {
                Some(b'}') => break,
                Some(b'^') => {
                    if !first {
                        self.end_block(&layouts)?;
                        block += 1;
                    }
                    self.block_header(block)?;
                }
                Some(_) => {
                    if first {
                        self.kernel.arg_start.push(0);
                    }
                    if self.terminated {
                        let message = "an operation follows the terminator of its block; expected `^` or `}`";
                        return Err(self.cursor.error(message));
                    }
                    self.operation(&mut layouts)?;
                }
                None => return Err(self.cursor.error("expected `}` at the end of the function")),
            }
            first = false;
        }
        if first {
            return Err(self.cursor.error("the function has no operations"));
        }
        self.end_block(&layouts)?;
        self.cursor.pos += 1;
        let end = self.cursor.pos;
        self.kernel.layouts = layouts.into_list();
        Ok((self.finish()?, end))
    }

    fn end_block(&mut self, layouts: &Layouts) -> Result<()> {
        let from = *self.kernel.block_start.last().unwrap_or(&0) as usize;
        let call = |layout: Option<&u32>| {
            let layout = layout.and_then(|l| layouts.list.get(*l as usize));
            layout.is_some_and(|l| l.flow == Flow::Call)
        };
        // A call that has no successor ends its block if nothing else does.
        let ends = self.terminated || (self.kernel.kinds.len() > from && call(self.kernel.op_layout.last()));
        if !ends {
            let message = "the block before this place does not end with a terminator";
            return Err(self.cursor.error(message));
        }
        self.terminated = false;
        self.kernel.block_start.push(self.kernel.kinds.len() as u32);
        self.kernel.edge_start.push(self.kernel.edges.len() as u32);
        Ok(())
    }

    /// `^bb2(%1: !sass.reg, ...):`
    fn block_header(&mut self, block: u32) -> Result<()> {
        let at = self.cursor.pos;
        self.cursor.pos += 1;
        let name = self.block_name()?;
        if std::mem::replace(&mut self.blocks[name as usize], block) != NONE {
            return Err(self.cursor.error_at(at, "the block is defined twice"));
        }
        let mut declared = self.declared.of_block(block);
        self.cursor.space();
        if self.cursor.skip(b"(") {
            loop {
                self.cursor.space();
                let at = self.cursor.pos;
                let name = self.value_name()?;
                let Some(pin) = declared.next().and_then(|n| self.declared.get(n)) else {
                    return Err(self
                        .cursor
                        .error_at(at, "the function's `pins` names no register for this block argument"));
                };
                if self.exact_argument_type(pin).is_none() {
                    expect(&mut self.cursor, ":")?;
                    expect(&mut self.cursor, file_type(pin.file()))?;
                }
                self.define(name, ARG | self.arg_pins.len() as u32, 1, pin, at)?;
                self.arg_pins.push(pin);
                if self.cursor.skip(b", ") {
                    continue;
                }
                self.cursor.space();
                if self.cursor.skip(b")") {
                    break;
                }
                expect(&mut self.cursor, ",")?;
            }
        }
        if !declared.is_empty() {
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
        let next = self.blocks.len() as u32;
        // Blocks that are called as printed are found without hashing.
        let mut exact = self.cursor.exact();
        let number = exact.skip(b"bb").and_then(|()| exact.decimal());
        let number = number.filter(|n| (*n as usize) < self.cursor.len() && !exact.peek().is_some_and(is_name_byte));
        let id = match number {
            Some(number) => {
                self.cursor.pos = exact.pos;
                let number = number as usize;
                if self.numbered_blocks.len() <= number {
                    self.numbered_blocks.resize(number + 1, NONE);
                }
                let id = &mut self.numbered_blocks[number];
                *id = if *id == NONE { next } else { *id };
                *id
            }
            None => match self.cursor.name() {
                "" => return Err(self.cursor.error("expected the name of a block")),
                name => *self.block_names.entry(name).or_insert(next),
            },
        };
        if id == next {
            self.blocks.push(NONE);
            self.block_uses.push(at);
        }
        Ok(id)
    }

    fn operation(&mut self, layouts: &mut Layouts) -> Result<()> {
        self.positions.push(self.cursor.pos);
        if self.exact(layouts) {
            return Ok(());
        }
        let mut results = None;
        if self.cursor.peek() == Some(b'%') {
            let name = self.value_name()?;
            let mut count = 1;
            if !self.cursor.skip(b" = ") {
                self.cursor.space();
                if self.cursor.skip(b":") {
                    self.cursor.space();
                    let number = self.cursor.decimal().and_then(|n| u16::try_from(n).ok());
                    count = number
                        .filter(|n| *n > 1)
                        .ok_or_else(|| self.cursor.error("expected a number of results above 1"))?;
                }
                expect(&mut self.cursor, "=")?;
                self.cursor.space();
            }
            results = Some((name, count));
        }
        let at = self.cursor.pos;
        // Mnemonics are upper case, everything else is not.
        if matches!(self.cursor.rest(), [b's', b'a', b's', b's', b'.', b'A'..=b'Z', ..]) {
            return self.instruction(layouts, results, at);
        }
        let name = self.cursor.identifier();
        if let Some(file) = FILES.into_iter().find(|f| *f != RegFile::B && constant_op(*f) == name) {
            if self.kernel.kinds.contains(&OpKind::Constant(file)) {
                return Err(self.cursor.error_at(at, format!("`{name}` is there already")));
            }
            self.kernel.pins.push(Pin::zero(file));
            self.results(results, 1, at)?;
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
                let known = layouts.get(Word(word));
                if let Some(layout) = layouts.list.get(known as usize) {
                    let message = format!("the word is no unknown one: it is `{}`", layout.name);
                    return Err(self.cursor.error_at(at, message));
                }
                self.results(results, 0, at)?;
                self.kernel.finish_op(OpKind::Opaque, Word(word), NONE, NONE);
                return Ok(());
            }
            name if name.starts_with("sass.") => return self.instruction(layouts, results, at),
            "" => return Err(self.cursor.error_at(at, "expected an operation")),
            other => {
                let message = format!(
                    "`{other}` is no operation of the sass dialect; functions that hold other dialects' operations need the MLIR build"
                );
                return Err(self.cursor.error_at(at, message));
            }
        };
        self.results(results, 0, at)?;
        // What follows `sass.end` is the next block.
        let count = if kind == OpKind::End { 0 } else { self.successors()? };
        match (kind, count) {
            (OpKind::Fall, 1) | (OpKind::End, 0) | (OpKind::Entry, _) => {}
            _ => {
                return Err(self
                    .cursor
                    .error_at(at, format!("`{name}` cannot have {count} successors")));
            }
        }
        self.kernel.finish_op(kind, Word(0), NONE, NONE);
        self.terminated = true;
        Ok(())
    }

    fn live_in(&mut self, results: Option<(u32, u16)>, at: usize) -> Result<()> {
        expect(&mut self.cursor, "to")?;
        self.cursor.space();
        let file = self
            .cursor
            .file()
            .ok_or_else(|| self.cursor.error("expected a register type"))?;
        expect(&mut self.cursor, "{sass.pin =")?;
        let at_pin = self.cursor.pos;
        let pin = pin(&mut self.cursor)?;
        if pin.file() != file {
            return Err(self.cursor.error_at(at_pin, format!("{pin} is no {}", file_type(file))));
        }
        expect(&mut self.cursor, "}")?;
        self.kernel.pins.push(pin);
        self.results(results, 1, at)?;
        self.kernel.finish_op(OpKind::LiveIn, Word(0), NONE, NONE);
        Ok(())
    }

    /// `^bb2(%1 : !sass.reg), ^bb3`, or nothing.
    pub fn successors(&mut self) -> Result<u32> {
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
            if self.cursor.skip(b"(") {
                self.typed_values(true)?;
                self.cursor.space();
            }
            if !self.cursor.skip(b",") {
                break;
            }
            self.cursor.space();
            if self.cursor.peek() != Some(b'^') {
                return Err(self.cursor.error("expected a successor"));
            }
        }
        Ok(count)
    }

    /// A register has one content at entry.
    fn one_live_in_each(&self) -> Result<()> {
        let kernel = &self.kernel;
        let mut known = [false; Pin::COUNT];
        for op in 0..kernel.block_start[1] as usize {
            if kernel.kinds[op] == OpKind::LiveIn {
                let pin = kernel.pins[kernel.result_start[op] as usize];
                if std::mem::replace(&mut known[pin.index()], true) {
                    return Err(self
                        .cursor
                        .error_at(self.positions[op], format!("{pin} is there already")));
                }
            }
        }
        Ok(())
    }

    /// Resolves names that were used before they were defined, and holds everything against the words.
    fn finish(mut self) -> Result<Kernel> {
        self.one_live_in_each()?;
        let results = self.kernel.result_count();
        for pending in std::mem::take(&mut self.pending) {
            let group = *self.group(pending.name);
            if group.count == 0 {
                return Err(self
                    .cursor
                    .error_at(pending.pos, "the value is not defined in this function"));
            }
            let value = ValueId(self.pick(group, pending.sub, true, pending.pos)?);
            self.agrees(self.pin_of(value.0), pending.expect, pending.pos)?;
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
        self.bind()?;
        check::labels(&self.kernel, Some(self.isa))
            .map_err(|e| self.cursor.error_at(self.positions[e.op.index()], e.message))?;
        Ok(self.kernel)
    }
}
