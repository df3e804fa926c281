//! `union-gen [OPCODES]`: checks the tables and says what they pack to; the build of `isa` does the same.
//! `union-gen ods`: writes the generated files of the MLIR dialect, its op classes and enums, from `opcodes/`.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some("ods") {
        return ods();
    }
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

fn ods() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let files = match union_gen::ods::files(&root.join("opcodes")) {
        Ok(files) => files,
        Err(error) => return failed(&error),
    };
    for (name, text) in files {
        let path = root.join(union_gen::ods::FOLDER).join(name);
        if let Err(error) = std::fs::write(&path, text) {
            return failed(&format_args!("{}: {error}", path.display()));
        }
    }
    ExitCode::SUCCESS
}

fn failed(error: &dyn std::fmt::Display) -> ExitCode {
    eprintln!("union-gen: {error}");
    ExitCode::FAILURE
}
