//! One target's tables in memory, built once from the blob: dense and indexed, so that nothing is searched or allocated per word.

use std::collections::HashMap;

use crate::alias::Alias;
use crate::blob::{self, Reader, Section};
use crate::control::{Rules, SHOWN_REUSE_MASK};
use crate::field::{Bits, Dir, Field, FieldKind, Map, OperandIx, RegFile, Widths};
use crate::legal::{Check, LegalRow};
use crate::semantics::Semantics;
use crate::shape::Shape;

/// Marks a selector value that has no row.
pub(crate) const ILLEGAL: u16 = u16::MAX;

/// Bits that choose a shape or the text of a modifier slot.
pub(crate) struct Selector {
    pub(crate) bits: Bits,
    /// Text or shape number for each value.
    pub(crate) dense: Box<[u16]>,
}

impl Selector {
    /// The item chosen by `w`.
    #[inline]
    pub(crate) fn get(&self, w: crate::Word) -> Option<usize> {
        match self.dense.get(self.bits.get(w) as usize) {
            Some(&ILLEGAL) | None => None,
            Some(&item) => Some(usize::from(item)),
        }
    }

    /// Legal values with their items.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (u64, usize)> + '_ {
        let legal = |(v, &item): (usize, &u16)| (item != ILLEGAL).then_some((v as u64, usize::from(item)));
        self.dense.iter().enumerate().filter_map(legal)
    }
}

/// Whether a modifier token is there: for each slot that can have it, a bitmap of the values that do.
pub(crate) struct TokenTest(Box<[(u32, Box<[u64]>)]>);

impl TokenTest {
    pub(crate) fn holds(&self, selectors: &[Selector], w: crate::Word) -> bool {
        self.0.iter().any(|(selector, bitmap)| {
            let value = selectors[*selector as usize].bits.get(w) as usize;
            bitmap.get(value / 64).is_some_and(|b| b >> (value % 64) & 1 == 1)
        })
    }
}

/// One operand of a form.
pub(crate) struct OperandData {
    pub(crate) selector: u32,
    /// Hole (kind, ordinal) -> field number.
    pub(crate) holes: Box<[((u8, u8), u8)]>,
}

impl OperandData {
    #[inline]
    pub(crate) fn field(&self, hole: (u8, u8)) -> Option<usize> {
        self.holes.iter().find(|h| h.0 == hole).map(|h| usize::from(h.1))
    }
}

/// A register field in a few bytes, for walking through accesses.
pub(crate) struct Register {
    pub(crate) field: u8,
    /// Everything below holds in every word of the form; otherwise only `field` does.
    pub(crate) is_fixed: bool,
    pub(crate) file: RegFile,
    pub(crate) operand: OperandIx,
    pub(crate) dir: Dir,
    pub(crate) width: u8,
    pub(crate) printed: bool,
    low: u8,
    mask: u8,
    invert: u8,
    offset: u8,
}

impl Register {
    fn of(n: usize, f: &Field) -> Option<Self> {
        let file = f.kind.file()?;
        let shown = f.always_shown || !matches!(f.operand, OperandIx::Printed(_));
        let mut chunks = f.bits.chunks();
        let (low, len) = chunks.next().unwrap_or_default();
        let (invert, offset) = match f.map {
            Map::Linear {
                invert,
                signed: false,
                scale: 1,
                offset: offset @ 0..=255,
            } => (invert, offset as u8),
            _ => (false, 0),
        };
        let linear = matches!(
            f.map,
            Map::Linear {
                signed: false,
                scale: 1,
                offset: 0..=255,
                ..
            }
        );
        let mask = crate::field::ones(u32::from(len.min(8))) as u8;
        Some(Self {
            field: n as u8,
            is_fixed: shown && linear && len <= 8 && chunks.next().is_none() && f.widths.is_empty(),
            file,
            operand: f.operand,
            dir: f.access,
            width: if f.access == Dir::None { 0 } else { f.width },
            printed: f.always_shown || f.operand == OperandIx::Guard,
            low,
            mask,
            invert: if invert { mask } else { 0 },
            offset,
        })
    }

    #[inline]
    pub(crate) fn get(&self, w: crate::Word) -> u8 {
        (((w.0 >> self.low) as u8 & self.mask) ^ self.invert).wrapping_add(self.offset)
    }
}

/// Lowest bit that can be a flag of the operand cache.
const FIRST_FLAG: u32 = 12;

