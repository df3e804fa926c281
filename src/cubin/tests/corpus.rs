//! Real cubins, when the environment names a folder that holds some: `SASS_CORPUS=DIR cargo test -p sass2mlir-cubin`.

use std::path::{Path, PathBuf};

use isa::Target;
use sass2mlir_cubin::elf::Elf;
use sass2mlir_cubin::{CubinError, Image, Patch};

fn collect(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, into);
        } else if path.extension().is_some_and(|e| e == "cubin") {
            into.push(path);
        }
    }
}

#[test]
fn every_cubin_of_the_corpus_parses() {
    let Some(folder) = std::env::var_os("SASS_CORPUS") else {
        eprintln!("skipped: SASS_CORPUS names no folder");
        return;
    };
    let mut files = Vec::new();
    collect(Path::new(&folder), &mut files);
    assert!(!files.is_empty(), "no cubin under {folder:?}");
    let (mut parsed, mut old, mut codes, mut attributes, mut relocations) = (0, 0, 0, 0usize, 0usize);
    for path in &files {
        let bytes = std::fs::read(path).expect("it can be read");
        let image = match Image::parse(&bytes) {
            Ok(image) => image,
            // Before sm_70 instructions have 8 bytes: another machine.
            Err(CubinError::UnknownTarget { number, .. }) if number < 70 => {
                Elf::parse(&bytes).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
                old += 1;
                continue;
            }
            Err(e) => panic!("{}: {e}", path.display()),
        };
        parsed += 1;
        // Folders are named after the target by the script that brought the cubins, which has its own reader.
        let folders = path
            .components()
            .filter_map(|c| c.as_os_str().to_str()?.parse::<Target>().ok());
        folders.for_each(|t| assert_eq!(image.target(), t, "{}", path.display()));
        codes += image.codes().len();
        for section in image.sections() {
            for attribute in image
                .attributes(section.index)
                .unwrap_or_else(|e| panic!("{}: {e}", path.display()))
            {
                attribute
                    .value()
                    .unwrap_or_else(|e| panic!("{} {}: {e}", path.display(), section.name));
                attributes += 1;
            }
        }
        relocations += image.codes().iter().map(|c| c.relocations.len()).sum::<usize>();
        for code in image.codes() {
            assert!(code.registers.is_some(), "{} {}", path.display(), code.name);
            assert!(code.function().is_some(), "{} {}", path.display(), code.name);
            assert!(
                code.params.is_empty() || code.param_bank.is_some(),
                "{} {}",
                path.display(),
                code.name
            );
        }
        assert!(Patch::new(&image).finish() == bytes);
    }
    eprintln!(
        "{parsed} cubins ({old} older than sm_70), {codes} codes, {attributes} attributes, {relocations} relocations"
    );
}
