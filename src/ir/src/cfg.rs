//! Basic blocks of a section of code.

use std::collections::{HashMap, HashSet};

use isa::{Inst, Isa, Word};

use crate::kernel::{NONE, SUCCESSOR};
use crate::layout::{Flow, Layout};
use crate::returns::Addresses;
use crate::source::Source;

/// How control leaves a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leave {
    /// By its last instruction (and, if that is conditional, to the next block).
    Terminator,
    /// To the next block.
    Fall,
    /// There is no next block.
    End,
}

/// A call that comes back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    /// The instruction's index.
    pub at: u32,
    /// The callee's block, if it is in this section and known.
    pub callee: Option<u32>,
}

/// The control-flow graph. Blocks are numbered from 0 here, without the prologue.
pub(crate) struct Cfg {
    /// First instruction of each block, and one more entry.
    pub start: Vec<u32>,
    pub leave: Vec<Leave>,
    pub succ_start: Vec<u32>,
    pub succs: Vec<u32>,
    /// Blocks that the prologue enters: the section's first, functions, and whatever no branch reaches.
    pub roots: Vec<u32>,
    /// Blocks with a label, by label id.
    pub labels: Vec<u32>,
    /// (instruction, label id or `SUCCESSOR`), by instruction.
    pub label_uses: Vec<(u32, u32)>,
    pub calls: Vec<Call>,
    pub notes: Vec<String>,
}

/// What an instruction does to control flow, if anything.
#[derive(Debug)]
pub(crate) enum Role {
    Branch {
        target: Option<u32>,
        conditional: bool,
    },
    Indirect {
        targets: Option<Vec<u32>>,
        conditional: bool,
    },
    Leave {
        conditional: bool,
    },
    Call {
        target: Option<u32>,
    },
    Label {
        target: u32,
    },
}

/// The decoded code of a section.
pub(crate) struct Decoded<'a> {
    pub isa: &'a Isa,
    pub words: &'a [Word],
    /// Layout of each word, `NONE` for an opaque one.
    pub layout: &'a [u32],
    pub layouts: &'a [std::sync::Arc<Layout>],
}

impl Decoded<'_> {
    pub fn layout_of(&self, i: usize) -> Option<&Layout> {
        match self.layout[i] {
            NONE => None,
            n => Some(&self.layouts[n as usize]),
        }
    }
}

impl Cfg {
    pub fn new(source: &Source<'_>, code: &Decoded<'_>) -> Cfg {
        let n = code.words.len();
        let local = |offset: u64| (offset.is_multiple_of(16) && offset / 16 < n as u64).then_some((offset / 16) as u32);
        let roles = roles(source, code, &local);

        // Where blocks begin, and which places are entered in ways that no branch shows.
        let mut leader = vec![false; n + 1];
        let mut entered: Vec<u32> = vec![0];
        entered.extend(source.functions.iter().chain(&source.labels).filter_map(|&o| local(o)));
        let mut label_targets = Vec::new();
        for (i, role) in &roles {
            match role {
                Role::Branch { target, .. } => {
                    leader[*i as usize + 1] = true;
                    target.iter().for_each(|t| leader[*t as usize] = true);
                }
                Role::Indirect { targets, .. } => {
                    leader[*i as usize + 1] = true;
                    targets.iter().flatten().for_each(|t| leader[*t as usize] = true);
                }
                Role::Leave { .. } => leader[*i as usize + 1] = true,
                Role::Call { target } => label_targets.extend(*target),
                Role::Label { target } => label_targets.push(*target),
            }
            if let Role::Call { target: Some(t) } = role {
                entered.push(*t);
            }
        }
        label_targets.sort_unstable();
        label_targets.dedup();
        entered
            .iter()
            .chain(&label_targets)
            .for_each(|&t| leader[t as usize] = true);
        let mut start: Vec<u32> = (0..n as u32).filter(|&i| leader[i as usize]).collect();
        start.push(n as u32);
        if n == 0 {
            start = vec![0];
        }
        let block_of = |i: u32, start: &[u32]| start.partition_point(|&s| s <= i) as u32 - 1;

        let mut cfg = Cfg {
            leave: Vec::new(),
            succ_start: vec![0],
            succs: Vec::new(),
            roots: Vec::new(),
            labels: label_targets.iter().map(|&t| block_of(t, &start)).collect(),
            label_uses: Vec::new(),
            calls: Vec::new(),
            notes: Vec::new(),
            start,
        };
        let unknown = cfg.connect(&roles, n as u32);
        for (i, role) in &roles {
            let target = match role {
                Role::Call { target } => {
                    let callee = target.map(|t| block_of(t, &cfg.start));
                    cfg.calls.push(Call { at: *i, callee });
                    *target
                }
                Role::Label { target } => Some(*target),
                Role::Branch { target: Some(_), .. } => {
                    cfg.label_uses.push((*i, SUCCESSOR));
                    None
                }
                _ => None,
            };
            if let Some(label) = target.and_then(|t| label_targets.binary_search(&t).ok()) {
                cfg.label_uses.push((*i, label as u32));
            }
        }

        // Reachability; whatever is left over is entered by the prologue or by indirect branches without a known table.
        let mut reached = vec![false; cfg.leave.len()];
        entered
            .iter_mut()
            .for_each(|e| *e = if n == 0 { NONE } else { block_of(*e, &cfg.start) });
        entered.retain(|&e| e != NONE);
        entered.sort_unstable();
        entered.dedup();
        cfg.reach(entered.iter().chain(&cfg.labels).copied(), &mut reached);
        cfg.cut_tail(code, &mut reached);
        cfg.roots = entered;
        if unknown.is_empty() {
            // Labels were counted as reached above, so that none ends up in the tail: enter those that no edge leads to.
            let mut reached = vec![false; cfg.leave.len()];
            cfg.reach(cfg.roots.iter().copied(), &mut reached);
            for b in 0..cfg.leave.len() as u32 {
                if !reached[b as usize] {
                    cfg.roots.push(b);
                    cfg.reach([b], &mut reached);
                }
            }
        } else {
            cfg.resolve_unknown(&unknown);
        }
        cfg
    }

