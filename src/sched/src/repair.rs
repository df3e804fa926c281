//! Scheduling bits of a kernel whose instructions have changed: the fewest changes that make it free of hazards.

use std::collections::HashSet;

use ir::Kernel;
use isa::{Control, Isa};

use crate::check::{Finding, Report, check_code, check_for_errors, check_solved, goes_wrong_from};
use crate::code::Code;
use crate::fix::{Fixer, Stuck};
use crate::model::Model;
use crate::reuse;
use crate::walk::{self, Cursor, InFlight};

/// A kernel with other scheduling bits.
#[derive(Clone)]
pub struct Repaired {
    /// All of it.
    pub code: Code,
    /// Instructions whose scheduling bits changed, by number.
    pub changed: Vec<u32>,
    /// What nobody knows of the kernel, before and after.
    pub unknown: Vec<Finding>,
}

/// Why a kernel cannot be made free of hazards.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at {offset:#06x}: {why}")]
pub struct Unrepaired {
    /// Byte offset of the instruction.
    pub offset: u64,
    /// What stands in the way.
    pub why: String,
}

impl From<Stuck> for Unrepaired {
    fn from(s: Stuck) -> Self {
        Unrepaired {
            offset: u64::from(s.at) * 16,
            why: s.why.to_owned(),
        }
    }
}

/// Changes as few scheduling bits as are needed for [`crate::check`] to find no error: none that could be put back is left changed. What
/// nobody knows (`unknown`) stays unknown. The order of the instructions stays.
pub fn repair(isa: &'static Isa, model: &Model, kernel: &Kernel) -> Result<Repaired, Unrepaired> {
    repair_code(model, Code::new(isa, model.classes(), kernel))
}

/// [`repair`] of a kernel that was read already.
pub fn repair_code(model: &Model, code: Code) -> Result<Repaired, Unrepaired> {
    let report = check_for_errors(model, &code);
    if report.errors().next().is_none() {
        return Ok(done(code, &[], &report));
    }
    let before: Vec<Control> = code.steps.iter().map(|s| s.control).collect();
    let (mut code, solved, report) = fixed(Fixer::new(code, model, &before, false), model)?;
    let fixed = code.clone();
    let unknown = |r: &Report| -> HashSet<Finding> { findings(r).cloned().collect() };
    let known = unknown(&report);
    let worse = |code: &Code| {
        let report = check_for_errors(model, code);
        report.errors().next().is_some() || !unknown(&report).is_subset(&known)
    };
    // All are put back that may be by what is near them; only if that was too many, one is held against the whole code after the other.
    if put_back(model, &mut code, &before, &solved, &|_| false) && worse(&code) {
        code = fixed;
        put_back(model, &mut code, &before, &solved, &worse);
    }
    Ok(done(code, &before, &report))
}

/// The code put right, what is in flight in it, and what the checker says of it.
fn fixed(mut fixer: Fixer<'_>, model: &Model) -> Result<(Code, InFlight, Report), Unrepaired> {
    loop {
        let again = fixer.round()?;
        let mut code = fixer.code.clone();
        drop_stale_flags(&mut code);
        let solved = walk::solve(&code, model);
        let report = check_solved(model, &code, &solved);
        // Another round would look at what the checker has looked at, but for what nobody knows.
        let unknown = |f: &Finding| f.hazard.is_error() || f.kind.is_some();
        if !again || !report.findings.iter().any(unknown) {
            return Ok((code, solved, without_errors(report)?));
        }
    }
}

/// Puts scheduling bits back that `before` had, one instruction after the other, as long as nothing goes wrong near by and the code is not `worse`
/// for it. Says whether any are as they were.
fn put_back(
    model: &Model,
    code: &mut Code,
    before: &[Control],
    solved: &InFlight,
    worse: &dyn Fn(&Code) -> bool,
) -> bool {
    let (mut any, mut here) = (false, None);
    for at in 0..before.len() as u32 {
        let new = code.steps[at as usize].control;
        if new == before[at as usize] {
            continue;
        }
        here = Cursor::to(here, solved, code, model, at);
        if code.set_control(at, before[at as usize]) {
            // With fewer stalls and waits more is in flight: what goes wrong near by with less of it goes wrong.
            let wrong = here
                .as_ref()
                .is_some_and(|here| goes_wrong_from(model, code, solved, here));
            if wrong || worse(code) {
                code.set_control(at, new);
            } else {
                any = true;
            }
        }
    }
    any
}

fn findings(report: &Report) -> impl Iterator<Item = &Finding> {
    report.findings.iter().filter(|f| !f.hazard.is_error())
}

fn done(code: Code, before: &[Control], report: &Report) -> Repaired {
    let changed = code.steps.iter().zip(before).enumerate();
    let changed = changed.filter(|(_, (step, old))| step.control != **old);
    Repaired {
        changed: changed.map(|(at, _)| at as u32).collect(),
        unknown: findings(report).cloned().collect(),
        code,
    }
}

/// The checker's word that there is no error.
pub(crate) fn verified(model: &Model, code: &Code) -> Result<Report, Unrepaired> {
    without_errors(check_code(model, code))
}

fn without_errors(report: Report) -> Result<Report, Unrepaired> {
    if let Some(left) = report.errors().next() {
        return Err(Unrepaired {
            offset: left.at,
            why: format!("no way was found to cure this: {left}"),
        });
    }
    Ok(report)
}

/// Clears operand-cache flags on registers that change before they are read from there.
pub(crate) fn drop_stale_flags(code: &mut Code) {
    while let Some(&(_, by, register)) = reuse::stale(code).first() {
        let keeps = |at: &u32| {
            let step = &code.steps[*at as usize];
            step.control.yield_ && step.control.reuse != 0 && code.reads(step).iter().any(|t| t.of(register, 1) != 0)
        };
        let start = code.blocks[code.block_of(by)].start;
        let Some(keeper) = (start..by + 1).rev().find(keeps) else {
            return;
        };
        let control = Control {
            reuse: 0,
            ..code.steps[keeper as usize].control
        };
        if !code.set_control(keeper, control) {
            return;
        }
    }
}
