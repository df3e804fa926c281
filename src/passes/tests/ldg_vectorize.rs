//! `ldg-vectorize` on listings.

mod common;

use common::{run_with, trimmed};
use ir::Pin;
use isa::RegFile;
use sass2mlir_passes::{LdgVectorize, OptionValue, Options, Pass, PassResult, Refusal, Resources};

/// An address in R2 and R3, of which nothing is known but that it is global memory; registers that all kernels here use.
const HEAD: &str = "ULDC.64 UR4, c[0x0][0x118] ;
     MOV R2, c[0x0][0x160] ;
     MOV R3, c[0x0][0x164] ;
     MOV R8, c[0x0][0x168] ;
     MOV R9, c[0x0][0x16c] ;";

/// It proves that the address is a multiple of 16, and goes on.
const PROOF: &str = "LDG.E.128 R12, [R2.64] ;";

const END: &str = "STG.E [R8.64], R20 ;
     STG.E [R8.64+0x4], R21 ;
     EXIT ;";

fn resources() -> Resources {
    Resources {
        registers: Some(40),
        fixed: Some(Vec::new()),
        ..Resources::default()
    }
}

fn apply(
    listing: &str,
    pinned: &[u64],
    options: &Options,
    resources: &Resources,
) -> Result<(String, PassResult), Refusal> {
    run_with(&LdgVectorize, listing, pinned, options, resources)
}

fn run(body: &str) -> (String, PassResult) {
    let listing = format!("{HEAD}\n{body}");
    apply(&listing, &[], &Options::default(), &resources()).expect(body)
}

/// What becomes of the code behind the head.
fn becomes(body: &str, wanted: &str) {
    let (text, found) = run(body);
    assert_eq!(text, trimmed(&format!("{HEAD}\n{wanted}")), "{:?}", found.skipped);
    assert!(found.sites > 0);
}

fn stays_with(body: &str, why: &str, pinned: &[u64], resources: &Resources) {
    let listing = format!("{HEAD}\n{body}");
    let (text, found) = apply(&listing, pinned, &Options::default(), resources).expect(body);
    assert_eq!((text, found.sites), (trimmed(&listing), 0));
    let reason = |s: &sass2mlir_passes::Skipped| s.reason.contains(why);
    assert!(
        why.is_empty() || found.skipped.iter().any(reason),
        "{body}: {:?}",
        found.skipped
    );
}

fn stays(body: &str, why: &str) {
    stays_with(body, why, &[], &resources());
}

/// Two loads behind a proof, with something between them.
fn between(what: &str) -> String {
    format!("{PROOF}\nLDG.E R20, [R2.64+0x8] ;\n{what}LDG.E R21, [R2.64+0xc] ;\n{END}")
}

#[test]
fn words_in_neighbouring_registers_are_loaded_at_once() {
    becomes(&between(""), &format!("{PROOF}\nLDG.E.64 R20, [R2.64+0x8] ;\n{END}"));
    // In any order.
    becomes(
        &format!("{PROOF}\nLDG.E R21, [R2.64+-0x4] ;\nLDG.E R20, [R2.64+-0x8] ;\n{END}"),
        &format!("{PROOF}\nLDG.E.64 R20, [R2.64+-0x8] ;\n{END}"),
    );
}

#[test]
fn four_words_and_pairs_become_one() {
    let four = "STG.E.128 [R8.64], R4 ;\nEXIT ;";
    let wide = format!("{PROOF}\nLDG.E.128 R4, [R2.64+0x20] ;\n{four}");
    let load = |modifier: &str, register: u32, at: u32| format!("LDG.E{modifier} R{register}, [R2.64+{at:#x}] ;\n");
    for parts in [
        &[("", 4, 0x20), ("", 5, 0x24), ("", 6, 0x28), ("", 7, 0x2c)][..],
        &[(".64", 4, 0x20), (".64", 6, 0x28)],
        &[("", 7, 0x2c), (".64", 4, 0x20), ("", 6, 0x28)],
    ] {
        let loads: String = parts.iter().map(|(m, r, at)| load(m, *r, *at)).collect();
        becomes(&format!("{PROOF}\n{loads}{four}"), &wide);
    }
    // Not beyond what is asked for.
    let loads: String = (0..4).map(|n| load("", 4 + n, 0x20 + 4 * n)).collect();
    let listing = format!("{HEAD}\n{PROOF}\n{loads}{four}");
    let options = Options::default().with("widest", OptionValue::Int(64));
    let (text, found) = apply(&listing, &[], &options, &resources()).expect("it may run");
    assert_eq!((found.sites, found.ops), (2, 4));
    let halves = "LDG.E.64 R4, [R2.64+0x20] ;\nLDG.E.64 R6, [R2.64+0x28] ;";
    assert_eq!(text, trimmed(&format!("{HEAD}\n{PROOF}\n{halves}\n{four}")));
    for (bits, ok) in [(0, true), (64, true), (128, true), (96, false)] {
        let options = Options::default().with("widest", OptionValue::Int(bits));
        assert_eq!(LdgVectorize.check(&options).is_ok(), ok, "{bits}");
    }
}

