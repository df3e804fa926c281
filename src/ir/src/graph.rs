//! Dominators and dominance frontiers of a flow graph given as flat arrays.

/// A directed graph: the successors of node `n` are `succs[start[n]..start[n + 1]]`.
pub(crate) struct Graph<'a> {
    pub start: &'a [u32],
    pub succs: &'a [u32],
}

impl Graph<'_> {
    pub fn len(&self) -> usize {
        self.start.len() - 1
    }

    pub fn successors(&self, n: usize) -> &[u32] {
        &self.succs[self.start[n] as usize..self.start[n + 1] as usize]
    }
}

/// The predecessors of every node, in the order of (predecessor, successor position).
pub(crate) fn predecessors(graph: &Graph<'_>) -> (Vec<u32>, Vec<u32>) {
    let n = graph.len();
    let mut start = vec![0u32; n + 1];
    for &s in graph.succs {
        start[s as usize + 1] += 1;
    }
    for i in 0..n {
        start[i + 1] += start[i];
    }
    let mut at = start.clone();
    let mut preds = vec![0; graph.succs.len()];
    for p in 0..n {
        for &s in graph.successors(p) {
            preds[at[s as usize] as usize] = p as u32;
            at[s as usize] += 1;
        }
    }
    (start, preds)
}

const NONE: u32 = u32::MAX;

/// The dominator tree of the part that node 0 reaches.
pub(crate) struct Dominators {
    /// Immediate dominator by node; `NONE` for node 0 and for nodes that are not reached.
    pub idom: Vec<u32>,
    /// Nodes in depth-first preorder of the graph.
    pub preorder: Vec<u32>,
}

impl Dominators {
    /// Lengauer and Tarjan's algorithm with path compression, without recursion.
    pub fn new(graph: &Graph<'_>, pred_start: &[u32], preds: &[u32]) -> Dominators {
        let n = graph.len();
        let mut number = vec![NONE; n]; // node -> preorder number
        let mut preorder = Vec::with_capacity(n); // preorder number -> node
        let mut parent = Vec::with_capacity(n); // by preorder number
        let mut stack = vec![(0u32, NONE)];
        while let Some((node, from)) = stack.pop() {
            if number[node as usize] != NONE {
                continue;
            }
            let id = preorder.len() as u32;
            number[node as usize] = id;
            preorder.push(node);
            parent.push(from);
            stack.extend(graph.successors(node as usize).iter().rev().map(|&s| (s, id)));
        }
        let count = preorder.len();
        let mut semi: Vec<u32> = (0..count as u32).collect();
        let mut label = semi.clone();
        let mut ancestor = vec![NONE; count];
        let mut idom = vec![0u32; count];
        let mut bucket_head = vec![NONE; count];
        let mut bucket_next = vec![NONE; count];
        let mut path = Vec::new();
        for w in (1..count).rev() {
            let node = preorder[w] as usize;
            for &p in &preds[pred_start[node] as usize..pred_start[node + 1] as usize] {
                let v = number[p as usize];
                if v != NONE {
                    let u = eval(v, &mut ancestor, &mut label, &semi, &mut path);
                    semi[w] = semi[w].min(semi[u as usize]);
                }
            }
            let s = semi[w] as usize;
            bucket_next[w] = bucket_head[s];
            bucket_head[s] = w as u32;
            let p = parent[w];
            ancestor[w] = p;
            let mut v = std::mem::replace(&mut bucket_head[p as usize], NONE);
            while v != NONE {
                let u = eval(v, &mut ancestor, &mut label, &semi, &mut path);
                idom[v as usize] = if semi[u as usize] < semi[v as usize] { u } else { p };
                v = bucket_next[v as usize];
            }
        }
        for w in 1..count {
            if idom[w] != semi[w] {
                idom[w] = idom[idom[w] as usize];
            }
        }
        let mut by_node = vec![NONE; n];
        for w in 1..count {
            by_node[preorder[w] as usize] = preorder[idom[w] as usize];
        }
        Dominators {
            idom: by_node,
            preorder,
        }
    }

