//! Passes over the kernels of a file: lift, passes in order, edits, lowering, mask-verify, patch in place.

use std::collections::BTreeMap;

use cubin::code::Code;
use cubin::{CodeMove, CubinError, Image, Patch};
use ir::Kernel;
use isa::Isa;
use passes::Pass;
use rayon::prelude::*;
use sched::Model;

use crate::Error;
use crate::config::{Config, Entry, Mode};
use crate::cost::Costs;
use crate::mask::WORD;
use crate::open::{OpenImage, Opened, Which};
use crate::placed::Placed;
use crate::report::{ImageReport, KernelReport, PassReport, PatchReport, Report};
use crate::representation::{Internal, Job, Ran, Representation};
use crate::reschedule;
use crate::resources;
use crate::schedule::{self, Timed};
use crate::step::{Place, guarded};

/// How to run.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Only these images.
    pub images: Which,
    /// Treat every entry as if its mode were `report`.
    pub report_only: bool,
    /// Keep the text of each named kernel before and after.
    pub keep_text: bool,
    /// Kernels that are to stay as they are whatever the passes say: by image (as in the report) and name, the reason.
    pub vetoes: BTreeMap<(String, String), String>,
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
    apply_in(&Internal, bytes, config, options)
}

/// [`apply`] with kernels held in `representation` while passes run.
pub fn apply_in(
    representation: &dyn Representation,
    bytes: &[u8],
    config: &Config<'_>,
    options: &Options,
) -> Result<Outcome, Error> {
    let opened = Opened::new(bytes)?;
    let images = opened.images(options.images)?;
    let mut report = Report {
        images: Vec::new(),
        passed_over: images.passed_over,
    };
    let (mut replaced, mut texts) = (Vec::new(), Vec::new());
    let alone = images.list.len() == 1;
    for open in &images.list {
        let done = rewrite_image(representation, open, alone, config, options)?;
        replaced.extend(done.bytes.map(|b| (open.index, b)));
        texts.extend(done.texts);
        report.images.push(done.report);
    }
    let bytes = match opened.rebuild(&replaced) {
        Ok(bytes) => bytes,
        Err(_) => {
            // Images for which the file has no room stay as they were.
            replaced.retain(|one| {
                let refused = opened.rebuild(std::slice::from_ref(one)).err();
                let open = images.list.iter().find(|open| open.index == one.0);
                if let (Some(why), Some(open)) = (&refused, open) {
                    leave_alone(open.path, &why.to_string(), &mut report, &mut texts);
                }
                refused.is_none()
            });
            opened.rebuild(&replaced)?
        }
    };
    let bytes = (!replaced.is_empty()).then_some(bytes);
    Ok(Outcome { bytes, report, texts })
}

/// Nothing of an image is rewritten after all.
fn leave_alone(image: &str, why: &str, report: &mut Report, texts: &mut [KernelText]) {
    for image in report.images.iter_mut().filter(|i| i.path == image) {
        image.patch = None;
        for kernel in image.kernels.iter_mut().filter(|k| k.changed > 0) {
            (kernel.changed, kernel.rescheduled) = (0, 0);
            (kernel.registers, kernel.raised_maximum) = (None, None);
            kernel.left_alone = Some(why.to_owned());
        }
    }
    for text in texts.iter_mut().filter(|t| t.image == image) {
        text.after = None;
    }
}

struct ImageDone {
    bytes: Option<Vec<u8>>,
    report: ImageReport,
    texts: Vec<KernelText>,
}

/// A kernel of the file with the entries that name it, by position in the configuration.
type Work<'c, 'e> = (&'c Code<'c>, Vec<(usize, &'e Entry<'e>)>);

