//! `asm`: nvdisasm-style text to machine code.

use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use cubin::Patch;
use engine::{OpenImage, Which};
use isa::asm::{Assembler, LineError, Section};
use isa::{Isa, Target, Word};
use serde::Serialize;

use crate::Finding;
use crate::args;
use crate::output;

#[derive(Default, Serialize)]
struct Report {
    target: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    kernels: Vec<Assembled>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<Refused>,
}

#[derive(Serialize)]
struct Assembled {
    name: String,
    words: Vec<String>,
    /// Instructions that differ from the file that they were put into.
    #[serde(skip_serializing_if = "Option::is_none")]
    changed: Option<usize>,
    /// The register count, where the new code needs more than the file gave.
    #[serde(skip_serializing_if = "Option::is_none")]
    registers: Option<u32>,
}

/// What became of the code that a section replaces.
#[derive(Clone, Copy, Default)]
struct Replaced {
    /// Instructions that differ.
    changed: usize,
    /// The register count, where it rose.
    registers: Option<u32>,
}

#[derive(Serialize)]
struct Refused {
    line: usize,
    message: String,
}

/// Runs the command.
pub fn run(a: &args::Asm, out: &mut dyn Write) -> Result<Finding> {
    let name = a.text.display().to_string();
    let text = output::read_text(&a.text)?;
    let inputs = [Some(a.text.as_path()), a.into.as_deref()];
    output::keep_apart(a.output.as_deref(), inputs.into_iter().flatten())?;
    let target = target(a, &text)?;
    let mut assembler = Assembler::new(Isa::for_target(target)?);
    let sections = match assembler.listing(&text, a.schedule) {
        Ok(sections) => sections,
        Err(errors) => return refuse(a, target, &name, &errors, out),
    };
    if sections.is_empty() {
        bail!("{name}: no instruction in it");
    }
    match (&a.into, &a.output) {
        (Some(into), Some(output)) => put_into(a, into, output, target, &sections, out),
        (None, Some(output)) => {
            let [section] = &sections[..] else {
                bail!(
                    "{name}: has {} sections, and a raw code file holds one; give --into",
                    sections.len()
                );
            };
            output::write_atomically(output, &bytes(&section.words), None)?;
            report(a, target, &sections, None, out)
        }
        _ => report(a, target, &sections, None, out),
    }
}

fn bytes(words: &[Word]) -> Vec<u8> {
    words.iter().flat_map(|w| w.to_le_bytes()).collect()
}

/// From `--arch`, or `.target` in the text, or the file that the code goes into.
fn target(a: &args::Asm, text: &str) -> Result<Target> {
    let name = a.text.display();
    let mut named: Option<Target> = None;
    for (n, line) in text.lines().enumerate() {
        let Some(directive) = line.trim().strip_prefix(".target") else {
            continue;
        };
        let here = directive.trim().parse().with_context(|| format!("{name}:{}", n + 1))?;
        if named.is_some_and(|before| before != here) {
            bail!(
                "{name}:{}: code for {here}, and there is code for another target before; a listing holds one (`disasm --arch {here}`)",
                n + 1
            );
        }
        named = Some(here);
    }
    match (a.arch, named) {
        (Some(arch), Some(named)) if named != arch => bail!("{name}: is for {named}, not for --arch {arch}"),
        (Some(target), _) | (None, Some(target)) => return Ok(target),
        (None, None) => {}
    }
    let Some(into) = &a.into else {
        bail!("{}: names no `.target`; give one with --arch", a.text.display());
    };
    let name = into.display().to_string();
    let bytes = output::read_container(into)?;
    let opened = engine::Opened::new(&bytes).with_context(|| name.clone())?;
    let which = Which {
        arch: None,
        number: a.image,
    };
    let images = opened.images(which).with_context(|| name.clone())?;
    let mut targets: Vec<Target> = images.list.iter().map(|i| i.image.target()).collect();
    targets.dedup();
    match targets[..] {
        [target] => Ok(target),
        _ => Err(anyhow!("{name}: holds code for several targets; say which with --arch")),
    }
}