#[test]
fn results_get_registers_side_by_side() {
    // R21 is taken, R24 is free.
    becomes(
        &format!(
            "{PROOF}
             LDG.E R20, [R2.64+0x8] ;
             LDG.E R25, [R2.64+0xc] ;
             MOV R21, 0x3 ;
             IADD3 R20, R20, R25, R21 ;
             {END}"
        ),
        &format!(
            "{PROOF}
             LDG.E.64 R24, [R2.64+0x8] ;
             MOV R21, 0x3 ;
             IADD3 R20, R24, R25, R21 ;
             {END}"
        ),
    );
    // One of them stays where it is, for a block behind reads it there.
    becomes(
        &format!(
            "{PROOF}
             LDG.E R20, [R2.64+0x8] ;
             LDG.E R25, [R2.64+0xc] ;
             IADD3 R21, R25, 0x1, RZ ;
             @P0 EXIT ;
             {END}"
        ),
        &format!(
            "{PROOF}
             LDG.E.64 R20, [R2.64+0x8] ;
             IADD3 R21, R21, 0x1, RZ ;
             @P0 EXIT ;
             {END}"
        ),
    );
}

#[test]
fn the_joined_load_stands_where_the_registers_allow_it() {
    // R21 is read before the second load: the first waits for it.
    becomes(
        &between("IADD3 R4, R21, 0x1, RZ ;\nSTS [R4], R4 ;\n").replace("STS [R4], R4 ;", "LDS R5, [R4] ;"),
        &format!("{PROOF}\nIADD3 R4, R21, 0x1, RZ ;\nLDS R5, [R4] ;\nLDG.E.64 R20, [R2.64+0x8] ;\n{END}"),
    );
    // R20 is read before the second load: that comes first.
    becomes(
        &between("IADD3 R4, R20, 0x1, RZ ;\n"),
        &format!("{PROOF}\nLDG.E.64 R20, [R2.64+0x8] ;\nIADD3 R4, R20, 0x1, RZ ;\n{END}"),
    );
    // Both: neither can be.
    stays(
        &between("IADD3 R4, R20, R21, RZ ;\n").replace("EXIT", "@P0 EXIT ;\nEXIT"),
        "",
    );
}

#[test]
fn loads_under_one_guard_join_under_it() {
    let guarded = |text: &str| {
        text.replace("LDG.E R", "@!P0 LDG.E R")
            .replace("LDG.E.64 R", "@!P0 LDG.E.64 R")
    };
    let joined = format!("{PROOF}\nLDG.E.64 R20, [R2.64+0x8] ;\n{END}");
    becomes(&guarded(&between("")), &guarded(&joined));
    // A proof under their guard holds for them.
    let proof = PROOF.replace("LDG", "@!P0 LDG");
    let under = |text: &str| guarded(text).replace(PROOF, &proof);
    becomes(&under(&between("")), &under(&joined));
    // What a guarded load keeps is in its register.
    let apart = guarded(&between(""))
        .replace("R21, [", "R22, [")
        .replace("], R21", "], R22");
    stays(&apart, "not side by side");
}

