//! Spellings that depend on operand values (`IMAD.MOV`): rows of `opcodes/aliases.tsv`.

use crate::blob::Reader;
use crate::shape::{HOLE_X, Part, Shape};
use crate::word::Word;
use crate::{Inst, Isa};

/// Added to a hole where the shape is a `-` and the hole.
const NEGATIVE: u8 = 0x80;

enum Condition {
    Operands(usize),
    Value {
        operand: usize,
        hole: u8,
        value: i64,
        equal: bool,
    },
    PowerOfTwo(usize),
    NoHole {
        operand: usize,
        hole: u8,
    },
    Token {
        token: &'static str,
        present: bool,
    },
    NotZero {
        high: u32,
        low: u32,
    },
}

/// One alias.
pub(crate) struct Alias {
    mnemonic: &'static str,
    when: Box<[Condition]>,
    pub(crate) drop: Box<[&'static str]>,
    pub(crate) add: Box<[&'static str]>,
}

impl Alias {
    pub(crate) fn read(mut r: Reader) -> Self {
        let mnemonic = r.string();
        let when = r
            .list(|r| match r.u8() {
                0 => Condition::Operands(r.size()),
                1 => Condition::Value {
                    operand: r.size(),
                    hole: r.u8(),
                    value: r.signed(),
                    equal: r.flag(),
                },
                2 => Condition::PowerOfTwo(r.size()),
                3 => Condition::NoHole {
                    operand: r.size(),
                    hole: r.u8(),
                },
                4 => Condition::Token {
                    token: r.string(),
                    present: r.flag(),
                },
                _ => Condition::NotZero {
                    high: u32::from(r.u8()),
                    low: u32::from(r.u8()),
                },
            })
            .into();
        Self {
            mnemonic,
            when,
            drop: r.list(|r| r.string()).into(),
            add: r.list(|r| r.string()).into(),
        }
    }

    /// Whether a form of that mnemonic and number of operands can be spelled so.
    pub(crate) fn fits(&self, mnemonic: &str, operands: usize) -> bool {
        let count = |c: &Condition| !matches!(c, Condition::Operands(n) if *n != operands);
        self.mnemonic == mnemonic && self.when.iter().all(count)
    }

    /// Whether `i` is spelled so.
    pub(crate) fn holds(&self, isa: &Isa, i: Inst) -> bool {
        let number = |n: usize| -> Option<(&Shape, i64)> {
            let (operand, shape) = isa.shape(i, n)?;
            let hole = shape.plain()?;
            let form = isa.data(i.form)?;
            Some((shape, form.fields[operand.field(hole)?].get(i.word)))
        };
        let negated = |n: usize, kind: u8| -> Option<(&Shape, i64)> {
            let (operand, shape) = isa.shape(i, n)?;
            match *shape.parts {
                [Part::Text("-"), Part::Hole(_, k, ordinal)] if k == kind => {
                    let form = isa.data(i.form)?;
                    Some((shape, form.fields[operand.field((kind, ordinal))?].get(i.word)))
                }
                _ => None,
            }
        };
        self.when.iter().all(|c| match *c {
            Condition::Operands(_) => true,
            Condition::Value {
                operand,
                hole,
                value,
                equal,
            } => {
                let is = match hole & NEGATIVE {
                    0 => number(operand).filter(|(s, _)| s.plain().is_some_and(|h| h.0 == hole)),
                    _ => negated(operand, hole & !NEGATIVE),
                };
                is.is_some_and(|(_, v)| v == value) == equal
            }
            Condition::PowerOfTwo(operand) => number(operand).is_some_and(|(s, v)| {
                s.plain().is_some_and(|h| h.0 == HOLE_X) && v > 0 && (v as u64).is_power_of_two()
            }),
            Condition::NoHole { operand, hole } => isa
                .shape(i, operand)
                .is_some_and(|(_, shape)| shape.holes().all(|h| h.0 != hole)),
            Condition::Token { token, present } => isa.modifiers(i).any(|m| m == token) == present,
            Condition::NotZero { high, low } => Word(i.word.0).bits(high, low) != 0,
        })
    }
}
