//! The reader: other white space is fine, anything that disagrees with the word is an error with its place.

mod common;

use common::{ADD_R3_R2_R2, EXIT, FFMA, LOOP, MOV_R2_1, MOV_R2_2_IF_P0, NOP};
use sass2mlir_ir as ir;

fn text() -> String {
    ir::print_module(&[common::lift_words(&[
        MOV_R2_1,
        MOV_R2_2_IF_P0,
        ADD_R3_R2_R2,
        FFMA,
        EXIT,
        LOOP,
        NOP,
    ])])
}

/// The error of the text with `from` replaced, once.
fn error(from: &str, to: &str) -> String {
    let text = text();
    assert!(text.contains(from), "{from} is not in\n{text}");
    let text = text.replacen(from, to, 1);
    match ir::parse_module(&text) {
        Ok(_) => panic!("no error:\n{text}"),
        Err(e) => {
            let line = text.lines().nth(e.line - 1).unwrap_or("");
            assert!(e.column <= line.len() + 1, "{e}");
            format!("{e}\n{line}")
        }
    }
}

#[test]
fn white_space_and_comments() {
    let text = text();
    let spread = text
        .replace(" raw ", " // a comment, raw\n      raw ")
        .replace(", ", " ,\t")
        .replace('(', "( ");
    let kernel = common::parse(&spread);
    assert_eq!(ir::print_module(&[kernel]), text);
    // Without the module around it.
    let bare = text.strip_prefix("module {\n").unwrap().strip_suffix("}\n").unwrap();
    assert_eq!(ir::print_module(&[common::parse(bare)]), text);
}

#[test]
fn what_is_there_once_is_not_there_twice() {
    let live = "%9 = builtin.unrealized_conversion_cast to !sass.pred {sass.pin = \"P0\"}\n    %PT = sass.pt";
    assert!(
        error("%PT = sass.pt", live).contains("P0 is there already"),
        "{}",
        text()
    );
    assert!(error("%PT = sass.pt", "%PT = sass.pt\n    %x = sass.pt").contains("`sass.pt` is there already"));
}

#[test]
fn a_known_word_is_no_unknown_one() {
    let line = format!("sass.opaque raw 0x{NOP:032x}\n    sass.EXIT");
    assert!(error("sass.EXIT", &line).contains("the word is no unknown one: it is `sass.NOP_0x918`"));
}

#[test]
fn other_names_mean_the_same() {
    let text = text();
    let renamed = text
        .replace("%PT", "%true")
        .replace("%RZ", "%1000")
        .replace("^bb1", "^start");
    assert_ne!(renamed, text);
    assert_eq!(ir::print_module(&[common::parse(&renamed)]), text);
}

#[test]
fn the_text_must_agree_with_the_word() {
    for (from, to, expected) in [
        (
            "FFMA_0x223.FTZ",
            "FFMA_0x223",
            "does not agree with the word at `sass.FFMA_0x223",
        ),
        ("FFMA_0x223.FTZ", "FFMA_0x223.FTZ.SAT", "does not agree"),
        (
            "0x00000001",
            "0x00000002",
            "does not agree with the word at `0x00000002",
        ),
        ("0x00000001", "0x1", "does not agree"),
        (
            "FTZ guard(%PT)",
            "FTZ guard(not %PT)",
            "does not agree with the word at `not %PT",
        ),
        ("merge(", "hidden(", "does not agree"),
        ("-> (!sass.reg)", "-> (!sass.ureg)", "does not agree"),
        (
            "sass.pin = \"P0\"",
            "sass.pin = \"P1\"",
            "the word reads P0 where the text has a value in P1",
        ),
        (
            "raw 0x000fe20007ffe0ff0000000202037210",
            "raw 0x000fe20007ffe0ff0000000205037210",
            "the word reads R5",
        ),
        (
            "raw 0x000fe20007ffe0ff0000000202037210",
            "raw 0x000fe20007ffe0ff00000002020372",
            "32 hexadecimal digits",
        ),
        (
            "raw 0x000fe20007ffe0ff0000000202037210",
            "",
            "neither registers nor scheduling",
        ),
        ("^bb1\n", "^bb9\n", "the block is not defined"),
        ("sass.rz", "sass.zero", "neither registers nor scheduling"),
        ("sass.rz", "arith.constant", "no operation of the sass dialect"),
        ("sm = \"sm_87\"", "sm = \"sm_86b\"", "unknown target"),
        ("sm = ", "arch = ", "unknown attribute `arch`"),
        ("module {", "modul {", "expected `module {`"),
        (" x2\"", " xx\"", "expected \"0x<32 digits>\""),
    ] {
        if from == " x2\"" && !text().contains(from) {
            continue;
        }
        let error = error(from, to);
        assert!(error.contains(expected), "{from} -> {to}: {error}");
    }
}

#[test]
fn errors_name_line_and_column() {
    let text = text().replacen("FFMA_0x223.FTZ", "FMUL_0x220.FTZ", 1);
    let error = ir::parse_module(&text).unwrap_err();
    let line = text.lines().position(|l| l.contains("FMUL")).unwrap() + 1;
    let column = text.lines().nth(line - 1).unwrap().find("sass.").unwrap() + 1;
    assert_eq!((error.line, error.column), (line, column), "{error}");
    assert!(error.message.contains("FFMA.FTZ R4, R2, R3, R4"), "{error}");
}

#[test]
fn values_are_defined_once_and_before_the_end() {
    assert!(error("%RZ = sass.rz", "%PT = sass.rz").contains("defined twice"));
    let undefined = error("%RZ = sass.rz\n", "\n");
    assert!(undefined.contains("the value is not defined"), "{undefined}");
    let count = error("sass.entry ^bb1", "%7 = sass.entry ^bb1");
    assert!(count.contains("0 results"), "{count}");
}

#[test]
fn branches_must_lead_where_the_word_says() {
    // `@P0 BRA` over one instruction.
    let bra = 0x000fea00038000000000001000000947u128;
    let text = ir::print_module(&[common::lift_words(&[bra, MOV_R2_1, EXIT])]);
    assert!(
        text.contains("BRA_0x947 guard(%0) ^bb3, ^bb2") || text.contains("^bb3, ^bb2 raw"),
        "{text}"
    );
    let swapped = text.replacen("^bb3, ^bb2", "^bb2, ^bb3", 1);
    let error = ir::parse_module(&swapped).unwrap_err();
    assert!(
        error
            .message
            .contains("the word leads to offset 0x20, the text to 0x10"),
        "{error}"
    );
}
