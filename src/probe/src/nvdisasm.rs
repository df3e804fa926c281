//! Runs `nvdisasm` on raw words and reads what it prints.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use anyhow::{Context, Result, bail};
use isa::Target;
use rayon::prelude::*;

use crate::memory::{Answer, Known, Memory};

/// Words in one run.
const CHUNK: usize = 20_000;
/// Words in one run of an opcode that has ambiguous words, and the number of those at which the opcode is given up.
const APART: usize = 1024;
const MOST_AMBIGUOUS: usize = 24;
/// A NOP, which takes the place of words that `nvdisasm` refuses (one bad word suppresses all output).
const NOP: u128 = 0x000f_c000_0000_0000_0000_0000_0000_7918;
/// Bits 109:105 at 0x1e are always illegal; with 124:122 clear the refusal then names the word's class.
const CLASS_SET: u128 = 0x1e << 105;
const CLASS_CLEAR: u128 = 0x1f << 105 | 7 << 122;

/// Bit 91 is part of the opcode from sm_75 on. Before, nothing looks at it and compilers leave it clear.
const OPCODE_HIGH: u128 = 1 << 91;

/// An opaque key for the class of a word: equal keys, equal operand form. A hash, so it is the same in every run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Class(pub u64);

impl Class {
    /// FNV-1a.
    fn of(name: &str) -> Self {
        Self(name.bytes().fold(0xcbf2_9ce4_8422_2325, |h, b| {
            (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3)
        }))
    }
}

/// The text of a word, and the byte address that the word had then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Printed {
    /// As printed, without the final `;`.
    pub text: Box<str>,
    /// Bytes.
    pub address: u64,
}

/// A disassembler for one target.
pub struct Nvdisasm {
    program: PathBuf,
    arch: String,
    /// Words with these bits set count as not legal, without being asked about.
    unused: u128,
    scratch: tempfile::TempDir,
    memory: Option<Mutex<Memory>>,
    /// Opcodes with words that two classes match, and how many such words were met. One ends a run without saying which word it is.
    ambiguous: Mutex<BTreeMap<u16, usize>>,
}

impl Nvdisasm {
    /// `program` is a path or a name on PATH.
    pub fn new(program: PathBuf, target: Target) -> Result<Self> {
        let arch = arch(target);
        let mut builder = tempfile::Builder::new();
        builder.prefix("probe");
        // Memory-backed where there is one: the files live for milliseconds.
        let scratch = builder
            .tempdir_in("/dev/shm")
            .or_else(|_| builder.tempdir())
            .context("scratch folder")?;
        Ok(Self {
            program,
            arch,
            unused: if target.number() < 75 { OPCODE_HIGH } else { 0 },
            scratch,
            memory: None,
            ambiguous: Mutex::default(),
        })
    }

    /// Answers from `folder` and keeps new answers there.
    pub fn remember(mut self, folder: &Path) -> Result<Self> {
        self.memory = Some(Mutex::new(Memory::open(folder, &self.arch)?));
        Ok(self)
    }

    /// The printed text of each word, or `None` where it is not legal. A text with `???` in it counts as not legal: the word is accepted,
    /// but it has a field whose value means nothing.
    pub fn texts(&self, words: &[u128]) -> Result<Vec<Option<Printed>>> {
        self.through_memory(words, |m| &mut m.texts, |nv, words| nv.texts_in_order(words))
    }

    /// As [`Self::texts`], with word `n` at byte address `16 * n` of its chunk.
    pub fn texts_in_order(&self, words: &[u128]) -> Result<Vec<Option<Printed>>> {
        self.in_chunks(words, |words| self.try_texts(words))
    }

    /// The class of each word, or `None` where its opcode means nothing.
    pub fn classes(&self, words: &[u128]) -> Result<Vec<Option<Class>>> {
        self.through_memory(
            words,
            |m| &mut m.classes,
            |nv, words| nv.in_chunks(words, |words| nv.try_classes(words)),
        )
    }

    fn through_memory<T: Answer>(
        &self,
        words: &[u128],
        part: impl Fn(&mut Memory) -> &mut Known<T>,
        ask: impl Fn(&Self, &[u128]) -> Result<Vec<T>>,
    ) -> Result<Vec<T>> {
        let Some(memory) = &self.memory else {
            return ask(self, words);
        };
        let mut memory = memory.lock().unwrap_or_else(|e| e.into_inner());
        let known = part(&mut memory);
        let fresh: Vec<u128> = words
            .iter()
            .copied()
            .filter(|w| !known.answers.contains_key(w))
            .collect();
        let answers = ask(self, &fresh)?;
        known.learn(fresh.into_iter().zip(answers))?;
        words
            .iter()
            .map(|w| known.answers.get(w).cloned().context("an answer went missing"))
            .collect()
    }

