//! Scheduling bits from scratch, for instructions in the order that they have.
//!
//! What the bits were counts only where the model cannot see what they guard: a scoreboard that tells of something else than a register, or
//! that `DEPBAR` counts, keeps its number, its signals and its waits; what was over at a fence, a `NOP`, a return or a call of unknown code is
//! over there again.

use std::collections::HashMap;

use ir::{Flow, Kernel};
use isa::{Control, Effects, Isa, Space, Word};

use crate::check::check_code;
use crate::code::{Code, GROUPS, Port, Step};
use crate::estimate::estimate;
use crate::fix::{Fixer, set_stall};
use crate::model::Model;
use crate::order::order;
use crate::repair::{Unrepaired, verified};
use crate::returns::Returns;
use crate::reuse;
use crate::state::{FAR, Flight, State};
use crate::walk::{self, Rules};

/// Throws the scheduling bits of a kernel away and assigns new ones. Gives all words in order, without the padding behind them; the checker
/// has found no error in them, and nothing that it does not know.
pub fn assign(isa: &'static Isa, model: &Model, kernel: &Kernel) -> Result<Vec<Word>, Unrepaired> {
    let code = understood(isa, model, kernel)?;
    let facts = Facts::of(&code, model);
    let assigned = assign_to(code, model.anew(), facts)?;
    Ok(assigned.words())
}

/// A kernel in another order, with new scheduling bits.
#[derive(Clone, Debug)]
pub struct Scheduled {
    /// All instructions in their new order, without the padding behind them.
    pub words: Vec<Word>,
    /// Where each of them was.
    pub order: Vec<u32>,
}

/// Puts the instructions of each block into an order in which less time is spent waiting, and assigns scheduling bits from scratch. A block
/// for which that is no gain by the model keeps its order. `may_move` says of an instruction whether its place may be another one.
pub fn schedule(
    isa: &'static Isa,
    model: &Model,
    kernel: &Kernel,
    may_move: &dyn Fn(u32) -> bool,
) -> Result<Scheduled, Unrepaired> {
    let code = understood(isa, model, kernel)?;
    let facts = Facts::of(&code, model);
    let model = model.anew();
    let listed = order(&code, model, &|at| {
        may_move(at) && !facts.pins(&code.steps[at as usize])
    });
    let as_it_is = assign_to(code.clone(), model, facts.clone())?;
    let moved = assign_to(code.clone().ordered(&listed), model, facts.ordered(&listed))?;
    let mut best: Vec<u32> = (0..code.steps.len() as u32).collect();
    let costs = |code: &Code| estimate(code, model).into_iter().map(|b| (b.first, b.cycles));
    for ((first, old), (_, new)) in costs(&as_it_is).zip(costs(&moved)) {
        if new < old {
            let block = code.blocks[code.block_of(first)].clone();
            let block = block.start as usize..block.end as usize;
            best[block.clone()].copy_from_slice(&listed[block]);
        }
    }
    let scheduled = assign_to(code.ordered(&best), model, facts.ordered(&best))?;
    Ok(Scheduled {
        words: scheduled.words(),
        order: best,
    })
}

/// A kernel of whose scheduling nothing is wrong or unknown.
fn understood(isa: &'static Isa, model: &Model, kernel: &Kernel) -> Result<Code, Unrepaired> {
    let code = Code::new(isa, model.classes(), kernel);
    if let Some(f) = check_code(model, &code).findings.first() {
        return Err(Unrepaired {
            offset: f.at,
            why: format!("with the bits that it has: {f}"),
        });
    }
    Ok(code)
}

/// What the old scheduling bits of a kernel guarantee beyond its registers.
#[derive(Clone)]
struct Facts {
    before: Vec<Control>,
    /// Scoreboards that keep their meaning, as bits.
    kept: u8,
    /// What may be in flight at instructions that others rely on.
    limits: HashMap<u32, State>,
}

impl Facts {
    fn of(code: &Code, model: &Model) -> Facts {
        let mut kept = 0;
        for step in &code.steps {
            let bit = |b: Option<u8>| b.map_or(0, |b| 1u8 << (b & 7));
            let reads_late = code.reads(step).iter().any(|t| model.reads_late(step, t.port));
            // What comes behind a wait for tensor memory may overwrite it, or tell others that they may.
            let tensor = code.isa.semantics(step.inst()).space == Space::Tensor;
            if tensor || code.writes(step).iter().all(|t| t.port == Port::View) {
                kept |= bit(step.control.write_barrier);
            }
            if tensor || !reads_late {
                kept |= bit(step.control.read_barrier);
            }
            kept |= bit(step.counted.map(|c| c.0)) | (step.wait & !step.control.wait);
        }
        Facts {
            before: code.steps.iter().map(|s| s.control).collect(),
            kept: kept & 0x3f,
            limits: limits(code, model),
        }
    }

