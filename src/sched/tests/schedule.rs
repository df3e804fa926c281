//! Scheduling bits from scratch, another order of instructions, and estimates: on small kernels to the cycle, on own kernels as the
//! checker sees them.

mod common;

use std::path::Path;

use common::{isa, kernel, kernel_for};
use cubin::Image;
use ir::{Flow, Kernel, Source};
use isa::{Control, Isa, Target, Word};
use sass2mlir_sched::code::Code;
use sass2mlir_sched::{Hazard, Model, assign, check, estimate, repair, schedule, time};

fn model() -> &'static Model {
    Model::of(Target::Sm87)
}

fn columns(words: &[Word]) -> Vec<String> {
    words.iter().map(|w| Control::of(*w).to_string()).collect()
}

/// Two loads from shared memory, a sum of both, with more cycles and waits than that takes.
const SUMS: &str = "
    [B------:R-:W0:-:S04] LDS R0, [R8]
    [B------:R-:W1:-:S04] LDS R1, [R8+0x4]
    [B0-----:R-:W-:-:S08] IADD3 R2, R0, R3, R4
    [B-1----:R-:W-:-:S08] IADD3 R5, R1, R2, RZ
    [B------:R-:W2:-:S04] LDS R6, [R8+0x8]
    [B------:R-:W-:-:S08] IADD3 R7, R9, R10, R11
    [B--2---:R-:W-:-:S04] IADD3 R6, R6, R5, R7
    [B------:R-:W-:-:S05] EXIT";

#[test]
fn only_what_is_needed_is_assigned() {
    let words = assign(isa(), model(), &kernel(SUMS)).expect("nothing is unknown");
    // The loads take what is free; each result is waited for where it is read first. A sum takes 4 cycles, a load its scoreboard.
    let expected = [
        "B------:R-:W0:-:S01",
        "B------:R-:W1:-:S01",
        "B0-----:R-:W-:-:S04",
        "B-1----:R-:W-:-:S01",
        "B------:R-:W1:-:S01",
        "B------:R-:W-:-:S04",
        "B-1----:R-:W-:-:S01",
        "B------:R-:W-:-:S05",
    ];
    assert_eq!(columns(&words), expected);
}

#[test]
fn loads_go_before_what_waits_for_others() {
    let scheduled = schedule(isa(), model(), &kernel(SUMS), &|_| true).expect("nothing is unknown");
    assert_eq!(scheduled.order[..3], [0, 1, 4], "{:?}", scheduled.order);
    let pinned = schedule(isa(), model(), &kernel(SUMS), &|at| at != 4).expect("nothing is unknown");
    assert_eq!(pinned.order[4], 4, "{:?}", pinned.order);
}

/// Whether the second of two accesses to memory goes before the first, whose operand comes late.
fn passes(earlier: &str, later: &str) -> bool {
    let target = Target::Sm90;
    let told = if earlier.starts_with("ST") { "R1:W-" } else { "R-:W1" };
    let listing = format!(
        "[B------:R-:W0:-:S02] MUFU.RCP R9, R12
         [B0-----:{told}:-:S02] {earlier}
         [B------:R-:W2:-:S02] {later}
         [B--2---:R-:W-:-:S05] IADD3 R30, R30, R5, RZ
         [B-1----:R-:W-:-:S05] EXIT"
    );
    let kernel = common::kernel_for(target, &listing);
    let isa = Isa::for_target(target).expect("embedded");
    let scheduled = schedule(isa, Model::of(target), &kernel, &|_| true).expect("nothing is unknown");
    let place = |n: u32| scheduled.order.iter().position(|at| *at == n);
    place(2) < place(1)
}

