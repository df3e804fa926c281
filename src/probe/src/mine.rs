//! Latencies from vendor code: the least gap that a compiler ever leaves between two instructions is no less than the hardware needs.
//!
//! A place counts where no scoreboard tells of the result, both guards can hold, the later instruction truly touches the register, and the
//! control flow has a way between the two without a stall of 0 or another write of it; the gap is the sum of stall counts on the shortest
//! way. Kernels are mined or checked, never both: [`is_mined`].

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result};
use cubin::Image;
use isa::{Isa, Latency, Target};
use rayon::prelude::*;
use sched::class::ClassId;
use sched::code::{Code, Port, Step};
use sched::model::STALL;
use sched::state::{FAR, Flight};
use sched::walk::{self, Dependence, Kind, Listener, Rules};
use sched::{Model, Source};

/// `probe mine`
#[derive(clap::Args)]
pub struct Args {
    /// The target; cubins for it and for those that share its table are mined
    #[arg(long, value_name = "SM")]
    sm: Target,

    /// Where to write the rows: src/sched/latency/SM87.csv and the like
    #[arg(long, value_name = "FILE")]
    out: PathBuf,

    /// Write what NAK has a number for, too: to see how near vendor code comes
    #[arg(long)]
    every: bool,

    /// Cubins that NVIDIA's compiler made, or folders of them; those for other families are passed over
    #[arg(required = true)]
    files: Vec<PathBuf>,
}

/// Places and kernels with the least gap, below which it is not believed.
const SITES: u32 = 8;
const KERNELS: usize = 3;
/// As many, and a compiler that never goes lower knows of a longer latency than NAK.
const OVERRULING: (u32, usize) = (100, 20);
/// A fixed latency is no longer.
const LONGEST: u16 = 64;

/// Whether numbers may be taken from a kernel: if the FNV-1a hash of its name is odd. The others are for checking.
pub fn is_mined(kernel: &str) -> bool {
    let hash = |h: u64, b: u8| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3);
    kernel.bytes().fold(0xcbf2_9ce4_8422_2325, hash) & 1 == 1
}

/// Cubins, and those below folders. What is not there is an error: a gate over nothing would say nothing.
pub fn cubins(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for path in paths {
        let about = std::fs::metadata(path).with_context(|| path.display().to_string())?;
        if about.is_dir() {
            let entries = std::fs::read_dir(path).with_context(|| path.display().to_string())?;
            let inside: std::io::Result<Vec<PathBuf>> = entries.map(|e| e.map(|e| e.path())).collect();
            found.extend(cubins(&inside?)?);
        } else if path.extension().is_some_and(|e| e == "cubin") {
            found.push(path.clone());
        }
    }
    found.sort();
    Ok(found)
}

type Pair = (Kind, Port, ClassId, ClassId);

/// By gap: places, and the kernels that they are in.
#[derive(Clone, Default)]
struct Gaps(BTreeMap<u16, (u32, BTreeSet<u64>)>);

impl Gaps {
    fn add(&mut self, gap: u16, sites: u32, kernels: impl IntoIterator<Item = u64>) {
        let at = self.0.entry(gap).or_default();
        at.0 += sites;
        at.1.extend(kernels);
    }

    /// The least gap, if enough places have it.
    fn floor(&self) -> Option<(u16, u32, usize)> {
        let (gap, (sites, kernels)) = self.0.first_key_value()?;
        (*sites >= SITES && kernels.len() >= KERNELS).then_some((*gap, *sites, kernels.len()))
    }
}

/// What was seen: without, and with a wait for some scoreboard between the two.
#[derive(Default)]
struct Seen {
    pairs: BTreeMap<Pair, [Gaps; 2]>,
    /// Stall counts behind each mnemonic.
    stalls: BTreeMap<String, Gaps>,
    kernels: usize,
    instructions: usize,
}

impl Seen {
    fn merge(mut self, other: Seen) -> Seen {
        for (pair, gaps) in other.pairs {
            let mine = self.pairs.entry(pair).or_default();
            for (mine, theirs) in mine.iter_mut().zip(gaps) {
                theirs
                    .0
                    .into_iter()
                    .for_each(|(gap, (n, kernels))| mine.add(gap, n, kernels));
            }
        }
        for (mnemonic, gaps) in other.stalls {
            let mine = self.stalls.entry(mnemonic).or_default();
            let all = gaps.0.into_iter();
            all.for_each(|(stall, (n, kernels))| mine.add(stall, n, kernels));
        }
        self.kernels += other.kernels;
        self.instructions += other.instructions;
        self
    }
}

