//! Which registers each field of a form names, whether it reads or writes them, and how many.
//!
//! Fills `access`, `width` and `when` of `fields.tsv`, `widths.tsv`, and fields for operands that no text shows (`h0.UR0`).
//! Everything else in the tables comes from the text. What the tool answers is taken as it is, but for the rules in
//! [`rules`].

pub mod check;
mod hidden;
pub mod kernels;
mod learn;
mod like;
mod model;
pub(crate) mod predict;
pub(crate) mod rules;
mod table;
#[cfg(test)]
mod tests;
mod words;
mod work;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::process::ExitCode;

use anyhow::Context;
use isa::Target;
use union_gen::bits::Bits;
use union_gen::family::{Family, FieldRow, WidthRow};

use crate::options;
use crate::plr::{Answers, Oracle};
use learn::{FormResult, Learnt};
use model::{Matcher, Model};
use words::Touch;

/// Forms that are asked about together.
const CHUNK: usize = 96;

/// Options of `probe access`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// What to fill in
    #[command(flatten)]
    pub tables: options::Tables,
    /// Threads
    #[arg(long, default_value_t = 2)]
    pub jobs: usize,
    /// Only forms whose id contains one of these
    #[arg(long, num_args = 1..)]
    pub only: Vec<String>,
    /// Take over forms that this target's tables describe with the same rows; `check-access` says whether they hold here, too
    #[arg(long)]
    pub like: Option<Target>,
    /// Say what would be written and write nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// Runs `probe access`.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let dir = args.tables.folder();
    let tool = &args.tables.tool;
    let mut family = Family::read(&dir)?;
    let oracle = Oracle::new(&tool.program(), tool.sm, args.jobs, rules::alone(&family))?;
    let taken = match args.like {
        Some(other) => like::take_over(&mut family, &Family::read(&args.tables.folder_of(other))?),
        None => BTreeSet::new(),
    };
    println!("{} forms taken over", taken.len());
    let chosen = |form: &str| args.only.is_empty() || args.only.iter().any(|o| form.contains(o));
    let wanted = |form: &str| chosen(form) && !taken.contains(form);
    let found = infer(&oracle, &mut family, &wanted, &mut |done, all| {
        eprintln!("access: {done} of {all} forms");
    })?;
    report(&found);
    if !args.dry_run {
        family.write(&dir).context("writing the tables")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Infers access for every form that is `wanted` and puts it into `family`.
pub fn infer(
    oracle: &dyn Answers,
    family: &mut Family,
    wanted: &dyn Fn(&str) -> bool,
    progress: &mut dyn FnMut(usize, usize),
) -> anyhow::Result<BTreeMap<String, FormResult>> {
    family.fields.retain(|f| !(f.field.starts_with('h') && wanted(&f.form)));
    family.widths.retain(|w| !wanted(&w.form));
    let mut models = Model::all(family);
    models.sort_by_key(|m| !wanted(&m.form));
    let matcher = Matcher::new(&models);
    let count = models.iter().filter(|m| wanted(&m.form)).count();
    let mut found = BTreeMap::new();
    for start in (0..count).step_by(CHUNK) {
        let range = start..count.min(start + CHUNK);
        let remarks = learn::find_hidden(oracle, &mut models, range.clone(), &matcher)?;
        let results = learn::learn(oracle, &models, range.clone(), &matcher)?;
        for ((i, mut result), mut hidden) in range.clone().zip(results).zip(remarks) {
            hidden.append(&mut result.remarks);
            result.remarks = hidden;
            store(family, &models[i], &result);
            found.insert(models[i].form.clone(), result);
        }
        progress(range.end, count);
    }
    unseen(family, wanted);
    Ok(found)
}

/// Fills in what the tool cannot show.
fn unseen(family: &mut Family, wanted: impl Fn(&str) -> bool) {
    let mnemonics: HashMap<&str, &str> = family
        .forms
        .iter()
        .map(|f| (f.form.as_str(), f.mnemonic.as_str()))
        .collect();
    let clear: HashMap<&str, (&Bits, u64)> = family
        .modifiers
        .iter()
        .filter(|m| m.text == "CLEAR")
        .map(|m| (m.form.as_str(), (&m.bits, m.value)))
        .collect();
    for row in family.fields.iter_mut().filter(|f| wanted(&f.form)) {
        let mnemonic = mnemonics.get(row.form.as_str()).copied().unwrap_or_default();
        let Some(access) = rules::unseen(mnemonic, row, false) else {
            continue;
        };
        (row.access, row.width, row.when) = (access.to_owned(), 1, "printed".to_owned());
        if let Some((bits, value)) = clear.get(row.form.as_str())
            && let Some(clears) = rules::unseen(mnemonic, row, true).filter(|c| *c != access)
        {
            if bits.is_empty() {
                row.access = clears.to_owned();
                continue;
            }
            family.widths.push(WidthRow {
                form: row.form.clone(),
                field: row.field.clone(),
                bits: (*bits).clone(),
                value: *value,
                access: clears.to_owned(),
                width: 1,
            });
        }
    }
}

/// `r`, `w`, `rw` or nothing, and the width.
fn cells(touch: Touch) -> (String, u8) {
    let access = match touch {
        (0, 0) => "",
        (_, 0) => "r",
        (0, _) => "w",
        _ => "rw",
    };
    (access.to_owned(), touch.0.max(touch.1))
}

fn store(family: &mut Family, model: &Model, result: &FormResult) {
    for (field, learnt) in model.fields.iter().zip(&result.fields) {
        let unknown = Learnt::unknown(&field.name);
        let learnt = learnt.as_ref().unwrap_or(&unknown);
        let table = rules::corrected(model, field, &learnt.table);
        let (access, width) = cells(table.default);
        let when = if learnt.always { "always" } else { "printed" };
        let row = family
            .fields
            .iter_mut()
            .find(|f| f.form == model.form && f.field == field.name);
        match row {
            Some(row) => (row.access, row.width, row.when) = (access, width, when.to_owned()),
            None => family.fields.push(FieldRow {
                form: model.form.clone(),
                field: field.name.clone(),
                kind: field.file.name().to_owned(),
                bits: field.bits.clone(),
                map: if field.inverted { "~u" } else { "u" }.to_owned(),
                elide: Vec::new(),
                access,
                width,
                when: when.to_owned(),
            }),
        }
        for (value, touch) in &table.rows {
            let (access, width) = cells(*touch);
            family.widths.push(WidthRow {
                form: model.form.clone(),
                field: field.name.clone(),
                bits: table.bits.clone(),
                value: *value,
                access,
                width,
            });
        }
    }
}

fn report(found: &BTreeMap<String, FormResult>) {
    let words: usize = found.values().map(|r| r.words).sum();
    println!("{} forms, {words} words", found.len());
    for (form, r) in found {
        for remark in &r.remarks {
            println!("{form}: {remark}");
        }
        for (usage, n) in r.implicit.iter().take(3) {
            println!("{form}: beside its fields ({n} of {} words): {usage}", r.words);
        }
    }
}
