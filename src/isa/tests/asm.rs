//! The assembler: words of real kernels come back from their text, made-up ones come back or are refused, and never is a word wrong.

mod common;

use std::collections::BTreeMap;

use common::{Random, own_words, sm87, text};
use isa::asm::{AsmError, Assembler, Notes, Statement};
use isa::control::Control;
use isa::{Inst, Isa, Word};

/// The scheduling as the column has it: flags of the operand cache are in the text.
fn column(w: Word) -> Control {
    Control::of(w)
        .to_string()
        .parse()
        .expect("a column reads as it was written")
}

fn assemble(asm: &mut Assembler<'_>, text: &str, control: Control, notes: &Notes) -> Result<Word, AsmError> {
    let statement = Statement {
        text,
        notes: &notes.0,
        ..Statement::default()
    };
    asm.assemble(&statement, control).map(|i: Inst| i.word)
}

#[test]
fn own_kernels_come_back_from_their_text() {
    let (isa, mut asm) = (sm87(), Assembler::new(sm87()));
    let words = own_words();
    let (mut exact, mut refused) = (0, BTreeMap::<String, usize>::new());
    for &w in &words {
        match assemble(&mut asm, &text(isa, w), column(w), &Notes::default()) {
            Ok(found) if found == w => exact += 1,
            Ok(found) => panic!("{}: {w:032x} assembles to {found:032x}", text(isa, w)),
            Err(AsmError::Hidden { what, .. }) => *refused.entry(what).or_default() += 1,
            Err(e) => panic!("{}: {w:032x}: {e}", text(isa, w)),
        }
    }
    // What is refused is what no text shows: the descriptors of memory accesses, and the bits of NaNs.
    let hidden = |what: &String| what.starts_with("the register of operand ") || what == "which NaN is meant";
    assert!(refused.keys().all(hidden), "{refused:?}");
    assert!(exact * 10 > words.len() * 8, "{exact} of {}", words.len());
    for &w in &words {
        let notes = asm
            .notes_for(isa.decode(w), 0)
            .unwrap_or_else(|| panic!("{}", text(isa, w)));
        assert_eq!(
            assemble(&mut asm, &text(isa, w), column(w), &notes),
            Ok(w),
            "{} <{notes}>",
            text(isa, w)
        );
    }
}

#[test]
fn made_up_words_come_back_with_notes_and_are_never_wrong_without() {
    for target in isa::Target::ALL {
        if let Ok(isa) = Isa::for_target(target) {
            made_up_words(isa, if target == isa::Target::Sm87 { 8 } else { 1 });
        }
    }
}

fn made_up_words(isa: &Isa, of_each_form: usize) {
    let mut asm = Assembler::new(isa);
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let (mut words, mut without, mut noted) = (0, 0, 0);
    for form in isa.forms() {
        for w in random.legal_words(isa, form, of_each_form) {
            words += 1;
            let printed = text(isa, w);
            if let Ok(found) = assemble(&mut asm, &printed, column(w), &Notes::default()) {
                // The bits that mean nothing are the compiler's, not those made up here.
                assert_eq!(text(isa, found), printed, "{}", isa.target());
                let scheduling = isa::control::MASK & isa.known_mask(isa.decode(w));
                assert_eq!(
                    (found.0 ^ w.0) & scheduling,
                    0,
                    "{} {printed}: {found:032x}",
                    isa.target()
                );
                without += usize::from(found == w);
            }
            if let Some(notes) = asm.notes_for(isa.decode(w), 0) {
                assert_eq!(
                    assemble(&mut asm, &printed, column(w), &notes),
                    Ok(w),
                    "{} {printed} <{notes}>",
                    isa.target()
                );
                let again = Notes::parse(&notes.to_string());
                assert!(
                    notes.0.is_empty() || again.as_ref() == Ok(&notes),
                    "<{notes}> reads as {again:?}"
                );
                noted += 1;
            }
        }
    }
    println!(
        "{}: {words} words: {without} from the text alone, {noted} with notes",
        isa.target()
    );
    // A register that a field can name and no file has, such as UR254, cannot be read back.
    assert!(
        noted * 100 >= words * 99,
        "{}: {noted} of {words} words can be written down",
        isa.target()
    );
}

