//! Passes over the kernels of a file: lift, passes in order, edits, lowering, mask-verify, patch in place.

use std::panic::{AssertUnwindSafe, catch_unwind};

use cubin::code::Code;
use cubin::{Image, Patch};
use isa::Isa;
use passes::{Context, PassResult};
use rayon::prelude::*;

use crate::config::{Config, Entry, Mode};
use crate::mask::{AllowedBits, WORD, mask_verify};
use crate::open::{OpenImage, Opened};
use crate::report::{ImageReport, KernelReport, PassReport, PatchReport, Report, SkippedSite};
use crate::{Error, allowed};

/// How to run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Only images for this target.
    pub arch: Option<isa::Target>,
    /// Treat every entry as if its mode were `report`.
    pub report_only: bool,
    /// Keep the text of each named kernel before and after.
    pub keep_text: bool,
}

/// What came out.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The rewritten file; `None` when no byte changed.
    pub bytes: Option<Vec<u8>>,
    /// What happened, image by image and kernel by kernel.
    pub report: Report,
    /// With [`Options::keep_text`]: the kernels' texts, in the order of the report.
    pub texts: Vec<KernelText>,
}

/// A kernel as MLIR text.
#[derive(Clone, Debug)]
pub struct KernelText {
    /// Which image of the file; empty when the file is the image.
    pub image: String,
    /// The target.
    pub target: String,
    /// The kernel's name.
    pub name: String,
    /// As lifted.
    pub before: String,
    /// After the passes; `None` when the kernel did not change.
    pub after: Option<String>,
}

/// Runs a configuration over a file. Deterministic: the same bytes and configuration give the same outcome, whatever the
/// number of threads. What goes wrong for one kernel leaves that kernel as it was, with the reason in the report.
pub fn apply(bytes: &[u8], config: &Config<'_>, options: &Options) -> Result<Outcome, Error> {
    let opened = Opened::new(bytes)?;
    let images = opened.images(options.arch)?;
    let mut report = Report {
        images: Vec::new(),
        passed_over: images.passed_over,
    };
    let (mut replaced, mut texts) = (Vec::new(), Vec::new());
    let alone = images.list.len() == 1;
    for open in &images.list {
        let done = rewrite_image(open, alone, config, options)?;
        replaced.extend(done.bytes.map(|b| (open.index, b)));
        texts.extend(done.texts);
        report.images.push(done.report);
    }
    let bytes = if replaced.is_empty() {
        None
    } else {
        Some(opened.rebuild(&replaced)?)
    };
    Ok(Outcome { bytes, report, texts })
}

struct ImageDone {
    bytes: Option<Vec<u8>>,
    report: ImageReport,
    texts: Vec<KernelText>,
}

fn rewrite_image(
    open: &OpenImage<'_>,
    alone: bool,
    config: &Config<'_>,
    options: &Options,
) -> Result<ImageDone, Error> {
    let (image, target) = (&open.image, open.image.target());
    let mut report = ImageReport {
        path: open.path.to_owned(),
        target: target.to_string(),
        kernels: Vec::new(),
        not_named: 0,
        left_alone: None,
        patch: None,
    };
    let mut work: Vec<(&Code<'_>, Vec<&Entry<'_>>)> = Vec::new();
    for code in image.codes() {
        let entries: Vec<_> = config.entries.iter().filter(|e| e.names(target, code.name)).collect();
        match entries.is_empty() {
            true => report.not_named += 1,
            false => work.push((code, entries)),
        }
    }
    if work.is_empty() {
        return Ok(ImageDone {
            bytes: None,
            report,
            texts: Vec::new(),
        });
    }
    let isa = match Isa::for_target(target) {
        Ok(isa) => isa,
        // A library for many GPUs: an entry for "every target" means every target that this build knows.
        Err(e) if !alone && !config.entries.iter().any(|e| e.sm.contains(&target)) => {
            report.not_named = image.codes().len();
            report.left_alone = Some(e.to_string());
            return Ok(ImageDone {
                bytes: None,
                report,
                texts: Vec::new(),
            });
        }
        Err(cause) => {
            return Err(Error::Isa {
                image: open.path.to_owned(),
                cause,
            });
        }
    };
    let done: Vec<KernelDone> = work
        .par_iter()
        .map(|(code, entries)| rewrite_kernel(isa, image, code, entries, options))
        .collect();

    let mut patch = Patch::new(image);
    let mut patched = PatchReport {
        kernels: 0,
        instructions: 0,
        nv_info_updated: false,
    };
    let mut texts = Vec::new();
    for ((code, _), done) in work.iter().zip(done) {
        if let Some(new) = &done.code {
            patch.replace_code(code, new).map_err(|cause| Error::Cubin {
                image: open.path.to_owned(),
                cause,
            })?;
            patched.kernels += 1;
            patched.instructions += done.report.changed;
        }
        if let Some((before, after)) = done.text {
            let (image, target, name) = (open.path.to_owned(), target.to_string(), code.name.to_owned());
            texts.push(KernelText {
                image,
                target,
                name,
                before,
                after,
            });
        }
        report.kernels.push(done.report);
    }
    let changed = patched.kernels > 0;
    report.patch = changed.then_some(patched);
    Ok(ImageDone {
        bytes: changed.then(|| patch.finish()),
        report,
        texts,
    })
}