#[test]
fn alignment_follows_from_arithmetic() {
    let loads = "LDG.E R20, [R6.64+0x8] ;\nLDG.E R21, [R6.64+0xc] ;\n";
    let joined = "LDG.E.64 R20, [R6.64+0x8] ;\n";
    for made in [
        "IADD3 R6, P1, R2, 0x20, RZ ;\nIADD3.X R7, R3, RZ, RZ, P1, !PT ;\n",
        "IADD3 R6, P1, R2, -0x18, RZ ;\nIADD3.X R7, R3, RZ, RZ, P1, !PT ;\n",
        "IMAD.WIDE R6, R10, 0x8, R2 ;\n",
        "IMAD.WIDE R6, R10, -0x18, R2 ;\n",
        "MOV R11, 0x18 ;\nIMAD.WIDE R6, R10, R11, R2 ;\n",
        "HFMA2.MMA R11, -RZ, RZ, 0, 9.5367431640625e-07 ;\nIMAD.WIDE R6, R10, R11, R2 ;\n",
        "LEA R6, P1, R10, R2, 0x3 ;\nLEA.HI.X R7, R10, R3, RZ, 0x3, P1 ;\n",
        "IMAD.SHL.U32 R11, R10, 0x8, RZ ;\nIADD3 R6, P1, R2, R11, RZ ;\nIADD3.X R7, R3, RZ, RZ, P1, !PT ;\n",
        "SHF.L.U32 R11, R10, 0x3, RZ ;\nIADD3 R6, P1, R2, -R11, RZ ;\nIADD3.X R7, R3, RZ, RZ, P1, !PT ;\n",
        "SHF.L.U32 R11, R10, 0x4, RZ ;\nLOP3.LUT R11, R11, 0x28, RZ, 0xfc, !PT ;\nIADD3 R6, P1, R2, R11, RZ ;\nIADD3.X R7, R3, RZ, RZ, P1, !PT ;\n",
        // R2 is a copy of what is read here.
        "MOV R11, 0x8 ;\nIMAD.WIDE R6, R10, R11, c[0x0][0x160] ;\n",
    ] {
        becomes(
            &format!("{PROOF}\n{made}{loads}{END}"),
            &format!("{PROOF}\n{made}{joined}{END}"),
        );
    }
    for made in [
        "IADD3 R6, P1, R2, 0x4, RZ ;\nIADD3.X R7, R3, RZ, RZ, P1, !PT ;\n",
        "IADD3 R6, P1, R2, R10, RZ ;\nIADD3.X R7, R3, RZ, RZ, P1, !PT ;\n",
        "IADD3.X R6, R2, 0x20, RZ, P1, !PT ;\nMOV R7, R3 ;\n",
        "IMAD.WIDE R6, R10, 0x4, R2 ;\n",
        "IMAD.WIDE R6, R10, 0xc, R2 ;\n",
        "MOV R11, 0x4 ;\nIMAD.WIDE R6, R10, R11, R2 ;\n",
        "@P1 MOV R11, 0x8 ;\nIMAD.WIDE R6, R10, R11, R2 ;\n",
        "HFMA2.MMA R11, -RZ, RZ, 0, 2.384185791015625e-07 ;\nIMAD.WIDE R6, R10, R11, R2 ;\n",
        // The upper word of a sum whose lower one is known.
        "IMAD.WIDE R4, R10, 0x8, R2 ;\nMOV R6, R5 ;\nMOV R7, R3 ;\n",
        "LEA R6, P1, R10, R2, 0x2 ;\nLEA.HI.X R7, R10, R3, RZ, 0x2, P1 ;\n",
        "LEA.HI R6, R10, R2, RZ, 0x3 ;\nMOV R7, R3 ;\n",
        "SHF.R.U32.HI R11, RZ, 0x3, R10 ;\nIADD3 R6, P1, R2, R11, RZ ;\nIADD3.X R7, R3, RZ, RZ, P1, !PT ;\n",
        "SHF.L.U32 R11, R10, 0x4, RZ ;\nLOP3.LUT R11, R11, 0x4, RZ, 0xfc, !PT ;\nIADD3 R6, P1, R2, R11, RZ ;\nIADD3.X R7, R3, RZ, RZ, P1, !PT ;\n",
        "LOP3.LUT R11, R10, 0x8, RZ, 0xfc, !PT ;\nIADD3 R6, P1, R2, R11, RZ ;\nIADD3.X R7, R3, RZ, RZ, P1, !PT ;\n",
        // Another parameter, and no more than a parameter.
        "MOV R11, 0x8 ;\nIMAD.WIDE R6, R10, R11, c[0x0][0x168] ;\n",
        "@P1 IADD3 R6, R2, 0x20, RZ ;\n@P1 MOV R7, R3 ;\n",
    ] {
        stays(&format!("{PROOF}\n{made}{loads}{END}"), "nothing proves");
    }
    // Without any access: bits that are zero.
    let masked = "LOP3.LUT R6, R10, 0xfffffff8, RZ, 0xc0, !PT ;\n";
    becomes(&format!("{masked}{loads}{END}"), &format!("{masked}{joined}{END}"));
    stays(
        &format!("{}{loads}{END}", masked.replace("0xc0", "0xfc")),
        "nothing proves",
    );
    stays(
        &format!("{}{loads}{END}", masked.replace("8, RZ", "c, RZ")),
        "nothing proves",
    );
}

