//! `yield-tune`: long runs of floating-point and matrix products keep the warp issuing.
//!
//! **What.** In a run of at least [`RUN`] products (`FFMA`, `HFMA2`, `HMMA`, `IMMA` and the like) that follow each other, the bit that lets the
//! scheduler turn to another warp behind an instruction is set to "keep issuing", so that operands stay in the operand cache over the run.
//!
//! **When legal.** Anywhere, for it is a hint: only instructions whose stall count is small enough to go with it, and none with a batch number,
//! which stands in the bits of the operand-cache flags. All results stay bit for bit.
//!
//! **What it costs.** Other warps issue later. The estimates are of one warp and stay as they are.

use ir::{Edit, Kernel, OpId};
use isa::{Control, Inst, Isa};

use crate::{Context, OptionSpec, Options, Pass, PassResult, Refusal, count, of_collective};

/// Products that have to follow each other.
pub const RUN: usize = 4;
/// The largest stall count of an instruction that keeps the warp issuing.
const LONGEST_STALL: u8 = 11;
/// What counts as a product.
const PRODUCTS: [&str; 8] = ["FFMA", "FMUL", "HFMA2", "HMUL2", "DFMA", "HMMA", "IMMA", "IMAD"];

/// See the module's text.
pub struct YieldTune;

impl YieldTune {
    pub(crate) const NAME: &str = "yield-tune";
    pub(crate) const OPTIONS: &[OptionSpec] = &[];
}

impl Pass for YieldTune {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn summary(&self) -> &str {
        "keep warps issuing over long runs of products"
    }

    fn is_for_gain(&self) -> bool {
        true
    }

    fn options(&self) -> &[OptionSpec] {
        Self::OPTIONS
    }

    fn run(&self, cx: &Context<'_>, kernel: &Kernel, _options: &Options) -> Result<PassResult, Refusal> {
        let mut result = PassResult::default();
        let stays = of_collective(cx.isa, kernel);
        for block in kernel.blocks() {
            let own = block.ops().filter(|op| !stays(op.id()));
            let code: Vec<(OpId, Inst)> = own.filter_map(|op| Some((op.id(), op.inst()?))).collect();
            for run in code.chunk_by(|(_, a), (_, b)| is_product(cx.isa, *a) && is_product(cx.isa, *b)) {
                if run.len() < RUN {
                    continue;
                }
                // What comes behind the run is no part of it.
                let edits = run[..run.len() - 1].iter().filter_map(|(op, inst)| {
                    let control = kept(*inst)?;
                    Some(Edit::SetControl { op: *op, control })
                });
                let before = result.edits.edits.len();
                result.edits.edits.extend(edits);
                result.sites += usize::from(result.edits.edits.len() > before);
            }
        }
        result.ops = result.edits.edits.len();
        result.headline = Some(format!("{} kept issuing", count(result.sites, "run")));
        Ok(result)
    }
}

fn is_product(isa: &Isa, inst: Inst) -> bool {
    isa.form(inst.form)
        .is_some_and(|form| PRODUCTS.contains(&form.mnemonic()))
}

/// The scheduling bits that keep the warp issuing, if they are others and there can be such.
fn kept(inst: Inst) -> Option<Control> {
    let control = Control::of(inst.word);
    let may = !control.yield_ && control.reuse == 0 && (1..=LONGEST_STALL).contains(&control.stall);
    may.then_some(Control {
        yield_: true,
        ..control
    })
}
