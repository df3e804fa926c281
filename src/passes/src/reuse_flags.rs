//! `reuse-flags`: operand-cache flags where the next instruction reads the same register in the same place.
//!
//! **What.** An instruction that reads a register which the next one reads in the same operand keeps it in the operand cache, so that the next
//! one need not read the register file again: fewer conflicts between the banks of the registers, and less energy.
//!
//! **When legal.** Where neither instruction writes the register between the two reads ([`sched::more_reuse`]), and the bits mean flags: the
//! instruction keeps the warp issuing. Flags that are there stay. All results stay bit for bit.
//!
//! **What it costs.** Nothing. The estimates know nothing of banks, so that they stay as they are.

use ir::{Edit, Kernel, OpId};
use sched::Model;

use crate::{Context, OptionSpec, Options, Pass, PassResult, Refusal, count, instructions, of_collective};

/// See the module's text.
pub struct ReuseFlags;

impl ReuseFlags {
    pub(crate) const NAME: &str = "reuse-flags";
    pub(crate) const OPTIONS: &[OptionSpec] = &[];
}

impl Pass for ReuseFlags {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn summary(&self) -> &str {
        "keep operands in the operand cache for the next instruction"
    }

    fn is_for_gain(&self) -> bool {
        true
    }

    fn options(&self) -> &[OptionSpec] {
        Self::OPTIONS
    }

    fn run(&self, cx: &Context<'_>, kernel: &Kernel, _options: &Options) -> Result<PassResult, Refusal> {
        let ops: Vec<OpId> = instructions(kernel).map(|(_, op, _)| op).collect();
        let model = Model::of(kernel.target);
        let stays = of_collective(cx.isa, kernel);
        let flags = sched::more_reuse(cx.isa, model, kernel).into_iter();
        let flags = flags.map(|(at, control)| (ops[at as usize], control));
        let edits = flags
            .filter(|(op, _)| !stays(*op))
            .map(|(op, control)| Edit::SetControl { op, control });
        let mut result = PassResult::default();
        result.edits.edits = edits.collect();
        (result.sites, result.ops) = (result.edits.edits.len(), result.edits.edits.len());
        result.headline = Some(format!("operands of {} kept", count(result.sites, "instruction")));
        Ok(result)
    }
}
