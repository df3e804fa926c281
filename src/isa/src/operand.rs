//! Operands as the word at hand has them.

use crate::field::Field;
use crate::shape::{Part, Shape};
use crate::tables::OperandData;
use crate::{Inst, Isa};

/// A part of an operand's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Literal text.
    Text(&'static str),
    /// A number or register: index into the form's fields.
    Field(usize),
}

/// One printed operand of an instruction in canonical form: an address has all its terms, also those that the text leaves out.
#[derive(Clone, Copy)]
pub struct OperandView<'a> {
    operand: &'a OperandData,
    shape: &'a Shape,
    fields: &'a [Field],
    inst: Inst,
}

impl<'a> OperandView<'a> {
    /// The shape as the tables spell it, for example `-|R#|` or `[R#.64+X#]`, marks of its terms included.
    pub fn shape(&self) -> &'static str {
        self.shape.text
    }

    /// Literal text and fields in order.
    pub fn pieces(&self) -> impl Iterator<Item = Piece> + 'a {
        let operand = self.operand;
        self.shape.parts.iter().map(move |p| match *p {
            Part::Text(t) => Piece::Text(t),
            Part::Hole(text, kind, ordinal) => operand.field((kind, ordinal)).map_or(Piece::Text(text), Piece::Field),
            Part::Open(..) => Piece::Text("["),
            Part::Plus => Piece::Text("+"),
            Part::Close => Piece::Text("]"),
        })
    }

    /// The fields in the text, in order.
    pub fn fields(&self) -> impl Iterator<Item = (usize, &'a Field)> + 'a {
        let fields = self.fields;
        self.pieces().filter_map(move |p| match p {
            Piece::Field(n) => Some((n, &fields[n])),
            Piece::Text(_) => None,
        })
    }

    /// Whether `nvdisasm` leaves the operand out: a plain number or register at a value such as `PT`.
    pub fn is_elided(&self) -> bool {
        if self.shape.text.is_empty() {
            return true;
        }
        let Some(hole) = self.shape.plain() else {
            return false;
        };
        let field = self.operand.field(hole).map(|n| &self.fields[n]);
        field.is_some_and(|f| !f.elide.is_empty() && f.elides(f.get(self.inst.word)))
    }

    pub(crate) fn data(&self) -> (&'a OperandData, &'a Shape, &'a [Field]) {
        (self.operand, self.shape, self.fields)
    }
}

impl Isa {
    /// Printed operands of the instruction, elided ones included.
    pub fn operand_count(&self, i: Inst) -> usize {
        self.data(i.form).map_or(0, |f| f.operands.len())
    }

    /// Operand `n`, counted from 0 in printed order.
    pub fn operand(&self, i: Inst, n: usize) -> Option<OperandView<'_>> {
        let (operand, shape) = self.shape(i, n)?;
        Some(OperandView {
            operand,
            shape,
            fields: &self.data(i.form)?.fields,
            inst: i,
        })
    }

    /// Whether a field plays a part in this word: it is hidden, the guard, in the shape of its operand, or touched in any shape.
    pub fn is_active(&self, i: Inst, field: usize) -> bool {
        let Some(f) = self.data(i.form).and_then(|d| d.fields.get(field)) else {
            return false;
        };
        match f.operand {
            crate::OperandIx::Printed(n) => {
                !f.printed_only || self.shape(i, usize::from(n)).is_some_and(|(_, s)| s.has(f.hole))
            }
            _ => true,
        }
    }
}