    /// Asks in chunks; words of opcodes that have ambiguous words apart from the others.
    fn in_chunks<T: Send>(
        &self,
        words: &[u128],
        ask: impl Fn(&[u128]) -> Result<Option<Vec<Option<T>>>> + Sync,
    ) -> Result<Vec<Option<T>>> {
        let mut known = self.ambiguous.lock().unwrap_or_else(|e| e.into_inner());
        let is_used = |w: u128| w & self.unused == 0;
        let mut answers: Vec<Option<T>> = loop {
            let clear = |w: &u128| is_used(*w) && !known.contains_key(&opcode(*w));
            let fed: Vec<u128> = words.iter().copied().filter(clear).collect();
            let chunks: Vec<_> = fed.par_chunks(CHUNK).map(&ask).collect::<Result<_>>()?;
            let failed = fed.chunks(CHUNK).zip(&chunks).filter(|c| c.1.is_none());
            let culprits: Vec<u16> = failed.map(|c| culprit(c.0, &ask)).collect::<Result<_>>()?;
            if culprits.is_empty() {
                let mut answers = chunks.into_iter().flatten().flatten();
                break words
                    .iter()
                    .map(|w| clear(w).then(|| answers.next()?).flatten())
                    .collect();
            }
            known.extend(culprits.into_iter().map(|c| (c, 0)));
        };
        for (&code, count) in known.iter_mut() {
            let is_here = |&i: &usize| opcode(words[i]) == code && is_used(words[i]);
            let places: Vec<usize> = (0..words.len()).filter(is_here).collect();
            for places in places.chunks(APART) {
                let asked: Vec<u128> = places.iter().map(|&i| words[i]).collect();
                let found = around_ambiguous(&asked, count, &ask)?;
                places.iter().zip(found).for_each(|(&i, answer)| answers[i] = answer);
            }
        }
        Ok(answers)
    }

    /// The texts of `words`; `None` if a word among them is ambiguous.
    fn try_texts(&self, words: &[u128]) -> Result<Option<Vec<Option<Printed>>>> {
        let mut legal = vec![true; words.len()];
        loop {
            let fed: Vec<u128> = words
                .iter()
                .zip(&legal)
                .map(|(&w, &ok)| if ok { w } else { NOP })
                .collect();
            let (out, errors) = self.run(&fed)?;
            if is_ambiguous(&errors) {
                return Ok(None);
            }
            let bad: Vec<_> = errors.lines().filter_map(refusal).collect();
            if bad.is_empty() {
                if out.is_empty() && !words.is_empty() {
                    bail!(
                        "nvdisasm printed nothing: {}",
                        errors.lines().next().unwrap_or("no message")
                    );
                }
                return Ok(Some(read_listing(&out, &legal)));
            }
            for (index, _) in bad {
                *legal.get_mut(index).context("nvdisasm named an address past the end")? = false;
            }
        }
    }

    /// The classes of `words`; `None` if a word among them is ambiguous.
    fn try_classes(&self, words: &[u128]) -> Result<Option<Vec<Option<Class>>>> {
        let fed: Vec<u128> = words.iter().map(|w| w & !CLASS_CLEAR | CLASS_SET).collect();
        let (_, errors) = self.run(&fed)?;
        if is_ambiguous(&errors) {
            return Ok(None);
        }
        let mut names = vec![None; words.len()];
        for (index, message) in errors.lines().filter_map(refusal) {
            let name = message.strip_prefix("Opclass '").and_then(|m| m.split('\'').next());
            if let (Some(slot), Some(name)) = (names.get_mut(index), name) {
                *slot = Some(Class::of(name));
            }
        }
        Ok(Some(names))
    }

    fn run(&self, words: &[u128]) -> Result<(String, String)> {
        let mut file = tempfile::NamedTempFile::new_in(self.scratch.path()).context("scratch file")?;
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        std::io::Write::write_all(&mut file, &bytes).context("scratch file")?;
        let done = Command::new(&self.program)
            .args(["-b", &self.arch, "-ndf"])
            .arg(file.path())
            .output()
            .with_context(|| format!("cannot run {} (see tests/oracles/setup.sh)", self.program.display()))?;
        Ok((
            String::from_utf8_lossy(&done.stdout).into_owned(),
            String::from_utf8_lossy(&done.stderr).into_owned(),
        ))
    }
}

/// The tool's name of a target: `SM90a`.
pub fn arch(target: Target) -> String {
    target.name().replace("sm_", "SM")
}

