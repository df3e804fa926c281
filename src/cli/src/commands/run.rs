//! `run`: a kernel on the emulator.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use emu::check::Checker;
use emu::{Image, Launch, Memory, Program, Step, Watch};
use engine::OpenImage;
use serde::Serialize;

use crate::Finding;
use crate::args;
use crate::input::File;
use crate::kernel_args::{self, Arg, Buffer};
use crate::{npy, output, timing};

#[derive(Serialize)]
struct Report {
    kernel: String,
    target: String,
    grid: [u32; 3],
    block: [u32; 3],
    warp_instructions: u64,
    milliseconds: u64,
    printed: String,
    buffers: Vec<BufferReport>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    findings: Vec<String>,
}

#[derive(Serialize)]
struct BufferReport {
    name: String,
    bytes: usize,
    changed: usize,
    first: Vec<String>,
}

/// Why not exactly one kernel is meant, and how to name one.
fn which_kernel(kernels: &[(&OpenImage<'_>, &str)], file: &str) -> String {
    match kernels {
        [] => format!("no kernel is there to run; `sass2mlir info {file}` lists what is"),
        [(first, name), rest @ ..] if rest.iter().all(|(_, other)| other == name) => {
            let places = kernels
                .iter()
                .map(|(open, _)| format!("{} ({})", open.number(), open.image.target()));
            match rest.iter().any(|(open, _)| open.number() == first.number()) {
                true => format!("kernel {name} is there several times in one image"),
                false => format!(
                    "kernel {name} is in images {}; say which with --image",
                    places.collect::<Vec<_>>().join(", ")
                ),
            }
        }
        all => format!(
            "{} kernels match; name one with --kernel, `sass2mlir info {file}` lists them",
            all.len()
        ),
    }
}

/// Runs the command.
pub fn run(a: &args::Run, out: &mut dyn Write) -> Result<Finding> {
    let file = File::read(&a.input)?;
    let opened = file.open()?;
    let images = file.images(&opened)?;
    if a.survey {
        return survey(a, &file, &images, out);
    }
    let kernels: Vec<(&OpenImage<'_>, &str)> = images
        .list
        .iter()
        .flat_map(|open| open.image.codes().iter().map(move |c| (open, c)))
        .filter(|(_, c)| c.is_entry && file.wants(c.name))
        .map(|(open, c)| (open, c.name))
        .collect();
    let [(open, name)] = kernels[..] else {
        bail!("{}: {}", file.name(), which_kernel(&kernels, &file.name()));
    };
    let image = &open.image;
    let mut program = Program::new(image, name).with_context(|| file.name())?;
    if a.timing {
        program.set_timing(timing::of(image).with_context(|| file.name())?);
    }
    let args = arguments(a)?;
    let mut memory = Memory::new();
    let (params, images) = parameters(&program, &args, &mut memory).with_context(|| file.name())?;
    let launch = Launch {
        grid: a.grid.0,
        block: a.block.0,
        dynamic_shared: a.shared,
        params,
        images,
        max_steps: a.max_steps,
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        ..Launch::default()
    };
    let buffers: Vec<&Buffer> = args
        .iter()
        .filter_map(|a| if let Arg::Buffer(b) = a { Some(b) } else { None })
        .collect();
    let dumps = dumps(a, &buffers)?;
    let unwritten = |name: &str| buffers.iter().any(|b| b.name == name && !b.given);
    let mut checker = a.check.then(|| Checker::new(&memory, unwritten));
    let started = Instant::now();
    let outcome = match (&mut checker, a.trace) {
        (Some(_), true) => bail!("--check and --trace do not go together"),
        (Some(checker), false) => emu::launch(&program, &launch, &mut memory, Some(checker)),
        (None, true) => emu::launch(&program, &launch, &mut memory, Some(&mut Trace { out })),
        (None, false) => emu::launch(&program, &launch, &mut memory, None),
    };
    let outcome = outcome.with_context(|| file.name())?;
    dump(&dumps, &memory)?;
    let checked = checker
        .iter()
        .flat_map(Checker::findings)
        .map(|f| format!("check: {}", f.text(&program)));
    let findings: Vec<String> = checked.chain(timing::findings(&program, &outcome)).collect();
    let report = Report {
        kernel: name.to_owned(),
        target: image.target().to_string(),
        grid: launch.grid,
        block: launch.block,
        warp_instructions: outcome.steps,
        milliseconds: started.elapsed().as_millis() as u64,
        printed: String::from_utf8_lossy(&outcome.printed).into_owned(),
        buffers: buffers.iter().map(|b| buffer_report(b, &memory)).collect(),
        findings,
    };
    let finding = if report.findings.is_empty() {
        Finding::Good
    } else {
        Finding::Difference
    };
    match a.json {
        true => output::json(out, &report)?,
        false => write_report(out, &report)?,
    }
    Ok(finding)
}

/// The arguments; a buffer's name tells it from the others.
fn arguments(a: &args::Run) -> Result<Vec<Arg>> {
    let texts = a.args.iter().enumerate();
    let args: Vec<Arg> = texts
        .map(|(n, text)| kernel_args::parse(n, text))
        .collect::<Result<_>>()?;
    let mut names = std::collections::HashSet::new();
    for (arg, text) in args.iter().zip(&a.args) {
        if let Arg::Buffer(b) = arg
            && !names.insert(b.name.as_str())
        {
            bail!(
                "--arg {text}: there is a buffer `{}` already; give this one another name",
                b.name
            );
        }
    }
    Ok(args)
}

/// Where to write which buffers; none of it a file that is read.
fn dumps<'a>(a: &'a args::Run, buffers: &[&'a Buffer]) -> Result<Vec<(&'a Buffer, &'a Path)>> {
    let mut list: Vec<(&Buffer, &Path)> = Vec::new();
    for text in &a.dump {
        let Some((name, path)) = text.split_once('=') else {
            bail!("--dump {text}: write NAME=FILE");
        };
        let Some(buffer) = buffers.iter().copied().find(|b| b.name == name) else {
            let names: Vec<&str> = buffers.iter().map(|b| b.name.as_str()).collect();
            bail!("--dump {text}: no buffer `{name}`; there are {}", names.join(", "));
        };
        let path = Path::new(path);
        let read = a
            .args
            .iter()
            .filter_map(|a| a.split_once("=@"))
            .map(|(_, file)| Path::new(file));
        let written = list.iter().map(|(_, path)| *path);
        output::keep_apart(Some(path), [&*a.input.file].into_iter().chain(read).chain(written))?;
        list.push((buffer, path));
    }
    Ok(list)
}

/// The parameters' bytes: each argument where the kernel has its parameter, buffers by their addresses, images by their handles; and the images.
fn parameters(program: &Program, args: &[Arg], memory: &mut Memory) -> Result<(Vec<u8>, Vec<Image>)> {
    if args.len() != program.params.len() {
        let list: Vec<String> = program.params.iter().map(|p| format!("{} bytes", p.size)).collect();
        bail!(
            "{} takes {} arguments ({}), {} are given with --arg:\n{}",
            program.name,
            program.params.len(),
            list.join(", "),
            args.len(),
            kernel_args::SYNTAX
        );
    }
    let mut out = vec![0; program.param_bank.1 as usize];
    let mut images = Vec::new();
    for (n, (param, arg)) in program.params.iter().zip(args).enumerate() {
        let bytes = match arg {
            Arg::Bytes(bytes) => bytes.clone(),
            Arg::Buffer(b) => {
                let address = memory.place(&b.name, b.data.clone(), 0);
                let handle = Image::handle(images.len());
                images.extend(b.image.map(|image| Image { address, ..image }));
                let value = if b.image.is_some() { handle } else { address };
                value.to_le_bytes().to_vec()
            }
        };
        let at = usize::from(param.offset);
        if bytes.len() != param.size as usize {
            bail!("--arg {n}: {} bytes, the parameter has {}", bytes.len(), param.size);
        }
        match out.get_mut(at..at + bytes.len()) {
            Some(to) => to.copy_from_slice(&bytes),
            None => bail!("parameter {n} lies outside of the parameters"),
        }
    }
    Ok((out, images))
}

/// A buffer's contents after the launch.
fn after<'m>(b: &Buffer, memory: &'m Memory) -> &'m [u8] {
    let found = memory.buffers().iter().find(|m| m.name == b.name);
    found.map_or(&[], |m| &m.data)
}

fn dump(dumps: &[(&Buffer, &Path)], memory: &Memory) -> Result<()> {
    for (buffer, path) in dumps {
        let data = after(buffer, memory);
        let (_, size, kind) = buffer.kind;
        match path.extension().is_some_and(|e| e == "npy") {
            true => output::write_atomically(path, &npy::file(kind, size, data), None)?,
            false => output::write_atomically(path, data, None)?,
        }
    }
    Ok(())
}

fn buffer_report(b: &Buffer, memory: &Memory) -> BufferReport {
    let data = after(b, memory);
    let (name, size, _) = b.kind;
    let elements = data.chunks_exact(size);
    BufferReport {
        name: b.name.clone(),
        bytes: data.len(),
        changed: elements
            .clone()
            .zip(b.data.chunks_exact(size))
            .filter(|(x, y)| x != y)
            .count(),
        first: elements.take(8).map(|e| element(name, e)).collect(),
    }
}

/// An element in its type's usual form.
fn element(kind: &str, bytes: &[u8]) -> String {
    let mut all = [0; 8];
    all[..bytes.len()].copy_from_slice(bytes);
    let bits = u64::from_le_bytes(all);
    let unused = 64 - 8 * bytes.len() as u32;
    match kind {
        "f64" => f64::from_bits(bits).to_string(),
        "f32" => f32::from_bits(bits as u32).to_string(),
        "f16" => {
            use emu::soft::{F16, F64, Round, convert};
            f64::from_bits(convert(F16, F64, bits, Round::Nearest)).to_string()
        }
        k if k.starts_with('i') => ((bits << unused) as i64 >> unused).to_string(),
        _ => bits.to_string(),
    }
}

fn write_report(out: &mut dyn Write, r: &Report) -> Result<()> {
    write!(out, "{}", r.printed)?;
    let threads: u32 = r.block.iter().product();
    let blocks: u64 = r.grid.iter().map(|&n| u64::from(n)).product();
    writeln!(
        out,
        "run: {} {}: {blocks} blocks of {threads} threads, {} warp instructions, {} ms",
        r.target, r.kernel, r.warp_instructions, r.milliseconds
    )?;
    for b in &r.buffers {
        let more = if b.first.len() == 8 { " ..." } else { "" };
        writeln!(
            out,
            "  {}: {} elements changed: {}{more}",
            b.name,
            b.changed,
            b.first.join(" ")
        )?;
    }
    for f in &r.findings {
        writeln!(out, "{f}")?;
    }
    Ok(())
}

/// Prints each instruction before it is executed, with what the first lane reads.
struct Trace<'o> {
    out: &'o mut dyn Write,
}