/// What acquires within a block of threads says so by a `NOP` behind it, as `ptxas` has it for `ld.acquire.cta` and `atom.acquire.cta`: what comes behind
/// that issues when the access is done, whoever waits for it.
#[test]
fn what_was_over_at_a_nop_is_over_there_again() {
    let target = Target::Sm90;
    let isa = Isa::for_target(target).expect("embedded");
    for nop in [
        "[B--2---:R-:W-:-:S04] NOP",
        "[B--2---:R-:W-:-:S04] IADD3 R10, R2, R2, RZ\n[B------:R-:W-:-:S02] NOP",
    ] {
        let listing = format!(
            "[B------:R-:W2:-:S01] LDG.E.STRONG.SM R2, desc[UR4][R4.64]
             [B------:R-:W0:-:S01] MUFU.RCP R9, R12
             {nop}
             [B------:R-:W2:-:S04] LDG.E R7, desc[UR4][R4.64+0x8]
             [B0-2---:R-:W-:-:S05] IADD3 R7, R7, R9, RZ
             [B------:R-:W-:-:S05] EXIT"
        );
        let scheduled = schedule(isa, Model::of(target), &common::kernel_for(target, &listing), &|_| true)
            .expect("nothing is unknown");
        let at = |old: u32| scheduled.order.iter().position(|n| *n == old).expect("all are there");
        let nop = 1 + nop.lines().count();
        assert_eq!(at(nop as u32), nop);
        let controls: Vec<Control> = scheduled.words.iter().map(|w| Control::of(*w)).collect();
        let told = controls[at(0)].write_barrier.expect("it is told of");
        let waits = controls[at(0)..=nop].iter().any(|c| c.wait >> told & 1 == 1);
        assert!(waits && at(0) < nop, "{:?}", columns(&scheduled.words));
    }
}

/// What another warp wrote before is read behind what says so: an atomic operation may acquire with no fence, and so may a load of shared memory.
#[test]
fn what_may_acquire_stays_in_front() {
    let (global, shared) = ("LDG.E R5, desc[UR4][R2.64]", "LDS R5, [R20]");
    for earlier in [
        "ATOMS.ADD R10, [R9], R6",
        "LDS R10, [R9]",
        "LDG.E.STRONG.SM R10, desc[UR4][R8.64]",
        "ATOMG.E.ADD.STRONG.SM PT, R10, desc[UR4][R2.64], R9",
    ] {
        assert!(!passes(earlier, global), "{earlier}");
        assert!(!passes(earlier, shared), "{earlier}");
    }
    let weak = "LDG.E R10, desc[UR4][R8.64]";
    assert!(passes(weak, global));
    assert!(passes(weak, shared));
    assert!(passes("STS [R20], R9", global));
    assert!(!passes("STS [R20], R9", shared));
    assert!(passes("LDS R10, [R9]", "LDL R5, [R1]"));
    assert!(passes("ATOMS.ADD R10, [R9], R6", "LDC R5, c[0x0][R20]"));
    assert!(!passes("ST.E desc[UR4][R2.64], R9", "LDL R5, [R1]"));
}

#[test]
fn a_predicate_that_a_mask_leaves_out_keeps_its_order() {
    let listing = "
        [B------:R-:W-:Y:S13] ISETP.NE.AND P2, PT, R4, RZ, PT
        [B------:R-:W0:-:S04] LDS R0, [R8]
        [B0-----:R-:W-:-:S08] P2R R1, PR, R0, 0x8
        [B------:R-:W-:Y:S13] ISETP.NE.AND P2, PT, R5, RZ, PT
        [B------:R-:W-:-:S08] IADD3 R6, R5, R4, RZ
        [B------:R-:W-:-:S08] @P2 IADD3 R7, R6, R5, RZ
        [B------:R-:W-:-:S05] EXIT";
    let scheduled = schedule(isa(), model(), &kernel(listing), &|_| true).expect("nothing is unknown");
    let place = |n: u32| scheduled.order.iter().position(|at| *at == n);
    assert!(place(4) < place(2), "{:?}", scheduled.order);
    assert!(place(0) < place(2) && place(2) < place(3), "{:?}", scheduled.order);
}

