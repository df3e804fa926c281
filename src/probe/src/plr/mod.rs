//! `nvdisasm -plr` as an oracle: which registers an instruction reads and writes.
//!
//! It works on a cubin only, so the words go into a dummy one that we write ourselves: sections of a few words and an EXIT. A
//! word that may leave the straight line gets a section of its own, so that the others are not dead code.

mod dummy;
mod listing;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use isa::Target;

use crate::nvdisasm::arch;

pub use dummy::dummy_cubin;
pub use listing::{Line, Listing, parse};

/// Words in one section. The listing has some 13 lines beside each section's instructions.
const STRAIGHT: usize = 16;
/// Sections in one run of `nvdisasm -plr`.
const BATCH: usize = 400;
/// Words in one run that only asks what is legal.
const LEGAL_BATCH: usize = 30_000;

/// Most runs of one batch in which the tool names a word that it cannot follow; then the rest is given up.
const RUNS: u32 = 12;
/// How often both halves of some words of one opcode may be refused before all of them are given up.
const PATIENCE: u32 = 3;

/// A register file that `-plr` has a column group for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum File {
    /// `R`, 255 is RZ.
    R,
    /// `P`, 7 is PT.
    P,
    /// `UR`.
    Ur,
    /// `UP`, 7 is UPT.
    Up,
}

impl File {
    /// All four, in the order of their columns.
    pub const ALL: [File; 4] = [File::R, File::P, File::Ur, File::Up];

    /// The name in the tables.
    pub fn name(self) -> &'static str {
        ["R", "P", "UR", "UP"][self as usize]
    }

    /// The file of a `kind` in `fields.tsv`, if it has a column.
    pub fn of_kind(kind: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|f| f.name() == kind)
    }
}

/// A set of register numbers, 0 to 255.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RegSet([u64; 4]);

impl RegSet {
    /// Whether `n` is in it.
    pub fn has(&self, n: u32) -> bool {
        n < 256 && self.0[n as usize / 64] >> (n % 64) & 1 == 1
    }

    /// Adds `n`; numbers above 255 are left out.
    pub fn add(&mut self, n: u32) {
        if n < 256 {
            self.0[n as usize / 64] |= 1 << (n % 64);
        }
    }

    /// Takes `n` out.
    pub fn remove(&mut self, n: u32) {
        if n < 256 {
            self.0[n as usize / 64] &= !(1 << (n % 64));
        }
    }

    /// Adds all of `other`.
    pub fn add_all(&mut self, other: &RegSet) {
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a |= b);
    }

    /// Takes all of `other` out.
    pub fn remove_all(&mut self, other: &RegSet) {
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a &= !b);
    }

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.0 == [0; 4]
    }

    /// The numbers, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (0..256).filter(|&n| self.has(n))
    }

    /// How many consecutive numbers from `n` are in it.
    pub fn run(&self, n: u32) -> u8 {
        (n..256).take_while(|&i| self.has(i)).count() as u8
    }
}

/// The registers of one instruction, by [`File`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Usage {
    /// Read (`v` or `x`).
    pub read: [RegSet; 4],
    /// Written (`^` or `x`).
    pub write: [RegSet; 4],
}

impl Usage {
    /// Whether it touches no register.
    pub fn is_empty(&self) -> bool {
        self.read.iter().chain(&self.write).all(RegSet::is_empty)
    }
}

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut first = true;
        for file in File::ALL {
            let (r, w) = (&self.read[file as usize], &self.write[file as usize]);
            for n in 0..256 {
                let mark = match (r.has(n), w.has(n)) {
                    (true, true) => "x",
                    (true, false) => "v",
                    (false, true) => "^",
                    _ => continue,
                };
                let space = if std::mem::take(&mut first) { "" } else { " " };
                write!(f, "{space}{mark}{}{n}", file.name())?;
            }
        }
        Ok(())
    }
}

