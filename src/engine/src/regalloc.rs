//! Register allocation over the kernels of a file, each with the proof that it is the same kernel.

use std::panic::{AssertUnwindSafe, catch_unwind};

use cubin::{Code, CubinError, Image, Patch};
use ir::{Allocated, Allocation, Constraints, Kernel, Pin};
use isa::Isa;
use rayon::prelude::*;
use sched::Model;
use serde::Serialize;

use crate::Error;
use crate::named::Named;
use crate::open::{Images, Opened};
use crate::resources;
use crate::schedule::{self, Timed};

/// What to do with the registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// Every value where its word says. The result must be the file.
    Pinned,
    /// A fresh allocation.
    Fresh,
    /// Random registers by the seed.
    Scrambled(u64),
    /// Random registers, then a fresh allocation of the result.
    ScrambledThenFresh(u64),
}

/// One kernel.
#[derive(Clone, Debug, Serialize)]
pub struct KernelAllocation {
    /// The target, as `sm_87`.
    pub target: String,
    /// The kernel's name.
    pub name: String,
    /// One past the highest general register: before, and after each allocation.
    pub registers: Vec<u16>,
    /// Values that had to be placed together, and how many such groups the first allocation moved.
    pub groups: (usize, usize),
    /// Files for which no other allocation was found, in each allocation.
    pub kept: Vec<String>,
    /// All bytes of the code are as they were.
    pub identical: bool,
    /// Words whose scheduling bits had to change for that.
    pub rescheduled: usize,
    /// Why the kernel stayed as it was.
    pub left_alone: Option<String>,
}

impl KernelAllocation {
    /// The last allocation needs no more registers than the kernel had.
    pub fn fits(&self) -> bool {
        self.left_alone.is_none() && self.registers.last() <= self.registers.first()
    }
}

impl std::fmt::Display for KernelAllocation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let KernelAllocation { target, name, .. } = self;
        write!(f, "regalloc: {target} {name}: ")?;
        if let Some(why) = &self.left_alone {
            return write!(f, "left alone: {why}");
        }
        if self.identical {
            return write!(f, "byte-identical, {} registers", self.registers[0]);
        }
        let counts: Vec<String> = self.registers.iter().map(u16::to_string).collect();
        let (all, moved) = self.groups;
        write!(
            f,
            "{moved} of {all} groups moved, registers {}, same def-use, no new hazard",
            counts.join(" -> ")
        )?;
        if self.rescheduled > 0 {
            write!(f, ", {} words rescheduled", self.rescheduled)?;
        }
        if !self.kept.is_empty() {
            write!(f, ", {} kept", self.kept.join(" "))?;
        }
        Ok(())
    }
}

/// What came out for a file.
pub struct Outcome {
    /// The new file.
    pub bytes: Vec<u8>,
    /// Every kernel, in file order.
    pub kernels: Vec<KernelAllocation>,
}

/// Allocates registers anew in the kernels that `wanted` chooses. What goes wrong for one kernel leaves it as it was, with the reason.
pub fn regalloc(
    opened: &Opened<'_>,
    images: &Images<'_>,
    how: How,
    wanted: &(dyn Fn(&str) -> bool + Sync),
    tick: &(dyn Fn() + Sync),
) -> Result<Outcome, Error> {
    let mut kernels = Vec::new();
    let mut replaced = Vec::new();
    for open in &images.list {
        let image = &open.image;
        let codes: Vec<_> = image.codes().iter().filter(|c| wanted(c.name)).collect();
        if codes.is_empty() {
            continue;
        }
        let isa = Isa::for_target(image.target()).map_err(|cause| Error::Isa {
            image: open.path.to_owned(),
            cause,
        })?;
        let work = Work {
            isa,
            image,
            model: Model::of(image.target()),
            how,
        };
        let done: Vec<_> = codes
            .par_iter()
            .map(|code| {
                let one = work.kernel(code);
                tick();
                one
            })
            .collect();
        let mut patch = Patch::new(image);
        for (code, (report, new)) in codes.iter().zip(done) {
            if let Some(new) = new {
                new.write(&mut patch, code).map_err(|cause| Error::Cubin {
                    image: open.path.to_owned(),
                    cause,
                })?;
            }
            kernels.push(report);
        }
        replaced.push((open.index, patch.finish()));
    }
    Ok(Outcome {
        bytes: opened.rebuild(&replaced)?,
        kernels,
    })
}

/// What a kernel becomes.
struct New<'i> {
    code: Vec<u8>,
    /// The register count, if it changes.
    registers: Option<u32>,
    /// What else of the file follows.
    named: Option<Named<'i>>,
}

impl New<'_> {
    fn write(&self, patch: &mut Patch<'_, '_>, code: &Code<'_>) -> Result<(), CubinError> {
        patch.replace_code(code, &self.code)?;
        if let Some(named) = &self.named {
            named.write(patch)?;
        }
        self.registers.map_or(Ok(()), |n| patch.set_registers(code, n))
    }
}

/// What is to be done to the kernels of an image.
#[derive(Clone, Copy)]
struct Work<'i> {
    isa: &'static Isa,
    image: &'i Image<'i>,
    model: &'i Model,
    how: How,
}

