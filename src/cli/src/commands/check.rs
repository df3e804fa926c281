//! `check`: do the scheduling bits of kernels keep every result from being read too early?

use std::io::Write;

use anyhow::Result;
use cubin::{Code, Image};
use engine::OpenImage;
use isa::{Isa, Target, Word};
use rayon::prelude::*;
use sched::{Finding, Hazard, Model, Report};
use serde::Serialize;

use crate::Finding as Outcome;
use crate::args;
use crate::input::File;
use crate::output;

/// A kernel's verdict.
#[derive(Serialize)]
struct Kernel {
    target: String,
    name: String,
    instructions: usize,
    /// `clean`, `hazards`, or `unknown` if something in it is in no table.
    verdict: &'static str,
    /// Why there is no verdict at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    findings: Vec<Row>,
}

/// One finding.
#[derive(Serialize)]
struct Row {
    hazard: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    dependence: Option<&'static str>,
    offset: u64,
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    earlier_offset: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    earlier_text: Option<String>,
    register: String,
    scoreboards: Vec<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    required_cycles: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    found_cycles: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    /// The same in words.
    message: String,
}

/// Runs the command.
pub fn run(a: &args::Check, out: &mut dyn Write) -> Result<Outcome> {
    let file = File::read(&a.input)?;
    let opened = file.open()?;
    let images = file.images(&opened)?;
    let bar = output::progress("check", file.count(&images), file.bytes().len());
    let mut kernels = Vec::new();
    file.each_image(&images, |OpenImage { image, .. }, codes| {
        let isa = Isa::for_target(image.target())?;
        let model = Model::of(image.target());
        kernels.par_extend(codes.par_iter().map(|code| {
            let kernel = kernel(isa, model, image, code);
            bar.inc(1);
            kernel
        }));
        Ok(())
    })?;
    bar.finish_and_clear();
    if a.json {
        output::json(out, &kernels)?;
    } else {
        write_text(out, &kernels)?;
        if a.explain {
            write_explanations(out, &kernels)?;
        }
    }
    let good = kernels.iter().all(|k| k.verdict == "clean");
    Ok(if good { Outcome::Good } else { Outcome::Difference })
}

fn kernel(isa: &'static Isa, model: &Model, image: &Image<'_>, code: &Code<'_>) -> Kernel {
    let lifted = match ir::lift(isa, &ir::Source::from_code(image.target(), code)) {
        Ok(lifted) => lifted,
        Err(e) => return without_verdict(image.target(), code, e.to_string()),
    };
    let report = sched::check(isa, model, &lifted);
    let words: Vec<Word> = Word::all(code.bytes).collect();
    let text = |offset: u64| {
        let mut text = String::new();
        if let Some(word) = words.get(offset as usize / 16) {
            // A string takes any text.
            let _ = isa.write_text(isa.decode(*word), offset, &mut text, None);
        }
        text
    };
    Kernel {
        target: image.target().to_string(),
        name: code.name.to_owned(),
        instructions: report.instructions,
        verdict: verdict(&report),
        error: None,
        findings: report.findings.iter().map(|f| row(f, &text)).collect(),
    }
}

fn without_verdict(target: Target, code: &Code<'_>, error: String) -> Kernel {
    Kernel {
        target: target.to_string(),
        name: code.name.to_owned(),
        instructions: code.bytes.len() / 16,
        verdict: "unknown",
        error: Some(error),
        findings: Vec::new(),
    }
}

fn verdict(report: &Report) -> &'static str {
    match (report.errors().next(), report.is_clean()) {
        (Some(_), _) => "hazards",
        (None, false) => "unknown",
        (None, true) => "clean",
    }
}

fn row(f: &Finding, text: &dyn Fn(u64) -> String) -> Row {
    Row {
        hazard: f.hazard.name(),
        dependence: f.kind.map(|k| k.name()),
        offset: f.at,
        text: text(f.at),
        earlier_offset: f.earlier,
        earlier_text: f.earlier.map(text),
        register: f.register_name(),
        scoreboards: (0..6).filter(|n| f.scoreboards >> n & 1 == 1).collect(),
        required_cycles: f.required,
        found_cycles: f.found,
        source: f.source.map(|s| s.to_string()),
        message: f.to_string(),
    }
}

fn write_text(out: &mut dyn Write, kernels: &[Kernel]) -> Result<()> {
    for k in kernels {
        writeln!(
            out,
            "check: {} {} - {} instructions: {}",
            k.target, k.name, k.instructions, k.verdict
        )?;
        if let Some(error) = &k.error {
            writeln!(out, "  {error}")?;
        }
        for f in &k.findings {
            writeln!(out, "  {}", f.message)?;
            if let (Some(at), Some(text)) = (f.earlier_offset, &f.earlier_text) {
                writeln!(out, "    /*{at:04x}*/ {text}")?;
            }
            writeln!(out, "    /*{:04x}*/ {}", f.offset, f.text)?;
        }
    }
    let count = |verdict| kernels.iter().filter(|k| k.verdict == verdict).count();
    let instructions: usize = kernels.iter().map(|k| k.instructions).sum();
    writeln!(
        out,
        "total: {} kernels, {instructions} instructions: {} clean, {} with hazards, {} without a verdict",
        kernels.len(),
        count("clean"),
        count("hazards"),
        count("unknown")
    )?;
    Ok(())
}

/// What each kind of finding means.
fn write_explanations(out: &mut dyn Write, kernels: &[Kernel]) -> Result<()> {
    let found = |h: &&Hazard| kernels.iter().flat_map(|k| &k.findings).any(|f| f.hazard == h.name());
    for hazard in Hazard::ALL.iter().filter(found) {
        writeln!(out, "{}: {}", hazard.name(), hazard.explain())?;
    }
    Ok(())
}
