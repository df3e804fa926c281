//! An instruction whose text has no word: the word is put together from what the text says, form by form.
//!
//! The text shows everything but registers and scheduling; `regs` and `sched` say these. The registers of the operands are those of
//! their values, which may be known only when the whole function is read: [`bind`] writes them in then. Bits that mean nothing are as
//! in the form's filler, and operand-cache flags are not set.

use isa::control::{self, Control};
use isa::{FormId, Inst, Isa, Target, Word, asm};

use crate::describe::describe;
use crate::layout::{GUARD_NEGATED, Imm, Item, Layout};
use crate::pin::Pin;
use crate::syntax::{Buffer, Sink, walk};

/// In a text: stands for a value.
pub const MARK: char = '\x01';

/// What is said of an instruction without a word.
#[derive(Clone, Copy, Debug)]
pub struct Wordless<'t> {
    /// From the name to the hidden operands, with [`MARK`] for each value. White space between tokens does not count.
    pub text: &'t str,
    /// The types of the operands as the text lists them: `!sass.reg, !sass.imm`.
    pub types: &'t str,
    /// The registers that it writes: the first one of each access, in the order of the results, constant registers included.
    pub registers: &'t [Pin],
    /// Its scheduling.
    pub control: Control,
}

/// The word of an instruction, but for the registers of its operands. The error says why there is none.
///
/// Of several words with the text it is some one: they differ in what registers the operands can have, which [`bind`] tells.
pub fn assemble(isa: &'static Isa, target: Target, wordless: &Wordless<'_>) -> Result<Word, String> {
    Ok(candidates(isa, target, wordless)?[0].word)
}

/// The word with the registers of its operands, `pins`, in the order of the op's operands; the inverse of reading them off it.
/// `word` comes from [`assemble`], and `layout` is its own; `label` is how far its code label is from the next instruction, in bytes, if
/// it leads to one in the same code.
pub fn bind(
    isa: &'static Isa,
    target: Target,
    layout: &Layout,
    word: Word,
    pins: &[Pin],
    label: Option<i64>,
) -> Result<Word, String> {
    let word = match layout.rel_field.zip(label) {
        Some((field, label)) => with_label(isa, layout, word, usize::from(field), label)?,
        None => word,
    };
    let mut text = Marked::default();
    let Ok(()) = walk(layout, word, &mut text);
    let written = layout.slots.iter().filter(|s| s.writes() && s.field.is_some());
    let registers: Vec<Pin> = written.map(|s| s.pin(word)).collect();
    let candidates = candidates(
        isa,
        target,
        &Wordless {
            text: &text.0,
            types: &layout.operand_types(),
            registers: &registers,
            control: Control::of(word),
        },
    )?;
    let mut found: Vec<Word> = Vec::new();
    let mut refused = None;
    for inst in candidates {
        let layout = describe(isa, target, inst).ok_or("its registers are not where tables can say")?;
        match bind_registers(isa, &layout, inst.word, pins) {
            Ok(word) if found.contains(&word) => {}
            Ok(word) => found.push(word),
            Err(why) => refused = refused.or(Some(why)),
        }
    }
    match found[..] {
        [word] => Ok(word),
        [] => Err(refused.unwrap_or_default()),
        [first, ref rest @ ..] => {
            let bits = asm::bits(rest.iter().fold(0, |bits, word| bits | word.0 ^ first.0));
            Err(format!(
                "several words are this, and differ in bits {bits}: write the one that is meant behind `raw`"
            ))
        }
    }
}