/// What goes wrong with the tool.
#[derive(Debug, thiserror::Error)]
pub enum OracleError {
    /// It cannot be started.
    #[error("cannot run {}: {source} (name it with --nvdisasm)", path.display())]
    Start {
        /// The program.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A work file cannot be written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Its output is not what this driver knows.
    #[error("nvdisasm did not answer as expected: {0}")]
    Answer(String),
}

/// Anything that says which registers a word touches: the tool, or a made-up machine in a test.
pub trait Answers {
    /// For every word the registers it touches; none where the word is illegal or cannot be followed.
    fn usage(&self, words: &[u128]) -> Result<Vec<Option<Line>>, OracleError>;
}

/// The tool, a scratch folder and a target.
pub struct Oracle {
    nvdisasm: PathBuf,
    target: Target,
    jobs: usize,
    alone: BTreeSet<u16>,
    scratch: tempfile::TempDir,
    serial: AtomicUsize,
}

impl Answers for Oracle {
    fn usage(&self, words: &[u128]) -> Result<Vec<Option<Line>>, OracleError> {
        let legal = self.legal(words)?;
        let (alone, straight): (Vec<usize>, Vec<usize>) = (0..words.len())
            .filter(|&i| legal[i])
            .partition(|&i| self.alone.contains(&((words[i] & 0xfff) as u16)));
        let mut parts: Vec<(&[usize], usize)> = straight.chunks(BATCH * STRAIGHT).map(|p| (p, STRAIGHT)).collect();
        parts.extend(alone.chunks(BATCH).map(|p| (p, 1)));
        let lines = self.spread(&parts, |(part, size)| {
            let batch: Vec<u128> = part.iter().map(|&i| words[i]).collect();
            self.usage_batch(&batch, size)
        })?;
        let mut out = vec![None; words.len()];
        let order = parts.iter().flat_map(|(part, _)| part.iter());
        for (&i, line) in order.zip(lines.into_iter().flatten()) {
            out[i] = line;
        }
        Ok(out)
    }
}

impl Oracle {
    /// `nvdisasm` is the program, a path or a name on the search path.
    /// `alone` are opcodes (bits 11:0) that may leave the straight line.
    pub fn new(nvdisasm: &Path, target: Target, jobs: usize, alone: BTreeSet<u16>) -> Result<Self, OracleError> {
        let scratch = tempfile::tempdir().map_err(|source| OracleError::Io {
            path: std::env::temp_dir(),
            source,
        })?;
        Ok(Self {
            nvdisasm: nvdisasm.to_owned(),
            target,
            jobs: jobs.max(1),
            alone,
            scratch,
            serial: AtomicUsize::new(0),
        })
    }

    /// For every word whether the tool disassembles it at all.
    pub fn legal(&self, words: &[u128]) -> Result<Vec<bool>, OracleError> {
        let parts: Vec<&[u128]> = words.chunks(LEGAL_BATCH).collect();
        Ok(self.spread(&parts, |part| self.legal_batch(part))?.concat())
    }

    /// The listing of a whole cubin. `abi7` files need a tool of CUDA 12: `nvdisasm-12.8` beside `nvdisasm`.
    pub fn cubin(&self, path: &Path, abi7: bool) -> Result<Listing, OracleError> {
        let (out, err) = run(&version_for(&self.nvdisasm, abi7), &["-plr"], path)?;
        if out.is_empty() {
            return Err(OracleError::Answer(first_line(&err)));
        }
        parse(&out).map_err(OracleError::Answer)
    }

    fn scratch_file(&self, bytes: &[u8]) -> Result<PathBuf, OracleError> {
        let path = self
            .scratch
            .path()
            .join(self.serial.fetch_add(1, Ordering::Relaxed).to_string());
        match std::fs::write(&path, bytes) {
            Ok(()) => Ok(path),
            Err(source) => Err(OracleError::Io { path, source }),
        }
    }

    fn legal_batch(&self, words: &[u128]) -> Result<Vec<bool>, OracleError> {
        let mut legal = vec![true; words.len()];
        let name = arch(self.target);
        loop {
            let live: Vec<usize> = (0..words.len()).filter(|&i| legal[i]).collect();
            if live.is_empty() {
                return Ok(legal);
            }
            let bytes: Vec<u8> = live.iter().flat_map(|&i| words[i].to_le_bytes()).collect();
            let path = self.scratch_file(&bytes)?;
            let (out, err) = run(&self.nvdisasm, &["-ndf", "-b", &name], &path)?;
            let _ = std::fs::remove_file(path);
            if !out.is_empty() {
                return Ok(legal);
            }
            let bad: Vec<usize> = err.lines().filter_map(|l| hex_after(l, " at address 0x")).collect();
            if bad.is_empty() || bad.iter().any(|a| a / 16 >= live.len()) {
                if live.len() == 1 {
                    legal[live[0]] = false;
                    return Ok(legal);
                }
                let (a, b) = live.split_at(live.len() / 2);
                for half in [a, b] {
                    let part: Vec<u128> = half.iter().map(|&i| words[i]).collect();
                    for (&i, ok) in half.iter().zip(self.legal_batch(&part)?) {
                        legal[i] = ok;
                    }
                }
                return Ok(legal);
            }
            for a in bad {
                legal[live[a / 16]] = false;
            }
        }
    }

    fn usage_batch(&self, words: &[u128], size: usize) -> Result<Vec<Option<Line>>, OracleError> {
        if let Some(lines) = self.attempt(words, size)? {
            return Ok(lines);
        }
        let mut by_opcode: BTreeMap<u128, Vec<usize>> = BTreeMap::new();
        for (i, word) in words.iter().enumerate() {
            by_opcode.entry(word & 0xfff).or_default().push(i);
        }
        let mut lines = vec![None; words.len()];
        for group in by_opcode.values() {
            let part: Vec<u128> = group.iter().map(|&i| words[i]).collect();
            for (&i, line) in group.iter().zip(self.narrow(&part, PATIENCE)?) {
                lines[i] = line;
            }
        }
        Ok(lines)
    }

