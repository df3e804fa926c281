//! What lanes of several places run stays as it is; the rest of the kernel is rewritten.

mod common;

use common::kernel_for;
use isa::{Isa, Target};
use sass2mlir_passes::uniformity::Uniformity;
use sass2mlir_passes::{
    ConstBankFold, Context, CopyProp, Dce, FfmaDeftz, Options, Pass, Resources, ReuseFlags, ScalarToUniform, YieldTune,
    instructions,
};

const TARGET: Target = Target::Sm120;

/// A collective, behind what it reads, as passes like to find it.
const MEETING: &str = "
    MOV R4, 0x1f ;
    MOV R11, R0 ;
    MOV R3, 0x5 ;
    MOV R2, 0xffffffff ;
    WARPSYNC.COLLECTIVE R2, `(.L_x_BEHIND) ;
    FFMA.FTZ R5, R11, R11, R11 ;
    IADD R6, R4, R11 ;
    MOV R7, R6 ;
    SHFL.IDX P0, R8, R5, R3, R4 ;
    IADD R9, R7, R8 ;
    ENDCOLLECTIVE ;
.L_x_BEHIND:
    STG.E desc[UR4][R12.64], R9 ;";

/// Two places whose lanes meet, behind something else that passes like.
fn listing() -> String {
    let [first, second] = ["1", "3"].map(|behind| MEETING.replace("BEHIND", behind));
    format!(
        "
    LDC R1, c[0x0][0x37c] ;
    S2R R0, SR_TID.X ;
    MOV R20, 0x1f ;
    IADD R21, R0, R20 ;
    MOV R22, R0 ;
    IADD R23, R22, R21 ;
    MOV R24, R23 ;
    FFMA.FTZ R26, R23, R21, R23 ;
    ISETP.GT.AND P1, PT, R23, R26, PT ;
    @P1 BRA `(.L_x_2) ;{first}
    BRA `(.L_x_4) ;
.L_x_2:{second}
.L_x_4:
    EXIT ;"
    )
}

#[test]
fn passes_leave_collectives_alone() {
    let isa = Isa::for_target(TARGET).expect("the target is embedded");
    let kernel = kernel_for(TARGET, &listing());
    let all = ir::collectives(isa, &kernel);
    assert!(all.len() == 2 && ir::same_body(&kernel, all[0], all[1]));
    let of_one = |op| all.iter().any(|c| c.holds(op));
    let pinned: Vec<u64> = instructions(&kernel)
        .filter(|(_, op, _)| of_one(*op))
        .map(|(offset, ..)| offset)
        .collect();
    let cx = Context {
        isa,
        params: None,
        pinned: &pinned,
        resources: &Resources::default(),
    };
    let passes: [(&dyn Pass, usize); 7] = [
        (&ConstBankFold, 0),
        (&CopyProp, 1),
        (&Dce, 1),
        (&FfmaDeftz, 1),
        (&ReuseFlags, 1),
        (&ScalarToUniform, 1),
        (&YieldTune, 0),
    ];
    for (pass, least) in passes {
        let name = pass.name();
        let found = pass.run(&cx, &kernel, &Options::default()).expect(name);
        assert!(found.sites >= least, "{name}: {:?}", found.skipped);
        let mut edited = kernel.clone();
        let done = edited.apply(isa, &found.edits);
        assert!(done.is_ok(), "{name}: {done:?}");
        assert_eq!(ir::same_collectives(isa, &kernel, &edited), Ok(()), "{name}");
    }
}

/// Lanes part as they go on, each behind its own place; who was together goes on together.
#[test]
fn lanes_of_several_places_are_apart_behind_a_collective() {
    let isa = Isa::for_target(TARGET).expect("the target is embedded");
    let together = |listing: &str| -> String {
        let kernel = kernel_for(TARGET, listing);
        let convergence = Uniformity::new(isa, &kernel).convergence;
        let mark = |op| if convergence.together(kernel.op(op)) { '=' } else { '<' };
        instructions(&kernel).map(|(_, op, _)| mark(op)).collect()
    };
    let expected = "=".repeat(10) + &"<".repeat(26);
    assert_eq!(together(&listing()), expected);
    // A warp decides as one whether it goes where BRA.DIV leads.
    let one = "
        S2R R0, SR_TID.X ;
        UMOV UR4, 0xffffffff ;
        BRA.DIV UR4, `(.L_x_2) ;
        SHFL.IDX PT, R8, R0, 0x1, 0x1f ;
    .L_x_1:
        STG.E desc[UR6][R12.64], R8 ;
        EXIT ;
    .L_x_2:
        MOV R2, 0xffffffff ;
        WARPSYNC.COLLECTIVE R2, `(.L_x_3) ;
        SHFL.IDX P0, R8, R0, R3, R4 ;
        ENDCOLLECTIVE ;
    .L_x_3:
        BRA `(.L_x_1) ;";
    assert_eq!(together(one), "=".repeat(11));
    let parted = "S2R R1, SR_TID.X ;\nISETP.GT.AND P1, PT, R1, 0x3, PT ;\n@P1 BRA `(.L_x_0) ;\nNOP ;\n.L_x_0:\n";
    assert_eq!(together(&(parted.to_owned() + one)), "===".to_owned() + &"<".repeat(12));
}