#[test]
fn refusals_say_what_to_do() {
    let mut asm = Assembler::new(sm87());
    let control: Control = "B------:R-:W-:-:S01".parse().expect("a column");
    let mut refused = |text: &str, expected: &str| {
        let error = assemble(&mut asm, text, control, &Notes::default())
            .expect_err(text)
            .to_string();
        assert!(error.contains(expected), "{text}: {error}");
    };
    refused("LDG.E R0, [R2.64]", "bits 37:32); say it in a note like `<2.UR0=UR4>`");
    refused(
        "FSEL R0, R1, +QNAN , P0",
        "which NaN is meant (bits 63:32); say it in a note like `<2.F0=0x7fffffff>`",
    );
    refused("FOO R0, R1", "sm_87 has no instruction `FOO`");
    refused(
        "FFMA R0, R1",
        "no form of FFMA has these modifiers and operands; sm_87 knows FFMA_0x",
    );
    refused("FFMA.BAR R0, R1, R2, R3", "no form of FFMA");
    refused("MOV R0, 0x123456789", "0x123456789 does not fit 1.X0");
    refused(
        "IMAD R0, RZ, RZ, R3",
        "nvdisasm writes that as `IMAD.MOV R0, RZ, RZ, R3`",
    );
    refused("FADD R256, R0, R1", "no form of FADD");
    refused("BRA `(.L_x_0)", "no label `.L_x_0` here");
    refused("@P0", "there is no mnemonic");
    refused("@Q0 EXIT", "`@Q0` is no guard");
    refused("@UP0 MOV R0, R1", "guard");
    refused("STG.E.reuse [R2.64], R0", "no form of STG");
    refused("BRA 0x10.reuse", "operand 0 cannot be marked .reuse");
    refused("MOV R0, 1.5.5.5", "no form of MOV");
    refused("LDS.64 R1, [R2]", "R1 begins 2 registers");
    refused("STS.128 [R2], R6", "R6 begins 4 registers");
    refused("DADD R0, R3, R4", "R3 begins 2 registers");
}

/// A word whose tuples begin anywhere comes back with a note.
#[test]
fn misaligned_tuples_can_be_meant() {
    let mut asm = Assembler::new(sm87());
    let control: Control = "B------:R-:W0:-:S01".parse().expect("a column");
    let notes = Notes::parse("misaligned").expect("a note");
    let word = assemble(&mut asm, "LDS.64 R1, [R2]", control, &notes).expect("as it is");
    assert_eq!(asm.notes_for(sm87().decode(word), 0), Some(notes));
}

#[test]
fn a_carry_goes_where_compilers_put_it_unless_the_other_is_written_out() {
    let mut asm = Assembler::new(sm87());
    let control: Control = "B------:R-:W-:-:S01".parse().expect("a column");
    let mut word = |text: &str| assemble(&mut asm, text, control, &Notes::default()).expect(text);
    let first = word("IADD3 R0, P2, R1, R2, R3");
    assert_eq!((first.bits(83, 81), first.bits(86, 84)), (2, 7));
    assert_eq!(word("IADD3 R0, P2, PT, R1, R2, R3"), first);
    let second = word("IADD3 R0, PT, P2, R1, R2, R3");
    assert_eq!((second.bits(83, 81), second.bits(86, 84)), (7, 2));
}

