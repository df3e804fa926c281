//! The same gate on real kernels: every instruction of a cubin against `nvdisasm -plr` of that cubin. Cubins for targets with other tables
//! are passed over, and counted.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use isa::Isa;

use super::check::Tally;
use super::predict;
use super::rules;
use crate::corpus;
use crate::options;
use crate::plr::{Line, Oracle};

/// Options of `probe check-access-kernels`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Target and tool
    #[command(flatten)]
    pub tool: options::Tool,
    /// Cubins
    #[arg(required = true)]
    pub cubins: Vec<PathBuf>,
}

/// Runs `probe check-access-kernels`.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let isa = Isa::for_target(args.tool.sm)?;
    let oracle = Oracle::new(&args.tool.program(), args.tool.sm, 1, BTreeSet::new())?;
    let mut all = Tally::default();
    let (mut unknown, mut passed_over) = (0, 0);
    for path in &args.cubins {
        let before = (all.checked, all.equal + all.excepted);
        match compare(isa, &oracle, path, &mut all).with_context(|| path.display().to_string())? {
            Some(words) => unknown += words,
            None => {
                passed_over += 1;
                continue;
            }
        }
        println!(
            "{}: {} checked, {} equal or documented",
            path.display(),
            all.checked - before.0,
            all.equal + all.excepted - before.1
        );
    }
    println!("{unknown} words of no form; {passed_over} cubins of targets with other tables passed over");
    Ok(if all.print("kernels") && unknown == 0 && all.checked > 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Adds every instruction of one cubin; the result is how many words have no form, or none if the tables are not the cubin's.
fn compare(isa: &Isa, oracle: &Oracle, path: &Path, all: &mut Tally) -> anyhow::Result<Option<usize>> {
    let bytes = std::fs::read(path)?;
    let Some(image) = corpus::image(&bytes)?.filter(|i| corpus::is_wanted(i.target(), Some(isa.target()))) else {
        return Ok(None);
    };
    let listing = oracle.cubin(path, image.abi().version == 7)?;
    let sections: HashMap<&str, &Vec<Line>> = listing.sections.iter().map(|(n, l)| (n.as_str(), l)).collect();
    let mut unknown = 0;
    for code in image.codes() {
        let lines = sections
            .get(code.name)
            .with_context(|| format!("nvdisasm lists no section .text.{}", code.name))?;
        let text = bytes.get(code.range.clone()).context("code range outside the file")?;
        for line in lines.iter() {
            let at = line.offset as usize;
            let raw = text.get(at..at + 16).context("listed offset outside the section")?;
            let word = u128::from_le_bytes(raw.try_into()?);
            let Some((usage, mnemonic)) = predict::usage(isa, word) else {
                unknown += 1;
                continue;
            };
            if !rules::unsupported(mnemonic) {
                all.add(mnemonic, &line.text, word, &usage, &line.usage);
            }
        }
    }
    Ok(Some(unknown))
}
