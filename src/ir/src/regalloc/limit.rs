//! Warps that give registers back, or take more (`USETMAXREG`): the number in force at each point bounds every general register that is
//! live there.

use isa::{FieldKind, Isa, RegFile};

use super::webs::{NO_LANE, Webs};
use crate::kernel::{Kernel, Op};
use crate::layout::Flow;
use crate::liveness::{Liveness, each_instruction};

/// No number in force: the kernel's own.
const NONE: u16 = u16::MAX;

/// Warps of the kernel give registers back, or take more: their number is another one at each point.
pub(super) fn sets_its_limit(kernel: &Kernel) -> bool {
    kernel.ops().any(|op| is_setter(&op))
}

/// `sass.USETMAXREG_0x9c8.DEALLOC`
fn is_setter(op: &Op<'_>) -> bool {
    op.layout().is_some_and(|l| l.name.starts_with("sass.USETMAXREG_"))
}

/// Bounds the places of clusters. False where the numbers cannot be told, or the code does not keep to them: then general registers must
/// stay.
pub(super) fn bound(isa: &Isa, kernel: &Kernel, webs: &mut Webs) -> bool {
    if !sets_its_limit(kernel) {
        return true;
    }
    let Some(in_force) = in_force(isa, kernel) else {
        return false;
    };
    each_instruction(kernel, &Liveness::new(kernel), |offset, live| {
        let limit = in_force[offset as usize / 16];
        for lane in live.iter().map(|v| webs.lane[v.index()]).filter(|l| *l != NO_LANE) {
            let cluster = &mut webs.clusters[webs.cluster_of[lane as usize] as usize];
            if cluster.file == RegFile::R {
                let behind = cluster.offsets[(lane - cluster.first_lane) as usize] + 1;
                cluster.end = cluster.end.min((limit + 1).saturating_sub(behind));
            }
        }
    });
    webs.clusters.iter().all(|c| c.base < c.end)
}

/// By instruction, the number in force before it: the least that any way there leaves. One that is taken counts as given, for code asks
/// until it is.
fn in_force(isa: &Isa, kernel: &Kernel) -> Option<Vec<u16>> {
    if kernel.ops().any(|op| op.layout().is_some_and(|l| l.flow == Flow::Call)) {
        return None;
    }
    let mut entry: Vec<Option<u16>> = vec![None; kernel.block_count()];
    entry[0] = Some(NONE);
    let mut work = vec![0];
    let mut numbers = vec![NONE - 1; kernel.instruction_count()];
    let offsets = crate::check::block_offsets(kernel);
    while let Some(b) = work.pop() {
        let block = kernel.block(crate::BlockId(b));
        let mut now = entry[b as usize]?;
        let first = offsets[b as usize] as usize / 16;
        for (op, number) in block.ops().filter(|op| op.kind().is_code()).zip(&mut numbers[first..]) {
            *number = now.min(NONE - 1);
            if is_setter(&op) {
                let guarded = op.layout().is_some_and(|l| l.is_guarded(op.word()));
                let set = immediate(isa, &op)?;
                now = if guarded { now.min(set) } else { set };
            }
        }
        for (to, _) in block.successors() {
            let met = entry[to.index()].map_or(now, |old| old.min(now));
            if entry[to.index()] != Some(met) {
                entry[to.index()] = Some(met);
                work.push(to.0);
            }
        }
    }
    Some(numbers)
}

/// The number that the instruction names; none where a register holds it.
fn immediate(isa: &Isa, op: &Op<'_>) -> Option<u16> {
    let form = isa.form(op.layout()?.form)?;
    let field = form.fields().iter().find(|f| f.kind == FieldKind::Int)?;
    u16::try_from(field.get(op.word())).ok()
}
