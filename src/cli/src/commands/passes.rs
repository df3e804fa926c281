//! `passes`: what a configuration can name.

use std::io::Write;

use anyhow::Result;
use serde::Serialize;

use crate::Finding;
use crate::args;
use crate::output;
use crate::plugins::Plugins;
use crate::representation::{self, Ir};

#[derive(Serialize)]
struct PassInfo {
    name: String,
    summary: String,
    caution: Option<String>,
    options: Vec<OptionInfo>,
}

#[derive(Serialize)]
struct OptionInfo {
    name: &'static str,
    required: bool,
    value: String,
    help: &'static str,
}

/// Runs the command.
pub fn run(ir: Option<Ir>, a: &args::Plugins, json: bool, out: &mut dyn Write) -> Result<Finding> {
    let plugins = Plugins::load(ir, a)?;
    let registry = plugins.registry()?;
    let list: Vec<PassInfo> = registry
        .iter()
        .map(|p| PassInfo {
            name: p.name().to_owned(),
            summary: p.summary().to_owned(),
            caution: p.caution().map(str::to_owned),
            options: p
                .options()
                .iter()
                .map(|o| OptionInfo {
                    name: o.name,
                    required: o.required,
                    value: o.kind.to_string(),
                    help: o.help,
                })
                .collect(),
        })
        .collect();
    if json {
        output::json(out, &list)?;
        return Ok(Finding::Good);
    }
    for p in &list {
        writeln!(out, "{}: {}", p.name, p.summary)?;
        if let Some(caution) = &p.caution {
            writeln!(out, "  caution: {caution}")?;
        }
        for o in &p.options {
            let need = if o.required { "required" } else { "optional" };
            writeln!(out, "  {} ({need}): {}, {}", o.name, o.help, o.value)?;
        }
    }
    let more = match representation::is_mlir(ir) {
        true => "and the passes of MLIR that `sass-opt --help` lists",
        false => "the passes of MLIR need the build with MLIR and `--ir mlir`",
    };
    writeln!(out, "{more}")?;
    if a.passes.is_none() {
        writeln!(out, "and those of plugins: --passes DIR lists them")?;
    }
    Ok(Finding::Good)
}
