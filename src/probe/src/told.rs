//! Of which results and operands NVIDIA's compiler has a scoreboard tell, and whether the latency model asks for one where scheduling bits are
//! assigned anew: a result that it holds for fixed where the compiler never relies on that is on the unsafe side.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use isa::Target;
use rayon::prelude::*;
use sched::Model;
use sched::code::{Code, Guard, Port, Reg, Step, Touch};
use sched::model::Need;
use sched::walk::{Kind, Rules};

use crate::mine::cubins;
use crate::repair::{Once, each_kernel};

/// `probe told`
#[derive(clap::Args)]
pub struct Args {
    /// Show all of them, not only where the model and the compiler differ
    #[arg(long)]
    every: bool,

    /// Places that something must have been seen at to be shown
    #[arg(long, default_value_t = 20)]
    least: usize,

    /// Cubins that NVIDIA's compiler made, or folders of them
    #[arg(required = true)]
    files: Vec<PathBuf>,
}

/// Whose results or operands, by the name of the model's tables.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    tables: &'static str,
    kind: &'static str,
    port: &'static str,
    class: String,
    mnemonic: &'static str,
}

/// Places where another instruction of the block depends on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Seen {
    places: usize,
    /// Where it has a scoreboard tell.
    told: usize,
    /// Where one behind it in its queue does.
    queued: usize,
    /// Where the model asks for cycles only.
    fixed: usize,
    /// The fewest cycles that were left where nothing tells.
    least: Option<u32>,
}

impl Seen {
    fn add(&mut self, other: Seen) {
        self.places += other.places;
        self.told += other.told;
        self.queued += other.queued;
        self.fixed += other.fixed;
        self.least = [self.least, other.least].into_iter().flatten().min();
    }

    fn bare(&self) -> usize {
        self.places - self.told - self.queued
    }

    /// The model relies on cycles where the compiler never does.
    fn is_unsafe(&self) -> bool {
        self.fixed > 0 && self.bare() * 1000 <= self.places
    }
}

