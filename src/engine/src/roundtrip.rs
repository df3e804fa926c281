//! The round trip: the proof that lifting loses nothing.
//!
//! For every kernel: decode -> SSA -> text -> parse -> lower, with every register field of every word cleared before
//! lowering writes it, -> encode -> patch; then the new file is compared with the old one, byte by byte.

use std::panic::{AssertUnwindSafe, catch_unwind};

use cubin::code::Code;
use cubin::{Image, Patch};
use isa::Isa;
use rayon::prelude::*;
use serde::Serialize;

use crate::Error;
use crate::mask::WORD;
use crate::open::{Images, Opened};
use crate::representation::{Internal, Representation};

/// The round trip of one kernel.
#[derive(Clone, Debug, Serialize)]
pub struct KernelRoundtrip {
    /// Which image of the file; empty when the file is the image.
    pub image: String,
    /// The target, as `sm_87`.
    pub target: String,
    /// The kernel's name.
    pub name: String,
    /// Number of instructions, padding included.
    pub instructions: usize,
    /// Instructions that came back with the same 16 bytes.
    pub identical: usize,
    /// Byte offsets of the first few that did not.
    pub mismatches: Vec<u64>,
    /// Instructions that are in no table; they are carried through as words.
    pub opaque: usize,
    /// Why there is no result at all.
    pub error: Option<String>,
}

impl KernelRoundtrip {
    /// True when every instruction came back.
    pub fn holds(&self) -> bool {
        self.error.is_none() && self.identical == self.instructions
    }
}

impl std::fmt::Display for KernelRoundtrip {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let KernelRoundtrip {
            target,
            name,
            instructions,
            identical,
            ..
        } = self;
        let wrong = instructions - identical;
        write!(
            f,
            "roundtrip: {target} {name}: {identical}/{instructions} instructions byte-identical ({wrong} mismatches)"
        )
    }
}

/// The round trip of a file.
#[derive(Clone, Debug, Serialize)]
pub struct RoundtripReport {
    /// Every kernel, in file order.
    pub kernels: Vec<KernelRoundtrip>,
    /// True when the file that was written back is the file that was read.
    pub file_identical: bool,
}

impl RoundtripReport {
    /// True when every kernel and the file came back.
    pub fn holds(&self) -> bool {
        self.file_identical && self.kernels.iter().all(KernelRoundtrip::holds)
    }
}

/// How many mismatches are listed for a kernel.
const LISTED: usize = 16;

/// Takes images of a file through the whole way. `wanted` chooses kernels by name; `tick` is called after each.
pub fn roundtrip(
    opened: &Opened<'_>,
    images: &Images<'_>,
    wanted: &(dyn Fn(&str) -> bool + Sync),
    tick: &(dyn Fn() + Sync),
) -> Result<RoundtripReport, Error> {
    roundtrip_in(&Internal, opened, images, wanted, tick)
}

/// [`roundtrip`] with the text written and read by `representation`.
pub fn roundtrip_in(
    representation: &dyn Representation,
    opened: &Opened<'_>,
    images: &Images<'_>,
    wanted: &(dyn Fn(&str) -> bool + Sync),
    tick: &(dyn Fn() + Sync),
) -> Result<RoundtripReport, Error> {
    let mut report = RoundtripReport {
        kernels: Vec::new(),
        file_identical: false,
    };
    let mut replaced = Vec::new();
    for open in &images.list {
        let (image, path) = (&open.image, open.path);
        let codes: Vec<_> = image.codes().iter().filter(|c| wanted(c.name)).collect();
        if codes.is_empty() {
            continue;
        }
        let isa = Isa::for_target(image.target()).map_err(|cause| Error::Isa {
            image: path.to_owned(),
            cause,
        })?;
        let done: Vec<_> = codes
            .par_iter()
            .map(|code| {
                let one = one_kernel(representation, isa, image, path, code);
                tick();
                one
            })
            .collect();
        let mut patch = Patch::new(image);
        for (code, (kernel, lowered)) in codes.iter().zip(done) {
            if let Some(new) = lowered {
                patch.replace_code(code, &new).map_err(|cause| Error::Cubin {
                    image: path.to_owned(),
                    cause,
                })?;
            }
            report.kernels.push(kernel);
        }
        replaced.push((open.index, patch.finish()));
    }
    report.file_identical = opened.rebuild(&replaced)? == opened.bytes();
    Ok(report)
}

fn one_kernel(
    representation: &dyn Representation,
    isa: &'static Isa,
    image: &Image<'_>,
    path: &str,
    code: &Code<'_>,
) -> (KernelRoundtrip, Option<Vec<u8>>) {
    let mut report = KernelRoundtrip {
        image: path.to_owned(),
        target: image.target().to_string(),
        name: code.name.to_owned(),
        instructions: code.bytes.len() / WORD,
        identical: 0,
        mismatches: Vec::new(),
        opaque: 0,
        error: None,
    };
    let lowered = catch_unwind(AssertUnwindSafe(|| lift_and_lower(representation, isa, image, code)));
    let lowered = lowered.unwrap_or_else(|_| Err("a panic inside; please report it with this file".to_owned()));
    match lowered {
        Ok((new, opaque)) => {
            report.opaque = opaque;
            let differing = new
                .chunks(WORD)
                .zip(code.bytes.chunks(WORD))
                .enumerate()
                .filter(|(_, (a, b))| a != b);
            let differing: Vec<u64> = differing.map(|(n, _)| (n * WORD) as u64).collect();
            report.identical = report.instructions.min(new.len() / WORD) - differing.len();
            report.mismatches = differing.into_iter().take(LISTED).collect();
            let fits = new.len() == code.bytes.len();
            if !fits {
                report.error = Some(format!("lowering made {} bytes of {}", new.len(), code.bytes.len()));
            }
            (report, fits.then_some(new))
        }
        Err(why) => {
            report.error = Some(why);
            (report, None)
        }
    }
}

/// The whole way for one kernel: its new code, and how many of its words are in no table.
fn lift_and_lower(
    representation: &dyn Representation,
    isa: &'static Isa,
    image: &Image<'_>,
    code: &Code<'_>,
) -> Result<(Vec<u8>, usize), String> {
    let source = ir::Source::from_code(image.target(), code);
    let lifted = ir::lift(isa, &source).map_err(|e| format!("lift: {e}"))?;
    let text = representation
        .print(std::slice::from_ref(&lifted))
        .map_err(|e| format!("print: {e}"))?;
    drop(lifted);
    let mut parsed = representation
        .parse(text.as_bytes())
        .map_err(|e| format!("parse: {e}"))?;
    let [kernel] = parsed.as_mut_slice() else {
        return Err(format!("parse: {} kernels in the text of one", parsed.len()));
    };
    kernel.clear_registers();
    let opaque = passes::instructions(kernel)
        .filter(|(_, _, i)| i.form == isa::FormId::OPAQUE)
        .count();
    let new = ir::lower(kernel).map_err(|e| format!("lower: {e}"))?;
    Ok((new, opaque))
}
