//! The command line.

mod emulate;
mod rewrite;
mod show;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueHint};
use isa::Target;

use crate::representation::Ir;

pub use emulate::{Run, Verify};
pub use rewrite::{Apply, Asm, Lower, Nops, Plugins, Regalloc, Schedule};
pub use show::{Check, Diff, Disasm, Info, Lift, Roundtrip};

/// Exit codes, in `--help` of the program.
const EXIT_CODES: &str = "\
Exit codes:
  0  done; every comparison held
  1  a difference, a mismatch, a hazard or no verdict, or a kernel that was left alone: by regalloc, nops and schedule,
     and by apply under --strict, there also one that a pass refuses
  2  wrong usage or bad input; the message names the file, the place and the cure

Colour and progress appear on a terminal only; NO_COLOR turns colour off.";

/// Lifts NVIDIA GPU machine code (SASS) to SSA in MLIR, rewrites it, and writes it back byte-exactly.
#[derive(Debug, Parser)]
#[command(name = "sass2mlir", version, after_help = EXIT_CODES, arg_required_else_help = true, max_term_width = 110)]
pub struct Cli {
    /// Threads to use, 1 to 1024; default: one per core
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,

    /// What holds kernels between lifting and lowering; texts and bytes are the same. Default: mlir where it is built in
    #[arg(long, global = true, value_enum, value_name = "IR")]
    pub ir: Option<Ir>,

    /// What to do
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Prove that decode, SSA, text, parse, lowering and encode give back the same bytes
    #[command(after_help = "\
Examples:
  sass2mlir roundtrip K.cubin --arch sm_87
  sass2mlir roundtrip libfoo.so --json

The whole way for every kernel: decode -> SSA -> text -> parse -> lower (register fields cleared first) -> encode ->
patch -> compare the files. Exit code 1 when a word or the file differs.")]
    Roundtrip(Roundtrip),

    /// Print the instructions as NVIDIA's nvdisasm writes them
    #[command(after_help = "\
Examples:
  sass2mlir disasm K.cubin
  sass2mlir disasm K.cubin --kernel '*mul_mat*' --hex --control
  sass2mlir disasm K.code --arch sm_87                   raw code, without a file around it
  sass2mlir disasm K.cubin --asm > K.sass                what `sass2mlir asm` takes

--control and --asm show what the text alone does not say: the scheduling column, and notes such as <2.UR0=UR4> for
operands that nvdisasm never prints. The column is the one that SASS assemblers write: scoreboards waited for, read
barrier, write barrier, Y where bit 109 is clear, stall.")]
    Disasm(Disasm),

    /// Assemble nvdisasm-style text with a scheduling column into machine code
    #[command(after_help = "\
Examples:
  sass2mlir disasm K.cubin --asm > K.sass; edit K.sass
  sass2mlir asm K.sass --into K.cubin -o OUT.cubin       replace the code of the kernels that the text names
  sass2mlir asm K.sass -o K.code                         the code alone
  echo '[B------:R-:W-:-:S04] FADD R0, R1, R2 ;' | sass2mlir asm - --arch sm_87

A line:  [B--2---:R0:W-:-:S04] /*0010*/ @!P0 LDG.E R0, [R2.64] <2.UR0=UR4> ;
The column may also stand in a comment after the instruction; address and other comments may be missing. Labels,
`.section .text.NAME` and `.target sm_87` are understood. Of nvdisasm's other directives those that put no bytes into code
are passed over; any other within code is an error.

The word is exact or the line is refused, with what is missing:
  - operands that nvdisasm leaves out (PT) may be written out, which settles where a carry goes
  - operands that it never prints, and NaNs, need a note: <2.UR0=UR4>, <2.F0=0x7fffffff>, or any bits: <90:87=0xf>
  - bits that mean nothing are filled as compilers do (opcodes/README.md); where that is not known, <filler> takes the
    tables' choice
Every word is decoded and printed again, and must give back the text.")]
    Asm(Asm),

