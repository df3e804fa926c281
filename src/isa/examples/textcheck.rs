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

/// Text of raw words that lie one after the other from address 0; `None` for a word that `nvdisasm` refuses.
fn nvdisasm(tool: &str, arch: &str, words: &[Word]) -> Result<Vec<Option<String>>, String> {
    let mut words = words.to_vec();
    let mut refused = HashSet::new();
    for _ in 0..8 {
        let mut file = tempfile::NamedTempFile::new().map_err(|e| e.to_string())?;
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        file.write_all(&bytes).map_err(|e| e.to_string())?;
        let mut command = Command::new(tool);
        let output = command.args(["-b", arch, "-ndf"]).arg(file.path()).output();
        let output = output.map_err(|e| e.to_string())?;
        let errors = String::from_utf8_lossy(&output.stderr);
        let addresses = errors.lines().filter_map(|l| l.split_once(" at address 0x"));
        let mut any = false;
        for (_, address) in addresses {
            let hex = address
                .split(|c: char| !c.is_ascii_hexdigit())
                .next()
                .unwrap_or_default();
            let n = usize::from_str_radix(hex, 16).map_err(|e| e.to_string())? / 16;
            words[n] = Word(NOP);
            any |= refused.insert(n);
        }
        if any {
            continue;
        }
        if !output.status.success() {
            return Err(errors.into_owned());
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let instruction = |line: &str| -> Option<(usize, String)> {
            let (address, rest) = line.trim().strip_prefix("/*")?.split_once("*/")?;
            let text = rest.trim().trim_end_matches(';').trim_end();
            Some((usize::from_str_radix(address, 16).ok()? / 16, text.to_owned()))
        };
        let mut out = vec![None; words.len()];
        for (n, text) in text.lines().filter_map(instruction) {
            out[n] = (!refused.contains(&n)).then_some(text);
        }
        return Ok(out);
    }
    Err("nvdisasm finds new errors each time".into())
}

const NOP: u128 = 0x000fc000000000000000000000007918;

/// A few random legal words of each form: legal selector values, any field values, special ones often.
fn random_words(isa: &Isa, per_form: usize, only: &str) -> Vec<Word> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut out = Vec::new();
    for form in isa.forms().filter(|f| f.name().starts_with(only)) {
        let filler = form.filler();
        let known = isa.known_mask(isa.decode(filler));
        let mut found = 0;
        for _ in 0..per_form * 40 {
            let mut w = filler.0;
            // Each known bit flips with a chance that differs from word to word.
            let density = 1 + next() % 8;
            for bit in (0..125).filter(|b| known >> b & 1 == 1) {
                if next() % 16 < density {
                    w ^= 1 << bit;
                }
            }
            let mut w = Word(w);
            for f in form.fields() {
                let special = [0, 1, 2, 4, 7, 255, 63, 0x10000, -1, 0x8000_0000, 0x7f80_0000, 0x7c00];
                if next() % 3 == 0 {
                    let value = special[next() as usize % special.len()];
                    w = f.set(w, value).unwrap_or(w);
                }
            }
            if next() % 4 == 0 {
                w = w.with_bits(124, 122, next()).with_bits(109, 109, 1);
            }
            if isa.decode(w).form == form.id() {
                out.push(w);
                found += 1;
                if found == per_form {
                    break;
                }
            }
        }
    }
    out
}

fn run(args: &[String]) -> Result<bool, String> {
    let [tool, arch, files @ ..] = args else {
        return Err("usage: textcheck NVDISASM SM87 FILE... | --random N [FORM]".into());
    };
    let target: Target = arch.parse().map_err(|e| format!("{e}"))?;
    let isa = Isa::for_target(target).map_err(|e| e.to_string())?;
    let (mut list, mut seen) = (Vec::new(), HashSet::new());
    match files {
        [flag, n, only @ ..] if flag == "--random" => {
            let n = n.parse().map_err(|e| format!("{n}: {e}"))?;
            list = random_words(isa, n, only.first().map_or("", String::as_str));
        }
        files => {
            for f in files {
                words(f, &mut list, &mut seen)?;
            }
        }
    }
    let (mut equal, mut opaque) = (0usize, 0usize);
    let mut refused: BTreeMap<isa::FormId, Vec<Word>> = BTreeMap::new();
    let mut kinds: BTreeMap<String, Vec<(String, String, Word)>> = BTreeMap::new();
    for chunk in list.chunks(40_000) {
        let expected = nvdisasm(tool, arch, chunk)?;
        for (n, (&w, expected)) in chunk.iter().zip(expected).enumerate() {
            let Some(expected) = expected else {
                refused.entry(isa.decode(w).form).or_default().push(w);
                continue;
            };
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
    let count: usize = refused.values().map(Vec::len).sum();
    for (form, list) in &refused {
        let name = isa.form(*form).map_or("opaque", |f| f.name());
        println!("{:6} refused {name} {:032x}", list.len(), list[0]);
    }
    let mut kinds: Vec<_> = kinds.into_iter().collect();
    kinds.sort_by_key(|(_, v)| std::cmp::Reverse(v.len()));
    for (kind, examples) in &kinds {
        println!("{:6} {kind}", examples.len());
        for (ours, theirs, w) in examples.iter().take(3) {
            println!("         {w:032x}\n           ours   {ours}\n           theirs {theirs}");
        }
    }
    println!(
        "{equal} of {} distinct words equal, {opaque} opaque, {count} refused",
        list.len()
    );
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
