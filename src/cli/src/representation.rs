//! `--ir`: what holds kernels between lifting and lowering.

use std::path::PathBuf;

use anyhow::Result;
use engine::{Internal, Representation};

/// The values of `--ir`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Ir {
    /// MLIR, with its passes, tools and plugins
    Mlir,
    /// The program's own representation, without LLVM
    Internal,
}

/// What to see of MLIR's passes, on the standard error output.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "MLIR (needs --ir mlir)")]
pub struct Pipeline {
    /// Print how long each pass took
    #[arg(long)]
    pub mlir_timing: bool,

    /// Print the text after every pass that changed it
    #[arg(long)]
    pub mlir_print_ir_after_all: bool,

    /// Where to write module and pipeline when a pass fails or crashes; `sass-opt --run-reproducer FILE` runs it again
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub mlir_reproducer: Option<PathBuf>,
}

impl Pipeline {
    /// The first option that is given.
    fn asked(&self) -> Option<&'static str> {
        match self {
            Pipeline { mlir_timing: true, .. } => Some("--mlir-timing"),
            Pipeline {
                mlir_print_ir_after_all: true,
                ..
            } => Some("--mlir-print-ir-after-all"),
            Pipeline {
                mlir_reproducer: Some(_),
                ..
            } => Some("--mlir-reproducer"),
            _ => None,
        }
    }
}

/// [`choose`] for a command that runs passes.
pub fn choose_with(ir: Option<Ir>, pipeline: &Pipeline) -> Result<Box<dyn Representation>> {
    #[cfg(feature = "mlir")]
    if is_mlir(ir) {
        let reproducer = pipeline.mlir_reproducer.as_ref().map(|p| p.display().to_string());
        return Ok(Box::new(mlir::Mlir {
            pipeline: mlir::PipelineOptions {
                timing: pipeline.mlir_timing,
                print_after_all: pipeline.mlir_print_ir_after_all,
                reproducer,
            },
        }));
    }
    match pipeline.asked() {
        Some(option) => anyhow::bail!("{option} needs `--ir mlir`"),
        None => choose(ir),
    }
}

/// True where kernels are held in MLIR.
pub fn is_mlir(ir: Option<Ir>) -> bool {
    cfg!(feature = "mlir") && ir != Some(Ir::Internal)
}

/// What the user chose; MLIR where it is built in and nothing was chosen.
pub fn choose(ir: Option<Ir>) -> Result<Box<dyn Representation>> {
    match ir {
        Some(Ir::Internal) => Ok(Box::new(Internal)),
        #[cfg(feature = "mlir")]
        None | Some(Ir::Mlir) => Ok(Box::new(mlir::Mlir::default())),
        #[cfg(not(feature = "mlir"))]
        None => Ok(Box::new(Internal)),
        #[cfg(not(feature = "mlir"))]
        Some(Ir::Mlir) => anyhow::bail!(
            "--ir mlir: this program was built without MLIR; `cargo build --release` builds it with MLIR (needs LLVM 22)"
        ),
    }
}
