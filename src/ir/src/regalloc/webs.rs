//! Which values must share a register, and which must lie next to each other.
//!
//! A lane is a set of values in one register: an argument and what is passed to it, a result and the operand that it is tied to. A
//! cluster is a set of lanes at fixed distances: what one instruction names as a tuple. Allocation places clusters.

use isa::{Isa, RegFile};

use crate::kernel::{Def, Kernel, OpId, OpKind, ValueId};
use crate::layout::{Flow, Slot};
use crate::pin::Pin;

/// No lane: a constant.
pub(crate) const NO_LANE: u32 = u32::MAX;

/// Lanes at fixed distances.
#[derive(Clone, Debug)]
pub(crate) struct Cluster {
    pub file: RegFile,
    /// The first lane; the others follow.
    pub first_lane: u32,
    /// By lane: its distance from the cluster's first register, ascending from 0.
    pub offsets: Vec<u16>,
    /// Register number of the cluster's first register now.
    pub base: u16,
    /// The first register's number is `base` modulo this power of two.
    pub align: u16,
    /// It must begin below this number.
    pub end: u16,
    /// It must stay where it is.
    pub fixed: bool,
    /// The first operation that defines a value of it.
    pub born: OpId,
}

impl Cluster {
    /// Registers from the first to the last.
    pub fn span(&self) -> u16 {
        self.offsets.last().map_or(0, |o| o + 1)
    }
}

/// All clusters of a kernel.
pub(crate) struct Webs {
    pub clusters: Vec<Cluster>,
    /// By value.
    pub lane: Vec<u32>,
    /// By lane.
    pub cluster_of: Vec<u32>,
}

/// Values joined at fixed distances: a union-find with offsets.
struct Joined {
    /// (parent, register number minus the parent's).
    parent: Vec<(u32, i32)>,
}

impl Joined {
    fn find(&mut self, value: u32) -> (u32, i32) {
        let (mut root, mut distance) = (value, 0);
        while self.parent[root as usize].0 != root {
            let (up, d) = self.parent[root as usize];
            distance += d;
            root = up;
        }
        // Compress the path.
        let (mut at, mut rest) = (value, distance);
        while self.parent[at as usize].0 != root && at != root {
            let (up, d) = std::mem::replace(&mut self.parent[at as usize], (root, rest));
            rest -= d;
            at = up;
        }
        (root, distance)
    }

    /// `b` lies `distance` registers behind `a`. False if something else is known.
    fn join(&mut self, a: ValueId, b: ValueId, distance: i32) -> bool {
        let ((ra, da), (rb, db)) = (self.find(a.0), self.find(b.0));
        if ra == rb {
            return db - da == distance;
        }
        self.parent[rb as usize] = (ra, da + distance - db);
        true
    }
}

/// Facts about single values that their cluster inherits.
#[derive(Clone, Copy)]
struct Need {
    align: u16,
    fixed: bool,
}

impl Webs {
    /// Fails for a kernel with opaque words, whose pins contradict what must lie together, or with collectives that are not understood.
    pub fn new(isa: &Isa, kernel: &Kernel, reserved: &dyn Fn(Pin) -> bool) -> Result<Webs, String> {
        let values = kernel.values().len();
        let mut joined = Joined {
            parent: (0..values as u32).map(|v| (v, 0)).collect(),
        };
        let mut needs = vec![Need { align: 1, fixed: false }; values];
        for op in kernel.ops() {
            if op.kind() == OpKind::Opaque {
                return Err(format!("the word at {:#x} is in no table", op.offset()));
            }
            if !join_operands(kernel, op, &mut joined, &mut needs) {
                return Err(format!("operands at {:#x} contradict each other", op.offset()));
            }
        }
        for block in kernel.blocks() {
            for (to, args) in block.successors() {
                for (&value, arg) in args.iter().zip(kernel.block(to).args()) {
                    if !kernel.pin(arg).is_zero() && !joined.join(arg, value, 0) {
                        return Err("block arguments contradict each other".into());
                    }
                }
            }
        }
        pin_environment(kernel, &mut needs);
        for value in kernel.values().filter(|v| reserved(kernel.pin(*v))) {
            needs[value.index()].fixed = true;
        }
        for value in crate::collective::fixed_values(isa, kernel)? {
            needs[value.index()].fixed = true;
        }
        Ok(Self::clusters(kernel, &mut joined, &needs))
    }