/// Words of `ptxas` whose text, or text and scheduling column, says all because compilers choose one of its encodings, or because the
/// column has what it does not show.
#[test]
fn text_with_several_encodings_is_written_as_compilers_do() {
    for (target, word, printed) in [
        // Without a count of threads it is the form with two numbers, not that with a register.
        (
            isa::Target::Sm90,
            0x000f_ec00_0001_0000_0000_0000_0000_7b1d,
            "BAR.SYNC.DEFER_BLOCKING 0x0",
        ),
        // Bits 123 and 124 both mark the second register.
        (
            isa::Target::Sm70,
            0x082f_e400_0040_0000_0000_000c_1b0a_7220,
            "FMUL R10, R27, R12.reuse",
        ),
        // The fourth flag, which the text does not show.
        (
            isa::Target::Sm90,
            0x200f_e200_0000_5aff_0000_2618_0818_723c,
            "HMMA.SP.16832.F32 R24, R8, R24, RZ, R38, 0x0",
        ),
        (
            isa::Target::Sm80,
            0x000f_f000_0000_4a16_0004_1810_0c0e_723c,
            "HMMA.SP.16832.F16 R14, R12, R16, R22, R24.reuse, 0x0",
        ),
    ] {
        let Ok(isa) = Isa::for_target(target) else { continue };
        let word = Word(word);
        assert_eq!(text(isa, word), printed);
        let found = assemble(&mut Assembler::new(isa), printed, column(word), &Notes::default());
        assert_eq!(found, Ok(word), "{printed}");
    }
}

#[test]
fn listings() {
    let mut asm = Assembler::new(sm87());
    let text = "\
\t.section\t.text.k,\"ax\",@progbits
k:
.text.k:
[B------:R-:W-:-:S01]  /*0000*/                   MOV R1, c[0x0][0x28] ;
.L_x_0:
        /*0010*/              @!P0 BRA `(.L_x_1) ;   /* B0-----:R-:W-:Y:S05 */
[B------:R-:W-:Y:S05]  BRA `(.L_x_0) ;
.L_x_1:
B------:R-:W-:Y:S05 EXIT ;
";
    let sections = asm.listing(text, None).expect("a listing");
    assert_eq!((sections.len(), sections[0].name.as_str()), (1, "k"));
    let targets: Vec<_> = (0..4)
        .map(|n| sm87().branch_target(sm87().decode(sections[0].words[n]), n as u64 * 16))
        .collect();
    assert_eq!(targets, [None, Some(0x30), Some(0x10), None]);
    let wrong = text
        .replace("/*0010*/", "/*0020*/")
        .replace("R1, c", "R1 c")
        .replace("[B------:R-:W-:Y:S05]  BRA", "BRA");
    let errors = asm.listing(&wrong, None).expect_err("three lines are wrong");
    let lines: Vec<usize> = errors.iter().map(|e| e.line).collect();
    assert_eq!(lines, [4, 6, 7], "{errors:?}");
    assert!(
        errors[2]
            .to_string()
            .starts_with("7: BRA `(.L_x_0): no scheduling column"),
        "{}",
        errors[2]
    );
    assert!(asm.listing(".L_a:\nEXIT\n.L_a:\n", None).is_err());
}

#[test]
fn no_line_of_a_listing_is_lost() {
    let mut asm = Assembler::new(sm87());
    let mut listing = |lines: &str| asm.listing(lines, None).map_err(|e| e[0].to_string());
    let exit = "[B------:R-:W-:Y:S05] EXIT ;\n";
    for lost in [
        "[B------:R-:W-:Y:S05] # FADD R0, R1, R2 ;\n",
        "[B------:R-:W-:Y:S05] .FADD R0, R1, R2 ;\n",
        "[B------:R-:W-:Y:S05]\n",
        "[B------:R-:W-:Y:S05] // EXIT ;\n",
        ".FADD R0, R1, R2 ;\n",
        "\t.word 0x1234\n",
        "\t.opaque\n",
        "\t.section .nv.info,\"\"\n[B------:R-:W-:Y:S05] EXIT ;\n",
    ] {
        let text = format!("\t.section .text.k,\"ax\"\n{exit}{lost}{exit}");
        assert!(
            listing(&text).is_err_and(|e| e.starts_with('3') || e.starts_with('4')),
            "{text}"
        );
    }
    // What nvdisasm prints of sections that hold no code is no part of it.
    let text = format!(
        "\t.section .text.k,\"ax\"\n\t.align 128\n{exit}\t.section .nv.shared.k,\"aw\"\n.nv.shared.k:\n\t.zero 16\n"
    );
    assert_eq!(listing(&text).map(|s| (s.len(), s[0].words.len())), Ok((1, 1)));
}

