//! Changes of a word, each of which moves exactly the bits that it names.

use crate::field::FieldError;
use crate::tables::FormData;
use crate::{FormId, Inst, Isa, Word};

impl Isa {
    /// The instruction with another number in field `field`; it must stay the same form, shapes included.
    pub fn set_field(&self, i: Inst, field: usize, value: i64) -> Result<Inst, FieldError> {
        let form = self.data(i.form).ok_or(FieldError::Opaque(i.word.0))?;
        let f = form.fields.get(field).ok_or(FieldError::NoField {
            form: form.name,
            index: field,
            count: form.fields.len(),
        })?;
        let out = self.decode(f.set(i.word, value)?);
        if out.form != i.form || !self.same_shapes(form, i.word, out.word) {
            return Err(FieldError::OtherForm {
                form: form.name,
                field: f.name,
                value,
                becomes: self.data(out.form).map_or("no legal word", |d| d.name),
            });
        }
        Ok(out)
    }

    /// The instruction without the modifier tokens `drop` and with `add`. Every modifier slot that holds none of them keeps its text,
    /// and so do the operands; of several encodings the one that differs in fewest bits is taken.
    pub fn edit_modifiers(&self, i: Inst, drop: &[&str], add: &[&str]) -> Result<Inst, FieldError> {
        let form = self.data(i.form).ok_or(FieldError::Opaque(i.word.0))?;
        let mut wanted: Vec<Vec<&str>> = (0..form.modifiers.len())
            .map(|slot| tokens(self.slot_text(form, i.word, slot)).collect())
            .collect();
        for token in drop {
            let found = wanted.iter_mut().find_map(|slot| {
                let at = slot.iter().position(|t| t == token)?;
                Some(slot.remove(at))
            });
            if found.is_none() {
                return Err(FieldError::NoSuchModifier {
                    form: form.name,
                    token: (*token).to_owned(),
                });
            }
        }
        let mut best = None;
        self.place(form, i, &mut wanted, add, &mut best);
        let word = best.map(|(_, w)| w).ok_or_else(|| FieldError::NoEncoding {
            form: form.name,
            drop: drop.join("."),
            add: add.join("."),
        })?;
        Ok(Inst { word, form: i.form })
    }

    /// Tries every slot for each token of `add`, then encodes.
    fn place<'t>(
        &self,
        form: &FormData,
        i: Inst,
        wanted: &mut Vec<Vec<&'t str>>,
        add: &[&'t str],
        best: &mut Option<(u32, Word)>,
    ) {
        let Some((first, rest)) = add.split_first() else {
            self.encode_slots(form, i, wanted, 0, i.word, best);
            return;
        };
        for slot in 0..wanted.len() {
            wanted[slot].push(first);
            self.place(form, i, wanted, rest, best);
            wanted[slot].pop();
        }
    }

    /// Sets slot after slot to a value with the wanted tokens; keeps the result with fewest changed bits.
    fn encode_slots(
        &self,
        form: &FormData,
        i: Inst,
        wanted: &[Vec<&str>],
        slot: usize,
        word: Word,
        best: &mut Option<(u32, Word)>,
    ) {
        if slot == wanted.len() {
            let changed = (word.0 ^ i.word.0).count_ones();
            let exact = self.decode(word).form == i.form
                && self.same_shapes(form, i.word, word)
                && (0..slot).all(|s| same_tokens(&wanted[s], self.slot_text(form, word, s)));
            if exact && best.is_none_or(|(bits, _)| changed < bits) {
                *best = Some((changed, word));
            }
            return;
        }
        let selector = &self.tables.selectors[form.modifiers[slot] as usize];
        let now = selector.get(i.word).map_or("", |t| self.tables.texts[t]);
        if same_tokens(&wanted[slot], now) {
            return self.encode_slots(form, i, wanted, slot + 1, word, best);
        }
        for (value, text) in selector.rows() {
            if same_tokens(&wanted[slot], self.tables.texts[text]) {
                let word = selector.bits.set(word, value);
                self.encode_slots(form, i, wanted, slot + 1, word, best);
            }
        }
    }

