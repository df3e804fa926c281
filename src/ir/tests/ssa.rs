//! The def-use chains against a second construction, straight from Braun et al. (2013), that shares nothing with the first.

mod common;

use std::collections::{HashMap, HashSet};

use sass2mlir_ir as ir;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Value {
    /// The n-th result of an operation.
    Result(u32, u32),
    /// The phi of a register at a block.
    Phi(u32, ir::Pin),
}

/// On-the-fly construction over a complete graph.
struct Braun<'k> {
    kernel: &'k ir::Kernel,
    predecessors: Vec<Vec<u32>>,
    /// Last definition of a register in a block; phis are added on the way.
    ends: HashMap<(u32, ir::Pin), Value>,
    phis: HashMap<Value, Vec<Value>>,
    /// Phis that turned out to be another value.
    same: HashMap<Value, Value>,
}

impl Braun<'_> {
    fn resolve(&self, mut value: Value) -> Value {
        while let Some(next) = self.same.get(&value) {
            value = *next;
        }
        value
    }

    fn at_end(&mut self, block: u32, pin: ir::Pin) -> Value {
        match self.ends.get(&(block, pin)) {
            Some(value) => self.resolve(*value),
            None => {
                let value = self.at_start(block, pin);
                *self.ends.entry((block, pin)).or_insert(value)
            }
        }
    }

    fn at_start(&mut self, block: u32, pin: ir::Pin) -> Value {
        let predecessors = self.predecessors[block as usize].clone();
        match predecessors[..] {
            [] => panic!("{pin} is read in block {block} and never defined"),
            [one] => self.at_end(one, pin),
            _ => {
                let phi = Value::Phi(block, pin);
                if self.phis.contains_key(&phi) {
                    return self.resolve(phi);
                }
                self.phis.insert(phi, Vec::new());
                self.ends.entry((block, pin)).or_insert(phi);
                let operands = predecessors.iter().map(|p| self.at_end(*p, pin)).collect();
                self.phis.insert(phi, operands);
                self.resolve(phi)
            }
        }
    }

    /// Removes phis that merge one value with themselves until none is left.
    fn simplify(&mut self) {
        let mut phis: Vec<Value> = self.phis.keys().copied().collect();
        phis.sort();
        loop {
            let mut changed = false;
            for &phi in phis.iter().filter(|p| !self.same.contains_key(*p)).collect::<Vec<_>>() {
                let mut others: Vec<Value> = self.phis[&phi]
                    .iter()
                    .map(|v| self.resolve(*v))
                    .filter(|v| *v != phi)
                    .collect();
                others.sort();
                others.dedup();
                if let [one] = others[..] {
                    self.same.insert(phi, one);
                    changed = true;
                }
            }
            if !changed {
                return;
            }
        }
    }

    /// Removes sets of phis that only merge each other and one value (section 3.2 of the paper): irreducible code has them.
    fn simplify_sets(&mut self) {
        loop {
            let phis: Vec<Value> = self
                .phis
                .keys()
                .copied()
                .filter(|p| !self.same.contains_key(p))
                .collect();
            let reach = |from: Value, this: &Self| {
                let mut seen = HashSet::new();
                let mut stack = vec![from];
                while let Some(phi) = stack.pop() {
                    let operands = this.phis[&phi].iter().map(|v| this.resolve(*v));
                    stack.extend(operands.filter(|v| matches!(v, Value::Phi(..)) && seen.insert(*v)));
                }
                seen
            };
            let reached: HashMap<Value, HashSet<Value>> = phis.iter().map(|p| (*p, reach(*p, self))).collect();
            let redundant = phis.iter().find_map(|phi| {
                let set: HashSet<Value> = reached[phi]
                    .iter()
                    .copied()
                    .filter(|other| reached[other].contains(phi))
                    .collect();
                let operands = set.iter().flat_map(|p| &self.phis[p]).map(|v| self.resolve(*v));
                let outer: HashSet<Value> = operands.filter(|v| !set.contains(v)).collect();
                (outer.len() == 1).then_some((set, outer))
            });
            let Some((set, outer)) = redundant else { return };
            for phi in set {
                self.same.extend(outer.iter().map(|one| (phi, *one)));
            }
            self.simplify();
        }
    }

    fn named(&self, value: ir::ValueId) -> Value {
        match self.kernel.def(value) {
            ir::Def::Result(op, n) => Value::Result(op.0, n),
            ir::Def::Arg(block, _) => Value::Phi(block.0, self.kernel.pin(value)),
        }
    }
}

