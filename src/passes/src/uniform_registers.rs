//! Uniform registers that a pass may take.
//!
//! No document says what the hardware, the driver, or debuggers keep in uniform registers, so that only those are taken that compilers take
//! themselves. They are measured: the registers that code of ptxas 13.5 names in kernels that need far more than there are (hundreds of sums of
//! parameters in a loop; from sm_90 on), and those in every sixth file of bitsandbytes, faiss, warp-lang, and xformers (the older ones). None
//! writes below UR4. What is in UR2 is read by some as they begin, and written by none.

use ir::{Kernel, Op};
use isa::{RegFile, Target};

use crate::Refusal;
use crate::convergence::is_call;

/// Targets by number; the lowest and the highest that compilers name. sm_70 and sm_72 have none.
const NAMED: &[(&[u32], u8, u8)] = &[
    (&[75], 4, 43),
    (&[80, 86, 87, 88, 89], 4, 45),
    (&[90], 4, 61),
    (&[100, 101, 103, 110, 120, 121], 4, 77),
];

/// Those that nothing in the section names, ascending; a refusal where code runs that is not in it.
pub(crate) fn free(kernel: &Kernel) -> Result<Vec<u8>, Refusal> {
    let unknown = |op: &Op<'_>| is_call(*op) && op.label().is_none();
    if let Some(call) = kernel.ops().find(unknown) {
        let why = "code is called that the section does not hold, and may use any uniform register";
        return Err(Refusal(format!("{why} (at {:#06x})", call.offset())));
    }
    let mut used = [false; 256];
    for op in kernel.ops() {
        for slot in op
            .layout()
            .into_iter()
            .flat_map(|l| &l.slots)
            .filter(|s| s.file == RegFile::UR)
        {
            let first = usize::from(slot.number(op.word()));
            let width = usize::from(slot.width.max(1));
            used[first..(first + width).min(256)].fill(true);
        }
    }
    Ok(named(kernel.target).filter(|n| !used[usize::from(*n)]).collect())
}

/// Those that compilers name, ascending.
fn named(target: Target) -> impl Iterator<Item = u8> {
    let row = NAMED.iter().find(|(targets, ..)| targets.contains(&target.number()));
    row.into_iter().flat_map(|&(_, lowest, highest)| lowest..=highest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_every_target_that_has_uniform_registers() {
        for target in Target::ALL {
            assert_eq!(named(target).next().is_some(), target.number() >= 75, "{target}");
            assert!(
                named(target).all(|n| (4..target.uniform_zero()).contains(&n)),
                "{target}"
            );
        }
    }
}
