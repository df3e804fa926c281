//! What holds kernels between lifting and lowering: [`Internal`], or MLIR where it is built in. Texts and rewritten bytes are the same.

use isa::Isa;
use rayon::prelude::*;

use crate::config::{Entry, Mode};
use crate::mask::AllowedBits;
use crate::report::PassReport;
use crate::step::{self, Place, guarded};

/// A way to hold kernels.
pub trait Representation: Sync {
    /// The text of lit/GRAMMAR.md.
    fn print(&self, kernels: &[ir::Kernel]) -> Result<String, String>;

    /// Reads what `print` wrote, or an edited form of it. The error begins with line and column where it has a place.
    fn parse(&self, source: &[u8]) -> Result<Vec<ir::Kernel>, String>;

    /// Takes kernels for one target through the passes that are named for each. An error is the reason why a kernel is to stay as
    /// it is.
    fn run(&self, jobs: Vec<Job<'_>>) -> Vec<Result<Ran, String>>;
}

/// A kernel and the passes that run on it.
pub struct Job<'a> {
    /// The instruction set of its target.
    pub isa: &'static Isa,
    /// As lifted.
    pub kernel: ir::Kernel,
    /// The cubin that it is in.
    pub image: &'a cubin::Image<'a>,
    /// The section there that has its code.
    pub section: usize,
    /// What the file says about it.
    pub place: Place,
    /// The entries of the configuration that name it, in order, by position there; modes as they are to be.
    pub entries: Vec<(usize, &'a Entry<'a>, Mode)>,
}

/// What the passes made of a kernel.
pub struct Ran {
    /// The kernel now.
    pub kernel: ir::Kernel,
    /// As it was lifted, if that was kept.
    pub lifted: Option<ir::Kernel>,
    /// What each pass did, in order.
    pub passes: Vec<PassReport>,
    /// The bits that the edits name.
    pub allowed: AllowedBits,
    /// Why the kernel is to stay as it was after all.
    pub failed: Option<String>,
}

/// Kernels as `ir` has them, without LLVM.
pub struct Internal;

impl Representation for Internal {
    fn print(&self, kernels: &[ir::Kernel]) -> Result<String, String> {
        Ok(ir::print_module(kernels))
    }

    fn parse(&self, source: &[u8]) -> Result<Vec<ir::Kernel>, String> {
        let text = std::str::from_utf8(source).map_err(|e| {
            let note = match source.starts_with(b"ML\xefR") {
                true => "MLIR bytecode; this needs the MLIR build and `--ir mlir`",
                false => "not UTF-8",
            };
            format!("1:1: {note} ({e})")
        })?;
        ir::parse_module(text).map_err(|e| e.to_string())
    }

    fn run(&self, jobs: Vec<Job<'_>>) -> Vec<Result<Ran, String>> {
        let run = |job| guarded(|| run_one(job)).unwrap_or_else(|panic| Err(format!("panic: {panic}")));
        jobs.into_par_iter().map(run).collect()
    }
}

fn run_one(job: Job<'_>) -> Result<Ran, String> {
    let mut ran = Ran {
        kernel: job.kernel,
        lifted: None,
        passes: Vec::new(),
        allowed: AllowedBits::default(),
        failed: None,
    };
    let mut place = job.place.clone();
    for (_, entry, mode) in job.entries {
        place.pinned = ran.allowed.kept(&job.place.pinned);
        let found = step::look(job.isa, &ran.kernel, &place, entry.pass, &entry.options, mode);
        ran.passes.push(found.report);
        if let Some(why) = found.failed {
            ran.failed = Some(why);
            return Ok(ran);
        }
        if !found.edits.edits.is_empty() {
            ran.allowed.add(&found.allowed);
            ran.lifted.get_or_insert_with(|| ran.kernel.clone());
            let applied = ran.kernel.apply(job.isa, &found.edits);
            if let Err(e) = applied {
                ran.failed = Some(format!("pass {}: {e}", entry.pass.name()));
                return Ok(ran);
            }
        }
    }
    Ok(ran)
}
