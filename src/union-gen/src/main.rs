//! `union-gen [OPCODES]`: checks the tables and says what they pack to; the build of `isa` does the same.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let dir = std::env::args().nth(1).unwrap_or_else(|| "opcodes".to_owned());
    match union_gen::pack(Path::new(&dir), std::env::var(union_gen::ACTIVE).ok().as_deref()) {
        Ok(packed) => {
            packed.tables.iter().for_each(|t| println!("{t}"));
            println!("union-gen: {} bytes packed", packed.blob.len());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("union-gen: {error}");
            ExitCode::FAILURE
        }
    }
}
