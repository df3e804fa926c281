//! Code that moves, on small pieces; whole files are moved by `nops` in tests/model.rs.

mod common;

use common::*;
use ir::{Movement, Put};
use isa::Word;
use sass2mlir_ir as ir;

/// `@P0 BRA` over the next instruction.
const SKIP_ONE: u128 = 0x000fea00038000000000001000000947;
/// `CALL.REL.NOINC` to the instruction two behind it.
const CALL_OVER_ONE: u128 = 0x000fea0003c000000000001000007944;
/// `MOV R20, 0x20`
const MOV_R20_0X20: u128 = 0x000fe20000000f000000002000147802;

fn moved(words: &[u128], insert: &[u32], delete: &[u32]) -> Result<ir::Moved, String> {
    let movement = Movement {
        insert: insert.iter().map(|at| (*at, Put::New(Word(NOP)))).collect(),
        append: Vec::new(),
        delete: delete.to_vec(),
    };
    move_by(words, &movement)
}

fn move_by(words: &[u128], movement: &Movement) -> Result<ir::Moved, String> {
    let code: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
    let isa = isa::Isa::for_target(isa::Target::Sm87).unwrap();
    ir::move_code(isa, &ir::Source::new("words", isa::Target::Sm87, &code), movement)
}

fn words(moved: &ir::Moved) -> Vec<u128> {
    Word::all(&moved.code).map(|w| w.0).collect()
}

#[test]
fn who_goes_to_a_label_executes_what_was_put_in_there() {
    let found = moved(&[SKIP_ONE, MOV_R2_1, EXIT], &[2], &[]).unwrap();
    assert_eq!(
        words(&found),
        [SKIP_ONE, MOV_R2_1, NOP, EXIT],
        "the branch leads to the NOP"
    );
    assert_eq!((found.label[2], found.instruction[2]), (0x20, 0x30));
}

#[test]
fn a_branch_over_what_was_put_in_is_longer() {
    let found = moved(&[SKIP_ONE, MOV_R2_1, EXIT], &[1], &[]).unwrap();
    assert_eq!(words(&found)[0], SKIP_ONE + (0x10 << 32));
}

#[test]
fn a_return_address_follows_its_call() {
    let code = [MOV_R20_0X20, CALL_OVER_ONE, EXIT, EXIT];
    let found = words(&moved(&code, &[1, 1], &[]).unwrap());
    assert_eq!(found[0], MOV_R20_0X20 + (0x20 << 32));
    assert_eq!(&found[1..], [NOP, NOP, CALL_OVER_ONE, EXIT, EXIT]);
    // A number that is no return address stays.
    let number = MOV_R20_0X20 + (0x10 << 32);
    let found = words(&moved(&[number, MOV_R20_0X20, CALL_OVER_ONE, EXIT, EXIT], &[1], &[]).unwrap());
    assert_eq!(found[0], number);
}

#[test]
fn padding_comes_and_goes_by_groups_of_eight() {
    // Six instructions, a branch to itself, one NOP; with one more there is no room for the NOP, with two more a group is added.
    let code = [MOV_R2_1, MOV_R2_1, MOV_R2_1, MOV_R2_1, MOV_R2_1, EXIT, LOOP, NOP];
    assert_eq!(words(&moved(&code, &[1], &[]).unwrap()).len(), 8);
    assert_eq!(words(&moved(&code, &[1, 1], &[]).unwrap()).len(), 16);
    // No NOP is left to copy: the padding that ptxas writes comes back.
    let full = words(&moved(&code, &[1], &[]).unwrap());
    assert_eq!(words(&moved(&full, &[], &[1]).unwrap()), code);
}

