//! `probe check`: the gate. What `isa` makes of words, held against what `nvdisasm` prints.

mod report;
mod words;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use isa::{Field, FormId, Inst, Isa, Target, Word};
use union_gen::family::Family;
use union_gen::filler;

use crate::nvdisasm::Nvdisasm;
use crate::{options, seeds};
use report::Report;
use words::Maker;

/// Options of `probe check`.
#[derive(clap::Args)]
pub struct Args {
    /// Target, such as sm_87, or `all`: each one that has tables of its own
    #[arg(long)]
    sm: String,
    /// The disassembler: a path, or a name on PATH (sm_70 and sm_72 need nvdisasm-12.8 beside it)
    #[arg(long, default_value = "nvdisasm")]
    nvdisasm: PathBuf,
    /// Folder that holds a folder for each target; the tables must be the ones that this program was built with
    #[arg(long, default_value = "opcodes")]
    opcodes: PathBuf,
    /// Folder that keeps nvdisasm's answers, so that a second run is quick
    #[arg(long)]
    cache: Option<PathBuf>,
    /// Cubins and seed files whose words are compared, or folders of them
    #[arg(long, num_args = 0..)]
    corpus: Vec<PathBuf>,
    /// How to compile seed files
    #[command(flatten)]
    compiler: options::Compiler,
    /// Random legal words of each form
    #[arg(long, default_value_t = 200)]
    words: usize,
    /// Least share of the cubins' distinct words with equal text, in per cent
    #[arg(long, default_value_t = 99.99)]
    at_least: f64,
    /// Only forms whose name contains this
    #[arg(long)]
    form: Option<String>,
    /// Differences of each kind that are shown
    #[arg(long, default_value_t = 1)]
    examples: usize,
}

/// Runs `probe check`.
pub fn run(args: &Args) -> Result<ExitCode> {
    let targets = match args.sm.as_str() {
        "all" => Target::ALL
            .into_iter()
            .filter(|t| args.of(*t).tables.folder().join("forms.tsv").is_file())
            .collect(),
        one => vec![one.parse()?],
    };
    let mut good = true;
    for &target in &targets {
        if targets.len() > 1 {
            println!("{target}:");
        }
        good &= args.check(target)?;
    }
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Args {
    /// How to ask about one target.
    fn of(&self, target: Target) -> options::Words {
        let tool = options::Tool {
            sm: target,
            nvdisasm: self.nvdisasm.clone(),
        };
        let opcodes = self.opcodes.clone();
        options::Words {
            tables: options::Tables { tool, opcodes },
            cache: self.cache.clone(),
        }
    }

    /// Checks one target. Whether all is as it must be.
    fn check(&self, target: Target) -> Result<bool> {
        let isa = Isa::for_target(target)?;
        let asked = self.of(target);
        let nv = asked.ask()?;
        let family = family(&asked.tables.rows(), isa)?;
        let gate = Gate { isa, nv: &nv };
        let mut good = true;
        if !self.corpus.is_empty() {
            let words = seeds::words(&self.compiler, target, &self.corpus)?;
            good &= gate.compiled(words, self)?;
        }
        Ok(gate.random(&family, self)? && good)
    }

    fn wants(&self, form: &str) -> bool {
        self.form.as_ref().is_none_or(|f| form.contains(f.as_str()))
    }
}

/// The tables in the folder, if they are those in the program.
fn family(dir: &Path, isa: &Isa) -> Result<Family> {
    let family = Family::read(dir).with_context(|| dir.display().to_string())?;
    let rows = filler::read(dir).with_context(|| dir.display().to_string())?;
    let fillers = filler::expect(&family, &rows);
    let here: BTreeSet<(&str, u128)> = family
        .forms
        .iter()
        .map(|f| (f.form.as_str(), fillers[f.form.as_str()].put_into(f.filler)))
        .collect();
    let built: BTreeSet<(&str, u128)> = isa.forms().map(|f| (f.name(), f.filler().0)).collect();
    if here != built {
        bail!(
            "{} holds other tables than this program was built with: build it again",
            dir.display()
        );
    }
    Ok(family)
}

struct Gate<'a> {
    isa: &'a Isa,
    nv: &'a Nvdisasm,
}