#[test]
fn a_descriptor_is_the_one_that_was_loaded_last() {
    let mut asm = Assembler::new(sm87());
    let mut listing = |lines: &str| asm.listing(lines, "B------:R-:W-:-:S01".parse().ok());
    let (load, other) = ("ULDC.64 UR6, c[0x0][0x118] ;\n", "ULDC.64 UR8, c[0x0][0x118] ;\n");
    let access = "LDG.E R0, [R2.64] ;\n";
    for (text, why) in [
        (access.to_owned(), "not loaded"),
        (format!("@UP0 {load}{access}"), "perhaps not loaded"),
        (format!("{load}UMOV UR7, 0x1 ;\n{access}"), "overwritten"),
        (format!("@P0 BRA `(.L) ;\n{load}.L:\n{access}"), "loaded on one way"),
        (
            format!("{load}@P0 BRA `(.L) ;\n{other}.L:\n{access}"),
            "another one on one way",
        ),
        (format!("{load}EXIT ;\nf:\n{access}"), "in another function"),
        (
            format!("{load}BRX R4 -0x20 ;\n.L:\n{other}.M:\n{access}"),
            "a table may lead to .M",
        ),
    ] {
        let errors = listing(&text).expect_err(why);
        assert!(
            errors.len() == 1 && errors[0].to_string().contains("<2.UR0=UR4>"),
            "{why}: {errors:?}"
        );
    }
    for (text, pair) in [
        (format!("{load}{access}"), 6),
        (format!("{load}{other}{access}"), 8),
        (format!("{load}@P0 BRA `(.L) ;\nUMOV UR4, 0x1 ;\n.L:\n{access}"), 6),
        (format!("{load}EXIT ;\nf:\n{other}{access}"), 8),
        (format!("{load}BRX R4 -0x20 ;\n.L:\n{access}"), 6),
    ] {
        let words = listing(&text).unwrap_or_else(|e| panic!("{text}: {e:?}"));
        let word = words[0].words.last().expect("an access");
        assert_eq!(word.bits(37, 32), pair, "{text}");
    }
}

