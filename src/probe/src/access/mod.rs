//! Which registers each field of a form names, whether it reads or writes them, and how many.

use std::path::PathBuf;
use std::process::ExitCode;

/// Options of `probe access`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Target, for example sm_87
    #[arg(long)]
    pub sm: String,
    /// The folder of the tables
    #[arg(long, default_value = "opcodes")]
    pub opcodes: PathBuf,
    /// Folder that holds nvdisasm (default: the search path)
    #[arg(long)]
    pub tools: Option<PathBuf>,
    /// Threads
    #[arg(long, default_value_t = 2)]
    pub jobs: usize,
}

/// Runs `probe access`.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    anyhow::bail!("access inference for {} is not built yet", args.sm)
}