/// Bits 11:0.
fn opcode(word: u128) -> u16 {
    (word & 0xfff) as u16
}

/// The opcode of the first ambiguous word of `words`, among which there is one.
fn culprit<T>(words: &[u128], ask: &impl Fn(&[u128]) -> Result<Option<Vec<Option<T>>>>) -> Result<u16> {
    let mut words = words;
    while words.len() > 1 {
        let (front, back) = words.split_at(words.len() / 2);
        words = if ask(front)?.is_none() { front } else { back };
    }
    words.first().map(|&w| opcode(w)).context("no words")
}

/// Asks about halves until every ambiguous word stands alone; it has no answer, nor has any word once there are too many of them.
fn around_ambiguous<T>(
    words: &[u128],
    count: &mut usize,
    ask: &impl Fn(&[u128]) -> Result<Option<Vec<Option<T>>>>,
) -> Result<Vec<Option<T>>> {
    let none = || words.iter().map(|_| None).collect();
    if words.is_empty() || *count >= MOST_AMBIGUOUS {
        return Ok(none());
    }
    if let Some(answers) = ask(words)? {
        return Ok(answers);
    }
    if words.len() == 1 {
        *count += 1;
        return Ok(none());
    }
    let (front, back) = words.split_at(words.len() / 2);
    let mut answers = around_ambiguous(front, count, ask)?;
    answers.extend(around_ambiguous(back, count, ask)?);
    Ok(answers)
}

/// A word ends the run that the tool does not name: two classes match it, or (as with opcode 0) it is illegal and that is all.
fn is_ambiguous(errors: &str) -> bool {
    let illegal = |line: &str| line.ends_with(": Illegal instruction found");
    errors.contains(": More than one pattern matched") || !errors.is_empty() && errors.lines().all(illegal)
}

/// `nvdisasm error   : MESSAGE at address 0xADDR` as (word index, MESSAGE). The tool goes by the name of its file: `nvdisasm-12`.
fn refusal(line: &str) -> Option<(usize, &str)> {
    let (_, rest) = line.split_once(" error ")?;
    let rest = rest.trim_start().strip_prefix(": ")?;
    let (message, address) = rest.rsplit_once(" at address 0x")?;
    Some((usize::from_str_radix(address.trim(), 16).ok()? / 16, message))
}

/// Lines `/*0010*/ TEXT ;` of a raw listing.
fn read_listing(out: &str, legal: &[bool]) -> Vec<Option<Printed>> {
    let mut texts = vec![None; legal.len()];
    for line in out.lines() {
        let Some((address, rest)) = line.trim_start().strip_prefix("/*").and_then(|l| l.split_once("*/")) else {
            continue;
        };
        let Ok(address) = usize::from_str_radix(address, 16) else {
            continue;
        };
        let text = rest.split_once(';').map_or(rest, |(t, _)| t).trim();
        if legal.get(address / 16) == Some(&true) && !text.contains("???") {
            texts[address / 16] = Some(Printed {
                text: text.into(),
                address: address as u64,
            });
        }
    }
    texts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_name_the_word() {
        let line = "nvdisasm error   : Opclass 'a_b', undefined value 0x1e for table at address 0x00000030";
        assert_eq!(refusal(line).map(|r| r.0), Some(3));
        let renamed = line.replace("nvdisasm", "nvdisasm-12");
        assert_eq!(refusal(&renamed), refusal(line));
        assert_eq!(refusal("nvdisasm fatal   : no"), None);
    }

    #[test]
    fn a_word_that_is_not_named_is_told_from_refusals() {
        let nameless = "nvdisasm-12 error   : Illegal instruction found\n";
        assert!(is_ambiguous(nameless) && !is_ambiguous(""));
        let named = "nvdisasm-12 error   : Opclass 'a_b', undefined value 0x1e for table at address 0x00000030\n";
        assert!(!is_ambiguous(&(named.to_owned() + nameless)));
        assert!(!is_ambiguous(
            "nvdisasm fatal   : Value 'SM70' is not defined for option 'binary'\n"
        ));
    }

    #[test]
    fn a_listing_is_read_by_address() {
        let out = "\t.headerflags\n        /*0010*/                   MOV R1, R2 ;\n        /*0000*/   @P0 EXIT ;\n";
        let texts = read_listing(out, &[true, true]);
        assert_eq!(texts[0].as_ref().map(|t| &*t.text), Some("@P0 EXIT"));
        assert_eq!(
            texts[1].as_ref().map(|t| (&*t.text, t.address)),
            Some(("MOV R1, R2", 16))
        );
    }
}
