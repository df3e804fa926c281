//! Text that stands there exactly as the printer writes it, but for the names of values: read without looking for tokens.
//!
//! What is read here is what `parse_body`, `parse_inst` and `parse_values` would read. Anything else, be it another layout, a value
//! that is defined further down, or a mistake, is left to them, and so are all messages.

use isa::Word;

use crate::kernel::{NONE, OpKind, SUCCESSOR, ValueId};
use crate::layout::{Flow, Item, Layout};
use crate::layouts::Layouts;
use crate::lex::{hex_word, is_name_byte};
use crate::parse_body::Parser;
use crate::parse_values::Group;
use crate::pin::{Pin, file_index};
use crate::scan::At;

/// The operands of an instruction before they are read, as many as most have at most.
const UNREAD: [ValueId; 16] = [ValueId(NONE); 16];

impl Parser<'_> {
    /// Reads an instruction or a live-in and its line. Where it is not exactly as printed, gives false and changes nothing.
    pub(crate) fn exact(&mut self, layouts: &mut Layouts) -> bool {
        let before = self.snapshot();
        let start = self.cursor.pos;
        if self.exact_line(layouts).is_some() {
            return true;
        }
        self.restore(before);
        self.cursor.pos = start;
        false
    }

    fn exact_line(&mut self, layouts: &mut Layouts) -> Option<()> {
        let mut at = self.cursor.exact();
        let results = match at.peek()? {
            b'%' => Some(self.exact_results(&mut at)?),
            _ => None,
        };
        // Mnemonics are upper case, everything else is not.
        match at.chunk()? {
            [b's', b'a', b's', b's', b'.', b'A'..=b'Z'] => self.exact_instruction(at, results, layouts),
            b"builti" => self.exact_live_in(at, results?),
            _ => None,
        }
    }

    /// `%4 = ` or `%4:2 = `: name and count.
    #[inline(always)]
    fn exact_results(&mut self, at: &mut At<'_>) -> Option<(u32, u16)> {
        at.skip(b"%")?;
        let name = at.decimal()?;
        if name as usize >= self.numbered.len() {
            self.number(name)?;
        }
        let mut count = 1;
        if at.peek()? == b':' {
            at.pos += 1;
            count = u16::try_from(at.decimal()?).ok().filter(|n| *n > 1)?;
        }
        at.skip(b" = ")?;
        Some((name, count))
    }

    /// Gives the results from value `first` on their name.
    #[inline(always)]
    fn exact_define(&mut self, (name, count): (u32, u16), first: usize) -> Option<()> {
        let pins = self.kernel.pins.get(first..)?;
        let pin = *pins.first().filter(|_| pins.len() == usize::from(count))?;
        let group = self.numbered.get_mut(name as usize).filter(|g| g.count == 0)?;
        let first = first as u32;
        *group = Group { first, count, pin };
        Some(())
    }

    fn exact_live_in(&mut self, mut at: At<'_>, results: (u32, u16)) -> Option<()> {
        at.text(b"builtin.unrealized_conversion_cast to ")?;
        let file = at.any_file_type()?;
        at.text(b" {sass.pin = ")?;
        let pin = at.pin().filter(|pin| pin.file() == file)?;
        at.text(b"}\n")?;
        let first = self.kernel.pins.len();
        self.kernel.pins.push(pin);
        self.exact_define(results, first)?;
        self.cursor.pos = at.pos - 1;
        self.kernel.finish_op(OpKind::LiveIn, Word(0), NONE, NONE);
        Some(())
    }

    #[inline(always)]
    fn exact_instruction(&mut self, mut at: At<'_>, results: Option<(u32, u16)>, layouts: &mut Layouts) -> Option<()> {
        let mut behind = at;
        behind.find_raw()?;
        let raw = behind.pos;
        behind.pos += 7;
        let word = Word(hex_word(behind.chunk()?)?);
        behind.pos += 32;
        let index = layouts.get(word);
        let layout = &**layouts.list.get(index as usize)?;
        let label = self.exact_operands(&mut at, layout, word)?;
        let mut successors = 0;
        let first = self.kernel.pins.len();
        let pins = &mut self.kernel.pins;
        layout.each_write(word, |pin| pins.push(pin));
        if layout.flow != Flow::None {
            self.cursor.pos = at.pos;
            if matches!(layout.flow, Flow::Call | Flow::Return) {
                let mut written = self.summary().ok()?;
                self.kernel.pins.append(&mut written);
            }
            successors = self.successors().ok()?;
            at.pos = self.cursor.pos - usize::from(self.cursor.pos == raw + 1);
        }
        if at.pos != raw || (label == SUCCESSOR && successors == 0) {
            return None;
        }
        exact_types(&mut behind, layout, &self.kernel.pins[first..])?;
        if behind.peek()? != b'\n' {
            return None;
        }
        match results {
            None if first == self.kernel.pins.len() => {}
            _ => self.exact_define(results?, first)?,
        }
        self.cursor.pos = behind.pos;
        self.terminated = !matches!(layout.flow, Flow::None | Flow::Call) || successors > 0;
        self.kernel.finish_op(OpKind::Inst, word, index, label);
        Some(())
    }

    /// Everything from the name to the operands' end; gives the label.
    #[inline(always)]
    fn exact_operands(&mut self, at: &mut At<'_>, layout: &Layout, word: Word) -> Option<u32> {
        let first = self.kernel.operands.len();
        match UNREAD.get(..layout.reads.len()) {
            Some(unread) => self.kernel.operands.extend_from_slice(unread),
            None => self.kernel.operands.resize(first + layout.reads.len(), ValueId(NONE)),
        }
        let mut label = NONE;
        at.phrase(&layout.head)?;
        for seg in &layout.segs {
            match seg.item {
                Item::Value(n) => {
                    let n = usize::from(n);
                    let value = self.exact_value(at, layout.reads.get(n)?.pin(word))?;
                    *self.kernel.operands.get_mut(first + n)? = value;
                }
                Item::None => {}
                Item::Guard => {
                    if layout.guard_negated(word) {
                        at.skip(b"not ")?;
                    }
                    let value = self.exact_value(at, layout.reads.first()?.pin(word))?;
                    *self.kernel.operands.get_mut(first)? = value;
                }
                Item::Named(_) => return None,
                Item::Imm(n) => at.number(&layout.imms[usize::from(n)].text(word))?,
                Item::Label { first, .. } => label = exact_label(at, first)?,
                Item::Merge if layout.is_guarded(word) => {
                    let mut count = 0;
                    for register in &layout.writes {
                        let pin = register.pin(word);
                        if pin.is_zero() || register.tied {
                            continue;
                        }
                        match count {
                            0 => at.skip(b" merge(")?,
                            _ => at.skip(b", ")?,
                        }
                        count += 1;
                        let value = self.exact_value(at, pin)?;
                        self.kernel.operands.push(value);
                    }
                    if count > 0 {
                        at.skip(b")")?;
                    }
                }
                Item::Merge => {}
            }
            at.literal(&seg.text)?;
        }
        Some(label)
    }

    /// A value that is defined already, in the register `pin`.
    #[inline(always)]
    fn exact_value(&self, at: &mut At<'_>, pin: Pin) -> Option<ValueId> {
        let (value, found) = self.exact_use(at)?;
        (found == pin).then_some(value)
    }

    /// A value that is defined already, and its register.
    #[inline(always)]
    fn exact_use(&self, at: &mut At<'_>) -> Option<(ValueId, Pin)> {
        at.skip(b"%")?;
        let group = match at.decimal() {
            Some(number) => self.numbered.get(number as usize)?,
            None => self.named.get(file_index(at.constant()?))?,
        };
        let behind = at.peek()?;
        if behind != b'#' {
            let plain = group.count == 1 && !is_name_byte(behind);
            return plain.then_some((ValueId(group.first), group.pin));
        }
        at.pos += 1;
        let sub = at.decimal().filter(|sub| *sub < u32::from(group.count))?;
        let value = group.first + sub;
        // Names of several values are those of results.
        Some((ValueId(value), *self.kernel.pins.get(value as usize)?))
    }

    /// `%1, %2 : !sass.reg, !sass.pred)` behind the parenthesis. Where it is not exactly as printed, changes nothing.
    pub(crate) fn exact_typed_values(&mut self, edge: bool) -> Option<u32> {
        let mut at = self.cursor.exact();
        self.operands.clear();
        self.expected.clear();
        loop {
            let (value, pin) = self.exact_use(&mut at)?;
            self.operands.push(value.0);
            self.expected.push(pin);
            if at.skip(b", ").is_none() {
                break;
            }
        }
        at.skip(b" : ")?;
        exact_type_list(&mut at, &self.expected)?;
        self.cursor.pos = at.pos;
        let list = match edge {
            true => &mut self.kernel.edge_args,
            false => &mut self.kernel.operands,
        };
        list.extend(self.operands.iter().map(|v| ValueId(*v)));
        Some(self.operands.len() as u32)
    }

    /// `: !sass.reg` behind the name of a block argument.
    pub(crate) fn exact_argument_type(&mut self, pin: Pin) -> Option<()> {
        let mut at = self.cursor.exact();
        at.skip(b": ")?;
        at.file_type(pin.file())?;
        matches!(at.peek()?, b',' | b')').then_some(())?;
        self.cursor.pos = at.pos;
        Some(())
    }
}

