//! The gate: reads, writes and live registers of the lifted kernel are those of `nvdisasm -plr`, instruction by instruction.
//!
//! Left out are what the tool does not show (barriers, and `UR0` to `UR3`) and `R1`, which it shows live before its first definition;
//! live registers are compared in functions without calls and returns, of whose effects the tool has its own idea. There, too, the lifted kernel's
//! must be those that the textbook equations give.
//!
//! A guarded write keeps what the register held where its guard is false. The tool sees that within a block, and takes the write for a
//! full one where it sums blocks up. And it shows of `P2R` and its like only the predicates that an operand names. So a register that it
//! does not show is no difference if only these keep it alive.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use cubin::{Code, Image};
use ir::{Flow, Kernel};
use isa::{Isa, RegFile, Target};
use rayon::prelude::*;

use super::dataflow::{Bound, Equations, Live};
use crate::access::rules;
use crate::corpus;
use crate::plr::{self, File, Line, RegSet, Usage};

/// Options of `probe check-live`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The program (files of CUDA 12 also need nvdisasm-12.8 beside it)
    #[arg(long, default_value = "nvdisasm")]
    pub nvdisasm: PathBuf,
    /// Only cubins of targets that have the tables of this one, such as sm_87
    #[arg(long)]
    pub sm: Option<Target>,
    /// Cubins
    #[arg(required = true)]
    pub cubins: Vec<PathBuf>,
}

/// What came out for one file or all.
#[derive(Default)]
struct Tally {
    instructions: usize,
    /// Of those, equal in reads and writes, documented exceptions included.
    equal: usize,
    /// Instructions of functions without calls, those with the same live registers, and those whose difference is a documented one.
    live: (usize, usize, usize),
    skipped: usize,
    /// Class of difference to (count, an example).
    classes: BTreeMap<String, (usize, String)>,
}

impl Tally {
    fn add(&mut self, other: Tally) {
        self.instructions += other.instructions;
        self.equal += other.equal;
        self.live.0 += other.live.0;
        self.live.1 += other.live.1;
        self.live.2 += other.live.2;
        self.skipped += other.skipped;
        for (class, (n, example)) in other.classes {
            self.classes.entry(class).or_insert((0, example)).0 += n;
        }
    }

    fn note(&mut self, class: String, example: impl Fn() -> String) {
        self.classes.entry(class).or_insert_with(|| (0, example())).0 += 1;
    }
}

/// At most this many classes of difference.
const CLASSES: usize = 20;

/// Runs `probe check-live`.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    args.sm.map(Isa::for_target).transpose()?;
    let parts: Vec<anyhow::Result<Tally>> = args
        .cubins
        .par_iter()
        .map(|path| compare(args, path).with_context(|| path.display().to_string()))
        .collect();
    let mut all = Tally::default();
    for part in parts {
        all.add(part?);
    }
    for (class, (n, example)) in &all.classes {
        println!("  {n} x {class}: {example}");
    }
    println!(
        "check-live: reads and writes equal on {} of {} instructions; of {} outside of functions with calls, live registers equal on \
         {}, different by guarded writes and sets of predicates on {}; {} classes of difference, {} sections skipped",
        all.equal,
        all.instructions,
        all.live.0,
        all.live.1,
        all.live.2,
        all.classes.len(),
        all.skipped
    );
    let wrong = all.instructions - all.equal;
    let good = all.instructions > 0 && wrong * 10_000 <= all.instructions && all.classes.len() <= CLASSES;
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn compare(args: &Args, path: &Path) -> anyhow::Result<Tally> {
    let bytes = std::fs::read(path)?;
    let mut tally = Tally::default();
    let Some(image) = corpus::image(&bytes)?.filter(|i| corpus::is_wanted(i.target(), args.sm)) else {
        return Ok(tally);
    };
    let Ok(isa) = Isa::for_target(image.target()) else {
        tally.skipped = image.codes().len();
        return Ok(tally);
    };
    let tool = plr::version_for(&args.nvdisasm, image.abi().version == 7);
    let (out, _) = plr::run(&tool, &["-plr"], path)?;
    let listing = plr::parse(&out).map_err(anyhow::Error::msg)?;
    let sections: HashMap<&str, &Vec<Line>> = listing.sections.iter().map(|(n, l)| (n.as_str(), l)).collect();
    for code in image.codes() {
        match sections.get(code.name) {
            Some(lines) => section(isa, &image, code, lines, &mut tally)?,
            None => tally.skipped += 1,
        }
    }
    Ok(tally)
}