#[test]
fn nothing_but_a_wide_enough_access_on_all_ways_proves_an_address() {
    let loads = "LDG.E R20, [R2.64+0x8] ;\nLDG.E R21, [R2.64+0xc] ;\n";
    let joined = "LDG.E.64 R20, [R2.64+0x8] ;\n";
    for proof in [
        "STG.E.64 [R2.64+0x10], R14 ;\n",
        "LDG.E.64.STRONG.GPU R14, [R2.64+-0x8] ;\n",
        "STG.E.128 [R2.64+0x18], R12 ;\n",
        // In another block.
        "STG.E.64 [R2.64], R14 ;\n@P0 EXIT ;\n",
    ] {
        becomes(&format!("{proof}{loads}{END}"), &format!("{proof}{joined}{END}"));
    }
    for proof in [
        "",
        "LDG.E R12, [R2.64] ;\n",
        "LDG.E.64 R12, [R2.64+0x4] ;\n",
        "STG.E.128 [R2.64+0x14], R12 ;\n",
        "LDS.64 R12, [R2] ;\n",
        "@P0 LDG.E.64 R12, [R2.64] ;\n",
        "@!PT LDG.E.64 R12, [R2.64] ;\n",
        "LDG.E.64 RZ, [R2.64] ;\n",
        "LDG.E.64 R12, [R8.64] ;\n",
        // Then it is another address.
        "LDG.E.64 R12, [R2.64] ;\nMOV R2, R10 ;\n",
        // Not on all ways: the branch leads behind it.
        "@P0 BRA 0x70 ;\nLDG.E.64 R12, [R2.64] ;\n",
    ] {
        stays(&format!("{proof}{loads}{END}"), "nothing proves");
    }
    // Behind them.
    stays(&format!("{loads}{PROOF}\n{END}"), "nothing proves");
    // A pair does not prove four words.
    let four: String = (0..4)
        .map(|n| format!("LDG.E R{}, [R2.64+{:#x}] ;\n", 4 + n, 0x10 + 4 * n))
        .collect();
    let (text, found) = run(&format!(
        "LDG.E.64 R12, [R2.64] ;\n{four}STG.E.128 [R8.64], R4 ;\nEXIT ;"
    ));
    assert_eq!((found.sites, text.contains("LDG.E.128")), (2, false), "{text}");
    // The address changes round a loop; what was proven before does not hold then.
    let looped = format!("{PROOF}\n{loads}IADD3 R2, R2, 0x4, RZ ;\n@P0 BRA 0x60 ;\n{END}");
    stays(&looped, "nothing proves");
    // Proven round by round.
    let body = |loads: &str, to: &str| format!("{PROOF}\n{loads}IADD3 R2, R2, 0x4, RZ ;\n@P0 BRA {to} ;\n{END}");
    becomes(&body(loads, "0x50"), &body(joined, "0x50"));
}

