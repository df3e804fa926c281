//! The bundled kernels.
#![allow(dead_code)]

pub mod wordless;

use std::path::Path;

use sass2mlir_ir as ir;

/// Calls `f` with every code section of the bundled sm_87 cubins, or of the cubins in the folder that `SASS_CORPUS` names.
pub fn each_code(f: impl FnMut(&'static isa::Isa, ir::Source<'_>)) {
    match std::env::var_os("SASS_CORPUS") {
        Some(folder) => each_code_in(Path::new(&folder), f),
        None => each_code_of(isa::Target::Sm87, f),
    }
}

/// Those of the cubins for a target that are bundled in its folder.
pub fn each_code_of(target: isa::Target, f: impl FnMut(&'static isa::Isa, ir::Source<'_>)) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../tests/kernels/{target}"));
    if folder.exists() {
        each_code_in(&folder, f);
    }
}

fn each_code_in(folder: &Path, mut f: impl FnMut(&'static isa::Isa, ir::Source<'_>)) {
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .expect("kernels")
        .flatten()
        .map(|e| e.path())
        .collect();
    paths.retain(|p| p.extension().is_some_and(|e| e == "cubin"));
    paths.sort();
    assert!(!paths.is_empty());
    for path in paths {
        let bytes = std::fs::read(&path).expect("readable");
        let image = cubin::Image::parse(&bytes).expect("a cubin");
        let isa = isa::Isa::for_target(image.target()).expect("tables");
        for code in image.codes() {
            f(isa, ir::Source::from_code(image.target(), code));
        }
    }
}

/// Lifts code about which nothing else is known.
pub fn lift_words(words: &[u128]) -> ir::Kernel {
    let code: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
    let isa = isa::Isa::for_target(isa::Target::Sm87).expect("sm_87 tables");
    ir::lift(isa, &ir::Source::new("words", isa::Target::Sm87, &code)).expect("lifts")
}

/// sm_87 code, one line an instruction: the scheduling column in brackets, then the text.
pub fn assemble(listing: &str) -> Vec<u8> {
    assemble_for(isa::Target::Sm87, listing)
}

/// The same for any target.
pub fn assemble_for(target: isa::Target, listing: &str) -> Vec<u8> {
    let isa = isa::Isa::for_target(target).expect("tables");
    let sections = isa::asm::Assembler::new(isa).listing(listing, None);
    let sections = sections.unwrap_or_else(|e| panic!("{listing}: {e:?}"));
    sections[0].words.iter().flat_map(|w| w.to_le_bytes()).collect()
}

/// The kernel of a text of one.
pub fn parse(text: &str) -> ir::Kernel {
    ir::parse_module(text)
        .unwrap_or_else(|e| panic!("{e}\n{text}"))
        .remove(0)
}

/// `EXIT`.
pub const EXIT: u128 = 0x000fea0003800000000000000000794d;
/// `NOP`.
pub const NOP: u128 = 0x000fc000000000000000000000007918;
/// `BRA` to itself.
pub const LOOP: u128 = 0x000fc0000383fffffffffff000007947;
/// `MOV R2, 0x1`
pub const MOV_R2_1: u128 = 0x000fe20000000f000000000100027802;
/// `@P0 MOV R2, 0x2`
pub const MOV_R2_2_IF_P0: u128 = 0x000fe20000000f000000000200020802;
/// `IADD3 R3, R2, R2, RZ`
pub const ADD_R3_R2_R2: u128 = 0x000fe20007ffe0ff0000000202037210;
/// `FFMA.FTZ R4, R2, R3, R4`
pub const FFMA: u128 = 0x000fe200000100040000000302047223;
