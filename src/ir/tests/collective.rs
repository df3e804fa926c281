//! Collectives: their bodies run for lanes of other places too.

mod common;

use common::*;
use sass2mlir_ir as ir;

/// Two ways through a kernel, each with a collective of its own.
const TWO: &str = "
    [B------:R-:W0:-:S01] S2R R0, SR_TID.X ;
    [B0-----:R-:W-:-:S05] ISETP.GT.AND P1, PT, R0, 0x9, PT ;
    [B------:R-:W-:-:S05] @P1 BRA `(.L_x_2) ;
    [B------:R-:W-:-:S05] MOV R9, 0x7 ;
    [B------:R-:W-:-:S05] MOV R11, R0 ;
    [B------:R-:W-:-:S05] MOV R3, R9 ;
    [B------:R-:W-:-:S05] MOV R2, 0xffffffff ;
    [B------:R-:W-:-:S05] WARPSYNC.COLLECTIVE R2, `(.L_x_1) ;
    [B------:R-:W1:-:S02] SHFL.IDX P0, R0, R11, R3, R4 ;
    [B-1----:R-:W-:-:S05] ENDCOLLECTIVE ;
.L_x_1:
    [B------:R-:W-:-:S05] IADD R7, R0, R9 ;
    [B------:R-:W-:-:S05] BRA `(.L_x_4) ;
.L_x_2:
    [B------:R-:W-:-:S05] IADD R11, R0, R0 ;
    [B------:R-:W-:-:S05] MOV R3, 0x5 ;
    [B------:R-:W-:-:S05] MOV R2, 0xffffffff ;
    [B------:R-:W-:-:S05] WARPSYNC.COLLECTIVE R2, `(.L_x_3) ;
    [B------:R-:W2:-:S03] SHFL.IDX P0, R0, R11, R3, R4 ;
    [B--2---:R-:W-:-:S05] ENDCOLLECTIVE ;
.L_x_3:
    [B------:R-:W-:-:S05] IADD R7, R0, 0x1 ;
.L_x_4:
    [B------:R-:W-:-:S05] STG.E desc[UR4][R12.64], R7 ;
    [B------:R-:W-:-:S05] EXIT ;";

fn lift(listing: &str) -> (&'static isa::Isa, ir::Kernel) {
    let isa = isa::Isa::for_target(isa::Target::Sm120).expect("tables");
    let code = assemble_for(isa.target(), listing);
    let kernel = ir::lift(isa, &ir::Source::new("two", isa::Target::Sm120, &code));
    (isa, kernel.unwrap_or_else(|e| panic!("{e}")))
}

fn found(listing: &str) -> (ir::Kernel, Vec<ir::Collective>) {
    let (isa, kernel) = lift(listing);
    let all = ir::collectives(isa, &kernel);
    (kernel, all)
}

fn mnemonic(kernel: &ir::Kernel, op: ir::OpId) -> &'static str {
    let isa = isa::Isa::for_target(kernel.target).expect("tables");
    isa.form(kernel.op(op).form()).map_or("", |f| f.mnemonic())
}

#[test]
fn begin_end_and_where_lanes_go_on_are_found() {
    let (kernel, all) = found(TWO);
    let [a, b] = all[..] else { panic!("{all:?}") };
    for one in [a, b] {
        assert_eq!(mnemonic(&kernel, one.begin), "WARPSYNC");
        let end = one.end.expect("an end");
        assert_eq!(mnemonic(&kernel, end), "ENDCOLLECTIVE");
        assert_eq!(one.behind, Some(ir::BlockId(kernel.op(end).block().0 + 1)));
        let body: Vec<_> = one.body(&kernel).map(|op| mnemonic(&kernel, op.id())).collect();
        assert_eq!(body, ["SHFL"]);
        assert!(one.holds(one.begin) && one.holds(end) && !one.holds(ir::OpId(end.0 + 1)));
        assert!(one.splits_at(end) && !one.splits_at(one.begin));
    }
    assert!(ir::same_body(&kernel, a, b), "scheduling bits do not count");
}

#[test]
fn a_kernel_without_them_has_none() {
    let (_, all) = found("[B------:R-:W-:-:S05] WARPSYNC R2 ;\n[B------:R-:W-:-:S05] EXIT ;");
    assert_eq!(all, []);
}

#[test]
fn other_registers_are_another_body() {
    let second = TWO.rfind("SHFL.IDX P0, R0, R11").expect("there");
    let other = TWO[..second].to_owned() + &TWO[second..].replacen("R11", "R10", 1);
    let (kernel, all) = found(&other);
    assert!(!ir::same_body(&kernel, all[0], all[1]));
}

#[test]
fn what_cannot_be_told_has_no_end() {
    // The first does not end; the label of the second is elsewhere; a guard decides which lanes end it.
    let without = TWO.replacen("ENDCOLLECTIVE", "NOP", 1);
    let elsewhere = TWO.replacen("`(.L_x_3)", "`(.L_x_4)", 1);
    let last = TWO.rfind("ENDCOLLECTIVE").expect("there");
    let guarded = TWO[..last].to_owned() + "@P0 " + &TWO[last..];
    for (listing, ends) in [
        (without, [false, true]),
        (elsewhere, [true, false]),
        (guarded, [true, false]),
    ] {
        let (_, all) = found(&listing);
        assert_eq!(
            all.iter().map(|c| c.end.is_some()).collect::<Vec<_>>(),
            ends,
            "{listing}"
        );
    }
    let (_, all) = found("[B------:R-:W-:-:S05] ENDCOLLECTIVE ;\n[B------:R-:W-:-:S05] EXIT ;");
    assert!(matches!(all[..], [ir::Collective { end: None, .. }]), "{all:?}");
}
