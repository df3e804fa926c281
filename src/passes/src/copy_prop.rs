//! `copy-prop`: copied registers read where they were copied from.
//!
//! **What.** `MOV R9, R4` (or `IMAD.MOV.U32 R9, RZ, RZ, R4`) and `IADD3 R2, R9, R3, RZ` behind it: the sum reads `R4` itself. All readers of a
//! copy do, or none; the copy is then dead, which is for `dce`.
//!
//! **When legal.** The readers are in the copy's block, behind it, and nothing between them writes the register that was copied. Each reads the
//! copy by name, as an operand of its own: not as part of a pair or of what a guarded write keeps, and it is no call. The file names neither
//! copy nor reader. The prologue, which ends with the instruction that sets the stack pointer, stays. All results stay bit for bit.
//!
//! **What it costs.** The register that was copied is read longer, the copy's is free. Code that waits for it is rescheduled.

use std::collections::BTreeMap;

use ir::{Edit, Kernel, OpId, Pin, Use, ValueId};
use isa::RegFile;

use crate::other_form::OtherForms;
use crate::values::{prologue_end, reads_by_name, single_result};
use crate::{Context, OptionSpec, Options, Pass, PassResult, Refusal, Skipped, count, instructions};

/// See the module's text.
pub struct CopyProp;

impl CopyProp {
    pub(crate) const NAME: &str = "copy-prop";
    pub(crate) const OPTIONS: &[OptionSpec] = &[];
}

impl Pass for CopyProp {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn summary(&self) -> &str {
        "read copied registers where they were copied from"
    }

    fn is_for_gain(&self) -> bool {
        true
    }

    fn options(&self) -> &[OptionSpec] {
        Self::OPTIONS
    }

    fn run(&self, cx: &Context<'_>, kernel: &Kernel, _options: &Options) -> Result<PassResult, Refusal> {
        let offsets: BTreeMap<OpId, u64> = instructions(kernel).map(|(offset, op, _)| (op, offset)).collect();
        let named = |op: &OpId| cx.pinned.binary_search(&offsets[op]).is_ok();
        let uses = kernel.uses();
        let prologue = prologue_end(kernel);
        let forms = OtherForms::new(cx.isa);
        let mut result = PassResult::default();
        for (offset, id, inst) in instructions(kernel) {
            let op = kernel.op(id);
            let copy = single_result(kernel, op).filter(|v| offset >= prologue && !uses.of(*v).is_empty());
            let Some((copy, number)) = copy.zip(forms.copied_register(inst)) else {
                continue;
            };
            let source = Pin::new(RegFile::R, number);
            let Some(from) = op.operands().iter().copied().find(|v| kernel.pin(*v) == source) else {
                continue;
            };
            let readers: Result<Vec<(OpId, u32)>, &str> = uses
                .of(copy)
                .iter()
                .map(|used| reader(kernel, copy, id, source, used))
                .collect();
            let readers = match readers {
                Ok(list) if named(&id) || list.iter().any(|(op, _)| named(op)) => {
                    Err("one of them has to stay as it is")
                }
                other => other,
            };
            match readers {
                Ok(list) => {
                    result.sites += 1;
                    result
                        .edits
                        .edits
                        .extend(list.into_iter().map(|(op, operand)| Edit::ReplaceOperand {
                            op,
                            operand: operand as usize,
                            value: from,
                        }));
                }
                Err(reason) => result.skipped.push(Skipped {
                    offset,
                    reason: reason.to_owned(),
                }),
            }
        }
        result.ops = result.edits.edits.len();
        result.headline = Some(format!("{} read at the source", count(result.sites, "copied register")));
        Ok(result)
    }
}

/// The operand that a use of a copy is, if it can be the register `source`, of which `copier` makes the copy.
fn reader(kernel: &Kernel, copy: ValueId, copier: OpId, source: Pin, used: &Use) -> Result<(OpId, u32), &'static str> {
    let Use::Operand(id, operand) = *used else {
        return Err("it is passed to a block argument");
    };
    let (op, home) = (kernel.op(id), kernel.op(copier).block());
    if kernel.pin(copy) == source {
        return Err("it is copied to where it is");
    }
    if op.block() != home || id <= copier {
        return Err("it is read in another block");
    }
    if !reads_by_name(op, copy) {
        return Err("what reads it does not name it");
    }
    let slot = op.layout().and_then(|l| l.read_slot(operand as usize));
    if slot.is_none_or(|(slot, _)| slot.width != 1 || slot.writes() || slot.field.is_none()) {
        return Err("it is read as a part of something");
    }
    let mut between = kernel.block(home).ops().filter(|op| copier < op.id() && op.id() < id);
    if between.any(|op| op.results().any(|v| kernel.pin(v) == source)) {
        return Err("what was copied is overwritten before it is read");
    }
    Ok((id, operand))
}