#[test]
fn taking_out_is_the_inverse() {
    each_code(|isa, source| {
        let nop = ir::nop(isa).unwrap();
        let places = ir::free_places(isa, &source);
        let insert: Vec<_> = places.iter().step_by(3).map(|at| (*at, Put::New(nop))).collect();
        let there = ir::move_code(
            isa,
            &source,
            &Movement {
                insert,
                ..Movement::default()
            },
        )
        .unwrap();
        let map = |o: &u64| u64::from(there.label[*o as usize / 16]);
        let instruction = |o: &u64| u64::from(there.instruction[*o as usize / 16]);
        let moved_source = ir::Source {
            code: &there.code,
            functions: source.functions.iter().map(map).collect(),
            labels: source.labels.iter().map(map).collect(),
            relocated: source.relocated.iter().map(instruction).collect(),
            indirect_branches: source
                .indirect_branches
                .iter()
                .map(|(at, targets)| (instruction(at), targets.iter().map(map).collect()))
                .collect(),
            ..source.clone()
        };
        let delete = there.inserted.iter().map(|o| o / 16).collect();
        let back = ir::move_code(
            isa,
            &moved_source,
            &Movement {
                delete,
                ..Movement::default()
            },
        )
        .unwrap();
        assert!(back.code == source.code, "{}", source.name);
    });
}

#[test]
fn who_goes_to_a_label_passes_over_what_ends_the_block_before() {
    let movement = Movement {
        append: vec![(2, Put::New(Word(NOP)))],
        ..Movement::default()
    };
    let found = move_by(&[SKIP_ONE, MOV_R2_1, EXIT], &movement).unwrap();
    assert_eq!(words(&found), [SKIP_ONE + (0x10 << 32), MOV_R2_1, NOP, EXIT]);
    assert_eq!((found.label[2], found.instruction[2]), (0x30, 0x30));
}

#[test]
fn an_address_follows_into_an_instruction_that_moves() {
    let code = [MOV_R20_0X20, CALL_OVER_ONE, MOV_R2_1, EXIT];
    let movement = Movement {
        insert: vec![(1, Put::New(Word(NOP))), (1, Put::Old(0))],
        delete: vec![0],
        ..Movement::default()
    };
    let found = move_by(&code, &movement).unwrap();
    let mov_r20_0x30 = MOV_R20_0X20 + (0x10 << 32);
    assert_eq!(words(&found), [NOP, mov_r20_0x30, CALL_OVER_ONE, MOV_R2_1, EXIT]);
    assert_eq!((found.label[0], found.instruction[0]), (0, 0x10));
    let why = moved(&code, &[], &[0]).unwrap_err();
    assert!(why.contains("makes a return address"), "{why}");
    let why = move_by(
        &code,
        &Movement {
            delete: Vec::new(),
            ..movement
        },
    );
    assert!(why.unwrap_err().contains("has to be taken out"));
}

#[test]
fn what_cannot_be_followed_is_refused() {
    let why = moved(&[0, MOV_R2_1, EXIT], &[1], &[]).unwrap_err();
    assert!(why.contains("in no table"), "{why}");
    // A call to an address in a register, of which nobody knows where it comes back to.
    let call_r2 = 0x000fea0003c000000000000002007343;
    let why = moved(&[call_r2, EXIT], &[1], &[]).unwrap_err();
    assert!(why.contains("return address"), "{why}");
    let why = moved(&[MOV_R2_1, EXIT], &[2], &[]).unwrap_err();
    assert!(why.contains("padding"), "{why}");
}

#[test]
fn a_place_that_cuts_off_an_operand_cache_flag_is_not_free() {
    let reuse = ADD_R3_R2_R2 | 1 << 109 | 1 << 122;
    let code: Vec<u8> = [MOV_R2_1, reuse, FFMA, EXIT]
        .iter()
        .flat_map(|w| w.to_le_bytes())
        .collect();
    let isa = isa::Isa::for_target(isa::Target::Sm87).unwrap();
    let places = ir::free_places(isa, &ir::Source::new("words", isa::Target::Sm87, &code));
    assert_eq!(places, [0, 1, 3]);
}
