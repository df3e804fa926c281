//! What the commands that only read take.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::Input;

/// `roundtrip`
#[derive(Debug, Args)]
pub struct Roundtrip {
    /// The file and its kernels
    #[command(flatten)]
    pub input: Input,

    /// Report as JSON
    #[arg(long)]
    pub json: bool,
}

/// `check`
#[derive(Debug, Args)]
pub struct Check {
    /// The file and its kernels
    #[command(flatten)]
    pub input: Input,

    /// Say what each kind of finding means, and how it is cured
    #[arg(long, conflicts_with = "json")]
    pub explain: bool,

    /// Report as JSON
    #[arg(long)]
    pub json: bool,
}

/// `diff`
#[derive(Debug, Args)]
pub struct Diff {
    /// The file before
    #[command(flatten)]
    pub before: Input,

    /// The file after
    #[arg(value_name = "AFTER", value_hint = ValueHint::FilePath)]
    pub after: PathBuf,

    /// Show every instruction, also those that are the same
    #[arg(long)]
    pub all: bool,

    /// Write a page that shows all of it, and needs nothing beside itself
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub html: Option<PathBuf>,

    /// Report as JSON
    #[arg(long)]
    pub json: bool,
}

/// `disasm`
#[derive(Debug, Args)]
pub struct Disasm {
    /// The file and its kernels
    #[command(flatten)]
    pub input: Input,

    /// Show the 128-bit words
    #[arg(long)]
    pub hex: bool,

    /// Show the scheduling column, and notes where the text does not say all
    #[arg(long)]
    pub control: bool,

    /// Print what `sass2mlir asm` turns back into the same bytes; relocated operands are the numbers that the file holds
    #[arg(long, conflicts_with_all = ["hex", "control", "json"])]
    pub asm: bool,

    /// Report as JSON
    #[arg(long)]
    pub json: bool,
}

/// `lift`
#[derive(Debug, Args)]
pub struct Lift {
    /// The file and its kernels
    #[command(flatten)]
    pub input: Input,

    /// Where to write the text; default: standard output
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,

    /// Report as JSON (needs -o)
    #[arg(long, requires = "output")]
    pub json: bool,
}

/// `info`
#[derive(Debug, Args)]
pub struct Info {
    /// The file and its kernels
    #[command(flatten)]
    pub input: Input,

    /// List the .nv.info attributes too
    #[arg(long)]
    pub attributes: bool,

    /// Show live registers along the code instead, with the steps of occupancy
    #[arg(long, conflicts_with = "attributes")]
    pub pressure: bool,

    /// Show how long each block takes by its stall counts and waits, and the chain of instructions that its results wait for
    #[arg(long, conflicts_with_all = ["attributes", "pressure"])]
    pub cycles: bool,

    /// Threads of a block, for kernels that do not say
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub block_threads: u32,

    /// Draw them too: a file a kernel, NAME.SM.svg
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, requires = "pressure")]
    pub svg: Option<PathBuf>,

    /// Report as JSON
    #[arg(long)]
    pub json: bool,
}
