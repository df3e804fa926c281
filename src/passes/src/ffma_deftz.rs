//! `ffma-deftz`: FFMA without `.FTZ`.
//!
//! **What.** Every single-precision fused multiply-add whose modifiers contain `FTZ` loses exactly that token: the one
//! bit of the word that flushes denormal operands and results to zero. All operand forms of the mnemonic `FFMA` count
//! (registers, immediates, constant banks, uniform registers); FADD, FMUL, FSETP, MUFU and the packed forms do not.
//!
//! **When legal.** Always encodable: the word without the token is the same form with the same registers, so nothing
//! moves and no schedule changes. It is **not bit-preserving**: results change where an operand or a result is denormal
//! (smaller in magnitude than 2^-126). A kernel that was compiled with `-ftz=true` and relies on flushed values computes
//! something else afterwards. That is why it runs only where a configuration names it with a mode.
//!
//! **What it costs.** Nothing: FFMA has the same latency and throughput with and without flushing.

use crate::{Context, OptionSpec, Options, Pass, PassResult, Refusal, count, instructions, of_collective};

/// The modifier that flushes denormals.
const FTZ: &str = "FTZ";

/// See the module's text.
pub struct FfmaDeftz;

impl FfmaDeftz {
    pub(crate) const NAME: &str = "ffma-deftz";
    pub(crate) const OPTIONS: &[OptionSpec] = &[];
}

impl Pass for FfmaDeftz {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn summary(&self) -> &str {
        "drop .FTZ from FFMA: denormal operands and results are kept"
    }

    fn caution(&self) -> Option<&str> {
        Some("changes denormal results")
    }

    fn options(&self) -> &[OptionSpec] {
        Self::OPTIONS
    }

    fn run(&self, cx: &Context<'_>, kernel: &ir::Kernel, _options: &Options) -> Result<PassResult, Refusal> {
        let mut result = PassResult::default();
        let stays = of_collective(cx.isa, kernel);
        for (_, op, inst) in instructions(kernel) {
            let is_ffma = cx.isa.form(inst.form).is_some_and(|f| f.mnemonic() == "FFMA");
            if is_ffma && !stays(op) && cx.isa.modifiers(inst).any(|m| m == FTZ) {
                result.edits.edits.push(ir::Edit::EditModifiers {
                    op,
                    drop: vec![FTZ.into()],
                    add: vec![],
                });
            }
        }
        result.sites = result.edits.edits.len();
        result.ops = result.sites;
        result.headline = Some(format!("FTZ dropped at {}", count(result.sites, "site")));
        Ok(result)
    }
}
