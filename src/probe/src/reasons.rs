//! Why kernels have no verdict, by what their instructions are rather than by where they stand.

use std::collections::BTreeMap;

use isa::Inst;
use sched::code::{Code, Step};
use sched::{Finding, Model};

/// Reasons, each with how many kernels have it.
#[derive(Default)]
pub struct Reasons(BTreeMap<String, usize>);

impl Reasons {
    /// Counts the reasons of a kernel, each once.
    pub fn add(&mut self, of_kernel: impl IntoIterator<Item = String>) {
        let mut reasons: Vec<String> = of_kernel.into_iter().collect();
        reasons.sort_unstable();
        reasons.dedup();
        reasons.into_iter().for_each(|r| *self.0.entry(r).or_default() += 1);
    }

    /// Takes in those of other kernels.
    pub fn merge(&mut self, other: Reasons) {
        for (reason, n) in other.0 {
            *self.0.entry(reason).or_default() += n;
        }
    }

    /// Prints them, the most frequent first.
    pub fn print(&self) {
        let mut all: Vec<_> = self.0.iter().collect();
        all.sort_by_key(|(_, n)| std::cmp::Reverse(**n));
        all.iter().for_each(|(reason, n)| println!("  {n} kernels: {reason}"));
    }
}

/// What a finding is about: both instructions with their classes, and the register file.
pub fn of(code: &Code, model: &Model, finding: &Finding) -> String {
    let name = |offset: u64| {
        code.steps
            .get((offset / 16) as usize)
            .map_or_else(String::new, |step| named(code, model, step))
    };
    let target = code.isa.target();
    match (finding.kind, finding.earlier) {
        (Some(kind), Some(earlier)) => {
            let file = finding.register_name();
            let file = file.trim_end_matches(|c: char| c.is_ascii_digit());
            let (kind, earlier, at) = (kind.name(), name(earlier), name(finding.at));
            format!(
                "{target} {}: {kind} on {file}, {earlier} -> {at}",
                finding.hazard.name()
            )
        }
        _ => format!("{target} {}: {}", finding.hazard.name(), name(finding.at)),
    }
}

/// Mnemonic and modifiers of an instruction, and its class.
pub fn named(code: &Code, model: &Model, step: &Step) -> String {
    let inst = Inst {
        word: step.word,
        form: step.form,
    };
    let Some(form) = code.isa.form(step.form) else {
        return "a word that no table knows".to_owned();
    };
    let class = step.class.map_or("no class", |c| model.classes().name(c));
    let parts = std::iter::once(form.mnemonic()).chain(code.isa.modifiers(inst));
    format!("{} ({class})", parts.collect::<Vec<_>>().join("."))
}
