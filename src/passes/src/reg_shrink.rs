//! `reg-shrink`: so few registers that more warps are resident.
//!
//! **What.** General registers are allocated anew, so that the kernel fits into the most registers with which more warps fit on a multiprocessor
//! than now: `R41` becomes `R17` wherever it is the same value. The file then gives a thread fewer registers. No instruction comes or goes.
//!
//! **When legal.** Values that have to be in one register stay together, tuples stay consecutive and aligned, and what other code or the file
//! expects in a register stays there ([`ir::allocate`]); no register is given away while an instruction in flight may read or write it. Kernels
//! that call code which is not known, whose warps give registers back, or of which nobody knows which registers they use, are refused. All
//! results stay bit for bit.
//!
//! **What it costs.** Values that share a register now may have to wait for each other; flags of the operand cache are found anew. No value is
//! put into local memory: where no allocation is found the kernel stays. How many warps are resident depends on the size of blocks too: `threads`
//! says it where the kernel does not.

use std::collections::BTreeMap;

use ir::{Allocation, Constraints, Edit, Flow, Kernel, Multiprocessor, OpId};
use isa::{Control, RegFile};
use sched::Model;

use crate::{Context, OptionKind, OptionSpec, Options, Pass, PassResult, Refusal, Resources, Skipped, instructions};

/// See the module's text.
pub struct RegShrink;

/// Threads of a block where nobody says how many.
const THREADS: u32 = 256;

impl RegShrink {
    pub(crate) const NAME: &str = "reg-shrink";
    pub(crate) const OPTIONS: &[OptionSpec] = &[
        OptionSpec {
            name: "registers",
            kind: OptionKind::Int { min: 0, max: 255 },
            required: false,
            help: "how many registers a thread is to be given at most; 0, or nothing, for as many as let more warps be resident",
        },
        OptionSpec {
            name: "threads",
            kind: OptionKind::Int { min: 0, max: 1024 },
            required: false,
            help: "threads of a block where the kernel neither fixes nor limits them; 0, or nothing, for 256",
        },
    ];
}

impl Pass for RegShrink {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn summary(&self) -> &str {
        "use so few registers that more warps are resident"
    }

    fn is_for_gain(&self) -> bool {
        true
    }

    fn gives_registers_back(&self) -> bool {
        true
    }

    fn options(&self) -> &[OptionSpec] {
        Self::OPTIONS
    }

    fn run(&self, cx: &Context<'_>, kernel: &Kernel, options: &Options) -> Result<PassResult, Refusal> {
        let refuse = |why: &str| Err(Refusal(why.to_owned()));
        let Some(given) = cx.resources.registers else {
            return refuse("it is no kernel, or its file does not say how many registers it has");
        };
        let Some(fixed) = &cx.resources.fixed else {
            return refuse("its file names registers in a way that nobody here can read");
        };
        let top = u32::from(ir::top_register(kernel));
        if given < top {
            return refuse("it names more registers than its file gives it");
        }
        ir::may_take_registers(cx.isa, kernel).map_err(Refusal)?;
        let unknown = |op: ir::Op<'_>| op.layout().is_some_and(|l| l.flow == Flow::Call) && op.label().is_none();
        if kernel.ops().any(|op| unknown(op) && !op.goes_to_successor()) {
            return refuse("it calls code that is not known, which may need as many registers");
        }
        let mut result = PassResult::default();
        let skip = |reason: String| Skipped { offset: 0, reason };
        let Some(step) = Step::below(kernel, cx.resources, given, options) else {
            result
                .skipped
                .push(skip("with fewer registers no more warps are resident".to_owned()));
            return Ok(result);
        };
        // The kernel may have asked for more than it names.
        let limit = top.checked_sub(given - step.registers).filter(|limit| *limit > 0);
        let model = Model::of(kernel.target);
        let mut next = kernel.clone();
        let constraints = Constraints {
            reserved: fixed.clone(),
            in_flight: Some(sched::conflicts(cx.isa, model, kernel)),
        };
        let how = Allocation::Below(limit.unwrap_or(0) as u16);
        let done = ir::allocate(&mut next, how, &constraints).map_err(Refusal)?;
        if done.kept.contains(&RegFile::R) || limit.is_none() {
            result.skipped.push(skip(format!(
                "no allocation with {} registers was found",
                step.registers
            )));
            return Ok(result);
        }
        let named = ir::top_register(&next);
        let moved = kernel.values().filter(|v| kernel.pin(*v) != next.pin(*v));
        let pins = moved.map(|value| Edit::SetPin {
            value,
            pin: next.pin(value),
        });
        result.edits.edits = pins.collect();
        (result.sites, result.ops) = (1, result.edits.edits.len());
        let flags = flags(cx, kernel, next, model)?;
        result.edits.edits.extend(flags);
        let now = given - (top - u32::from(named));
        result.headline = Some(format!("{now} registers instead of {given}{step}"));
        Ok(result)
    }
}

/// Fewer registers, and what they are good for.
struct Step {
    registers: u32,
    /// Warps resident before and then, and threads of a block; where it is the warps that count.
    warps: Option<(u32, u32, u32)>,
}

impl Step {
    /// The next one below what is given.
    fn below(kernel: &Kernel, resources: &Resources, given: u32, options: &Options) -> Option<Step> {
        let wanted = |name: &str| options.int(name).map(|n| n as u32).filter(|n| *n > 0);
        if let Some(registers) = wanted("registers") {
            return (registers < given).then_some(Step { registers, warps: None });
        }
        let multiprocessor = Multiprocessor::of(kernel.target)?;
        let threads = resources.threads.or_else(|| wanted("threads")).unwrap_or(THREADS);
        let now = multiprocessor.resident_warps(given, threads, resources.shared);
        let steps = multiprocessor.steps(threads, resources.shared);
        let (registers, warps) = steps.into_iter().find(|(n, warps)| *n < given && *warps > now)?;
        Some(Step {
            registers,
            warps: Some((now, warps, threads)),
        })
    }
}

impl std::fmt::Display for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.warps {
            Some((now, then, threads)) => write!(
                f,
                ", {then} warps resident instead of {now} ({threads} threads a block)"
            ),
            None => Ok(()),
        }
    }
}

/// The operand cache's flags of `next`, which is `kernel` with its values elsewhere.
fn flags(cx: &Context<'_>, kernel: &Kernel, mut next: Kernel, model: &Model) -> Result<Vec<Edit>, Refusal> {
    next.write_words().map_err(|e| Refusal(e.to_string()))?;
    next.drop_reuse();
    let found: BTreeMap<u32, Control> = sched::more_reuse(cx.isa, model, &next).into_iter().collect();
    let now = instructions(&next).map(|(.., inst)| Control::of(inst.word));
    let before: Vec<(OpId, Control)> = instructions(kernel)
        .map(|(_, op, inst)| (op, Control::of(inst.word)))
        .collect();
    let all = (0..).zip(before).zip(now);
    let changed = all.filter_map(|((at, (op, before)), dropped)| {
        let control = found.get(&at).copied().unwrap_or(dropped);
        (control != before).then_some(Edit::SetControl { op, control })
    });
    Ok(changed.collect())
}
