//! `disasm`: instructions as nvdisasm writes them.

use std::collections::BTreeMap;
use std::io::Write;

use anyhow::{Result, bail};
use cubin::{Code, Image};
use isa::asm::Assembler;
use isa::{Control, FormId, Isa, Word};
use serde::Serialize;

use crate::Finding;
use crate::args;
use crate::input::File;
use crate::output;
use crate::relocated::{self, Relocated};

const WORD: usize = Word::BYTES;

#[derive(Serialize)]
struct Listing {
    image: String,
    target: String,
    name: String,
    instructions: Vec<Line>,
}

#[derive(Serialize)]
struct Line {
    offset: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    word: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    control: Option<String>,
    /// What neither text nor control say, as `sass2mlir asm` takes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    notes: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    opaque: bool,
}

/// Runs the command.
pub fn run(a: &args::Disasm, out: &mut dyn Write) -> Result<Finding> {
    if a.input.file.extension().is_some_and(|e| e == "code") {
        return raw(a, out);
    }
    let file = File::read(&a.input)?;
    let mut listings = Vec::new();
    let opened = file.open()?;
    let images = file.images(&opened)?;
    file.each_image(&images, |path, image, codes| {
        if codes.is_empty() {
            return Ok(());
        }
        let isa = Isa::for_target(image.target())?;
        let mut lister = Lister::new(isa, a);
        for code in codes {
            let labels = labels(isa, image, code);
            let relocated = Relocated::new(image, code, &labels);
            listings.push(Listing {
                image: path.to_owned(),
                target: image.target().to_string(),
                name: code.name.to_owned(),
                instructions: lister.list(code.bytes, &labels, Some(&relocated)),
            });
            if !a.json {
                listings.drain(..).try_for_each(|l| write(a, out, &l))?;
            }
        }
        Ok(())
    })?;
    if a.json {
        output::json(out, &listings)?;
    }
    Ok(Finding::Good)
}

/// A file that is nothing but code.
fn raw(a: &args::Disasm, out: &mut dyn Write) -> Result<Finding> {
    let name = a.input.file.display();
    let Some(target) = a.input.arch else {
        bail!("{name}: raw code does not say for which target it is; give one with --arch");
    };
    let bytes = output::read(&a.input.file)?;
    if bytes.len() % WORD != 0 {
        bail!(
            "{name}: {} bytes are no multiple of an instruction's {WORD}",
            bytes.len()
        );
    }
    let isa = Isa::for_target(target)?;
    let mut labels = BTreeMap::new();
    add_targets(isa, &bytes, &mut labels);
    number(&mut labels);
    let listing = Listing {
        image: String::new(),
        target: target.to_string(),
        name: a
            .input
            .file
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned(),
        instructions: Lister::new(isa, a).list(&bytes, &labels, None),
    };
    match a.json {
        true => output::json(out, &[listing])?,
        false => write(a, out, &listing)?,
    }
    Ok(Finding::Good)
}

fn write(a: &args::Disasm, out: &mut dyn Write, listing: &Listing) -> Result<()> {
    match a.asm {
        true => write_source(out, listing),
        false => write_listing(out, listing),
    }
}

/// Turns code into lines.
struct Lister<'a> {
    isa: &'a Isa,
    args: &'a args::Disasm,
    /// Where scheduling and notes are asked for.
    assembler: Option<Assembler<'a>>,
}

impl<'a> Lister<'a> {
    fn new(isa: &'a Isa, args: &'a args::Disasm) -> Self {
        let shows_all = args.control || args.json || args.asm;
        Self {
            isa,
            args,
            assembler: shows_all.then(|| Assembler::new(isa)),
        }
    }

    fn list(&mut self, code: &[u8], labels: &BTreeMap<u64, String>, relocated: Option<&Relocated>) -> Vec<Line> {
        let name_of = |offset: u64| labels.get(&offset).map(String::as_str);
        let words = Word::all(code).enumerate();
        words
            .map(|(n, word)| self.line((n * WORD) as u64, word, &name_of, relocated))
            .collect()
    }