    /// Halves `words` until the refused ones are alone, or gives all of them up where both halves are refused too often.
    fn narrow(&self, words: &[u128], patience: u32) -> Result<Vec<Option<Line>>, OracleError> {
        if let Some(lines) = self.attempt(words, 1)? {
            return Ok(lines);
        }
        if words.len() == 1 || patience == 0 {
            return Ok(vec![None; words.len()]);
        }
        let (a, b) = words.split_at(words.len() / 2);
        let (left, right) = (self.attempt(a, 1)?, self.attempt(b, 1)?);
        let patience = patience - u32::from(left.is_none() && right.is_none());
        let mut lines = Vec::with_capacity(words.len());
        for (half, done) in [(a, left), (b, right)] {
            lines.extend(match done {
                Some(done) => done,
                None => self.narrow(half, patience)?,
            });
        }
        Ok(lines)
    }

    /// Runs with `size` words in a section. None if the tool refuses the whole file and does not say which section it means.
    fn attempt(&self, words: &[u128], size: usize) -> Result<Option<Vec<Option<Line>>>, OracleError> {
        let mut lines = vec![None; words.len()];
        let groups: Vec<&[u128]> = words.chunks(size).collect();
        let mut live: Vec<usize> = (0..groups.len()).collect();
        let mut refused: Vec<usize> = Vec::new();
        for _ in 0..RUNS {
            if live.is_empty() {
                break;
            }
            let batch: Vec<&[u128]> = live.iter().map(|&g| groups[g]).collect();
            let path = self.scratch_file(&dummy_cubin(self.target, &batch))?;
            let (out, err) = run(&self.nvdisasm, &["-plr"], &path)?;
            let _ = std::fs::remove_file(path);
            if !out.is_empty() {
                for (name, section) in parse(&out).map_err(OracleError::Answer)?.sections {
                    let k = name.strip_prefix('k').and_then(|n| n.parse::<usize>().ok());
                    let Some(&g) = k.and_then(|k| live.get(k)) else {
                        continue;
                    };
                    for line in section {
                        let i = line.offset as usize / 16;
                        if i < groups[g].len() {
                            lines[g * size + i] = Some(line);
                        }
                    }
                }
                live.clear();
                break;
            }
            let bad: BTreeSet<usize> = err
                .lines()
                .filter_map(|l| l.split_once("'.text.k")?.1.split_once('\'')?.0.parse().ok())
                .collect();
            if bad.is_empty() {
                return Ok(None);
            }
            refused.extend(bad.iter().filter_map(|&k| live.get(k)));
            live = (0..live.len()).filter(|k| !bad.contains(k)).map(|k| live[k]).collect();
        }
        refused.append(&mut live);
        if size > 1 && !refused.is_empty() {
            // Only some of the words of a refused section are to blame.
            let again: Vec<usize> = refused
                .iter()
                .flat_map(|&g| g * size..(g * size + groups[g].len()))
                .collect();
            let part: Vec<u128> = again.iter().map(|&i| words[i]).collect();
            for (i, line) in again.into_iter().zip(self.usage_batch(&part, 1)?) {
                lines[i] = line;
            }
        }
        Ok(Some(lines))
    }

    /// `work` on every part, on several threads, results in the order of the parts.
    fn spread<P: Copy + Sync, T: Send>(
        &self,
        parts: &[P],
        work: impl Fn(P) -> Result<T, OracleError> + Sync,
    ) -> Result<Vec<T>, OracleError> {
        let next = AtomicUsize::new(0);
        let done: Mutex<Vec<(usize, Result<T, OracleError>)>> = Mutex::default();
        std::thread::scope(|s| {
            for _ in 0..self.jobs.min(parts.len()) {
                s.spawn(|| {
                    loop {
                        let i = next.fetch_add(1, Ordering::Relaxed);
                        let Some(&part) = parts.get(i) else { return };
                        let result = work(part);
                        done.lock().unwrap_or_else(|e| e.into_inner()).push((i, result));
                    }
                });
            }
        });
        let mut done = done.into_inner().unwrap_or_else(|e| e.into_inner());
        done.sort_by_key(|(i, _)| *i);
        done.into_iter().map(|(_, r)| r).collect()
    }
}

/// The program that follows the code of a cubin: CUDA 13's refuses files of ABI 7.
pub(crate) fn version_for(nvdisasm: &Path, abi7: bool) -> PathBuf {
    match abi7 {
        true => nvdisasm.with_file_name("nvdisasm-12.8"),
        false => nvdisasm.to_owned(),
    }
}

/// Standard output and standard error of `program args file`.
pub(crate) fn run(program: &Path, args: &[&str], file: &Path) -> Result<(String, String), OracleError> {
    let out = Command::new(program)
        .args(args)
        .arg(file)
        .output()
        .map_err(|source| OracleError::Start {
            path: program.to_owned(),
            source,
        })?;
    let text = |b: Vec<u8>| String::from_utf8_lossy(&b).into_owned();
    Ok((text(out.stdout), text(out.stderr)))
}

fn hex_after(line: &str, mark: &str) -> Option<usize> {
    let tail = line.split_once(mark)?.1;
    let end = tail.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(tail.len());
    usize::from_str_radix(&tail[..end], 16).ok()
}

fn first_line(s: &str) -> String {
    s.lines().next().unwrap_or("no output").to_owned()
}
