//! Live values on small code; the oracle for whole kernels is `probe check-live`.

mod common;

use common::*;
use isa::RegFile;
use sass2mlir_ir as ir;

/// Live general registers at each instruction.
fn live(words: &[u128]) -> Vec<u16> {
    let pressure = ir::pressure(&lift_words(words));
    pressure.iter().map(|p| p.of(RegFile::R)).collect()
}

#[test]
fn a_value_lives_from_its_definition_to_its_last_use() {
    // R2; R2, R3; R2, R3 and R4, which is read before it is written; nothing.
    assert_eq!(live(&[MOV_R2_1, ADD_R3_R2_R2, FFMA, EXIT]), [2, 3, 3, 0]);
}

#[test]
fn a_guarded_write_keeps_the_old_value_alive() {
    assert_eq!(live(&[MOV_R2_1, MOV_R2_2_IF_P0, ADD_R3_R2_R2, EXIT])[0], 1);
    let kernel = lift_words(&[MOV_R2_2_IF_P0, ADD_R3_R2_R2, EXIT]);
    let at = ir::pressure(&kernel);
    assert_eq!((at[0].of(RegFile::R), at[0].of(RegFile::P)), (1, 1));
}

#[test]
fn a_value_that_nobody_reads_is_live_where_it_is_written() {
    assert_eq!(live(&[MOV_R2_1, EXIT]), [1, 0]);
}
