//! The text of one instruction, held against its word.

use isa::Word;

use crate::kernel::{NONE, OpKind, SUCCESSOR};
use crate::layout::{Flow, Layout};
use crate::layouts::Layouts;
use crate::lex::ParseError;
use crate::parse::{Result, expect, pin};
use crate::parse_body::Parser;
use crate::parse_values::Expect;
use crate::pin::{Pin, file_type};
use crate::syntax::{Buffer, Sink, walk};

/// The end of an instruction's text, but for the types.
#[derive(Clone, Copy)]
pub(crate) struct Ending {
    pub word: Word,
    /// The word has the registers of the operands.
    pub is_bound: bool,
    /// Where the text ends that the word is held against, and where what tells the word ends.
    pub from: usize,
    pub to: usize,
}

impl Parser<'_> {
    /// The position of `raw` of the instruction whose name starts here, however it is laid out.
    fn find_raw(&self, from: usize) -> Option<usize> {
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
                b'!' | b'%' | b'^' => {
                    cursor.pos += 1;
                    cursor.name();
                }
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

    pub(crate) fn instruction(&mut self, layouts: &mut Layouts, results: Option<(u32, u16)>, at: usize) -> Result<()> {
        self.cursor.pos = at;
        // The next ` raw 0x` in the line is the right one, unless the text is laid out in another way than the printer's.
        let mut raw = self.cursor.exact();
        let rest = self.cursor.rest();
        raw.text = &raw.text[..at + memchr::memchr(b'\n', rest).unwrap_or(rest.len())];
        let next = raw.find_raw().map(|()| raw.pos + 1);
        let before = self.snapshot();
        if let Some(raw) = next {
            let mut with = |parser: &mut Self| {
                let ending = parser.raw_ending(raw)?;
                parser.instruction_with(layouts, results, at, ending)
            };
            let error = match with(self) {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            self.cursor.pos = at;
            if self.find_raw(at) == next {
                return Err(error);
            }
            self.restore(before);
        }
        let ending = match self.find_raw(at) {
            Some(raw) => self.raw_ending(raw)?,
            None => self.wordless_ending(at)?,
        };
        self.instruction_with(layouts, results, at, ending)
    }

    /// The word behind `raw`.
    fn raw_ending(&self, raw: usize) -> Result<Ending> {
        let mut behind = self.cursor;
        behind.pos = raw + 3;
        behind.space();
        let word = behind.word().map(Word);
        let word = word.ok_or_else(|| behind.error("expected `0x` and 32 hexadecimal digits"))?;
        Ok(Ending {
            word,
            is_bound: true,
            from: raw,
            to: behind.pos,
        })
    }

    fn instruction_with(
        &mut self,
        layouts: &mut Layouts,
        results: Option<(u32, u16)>,
        at: usize,
        ending: Ending,
    ) -> Result<()> {
        let word = ending.word;
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
            let expect = match ending.is_bound {
                true => Expect::Pin(pin),
                false => Expect::File(pin.file()),
            };
            self.store(self.operands[k], false, expect, at)?;
        }
        if !ending.is_bound {
            self.unbound.push((self.kernel.kinds.len(), expected.len()));
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
        if !self.cursor.skip(b" ") || self.cursor.pos != ending.from {
            self.cursor.space();
        }
        if self.cursor.pos != ending.from {
            return Err(self.disagrees(layout, word));
        }
        self.cursor.pos = ending.to;
        let pins = &mut self.kernel.pins;
        layout.each_write(word, |pin| pins.push(pin));
        pins.extend(written);
        let count = pins.len() - first;
        self.results(results, count, at)?;
        if !self.types(layout, first, count) {
            return Err(self.disagrees(layout, word));
        }
        self.terminated = !matches!(layout.flow, Flow::None | Flow::Call) || successors > 0;
        self.kernel.finish_op(OpKind::Inst, word, index, self.label);
        Ok(())
    }

    /// The type list of an instruction with `count` results from `first` on.
    fn types(&mut self, layout: &Layout, first: usize, count: usize) -> bool {
        let types = &layout.types;
        let pins = &self.kernel.pins[first..first + count];
        match pins {
            [] if !types.has_operands => true,
            [] => self.cursor.eat(&types.none.to_string()),
            [first, rest @ ..] => {
                let mut text = types.operands.to_string() + file_type(first.file());
                rest.iter().for_each(|p| text.extend([", ", file_type(p.file())]));
                self.cursor.eat(&(text + ")"))
            }
        }
    }

    /// What a call or a return reads and writes without naming it; gives what it writes.
    pub(crate) fn summary(&mut self) -> Result<Vec<Pin>> {
        let mut written = Vec::with_capacity(32);
        if self.cursor.eat(" reads(") {
            self.typed_values(false)?;
        }
        if self.cursor.eat(" writes(") {
            loop {
                written.push(pin(&mut self.cursor)?);
                if self.cursor.skip(b", ") {
                    continue;
                }
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
            "the text does not agree with the word at `{}`; the word 0x{:032x} is `{text}`",
            found.trim_end(),
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

    fn label(&mut self, first: bool, offset: &Buffer) -> std::result::Result<(), Mismatch> {
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
            self.lit(offset.as_str())?;
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
