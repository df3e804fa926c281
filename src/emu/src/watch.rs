//! Looking on while a kernel runs: traces, checks, coverage, comparisons.

use crate::error::{Space, Trap};
use crate::program::Program;
use crate::regs::Mask;
use crate::warp::Warp;

/// One instruction that is about to be executed.
pub struct Step<'a> {
    /// The code.
    pub program: &'a Program,
    /// Block index.
    pub ctaid: [u32; 3],
    /// The warp; `warp.pc` is the instruction's index.
    pub warp: &'a Warp,
    /// Lanes on which it is executed.
    pub mask: Mask,
    /// Warp instructions executed before it in the launch.
    pub number: u64,
}

/// What is done to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Doing {
    Load,
    Store,
    Atomic,
}

/// One lane's access to memory, which was found to be in bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// What is done.
    pub doing: Doing,
    /// Where.
    pub space: Space,
    /// First byte.
    pub address: u64,
    /// Bytes.
    pub size: u32,
    /// Block index.
    pub ctaid: [u32; 3],
    /// Warp in the block.
    pub warp: u32,
    /// Lane.
    pub lane: u32,
    /// Index of the instruction.
    pub pc: u32,
    /// Warp instructions executed before it in the launch.
    pub number: u64,
}

/// Somebody who looks on.
pub trait Watch {
    /// Before an instruction.
    fn step(&mut self, _step: &Step<'_>) {}

    /// An access to memory; an error stops the launch.
    fn access(&mut self, _access: &Access) -> Result<(), Trap> {
        Ok(())
    }

    /// A block barrier has opened.
    fn barrier(&mut self, _ctaid: [u32; 3]) {}

    /// A block begins.
    fn block(&mut self, _ctaid: [u32; 3]) {}
}
