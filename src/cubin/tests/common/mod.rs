//! The bundled files.

use std::path::PathBuf;

/// Fatbins of each way to store an image.
pub const FATBINS: [&str; 5] = [
    "stored.fatbin",
    "lz4.fatbin",
    "zstd.fatbin",
    "concat.fatbin",
    "concat_lz4.fatbin",
];

/// A file of tests/kernels/containers.
pub fn read(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/kernels/containers")
        .join(name);
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}
