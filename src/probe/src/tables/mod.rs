//! `probe tables`: finds every instruction form of a target and writes its tables.

mod address;
mod discover;
mod emit;
mod float;
mod groups;
mod infer;
mod known;
mod lab;
mod legal;
mod model;
mod part;
mod predict;
mod refine;
mod schedule;
mod select;
mod splice;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result};

use crate::nvdisasm::Class;
use crate::text::Hole;
use crate::{options, seeds};
use emit::Extra;
use lab::{Lab, assign};
use model::{Key, Model};
use part::Only;

/// Options of `probe tables`.
#[derive(clap::Args)]
pub struct Args {
    /// What to make, and how to ask
    #[command(flatten)]
    words: options::Words,
    /// Seed files and cubins of our own kernels, or folders of them: words that random ones do not reach, and what compilers put into
    /// fields that mean nothing
    #[arg(long, num_args = 0..)]
    seeds: Vec<PathBuf>,
    /// Only these opcodes (bits 11:0, as in form ids: 0x23e); the rows of others stay as they are
    #[arg(long, num_args = 1.., value_parser = part::opcode)]
    only: Vec<u16>,
    /// How to compile seed files
    #[command(flatten)]
    compiler: options::Compiler,
}

/// Runs `probe tables`.
pub fn run(args: &Args) -> Result<ExitCode> {
    let start = Instant::now();
    let log = |message: String| eprintln!("{:7.1} s  {message}", start.elapsed().as_secs_f64());
    let nv = args.words.ask()?;
    let target = args.words.tables.tool.sm;
    let only = Only::new(&args.only);
    let mut known: Vec<u128> = seeds::words(&args.compiler, target, &args.seeds)?.into_iter().collect();
    known.retain(|&w| only.has(w));
    log(format!("{} words of seeds", known.len()));
    let found = discover::discover(&nv, &only, &known)?;
    log(format!(
        "{} classes with seeds, {} without",
        found.seeds.len(),
        found.unreached.len()
    ));
    let uniform_zero = if target.number() >= 100 { 255 } else { 63 };
    let mut lab = Lab::new(&nv, uniform_zero);
    let mut models = infer::single_fields(&mut lab, &found.seeds)?;
    lab.modelled.extend(models.iter().map(|m| m.class));
    log(format!("{} models, {} words asked", models.len(), lab.asked()));
    groups::selectors(&mut lab, &mut models)?;
    log(format!("selectors, {} words asked", lab.asked()));
    schedule::schedules(&mut lab, &mut models)?;
    refine::refine(&mut lab, &mut models, &known, &log)?;
    let mut words = found.seeds;
    for model in &models {
        words.entry(model.class).or_default().insert(0, model.base);
    }
    let (rows, matched) = select::match_rows(&mut lab, &models, &words, &known)?;
    log(format!("match rows, {} words asked", lab.asked()));
    let left = refine::refine(&mut lab, &mut models, &matched, &log)?;
    for line in &left.lines {
        eprintln!("  left: {line}");
    }
    address::spell(&mut lab, &mut models)?;
    let extras = extras(&mut lab, &models, &rows, &known)?;
    let dir = args.words.tables.folder();
    let mut family = only.put_into(emit::emit(&models, &extras), &dir)?;
    family.write(&dir)?;
    log(format!(
        "{} forms, {} rows in {}",
        family.forms.len(),
        family.row_count(),
        dir.display()
    ));
    Ok(ExitCode::SUCCESS)
}

/// The words of every code section of a cubin.
pub fn kernel_words(path: &Path) -> Result<Vec<u128>> {
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let image = cubin::Image::parse(&bytes).with_context(|| path.display().to_string())?;
    let mut words = Vec::new();
    for code in image.codes() {
        let text = bytes.get(code.range.clone()).unwrap_or(&[]);
        words.extend(
            text.chunks_exact(16)
                .filter_map(|c| Some(u128::from_le_bytes(c.try_into().ok()?))),
        );
    }
    Ok(words)
}

/// Match rows and filler.
fn extras(
    lab: &mut Lab,
    models: &[Model],
    rows: &BTreeMap<Class, Vec<select::Row>>,
    known: &[u128],
) -> Result<BTreeMap<Class, Extra>> {
    lab.ask(known.iter().copied())?;
    let mut vendor: BTreeMap<Class, u128> = BTreeMap::new();
    for &word in known {
        if let Some(class) = lab.class(word) {
            vendor.entry(class).or_insert(word);
        }
    }
    let fillers = fillers(lab, models, &vendor)?;
    let mut out = BTreeMap::new();
    for (model, filler) in models.iter().zip(fillers) {
        out.insert(
            model.class,
            Extra {
                rows: rows.get(&model.class).cloned().unwrap_or_default(),
                filler,
            },
        );
    }
    Ok(out)
}

/// Words to make new instructions from: the base with the compiler's bits where the model knows no field, and with zero
/// registers, each step kept only where the word stays legal and of its class.
fn fillers(lab: &mut Lab, models: &[Model], vendor: &BTreeMap<Class, u128>) -> Result<Vec<u128>> {
    let mut fillers: Vec<u128> = models.iter().map(|m| m.base).collect();
    let mut step = |lab: &mut Lab, next: &dyn Fn(usize, &Model, u128) -> Option<u128>| -> Result<()> {
        let tries: Vec<Option<u128>> = models
            .iter()
            .zip(&fillers)
            .enumerate()
            .map(|(i, (m, &f))| next(i, m, f))
            .collect();
        lab.ask(tries.iter().flatten().copied())?;
        for ((model, filler), word) in models.iter().zip(&mut fillers).zip(tries) {
            if let Some(word) = word
                && model.see(lab, word).is_some()
                && model.fault(lab, word).is_none()
            {
                *filler = word;
            }
        }
        Ok(())
    };
    step(lab, &|_, m, f| {
        let mask = !m.known_bits() & ((1 << 105) - 1) & !0xfff & !(1 << 91);
        vendor.get(&m.class).map(|v| f & !mask | v & mask)
    })?;
    let zero = lab.uniform_zero;
    let most = models.iter().map(|m| m.numbers.len()).max().unwrap_or(0);
    for n in 0..most {
        step(lab, &|_, m, f| {
            let (key, linear) = m.numbers.iter().nth(n)?;
            let value = match key {
                Key::Guard => 7,
                Key::Hole(_, hole, _) => hole.zero(zero).or((*hole == Hole::X).then_some(0))?,
            };
            Some(assign(f, &linear.bits(), linear.raw(value)?))
        })?;
    }
    Ok(fillers)
}
