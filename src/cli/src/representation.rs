//! `--ir`: what holds kernels between lifting and lowering.

#[cfg(feature = "mlir")]
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use engine::config::Draft;
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
    if ir != Some(Ir::Internal) {
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

/// Where the passes are that [`native_passes`] does not give.
pub fn other_passes(ir: Option<Ir>) -> &'static str {
    match (cfg!(feature = "mlir"), ir) {
        (false, _) => "passes of MLIR and of plugins need the build with MLIR",
        (true, Some(Ir::Internal)) => "passes of MLIR and of plugins need `--ir mlir`",
        (true, _) => "passes of plugins need `--passes DIR`",
    }
}

/// The passes of a configuration that only MLIR has, after loading the plugins of a folder.
pub fn native_passes(ir: Option<Ir>, folder: Option<&Path>, config: &Draft<'_>) -> Result<Vec<Box<dyn passes::Pass>>> {
    let plugins = folder.map(plugins).transpose()?.unwrap_or_default();
    #[cfg(feature = "mlir")]
    if ir != Some(Ir::Internal) {
        for plugin in &plugins {
            mlir::load_pass_plugin(&plugin.display().to_string())?;
        }
        let known = passes::Registry::default();
        let names: BTreeSet<&str> = config.pass_names().collect();
        let native = names
            .into_iter()
            .filter(|name| known.get(name).is_none() && mlir::has_pass(name));
        let boxed = |name: &str| Box::new(mlir::NativePass(name.to_owned())) as Box<dyn passes::Pass>;
        return Ok(native.map(boxed).collect());
    }
    let _ = (ir, config);
    match plugins.first() {
        Some(plugin) => anyhow::bail!("{}: a plugin needs `--ir mlir`", plugin.display()),
        None => Ok(Vec::new()),
    }
}

/// The shared libraries in a folder, by name.
fn plugins(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("--passes {}: cannot read the folder", folder.display()))?;
    let mut plugins = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "so") {
            plugins.push(path);
        }
    }
    plugins.sort();
    Ok(plugins)
}
