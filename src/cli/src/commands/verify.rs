//! `verify`: whether the kernels of two files do the same, on the emulator.

use std::collections::BTreeMap;
use std::io::Write;

use anyhow::{Result, bail};
use cubin::Image;
use emu::Program;
use emu::verify::{self, Difference, Store};
use engine::OpenImage;
use serde::Serialize;

use crate::Finding;
use crate::args;
use crate::counterparts::Counterparts;
use crate::input::File;
use crate::{output, timing};

#[derive(Serialize)]
struct Report {
    kernel: String,
    target: String,
    outcome: Outcome,
    launches: u32,
    discarded: BTreeMap<String, u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
    before: Coverage,
    after: Coverage,
    #[serde(skip_serializing_if = "Option::is_none")]
    difference: Option<DifferenceReport>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Outcome {
    Same,
    Different,
    NotTried,
}

#[derive(Default, Serialize)]
struct Coverage {
    instructions: usize,
    instructions_executed: usize,
    branches: usize,
    branches_both_ways: usize,
}

#[derive(Serialize)]
struct DifferenceReport {
    grid: [u32; 3],
    block: [u32; 3],
    numbers: Vec<String>,
    differing_bytes: usize,
    at: Option<String>,
    thread: Option<String>,
    before: Option<String>,
    after: Option<String>,
    stopped: Option<String>,
}

/// Runs the command.
pub fn run(a: &args::Verify, out: &mut dyn Write) -> Result<Finding> {
    let before = File::read(&a.before)?;
    let mut after = a.before.clone();
    after.file.clone_from(&a.after);
    let after = File::read(&after)?;
    let (opened, opened_after) = (before.open()?, after.open()?);
    let (images, images_after) = (before.images(&opened)?, after.images(&opened_after)?);
    let options = verify::Options {
        launches: a.launches,
        seed: a.seed,
        ..verify::Options::default()
    };
    let (mut reports, mut identical) = (Vec::new(), 0);
    let mut others = Counterparts::new(&images_after, |code| code.is_entry);
    before.each_image(&images, |OpenImage { image, .. }, codes| {
        for code in image.codes().iter().filter(|c| c.is_entry) {
            // Kernels that nobody asked for have counterparts too.
            let other = others.next(image.target(), code.name);
            if !codes.iter().any(|c| c.section == code.section) {
                continue;
            }
            let Some((other, other_code)) = other else {
                bail!("{}: no kernel `{}` for {}", after.name(), code.name, image.target());
            };
            let same_code = other_code.bytes == code.bytes;
            if same_code && image.bytes() == other.bytes() {
                identical += 1;
                continue;
            }
            let programs = (Program::new(image, code.name), Program::new(other, code.name));
            let (mut program, mut program_after) = match programs {
                (Ok(program), Ok(program_after)) => (program, program_after),
                (Err(e), _) | (_, Err(e)) => {
                    reports.push(refused(code.name, image, e.to_string()));
                    continue;
                }
            };
            if same_code && program.is_same(&program_after) {
                identical += 1;
                continue;
            }
            if a.timing {
                program.set_timing(timing::of(image)?);
                program_after.set_timing(timing::of(other)?);
            }
            reports.push(match verify::verify(&program, &program_after, &options) {
                Ok(found) => report(&program, &program_after, image, found),
                Err(e) => refused(code.name, image, e.to_string()),
            });
        }
        Ok(())
    })?;
    others.all_met(&before, &after)?;
    let same = reports.iter().all(|r| r.outcome == Outcome::Same);
    match a.json {
        true => output::json(out, &reports)?,
        false => {
            for r in &reports {
                write_report(out, r)?;
            }
            if identical > 0 {
                writeln!(
                    out,
                    "verify: {identical} kernels are the same in both files and were not run"
                )?;
            }
        }
    }
    Ok(if same { Finding::Good } else { Finding::Difference })
}

fn report(before: &Program, after: &Program, image: &Image<'_>, found: verify::Report) -> Report {
    let outcome = match (&found.difference, found.compared) {
        (Some(_), _) => Outcome::Different,
        (None, 0) => Outcome::NotTried,
        (None, _) => Outcome::Same,
    };
    Report {
        kernel: before.name.clone(),
        target: image.target().to_string(),
        outcome,
        launches: found.compared,
        discarded: found.discarded,
        refused: None,
        before: coverage(&found.coverage, before),
        after: coverage(&found.coverage_after, after),
        difference: found.difference.as_deref().map(difference),
    }
}

/// A kernel that the emulator cannot run.
fn refused(kernel: &str, image: &Image<'_>, why: String) -> Report {
    Report {
        kernel: kernel.to_owned(),
        target: image.target().to_string(),
        outcome: Outcome::NotTried,
        launches: 0,
        discarded: BTreeMap::new(),
        refused: Some(why),
        before: Coverage::default(),
        after: Coverage::default(),
        difference: None,
    }
}

fn coverage(c: &verify::Coverage, program: &Program) -> Coverage {
    let (instructions_executed, instructions) = c.instructions();
    let (branches_both_ways, branches) = c.branches(program);
    Coverage {
        instructions,
        instructions_executed,
        branches,
        branches_both_ways,
    }
}

fn difference(d: &Difference) -> DifferenceReport {
    let store = |s: &Store| {
        let value: String = s.bytes.iter().rev().map(|b| format!("{b:02x}")).collect();
        format!("{} at {:#06x} `{}` stores 0x{value}", s.place.0, s.place.1, s.text)
    };
    DifferenceReport {
        grid: d.trial.grid,
        block: d.trial.block,
        numbers: d
            .trial
            .numbers
            .iter()
            .map(|(at, _, value)| format!("param[{at:#x}] = {value:#x}"))
            .collect(),
        differing_bytes: d.bytes,
        at: d
            .at
            .as_ref()
            .map(|(buffer, offset)| format!("{buffer} at offset {offset}")),
        thread: d
            .thread
            .map(|(block, warp, lane)| format!("block {block:?}, warp {warp}, lane {lane}")),
        before: d.before.as_ref().map(store),
        after: d.after.as_ref().map(store),
        stopped: d.stop.clone(),
    }
}

fn write_report(out: &mut dyn Write, r: &Report) -> Result<()> {
    if let Some(why) = &r.refused {
        writeln!(out, "verify: {} {}: not tried: {why}", r.target, r.kernel)?;
        return Ok(());
    }
    let words = match r.outcome {
        Outcome::Same => "the same memory".to_owned(),
        Outcome::Different => "DIFFERENT".to_owned(),
        Outcome::NotTried => "not tried: no launch was found on which the first kernel ends".to_owned(),
    };
    writeln!(
        out,
        "verify: {} {}: {} launches, {words}",
        r.target, r.kernel, r.launches
    )?;
    for (name, c) in [("before", &r.before), ("after", &r.after)] {
        writeln!(
            out,
            "  {name}: {} of {} instructions executed, {} of {} branches both ways",
            c.instructions_executed, c.instructions, c.branches_both_ways, c.branches
        )?;
    }
    for (why, n) in &r.discarded {
        writeln!(out, "  {n} launches set aside: {why}")?;
    }
    let Some(d) = &r.difference else { return Ok(()) };
    writeln!(
        out,
        "  on grid {:?}, block {:?}, {}",
        d.grid,
        d.block,
        d.numbers.join(", ")
    )?;
    if let Some(at) = &d.at {
        writeln!(out, "  {} bytes differ, the first in {at}", d.differing_bytes)?;
    }
    if let Some(thread) = &d.thread {
        writeln!(out, "  the first store that differs, in {thread}:")?;
        let none = || "no such store".to_owned();
        writeln!(out, "    before: {}", d.before.clone().unwrap_or_else(none))?;
        writeln!(out, "    after:  {}", d.after.clone().unwrap_or_else(none))?;
    }
    if let Some(stop) = &d.stopped {
        writeln!(out, "  the second kernel stops: {stop}")?;
    }
    Ok(())
}