/// All words with the text, at least one.
fn candidates(isa: &'static Isa, target: Target, wordless: &Wordless<'_>) -> Result<Vec<Inst>, String> {
    let text = match wordless.text.trim_start() {
        text if text.starts_with("sass.") => text.to_owned(),
        text => format!("sass.{text}"),
    };
    let tokens: Vec<&str> = tokens(&text).collect();
    let name = tokens.first().copied().unwrap_or_default();
    let (mnemonic, opcode, mut modifiers) = split_name(name).ok_or_else(|| format!("`{name}` names no instruction"))?;
    modifiers.extend(quoted_modifiers(&tokens));
    let mut search = Search {
        isa,
        target,
        wordless,
        numbers: numbers(&tokens),
        tokens: &tokens,
        furthest: 0,
        refused: None,
        found: Vec::new(),
    };
    let mut names = isa.forms().filter(|form| form.mnemonic() == mnemonic).peekable();
    if names.peek().is_none() {
        return Err(format!("{target} has no instruction `{mnemonic}`"));
    }
    let mut known_modifiers = false;
    for form in names.filter(|form| form.opcode() == opcode) {
        let filler = Inst {
            word: search.guard(form.filler()),
            form: form.id(),
        };
        for inst in isa.with_modifiers(filler, &modifiers) {
            known_modifiers = true;
            search.shape(inst, 0, None);
        }
    }
    match search.found {
        found if !found.is_empty() => Ok(found),
        _ if !known_modifiers => Err(format!(
            "no form of {mnemonic} has the opcode {opcode:#05x} and these modifiers on {target}"
        )),
        _ => Err(search.refused.unwrap_or_else(|| {
            let rest = &tokens[search.furthest.min(tokens.len())..];
            match rest[..rest.len().min(8)].join(" ").replace(MARK, "%_") {
                rest if rest.is_empty() => {
                    format!("no form of {mnemonic} ends where the text does: an operand, or `merge(...)`, is missing")
                }
                rest => format!("no form of {mnemonic} fits the text from `{rest}` on"),
            }
        })),
    }
}

fn with_label(isa: &Isa, layout: &Layout, word: Word, field: usize, label: i64) -> Result<Word, String> {
    let inst = Inst {
        word,
        form: layout.form,
    };
    let set = isa.set_field(inst, field, label).map_err(|e| e.to_string())?;
    Ok(set.word)
}

fn bind_registers(isa: &Isa, layout: &Layout, word: Word, pins: &[Pin]) -> Result<Word, String> {
    let results = |word| {
        let mut pins = Vec::new();
        layout.each_write(word, |pin| pins.push(pin));
        pins
    };
    let count = layout.read_count().min(pins.len());
    let bound = pins[..count]
        .iter()
        .enumerate()
        .try_fold(word, |word, (operand, &pin)| layout.with_operand(word, operand, pin));
    let bound = bound?;
    if results(bound) != results(word) {
        return Err("it writes a register that it also reads, so its value has to be in that register".to_owned());
    }
    let mut expected: Vec<Pin> = layout.read_pins(bound).collect();
    layout.each_merge(bound, |pin| expected.push(pin));
    if expected.len() > pins.len() {
        return Err("it is guarded, so it needs `merge(...)` with the previous values of what it writes".to_owned());
    }
    if let Some((wanted, found)) = expected.iter().zip(pins).find(|(wanted, found)| wanted != found) {
        return Err(format!("it merges with {wanted}, and the value is in {found}"));
    }
    if pins.len() > expected.len() {
        return Err("it is not guarded, so it merges with nothing".to_owned());
    }
    match isa.decode(bound).form == layout.form {
        true => Ok(bound),
        false => Err("it cannot have these registers".to_owned()),
    }
}

/// Mnemonic, opcode, and modifiers of `sass.FFMA_0x223.FTZ`.
fn split_name(name: &str) -> Option<(&str, u16, Vec<&str>)> {
    let mut parts = name.strip_prefix("sass.")?.split('.');
    let (mnemonic, opcode) = parts.next()?.rsplit_once("_0x")?;
    Some((mnemonic, u16::from_str_radix(opcode, 16).ok()?, parts.collect()))
}

/// Those behind the name, in `mods("???3")`.
fn quoted_modifiers<'t>(tokens: &[&'t str]) -> Vec<&'t str> {
    match tokens {
        [_, "mods", "(", rest @ ..] => {
            let inside = rest.iter().take_while(|t| **t != ")");
            inside.filter_map(|t| t.strip_prefix('"')?.strip_suffix('"')).collect()
        }
        _ => Vec::new(),
    }
}

