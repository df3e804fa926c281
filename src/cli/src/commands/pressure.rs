//! `info --pressure`: live registers along the code of each kernel, as text, as JSON and as a picture.

use std::fmt::Write as _;
use std::io::Write;

use anyhow::{Context, Result};
use cubin::{Code, Image};
use engine::OpenImage;
use ir::Pressure;
use isa::{Isa, RegFile};
use serde::Serialize;

use crate::Finding;
use crate::args;
use crate::input::File;
use crate::output;

/// A kernel's live registers, and what they mean for the multiprocessor.
#[derive(Serialize)]
struct Report {
    name: String,
    target: String,
    instructions: usize,
    /// Registers a thread, as the file says.
    registers: Option<u32>,
    /// Threads a block: what the kernel asks for, or the command line.
    threads: u32,
    shared_bytes: u64,
    /// Resident warps of a multiprocessor with these, and at most; absent where the limits are not public.
    warps: Option<(u32, u32)>,
    /// (registers a thread, resident warps): how few registers are worth it.
    steps: Vec<(u32, u32)>,
    /// The most live general registers, and the byte offset where.
    peak: (u16, u64),
    live: Vec<Live>,
}

/// Live registers at one instruction.
#[derive(Serialize)]
struct Live {
    offset: u64,
    r: u16,
    ur: u16,
    p: u16,
    up: u16,
}

/// Runs the command.
pub fn run(a: &args::Info, out: &mut dyn Write) -> Result<Finding> {
    let file = File::read(&a.input)?;
    let opened = file.open()?;
    let images = file.images(&opened)?;
    let mut reports = Vec::new();
    file.each_image(&images, |OpenImage { image, .. }, codes| {
        let isa = Isa::for_target(image.target())?;
        for code in codes {
            reports.push(report(isa, image, code, a.block_threads)?);
        }
        Ok(())
    })?;
    if let Some(dir) = &a.svg {
        std::fs::create_dir_all(dir).with_context(|| dir.display().to_string())?;
        for report in &reports {
            let path = dir.join(format!("{}.{}.svg", output::file_stem(&report.name), report.target));
            output::write_atomically(&path, svg(report).as_bytes(), None)?;
        }
    }
    if a.json {
        output::json(out, &reports)?;
    } else {
        for report in &reports {
            write_text(out, report)?;
        }
    }
    Ok(Finding::Good)
}

fn report(isa: &'static Isa, image: &Image<'_>, code: &Code<'_>, threads: u32) -> Result<Report> {
    let kernel = ir::lift(isa, &ir::Source::from_code(image.target(), code))?;
    let live = ir::pressure(&kernel);
    let highest = live
        .iter()
        .max_by_key(|p| (p.of(RegFile::R), std::cmp::Reverse(p.offset)));
    let threads = code.threads().unwrap_or(threads);
    let shared = u32::try_from(code.shared_size).unwrap_or(u32::MAX / 2);
    let multiprocessor = ir::Multiprocessor::of(image.target());
    let now = |m: &ir::Multiprocessor| Some((m.resident_warps(code.registers?, threads, shared), m.warps));
    Ok(Report {
        name: code.name.to_owned(),
        target: image.target().to_string(),
        instructions: code.bytes.len() / 16,
        registers: code.registers,
        threads,
        shared_bytes: code.shared_size,
        warps: multiprocessor.as_ref().and_then(now),
        steps: multiprocessor.map_or_else(Vec::new, |m| m.steps(threads, shared)),
        peak: highest.map_or((0, 0), |p| (p.of(RegFile::R), p.offset)),
        live: live.iter().map(row).collect(),
    })
}

fn row(p: &Pressure) -> Live {
    Live {
        offset: p.offset,
        r: p.of(RegFile::R),
        ur: p.of(RegFile::UR),
        p: p.of(RegFile::P),
        up: p.of(RegFile::UP),
    }
}

/// Rows of the text's chart, and its width.
const ROWS: usize = 32;
const WIDTH: usize = 64;

