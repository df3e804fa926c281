//! The `probe` program: see `probe --help`.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use sass2mlir_probe::{access, assign, check, fillers, flow, hazards, mine, repair, seeds, tables, told};

/// Makes and checks the opcode tables by asking nvdisasm.
#[derive(Parser)]
#[command(name = "probe", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Find every instruction form of a target and write its tables
    Tables(tables::Args),
    /// Compile seed files for a target, and say how much of them exists there
    Seeds(seeds::Args),
    /// Gate: text, fields and legality of words of every form are those of nvdisasm
    Check(check::Args),
    /// Find register file, direction and width of every register field, and registers that no text shows
    Access(access::Args),
    /// Read off cubins what compilers write into bits that mean nothing
    Fillers(fillers::Args),
    /// Read off cubins the least cycles between instructions that depend on each other
    Mine(mine::Args),
    /// Gate: on fresh words the registers read and written are those that nvdisasm -plr shows
    CheckAccess(access::check::Args),
    /// Gate: the registers of every instruction of real cubins are those that nvdisasm -plr shows
    CheckAccessKernels(access::kernels::Args),
    /// Gate: the control flow of real cubins is that of nvdisasm -bbcfg
    CheckFlow(flow::Args),
    /// Gate: vendor kernels are free of hazards, and planted ones are found
    CheckHazards(hazards::Args),
    /// Gate: scheduling bits assigned from scratch are free of hazards and as quick as NVIDIA's
    CheckAssign(assign::Args),
    /// Gate: kernels whose instructions changed places are made free of hazards again, by the fewest changes
    CheckRepair(repair::Args),
    /// Gate: of what NVIDIA's compiler always has a scoreboard tell, the latency model asks for one
    Told(told::Args),
    /// Gate: reads, writes and live registers of real cubins are those of nvdisasm -plr
    CheckLive(flow::live::Args),
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Tables(args) => tables::run(&args),
        Command::Seeds(args) => seeds::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Access(args) => access::run(&args),
        Command::Fillers(args) => fillers::run(&args),
        Command::Mine(args) => mine::run(&args),
        Command::CheckHazards(args) => hazards::run(&args),
        Command::CheckAssign(args) => assign::run(&args),
        Command::CheckRepair(args) => repair::run(&args),
        Command::Told(args) => told::run(&args),
        Command::CheckAccess(args) => access::check::run(&args),
        Command::CheckAccessKernels(args) => access::kernels::run(&args),
        Command::CheckFlow(args) => flow::run(&args),
        Command::CheckLive(args) => flow::live::run(&args),
    };
    done.unwrap_or_else(|e| {
        eprintln!("probe: {e:#}");
        ExitCode::FAILURE
    })
}
