//! Edits, and what lowering refuses.

mod common;

use common::{ADD_R3_R2_R2, EXIT, FFMA, MOV_R2_1, MOV_R2_2_IF_P0};
use sass2mlir_ir as ir;

fn sm87() -> &'static isa::Isa {
    isa::Isa::for_target(isa::Target::Sm87).unwrap()
}

fn code(kernel: &ir::Kernel) -> Vec<ir::OpId> {
    kernel.ops().filter(|o| o.inst().is_some()).map(|o| o.id()).collect()
}

fn words(kernel: &ir::Kernel) -> Vec<u128> {
    let bytes = ir::lower(kernel).unwrap();
    bytes
        .chunks(16)
        .map(|c| u128::from_le_bytes(c.try_into().unwrap()))
        .collect()
}

#[test]
fn modifiers_and_immediates() {
    let mut kernel = common::lift_words(&[MOV_R2_1, FFMA, EXIT]);
    let ops = code(&kernel);
    let form = sm87().form(kernel.op(ops[0]).form()).unwrap();
    let field = form
        .fields()
        .iter()
        .position(|f| f.mask() == 0xffff_ffff << 32)
        .expect("the immediate");
    let list = ir::EditList {
        edits: vec![
            ir::Edit::EditModifiers {
                op: ops[1],
                drop: vec!["FTZ".into()],
                add: vec![],
            },
            ir::Edit::SetField {
                op: ops[0],
                field,
                value: 0x1234,
            },
        ],
    };
    let changes = kernel.apply(sm87(), &list).unwrap();
    assert_eq!(
        words(&kernel),
        [MOV_R2_1 & !(0xffff_ffff << 32) | 0x1234 << 32, FFMA & !(1 << 80), EXIT]
    );
    assert_eq!(changes.words.len(), 2);
    for (change, offset) in changes.words.iter().zip([0, 16]) {
        assert_eq!(change.offset, offset);
        assert_ne!(change.old, change.new);
        assert_eq!((change.old.0 ^ change.new.0) & !change.mask, 0);
    }
    // The edited kernel reads and writes as any other.
    let text = ir::print_module(std::slice::from_ref(&kernel));
    assert!(
        text.contains("sass.FFMA_0x223 guard") && text.contains("0x00001234"),
        "{text}"
    );
    assert_eq!(ir::print_module(&[common::parse(&text)]), text);
}

#[test]
fn all_or_nothing() {
    let mut kernel = common::lift_words(&[FFMA, EXIT]);
    let ops = code(&kernel);
    let before = ir::print_module(std::slice::from_ref(&kernel));
    let drop = |op, token: &str| ir::Edit::EditModifiers {
        op,
        drop: vec![token.into()],
        add: vec![],
    };
    let list = ir::EditList {
        edits: vec![drop(ops[0], "FTZ"), drop(ops[0], "FTZ")],
    };
    let error = kernel.apply(sm87(), &list).unwrap_err();
    assert!(error.to_string().starts_with("words at 0x0: "), "{error}");
    assert_eq!(ir::print_module(std::slice::from_ref(&kernel)), before);
}

#[test]
fn lowering_refuses_a_value_that_was_overwritten() {
    let mut kernel = common::lift_words(&[MOV_R2_1, MOV_R2_2_IF_P0, ADD_R3_R2_R2, EXIT]);
    let ops = code(&kernel);
    let first = kernel.op(ops[0]).results().next().unwrap();
    let merged = kernel.op(ops[1]).results().next().unwrap();
    let operand = kernel.op(ops[2]).operands().iter().position(|v| *v == merged).unwrap();
    let list = ir::EditList {
        edits: vec![ir::Edit::ReplaceOperand {
            op: ops[2],
            operand,
            value: first,
        }],
    };
    kernel.apply(sm87(), &list).unwrap();
    let error = ir::lower(&kernel).unwrap_err();
    assert!(
        error.to_string().contains("R2 does not hold the value that is read"),
        "{error}"
    );
    // The guarded write keeps what was there: both values have to be in its register.
    let error = ir::settle(&mut kernel, &ir::Constraints::default()).unwrap_err();
    assert!(error.ends_with("that needs a copy"), "{error}");
}

/// `MOV R2, 0x1; IADD3 R3, R2, R2; MOV R2, 0x5; FFMA R4, R2, R3, R4`, whose last instruction reads the first R2 then; `between` stands
/// before it.
fn stretched(between: &[u128]) -> ir::Kernel {
    let mov_r2_5 = MOV_R2_1 & !(0xff << 32) | 5 << 32;
    let words = [
        &[MOV_R2_1, ADD_R3_R2_R2, mov_r2_5][..],
        between,
        &[FFMA, mov_r2_5, EXIT],
    ]
    .concat();
    let mut kernel = common::lift_words(&words);
    let ops = code(&kernel);
    let result = |n: usize| kernel.op(ops[n]).results().next().unwrap();
    let (first, second) = (result(0), result(2));
    let last = ops[3 + between.len()];
    let operand = kernel.op(last).operands().iter().position(|v| *v == second).unwrap();
    let edits = vec![ir::Edit::ReplaceOperand {
        op: last,
        operand,
        value: first,
    }];
    kernel.apply(sm87(), &ir::EditList { edits }).unwrap();
    kernel
}

