//! What a launch did to device memory: how far it reached, and what each thread stored where.

use std::collections::BTreeMap;

use super::coverage::Coverage;
use crate::error::{Space, Trap};
use crate::watch::{Access, Doing, Step, Watch};

/// Addresses that were touched in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    pub low: u64,
    pub high: u64,
    /// Bytes of the largest access.
    pub largest: u32,
}

/// A thread and an address: block, warp, lane, address.
pub(super) type Key = ([u32; 3], u32, u32, u64);

/// The last store of a thread to an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stored {
    pub pc: u32,
    pub number: u64,
    pub size: u32,
    pub bytes: [u8; 16],
}

/// Watches one launch.
#[derive(Default)]
pub(super) struct Record<'c> {
    coverage: Option<&'c mut Coverage>,
    /// By the top bits of the address.
    extents: BTreeMap<u64, Extent>,
    pub stores: BTreeMap<Key, Stored>,
}

/// Bits of an address within a window.
const WINDOW_BITS: u32 = 36;

impl<'c> Record<'c> {
    pub(super) fn new(coverage: Option<&'c mut Coverage>) -> Self {
        Self {
            coverage,
            ..Self::default()
        }
    }

    /// The record without what it borrowed.
    pub(super) fn finish(self) -> Record<'static> {
        Record {
            coverage: None,
            extents: self.extents,
            stores: self.stores,
        }
    }

    /// What was touched between two addresses.
    pub(super) fn extent(&self, from: u64, to: u64) -> Option<Extent> {
        let found = self.extents.range(from >> WINDOW_BITS..to >> WINDOW_BITS);
        found.map(|(_, e)| *e).next()
    }
}

impl Watch for Record<'_> {
    fn step(&mut self, step: &Step<'_>) {
        if let Some(coverage) = &mut self.coverage {
            coverage.step(step);
        }
    }

    fn access(&mut self, a: &Access) -> Result<(), Trap> {
        if a.space == Space::Global {
            let end = a.address + u64::from(a.size);
            let e = self.extents.entry(a.address >> WINDOW_BITS).or_insert(Extent {
                low: a.address,
                high: end,
                largest: a.size,
            });
            e.low = e.low.min(a.address);
            e.high = e.high.max(end);
            e.largest = e.largest.max(a.size);
        }
        Ok(())
    }

    fn wrote(&mut self, a: &Access, bytes: &[u8]) {
        // What atomics leave depends on the order of threads; the memory at the end says enough.
        if a.space != Space::Global || a.doing == Doing::Atomic {
            return;
        }
        let mut all = [0; 16];
        all[..bytes.len()].copy_from_slice(bytes);
        let key = (a.ctaid, a.warp, a.lane, a.address);
        self.stores.insert(
            key,
            Stored {
                pc: a.pc,
                number: a.number,
                size: a.size,
                bytes: all,
            },
        );
    }
}