    fn clusters(kernel: &Kernel, joined: &mut Joined, needs: &[Need]) -> Webs {
        // By root: all (distance, value).
        let mut members: Vec<(u32, i32, ValueId)> = Vec::new();
        for value in kernel.values().filter(|v| !kernel.pin(*v).is_zero()) {
            let (root, distance) = joined.find(value.0);
            members.push((root, distance, value));
        }
        members.sort_unstable_by_key(|m| (m.0, m.1, m.2));
        let mut webs = Webs {
            clusters: Vec::new(),
            lane: vec![NO_LANE; needs.len()],
            cluster_of: Vec::new(),
        };
        for group in members.chunk_by(|a, b| a.0 == b.0) {
            let first = group[0];
            let pin = kernel.pin(first.2);
            let mut cluster = Cluster {
                file: pin.file(),
                first_lane: webs.cluster_of.len() as u32,
                offsets: Vec::new(),
                base: pin.number().into(),
                align: 1,
                end: u16::MAX,
                fixed: pin.file() == RegFile::B,
                born: OpId(u32::MAX),
            };
            for (_, distance, value) in group {
                let offset = (distance - first.1) as u16;
                if cluster.offsets.last() != Some(&offset) {
                    cluster.offsets.push(offset);
                    webs.cluster_of.push(webs.clusters.len() as u32);
                }
                webs.lane[value.index()] = webs.cluster_of.len() as u32 - 1;
                cluster.align = cluster.align.max(needs[value.index()].align);
                cluster.fixed |= needs[value.index()].fixed;
                cluster.born = cluster.born.min(match kernel.def(*value) {
                    Def::Result(op, _) => op,
                    Def::Arg(block, _) => OpId(kernel.block_start[block.index()]),
                });
            }
            webs.clusters.push(cluster);
        }
        webs
    }

    /// Where each cluster begins now.
    pub fn bases(&self) -> Vec<u16> {
        self.clusters.iter().map(|c| c.base).collect()
    }

    /// Gives every value of the kernel the register of its lane.
    pub fn put(&self, kernel: &mut Kernel, base: &[u16]) {
        for (pin, lane) in kernel.pins.iter_mut().zip(&self.lane) {
            if *lane != NO_LANE {
                *pin = Pin::new(pin.file(), self.register(*lane, base) as u8);
            }
        }
    }

    /// The register of a lane, given where each cluster begins.
    pub fn register(&self, lane: u32, base: &[u16]) -> u16 {
        let cluster = self.cluster_of[lane as usize] as usize;
        let offset = self.clusters[cluster].offsets[(lane - self.clusters[cluster].first_lane) as usize];
        base[cluster] + offset
    }

    /// The file of a lane.
    pub fn file(&self, lane: u32) -> RegFile {
        self.clusters[self.cluster_of[lane as usize] as usize].file
    }
}

/// What one operation demands of its operands and results; false where that cannot be.
fn join_operands(kernel: &Kernel, op: crate::Op<'_>, joined: &mut Joined, needs: &mut [Need]) -> bool {
    let Some(layout) = op.layout() else { return true };
    let word = op.word();
    let operands = op.operands();
    let merges = layout.read_count()..layout.own_operands(word);
    let mut merged = operands[merges.clone()].iter();
    let mut good = true;
    for access in op.accesses() {
        let written: Vec<ValueId> = access.writes.clone().map(ValueId).collect();
        let read: Vec<ValueId> = access.reads.to_vec();
        for tuple in [&read, &written] {
            let Some(&first) = tuple.first().filter(|v| !kernel.pin(**v).is_zero()) else {
                continue;
            };
            let need = &mut needs[first.index()];
            need.align = need.align.max(alignment(access.slot, kernel.pin(first)));
            for (k, &v) in tuple.iter().enumerate().skip(1) {
                match kernel.pin(v).is_zero() {
                    // The tuple runs into the constant register: nowhere else does it.
                    true => needs[first.index()].fixed = true,
                    false => good &= joined.join(first, v, k as i32),
                }
            }
        }
        if access.slot.reads() {
            // The text and the word name one register for both.
            for (r, w) in read.iter().zip(&written) {
                good &= joined.join(*r, *w, 0);
            }
        } else if !merges.is_empty() {
            for w in &written {
                if let Some(m) = merged.next() {
                    good &= joined.join(*m, *w, 0);
                }
            }
        }
        if access.slot.field.is_none() {
            read.iter().chain(&written).for_each(|v| needs[v.index()].fixed = true);
        }
    }
    // What a call or a return reads and writes without naming it is where the other side expects it.
    if matches!(layout.flow, Flow::Call | Flow::Return) {
        let own_results = layout.write_count(word);
        operands[layout.own_operands(word)..]
            .iter()
            .for_each(|v| needs[v.index()].fixed = true);
        op.results()
            .skip(own_results)
            .for_each(|v| needs[v.index()].fixed = true);
    }
    good
}