fn numbers(tokens: &[&str]) -> Vec<i64> {
    let parsed = tokens
        .iter()
        .filter_map(|t| i64::from_str_radix(t.strip_prefix("0x")?, 16).ok());
    let mut numbers: Vec<i64> = parsed.collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

/// Words, strings, marks, and single characters.
fn tokens(text: &str) -> impl Iterator<Item = &str> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '.');
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = rest.trim_start();
        let first = rest.chars().next()?;
        let len = match first {
            '"' => rest[1..].find('"').map_or(rest.len(), |end| end + 2),
            c if is_word(c) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            c => c.len_utf8(),
        };
        let (token, behind) = rest.split_at(len);
        rest = behind;
        Some(token)
    })
}

/// Writes the text of a word with marks for its values.
#[derive(Default)]
struct Marked(String);

impl Sink for Marked {
    type Error = std::convert::Infallible;

    fn lit(&mut self, text: &str) -> Result<(), Self::Error> {
        self.0.push_str(text);
        Ok(())
    }

    fn value(&mut self, _: usize) -> Result<(), Self::Error> {
        self.0.push(MARK);
        Ok(())
    }

    fn label(&mut self, first: bool, offset: &Buffer) -> Result<(), Self::Error> {
        self.0.push_str(if first { " rel(" } else { ", rel(" });
        self.0.push_str(offset.as_str());
        self.0.push(')');
        Ok(())
    }
}

/// Looks for the words that have a text.
struct Search<'s> {
    isa: &'static Isa,
    target: Target,
    wordless: &'s Wordless<'s>,
    tokens: &'s [&'s str],
    /// The numbers among them.
    numbers: Vec<i64>,
    /// How many tokens some form had.
    furthest: usize,
    /// Why a form that has the whole text is none all the same.
    refused: Option<String>,
    found: Vec<Inst>,
}

impl Search<'_> {
    /// The word with a guard of the text's kind: negated or not, the constant or not. Which register it is comes later.
    fn guard(&self, word: Word) -> Word {
        let has = |words: &[&str]| self.tokens.windows(words.len()).any(|w| w == words);
        let negated = has(&["guard", "(", "not"]);
        let number = if has(&["merge", "("]) && !negated { 0 } else { 7 };
        match has(&["guard", "("]) {
            true => Word(word.with_bits(14, 12, number).0 & !GUARD_NEGATED | u128::from(negated) << 15),
            false => word,
        }
    }

    /// Gives the operands from `from` on the shapes with which more of the text fits than `before`.
    fn shape(&mut self, inst: Inst, from: usize, before: Option<usize>) {
        let Some(layout) = describe(self.isa, self.target, inst) else {
            return;
        };
        let written = self.write_registers(&layout, inst.word);
        let mut fit = Fit {
            layout: &layout,
            tokens: self.tokens,
            at: 0,
            word: *written.as_ref().unwrap_or(&inst.word),
        };
        let fits = walk(&layout, fit.word, &mut fit).is_ok() && fit.at == self.tokens.len();
        let (at, word) = (fit.at, fit.word);
        if fits {
            match written.and_then(|_| self.complete(&layout, word)) {
                Ok(inst) if self.found.contains(&inst) => {}
                Ok(inst) => self.found.push(inst),
                Err(why) => self.refused = Some(why),
            }
            return;
        }
        if before.is_some_and(|before| at <= before) {
            return;
        }
        self.furthest = self.furthest.max(at);
        for counted in self.isa.with_selecting_numbers(inst, &self.numbers) {
            self.shape(counted, from, Some(at));
        }
        for operand in from..self.isa.operand_count(inst) {
            for shaped in self.isa.with_shapes(inst, operand) {
                self.shape(shaped, operand + 1, Some(at));
            }
        }
    }

    /// The word with the registers that `regs` lists in it.
    fn write_registers(&self, layout: &Layout, word: Word) -> Result<Word, String> {
        let slots: Vec<_> = layout
            .slots
            .iter()
            .filter(|s| s.writes() && s.field.is_some())
            .collect();
        let pins = self.wordless.registers;
        if slots.len() != pins.len() {
            let count = |n: usize| {
                if n == 1 {
                    "1 register".to_owned()
                } else {
                    format!("{n} registers")
                }
            };
            let (writes, lists) = (count(slots.len()), count(pins.len()));
            return Err(format!(
                "it writes {writes}, pairs and longer counted once, and `regs` lists {lists}"
            ));
        }
        slots.iter().zip(pins).try_fold(word, |word, (slot, pin)| {
            let number = slot.encode(*pin).filter(|_| pin.file() == slot.file);
            let set = number.and_then(|number| slot.set(word, number));
            set.ok_or_else(|| format!("it cannot write {pin} there"))
        })
    }

    /// With types and scheduling held against the text.
    fn complete(&self, layout: &Layout, word: Word) -> Result<Inst, String> {
        let types = layout.operand_types();
        if !tokens(&types).eq(tokens(self.wordless.types)) {
            return Err(format!("the types of its operands are ({types})"));
        }
        let owned = self.isa.form(layout.form).map_or(0, |form| form.selector_mask()) & control::MASK;
        let scheduled = self.wordless.control.apply(word);
        let inst = self.isa.decode(Word(scheduled.0 & !owned | word.0 & owned));
        match inst.form {
            form if form == layout.form => Ok(inst),
            FormId::OPAQUE => Err("no such instruction is legal, with this scheduling".to_owned()),
            _ => Err("the tables give this word to another form".to_owned()),
        }
    }
}

