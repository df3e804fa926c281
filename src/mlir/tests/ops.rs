//! Functions that Rust builds op by op, with what melior makes of SassOps.td.
#![cfg(feature = "mlir")]

use melior::ir::attribute::{DenseI32ArrayAttribute, IntegerAttribute, StringAttribute};
use melior::ir::operation::OperationLike;
use melior::ir::r#type::IntegerType;
use melior::ir::{Block, BlockLike, Location, Region, RegionLike, Type};
use sass2mlir_mlir::{Bridge, ops};

/// A function without code: RZ, a label, the end; and what enters it.
fn function<'c>(bridge: &'c Bridge, sm: &str) -> ops::FuncOperation<'c> {
    let context = bridge.context();
    let at = Location::unknown(context);
    let number = |n: i64| IntegerAttribute::new(IntegerType::new(context, 32).into(), n);
    let body = Region::new();
    let entry = body.append_block(Block::new(&[]));
    let code = body.append_block(Block::new(&[]));
    let reg = Type::parse(context, "!sass.reg").unwrap();
    entry.append_operation(ops::rz(context, reg, at).into());
    let entered = ops::EntryOperation::builder(context, at)
        .values(&[])
        .dests(&[&code])
        .succ(DenseI32ArrayAttribute::new(context, &[0]))
        .build();
    entry.append_operation(entered.into());
    code.append_operation(ops::label(context, number(0), at).into());
    code.append_operation(ops::end(context, at).into());
    let text = |text: &str| StringAttribute::new(context, text);
    ops::func(context, body, text("made_in_rust"), text(sm), at)
}

#[test]
fn a_function_is_built_in_rust() {
    let bridge = Bridge::new(false).unwrap();
    let func = function(&bridge, "sm_87");
    assert!(func.as_operation().verify());
    assert_eq!(func.sm().unwrap().value(), "sm_87");
    let expected = "sass.func \"made_in_rust\" attributes {sm = \"sm_87\"} {\n  %RZ = sass.rz\n  sass.entry ^bb1\n^bb1:  // pred: ^bb0\n  \
                    sass.label 0\n  sass.end\n}";
    assert_eq!(func.as_operation().to_string().trim_end(), expected);
    // Both readers take it.
    let module = bridge.parse(expected.as_bytes()).unwrap();
    let kernels = module.kernels().unwrap();
    assert_eq!(
        ir::print_module(&kernels),
        ir::print_module(&ir::parse_module(expected).unwrap())
    );
}

#[test]
fn a_function_for_an_unknown_target_does_not_verify() {
    let bridge = Bridge::new(false).unwrap();
    let func = function(&bridge, "sm_1");
    assert!(!func.as_operation().verify());
    let said = bridge.take_diagnostics();
    assert!(said[0].message.contains("unknown target \"sm_1\""), "{said:?}");
}
