//! Control flow where it hangs on registers: whether a call comes back. The oracle for whole kernels is `probe check-flow`.

mod common;

use common::*;

/// `CALL.REL.NOINC` to the instruction two behind it.
const CALL_OVER_ONE: u128 = 0x000fea0003c000000000001000007944;
/// The same, guarded by `P0`.
const CALL_OVER_ONE_IF_P0: u128 = 0x000fea0003c000000000001000000944;
/// `MOV R20, 0x20`
const MOV_R20_0X20: u128 = 0x000fe20000000f000000002000147802;
/// `HFMA2.MMA R21, -RZ, RZ, 0, 1.9e-06`: the bits of 0x20.
const HFMA2_R21_0X20: u128 = 0x000fe200000001ff00000020ff157435;
/// `IADD3 R5, R2, 0x20, RZ`
const ADD_R5_R2_0X20: u128 = 0x000fe20007ffe0ff0000002002057810;

fn edges(words: &[u128]) -> Vec<(u64, u64)> {
    let mut edges = lift_words(words).instruction_edges();
    edges.sort_unstable();
    edges
}

#[test]
fn a_call_comes_back_if_its_return_address_reaches_it() {
    for maker in [MOV_R20_0X20, HFMA2_R21_0X20] {
        let found = edges(&[maker, CALL_OVER_ONE, EXIT, EXIT]);
        assert_eq!(found, [(0, 0x10), (0x10, 0x20)], "{maker:032x}");
    }
}

#[test]
fn a_call_without_a_return_address_is_a_branch() {
    let branch = [(0, 0x10), (0x10, 0x30)];
    assert_eq!(edges(&[NOP, CALL_OVER_ONE, EXIT, EXIT]), branch);
    // A number that looks like the address, in an instruction that computes.
    assert_eq!(edges(&[ADD_R5_R2_0X20, CALL_OVER_ONE, EXIT, EXIT]), branch);
    // The address is overwritten on the way, and behind the call is too late.
    let over = 0x000fe20000000f000000000100147802; // MOV R20, 0x1
    assert_eq!(edges(&[over, CALL_OVER_ONE, MOV_R20_0X20, EXIT, EXIT])[1], (0x10, 0x30));
}

#[test]
fn a_guarded_branching_call_goes_both_ways() {
    let found = edges(&[NOP, CALL_OVER_ONE_IF_P0, EXIT, EXIT]);
    assert_eq!(found, [(0, 0x10), (0x10, 0x20), (0x10, 0x30)]);
}

#[test]
fn an_address_is_followed_through_copies_and_branches() {
    // MOV R20, 0x50; IMAD.MOV.U32 R4, RZ, RZ, R20; MOV R20, 0x1; @P0 BRA +0; CALL; EXIT; EXIT
    let make = 0x000fe20000000f000000005000147802;
    let copy = 0x000fe200078e0014000000ffff047224;
    let over = 0x000fe20000000f000000000100147802;
    let skip = 0x000fea00038000000000000000000947;
    let found = edges(&[make, copy, over, skip, CALL_OVER_ONE, EXIT, EXIT]);
    assert!(
        found.contains(&(0x40, 0x50)) && !found.contains(&(0x40, 0x60)),
        "{found:x?}"
    );
    let found = edges(&[make, over, copy, skip, CALL_OVER_ONE, EXIT, EXIT]);
    assert!(found.contains(&(0x40, 0x60)), "{found:x?}");
}
