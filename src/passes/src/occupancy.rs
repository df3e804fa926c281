//! How many registers a kernel may take.

use ir::{Kernel, Multiprocessor};

use crate::Resources;

/// Registers of a thread that are the hardware's.
pub(crate) const RESERVED: u32 = 2;
/// Most registers of a thread.
pub(crate) const MOST: u32 = 255;
/// Most threads of a block.
const MAX_THREADS: u32 = 1024;
/// Registers are handed out to warps in units of which each thread gets so many.
const UNIT: u32 = 8;

/// Registers that a thread may be given so that a block of the declared size can still be launched; as many as there are where none is
/// declared, or the limits are not known.
pub(crate) fn launchable(kernel: &Kernel, resources: &Resources) -> u32 {
    let (Some(multiprocessor), Some(threads)) = (Multiprocessor::of(kernel.target), resources.threads) else {
        return MOST;
    };
    let fits = |registers: &u32| multiprocessor.resident_warps(*registers, threads, 0) > 0;
    (1..=MOST).rev().find(fits).unwrap_or(MOST)
}

/// Registers that a thread may be given with as many warps resident as now, whatever the size of its blocks; the number of now where that is
/// not known.
pub(crate) fn same_occupancy(kernel: &Kernel, resources: &Resources) -> u32 {
    let named = u32::from(ir::top_register(kernel)) + RESERVED;
    let given = resources.registers.unwrap_or(named).min(MOST);
    let Some(multiprocessor) = Multiprocessor::of(kernel.target) else {
        return given.next_multiple_of(UNIT).min(MOST).max(named);
    };
    let most = resources.threads.unwrap_or(MAX_THREADS).min(MAX_THREADS);
    let warps = |registers, threads| multiprocessor.resident_warps(registers, threads, resources.shared);
    let as_many = |registers: &u32| {
        let mut sizes = (32..=most.next_multiple_of(32)).step_by(32);
        sizes.all(|threads| warps(*registers, threads) >= warps(given, threads))
    };
    (given..=MOST).take_while(as_many).last().unwrap_or(given).max(named)
}
