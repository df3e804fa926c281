//! What the commands that write another file take.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Args, ValueHint};
use isa::{Control, Target};

use super::{Command, Input};
use crate::output;
use crate::representation::Pipeline;

/// The file that a command writes.
#[derive(Debug, Args)]
pub struct Rewritten {
    /// Take the kernels' Mercury form out (sm_100 and up), from which a driver may build their code again
    #[arg(long)]
    pub strip_mercury: bool,

    /// Where to write the result
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: PathBuf,

    /// Report as JSON
    #[arg(long)]
    pub json: bool,
}

impl Rewritten {
    /// Writes the new bytes of a file.
    pub fn write(&self, bytes: &[u8], input: &Path, old: &[u8]) -> Result<()> {
        output::write_rewritten(&self.output, bytes, input, old, self.strip_mercury)
    }
}

impl Command {
    /// Where the result goes, for a command that writes one and reports besides.
    pub fn output(&self) -> Option<&Path> {
        match self {
            Command::Asm(a) => a.output.as_deref(),
            Command::Regalloc(a) => a.output.as_deref(),
            Command::Apply(a) => a.output.as_deref(),
            Command::Lift(a) => a.output.as_deref(),
            Command::Lower(a) => Some(&a.result.output),
            Command::Schedule(a) => Some(&a.result.output),
            Command::Nops(a) => Some(&a.result.output),
            _ => None,
        }
    }
}

/// `regalloc`
#[derive(Debug, Args)]
pub struct Regalloc {
    /// The file and its kernels
    #[command(flatten)]
    pub input: Input,

    /// Keep every value where its word says; the result must be the same bytes
    #[arg(long, conflicts_with_all = ["scramble", "fresh"])]
    pub pinned: bool,

    /// Give every value a random legal register
    #[arg(long, value_name = "SEED")]
    pub scramble: Option<u64>,

    /// Allocate afresh (the default without --scramble)
    #[arg(long)]
    pub fresh: bool,

    /// Take the kernels' Mercury form out (sm_100 and up), from which a driver may build their code again
    #[arg(long)]
    pub strip_mercury: bool,

    /// Where to write the result
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,

    /// Report as JSON
    #[arg(long)]
    pub json: bool,
}

/// `schedule`
#[derive(Debug, Args)]
pub struct Schedule {
    /// The file and its kernels
    #[command(flatten)]
    pub input: Input,

    /// Leave every instruction where it is
    #[arg(long)]
    pub keep_order: bool,

    /// What is written and reported
    #[command(flatten)]
    pub result: Rewritten,
}

/// `nops`
#[derive(Debug, Args)]
pub struct Nops {
    /// The file and its kernels
    #[command(flatten)]
    pub input: Input,

    /// Chooses the places
    #[arg(long, value_name = "SEED", default_value_t = 7)]
    pub seed: u64,

    /// One NOP in about so many instructions
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..))]
    pub every: u64,

    /// Where to write which instructions were put in; with --take-out, where to read it
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub list: PathBuf,

    /// Take the NOPs of the list out
    #[arg(long)]
    pub take_out: bool,

    /// What is written and reported
    #[command(flatten)]
    pub result: Rewritten,
}

/// `asm`
#[derive(Debug, Args)]
pub struct Asm {
    /// The listing; `-` for standard input
    #[arg(value_name = "LISTING", value_hint = ValueHint::FilePath)]
    pub text: PathBuf,

    /// The target; not needed where the listing has `.target`, or --into tells it
    #[arg(long, value_name = "SM")]
    pub arch: Option<Target>,

    /// A file whose kernels of the same names get the code
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "output")]
    pub into: Option<PathBuf>,

    /// Of several images in that file the one of this number, as `info` counts them
    #[arg(long, value_name = "N", requires = "into")]
    pub image: Option<usize>,

    /// Where to write the file, or without --into the raw code; default: the words in hexadecimal on standard output
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,

    /// Take the kernels' Mercury form out (sm_100 and up), from which a driver may build their code again
    #[arg(long, requires = "into")]
    pub strip_mercury: bool,

    /// The scheduling column of instructions that have none, such as B------:R-:W-:-:S15
    #[arg(long, value_name = "COLUMN")]
    pub schedule: Option<Control>,

    /// Report as JSON
    #[arg(long)]
    pub json: bool,
}

/// `lower`
#[derive(Debug, Args)]
pub struct Lower {
    /// The MLIR text
    #[arg(value_name = "MLIR", value_hint = ValueHint::FilePath)]
    pub text: PathBuf,

    /// The file whose kernels are replaced
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub into: PathBuf,

    /// Of several images in that file the one of this number, as `info` counts them
    #[arg(long, value_name = "N")]
    pub image: Option<usize>,

    /// What is written and reported
    #[command(flatten)]
    pub result: Rewritten,
}

/// Passes in shared libraries.
#[derive(Debug, Args)]
pub struct Plugins {
    /// A folder of plugins (.so), for sass_plugin.h or for MLIR; the built-in passes need none
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub passes: Option<PathBuf>,

    /// How long a plugin's pass may look at one kernel, which else is left alone; not for plugins for MLIR
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    pub pass_time_limit: u64,
}

/// `apply`
#[derive(Debug, Args)]
pub struct Apply {
    /// A cubin, a fatbin, or an ELF executable, library or object that holds them
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,

    /// The target that the file must hold
    #[arg(long, value_name = "SM")]
    pub arch: Option<Target>,

    /// Of several images in the file the one of this number, as `info` counts them
    #[arg(long, value_name = "N")]
    pub image: Option<usize>,

    /// Which passes run on which kernels
    #[arg(long, value_name = "TOML", value_hint = ValueHint::FilePath)]
    pub config: PathBuf,

    /// The passes of the shared libraries in a folder
    #[command(flatten)]
    pub plugins: Plugins,

    /// Take the kernels' Mercury form out (sm_100 and up), from which a driver may build their code again
    #[arg(long)]
    pub strip_mercury: bool,

    /// Where to write the result
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, required_unless_present = "report_only")]
    pub output: Option<PathBuf>,

    /// Treat every entry as mode = "report": count sites, change nothing
    #[arg(long)]
    pub report_only: bool,

    /// Write the text of each named kernel before and after, as NAME.before.mlir and NAME.after.mlir
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub keep_mlir: Option<PathBuf>,

    /// Launch every rewritten kernel on the emulator, before and after, with random inputs, and leave those alone that do something else
    #[arg(long)]
    pub verify: bool,

    /// Exit with code 1 when a kernel that was to be rewritten is left alone
    #[arg(long)]
    pub strict: bool,

    /// What to see of MLIR's passes
    #[command(flatten)]
    pub pipeline: Pipeline,

    /// Report as JSON
    #[arg(long)]
    pub json: bool,
}