struct KernelDone {
    /// New code, when it differs.
    code: Option<Vec<u8>>,
    report: KernelReport,
    text: Option<(String, Option<String>)>,
}

fn rewrite_kernel(
    isa: &'static Isa,
    image: &Image<'_>,
    code: &Code<'_>,
    entries: &[&Entry<'_>],
    options: &Options,
) -> KernelDone {
    let mut done = KernelDone {
        code: None,
        text: None,
        report: KernelReport {
            name: code.name.to_owned(),
            target: image.target().to_string(),
            instructions: code.bytes.len() / WORD,
            passes: Vec::new(),
            changed: 0,
            left_alone: None,
        },
    };
    let result = guarded(|| run_passes(isa, image, code, entries, options, &mut done));
    if let Err(why) = result.unwrap_or_else(|panic| Err(format!("panic: {panic}"))) {
        done.code = None;
        done.report.changed = 0;
        done.report.left_alone = Some(why);
        if let Some((_, after)) = &mut done.text {
            *after = None;
        }
    }
    done
}

/// Everything for one kernel that can go wrong; an error is the reason why it stays as it was.
fn run_passes(
    isa: &'static Isa,
    image: &Image<'_>,
    code: &Code<'_>,
    entries: &[&Entry<'_>],
    options: &Options,
    done: &mut KernelDone,
) -> Result<(), String> {
    let source = ir::Source::from_code(image.target(), code);
    let mut kernel = ir::lift(isa, &source).map_err(|e| e.to_string())?;
    if options.keep_text {
        done.text = Some((ir::print_module(std::slice::from_ref(&kernel)), None));
    }
    if let Some(offset) = first_opaque(&kernel) {
        return Err(format!(
            "the instruction at {offset:#06x} is in no table, so what it does is not known"
        ));
    }
    let params = code
        .param_bank
        .map(|b| (u32::from(b.offset), u32::from(b.offset) + u32::from(b.size)));
    let cx = Context { isa, params };
    let mut allowed = AllowedBits::default();
    for entry in entries {
        let mode = if options.report_only { Mode::Report } else { entry.mode };
        let name = entry.pass.name();
        let found = guarded(|| entry.pass.run(&cx, &kernel, &entry.options));
        let found = match found {
            Ok(Ok(found)) => found,
            Ok(Err(refusal)) => {
                done.report.passes.push(pass_report(
                    name,
                    mode,
                    PassResult::default(),
                    Some(refusal.to_string()),
                ));
                continue;
            }
            Err(panic) => {
                let why = format!("pass {name} panicked: {panic}");
                done.report
                    .passes
                    .push(pass_report(name, mode, PassResult::default(), Some(why.clone())));
                if mode == Mode::Report {
                    continue;
                }
                return Err(why);
            }
        };
        if mode == Mode::Apply && !found.edits.edits.is_empty() {
            allowed::by_edits(isa, &kernel, &found.edits, &mut allowed).map_err(|e| format!("pass {name}: {e}"))?;
            kernel
                .apply(isa, &found.edits)
                .map_err(|e| format!("pass {name}: {e}"))?;
        }
        done.report.passes.push(pass_report(name, mode, found, None));
    }
    if done
        .report
        .passes
        .iter()
        .all(|p| p.mode == Mode::Report || p.sites == 0)
    {
        return Ok(());
    }
    let new = ir::lower(&kernel).map_err(|e| e.to_string())?;
    let changed = mask_verify(code.bytes, &new, &allowed).map_err(|e| e.to_string())?;
    if changed == 0 {
        return Ok(());
    }
    if options.keep_text
        && let Some((_, after)) = &mut done.text
    {
        *after = Some(ir::print_module(std::slice::from_ref(&kernel)));
    }
    done.report.changed = changed;
    done.code = Some(new);
    Ok(())
}

fn first_opaque(kernel: &ir::Kernel) -> Option<u64> {
    passes::instructions(kernel)
        .find(|(_, _, inst)| inst.form == isa::FormId::OPAQUE)
        .map(|(offset, ..)| offset)
}

fn pass_report(name: &str, mode: Mode, found: PassResult, refused: Option<String>) -> PassReport {
    PassReport {
        name: name.to_owned(),
        mode,
        sites: found.sites,
        ops: found.ops,
        headline: found.headline,
        skipped: found
            .skipped
            .into_iter()
            .map(|s| SkippedSite {
                offset: s.offset,
                reason: s.reason,
            })
            .collect(),
        notes: found.notes,
        refused,
    }
}

/// Runs something that may panic (a pass may be anybody's code) and gives the panic's message.
fn guarded<T>(f: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(f)).map_err(|payload| {
        let text = payload.downcast_ref::<&str>().map(|s| (*s).to_owned());
        text.or_else(|| payload.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "no message".to_owned())
    })
}
