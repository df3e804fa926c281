//! Operand-cache flags: an operand that is kept for the next instructions must not change meanwhile.

use ir::Kernel;
use isa::{Control, Isa, OperandIx};

use crate::code::{Code, Reg, Step, reg};
use crate::model::Model;

/// The register in each operand-cache slot of an instruction, as (word bit of the slot's flag, whether it is set, register, width).
fn slots(code: &Code, step: &Step) -> Vec<(u8, bool, Reg, u8)> {
    let inst = step.inst();
    let Some(form) = code.isa.form(step.form) else {
        return Vec::new();
    };
    let flags = form.reuse();
    if flags.is_empty() {
        return Vec::new();
    }
    let mut found = Vec::new();
    for access in code.isa.accesses(inst).filter(|a| a.dir.reads() && !a.is_zero) {
        let OperandIx::Printed(operand) = access.operand else {
            continue;
        };
        for &(bit, _) in flags.iter().filter(|(_, of)| *of == operand) {
            let set = step.word.0 >> bit & 1 == 1 && (bit < 105 || step.control.yield_);
            found.push((bit, set, reg(access.file, access.reg), access.width));
        }
    }
    found
}

/// Whether a bit is set that can be a flag.
fn has_flag(code: &Code, step: &Step) -> bool {
    let flags = code.isa.form(step.form).map_or(&[][..], |form| form.reuse());
    flags.iter().any(|(bit, _)| step.word.0 >> bit & 1 == 1)
}

/// Sets the flags of operands that the next instruction reads in the same slot, where all others are clear.
pub(crate) fn keep(code: &mut Code) {
    for block in code.blocks.clone() {
        for at in block.start..block.end.saturating_sub(1) {
            let (step, next) = (&code.steps[at as usize], &code.steps[at as usize + 1]);
            let again = slots(code, next);
            let kept = slots(code, step).into_iter().filter(|(bit, _, register, width)| {
                let same = again.iter().any(|n| (n.0, n.2, n.3) == (*bit, *register, *width));
                same && *bit >= 122 && !code.writes(step).iter().any(|t| t.of(*register, *width) != 0)
            });
            let reuse = kept.fold(0, |flags, (bit, ..)| flags | 1 << (bit - 122));
            if step.control.yield_ && reuse != 0 {
                let control = Control { reuse, ..step.control };
                code.set_control(at, control);
            }
        }
    }
}

/// Flags that a kernel could have besides: instructions by number, and their scheduling bits with all flags. Those that are there stay.
pub fn more_reuse(isa: &'static Isa, model: &Model, kernel: &Kernel) -> Vec<(u32, Control)> {
    let before = Code::new(isa, model.classes(), kernel);
    let mut code = before.clone();
    keep(&mut code);
    for (at, old) in (0..).zip(&before.steps) {
        let now = code.steps[at as usize].control;
        let reuse = now.reuse | old.control.reuse;
        if old.control.yield_ && reuse != now.reuse {
            code.set_control(at, Control { reuse, ..now });
        }
    }
    let known = stale(&before).len();
    let added = (0..).zip(&code.steps).zip(&before.steps);
    let added = added.filter(|((_, now), old)| now.control != old.control);
    match stale(&code).len() > known {
        true => Vec::new(),
        false => added.map(|((at, now), _)| (at, now.control)).collect(),
    }
}

/// Operands that are kept though their register is overwritten before the instruction that reads them from the cache: that
/// instruction, the one that overwrites, and the register.
pub fn stale(code: &Code) -> Vec<(u32, u32, Reg)> {
    let mut found = Vec::new();
    for block in &code.blocks {
        // By slot: the register that is kept, and who overwrote it.
        let mut kept: Vec<(u8, Reg, u8, Option<u32>)> = Vec::new();
        for at in block.clone() {
            let step = &code.steps[at as usize];
            if kept.is_empty() && !has_flag(code, step) {
                continue;
            }
            let slots = slots(code, step);
            for &(bit, _, register, _) in &slots {
                if let Some((.., Some(by))) = kept.iter().find(|k| k.0 == bit && k.1 == register) {
                    found.push((at, *by, register));
                }
            }
            kept.retain(|k| !slots.iter().any(|s| s.0 == k.0));
            kept.extend(slots.iter().filter(|s| s.1).map(|s| (s.0, s.2, s.3, None)));
            for (_, register, width, by) in &mut kept {
                if code.writes(step).iter().any(|t| t.of(*register, *width) != 0) {
                    *by = Some(at);
                }
            }
        }
    }
    found
}
