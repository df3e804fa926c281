//! The gates that every target must pass, measured one by one: every file comes back, the text is nvdisasm's, and text and scheduling
//! alone assemble to the words. Prints a table with a row for each target.
//!
//! Run by `make check-corpus`, which sets `SASS_CORPUS` (real kernels), `SASS_OWN` (own ones for all targets) and `SASS_ORACLES`.

mod common;

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use common::*;

/// Least share of a target's distinct words with equal text, in millionths.
fn least_equal(target: &str) -> usize {
    match target {
        "sm_87" | "sm_90a" => 999_990,
        _ => 999_900,
    }
}

/// Least share of the distinct words that text and scheduling alone assemble to, in millionths.
const LEAST_ASSEMBLED: usize = 999_000;

/// Differences of a target that are shown, and kinds of refusals.
const SHOWN: usize = 10;

/// What was found out about one distinct word. It may stand in many places: one that fails is enough.
#[derive(Clone, Copy, Default)]
struct Findings {
    differs: bool,
    refused: bool,
    wrong: bool,
    /// Another word has the same text and the same scheduling column.
    has_twin: bool,
}

/// A file, or all files of a target.
#[derive(Default)]
struct Tally {
    files: usize,
    /// Files in which nvdisasm calls an instruction illegal or leaves it out: they come back, and nothing more is known of them.
    passed_over: usize,
    kernels: usize,
    instructions: usize,
    words: HashMap<u128, Findings>,
    /// A word of each refused line, as it is written without notes.
    refused_lines: HashMap<String, u128>,
    /// Texts that differ: ours and theirs.
    differences: Vec<String>,
    /// Why lines were refused, without their particulars.
    refusals: BTreeMap<String, usize>,
}

impl Tally {
    fn add(&mut self, other: Self) {
        self.files += other.files;
        self.passed_over += other.passed_over;
        self.kernels += other.kernels;
        self.instructions += other.instructions;
        for (word, f) in other.words {
            let here = self.words.entry(word).or_default();
            here.differs |= f.differs;
            here.refused |= f.refused;
            here.wrong |= f.wrong;
            here.has_twin |= f.has_twin;
        }
        for (line, word) in other.refused_lines {
            self.refuse(line, word);
        }
        self.differences.extend(other.differences);
        for (why, n) in other.refusals {
            *self.refusals.entry(why).or_default() += n;
        }
    }

    /// Notes a refused word, and a twin that has the same line.
    fn refuse(&mut self, line: String, word: u128) {
        self.words.entry(word).or_default().refused = true;
        let other = *self.refused_lines.entry(line).or_insert(word);
        if other != word {
            for twin in [word, other] {
                self.words.entry(twin).or_default().has_twin = true;
            }
        }
    }

    fn count(&self, what: impl Fn(&Findings) -> bool) -> usize {
        self.words.values().filter(|f| what(f)).count()
    }

    fn print(&self, target: &str) {
        println!(
            "| {target} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            self.files,
            self.kernels,
            self.instructions,
            self.words.len(),
            self.count(|f| f.differs),
            self.count(|f| !f.refused && !f.wrong),
            self.count(|f| f.refused),
            self.count(|f| f.refused && f.has_twin),
            self.count(|f| f.wrong)
        );
    }

    fn passes(&self, target: &str) -> bool {
        let all = self.words.len();
        let share = |part: usize| part * 1_000_000 / all.max(1);
        let (equal, exact) = (self.count(|f| !f.differs), self.count(|f| !f.refused && !f.wrong));
        share(equal) >= least_equal(target) && share(exact) >= LEAST_ASSEMBLED && self.count(|f| f.wrong) == 0
    }
}

