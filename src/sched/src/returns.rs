//! What called functions leave in flight for their callers: `ptxas` lets a function return before its last results are there, and its callers wait
//! for them.

use ir::Flow;

use crate::code::{Code, Step};
use crate::state::{FAR, Flight, State};

/// The functions that are called in a piece of code, and what is in flight behind each of them.
#[derive(Clone)]
pub(crate) struct Returns {
    functions: Vec<Function>,
}

#[derive(Clone)]
struct Function {
    /// The block where it begins.
    first: u32,
    /// By block: it is the function's own.
    own: Vec<bool>,
    /// By block: the function may get there, by calls, too.
    reached: Vec<bool>,
    /// Blocks with calls of it.
    callers: Vec<u32>,
    /// What of its own is in flight where it returns.
    left: Option<State>,
}

impl Returns {
    /// The functions, before anything is known of them.
    pub fn of(code: &Code) -> Returns {
        let mut functions: Vec<Function> = Vec::new();
        for (b, range) in code.blocks.iter().enumerate() {
            for first in code.steps[range.start as usize..range.end as usize]
                .iter()
                .flat_map(|step| code.callees(step))
            {
                let known = functions.iter().position(|f| f.first == *first);
                let at = known.unwrap_or_else(|| {
                    functions.push(Function {
                        first: *first,
                        own: reached(code, *first, false),
                        reached: reached(code, *first, true),
                        callers: Vec::new(),
                        left: None,
                    });
                    functions.len() - 1
                });
                if functions[at].callers.last() != Some(&(b as u32)) {
                    functions[at].callers.push(b as u32);
                }
            }
        }
        Returns { functions }
    }

    /// Forgets what was in flight.
    pub fn clear(&mut self) {
        self.functions.iter_mut().for_each(|f| f.left = None);
    }

    /// Takes note of what is in flight at the end of a block, if that returns. Calls back with the blocks for whose calls that is news.
    pub fn leave(&mut self, code: &Code, block: usize, state: &State, news: &mut dyn FnMut(u32)) {
        if !returns(code, block) {
            return;
        }
        for function in self.functions.iter_mut().filter(|f| f.own[block]) {
            let mut left = state.clone();
            left.flights.retain(|f| function.reached[code.block_of(f.step)]);
            let changed = match &mut function.left {
                Some(old) => old.join(&left),
                none => {
                    *none = Some(left);
                    true
                }
            };
            if changed {
                function.callers.iter().for_each(|b| news(*b));
            }
        }
    }

    /// What is in flight behind a call: what was before, and what the function leaves. Says whether that is more.
    pub fn come_back(&self, code: &Code, call: &Step, state: &mut State) -> bool {
        let callees = code.callees(call);
        let called = self.functions.iter().filter(|f| callees.contains(&f.first));
        let mut more = false;
        for left in called.filter_map(|f| f.left.as_ref()) {
            state.sort();
            more |= state.join(left);
        }
        more
    }

    /// The returns of the functions that an instruction calls.
    pub fn ends(&self, code: &Code, call: &Step) -> Vec<u32> {
        let callees = code.callees(call);
        let called = self.functions.iter().filter(|f| callees.contains(&f.first));
        let blocks = called.flat_map(|f| (0..code.blocks.len()).filter(|b| f.own[*b] && returns(code, *b)));
        blocks.map(|b| code.blocks[b].end - 1).collect()
    }

    /// So many more cycles go by from a flight's beginning to the return of the functions that an instruction calls.
    pub fn delay(&mut self, code: &Code, call: &Step, flight: &Flight, cycles: u16) {
        let callees = code.callees(call);
        let called = self.functions.iter_mut().filter(|f| callees.contains(&f.first));
        let left = called
            .filter_map(|f| f.left.as_mut())
            .flat_map(|state| &mut state.flights);
        left.filter(|f| f.key() == flight.key())
            .for_each(|f| f.elapsed = (f.elapsed + cycles).min(FAR));
    }

    /// Whether a function left this in flight that is called by the one around a block.
    pub fn is_left(&self, code: &Code, flight: &Flight, block: usize) -> bool {
        let from = code.block_of(flight.step);
        let around: Vec<&Function> = self.functions.iter().filter(|f| f.own[block]).collect();
        let calls = |first: u32| around.is_empty() || around.iter().any(|f| f.reached[first as usize]);
        let mut left = self.functions.iter().filter(|f| f.own[from] && !f.own[block]);
        left.any(|f| calls(f.first))
    }

    /// Whether a function that returns at the end of the block, or one that it calls, left this in flight; else one of its callers did.
    pub fn is_own(&self, code: &Code, flight: &Flight, block: usize) -> bool {
        let from = code.block_of(flight.step);
        let mut around = self.functions.iter().filter(|f| f.own[block]).peekable();
        // What nobody here calls is called from elsewhere.
        around.peek().is_none() || around.any(|f| f.reached[from])
    }
}

/// Whether a block ends in a return.
fn returns(code: &Code, block: usize) -> bool {
    let range = &code.blocks[block];
    !range.is_empty() && code.steps[range.end as usize - 1].flow == Flow::Return
}

/// By block: there is a way from `first`, if `calls` by calls, too.
fn reached(code: &Code, first: u32, calls: bool) -> Vec<bool> {
    let mut seen = vec![false; code.blocks.len()];
    let mut stack = vec![first];
    while let Some(b) = stack.pop() {
        if std::mem::replace(&mut seen[b as usize], true) {
            continue;
        }
        stack.extend(code.successors(b as usize));
        if calls {
            let range = &code.blocks[b as usize];
            let steps = &code.steps[range.start as usize..range.end as usize];
            stack.extend(steps.iter().flat_map(|step| code.callees(step)));
        }
    }
    seen
}