/// One instruction form.
pub(crate) struct FormData {
    pub(crate) name: &'static str,
    pub(crate) mnemonic: &'static str,
    pub(crate) opcode: u16,
    pub(crate) guard: Option<RegFile>,
    pub(crate) filler: u128,
    /// Bits of `filler` that are as compilers write them where they mean nothing.
    pub(crate) filled: u128,
    /// Compilers' code has the form.
    pub(crate) is_attested: bool,
    /// A bit for each operand that the text of compilers' code leaves out.
    pub(crate) left_out: u32,
    /// Flags of the operand cache that compilers' code has.
    pub(crate) used_flags: u128,
    pub(crate) rules: Rules,
    pub(crate) reuse: Box<[(u8, u8)]>,
    pub(crate) operands: Box<[OperandData]>,
    pub(crate) modifiers: Box<[u32]>,
    pub(crate) fields: Box<[Field]>,
    pub(crate) registers: Box<[Register]>,
    pub(crate) checks: Box<[Check]>,
    /// Rows of `legal.tsv` in the order in which they decide.
    pub(crate) legal: Box<[LegalRow]>,
    /// Union of the match masks, selector bits, and the guard's negation: what makes the word this instruction.
    pub(crate) fixed: u128,
    /// Rows of `semantics.tsv` with the test of their tokens, most tokens first; the last one has none.
    pub(crate) semantics: Box<[(Box<[TokenTest]>, u16)]>,
    pub(crate) aliases: Box<[u16]>,
}

impl FormData {
    /// The flags of the operand cache that the text shows.
    pub(crate) fn flags(&self) -> u128 {
        self.reuse.iter().filter(|r| r.0 < 128).fold(0, |m, r| m | 1 << r.0)
    }

    /// The flags that may be meant where the text marks an operand: the one that compilers set, if they never set another.
    pub(crate) fn flags_of(&self, operand: u8) -> u128 {
        let all = self.reuse.iter().filter(|r| r.0 < 128 && r.1 == operand);
        let all = all.fold(0u128, |m, r| m | 1 << r.0);
        match all & self.used_flags {
            used if used.is_power_of_two() => used,
            _ => all,
        }
    }
}

/// A row of the decode index.
#[derive(Clone, Copy)]
pub(crate) struct MatchRow {
    pub(crate) mask: u128,
    pub(crate) value: u128,
    pub(crate) form: u16,
}

/// Everything about one family.
pub(crate) struct Tables {
    pub(crate) forms: Vec<FormData>,
    pub(crate) selectors: Vec<Selector>,
    pub(crate) shapes: Vec<Shape>,
    pub(crate) texts: Vec<&'static str>,
    pub(crate) rows: Vec<MatchRow>,
    /// Opcode bits 11:0 and bit 91 -> range of `rows`.
    pub(crate) buckets: Vec<(u16, u16)>,
    pub(crate) semantics: Vec<Semantics>,
    pub(crate) aliases: Vec<Alias>,
    pub(crate) by_name: HashMap<&'static str, u16>,
}

/// Bit 91 extends the opcode.
pub(crate) const BUCKETS: usize = 1 << 13;

/// The bits of a word that choose its bucket.
pub(crate) const BUCKET_BITS: u128 = 0xfff | 1 << 91;

/// The bucket of a word.
#[inline]
pub(crate) fn bucket(w: u128) -> usize {
    (w as usize & 0xfff) | ((w >> 91) as usize & 1) << 12
}

/// Numbers blob strings (or shapes) locally as they are met.
struct Interned<T> {
    items: Vec<T>,
    index: HashMap<usize, u16>,
    make: fn(usize) -> T,
}

impl<T> Interned<T> {
    fn new(make: fn(usize) -> T) -> Self {
        Self {
            items: vec![],
            index: HashMap::new(),
            make,
        }
    }

    fn get(&mut self, id: usize) -> u16 {
        if let Some(&n) = self.index.get(&id) {
            return n;
        }
        let n = self.items.len() as u16;
        self.items.push((self.make)(id));
        self.index.insert(id, n);
        n
    }
}

struct Loader {
    selectors: Vec<Selector>,
    shape_selectors: HashMap<usize, u32>,
    text_selectors: HashMap<usize, u32>,
    shapes: Interned<Shape>,
    texts: Interned<&'static str>,
    semantics: Vec<Semantics>,
    aliases: Vec<Alias>,
}

impl Tables {
    /// The rows that may match a word, first those that decide first.
    #[inline]
    pub(crate) fn rows_for(&self, w: u128) -> &[MatchRow] {
        let (start, len) = self.buckets[bucket(w)];
        &self.rows[usize::from(start)..usize::from(start) + usize::from(len)]
    }