#[test]
fn an_estimate_counts_stalls_waits_and_what_depends_on_what() {
    let model = model();
    let blocks = estimate(&Code::new(isa(), model.classes(), &kernel(SUMS)), model);
    let [block] = &blocks[..] else { panic!("{blocks:?}") };
    assert_eq!((block.first, block.instructions, block.issue), (0, 8, 45));
    // Loads take 30: the first sum issues at 30, the second at 38, the third load at 46, what reads it at 76.
    assert_eq!(block.cycles, 85);
    assert_eq!((block.critical, &block.path[..]), (38, &[0, 2, 3, 6][..]));
}

/// A call to an address in a register names the place that the address counts from; who is called may read what was there before it.
#[test]
fn what_an_indirect_call_waited_for_it_waits_for_again() {
    let listing = "
    [B------:R-:W0:-:S02] LDS R4, [R8]
    [B------:R-:W-:-:S05] MOV R20, 0x30
    [B0-----:R-:W-:-:S05] CALL.REL.NOINC R10 0x0
    [B------:R-:W-:-:S05] EXIT";
    let kernel = kernel(listing);
    let code = Code::new(isa(), model().classes(), &kernel);
    assert_eq!((code.steps[2].flow, code.steps[2].callee), (Flow::Call, None));
    for words in [
        assign(isa(), model(), &kernel).expect("nothing is unknown"),
        schedule(isa(), model(), &kernel, &|_| true)
            .expect("nothing is unknown")
            .words,
    ] {
        assert_eq!(Control::of(words[2]).wait, 1, "{:?}", columns(&words));
    }
    // A call that names its callee waits for what is read there.
    let direct = common::kernel(&listing.replace("R10 0x0", "0x30"));
    let code = Code::new(isa(), model().classes(), &direct);
    assert_eq!(code.steps[2].callee.map(|b| code.blocks[b as usize].start), Some(3));
    let words = assign(isa(), model(), &direct).expect("nothing is unknown");
    assert_eq!(Control::of(words[2]).wait, 0, "{:?}", columns(&words));
}

/// A function that returns before its last result is there, and a caller that reads it.
const CALLED: &str = "
    [B------:R-:W-:-:S05] MOV R20, 0x20
    [B------:R-:W-:-:S05] CALL.REL.NOINC 0x40
    [B-1----:R-:W-:-:S05] IADD3 R5, R4, R4, RZ
    [B------:R-:W-:-:S05] EXIT
    [B------:R-:W1:-:S02] LDS R4, [R8]
    [B------:R-:W-:-:S05] RET.REL.NODEC R20 0x0";

#[test]
fn what_a_function_leaves_in_flight_its_caller_waits_for() {
    let found = |listing: &str| check(isa(), model(), &kernel(listing)).findings;
    assert_eq!(found(CALLED), []);
    for (wrong, hazard) in [
        (CALLED.replace("B-1----", "B------"), Hazard::NotAwaited),
        (CALLED.replace("W1", "W-"), Hazard::NoScoreboard),
    ] {
        let found = found(&wrong);
        let places: Vec<_> = found.iter().map(|f| (f.hazard, f.earlier, f.at)).collect();
        assert_eq!(places, [(hazard, Some(0x40), 0x20)]);
    }
    // Of a function in the middle, what it calls is left, too; what its caller had in flight is the caller's.
    let nested = "
        [B------:R-:W0:-:S02] LDS R6, [R8]
        [B------:R-:W-:-:S05] MOV R20, 0x30
        [B------:R-:W-:-:S05] CALL.REL.NOINC 0x60
        [B0-----:R-:W-:-:S05] IADD3 R5, R6, RZ, RZ
        [B-1----:R-:W-:-:S05] IADD3 R5, R5, R4, RZ
        [B------:R-:W-:-:S05] EXIT
        [B------:R-:W-:-:S05] MOV R22, 0x80
        [B------:R-:W-:-:S05] CALL.REL.NOINC 0x90
        [B------:R-:W-:-:S05] RET.REL.NODEC R20 0x0
        [B------:R-:W1:-:S02] LDS R4, [R8]
        [B------:R-:W-:-:S05] RET.REL.NODEC R22 0x0";
    assert_eq!(found(nested), []);
    let found = found(&nested.replace("B-1----", "B------"));
    let places: Vec<_> = found.iter().map(|f| (f.earlier, f.at)).collect();
    assert_eq!(places, [(Some(0x90), 0x40)]);
}

