//! Kernels in MLIR for the engine: text through the dialect, passes as one pipeline.

use std::cell::OnceCell;

use cubin::Lines;
use engine::capi::PassRun;
use engine::report::PassReport;
use engine::{AllowedBits, Entry, Job, Mode, Ran, Representation};
use ir::Kernel;
use melior::ir::attribute::{DenseI32ArrayAttribute, DenseI64ArrayAttribute, IntegerAttribute};
use melior::ir::operation::{OperationLike, OperationMutLike};
use passes::{Context, OptionError, OptionValue, Options, Pass, PassResult, Refusal};
use rayon::prelude::*;

use crate::bridge::{Bridge, Diagnostic, MlirError, Module, PipelineOptions, Step, check_passes};
use crate::rust_pass::RustPass;

/// Kernels as functions of the sass dialect.
#[derive(Clone, Debug, Default)]
pub struct Mlir {
    /// What to see of the passes.
    pub pipeline: PipelineOptions,
}

/// Runs `body` with this thread's context, which is made once.
fn with_bridge<T>(body: impl FnOnce(&Bridge) -> Result<T, MlirError>) -> Result<T, String> {
    thread_local!(static BRIDGE: OnceCell<Bridge> = const { OnceCell::new() });
    BRIDGE.with(|cell| {
        let bridge = match cell.get() {
            Some(bridge) => bridge,
            None => {
                let made = Bridge::new(false).map_err(|e| e.to_string())?;
                cell.get_or_init(|| made)
            }
        };
        body(bridge).map_err(|e| e.to_string())
    })
}

impl Representation for Mlir {
    fn print(&self, kernels: &[Kernel]) -> Result<String, String> {
        // One module a kernel, so that a file with thousands needs the memory of a few.
        let one = |kernel: &Kernel| {
            with_bridge(|bridge| {
                let text = bridge.module(std::slice::from_ref(kernel), false)?.to_text();
                let body = text.strip_prefix(HEAD).and_then(|t| t.strip_suffix(TAIL));
                body.map(str::to_owned).ok_or_else(|| {
                    MlirError::Kernel(format!(
                        "{}: MLIR wrote a module in a form that is not known",
                        kernel.name
                    ))
                })
            })
        };
        let bodies: Vec<String> = kernels.par_iter().map(one).collect::<Result<_, _>>()?;
        Ok([HEAD, &bodies.concat(), TAIL].concat())
    }

    fn parse(&self, source: &[u8]) -> Result<Vec<Kernel>, String> {
        with_bridge(|bridge| {
            let module = bridge.parse(source).map_err(|e| MlirError::Kernel(placed(&e)))?;
            module.kernels().map_err(|e| MlirError::Kernel(placed(&e)))
        })
    }

    fn run(&self, jobs: Vec<Job<'_>>) -> Vec<Result<Ran, String>> {
        if jobs.is_empty() {
            return Vec::new();
        }
        // One pipeline for all. When it fails, each kernel alone, so that one that cannot be rewritten keeps no other from it.
        match self.together(&jobs) {
            Ok(all) => all.into_iter().map(Ok).collect(),
            Err(_) if jobs.len() > 1 => jobs.iter().map(|job| self.alone(job)).collect(),
            Err(why) => vec![Err(why.to_string())],
        }
    }
}

/// What stands around the functions of a module.
const HEAD: &str = "module {\n";
const TAIL: &str = "}\n";

/// An error with line and column of its first diagnostic in front, if it has some.
fn placed(error: &MlirError) -> String {
    if let MlirError::Failed { diagnostics, .. } = error
        && let Some(first) = diagnostics.first()
    {
        let inside = first.location.strip_prefix("loc(").and_then(|l| l.strip_suffix(')'));
        if let Some((_, place)) = inside.and_then(|l| l.rsplit_once("\":")) {
            return format!("{place}: {}", first.message);
        }
    }
    format!(" {error}")
}

impl Mlir {
    fn alone(&self, job: &Job<'_>) -> Result<Ran, String> {
        let mut ran = self.together(std::slice::from_ref(job)).map_err(|e| e.to_string())?;
        ran.pop().ok_or_else(|| "the pipeline lost the kernel".to_owned())
    }