    /// Children of every node in the dominator tree, in preorder of the graph: (start, children).
    pub fn children(&self) -> (Vec<u32>, Vec<u32>) {
        let n = self.idom.len();
        let mut start = vec![0u32; n + 1];
        for &d in &self.idom {
            if d != NONE {
                start[d as usize + 1] += 1;
            }
        }
        for i in 0..n {
            start[i + 1] += start[i];
        }
        let mut at = start.clone();
        let mut children = vec![0; start[n] as usize];
        for &node in &self.preorder {
            let d = self.idom[node as usize];
            if d != NONE {
                children[at[d as usize] as usize] = node;
                at[d as usize] += 1;
            }
        }
        (start, children)
    }

    /// Calls `f(b, join)` for every `join` in the dominance frontier of `b`; a pair may come more than once. Stops with `false` when
    /// more than `budget` steps were taken.
    pub fn frontiers(&self, pred_start: &[u32], preds: &[u32], mut budget: usize, mut f: impl FnMut(u32, u32)) -> bool {
        for join in 0..self.idom.len() {
            let from = &preds[pred_start[join] as usize..pred_start[join + 1] as usize];
            if from.len() < 2 {
                continue;
            }
            for &p in from {
                let mut runner = p;
                while runner != self.idom[join] && runner != NONE {
                    if budget == 0 {
                        return false;
                    }
                    budget -= 1;
                    f(runner, join as u32);
                    runner = self.idom[runner as usize];
                }
            }
        }
        true
    }
}

/// The vertex with the least semidominator on the path to the root of `v`'s tree in the forest; compresses the path.
fn eval(v: u32, ancestor: &mut [u32], label: &mut [u32], semi: &[u32], path: &mut Vec<u32>) -> u32 {
    if ancestor[v as usize] == NONE {
        return v;
    }
    path.clear();
    let mut at = v;
    while ancestor[ancestor[at as usize] as usize] != NONE {
        path.push(at);
        at = ancestor[at as usize];
    }
    while let Some(u) = path.pop() {
        let a = ancestor[u as usize] as usize;
        if semi[label[a] as usize] < semi[label[u as usize] as usize] {
            label[u as usize] = label[a];
        }
        ancestor[u as usize] = ancestor[a];
    }
    label[v as usize]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Dominators by definition: `d` dominates `n` if `n` cannot be reached without `d`.
    fn slow_idom(graph: &Graph<'_>) -> Vec<u32> {
        let n = graph.len();
        let reach = |without: usize| {
            let mut seen = vec![false; n];
            let mut stack = if without == 0 { vec![] } else { vec![0usize] };
            while let Some(v) = stack.pop() {
                if !std::mem::replace(&mut seen[v], true) {
                    stack.extend(
                        graph
                            .successors(v)
                            .iter()
                            .map(|&s| s as usize)
                            .filter(|&s| s != without),
                    );
                }
            }
            seen
        };
        let all = reach(usize::MAX);
        let without: Vec<_> = (0..n).map(reach).collect();
        let dominates = |d: usize, v: usize| d == v || !without[d][v];
        (0..n)
            .map(|v| {
                if v == 0 || !all[v] {
                    return NONE;
                }
                let strict: Vec<_> = (0..n).filter(|&d| all[d] && d != v && dominates(d, v)).collect();
                let idom = strict.iter().find(|&&d| strict.iter().all(|&e| dominates(e, d)));
                *idom.expect("the entry dominates") as u32
            })
            .collect()
    }

    proptest! {
        #[test]
        fn dominators_match_the_definition(edges in proptest::collection::vec((0usize..12, 0u32..12), 0..40)) {
            let mut start = vec![0u32];
            let mut succs = Vec::new();
            for n in 0..12 {
                succs.extend(edges.iter().filter(|e| e.0 == n).map(|e| e.1));
                start.push(succs.len() as u32);
            }
            let graph = Graph { start: &start, succs: &succs };
            let (pred_start, preds) = predecessors(&graph);
            let dominators = Dominators::new(&graph, &pred_start, &preds);
            prop_assert_eq!(dominators.idom, slow_idom(&graph));
        }
    }
}
