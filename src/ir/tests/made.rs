//! Edits that name the values they make, and that put values elsewhere.

mod common;

use common::{ADD_R3_R2_R2, EXIT, MOV_R2_1};
use ir::{Edit, EditList, ValueId};
use isa::RegFile;
use sass2mlir_ir as ir;

fn sm87() -> &'static isa::Isa {
    isa::Isa::for_target(isa::Target::Sm87).unwrap()
}

fn code(kernel: &ir::Kernel) -> Vec<ir::OpId> {
    kernel.ops().filter(|o| o.inst().is_some()).map(|o| o.id()).collect()
}

fn general(number: u8) -> ir::Pin {
    ir::Pin::new(RegFile::R, number)
}

/// Applies edits; the words, which lifted again are the same kernel.
fn applied(kernel: &mut ir::Kernel, edits: Vec<Edit>) -> Result<Vec<u128>, String> {
    kernel.apply(sm87(), &EditList { edits }).map_err(|e| e.to_string())?;
    let bytes = ir::lower(kernel).map_err(|e| e.to_string())?;
    kernel.write_words().map_err(|e| e.to_string())?;
    let again = ir::lift(sm87(), &ir::Source::new("words", isa::Target::Sm87, &bytes)).unwrap();
    ir::same_def_use(kernel, &again)?;
    let text = ir::print_module(std::slice::from_ref(kernel));
    assert_eq!(text, ir::print_module(&[again]), "words and values agree");
    let words = bytes.chunks(16).map(|c| u128::from_le_bytes(c.try_into().unwrap()));
    Ok(words.collect())
}

/// An instruction by its text.
fn inst(text: &str) -> isa::Inst {
    let statement = isa::asm::Statement {
        text,
        ..Default::default()
    };
    let control = "B------:R-:W-:-:S05".parse().unwrap();
    let made = isa::asm::Assembler::new(sm87()).assemble(&statement, control).unwrap();
    sm87().decode(control.apply(made.word))
}

fn always() -> ValueId {
    ValueId::constant(RegFile::P)
}

#[test]
fn an_instruction_that_is_put_in_reads_another_one() {
    let mut kernel = common::lift_words(&[MOV_R2_1, EXIT]);
    let before = code(&kernel)[1];
    let r2 = kernel.op(code(&kernel)[0]).results().next().unwrap();
    let put = |text: &str, value| Edit::Insert {
        before,
        inst: inst(text),
        operands: vec![always(), value],
    };
    let edits = vec![put("MOV R7, R2", r2), put("MOV R8, R7", ValueId::made(0))];
    let words = applied(&mut kernel, edits).unwrap();
    assert_eq!(words[1..3], [inst("MOV R7, R2").word.0, inst("MOV R8, R7").word.0]);
    // It is the register of what it reads that counts.
    let mut kernel = common::lift_words(&[MOV_R2_1, EXIT]);
    let edits = vec![put("MOV R7, R2", r2), put("MOV R8, R6", ValueId::made(0))];
    let error = applied(&mut kernel, edits).unwrap_err();
    assert!(error.contains("not in the registers"), "{error}");
    let error = applied(&mut kernel, vec![put("MOV R8, R7", ValueId::made(3))]).unwrap_err();
    assert!(error.contains("not in the registers"), "{error}");
}

/// `MOV R2, 1; @P0 BRA back to the next instruction` around the sum, with a block for the loop.
fn with_loop() -> ir::Kernel {
    let listing = "MOV R2, 0x1 ;
         IADD3 R3, R2, R2, RZ ;
         ISETP.LT.AND P0, PT, R3, c[0x0][0x160], PT ;
         @P0 BRA 0x10 ;
         EXIT ;";
    let control = "B------:R-:W-:-:S05".parse().unwrap();
    let sections = isa::asm::Assembler::new(sm87())
        .listing(listing, Some(control))
        .unwrap();
    let words: Vec<u128> = sections[0].words.iter().map(|w| w.0).collect();
    common::lift_words(&words)
}