    /// Lift kernels to SSA and print them as MLIR text
    #[command(after_help = "\
Examples:
  sass2mlir lift K.cubin -o K.mlir
  sass2mlir lift libfoo.so --arch sm_87 --kernel '*softmax*' | less")]
    Lift(Lift),

    /// Lower MLIR text and put the kernels' code back into a cubin
    #[command(after_help = "\
Example:
  sass2mlir lower K.mlir --into K.cubin -o OUT.cubin

Each kernel of the text replaces the code of the kernel with that name; everything else stays byte-identical.")]
    Lower(Lower),

    /// Check that stall counts and scoreboards keep every result from being read too early
    #[command(after_help = "\
Examples:
  sass2mlir check K.cubin
  sass2mlir check libfoo.so --kernel '*softmax*' --json
  sass2mlir check K.cubin --explain                   also what each kind of finding means, and how it is cured

The hardware does not interlock results of fixed latency, and knows of others only by scoreboards: wrong scheduling bits
compute wrong numbers with no fault. Every way through a kernel is followed, loops included, and every pair of instructions
that depend on each other is compared with the latency model of the target; a finding says where its number is from.

Exit code 0: every kernel is clean. 1: a kernel has hazards, or has something that no table knows, so that there is no
verdict (`unknown`). 2: wrong usage or bad input.")]
    Check(Check),

    /// Allocate registers anew and prove that the kernels are the same
    #[command(after_help = "\
Examples:
  sass2mlir regalloc K.cubin --pinned                 every value where its word says: must give back the bytes
  sass2mlir regalloc K.cubin -o OUT.cubin             a fresh allocation, never with more registers
  sass2mlir regalloc K.cubin --scramble 7 --fresh     random registers, then a fresh allocation of that

Each result is lifted again: its def-use graph must be the original's. Stall counts and scoreboards stay, so no value gets
a register that an instruction may still read or write; the hazard checker must find nothing that it did not find before.
A kernel for which one of these fails stays as it was, with the reason. Exit code 1 when a kernel is left alone or, with
--pinned, differs.")]
    Regalloc(Regalloc),

    /// Schedule kernels anew: another order of the instructions of each block, stall counts and scoreboards from scratch
    #[command(after_help = "\
Examples:
  sass2mlir schedule K.cubin -o OUT.cubin
  sass2mlir schedule K.cubin --keep-order -o OUT.cubin        only stall counts, scoreboards and operand-cache flags
  sass2mlir verify K.cubin OUT.cubin                          both compute the same

Each result has passed `check`, and every operand reads what it read. Where another order is no gain by the latency model,
a block keeps its own. A kernel of which something is not known is left alone, with the reason; then the exit code is 1.")]
    Schedule(Schedule),

    /// Put NOPs into kernels at random places, or take them out again: the proof that code can move
    #[command(after_help = "\
Examples:
  sass2mlir nops K.cubin --seed 7 --list L.txt -o MOVED.cubin
  sass2mlir nops MOVED.cubin --take-out --list L.txt -o BACK.cubin        BACK.cubin is K.cubin, byte for byte")]
    Nops(Nops),

    /// Show kernels, registers, shared memory, parameters, ABI, target, attributes
    #[command(after_help = "\
Examples:
  sass2mlir info K.cubin
  sass2mlir info a.out --attributes --json
  sass2mlir info K.cubin --pressure --block-threads 128 --svg charts
  sass2mlir info K.cubin --cycles --json                estimates: every load from L2, no other warps")]
    Info(Info),

