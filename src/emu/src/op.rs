//! What a program is made of: one [`Op`] an instruction, whose operands and modifiers were worked out once.

use crate::cta::Env;
use crate::error::Trap;
use crate::flow::Flow;
use crate::regs::{Mask, Pred, Regs};
use crate::warp::Warp;

/// Computes from registers to registers, on the lanes of the mask.
pub type Lanes = Box<dyn Fn(&mut Regs, Mask) + Send + Sync>;
/// Touches more than the registers of its warp.
pub type Outside = Box<dyn Fn(&mut Warp, &mut Env<'_>, Mask) -> Result<(), Trap> + Send + Sync>;

/// How an instruction is executed.
pub enum Run {
    /// Registers only.
    Lanes(Lanes),
    /// Memory, special registers, other warps.
    Outside(Outside),
    /// Control flow.
    Flow(Flow),
    /// Not emulated; the number is its place in the program's list of such instructions.
    Missing(u32),
}

/// One instruction.
pub struct Op {
    /// It is executed where this holds.
    pub guard: Pred,
    /// On the uniform datapath: executed once for the warp, whatever lanes are active.
    pub uniform: bool,
    /// What it does.
    pub run: Run,
}

/// A computation on registers.
pub fn on_lanes(f: impl Fn(&mut Regs, Mask) + Send + Sync + 'static) -> Run {
    Run::Lanes(Box::new(f))
}

/// Something that reaches out of the warp.
pub fn outside(f: impl Fn(&mut Warp, &mut Env<'_>, Mask) -> Result<(), Trap> + Send + Sync + 'static) -> Run {
    Run::Outside(Box::new(f))
}