/// Which scoreboard tells is another one then, so nobody is left to rely on it.
#[test]
fn a_function_with_new_bits_returns_when_all_is_there() {
    for words in [
        assign(isa(), model(), &kernel(CALLED)).expect("nothing is unknown"),
        schedule(isa(), model(), &kernel(CALLED), &|_| true)
            .expect("nothing is unknown")
            .words,
    ] {
        let told = Control::of(words[4]).write_barrier.expect("it is told of");
        let waits: Vec<u8> = words.iter().map(|w| Control::of(*w).wait).collect();
        assert_eq!(waits, [0, 0, 0, 0, 0, 1 << told], "{:?}", columns(&words));
    }
}

#[test]
fn a_function_waits_for_what_nothing_tells_its_caller_of() {
    let alone = CALLED.replace("W1", "W-");
    // What the function calls is left for the caller, too: there it is waited for where it is made.
    let nested = "
        [B------:R-:W-:-:S05] MOV R20, 0x20
        [B------:R-:W-:-:S05] CALL.REL.NOINC 0x40
        [B------:R-:W-:-:S05] IADD3 R5, R4, R4, RZ
        [B------:R-:W-:-:S05] EXIT
        [B------:R-:W-:-:S05] MOV R22, 0x60
        [B------:R-:W-:-:S05] CALL.REL.NOINC 0x70
        [B------:R-:W-:-:S05] RET.REL.NODEC R20 0x0
        [B------:R-:W-:-:S02] LDS R4, [R8]
        [B------:R-:W-:-:S05] RET.REL.NODEC R22 0x0";
    for (wrong, changed) in [(alone.as_str(), [4, 5]), (nested, [7, 8])] {
        let repaired = repair(isa(), model(), &kernel(wrong)).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(repaired.changed, changed);
        let words: Vec<_> = repaired.code.steps.iter().map(|s| s.control).collect();
        let told = words[changed[0] as usize].write_barrier.expect("it is told of");
        assert_ne!(words[changed[1] as usize].wait & 1 << told, 0, "{words:?}");
    }
}

