//! The gate: the control flow of real kernels is that of `nvdisasm -bbcfg`.
//!
//! Both sides are brought to the same form: the set of edges between the addresses of instructions, each instruction being a node. So
//! it does not matter where either side cuts blocks: a block that only a label begins, or one that its single predecessor falls into,
//! adds no edge, and a call that comes back is an edge to the instruction behind it whether a block ends there or not. Edges from a call
//! to the entry of a function are left out: the tool shows them where a function calls itself and nowhere else. Compared are the
//! instructions that the tool shows, and there must be no other that the entries of the section's functions reach.

mod dataflow;
mod dot;
pub mod live;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use cubin::{Code, Image};
use isa::{Isa, Target};
use rayon::prelude::*;

use crate::{corpus, plr};

/// Options of `probe check-flow`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The program (files of CUDA 12 also need nvdisasm-12.8 beside it)
    #[arg(long, default_value = "nvdisasm")]
    pub nvdisasm: PathBuf,
    /// Differences to show
    #[arg(long, default_value_t = 20)]
    pub show: usize,
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
    functions: usize,
    equal: usize,
    edges: usize,
    /// Sections that the tool does not graph, or whose target has no tables.
    skipped: usize,
    /// Each function that differs: where and how.
    different: Vec<String>,
    refusals: Vec<String>,
}

impl Tally {
    fn add(&mut self, other: Tally) {
        self.functions += other.functions;
        self.equal += other.equal;
        self.edges += other.edges;
        self.skipped += other.skipped;
        self.different.extend(other.different);
        self.refusals.extend(other.refusals);
    }
}

/// Runs `probe check-flow`.
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
    for line in all.different.iter().take(args.show) {
        println!("  {line}");
    }
    for line in &all.refusals {
        println!("  {line}");
    }
    println!(
        "check-flow: {} of {} functions equal, {} edges, {} sections skipped",
        all.equal, all.functions, all.edges, all.skipped
    );
    Ok(match all.equal == all.functions && all.functions > 0 {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

fn compare(args: &Args, path: &Path) -> anyhow::Result<Tally> {
    let bytes = std::fs::read(path)?;
    let mut tally = Tally::default();
    let Some(image) = corpus::image(&bytes)?.filter(|i| corpus::is_wanted(i.target(), args.sm)) else {
        return Ok(tally);
    };
    let Ok(isa) = Isa::for_target(image.target()) else {
        tally.skipped = image.codes().len();
        tally
            .refusals
            .push(format!("{}: no tables for {}", path.display(), image.target()));
        return Ok(tally);
    };
    let tool = plr::version_for(&args.nvdisasm, image.abi().version == 7);
    let (out, err) = plr::run(&tool, &["-bbcfg", "-poff"], path)?;
    if out.is_empty() {
        tally.skipped = image.codes().len();
        let why = err.lines().next().unwrap_or("no output");
        tally.refusals.push(format!("{}: {why}", path.display()));
        return Ok(tally);
    }
    let graphs = dot::parse(&out).map_err(anyhow::Error::msg)?;
    let mut by_name: HashMap<String, dot::Function> = graphs.into_iter().map(|g| (g.name.clone(), g)).collect();
    for code in image.codes() {
        let entries: BTreeSet<u64> = code.functions.iter().map(|f| f.offset).collect();
        let mut shown: Vec<dot::Function> = code.functions.iter().filter_map(|f| by_name.remove(f.name)).collect();
        if shown.is_empty() {
            tally.skipped += 1;
            continue;
        }
        let ours = Graph::of(isa, &image, code)?;
        let is_call = |at: &u64| {
            let word = isa::Word::all(code.bytes).nth(*at as usize / 16);
            word.is_some_and(|w| isa.semantics(isa.decode(w)).terminator == isa::Terminator::Call)
        };
        for graph in &mut shown {
            graph.edges.retain(|(from, to)| !entries.contains(to) || !is_call(from));
            tally.functions += 1;
            tally.edges += graph.edges.len();
            match ours.difference(graph) {
                None => tally.equal += 1,
                Some(how) => tally
                    .different
                    .push(format!("{} {}: {how}", path.display(), graph.name)),
            }
        }
        let listed: BTreeSet<u64> = shown.iter().flat_map(|g| &g.instructions).copied().collect();
        if let Some(extra) = ours.reached.difference(&listed).next() {
            tally.functions += 1;
            let where_ = format!("{} {}", path.display(), code.name);
            tally
                .different
                .push(format!("{where_}: {extra:#x} is reached, and not shown by the tool"));
        }
    }
    Ok(tally)
}

/// The control flow of a lifted section.
struct Graph {
    successors: BTreeMap<u64, BTreeSet<u64>>,
    /// What the entries of functions reach.
    reached: BTreeSet<u64>,
}

impl Graph {
    fn of(isa: &'static Isa, image: &Image<'_>, code: &Code<'_>) -> anyhow::Result<Graph> {
        let kernel = ir::lift(isa, &ir::Source::from_code(image.target(), code))?;
        let mut successors: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
        for (from, to) in kernel.instruction_edges() {
            successors.entry(from).or_default().insert(to);
        }
        let mut reached = BTreeSet::new();
        let mut stack: Vec<u64> = code.functions.iter().map(|f| f.offset).collect();
        while let Some(at) = stack.pop() {
            if reached.insert(at) {
                stack.extend(successors.get(&at).into_iter().flatten());
            }
        }
        Ok(Graph { successors, reached })
    }

    /// The first difference to what the tool shows.
    fn difference(&self, tool: &dot::Function) -> Option<String> {
        let mut theirs: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
        for &(from, to) in &tool.edges {
            theirs.entry(from).or_default().insert(to);
        }
        let none = BTreeSet::new();
        tool.instructions.iter().find_map(|at| {
            let ours = self.successors.get(at).unwrap_or(&none);
            let theirs = theirs.get(at).unwrap_or(&none);
            let list = |set: &BTreeSet<u64>| set.iter().map(|o| format!("{o:#x}")).collect::<Vec<_>>().join(" ");
            (ours != theirs).then(|| format!("{at:#x} -> {}, tool: {}", list(ours), list(theirs)))
        })
    }
}
