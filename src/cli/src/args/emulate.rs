//! What the commands of the emulator take.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::Input;
use crate::kernel_args::Dim;

/// `run`
#[derive(Debug, Args)]
pub struct Run {
    /// The file and its kernel
    #[command(flatten)]
    pub input: Input,

    /// Blocks: X, X,Y or X,Y,Z
    #[arg(long, value_name = "X,Y,Z", default_value = "1")]
    pub grid: Dim,

    /// Threads of a block: X, X,Y or X,Y,Z
    #[arg(long, value_name = "X,Y,Z", default_value = "32")]
    pub block: Dim,

    /// Dynamic shared memory
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    pub shared: u32,

    /// An argument, in the order of the parameters; see below
    #[arg(long = "arg", value_name = "ARG")]
    pub args: Vec<String>,

    /// Write a buffer after the launch, as .npy or raw
    #[arg(long, value_name = "NAME=FILE")]
    pub dump: Vec<String>,

    /// Print each instruction before it is executed, with what the first lane reads
    #[arg(long)]
    pub trace: bool,

    /// Look for reads of what nobody wrote, and for races in shared memory
    #[arg(long)]
    pub check: bool,

    /// Let results be there only when their time has passed or they were waited for, by the latency model of the target
    #[arg(long)]
    pub timing: bool,

    /// Give up after so many warp instructions
    #[arg(long, value_name = "N", default_value_t = 1 << 36)]
    pub max_steps: u64,

    /// Run nothing; count the kernels that could run, and what keeps the others from it
    #[arg(long, conflicts_with_all = ["args", "dump", "trace", "check", "timing"])]
    pub survey: bool,

    /// Report as JSON
    #[arg(long)]
    pub json: bool,
}

/// `verify`
#[derive(Debug, Args)]
pub struct Verify {
    /// The file before
    #[command(flatten)]
    pub before: Input,

    /// The file after
    #[arg(value_name = "AFTER", value_hint = ValueHint::FilePath)]
    pub after: PathBuf,

    /// Launches to compare
    #[arg(long, value_name = "N", default_value_t = 24, value_parser = clap::value_parser!(u32).range(1..))]
    pub launches: u32,

    /// Where the random numbers begin
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    /// Let results be there only when their time has passed or they were waited for, by the latency model of the target
    #[arg(long)]
    pub timing: bool,

    /// Report as JSON
    #[arg(long)]
    pub json: bool,
}
