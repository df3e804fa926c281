//! Plugins in this process, as a library call uses them.

#[path = "../../../tests/common/plugin.rs"]
mod plugin;

use passes::Registry;
use plugin::{EVICT_FIRST, compile, in_project};
use sass2mlir_engine::plugins::{Isolation, LibraryKind, kind, load};
use sass2mlir_engine::{Config, Options};

#[test]
fn a_library_that_is_trusted_runs_in_this_process() {
    let dir = tempfile::tempdir().unwrap();
    let file = compile(EVICT_FIRST, &[], dir.path(), "evict_first.so");
    assert_eq!(kind(&file), Ok(LibraryKind::Sass));
    let passes = load(&file, Isolation::None).unwrap();
    let mut registry = Registry::default();
    passes.iter().for_each(|pass| registry.add(pass).unwrap());
    let toml = "[[pass]]\nname = \"evict-first\"\nmode = \"apply\"\nhint = \"LU\"\n";
    let config = Config::parse(toml, "pass.toml", &registry).unwrap();
    let kernels = std::fs::read(in_project("tests/kernels/sm_87/own_mul_mat.cubin")).unwrap();
    let done = sass2mlir_engine::apply(&kernels, &config, &Options::default()).unwrap();
    let kernels = &done.report.images[0].kernels;
    assert!(kernels.iter().all(|k| k.left_alone.is_none()));
    let hinted: usize = kernels.iter().map(|k| k.passes[0].ops).sum();
    assert!(hinted > 20 && done.bytes.is_some(), "{hinted}");

    let missing = load(&dir.path().join("none.so"), Isolation::None).err().unwrap();
    assert!(missing.contains("none.so: cannot be loaded"), "{missing}");
}
