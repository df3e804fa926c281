//! Options that several commands share.

use std::path::PathBuf;

use anyhow::Result;
use isa::Target;

use crate::nvdisasm::{Nvdisasm, arch};
use crate::plr::version_for;

/// A target and the tool that knows it.
#[derive(clap::Args, Debug)]
pub struct Tool {
    /// Target, such as sm_87
    #[arg(long)]
    pub sm: Target,
    /// The disassembler: a path, or a name on PATH (sm_70, sm_72 and kernels of CUDA 12 also need nvdisasm-12.8 beside it)
    #[arg(long, default_value = "nvdisasm")]
    pub nvdisasm: PathBuf,
}

impl Tool {
    /// The disassembler that knows the target.
    pub fn program(&self) -> PathBuf {
        version_for(&self.nvdisasm, self.sm.number() < 75)
    }
}

/// A target's tables.
#[derive(clap::Args, Debug)]
pub struct Tables {
    /// Target and tool
    #[command(flatten)]
    pub tool: Tool,
    /// Folder that holds a folder for each target
    #[arg(long, default_value = "opcodes")]
    pub opcodes: PathBuf,
}

impl Tables {
    /// The folder of the target's tables: `SM87` for `sm_87`.
    pub fn folder(&self) -> PathBuf {
        self.folder_of(self.tool.sm)
    }

    /// The folder that holds the rows of the target: its own, or the one whose tables it shares.
    pub fn rows(&self) -> PathBuf {
        let own = self.folder();
        match std::fs::read_to_string(own.join(union_gen::SAME_AS)) {
            Ok(other) => self.opcodes.join(other.trim()),
            Err(_) => own,
        }
    }

    /// The folder of another target's tables.
    pub fn folder_of(&self, target: Target) -> PathBuf {
        self.opcodes.join(arch(target))
    }
}

/// Answers about words.
#[derive(clap::Args, Debug)]
pub struct Words {
    /// Tables and tool
    #[command(flatten)]
    pub tables: Tables,
    /// Folder that keeps nvdisasm's answers, so that a second run is quick
    #[arg(long)]
    pub cache: Option<PathBuf>,
}

impl Words {
    /// The disassembler.
    pub fn ask(&self) -> Result<Nvdisasm> {
        let tool = &self.tables.tool;
        let tool = Nvdisasm::new(tool.program(), tool.sm)?;
        match &self.cache {
            Some(folder) => tool.remember(folder),
            None => Ok(tool),
        }
    }
}

/// The compiler of seed files.
#[derive(clap::Args, Debug)]
pub struct Compiler {
    /// A path, or a name on PATH (sm_70, sm_72 and sm_101 need ptxas-12.9 beside it)
    #[arg(long, default_value = "ptxas")]
    pub ptxas: PathBuf,
}

impl Compiler {
    /// The compiler that knows a target.
    pub fn program(&self, target: Target) -> PathBuf {
        match target.number() {
            ..75 | 101 => self.ptxas.with_file_name("ptxas-12.9"),
            _ => self.ptxas.clone(),
        }
    }
}
