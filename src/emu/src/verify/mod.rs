//! Whether two kernels do the same: both are launched with the same random parameters on the same random memory, and what they leave behind is
//! compared bit for bit.
//!
//! Which parameters are pointers, and how far they reach, the first kernel shows: a parameter of eight bytes is an address in a window of its own,
//! and memory appears where the kernel touches it. The second run gives buffers no more room and no more alignment than the first one used.

mod compare;
mod coverage;
mod inputs;
mod record;

use std::collections::{BTreeMap, BTreeSet};

use crate::error::PrepareError;
use crate::launch::{Launch, LaunchError, launch};
use crate::memory::Memory;
use crate::program::Program;

pub use compare::{Difference, Store};
pub use coverage::Coverage;
pub use inputs::Trial;

use record::Record;

/// How hard to look.
#[derive(Clone, Debug)]
pub struct Options {
    /// Launches that count; those on which the first kernel fails do not.
    pub launches: u32,
    /// Where the random numbers begin.
    pub seed: u64,
    /// Warp instructions after which a launch is given up.
    pub max_steps: u64,
    /// Bytes that a buffer may have.
    pub max_buffer: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            launches: 24,
            seed: 1,
            max_steps: 400_000,
            max_buffer: 1 << 20,
        }
    }
}

/// What came out.
#[derive(Debug)]
pub struct Report {
    /// Launches on which both kernels were compared.
    pub compared: u32,
    /// Launches on which the first kernel failed, by reason.
    pub discarded: BTreeMap<String, u32>,
    /// The first launch on which they differ, made small.
    pub difference: Option<Box<Difference>>,
    /// What was executed of the first kernel.
    pub coverage: Coverage,
    /// And of the second.
    pub coverage_after: Coverage,
}

/// Compares two kernels with the same parameters.
pub fn verify(before: &Program, after: &Program, options: &Options) -> Result<Report, PrepareError> {
    for program in [before, after] {
        if !program.missing.is_empty() {
            return Err(PrepareError::Missing {
                kernel: program.name.clone(),
                list: program.missing.clone(),
            });
        }
    }
    if before.params != after.params {
        return Err(PrepareError::Other {
            kernel: before.name.clone(),
            what: "the two kernels take different parameters".to_owned(),
        });
    }
    let mut report = Report {
        compared: 0,
        discarded: BTreeMap::new(),
        difference: None,
        coverage: Coverage::new(before),
        coverage_after: Coverage::new(after),
    };
    // A kernel on which most launches fail is not tried for ever, and as long as launches reach new code, there are more of them.
    let attempts = options.launches.saturating_mul(8);
    let (mut reached, mut idle) = (0, 0);
    // Byte offsets of parameters that were seen to be addresses.
    let mut pointers = BTreeSet::new();
    for n in 0..attempts {
        if report.compared >= options.launches && idle >= options.launches / 2 {
            break;
        }
        let trial = Trial::random(before, options, n, &pointers);
        match one(before, after, &trial, options, &mut report, &mut pointers) {
            Ok(None) => {
                report.compared += 1;
                let now = report.coverage.reached();
                idle = if now > reached { 0 } else { idle + 1 };
                reached = now;
            }
            Ok(Some(difference)) => {
                report.compared += 1;
                report.difference = Some(Box::new(shrink(before, after, difference, options)));
                break;
            }
            Err(why) => *report.discarded.entry(why).or_default() += 1,
        }
    }
    Ok(report)
}

/// What a kernel did on a trial.
struct Done {
    memory: Memory,
    record: Record<'static>,
    stop: Option<String>,
}

fn run(program: &Program, trial: &Trial, memory: Memory, coverage: Option<&mut Coverage>, options: &Options) -> Done {
    let mut memory = memory;
    let settings = Launch {
        grid: trial.grid,
        block: trial.block,
        dynamic_shared: trial.dynamic_shared,
        params: trial.params(&memory),
        max_steps: options.max_steps,
        initialised: trial.initialised,
        ..Launch::default()
    };
    let mut record = Record::new(coverage);
    let stop = match launch(program, &settings, &mut memory, Some(&mut record)) {
        Ok(_) => None,
        Err(LaunchError::Fault(f)) => Some(f.to_string()),
        Err(LaunchError::Prepare(e)) => Some(e.to_string()),
    };
    Done {
        memory,
        record: record.finish(),
        stop,
    }
}

/// Runs both kernels on one trial. An error says why the first one could not be used.
fn one(
    before: &Program,
    after: &Program,
    trial: &Trial,
    options: &Options,
    report: &mut Report,
    pointers: &mut BTreeSet<u32>,
) -> Result<Option<Difference>, String> {
    // Once on memory that grows, to learn its extent, then on exactly that.
    let probe = run(before, trial, trial.growing(options.max_buffer), None, options);
    pointers.extend(trial.touched(&probe.record));
    if let Some(why) = probe.stop {
        return Err(inputs::reason(&why));
    }
    let exact = trial.exact(&probe.memory, &probe.record);
    let first = run(before, trial, exact.clone(), Some(&mut report.coverage), options);
    if let Some(why) = first.stop {
        return Err(inputs::reason(&why));
    }
    // It may have more instructions: that it takes longer is no difference.
    let patient = Options {
        max_steps: options.max_steps.saturating_mul(4),
        ..options.clone()
    };
    let second = run(after, trial, exact, Some(&mut report.coverage_after), &patient);
    Ok(compare::compare(before, after, trial, &first, &second))
}

/// Looks for a smaller launch on which the kernels still differ.
fn shrink(before: &Program, after: &Program, mut difference: Difference, options: &Options) -> Difference {
    let mut report = Report {
        compared: 0,
        discarded: BTreeMap::new(),
        difference: None,
        coverage: Coverage::new(before),
        coverage_after: Coverage::new(after),
    };
    'smaller: loop {
        for trial in difference.trial.smaller() {
            if let Ok(Some(found)) = one(before, after, &trial, options, &mut report, &mut BTreeSet::new()) {
                difference = found;
                continue 'smaller;
            }
        }
        return difference;
    }
}