/// Follows the text of a layout along tokens, and takes the numbers over into the word.
struct Fit<'f> {
    layout: &'f Layout,
    tokens: &'f [&'f str],
    at: usize,
    word: Word,
}

/// The text is another one.
struct Misfit;

impl Fit<'_> {
    fn next(&mut self) -> Option<&str> {
        let token = self.tokens.get(self.at).copied();
        self.at += usize::from(token.is_some());
        token
    }

    fn eat(&mut self, token: &str) -> Result<(), Misfit> {
        match self.tokens.get(self.at) {
            Some(next) if *next == token => {
                self.at += 1;
                Ok(())
            }
            _ => Err(Misfit),
        }
    }

    fn eat_number(&mut self, imm: &Imm) -> Result<(), Misfit> {
        let from = self.at;
        let negative = self.eat("-").is_ok();
        let digits = self.next().and_then(|token| token.strip_prefix("0x"));
        let magnitude = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
        let set = magnitude.and_then(|magnitude| imm.put(self.word, magnitude, negative));
        self.word = set.ok_or_else(|| {
            self.at = from;
            Misfit
        })?;
        Ok(())
    }
}

impl Sink for Fit<'_> {
    type Error = Misfit;

    fn lit(&mut self, text: &str) -> Result<(), Misfit> {
        tokens(text).try_for_each(|token| self.eat(token))
    }

    fn value(&mut self, _: usize) -> Result<(), Misfit> {
        self.eat(MARK.encode_utf8(&mut [0]))
    }

    fn number(&mut self, n: usize, _: &Buffer) -> Result<(), Misfit> {
        self.eat_number(&self.layout.imms[n])
    }

    fn named(&mut self, slot: usize, _: Pin) -> Result<(), Misfit> {
        let pin = self.tokens.get(self.at).and_then(|token| Pin::parse(token));
        let slot = &self.layout.slots[slot];
        let number = pin
            .filter(|pin| pin.file() == slot.file)
            .and_then(|pin| slot.encode(pin));
        self.word = number.and_then(|number| slot.set(self.word, number)).ok_or(Misfit)?;
        self.at += 1;
        Ok(())
    }

    fn label(&mut self, first: bool, _: &Buffer) -> Result<(), Misfit> {
        let from = self.at;
        if !first && self.eat(",").is_err() {
            return Ok(()); // a successor
        }
        if self.eat("label").is_ok() {
            self.eat("(")?;
            self.next();
            return self.eat(")");
        }
        if self.eat("rel").is_err() {
            self.at = from;
            return Ok(());
        }
        self.eat("(")?;
        let imm = self.layout.segs.iter().find_map(|seg| match seg.item {
            Item::Label { imm, .. } => Some(usize::from(imm)),
            _ => None,
        });
        self.eat_number(&self.layout.imms[imm.ok_or(Misfit)?])?;
        self.eat(")")
    }
}
