//! From a skeleton to the words that print so: which forms, with which selector values, and which field takes which value.

use super::refuse::is_hidden;
use super::scan::Scanned;
use super::shapes::{Hole, Reading, Shapes, Slot};
use crate::field::Field;
use crate::tables::{FormData, Selector};
use crate::{FormId, Inst, Isa, Word, control};

/// One way to encode a skeleton.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Candidate {
    pub(super) form: FormId,
    /// All bits but those of the values and of the scheduling.
    pub(super) base: u128,
    /// For each value in the text: the form's field that takes it; `None` where literal text must equal [`Candidate::literals`].
    pub(super) fields: Box<[Option<u8>]>,
    /// Values that stand for literal text: number of the value, and the value.
    pub(super) literals: Box<[(u8, super::scan::Value)]>,
    /// For each operand in the text, its number in the form.
    pub(super) operands: Box<[u8]>,
    /// Bits that the form's match rows, selectors and fields own.
    pub(super) owned: u128,
    /// Bits without a meaning in the candidate's words, scheduling aside.
    pub(super) meaningless: u128,
    /// There is a register that the text does not show.
    pub(super) hides: bool,
    /// All operands are in the text, also those that `nvdisasm` may leave out.
    pub(super) spelled_out: bool,
}

/// All ways, as far as they were enumerated.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) candidates: Vec<Candidate>,
    /// The enumeration stopped at the limit.
    pub(super) is_cut: bool,
}

/// Most candidates of a plan: real text has a handful.
const LIMIT: usize = 256;
/// Most selector values that are tried for a plan.
const TRIES: usize = 1 << 18;

/// Bits with known values.
#[derive(Clone, Copy, Default, PartialEq)]
struct Known {
    mask: u128,
    value: u128,
}

impl Known {
    /// The selector's values that agree with what is known, each with its item. Bits of `given` come with the text's values later on,
    /// so nothing is asked of them here.
    fn rows(self, selector: &Selector, given: u128) -> Vec<(Self, usize)> {
        let mask = selector.bits.mask();
        if mask & !self.mask == 0 && mask & given == 0 {
            return selector
                .get(Word(self.value))
                .map(|item| (self, item))
                .into_iter()
                .collect();
        }
        let mut out: Vec<(Self, usize)> = Vec::new();
        for (value, item) in selector.rows() {
            let row = self.and(mask & !given, selector.bits.set(Word(0), value).0 & !given);
            out.extend(row.map(|known| (known, item)));
        }
        if mask & given != 0 {
            out.sort_unstable_by_key(|(known, item)| (*item, known.value));
            out.dedup_by_key(|(known, item)| (*item, known.value));
        }
        out
    }

    fn and(self, mask: u128, value: u128) -> Option<Self> {
        ((self.value ^ value) & self.mask & mask == 0).then_some(Self {
            mask: self.mask | mask,
            value: self.value | value,
        })
    }
}

struct Builder<'a> {
    isa: &'a Isa,
    form: &'a FormData,
    id: FormId,
    readings: &'a [&'a [Reading]],
    tokens: &'a [&'a str],
    fields: Vec<Option<u8>>,
    literals: Vec<(u8, super::scan::Value)>,
    operands: Vec<u8>,
    constants: Vec<(u8, i64)>,
    tries: usize,
    plan: &'a mut Plan,
}

/// Builds the plan of a scanned text; `forms` are those of its mnemonic.
pub(super) fn build(isa: &Isa, forms: &[u16], shapes: &Shapes, scanned: &Scanned) -> Plan {
    let head = scanned.skeleton.split(' ').next().unwrap_or_default();
    let tokens: Vec<&str> = head.split('.').skip(1).collect();
    let readings: Vec<&[Reading]> = (0..scanned.operands.len())
        .map(|n| shapes.readings(scanned.operand(n)))
        .collect();
    let mut plan = Plan::default();
    for &number in forms {
        let id = FormId(number);
        let Some(form) = isa.data(id) else { continue };
        if form.operands.len() < readings.len() {
            continue;
        }
        let mut matches: Vec<(u128, u128)> = isa
            .tables
            .rows
            .iter()
            .filter(|r| r.form == number)
            .map(|r| (r.mask, r.value))
            .collect();
        matches.sort_unstable();
        matches.dedup();
        for (mask, value) in matches {
            let mut builder = Builder {
                isa,
                form,
                id,
                readings: &readings,
                tokens: &tokens,
                fields: vec![],
                literals: vec![],
                operands: vec![],
                constants: vec![],
                tries: 0,
                plan: &mut plan,
            };
            builder.operand(0, Known { mask, value });
        }
    }
    plan
}

impl<'a> Builder<'a> {
    fn field(&self, operand: usize, hole: Hole) -> Option<(u8, &'a Field)> {
        let n = self.form.operands[operand].field(hole).or_else(|| {
            // A code label is written like a number.
            let label = (crate::shape::HOLE_L, hole.1);
            (hole.0 == crate::shape::HOLE_X).then(|| self.form.operands[operand].field(label))?
        })?;
        Some((n as u8, &self.form.fields[n]))
    }

