//! Words that a compiler makes: of cubins, and of seed files, which `ptxas` compiles for the target.
//!
//! What no random word reaches is reached by writing it down in PTX. A line that `ptxas` refuses does not exist on the target.

mod template;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, anyhow};
use isa::Target;
use rayon::prelude::*;

use crate::options;
use crate::tables::kernel_words;
use template::{Seed, SeedFile};

/// Lines compiled together, and in one kernel.
const MODULE: usize = 512;
const KERNEL: usize = 16;

/// Options of `probe seeds`.
#[derive(clap::Args)]
pub struct Args {
    /// Target, such as sm_87
    #[arg(long)]
    sm: Target,
    /// How to compile
    #[command(flatten)]
    compiler: options::Compiler,
    /// Seed files, or folders of them
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Show the lines that the compiler refuses, and why
    #[arg(long)]
    refused: bool,
    /// Folder for a small cubin of each file, with the first choice of every line that exists
    #[arg(long)]
    out: Option<PathBuf>,
    /// Every choice of every line into `--out`, in as many cubins as that takes
    #[arg(long, requires = "out")]
    every: bool,
}

/// Runs `probe seeds`.
pub fn run(args: &Args) -> Result<ExitCode> {
    let mut compiler = Compiler::new(args.compiler.program(args.sm), args.sm)?;
    compiler.kept = args.out.clone().filter(|_| args.every);
    for file in in_folders(&args.files)?.iter().filter(|f| is_seeds(f)) {
        let done = compiler.compile(file)?;
        let (taken, all) = (done.taken.len(), done.taken.len() + done.refused.len());
        println!("{}: {taken} of {all} lines exist on {}", file.display(), args.sm);
        if args.refused {
            done.refused.iter().for_each(|line| println!("  {line}"));
        }
        if let Some(folder) = args.out.as_ref().filter(|_| taken > 0 && !args.every) {
            compiler.sample(file, done.taken, folder)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The distinct words of cubins and of seed files, which `ptxas` compiles for `target`; of a folder, those of all such files in it.
///
/// # Errors
/// If a file cannot be read, or the compiler not be run.
pub fn words(compiler: &options::Compiler, target: Target, paths: &[PathBuf]) -> Result<BTreeSet<u128>> {
    let (seeds, cubins): (Vec<_>, Vec<_>) = in_folders(paths)?.into_iter().partition(|f| is_seeds(f));
    let mut words = BTreeSet::new();
    for cubin in cubins {
        words.extend(kernel_words(&cubin)?);
    }
    if !seeds.is_empty() {
        let compiler = Compiler::new(compiler.program(target), target)?;
        for file in seeds {
            words.extend(compiler.compile(&file)?.words);
        }
    }
    Ok(words)
}

fn is_seeds(file: &Path) -> bool {
    file.extension().is_some_and(|e| e == "seeds")
}

/// `paths`, with folders replaced by the seed files and cubins in them.
fn in_folders(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        for entry in std::fs::read_dir(path).with_context(|| path.display().to_string())? {
            let file = entry?.path();
            if is_seeds(&file) || file.extension().is_some_and(|e| e == "cubin") {
                files.push(file);
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Compiles seeds for one target.
#[derive(Debug)]
struct Compiler {
    program: PathBuf,
    target: Target,
    /// Of PTX: what the program says is its newest.
    version: String,
    scratch: tempfile::TempDir,
    /// Where the cubins of compiled seeds are kept, if anywhere.
    kept: Option<PathBuf>,
}

impl Compiler {
    fn new(program: PathBuf, target: Target) -> Result<Self> {
        let scratch = tempfile::tempdir().context("scratch folder")?;
        let mut this = Self {
            program,
            target,
            version: "99.0".into(),
            scratch,
            kept: None,
        };
        let said = this.run("version", "")?.err().unwrap_or_default();
        let current = said
            .split("current version is '")
            .nth(1)
            .and_then(|s| s.split('\'').next());
        this.version = current
            .with_context(|| format!("{} is no ptxas: {said}", this.program.display()))?
            .to_owned();
        Ok(this)
    }

    fn compile(&self, path: &Path) -> Result<Compiled> {
        let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let file = SeedFile::parse(&text);
        if self.target.number() < file.since {
            return Ok(Compiled::default());
        }
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let chunks: Vec<_> = file.seeds.chunks(MODULE).enumerate().collect();
        let parts: Vec<Compiled> = chunks
            .into_par_iter()
            .map(|(n, seeds)| self.compile_some(&format!("{stem}{n}"), &file.module, seeds.iter().collect()))
            .collect::<Result<_>>()?;
        let mut all = Compiled::default();
        parts.into_iter().for_each(|part| all.add(part));
        Ok(all)
    }

    /// Writes a cubin with the first seed of each line of a file.
    fn sample(&self, path: &Path, mut seeds: Vec<Seed>, folder: &Path) -> Result<()> {
        seeds.sort_by_key(|s| s.line);
        seeds.dedup_by_key(|s| s.line);
        let module = SeedFile::parse(&std::fs::read_to_string(path)?).module;
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let seeds: Vec<&Seed> = seeds.iter().collect();
        let mut cubin = self.run(&stem, &self.source(&module, &seeds, KERNEL).0)?;
        if cubin.is_err() {
            // Some lines may not stand in one kernel.
            cubin = self.run(&stem, &self.source(&module, &seeds, 1).0)?;
        }
        let cubin = cubin.map_err(|said| anyhow!("{}: the lines do not go together: {said}", path.display()))?;
        copy(&cubin, folder, &stem)
    }

    /// Keeps the cubin of some seeds.
    fn keep(&self, name: &str, cubin: &Path) -> Result<()> {
        self.kept.as_ref().map_or(Ok(()), |folder| copy(cubin, folder, name))
    }

    /// Compiles those of `seeds` that the compiler takes.
    fn compile_some(&self, name: &str, module: &str, mut seeds: Vec<&Seed>) -> Result<Compiled> {
        let mut done = Compiled::default();
        while !seeds.is_empty() {
            let (source, lines) = self.source(module, &seeds, KERNEL);
            let said = match self.run(name, &source)? {
                Ok(cubin) => {
                    done.taken.extend(seeds.into_iter().cloned());
                    done.words.extend(kernel_words(&cubin)?);
                    self.keep(name, &cubin)?;
                    break;
                }
                Err(said) => said,
            };
            let reasons: BTreeMap<usize, &str> = said.lines().filter_map(refused_line).collect();
            let before = seeds.len();
            let mut numbers = lines.into_iter();
            seeds.retain(|seed| {
                let reason = numbers.next().and_then(|n| reasons.get(&n));
                done.refused.extend(reason.map(|r| format!("{}: {r}", seed.text)));
                reason.is_none()
            });
            if seeds.len() == before {
                // Refused without a line, by a later stage of the compiler.
                if let [seed] = seeds[..] {
                    done.refused
                        .push(format!("{}: {}", seed.text, said.lines().next().unwrap_or("")));
                    break;
                }
                let rest = seeds.split_off(before / 2);
                done.add(self.compile_some(&format!("{name}_{}", before / 2), module, rest)?);
            }
        }
        Ok(done)
    }

    /// A module of the seeds, with so many in a kernel, and the line number of each.
    fn source(&self, module: &str, seeds: &[&Seed], together: usize) -> (String, Vec<usize>) {
        let mut source = module.to_owned();
        let mut lines = Vec::new();
        let mut line = HEADER_LINES + module.lines().count();
        for (n, kernel) in seeds
            .chunk_by(|a, b| a.kernel == b.kernel)
            .flat_map(|c| c.chunks(together))
            .enumerate()
        {
            // Writing into a String cannot fail.
            let _ = writeln!(
                source,
                ".visible .entry s{n}(.param .u64 memory, .param .align 16 .b8 values[4096]) {} {{ .reg .b64 %in; ld.param.u64 %in, [memory];",
                kernel[0].kernel
            );
            line += 1;
            for seed in kernel {
                line += 1;
                lines.push(line);
                let _ = writeln!(source, "{}", seed.line());
            }
            source.push_str("ret; }\n");
            line += 1;
        }
        (source, lines)
    }

    /// Compiles a module. The cubin's path, or what the compiler said.
    fn run(&self, name: &str, module: &str) -> Result<std::result::Result<PathBuf, String>> {
        let source = self.scratch.path().join(format!("{name}.ptx"));
        let cubin = source.with_extension("cubin");
        let header = format!(".version {}\n.target {}\n.address_size 64\n", self.version, self.target);
        std::fs::write(&source, header + module).context("scratch file")?;
        let done = Command::new(&self.program)
            .arg(format!("-arch={}", self.target))
            .args([&source, &PathBuf::from("-o"), &cubin])
            .output()
            .with_context(|| format!("cannot run {} (see tests/oracles/setup.sh)", self.program.display()))?;
        Ok(if done.status.success() {
            Ok(cubin)
        } else {
            Err(String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned())
        })
    }
}

/// Copies a cubin into a folder, as `NAME.cubin`.
fn copy(cubin: &Path, folder: &Path, name: &str) -> Result<()> {
    let out = folder.join(format!("{name}.cubin"));
    std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::copy(cubin, &out))
        .with_context(|| out.display().to_string())?;
    Ok(())
}

/// Lines that [`Compiler::run`] puts before a module.
const HEADER_LINES: usize = 3;

/// What became of some seeds.
#[derive(Default)]
struct Compiled {
    taken: Vec<Seed>,
    words: Vec<u128>,
    /// Lines that the compiler refused, and why.
    refused: Vec<String>,
}

impl Compiled {
    fn add(&mut self, other: Self) {
        self.taken.extend(other.taken);
        self.words.extend(other.words);
        self.refused.extend(other.refused);
    }
}

/// `ptxas FILE, line N; error : REASON` as N and REASON.
fn refused_line(message: &str) -> Option<(usize, &str)> {
    let (_, rest) = message.split_once(", line ")?;
    let (line, rest) = rest.split_once(';')?;
    let (severity, reason) = rest.split_once(':')?;
    let wrong = matches!(severity.trim(), "error" | "fatal");
    Some((line.parse().ok()?, reason.trim())).filter(|_| wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_name_lines() {
        assert_eq!(
            refused_line("ptxas a.ptx, line 13; error   : Unknown modifier"),
            Some((13, "Unknown modifier"))
        );
        assert_eq!(refused_line("ptxas a.ptx, line 13; warning : x"), None);
        assert_eq!(refused_line("ptxas fatal   : Ptx assembly aborted due to errors"), None);
    }
}