#[test]
fn a_value_that_would_be_overwritten_gets_another_register() {
    // R5 = R2 + R2 reads the second one.
    let add_r5_r2_r2 = ADD_R3_R2_R2 & !(0xff << 16) | 5 << 16;
    let mut kernel = stretched(&[add_r5_r2_r2, add_r5_r2_r2]);
    let top = ir::top_register(&kernel);
    assert!(ir::lower(&kernel).is_err());
    let before: Vec<ir::Pin> = kernel.values().map(|v| kernel.pin(v)).collect();
    assert_eq!(ir::settle(&mut kernel, &ir::Constraints::default()), Ok(1));
    let moved = kernel
        .values()
        .zip(before)
        .filter(|(v, old)| kernel.pin(*v) != *old)
        .count();
    assert_eq!((moved, ir::top_register(&kernel)), (1, top));
    let lowered = ir::lower(&kernel).expect("it lowers");
    let source = ir::Source::new("words", isa::Target::Sm87, &lowered);
    let again = ir::lift(sm87(), &source).expect("it lifts");
    assert_eq!(ir::same_def_use(&kernel, &again), Ok(()));
    // Once more there is nothing to do.
    assert_eq!(ir::settle(&mut kernel, &ir::Constraints::default()), Ok(0));
}

#[test]
fn where_no_register_is_free_nothing_moves() {
    let mut kernel = stretched(&[]);
    let general: Vec<ir::Pin> = (0..=4).map(|n| ir::Pin::new(isa::RegFile::R, n)).collect();
    let constraints = ir::Constraints {
        reserved: general,
        in_flight: None,
    };
    let error = ir::settle(&mut kernel, &constraints).unwrap_err();
    assert!(
        error.starts_with("at 0x30: R2 does not hold the value that is read"),
        "{error}"
    );
    assert!(error.ends_with("the values in R2 cannot move"), "{error}");
}

#[test]
fn replacing_an_operand_sets_its_register() {
    let mut kernel = common::lift_words(&[MOV_R2_1, ADD_R3_R2_R2, FFMA, EXIT]);
    let ops = code(&kernel);
    let r2 = kernel.op(ops[0]).results().next().unwrap();
    let r3 = kernel.op(ops[1]).results().next().unwrap();
    let operand = kernel.op(ops[2]).operands().iter().position(|v| *v == r3).unwrap();
    let list = ir::EditList {
        edits: vec![ir::Edit::ReplaceOperand {
            op: ops[2],
            operand,
            value: r2,
        }],
    };
    let changes = kernel.apply(sm87(), &list).unwrap();
    assert_eq!(words(&kernel)[2], FFMA & !(0xff << 32) | 2 << 32);
    assert_eq!(changes.words[0].mask, 0xff << 32);
}

#[test]
fn inserting_and_erasing_moves_branches() {
    // `@P0 BRA` over one instruction.
    let bra = 0x000fea00038000000000001000000947u128;
    let mut kernel = common::lift_words(&[bra, MOV_R2_1, EXIT]);
    let ops = code(&kernel);
    let inst = sm87().decode(isa::Word(MOV_R2_1));
    let operands = kernel.op(ops[1]).operands().to_vec();
    let insert = ir::Edit::Insert {
        before: ops[1],
        inst,
        operands,
    };
    let changes = kernel.apply(sm87(), &ir::EditList { edits: vec![insert] }).unwrap();
    assert_eq!(changes.inserted, 1);
    let longer = words(&kernel);
    assert_eq!(longer.len(), 4);
    assert_eq!(longer[1..], [MOV_R2_1, MOV_R2_1, EXIT]);
    assert_eq!(sm87().branch_target(sm87().decode(isa::Word(longer[0])), 0), Some(0x30));
    let ops = code(&kernel);
    kernel
        .apply(
            sm87(),
            &ir::EditList {
                edits: vec![ir::Edit::Erase { op: ops[1] }],
            },
        )
        .unwrap();
    assert_eq!(words(&kernel), [bra, MOV_R2_1, EXIT]);
    // What is still read cannot go.
    let mut kernel = common::lift_words(&[MOV_R2_1, ADD_R3_R2_R2, EXIT]);
    let op = code(&kernel)[0];
    let error = kernel
        .apply(
            sm87(),
            &ir::EditList {
                edits: vec![ir::Edit::Erase { op }],
            },
        )
        .unwrap_err();
    assert!(error.to_string().contains("still read"), "{error}");
}
