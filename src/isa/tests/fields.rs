//! Fields, modifiers and masks: what is set is read back, and nothing else moves.

mod common;

use common::{Random, own_words, sm87, text};
use isa::{FieldError, FormId, Inst, Isa, OperandIx, RegFile, Word};
use proptest::prelude::*;

/// The word made again from the form's filler: selector bits, then every field that plays a part, then everything that has no meaning.
fn rebuild(isa: &Isa, i: Inst) -> Result<Word, FieldError> {
    let form = isa.form(i.form).expect("not opaque");
    let selectors = form.selector_mask();
    let mut w = Word(form.filler().0 & !selectors | i.word.0 & selectors);
    for (_, f) in form.fields().iter().enumerate().filter(|(n, _)| isa.is_active(i, *n)) {
        let value = f.get(i.word);
        w = f.set(w, value)?;
        if !f.is_linear() {
            assert_eq!(f.get(w), value);
            w = f.bits().set(w, f.bits().get(i.word));
        }
    }
    let known = isa.known_mask(i);
    Ok(Word(w.0 & known | i.word.0 & !known))
}

#[test]
fn own_kernels_have_no_opaque_word_and_are_rebuilt_from_fields() {
    let isa = sm87();
    for w in own_words() {
        let i = isa.decode(w);
        assert_eq!(i.word, w);
        assert!(!i.form.is_opaque(), "{w:032x} is opaque");
        assert_eq!(rebuild(isa, i), Ok(w), "{}", text(isa, w));
        let mask = isa.register_mask(i);
        assert_eq!(isa.clear_registers(i).0, w.0 & !mask);
        assert_eq!(isa.semantic_mask(i) & (mask | isa::control::MASK), 0);
    }
}

#[test]
fn every_form_is_found_by_its_filler_and_rebuilt() {
    let isa = sm87();
    let mut random = Random(0x5eed);
    assert!(isa.forms().len() > 900);
    for form in isa.forms() {
        assert_eq!(isa.form_by_name(form.name()), Some(form.id()));
        for w in random.legal_words(isa, form, 8) {
            match rebuild(isa, isa.decode(w)) {
                Ok(again) => assert_eq!(again, w, "{}: {}", form.name(), text(isa, w)),
                Err(e) => panic!("{}: {e}", form.name()),
            }
        }
    }
}

#[test]
fn a_field_that_is_set_is_read_back_and_nothing_else_moves() {
    let isa = sm87();
    let mut random = Random(0xf1e1d);
    let mut set = 0;
    for form in isa.forms() {
        for w in random.legal_words(isa, form, 4) {
            let i = isa.decode(w);
            for (n, f) in form.fields().iter().enumerate() {
                let value = (random.next() & 0xff) as i64;
                let Ok(changed) = isa.set_field(i, n, value) else {
                    continue;
                };
                set += 1;
                assert_eq!(f.get(changed.word), value, "{} {}", form.name(), f.name);
                assert_eq!((changed.word.0 ^ w.0) & !f.mask(), 0, "{} {}", form.name(), f.name);
                assert_eq!(changed.form, i.form);
            }
        }
    }
    assert!(set > 8_000, "only {set} fields could be set");
}

#[test]
fn modifiers_are_exchanged_exactly() {
    let isa = sm87();
    let mut edited = 0;
    for w in own_words() {
        let i = isa.decode(w);
        for token in isa.modifiers(i) {
            let Ok(without) = isa.edit_modifiers(i, &[token], &[]) else {
                continue;
            };
            edited += 1;
            let before: Vec<&str> = isa.modifiers(i).collect();
            let mut expected = before.clone();
            expected.remove(before.iter().position(|t| *t == token).expect("it is there"));
            assert_eq!(isa.modifiers(without).collect::<Vec<_>>(), expected, "{}", text(isa, w));
            assert_eq!((without.word.0 ^ w.0) & !isa.semantic_mask(i), 0, "{}", text(isa, w));
            let back = isa.edit_modifiers(without, &[], &[token]).expect("the way back exists");
            assert_eq!(text(isa, back.word), text(isa, w));
        }
    }
    assert!(edited > 500, "only {edited} modifiers could be dropped");
}

