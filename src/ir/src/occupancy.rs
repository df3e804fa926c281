//! How many warps of a kernel fit on one multiprocessor.
//!
//! The limits are those of NVIDIA's CUDA Programming Guide, section 5.1 "Compute Capabilities", the tables "Device and Streaming
//! Multiprocessor (SM) Information" and "Memory Information" (of CUDA 13 from 7.5 on, of CUDA 12.9 for 7.0 and 7.2). 10.1 is what CUDA 13
//! calls 11.0 (PTX ISA 9.0 renamed it). The units in which registers and shared memory are handed out, and the numbers of blocks, are
//! those of `cuda_occupancy.h` of the CUDA toolkit 13, with which `tests/model.rs` compares. Nothing public speaks of 8.8.

use isa::Target;

/// What one multiprocessor has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Multiprocessor {
    /// Warps that can be resident.
    pub warps: u32,
    /// Blocks that can be resident.
    pub blocks: u32,
    /// 32-bit registers.
    pub registers: u32,
    /// Bytes of shared memory.
    pub shared: u32,
    /// Bytes of shared memory that the system keeps in each block.
    pub reserved: u32,
    /// Shared memory is handed out to blocks in so many bytes at a time.
    pub shared_unit: u32,
}

/// Registers are handed out to warps in so many at a time.
const REGISTER_UNIT: u32 = 256;
/// Warps are handed out to the four partitions in turn.
const PARTITIONS: u32 = 4;

/// Targets by number; warps, blocks, KiB of shared memory, KiB reserved in a block.
const LIMITS: &[(&[u32], [u32; 4])] = &[
    (&[70, 72], [64, 32, 96, 0]),
    (&[75], [32, 16, 64, 0]),
    (&[80], [64, 32, 164, 1]),
    (&[86], [48, 16, 100, 1]),
    (&[87], [48, 16, 164, 1]),
    (&[89], [48, 24, 100, 1]),
    (&[90, 100, 103], [64, 32, 228, 1]),
    (&[101, 110], [48, 24, 228, 1]),
    (&[120, 121], [48, 24, 100, 1]),
];

impl Multiprocessor {
    /// The limits of a target; `None` where they are not public.
    pub fn of(target: Target) -> Option<Multiprocessor> {
        let (_, [warps, blocks, shared, reserved]) = LIMITS.iter().find(|(t, _)| t.contains(&target.number()))?;
        Some(Multiprocessor {
            warps: *warps,
            blocks: *blocks,
            registers: 65536,
            shared: shared * 1024,
            reserved: reserved * 1024,
            shared_unit: if target.number() < 80 { 256 } else { 128 },
        })
    }

    /// Resident warps of a kernel with so many registers a thread, threads a block, and bytes of shared memory a block. 0 if not even one
    /// block fits.
    pub fn resident_warps(&self, registers: u32, threads: u32, shared: u32) -> u32 {
        let warps_in_block = threads.div_ceil(32).max(1);
        // A thread has at most 255: more fit no better.
        let by_registers = match (registers.min(256) * 32).next_multiple_of(REGISTER_UNIT) {
            0 => self.warps,
            // A partition has its own registers.
            of_warp => self.registers / PARTITIONS / of_warp * PARTITIONS,
        };
        let of_block = (shared + self.reserved).next_multiple_of(self.shared_unit);
        let by_shared = self.shared.checked_div(of_block).unwrap_or(self.blocks);
        let blocks = (self.warps / warps_in_block)
            .min(by_registers / warps_in_block)
            .min(by_shared)
            .min(self.blocks);
        blocks * warps_in_block
    }

    /// The most registers a thread with which so many warps are resident, for each number of warps that can be reached; descending.
    pub fn steps(&self, threads: u32, shared: u32) -> Vec<(u32, u32)> {
        let mut steps: Vec<(u32, u32)> = Vec::new();
        for registers in (8..=255).rev() {
            let warps = self.resident_warps(registers, threads, shared);
            if warps > steps.last().map_or(0, |s| s.1) {
                steps.push((registers, warps));
            }
        }
        steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of NVIDIA's occupancy calculator.
    #[test]
    fn warps_are_those_of_the_calculator() {
        let orin = Multiprocessor::of(Target::Sm87).expect("public");
        assert_eq!(orin.resident_warps(40, 256, 0), 48);
        assert_eq!(orin.resident_warps(64, 256, 0), 32);
        assert_eq!(orin.resident_warps(255, 256, 0), 8);
        assert_eq!(orin.resident_warps(32, 256, 48 * 1024), 24);
        let ampere = Multiprocessor::of(Target::Sm80).expect("public");
        assert_eq!(ampere.resident_warps(32, 1024, 0), 64);
        assert_eq!(ampere.resident_warps(33, 1024, 0), 32);
        assert_eq!(Multiprocessor::of(Target::Sm88), None);
    }

    #[test]
    fn fewer_registers_never_fit_fewer_warps() {
        for target in Target::ALL {
            let Some(m) = Multiprocessor::of(target) else { continue };
            let steps = m.steps(128, 0);
            assert!(
                steps.windows(2).all(|s| s[0].0 > s[1].0 && s[0].1 < s[1].1),
                "{target}: {steps:?}"
            );
            assert_eq!(steps.last().map(|s| s.1), Some(m.warps.min(m.blocks * 4)), "{target}");
        }
    }
}
