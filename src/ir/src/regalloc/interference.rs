//! Which lanes may not share a register.
//!
//! - What is live where something else is defined.
//! - Results of one instruction; and, on some pipes, a result of several registers and the operands beside it, which may be read while it
//!   is written.
//! - What an instruction still reads or writes after it was issued.
//! - Uniform registers under divergence: there is one for all lanes of a warp, and the paths of a divergent region take turns, so
//!   whatever is live in any block of the region conflicts with what is written in any other.
//!
//! Registers that are shared now may go on being shared in the last three cases: the code at hand shows that it is safe.

use std::collections::HashSet;

use isa::{Isa, Pipe, RegFile};

use super::webs::{NO_LANE, Webs};
use crate::kernel::{BlockId, Kernel, ValueId};
use crate::layout::{Flow, Layout};
use crate::liveness::{LiveSet, Liveness};

/// Pairs of uniform lanes in divergent regions, above which these files stay as they are.
const MAX_UNIFORM_PAIRS: usize = 1 << 22;

/// Conflicts between lanes.
pub(crate) struct Interference {
    /// By lane, sorted, both directions.
    pub neighbours: Vec<Vec<u32>>,
    /// Uniform files cannot be changed.
    pub uniform_fixed: bool,
    /// By file: the most values that are live at once.
    pub pressure: [u16; 5],
    /// Neighbours that share a register now.
    pub clashes: Vec<(u32, u32)>,
}

struct Builder<'a> {
    isa: &'a Isa,
    kernel: &'a Kernel,
    webs: &'a Webs,
    neighbours: Vec<Vec<u32>>,
    /// By lane: length of its list when it was last made unique.
    tidy: Vec<usize>,
    pressure: [u16; 5],
    clashes: Vec<(u32, u32)>,
}

impl Interference {
    /// Fails if two values that must be in one register are live at once.
    pub fn new(
        isa: &Isa,
        kernel: &Kernel,
        webs: &Webs,
        in_flight: Option<&[(ValueId, ValueId)]>,
    ) -> Result<Interference, String> {
        let lanes = webs.cluster_of.len();
        let mut builder = Builder {
            isa,
            kernel,
            webs,
            neighbours: vec![Vec::new(); lanes],
            tidy: vec![64; lanes],
            pressure: [0; 5],
            clashes: Vec::new(),
        };
        builder.lifetimes()?;
        match in_flight {
            Some(pairs) => pairs.iter().for_each(|(a, b)| builder.apart_if_now(*a, *b)),
            None => super::owned::conflicts(isa, kernel, |result, owned| builder.apart_if_now(result, owned)),
        }
        let uniform_fixed = !builder.divergence();
        let mut neighbours = builder.neighbours;
        // Both directions.
        for list in &mut neighbours {
            list.sort_unstable();
            list.dedup();
        }
        let forward: Vec<usize> = neighbours.iter().map(Vec::len).collect();
        for lane in 0..lanes {
            for n in 0..forward[lane] {
                let other = neighbours[lane][n];
                neighbours[other as usize].push(lane as u32);
            }
        }
        for list in &mut neighbours {
            list.sort_unstable();
            list.dedup();
        }
        Ok(Interference {
            neighbours,
            uniform_fixed,
            pressure: builder.pressure,
            clashes: builder.clashes,
        })
    }
}

/// May write some of its results before it has read all of its operands. Compilers let memory accesses and the products of two registers
/// write over their own operands in any way.
fn writes_early(isa: &Isa, layout: &Layout) -> bool {
    let form = isa.form(layout.form);
    form.is_none_or(|f| !matches!(f.semantics().pipe, Pipe::Alu | Pipe::Fma | Pipe::Lsu))
}