#[test]
fn what_goes_round_a_loop_is_an_argument() {
    let mut kernel = with_loop();
    let ops = code(&kernel);
    let block = kernel.op(ops[1]).block();
    let r2 = kernel.op(ops[0]).results().next().unwrap();
    // R7 = R2 before the loop; in it R8 = R7, R7 = R8.
    let put = |before: usize, text: &str, value| Edit::Insert {
        before: ops[before],
        inst: inst(text),
        operands: vec![always(), value],
    };
    let edits = |passed: Vec<ValueId>| {
        // The argument is the second value that is made.
        vec![
            put(1, "MOV R8, R7", ValueId::made(1)),
            Edit::Argument {
                block,
                pin: general(7),
                passed,
            },
            put(1, "MOV R7, R8", ValueId::made(0)),
            Edit::Insert {
                before: kernel.block(ir::BlockId(block.0 - 1)).ops().next_back().unwrap().id(),
                inst: inst("MOV R7, R2"),
                operands: vec![always(), r2],
            },
        ]
    };
    let (first, second) = (ValueId::made(3), ValueId::made(2));
    let (good, swapped, short) = (
        edits(vec![first, second]),
        edits(vec![second, first]),
        edits(vec![first]),
    );
    let words = applied(&mut kernel.clone(), good).unwrap();
    assert_eq!(words[1], inst("MOV R7, R2").word.0);
    // Each edge passes what its block has, and every edge something.
    let error = applied(&mut kernel.clone(), swapped).unwrap_err();
    assert!(error.contains("does not hold the value"), "{error}");
    let error = applied(&mut kernel, short).unwrap_err();
    assert!(error.contains("2 edges lead to block"), "{error}");
}

#[test]
fn one_value_is_read_instead_of_another() {
    let mut kernel = common::lift_words(&[MOV_R2_1, ADD_R3_R2_R2, EXIT]);
    let ops = code(&kernel);
    let r2 = kernel.op(ops[0]).results().next().unwrap();
    let put = Edit::Insert {
        before: ops[1],
        inst: inst("MOV R2, 0x5"),
        operands: vec![always()],
    };
    let instead = |by| Edit::ReplaceValue { value: r2, by };
    let words = applied(
        &mut kernel.clone(),
        vec![put.clone(), instead(ValueId::made(0)), Edit::Erase { op: ops[0] }],
    );
    assert_eq!(words, Ok(vec![inst("MOV R2, 0x5").word.0, ADD_R3_R2_R2, EXIT]));
    let r3 = kernel.op(ops[1]).results().next().unwrap();
    let error = applied(&mut kernel, vec![instead(r3)]).unwrap_err();
    assert!(error.contains("not in its register"), "{error}");
    let twice = vec![put, instead(ValueId::made(0)), instead(ValueId::made(0))];
    let error = applied(&mut kernel, twice).unwrap_err();
    assert!(error.contains("replaced twice"), "{error}");
}

#[test]
fn words_follow_a_value_to_another_register() {
    let mut kernel = common::lift_words(&[MOV_R2_1, ADD_R3_R2_R2, EXIT]);
    let ops = code(&kernel);
    let r2 = kernel.op(ops[0]).results().next().unwrap();
    let to = |number| Edit::SetPin {
        value: r2,
        pin: general(number),
    };
    let words = applied(&mut kernel, vec![to(9)]).unwrap();
    assert_eq!(words[0], MOV_R2_1 & !(0xff << 16) | 9 << 16);
    assert_eq!(words[1], ADD_R3_R2_R2 & !(0xff << 24 | 0xff << 32) | 9 << 24 | 9 << 32);
    assert_eq!(
        kernel.op(ops[0]).word().0,
        words[0],
        "passes behind this one see the word"
    );
    let wrong = Edit::SetPin {
        value: r2,
        pin: ir::Pin::new(RegFile::UR, 3),
    };
    let error = applied(&mut kernel, vec![wrong]).unwrap_err();
    assert!(error.contains("cannot be in UR3"), "{error}");
}
