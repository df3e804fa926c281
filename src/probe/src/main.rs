//! The `probe` program: see `probe --help`.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use sass2mlir_probe::access;

/// Makes and checks the opcode tables by asking nvdisasm.
#[derive(Parser)]
#[command(name = "probe", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Find register file, direction and width of every register field, and registers that no text shows
    Access(access::Args),
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Access(args) => access::run(&args),
    };
    done.unwrap_or_else(|e| {
        eprintln!("probe: {e:#}");
        ExitCode::FAILURE
    })
}