#[test]
fn every_target() {
    let oracles = folder("SASS_ORACLES");
    let mut files = all_cubins();
    files.extend(
        std::env::var_os("SASS_OWN")
            .iter()
            .flat_map(|own| cubins_below(Path::new(own))),
    );
    let mut targets: BTreeMap<String, Tally> = BTreeMap::new();
    for (target, tally) in parallel(&files, |f| measure(&oracles, f)).into_iter().flatten() {
        targets.entry(target).or_default().add(tally);
    }
    println!(
        "| target | files | kernels | instructions | distinct words | texts that differ | assembled | refused | of these with a twin | wrong |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    targets.iter().for_each(|(name, tally)| tally.print(name));
    for (name, tally) in &targets {
        if tally.passed_over > 0 {
            println!(
                "{name}: nvdisasm does not list every instruction of {} files",
                tally.passed_over
            );
        }
        let mut differences: Vec<&String> = tally.differences.iter().collect();
        differences.sort();
        differences.dedup();
        differences
            .iter()
            .take(SHOWN)
            .for_each(|d| println!("{name} text: {d}"));
        let mut refusals: Vec<_> = tally.refusals.iter().collect();
        refusals.sort_by_key(|r| std::cmp::Reverse(r.1));
        refusals
            .iter()
            .take(SHOWN)
            .for_each(|(why, n)| println!("{name} asm: {n} lines: {why}"));
    }
    let all: Tally = targets.values().fold(Tally::default(), |mut sum, t| {
        sum.kernels += t.kernels;
        sum.instructions += t.instructions;
        sum
    });
    assert!(
        all.instructions > 370_000,
        "only {} instructions: is the corpus complete?",
        all.instructions
    );
    let failed: Vec<&String> = targets.iter().filter(|(n, t)| !t.passes(n)).map(|(n, _)| n).collect();
    assert!(failed.is_empty(), "{failed:?} fall short");
}

/// Measures one cubin; nothing if it is of a target without tables or has no code.
fn measure(oracles: &Path, file: &PathBuf) -> Option<(String, Tally)> {
    let out = run(&["roundtrip", arg(file)]);
    let bytes = std::fs::read(file).unwrap();
    let code = code_size(&bytes) / 16;
    if is_unknown_target(&out) || code == 0 {
        return None;
    }
    let report = String::from_utf8_lossy(&out.stdout);
    assert!(
        out.status.success(),
        "{}: {}",
        file.display(),
        String::from_utf8_lossy(&out.stderr)
    );
    let (kernels, instructions) = roundtrip_lines(&report);
    assert_eq!(
        instructions,
        code,
        "{}: not every instruction came back",
        file.display()
    );
    let target = report
        .split_whitespace()
        .nth(1)
        .expect("roundtrip: TARGET KERNEL")
        .to_owned();
    let mut tally = Tally {
        files: 1,
        kernels,
        instructions,
        ..Tally::default()
    };
    // Some versions complain, some leave the instruction out without a word.
    let listed = nvdisasm_if_legal(oracles, file)
        .ok()
        .filter(|listed| listed.len() == code);
    let Some(listed) = listed else {
        tally.passed_over = 1;
        return Some((target, tally));
    };
    texts(file, &listed, &mut tally);
    assemble(file, &bytes, &listed, &mut tally);
    Some((target, tally))
}

/// Compares every text with nvdisasm's.
fn texts(file: &Path, listed: &[Listed], tally: &mut Tally) {
    let ours = succeed(&["disasm", arg(file)]);
    let ours: Vec<&str> = ours.lines().filter_map(instruction_text).collect();
    assert_eq!(ours.len(), listed.len(), "{}: number of instructions", file.display());
    let is_llama = file.components().any(|c| c.as_os_str() == "llama");
    for (ours, theirs) in ours.iter().zip(listed) {
        let differs = plain(ours) != plain(&theirs.text);
        tally.words.entry(theirs.word).or_default().differs |= differs;
        if differs {
            let note = format!("{:032x} ours: {ours} nvdisasm: {}", theirs.word, theirs.text);
            assert!(
                !is_llama,
                "every word of llama.cpp's kernels must read the same: {note}"
            );
            tally.differences.push(note);
        }
    }
}

/// Assembles the listing from text and scheduling alone. A line that is refused gets its note back, so that the others are assembled, too.
fn assemble(file: &Path, bytes: &[u8], listed: &[Listed], tally: &mut Tally) {
    let dir = tempfile::tempdir().unwrap();
    let (listing, back) = (dir.path().join("k.sass"), dir.path().join("k.cubin"));
    let whole = succeed(&["disasm", arg(file), "--asm"]);
    let whole: Vec<&str> = whole.lines().collect();
    let mut bare: Vec<String> = whole.iter().map(|l| without_notes(l)).collect();
    // The word of each line that is an instruction.
    let mut words = listed.iter().map(|l| l.word);
    let word_of: Vec<Option<u128>> = whole
        .iter()
        .map(|l| if is_instruction(l) { words.next() } else { None })
        .collect();
    assert!(
        words.next().is_none(),
        "{}: fewer lines than instructions",
        file.display()
    );
    std::fs::write(&listing, bare.join("\n")).unwrap();
    let report = run(&["asm", arg(&listing), "--json"]).stdout;
    let report: serde_json::Value = serde_json::from_slice(&report).expect("JSON");
    let mut refuse = |line: usize, why: String| {
        let text = without_notes(whole[line]);
        let offset = |text: &str| Some((text.find("/*")?, text.find("*/")? + 2));
        let text = offset(&text).map_or(text.clone(), |(from, to)| format!("{}{}", &text[..from], &text[to..]));
        tally.refuse(text, word_of[line].expect("an instruction"));
        *tally.refusals.entry(why).or_default() += 1;
    };
    for error in report["errors"].as_array().into_iter().flatten() {
        let line = error["line"].as_u64().expect("a number") as usize - 1;
        bare[line] = whole[line].to_owned();
        refuse(line, kind(error["message"].as_str().expect("text")));
    }
    // A word without a text is given as it is: no better than a refusal.
    for (line, _) in whole.iter().enumerate().filter(|l| l.1.contains(".opaque")) {
        refuse(line, "no text".into());
    }
    std::fs::write(&listing, bare.join("\n")).unwrap();
    succeed(&["asm", arg(&listing), "--into", arg(file), "-o", arg(&back)]);
    let assembled = std::fs::read(&back).unwrap();
    assert_eq!(assembled.len(), bytes.len(), "{}", file.display());
    let code = elf_sections(bytes)
        .into_iter()
        .filter(|(name, _)| name.starts_with(".text."));
    let word = |file: &[u8], at: usize| u128::from_le_bytes(file[at..at + 16].try_into().unwrap());
    let mut same_elsewhere = bytes.to_vec();
    for at in code.flat_map(|(_, (start, size))| (start..start + size).step_by(16)) {
        same_elsewhere[at..at + 16].copy_from_slice(&assembled[at..at + 16]);
        if word(bytes, at) != word(&assembled, at) {
            tally.words.entry(word(bytes, at)).or_default().wrong = true;
        }
    }
    assert!(
        same_elsewhere == assembled,
        "{}: more than code changed",
        file.display()
    );
}

/// A message without what names one instruction: its text, and numbers.
fn kind(message: &str) -> String {
    let message = message.rsplit_once(" ; ").map_or(message, |(_, m)| m);
    let mut out = String::new();
    for c in message.chars() {
        let c = if c.is_ascii_digit() { '#' } else { c };
        if c != '#' || !out.ends_with('#') {
            out.push(c);
        }
    }
    out
}

/// Whether a line of `disasm --asm` is an instruction: it has an offset in a comment.
fn is_instruction(line: &str) -> bool {
    line.trim_start().starts_with('[') && line.contains("*/")
}

/// A line of `disasm --asm` without its notes.
fn without_notes(line: &str) -> String {
    match line.rsplit_once(" <") {
        Some((head, _)) if line.ends_with("> ;") => format!("{head} ;"),
        _ => line.to_owned(),
    }
}

/// `/*0010*/ TEXT ;` of a line of `sass2mlir disasm`, or nothing if it is a heading or a label.
fn instruction_text(line: &str) -> Option<&str> {
    let (_, text) = line.trim().strip_prefix("/*")?.split_once("*/")?;
    Some(text.split(';').next()?.trim())
}

/// Text to compare: blanks do not count, and neither do the names of labels, which nvdisasm makes up, and the remarks
/// that only its `-c` prints (`(*"SpillRefill"*)`; `listing_is_nvdisasms` compares those).
fn plain(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text.split_once("(*").map_or(text, |(instruction, _)| instruction);
    while let Some((before, after)) = rest.split_once("`(") {
        let (_, after) = after.split_once(')').unwrap_or(("", after));
        out.push_str(before);
        out.push_str("LABEL");
        rest = after;
    }
    out.push_str(rest);
    // `32@lo((kernel + .L_x_12@srel))`: a made-up name inside an expression.
    while let Some(at) = out.find(".L_x_") {
        let digits = out[at + 5..].bytes().take_while(u8::is_ascii_digit).count();
        out.replace_range(at..at + 5 + digits, "LABEL");
    }
    out.retain(|c| !c.is_whitespace());
    out
}
