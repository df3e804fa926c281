//! `lift`: kernels as MLIR text.

use std::io::Write;

use anyhow::{Context, Result, anyhow};
use engine::{OpenImage, Representation};
use isa::Isa;
use rayon::prelude::*;
use serde::Serialize;

use crate::Finding;
use crate::args;
use crate::input::File;
use crate::output;

#[derive(Serialize)]
struct Lifted {
    image: String,
    target: String,
    name: String,
    instructions: usize,
    notes: Vec<String>,
}

/// Runs the command.
pub fn run(representation: &dyn Representation, a: &args::Lift, out: &mut dyn Write) -> Result<Finding> {
    let file = File::read(&a.input)?;
    output::keep_apart(a.output.as_deref(), [&*a.input.file])?;
    let (mut kernels, mut report) = (Vec::new(), Vec::new());
    let opened = file.open()?;
    let images = file.images(&opened)?;
    let bar = output::progress("lift", file.count(&images), file.bytes().len());
    file.each_image(&images, |&OpenImage { path, ref image, .. }, codes| {
        if codes.is_empty() {
            return Ok(());
        }
        let isa = Isa::for_target(image.target())?;
        let lifted: Result<Vec<_>> = codes
            .par_iter()
            .map(|code| {
                let kernel = ir::lift(isa, &ir::Source::from_code(image.target(), code));
                bar.inc(1);
                kernel.map_err(|e| anyhow!(e)).with_context(|| code.name.to_owned())
            })
            .collect();
        for (code, kernel) in codes.iter().zip(lifted?) {
            report.push(Lifted {
                image: path.to_owned(),
                target: image.target().to_string(),
                name: code.name.to_owned(),
                instructions: code.bytes.len() / 16,
                notes: kernel.notes.clone(),
            });
            kernels.push(kernel);
        }
        Ok(())
    })?;
    bar.finish_and_clear();
    let text = representation.print(&kernels).map_err(anyhow::Error::msg)?;
    let Some(path) = &a.output else {
        out.write_all(text.as_bytes())?;
        return Ok(Finding::Good);
    };
    output::write_atomically(path, text.as_bytes(), None)?;
    if a.json {
        output::json(out, &report)?;
        return Ok(Finding::Good);
    }
    for k in &report {
        writeln!(out, "lift: {} {} - {} instructions", k.target, k.name, k.instructions)?;
        for note in &k.notes {
            writeln!(out, "  note: {note}")?;
        }
    }
    Ok(Finding::Good)
}