#[test]
fn uniform_registers_are_part_of_an_address() {
    let head = "ULDC.64 UR6, c[0x0][0x160] ;\n";
    let loads = "LDG.E R20, [R10.64+UR6+0x8] ;\nLDG.E R21, [R10.64+UR6+0xc] ;\n";
    let joined = "LDG.E.64 R20, [R10.64+UR6+0x8] ;\n";
    // Bits of these that mean nothing may be anything.
    let on = |proof: &str| {
        let body = format!("{head}{proof}{loads}{END}");
        let line = |line: &str| match line.contains("64+UR") {
            true => line.replace(" ;", " <filler> ;"),
            false => line.to_owned(),
        };
        run(&body.lines().map(|l| line(l) + "\n").collect::<String>())
    };
    for proof in [
        "LDG.E.64 R12, [R10.64+UR6+0x10] ;\n",
        // R2 is a copy of the same word.
        "LDG.E.64 R12, [R2.64] ;\nSHF.L.U32 R10, R4, 0x3, RZ ;\n",
    ] {
        let (text, found) = on(proof);
        let wanted = format!("{HEAD}\n{head}{proof}{joined}{END}");
        assert_eq!(text, trimmed(&wanted), "{:?}", found.skipped);
    }
    for proof in [
        "LDG.E.64 R12, [R2.64] ;\n",
        "LDG.E.64 R12, [R2.64] ;\nSHF.L.U32 R10, R4, 0x2, RZ ;\n",
        "LDG.E.64 R12, [R10.64+UR8] ;\n",
        "LDG.E.64 R12, [R8.64+UR6] ;\n",
        "LDG.E.64 R12, [R10.64+UR6+0x4] ;\n",
        "LDG.E.64 R12, [R10.64+UR6] ;\nULDC.64 UR6, c[0x0][0x168] ;\n",
    ] {
        let (text, found) = on(proof);
        assert_eq!(found.sites, 0, "{text}");
        assert!(
            found.skipped[0].reason.contains("nothing proves"),
            "{:?}",
            found.skipped
        );
    }
}

#[test]
fn guards_are_the_same_predicate() {
    let guarded = |first: &str, what: &str, second: &str| {
        format!("{PROOF}\n{first} LDG.E R20, [R2.64+0x8] ;\n{what}{second} LDG.E R21, [R2.64+0xc] ;\n{END}")
    };
    for (first, second) in [("@P0", "@!P0"), ("@P0", "@P1"), ("@P0", ""), ("", "@P0")] {
        stays(&guarded(first, "", second), "");
    }
    stays(&guarded("@P0", "ISETP.GE.AND P0, PT, R10, 0x3, PT ;\n", "@P0"), "");
    // A proof under the other value of their guard, or under one that has changed.
    let proof = "@P0 LDG.E.128 R12, [R2.64] ;\n";
    let loads = "@P0 LDG.E R20, [R2.64+0x8] ;\n@P0 LDG.E R21, [R2.64+0xc] ;\n";
    stays(&format!("{}{loads}{END}", proof.replace("P0", "!P0")), "nothing proves");
    stays(
        &format!("{proof}ISETP.GE.AND P0, PT, R10, 0x3, PT ;\n{loads}{END}"),
        "nothing proves",
    );
}

#[test]
fn only_weak_loads_of_one_kind_join() {
    let pair = |a: &str, b: &str| format!("{PROOF}\n{a} R20, [R2.64+0x8] ;\n{b} R21, [R2.64+0xc] ;\n{END}");
    for kind in ["LDG.E.CONSTANT", "LDG.E.EF", "LDG.E.LTC128B"] {
        becomes(
            &pair(kind, kind),
            &format!("{PROOF}\n{} R20, [R2.64+0x8] ;\n{END}", wider(kind)),
        );
        stays(&pair(kind, "LDG.E"), "");
    }
    for kind in [
        "LDG.E.STRONG.GPU",
        "LDG.E.STRONG.SYS",
        "LDG.E.MMIO.SYS",
        "LDG.E.CONSTANT.PRIVATE",
        "LDG.E.U8",
        "LDG.E.S16",
    ] {
        stays(&pair(kind, kind), "");
    }
    // Addresses of 32 bits.
    stays(
        &pair("LDG", "LDG")
            .replace("LDG R20, [R2.64", "LDG R20, [R2")
            .replace("LDG R21, [R2.64", "LDG R21, [R2"),
        "",
    );
    // Another address, a gap, the same word twice, one of a pair from elsewhere.
    let first = "LDG.E R20, [R2.64+0x8] ;\n";
    for second in [
        "LDG.E R21, [R8.64+0xc] ;\n",
        "LDG.E R21, [R2.64+0x10] ;\n",
        "LDG.E R21, [R2.64+0x8] ;\n",
        "MOV R3, R10 ;\nLDG.E R21, [R2.64+0xc] ;\n",
        "LDG.E R2, [R2.64+0x20] ;\nLDG.E R21, [R2.64+0xc] ;\n",
    ] {
        stays(&format!("{PROOF}\n{first}{second}{END}"), "");
    }
    let (_, found) = run(&between("").replace("0xc] ;", "0xc] <2.UR0=UR6> ;"));
    assert_eq!(found.sites, 0, "descriptors differ");
    // At a multiple of a word, and of no pair.
    stays(&between("").replace("0xc]", "0x4]"), "");
    stays(
        &between("").replace("0xc]", "0x10]").replace("0x8]", "0xc]"),
        "nothing proves",
    );
}

