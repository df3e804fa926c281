//! `info --cycles`: how long the blocks of kernels take by their scheduling bits, and what their results have to wait for.

use std::io::Write;

use anyhow::{Context, Result};
use cubin::Code;
use engine::OpenImage;
use isa::{Isa, Target};
use sched::{Model, estimate, time};
use serde::Serialize;

use crate::Finding;
use crate::args;
use crate::input::File;
use crate::output;

/// A kernel, and its blocks, each gone through once with nothing in flight at its start.
#[derive(Serialize)]
struct Kernel {
    name: String,
    target: String,
    instructions: usize,
    /// Of all blocks one after the other: the sum of the stall counts, and with the waits, also for what another block has begun. As `apply`
    /// estimates them.
    issue_cycles: u64,
    cycles: u64,
    blocks: Vec<Block>,
}

#[derive(Serialize)]
struct Block {
    offset: u64,
    instructions: u32,
    /// Sum of the stall counts.
    issue_cycles: u64,
    /// With the waits for scoreboards.
    cycles: u64,
    critical_path: Path,
}

/// The longest chain of instructions that read each other's results.
#[derive(Serialize)]
struct Path {
    cycles: u64,
    offsets: Vec<u64>,
    texts: Vec<String>,
}

/// Runs the command.
pub fn run(a: &args::Info, out: &mut dyn Write) -> Result<Finding> {
    let file = File::read(&a.input)?;
    let opened = file.open()?;
    let images = file.images(&opened)?;
    let mut kernels = Vec::new();
    file.each_image(&images, |OpenImage { image, .. }, codes| {
        let target = image.target();
        let isa = Isa::for_target(target)?;
        let model = Model::of(target);
        for code in codes {
            kernels.push(kernel(isa, model, target, code).with_context(|| code.name.to_owned())?);
        }
        Ok(())
    })?;
    match a.json {
        true => output::json(out, &kernels)?,
        false => write_text(out, &kernels)?,
    }
    Ok(Finding::Good)
}

fn kernel(isa: &'static Isa, model: &Model, target: Target, code: &Code<'_>) -> Result<Kernel> {
    let lifted = ir::lift(isa, &ir::Source::from_code(target, code))?;
    let steps = sched::code::Code::new(isa, model.classes(), &lifted);
    let text = |at: &u32| {
        let mut text = String::new();
        // A string takes any text.
        let _ = isa.write_text(
            isa.decode(steps.steps[*at as usize].word),
            u64::from(*at) * 16,
            &mut text,
            None,
        );
        text
    };
    let blocks: Vec<Block> = estimate(&steps, model)
        .into_iter()
        .map(|b| Block {
            offset: u64::from(b.first) * 16,
            instructions: b.instructions,
            issue_cycles: b.issue,
            cycles: b.cycles,
            critical_path: Path {
                cycles: b.critical,
                offsets: b.path.iter().map(|at| u64::from(*at) * 16).collect(),
                texts: b.path.iter().map(text).collect(),
            },
        })
        .collect();
    let (issue_cycles, cycles) = time::straight(&steps, model);
    Ok(Kernel {
        name: code.name.to_owned(),
        target: target.to_string(),
        instructions: steps.steps.len(),
        issue_cycles,
        cycles,
        blocks,
    })
}

fn write_text(out: &mut dyn Write, kernels: &[Kernel]) -> Result<()> {
    for k in kernels {
        writeln!(
            out,
            "cycles: {} {} - {} instructions, {} blocks, one after the other: {} cycles of stalls, {} with waits (LDS 30, LDC 40, L2 250)",
            k.target,
            k.name,
            k.instructions,
            k.blocks.len(),
            k.issue_cycles,
            k.cycles
        )?;
        for b in &k.blocks {
            let path = &b.critical_path;
            writeln!(
                out,
                "  {:#06x}: {} instructions, {} cycles of stalls, {} with waits; critical path {} cycles, {} instructions",
                b.offset,
                b.instructions,
                b.issue_cycles,
                b.cycles,
                path.cycles,
                path.offsets.len()
            )?;
            for (offset, text) in path.offsets.iter().zip(&path.texts) {
                writeln!(out, "    /*{offset:04x}*/ {text}")?;
            }
        }
    }
    Ok(())
}