    /// Reads the family with that number.
    pub(crate) fn load(family: usize) -> Self {
        let mut loader = Loader {
            selectors: vec![],
            shape_selectors: HashMap::new(),
            text_selectors: HashMap::new(),
            shapes: Interned::new(|id| Shape::parse(blob::string(id))),
            texts: Interned::new(blob::string),
            semantics: (0..blob::count(Section::Semantics))
                .map(|i| Semantics::read(blob::record(Section::Semantics, i)))
                .collect(),
            aliases: (0..blob::count(Section::Aliases))
                .map(|i| Alias::read(blob::record(Section::Aliases, i)))
                .collect(),
        };
        loader.semantics.push(Semantics::opaque());
        let mut forms = Vec::new();
        let mut rows: Vec<MatchRow> = Vec::new();
        for id in blob::record(Section::Families, family).list(|r| r.size()) {
            let number = forms.len() as u16;
            forms.push(loader.form(blob::record(Section::Forms, id), number, &mut rows));
        }
        rows.sort_by_key(|r| std::cmp::Reverse(r.mask.count_ones()));
        let mut indexed = Vec::with_capacity(rows.len());
        let mut lists: Vec<Vec<MatchRow>> = (0..BUCKETS).map(|_| vec![]).collect();
        for row in &rows {
            let first = bucket(row.value);
            lists[first].push(*row);
            if row.mask >> 91 & 1 == 0 {
                lists[first ^ 1 << 12].push(*row);
            }
        }
        let buckets = lists
            .iter()
            .map(|list| {
                let start = indexed.len() as u16;
                indexed.extend_from_slice(list);
                (start, list.len() as u16)
            })
            .collect();
        let by_name = forms.iter().enumerate().map(|(i, f)| (f.name, i as u16)).collect();
        Self {
            forms,
            selectors: loader.selectors,
            shapes: loader.shapes.items,
            texts: loader.texts.items,
            rows: indexed,
            buckets,
            semantics: loader.semantics,
            aliases: loader.aliases,
            by_name,
        }
    }
}

impl Loader {
    fn selector(&mut self, id: usize, shapes: bool) -> u32 {
        let known = if shapes {
            &self.shape_selectors
        } else {
            &self.text_selectors
        };
        if let Some(&n) = known.get(&id) {
            return n;
        }
        let mut r = blob::record(Section::Selectors, id);
        let bits = r.bits();
        let mut dense = vec![ILLEGAL; 1 << bits.width().min(16)];
        let mut value = 0;
        for _ in 0..r.size() {
            value += r.size();
            let item = r.size();
            let item = if shapes {
                self.shapes.get(item)
            } else {
                self.texts.get(item)
            };
            if let Some(slot) = dense.get_mut(value) {
                *slot = item;
            }
        }
        let n = self.selectors.len() as u32;
        self.selectors.push(Selector {
            bits,
            dense: dense.into(),
        });
        let known = if shapes {
            &mut self.shape_selectors
        } else {
            &mut self.text_selectors
        };
        known.insert(id, n);
        n
    }

    fn token_test(&self, token: &str, modifiers: &[u32]) -> TokenTest {
        let mut slots = Vec::new();
        for &m in modifiers {
            let selector = &self.selectors[m as usize];
            let mut bitmap = vec![0u64; selector.dense.len().div_ceil(64)];
            for (value, text) in selector.rows() {
                if self.texts.items[text].split('.').any(|t| t == token) {
                    bitmap[value as usize / 64] |= 1 << (value % 64);
                }
            }
            if bitmap.iter().any(|&b| b != 0) {
                slots.push((m, bitmap.into()));
            }
        }
        TokenTest(slots.into())
    }

    fn semantics_of(&self, mnemonic: &str, modifiers: &[u32]) -> Box<[(Box<[TokenTest]>, u16)]> {
        let opaque = self.semantics.len() - 1;
        let mut rows: Vec<(Box<[TokenTest]>, u16)> = Vec::new();
        for (n, s) in self.semantics[..opaque]
            .iter()
            .enumerate()
            .filter(|(_, s)| s.mnemonic == mnemonic)
        {
            let tests = s.tokens.iter().map(|t| self.token_test(t, modifiers)).collect();
            rows.push((tests, n as u16));
        }
        if rows.last().is_none_or(|(tests, _)| !tests.is_empty()) {
            rows.push(([].into(), opaque as u16));
        }
        rows.into()
    }

    fn is_always_shown(&self, fields: &[Field], n: usize, shape_selectors: &[u32]) -> bool {
        let OperandIx::Printed(operand) = fields[n].operand else {
            return false;
        };
        let siblings = fields.iter().filter(|f| f.operand == fields[n].operand);
        let selector = shape_selectors
            .get(usize::from(operand))
            .map(|&s| &self.selectors[s as usize]);
        siblings.into_iter().all(|f| f.elide.is_empty())
            && selector.is_some_and(|s| s.rows().all(|(_, shape)| self.shapes.items[shape].has(fields[n].hole)))
    }

