//! `textcheck NVDISASM SM87 FILE...`: compares the text of every distinct instruction word in cubins with `nvdisasm`'s. Files that end
//! in `.bin` are raw words. Prints each kind of difference with a few examples.

use std::collections::{BTreeMap, HashSet};
use std::io::Write;
use std::process::{Command, ExitCode};

use isa::{Isa, Target, Word};

fn words(path: &str, out: &mut Vec<Word>, seen: &mut HashSet<Word>) -> Result<(), String> {
    let bytes = std::fs::read(path).map_err(|e| format!("{path}: {e}"))?;
    let mut add = |code: &[u8]| out.extend(Word::all(code).filter(|w| seen.insert(*w)));
    if path.ends_with(".bin") {
        add(&bytes);
        return Ok(());
    }
    let image = cubin::Image::parse(&bytes).map_err(|e| format!("{path}: {e}"))?;
    for code in image.codes() {
        add(&bytes[code.range.clone()]);
    }
    Ok(())
}

/// Lines of `nvdisasm` for raw words that lie one after the other from address 0.
fn nvdisasm(tool: &str, arch: &str, words: &[Word]) -> Result<Vec<String>, String> {
    let mut file = tempfile::NamedTempFile::new().map_err(|e| e.to_string())?;
    for w in words {
        file.write_all(&w.to_le_bytes()).map_err(|e| e.to_string())?;
    }
    let output = Command::new(tool)
        .args(["-b", arch, "-ndf"])
        .arg(file.path())
        .output()
        .map_err(|e| e.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let instruction = |line: &str| -> Option<String> {
        let line = line.trim().strip_prefix("/*")?;
        let (_, rest) = line.split_once("*/")?;
        let (text, _) = rest.rsplit_once(';')?;
        Some(text.trim().to_owned())
    };
    Ok(text.lines().filter_map(instruction).collect())
}

fn run(args: &[String]) -> Result<bool, String> {
    let [tool, arch, files @ ..] = args else {
        return Err("usage: textcheck NVDISASM SM87 FILE...".into());
    };
    let target: Target = arch.parse().map_err(|e| format!("{e}"))?;
    let isa = Isa::for_target(target).map_err(|e| e.to_string())?;
    let (mut list, mut seen) = (Vec::new(), HashSet::new());
    for f in files {
        words(f, &mut list, &mut seen)?;
    }
    let (mut equal, mut opaque) = (0usize, 0usize);
    let mut kinds: BTreeMap<String, Vec<(String, String, Word)>> = BTreeMap::new();
    for chunk in list.chunks(40_000) {
        let expected = nvdisasm(tool, arch, chunk)?;
        if expected.len() != chunk.len() {
            return Err(format!("{} lines for {} words", expected.len(), chunk.len()));
        }
        for (n, (&w, expected)) in chunk.iter().zip(expected).enumerate() {
            let inst = isa.decode(w);
            let mut text = String::new();
            let _ = isa.write_text(inst, n as u64 * 16, &mut text, None);
            if text == expected {
                equal += 1;
                continue;
            }
            let form = isa.form(inst.form).map_or("opaque", |f| f.name());
            opaque += usize::from(inst.form.is_opaque());
            let key = match form {
                "opaque" => {
                    let m = expected
                        .trim_start_matches(|c| c != ' ' || !expected.starts_with('@'))
                        .trim();
                    format!("opaque {}", m.split([' ', '.']).next().unwrap_or(""))
                }
                f => f.to_owned(),
            };
            kinds.entry(key).or_default().push((text, expected, w));
        }
    }
    let mut kinds: Vec<_> = kinds.into_iter().collect();
    kinds.sort_by_key(|(_, v)| std::cmp::Reverse(v.len()));
    for (kind, examples) in &kinds {
        println!("{:6} {kind}", examples.len());
        for (ours, theirs, w) in examples.iter().take(3) {
            println!("         {w:032x}\n           ours   {ours}\n           theirs {theirs}");
        }
    }
    println!("{equal} of {} distinct words equal, {opaque} opaque", list.len());
    Ok(equal == list.len())
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match run(&args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(e) => {
            eprintln!("{e}");
            ExitCode::from(2)
        }
    }
}