fn rewrite_image(
    representation: &dyn Representation,
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
    let mut work: Vec<Work<'_, '_>> = Vec::new();
    for code in image.codes() {
        let entries = config.entries.iter().enumerate();
        let entries: Vec<_> = entries.filter(|(_, e)| e.names(target, code.name)).collect();
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
    let done = rewrite_kernels(representation, isa, image, &work, options);

    let mut dones: Vec<KernelDone> = Vec::new();
    for ((code, _), done) in work.iter().zip(done) {
        dones.push(
            match options.vetoes.get(&(open.path.to_owned(), code.name.to_owned())) {
                Some(why) => done.left_alone(why.clone()),
                None => done,
            },
        );
    }
    let bytes = written(open, &work, &mut dones, &mut report)?;
    let mut texts = Vec::new();
    for ((code, _), done) in work.iter().zip(dones) {
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
    Ok(ImageDone { bytes, report, texts })
}

/// The image with the new code in it; `None` if there is none. Kernels whose instructions cannot have other places in this file stay as they
/// were.
fn written(
    open: &OpenImage<'_>,
    work: &[Work<'_, '_>],
    dones: &mut [KernelDone],
    report: &mut ImageReport,
) -> Result<Option<Vec<u8>>, Error> {
    let image = &open.image;
    let failed = |cause| Error::Cubin {
        image: open.path.to_owned(),
        cause,
    };
    let patched = |dones: &[KernelDone]| {
        let mut patch = Patch::new(image);
        for ((code, _), done) in work.iter().zip(dones) {
            if let Some(new) = done.code.as_ref().filter(|new| new.moved.is_none()) {
                patch.replace_code(code, &new.code).map_err(failed)?;
            }
        }
        Ok(patch.finish())
    };
    let mut bytes = patched(dones)?;
    let moves: Vec<CodeMove> = dones.iter().filter_map(|d| d.code.as_ref()?.moved.clone()).collect();
    if !moves.is_empty() {
        let moved = Image::parse(&bytes).and_then(|image| cubin::movement::move_code(&image, &moves));
        match moved {
            Ok(moved) => bytes = moved,
            Err(why) => {
                let is_moved = |d: &&mut KernelDone| d.code.as_ref().is_some_and(|new| new.moved.is_some());
                for done in dones.iter_mut().filter(is_moved) {
                    done.leave_alone(why.to_string());
                }
            }
        }
    }
    let changed = || dones.iter().filter(|d| d.code.is_some());
    if changed().next().is_none() {
        return Ok(None);
    }
    bytes = with_registers(bytes, work, dones).map_err(failed)?;
    let moved = changed().filter(|d| d.code.as_ref().is_some_and(|new| new.moved.is_some()));
    report.patch = Some(PatchReport {
        kernels: changed().count(),
        instructions: changed().map(|d| d.report.changed).sum(),
        moved: moved.clone().count(),
        grown: bytes.len() as i64 - image.bytes().len() as i64,
        nv_info_updated: moved.count() > 0 || changed().any(|d| d.report.registers.is_some()),
    });
    Ok(Some(bytes))
}

/// Sets the register counts of kernels that need others now.
fn with_registers(bytes: Vec<u8>, work: &[Work<'_, '_>], dones: &[KernelDone]) -> Result<Vec<u8>, CubinError> {
    let changed = work.iter().zip(dones);
    let changed: BTreeMap<usize, u32> = changed
        .filter_map(|((code, _), done)| Some((code.section, done.report.registers?)))
        .collect();
    if changed.is_empty() {
        return Ok(bytes);
    }
    let image = Image::parse(&bytes)?;
    let mut patch = Patch::new(&image);
    for code in image.codes() {
        if let Some(count) = changed.get(&code.section) {
            patch.set_registers(code, *count)?;
        }
    }
    Ok(patch.finish())
}

/// New code for a kernel.
struct NewCode {
    code: Vec<u8>,
    /// Where its instructions went, if they have other places.
    moved: Option<CodeMove>,
}

struct KernelDone {
    /// New code, when it differs.
    code: Option<NewCode>,
    report: KernelReport,
    text: Option<(String, Option<String>)>,
}

impl KernelDone {
    fn new(image: &Image<'_>, code: &Code<'_>) -> KernelDone {
        KernelDone {
            code: None,
            text: None,
            report: KernelReport {
                name: code.name.to_owned(),
                target: image.target().to_string(),
                instructions: code.bytes.len() / WORD,
                passes: Vec::new(),
                changed: 0,
                rescheduled: 0,
                registers: None,
                raised_maximum: None,
                left_alone: None,
                costs: None,
                verified: None,
            },
        }
    }

    /// The kernel stays as it was.
    fn left_alone(mut self, why: String) -> KernelDone {
        self.leave_alone(why);
        self
    }

    fn leave_alone(&mut self, why: String) {
        self.code = None;
        (self.report.changed, self.report.rescheduled) = (0, 0);
        (self.report.registers, self.report.raised_maximum) = (None, None);
        self.report.left_alone = Some(why);
        if let Some((_, after)) = &mut self.text {
            *after = None;
        }
    }
}

/// All kernels of an image that the configuration names: lift, passes, lower. What goes wrong for one is a reason in its report.
fn rewrite_kernels(
    representation: &dyn Representation,
    isa: &'static Isa,
    image: &Image<'_>,
    work: &[Work<'_, '_>],
    options: &Options,
) -> Vec<KernelDone> {
    let lifted: Vec<(KernelDone, Result<Job<'_>, String>)> = work
        .par_iter()
        .map(|(code, entries)| {
            let mut done = KernelDone::new(image, code);
            let job = guarded(|| lift(isa, image, code, entries, options, &mut done));
            (done, job.unwrap_or_else(|panic| Err(format!("panic: {panic}"))))
        })
        .collect();
    let (mut jobs, mut waiting, mut all) = (Vec::new(), Vec::new(), Vec::new());
    for ((code, _), (done, job)) in work.iter().zip(lifted) {
        match job {
            Ok(job) => {
                jobs.push(job);
                waiting.push((all.len(), *code, done));
                all.push(None);
            }
            Err(why) => all.push(Some(done.left_alone(why))),
        }
    }
    let ran = representation.run(jobs);
    let finished: Vec<(usize, KernelDone)> = waiting
        .into_par_iter()
        .zip(ran)
        .map(|((at, code, done), ran)| {
            // Who only reports has no say in what becomes of the kernel.
            let apply = work[at].1.iter().filter(|(_, entry)| entry.mode == Mode::Apply);
            let passes: Vec<&dyn Pass> = apply.map(|(_, entry)| entry.pass).collect();
            (at, finish(isa, image, code, done, ran, &passes))
        })
        .collect();
    for (at, done) in finished {
        all[at] = Some(done);
    }
    all.into_iter().flatten().collect()
}

/// The kernel and the passes that are to run on it.
fn lift<'c>(
    isa: &'static Isa,
    image: &'c Image<'c>,
    code: &Code<'_>,
    entries: &[(usize, &'c Entry<'c>)],
    options: &Options,
    done: &mut KernelDone,
) -> Result<Job<'c>, String> {
    let source = ir::Source::from_code(image.target(), code);
    let kernel = ir::lift(isa, &source).map_err(|e| e.to_string())?;
    if options.keep_text {
        done.text = Some((ir::print_module(std::slice::from_ref(&kernel)), None));
    }
    if let Some(offset) = first_opaque(&kernel) {
        return Err(format!(
            "the instruction at {offset:#06x} is in no table, so what it does is not known"
        ));
    }
    let params = code.param_bank;
    let mode = |entry: &Entry<'_>| if options.report_only { Mode::Report } else { entry.mode };
    Ok(Job {
        isa,
        image,
        section: code.section,
        place: Place {
            params: params.map(|b| (u32::from(b.offset), u32::from(b.offset) + u32::from(b.size))),
            pinned: pinned(isa, code, &kernel),
            resources: resources::of(image, code),
        },
        entries: entries.iter().map(|&(at, entry)| (at, entry, mode(entry))).collect(),
        kernel,
    })
}

/// Byte offsets, ascending, of what has to stay what and where it is: what the file names, and collectives.
fn pinned(isa: &Isa, code: &Code<'_>, kernel: &ir::Kernel) -> Vec<u64> {
    let mut offsets = reschedule::pinned(code);
    let collectives = ir::collectives(isa, kernel);
    if !collectives.is_empty() {
        let of_one = |op: ir::OpId| collectives.iter().any(|c| c.holds(op));
        let code = passes::instructions(kernel).filter(|(_, op, _)| of_one(*op));
        offsets.extend(code.map(|(offset, ..)| offset));
        offsets.sort_unstable();
        offsets.dedup();
    }
    offsets
}

/// Lowers what the passes made, holds it against what their edits name and what the file says of single instructions, and sees to it that
/// it has no new hazards.
fn finish(
    isa: &'static Isa,
    image: &Image<'_>,
    code: &Code<'_>,
    mut done: KernelDone,
    ran: Result<Ran, String>,
    passes: &[&dyn Pass],
) -> KernelDone {
    let mut ran = match ran {
        Ok(ran) => ran,
        Err(why) => return done.left_alone(why),
    };
    done.report.passes = std::mem::take(&mut ran.passes);
    if let Some(why) = ran.failed {
        return done.left_alone(why);
    }
    let nothing = |p: &PassReport| p.mode == Mode::Report || p.sites == 0;
    if done.report.passes.iter().all(nothing) {
        return done;
    }
    let for_gain = passes.iter().all(|pass| pass.is_for_gain());
    let lifted = ran.lifted.take();
    let made = guarded(|| made(isa, image, code, &ran, lifted, for_gain));
    let made = match made.unwrap_or_else(|panic| Err(format!("panic: {panic}"))) {
        Ok(made) => made,
        Err(why) => return done.left_alone(why),
    };
    let (placed, changed) = (made.placed, made.changed);
    if changed == 0 {
        return done;
    }
    let gives_back = passes.iter().any(|pass| pass.gives_registers_back());
    match resources::registers(isa, image, code, &placed.code, gives_back) {
        Ok(count) => {
            done.report.registers = count;
            done.report.raised_maximum = code.most_registers().filter(|most| count.is_some_and(|n| n > *most));
        }
        Err(why) => return done.left_alone(why),
    }
    done.report.costs = made.costs;
    let gave_back = done.report.registers.is_some() && done.report.registers < code.registers;
    if let Some(why) = made.costs.and_then(|c| c.held_back()).filter(|_| !gave_back) {
        return done.left_alone(why);
    }
    if let Some((_, after)) = &mut done.text {
        let kernel = ir::lift(isa, &placed.source()).ok();
        *after = kernel.map(|kernel| ir::print_module(std::slice::from_ref(&kernel)));
    }
    (done.report.changed, done.report.rescheduled) = (changed, made.rescheduled);
    done.code = Some(NewCode {
        code: placed.code,
        moved: placed.moved,
    });
    done
}

/// New code with scheduling bits that guard it.
struct Made<'c> {
    placed: Placed<'c>,
    /// Instructions that are others, came or went.
    changed: usize,
    /// Words that needed other scheduling bits.
    rescheduled: usize,
    /// What the passes cost and bring, where they run for gain.
    costs: Option<Costs>,
}

