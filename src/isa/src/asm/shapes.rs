//! Which shapes an operand's skeleton can stand for: `[R2]` is `[R#+X#]` without its offset.

use std::collections::HashMap;

use super::scan::{Scanned, Value};
use crate::Isa;
use crate::field::RegFile;
use crate::shape::{HOLE_L, HOLE_R, HOLE_UR, HOLE_X, Mark, Part, Shape};

/// A hole: kind and ordinal, see [`crate::shape`].
pub(super) type Hole = (u8, u8);

/// What a value in the text belongs to.
#[derive(Clone, Copy, Debug)]
pub(super) enum Slot {
    /// A hole of the shape.
    Hole(Hole),
    /// Literal text that looks like a value: it must be this one.
    Literal(Value),
}

/// One way to read an operand's skeleton.
#[derive(Clone, Debug)]
pub(super) struct Reading {
    /// Number of the shape in the tables.
    pub(super) shape: usize,
    /// What the values in the text are, in order.
    pub(super) slots: Box<[Slot]>,
    /// Holes that the text leaves out, with the number that they then hold; `None` is the value at which the field is left out.
    pub(super) left_out: Box<[(Hole, Option<i64>)]>,
}

/// Skeletons of all operands that the tables know.
pub(super) struct Shapes(HashMap<Box<str>, Vec<Reading>>);

impl Shapes {
    pub(super) fn new(isa: &Isa) -> Self {
        let mut map: HashMap<Box<str>, Vec<Reading>> = HashMap::new();
        let mut scanned = Scanned::default();
        for (n, shape) in isa.tables.shapes.iter().enumerate() {
            for (parts, left_out) in shortened(shape, isa.uniform_zero()) {
                if let Some((skeleton, slots)) = scan(&parts, &mut scanned) {
                    map.entry(skeleton.into()).or_default().push(Reading {
                        shape: n,
                        slots,
                        left_out: left_out.into(),
                    });
                }
            }
        }
        Self(map)
    }

    /// The readings of an operand's skeleton.
    pub(super) fn readings(&self, skeleton: &str) -> &[Reading] {
        self.0.get(skeleton).map_or(&[], Vec::as_slice)
    }
}

type Shortened = (Vec<Part>, Vec<(Hole, Option<i64>)>);

/// The shape's parts, whole and with every choice of terms that the text may leave out.
fn shortened(shape: &Shape, uniform_zero: u8) -> Vec<Shortened> {
    let parts = &shape.parts;
    let mut out = vec![(parts.to_vec(), vec![])];
    if let [Part::Hole(..), Part::Text(" "), Part::Hole(_, HOLE_X, n)] = parts[..] {
        out.push((parts[..1].to_vec(), vec![((HOLE_X, n), None)]));
    }
    for at in 0..parts.len() {
        let Part::Open(len, marks) = parts[at] else { continue };
        let close = at + usize::from(len);
        let terms: Vec<&[Part]> = parts[at + 1..close].split(|p| *p == Part::Plus).collect();
        let removable = |n: usize, term: &[Part]| match (marks.get(n)?, *term.first()?) {
            (Mark::Never, _) | (Mark::Usual, Part::Hole(_, HOLE_UR, _)) => None,
            (_, Part::Hole(_, HOLE_R, o)) => Some(((HOLE_R, o), Some(255))),
            (_, Part::Hole(_, HOLE_UR, o)) => Some(((HOLE_UR, o), Some(i64::from(uniform_zero)))),
            (_, Part::Hole(_, HOLE_X, o)) => Some(((HOLE_X, o), Some(0))),
            _ => None,
        };
        let mut next = Vec::new();
        for choice in 1u32..1 << terms.len() {
            let gone = |n: usize| choice >> n & 1 == 1;
            let holes: Option<Vec<_>> = (0..terms.len())
                .filter(|&n| gone(n))
                .map(|n| removable(n, terms[n]))
                .collect();
            let Some(holes) = holes.filter(|h| h.len() < terms.len()) else {
                continue;
            };
            let mut short = parts[..=at].to_vec();
            for term in (0..terms.len()).filter(|&n| !gone(n)).map(|n| terms[n]) {
                if short.len() > at + 1 {
                    short.push(Part::Plus);
                }
                short.extend(term);
            }
            short.extend(&parts[close..]);
            next.push((short, holes));
        }
        out.extend(next);
        break; // no shape has two such groups
    }
    out
}

/// Reads the parts as text with a telling number in each hole.
fn scan(parts: &[Part], scanned: &mut Scanned) -> Option<(String, Box<[Slot]>)> {
    let mut text = String::from("X ");
    let mut holes = Vec::new();
    for part in parts {
        match *part {
            Part::Text(t) => text.push_str(t),
            Part::Open(..) => text.push('['),
            Part::Plus => text.push('+'),
            Part::Close => text.push(']'),
            Part::Hole(_, kind, ordinal) => {
                let n = 101 + holes.len() as u8;
                let (sample, value) = match kind {
                    0 => (format!("R{n}"), Value::Register(RegFile::R, Some(n))),
                    1 => (format!("UR{n}"), Value::Register(RegFile::UR, Some(n))),
                    2 => (format!("P{n}"), Value::Register(RegFile::P, Some(n))),
                    3 => (format!("UP{n}"), Value::Register(RegFile::UP, Some(n))),
                    4 => (format!("B{n}"), Value::Register(RegFile::B, Some(n))),
                    5 => (format!("SB{n}"), Value::Number(n.into())),
                    HOLE_X | HOLE_L => (
                        format!("{:#x}", 0x7e57_0000 + i64::from(n)),
                        Value::Number(0x7e57_0000 + i64::from(n)),
                    ),
                    _ => (format!("{n}.5"), Value::Float(f64::from(n) + 0.5)),
                };
                text.push_str(&sample);
                holes.push(((kind, ordinal), value));
            }
        }
    }
    scanned.read(&text, None).ok()?;
    let mut left = holes.into_iter().peekable();
    let slots = scanned
        .values
        .iter()
        .map(|v| match left.next_if(|(_, sample)| sample == v) {
            Some((hole, _)) => Slot::Hole(hole),
            None => Slot::Literal(*v),
        });
    let slots: Box<[Slot]> = slots.collect();
    if left.next().is_some() || scanned.operands.len() != 1 {
        return None; // a hole that the scanner does not see: no text can name it
    }
    Some((scanned.operand(0).to_owned(), slots))
}