    /// Number of blocks.
    pub fn len(&self) -> usize {
        self.leave.len()
    }

    pub fn successors(&self, b: usize) -> &[u32] {
        &self.succs[self.succ_start[b] as usize..self.succ_start[b + 1] as usize]
    }

    /// Number of instructions before the tail.
    pub fn code_end(&self) -> usize {
        *self.start.last().unwrap_or(&0) as usize
    }

    /// Fills in the edges. Returns the blocks that end in an indirect branch whose targets nobody tells.
    fn connect(&mut self, roles: &[(u32, Role)], n: u32) -> Vec<u32> {
        let mut unknown = Vec::new();
        let block_of = |i: u32, start: &[u32]| start.partition_point(|&s| s <= i) as u32 - 1;
        let mut role = roles.iter().peekable();
        let blocks = self.start.len() - 1;
        for b in 0..blocks {
            let end = self.start[b + 1];
            let next = (end < n).then_some(b as u32 + 1);
            let mut leave = if next.is_some() { Leave::Fall } else { Leave::End };
            let mut falls = true;
            while let Some((i, r)) = role.next_if(|(i, _)| *i < end) {
                if *i + 1 != end {
                    continue; // only calls and labels can stand inside a block
                }
                let conditional = match r {
                    Role::Branch { target, conditional } => {
                        self.succs.extend(target.map(|t| block_of(t, &self.start)));
                        *conditional
                    }
                    Role::Indirect { targets, conditional } => {
                        match targets {
                            Some(t) => self.succs.extend(t.iter().map(|&t| block_of(t, &self.start))),
                            None => unknown.push(b as u32),
                        }
                        *conditional
                    }
                    Role::Leave { conditional } => *conditional,
                    Role::Call { .. } | Role::Label { .. } => continue,
                };
                leave = Leave::Terminator;
                falls = conditional;
            }
            if falls {
                self.succs.extend(next);
            }
            self.leave.push(leave);
            self.succ_start.push(self.succs.len() as u32);
        }
        unknown
    }

    fn reach(&self, from: impl IntoIterator<Item = u32>, reached: &mut [bool]) {
        let mut stack: Vec<u32> = from.into_iter().filter(|b| !reached[*b as usize]).collect();
        while let Some(b) = stack.pop() {
            if !std::mem::replace(&mut reached[b as usize], true) {
                stack.extend(self.successors(b as usize));
            }
        }
    }

    /// Takes the padding off the end: blocks that nothing reaches, of NOPs and branches to themselves.
    fn cut_tail(&mut self, code: &Decoded<'_>, reached: &mut [bool]) {
        let blocks = self.len();
        let mut candidate = blocks;
        while candidate > 0 && !reached[candidate - 1] {
            let range = self.start[candidate - 1] as usize..self.start[candidate] as usize;
            let loops = self.successors(candidate - 1) == [candidate as u32 - 1];
            let padding = range.clone().all(|i| {
                code.layout_of(i)
                    .is_some_and(|l| l.nop || (l.flow == Flow::Branch && loops && range.len() == 1))
            });
            if !padding {
                break;
            }
            candidate -= 1;
        }
        // Code that nothing reaches may still lead into what looks like padding.
        self.reach(0..candidate as u32, reached);
        let keep = (candidate..blocks)
            .rev()
            .find(|&b| reached[b])
            .map_or(candidate, |b| b + 1);
        self.start.truncate(keep + 1);
        self.leave.truncate(keep);
        self.succ_start.truncate(keep + 1);
        self.succs.truncate(*self.succ_start.last().unwrap_or(&0) as usize);
    }

