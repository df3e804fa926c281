//! The text of one instruction, held against its word.

use isa::Word;

use crate::kernel::{NONE, OpKind, SUCCESSOR};
use crate::layout::{Flow, Layout, Layouts};
use crate::lex::ParseError;
use crate::parse::{Result, expect, pin};
use crate::parse_body::{Expect, Parser};
use crate::pin::{Pin, file_type};
use crate::syntax::{Sink, walk};

impl Parser<'_> {
    /// The position of `raw` of the instruction whose name starts here.
    fn find_raw(&self, from: usize) -> Option<usize> {
        let rest = &self.cursor.rest();
        let line = &rest[..memchr::memchr(b'\n', rest).unwrap_or(rest.len())];
        if let Some(at) = self.raw_finder.find(line) {
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

    pub(crate) fn instruction(&mut self, layouts: &mut Layouts, results: Option<(u32, u32)>, at: usize) -> Result<()> {
        self.cursor.pos = at;
        let no_raw = "the instruction has no `raw 0x<32 digits>`: that needs the assembler, which is not there yet";
        let raw = self.find_raw(at).ok_or_else(|| self.cursor.error_at(at, no_raw))?;
        let mut behind = self.cursor;
        behind.pos = raw + 3;
        behind.space();
        let word = behind.word().map(Word);
        let word = word.ok_or_else(|| behind.error("expected `0x` and 32 hexadecimal digits"))?;
        let index = layouts.get(word);
        let Some(layout) = layouts.list.get(index as usize).map(|l| &**l) else {
            let sm = self.kernel.target;
            let message =
                format!("the word is in no table of {sm}; an unknown word is written `sass.opaque raw 0x...`");
            return Err(self.cursor.error_at(at, message));
        };
        let mut expected = std::mem::take(&mut self.expected);
        expected.clear();
        layout.each_read(word, |pin| expected.push(pin));
        layout.each_merge(word, |pin| expected.push(pin));
        self.operands.clear();
        self.operands.resize(expected.len(), NONE);
        self.label = NONE;
        if let Err(Mismatch(error)) = walk(layout, word, self) {
            return Err(error.unwrap_or_else(|| self.disagrees(layout, word)));
        }
        for (k, &pin) in expected.iter().enumerate() {
            self.store(self.operands[k], false, Expect::Pin(pin), at)?;
        }
        self.expected = expected;
        let first = self.kernel.pins.len();
        let mut written = Vec::new();
        if matches!(layout.flow, Flow::Call | Flow::Return) {
            written = self.summary()?;
        }
        let successors = self.successors()?;
        if successors > 0 && layout.flow == Flow::None {
            let message = "the instruction is no terminator and cannot have successors";
            return Err(self.cursor.error_at(at, message));
        }
        if self.label == SUCCESSOR && successors == 0 {
            return Err(self.cursor.error("expected a code label or a successor"));
        }
        if !self.cursor.rest().starts_with(b" raw") {
            self.cursor.space();
        } else {
            self.cursor.pos += 1;
        }
        if self.cursor.pos != raw {
            return Err(self.disagrees(layout, word));
        }
        self.cursor.pos = behind.pos;
        let pins = &mut self.kernel.pins;
        layout.each_write(word, |pin| pins.push(pin));
        pins.extend(written);
        let count = pins.len() - first;
        self.results(results, first as u32, count as u32, at)?;
        if layout.has_operand_types || count > 0 {
            let mut agree = self.cursor.eat(&layout.type_prefix);
            for k in 0..count {
                let file = self.kernel.pins[first + k].file();
                agree = agree && (k == 0 || self.cursor.eat(", ")) && self.cursor.eat(file_type(file));
            }
            if !(agree && self.cursor.eat(")")) {
                return Err(self.disagrees(layout, word));
            }
        }
        self.terminated = !matches!(layout.flow, Flow::None | Flow::Call) || successors > 0;
        self.kernel.finish_op(OpKind::Inst, word, index, self.label);
        Ok(())
    }

    /// What a call or a return reads and writes without naming it; gives what it writes.
    fn summary(&mut self) -> Result<Vec<Pin>> {
        let mut written = Vec::new();
        if self.cursor.eat(" reads(") {
            self.typed_values(false)?;
        }
        if self.cursor.eat(" writes(") {
            loop {
                written.push(pin(&mut self.cursor)?);
                self.cursor.space();
                if self.cursor.eat(")") {
                    break;
                }
                expect(&mut self.cursor, ",")?;
            }
        }
        Ok(written)
    }

    /// The text at the cursor is not what the word says.
    fn disagrees(&self, layout: &Layout, word: Word) -> ParseError {
        let mut text = String::new();
        let inst = isa::Inst {
            word,
            form: layout.form,
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
}

/// The text is not what the walk expects; with a message of its own, or not.
pub(crate) struct Mismatch(Option<ParseError>);

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
