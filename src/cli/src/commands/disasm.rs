//! `disasm`: instructions as nvdisasm writes them.

use std::io::Write;

use anyhow::{Result, bail};
use cubin::{Code, Image};
use engine::OpenImage;
use isa::asm::Assembler;
use isa::{Control, FormId, Isa, Word};
use serde::Serialize;

use crate::Finding;
use crate::args;
use crate::input::File;
use crate::labels::{Labels, Names};
use crate::listing;
use crate::output;
use crate::relocated::Relocated;

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
    /// What `.nv.info` says of the instruction.
    #[serde(skip_serializing_if = "Option::is_none")]
    remark: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    opaque: bool,
    /// Bits 109:105.
    #[serde(skip)]
    issue: u64,
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
    file.each_image(&images, |&OpenImage { path, ref image, .. }, codes| {
        if codes.is_empty() {
            return Ok(());
        }
        let isa = Isa::for_target(image.target())?;
        let mut lister = Lister::new(isa, a);
        let labels = Labels::new(isa, image);
        if !a.json && !a.asm {
            if !path.is_empty() {
                writeln!(out, "// {path}: {}", image.target())?;
            }
            listing::write_file_head(out, image)?;
        }
        let mut found = Vec::with_capacity(codes.len());
        for &code in codes {
            let names = labels.of(code);
            let relocated = Relocated::new(image, code, names);
            let remarks = listing::remarks(code, names);
            let mut instructions = lister.list(code.bytes, names, Some(&relocated));
            for line in &mut instructions {
                line.remark = remarks.get(&line.offset).cloned();
            }
            found.push(Listing {
                image: path.to_owned(),
                target: image.target().to_string(),
                name: code.name.to_owned(),
                instructions,
            });
        }
        if a.json {
            listings.append(&mut found);
            return Ok(());
        }
        // Remarks stand right of the longest line.
        let lines = found.iter().flat_map(|l| &l.instructions);
        let longest = lines.map(|l| listing::instruction(l.offset, &l.text).len()).max();
        let column = longest.unwrap_or(0) + 2;
        for (code, listed) in codes.iter().zip(&found) {
            match a.asm {
                true => write_source(out, listed)?,
                false => write_listing(out, image, code, labels.of(code), listed, column)?,
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
    let names = Labels::of_raw(isa, &bytes);
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
        instructions: Lister::new(isa, a).list(&bytes, &names, None),
    };
    match () {
        () if a.json => output::json(out, &[listing])?,
        () if a.asm => write_source(out, &listing)?,
        () => {
            for line in &listing.instructions {
                if let Some(label) = &line.label {
                    writeln!(out, "{label}:")?;
                }
                write_line(out, line, 0)?;
            }
        }
    }
    Ok(Finding::Good)
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

    fn list(&mut self, code: &[u8], labels: &Names, relocated: Option<&Relocated>) -> Vec<Line> {
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
            remark: None,
            opaque: inst.form == FormId::OPAQUE,
            issue: word.bits(109, 105),
        }
    }
}

fn write_listing(
    out: &mut dyn Write,
    image: &Image<'_>,
    code: &Code<'_>,
    names: &Names,
    listing: &Listing,
    column: usize,
) -> Result<()> {
    listing::write_section_head(out, image, code, names)?;
    for line in &listing.instructions {
        if line.offset > 0 {
            listing::write_names(out, code, line.offset, names)?;
        }
        write_line(out, line, column)?;
    }
    Ok(listing::write_names(out, code, code.bytes.len() as u64, names)?)
}

fn write_line(out: &mut dyn Write, line: &Line, column: usize) -> Result<()> {
    let text = listing::instruction(line.offset, &line.text);
    let mut text = listing::end(text, line.issue, line.remark.as_deref(), column);
    if let Some(control) = &line.control {
        let notes = line.notes.as_ref().map_or_else(String::new, |n| format!(" <{n}>"));
        text = format!("{text:<100} /* {control}{notes} */");
    }
    if let Some(word) = &line.word {
        text = format!("{text:<100} /* {word} */");
    }
    Ok(writeln!(out, "{text}")?)
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
