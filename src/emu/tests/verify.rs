//! Kernels that do the same are found to, and a changed one is not, with the store that shows it.

use std::path::Path;

use cubin::{Image, Patch};
use emu::Program;
use emu::verify::{Options, Report, verify};
use isa::{Isa, Word};

fn own(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/kernels")
        .join(name);
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The file with one instruction of a kernel changed.
fn changed(file: &[u8], kernel: &str, offset: usize, change: impl Fn(&Isa, isa::Inst) -> isa::Inst) -> Vec<u8> {
    let image = Image::parse(file).expect("parses");
    let code = image.code(kernel).expect("is there");
    let isa = Isa::for_target(image.target()).expect("embedded");
    let mut bytes = code.bytes.to_vec();
    let word = Word::all(&bytes[offset..offset + 16]).next().expect("a word");
    bytes[offset..offset + 16].copy_from_slice(&change(isa, isa.decode(word)).word.to_le_bytes());
    let mut patch = Patch::new(&image);
    patch.replace_code(code, &bytes).expect("fits");
    patch.finish()
}

fn compare(before: &[u8], after: &[u8], kernel: &str) -> Report {
    let (a, b) = (
        Image::parse(before).expect("parses"),
        Image::parse(after).expect("parses"),
    );
    let (a, b) = (
        Program::new(&a, kernel).expect("a program"),
        Program::new(&b, kernel).expect("a program"),
    );
    verify(&a, &b, &Options::default()).expect("runs")
}

/// The offset of the first instruction whose text fits.
fn find(file: &[u8], kernel: &str, fits: impl Fn(&str) -> bool) -> usize {
    let image = Image::parse(file).expect("parses");
    let program = Program::new(&image, kernel).expect("a program");
    let pc = (0..program.insts.len() as u32).find(|pc| fits(&program.text(*pc)));
    pc.unwrap_or_else(|| panic!("no such instruction in {kernel}")) as usize * 16
}

#[test]
fn a_kernel_does_the_same_as_itself() {
    let file = own("sm_87/own_mul_mat.cubin");
    for kernel in ["scale_add", "rms_norm", "mul_mat_f32", "mul_mat_q4_K"] {
        let report = compare(&file, &file, kernel);
        assert!(report.difference.is_none(), "{kernel}: {report:?}");
        let (executed, all) = report.coverage.instructions();
        assert!(
            report.compared > 0 && executed * 2 > all,
            "{kernel}: {executed} of {all} executed"
        );
    }
}

#[test]
fn the_first_store_that_differs_is_named() {
    let file = own("emu/sm_87/int.cubin");
    // o = a * b + c becomes o = a * b + b.
    let multiply = find(&file, "int_mad", |t| t.starts_with("IMAD R") && !t.contains("c["));
    let after = changed(&file, "int_mad", multiply, |isa, inst| {
        let form = isa.form(inst.form).expect("known");
        let (b, c) = (
            form.field("2.R0").expect("a factor"),
            form.field("3.R0").expect("an addend"),
        );
        let factor = form.fields()[b].get(inst.word);
        isa.set_field(inst, c, factor).expect("fits")
    });
    let report = compare(&file, &after, "int_mad");
    let difference = report.difference.expect("it differs");
    let (before, after) = (difference.before.expect("a store"), difference.after.expect("a store"));
    assert!(before.text.starts_with("STG.E") && before.place == after.place);
    assert_ne!(before.bytes, after.bytes);
    assert!(difference.at.expect("a place").0.starts_with("param[0x0]"));
    assert_eq!(difference.trial.grid, [1, 1, 1]);
}

#[test]
fn more_memory_than_before_is_a_difference() {
    let file = own("emu/sm_87/int.cubin");
    // The load reaches one element further.
    let offset = find(&file, "int_add", |t| t.starts_with("LDG.E"));
    let after = changed(&file, "int_add", offset, |isa, inst| {
        let form = isa.form(inst.form).expect("known");
        let field = form
            .fields()
            .iter()
            .position(|f| f.name.ends_with(".X0"))
            .expect("an offset");
        isa.set_field(inst, field, 4).expect("fits")
    });
    let report = compare(&file, &after, "int_add");
    let difference = report.difference.expect("it differs");
    assert!(difference.stop.is_some() || difference.bytes > 0);
}