#[test]
fn a_callee_may_overwrite_a_descriptor() {
    let load = "ULDC.64 UR4, c[0x0][0x118] ;\n";
    let access = "LDG.E R0, [R2.64] ;\nEXIT ;\n";
    let back = "RET.REL.NODEC R2 0x0 ;\n";
    let call = "CALL.REL.NOINC `(.L_1) ;\n";
    let listing = |target, text: &str| {
        let isa = Isa::for_target(target).expect("a table");
        let sections = Assembler::new(isa).listing(text, "B------:R-:W-:-:S01".parse().ok());
        sections.map(|s| {
            s[0].words
                .iter()
                .find(|w| w.bits(11, 0) == 0x981)
                .map(|w| w.bits(37, 32))
        })
    };
    for target in [
        isa::Target::Sm80,
        isa::Target::Sm86,
        isa::Target::Sm87,
        isa::Target::Sm89,
    ] {
        for (call, callee) in [
            (call, format!(".L_1:\nUMOV UR4, 0x0 ;\n{back}")),
            (call, format!(".L_1:\n@UP0 UMOV UR5, 0x0 ;\n{back}")),
            (call, format!(".L_1:\nULDC.64 UR4, c[0x0][0x110] ;\n{back}")),
            (
                call,
                format!(".L_1:\n@P0 BRA `(.L_2) ;\n{back}.L_2:\nUMOV UR4, 0x0 ;\n{back}"),
            ),
            (
                call,
                format!(".L_1:\nCALL.REL.NOINC `(.L_2) ;\n{back}.L_2:\nUMOV UR4, 0x0 ;\n{back}"),
            ),
            (call, format!(".L_1:\nCALL.ABS.NOINC 0x1000 ;\n{back}")),
            (call, ".L_1:\nBRX R4 -0x20 ;\n".to_owned()),
            (call, ".L_1:\nFADD R0, R1, R2 ;\n".to_owned()),
            (
                "@P0 CALL.REL.NOINC `(.L_1) ;\n",
                format!(".L_1:\nUMOV UR4, 0x0 ;\n{back}"),
            ),
            ("CALL.ABS.NOINC 0x1000 ;\n", String::new()),
            ("CALL.REL.NOINC R6 0x0 ;\n", back.to_owned()),
            ("CALL.ABS.NOINC R6 ;\n", back.to_owned()),
        ] {
            let text = format!("{load}{call}{access}{callee}");
            let errors = listing(target, &text).expect_err(&text);
            assert!(
                errors.len() == 1 && errors[0].to_string().contains("<2.UR0=UR4>"),
                "{target}: {text}: {errors:?}"
            );
        }
        for callee in [
            back.to_owned(),
            format!("UMOV UR6, 0x0 ;\n{back}"),
            format!("{load}LDG.E R0, [R2.64] ;\n{back}UMOV UR4, 0x0 ;\n"),
            format!("@P0 BRA `(.L_1) ;\n{back}"),
            format!("CALL.REL.NOINC `(.L_2) ;\nBRA `(.L_1) ;\n.L_2:\nUMOV UR6, 0x0 ;\n{back}"),
        ] {
            let text = format!("{load}{call}{access}.L_1:\n{callee}");
            assert_eq!(listing(target, &text), Ok(Some(4)), "{target}: {text}");
        }
        // What the callee needs is what its caller has there.
        let text = format!("{load}{call}EXIT ;\n.L_1:\nLDG.E R0, [R2.64] ;\nUMOV UR4, 0x0 ;\n{back}");
        assert_eq!(listing(target, &text), Ok(Some(4)), "{target}: {text}");
        // Callees that the listing does not show keep UR36 by convention; those that it shows do what they do.
        let kept = load.replace("UR4", "UR36");
        for call in ["CALL.ABS.NOINC 0x1000 ;\n", "CALL.REL.NOINC R6 0x0 ;\n"] {
            assert_eq!(
                listing(target, &format!("{kept}{call}{access}")),
                Ok(Some(36)),
                "{target}: {call}"
            );
        }
        let text = format!("{kept}{call}{access}.L_1:\nUMOV UR37, 0x0 ;\n{back}");
        assert!(listing(target, &text).is_err(), "{target}: {text}");
        let again = format!("{load}{call}{load}{access}.L_1:\nUMOV UR4, 0x0 ;\n{back}");
        assert_eq!(
            listing(target, &again),
            Ok(Some(4)),
            "{target}: loaded again behind the call"
        );
    }
}

#[test]
fn an_atomic_operation_that_became_a_loop_has_a_descriptor_of_its_own() {
    let mut asm = Assembler::new(sm87());
    let mut pairs = |before: &str, own: &str, swap: &str| {
        let text = format!(
            "{before}{own}LDG.E R1, [R2.64] ;\n.L_8:\nLD.E R9, [R4.64] ;\n.L_1:\nHADD2 R13, R9, R11.H0_H0 ;\n\
             {swap}ATOM.E.CAS.STRONG.GPU PT, R13, [R4], R9, R13 ;\n@P0 BRA `(.L_1) ;\nLDG.E R7, [R2.64] ;\n"
        );
        let sections = asm
            .listing(&text, "B------:R-:W-:-:S01".parse().ok())
            .map_err(|e| e.len())?;
        let words = sections[0].words.iter();
        let accesses = words.filter(|w| [0x980, 0x981].contains(&w.bits(11, 0)));
        Ok(accesses.map(|w| w.bits(37, 32)).collect::<Vec<_>>())
    };
    let (common, own) = ("ULDC.64 UR6, c[0x0][0x118] ;\n", "ULDC.64 UR8, c[0x0][0x118] ;\n");
    let read = "LDG.E R0, [R2.64] ;\n";
    assert_eq!(
        pairs(&format!("{common}{read}"), own, ".L_9:\n"),
        Ok(vec![6, 6, 8, 6]),
        "the loop takes the last one, and nothing else does"
    );
    assert_eq!(
        pairs(&format!("{common}{read}"), own, ""),
        Ok(vec![6, 8, 8, 8]),
        "a loop that the program has itself is like other code"
    );
    assert_eq!(pairs(common, own, ".L_9:\n"), Err(3), "either may be the loop's");
}