    fn line(&mut self, offset: u64, word: Word, labels: isa::Labels<'_>, relocated: Option<&Relocated>) -> Line {
        let (isa, a) = (self.isa, self.args);
        let inst = isa.decode(word);
        let notes = self.assembler.as_mut().map(|asm| asm.notes_for(inst, offset));
        let symbolic = relocated
            .filter(|_| !a.asm)
            .and_then(|r| r.text(isa, inst, offset, labels));
        let text = match (symbolic, &notes) {
            (Some(text), _) => text,
            // No text gives this word back.
            (None, Some(None)) if a.asm => format!(".opaque 0x{word:032x}"),
            (None, _) => {
                let mut text = String::new();
                isa.write_text(inst, offset, &mut text, Some(labels))
                    .expect("writing to a string cannot fail");
                text
            }
        };
        Line {
            offset,
            label: labels(offset).map(str::to_owned),
            text,
            word: (a.hex || a.json).then(|| format!("0x{word:032x}")),
            control: self.assembler.is_some().then(|| Control::of(word).to_string()),
            notes: notes.flatten().filter(|n| !n.0.is_empty()).map(|n| n.to_string()),
            opaque: inst.form == FormId::OPAQUE,
        }
    }
}

/// Names of places: the file's own symbols, then `.L_x_N` for every other target of a branch, in address order.
fn labels(isa: &Isa, image: &Image<'_>, code: &Code<'_>) -> BTreeMap<u64, String> {
    let mut names = BTreeMap::new();
    add_targets(isa, code.bytes, &mut names);
    for b in &code.indirect_branches {
        names.extend(b.targets.iter().map(|&t| (u64::from(t), String::new())));
    }
    names.extend(relocated::targets(image, code).map(|t| (t, String::new())));
    for label in &code.labels {
        names.insert(label.offset, label.name.to_owned());
    }
    for f in &code.functions {
        names.insert(f.offset, f.name.to_owned());
    }
    number(&mut names);
    names
}

/// Adds the targets of branches, without names.
fn add_targets(isa: &Isa, code: &[u8], names: &mut BTreeMap<u64, String>) {
    for (n, word) in Word::all(code).enumerate() {
        if let Some(to) = isa.branch_target(isa.decode(word), (n * WORD) as u64) {
            names.insert(to, String::new());
        }
    }
}

fn number(names: &mut BTreeMap<u64, String>) {
    for (n, name) in names.values_mut().filter(|n| n.is_empty()).enumerate() {
        *name = format!(".L_x_{n}");
    }
}

fn write_listing(out: &mut dyn Write, listing: &Listing) -> Result<()> {
    let place = if listing.image.is_empty() {
        String::new()
    } else {
        format!(" // {}", listing.image)
    };
    writeln!(out, "\n.text.{}: // {}{place}", listing.name, listing.target)?;
    for line in &listing.instructions {
        if let Some(label) = &line.label {
            writeln!(out, "{label}:")?;
        }
        // The guard stands in the blank space before the mnemonic's column.
        let (guard, rest) = match line.text.starts_with('@') {
            true => line.text.split_once(' ').unwrap_or((&line.text, "")),
            false => ("", line.text.as_str()),
        };
        let mut text = format!("        /*{:04x}*/ {guard:>17} {rest} ;", line.offset);
        if let Some(control) = &line.control {
            let notes = line.notes.as_ref().map_or_else(String::new, |n| format!(" <{n}>"));
            text = format!("{text:<100} /* {control}{notes} */");
        }
        if let Some(word) = &line.word {
            text = format!("{text:<100} /* {word} */");
        }
        writeln!(out, "{text}")?;
    }
    Ok(())
}

/// What the assembler takes.
fn write_source(out: &mut dyn Write, listing: &Listing) -> Result<()> {
    writeln!(out, "\n.target {}\n.text.{}:", listing.target, listing.name)?;
    for line in &listing.instructions {
        if let Some(label) = &line.label {
            writeln!(out, "{label}:")?;
        }
        let control = line.control.as_deref().unwrap_or_default();
        let notes = line.notes.as_ref().map_or_else(String::new, |n| format!(" <{n}>"));
        writeln!(out, "  [{control}] /*{:04x}*/ {}{notes} ;", line.offset, line.text)?;
    }
    Ok(())
}