fn write_text(out: &mut dyn Write, r: &Report) -> Result<()> {
    let registers = r.registers.map_or_else(|| "?".to_owned(), |n| n.to_string());
    writeln!(
        out,
        "{}: {} instructions, {registers} registers, at most {} live (at {:#06x})",
        r.name, r.instructions, r.peak.0, r.peak.1
    )?;
    match r.warps {
        Some((warps, most)) => writeln!(
            out,
            "  {warps} of {most} warps resident with {} threads and {} B shared a block",
            r.threads, r.shared_bytes
        )?,
        None => writeln!(out, "  the limits of a multiprocessor of {} are not public", r.target)?,
    }
    let steps: Vec<String> = r.steps.iter().map(|(n, warps)| format!("{n}: {warps}")).collect();
    if !steps.is_empty() {
        writeln!(out, "  warps by registers at most: {}", steps.join(", "))?;
    }
    let group = r.live.len().div_ceil(ROWS).max(1);
    for rows in r.live.chunks(group) {
        let most = |f: fn(&Live) -> u16| rows.iter().map(f).max().unwrap_or(0);
        let high = most(|l| l.r);
        let bar = "#".repeat((usize::from(high) * WIDTH).div_ceil(256));
        let (ur, p, up) = (most(|l| l.ur), most(|l| l.p), most(|l| l.up));
        writeln!(out, "  {:06x} R {high:3} UR {ur:2} P {p} UP {up} {bar}", rows[0].offset)?;
    }
    Ok(())
}

/// A chart: byte offsets to the right, live registers upwards, a line at each step of occupancy.
fn svg(r: &Report) -> String {
    const W: f64 = 960.0;
    const H: f64 = 320.0;
    const LEFT: f64 = 48.0;
    const TOP: f64 = 32.0;
    let top = f64::from(r.registers.unwrap_or(0).max(r.peak.0.into()).max(16)) * 1.1;
    let x = |n: usize| LEFT + W * n as f64 / r.live.len().max(1) as f64;
    let y = |registers: f64| TOP + H * (1.0 - registers / top);
    let mut s = String::new();
    let _ = write!(
        s,
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {} {}" font-family="sans-serif" font-size="11">
<rect width="100%" height="100%" fill="#fff"/>
<text x="{LEFT}" y="18">{} ({}): live registers along the code, at most {} of {}</text>
"##,
        W + LEFT + 120.0,
        H + TOP + 32.0,
        escape(&r.name),
        r.target,
        r.peak.0,
        r.registers.map_or_else(|| "?".to_owned(), |n| n.to_string())
    );
    let mut area = format!("M{LEFT:.1},{:.1}", y(0.0));
    for (n, live) in r.live.iter().enumerate() {
        let _ = write!(area, "L{:.1},{:.1}L{:.1},{1:.1}", x(n), y(live.r.into()), x(n + 1));
    }
    let _ = writeln!(
        s,
        r##"<path d="{area}L{:.1},{:.1}Z" fill="#9ec5e8" stroke="#2b6ca3" stroke-width="0.5"/>"##,
        LEFT + W,
        y(0.0)
    );
    let of: [fn(&Live) -> u16; 2] = [|l| l.ur, |l| l.p];
    for (colour, of) in ["#c05a00", "#4d8a2f"].into_iter().zip(of) {
        let points = r.live.iter().enumerate();
        let points: Vec<String> = points
            .map(|(n, l)| format!("{:.1},{:.1}", x(n), y(of(l).into())))
            .collect();
        let _ = writeln!(
            s,
            r#"<polyline points="{}" fill="none" stroke="{colour}"/>"#,
            points.join(" ")
        );
    }
    for (registers, warps) in r.steps.iter().filter(|(n, _)| f64::from(*n) < top) {
        let at = y(f64::from(*registers));
        let _ = writeln!(
            s,
            r##"<line x1="{LEFT}" x2="{:.1}" y1="{at:.1}" y2="{at:.1}" stroke="#888" stroke-dasharray="4 3"/><text x="{:.1}" y="{:.1}">{registers}: {warps} warps</text>"##,
            LEFT + W,
            LEFT + W + 4.0,
            at + 4.0
        );
    }
    let last = r.live.last().map_or(0, |l| l.offset);
    let _ = writeln!(
        s,
        r##"<text x="{LEFT}" y="{0:.1}">0x0</text><text x="{1:.1}" y="{0:.1}" text-anchor="end">{last:#x}</text>
<text x="{2:.1}" y="{0:.1}" text-anchor="middle"><tspan fill="#2b6ca3">R</tspan> <tspan fill="#c05a00">UR</tspan> <tspan fill="#4d8a2f">P</tspan></text>
</svg>"##,
        TOP + H + 16.0,
        LEFT + W,
        LEFT + W / 2.0
    );
    s
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
