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

/// The kernel with its registers written into its words, lifted again.
fn again(isa: &'static isa::Isa, kernel: &ir::Kernel) -> ir::Kernel {
    let mut cleared = kernel.clone();
    cleared.clear_registers();
    let code = ir::lower(&cleared).unwrap_or_else(|e| panic!("{e}"));
    ir::lift(isa, &ir::Source::new("two", isa.target(), &code)).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn allocation_leaves_their_registers() {
    let (isa, kernel) = lift(TWO);
    for how in [
        ir::Allocation::Fresh,
        ir::Allocation::Scrambled(3),
        ir::Allocation::Scrambled(4),
    ] {
        let mut other = kernel.clone();
        let done = ir::allocate(&mut other, how, &ir::Constraints::default()).unwrap_or_else(|e| panic!("{e}"));
        assert!(done.groups.1 > 0, "{how:?}: nothing moved");
        let other = again(isa, &other);
        assert_eq!(ir::same_collectives(isa, &kernel, &other), Ok(()), "{how:?}");
        let all = ir::collectives(isa, &other);
        assert!(ir::same_body(&other, all[0], all[1]), "{how:?}");
    }
}

/// Both are one instruction, with the constant register in one place or the other.
#[test]
fn votes_that_give_a_mask_are_no_votes_that_give_a_predicate() {
    let second = TWO.rfind("SHFL.IDX P0, R0, R11, R3, R4").expect("there");
    let (before, behind) = TWO.split_at(second);
    let (before, shfl) = (
        before.replacen("SHFL.IDX P0, R0, R11, R3, R4", "VOTE.ANY P0, P1", 1),
        "SHFL.IDX P0, R0, R11, R3, R4",
    );
    let (_, mut kernel) = lift(&(before + &behind.replacen(shfl, "VOTE.ANY R0, PT, P1", 1)));
    let done = ir::allocate(&mut kernel, ir::Allocation::Fresh, &ir::Constraints::default());
    assert!(done.is_ok(), "{done:?}");
}

#[test]
fn allocation_refuses_what_it_cannot_tell() {
    let without = TWO.replacen("ENDCOLLECTIVE", "NOP", 1);
    let second = TWO.rfind("SHFL.IDX P0, R0, R11").expect("there");
    let differs = TWO[..second].to_owned() + &TWO[second..].replacen("R11", "R10", 1);
    for (listing, why) in [(without, "ends"), (differs, "differ in registers only")] {
        let (_, mut kernel) = lift(&listing);
        let refused = ir::allocate(&mut kernel, ir::Allocation::Fresh, &ir::Constraints::default());
        assert!(refused.as_ref().is_err_and(|e| e.contains(why)), "{refused:?}");
    }
}

#[test]
fn no_edit_reaches_into_them() {
    let (isa, kernel) = lift(TWO);
    let all = ir::collectives(isa, &kernel);
    let (begin, end) = (all[0].begin, all[0].end.expect("an end"));
    let shfl = all[0].body(&kernel).next().expect("a body").id();
    let nop = isa.decode(ir::nop(isa).expect("a NOP"));
    let put = |before| ir::Edit::Insert {
        before,
        inst: nop,
        operands: vec![ir::ValueId::constant(isa::RegFile::P)],
    };
    let number = kernel.op(shfl).operands()[1];
    let seven = kernel
        .ops()
        .find_map(|op| op.results().find(|v| kernel.pin(*v).number() == 9));
    let copy = ir::OpId(begin.0 - 3);
    let edits = |edit: ir::Edit| ir::EditList { edits: vec![edit] };
    for (edit, fine) in [
        (put(begin), true),
        (put(shfl), false),
        (put(end), false),
        (ir::Edit::Erase { op: shfl }, false),
        (ir::Edit::Erase { op: end }, false),
        (ir::Edit::Erase { op: begin }, false),
        (ir::Edit::Move { op: copy, before: end }, false),
        (
            ir::Edit::SetPin {
                value: number,
                pin: ir::Pin::new(isa::RegFile::R, 40),
            },
            false,
        ),
        (
            ir::Edit::SetPin {
                value: seven.expect("R9"),
                pin: ir::Pin::new(isa::RegFile::R, 40),
            },
            true,
        ),
        (
            ir::Edit::ReplaceOperand {
                op: shfl,
                operand: 1,
                value: seven.expect("R9"),
            },
            false,
        ),
        (
            ir::Edit::SetControl {
                op: shfl,
                control: isa::Control::PLAIN,
            },
            true,
        ),
    ] {
        let mut edited = kernel.clone();
        let done = edited.apply(isa, &edits(edit.clone()));
        assert_eq!(done.is_ok(), fine, "{edit:?}: {done:?}");
    }
}

#[test]
fn nothing_is_put_in_between() {
    let isa = isa::Isa::for_target(isa::Target::Sm120).expect("tables");
    let code = assemble_for(isa.target(), TWO);
    let places = ir::free_places(isa, &ir::Source::new("two", isa.target(), &code));
    let expected: Vec<u32> = (0..21).filter(|n| ![8, 9, 16, 17].contains(n)).collect();
    assert_eq!(places, expected);
}