impl<'i> Work<'i> {
    fn kernel(self, code: &'i Code<'i>) -> (KernelAllocation, Option<New<'i>>) {
        let mut report = KernelAllocation {
            target: self.image.target().to_string(),
            name: code.name.to_owned(),
            registers: Vec::new(),
            groups: (0, 0),
            kept: Vec::new(),
            identical: false,
            rescheduled: 0,
            left_alone: None,
        };
        let done = catch_unwind(AssertUnwindSafe(|| self.rewrite(code, &mut report)));
        match done.unwrap_or_else(|_| Err("a panic inside; please report it with this file".to_owned())) {
            Ok(new) => {
                report.identical = new.code == code.bytes;
                (report, Some(new))
            }
            Err(why) => {
                report.left_alone = Some(why);
                (report, None)
            }
        }
    }

    fn rewrite(self, code: &'i Code<'i>, report: &mut KernelAllocation) -> Result<New<'i>, String> {
        let steps: &[Allocation] = match self.how {
            How::Pinned => return self.pinned(code, report),
            How::Fresh => &[Allocation::Fresh],
            How::Scrambled(seed) => &[Allocation::Scrambled(seed)],
            How::ScrambledThenFresh(seed) => &[Allocation::Scrambled(seed), Allocation::Fresh],
        };
        let mut named = Named::of(self.image, code)?;
        let mut constraints = Constraints {
            reserved: named.fixed.clone(),
            in_flight: None,
        };
        let mut kernel = self.lift(code, code.bytes, named.held())?;
        let before = ir::top_register(&kernel);
        report.registers.push(before);
        named.follow(&kernel)?;
        for (n, step) in steps.iter().enumerate() {
            constraints.in_flight = Some(sched::conflicts(self.isa, self.model, &kernel));
            let done = ir::allocate(&mut kernel, *step, &constraints)?;
            note(&done, n == 0, report);
            named.follow(&kernel)?;
            kernel = self.lifted_again(code, &kernel, named.held())?;
        }
        kernel.drop_reuse();
        let bytes = ir::lower(&kernel).map_err(|e| e.to_string())?;
        let bytes = self.without_new_hazards(code, bytes, report)?;
        let after = ir::top_register(&kernel);
        // Two registers are the hardware's; a kernel may have asked for more than it names.
        let registers = code
            .registers
            .map(|old| (u32::from(after) + 2).max(old.min(old + u32::from(after) - u32::from(before))));
        if let Some(needed) = registers {
            resources::fits(self.image, code, needed).map_err(|why| format!("with {needed} registers {why}"))?;
        }
        Ok(New {
            code: bytes,
            registers: registers.filter(|r| Some(*r) != code.registers),
            named: Some(named),
        })
    }

    /// Every value where its word says, written into words whose registers were cleared.
    fn pinned(self, code: &Code<'_>, report: &mut KernelAllocation) -> Result<New<'i>, String> {
        let mut kernel = self.lift(code, code.bytes, Vec::new())?;
        report.registers.push(ir::top_register(&kernel));
        kernel.clear_registers();
        Ok(New {
            code: ir::lower(&kernel).map_err(|e| e.to_string())?,
            registers: None,
            named: None,
        })
    }

    fn lift(self, code: &Code<'_>, bytes: &[u8], held: Vec<(u64, Pin)>) -> Result<Kernel, String> {
        let source = ir::Source {
            code: bytes,
            held,
            ..ir::Source::from_code(self.image.target(), code)
        };
        ir::lift(self.isa, &source).map_err(|e| e.to_string())
    }

    /// The kernel as its own code gives it back, proven to be the same kernel.
    fn lifted_again(self, code: &Code<'_>, kernel: &Kernel, held: Vec<(u64, Pin)>) -> Result<Kernel, String> {
        let mut cleared = kernel.clone();
        cleared.clear_registers();
        let bytes = ir::lower(&cleared).map_err(|e| format!("lower: {e}"))?;
        let again = self.lift(code, &bytes, held).map_err(|e| format!("lift again: {e}"))?;
        ir::same_def_use(kernel, &again).map_err(|e| format!("lifted again it is another kernel: {e}"))?;
        Ok(again)
    }

    /// Values that share a register now must not get into each other's way: the latency model has the last word.
    fn without_new_hazards(
        self,
        code: &Code<'_>,
        bytes: Vec<u8>,
        report: &mut KernelAllocation,
    ) -> Result<Vec<u8>, String> {
        let old = ir::Source::from_code(self.image.target(), code);
        let lift = |code| Timed::lift(self.isa, &ir::Source { code, ..old.clone() });
        let (before, mut after) = (lift(old.code)?, lift(&bytes)?);
        let model = Model::of(old.target);
        let repaired = schedule::repair(model, &before, &mut after, &bytes, &Some, std::iter::empty())?;
        Ok(match repaired {
            Some((bytes, words)) => {
                report.rescheduled = words;
                bytes
            }
            None => bytes,
        })
    }
}

fn note(done: &Allocated, first: bool, report: &mut KernelAllocation) {
    report.registers.push(done.registers.1);
    report.kept.extend(done.kept.iter().map(|f| f.name().to_owned()));
    if first {
        report.groups = done.groups;
    }
}
