//! `asmcheck SM < WORDS`: assembles texts and compares with the words that have them. A line of the input is a word of 32 hex digits,
//! its byte offset in hexadecimal, and its text, with tabs between them. `tests/oracles/assemblers.py` makes such input with `nvdisasm`.

use std::collections::BTreeMap;
use std::io::Read;
use std::process::ExitCode;
use std::time::Instant;

use isa::asm::{AsmError, Assembler, Notes, Statement};
use isa::{Control, Isa, Target, Word};

/// What came of one text.
#[derive(Default)]
struct Tally {
    exact: usize,
    wrong: usize,
    refused: BTreeMap<String, usize>,
}

fn run() -> Result<bool, String> {
    let target: Target = std::env::args()
        .nth(1)
        .ok_or("usage: asmcheck SM < WORDS")?
        .parse()
        .map_err(|e| format!("{e}"))?;
    let isa = Isa::for_target(target).map_err(|e| e.to_string())?;
    let mut input = String::new();
    std::io::stdin().read_to_string(&mut input).map_err(|e| e.to_string())?;
    let mut words = Vec::new();
    for (n, line) in input.lines().enumerate() {
        let mut cells = line.splitn(3, '\t');
        let (Some(word), Some(pc), Some(text)) = (cells.next(), cells.next(), cells.next()) else {
            return Err(format!("line {}: not three cells", n + 1));
        };
        let word = u128::from_str_radix(word, 16).map_err(|e| format!("line {}: {e}", n + 1))?;
        let pc = u64::from_str_radix(pc, 16).map_err(|e| format!("line {}: {e}", n + 1))?;
        // The column, as it would be written: flags of the operand cache are in the text.
        let control: Control = Control::of(Word(word))
            .to_string()
            .parse()
            .map_err(|e| format!("{e}"))?;
        words.push((pc, Word(word), text, control));
    }
    let mut asm = Assembler::new(isa);
    for with_notes in [false, true] {
        let mut tally = Tally::default();
        let start = Instant::now();
        for &(pc, word, text, control) in &words {
            let notes = match with_notes {
                true => asm.notes_for(isa.decode(word), pc).unwrap_or_default(),
                false => Notes::default(),
            };
            let statement = Statement {
                text,
                pc,
                notes: &notes.0,
                places: None,
            };
            match asm.assemble(&statement, control) {
                Ok(found) if found.word == word => tally.exact += 1,
                Ok(found) => {
                    tally.wrong += 1;
                    println!("  wrong: {text}: {word:032x} becomes {:032x}", found.word);
                }
                Err(e) => *tally.refused.entry(kind(&e)).or_default() += 1,
            }
        }
        let rate = words.len() as f64 / start.elapsed().as_secs_f64() / 1e6;
        let refused: usize = tally.refused.values().sum();
        let what = if with_notes {
            "text, scheduling and notes"
        } else {
            "text and scheduling"
        };
        println!(
            "sass2mlir, {what}: {} of {} words exact, {refused} refused, {} wrong, {rate:.2} M/s",
            tally.exact,
            words.len(),
            tally.wrong
        );
        for (what, n) in &tally.refused {
            println!("  {n:6} {what}");
        }
        if tally.wrong > 0 {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A refusal without its particulars.
fn kind(e: &AsmError) -> String {
    match e {
        AsmError::Hidden { what, .. } => what.clone(),
        AsmError::Ambiguous { forms, .. } => format!("several encodings: {forms}"),
        e => e.to_string(),
    }
}

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(e) => {
            eprintln!("{e}");
            ExitCode::from(2)
        }
    }
}