/// The modifier for two words stands behind the width of the address.
fn wider(kind: &str) -> String {
    match kind {
        "LDG.E.CONSTANT" => "LDG.E.64.CONSTANT".to_owned(),
        "LDG.E.LTC128B" => "LDG.E.LTC128B.64".to_owned(),
        _ => format!("{kind}.64"),
    }
}

#[test]
fn nothing_between_them_writes_orders_or_waits() {
    for what in [
        "STG.E [R8.64], R10",
        "STS [R10], R11",
        "STL [R1], R11",
        "ST.E [R8.64], R11",
        "ATOMG.E.ADD.STRONG.GPU PT, R4, [R8.64], R11",
        "RED.E.ADD.STRONG.GPU [R8.64], R11",
        "ATOMS.ADD R4, [R10], R11",
        "LDG.E.STRONG.GPU R4, [R8.64]",
        "LDGSTS.E [R10], [R8.64]",
        "BAR.SYNC.DEFER_BLOCKING 0x0",
        "MEMBAR.SC.GPU",
        "CCTL.IVALL",
        "WARPSYNC 0xffffffff",
        "SHFL.IDX PT, R4, R10, RZ, 0x1f",
        "VOTE.ANY R4, PT, P1",
        "CS2R R4, SR_CLOCKLO",
        "S2R R4, SR_TID.X",
        "DEPBAR.LE SB0, 0x1",
        "NANOSLEEP 0x20",
    ] {
        stays(&between(&format!("{what} ;\n")), "is between them");
    }
    for what in [
        "LDS R4, [R10]",
        "LDG.E R4, [R8.64]",
        "FADD R4, R10, R11",
        "LDC R4, c[0x3][R10]",
    ] {
        let (text, found) = run(&between(&format!("{what} ;\n")));
        assert_eq!(found.sites, 1, "{text}: {:?}", found.skipped);
    }
    // Branches end the block, and what is left of it has one load.
    for what in ["@P0 EXIT", "@P0 BRA 0x60", "CALL.REL.NOINC 0x60", "BRA 0x80"] {
        stays(&between(&format!("{what} ;\n")), "");
    }
}

/// What parts two loads where it stands between them.
const PARTS: [&str; 12] = [
    "STG.E [R8.64+0x40], R10",
    "@P3 STG.E.U8 [R2.64], R10",
    "STS [R10], R11",
    "STL [R1], R11",
    "ST.E [R8.64], R11",
    "RED.E.ADD.STRONG.GPU [R8.64], R11",
    "ATOMG.E.EXCH.STRONG.GPU PT, R30, [R8.64], R11",
    "LDG.E.STRONG.SYS R30, [R8.64]",
    "BAR.SYNC.DEFER_BLOCKING 0x0",
    "MEMBAR.SC.GPU",
    "WARPSYNC 0xffffffff",
    "CS2R R30, SR_CLOCKLO",
];

/// What does not.
const PASSES_BY: [&str; 5] = [
    "FADD R30, R10, R11",
    "IADD3 R31, R20, R10, RZ",
    "LDS R30, [R10]",
    "LDG.E R31, [R8.64]",
    "@P3 MOV R30, R31",
];

