//! Copies from one general register to another.

use ir::{Op, Pin, ValueId};
use isa::asm::{Assembler, Statement};
use isa::{Control, Inst, Isa, RegFile};

/// Makes copies for one target.
pub(crate) struct Copies {
    isa: &'static Isa,
    assembler: Assembler<'static>,
}

impl Copies {
    /// For the target of `isa`.
    pub fn new(isa: &'static Isa) -> Copies {
        Copies {
            isa,
            assembler: Assembler::new(isa),
        }
    }

    /// What puts general register `from` into `to` under the guard of `inst`, which it takes the place of, or comes before: it waits for the
    /// same scoreboards, and as long. `None` if the target has no such instruction.
    pub fn copy(&mut self, inst: Inst, to: Pin, from: Pin) -> Option<Inst> {
        let guard = match self.isa.guard(inst) {
            None => String::new(),
            Some((file, number, negated)) => {
                let name = match self.isa.is_zero(file, number) {
                    true => format!("{}T", file.name()),
                    false => format!("{}{number}", file.name()),
                };
                format!("@{}{name} ", if negated { "!" } else { "" })
            }
        };
        let text = format!("{guard}MOV {to}, {from}");
        let statement = Statement {
            text: &text,
            ..Statement::default()
        };
        let control = Control {
            write_barrier: None,
            read_barrier: None,
            reuse: 0,
            ..Control::of(inst.word)
        };
        let made = self.assembler.assemble(&statement, control).ok()?;
        let again = self.isa.decode(control.apply(made.word));
        (again.form == made.form).then_some(again)
    }
}

/// What a copy under the guard of `op` reads: the guard, `from`, and what its register held before, where the guard may be false.
pub(crate) fn operands(op: Op<'_>, from: ValueId, before: Option<ValueId>) -> Vec<ValueId> {
    let always = ValueId::constant(RegFile::P);
    let guard = op.guard().map_or(always, |(guard, _)| guard);
    [guard, from].into_iter().chain(before).collect()
}

/// What an operation may leave its results as, one by one, where its guard may be false.
pub(crate) fn merges(op: Op<'_>) -> &[ValueId] {
    let own = op.layout().map(|l| l.read_count()..l.own_operands(op.word()));
    own.map_or(&[], |own| &op.operands()[own])
}
