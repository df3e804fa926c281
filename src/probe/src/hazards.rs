//! The gate: vendor kernels that no number was mined from are free of hazards, and planted faults are found.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result};
use ir::Source;
use isa::{Isa, Target, Word};
use rayon::prelude::*;
use sched::code::Code;
use sched::plant::{self, Fault};
use sched::{Model, Report};

use crate::corpus;
use crate::mine::{cubins, is_mined};
use crate::mutants::{self, Change};
use crate::reasons::{self, Reasons};

/// `probe check-hazards`
#[derive(clap::Args)]
pub struct Args {
    /// Faults to plant for each kind and target, by the model's numbers and by what the compiler's own scheduling bits name; each in a
    /// kernel of its own as far as there are enough
    #[arg(long, default_value_t = 200)]
    plants: usize,

    /// Differences to show
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
    /// Kernels with errors, with something that nobody knows, and whose target is not embedded.
    wrong: usize,
    unknown: usize,
    skipped: usize,
    lines: Vec<String>,
    /// What findings are about.
    reasons: Reasons,
    /// Planted, and found.
    plants: BTreeMap<(Target, Fault), (usize, usize)>,
    /// Changes that the compiler's bits name.
    mutants: BTreeMap<(Target, Change), Mutants>,
    missed: Vec<String>,
}

/// Changes of one kind.
#[derive(Clone, Copy, Default)]
struct Mutants {
    /// Places, and those of which the judge knows that the change is a hazard.
    places: usize,
    judged: usize,
    /// Of these, tried and found.
    tried: usize,
    found: usize,
}

impl Mutants {
    fn add(&mut self, other: Mutants) {
        self.places += other.places;
        self.judged += other.judged;
        self.tried += other.tried;
        self.found += other.found;
    }
}

impl Tally {
    fn add(&mut self, other: Tally) {
        self.kernels += other.kernels;
        self.instructions += other.instructions;
        self.wrong += other.wrong;
        self.unknown += other.unknown;
        self.skipped += other.skipped;
        self.lines.extend(other.lines);
        self.reasons.merge(other.reasons);
        self.missed.extend(other.missed);
        for (key, (planted, found)) in other.plants {
            let sum = self.plants.entry(key).or_default();
            *sum = (sum.0 + planted, sum.1 + found);
        }
        for (key, mutants) in other.mutants {
            self.mutants.entry(key).or_default().add(mutants);
        }
    }

    /// Says what became of the changes that the compiler's bits name. Gives how many were tried and found.
    fn print_mutants(&self) -> (usize, usize) {
        let mut all = Mutants::default();
        for change in Change::ALL {
            let mut sum = Mutants::default();
            let of_kind = self.mutants.iter().filter(|((_, c), _)| *c == change);
            of_kind.for_each(|(_, m)| sum.add(*m));
            all.add(sum);
            println!(
                "  {}: {} places, {} judged a hazard; {} of {} found",
                change.name(),
                sum.places,
                sum.judged,
                sum.found,
                sum.tried
            );
        }
        println!(
            "check-hazards: {} of {} faults at the compiler's own scheduling bits found, {} missed",
            all.found,
            all.tried,
            all.tried - all.found
        );
        (all.tried, all.found)
    }
}

/// What is shared between the files.
struct Gate {
    /// Code that was checked already, by target: each has its own model.
    seen: Mutex<HashSet<(Target, Vec<u8>)>>,
    /// Faults still to be planted.
    open: Mutex<BTreeMap<(Target, Fault), usize>>,
    /// Changes of what the compiler's bits name, still to be tried.
    open_changes: Mutex<BTreeMap<(Target, Change), usize>>,
    plants: usize,
}

