//! What functions do to the pairs that hold the descriptor, by the time that they return.

use super::descriptor::{Code, Pairs, ways_out};

/// What a callee that the section does not show may overwrite: the pairs below UR36. `ptxas` has the descriptor in UR36 wherever it needs it
/// behind such a call, and does not load it again.
pub(super) const UNSHOWN: Pairs = (1 << 36) - 1;

/// For each instruction, the pairs that may be overwritten from there on until its function returns. A load of the descriptor takes nothing
/// away from its own pair. Where a branch is not known, or leads out of the section, that is all of them.
pub(super) fn overwritten_until_return(code: &Code<'_>) -> Vec<Pairs> {
    let count = code.insts.len();
    let mut overwritten: Vec<Pairs> = vec![0; count];
    let mut comes_from: Vec<Vec<usize>> = vec![Vec::new(); count];
    let mut todo: Vec<(usize, Pairs)> = Vec::new();
    for at in 0..count {
        let ways = ways_out(code.isa, code.insts[at]);
        let mut own = code.overwritten(at) & !code.loads[at].map_or(0, |pair| 1 << pair);
        let mut leads_to = |place: Option<usize>, unknown: Pairs| match place.and_then(|to| comes_from.get_mut(to)) {
            Some(from) => from.push(at),
            None => own |= unknown,
        };
        if ways.falls_through {
            leads_to(Some(at + 1), Pairs::MAX);
        }
        if ways.jumps {
            leads_to(code.target(at), if ways.calls { UNSHOWN } else { Pairs::MAX });
        }
        if ways.anywhere {
            own = Pairs::MAX;
        }
        todo.push((at, own));
    }
    while let Some((at, more)) = todo.pop() {
        let all = overwritten[at] | more;
        if all != overwritten[at] {
            overwritten[at] = all;
            todo.extend(comes_from[at].iter().map(|&from| (from, all)));
        }
    }
    overwritten
}
