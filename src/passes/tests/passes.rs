//! Each pass on instructions made for it: where it fires, where it must not, and that each edit moves the bits it names.

use isa::{Inst, Isa, Target, Word};
use sass2mlir_passes::{Context, OptionValue, Options, Pass, PassResult, Refusal, Registry, Resources, instructions};

fn isa() -> &'static Isa {
    Isa::for_target(Target::Sm87).expect("built with sm_87")
}

/// A form's filler with some fields set and modifiers added; a size takes the place of the filler's.
fn made(form: &str, fields: &[(&str, i64)], modifiers: &[&str]) -> Inst {
    let id = isa().form_by_name(form).unwrap_or_else(|| panic!("no form {form}"));
    let mut inst = isa().filler(id).unwrap();
    for (name, value) in fields {
        let ix = isa()
            .form(id)
            .unwrap()
            .field(name)
            .unwrap_or_else(|| panic!("{form} has no field {name}"));
        inst = isa().set_field(inst, ix, *value).unwrap();
    }
    let is_size = |m: &&str| ["U8", "S8", "U16", "S16", "64"].contains(m);
    let drop: Vec<&str> = isa().modifiers(inst).filter(is_size).collect();
    isa().edit_modifiers(inst, &drop, modifiers).unwrap()
}

fn text(word: Word) -> String {
    let mut out = String::new();
    isa().write_text(isa().decode(word), 0, &mut out, None).unwrap();
    out
}

/// Runs a pass over straight code that ends in EXIT; the words after its edits, and what it said.
fn run(pass: &str, options: Options, code: &[Inst]) -> Result<(Vec<Word>, PassResult), Refusal> {
    let exit = isa().forms().find(|f| f.mnemonic() == "EXIT").expect("EXIT").filler();
    let words: Vec<Word> = code.iter().map(|i| i.word).chain([exit]).collect();
    let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
    let mut kernel = ir::lift(isa(), &ir::Source::new("k", Target::Sm87, &bytes)).unwrap();
    assert_eq!(instructions(&kernel).count(), words.len());
    let cx = Context {
        isa: isa(),
        params: Some((0x160, 0x17c)),
        pinned: &[],
        resources: &Resources::default(),
    };
    let registry = Registry::default();
    let pass: &dyn Pass = registry.get(pass).unwrap();
    pass.check(&options).unwrap();
    let found = pass.run(&cx, &kernel, &options)?;
    kernel.apply(isa(), &found.edits).unwrap();
    let lowered = ir::lower(&kernel).unwrap();
    Ok((Word::all(&lowered).take(code.len()).collect(), found))
}

fn retarget(from: i64, to: i64) -> Options {
    Options::default()
        .with("from", OptionValue::Int(from))
        .with("to", OptionValue::Int(to))
}

#[test]
fn deftz_takes_every_form_of_ffma_and_nothing_else() {
    let ffma: Vec<Inst> = isa()
        .forms()
        .filter(|f| f.mnemonic() == "FFMA")
        .map(|f| made(f.name(), &[], &["FTZ"]))
        .collect();
    assert!(ffma.len() >= 8, "{} forms", ffma.len());
    let saturated = made("FFMA_0x223_R_R_R_R", &[], &["FTZ", "RP", "SAT"]);
    let plain = made("FFMA_0x223_R_R_R_R", &[], &[]);
    let others = [
        made("FADD_0x221_R_R_R", &[], &["FTZ"]),
        made("FMUL_0x220_R_R_R", &[], &["FTZ"]),
        plain,
    ];
    let code: Vec<Inst> = ffma.iter().copied().chain([saturated]).chain(others).collect();
    let (words, found) = run("ffma-deftz", Options::default(), &code).unwrap();
    assert_eq!((found.sites, found.ops), (ffma.len() + 1, ffma.len() + 1));
    for (n, (old, new)) in code.iter().zip(&words).enumerate() {
        match n <= ffma.len() {
            true => {
                assert_eq!((old.word.0 ^ new.0).count_ones(), 1, "{}", text(old.word));
                assert_eq!(text(old.word).replacen(".FTZ", "", 1), text(*new));
            }
            false => assert_eq!(old.word, *new, "{}", text(old.word)),
        }
    }
    assert!(text(words[ffma.len()]).contains(".RP.SAT"));
}

#[test]
fn retarget_moves_operands_and_loads() {
    let code = [
        made("IMAD_0xa24_R_R_C_R", &[("2.X0", 0), ("2.X1", 0x210)], &[]),
        made("FFMA_0x623_R_R_R_C", &[("3.X0", 0), ("3.X1", 0x210)], &["FTZ"]),
        made("ULDC_0xab9_UR_C", &[("1.X0", 0), ("1.X1", 0x210)], &["64"]),
        made("LDC_0xb82_R_C~2", &[("1.X0", 0), ("1.X1", 0x210)], &[]),
    ];
    let (words, found) = run("retarget-param", retarget(0x210, 0x2e8), &code).unwrap();
    assert_eq!((found.sites, found.ops), (4, 4));
    for (old, new) in code.iter().zip(&words) {
        assert_eq!(text(old.word).replace("0x210", "0x2e8"), text(*new));
        assert_ne!(old.word, *new);
    }
    assert_eq!(
        found.notes,
        ["0x2e8 is outside the kernel's declared parameters, 0x160 to 0x17c"]
    );
    let (_, inside) = run("retarget-param", retarget(0x210, 0x168), &code).unwrap();
    assert!(inside.notes.is_empty());
}

