//! Reads the instruction tables in `opcodes/` and packs them for `isa` (build time only).
//!
//! The schema is `opcodes/README.md`; [`family`], [`hand`] and [`filler`] have the rows, [`tsv`] is their only reader and
//! writer, shared with the prober.

pub mod bits;
pub mod blob;
pub mod check;
pub mod family;
pub mod filler;
pub mod hand;
pub mod names;
pub mod ods;
mod pack;
pub mod tsv;

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use crate::check::{Problem, check, check_fillers};
use crate::family::Family;
use crate::filler::FillerRow;
use crate::hand::{AliasRow, SemanticsRow};
use crate::tsv::{Row, TsvError};

/// The variable that chooses the targets to embed: `sm_87,sm_90a`; unset or empty means all.
pub const ACTIVE: &str = "SASS_ACTIVE_SMS";
/// The file that stands for a family's tables in a folder that shares another's.
pub const SAME_AS: &str = "same-as.tsv";

/// Why the tables cannot be packed.
#[derive(Debug, thiserror::Error)]
pub enum GenError {
    /// A file cannot be read, or a cell is malformed.
    #[error(transparent)]
    Tsv(#[from] TsvError),
    /// Rows contradict each other.
    #[error("{} (the schema is opcodes/README.md)", list(.0))]
    Problems(Vec<Problem>),
    /// A target was asked for that has no folder.
    #[error("{ACTIVE} names `{name}`, which has no tables in {}; there are: {known}", dir.display())]
    NoTarget {
        /// As written.
        name: String,
        /// The tables' folder.
        dir: PathBuf,
        /// Targets that have tables.
        known: String,
    },
    /// `same-as.tsv` does not name a folder with tables.
    #[error("{}:1: `{name}` is not a folder with tables beside this one", path.display())]
    SameAs {
        /// The file.
        path: PathBuf,
        /// What it says.
        name: String,
    },
    /// The system refused something.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

fn list(problems: &[Problem]) -> String {
    const SHOWN: usize = 20;
    let mut lines: Vec<String> = problems.iter().take(SHOWN).map(Problem::to_string).collect();
    if problems.len() > SHOWN {
        lines.push(format!("and {} more", problems.len() - SHOWN));
    }
    lines.join("\n")
}

/// One embedded target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableInfo {
    /// The folder whose files were read.
    pub folder: String,
    /// `sm_87`.
    pub target: String,
    /// Rows in the folder's tables.
    pub rows: usize,
    /// Shapes left out because a hole in them has no field.
    pub left_out: usize,
}

impl fmt::Display for TableInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            folder,
            target,
            rows,
            left_out,
        } = self;
        write!(
            f,
            "union-gen: opcodes/{folder}/*.tsv -> {target} decode table ({rows} rows"
        )?;
        if *left_out > 0 {
            write!(f, ", {left_out} shapes left out: holes without a field")?;
        }
        f.write_str(")")
    }
}

/// The result of [`pack`].
#[derive(Debug)]
pub struct Packed {
    /// What `isa` embeds.
    pub blob: Vec<u8>,
    /// What is in it.
    pub tables: Vec<TableInfo>,
    /// Every file that was read.
    pub inputs: Vec<PathBuf>,
}

fn read_text(path: &Path) -> Result<String, GenError> {
    fs::read_to_string(path).map_err(|source| GenError::Io {
        path: path.to_owned(),
        source,
    })
}

/// `SM90a` -> `sm_90a`.
fn target_name(folder: &str) -> Option<String> {
    let digits = folder
        .strip_prefix("SM")
        .filter(|d| d.starts_with(|c: char| c.is_ascii_digit()))?;
    Some(format!("sm_{digits}"))
}

/// Folders of targets, as target name -> folder name.
fn folders(opcodes: &Path) -> Result<BTreeMap<String, String>, GenError> {
    let io = |source| GenError::Io {
        path: opcodes.to_owned(),
        source,
    };
    let mut out = BTreeMap::new();
    for entry in fs::read_dir(opcodes).map_err(io)? {
        let name = entry.map_err(io)?.file_name();
        let name = name.to_string_lossy();
        if let Some(target) = target_name(&name) {
            out.insert(target, name.into_owned());
        }
    }
    Ok(out)
}

fn requested(active: Option<&str>, known: &BTreeMap<String, String>, dir: &Path) -> Result<Vec<String>, GenError> {
    let names: Vec<&str> = active
        .unwrap_or_default()
        .split([',', ';', ' '])
        .filter(|n| !n.is_empty())
        .collect();
    if names.is_empty() {
        return Ok(known.keys().cloned().collect());
    }
    let mut out: Vec<String> = Vec::new();
    for name in names {
        let lower = name.to_ascii_lowercase();
        let number = lower
            .strip_prefix("sm_")
            .or_else(|| lower.strip_prefix("sm"))
            .unwrap_or(&lower);
        let target = format!("sm_{number}");
        if !known.contains_key(&target) {
            return Err(GenError::NoTarget {
                name: name.to_owned(),
                dir: dir.to_owned(),
                known: known.keys().cloned().collect::<Vec<_>>().join(" "),
            });
        }
        if !out.contains(&target) {
            out.push(target);
        }
    }
    Ok(out)
}

