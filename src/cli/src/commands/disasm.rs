//! `disasm`: instructions as nvdisasm writes them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write;

use anyhow::Result;
use cubin::{Code, Image};
use isa::control::Control;
use isa::{FormId, Isa, Word};
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
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    opaque: bool,
}

/// Runs the command.
pub fn run(a: &args::Disasm, out: &mut dyn Write) -> Result<Finding> {
    let file = File::read(&a.input)?;
    let mut listings = Vec::new();
    let opened = file.open()?;
    let images = file.images(&opened)?;
    file.each_image(&images, |path, image, codes| {
        if codes.is_empty() {
            return Ok(());
        }
        let isa = Isa::for_target(image.target())?;
        for code in codes {
            let listing = Listing {
                image: path.to_owned(),
                target: image.target().to_string(),
                name: code.name.to_owned(),
                instructions: list(isa, image, code, a),
            };
            match a.json {
                true => listings.push(listing),
                false => write_listing(out, &listing)?,
            }
        }
        Ok(())
    })?;
    if a.json {
        output::json(out, &listings)?;
    }
    Ok(Finding::Good)
}

fn list(isa: &Isa, image: &Image<'_>, code: &Code<'_>, a: &args::Disasm) -> Vec<Line> {
    let labels = labels(isa, image, code);
    let relocated = Relocated::new(image, code, &labels);
    let name_of = |offset: u64| labels.get(&offset).map(String::as_str);
    let mut lines = Vec::with_capacity(code.bytes.len() / WORD);
    for (n, word) in Word::all(code.bytes).enumerate() {
        let offset = (n * WORD) as u64;
        let inst = isa.decode(word);
        let text = relocated.text(isa, inst, offset, &name_of).unwrap_or_else(|| {
            let mut text = String::new();
            isa.write_text(inst, offset, &mut text, Some(&name_of))
                .expect("writing to a string cannot fail");
            text
        });
        lines.push(Line {
            offset,
            label: labels.get(&offset).cloned(),
            text,
            word: (a.hex || a.json).then(|| format!("0x{:032x}", word.0)),
            control: (a.control || a.json).then(|| control_text(&Control::of(word))),
            opaque: inst.form == FormId::OPAQUE,
        });
    }
    lines
}

/// Names of places: the file's own symbols, then `.L_x_N` for every other target of a branch, in address order.
fn labels(isa: &Isa, image: &Image<'_>, code: &Code<'_>) -> BTreeMap<u64, String> {
    let mut names = BTreeMap::new();
    for (n, word) in Word::all(code.bytes).enumerate() {
        if let Some(to) = isa.branch_target(isa.decode(word), (n * WORD) as u64) {
            names.insert(to, String::new());
        }
    }
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
    for (n, name) in names.values_mut().filter(|n| n.is_empty()).enumerate() {
        *name = format!(".L_x_{n}");
    }
    names
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
            text = format!("{text:<100} /* {control} */");
        }
        if let Some(word) = &line.word {
            text = format!("{text:<100} /* {word} */");
        }
        writeln!(out, "{text}")?;
    }
    Ok(())
}

/// `B--2---:R0:W-:Y:S04`: barriers waited for, read barrier, write barrier, yield, stall cycles, and `r` with the
/// operand-cache flags where there are any.
fn control_text(c: &Control) -> String {
    let mut text = String::from("B");
    for n in 0..6 {
        match c.wait >> n & 1 {
            1 => {
                let _ = write!(text, "{n}");
            }
            _ => text.push('-'),
        }
    }
    let barrier = |b: Option<u8>| b.map_or_else(|| "-".to_owned(), |b| b.to_string());
    let yields = if c.yield_ { 'Y' } else { '-' };
    let _ = write!(
        text,
        ":R{}:W{}:{yields}:S{:02}",
        barrier(c.read_barrier),
        barrier(c.write_barrier),
        c.stall
    );
    if c.reuse != 0 {
        let _ = write!(text, ":r{:03b}", c.reuse);
    }
    text
}