/// With no room behind the call the function returns later.
#[test]
fn what_takes_a_fixed_time_is_there_when_the_caller_reads_it() {
    for (behind, changed) in [("", 5), ("[B------:R-:W-:Y:S13] NOP\n[B------:R-:W-:-:S01] NOP\n", 3)] {
        let called = format!(
            "[B------:R-:W-:-:S05] MOV R20, 0x20
             [B------:R-:W-:-:S05] CALL.REL.NOINC {:#x}
             {behind}
             [B------:R-:W-:-:S05] HADD2 R5, R4, R4
             [B------:R-:W-:-:S05] EXIT
             [B------:R-:W-:-:S01] HMMA.16816.F32 R4, R8, R12, R4
             [B------:R-:W-:-:S05] RET.REL.NODEC R20 0x0",
            0x40 + 0x10 * behind.lines().count()
        );
        let wrong = kernel(&called);
        let found = check(isa(), model(), &wrong).findings;
        assert!(
            found.iter().all(|f| f.hazard == Hazard::Stall) && !found.is_empty(),
            "{found:?}"
        );
        let repaired = repair(isa(), model(), &wrong).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(repaired.changed, [changed]);
    }
}

/// Who calls it from elsewhere reads the stack pointer at once.
#[test]
fn nothing_that_takes_a_fixed_time_is_left_for_code_that_is_not_known() {
    for last in ["RET.REL.NODEC R20 0x0", "CALL.REL.NOINC R10 0x0"] {
        let listing = format!(
            "[B------:R-:W-:-:S02] IADD3 R1, R1, 0x10, RZ
             [B------:R-:W-:-:S07] {last}
             [B------:R-:W-:-:S05] EXIT"
        );
        let words = assign(isa(), model(), &kernel(&listing)).expect("nothing is unknown");
        let stall = Control::of(words[0]).stall;
        assert!(stall >= 6, "{last}: {:?}", columns(&words));
    }
}

/// The least count of a mnemonic may be that of another of its forms, or of what came behind it there.
#[test]
fn branches_and_barriers_keep_their_counts() {
    let target = Target::Sm75;
    let kernel = common::kernel_for(
        target,
        "[B------:R-:W-:-:S07] MEMBAR.ALL.CTA
         [B------:R-:W-:Y:S00] BAR.SYNC 0x0
         [B------:R-:W-:-:S09] @P0 BRA 0x40
         [B------:R-:W-:-:S05] IADD3 R1, R1, 0x1, RZ
         [B------:R-:W-:-:S05] EXIT",
    );
    let isa = Isa::for_target(target).expect("embedded");
    let words = assign(isa, Model::of(target), &kernel).expect("nothing is unknown");
    let stalls: Vec<u8> = words.iter().map(|w| Control::of(*w).stall).collect();
    assert_eq!(stalls, [7, 0, 5, 1, 5]);
}

/// `ptxas` puts loads that never happen before fences, one behind the other.
#[test]
fn what_is_never_executed_keeps_its_place() {
    let listing = "
        [B------:R-:W-:-:S01] @!PT LDS RZ, [RZ]
        [B------:R-:W-:-:S01] @!PT LDS RZ, [RZ]
        [B------:R-:W0:-:S02] MUFU.RCP R9, R12
        [B------:R-:W-:-:S05] IADD3 R2, R3, R4, RZ
        [B0-----:R-:W-:-:S05] IADD3 R5, R9, R2, RZ
        [B------:R-:W1:-:S05] MUFU.RCP R10, R13
        [B------:R-:W-:-:S01] @!PT LDS RZ, [RZ]
        [B-1----:R-:W-:-:S05] EXIT";
    let order = schedule(isa(), model(), &kernel(listing), &|_| true)
        .expect("nothing is unknown")
        .order;
    assert_eq!((order[0], order[1], order[6]), (0, 1, 6), "{order:?}");
    assert_ne!(order, [0, 1, 2, 3, 4, 5, 6, 7], "others move");
}

/// No edge leads from such a call to the place that it names: nothing is in flight at a kernel's beginning.
#[test]
fn an_indirect_call_does_not_lead_to_the_kernels_beginning() {
    let target = Target::Sm90;
    let kernel = common::kernel_for(
        target,
        "
    [B------:R-:W0:-:S02] LDC R1, c[0x0][0x28]
    [B------:R-:W-:-:S05] MOV R20, 0x30
    [B------:R-:W-:-:S05] CALL.REL.NOINC R10 0x0
    [B------:R-:W-:-:S05] EXIT",
    );
    let found = check(Isa::for_target(target).expect("embedded"), Model::of(target), &kernel);
    assert!(found.is_clean(), "{:?}", found.findings);
}

/// Calls `f` with every own kernel for sm_87 of which nothing is unknown.
fn each_kernel(mut f: impl FnMut(&Model, &Source<'_>, &Kernel)) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/kernels/sm_87");
    let model = model();
    let mut kernels = 0;
    for file in std::fs::read_dir(folder).expect("the kernels are there") {
        let path = file.expect("a file").path();
        if path.extension().is_none_or(|e| e != "cubin") {
            continue;
        }
        let bytes = std::fs::read(&path).expect("a file");
        let image = Image::parse(&bytes).expect("a cubin");
        for code in image.codes() {
            let source = Source::from_code(image.target(), code);
            let kernel = ir::lift(isa(), &source).expect("whole words");
            if check(isa(), model, &kernel).is_clean() {
                f(model, &source, &kernel);
                kernels += 1;
            }
        }
    }
    assert!(kernels >= 60, "only {kernels} kernels");
}

/// The kernel with other words.
fn with(source: &Source<'_>, words: &[Word]) -> Kernel {
    let mut code: Vec<u8> = words.iter().flat_map(|w| w.0.to_le_bytes()).collect();
    code.extend_from_slice(&source.code[code.len()..]);
    let source = Source {
        code: &code,
        ..source.clone()
    };
    ir::lift(isa(), &source).expect("whole words")
}

#[test]
fn own_kernels_are_clean_and_no_slower() {
    let (mut old, mut assigned, mut scheduled) = (0, 0, 0);
    each_kernel(|model, source, kernel| {
        let cycles = |kernel: &Kernel| time::straight(&Code::new(isa(), model.classes(), kernel), model).1;
        let clean = |kernel: &Kernel| {
            let left = check(isa(), model, kernel).findings;
            assert!(left.is_empty(), "{}: {}", source.name, left[0]);
        };
        let new = with(source, &assign(isa(), model, kernel).expect("it is clean"));
        clean(&new);
        let order = schedule(isa(), model, kernel, &|_| true).expect("it is clean");
        let moved = with(source, &order.words);
        clean(&moved);
        // The same instructions, but for their scheduling bits.
        let bare = |w: &Word| w.0 & !(isa::control::MASK | isa::control::REUSE_MASK);
        let originals: Vec<Word> = Word::all(source.code).collect();
        for (word, from) in order.words.iter().zip(&order.order) {
            assert_eq!(bare(word), bare(&originals[*from as usize]), "{}", source.name);
        }
        let mut places = order.order.clone();
        places.sort_unstable();
        assert!(
            (0..).zip(&places).all(|(n, at)| n == *at),
            "{}: not a permutation",
            source.name
        );
        old += cycles(kernel);
        assigned += cycles(&new);
        scheduled += cycles(&moved);
    });
    assert!(assigned <= old && scheduled <= assigned, "{old} {assigned} {scheduled}");
}

/// Where the newest compiler always has a scoreboard tell, so does whoever assigns anew; it is an error without only where none ever did.
#[test]
fn what_takes_cycles_elsewhere_is_told_of() {
    let double = "[B------:R-:W-:-:S10] DADD R4, R6, R8
                  [B------:R-:W-:-:S10] DADD R10, R4, R8
                  [B------:R-:W-:-:S05] EXIT";
    let product = "[B------:R-:W-:-:S10] IMMA.16816.S8.S8 R4, R8.ROW, R10.COL, RZ
                   [B------:R-:W-:-:S10] NOP
                   [B------:R-:W-:-:S10] NOP
                   [B------:R-:W-:-:S10] FADD R0, R4, R5
                   [B------:R-:W-:-:S05] EXIT";
    for (target, listing, errors, told) in [
        (Target::Sm80, double, 1, None),
        (Target::Sm90, double, 0, Some(false)),
        (Target::Sm100, double, 0, Some(true)),
        (Target::Sm103, double, 1, None),
        (Target::Sm103, product, 1, None),
        (Target::Sm110, product, 0, Some(false)),
        (Target::Sm80, product, 0, Some(false)),
    ] {
        let isa = Isa::for_target(target).expect("the target is embedded");
        let (model, kernel) = (Model::of(target), kernel_for(target, listing));
        let found = check(isa, model, &kernel).findings;
        assert_eq!(found.len(), errors, "{target}: {found:?}");
        assert!(found.iter().all(|f| f.hazard == Hazard::NoScoreboard), "{target}");
        let assigned = assign(isa, model, &kernel).ok();
        let first = assigned.map(|words| Control::of(words[0]).write_barrier.is_some());
        assert_eq!(first, told, "{target}: {listing}");
    }
}
