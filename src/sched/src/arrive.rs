//! Products of warpgroups find in registers what was there when the warpgroup arrived: `WARPGROUP.ARRIVE` (PTX `wgmma.fence`) must stand
//! between any other access to a register and the product that reads it, or overwrites it.

use crate::class::ClassId;
use crate::code::{Code, Port, REGISTERS, Reg, Step, Touch};
use crate::model::Model;

/// A product that comes too early for one of its registers.
pub(crate) struct Early {
    /// The product.
    pub at: u32,
    /// Who accessed the register last; `None` if no warpgroup has arrived since the beginning.
    pub earlier: Option<u32>,
    /// The first such register.
    pub register: Reg,
    /// The access is in code that a call entered, if there is one at all.
    pub called: bool,
}

/// Nothing since the last arrival.
const ARRIVED: u32 = u32::MAX;
/// Whatever was before the code.
const BEFORE: u32 = u32::MAX - 1;

/// By general register, who accessed it since the last arrival.
#[derive(Clone)]
struct Since {
    read: [u32; REGISTERS],
    written: [u32; REGISTERS],
}

impl Since {
    const fn all(who: u32) -> Since {
        Since {
            read: [who; REGISTERS],
            written: [who; REGISTERS],
        }
    }

    /// What holds on either of two ways. Returns whether it is more than before.
    fn join(&mut self, other: &Since) -> bool {
        let mut changed = false;
        let mine = self.read.iter_mut().chain(&mut self.written);
        for (mine, other) in mine.zip(other.read.iter().chain(&other.written)) {
            changed |= other < mine;
            *mine = (*mine).min(*other);
        }
        changed
    }

    fn pass(&mut self, code: &Code, at: u32, classes: Classes) {
        let step = &code.steps[at as usize];
        if step.class == Some(classes.arrive) {
            *self = Since::all(ARRIVED);
        } else if step.flow == ir::Flow::Call {
            *self = Since::all(at);
        } else if step.class != Some(classes.product) {
            registers(code.reads(step)).for_each(|r| self.read[r] = at);
            registers(code.writes(step)).for_each(|r| self.written[r] = at);
        }
    }

    /// A register of a product that was accessed since the last arrival, and by whom.
    fn early(&self, code: &Code, step: &Step) -> Option<(Reg, u32)> {
        let read = registers(code.reads(step)).map(|r| (r, self.written[r]));
        let written = registers(code.writes(step)).map(|r| (r, self.read[r].min(self.written[r])));
        let (register, who) = read.chain(written).find(|(_, who)| *who != ARRIVED)?;
        Some((register as Reg, who))
    }
}

#[derive(Clone, Copy)]
struct Classes {
    arrive: ClassId,
    product: ClassId,
}

fn registers(touches: &[Touch]) -> impl Iterator<Item = usize> {
    let general = touches.iter().filter(|t| t.port == Port::R);
    general.flat_map(|t| usize::from(t.first)..usize::from(t.first) + usize::from(t.width))
}

/// The products that come too early, each once.
pub(crate) fn early(code: &Code, model: &Model) -> Vec<Early> {
    let named = |name| model.classes().named(name);
    let (Some(arrive), Some(product)) = (named("arrive"), named("gmma")) else {
        return Vec::new();
    };
    if !code.steps.iter().any(|s| s.class == Some(product)) {
        return Vec::new();
    }
    let classes = Classes { arrive, product };
    let mut found = Vec::new();
    for (block, since) in solve(code, classes).into_iter().enumerate() {
        let Some(mut since) = since else { continue };
        for at in code.blocks[block].clone() {
            let step = &code.steps[at as usize];
            let early = since.early(code, step).filter(|_| step.class == Some(product));
            found.extend(early.map(|(register, who)| Early {
                at,
                earlier: (who != BEFORE).then_some(who),
                register,
                called: code.steps.get(who as usize).is_some_and(|s| s.flow == ir::Flow::Call),
            }));
            since.pass(code, at, classes);
        }
    }
    found
}

/// What holds at the start of each block; `None` where nothing leads.
fn solve(code: &Code, classes: Classes) -> Vec<Option<Box<Since>>> {
    let mut at: Vec<Option<Box<Since>>> = vec![None; code.blocks.len()];
    let mut open = Vec::new();
    let called = code.steps.iter().flat_map(|step| code.callees(step));
    for &to in called.chain((!code.blocks.is_empty()).then_some(&0)) {
        at[to as usize] = Some(Box::new(Since::all(BEFORE)));
        open.push(to as usize);
    }
    while let Some(block) = open.pop() {
        let Some(mut since) = at[block].clone() else { continue };
        for step in code.blocks[block].clone() {
            since.pass(code, step, classes);
        }
        for &to in code.successors(block) {
            let changed = match &mut at[to as usize] {
                Some(old) => old.join(&since),
                none => {
                    *none = Some(since.clone());
                    true
                }
            };
            if changed {
                open.push(to as usize);
            }
        }
    }
    at
}
