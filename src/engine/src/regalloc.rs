//! Register allocation over the kernels of a file, each with the proof that it is the same kernel.

use std::panic::{AssertUnwindSafe, catch_unwind};

use cubin::nvinfo::code as attribute;
use cubin::{Code, Image, Patch};
use ir::{Allocated, Allocation, Kernel};
use isa::Isa;
use rayon::prelude::*;
use serde::Serialize;

use crate::Error;
use crate::open::{Images, Opened};

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
            "{moved} of {all} groups moved, registers {}, same def-use",
            counts.join(" -> ")
        )?;
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
        let done: Vec<_> = codes
            .par_iter()
            .map(|code| {
                let one = one_kernel(isa, image, code, how);
                tick();
                one
            })
            .collect();
        let mut patch = Patch::new(image);
        for (code, (report, new)) in codes.iter().zip(done) {
            if let Some((bytes, registers)) = new {
                let patched = patch.replace_code(code, &bytes).and_then(|()| match registers {
                    Some(n) => patch.set_registers(code, n),
                    None => Ok(()),
                });
                patched.map_err(|cause| Error::Cubin {
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

/// New code, and the new register count if it changes.
type New = (Vec<u8>, Option<u32>);

fn one_kernel(isa: &'static Isa, image: &Image<'_>, code: &Code<'_>, how: How) -> (KernelAllocation, Option<New>) {
    let mut report = KernelAllocation {
        target: image.target().to_string(),
        name: code.name.to_owned(),
        registers: Vec::new(),
        groups: (0, 0),
        kept: Vec::new(),
        identical: false,
        left_alone: None,
    };
    let done = catch_unwind(AssertUnwindSafe(|| rewrite(isa, image, code, how, &mut report)));
    match done.unwrap_or_else(|_| Err("a panic inside; please report it with this file".to_owned())) {
        Ok(new) => {
            report.identical = new.0 == code.bytes;
            (report, Some(new))
        }
        Err(why) => {
            report.left_alone = Some(why);
            (report, None)
        }
    }
}

fn rewrite(
    isa: &'static Isa,
    image: &Image<'_>,
    code: &Code<'_>,
    how: How,
    report: &mut KernelAllocation,
) -> Result<New, String> {
    let target = image.target();
    let mut kernel = ir::lift(isa, &ir::Source::from_code(target, code)).map_err(|e| e.to_string())?;
    let before = ir::top_register(&kernel);
    report.registers.push(before);
    let steps: &[Allocation] = match how {
        How::Pinned => &[],
        How::Fresh => &[Allocation::Fresh],
        How::Scrambled(seed) => &[Allocation::Scrambled(seed)],
        How::ScrambledThenFresh(seed) => &[Allocation::Scrambled(seed), Allocation::Fresh],
    };
    if steps.is_empty() {
        kernel.clear_registers();
        return Ok((ir::lower(&kernel).map_err(|e| e.to_string())?, None));
    }
    if let Some(why) = names_registers(image, code) {
        return Err(why);
    }
    for (n, step) in steps.iter().enumerate() {
        let done = ir::allocate(&mut kernel, *step)?;
        note(&done, n == 0, report);
        kernel = lifted_again(isa, image, code, &kernel)?;
    }
    kernel.drop_reuse();
    let bytes = ir::lower(&kernel).map_err(|e| e.to_string())?;
    let after = ir::top_register(&kernel);
    // Two registers are the hardware's; a kernel may have asked for more than it names.
    let registers = code
        .registers
        .map(|old| (u32::from(after) + 2).max(old.min(old + u32::from(after) - u32::from(before))));
    Ok((bytes, registers.filter(|r| Some(*r) != code.registers)))
}

fn note(done: &Allocated, first: bool, report: &mut KernelAllocation) {
    report.registers.push(done.registers.1);
    report.kept.extend(done.kept.iter().map(|f| f.name().to_owned()));
    if first {
        report.groups = done.groups;
    }
}

/// The kernel as its own code gives it back, proven to be the same kernel.
fn lifted_again(isa: &'static Isa, image: &Image<'_>, code: &Code<'_>, kernel: &Kernel) -> Result<Kernel, String> {
    let mut cleared = kernel.clone();
    cleared.clear_registers();
    let bytes = ir::lower(&cleared).map_err(|e| format!("lower: {e}"))?;
    let source = ir::Source {
        code: &bytes,
        ..ir::Source::from_code(image.target(), code)
    };
    let again = ir::lift(isa, &source).map_err(|e| format!("lift again: {e}"))?;
    ir::same_def_use(kernel, &again).map_err(|e| format!("lifted again it is another kernel: {e}"))?;
    Ok(again)
}

/// Attributes and sections that name registers, and would go on naming the old ones.
fn names_registers(image: &Image<'_>, code: &Code<'_>) -> Option<String> {
    let debug = image
        .sections()
        .iter()
        .find(|s| s.name.contains("reg_sass") || s.name.contains("reg_type") || s.name == ".debug_loc");
    if let Some(section) = debug {
        return Some(format!(
            "`{}` names registers: strip the debug information first",
            section.name
        ));
    }
    let named = code.attributes.iter().find(|a| match a.code {
        attribute::COOP_GROUP_MASK_REGIDS => a.payload.chunks(4).any(|w| w != [0xff; 4]),
        attribute::MBARRIER_INSTR_OFFSETS => a.payload.chunks(16).any(|r| r.get(4) != Some(&0xff)),
        attribute::INSTR_REG_MAP | attribute::ATOM16_EMUL_INSTR_REG_MAP => true,
        _ => false,
    })?;
    Some(format!("EIATTR_{} names registers", named.name().unwrap_or("?")))
}