    /// An indirect branch without a table may go to any block that nothing else reaches.
    fn resolve_unknown(&mut self, unknown: &[u32]) {
        let mut reached = vec![false; self.len()];
        self.reach(self.roots.iter().copied(), &mut reached);
        let mut open = Vec::new();
        for b in 0..self.len() as u32 {
            if !reached[b as usize] {
                open.push(b);
                self.reach([b], &mut reached);
            }
        }
        let unknown: Vec<u32> = unknown.iter().copied().filter(|&b| (b as usize) < self.len()).collect();
        if unknown.is_empty() || unknown.len().saturating_mul(open.len()) > 1 << 22 {
            self.roots.extend(open);
            return;
        }
        self.notes.push(format!(
            "{} indirect branches have no table: taken to lead to {} blocks that nothing else reaches",
            unknown.len(),
            open.len()
        ));
        let mut succs = Vec::new();
        let mut succ_start = vec![0];
        for b in 0..self.len() {
            if unknown.binary_search(&(b as u32)).is_ok() {
                succs.extend(&open);
            }
            succs.extend(self.successors(b));
            succ_start.push(succs.len() as u32);
        }
        (self.succs, self.succ_start) = (succs, succ_start);
        // If the branch itself is not reached, neither are they.
        let mut reached = vec![false; self.len()];
        self.reach(self.roots.iter().copied(), &mut reached);
        for b in 0..self.len() as u32 {
            if !reached[b as usize] {
                self.roots.push(b);
                self.reach([b], &mut reached);
            }
        }
    }
}

/// The control-flow roles, by instruction.
pub(crate) fn roles(source: &Source<'_>, code: &Decoded<'_>, local: &dyn Fn(u64) -> Option<u32>) -> Vec<(u32, Role)> {
    let relocated: HashSet<u64> = source.relocated.iter().copied().collect();
    let tables: HashMap<u64, &Vec<u64>> = source.indirect_branches.iter().map(|(at, t)| (*at, t)).collect();
    let mut roles = Vec::new();
    let mut open_calls = false;
    for (i, &word) in code.words.iter().enumerate() {
        let Some(layout) = code.layout_of(i) else { continue };
        if layout.flow == Flow::None && !layout.has_label {
            continue;
        }
        let pc = i as u64 * 16;
        let inst = Inst {
            word,
            form: layout.form,
        };
        let target = if layout.has_label && !relocated.contains(&pc) {
            code.isa.branch_target(inst, pc).and_then(local)
        } else {
            None
        };
        let conditional = || code.isa.is_conditional(inst);
        let role = match layout.flow {
            Flow::None => match target {
                Some(target) => Role::Label { target },
                None => continue,
            },
            Flow::Branch => Role::Branch {
                target,
                conditional: conditional(),
            },
            Flow::Indirect => {
                let targets = tables.get(&pc).map(|t| {
                    let mut targets: Vec<u32> = t.iter().filter_map(|&o| local(o)).collect();
                    let mut seen = HashSet::new();
                    targets.retain(|t| seen.insert(*t));
                    targets
                });
                Role::Indirect {
                    targets,
                    conditional: conditional(),
                }
            }
            Flow::Exit | Flow::Return => Role::Leave {
                conditional: conditional(),
            },
            Flow::Call => {
                open_calls |= layout.no_increment && target.is_some();
                Role::Call { target }
            }
        };
        roles.push((i as u32, role));
    }
    if open_calls {
        branches_among_calls(source, code, &mut roles);
    }
    roles
}

/// A call that leaves no return address, neither in a register nor on the hardware's stack, is a branch.
fn branches_among_calls(source: &Source<'_>, code: &Decoded<'_>, roles: &mut [(u32, Role)]) {
    let addresses = Addresses::new(code);
    let named: HashSet<u64> = source.labels.iter().copied().collect();
    let returns = |roles: &[(u32, Role)], i: u32| {
        !code.layout_of(i as usize).is_some_and(|l| l.no_increment)
            || named.contains(&(u64::from(i + 1) * 16))
            || !addresses.reaching(code, roles, i).is_empty()
    };
    for n in 0..roles.len() {
        let (i, Role::Call { target: Some(target) }) = roles[n] else {
            continue;
        };
        if !returns(roles, i) {
            let word = code.words[i as usize];
            let inst = code.layout_of(i as usize).map(|l| Inst { word, form: l.form });
            let conditional = inst.is_some_and(|i| code.isa.is_conditional(i));
            let target = Some(target);
            roles[n].1 = Role::Branch { target, conditional };
        }
    }
}