    fn together(&self, jobs: &[Job<'_>]) -> Result<Vec<Ran>, MlirError> {
        let bridge = Bridge::new(!self.pipeline.print_after_all)?;
        let kernels: Vec<Kernel> = jobs.iter().map(|job| job.kernel.clone()).collect();
        // All are of one image. A table that cannot be read tells nothing.
        let lines = jobs.first().and_then(|job| Lines::read(job.image).ok());
        let lines = lines.unwrap_or_default();
        let mut module = bridge.module_with_lines(&kernels, &|n, offset| lines.at(jobs[n].section, offset))?;
        mark(&bridge, &module, jobs);
        let steps = steps(jobs);
        let (result, mut heard) = bridge.listen(|| module.run_steps(steps, &self.pipeline));
        result?;
        let said = bridge.take_diagnostics();
        let after = module.rewritten().map_err(|e| in_code(e, jobs))?;
        let functions = module.functions();
        let done = after.into_iter().zip(jobs).zip(functions).map(|((kernel, job), func)| {
            let runs = heard.remove(&kernel.name).unwrap_or_default();
            let changed = |entry: usize| func.attribute(&format!("sass.changed_{entry}")).ok();
            ran(job, kernel, runs, &said, |entry| {
                changed(entry)
                    .and_then(|a| IntegerAttribute::try_from(a).ok())
                    .map_or(0, |a| a.value() as usize)
            })
        });
        Ok(done.collect())
    }
}

/// Puts together what the passes of a kernel did, in the order of its entries.
fn ran(
    job: &Job<'_>,
    kernel: Kernel,
    runs: Vec<PassRun>,
    said: &[Diagnostic],
    changed: impl Fn(usize) -> usize,
) -> Ran {
    let place = format!("\"{}\":", kernel.name);
    let mut ran = Ran {
        kernel,
        lifted: None,
        passes: Vec::new(),
        allowed: AllowedBits::default(),
        failed: None,
    };
    let mut runs = runs.into_iter();
    for (at, entry, mode) in &job.entries {
        if entry.pass.is_native() {
            let count = changed(*at);
            ran.passes.push(PassReport {
                name: entry.pass.name().to_owned(),
                mode: *mode,
                sites: count,
                ops: count,
                headline: None,
                skipped: Vec::new(),
                notes: said.iter().filter_map(|d| note(&place, d)).collect(),
                refused: None,
            });
            if *mode == Mode::Apply {
                allow_meaning(job, &ran.kernel, &mut ran.allowed);
            }
            continue;
        }
        let Some(run) = runs.next() else { break };
        ran.passes.push(run.found.report);
        ran.allowed.add(&run.found.allowed);
        if run.found.failed.is_some() {
            ran.failed = run.found.failed;
            break;
        }
    }
    ran
}

/// A pass that names no edits may change what instructions compute, and neither scheduling nor don't-care bits. A new instruction in the place
/// of an old one has its own. What edits put there stays as they say.
fn allow_meaning(job: &Job<'_>, after: &Kernel, allowed: &mut AllowedBits) {
    let before: Vec<_> = passes::instructions(&job.kernel).map(|(.., inst)| inst).collect();
    for (offset, _, new) in passes::instructions(after) {
        let Some(old) = allowed.before(offset).and_then(|at| before.get((at / 16) as usize)) else {
            continue;
        };
        let bits = match new.form == old.form {
            true => job.isa.semantic_mask(*old) | job.isa.register_mask(*old),
            false => !isa::control::MASK | isa::control::REUSE_MASK,
        };
        allowed.allow(offset, bits);
    }
}

/// A diagnostic at an instruction of the kernel whose locations begin with `place`: byte offset, and line of the source where it is known.
fn note(place: &str, said: &Diagnostic) -> Option<String> {
    let inside = said.location.strip_prefix("loc(").and_then(|l| l.strip_suffix(')'))?;
    let inside = inside
        .strip_prefix("fused[")
        .and_then(|l| l.strip_suffix(']'))
        .unwrap_or(inside);
    let (in_code, source) = inside.split_once(", ").unwrap_or((inside, ""));
    let offset = in_code.strip_prefix(place)?.split(':').next()?.parse::<u64>().ok()?;
    let source = source.rsplit_once(':').map(|(line, _column)| line.replace('"', ""));
    let source = source.map_or_else(String::new, |line| format!(" ({line})"));
    Some(format!("{offset:#06x}{source}: {}", said.message))
}

/// An error at an instruction, with kernel and offset in front.
fn in_code(error: MlirError, jobs: &[Job<'_>]) -> MlirError {
    let MlirError::Failed { diagnostics, .. } = &error else {
        return error;
    };
    let noted = |name: &str, said| note(&format!("\"{name}\":"), said).map(|note| format!("{name} at {note}"));
    let names = || jobs.iter().map(|job| &*job.kernel.name);
    let placed = diagnostics
        .iter()
        .find_map(|said| names().find_map(|name| noted(name, said)));
    placed.map_or(error, MlirError::Kernel)
}

/// A pass that MLIR has and the engine has not: written in C++, upstream or in a plugin.
pub struct NativePass(pub String);

impl Pass for NativePass {
    fn name(&self) -> &str {
        &self.0
    }

    fn summary(&self) -> &str {
        "a pass of MLIR"
    }

    fn is_native(&self) -> bool {
        true
    }

    fn check(&self, options: &Options) -> Result<(), OptionError> {
        let message = check_passes(&spelled(&self.0, options)).err();
        message.map_or(Ok(()), |message| Err(OptionError { option: "", message }))
    }

    fn run(&self, _: &Context<'_>, _: &Kernel, _: &Options) -> Result<PassResult, Refusal> {
        Err(Refusal("it is a pass of MLIR: use `--ir mlir`".to_owned()))
    }
}

/// Says at every function which entries of the configuration name it, where its parameters lie, what it takes of the hardware, and which
/// instructions and registers the file names.
fn mark(bridge: &Bridge, module: &Module<'_>, jobs: &[Job<'_>]) {
    for (mut func, job) in module.functions().into_iter().zip(jobs) {
        let entries: Vec<i32> = job.entries.iter().map(|(at, ..)| *at as i32).collect();
        func.set_attribute(
            "sass.entries",
            DenseI32ArrayAttribute::new(bridge.context(), &entries).into(),
        );
        let pinned: Vec<i64> = job.place.pinned.iter().map(|at| *at as i64).collect();
        func.set_attribute(
            "sass.pinned",
            DenseI64ArrayAttribute::new(bridge.context(), &pinned).into(),
        );
        let resources = &job.place.resources;
        let given = |n: Option<u32>| n.unwrap_or(0) as i32;
        let numbers = [
            given(resources.registers),
            given(resources.threads),
            resources.shared as i32,
        ];
        func.set_attribute(
            "sass.resources",
            DenseI32ArrayAttribute::new(bridge.context(), &numbers).into(),
        );
        if let Some(fixed) = &resources.fixed {
            let fixed: Vec<i32> = fixed.iter().map(|pin| pin.to_bits().into()).collect();
            func.set_attribute(
                "sass.fixed",
                DenseI32ArrayAttribute::new(bridge.context(), &fixed).into(),
            );
        }
        if let Some((start, end)) = job.place.params {
            let params = [start as i32, end as i32];
            func.set_attribute(
                "sass.params",
                DenseI32ArrayAttribute::new(bridge.context(), &params).into(),
            );
        }
    }
}

/// The entries of the configuration that name any of the kernels, in its order.
fn steps<'e>(jobs: &'e [Job<'_>]) -> Vec<Step<'e>> {
    let mut entries: Vec<&(usize, &Entry<'_>, Mode)> = jobs.iter().flat_map(|job| &job.entries).collect();
    entries.sort_by_key(|(at, ..)| *at);
    entries.dedup_by_key(|(at, ..)| *at);
    let step = |(at, entry, mode): &'e (usize, &Entry<'_>, Mode)| {
        let (name, report) = (entry.pass.name(), *mode == Mode::Report);
        let marks = format!("entry={at} report={report}");
        if entry.pass.is_native() {
            let passes = spelled(name, &entry.options);
            return Step::Text(format!("sass-on-entry{{{marks} pipeline={passes}}}"));
        }
        match passes::BUILTIN.iter().any(|pass| pass.name() == name) {
            true => Step::Text(spelled_with(&format!("sass-{name}"), Some(marks), &entry.options)),
            false => Step::Rust(RustPass {
                pass: entry.pass,
                options: &entry.options,
                mode: *mode,
                entry: *at as i32,
            }),
        }
    };
    entries.into_iter().map(step).collect()
}

/// A pass with its options, as MLIR reads it.
fn spelled(name: &str, options: &Options) -> String {
    spelled_with(name, None, options)
}

fn spelled_with(name: &str, first: Option<String>, options: &Options) -> String {
    let own = options.iter().map(|(name, value)| match value {
        OptionValue::Bool(v) => format!("{name}={v}"),
        OptionValue::Int(v) => format!("{name}={v}"),
        OptionValue::Text(v) if v.contains([' ', '{', '}']) => format!("{name}=\"{v}\""),
        OptionValue::Text(v) => format!("{name}={v}"),
    });
    let all: Vec<String> = first.into_iter().chain(own).collect();
    match all.is_empty() {
        true => name.to_owned(),
        false => format!("{name}{{{}}}", all.join(" ")),
    }
}