struct Miner<'a> {
    seen: &'a mut Seen,
    model: &'a Model,
    kernel: u64,
}

impl Listener for Miner<'_> {
    fn dependence(&mut self, code: &Code, d: &Dependence) {
        let (earlier, later) = (&code.steps[d.flight.step as usize], &code.steps[d.at as usize]);
        let known = earlier.class.is_some() && later.class.is_some();
        let (reads, _) = self.model.in_order(d.flight.class, d.class);
        let told = match d.kind {
            Kind::Raw => d.flight.release != 0 || earlier.latency == Latency::Scoreboard,
            Kind::War => d.flight.release != 0 || reads,
            // Registers are rarely overwritten as soon as they may be: the model derives that from how long both take.
            Kind::Waw => true,
        };
        if known && !told && d.flight.elapsed < FAR {
            let pair = (d.kind, d.port, d.flight.class, d.class);
            let gaps = self.seen.pairs.entry(pair).or_default();
            gaps[usize::from(d.flight.waited)].add(d.flight.elapsed, 1, [self.kernel]);
        }
    }

    fn wait(&mut self, _: &Code, _: u32, _: &Flight) {}
}

/// The rules of the model, but nothing is done before [`LONGEST`].
struct Patient<'m>(&'m Model);

impl Rules for Patient<'_> {
    fn reads_late(&self, step: &Step, port: Port) -> bool {
        self.0.reads_late(step, port)
    }

    fn in_order(&self, earlier: ClassId, later: ClassId) -> (bool, bool) {
        self.0.in_order(earlier, later)
    }

    fn drains_reads(&self, step: &Step) -> bool {
        self.0.drains_reads(step)
    }

    fn limit(&self, code: &Code, flight: &Flight) -> u16 {
        match code.steps[flight.step as usize].latency {
            Latency::Fixed => LONGEST,
            _ => FAR,
        }
    }
}

/// Runs the command.
pub fn run(args: &Args) -> Result<ExitCode> {
    let model = Model::of_nak(args.sm);
    let files = cubins(&args.files)?;
    let once = Mutex::default();
    let parts: Result<Vec<Seen>> = files.par_iter().map(|f| mine(args.sm, &model, f, &once)).collect();
    let seen = parts?.into_iter().fold(Seen::default(), Seen::merge);
    println!("mine: {} kernels, {} instructions", seen.kernels, seen.instructions);
    std::fs::write(&args.out, rows(&model, &seen, args.every)).with_context(|| args.out.display().to_string())?;
    Ok(ExitCode::SUCCESS)
}

/// Code that was mined already: a library has the same code for several targets of a family.
type Once = Mutex<HashSet<Vec<u8>>>;

fn mine(sm: Target, model: &Model, path: &Path, once: &Once) -> Result<Seen> {
    let mut seen = Seen::default();
    let bytes = std::fs::read(path).with_context(|| path.display().to_string())?;
    let Ok(image) = Image::parse(&bytes) else {
        return Ok(seen);
    };
    if !Model::is_shared(image.target(), sm) {
        return Ok(seen);
    }
    let isa = Isa::for_target(image.target())?;
    for code in image.codes().iter().filter(|c| is_mined(c.name)) {
        let mut once = once.lock().unwrap_or_else(PoisonError::into_inner);
        if !once.insert(code.bytes.to_vec()) {
            continue;
        }
        drop(once);
        let kernel = ir::lift(isa, &ir::Source::from_code(image.target(), code))?;
        let code_ = Code::new(isa, model.classes(), &kernel);
        seen.kernels += 1;
        seen.instructions += code_.steps.len();
        let rules = Patient(model);
        let name = code
            .name
            .bytes()
            .fold(0u64, |h, b| h.wrapping_mul(31).wrapping_add(b.into()));
        for step in code_.steps.iter().filter(|s| s.control.stall > 0) {
            if let Some(form) = isa.form(step.form) {
                let stalls = seen.stalls.entry(form.mnemonic().to_owned()).or_default();
                stalls.add(step.control.stall.into(), 1, [name]);
            }
        }
        let mut miner = Miner {
            seen: &mut seen,
            model,
            kernel: name,
        };
        walk::solve(&code_, &rules).replay(&code_, &rules, &mut miner);
    }
    Ok(seen)
}

