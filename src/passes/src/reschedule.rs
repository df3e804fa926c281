//! `reschedule`: the instructions of each block in an order in which less time is spent waiting, with scheduling bits from scratch.
//!
//! **What.** Within its block, an instruction moves to where its operands are there and its result has time to arrive, by the latency model
//! ([`sched::schedule`]). A block for which that is no gain by the model keeps its order.
//!
//! **When legal.** What controls flow, orders memory or is not known stays in its place and nothing passes it, and so does what the file names
//! and what names a place in the code. Registers stay, so that no more of them are needed. A kernel in whose scheduling the hazard checker finds
//! anything as it is, is refused: a pass before this one may have left that to be repaired, so name this one first. All results stay bit for bit.
//!
//! **What it costs.** Nothing but what it is for: the compiler's order may be the better one where the model does not know what that knows.

use ir::{Edit, Kernel, OpId};
use isa::{Control, FieldKind, Inst, Isa};
use sched::Model;

use crate::{Context, OptionSpec, Options, Pass, PassResult, Refusal, count, instructions};

/// See the module's text.
pub struct Reschedule;

impl Reschedule {
    pub(crate) const NAME: &str = "reschedule";
    pub(crate) const OPTIONS: &[OptionSpec] = &[];
}

impl Pass for Reschedule {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn summary(&self) -> &str {
        "put instructions into an order in which less time is spent waiting"
    }

    fn is_for_gain(&self) -> bool {
        true
    }

    fn options(&self) -> &[OptionSpec] {
        Self::OPTIONS
    }

    fn run(&self, cx: &Context<'_>, kernel: &Kernel, _options: &Options) -> Result<PassResult, Refusal> {
        let code: Vec<(u64, OpId, Inst)> = instructions(kernel).collect();
        let may_move = |at: u32| {
            let known = code.get(at as usize);
            known.is_some_and(|(offset, _, inst)| may_move(cx.isa, cx.pinned, *offset, *inst))
        };
        let model = Model::of(kernel.target);
        let scheduled = sched::schedule(cx.isa, model, kernel, &may_move).map_err(|e| Refusal(e.to_string()))?;
        let mut result = PassResult {
            sites: (0..).zip(&scheduled.order).filter(|(to, from)| to != *from).count(),
            ..PassResult::default()
        };
        if result.sites == 0 {
            return Ok(result);
        }
        for (to, (word, from)) in (0..).zip(scheduled.words.iter().zip(&scheduled.order)) {
            let (_, op, inst) = code[*from as usize];
            let control = Control::of(*word);
            if control != Control::of(inst.word) {
                result.edits.edits.push(Edit::SetControl { op, control });
            }
            result.ops += usize::from(to != *from || control != Control::of(inst.word));
        }
        let order: Vec<OpId> = scheduled.order.iter().map(|from| code[*from as usize].1).collect();
        result.edits.edits.extend(moves(kernel, &order));
        result.headline = Some(format!("{} moved", count(result.sites, "instruction")));
        Ok(result)
    }
}

/// Whether an instruction may have another place than its byte offset: it is none of those that the file names (`pinned`, ascending), and does
/// not say where something is, counted from itself.
pub fn may_move(isa: &Isa, pinned: &[u64], offset: u64, inst: Inst) -> bool {
    let names_a_place = || {
        isa.form(inst.form)
            .is_none_or(|form| form.fields().iter().any(|f| f.kind == FieldKind::Rel))
    };
    pinned.binary_search(&offset).is_err() && !names_a_place()
}

/// The edits that put the instructions, each in its block, into an order. Who has its place already keeps it; the others go before the next of
/// these, or before what ends the block and is no code.
fn moves(kernel: &Kernel, order: &[OpId]) -> Vec<Edit> {
    let mut edits = Vec::new();
    let mut rest = order;
    for block in kernel.blocks() {
        let code: Vec<OpId> = block.ops().filter(|op| op.kind().is_code()).map(|op| op.id()).collect();
        let (own, others) = rest.split_at(code.len().min(rest.len()));
        rest = others;
        let mut waiting = Vec::new();
        for (op, was) in own.iter().zip(&code) {
            match op == was {
                true => edits.extend(waiting.drain(..).map(|moved| Edit::Move { op: moved, before: *op })),
                false => waiting.push(*op),
            }
        }
        let end = block.ops().next_back().filter(|op| !op.kind().is_code());
        edits.extend(
            waiting
                .into_iter()
                .filter_map(|op| Some(Edit::Move { op, before: end?.id() })),
        );
    }
    edits
}
