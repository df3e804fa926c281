//! The gate: on fresh words the registers read and written are those that `-plr` shows.

use std::collections::BTreeMap;
use std::process::ExitCode;

use isa::Isa;
use union_gen::family::Family;

use super::model::{Matcher, Model};
use super::predict;
use super::rules;
use super::words::{Maker, Rng};
use crate::options;
use crate::plr::{Answers, File, Oracle, Usage};

/// Words made for each selector value; the first legal one counts.
const TRIES: usize = 4;
/// Not the seed of inference.
const SALT: u64 = 0x5eed;

/// Options of `probe check-access`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// What to check; the tables must be the ones that this program was built with
    #[command(flatten)]
    pub tables: options::Tables,
    /// Threads
    #[arg(long, default_value_t = 2)]
    pub jobs: usize,
    /// Only forms whose id contains this
    #[arg(long)]
    pub only: Option<String>,
}

/// Tallies of one comparison.
#[derive(Default)]
pub struct Tally {
    /// Instructions compared.
    pub checked: usize,
    /// Equal.
    pub equal: usize,
    /// Different as the documented exceptions say.
    pub excepted: usize,
    /// Class of difference to (count, an example).
    pub classes: BTreeMap<String, (usize, String)>,
}

impl Tally {
    /// Compares one instruction.
    pub fn add(&mut self, mnemonic: &str, text: &str, word: u128, tables: &Usage, tool: &Usage) {
        self.checked += 1;
        if tables == tool {
            self.equal += 1;
            return;
        }
        let mut unexplained = Vec::new();
        for file in File::ALL {
            let f = file as usize;
            let mut first = 0; // of the run of registers that the tables touch
            for n in 0..256 {
                let ours = (tables.read[f].has(n), tables.write[f].has(n));
                let theirs = (tool.read[f].has(n), tool.write[f].has(n));
                if ours == (false, false) {
                    first = n + 1;
                }
                if ours != theirs && !rules::excepted(mnemonic, file, first.min(n), ours, theirs) {
                    let class = format!(
                        "{mnemonic} {}: tables {}, tool {}",
                        file.name(),
                        mark(ours),
                        mark(theirs)
                    );
                    if !unexplained.contains(&class) {
                        unexplained.push(class);
                    }
                }
            }
        }
        if unexplained.is_empty() {
            self.excepted += 1;
        }
        for class in unexplained {
            let entry = self
                .classes
                .entry(class)
                .or_insert_with(|| (0, format!("{word:032x} {text} | tables {tables} | tool {tool}")));
            entry.0 += 1;
        }
    }

    /// Prints it; true if nothing is unexplained.
    pub fn print(&self, what: &str) -> bool {
        let share = 100.0 * (self.equal + self.excepted) as f64 / self.checked.max(1) as f64;
        println!(
            "{what}: {} checked, {} equal, {} documented exceptions ({share:.4}%), {} classes of difference",
            self.checked,
            self.equal,
            self.excepted,
            self.classes.len()
        );
        for (class, (n, example)) in &self.classes {
            println!("  {n} x {class}: {example}");
        }
        self.classes.is_empty()
    }
}

fn mark((read, write): (bool, bool)) -> &'static str {
    match (read, write) {
        (true, true) => "rw",
        (true, false) => "r",
        (false, true) => "w",
        _ => "-",
    }
}

/// Runs `probe check-access`.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let family = Family::read(&args.tables.rows())?;
    let tool = &args.tables.tool;
    let isa = Isa::for_target(tool.sm)?;
    let models = Model::all(&family);
    let matcher = Matcher::new(&models);
    let oracle = Oracle::new(&tool.program(), tool.sm, args.jobs, rules::alone(&family))?;
    let mut words = Vec::new();
    for i in 0..models.len() {
        if args.only.as_ref().is_none_or(|o| models[i].form.contains(o.as_str())) {
            words.extend(
                fresh(&Maker::new(&models, i, &matcher))
                    .into_iter()
                    .map(|(key, w)| (i, key, w)),
            );
        }
    }
    // Of the tries for one value the first legal word counts.
    let legal = oracle.legal(&words.iter().map(|w| w.2).collect::<Vec<_>>())?;
    let mut legal = legal.into_iter();
    words.retain(|_| legal.next() == Some(true));
    words.dedup_by_key(|w| (w.0, w.1));
    let lines = oracle.usage(&words.iter().map(|w| w.2).collect::<Vec<_>>())?;
    let mut tally = Tally::default();
    let mut forms = vec![false; models.len()];
    let mut silent = 0;
    let mut opaque: BTreeMap<&str, usize> = BTreeMap::new();
    for ((form, _, word), line) in words.iter().zip(lines) {
        let Some(line) = line else { continue };
        forms[*form] = true;
        let m = &models[*form];
        let Some((usage, _)) = predict::usage(isa, *word) else {
            *opaque.entry(&m.mnemonic).or_default() += 1;
            continue;
        };
        if rules::unsupported(&m.mnemonic) {
            silent += 1;
            continue;
        }
        tally.add(&m.mnemonic, &line.text, *word, &usage, &line.usage);
    }
    let seen = forms.iter().filter(|f| **f).count();
    println!(
        "{seen} of {} forms, {silent} words of unsupported mnemonics left out",
        forms.len()
    );
    for (i, m) in models.iter().enumerate().filter(|(i, _)| !forms[*i]) {
        if args.only.is_none() {
            println!("  no word of {} ({i}) is accepted", m.form);
        }
    }
    if !opaque.is_empty() {
        // The gates on text say why.
        println!("words that are opaque to isa, by mnemonic: {opaque:?}");
    }
    Ok(if tally.print("check-access") {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Words with random registers and modifiers: a few for each value of each selector.
fn fresh(maker: &Maker<'_>) -> Vec<(usize, u128)> {
    let mut rng = Rng::new(&maker.model.form, SALT);
    let mut out = Vec::new();
    let mut key = 0;
    let mut make = |rng: &mut Rng, pick: Option<(usize, u64)>, key: usize| {
        for t in 0..TRIES {
            let row = rng.below(maker.model.rows.len().max(1));
            let Some(mut word) = maker.base(rng, row, t == 1) else {
                continue;
            };
            if let Some((g, value)) = pick {
                word = maker.model.groups[g].bits.set(word, value);
            }
            let numbers = maker.scattered(rng, t > 1);
            let word = maker.numbered(word, &numbers).0;
            out.extend(maker.own(word).map(|w| (key, w)));
        }
    };
    for (g, group) in maker.model.groups.iter().enumerate() {
        for &value in &group.values {
            make(&mut rng, Some((g, value)), key);
            key += 1;
        }
    }
    for _ in 0..8 {
        make(&mut rng, None, key);
        key += 1;
    }
    out
}
