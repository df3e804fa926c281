//! The fuzz targets of `fuzz/` on generated inputs: noise, and real files with some bytes changed or the end cut off.
//! A stand-in for coverage-guided fuzzing that runs on a stable toolchain in every `make test`.

#[path = "../fuzz/src/lib.rs"]
mod targets;

use std::path::Path;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

fn bundled(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/kernels")
        .join(name);
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// `whole` with up to eight bytes overwritten, half of them near the start or the end where the tables are, and
/// sometimes cut short.
fn damaged(whole: Vec<u8>) -> impl Strategy<Value = Vec<u8>> {
    let place = (any::<Index>(), 0..4u8);
    (
        vec((place, any::<u8>()), 0..8),
        proptest::option::weighted(0.2, any::<Index>()),
    )
        .prop_map(move |(changes, cut)| {
            let mut bytes = whole.clone();
            for ((index, region), value) in changes {
                let n = bytes.len();
                let at = match region {
                    0 => index.index(n.min(64)),
                    1 => n - 1 - index.index(n.min(8192)),
                    _ => index.index(n),
                };
                bytes[at] = value;
            }
            if let Some(cut) = cut {
                bytes.truncate(cut.index(bytes.len()));
            }
            bytes
        })
}

fn noise() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..256)
}

/// A word of some form: its filler with up to twenty bits flipped.
fn near_a_form() -> impl Strategy<Value = u128> {
    let isa = isa::Isa::for_target(isa::Target::Sm87).expect("the tables of sm_87 are embedded");
    let fillers: Vec<u128> = isa.forms().map(|f| f.filler().0).collect();
    let flips = vec(0..128u32, 0..20);
    (prop::sample::select(fillers), flips).prop_map(|(word, flips)| flips.iter().fold(word, |w, bit| w ^ 1 << bit))
}

/// A word as [`near_a_form`] makes it, most with small register numbers, which meet each other, and branches that stay near.
fn near_others() -> impl Strategy<Value = u128> {
    const FAR: u128 = 0xf0 << 16 | 0xf0 << 24 | 0xf0 << 64 | 0xffff_ff00 << 40;
    (near_a_form(), 0..6u8).prop_map(|(word, any)| if any == 0 { word } else { word & !FAR })
}

/// The text of a small cubin's kernels, as `lift` prints it.
fn lifted() -> String {
    let bytes = bundled("sm_87/jump_table.cubin");
    let image = cubin::Image::parse(&bytes).expect("a cubin of ours");
    let isa = isa::Isa::for_target(image.target()).expect("the tables of sm_87 are embedded");
    let sources = image
        .codes()
        .iter()
        .map(|code| ir::Source::from_code(image.target(), code));
    let kernels: Vec<_> = sources.map(|s| ir::lift(isa, &s).expect("a kernel of ours")).collect();
    ir::print_module(&kernels)
}

/// A listing of a small cubin, as `disasm --asm` prints it but for labels.
fn listed() -> String {
    let bytes = bundled("sm_87/jump_table.cubin");
    let image = cubin::Image::parse(&bytes).expect("a cubin of ours");
    let isa = isa::Isa::for_target(image.target()).expect("the tables of sm_87 are embedded");
    let mut text = String::new();
    for code in image.codes() {
        text.push_str(&format!(".text.{}:\n", code.name));
        for (n, inst) in isa.decode_all(code.bytes).enumerate() {
            text.push_str(&format!("[{}] ", isa::Control::of(inst.word)));
            isa.write_text(inst, n as u64 * 16, &mut text, None)
                .expect("strings take any text");
            text.push_str(" <2.UR0=UR4> ;\n");
        }
    }
    text
}

/// `text` with lines dropped, doubled or moved, and characters replaced by such as mean something in it.
fn damaged_text(text: &str) -> impl Strategy<Value = Vec<u8>> {
    let lines: Vec<String> = text.lines().map(String::from).collect();
    let spare: Vec<char> = " %#^(){}[]<>!|-,:=.\"0123456789abcdefxPTRUZ\t\u{e9}".chars().collect();
    let change = (any::<Index>(), any::<Index>(), 0..8u8, prop::sample::select(spare));
    vec(change, 0..4).prop_map(move |changes| {
        let mut lines = lines.clone();
        for (line, other, what, spare) in changes {
            let (line, to) = (line.index(lines.len()), other.index(lines.len()));
            match what {
                0 if lines.len() > 1 => drop(lines.remove(line)),
                1 => lines.insert(to, lines[line].clone()),
                2 => lines.swap(line, to),
                3 => lines.truncate(line.max(1)),
                _ if lines[line].is_empty() => {}
                _ => {
                    let mut chars: Vec<char> = lines[line].chars().collect();
                    let at = other.index(chars.len());
                    chars[at] = spare;
                    lines[line] = chars.into_iter().collect();
                }
            }
        }
        lines.join("\n").into_bytes()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn cubin_parse_does_not_panic(data in prop_oneof![1 => noise(), 4 => damaged(bundled("sm_87/own_features.cubin"))]) {
        targets::cubin_parse(&data);
    }

    #[test]
    fn fatbin_parse_does_not_panic(data in prop_oneof![
        1 => damaged(bundled("containers/stored.fatbin")),
        1 => damaged(bundled("containers/lz4.fatbin")),
        1 => damaged(bundled("containers/zstd.fatbin")),
        1 => damaged(bundled("containers/concat.fatbin")),
        1 => damaged(bundled("containers/concat_lz4.fatbin")),
        1 => damaged(bundled("containers/libtwo.so")),
        1 => damaged(bundled("containers/libtwo.a")),
    ]) {
        targets::fatbin_parse(&data);
    }

    #[test]
    fn decode_does_not_panic(words in vec(prop_oneof![1 => any::<u128>(), 9 => near_a_form()], 1..32)) {
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        targets::decode(&bytes);
    }

    #[test]
    fn asm_text_does_not_panic(data in prop_oneof![1 => noise(), 9 => damaged_text(&listed())]) {
        targets::asm_text(&data);
    }

    #[test]
    fn mlir_text_parse_does_not_panic(data in prop_oneof![1 => noise(), 9 => damaged_text(&lifted())]) {
        targets::mlir_text_parse(&data);
    }

    #[test]
    fn emulate_does_not_panic(threads in any::<u8>(), words in vec(near_others(), 1..40)) {
        let words = words.iter().flat_map(|w| w.to_le_bytes());
        targets::emulate(&std::iter::once(threads).chain(words).collect::<Vec<u8>>());
    }
}

#[test]
fn most_forms_that_are_emulated_at_random_are_executed() {
    let isa = isa::Isa::for_target(isa::Target::Sm87).expect("the tables of sm_87 are embedded");
    let words: Vec<isa::Word> = isa.forms().map(|f| f.filler()).collect();
    let kept: usize = words.chunks(100).map(|chunk| targets::runnable(chunk).1).sum();
    // Graphics and video forms are the rest.
    assert!(
        kept * 2 > words.len(),
        "only {kept} of {} forms are executed",
        words.len()
    );
}
