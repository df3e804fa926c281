//! Inference on a made-up machine whose rules are known.

use union_gen::family::{FieldRow, FormRow, MatchRow, ModifierRow, OperandRow};

use super::*;
use crate::plr::{File, Line, OracleError, Usage};

/// `LDX{.E}{.64|.128} R, [R], P` with a hidden UR pair at 37:32 while bit 60 is clear. Sizes 0, 5 and 6 of 75:73 are legal. The
/// predicate at 66:64 (inverted) is read even where bit 80 keeps it out of the text. Bit 61 makes the address 64-bit, too.
/// All results are so many times as wide.
struct Machine(u32);

const FORM: &str = "LDX_0x123_R_A_P";

impl Answers for Machine {
    fn usage(&self, words: &[u128]) -> Result<Vec<Option<Line>>, OracleError> {
        let one = |w: &u128| {
            let bits = |hi: u32, lo: u32| (w >> lo) as u32 & ((1 << (hi - lo + 1)) - 1);
            let size = self.0
                * match bits(75, 73) {
                    0 => 1,
                    5 => 2,
                    6 => 4,
                    _ => return None,
                };
            let mut usage = Usage::default();
            let mut touch = |file: File, n: u32, width: u32, zero: u32, write: bool| {
                let sets = if write { &mut usage.write } else { &mut usage.read };
                if n != zero {
                    (n..zero.min(n + width)).for_each(|r| sets[file as usize].add(r));
                }
            };
            touch(File::P, bits(14, 12), 1, 7, false);
            touch(File::R, bits(23, 16), size, 255, true);
            touch(File::R, bits(31, 24), 1 + (bits(72, 72) | bits(61, 61)), 255, false);
            touch(File::P, 7 - bits(66, 64), 1, 7, false);
            if bits(60, 60) == 0 {
                touch(File::Ur, bits(37, 32), 2, 63, false);
            }
            let text = String::new();
            Some(Line {
                offset: 0,
                text,
                usage,
                live: Default::default(),
            })
        };
        Ok(words.iter().map(one).collect())
    }
}

fn family(mnemonic: &str) -> Family {
    let form = || FORM.to_owned();
    let operand = |operand, bits: &str, value, shape: &str| OperandRow {
        form: form(),
        operand,
        bits: bits.parse().unwrap(),
        value,
        shape: shape.to_owned(),
    };
    let field = |field: &str, kind: &str, bits: &str, map: &str| FieldRow {
        form: form(),
        field: field.to_owned(),
        kind: kind.to_owned(),
        bits: bits.parse().unwrap(),
        map: map.to_owned(),
        elide: Vec::new(),
        access: String::new(),
        width: 0,
        when: String::new(),
    };
    let modifier = |slot, bits: &str, value, text: &str| ModifierRow {
        form: form(),
        slot,
        bits: bits.parse().unwrap(),
        value,
        text: text.to_owned(),
    };
    Family {
        legal: vec![],
        forms: vec![FormRow {
            form: form(),
            mnemonic: mnemonic.to_owned(),
            opcode: 0x123,
            guard: "P".to_owned(),
            filler: 0x000f_e200_0000_0000_0000_0000_0000_7123,
            wbar: true,
            rbar: true,
            reuse: Vec::new(),
        }],
        matches: vec![MatchRow {
            form: form(),
            mask: 0xfff,
            value: 0x123,
        }],
        operands: vec![
            operand(0, "-", 0, "R#"),
            operand(1, "-", 0, "[R#+X#]"),
            operand(2, "80", 0, "P#"),
            operand(2, "80", 1, "PT"),
        ],
        fields: vec![
            field("g", "P", "14:12", "u"),
            field("0.R0", "R", "23:16", "u"),
            field("1.R0", "R", "31:24", "u"),
            field("1.X0", "I", "59:40", "u"),
            field("2.P0", "P", "66:64", "~u"),
        ],
        widths: Vec::new(),
        modifiers: vec![
            modifier(0, "72", 0, ""),
            modifier(0, "72", 1, "E"),
            modifier(1, "75:73", 0, ""),
            modifier(1, "75:73", 5, "64"),
            modifier(1, "75:73", 6, "128"),
        ],
    }
}

fn rows(family: &Family) -> Vec<String> {
    let field = |f: &FieldRow| format!("{} {} {} {} {}", f.field, f.bits, f.access, f.width, f.when);
    let width = |w: &WidthRow| format!("{} {}={} {} {}", w.field, w.bits, w.value, w.access, w.width);
    family
        .fields
        .iter()
        .map(field)
        .chain(family.widths.iter().map(width))
        .collect()
}

#[test]
fn finds_the_rules_of_a_made_up_machine() {
    let mut family = family("LDX");
    let found = infer(&Machine(1), &mut family, &|_| true, &mut |_, _| {}).unwrap();
    family.sort();
    assert_eq!(
        rows(&family),
        [
            "0.R0 23:16 w 4 printed",
            "1.R0 31:24 r 2 printed",
            "1.X0 59:40  0 ",
            "2.P0 66:64 r 1 always",
            "g 14:12 r 1 printed",
            "h0.UR0 37:32 r 2 always",
            "0.R0 75:74=0 w 1",
            "0.R0 75:74=2 w 2",
            "1.R0 72,61=0 r 1",
            "h0.UR0 60=1  0",
        ]
    );
    assert_eq!(found[FORM].remarks, Vec::<String>::new());
    assert!(found[FORM].implicit.is_empty());
}

#[test]
fn wide_tuples_are_measured_one_at_a_time() {
    let mut family = family("LDTM");
    let found = infer(&Machine(32), &mut family, &|_| true, &mut |_, _| {}).unwrap();
    family.sort();
    let rows = rows(&family);
    let has = |row: &str| assert!(rows.iter().any(|r| r == row), "{row} is not in {rows:?}");
    has("0.R0 23:16 w 128 printed");
    has("0.R0 75:74=0 w 32");
    has("0.R0 75:74=2 w 64");
    has("1.R0 31:24 r 2 printed");
    assert!(found[FORM].implicit.is_empty());
}

#[test]
fn a_second_run_changes_nothing() {
    let mut once = family("LDX");
    infer(&Machine(1), &mut once, &|_| true, &mut |_, _| {}).unwrap();
    once.sort();
    let mut twice = once.clone();
    infer(&Machine(1), &mut twice, &|_| true, &mut |_, _| {}).unwrap();
    twice.sort();
    assert!(once == twice);
}