/// A tuple's alignment: its width rounded up to a power of two, unless it is where that does not hold.
fn alignment(slot: &Slot, first: Pin) -> u16 {
    let natural = u16::from(slot.width).next_power_of_two();
    match first.number() {
        0 => natural,
        n => natural.min(1 << n.trailing_zeros()),
    }
}

/// Registers that mean something before the code begins, and the code of functions, which other code calls.
fn pin_environment(kernel: &Kernel, needs: &mut [Need]) {
    let flows = |flow: Flow| move |op: &crate::Op<'_>| op.layout().is_some_and(|l| l.flow == flow);
    let is_function = kernel.ops().any(|op| flows(Flow::Return)(&op));
    let calls = kernel.ops().any(|op| flows(Flow::Call)(&op) && op.label().is_some());
    let uses = kernel.uses();
    for op in kernel.ops().filter(|op| op.kind() == OpKind::LiveIn) {
        for value in op.results() {
            // Only kept by guarded writes, its content does not matter.
            let read = uses.of(value).iter().any(|u| match *u {
                crate::Use::Operand(by, n) => {
                    let by = kernel.op(by);
                    by.layout()
                        .is_none_or(|l| (n as usize) < l.read_count() || matches!(l.flow, Flow::Call | Flow::Return))
                }
                crate::Use::Edge { .. } => false,
            });
            needs[value.index()].fixed |= read || is_function || kernel.pin(value).file() == RegFile::UR;
        }
    }
    if is_function || calls {
        for block in callee_blocks(kernel) {
            let block = kernel.block(crate::BlockId(block));
            let inside = block.args().chain(block.ops().flat_map(|op| op.results()));
            inside.for_each(|v| needs[v.index()].fixed = true);
        }
    }
}

/// The blocks of the section's functions beside its entry: those that a label of a call leads to, and all that lead to a return.
fn callee_blocks(kernel: &Kernel) -> Vec<u32> {
    let mut seen = vec![false; kernel.block_count()];
    let labels = crate::check::label_blocks(kernel).unwrap_or_default();
    let called = kernel
        .ops()
        .filter(|op| op.layout().is_some_and(|l| l.flow == Flow::Call));
    let mut stack: Vec<u32> = called
        .filter_map(|op| labels.get(op.label()? as usize).copied())
        .filter(|b| (*b as usize) < seen.len())
        .collect();
    while let Some(b) = stack.pop() {
        if !std::mem::replace(&mut seen[b as usize], true) {
            stack.extend(kernel.block(crate::BlockId(b)).successors().map(|(to, _)| to.0));
        }
    }
    let predecessors = crate::liveness::Predecessors::new(kernel);
    let mut back: Vec<u32> = kernel
        .ops()
        .filter(|op| op.layout().is_some_and(|l| l.flow == Flow::Return))
        .map(|op| op.block().0)
        .collect();
    let mut leads = vec![false; kernel.block_count()];
    while let Some(b) = back.pop() {
        if b != 0 && !std::mem::replace(&mut leads[b as usize], true) {
            back.extend(predecessors.of(b));
        }
    }
    (0..seen.len() as u32)
        .filter(|b| seen[*b as usize] || leads[*b as usize])
        .collect()
}

/// The number of registers of a file that can be named, the constant one aside.
pub(crate) fn file_size(kernel: &Kernel, file: RegFile) -> u16 {
    match file {
        // Two of the 255 are the hardware's.
        RegFile::R => 253,
        RegFile::B => 16,
        _ => crate::pin::zero_number(kernel.target, file).map_or(0, u16::from),
    }
}

/// One past the highest register of a file in use.
pub(crate) fn top(kernel: &Kernel, file: RegFile) -> u16 {
    let pins = kernel.pins.iter().filter(|p| p.file() == file && !p.is_zero());
    pins.map(|p| u16::from(p.number()) + 1).max().unwrap_or(0)
}
