//! Code to text and back, byte for byte, with every register of the words cleared before it is written again.

mod common;

use sass2mlir_ir as ir;

#[test]
fn bundled_kernels_come_back() {
    let mut kernels = 0;
    common::each_code(|isa, source| {
        let lifted = ir::lift(isa, &source).unwrap();
        let text = ir::print_module(std::slice::from_ref(&lifted));
        let mut parsed = common::parse(&text);
        assert_eq!(ir::print_module(std::slice::from_ref(&parsed)), text, "{}", source.name);
        assert_eq!(ir::lower(&parsed).unwrap(), source.code, "{}", source.name);
        same_numbers(&lifted, &parsed);
        parsed.clear_registers();
        assert_eq!(
            ir::lower(&parsed).unwrap(),
            source.code,
            "{}: registers cleared",
            source.name
        );
        parsed.write_words().unwrap();
        same_numbers(&lifted, &parsed);
        kernels += 1;
    });
    assert!(kernels > 10);
}

/// Operations, values and blocks have the numbers that they had, so that edits of one kernel fit the other.
fn same_numbers(a: &ir::Kernel, b: &ir::Kernel) {
    let (a, b) = (a.parts(), b.parts());
    assert_eq!((a.kinds, a.words), (b.kinds, b.words), "{}", a.name);
    assert_eq!(
        (a.operand_start, a.operands),
        (b.operand_start, b.operands),
        "{}",
        a.name
    );
    assert_eq!((a.result_start, a.pins), (b.result_start, b.pins), "{}", a.name);
    assert_eq!((a.block_start, a.arg_start), (b.block_start, b.arg_start), "{}", a.name);
    assert_eq!((a.edges, a.edge_args), (b.edges, b.edge_args), "{}", a.name);
}

#[test]
fn several_kernels_in_a_module() {
    let a = common::lift_words(&[common::MOV_R2_1, common::EXIT]);
    let text = ir::print_module(&[a.clone(), a]);
    let parsed = ir::parse_module(&text).unwrap();
    assert_eq!(parsed.len(), 2);
    assert_eq!(ir::print_module(&parsed), text);
    assert_eq!(ir::print_module(&[]), "module {\n}\n");
    assert!(ir::parse_module("module {\n}\n").unwrap().is_empty());
}

#[test]
fn code_that_is_odd() {
    for words in [
        &[][..],
        &[0],
        &[u128::MAX],
        &[common::NOP],
        &[common::LOOP],
        &[common::EXIT],
        &[common::EXIT, common::EXIT, 7],
        &[common::EXIT, common::LOOP, common::NOP, common::NOP],
        &[common::EXIT, common::NOP, common::EXIT, common::NOP],
        &[common::MOV_R2_2_IF_P0],
    ] {
        let kernel = common::lift_words(words);
        let text = ir::print_module(std::slice::from_ref(&kernel));
        let mut parsed = common::parse(&text);
        assert_eq!(ir::print_module(std::slice::from_ref(&parsed)), text);
        parsed.clear_registers();
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        assert_eq!(ir::lower(&parsed).unwrap(), bytes, "{text}");
    }
}

#[test]
fn padding_is_a_property_of_the_function() {
    let kernel = common::lift_words(&[common::EXIT, common::LOOP, common::NOP, common::NOP]);
    assert_eq!(kernel.tail.len(), 3);
    assert_eq!(kernel.instruction_count(), 1);
    // Code behind the last EXIT that is no padding stays code.
    let kernel = common::lift_words(&[common::EXIT, common::MOV_R2_1, common::NOP]);
    assert_eq!(kernel.tail.len(), 0);
}

#[test]
fn a_guarded_write_merges() {
    let kernel = common::lift_words(&[
        common::MOV_R2_1,
        common::MOV_R2_2_IF_P0,
        common::ADD_R3_R2_R2,
        common::EXIT,
    ]);
    let ops: Vec<_> = kernel.ops().filter(|o| o.inst().is_some()).collect();
    let result = |n: usize| ops[n].results().next().unwrap();
    assert_eq!(
        ops[1].operands().last(),
        Some(&result(0)),
        "the guarded MOV reads what it may leave"
    );
    assert_eq!(ops[2].operands().iter().filter(|v| **v == result(1)).count(), 2);
    assert_eq!(kernel.uses().of(result(1)).len(), 2);
    assert_eq!(kernel.pin(result(1)).to_string(), "R2");
}

#[test]
fn code_that_is_cut_short_is_an_error() {
    let isa = isa::Isa::for_target(isa::Target::Sm87).unwrap();
    let error = ir::lift(isa, &ir::Source::new("k", isa::Target::Sm87, &[0; 17])).unwrap_err();
    assert!(error.to_string().starts_with("k: 17 bytes of code"), "{error}");
}