    /// Run the passes of a configuration over the kernels it names and write the rewritten file
    #[command(after_help = "\
Examples:
  sass2mlir apply K.cubin --config pass.toml -o OUT.cubin
  sass2mlir apply K.cubin --config pass.toml --report-only
  sass2mlir apply K.cubin --passes DIR --config pass.toml -o OUT.cubin        also the passes of plugins
  sass2mlir passes                                      the passes and their options

pass.toml:
  [[pass]]
  name = \"ffma-deftz\"
  sm   = [\"sm_87\"]           # default: every target
  fn   = [\"*mul_mat*\"]       # globs; default: every kernel
  mode = \"report\"            # or \"apply\"; there is no default

Kernels that no entry names stay byte-identical. A kernel that fails a check is left byte-identical, with the reason. A pass
that refuses a kernel does nothing there; what other passes do to it stays. Under --strict both give exit code 1.
--verify runs kernels without timing: wrong stall counts and scoreboards show in `verify --timing`.

A plugin is a shared library that exports `sassGetPlugin` (sass_plugin.h; in C or Rust) or, where MLIR is built in, a pass
plugin of MLIR. The first kind runs in a process of its own: one that crashes or does not end leaves its kernel as it was.")]
    Apply(Apply),

    /// Run a kernel on the emulator: no GPU needed
    #[command(after_help = format!("\
Examples:
  sass2mlir run K.cubin --kernel saxpy --grid 4 --block 256 --arg i32=1000 --arg f32=2 --arg x:f32[1000]=iota --arg y:f32[1000]=1
  sass2mlir run K.cubin --kernel saxpy ... --dump y=y.npy
  sass2mlir run K.cubin --kernel saxpy ... --check      reads of what nobody wrote, races in shared memory
  sass2mlir run K.cubin --kernel saxpy ... --timing     wrong stall counts and scoreboards corrupt memory
  sass2mlir run libfoo.so --survey                      which kernels could run, and what keeps the others from it

What is not emulated is refused before anything runs, with its place. Every access is checked for bounds and alignment.
Blocks run one after another, so that equal launches give equal memory, or on all cores where they cannot tell. Exit code 1 when --check finds something, or
something comes too early with --timing.

--arg takes, for each parameter in order:
{}", crate::kernel_args::SYNTAX))]
    Run(Run),

    /// Show the instructions of two files side by side, aligned by instruction
    #[command(after_help = "\
Examples:
  sass2mlir diff K.cubin OUT.cubin
  sass2mlir diff K.cubin OUT.cubin --kernel '*mul_mat*' --html DIFF.html

Between the two sides stands what became of an instruction: `|` changed, `~` other scheduling, `<` only in the first file, `>` only in
the second. Code labels that moved with what they name are no difference. Exit code 1 when an instruction differs.")]
    Diff(Diff),

    /// Compare what the kernels of two files compute: random launches on the emulator, memory bit for bit
    #[command(after_help = "\
Examples:
  sass2mlir verify K.cubin OUT.cubin
  sass2mlir verify K.cubin OUT.cubin --kernel '*mul_mat*' --launches 100 --seed 7

Parameters of eight bytes are taken for addresses until a run shows that they are none; buffers reach as far as the first
kernel touches them, and have no more alignment than it uses. Kernels that are the same in both files, with all that they use, are not run.
Exit code 1 when a kernel differs or could not be tried; the report names the first store that differs.")]
    Verify(Verify),

    /// List the passes that a configuration can name, with their options
    #[command(after_help = "\
Examples:
  sass2mlir passes
  sass2mlir passes --passes DIR --json                  with those of the plugins in a folder")]
    Passes {
        /// The passes of the shared libraries in a folder
        #[command(flatten)]
        plugins: Plugins,

        /// Report as JSON
        #[arg(long)]
        json: bool,
    },

    /// The process of a plugin, which `apply` starts
    #[command(hide = true)]
    ServePlugin {
        /// The shared library
        library: PathBuf,
    },

    /// Print a completion script for a shell
    #[command(after_help = "\
Example:
  sass2mlir completions bash > ~/.local/share/bash-completion/completions/sass2mlir")]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// The file to read, and which of its kernels.
#[derive(Clone, Debug, Args)]
pub struct Input {
    /// A cubin, a fatbin, or an ELF executable, library or object that holds them
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,

    /// The target that the file must hold; images for other targets are passed over
    #[arg(long, value_name = "SM")]
    pub arch: Option<Target>,

    /// Of several images in the file the one of this number, as `info` counts them
    #[arg(long, value_name = "N")]
    pub image: Option<usize>,

    /// Only kernels whose name matches one of these globs
    #[arg(long = "kernel", value_name = "GLOB")]
    pub kernels: Vec<String>,
}
