//! `schedule`: other scheduling bits for kernels, and another order of their instructions.

use std::io::Write;

use anyhow::{Context, Result};

use crate::Finding;
use crate::args;
use crate::input::File;
use crate::output;

/// Runs the command.
pub fn run(a: &args::Schedule, out: &mut dyn Write) -> Result<Finding> {
    output::keep_apart(Some(&a.result.output), [&*a.input.file])?;
    let file = File::read(&a.input)?;
    let opened = file.open()?;
    let images = file.images(&opened)?;
    let bar = output::progress("schedule", file.count(&images), file.bytes().len());
    let done = engine::reschedule(&opened, &images, a.keep_order, &|name| file.wants(name), &|| bar.inc(1));
    bar.finish_and_clear();
    let done = done.with_context(|| file.name())?;
    a.result.write(&done.bytes, &a.input.file, file.bytes())?;
    let left_alone = done.kernels.iter().filter(|k| k.left_alone.is_some()).count();
    if a.result.json {
        output::json(out, &done.kernels)?;
    } else {
        for kernel in &done.kernels {
            writeln!(out, "{kernel}")?;
        }
        let moved: usize = done.kernels.iter().map(|k| k.moved).sum();
        writeln!(
            out,
            "total: {} kernels, {left_alone} left alone, {moved} instructions moved",
            done.kernels.len()
        )?;
    }
    Ok(if left_alone == 0 {
        Finding::Good
    } else {
        Finding::Difference
    })
}