impl Builder<'_> {
    fn lane(&self, value: ValueId) -> Option<u32> {
        Some(self.webs.lane[value.index()]).filter(|l| *l != NO_LANE)
    }

    fn add(&mut self, a: u32, b: u32) {
        if a == b || self.webs.file(a) != self.webs.file(b) {
            return;
        }
        let list = &mut self.neighbours[a as usize];
        list.push(b);
        if list.len() > 2 * self.tidy[a as usize] {
            list.sort_unstable();
            list.dedup();
            self.tidy[a as usize] = list.len().max(64);
        }
    }

    /// Two values that must be apart; an error if they cannot be.
    fn apart(&mut self, a: ValueId, b: ValueId) -> Result<(), String> {
        let (Some(la), Some(lb)) = (self.lane(a), self.lane(b)) else {
            return Ok(());
        };
        if la == lb && a != b {
            let pin = self.kernel.pin(a);
            return Err(format!(
                "two values of {pin} are live at once, and have to be in one register: that needs a copy"
            ));
        }
        if la != lb && self.kernel.pin(a) == self.kernel.pin(b) {
            self.clashes.push((la, lb));
        }
        self.add(la, lb);
        Ok(())
    }

    /// Two values that should be apart unless they share a register now.
    fn apart_if_now(&mut self, a: ValueId, b: ValueId) {
        if let (Some(la), Some(lb)) = (self.lane(a), self.lane(b))
            && self.kernel.pin(a) != self.kernel.pin(b)
        {
            self.add(la, lb);
        }
    }

    fn lifetimes(&mut self) -> Result<(), String> {
        let kernel = self.kernel;
        let liveness = Liveness::new(kernel);
        let mut live = LiveSet::new(kernel);
        for block in kernel.blocks() {
            live.clear();
            liveness.each_live_out(kernel, block.id(), |v| live.insert(v));
            for op in block.ops().rev() {
                // All at once: the prologue's live-ins are there from the start.
                let results: Vec<ValueId> = op.results().collect();
                results.iter().for_each(|v| live.insert(*v));
                self.weigh(&live);
                for &result in &results {
                    for n in 0..live.values.len() {
                        self.apart(result, live.values[n])?;
                    }
                }
                results.iter().for_each(|v| live.remove(*v));
                let layout = op.layout().filter(|l| l.flow != Flow::Call);
                if results.len() > 1 && layout.is_some_and(|l| writes_early(self.isa, l)) {
                    for &result in &results {
                        op.operands().iter().for_each(|v| self.apart_if_now(result, *v));
                    }
                }
                // Who looks for a value there may do so before or behind the instruction.
                let held = layout.map_or(&[][..], |l| &op.operands()[l.own_operands(op.word())..]);
                for &result in &results {
                    held.iter().for_each(|v| self.apart_if_now(result, *v));
                }
                op.operands().iter().for_each(|v| live.insert(*v));
            }
            // Arguments are defined together, over what is live into the block.
            let args: Vec<ValueId> = block.args().collect();
            args.iter().for_each(|v| live.insert(*v));
            for &arg in &args {
                for n in 0..live.values.len() {
                    self.apart(arg, live.values[n])?;
                }
            }
        }
        Ok(())
    }

    fn weigh(&mut self, live: &LiveSet) {
        let mut now = [0; 5];
        let files = live.values.iter().filter_map(|v| self.lane(*v));
        files.for_each(|lane| now[self.webs.file(lane) as usize] += 1);
        self.pressure
            .iter_mut()
            .zip(now)
            .for_each(|(most, n)| *most = n.max(*most));
    }

    /// False if there are too many pairs to list.
    fn divergence(&mut self) -> bool {
        let kernel = self.kernel;
        let is_uniform =
            |v: ValueId| matches!(kernel.pin(v).file(), RegFile::UR | RegFile::UP) && !kernel.pin(v).is_zero();
        if !kernel.values().any(is_uniform) {
            return true;
        }
        let liveness = Liveness::new(kernel);
        let mut pairs = 0;
        for region in super::divergence::regions(kernel) {
            let (mut present, mut written): (HashSet<ValueId>, HashSet<ValueId>) = Default::default();
            for b in region {
                let block = kernel.block(BlockId(b));
                present.extend(liveness.live_in(block.id()).iter().copied().filter(|v| is_uniform(*v)));
                let defined = block.args().chain(block.ops().flat_map(|op| op.results()));
                written.extend(defined.filter(|v| is_uniform(*v)));
            }
            present.extend(&written);
            pairs += present.len() * written.len();
            if pairs > MAX_UNIFORM_PAIRS {
                return false;
            }
            for &w in &written {
                present.iter().for_each(|p| self.apart_if_now(w, *p));
            }
        }
        true
    }
}
