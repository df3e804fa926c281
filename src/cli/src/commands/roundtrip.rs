//! `roundtrip`: the proof that reading a file into SSA and writing it back changes nothing.

use std::io::Write;

use anyhow::{Context, Result};
use engine::Representation;

use crate::Finding;
use crate::args;
use crate::input::File;
use crate::output;

/// Runs the command.
pub fn run(representation: &dyn Representation, a: &args::Roundtrip, out: &mut dyn Write) -> Result<Finding> {
    let file = File::read(&a.input)?;
    let opened = file.open()?;
    let images = file.images(&opened)?;
    let bar = output::progress("roundtrip", file.count(&images), file.bytes().len());
    let report = engine::roundtrip_in(representation, &opened, &images, &|name| file.wants(name), &|| {
        bar.inc(1)
    });
    bar.finish_and_clear();
    let report = report.with_context(|| file.name())?;
    let finding = if report.holds() {
        Finding::Good
    } else {
        Finding::Difference
    };
    if a.json {
        output::json(out, &report)?;
        return Ok(finding);
    }
    for k in &report.kernels {
        writeln!(out, "{k}")?;
        if k.opaque > 0 {
            writeln!(
                out,
                "  {} of them are in no table and were carried through as words",
                k.opaque
            )?;
        }
        for offset in &k.mismatches {
            writeln!(out, "  differs at {offset:#06x}")?;
        }
        if let Some(why) = &k.error {
            writeln!(out, "  {why}")?;
        }
    }
    if report.kernels.len() > 1 {
        let (same, all) = report
            .kernels
            .iter()
            .fold((0, 0), |(s, a), k| (s + k.identical, a + k.instructions));
        let file = if report.file_identical {
            "file identical"
        } else {
            "file differs"
        };
        writeln!(
            out,
            "total: {} kernels, {same}/{all} instructions byte-identical, {file}",
            report.kernels.len()
        )?;
    } else if !report.file_identical {
        writeln!(out, "total: file differs")?;
    }
    Ok(finding)
}