impl Gate<'_> {
    /// Checks words that a compiler made.
    fn compiled(&self, words: BTreeSet<u128>, args: &Args) -> Result<bool> {
        let mut words: Vec<u128> = words.into_iter().collect();
        words.retain(|&w| args.wants(self.name(self.inst(w).form)));
        let mut report = Report::new("compiled words", args.examples);
        self.texts(&words, &mut report)?;
        report.print();
        let mut fields = Report::new("compiled words, fields", args.examples);
        words.iter().for_each(|&w| self.fields(w, &mut fields));
        fields.print();
        Ok(report.equal_per_cent() >= args.at_least && fields.is_clean())
    }

    /// Checks random words of each form.
    fn random(&self, family: &Family, args: &Args) -> Result<bool> {
        let mut maker = Maker::new(self.isa, family);
        let mut words = Vec::new();
        for form in self.isa.forms().filter(|f| args.wants(f.name())) {
            let made = maker.legal(form.id(), args.words);
            if made.len() < args.words {
                println!("note: {} of {} words made of {}", made.len(), args.words, form.name());
            }
            words.extend(made);
        }
        let mut report = Report::new("random words", args.examples);
        self.texts(&words, &mut report)?;
        report.print();
        let mut good = report.is_clean();

        let mut fields = Report::new("random words, fields", args.examples);
        words.iter().for_each(|&w| self.fields(w, &mut fields));
        let changed: Vec<u128> = words
            .iter()
            .filter_map(|&w| self.change(w, &mut maker, &mut fields))
            .collect();
        fields.print();
        good &= fields.is_clean();
        let mut report = Report::new("words with one field changed", args.examples);
        self.texts(&changed, &mut report)?;
        report.print();
        good &= report.is_clean();

        // Not a gate: how much of what nvdisasm accepts do the tables know?
        let near: Vec<u128> = words.iter().step_by(4).map(|&w| maker.near(w)).collect();
        let mut report = Report::new("legal words with a bit or two flipped", args.examples);
        self.accepted(&near, &mut report)?;
        report.print();
        Ok(good)
    }

    fn inst(&self, word: u128) -> Inst {
        self.isa.decode(Word(word))
    }

    fn name(&self, form: FormId) -> &'static str {
        self.isa.form(form).map_or("opaque", |f| f.name())
    }

    /// Compares the texts of words. A word that the tables call legal and nvdisasm refuses is a difference; one that both refuse is not
    /// counted.
    fn texts(&self, words: &[u128], report: &mut Report) -> Result<()> {
        for (&word, printed) in words.iter().zip(self.nv.texts(words)?) {
            let inst = self.inst(word);
            let name = self.name(inst.form);
            let Some(printed) = printed else {
                if !inst.form.is_opaque() {
                    report.differs(format!("refused {name}"), word, self.text(inst, 0), "(refused)".into());
                }
                continue;
            };
            let ours = self.text(inst, printed.address);
            if ours == *printed.text {
                report.equal();
            } else if inst.form.is_opaque() {
                report.differs(
                    format!("opaque {}", mnemonic(&printed.text)),
                    word,
                    ours,
                    printed.text.into(),
                );
            } else {
                report.differs(name.to_owned(), word, ours, printed.text.into());
            }
        }
        Ok(())
    }

    /// As [`Self::texts`], for words of which only those that nvdisasm accepts count.
    fn accepted(&self, words: &[u128], report: &mut Report) -> Result<()> {
        let printed = self.nv.texts(words)?;
        let legal: Vec<u128> = words
            .iter()
            .zip(&printed)
            .filter(|(_, p)| p.is_some())
            .map(|(&w, _)| w)
            .collect();
        self.texts(&legal, report)
    }

    fn text(&self, inst: Inst, address: u64) -> String {
        let mut text = String::new();
        // Writing into a String cannot fail.
        let _ = self.isa.write_text(inst, address, &mut text, None);
        text
    }

    /// Reads every field of a word and writes all of them back over a word without them.
    fn fields(&self, word: u128, report: &mut Report) {
        let inst = self.inst(word);
        let Some(form) = self.isa.form(inst.form) else { return };
        let mask = form.fields().iter().fold(0, |m, f| m | f.mask());
        let mut rebuilt = Word(word & !mask);
        for field in form.fields() {
            match field.set(rebuilt, field.get(inst.word)) {
                Ok(w) => rebuilt = w,
                Err(e) => {
                    return report.differs(
                        format!("{} {}", form.name(), field.name),
                        word,
                        e.to_string(),
                        String::new(),
                    );
                }
            }
        }
        if rebuilt == inst.word && self.isa.decode(rebuilt) == inst {
            report.equal();
        } else {
            report.differs(
                form.name().to_owned(),
                word,
                format!("{rebuilt:?}"),
                "the word itself".into(),
            );
        }
    }

    /// Changes one field to a random value. What must follow: only the field's bits move, it reads back as the value, the fields that
    /// share no bits with it stay. Returns the changed word, or `None` if the field can hold nothing else.
    fn change(&self, word: u128, maker: &mut Maker<'_>, report: &mut Report) -> Option<u128> {
        let inst = self.inst(word);
        let form = self.isa.form(inst.form)?;
        let number = maker.below(form.fields().len())?;
        let field = &form.fields()[number];
        let value = field.get(Word(maker.random_bits(word, field.mask())));
        let changed = self.isa.set_field(inst, number, value).ok()?;
        let stays = |f: &&Field| f.mask() & field.mask() == 0;
        let moved: Vec<&str> = form
            .fields()
            .iter()
            .filter(stays)
            .filter(|f| f.get(changed.word) != f.get(inst.word))
            .map(|f| f.name)
            .collect();
        let outside = (changed.word.0 ^ word) & !field.mask();
        if outside == 0
            && moved.is_empty()
            && field.get(changed.word) == value
            && self.isa.decode(changed.word) == changed
        {
            report.equal();
        } else {
            let said = format!(
                "{} = {value:#x}: bits {outside:#x} and fields {moved:?} moved",
                field.name
            );
            report.differs(
                format!("{} {}", form.name(), field.name),
                word,
                said,
                "only that field".into(),
            );
        }
        Some(changed.word.0)
    }
}

fn mnemonic(text: &str) -> &str {
    let name = text.split_whitespace().find(|t| !t.starts_with('@')).unwrap_or("");
    name.split('.').next().unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mnemonics_of_guarded_texts() {
        assert_eq!(mnemonic("@!UP0 UMOV.X UR4, UR5"), "UMOV");
        assert_eq!(mnemonic("EXIT"), "EXIT");
    }
}