/// The code label, last of the operands: a successor, or `label(3)`.
fn exact_label(at: &mut At<'_>, first: bool) -> Option<u32> {
    if at.chunk()? == b" ^" {
        return Some(SUCCESSOR);
    }
    if !first {
        at.skip(b",")?;
    }
    at.skip(b" label(")?;
    let label = at.decimal()?;
    at.skip(b")")?;
    Some(label)
}

/// The type list of an instruction with results in `pins`.
#[inline(always)]
fn exact_types(at: &mut At<'_>, layout: &Layout, pins: &[Pin]) -> Option<()> {
    let types = &layout.types;
    match (pins, &types.one) {
        ([], _) if !types.has_operands => Some(()),
        ([], _) => at.phrase(&types.none),
        ([pin], Some((file, phrase))) if pin.file() == *file => at.phrase(phrase),
        _ => {
            at.phrase(&types.operands)?;
            exact_type_list(at, pins)
        }
    }
}

/// `!sass.reg, !sass.pred)`.
fn exact_type_list(at: &mut At<'_>, pins: &[Pin]) -> Option<()> {
    for (k, pin) in pins.iter().enumerate() {
        if k > 0 {
            at.skip(b", ")?;
        }
        at.file_type(pin.file())?;
    }
    at.skip(b")")
}
