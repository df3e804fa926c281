//! `--passes`: the passes of the shared libraries in a folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use engine::config::Draft;
use engine::plugins::{self, Isolation, Launcher, LibraryKind, Plugin};
use passes::{Pass, Registry};

use crate::args;
use crate::representation::{Ir, is_mlir};

/// The hidden command that runs a library in a process of its own.
const SERVE: &str = "serve-plugin";

/// The libraries of a folder, loaded.
pub struct Plugins {
    passes: Vec<Plugin>,
    /// All libraries of the folder.
    files: Vec<PathBuf>,
    /// Plugins for MLIR that only `--ir mlir` can load.
    passed_over: Vec<PathBuf>,
    has_folder: bool,
    ir: Option<Ir>,
}

impl Plugins {
    /// Loads what is in the folder. A library that is none of ours is an error.
    pub fn load(ir: Option<Ir>, a: &args::Plugins) -> Result<Plugins> {
        let mut loaded = Plugins {
            passes: Vec::new(),
            files: a.passes.as_deref().map(libraries).transpose()?.unwrap_or_default(),
            passed_over: Vec::new(),
            has_folder: a.passes.is_some(),
            ir,
        };
        for file in &loaded.files {
            match plugins::kind(file).map_err(|why| anyhow!(why))? {
                LibraryKind::Sass => {
                    let limit = Duration::from_secs(a.pass_time_limit);
                    let isolation = Isolation::Processes(launcher(limit)?);
                    loaded
                        .passes
                        .extend(plugins::load(file, isolation).map_err(|why| anyhow!(why))?);
                }
                #[cfg(feature = "mlir")]
                LibraryKind::Mlir if is_mlir(ir) => mlir::load_pass_plugin(&file.display().to_string())?,
                LibraryKind::Mlir => loaded.passed_over.push(file.clone()),
            }
        }
        Ok(loaded)
    }

    /// The libraries of the folder.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(PathBuf::as_path)
    }

    /// The built-in passes and those of the libraries.
    pub fn registry(&self) -> Result<Registry<'_>> {
        let mut registry = Registry::default();
        registry.elsewhere = Some(self.elsewhere());
        for pass in &self.passes {
            registry.add(pass).with_context(|| pass.file().display().to_string())?;
        }
        Ok(registry)
    }

    /// The passes of a configuration that only MLIR has.
    #[cfg(feature = "mlir")]
    pub fn native_passes(&self, registry: &Registry<'_>, config: &Draft<'_>) -> Vec<Box<dyn Pass>> {
        if !is_mlir(self.ir) {
            return Vec::new();
        }
        let names: std::collections::BTreeSet<&str> = config.pass_names().collect();
        let native = names
            .into_iter()
            .filter(|name| registry.get(name).is_none() && mlir::has_pass(name));
        let boxed = |name: &str| Box::new(mlir::NativePass(name.to_owned())) as Box<dyn Pass>;
        native.map(boxed).collect()
    }

    /// The passes of a configuration that only MLIR has: none without MLIR.
    #[cfg(not(feature = "mlir"))]
    pub fn native_passes(&self, _: &Registry<'_>, _: &Draft<'_>) -> Vec<Box<dyn Pass>> {
        Vec::new()
    }

    /// Where the passes are that nobody has found.
    fn elsewhere(&self) -> String {
        let mut places = Vec::new();
        if let Some(file) = self.passed_over.first() {
            places.push(format!("{} is a plugin for MLIR", file.display()));
        }
        if !self.has_folder {
            places.push("passes of plugins need `--passes DIR`".to_owned());
        }
        if !cfg!(feature = "mlir") {
            places.push("passes of MLIR need the build with MLIR".to_owned());
        } else if !is_mlir(self.ir) {
            places.push("passes of MLIR need `--ir mlir`".to_owned());
        }
        match places.is_empty() {
            true => "MLIR and the plugins of the folder have none of that name".to_owned(),
            false => places.join(", "),
        }
    }
}

/// This program again, as the process of a library.
fn launcher(limit: Duration) -> Result<Launcher> {
    Ok(Launcher {
        program: std::env::current_exe().context("where this program is")?,
        args: vec![SERVE.into()],
        limit,
    })
}

/// The shared libraries in a folder, by name.
fn libraries(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("--passes {}: cannot read the folder", folder.display()))?;
    let mut libraries = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "so") {
            libraries.push(path);
        }
    }
    libraries.sort();
    Ok(libraries)
}
