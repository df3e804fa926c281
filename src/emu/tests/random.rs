//! No code and no data crash the emulator: it ends, stops with a reason, or refuses.

use std::path::Path;

use cubin::{Image, Patch};
use emu::{Launch, LaunchError, Memory, Program};
use isa::{Isa, Target, Word};
use proptest::collection::vec;
use proptest::prelude::*;

fn template() -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/kernels/sm_87/own_features.cubin");
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// A word of some form with some of its bits flipped; most are legal.
fn word() -> impl Strategy<Value = u128> {
    let isa = Isa::for_target(Target::Sm87).expect("embedded");
    // Graphics forms and the like are never built, so that they are no test.
    let fillers: Vec<u128> = isa.forms().map(|f| f.filler().0).collect();
    let flips = vec(0..105u32, 0..24);
    (prop::sample::select(fillers), flips, 0..6u8).prop_map(|(word, flips, small)| {
        let word = flips.iter().fold(word, |w, bit| w ^ 1 << bit);
        // Small register numbers meet each other; branches stay near.
        match small {
            0 => word,
            _ => word & !(0xf0u128 << 16 | 0xf0 << 24 | 0xf0 << 64) & !(0xffff_ff00u128 << 40),
        }
    })
}

/// The template with `words` at the start of a kernel; what is not emulated becomes a NOP.
fn program(file: &[u8], kernel: &str, words: &[u128]) -> (Vec<u8>, usize) {
    let isa = Isa::for_target(Target::Sm87).expect("embedded");
    let nop = isa
        .form_by_name("NOP_0x918")
        .and_then(|f| isa.form(f))
        .expect("NOP")
        .filler();
    let exit = isa
        .form_by_name("EXIT_0x94d_P")
        .and_then(|f| isa.form(f))
        .expect("EXIT")
        .filler();
    let image = Image::parse(file).expect("parses");
    let code = image.code(kernel).expect("is there");
    let room = code.bytes.len() / 16;
    let mut all: Vec<Word> = words.iter().map(|&w| Word(w)).chain([exit]).collect();
    all.resize(room.max(all.len()), nop);
    all.truncate(room);
    let build = |words: &[Word]| {
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        let mut patch = Patch::new(&image);
        patch.replace_code(code, &bytes).expect("fits");
        patch.finish()
    };
    let first = build(&all);
    let first_image = Image::parse(&first).expect("parses");
    let refused = Program::new(&first_image, kernel).expect("a program").missing;
    let mut kept = words.len();
    for missing in refused.iter().filter(|m| m.section == kernel) {
        all[missing.offset as usize / 16] = nop;
        kept -= 1;
    }
    (build(&all), kept)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_words_never_crash(words in vec(word(), 1..40), data in vec(any::<u8>(), 64..256), threads in 1..80u32) {
        let file = template();
        let kernel = "int_ops";
        let (patched, _) = program(&file, kernel, &words);
        let image = Image::parse(&patched).expect("parses");
        let program = Program::new(&image, kernel).expect("a program");
        let mut memory = Memory::new();
        let address = memory.place("data", data, 0);
        let launch = Launch {
            grid: [2, 1, 1],
            block: [threads, 1, 1],
            dynamic_shared: 1024,
            params: address.to_le_bytes().repeat(8),
            max_steps: 30_000,
            ..Launch::default()
        };
        match emu::launch(&program, &launch, &mut memory, None) {
            Ok(_) => {}
            Err(LaunchError::Fault(fault)) => prop_assert!(!fault.to_string().is_empty()),
            Err(LaunchError::Prepare(e)) => prop_assert!(!e.to_string().is_empty()),
        }
    }
}

#[test]
fn most_forms_that_are_tried_are_executed() {
    let isa = Isa::for_target(Target::Sm87).expect("embedded");
    let file = template();
    let (mut tried, mut kept) = (0, 0);
    let words: Vec<u128> = isa.forms().map(|f| f.filler().0).collect();
    for chunk in words.chunks(100) {
        kept += program(&file, "int_ops", chunk).1;
        tried += chunk.len();
    }
    // Graphics, textures and video forms are the rest.
    assert!(kept * 2 > tried, "only {kept} of {tried} forms are executed");
}