/// Counts.
pub fn run(args: &Args) -> Result<ExitCode> {
    let once = Once::default();
    let files = cubins(&args.files)?;
    let parts: Result<Vec<BTreeMap<Key, Seen>>> = files
        .par_iter()
        .map(|file| {
            let mut seen = BTreeMap::new();
            each_kernel(file, &once, |isa, model, source| {
                let code = Code::new(isa, model.classes(), &ir::lift(isa, source)?);
                if !code.is_unscheduled() {
                    count(&code, model.anew(), source.target, &mut seen);
                }
                Ok(())
            })?;
            Ok(seen)
        })
        .collect();
    let mut all: BTreeMap<Key, Seen> = BTreeMap::new();
    for (key, seen) in parts?.into_iter().flatten() {
        all.entry(key).or_default().add(seen);
    }
    let mut differ = 0;
    for (key, seen) in all.iter().filter(|(_, s)| s.places >= args.least) {
        // Operands may be read in order, and many are overwritten late: that decides the model by pairs.
        let differs = key.kind == Kind::Raw.name() && seen.is_unsafe();
        differ += usize::from(differs);
        if args.every || differs {
            let least = seen.least.map_or("-".to_owned(), |n| n.to_string());
            println!(
                "  {} {} {} {} ({}): {} places, {} told, {} by one behind, {} by neither (least {least} cycles); the model asks for cycles at {}",
                key.tables,
                key.kind,
                key.port,
                key.mnemonic,
                key.class,
                seen.places,
                seen.told,
                seen.queued,
                seen.bare(),
                seen.fixed
            );
        }
    }
    let places: usize = all.values().map(|s| s.places).sum();
    anyhow::ensure!(places > 0, "no cubin with code is in these files: nothing was counted");
    println!(
        "told: {places} dependences; {differ} kinds of which the compiler always has a scoreboard tell and the model does not ask for one"
    );
    Ok(if differ == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Both run, as far as their guards show.
fn run_together(a: Option<Guard>, b: Option<Guard>) -> bool {
    a.is_none() || b.is_none() || a == b
}

fn count(code: &Code, model: &Model, target: Target, seen: &mut BTreeMap<Key, Seen>) {
    for block in &code.blocks {
        let steps = &code.steps[block.start as usize..block.end as usize];
        for (i, step) in steps.iter().enumerate() {
            if step.class.is_none() || code.never_happens(step) {
                continue;
            }
            let lists = [(Kind::Raw, code.writes(step)), (Kind::War, code.reads(step))];
            for (kind, touches) in lists {
                let late = |t: &&Touch| kind == Kind::Raw || t.port == Port::R;
                for touch in touches
                    .iter()
                    .filter(|t| t.port != Port::View && t.port != Port::B)
                    .filter(late)
                {
                    if let Some((j, other)) = dependent(code, steps, i, kind, touch) {
                        let one = look(model, steps, (i, j), kind, (touch, &other));
                        let key = Key {
                            tables: Model::tables(target),
                            kind: kind.name(),
                            port: touch.port.name(),
                            class: model.classes().name(touch.class).to_owned(),
                            mnemonic: code.isa.form(step.form).map_or("", |f| f.mnemonic()),
                        };
                        seen.entry(key).or_default().add(one);
                    }
                }
            }
        }
    }
}

/// The first behind `i` that depends on its register, before another writes that.
fn dependent(code: &Code, steps: &[Step], i: usize, kind: Kind, touch: &Touch) -> Option<(usize, Touch)> {
    let mut left: Vec<Reg> = (0..touch.width).map(|n| touch.first + Reg::from(n)).collect();
    for (j, step) in steps.iter().enumerate().skip(i + 1) {
        let meets = |t: &&Touch| left.iter().any(|r| t.of(*r, 1) != 0);
        let list = if kind == Kind::Raw {
            code.reads(step)
        } else {
            code.writes(step)
        };
        if let Some(found) = list.iter().find(meets) {
            return (step.class.is_some() && run_together(steps[i].guard, step.guard)).then_some((j, *found));
        }
        left.retain(|r| code.writes(step).iter().all(|t| t.of(*r, 1) == 0));
        if left.is_empty() || step.control.stall == 0 {
            return None;
        }
    }
    None
}

fn look(model: &Model, steps: &[Step], (i, j): (usize, usize), kind: Kind, (a, b): (&Touch, &Touch)) -> Seen {
    let waited =
        |from: usize, s: Option<u8>| s.is_some_and(|s| steps[from + 1..=j].iter().any(|w| w.wait >> s & 1 == 1));
    let counted = steps[i + 1..=j].iter().any(|w| w.counted.is_some());
    let own = &steps[i].control;
    let told = match kind {
        Kind::War => own.read_barrier.is_some() || waited(i, own.write_barrier),
        _ => own.write_barrier.is_some(),
    };
    let queued = (i + 1..j).any(|t| {
        let Some(class) = steps[t].class else { return false };
        let (reads, writes) = model.in_order(a.class, class);
        let control = &steps[t].control;
        writes && waited(t, control.write_barrier) || kind == Kind::War && reads && waited(t, control.read_barrier)
    });
    let queued = !told && (queued || counted);
    let cycles: u32 = steps[i..j].iter().map(|s| u32::from(s.control.stall)).sum();
    let need = model.need(kind, b.port, a.class, b.class, steps[i].latency);
    Seen {
        places: 1,
        told: usize::from(told),
        queued: usize::from(queued),
        fixed: usize::from(matches!(need, Need::Cycles(..))),
        least: (!told && !queued).then_some(cycles),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isa::Isa;

    /// What is seen of results of a class in sm_90 code.
    fn seen(class: &str, listing: &str) -> Option<Seen> {
        let isa = Isa::for_target(Target::Sm90).expect("the target is embedded");
        let sections = isa::asm::Assembler::new(isa).listing(listing, None).expect("a listing");
        let bytes: Vec<u8> = sections[0].words.iter().flat_map(|w| w.to_le_bytes()).collect();
        let kernel = ir::lift(isa, &ir::Source::new("k", Target::Sm90, &bytes)).expect("whole words");
        let model = Model::of(Target::Sm90);
        let mut all = BTreeMap::new();
        count(&Code::new(isa, model.classes(), &kernel), model, Target::Sm90, &mut all);
        let found = all.into_iter().find(|(k, _)| k.kind == "RAW" && k.class == class);
        found.map(|(_, seen)| seen)
    }

    #[test]
    fn what_the_model_holds_for_fixed_and_the_compiler_never_does_is_unsafe() {
        let code = "[B------:R-:W-:-:S08] DADD R4, R6, R8
                    [B------:R-:W-:-:S02] DADD R10, R4, R8
                    [B------:R-:W-:-:S05] EXIT";
        let bare = seen("fp64", code).expect("a sum that is read");
        assert_eq!((bare.places, bare.bare(), bare.fixed, bare.least), (1, 1, 1, Some(8)));
        assert!(!bare.is_unsafe());
        let told = code.replacen("W-", "W0", 1);
        let told = seen("fp64", &told).expect("a sum that is read");
        assert!((told.told, told.bare()) == (1, 0) && told.is_unsafe(), "{told:?}");
    }
}
