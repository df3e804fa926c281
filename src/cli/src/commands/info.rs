//! `info`: what a file holds, without touching the instructions.

use std::fmt::Write as _;
use std::io::Write;

use anyhow::{Context, Result};
use cubin::Code;
use cubin::nvinfo::{Attribute, Value};
use engine::OpenImage;
use serde::Serialize;

use crate::Finding;
use crate::args;
use crate::input::File;
use crate::output;

#[derive(Serialize)]
struct ImageInfo {
    /// For `--image`, where the file holds several.
    #[serde(skip_serializing_if = "Option::is_none")]
    number: Option<usize>,
    path: String,
    target: String,
    abi: u8,
    relocatable: bool,
    mercury: bool,
    producer: Option<String>,
    bytes: usize,
    kernels: Vec<KernelInfo>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    attributes: Vec<AttributeInfo>,
}

#[derive(Serialize)]
struct KernelInfo {
    name: String,
    entry: bool,
    instructions: usize,
    registers: Option<u32>,
    shared_bytes: u64,
    local_bytes: u64,
    barriers: u32,
    param_bank: Option<u16>,
    params: Vec<ParamInfo>,
    functions: Vec<FunctionInfo>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    attributes: Vec<AttributeInfo>,
}

#[derive(Serialize)]
struct ParamInfo {
    ordinal: u16,
    /// From the start of the parameters.
    offset: u16,
    bytes: u32,
}

#[derive(Serialize)]
struct FunctionInfo {
    name: String,
    offset: u64,
    bytes: u64,
}

#[derive(Serialize)]
struct AttributeInfo {
    code: u8,
    name: Option<&'static str>,
    value: String,
}

/// Runs the command.
pub fn run(a: &args::Info, out: &mut dyn Write) -> Result<Finding> {
    if a.pressure {
        return super::pressure::run(a, out);
    }
    if a.cycles {
        return super::cycles::run(a, out);
    }
    let file = File::read(&a.input)?;
    let opened = file.open()?;
    let found = file.all_images(&opened)?;
    let mut images = Vec::new();
    file.each_image(&found, |open, codes| {
        images.push(describe(open, codes, a.attributes)?);
        Ok(())
    })?;
    if a.json {
        output::json(out, &images)?;
        return Ok(Finding::Good);
    }
    for (n, image) in images.iter().enumerate() {
        if n > 0 {
            writeln!(out)?;
        }
        write_image(out, &file.name(), image)?;
    }
    Ok(Finding::Good)
}

fn describe(open: &OpenImage<'_>, codes: &[&Code<'_>], attributes: bool) -> Result<ImageInfo> {
    let image = &open.image;
    let list = |entries: &[Attribute<'_>]| -> Result<Vec<AttributeInfo>> {
        entries.iter().filter(|_| attributes).map(attribute).collect()
    };
    let mut kernels = Vec::new();
    for code in codes {
        kernels.push(KernelInfo {
            name: code.name.to_owned(),
            entry: code.is_entry,
            instructions: code.bytes.len() / 16,
            registers: code.registers,
            shared_bytes: code.shared_size,
            local_bytes: code.local_size,
            barriers: code.barriers,
            param_bank: code.param_bank.map(|b| b.offset),
            params: code
                .params
                .iter()
                .map(|p| ParamInfo {
                    ordinal: p.ordinal,
                    offset: p.offset,
                    bytes: p.size,
                })
                .collect(),
            functions: code
                .functions
                .iter()
                .filter(|f| f.name != code.name)
                .map(|f| FunctionInfo {
                    name: f.name.to_owned(),
                    offset: f.offset,
                    bytes: f.size,
                })
                .collect(),
            attributes: list(&code.attributes).with_context(|| code.name.to_owned())?,
        });
    }
    Ok(ImageInfo {
        number: (!open.path.is_empty()).then(|| open.number()),
        path: open.path.to_owned(),
        target: image.target().to_string(),
        abi: image.abi().version,
        relocatable: image.abi().relocatable,
        mercury: image.abi().mercury,
        producer: image.producer(),
        bytes: image.bytes().len(),
        kernels,
        attributes: list(&image.global_attributes()?)?,
    })
}

