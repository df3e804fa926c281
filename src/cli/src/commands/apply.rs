//! `apply`: the passes of a configuration, from a file into a new file.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use engine::config::Draft;
use engine::report::{ImageReport, KernelReport};
use engine::{Config, KernelText, Outcome, Which};

use crate::Finding;
use crate::args;
use crate::output;
use crate::plugins::Plugins;
use crate::representation::{self, Ir};
use crate::rewritten;

/// Runs the command.
pub fn run(ir: Option<Ir>, a: &args::Apply, out: &mut dyn Write) -> Result<Finding> {
    let representation = representation::choose_with(ir, &a.pipeline)?;
    let (name, config_name) = (a.file.display().to_string(), a.config.display().to_string());
    let config_text = output::read_text(&a.config)?;
    let draft = Draft::read(&config_text, &config_name)?;
    let plugins = Plugins::load(ir, &a.plugins)?;
    let mut registry = plugins.registry()?;
    let natives = plugins.native_passes(&registry, &draft);
    for pass in &natives {
        registry.add(&**pass)?;
    }
    let config = draft.config(&registry)?;
    let bytes = output::read_container(&a.file)?;
    let inputs = [&*a.file, &*a.config].into_iter().chain(plugins.files());
    output::keep_apart(a.output.as_deref(), inputs)?;
    let mut options = engine::Options {
        images: Which {
            arch: a.arch,
            number: a.image,
        },
        report_only: a.report_only,
        keep_text: a.keep_mlir.is_some(),
        vetoes: BTreeMap::new(),
    };
    let apply = |options: &engine::Options| {
        engine::apply_in(&*representation, &bytes, &config, options).with_context(|| name.clone())
    };
    let mut outcome = apply(&options)?;
    if let Some(new) = outcome.bytes.as_deref().filter(|_| a.verify) {
        let launches = emu::verify::Options::default();
        let tried = rewritten::try_rewritten(&bytes, new, options.images, &outcome.report, &launches)?;
        if !tried.different.is_empty() {
            options.vetoes.clone_from(&tried.different);
            outcome = apply(&options)?;
        }
        tried.note(&mut outcome.report);
    }
    if let Some(dir) = &a.keep_mlir {
        keep_texts(dir, &outcome.texts)?;
    }
    if let Some(path) = &a.output {
        let new = outcome.bytes.as_deref().unwrap_or(&bytes);
        output::write_rewritten(path, new, &a.file, &bytes, a.strip_mercury)?;
    }
    let failed = not_done(&outcome);
    for line in &failed {
        eprintln!("sass2mlir: {name}: {line}");
    }
    if a.json {
        output::json(out, &outcome.report)?;
    } else {
        write_report(out, &name, &config, &outcome)?;
    }
    Ok(if a.strict && !failed.is_empty() {
        Finding::Difference
    } else {
        Finding::Good
    })
}

/// Kernels that stay as they were although passes were to rewrite them, and passes that refuse a kernel, which others may have rewritten.
fn not_done(outcome: &Outcome) -> Vec<String> {
    let mut lines = Vec::new();
    for image in &outcome.report.images {
        let place = if image.path.is_empty() {
            String::new()
        } else {
            format!("{}: ", image.path)
        };
        for k in &image.kernels {
            if let Some(why) = &k.left_alone {
                lines.push(format!("{place}{}: left byte-identical: {why}", k.name));
                continue;
            }
            let refused = k.passes.iter().filter_map(|p| p.refused.as_ref().zip(Some(&p.name)));
            lines.extend(refused.map(|(why, pass)| format!("{place}{}: {pass}: refused - {why}", k.name)));
        }
    }
    lines
}

fn write_report(out: &mut dyn Write, name: &str, config: &Config<'_>, outcome: &Outcome) -> Result<()> {
    let report = &outcome.report;
    for note in &report.passed_over {
        eprintln!("sass2mlir: {name}: note: {note}");
    }
    for image in &report.images {
        if let Some(why) = &image.left_alone {
            writeln!(out, "{}: left byte-identical: {why}", image.path)?;
        }
        image.kernels.iter().try_for_each(|k| write_kernel(out, k))?;
        write_patch(out, image)?;
    }
    if report.images.iter().all(|i| i.kernels.is_empty()) {
        writeln!(
            out,
            "apply: no kernel of {name} is named by the configuration - no bytes changed"
        )?;
        return Ok(());
    }
    for entry in &config.entries {
        if let Some(caution) = entry.pass.caution() {
            writeln!(out, "caution: {} [{}]: {caution}", entry.pass.name(), entry.mode)?;
        }
    }
    Ok(())
}

fn write_kernel(out: &mut dyn Write, k: &KernelReport) -> Result<()> {
    writeln!(out, "{}", k.lift_line())?;
    for p in &k.passes {
        writeln!(out, "{p}")?;
        for s in &p.skipped {
            writeln!(out, "  {:#06x} stays: {}", s.offset, s.reason)?;
        }
        for note in &p.notes {
            writeln!(out, "  note: {note}")?;
        }
    }
    if k.rescheduled > 0 {
        writeln!(
            out,
            "schedule: {} changed, as the edits need",
            passes::count(k.rescheduled, "control word")
        )?;
    }
    if let Some(count) = k.registers {
        let maximum = k
            .raised_maximum
            .map(|old| format!(", also as EIATTR_MAXREG_COUNT, which said {old}"));
        writeln!(
            out,
            "registers: {count}, as the edits need{}",
            maximum.unwrap_or_default()
        )?;
    }
    if let Some(costs) = &k.costs {
        writeln!(out, "{costs}")?;
    }
    if let Some(verified) = &k.verified {
        writeln!(out, "{verified}")?;
    }
    if let Some(why) = &k.left_alone {
        writeln!(out, "left byte-identical: {why}")?;
    }
    Ok(())
}

fn write_patch(out: &mut dyn Write, image: &ImageReport) -> Result<()> {
    if image.kernels.is_empty() {
        return Ok(());
    }
    match &image.patch {
        Some(patch) => writeln!(out, "{patch}")?,
        None => writeln!(out, "patch: no bytes changed")?,
    }
    Ok(())
}

/// `NAME.before.mlir` and `NAME.after.mlir` of each kernel. The image is part of the name where there are several.
fn keep_texts(dir: &Path, texts: &[KernelText]) -> Result<()> {
    fs::create_dir_all(dir).with_context(|| format!("{}: cannot make the folder", dir.display()))?;
    for t in texts {
        let stem = match t.image.is_empty() {
            true => output::file_stem(&t.name),
            false => output::file_stem(&format!("{}.{}", t.image.replace(' ', "-"), t.name)),
        };
        output::write_atomically(&dir.join(format!("{stem}.before.mlir")), t.before.as_bytes(), None)?;
        if let Some(after) = &t.after {
            output::write_atomically(&dir.join(format!("{stem}.after.mlir")), after.as_bytes(), None)?;
        }
    }
    Ok(())
}
