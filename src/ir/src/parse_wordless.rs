//! Instructions whose text has `regs(...) sched("...")` in place of the word.

use std::str::FromStr;
use std::sync::Arc;

use isa::Word;
use isa::control::Control;

use crate::assemble::{MARK, Wordless, assemble, bind};
use crate::check::Places;
use crate::kernel::OpId;
use crate::layout::Layout;
use crate::layouts::LayoutCache;
use crate::lex::Cursor;
use crate::parse::{Result, expect, string};
use crate::parse_body::Parser;
use crate::parse_inst::Ending;
use crate::pin::Pin;

impl Parser<'_> {
    /// The word of an instruction without `raw`, but for the registers of its operands.
    pub(crate) fn wordless_ending(&self, at: usize) -> Result<Ending> {
        let mut cursor = self.cursor;
        cursor.pos = at;
        let text = operand_text(&mut cursor)?;
        let from = cursor.pos;
        let registers = match cursor.eat("regs(") {
            true => registers(&mut cursor)?,
            false => Vec::new(),
        };
        expect(&mut cursor, "sched(")?;
        let place = cursor.pos;
        let column = string(&mut cursor, "the scheduling")?;
        let control = Control::from_str(&column).map_err(|e| cursor.error_at(place, e.to_string()))?;
        expect(&mut cursor, ")")?;
        let wordless = Wordless {
            text: &text,
            types: types(cursor),
            registers: &registers,
            control,
        };
        let word = assemble(self.isa, self.kernel.target, &wordless).map_err(|e| cursor.error_at(at, e))?;
        Ok(Ending {
            word,
            is_bound: false,
            from,
            to: cursor.pos,
        })
    }

    /// Writes the registers of the operands, and where code labels are, into the words that were put together.
    pub(crate) fn bind(&mut self) -> Result<()> {
        let unbound = std::mem::take(&mut self.unbound);
        if unbound.is_empty() {
            return Ok(());
        }
        let places =
            Places::new(&self.kernel).map_err(|e| self.cursor.error_at(self.positions[e.op.index()], e.message))?;
        for (op, own) in unbound {
            let kernel = &self.kernel;
            let operands = &kernel.operands[kernel.operand_start[op] as usize..][..own];
            let pins: Vec<Pin> = operands.iter().map(|value| kernel.pins[value.index()]).collect();
            let layout = &kernel.layouts[kernel.op_layout[op] as usize];
            let at = self.positions[op];
            let label = places.distance(kernel, OpId(op as u32));
            let label = label.map_err(|e| self.cursor.error_at(at, e.message))?;
            let bound = bind(self.isa, kernel.target, layout, kernel.words[op], &pins, label);
            let word = bound.map_err(|e| self.cursor.error_at(at, e))?;
            let layout = LayoutCache::new(self.isa, kernel.target).get(word);
            let layout = layout.ok_or_else(|| self.cursor.error_at(at, "the word is in no table"))?;
            self.replace_word(op, word, layout);
        }
        Ok(())
    }

    fn replace_word(&mut self, op: usize, word: Word, layout: Arc<Layout>) {
        let kernel = &mut self.kernel;
        let known = kernel.layouts.iter().position(|l| Arc::ptr_eq(l, &layout));
        kernel.op_layout[op] = known.unwrap_or(kernel.layouts.len()) as u32;
        kernel.layouts.extend(known.is_none().then_some(layout));
        kernel.words[op] = word;
    }
}

/// The text up to the registers that a call touches, the successors, or what stands in place of the word; the cursor goes to the last.
fn operand_text(cursor: &mut Cursor<'_>) -> Result<String> {
    let at = cursor.pos;
    let no_word = |cursor: &Cursor<'_>| {
        let message = "the instruction has no `raw 0x<32 digits>` and no `sched(\"...\")`, and its text tells neither registers nor scheduling";
        cursor.error_at(at, message)
    };
    let (mut text, mut depth, mut in_operands) = (String::new(), 0usize, true);
    loop {
        cursor.space();
        let from = cursor.pos;
        let Some(first) = cursor.peek() else {
            return Err(no_word(cursor));
        };
        match first {
            b'%' | b'^' => {
                in_operands &= first == b'%';
                cursor.pos += 1;
                cursor.name();
                if cursor.skip(b"#") {
                    cursor.decimal();
                }
                text.extend((first == b'%' && in_operands).then_some(MARK));
                continue;
            }
            b'!' => {
                cursor.pos += 1;
                cursor.identifier();
            }
            b'"' => {
                cursor.string().ok_or_else(|| no_word(cursor))?;
            }
            c if c.is_ascii_alphanumeric() || c == b'_' => match cursor.identifier() {
                "regs" | "sched" if depth == 0 => {
                    cursor.pos = from;
                    return Ok(text);
                }
                "reads" | "writes" if depth == 0 => in_operands = false,
                name if from > at && (name.starts_with("sass.") || name.starts_with("builtin.")) => {
                    return Err(no_word(cursor));
                }
                _ => {}
            },
            b'(' | b'[' | b'{' => {
                depth += 1;
                cursor.pos += 1;
            }
            b')' | b']' | b'}' => {
                depth = depth.checked_sub(1).ok_or_else(|| no_word(cursor))?;
                cursor.pos += 1;
            }
            b':' | b'=' if depth == 0 => return Err(no_word(cursor)),
            c => cursor.pos += if c.is_ascii() { 1 } else { return Err(no_word(cursor)) },
        }
        if in_operands {
            text.push(' ');
            text.push_str(cursor.slice(from, cursor.pos));
        }
    }
}

/// `"R4", "PT")`
fn registers(cursor: &mut Cursor<'_>) -> Result<Vec<Pin>> {
    let mut registers = Vec::new();
    cursor.space();
    if cursor.eat(")") {
        return Ok(registers);
    }
    loop {
        let at = cursor.pos;
        let text = string(cursor, "a register")?;
        let pin = Pin::parse(&text).ok_or_else(|| cursor.error_at(at, format!("`{text}` is no register")))?;
        registers.push(pin);
        cursor.space();
        if cursor.eat(")") {
            return Ok(registers);
        }
        expect(cursor, ",")?;
    }
}

/// The operands' part of the type list that follows, if there is one.
fn types<'a>(mut cursor: Cursor<'a>) -> &'a str {
    cursor.space();
    if !cursor.eat(": (") {
        return "";
    }
    let rest = cursor.slice(cursor.pos, cursor.len());
    rest.split_once(')').map_or("", |(types, _)| types)
}
