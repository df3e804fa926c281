//! Looking on while a kernel runs: traces, checks, coverage, comparisons.

use isa::RegFile;

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

impl Step<'_> {
    /// The 32-bit registers that the instruction reads, and their values in a lane.
    pub fn reads(&self, lane: usize) -> Vec<(String, u32)> {
        let mut out: Vec<(String, u32)> = Vec::new();
        let Some(&inst) = self.program.insts.get(self.warp.pc as usize) else {
            return out;
        };
        let layout = self.program.layout;
        for access in self.program.isa.accesses(inst).filter(|a| a.dir.reads() && !a.is_zero) {
            let first = match access.file {
                RegFile::R => 0,
                RegFile::UR => layout.general,
                _ => continue,
            };
            for n in 0..access.width {
                let number = u16::from(access.reg) + u16::from(n);
                let name = format!("{}{number}", access.file.name());
                if out.iter().all(|(known, _)| *known != name) {
                    out.push((name, self.warp.regs.row(first + number)[lane]));
                }
            }
        }
        out
    }
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

    /// The bytes that an access left behind, if it wrote.
    fn wrote(&mut self, _access: &Access, _bytes: &[u8]) {}

    /// A block barrier has opened.
    fn barrier(&mut self, _ctaid: [u32; 3]) {}

    /// A block begins.
    fn block(&mut self, _ctaid: [u32; 3]) {}
}
