//! `nops`: puts NOPs into every kernel and takes them out again, to prove that code can move.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write;

use anyhow::{Context, Result, anyhow};
use engine::moving::KernelMove;

use crate::Finding;
use crate::args;
use crate::input::File;
use crate::output;

/// Runs the command.
pub fn run(a: &args::Nops, out: &mut dyn Write) -> Result<Finding> {
    output::keep_apart(Some(&a.result.output), [&*a.input.file, &*a.list])?;
    if !a.take_out {
        output::keep_apart(Some(&a.list), [&*a.input.file])?;
    }
    let file = File::read(&a.input)?;
    let opened = file.open()?;
    let images = file.images(&opened)?;
    let done = match a.take_out {
        true => engine::moving::take_out(&opened, &images, &listed(a)?),
        false => engine::moving::put_nops(&opened, &images, a.seed, a.every),
    };
    let done = done.with_context(|| file.name())?;
    // A new list is no use without its cubin, nor an old cubin without its list: neither is replaced alone.
    let mut list = None;
    if !a.take_out {
        let mut text = String::new();
        for k in &done.kernels {
            for offset in &k.inserted {
                let _ = writeln!(text, "{}\t{}\t{offset:#x}", k.image, k.name);
            }
        }
        list = Some(output::stage(&a.list, text.as_bytes(), None)?);
    }
    a.result.write(&done.bytes, &a.input.file, file.bytes())?;
    list.map_or(Ok(()), output::Staged::commit)?;
    match a.result.json {
        true => output::json(out, &done.kernels)?,
        false => write_text(out, &done.kernels, a.take_out)?,
    }
    let complete = done.kernels.iter().all(|k| k.left_alone.is_none());
    Ok(if complete { Finding::Good } else { Finding::Difference })
}

fn write_text(out: &mut dyn Write, kernels: &[KernelMove], take_out: bool) -> Result<()> {
    let mut left_alone = 0;
    for k in kernels {
        if let Some(why) = &k.left_alone {
            left_alone += 1;
            writeln!(out, "nops: {} {}: left alone: {why}", k.target, k.name)?;
        }
    }
    let (moved, what) = match take_out {
        true => (kernels.iter().map(|k| k.taken_out.len()).sum::<usize>(), "taken out"),
        false => (kernels.iter().map(|k| k.inserted.len()).sum(), "put in"),
    };
    writeln!(
        out,
        "total: {} kernels, {left_alone} left alone, {moved} instructions {what}",
        kernels.len()
    )?;
    Ok(())
}

fn listed(a: &args::Nops) -> Result<BTreeMap<(usize, String), Vec<u32>>> {
    places(&output::read_text(&a.list)?).with_context(|| a.list.display().to_string())
}

/// Reads what the other direction wrote: image, kernel, byte offset.
fn places(list: &str) -> Result<BTreeMap<(usize, String), Vec<u32>>> {
    let mut places: BTreeMap<(usize, String), Vec<u32>> = BTreeMap::new();
    for (n, line) in list.lines().enumerate() {
        let bad = || anyhow!("line {}: none that `nops` writes: {line}", n + 1);
        let parts: Vec<&str> = line.split('\t').collect();
        let [image, name, offset] = parts[..] else {
            return Err(bad());
        };
        let offset = offset.strip_prefix("0x").and_then(|o| u32::from_str_radix(o, 16).ok());
        let key = (image.parse().map_err(|_| bad())?, name.to_owned());
        places.entry(key).or_default().push(offset.ok_or_else(bad)?);
    }
    Ok(places)
}