#[test]
fn ftz_is_one_bit() {
    let isa = sm87();
    let i = isa.decode(Word(0x000fe200000100280000002018107223));
    assert_eq!(text(isa, i.word), "FFMA.FTZ R16, R24, R32, R40");
    let out = isa.edit_modifiers(i, &["FTZ"], &[]).expect("FTZ is there");
    assert_eq!(text(isa, out.word), "FFMA R16, R24, R32, R40");
    assert_eq!(out.word.0 ^ i.word.0, 1 << 80);
    let twice = isa.edit_modifiers(out, &["FTZ"], &[]);
    assert!(matches!(twice, Err(FieldError::NoSuchModifier { .. })), "{twice:?}");
    assert!(matches!(
        isa.edit_modifiers(i, &[], &["XYZ"]),
        Err(FieldError::NoEncoding { .. })
    ));
    assert!(matches!(isa.set_field(i, 99, 0), Err(FieldError::NoField { .. })));
    assert!(matches!(isa.set_field(i, 1, 256), Err(FieldError::Value { .. })));
}

#[test]
fn accesses_come_guard_first_then_operands() {
    let isa = sm87();
    // @P2 FFMA.FTZ R16, R24, R32, RZ
    let i = isa.decode(Word(0x000fe200000100ff0000002018102223));
    let list: Vec<_> = isa.accesses(i).map(|a| (a.file, a.reg, a.operand, a.is_zero)).collect();
    let printed = OperandIx::Printed;
    let expected = [
        (RegFile::P, 2, OperandIx::Guard, false),
        (RegFile::R, 16, printed(0), false),
        (RegFile::R, 24, printed(1), false),
        (RegFile::R, 32, printed(2), false),
        (RegFile::R, 255, printed(3), true),
    ];
    assert_eq!(list, expected);
    let dirs: Vec<bool> = isa.accesses(i).map(|a| a.dir.writes()).collect();
    assert_eq!(dirs, [false, true, false, false, false]);
}

#[test]
fn semantics_follow_modifiers() {
    use isa::{Effects, Space, Terminator};
    let isa = sm87();
    let (mut loads, mut branches) = (0, 0);
    for w in own_words() {
        let i = isa.decode(w);
        let Some(form) = isa.form(i.form) else { continue };
        let s = isa.semantics(i);
        assert!(s.known, "{} has no row in semantics.tsv", form.name());
        match form.mnemonic() {
            "LDG" => {
                loads += 1;
                let constant = isa.has_modifier(i, "CONSTANT");
                assert_eq!(s.space, if constant { Space::Constant } else { Space::Global });
                assert!(s.effects.has(Effects::READ) && !s.effects.has(Effects::WRITE));
                assert_eq!(form.semantics().space, Space::Global);
            }
            "BRA" => {
                branches += 1;
                assert_eq!(s.terminator, Terminator::Branch);
                assert!(isa.branch_target(i, 0).is_some());
            }
            "FFMA" => assert!(s.effects.is_none() && s.terminator == Terminator::None),
            "P2R" => {
                let implicit = isa.accesses(i).filter(|a| a.field.is_none());
                assert_eq!(implicit.map(|a| a.reg).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5, 6]);
            }
            _ => {}
        }
    }
    assert!(loads > 10 && branches > 10, "{loads} loads, {branches} branches");
}

#[test]
fn accesses_and_access_agree() {
    let isa = sm87();
    let mut random = Random(0xacce55);
    for form in isa.forms() {
        for w in random.legal_words(isa, form, 8) {
            let i = isa.decode(w);
            let one_by_one: Vec<_> = (0..form.fields().len()).filter_map(|n| isa.access(i, n)).collect();
            let walked: Vec<_> = isa.accesses(i).filter(|a| a.field.is_some()).collect();
            assert_eq!(walked, one_by_one, "{}", form.name());
        }
    }
}

