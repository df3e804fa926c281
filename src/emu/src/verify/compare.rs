//! What two launches left behind, side by side.

use super::record::{Key, Stored};
use super::{Done, Trial};
use crate::program::Program;

/// A store of one kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Store {
    /// Section and byte offset of the instruction.
    pub place: (String, u64),
    /// Its text.
    pub text: String,
    /// What it stored.
    pub bytes: Vec<u8>,
}

/// Two kernels that do not do the same.
#[derive(Clone, Debug)]
pub struct Difference {
    /// On which launch.
    pub trial: Trial,
    /// Buffer and offset of the first byte that differs.
    pub at: Option<(String, i64)>,
    /// How many bytes differ.
    pub bytes: usize,
    /// The block, warp and lane that stored differently first.
    pub thread: Option<([u32; 3], u32, u32)>,
    /// What the first kernel stored there.
    pub before: Option<Store>,
    /// And the second.
    pub after: Option<Store>,
    /// Why the second kernel stopped, if it did.
    pub stop: Option<String>,
}

/// Compares two launches; `None` if they did the same.
pub(super) fn compare(a: &Program, b: &Program, trial: &Trial, first: &Done, second: &Done) -> Option<Difference> {
    let mut bytes = 0;
    let mut at = None;
    for (x, y) in first.memory.buffers().iter().zip(second.memory.buffers()) {
        for (n, _) in x.data.iter().zip(&y.data).enumerate().filter(|(_, (p, q))| p != q) {
            bytes += 1;
            let address = x.address + n as u64;
            at.get_or_insert((x.name.clone(), address.wrapping_sub(x.origin) as i64));
        }
        bytes += x.data.len().abs_diff(y.data.len());
    }
    if bytes == 0 && second.stop.is_none() {
        return None;
    }
    let differing = first_store(first, second);
    let store = |p: &Program, s: Stored| {
        let (section, offset) = p.place(s.pc);
        Store {
            place: (section.to_owned(), offset),
            text: p.text(s.pc),
            bytes: s.bytes[..s.size as usize].to_vec(),
        }
    };
    let (key, before, after) = match differing {
        Some((key, x, y)) => (Some(key), x.map(|s| store(a, s)), y.map(|s| store(b, s))),
        None => (None, None, None),
    };
    Some(Difference {
        trial: trial.clone(),
        at,
        bytes,
        thread: key.map(|(block, warp, lane, _)| (block, warp, lane)),
        before,
        after,
        stop: second.stop.clone(),
    })
}

/// The earliest store of a thread that the other kernel does not do, or does with another value.
fn first_store(first: &Done, second: &Done) -> Option<(Key, Option<Stored>, Option<Stored>)> {
    let (a, b) = (&first.record.stores, &second.record.stores);
    let same = |x: Option<&Stored>, y: Option<&Stored>| match (x, y) {
        (Some(x), Some(y)) => (x.size, x.bytes) == (y.size, y.bytes),
        _ => false,
    };
    let changed = b.iter().filter(|(k, y)| !same(a.get(k), Some(y)));
    let lost = a.iter().filter(|(k, _)| !b.contains_key(k));
    let earliest = changed
        .map(|(k, y)| (y.number, *k))
        .chain(lost.map(|(k, x)| (x.number, *k)))
        .min();
    earliest.map(|(_, key)| (key, a.get(&key).copied(), b.get(&key).copied()))
}
