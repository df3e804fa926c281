//! The `sass2mlir` program: arguments in, calls to the rooms below, words out.

mod aligned;
mod args;
mod commands;
mod counterparts;
mod image_args;
mod input;
mod kernel_args;
mod labels;
mod listing;
mod npy;
mod output;
mod plugins;
mod relocated;
mod representation;
mod rewritten;
mod timing;

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::Result;
use clap::{CommandFactory, Parser};

use args::{Cli, Command};

/// What a command that ran to its end found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// Everything held: exit code 0.
    Good,
    /// A difference or a mismatch: exit code 1.
    Difference,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    if let Some(n) = cli.threads
        && let Err(e) = rayon::ThreadPoolBuilder::new().num_threads(n.into()).build_global()
    {
        eprintln!("sass2mlir: --threads {n}: {e}");
        return ExitCode::from(2);
    }
    // What is written to standard output is the result alone.
    let mut out: Box<dyn Write> = match cli.command.output().is_some_and(output::is_stdout) {
        true => Box::new(io::stderr().lock()),
        false => Box::new(output::Stdout(io::BufWriter::new(io::stdout().lock()))),
    };
    let result = run(&cli, &mut *out).and_then(|finding| {
        out.flush()?;
        Ok(finding)
    });
    match result {
        Ok(Finding::Good) => ExitCode::SUCCESS,
        Ok(Finding::Difference) => ExitCode::from(1),
        // The reader of the pipe has seen enough (`sass2mlir lift K.cubin | head`).
        Err(e) if is_broken_pipe(&e) => ExitCode::SUCCESS,
        Err(e) => {
            let _ = out.flush();
            eprintln!("sass2mlir: {e:#}");
            ExitCode::from(2)
        }
    }
}

fn run(cli: &Cli, out: &mut dyn Write) -> Result<Finding> {
    let representation = || representation::choose(cli.ir);
    match &cli.command {
        Command::Roundtrip(a) => commands::roundtrip::run(&*representation()?, a, out),
        Command::Asm(a) => commands::asm::run(a, out),
        Command::Nops(a) => commands::nops::run(a, out),
        Command::Regalloc(a) => commands::regalloc::run(a, out),
        Command::Schedule(a) => commands::schedule::run(a, out),
        Command::Check(a) => commands::check::run(a, out),
        Command::Disasm(a) => commands::disasm::run(a, out),
        Command::Lift(a) => commands::lift::run(&*representation()?, a, out),
        Command::Lower(a) => commands::lower::run(&*representation()?, a, out),
        Command::Info(a) => commands::info::run(a, out),
        Command::Run(a) => commands::run::run(a, out),
        Command::Diff(a) => commands::diff::run(a, out),
        Command::Verify(a) => commands::verify::run(a, out),
        Command::Apply(a) => commands::apply::run(cli.ir, a, out),
        Command::Passes { plugins, json } => commands::passes::run(cli.ir, plugins, *json, out),
        Command::ServePlugin { library } => {
            engine::plugins::serve(library)?;
            Ok(Finding::Good)
        }
        Command::Completions { shell } => {
            // What writes the script takes an error of its output for its own.
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "sass2mlir", &mut script);
            out.write_all(&script)?;
            Ok(Finding::Good)
        }
    }
}

fn is_broken_pipe(e: &anyhow::Error) -> bool {
    e.chain().any(|c| {
        let io = c.downcast_ref::<io::Error>().map(io::Error::kind);
        let json = c
            .downcast_ref::<serde_json::Error>()
            .and_then(serde_json::Error::io_error_kind);
        io.or(json) == Some(io::ErrorKind::BrokenPipe)
    })
}
