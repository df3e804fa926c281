//! `union-gen [OPCODES]`: checks the tables and says what they pack to; the build of `isa` does the same.
//! `union-gen ods`: writes `dialect/include/Sass/SassInsts.td`, the op classes of the MLIR dialect, from `opcodes/`.

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
    let path = root.join("dialect/include/Sass/SassInsts.td");
    let text = union_gen::ods::insts_td(&root.join("opcodes")).map_err(|e| e.to_string());
    match text.and_then(|text| std::fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("union-gen: {error}");
            ExitCode::FAILURE
        }
    }
}