fn compare(kernel: &ir::Kernel) -> usize {
    let mut predecessors = vec![Vec::new(); kernel.block_count()];
    for block in kernel.blocks() {
        for (to, _) in block.successors() {
            predecessors[to.index()].push(block.id().0);
        }
    }
    let mut ends = HashMap::new();
    for op in kernel.ops() {
        for (n, value) in op.results().enumerate() {
            ends.insert((op.block().0, kernel.pin(value)), Value::Result(op.id().0, n as u32));
        }
    }
    let mut braun = Braun {
        kernel,
        predecessors,
        ends,
        phis: HashMap::new(),
        same: HashMap::new(),
    };
    // First every read, then simplification, then the comparison.
    let mut reads = Vec::new();
    for block in kernel.blocks() {
        let mut local: HashMap<ir::Pin, Value> = HashMap::new();
        for op in block.ops() {
            for &operand in op.operands() {
                let pin = kernel.pin(operand);
                if pin.is_zero() {
                    continue;
                }
                let value = match local.get(&pin) {
                    Some(value) => *value,
                    None => braun.at_start(block.id().0, pin),
                };
                reads.push((op.id(), operand, value));
            }
            for (n, value) in op.results().enumerate() {
                local.insert(kernel.pin(value), Value::Result(op.id().0, n as u32));
            }
        }
    }
    braun.simplify();
    let args: usize = kernel.blocks().map(|b| b.args().len()).sum();
    if args != braun.phis.len() - braun.same.len() {
        braun.simplify_sets();
    }
    for (op, operand, value) in &reads {
        let expected = braun.resolve(*value);
        assert_eq!(
            braun.named(*operand),
            expected,
            "{}: operand of operation {} in {:?}",
            kernel.name,
            op.0,
            kernel.pin(*operand)
        );
    }
    // The same phis, with the same operands.
    let mut incoming = vec![Vec::new(); kernel.block_count()];
    for from in kernel.blocks() {
        for (to, args) in from.successors() {
            incoming[to.index()].push(args);
        }
    }
    let mut phis = 0;
    for block in kernel.blocks() {
        for (k, arg) in block.args().enumerate() {
            let phi = braun.named(arg);
            let needed = braun.phis.contains_key(&phi) && !braun.same.contains_key(&phi);
            assert!(needed, "{}: {phi:?} is not needed", kernel.name);
            let expected: Vec<Value> = braun.phis[&phi].iter().map(|v| braun.resolve(*v)).collect();
            let found: Vec<Value> = incoming[block.id().index()]
                .iter()
                .map(|args| braun.named(args[k]))
                .collect();
            assert_eq!(found, expected, "{}: {phi:?}", kernel.name);
            phis += 1;
        }
    }
    assert_eq!(
        phis,
        braun.phis.len() - braun.same.len(),
        "{}: number of phis",
        kernel.name
    );
    reads.len()
}

#[test]
fn def_use_is_what_braun_gives() {
    let work = || {
        let mut reads = 0;
        common::each_code(|isa, source| reads += compare(&ir::lift(isa, &source).unwrap()));
        assert!(reads > 10_000, "{reads}");
    };
    // Reading through a chain of blocks recurses.
    std::thread::Builder::new()
        .stack_size(256 << 20)
        .spawn(work)
        .unwrap()
        .join()
        .unwrap();
}
