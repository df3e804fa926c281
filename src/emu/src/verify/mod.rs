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
    run_in_turns(program, trial, memory, coverage, options, Launch::default().turn)
}

fn run_in_turns(
    program: &Program,
    trial: &Trial,
    mut memory: Memory,
    coverage: Option<&mut Coverage>,
    options: &Options,
    turn: u64,
) -> Done {
    let settings = Launch {
        turn,
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
    let difference = compare::compare(before, after, trial, &first, &second);
    let other = |turn| {
        let exact = trial.exact(&probe.memory, &probe.record);
        let done = run_in_turns(before, trial, exact, None, &patient, turn);
        compare::compare(before, before, trial, &first, &done).is_some()
    };
    // Another kernel need not take as long until a warp's turn is over.
    if difference.is_some() && TURNS.into_iter().any(other) {
        return Err("what it leaves behind depends on which warp goes first".to_owned());
    }
    Ok(difference)
}

/// Instructions of a warp's turn with which a kernel is tried whose warps may be in each other's way.
const TURNS: [u64; 4] = [1, 7, 100, 1_000];

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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use cubin::{Image, Patch};
    use isa::asm::{Assembler, Statement};
    use isa::{Control, Isa, Word};

    use super::*;

    /// `scale_add` with other instructions at some byte offsets.
    fn scale_add(changes: &[(usize, &str)]) -> Program {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/kernels/sm_87/own_mul_mat.cubin");
        let file = std::fs::read(path).expect("a file of the project");
        let image = Image::parse(&file).expect("parses");
        let code = image.code("scale_add").expect("is there");
        let mut bytes = code.bytes.to_vec();
        let mut assembler = Assembler::new(Isa::for_target(image.target()).expect("embedded"));
        for (offset, text) in changes {
            let word = &mut bytes[*offset..*offset + 16];
            let control = Control::of(Word::all(word).next().expect("a word"));
            let statement = Statement {
                text,
                ..Statement::default()
            };
            let inst = assembler.assemble(&statement, control).expect("assembles");
            word.copy_from_slice(&inst.word.to_le_bytes());
        }
        let mut patch = Patch::new(&image);
        patch.replace_code(code, &bytes).expect("fits");
        let file = patch.finish();
        Program::new(&Image::parse(&file).expect("parses"), "scale_add").expect("a program")
    }

    /// Launches of so many threads that say nothing, since warps are in each other's way.
    fn set_aside(before: &Program, after: &Program, threads: u32) -> usize {
        let options = Options::default();
        let mut report = verify(before, before, &options).expect("runs");
        let mut aside = |n: &u32| {
            let mut trial = Trial::random(before, &options, *n, &BTreeSet::from([0, 8]));
            (trial.grid, trial.block) = ([1; 3], [threads, 1, 1]);
            let done = one(before, after, &trial, &options, &mut report, &mut BTreeSet::new());
            done.is_err_and(|why| why.contains("which warp goes first"))
        };
        (0..32).filter(|n| aside(n)).count()
    }

    #[test]
    fn launches_whose_warps_race_say_nothing() {
        // Every thread reads, doubles and writes the same number, or adds another one to it.
        let all = (0x190, "NOP");
        let one_place = [
            (0x1c0, "IMAD.WIDE R2, RZ, R5, c[0x0][0x168]"),
            (0x1f0, "IMAD.WIDE R4, RZ, R5, c[0x0][0x168]"),
        ];
        let [double, add] = ["FADD R7, R2, R2", "FADD R7, R2, R7"].map(|text| (0x200, text));
        let racing = |sum| scale_add(&[all, one_place[0], one_place[1], sum]);
        assert!(set_aside(&racing(double), &racing(add), 64) > 0);
        assert_eq!(set_aside(&racing(double), &racing(add), 32), 0);
        assert_eq!(set_aside(&scale_add(&[all, double]), &scale_add(&[all, add]), 64), 0);
    }
}