    /// The instruction with printed operand `operand` in another shape, as the tables spell it: `-R#` negates, `|R#|` takes the absolute
    /// value. Its registers and numbers stay, and so does everything else; of several encodings the one that differs in fewest bits is taken.
    pub fn set_shape(&self, i: Inst, operand: usize, shape: &str) -> Result<Inst, FieldError> {
        let form = self.data(i.form).ok_or(FieldError::Opaque(i.word.0))?;
        let no_shape = |shapes| FieldError::NoShape {
            form: form.name,
            operand,
            shape: shape.to_owned(),
            shapes,
        };
        let own = form.operands.get(operand).ok_or_else(|| no_shape(Vec::new()))?;
        let selector = &self.tables.selectors[own.selector as usize];
        let text = |item: usize| self.tables.shapes[item].text;
        let rows = selector.rows().filter(|(_, item)| text(*item) == shape);
        let words = rows.map(|(value, _)| self.decode(selector.bits.set(i.word, value)));
        let keeps = |out: &Inst| {
            let others = form.operands.iter().filter(|o| o.selector != own.selector);
            let mut others = others.map(|o| &self.tables.selectors[o.selector as usize]);
            let mut slots = 0..form.modifiers.len();
            out.form == i.form
                && others.all(|s| s.get(i.word) == s.get(out.word))
                && slots.all(|s| self.slot_text(form, i.word, s) == self.slot_text(form, out.word, s))
        };
        let best = words
            .filter(keeps)
            .min_by_key(|out| (out.word.0 ^ i.word.0).count_ones());
        best.ok_or_else(|| no_shape(selector.rows().map(|(_, item)| text(item)).collect()))
    }

    fn same_shapes(&self, form: &FormData, a: Word, b: Word) -> bool {
        form.operands.iter().all(|o| {
            let selector = &self.tables.selectors[o.selector as usize];
            selector.get(a) == selector.get(b)
        })
    }

    /// The word with every register field that plays a part (printed or hidden) and the guard set to 0. Constant registers, which
    /// have no bits, stay. The result may decode as another form: it is for proofs that a lowering writes all registers back.
    pub fn clear_registers(&self, i: Inst) -> Word {
        Word(i.word.0 & !self.register_mask(i))
    }

    /// Bits of the register fields that play a part in the word, and of the guard's register.
    pub fn register_mask(&self, i: Inst) -> u128 {
        let Some(form) = self.data(i.form) else {
            return 0;
        };
        let registers = form.fields.iter().enumerate().filter(|(_, f)| f.kind.file().is_some());
        registers
            .filter(|(n, _)| self.is_active(i, *n))
            .fold(0, |m, (_, f)| m | f.mask())
    }

    /// Bits that make the instruction what it is: form, shapes, modifiers, the guard's negation, immediates and constant addresses.
    /// Registers, scheduling and don't-care bits are not in it. All bits of an opaque word.
    pub fn semantic_mask(&self, i: Inst) -> u128 {
        let Some(form) = self.data(i.form) else {
            return u128::MAX;
        };
        let numbers = form.fields.iter().enumerate().filter(|(_, f)| f.kind.file().is_none());
        let fields = numbers
            .filter(|(n, _)| self.is_active(i, *n))
            .fold(0, |m, (_, f)| m | f.mask());
        (form.fixed | fields) & !self.register_mask(i) & !crate::control::MASK
    }

    /// Bits that the tables give a meaning in the word, scheduling aside: the rest is don't-care filler.
    pub fn known_mask(&self, i: Inst) -> u128 {
        self.semantic_mask(i) | self.register_mask(i)
    }

    /// Bits that nothing reads: no field, no selector, no flag of the operand cache and no scheduling bit.
    pub fn meaningless_mask(&self, i: Inst) -> u128 {
        let flags = self.data(i.form).map_or(0, FormData::flags);
        !self.known_mask(i) & !flags & !crate::control::MASK
    }

    /// The legal word of a form to make new instructions from.
    pub fn filler(&self, form: FormId) -> Option<Inst> {
        Some(self.decode(Word(self.data(form)?.filler)))
    }
}

pub(crate) fn tokens(text: &str) -> impl Iterator<Item = &str> {
    text.split('.').filter(|t| !t.is_empty())
}

/// Whether the tokens of `text` are `wanted`, in any order.
fn same_tokens(wanted: &[&str], text: &str) -> bool {
    let count = tokens(text).count();
    let times = |list: &mut dyn Iterator<Item = &str>, token: &str| list.filter(|t| *t == token).count();
    count == wanted.len()
        && wanted
            .iter()
            .all(|w| times(&mut wanted.iter().copied(), w) == times(&mut tokens(text), w))
}