/// The table: what NAK has no number for, or one that vendor code overrules. Prints where the two meet.
fn rows(model: &Model, seen: &Seen, every: bool) -> String {
    let mut out = String::from("kind,port,producer,consumer,cycles,sites,kernels,waits\n");
    let name = |c: ClassId| model.classes().name(c);
    let (mut confirmed, mut above, mut alike, mut unlike) = (0, 0, 0, 0);
    for ((kind, port, earlier, later), [free, waited]) in &seen.pairs {
        let pair = format!("{},{},{},{}", kind.name(), port.name(), name(*earlier), name(*later));
        if let (Some(a), Some(b)) = (free.floor(), waited.floor()) {
            if a.0 == b.0 { alike += 1 } else { unlike += 1 }
        }
        let nak = model
            .row(*kind, *port, *earlier, *later)
            // Of convergence barriers NAK says nothing but that the hardware waits for them.
            .filter(|r| matches!(r.1, Source::Nak | Source::Kin(_)) && *port != Port::B);
        if let Some((cycles, source)) = nak {
            let least = [free, waited]
                .iter()
                .filter_map(|g| g.0.first_key_value())
                .min_by_key(|g| g.0);
            match least {
                Some((gap, (sites, kernels))) if *gap < cycles => println!(
                    "  conflict: {pair}: NAK says {cycles}, which holds; {sites} sites in {} kernels have {gap}",
                    kernels.len()
                ),
                Some((gap, _)) if *gap == cycles => confirmed += 1,
                _ => above += 1,
            }
            let overrules = |(gap, sites, kernels): (u16, u32, usize)| match source {
                // Of a target that is only akin, vendor code knows better.
                Source::Kin(_) if gap < cycles => true,
                _ => *kind == Kind::Raw && gap > cycles && sites >= OVERRULING.0 && kernels >= OVERRULING.1,
            };
            if !every && !free.floor().is_some_and(overrules) {
                continue;
            }
        }
        let (row, waits) = match (free.floor(), waited.floor()) {
            (Some(floor), _) => (floor, "no"),
            // A gap that is rare without a wait is no less real.
            (None, Some(floor)) if free.0.first_key_value().is_none_or(|(gap, _)| *gap >= floor.0) => (floor, "yes"),
            _ => continue,
        };
        let _ = writeln!(out, "{pair},{},{},{},{waits}", row.0, row.1, row.2);
    }
    for (mnemonic, gaps) in &seen.stalls {
        if let Some((stall, sites, kernels)) = gaps.floor() {
            let _ = writeln!(out, "{STALL},-,{mnemonic},-,{stall},{sites},{kernels},no");
        }
    }
    println!(
        "mine: {confirmed} numbers of NAK seen exactly, {above} never reached; with and without a wait between the two the least gap is \
         the same in {alike} of {} pairs of classes",
        alike + unlike
    );
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_is_not_there_is_an_error() {
        let said = cubins(&[PathBuf::from("nowhere")]).map_err(|e| e.to_string());
        assert_eq!(said, Err("nowhere".to_owned()));
        assert_eq!(
            cubins(&[PathBuf::from("Cargo.toml")]).ok(),
            Some(Vec::new()),
            "no cubin"
        );
    }

    #[test]
    fn few_places_are_not_believed() {
        let mut gaps = Gaps::default();
        gaps.add(4, 7, [1, 2, 3]);
        assert_eq!(gaps.floor(), None);
        gaps.add(4, 1, [1]);
        assert_eq!(gaps.floor(), Some((4, 8, 3)));
        gaps.add(3, 1, [1]);
        assert_eq!(gaps.floor(), None, "one place with less: neither number is believed");
    }

    #[test]
    fn kernels_are_mined_or_checked() {
        let names: Vec<String> = (0..1000).map(|n| format!("_Z6kernel{n}v")).collect();
        let mined = names.iter().filter(|n| is_mined(n)).count();
        assert!((400..600).contains(&mined), "{mined}");
    }
}