impl Watch for Trace<'_> {
    fn step(&mut self, step: &Step<'_>) {
        let (_, offset) = step.program.place(step.warp.pc);
        let [x, y, z] = step.ctaid;
        let mut line = format!(
            "({x},{y},{z}) w{:<2} {offset:#06x} {:08x}  {}",
            step.warp.number,
            step.mask,
            step.program.text(step.warp.pc)
        );
        let lane = step.mask.trailing_zeros() as usize % emu::LANES;
        for (name, value) in step.reads(lane) {
            let _ = write!(line, "  {name}={value:#x}");
        }
        // A reader that has seen enough is no reason to stop the kernel.
        let _ = writeln!(self.out, "{line}");
    }
}

#[derive(Serialize)]
struct Survey {
    kernels: usize,
    runnable: usize,
    missing: Vec<Reason>,
}

#[derive(Serialize)]
struct Reason {
    what: String,
    kernels: usize,
}

/// Counts the kernels that could run, and what keeps the others from it.
fn survey(a: &args::Run, file: &File, images: &engine::Images<'_>, out: &mut dyn Write) -> Result<Finding> {
    let (mut kernels, mut runnable) = (0, 0);
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    file.each_image(images, |OpenImage { image, .. }, codes| {
        for code in codes.iter().filter(|c| c.is_entry) {
            kernels += 1;
            let here: Vec<String> = match Program::new(image, code.name) {
                Ok(p) => p.missing.iter().map(|m| format!("{} ({})", m.form, m.why)).collect(),
                Err(e) => vec![e.to_string()],
            };
            runnable += usize::from(here.is_empty());
            for reason in here.into_iter().collect::<std::collections::BTreeSet<_>>() {
                *reasons.entry(reason).or_default() += 1;
            }
        }
        Ok(())
    })?;
    let mut missing: Vec<Reason> = reasons
        .into_iter()
        .map(|(what, kernels)| Reason { what, kernels })
        .collect();
    missing.sort_by_key(|r| std::cmp::Reverse(r.kernels));
    if a.json {
        output::json(
            out,
            &Survey {
                kernels,
                runnable,
                missing,
            },
        )?;
        return Ok(Finding::Good);
    }
    writeln!(out, "run: {runnable} of {kernels} kernels can run")?;
    for r in missing {
        writeln!(out, "  {:6} kernels: {}", r.kernels, r.what)?;
    }
    Ok(Finding::Good)
}