proptest! {
    #[test]
    fn decode_never_panics_and_keeps_the_word(bits: u128, opcode in 0u128..0x1000, sane: bool) {
        let isa = sm87();
        let mut w = bits;
        if sane {
            w = w & !0xfff | opcode;
            w = w & !(0x7ff << 105) | 0x7f1 << 105;
        }
        let i = isa.decode(Word(w));
        prop_assert_eq!(i.word, Word(w));
        let _ = text(isa, Word(w));
        let masks = isa.semantic_mask(i) & isa.register_mask(i);
        prop_assert_eq!(masks, 0);
        for a in isa.accesses(i) {
            prop_assert!(a.dir == isa::Dir::None || a.width > 0);
        }
        let _ = isa.semantics(i);
        let _ = isa.branch_target(i, 0x100);
        if i.form == FormId::OPAQUE {
            prop_assert_eq!(isa.accesses(i).count(), 0);
            prop_assert_eq!(isa.semantic_mask(i), u128::MAX);
            prop_assert!(isa.set_field(i, 0, 0).is_err());
        }
    }
}

#[test]
fn a_shape_that_is_set_negates_one_operand() {
    let isa = sm87();
    let add = isa.decode(Word(0x000f_e200_0000_0000_8000_0005_0405_7221)); // FADD R5, R4, -R5
    let plain = isa.set_shape(add, 2, "R#").unwrap();
    assert_eq!(text(isa, plain.word), "FADD R5, R4, R5");
    let both = isa.set_shape(plain, 1, "-|R#|").unwrap();
    assert_eq!(text(isa, both.word), "FADD R5, -|R4|, R5");
    assert_eq!(isa.set_shape(isa.set_shape(both, 1, "R#").unwrap(), 2, "-R#"), Ok(add));
    for (operand, shape) in [(1, "~R#"), (7, "R#")] {
        let error = isa.set_shape(add, operand, shape).unwrap_err();
        assert!(matches!(error, FieldError::NoShape { .. }), "{error}");
    }
}

#[test]
fn every_shape_of_a_legal_word_can_be_set_and_set_back() {
    let isa = sm87();
    let mut random = Random(0x5aae);
    for form in isa.forms() {
        for w in random.legal_words(isa, form, 2) {
            let i = isa.decode(w);
            for n in 0..form.operand_count() {
                let own = isa.operand(i, n).unwrap().shape();
                let same = isa.set_shape(i, n, own).unwrap();
                assert_eq!(same.word, w, "{}: operand {n} as {own}", form.name());
            }
        }
    }
}

/// `BRA.DIV` of sm_75 names no register that could be false, and still falls through where no lane has left.
#[test]
fn branches_on_the_active_lanes_are_conditional() {
    let embedded = isa::Target::ALL.iter().filter_map(|t| Isa::for_target(*t).ok());
    let mut seen = 0;
    for isa in embedded {
        // Later targets have BRA.U as a form of its own.
        let form = isa
            .form_by_name("BRA_0x947_P_L")
            .and_then(|f| isa.form(f))
            .expect("BRA");
        for mode in 0..4 {
            let always = form.filler().0 & !(0xf << 12 | 3 << 32 | 0xf << 87) | 7 << 12 | 7 << 87;
            let i = isa.decode(Word(always | mode << 32));
            if i.form == FormId::OPAQUE {
                continue;
            }
            let lanes = ["DIV", "CONV"].iter().any(|m| isa.has_modifier(i, m));
            assert_eq!(isa.is_conditional(i), lanes, "{} {i:?}", isa.target());
            seen += usize::from(lanes);
            let guarded = isa.decode(Word(i.word.0 & !(7 << 12)));
            assert!(isa.is_conditional(guarded));
            let never = isa.decode(Word(i.word.0 | 1 << 15));
            assert!(isa.is_conditional(never));
        }
    }
    assert!(seen > 0);
}