#[test]
fn what_parts_loads_does_so_only_between_them() {
    let mut state = 5u64;
    let mut random = |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let predicate = "ISETP.GE.AND P0, PT, R10, 0x3, PT";
    let address = "MOV R2, R10";
    let (mut joined, mut parted) = (0, 0);
    for _ in 0..200 {
        let guard = ["", "@P0 ", "@!P0 ", "@P1 "][random(4)];
        let hazard = match random(PARTS.len() + 4) {
            0 | 1 => predicate,
            2 | 3 => address,
            n => PARTS[n - 4],
        };
        let place = random(3);
        let mut lines = vec![PROOF.trim_end_matches(" ;").to_owned()];
        for n in 0..3 {
            let mut here: Vec<&str> = (0..random(3)).map(|_| PASSES_BY[random(PASSES_BY.len())]).collect();
            if n == place {
                here.insert(random(here.len() + 1), hazard);
            }
            lines.extend(here.into_iter().map(str::to_owned));
            if n < 2 {
                lines.push(format!("{guard}LDG.E R{}, [R2.64+{:#x}]", 20 + n, 8 + 4 * n));
            }
        }
        let body = format!("{} ;\n{END}", lines.join(" ;\n"));
        let (text, found) = run(&body);
        // An address that is another one before them is not proven; a predicate counts where it is theirs.
        let parts = match hazard {
            _ if hazard == address => place < 2,
            _ if hazard == predicate => place == 1 && guard.contains("P0"),
            _ => place == 1,
        };
        assert_eq!(found.sites, usize::from(!parts), "{body}\n{text}\n{:?}", found.skipped);
        if parts {
            assert_eq!(text, trimmed(&format!("{HEAD}\n{body}")));
        }
        *(if parts { &mut parted } else { &mut joined }) += 1;
    }
    assert!(joined > 40 && parted > 40, "{joined} and {parted}");
}

#[test]
fn no_register_is_overwritten_while_it_is_needed() {
    // Each result has to be where it is, for a block behind reads it there.
    let end = format!("@P0 EXIT ;\n{END}");
    for what in [
        // The second result's register is in use until the second load, and the first's result is read before.
        "IADD3 R4, R20, R21, RZ ;\n",
        "IADD3 R20, R20, 0x1, RZ ;\nIADD3 R21, R21, 0x1, RZ ;\nSEL R4, R20, R21, P0 ;\n",
        "MOV R21, R20 ;\nLDS R20, [R21] ;\n",
    ] {
        stays(&between(what).replace(END, &end), "");
    }
}

#[test]
fn results_keep_registers_that_others_know() {
    // Of a pair that is stored, read in two blocks, passed to a block, kept under a guard: R20, R21, and R25 have to stay.
    for (uses, why) in [
        (
            "STG.E.64 [R8.64], R20 ;\nSTG.E.64 [R8.64+0x10], R24 ;\n",
            "not side by side",
        ),
        (
            "@P0 EXIT ;\nIADD3 R4, R20, R25, RZ ;\nSTG.E [R8.64], R4 ;\n",
            "not side by side",
        ),
        (
            "@P0 BRA 0xb0 ;\nMOV R20, RZ ;\nMOV R25, RZ ;\nIADD3 R4, R20, R25, RZ ;\nSTG.E [R8.64], R4 ;\n",
            "not side by side",
        ),
        (
            "@P0 MOV R20, RZ ;\n@P0 MOV R25, RZ ;\nIADD3 R4, R20, R25, RZ ;\nSTG.E [R8.64], R4 ;\n",
            "not side by side",
        ),
    ] {
        let body = format!("{PROOF}\nLDG.E R20, [R2.64+0x8] ;\nLDG.E R25, [R2.64+0xc] ;\n{uses}EXIT ;");
        stays(&body, why);
    }
    let body = format!(
        "{PROOF}\nLDG.E R20, [R2.64+0x8] ;\nLDG.E R25, [R2.64+0xc] ;\nIADD3 R4, R20, R25, RZ ;\nSTG.E [R8.64], R4 ;\nEXIT ;"
    );
    let (_, found) = run(&body);
    assert_eq!(found.sites, 1);
    // The file names the reader, a load, or a register; or nobody knows which.
    stays_with(&body, "not side by side", &[0x80], &resources());
    stays_with(&body, "", &[0x60], &resources());
    stays_with(&body, "", &[0x70], &resources());
    let fixed = |pins: Option<Vec<Pin>>| Resources {
        fixed: pins,
        ..resources()
    };
    let pins = [20, 25].map(|n| Pin::new(RegFile::R, n)).to_vec();
    stays_with(&body, "not side by side", &[], &fixed(Some(pins)));
    stays_with(&body, "nobody here can read", &[], &fixed(None));
}

