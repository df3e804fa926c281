//! What compilers write where the text does not say it: read off cubins, no tool is asked.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use isa::{Isa, Target, Word};
use union_gen::filler::FillerRow;
use union_gen::tsv;

/// `probe fillers`
#[derive(clap::Args)]
pub struct Args {
    /// The target; its family's tables must be built into this program
    #[arg(long, value_name = "SM")]
    sm: Target,

    /// Where to write fillers.tsv: the family's folder
    #[arg(long, value_name = "DIR")]
    out: PathBuf,

    /// Cubins that a compiler made, or folders of them; those for targets of other families are passed over
    #[arg(required = true)]
    files: Vec<PathBuf>,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<std::process::ExitCode> {
    let isa = Isa::for_target(args.sm)?;
    let mut words = HashSet::new();
    for path in &args.files {
        collect(isa, path, &mut words)?;
    }
    ensure!(!words.is_empty(), "no cubin for the family of {}", args.sm);
    let rows = fillers(isa, &words);
    println!("probe: {} forms in {} distinct words", rows.len(), words.len());
    tsv::write(&args.out, &rows)?;
    Ok(std::process::ExitCode::SUCCESS)
}

fn collect(isa: &Isa, path: &Path, words: &mut HashSet<Word>) -> Result<()> {
    if path.is_dir() {
        let entries = std::fs::read_dir(path).with_context(|| path.display().to_string())?;
        return entries.into_iter().try_for_each(|e| collect(isa, &e?.path(), words));
    }
    if path.extension().is_none_or(|e| e != "cubin") {
        return Ok(());
    }
    let bytes = std::fs::read(path).with_context(|| path.display().to_string())?;
    // A target that the project does not know is no fault of the file's.
    let Ok(image) = cubin::Image::parse(&bytes) else {
        return Ok(());
    };
    if Isa::for_target(image.target()).is_ok_and(|other| other.same_tables(isa)) {
        image
            .codes()
            .iter()
            .for_each(|code| words.extend(Word::all(code.bytes)));
    }
    Ok(())
}

/// The row of each form that the words have.
fn fillers(isa: &Isa, words: &HashSet<Word>) -> Vec<FillerRow> {
    /// Meaningless bits that were seen set, and seen clear.
    #[derive(Default)]
    struct Seen {
        set: u128,
        clear: u128,
        words: u32,
        left_out: BTreeSet<u8>,
        reuse: BTreeSet<u8>,
    }
    let mut forms: BTreeMap<&str, Seen> = BTreeMap::new();
    for &word in words {
        let inst = isa.decode(word);
        let Some(form) = isa.form(inst.form) else { continue };
        let meaningless = isa.meaningless_mask(inst);
        let seen = forms.entry(form.name()).or_default();
        seen.set |= word.0 & meaningless;
        seen.clear |= !word.0 & meaningless;
        seen.words += 1;
        let is_shown = |n: &usize| isa.operand(inst, *n).is_some_and(|o| !o.is_elided());
        let left_out = (0..isa.operand_count(inst)).filter(|n| !is_shown(n));
        seen.left_out.extend(left_out.map(|n| n as u8));
        let issues = isa::control::Control::of(word).yield_;
        let flags = form.reuse().iter().map(|&(bit, _)| bit);
        let is_set = |&bit: &u8| bit < 128 && word.0 >> bit & 1 == 1 && (issues || bit < 105);
        seen.reuse.extend(flags.filter(is_set));
    }
    let row = |(form, seen): (&str, Seen)| {
        let mask = seen.set ^ seen.clear;
        FillerRow {
            form: form.to_owned(),
            mask,
            value: seen.set & mask,
            words: seen.words,
            left_out: seen.left_out.into_iter().collect(),
            reuse: seen.reuse.into_iter().collect(),
        }
    };
    forms.into_iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_varies_is_no_filler() {
        let isa = Isa::for_target(Target::Sm87).expect("sm_87 is embedded");
        // IMAD.U32 R16, R24, R32, R40: bits 103:102 mean nothing.
        let word = Word(0x000f_e200_078e_0028_0000_0020_1810_7224);
        let words = HashSet::from([word, Word(word.0 | 1 << 102)]);
        let rows = fillers(isa, &words);
        assert_eq!((rows.len(), rows[0].words), (1, 2));
        assert_eq!((rows[0].mask >> 102) & 3, 2, "bit 102 varies, bit 103 does not");
    }
}