fn made<'c>(
    isa: &'static Isa,
    image: &Image<'_>,
    code: &Code<'c>,
    ran: &Ran,
    lifted: Option<Kernel>,
    for_gain: bool,
) -> Result<Made<'c>, String> {
    let model = Model::of(image.target());
    let before = match lifted {
        Some(kernel) => Timed::of(isa, kernel),
        None => Timed::lift(isa, &ir::Source::from_code(image.target(), code))?,
    };
    let mut placed = Placed::new(isa, image, code, &before.kernel, &ran.kernel, &ran.allowed)?;
    let mut after = Timed::lift(isa, &placed.source())?;
    if placed.code != code.bytes {
        ir::same_collectives(isa, &before.kernel, &after.kernel)?;
    }
    let now = |at| placed.now(at);
    let repaired = schedule::repair(model, &before, &mut after, &placed.code, &now, ran.allowed.replaced())?;
    let rescheduled = repaired.map_or(0, |(code, words)| {
        placed.put(code);
        words
    });
    let changed = placed.changed();
    Ok(Made {
        costs: (for_gain && changed > 0).then(|| Costs::of(model, &before, &after)),
        placed,
        changed,
        rescheduled,
    })
}

fn first_opaque(kernel: &ir::Kernel) -> Option<u64> {
    passes::instructions(kernel)
        .find(|(_, _, inst)| inst.form == isa::FormId::OPAQUE)
        .map(|(offset, ..)| offset)
}