#[test]
fn retarget_leaves_what_is_not_that_read() {
    let code = [
        // Another offset, another bank.
        made("IMAD_0xa24_R_R_C_R", &[("2.X0", 0), ("2.X1", 0x214)], &[]),
        made("IMAD_0xa24_R_R_C_R", &[("2.X0", 3), ("2.X1", 0x210)], &[]),
        // A bank that a register names.
        made("FFMA_0xa23_R_R_C_R~2", &[("2.X0", 0x210)], &[]),
        // An index.
        made("LDC_0xb82_R_C", &[("1.R0", 5), ("1.X0", 0), ("1.X1", 0x210)], &[]),
        // Eight bytes that cover it.
        made("ULDC_0xab9_UR_C", &[("1.X0", 0), ("1.X1", 0x20c)], &["64"]),
        // An immediate of that value.
        made("FFMA_0x423_R_R_R_F", &[("3.F0", 0x210)], &[]),
    ];
    let (words, found) = run("retarget-param", retarget(0x210, 0x2e8), &code).unwrap();
    assert_eq!(found.sites, 0);
    assert_eq!(words, code.map(|i| i.word));
    let skipped: Vec<_> = found.skipped.iter().map(|s| (s.offset, s.reason.as_str())).collect();
    assert_eq!(
        skipped,
        [
            (0x30, "indexed read from 0x210: which byte it reads is not known"),
            (0x40, "reads 8 bytes from 0x20c, which cover 0x210"),
        ]
    );
}

/// A product of 64 bits reads four bytes for a factor, and eight for what it adds.
#[test]
fn retarget_knows_how_wide_an_operand_is() {
    let factor = made("IMAD_0xa25_R_P_R_C_R", &[("3.X0", 0), ("3.X1", 0x210)], &[]);
    let sum = made("IMAD_0x625_R_P_R_R_C", &[("4.X0", 0), ("4.X1", 0x210)], &[]);
    let (words, _) = run("retarget-param", retarget(0x210, 0x2ec), &[factor]).expect("a multiple of four will do");
    assert!(text(words[0]).contains("c[0x0][0x2ec]"), "{}", text(words[0]));
    let refused = run("retarget-param", retarget(0x210, 0x2ec), &[sum]).unwrap_err();
    assert!(refused.to_string().contains("is not a multiple of 8"), "{refused}");
    let (_, found) = run("retarget-param", retarget(0x214, 0x2ec), &[factor, sum]).expect("it may run");
    let skipped: Vec<_> = found.skipped.iter().map(|s| (s.offset, s.reason.as_str())).collect();
    assert_eq!(skipped, [(0x10, "reads 8 bytes from 0x210, which cover 0x214")]);
}

#[test]
fn retarget_tells_of_a_half_of_a_parameter() {
    let half = |offset: i64| made("IMAD_0xa24_R_R_C_R", &[("2.X0", 0), ("2.X1", offset)], &[]);
    let notes = |from: i64, code: &[Inst]| {
        let (_, found) = run("retarget-param", retarget(from, 0x178), code).expect("it may run");
        found.notes
    };
    let code = [half(0x168), half(0x16c), half(0x174)];
    let note = |stays: &str| {
        format!("reads of {stays} stay: if that is the other half of a parameter of 8 bytes, only one half has moved")
    };
    assert_eq!(notes(0x168, &code), [note("0x16c")]);
    assert_eq!(notes(0x16c, &code), [note("0x168")]);
    assert!(notes(0x174, &code).is_empty() && notes(0x170, &code).is_empty());
    let whole = made("ULDC_0xab9_UR_C", &[("1.X0", 0), ("1.X1", 0x168)], &["64"]);
    assert!(notes(0x168, &[whole]).is_empty());
}

#[test]
fn retarget_refuses_what_does_not_fit() {
    let refusal = |inst: Inst, to: i64| {
        // A read that could move, before the one that cannot: nothing must move at all.
        let fine = made("LDC_0xb82_R_C~2", &[("1.X0", 0), ("1.X1", 0x210)], &["U8"]);
        match run("retarget-param", retarget(0x210, to), &[fine, inst]) {
            Ok((_, found)) => panic!("{} sites", found.sites),
            Err(refusal) => refusal.to_string(),
        }
    };
    let operand = made("IMAD_0xa24_R_R_C_R", &[("2.X0", 0), ("2.X1", 0x210)], &[]);
    assert_eq!(
        refusal(operand, 0x2ea),
        "IMAD at 0x0010: to = 0x2ea is not a multiple of 4, as this read needs"
    );
    let out = refusal(operand, 0xfffc);
    assert!(
        out.starts_with("LDC at 0x0000: to = 0xfffc does not fit the instruction: "),
        "{out}"
    );
    let double = made("DFMA_0xa2b_R_R_C_R", &[("2.X0", 0), ("2.X1", 0x210)], &[]);
    assert_eq!(
        refusal(double, 0x2ec),
        "DFMA at 0x0010: to = 0x2ec is not a multiple of 8, as this read needs"
    );
    let pair = made("ULDC_0xab9_UR_C", &[("1.X0", 0), ("1.X1", 0x210)], &["64"]);
    assert_eq!(
        refusal(pair, 0x2ec),
        "ULDC at 0x0010: to = 0x2ec is not a multiple of 8, as this read needs"
    );
}
