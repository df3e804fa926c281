//! `const-bank-fold`: numbers of the constant banks read where they are used.
//!
//! **What.** `MOV R9, c[0x0][0x210]` and `IADD3 R2, R9, R3, RZ` behind it: the sum reads `c[0x0][0x210]` itself, as
//! `IADD3 R2, R3, c[0x0][0x210], RZ`. All readers of a copied number do, or none; the copy is then dead, which is for `dce`.
//!
//! **When legal.** Everywhere: constant banks do not change while a kernel runs. Each reader must have a form with a constant in that place,
//! or where its operands may change places without changing a bit; none may be a block argument, a call, or a guarded write's previous value,
//! and the file must name neither copy nor reader. The prologue, which ends with the instruction that sets the stack pointer, stays. All
//! results stay bit for bit.
//!
//! **What it costs.** Nothing where the constant cache holds the number. It frees a general register from the copy to its last reader.

use std::collections::BTreeMap;

use ir::{Edit, Kernel, OpId, Use, ValueId};
use isa::Inst;

use crate::other_form::OtherForms;
use crate::values::{operands, prologue_end, reads_by_name, single_result};
use crate::{Context, OptionSpec, Options, Pass, PassResult, Refusal, Skipped, count, instructions};

/// See the module's text.
pub struct ConstBankFold;

impl ConstBankFold {
    pub(crate) const NAME: &str = "const-bank-fold";
    pub(crate) const OPTIONS: &[OptionSpec] = &[];
}

impl Pass for ConstBankFold {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn summary(&self) -> &str {
        "read numbers of the constant banks where they are used"
    }

    fn is_for_gain(&self) -> bool {
        true
    }

    fn options(&self) -> &[OptionSpec] {
        Self::OPTIONS
    }

    fn run(&self, cx: &Context<'_>, kernel: &Kernel, _options: &Options) -> Result<PassResult, Refusal> {
        let offsets: BTreeMap<OpId, u64> = instructions(kernel).map(|(offset, op, _)| (op, offset)).collect();
        let uses = kernel.uses();
        let prologue = prologue_end(kernel);
        let mut forms = OtherForms::new(cx.isa);
        let mut result = PassResult::default();
        // Readers as they become, by operation.
        let mut folded: BTreeMap<OpId, Inst> = BTreeMap::new();
        for (offset, id, inst) in instructions(kernel) {
            let Some(value) = single_result(kernel, kernel.op(id)).filter(|_| offset >= prologue) else {
                continue;
            };
            let Some(constant) = forms.copied_constant(inst) else {
                continue;
            };
            let pinned = |op: &OpId| cx.pinned.binary_search(&offsets[op]).is_ok();
            if uses.of(value).is_empty() || pinned(&id) {
                continue;
            }
            let readers: Option<Vec<OpId>> = uses.of(value).iter().map(|used| reader(kernel, value, used)).collect();
            let readers = readers.filter(|list| !list.iter().any(pinned));
            let register = kernel.pin(value).number();
            let made: Option<Vec<(OpId, Inst)>> = readers.and_then(|list| {
                let become_of = |op: OpId| {
                    let now = folded.get(&op).copied().or_else(|| kernel.op(op).inst())?;
                    Some((op, forms.reading_constant(now, register, &constant)?))
                };
                list.into_iter().map(become_of).collect()
            });
            match made {
                Some(made) => {
                    result.sites += 1;
                    folded.extend(made);
                }
                None => result.skipped.push(Skipped {
                    offset,
                    reason: "something that reads it takes no constant there".to_owned(),
                }),
            }
        }
        let edit = |(op, inst): (OpId, Inst)| Edit::Replace {
            op,
            inst,
            operands: operands(cx.isa, kernel, kernel.op(op), inst, &BTreeMap::new()),
        };
        result.edits.edits = folded.into_iter().map(edit).collect();
        result.ops = result.edits.edits.len();
        result.headline = Some(format!(
            "{} folded into all that read them",
            count(result.sites, "constant")
        ));
        Ok(result)
    }
}

/// The instruction that reads a value by name, if that is what a use is.
fn reader(kernel: &Kernel, value: ValueId, used: &Use) -> Option<OpId> {
    let Use::Operand(op, _) = *used else { return None };
    reads_by_name(kernel.op(op), value).then_some(op)
}