    fn form(&mut self, mut r: Reader, number: u16, rows: &mut Vec<MatchRow>) -> FormData {
        let (name, mnemonic, opcode) = (r.string(), r.string(), r.size() as u16);
        let guard = [None, Some(RegFile::P), Some(RegFile::UP)][usize::from(r.u8().min(2))];
        let filler = r.word();
        let (is_attested, filled) = (r.flag(), r.word());
        let (left_out, used_flags) = (r.size() as u32, r.u128() << FIRST_FLAG);
        let flags = r.u8();
        let reuse = r.list(|r| (r.u8(), r.u8()));
        let mut fixed = u128::from(guard.is_some()) << 15;
        for (mask, value) in r.list(|r| (r.u128(), r.u128())) {
            fixed |= mask;
            rows.push(MatchRow {
                mask,
                value,
                form: number,
            });
        }
        let legal = r.list(LegalRow::read);
        let shape_selectors: Vec<u32> = r
            .list(|r| r.size())
            .into_iter()
            .map(|id| self.selector(id, true))
            .collect();
        let modifiers: Vec<u32> = r
            .list(|r| r.size())
            .into_iter()
            .map(|id| self.selector(id, false))
            .collect();
        let mut fields: Vec<Field> = r.list(|r| read_field(blob::record(Section::Fields, r.size())));
        for n in 0..fields.len() {
            fields[n].always_shown = self.is_always_shown(&fields, n, &shape_selectors);
        }
        let used = || {
            shape_selectors
                .iter()
                .chain(&modifiers)
                .map(|&s| &self.selectors[s as usize])
        };
        fixed |= used().fold(0, |m, s| m | s.bits.mask());
        let widths = fields.iter().flat_map(|f| f.widths.iter());
        fixed |= widths.fold(0, |m, w| m | w.bits.mask());
        let checks = used().filter_map(Check::new).collect();
        let operands = shape_selectors
            .iter()
            .enumerate()
            .map(|(n, &selector)| OperandData {
                selector,
                holes: fields
                    .iter()
                    .enumerate()
                    .filter(|(_, f)| f.operand == OperandIx::Printed(n as u8))
                    .map(|(i, f)| (f.hole, i as u8))
                    .collect(),
            })
            .collect();
        let semantics = self.semantics_of(mnemonic, &modifiers);
        let aliases = (0..self.aliases.len())
            .filter(|&i| self.aliases[i].fits(mnemonic, shape_selectors.len()))
            .map(|i| i as u16)
            .collect();
        let named = fields.iter().fold(fixed, |m, f| m | f.mask());
        let batch = reuse.is_empty() && named & SHOWN_REUSE_MASK == 0;
        let no_reuse = if reuse.is_empty() {
            0
        } else {
            let flags = reuse.iter().filter(|r| r.0 < 128).fold(0, |m, r| m | 1u128 << r.0);
            ((SHOWN_REUSE_MASK & !flags & !named) >> 122) as u8
        };
        FormData {
            name,
            mnemonic,
            opcode,
            guard,
            filler,
            filled,
            is_attested,
            left_out,
            used_flags,
            rules: Rules::new(flags & 1 != 0, flags & 2 != 0, batch, no_reuse),
            reuse: reuse.into_iter().filter(|r| r.0 < 128).collect(),
            operands,
            modifiers: modifiers.into(),
            registers: fields
                .iter()
                .enumerate()
                .filter_map(|(n, f)| Register::of(n, f))
                .collect(),
            fields: fields.into(),
            checks,
            legal: legal.into(),
            fixed,
            semantics,
            aliases,
        }
    }
}

fn read_field(mut r: Reader) -> Field {
    let name = r.string();
    let (tag, operand) = (r.u8(), r.u8());
    let operand = match tag {
        0 => OperandIx::Guard,
        1 => OperandIx::Printed(operand),
        _ => OperandIx::Hidden(operand),
    };
    let hole = (r.u8(), r.u8());
    let kind = FieldKind::from_code(r.u8());
    let kinds = r.list(|r| (r.bits(), r.u64(), FieldKind::from_code(r.u8()))).into();
    let bits = r.bits();
    let map = if r.flag() {
        let weights = r.list(|r| r.signed()).into();
        Map::Weights(weights, r.signed())
    } else {
        let flags = r.u8();
        Map::Linear {
            invert: flags & 1 != 0,
            signed: flags & 2 != 0,
            scale: r.signed(),
            offset: r.signed(),
        }
    };
    let elide = r.list(|r| r.signed()).into();
    let access = Dir::from_code(r.u8());
    let width = r.u8();
    let printed_only = r.flag();
    let widths = r
        .list(|r| Widths {
            bits: r.bits(),
            rows: r.list(|r| (r.u64(), Dir::from_code(r.u8()), r.u8())).into(),
        })
        .into();
    Field {
        name,
        operand,
        kind,
        bits,
        map,
        elide,
        access,
        width,
        printed_only,
        hole,
        always_shown: false,
        kinds,
        widths,
    }
}
