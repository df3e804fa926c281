//! Packs `opcodes/` into the tables that this crate embeds.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let opcodes = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../opcodes");
    let Some(out) = std::env::var_os("OUT_DIR") else {
        eprintln!("OUT_DIR is not set: this program is run by cargo");
        return ExitCode::FAILURE;
    };
    match union_gen::build_script(&opcodes, &Path::new(&out).join("tables.bin")) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