    /// Reads the form's operand `n`, and those after it.
    fn operand(&mut self, n: usize, known: Known) {
        let text = self.operands.len();
        if n == self.form.operands.len() {
            if text == self.readings.len() {
                self.modifiers(known);
            }
            return;
        }
        let left = self.form.operands.len() - n;
        let selector = &self.isa.tables.selectors[self.form.operands[n].selector as usize];
        let readings = self.readings.get(text).copied().unwrap_or_default();
        let may_leave_out = left > self.readings.len() - text;
        for reading in readings {
            // Some operands are there or not by the number in their own field.
            let given = self.fields_of(n, reading);
            for (known, shape) in known.rows(selector, given) {
                if self.is_over() {
                    return;
                }
                if shape == reading.shape {
                    self.take(n, reading, known);
                }
            }
        }
        if may_leave_out {
            for (known, shape) in known.rows(selector, 0) {
                if self.is_over() {
                    return;
                }
                self.leave_out(n, shape, known);
            }
        }
    }

    /// Counts a try; true when there have been too many.
    fn is_over(&mut self) -> bool {
        self.tries += 1;
        let over = self.tries > TRIES || self.plan.candidates.len() > LIMIT;
        self.plan.is_cut |= over;
        over
    }

    /// The text's next operand is operand `n`, read in one way.
    fn take(&mut self, n: usize, reading: &Reading, known: Known) {
        let marks = (self.fields.len(), self.literals.len(), self.constants.len());
        let mut fits = true;
        for slot in &reading.slots {
            match *slot {
                Slot::Hole(hole) => match self.field(n, hole) {
                    Some((field, _)) => self.fields.push(Some(field)),
                    None => {
                        fits = false;
                        break;
                    }
                },
                Slot::Literal(value) => {
                    self.literals.push((self.fields.len() as u8, value));
                    self.fields.push(None);
                }
            }
        }
        for &(hole, value) in &reading.left_out {
            match self.field(n, hole) {
                Some((field, f)) => match value.or_else(|| f.elide.first().copied()) {
                    Some(v) => self.constants.push((field, v)),
                    None => fits = false,
                },
                None => fits = false,
            }
        }
        if fits {
            self.operands.push(n as u8);
            self.operand(n + 1, known);
            self.operands.pop();
        }
        self.fields.truncate(marks.0);
        self.literals.truncate(marks.1);
        self.constants.truncate(marks.2);
    }

    /// Operand `n` is not in the text.
    fn leave_out(&mut self, n: usize, shape: usize, known: Known) {
        let shape = &self.isa.tables.shapes[shape];
        if shape.text.is_empty() {
            return self.operand(n + 1, known);
        }
        let Some((field, f)) = shape.plain().and_then(|hole| self.field(n, hole)) else {
            return;
        };
        for &value in &f.elide {
            self.constants.push((field, value));
            self.operand(n + 1, known);
            self.constants.pop();
        }
    }

    fn modifiers(&mut self, known: Known) {
        let tokens = self.tokens;
        self.slot(0, tokens, &[], known);
        for &alias in &self.form.aliases {
            let alias = &self.isa.tables.aliases[usize::from(alias)];
            if let Some(rest) = tokens.strip_prefix(&alias.add[..]) {
                self.slot(0, rest, &alias.drop, known);
            }
        }
    }

    /// Finds values of modifier slot `slot` and those after it that print `tokens`, leaving out those in `dropped`.
    fn slot(&mut self, slot: usize, tokens: &[&str], dropped: &[&str], known: Known) {
        if slot == self.form.modifiers.len() {
            if tokens.is_empty() {
                self.finish(known);
            }
            return;
        }
        let selector = &self.isa.tables.selectors[self.form.modifiers[slot] as usize];
        for (known, text) in known.rows(selector, self.given()) {
            if self.is_over() {
                return;
            }
            let printed = self.isa.tables.texts[text]
                .split('.')
                .filter(|t| !t.is_empty() && !dropped.contains(t));
            let mut rest = tokens;
            let mut fits = true;
            for token in printed {
                match rest.split_first() {
                    Some((first, tail)) if *first == token => rest = tail,
                    _ => {
                        fits = false;
                        break;
                    }
                }
            }
            if fits {
                self.slot(slot + 1, rest, dropped, known);
            }
        }
    }

    /// Bits of the fields of operand `n` that take values of the text in that reading.
    fn fields_of(&self, n: usize, reading: &Reading) -> u128 {
        let holes = reading.slots.iter().filter_map(|slot| match slot {
            Slot::Hole(hole) => self.field(n, *hole),
            Slot::Literal(_) => None,
        });
        holes.fold(0, |m, (_, f)| m | f.mask())
    }

    /// Bits of all fields that take values of the text so far.
    fn given(&self) -> u128 {
        let fields = self.fields.iter().flatten();
        fields.fold(0, |m, &f| m | self.form.fields[usize::from(f)].mask())
    }

    fn finish(&mut self, known: Known) {
        let form = self.form;
        let mut base = Word(form.filler & !known.mask | known.value);
        for &(field, value) in &self.constants {
            match form.fields[usize::from(field)].set(base, value) {
                Ok(word) => base = word,
                Err(_) => return,
            }
        }
        let owned = form.fields.iter().fold(form.fixed, |m, f| m | f.mask());
        let scheduling = control::MASK & !(control::SHOWN_REUSE_MASK & owned);
        let inst = Inst {
            word: Word(base.0 & !scheduling),
            form: self.id,
        };
        let candidate = Candidate {
            form: self.id,
            base: inst.word.0,
            owned,
            meaningless: self.isa.meaningless_mask(inst),
            hides: form.fields.iter().any(|f| is_hidden(self.isa, inst, f)),
            spelled_out: self.operands.len() == form.operands.len(),
            fields: self.fields.clone().into(),
            literals: self.literals.clone().into(),
            operands: self.operands.clone().into(),
        };
        if !self.plan.candidates.contains(&candidate) {
            self.plan.candidates.push(candidate);
        }
    }
}