/// Reads, checks and packs the tables in `opcodes` for the targets that `active` lists (all without it).
pub fn pack(opcodes: &Path, active: Option<&str>) -> Result<Packed, GenError> {
    let known = folders(opcodes)?;
    let mut packer = pack::Packer::default();
    let mut inputs = Vec::new();
    let mut tables = Vec::new();
    let mut families: BTreeMap<String, (u32, usize, usize)> = BTreeMap::new();
    for target in requested(active, &known, opcodes)? {
        let mut folder = known[&target].clone();
        let same = opcodes.join(&folder).join(SAME_AS);
        if same.exists() {
            let other = read_text(&same)?.trim().to_owned();
            let has_tables = known.values().any(|f| *f == other) && !opcodes.join(&other).join(SAME_AS).exists();
            if !has_tables {
                return Err(GenError::SameAs {
                    path: same,
                    name: other,
                });
            }
            inputs.push(same);
            folder = other;
        }
        let (id, rows, left_out) = match families.get(&folder) {
            Some(&known) => known,
            None => {
                let dir = opcodes.join(&folder);
                let family = Family::read(&dir)?;
                let fillers = read_fillers(&dir, &mut inputs)?;
                let mut problems = check(&family, &dir);
                problems.extend(check_fillers(&family, &fillers, &dir));
                if !problems.is_empty() {
                    return Err(GenError::Problems(problems));
                }
                inputs.extend(family::FILES.map(|f| dir.join(f)));
                let left_out = check::unexplained_shapes(&family).len();
                let entry = (
                    packer.family(&family, &fillers),
                    family.row_count() + fillers.len(),
                    left_out,
                );
                families.insert(folder.clone(), entry);
                entry
            }
        };
        packer.target(&target, id);
        tables.push(TableInfo {
            folder,
            target,
            rows,
            left_out,
        });
    }
    pack_hand_written(opcodes, &mut packer, &mut inputs)?;
    Ok(Packed {
        blob: packer.finish(),
        tables,
        inputs,
    })
}

fn read_fillers(dir: &Path, inputs: &mut Vec<PathBuf>) -> Result<Vec<FillerRow>, GenError> {
    let rows = filler::read(dir)?;
    if !rows.is_empty() {
        inputs.push(dir.join(FillerRow::FILE));
    }
    Ok(rows)
}

fn pack_hand_written(opcodes: &Path, packer: &mut pack::Packer, inputs: &mut Vec<PathBuf>) -> Result<(), GenError> {
    let mut semantics: Vec<SemanticsRow> = tsv::read(opcodes)?;
    let mut seen = std::collections::BTreeSet::new();
    let mut problems = Vec::new();
    for (i, row) in semantics.iter().enumerate() {
        if !seen.insert((row.mnemonic.clone(), row.modifiers.clone())) {
            problems.push(Problem {
                path: opcodes.join(SemanticsRow::FILE),
                line: i + 2,
                message: format!("{} {} is there twice", row.mnemonic, row.modifiers.join(".")),
            });
        }
    }
    if !problems.is_empty() {
        return Err(GenError::Problems(problems));
    }
    // Of several rows that fit, the one with most tokens holds: they come first.
    semantics.sort_by_key(|r| (r.mnemonic.clone(), std::cmp::Reverse(r.modifiers.len())));
    semantics.iter().for_each(|r| packer.semantics(r));
    let mut aliases: Vec<AliasRow> = tsv::read(opcodes)?;
    aliases.sort_by_key(|r| (r.mnemonic.clone(), r.order));
    aliases.iter().for_each(|r| packer.alias(r));
    inputs.extend([opcodes.join(SemanticsRow::FILE), opcodes.join(AliasRow::FILE)]);
    Ok(())
}

/// All of `isa`'s build script: packs `opcodes` for [`ACTIVE`] into `out`, and tells cargo what it depends on.
pub fn build_script(opcodes: &Path, out: &Path) -> Result<(), GenError> {
    println!("cargo::rerun-if-env-changed={ACTIVE}");
    println!("cargo::rerun-if-changed={}", opcodes.display());
    let active = std::env::var(ACTIVE).ok().filter(|a| !a.trim().is_empty());
    let packed = pack(opcodes, active.as_deref())?;
    for input in &packed.inputs {
        println!("cargo::rerun-if-changed={}", input.display());
    }
    // Cargo shows a build script's words as a warning or not at all; a choice is worth being seen.
    let show = if active.is_some() { "cargo::warning=" } else { "" };
    for table in &packed.tables {
        println!("{show}{table}");
    }
    fs::write(out, &packed.blob).map_err(|source| GenError::Io {
        path: out.to_owned(),
        source,
    })
}
