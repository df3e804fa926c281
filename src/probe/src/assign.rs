//! The gate: scheduling bits thrown away and assigned from scratch are free of hazards and as quick as NVIDIA's.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use ir::Source;
use isa::{Isa, Target, Word};
use rayon::prelude::*;
use sched::code::Code;
use sched::{Model, time};

use crate::mine::cubins;
use crate::reasons::{self, Reasons};
use crate::repair::{Once, each_kernel, with_words};

/// `probe check-assign`
#[derive(clap::Args)]
pub struct Args {
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

/// What the scheduling bits of code cost on the straight way through it.
#[derive(Clone, Copy, Default)]
struct Cost {
    /// Sum of the stall counts.
    issue: u64,
    /// Cycles with the waits, memory of fixed latency.
    modelled: u64,
    /// Scoreboards waited for.
    waits: u64,
}

impl Cost {
    fn of(code: &Code, model: &Model) -> Cost {
        let (issue, modelled) = time::straight(code, model);
        Cost {
            issue,
            modelled,
            waits: code.steps.iter().map(|s| u64::from(s.control.wait.count_ones())).sum(),
        }
    }
}

#[derive(Default)]
struct Tally {
    kernels: usize,
    instructions: usize,
    /// No clean verdict with the bits that they have.
    passed_over: usize,
    refused: usize,
    /// What stood in the way of those.
    reasons: Reasons,
    hazards: usize,
    old: Cost,
    new: Cost,
    /// Sums of the logarithms of new to old.
    issue: f64,
    modelled: f64,
    lines: Vec<String>,
}

impl Tally {
    fn add(&mut self, other: Tally) {
        self.kernels += other.kernels;
        self.instructions += other.instructions;
        self.passed_over += other.passed_over;
        self.hazards += other.hazards;
        self.refused += other.refused;
        self.reasons.merge(other.reasons);
        for (mine, theirs) in [(&mut self.old, other.old), (&mut self.new, other.new)] {
            mine.issue += theirs.issue;
            mine.modelled += theirs.modelled;
            mine.waits += theirs.waits;
        }
        self.issue += other.issue;
        self.modelled += other.modelled;
        self.lines.extend(other.lines);
    }
}

/// Runs the gate.
pub fn run(args: &Args) -> Result<ExitCode> {
    let once = Once::default();
    let files = cubins(&args.files)?;
    let parts: Result<Vec<BTreeMap<Target, Tally>>> = files
        .par_iter()
        .map(|file| {
            let mut by_target: BTreeMap<Target, Tally> = BTreeMap::new();
            each_kernel(file, &once, |isa, model, source| {
                kernel(args, isa, model, source, by_target.entry(source.target).or_default())
            })?;
            Ok(by_target)
        })
        .collect();
    let mut all: BTreeMap<Target, Tally> = BTreeMap::new();
    for (target, tally) in parts?.into_iter().flatten() {
        all.entry(target).or_default().add(tally);
    }
    let mut good = !all.is_empty();
    for (target, t) in &all {
        t.lines.iter().take(args.show).for_each(|line| println!("  {line}"));
        let mean = |sum: f64| (sum / t.kernels.max(1) as f64).exp();
        let (issue, modelled) = (mean(t.issue), mean(t.modelled));
        let waits = t.new.waits as f64 / t.old.waits.max(1) as f64;
        println!(
            "check-assign: {target}: {} kernels, {} instructions: {} with hazards; stall counts {issue:.3} of NVIDIA's (all code {:.3}), \
             modelled cycles {modelled:.3} ({:.3}), waits {waits:.3}; {} refused, {} without a clean verdict as they are",
            t.kernels,
            t.instructions,
            t.hazards,
            t.new.issue as f64 / t.old.issue.max(1) as f64,
            t.new.modelled as f64 / t.old.modelled.max(1) as f64,
            t.refused,
            t.passed_over
        );
        t.reasons.print();
        good &= t.hazards == 0 && issue <= 1.05 && modelled <= 1.10 && waits <= 1.10;
    }
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn kernel(args: &Args, isa: &'static Isa, model: &Model, source: &Source<'_>, tally: &mut Tally) -> Result<()> {
    let mut random = fastrand::Rng::with_seed(source.code.len() as u64);
    if random.usize(0..args.sample.max(1)) > 0 {
        return Ok(());
    }
    let kernel = ir::lift(isa, source)?;
    let code = Code::new(isa, model.classes(), &kernel);
    let report = sched::check(isa, model, &kernel);
    if !report.is_clean() {
        tally.passed_over += 1;
        tally
            .reasons
            .add(report.findings.iter().map(|f| reasons::of(&code, model, f)));
        return Ok(());
    }
    let words: Vec<Word> = match sched::assign(isa, model, &kernel) {
        Ok(words) => words,
        Err(e) => {
            let at = reasons::named(&code, model, &code.steps[(e.offset / 16) as usize]);
            tally.lines.push(format!("{} {}: {e}", source.target, source.name));
            tally.refused += 1;
            tally
                .reasons
                .add([format!("{} refused: {at}: {}", source.target, e.why)]);
            return Ok(());
        }
    };
    let again = with_words(isa, source, &words)?;
    let report = sched::check(isa, model, &again);
    if let Some(left) = report.findings.first() {
        tally.hazards += 1;
        tally.lines.push(format!("{} {}: {left}", source.target, source.name));
    }
    let old = Cost::of(&code, model);
    let new = Cost::of(&Code::new(isa, model.classes(), &again), model);
    let ratio = |new: u64, old: u64| (new.max(1) as f64 / old.max(1) as f64).ln();
    tally.add(Tally {
        kernels: 1,
        instructions: words.len(),
        old,
        new,
        issue: ratio(new.issue, old.issue),
        modelled: ratio(new.modelled, old.modelled),
        ..Tally::default()
    });
    Ok(())
}
