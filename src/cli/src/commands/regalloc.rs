//! `regalloc`: other registers for the values of kernels, with the proof that they compute the same.

use std::io::Write;

use anyhow::{Context, Result};
use engine::regalloc::How;

use crate::Finding;
use crate::args;
use crate::input::File;
use crate::output;

/// Runs the command.
pub fn run(a: &args::Regalloc, out: &mut dyn Write) -> Result<Finding> {
    output::keep_apart(a.output.as_deref(), [&*a.input.file])?;
    let how = match (a.pinned, a.scramble, a.fresh) {
        (true, ..) => How::Pinned,
        (_, Some(seed), true) => How::ScrambledThenFresh(seed),
        (_, Some(seed), false) => How::Scrambled(seed),
        (_, None, _) => How::Fresh,
    };
    let file = File::read(&a.input)?;
    let opened = file.open()?;
    let images = file.images(&opened)?;
    let bar = output::progress("regalloc", file.count(&images), file.bytes().len());
    let done = engine::regalloc(&opened, &images, how, &|name| file.wants(name), &|| bar.inc(1));
    bar.finish_and_clear();
    let done = done.with_context(|| file.name())?;
    if let Some(output) = &a.output {
        output::write_rewritten(output, &done.bytes, &a.input.file, file.bytes(), a.strip_mercury)?;
    }
    let left_alone = done.kernels.iter().filter(|k| k.left_alone.is_some()).count();
    let same_file = !a.pinned || done.bytes == file.bytes();
    if a.json {
        output::json(out, &done.kernels)?;
    } else {
        for kernel in &done.kernels {
            writeln!(out, "{kernel}")?;
        }
        let fit = done.kernels.iter().filter(|k| k.fits()).count();
        let what = match (a.pinned, same_file) {
            (true, true) => "file identical".to_owned(),
            (true, false) => "file differs".to_owned(),
            (false, _) => format!("{fit} with no more registers than before"),
        };
        writeln!(
            out,
            "total: {} kernels, {left_alone} left alone, {what}",
            done.kernels.len()
        )?;
    }
    let good = left_alone == 0 && same_file;
    Ok(if good { Finding::Good } else { Finding::Difference })
}
