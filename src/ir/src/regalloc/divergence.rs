//! Regions that the lanes of a warp may walk apart.

use isa::RegFile;

use crate::graph::{Dominators, Graph, predecessors};
use crate::kernel::{BlockId, Kernel};
use crate::layout::Flow;

/// Sets of blocks: from each branch that hangs on a predicate of the lane (or on an address in a register) to where all its paths meet
/// again, overlapping ones united.
pub(crate) fn regions(kernel: &Kernel) -> Vec<Vec<u32>> {
    let n = kernel.block_count();
    let meets = meeting_points(kernel);
    let mut group: Vec<u32> = (0..n as u32).collect();
    let mut member = vec![false; n];
    for block in kernel.blocks() {
        if !may_diverge(kernel, block.id()) {
            continue;
        }
        let meet = meets[block.id().index()];
        let mut seen = vec![false; n];
        let mut stack: Vec<u32> = block.successors().map(|(to, _)| to.0).collect();
        while let Some(b) = stack.pop() {
            if b == meet || std::mem::replace(&mut seen[b as usize], true) {
                continue;
            }
            member[b as usize] = true;
            let (a, c) = (find(&mut group, block.id().0), find(&mut group, b));
            group[c as usize] = a;
            stack.extend(kernel.block(BlockId(b)).successors().map(|(to, _)| to.0));
        }
    }
    let mut regions: Vec<Vec<u32>> = vec![Vec::new(); n];
    for b in (0..n as u32).filter(|b| member[*b as usize]) {
        regions[find(&mut group, b) as usize].push(b);
    }
    regions.retain(|r| !r.is_empty());
    regions
}

fn find(group: &mut [u32], mut b: u32) -> u32 {
    while group[b as usize] != b {
        group[b as usize] = group[group[b as usize] as usize];
        b = group[b as usize];
    }
    b
}

/// Several successors, and the choice is not the same for all lanes by the kind of register it hangs on.
fn may_diverge(kernel: &Kernel, block: BlockId) -> bool {
    if kernel.block(block).successors().len() < 2 {
        return false;
    }
    let Some(last) = kernel.block(block).ops().next_back() else {
        return false;
    };
    let Some(layout) = last.layout() else { return false };
    let choice =
        |v: &crate::ValueId| matches!(kernel.pin(*v).file(), RegFile::P | RegFile::R) && !kernel.pin(*v).is_zero();
    let leaves = matches!(layout.flow, Flow::Exit);
    !leaves && last.operands().iter().any(choice)
}

/// By block: the first block that every path from it to the end passes, `u32::MAX` if there is none.
fn meeting_points(kernel: &Kernel) -> Vec<u32> {
    // Dominators of the reversed graph, with one node before all ends.
    let n = kernel.block_count();
    let succs: Vec<u32> = kernel.edges.iter().map(|e| e.to.0).collect();
    let forward = Graph {
        start: &kernel.edge_start,
        succs: &succs,
    };
    let (pred_start, preds) = predecessors(&forward);
    let ends = (0..n as u32).filter(|b| forward.successors(*b as usize).is_empty());
    let mut start = vec![0u32];
    let mut reversed: Vec<u32> = ends.map(|b| b + 1).collect();
    start.push(reversed.len() as u32);
    for b in 0..n {
        let own = &preds[pred_start[b] as usize..pred_start[b + 1] as usize];
        reversed.extend(own.iter().map(|p| p + 1));
        start.push(reversed.len() as u32);
    }
    let graph = Graph {
        start: &start,
        succs: &reversed,
    };
    let (back_start, back) = predecessors(&graph);
    let dominators = Dominators::new(&graph, &back_start, &back);
    (1..=n)
        .map(|b| match dominators.idom[b] {
            u32::MAX | 0 => u32::MAX,
            d => d - 1,
        })
        .collect()
}
