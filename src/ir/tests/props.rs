//! Any bytes lift or give an error, any text parses or gives an error, and what lifts comes back.

mod common;

use proptest::prelude::*;
use sass2mlir_ir as ir;

fn sm87() -> &'static isa::Isa {
    isa::Isa::for_target(isa::Target::Sm87).unwrap()
}

/// Legal fillers of all forms with some bits changed, so that most words decode and branches go anywhere.
fn word() -> impl Strategy<Value = u128> {
    let fillers: Vec<u128> = sm87().forms().map(|f| f.filler().0).collect();
    let filler = proptest::sample::select(fillers);
    prop_oneof![
        8 => (filler, any::<u128>(), any::<u8>()).prop_map(|(w, bits, how)| match how % 4 {
            0 => w,
            1 => w ^ 1 << (bits % 128),
            2 => w & !0xff_00ff_ffff_f000 | bits & 0xff_00ff_ffff_f000,
            _ => w & !(0xfff << 34) | (bits & 0x3f) << 38,
        }),
        1 => any::<u128>(),
    ]
}

fn seed() -> String {
    ir::print_module(&[common::lift_words(&[
        common::MOV_R2_1,
        0x000fea00038000000000001000000947,
        common::MOV_R2_2_IF_P0,
        common::ADD_R3_R2_R2,
        common::FFMA,
        common::EXIT,
        common::LOOP,
        common::NOP,
    ])])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn words_lift_and_come_back(words in proptest::collection::vec(word(), 0..60), labels in proptest::collection::vec(0u64..70, 0..6)) {
        let code: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        let mut source = ir::Source::new("any \"name\"", isa::Target::Sm87, &code);
        source.functions = labels.iter().take(2).map(|l| l * 16).collect();
        source.labels = labels.iter().skip(2).take(1).map(|l| l * 8).collect();
        source.indirect_branches = vec![(labels.len() as u64 * 16, labels.iter().map(|l| l * 16).collect())];
        let kernel = ir::lift(sm87(), &source).unwrap();
        let text = ir::print_module(std::slice::from_ref(&kernel));
        let mut parsed = common::parse(&text);
        prop_assert_eq!(&ir::print_module(std::slice::from_ref(&parsed)), &text);
        parsed.clear_registers();
        prop_assert_eq!(ir::lower(&parsed).map_err(|e| TestCaseError::fail(format!("{e}\n{text}")))?, code);
    }

    #[test]
    fn mlir_text_parse_does_not_panic(edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0u8..6), 1..6)) {
        let mut text = seed();
        for (a, b, how) in edits {
            let (mut a, mut b) = (a.index(text.len() + 1), b.index(text.len() + 1));
            if a > b {
                std::mem::swap(&mut a, &mut b);
            }
            b = match how {
                0 | 1 => (a + 1).min(text.len()),
                2 => (a + 12).min(b),
                _ => b,
            };
            match how {
                0 => text.insert(a, ['%', '^', '"', '{', '(', '#', '9', '\n'][b % 8]),
                1..=3 => text.replace_range(a..b, ""),
                4 => {
                    let copy = text[a..b].to_owned();
                    text.insert_str(b, &copy);
                }
                _ => text.truncate(b),
            }
        }
        if let Ok(kernels) = ir::parse_module(&text) {
            for kernel in kernels {
                let _ = ir::lower(&kernel);
                let _ = ir::print_module(&[kernel]);
            }
        }
    }
}
