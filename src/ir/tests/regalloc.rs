//! Other registers, the same kernel; and faults planted in the model, each of which something must notice.

mod common;

use common::*;
use sass2mlir_ir as ir;

const NOTHING: ir::Constraints = ir::Constraints {
    reserved: Vec::new(),
    in_flight: None,
};

/// The kernel as its own code gives it back, every register written from the pins alone.
fn again(isa: &'static isa::Isa, source: &ir::Source<'_>, kernel: &ir::Kernel) -> ir::Kernel {
    let mut cleared = kernel.clone();
    cleared.clear_registers();
    let code = ir::lower(&cleared).unwrap_or_else(|e| panic!("{e}"));
    let source = ir::Source {
        code: &code,
        ..source.clone()
    };
    ir::lift(isa, &source).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn scrambled_and_allocated_afresh_it_is_the_same_kernel() {
    let (mut kernels, mut fit) = (0, 0);
    each_code(|isa, source| {
        let original = ir::lift(isa, &source).unwrap();
        let mut kernel = original.clone();
        let done = ir::allocate(&mut kernel, ir::Allocation::Scrambled(7), &NOTHING)
            .unwrap_or_else(|e| panic!("{}: {e}", source.name));
        assert!(
            done.groups.1 > 0 || original.values().len() < 4,
            "{}: nothing moved",
            source.name
        );
        let scrambled = again(isa, &source, &kernel);
        ir::same_def_use(&kernel, &scrambled).unwrap_or_else(|e| panic!("{}: {e}", source.name));
        let mut fresh = scrambled;
        ir::allocate(&mut fresh, ir::Allocation::Fresh, &NOTHING).unwrap_or_else(|e| panic!("{}: {e}", source.name));
        ir::same_def_use(&fresh, &again(isa, &source, &fresh)).unwrap_or_else(|e| panic!("{}: {e}", source.name));
        kernels += 1;
        fit += usize::from(ir::top_register(&fresh) <= ir::top_register(&original));
    });
    assert!(
        fit * 10 >= kernels * 9,
        "only {fit} of {kernels} need no more registers"
    );
}

#[test]
fn two_registers_swapped_are_another_kernel() {
    // R3 = R2 + R2; R4 = R2 * R3 + R4, and the same with R2 and R3 changed in the last.
    let kernel = lift_words(&[MOV_R2_1, ADD_R3_R2_R2, FFMA, EXIT]);
    let swapped = FFMA & !(0xff << 24 | 0xff << 32) | 3 << 24 | 2 << 32;
    assert_eq!(ir::same_def_use(&kernel, &kernel), Ok(()));
    let other = lift_words(&[MOV_R2_1, ADD_R3_R2_R2, swapped, EXIT]);
    assert!(ir::same_def_use(&kernel, &other).is_err());
}

/// Kernels with the operands changed by `plant`, which says whether it changed anything.
fn planted(plant: impl Fn(&ir::Kernel, ir::Op<'_>, &mut [ir::ValueId]) -> bool) -> Vec<Result<ir::Kernel, String>> {
    let mut found = Vec::new();
    each_code(|isa, source| {
        let kernel = ir::lift(isa, &source).unwrap();
        for op in kernel.ops() {
            let mut own = op.operands().to_vec();
            if !plant(&kernel, op, &mut own) || found.len() > 400 {
                continue;
            }
            let parts = kernel.parts();
            let mut operands = parts.operands.to_vec();
            let at = parts.operand_start[op.id().index()] as usize;
            operands[at..at + own.len()].copy_from_slice(&own);
            let parts = ir::Parts {
                operands: &operands,
                ..parts
            };
            found.push(ir::Kernel::from_parts(parts).map_err(|e| e.to_string()));
        }
    });
    assert!(!found.is_empty());
    found
}

/// Every fault is noticed when the kernel is made or lowered.
fn all_noticed(kernels: Vec<Result<ir::Kernel, String>>) {
    let all = kernels.len();
    let missed = kernels
        .iter()
        .filter(|k| k.as_ref().is_ok_and(|k| ir::lower(k).is_ok()))
        .count();
    assert_eq!(missed, 0, "of {all} planted faults");
}

#[test]
fn a_deleted_phi_is_noticed() {
    // The argument's readers read what comes in on one edge instead.
    all_noticed(planted(|kernel, op, operands| {
        let block = op.block();
        let mut changed = false;
        for v in operands {
            let ir::Def::Arg(at, n) = kernel.def(*v) else { continue };
            let incoming = |b: ir::Block<'_>| {
                let mut edges = b.successors();
                edges.find(|(to, _)| *to == at).map(|(_, args)| args[n as usize])
            };
            let values: Vec<ir::ValueId> = kernel.blocks().filter_map(incoming).collect();
            if at == block && values.iter().any(|w| *w != values[0]) && !changed {
                *v = values[0];
                changed = true;
            }
        }
        changed
    }));
}

#[test]
fn a_deleted_merge_is_noticed() {
    // The guarded write forgets the old value: it reads some other value of the same register.
    all_noticed(planted(|kernel, op, operands| {
        let Some(layout) = op.layout() else { return false };
        let merges = layout.read_count()..layout.own_operands(op.word());
        let Some(old) = operands.get_mut(merges.start).filter(|_| !merges.is_empty()) else {
            return false;
        };
        let other = kernel
            .values()
            .find(|v| *v != *old && kernel.pin(*v) == kernel.pin(*old));
        other.is_some_and(|v| {
            *old = v;
            true
        })
    }));
}

#[test]
fn a_halved_width_is_noticed() {
    // The second register of a pair is taken for the constant one.
    all_noticed(planted(|kernel, op, operands| {
        let zero = kernel.ops().find(|o| o.kind() == ir::OpKind::Constant(isa::RegFile::R));
        let mut at = 0;
        let second = op.accesses().find_map(|a| {
            at += a.reads.len();
            let is_pair = a.slot.file == isa::RegFile::R && a.reads.len() == 2;
            (is_pair && !kernel.pin(a.reads[1]).is_zero()).then_some(at - 1)
        });
        let (Some(zero), Some(second)) = (zero.and_then(|o| o.results().next()), second) else {
            return false;
        };
        operands[second] = zero;
        true
    }));
}