fn section(
    isa: &'static Isa,
    image: &Image<'_>,
    code: &Code<'_>,
    lines: &[Line],
    tally: &mut Tally,
) -> anyhow::Result<()> {
    let kernel = ir::lift(isa, &ir::Source::from_code(image.target(), code))?;
    let leaves = |l: &ir::Layout| matches!(l.flow, Flow::Call | Flow::Return);
    let calls = kernel.ops().any(|op| op.layout().is_some_and(leaves));
    let live = live_registers(&kernel);
    let (most, least) = match calls {
        true => (Vec::new(), Vec::new()),
        false => {
            let equations = Equations::new(isa, &kernel);
            (equations.solve(Bound::Most), equations.solve(Bound::Least))
        }
    };
    let by_offset: HashMap<u64, &Line> = lines.iter().map(|l| (l.offset, l)).collect();
    let mut offset = 0;
    for op in kernel.ops().filter(|op| op.kind().is_code()) {
        let at = offset;
        offset += 16;
        let (Some(line), Some(layout)) = (by_offset.get(&at), op.layout()) else {
            continue;
        };
        let mnemonic = isa.form(layout.form).map_or("", |f| f.mnemonic());
        let example = || format!("{}+{at:#x} {:032x} {}", code.name, op.word().0, line.text);
        if !matches!(layout.flow, Flow::Call | Flow::Return) {
            tally.instructions += 1;
            let before = tally.classes.values().map(|c| c.0).sum::<usize>();
            for class in usage_differences(mnemonic, &usage(&kernel, op), &line.usage) {
                tally.note(class, example);
            }
            let after = tally.classes.values().map(|c| c.0).sum::<usize>();
            tally.equal += usize::from(before == after);
        }
        if !calls {
            let n = at as usize / 16;
            let equations = live_differences(&live[n], &most[n], &most[n]);
            equations
                .into_iter()
                .for_each(|c| tally.note(format!("equations: {c}"), example));
            tally.live.0 += 1;
            let exact = live_differences(&live[n], &line.live, &line.live).is_empty();
            tally.live.1 += usize::from(exact);
            let unexplained = live_differences(&line.live, &least[n], &most[n]);
            tally.live.2 += usize::from(!exact && unexplained.is_empty());
            unexplained.into_iter().for_each(|c| tally.note(c, example));
        }
    }
    Ok(())
}

fn file(file: RegFile) -> Option<File> {
    match file {
        RegFile::R => Some(File::R),
        RegFile::P => Some(File::P),
        RegFile::UR => Some(File::Ur),
        RegFile::UP => Some(File::Up),
        RegFile::B => None, // the tool has no column for it
    }
}

/// What the operation's own operands and results say, without what a guarded write merges with.
fn usage(kernel: &Kernel, op: ir::Op<'_>) -> Usage {
    let mut usage = Usage::default();
    let add = |sets: &mut [RegSet; 4], pin: ir::Pin| {
        if let Some(f) = file(pin.file()).filter(|_| !pin.is_zero()) {
            sets[f as usize].add(pin.number().into());
        }
    };
    for access in op.accesses() {
        access.reads.iter().for_each(|v| add(&mut usage.read, kernel.pin(*v)));
        access
            .writes
            .for_each(|v| add(&mut usage.write, kernel.pin(ir::ValueId(v))));
    }
    usage
}

fn usage_differences(mnemonic: &str, ours: &Usage, tool: &Usage) -> Vec<String> {
    let mut classes = Vec::new();
    for f in File::ALL {
        for n in 0..256 {
            let of = |u: &Usage| (u.read[f as usize].has(n), u.write[f as usize].has(n));
            let (a, b) = (of(ours), of(tool));
            if a != b && !rules::excepted(mnemonic, f, n, a, b) {
                let class = format!("{mnemonic} {}: (read, written) {a:?}, tool {b:?}", f.name());
                if !classes.contains(&class) {
                    classes.push(class);
                }
            }
        }
    }
    classes
}

/// By instruction, the registers that are live at it.
fn live_registers(kernel: &Kernel) -> Vec<Live> {
    let mut all = vec![Live::default(); kernel.instruction_count()];
    ir::each_instruction(kernel, &ir::Liveness::new(kernel), |offset, live| {
        for value in live {
            let pin = kernel.pin(*value);
            if let Some(f) = file(pin.file()) {
                all[offset as usize / 16][f as usize].add(pin.number().into());
            }
        }
    });
    all
}

/// Where `found` has less than `least` or more than `most`.
fn live_differences(found: &Live, least: &Live, most: &Live) -> Vec<String> {
    let mut classes = Vec::new();
    for f in File::ALL {
        let seen = |n: u32| !(f == File::R && n == 1 || f == File::Ur && n < 4);
        let only = |a: &RegSet, b: &RegSet| (0..256).any(|n| seen(n) && a.has(n) && !b.has(n));
        let found = &found[f as usize];
        if only(found, &most[f as usize]) {
            classes.push(format!("{} live without need", f.name()));
        }
        if only(&least[f as usize], found) {
            classes.push(format!("{} needed, not live", f.name()));
        }
    }
    classes
}
