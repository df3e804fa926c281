//! `lower`: MLIR text back into a file.

use std::collections::HashMap;
use std::io::Write;

use anyhow::{Context, Result, anyhow, bail};
use cubin::Code;
use engine::{Images, Lowered, OpenImage, Representation, Which};
use serde::Serialize;

use crate::Finding;
use crate::args;
use crate::output;

#[derive(Serialize)]
struct Report {
    image: String,
    target: String,
    name: String,
    instructions: usize,
    changed: usize,
    /// Groups of values that are in other registers than the text says.
    moved: usize,
    /// The register count, where the new code needs more than the file gave.
    #[serde(skip_serializing_if = "Option::is_none")]
    registers: Option<u32>,
    /// What the hazard checker finds and did not find in the old code.
    #[serde(skip_serializing_if = "Option::is_none")]
    hazard: Option<String>,
}

/// A file may hold a kernel several times for one target; which one is meant the text does not say.
fn one_image_each(kernels: &[ir::Kernel], images: &Images<'_>) -> Result<(), String> {
    for kernel in kernels {
        let holds = |open: &&OpenImage<'_>| {
            open.image.target() == kernel.target && open.image.codes().iter().any(|code| code.name == kernel.name)
        };
        let numbers: Vec<usize> = images.list.iter().filter(holds).map(OpenImage::number).collect();
        if numbers.len() > 1 {
            return Err(output::several_images(&kernel.name, kernel.target, &numbers));
        }
    }
    Ok(())
}

/// Runs the command.
pub fn run(representation: &dyn Representation, a: &args::Lower, out: &mut dyn Write) -> Result<Finding> {
    output::keep_apart(Some(&a.result.output), [&*a.into, &*a.text])?;
    let text_name = a.text.display().to_string();
    let kernels = representation
        .parse(&output::read(&a.text)?)
        .map_err(|e| anyhow!("{text_name}:{e}"))?;
    let into = a.into.display().to_string();
    let bytes = output::read_container(&a.into)?;
    let opened = engine::Opened::new(&bytes).with_context(|| into.clone())?;
    let which = Which {
        arch: None,
        number: a.image,
    };
    let images = opened.images(which).with_context(|| into.clone())?;
    one_image_each(&kernels, &images).map_err(|why| anyhow!("{into}: {why}"))?;
    // The text of a file without code is one without kernels, and gives that file back.
    if kernels.is_empty() && images.list.iter().any(|open| !open.image.codes().is_empty()) {
        bail!("{text_name}: holds no kernel, so there is nothing to lower; `sass2mlir lift` writes such a text");
    }

    // A text names kernels and targets; the file may hold a kernel of one name for several targets.
    let mut waiting: HashMap<(String, isa::Target), &ir::Kernel> = HashMap::new();
    for k in &kernels {
        if waiting.insert((k.name.clone(), k.target), k).is_some() {
            bail!(
                "{text_name}: kernel {} for {} is there twice; lift one image of the file with --image",
                k.name,
                k.target
            );
        }
    }
    let (mut replaced, mut report) = (Vec::new(), Vec::new());
    for open in &images.list {
        let (image, target) = (&open.image, open.image.target());
        let mut all = Vec::new();
        for code in image.codes() {
            let Some(kernel) = waiting.remove(&(code.name.to_owned(), target)) else {
                continue;
            };
            let lowered =
                engine::lower(image, code, kernel).map_err(|why| anyhow!("{text_name}: {}: {why}", code.name))?;
            all.push((code, lowered));
        }
        if all.is_empty() {
            continue;
        }
        let put: Vec<(&Code<'_>, &Lowered)> = all.iter().map(|(code, lowered)| (*code, lowered)).collect();
        let (bytes, registers) =
            engine::put_lowered(image, &put).map_err(|why| anyhow!("{text_name} into {into}: {why}"))?;
        replaced.push((open.index, bytes));
        for ((code, lowered), registers) in all.into_iter().zip(registers) {
            report.push(Report {
                image: open.path.to_owned(),
                target: target.to_string(),
                name: code.name.to_owned(),
                instructions: lowered.code.len() / 16,
                changed: lowered.changed,
                moved: lowered.moved,
                registers,
                hazard: lowered.hazard,
            });
        }
    }
    if let Some(((name, target), _)) = waiting.into_iter().min_by_key(|((n, t), _)| (n.clone(), *t)) {
        bail!(
            "{into}: has no kernel {name} for {target}, which {text_name} replaces; `sass2mlir info {into}` lists them"
        );
    }
    a.result.write(&opened.rebuild(&replaced)?, &a.into, opened.bytes())?;
    if a.result.json {
        output::json(out, &report)?;
        return Ok(Finding::Good);
    }
    for k in &report {
        if let Some(hazard) = &k.hazard {
            eprintln!(
                "sass2mlir: {text_name}: {}: warning: a hazard that the old code does not have: {hazard}",
                k.name
            );
        }
    }
    for k in &report {
        let changed = match k.changed {
            0 => "no bytes changed".to_owned(),
            n => format!("{n} changed"),
        };
        let moved = match k.moved {
            0 => String::new(),
            n => format!(", {n} groups of values in other registers"),
        };
        writeln!(
            out,
            "lower: {} {} - {} instructions, {changed}{moved}{}",
            k.target,
            k.name,
            k.instructions,
            output::registers(k.registers)
        )?;
    }
    Ok(Finding::Good)
}