/// Runs the gate.
pub fn run(args: &Args) -> Result<ExitCode> {
    let gate = Gate {
        seen: Mutex::default(),
        open: Mutex::default(),
        open_changes: Mutex::default(),
        plants: args.plants,
    };
    let files = cubins(&args.files)?;
    let parts: Result<Vec<Tally>> = files.par_iter().map(|f| gate.file(f)).collect();
    let mut all = Tally::default();
    parts?.into_iter().for_each(|p| all.add(p));
    for line in all.lines.iter().chain(&all.missed).take(args.show) {
        println!("  {line}");
    }
    println!(
        "check-hazards: {} kernels outside of the mining set, {} instructions: {} with hazards, {} without a verdict; {} kernels \
         passed over, their targets are not embedded",
        all.kernels, all.instructions, all.wrong, all.unknown, all.skipped
    );
    all.reasons.print();
    let (mut planted, mut found) = (0, 0);
    for ((target, fault), (n, caught)) in &all.plants {
        println!("  {target} {}: {caught} of {n} found", fault.name());
        (planted, found) = (planted + n, found + caught);
    }
    println!("check-hazards: {found} of {planted} planted faults found");
    let (tried, seen) = all.print_mutants();
    let enough = |planted: usize, found: usize| found * 100 >= planted * 99 && (planted > 0 || args.plants == 0);
    let good = all.kernels > 0 && all.wrong == 0 && enough(planted, found) && enough(tried, seen);
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Gate {
    fn file(&self, path: &Path) -> Result<Tally> {
        let mut tally = Tally::default();
        let bytes = std::fs::read(path).with_context(|| path.display().to_string())?;
        let Some(image) = corpus::image(&bytes).with_context(|| path.display().to_string())? else {
            return Ok(tally);
        };
        let checked = image.codes().iter().filter(|c| !is_mined(c.name));
        let Ok(isa) = Isa::for_target(image.target()) else {
            tally.skipped = checked.count();
            return Ok(tally);
        };
        let model = Model::of(image.target());
        for code in checked {
            let key = (image.target(), code.bytes.to_vec());
            let is_new = self.seen.lock().unwrap_or_else(PoisonError::into_inner).insert(key);
            if is_new {
                let source = Source::from_code(image.target(), code);
                self.kernel(isa, model, &source, &mut tally)
                    .with_context(|| format!("{}: {}", path.display(), code.name))?;
            }
        }
        Ok(tally)
    }

    fn kernel(&self, isa: &'static Isa, model: &Model, source: &Source<'_>, tally: &mut Tally) -> Result<()> {
        let kernel = ir::lift(isa, source)?;
        let report = sched::check(isa, model, &kernel);
        tally.kernels += 1;
        tally.instructions += report.instructions;
        tally.wrong += usize::from(report.errors().next().is_some());
        tally.unknown += usize::from(report.findings.iter().any(|f| !f.hazard.is_error()));
        let lines = report.findings.iter().take(3);
        tally
            .lines
            .extend(lines.map(|f| format!("{} {}: {f}", source.target, source.name)));
        let code = Code::new(isa, model.classes(), &kernel);
        tally
            .reasons
            .add(report.findings.iter().map(|f| reasons::of(&code, model, f)));
        if report.is_clean() {
            self.plant(isa, model, source, &code, tally)?;
            self.mutate(isa, model, source, &code, tally)?;
        }
        Ok(())
    }

    /// Takes one of those that are still to be tried, if there is one.
    fn wanted<K: Ord>(&self, open: &Mutex<BTreeMap<K, usize>>, key: K) -> bool {
        let mut open = open.lock().unwrap_or_else(PoisonError::into_inner);
        let left = open.entry(key).or_insert(self.plants);
        let some = *left > 0;
        *left = left.saturating_sub(1);
        some
    }

    /// Plants one fault of each kind in the kernel, as long as there are not enough of them.
    fn plant(
        &self,
        isa: &'static Isa,
        model: &Model,
        source: &Source<'_>,
        code: &Code,
        tally: &mut Tally,
    ) -> Result<()> {
        let plants = plant::plants(code, model);
        for fault in Fault::ALL {
            let mut random = fastrand::Rng::with_seed(source.code.len() as u64);
            let of_kind: Vec<_> = plants.iter().filter(|p| p.fault == fault).collect();
            let wanted = || self.wanted(&self.open, (source.target, fault));
            let Some(plant) = random.choice(&of_kind).filter(|_| wanted()) else {
                continue;
            };
            let found = broken(isa, model, source, &plant.words)?
                .errors()
                .any(|f| f.at == u64::from(plant.at) * 16);
            let sum = tally.plants.entry((source.target, fault)).or_default();
            *sum = (sum.0 + 1, sum.1 + usize::from(found));
            if !found {
                let (at, earlier) = (plant.at * 16, plant.earlier * 16);
                tally.missed.push(format!(
                    "missed: {} {}: {} between {earlier:#x} and {at:#x}",
                    source.target,
                    source.name,
                    fault.name()
                ));
            }
        }
        Ok(())
    }

    /// Tries one change of each kind at a place that the compiler's bits name, as long as there are not enough of them.
    fn mutate(
        &self,
        isa: &'static Isa,
        model: &Model,
        source: &Source<'_>,
        code: &Code,
        tally: &mut Tally,
    ) -> Result<()> {
        if self.plants == 0 {
            return Ok(());
        }
        let mutants = mutants::mutants(code);
        for change in Change::ALL {
            let of_kind = mutants.iter().filter(|m| m.change == change);
            let judged: Vec<_> = of_kind.clone().filter_map(|m| Some((m, m.victim?))).collect();
            let mut sum = Mutants {
                places: of_kind.count(),
                judged: judged.len(),
                ..Mutants::default()
            };
            let mut random = fastrand::Rng::with_seed(source.code.len() as u64);
            let wanted = || self.wanted(&self.open_changes, (source.target, change));
            if let Some((mutant, victim)) = random.choice(&judged).filter(|_| wanted()) {
                let report = broken(isa, model, source, &[(mutant.at, mutant.word)])?;
                let found = report.errors().next().is_some();
                (sum.tried, sum.found) = (1, usize::from(found));
                if !found {
                    tally.missed.push(format!(
                        "missed: {} {}: {} at {:#x}, on which {:#x} depends",
                        source.target,
                        source.name,
                        change.name(),
                        mutant.at * 16,
                        victim * 16
                    ));
                }
            }
            tally.mutants.entry((source.target, change)).or_default().add(sum);
        }
        Ok(())
    }
}

/// What is wrong with a kernel in which some words are others.
fn broken(isa: &'static Isa, model: &Model, source: &Source<'_>, words: &[(u32, Word)]) -> Result<Report> {
    let mut bytes = source.code.to_vec();
    for (at, word) in words {
        bytes[*at as usize * 16..][..16].copy_from_slice(&word.0.to_le_bytes());
    }
    let source = Source {
        code: &bytes,
        ..source.clone()
    };
    Ok(sched::check(isa, model, &ir::lift(isa, &source)?))
}