#[test]
fn registers_come_from_those_that_cost_no_warp() {
    // So many are in use all along, but for R21 and R23; with 40 as many warps are resident as with 38.
    for (used, sites) in [(36, 1), (38, 0)] {
        let all: String = (1..used).map(|n| format!("STS [R0+{:#x}], R{n} ;\n", 4 * n)).collect();
        let body = format!(
            "{PROOF}\nLDG.E R21, [R2.64+0x8] ;\nLDG.E R23, [R2.64+0xc] ;\nIADD3 R21, R21, R23, RZ ;\nMOV R23, RZ ;\n{all}EXIT ;"
        );
        let with = Resources {
            registers: Some(used + 2),
            ..resources()
        };
        let listing = format!("{HEAD}\n{body}");
        let (text, found) = apply(&listing, &[], &Options::default(), &with).expect("it may run");
        assert_eq!(found.sites, sites, "{text}: {:?}", found.skipped);
        assert_eq!(text.contains("LDG.E.64 R36"), sites > 0, "{text}");
    }
}

#[test]
fn the_stack_pointer_is_no_free_register() {
    // Nobody reads R0 and R1.
    let all: String = (2..38).map(|n| format!("STS [R2+{:#x}], R{n} ;\n", 4 * n)).collect();
    let body = format!(
        "{PROOF}\nLDG.E R21, [R2.64+0x8] ;\nLDG.E R23, [R2.64+0xc] ;\nIADD3 R21, R21, R23, RZ ;\nMOV R23, RZ ;\n{all}EXIT ;"
    );
    stays_with(&body, "no registers side by side", &[], &resources());
}

#[test]
fn what_one_block_cannot_change_stays_in_its_register() {
    // R20 is read in the next block, and R21 beside it is in use.
    stays(
        &format!(
            "{PROOF}
             LDG.E R20, [R2.64+0x8] ;
             LDG.E R25, [R2.64+0xc] ;
             IADD3 R25, R25, R21, RZ ;
             STS [R25], R21 ;
             @P0 EXIT ;
             {END}"
        ),
        "no registers side by side",
    );
    // A load that may be joined itself names R20.
    let (text, found) = run(&format!(
        "{PROOF}
         ULDC.64 UR6, c[0x0][0x160] ;
         LDG.E R20, [R2.64+0x8] ;
         LDG.E R25, [R2.64+0xc] ;
         IADD3 R25, R25, R21, RZ ;
         STS [R25], R21 ;
         LDG.E.64 R12, [R20.U32+UR6] <filler> ;
         LDG.E R30, [R20.U32+UR6+0x8] <filler> ;
         LDG.E R31, [R20.U32+UR6+0xc] <filler> ;
         STG.E.64 [R8.64], R30 ;
         EXIT ;"
    ));
    assert_eq!(found.sites, 1, "{text}");
    assert!(text.contains("LDG.E.64 R30, [R20.U32+UR6+0x8]"), "{text}");
    assert!(text.contains("LDG.E R20, [R2.64+0x8]"), "{text}");
}

#[test]
fn who_returns_takes_no_register_that_it_does_not_name() {
    let body = |end: &str| {
        format!(
            "{PROOF}
             LDG.E R21, [R2.64+0x8] ;
             LDG.E R28, [R2.64+0xc] ;
             IADD3 R28, R21, R28, RZ ;
             STS [R28], R28 ;
             MOV R21, RZ ;
             MOV R28, RZ ;
             {end}"
        )
    };
    let (text, _) = run(&body("EXIT ;"));
    assert!(text.contains("LDG.E.64 R4, [R2.64+0x8]"), "{text}");
    let (text, found) = run(&body("RET.ABS.NODEC R8 0x0 ;"));
    assert!(!text.contains("LDG.E.64 R4,"), "{text}: {:?}", found.skipped);
}

#[test]
fn all_windows_of_a_block_are_tried() {
    // Interleaved, and with what is no neighbour.
    let body = format!(
        "{PROOF}
         LDG.E R20, [R2.64+0x8] ;
         LDG.E R22, [R2.64+0x18] ;
         LDG.E R24, [R2.64+0x34] ;
         LDG.E R21, [R2.64+0xc] ;
         LDG.E R23, [R2.64+0x1c] ;
         STG.E.128 [R8.64+0x10], R20 ;
         STG.E [R8.64], R24 ;
         EXIT ;"
    );
    becomes(
        &body,
        &format!(
            "{PROOF}
             LDG.E.64 R20, [R2.64+0x8] ;
             LDG.E.64 R22, [R2.64+0x18] ;
             LDG.E R24, [R2.64+0x34] ;
             STG.E.128 [R8.64+0x10], R20 ;
             STG.E [R8.64], R24 ;
             EXIT ;"
        ),
    );
}
