//! `dce`: instructions whose results nobody reads.
//!
//! **What.** An instruction that does nothing but write registers which nobody reads becomes a `NOP` that waits as long: the code keeps its
//! size and its offsets. With the option `remove` it is taken out, and the code behind it moves. What only such instructions read is dead too,
//! and so on.
//!
//! **When legal.** The instruction has no effect by `opcodes/semantics.tsv` (or reads constant memory only), takes no part in control flow or
//! convergence, and the file does not name it. The prologue, which ends with the instruction that sets the stack pointer, stays, and so do
//! registers that the kernel finds something in when it begins: others may look there too. What a call, a return or a block argument takes
//! along counts as read. All results stay bit for bit.
//!
//! **What it costs.** Nothing. The registers are free, and the pipe; the issue slot stays, unless the instruction is taken out.

use std::collections::BTreeSet;

use ir::{Edit, Flow, Kernel, Op, OpId, OpKind, Pin, Use, ValueId};
use isa::{Control, Effects, Inst, Isa, Space};

use crate::values::prologue_end;
use crate::{Context, OptionKind, OptionSpec, Options, Pass, PassResult, Refusal, count, instructions};

/// See the module's text.
pub struct Dce;

impl Dce {
    pub(crate) const NAME: &str = "dce";
    pub(crate) const OPTIONS: &[OptionSpec] = &[OptionSpec {
        name: "remove",
        kind: OptionKind::Bool,
        required: false,
        help: "whether dead instructions are taken out, so that the code behind them moves, or become NOPs",
    }];
}

impl Pass for Dce {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn summary(&self) -> &str {
        "make NOPs of instructions whose results nobody reads"
    }

    fn is_for_gain(&self) -> bool {
        true
    }

    fn options(&self) -> &[OptionSpec] {
        Self::OPTIONS
    }

    fn run(&self, cx: &Context<'_>, kernel: &Kernel, options: &Options) -> Result<PassResult, Refusal> {
        let Some(nop) = ir::nop(cx.isa) else {
            return Err(Refusal("the target has no NOP".to_owned()));
        };
        let uses = kernel.uses();
        let prologue = prologue_end(kernel);
        let found = kernel
            .ops()
            .filter(|op| op.kind() == OpKind::LiveIn)
            .flat_map(|op| op.results());
        let found: BTreeSet<Pin> = found.map(|v| kernel.pin(v)).collect();
        let idle = |offset: &u64, op: OpId, inst: Inst| {
            let own = |v: ValueId| !found.contains(&kernel.pin(v));
            *offset >= prologue
                && cx.pinned.binary_search(offset).is_err()
                && does_nothing_else(cx.isa, kernel.op(op), inst)
                && kernel.op(op).results().all(own)
        };
        let candidates: Vec<(OpId, Inst)> = instructions(kernel)
            .filter(|(offset, op, inst)| idle(offset, *op, *inst))
            .map(|(_, op, inst)| (op, inst))
            .collect();
        let mut dead: BTreeSet<OpId> = BTreeSet::new();
        loop {
            let before = dead.len();
            for (op, _) in &candidates {
                let gone = |used: &Use| matches!(used, Use::Operand(by, _) if dead.contains(by));
                let unread = |v: ValueId| uses.of(v).iter().all(gone);
                if kernel.op(*op).results().all(unread) {
                    dead.insert(*op);
                }
            }
            if dead.len() == before {
                break;
            }
        }
        let mut result = PassResult {
            sites: dead.len(),
            ops: dead.len(),
            headline: Some(format!("{} taken out", count(dead.len(), "dead instruction"))),
            ..PassResult::default()
        };
        let remove = options.bool("remove").unwrap_or(false);
        // Who reads a result goes before it does.
        for (op, inst) in candidates.into_iter().rev().filter(|(op, _)| dead.contains(op)) {
            if remove {
                result.edits.edits.push(Edit::Erase { op });
                continue;
            }
            let Some(inst) = waiting(cx.isa, nop, inst) else {
                return Err(Refusal("a NOP cannot wait as long as what it replaces".to_owned()));
            };
            let operands = vec![ValueId::constant(isa::RegFile::P)];
            result.edits.edits.push(Edit::Insert {
                before: op,
                inst,
                operands,
            });
            result.edits.edits.push(Edit::Erase { op });
        }
        Ok(result)
    }
}

/// It writes registers, and that is all it does.
fn does_nothing_else(isa: &Isa, op: Op<'_>, inst: Inst) -> bool {
    let semantics = isa.semantics(inst);
    let pure = semantics.effects.is_none()
        || semantics.effects == Effects::READ
            && semantics.space == Space::Constant
            && mnemonic(isa, inst).ends_with("LDC");
    let plain = op.layout().is_some_and(|l| l.flow == Flow::None && !l.has_label);
    op.kind() == OpKind::Inst
        && plain
        && !op.is_terminator()
        && semantics.known
        && pure
        && !semantics.convergence
        && op.results().len() > 0
}

fn mnemonic(isa: &Isa, inst: Inst) -> &str {
    isa.form(inst.form).map_or("", |f| f.mnemonic())
}

/// A NOP that waits for the same scoreboards, and as long.
fn waiting(isa: &Isa, nop: isa::Word, inst: Inst) -> Option<Inst> {
    let control = Control {
        write_barrier: None,
        read_barrier: None,
        reuse: 0,
        ..Control::of(inst.word)
    };
    let made = isa.decode(control.apply(nop));
    (!made.form.is_opaque()).then_some(made)
}
