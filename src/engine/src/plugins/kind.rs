//! What a shared library is for, by the symbols that it exports: nothing of it runs.

use std::fs;
use std::path::Path;

use object::Endianness;
use object::read::Object;
use object::read::elf::ElfFile64;
use plugin::abi::GET_PLUGIN;

/// The symbol of MLIR's pass plugins.
const MLIR: &str = "mlirGetPassPluginInfo";

/// What a library is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LibraryKind {
    /// `sass_plugin.h`.
    Sass,
    /// A pass plugin of MLIR.
    Mlir,
}

/// Tells what a library is for. The error names the file.
pub fn kind(file: &Path) -> Result<LibraryKind, String> {
    let in_file = |why: String| format!("{}: {why}", file.display());
    // To read a pipe would wait for whoever writes into it.
    match fs::metadata(file) {
        Ok(there) if !there.is_file() => {
            return Err(in_file("it is no regular file, so it is no shared library".into()));
        }
        _ => (),
    }
    let bytes = fs::read(file).map_err(|e| in_file(e.to_string()))?;
    let elf = ElfFile64::<Endianness>::parse(&*bytes);
    let exports = elf.and_then(|elf| Ok(elf.exports()?.iter().map(|e| e.name()).collect::<Vec<_>>()));
    let exports = exports.map_err(|e| in_file(format!("it is no shared library: {e}")))?;
    let has = |name: &str| exports.contains(&name.as_bytes());
    match (has(GET_PLUGIN), has(MLIR)) {
        (true, _) => Ok(LibraryKind::Sass),
        (false, true) => Ok(LibraryKind::Mlir),
        (false, false) => Err(in_file(format!(
            "it is no plugin: it exports neither `{GET_PLUGIN}` (sass_plugin.h) nor `{MLIR}` (MLIR)"
        ))),
    }
}