    /// Whether the order of an instruction and others counts that the model knows nothing of: what kept scoreboards tell.
    fn pins(&self, step: &Step) -> bool {
        let signals = [step.control.write_barrier, step.control.read_barrier];
        let kept = |b: &Option<u8>| b.is_some_and(|b| self.kept >> b & 1 == 1);
        step.control.wait & self.kept != 0 || signals.iter().any(kept)
    }

    /// The same of the code in another order. Who asks for what is over stays in its place.
    fn ordered(&self, order: &[u32]) -> Facts {
        let mut place = vec![0; order.len()];
        (0..).zip(order).for_each(|(to, from)| place[*from as usize] = to);
        let mut limits = self.limits.clone();
        for flight in limits.values_mut().flat_map(|s| &mut s.flights) {
            flight.step = place[flight.step as usize];
        }
        Facts {
            before: order.iter().map(|at| self.before[*at as usize]).collect(),
            kept: self.kept,
            limits,
        }
    }

    /// The bits that an instruction begins with.
    fn bare(&self, step: &Step, model: &Model, isa: &Isa) -> Control {
        let before = step.control;
        let keep = |b: Option<u8>| b.filter(|b| self.kept >> b & 1 == 1);
        let mut control = Control {
            write_barrier: keep(before.write_barrier),
            read_barrier: keep(before.read_barrier),
            wait: before.wait & self.kept,
            ..Control::PLAIN
        };
        // The least count behind a mnemonic is not that behind one of its forms that waits.
        let form = isa
            .form(step.form)
            .filter(|_| step.counted.is_none_or(|c| c.0 != GROUPS));
        let stall = form.and_then(|f| model.least_stall(f.mnemonic()));
        // Of an instruction that was seen too rarely nothing is known but this.
        let stall = stall.unwrap_or(before.stall);
        set_stall(&mut control, first_stall(step, stall));
        control
    }
}

/// Cycles that `ptxas` leaves behind what changes the flow, but where it says that all lanes go the same way.
const TURN: u8 = 5;

/// The stall count that an instruction begins with, if `known` is the least of its mnemonic: forms of one mnemonic differ where control
/// flows, and who follows makes a difference where fences and barriers are.
fn first_stall(step: &Step, known: u8) -> u8 {
    let before = step.control.stall;
    let orders = [Effects::FENCE, Effects::BARRIER].iter().any(|e| step.effects.has(*e));
    match step.flow != Flow::None {
        true if before == 0 => known.max(TURN),
        true => known.max(before.min(TURN)),
        false if orders && before == 0 => 0,
        false if orders => known.max(before),
        false => known,
    }
}

/// What is in flight at fences, `NOP`s, returns and calls of unknown code. A function leaves nothing for its callers: no scoreboard that it signals anew
/// would be one that they wait for, nor do its last cycles stay. Nor is anything left for unknown code that takes a fixed time.
fn limits(code: &Code, model: &Model) -> HashMap<u32, State> {
    let mut limits = HashMap::new();
    let returns = Returns::of(code);
    let solved = walk::solve(code, model);
    for (b, range) in code.blocks.iter().enumerate() {
        let mut state = solved.at(b).cloned().unwrap_or_default();
        for at in range.clone() {
            let step = &code.steps[at as usize];
            state.wait(step.wait);
            if let Some((scoreboard, most)) = step.counted {
                state.wait_for_count(scoreboard, most);
            }
            let leaves = step.flow == Flow::Return || step.leaves();
            let fences = step.effects.has(Effects::FENCE.union(Effects::BARRIER)) && can_wait(code.isa, step);
            if leaves || fences || code.only_waits(step) {
                let mut limit = state.clone();
                if leaves {
                    let told = |f: &Flight| f.release != 0 || f.limit > FAR;
                    let own = |f: &Flight| step.flow == Flow::Return && returns.is_own(code, f, b);
                    limit.flights.retain(|f| told(f) && !own(f));
                }
                limits.insert(at, limit);
            }
            state.issue(code, at, model);
            if step.flow == Flow::Call {
                solved.come_back(code, at, &mut state);
            }
        }
    }
    limits
}

/// Whether the form of an instruction has room for a wait: what cannot ask whether loads are done relies on none.
fn can_wait(isa: &Isa, step: &Step) -> bool {
    let waiting = Control {
        wait: 1,
        ..step.control
    };
    isa.decode(waiting.apply(step.word)).form == step.form
}

fn assign_to(mut code: Code, model: &Model, facts: Facts) -> Result<Code, Unrepaired> {
    for at in 0..code.steps.len() as u32 {
        let bare = facts.bare(&code.steps[at as usize], model, code.isa);
        if !code.set_control(at, bare) {
            return Err(Unrepaired {
                offset: u64::from(at) * 16,
                why: "its scheduling bits cannot be cleared".to_owned(),
            });
        }
    }
    let mut fixer = Fixer::new(code, model, &facts.before, true);
    fixer.reserved = facts.kept;
    fixer.limits = facts.limits;
    fixer.run()?;
    let mut code = fixer.code;
    reuse::keep(&mut code);
    verified(model, &code)?;
    Ok(code)
}