fn attribute(a: &Attribute<'_>) -> Result<AttributeInfo> {
    let hex = |words: &mut dyn Iterator<Item = u32>| {
        let mut text = String::new();
        for w in words {
            let _ = write!(text, "{}{w:#x}", if text.is_empty() { "" } else { " " });
        }
        text
    };
    let bytes = |b: &[u8]| b.iter().map(|x| format!("{x:02x}")).collect::<Vec<_>>().join(" ");
    let value = match a.value()? {
        Value::Flag => String::new(),
        Value::Number(n) => format!("{n:#x}"),
        Value::Offsets(w) | Value::Words(w) | Value::Symbols(w) | Value::Annotations(w) => hex(&mut w.iter()),
        Value::SymbolValue { symbol, value } => format!("symbol {symbol}: {value:#x}"),
        Value::Param(p) => format!("ordinal {} offset {:#x} size {:#x}", p.ordinal, p.offset, p.size),
        Value::ParamBank { symbol, offset, size } => format!("symbol {symbol}: offset {offset:#x} size {size:#x}"),
        Value::IndirectBranches(list) => list
            .iter()
            .map(|b| format!("{:#x} -> {}", b.offset, hex(&mut b.targets.iter().copied())))
            .collect::<Vec<_>>()
            .join("; "),
        Value::Records { size, bytes: all } => all.chunks(size).map(bytes).collect::<Vec<_>>().join("; "),
        Value::Raw(raw) => bytes(raw),
    };
    Ok(AttributeInfo {
        code: a.code,
        name: a.name(),
        value,
    })
}

fn write_image(out: &mut dyn Write, file: &str, image: &ImageInfo) -> Result<()> {
    let place = image
        .number
        .map_or(String::new(), |n| format!(" image {n}, {}", image.path));
    let kind = if image.relocatable { "relocatable" } else { "executable" };
    let mercury = if image.mercury { ", with Mercury" } else { "" };
    let producer = image
        .producer
        .as_deref()
        .map(|p| format!(", made by {p}"))
        .unwrap_or_default();
    let kernels = image.kernels.iter().filter(|k| k.entry).count();
    let functions = image.kernels.len() - kernels;
    writeln!(
        out,
        "{file}{place}: {}, ABI {}, {kind}{mercury}{producer}, {} bytes, {kernels} kernels, {functions} device functions",
        image.target, image.abi, image.bytes
    )?;
    for k in &image.kernels {
        let registers = k.registers.map_or_else(|| "?".to_owned(), |r| r.to_string());
        writeln!(
            out,
            "  {}: {} instructions, {registers} registers, {} B shared, {} B local, {} barriers{}",
            k.name,
            k.instructions,
            k.shared_bytes,
            k.local_bytes,
            k.barriers,
            if k.entry { "" } else { ", device function" }
        )?;
        let base = k.param_bank.unwrap_or(0);
        for p in &k.params {
            let at = base + p.offset;
            writeln!(out, "    param {}: c[0x0][{at:#x}], {} bytes", p.ordinal, p.bytes)?;
        }
        for f in &k.functions {
            writeln!(out, "    function {} at {:#06x}, {} bytes", f.name, f.offset, f.bytes)?;
        }
        write_attributes(out, "    ", &k.attributes)?;
    }
    write_attributes(out, "  ", &image.attributes)
}

fn write_attributes(out: &mut dyn Write, indent: &str, list: &[AttributeInfo]) -> Result<()> {
    for a in list {
        let name = a
            .name
            .map_or_else(|| format!("{:#04x}", a.code), |n| format!("EIATTR_{n}"));
        writeln!(out, "{indent}{name} {}", a.value)?;
    }
    Ok(())
}
