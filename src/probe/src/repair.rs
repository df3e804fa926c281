//! The gate: kernels whose instructions changed places are made free of hazards again, by no more changes than that takes.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result};
use ir::{Kernel, Source};
use isa::{Control, Isa, Target, Word};
use rayon::prelude::*;
use sched::code::Code;
use sched::{Model, plant};

use crate::corpus;
use crate::mine::cubins;

/// `probe check-repair`
#[derive(clap::Args)]
pub struct Args {
    /// One pair of neighbours in about so many instructions changes places
    #[arg(long, default_value_t = 32)]
    every: usize,

    /// Take one kernel in so many
    #[arg(long, default_value_t = 1)]
    sample: usize,

    /// Failures to show
    #[arg(long, default_value_t = 20)]
    show: usize,

    /// Cubins that NVIDIA's compiler made, or folders of them
    #[arg(required = true)]
    files: Vec<PathBuf>,
}

#[derive(Default)]
struct Tally {
    kernels: usize,
    instructions: usize,
    /// Not free of hazards, or not known to be, before anything moved.
    passed_over: usize,
    swaps: usize,
    /// Kernels in which a hazard came up.
    broken: usize,
    changed: usize,
    /// Of the changed words those that could have stayed as they were.
    needless: usize,
    failures: Vec<String>,
}

impl Tally {
    fn add(mut self, other: Tally) -> Tally {
        self.kernels += other.kernels;
        self.instructions += other.instructions;
        self.passed_over += other.passed_over;
        self.swaps += other.swaps;
        self.broken += other.broken;
        self.changed += other.changed;
        self.needless += other.needless;
        self.failures.extend(other.failures);
        self
    }
}

/// Code that was tried already, by target: each has its own model.
pub(crate) type Once = Mutex<HashSet<(Target, Vec<u8>)>>;

/// Calls `f` with the kernels of a file, each once.
pub(crate) fn each_kernel(
    path: &Path,
    once: &Once,
    mut f: impl FnMut(&'static Isa, &Model, &Source<'_>) -> Result<()>,
) -> Result<()> {
    let bytes = std::fs::read(path).with_context(|| path.display().to_string())?;
    let Some(image) = corpus::image(&bytes).with_context(|| path.display().to_string())? else {
        return Ok(());
    };
    let Ok(isa) = Isa::for_target(image.target()) else {
        return Ok(());
    };
    let model = Model::of(image.target());
    for code in image.codes() {
        let key = (image.target(), code.bytes.to_vec());
        if once.lock().unwrap_or_else(PoisonError::into_inner).insert(key) {
            f(isa, model, &Source::from_code(image.target(), code))
                .with_context(|| format!("{}: {}", path.display(), code.name))?;
        }
    }
    Ok(())
}

/// A kernel with other words, the padding behind them as it is.
pub(crate) fn with_words(isa: &'static Isa, source: &Source<'_>, words: &[Word]) -> Result<Kernel> {
    let mut bytes: Vec<u8> = words.iter().flat_map(|w| w.0.to_le_bytes()).collect();
    bytes.extend_from_slice(&source.code[bytes.len()..]);
    let source = Source {
        code: &bytes,
        ..source.clone()
    };
    Ok(ir::lift(isa, &source)?)
}

/// Runs the gate.
pub fn run(args: &Args) -> Result<ExitCode> {
    let once = Once::default();
    let files = cubins(&args.files)?;
    let parts: Result<Vec<Tally>> = files
        .par_iter()
        .map(|file| {
            let mut tally = Tally::default();
            each_kernel(file, &once, |isa, model, source| {
                kernel(args, isa, model, source, &mut tally)
            })?;
            Ok(tally)
        })
        .collect();
    let all = parts?.into_iter().fold(Tally::default(), Tally::add);
    all.failures
        .iter()
        .take(args.show)
        .for_each(|line| println!("  {line}"));
    println!(
        "check-repair: {} kernels, {} instructions, {} pairs moved; {} kernels had hazards then, {} of them could not be repaired; {} words \
         changed, {} of them needlessly; {} kernels passed over, which have no clean verdict as they are",
        all.kernels,
        all.instructions,
        all.swaps,
        all.broken,
        all.failures.len(),
        all.changed,
        all.needless,
        all.passed_over
    );
    let good = all.broken > 0 && all.failures.is_empty() && all.needless == 0;
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn kernel(args: &Args, isa: &'static Isa, model: &Model, source: &Source<'_>, tally: &mut Tally) -> Result<()> {
    let mut random = fastrand::Rng::with_seed(source.code.len() as u64);
    if random.usize(0..args.sample.max(1)) > 0 {
        return Ok(());
    }
    let kernel = ir::lift(isa, source)?;
    if !sched::check(isa, model, &kernel).is_clean() {
        tally.passed_over += 1;
        return Ok(());
    }
    let code = Code::new(isa, model.classes(), &kernel);
    let (words, swapped) = plant::shuffled(&code, code.steps.len() / args.every + 1, &mut |n| random.usize(0..n));
    let moved = with_words(isa, source, &words)?;
    tally.kernels += 1;
    tally.instructions += words.len();
    tally.swaps += swapped;
    if sched::check(isa, model, &moved).is_clean() {
        return Ok(());
    }
    tally.broken += 1;
    let mut fail = |why: String| tally.failures.push(format!("{} {}: {why}", source.target, source.name));
    let repaired = match sched::repair(isa, model, &moved) {
        Ok(repaired) => repaired,
        Err(e) => {
            fail(e.to_string());
            return Ok(());
        }
    };
    let clean = |words: &[Word]| Ok::<_, anyhow::Error>(sched::check(isa, model, &with_words(isa, source, words)?));
    if let Some(left) = clean(&repaired.code.words())?.findings.first() {
        fail(format!("repaired, and yet {left}"));
    }
    tally.changed += repaired.changed.len();
    // One of the words that changed is put back: then there must be a hazard.
    if let Some(&at) = random.choice(&repaired.changed) {
        let mut words_ = repaired.code.words();
        words_[at as usize] = Control::of(words[at as usize]).apply(words_[at as usize]);
        tally.needless += usize::from(clean(&words_)?.is_clean());
    }
    Ok(())
}