fn refuse(a: &args::Asm, target: Target, name: &str, errors: &[LineError], out: &mut dyn Write) -> Result<Finding> {
    const SHOWN: usize = 20;
    if a.json {
        let errors = errors.iter().map(|e| Refused {
            line: e.line,
            message: format!("{}{}", e.text, e.error),
        });
        let report = Report {
            target: target.to_string(),
            errors: errors.collect(),
            ..Report::default()
        };
        output::json(out, &report)?;
    }
    let mut lines: Vec<String> = errors.iter().take(SHOWN).map(|e| format!("{name}:{e}")).collect();
    if errors.len() > SHOWN {
        lines.push(format!("{name}: and {} more lines", errors.len() - SHOWN));
    }
    bail!("{}", lines.join("\n"));
}

/// Replaces the code of the kernels that the text names.
fn put_into(
    a: &args::Asm,
    into: &Path,
    output: &Path,
    target: Target,
    sections: &[Section],
    out: &mut dyn Write,
) -> Result<Finding> {
    let name = into.display().to_string();
    let file = output::read_container(into)?;
    let opened = engine::Opened::new(&file).with_context(|| name.clone())?;
    let which = Which {
        arch: Some(target),
        number: a.image,
    };
    let images = opened.images(which).with_context(|| name.clone())?;
    for section in sections {
        let holds = |open: &&OpenImage<'_>| open.image.codes().iter().any(|code| code.name == section.name);
        let numbers: Vec<usize> = images.list.iter().filter(holds).map(OpenImage::number).collect();
        if numbers.len() > 1 {
            bail!("{name}: {}", output::several_images(&section.name, target, &numbers));
        }
    }
    let mut done: Vec<Option<Replaced>> = vec![None; sections.len()];
    let mut replaced = Vec::new();
    for open in &images.list {
        let mut patch = Patch::new(&open.image);
        for code in open.image.codes() {
            let Some(n) = sections.iter().position(|s| s.name == code.name) else {
                continue;
            };
            let new = bytes(&sections[n].words);
            let registers = engine::replace_code(Isa::for_target(target)?, &mut patch, code, &new)
                .map_err(|why| anyhow!("{}: {} into {name}: {why}", a.text.display(), code.name))?;
            let differ = new
                .chunks(Word::BYTES)
                .zip(code.bytes.chunks(Word::BYTES))
                .filter(|(a, b)| a != b);
            let done = done[n].get_or_insert_default();
            done.changed += differ.count();
            done.registers = registers.or(done.registers);
        }
        replaced.push((open.index, patch.finish()));
    }
    if let Some(n) = done.iter().position(Option::is_none) {
        bail!(
            "{name}: has no code `{}` for {target}, which {} replaces; `sass2mlir info {name}` lists the kernels",
            sections[n].name,
            a.text.display()
        );
    }
    output::write_rewritten(output, &opened.rebuild(&replaced)?, into, &file, a.strip_mercury)?;
    report(a, target, sections, Some(&done), out)
}

fn report(
    a: &args::Asm,
    target: Target,
    sections: &[Section],
    replaced: Option<&[Option<Replaced>]>,
    out: &mut dyn Write,
) -> Result<Finding> {
    let replaced = |n: usize| replaced.and_then(|r| r[n]);
    if a.json {
        let kernels = sections.iter().enumerate().map(|(n, s)| Assembled {
            name: s.name.clone(),
            words: s.words.iter().map(|w| format!("0x{w:032x}")).collect(),
            changed: replaced(n).map(|r| r.changed),
            registers: replaced(n).and_then(|r| r.registers),
        });
        let report = Report {
            target: target.to_string(),
            kernels: kernels.collect(),
            ..Report::default()
        };
        output::json(out, &report)?;
        return Ok(Finding::Good);
    }
    for (n, section) in sections.iter().enumerate() {
        let count = section.words.len();
        match replaced(n) {
            Some(Replaced { changed: 0, .. }) => writeln!(
                out,
                "asm: {target} {} - {count} instructions, no bytes changed",
                section.name
            )?,
            Some(Replaced { changed, registers }) => writeln!(
                out,
                "asm: {target} {} - {count} instructions, {changed} changed{}",
                section.name,
                output::registers(registers)
            )?,
            None if a.output.is_some() => writeln!(out, "asm: {target} {} - {count} instructions", section.name)?,
            None => {
                if !section.name.is_empty() {
                    writeln!(out, ".text.{}:", section.name)?;
                }
                for (n, word) in section.words.iter().enumerate() {
                    writeln!(out, "/*{:04x}*/ 0x{word:032x}", n * Word::BYTES)?;
                }
            }
        }
    }
    Ok(Finding::Good)
}
