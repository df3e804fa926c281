//! Whether two kernels compute the same: the same instructions with the same connections, whatever the registers.

use std::collections::HashMap;

use crate::kernel::{BlockId, Kernel, NONE, OpId, OpKind, ValueId};
use crate::layout::Flow;
use crate::pin::Pin;

/// Compares the def-use graphs of a kernel whose values have other pins now and of its code lifted again. `a`'s pins must be the
/// registers of `b`'s words. The error says where they differ.
///
/// Calls to unknown code take and give every register that the section names, so what only passes from one call to the next in a
/// register that `b` no longer names is no part of the comparison.
pub fn same_def_use(a: &Kernel, b: &Kernel) -> Result<(), String> {
    let mut named = vec![false; Pin::COUNT];
    b.pins.iter().for_each(|p| named[p.index()] = true);
    let mut map = Map {
        a,
        b,
        named,
        to: vec![ValueId(NONE); a.values().len()],
    };
    if a.block_count() != b.block_count() {
        return Err(format!("{} blocks became {}", a.block_count(), b.block_count()));
    }
    for n in 0..a.block_count() as u32 {
        map.define(BlockId(n))?;
    }
    for n in 0..a.block_count() as u32 {
        map.compare(BlockId(n))?;
    }
    Ok(())
}

struct Map<'k> {
    a: &'k Kernel,
    b: &'k Kernel,
    /// By register: `b` names it.
    named: Vec<bool>,
    /// By value of `a`: the value of `b`.
    to: Vec<ValueId>,
}

/// The operations of a block that stand for code.
fn code(kernel: &Kernel, block: BlockId) -> Vec<OpId> {
    let ops = kernel.block(block).ops();
    ops.filter(|op| op.kind().is_code()).map(|op| op.id()).collect()
}

impl Map<'_> {
    /// Pairs up what a block defines: results by position, everything that no word names by its register.
    fn define(&mut self, block: BlockId) -> Result<(), String> {
        let (a, b) = (self.a, self.b);
        let unnamed = |kernel: &Kernel| -> Vec<ValueId> {
            let block = kernel.block(block);
            let ops = block.ops().filter(|op| !op.kind().is_code());
            block.args().chain(ops.flat_map(|op| op.results())).collect()
        };
        self.by_pin(&unnamed(a), &unnamed(b), &format!("block {}", block.0))?;
        let (ops, others) = (code(a, block), code(b, block));
        if ops.len() != others.len() {
            return Err(format!(
                "block {}: {} instructions became {}",
                block.0,
                ops.len(),
                others.len()
            ));
        }
        for (&x, &y) in ops.iter().zip(&others) {
            let place = format!("instruction at {:#x}", a.op(x).offset());
            let own = |kernel: &Kernel, op: OpId| {
                kernel
                    .op(op)
                    .layout()
                    .map_or(0, |l| l.write_count(kernel.op(op).word()))
            };
            let (from, into): (Vec<_>, Vec<_>) = (a.op(x).results().collect(), b.op(y).results().collect());
            let (n, m) = (own(a, x), own(b, y));
            if n != m {
                return Err(format!("{place}: {n} results became {m}"));
            }
            from[..n]
                .iter()
                .zip(&into[..m])
                .for_each(|(v, w)| self.to[v.index()] = *w);
            self.by_pin(&from[n..], &into[m..], &place)?;
        }
        Ok(())
    }

    /// Values without a place in a word: each of `from` is the one of `into` in the same register, if there is one.
    fn by_pin(&mut self, from: &[ValueId], into: &[ValueId], place: &str) -> Result<(), String> {
        let by_pin: HashMap<Pin, ValueId> = into.iter().map(|v| (self.b.pin(*v), *v)).collect();
        let mut taken = HashMap::new();
        for &v in from {
            let pin = self.a.pin(v);
            if let Some(other) = taken.insert(pin, v) {
                return Err(format!("{place}: values {} and {} are both in {pin}", v.0, other.0));
            }
            if let Some(w) = by_pin.get(&pin) {
                self.to[v.index()] = *w;
            }
        }
        Ok(())
    }

    fn compare(&self, block: BlockId) -> Result<(), String> {
        let (a, b) = (self.a, self.b);
        let fail = |at: OpId, what: &str| Err(format!("instruction at {:#x}: {what}", a.op(at).offset()));
        for (&x, &y) in code(a, block).iter().zip(&code(b, block)) {
            let (op, other) = (a.op(x), b.op(y));
            let (Some(layout), Some(now)) = (op.layout(), other.layout()) else {
                match op.kind() == OpKind::Opaque && other.word() == op.word() {
                    true => continue,
                    false => return fail(x, "it is another instruction"),
                }
            };
            let kept = |w: isa::Word, l: &crate::Layout| w.0 & !l.register_mask;
            if kept(op.word(), layout) != kept(other.word(), now) {
                return fail(x, "it is another instruction");
            }
            let (n, m) = (layout.own_operands(op.word()), now.own_operands(other.word()));
            let (reads, others) = (op.operands(), other.operands());
            if n != m || !reads[..n].iter().zip(others).all(|(v, w)| self.same(*v, *w)) {
                return fail(x, "an operand reads another value");
            }
            if matches!(layout.flow, Flow::Call | Flow::Return) {
                let by_pin: HashMap<Pin, ValueId> = others[m..].iter().map(|v| (b.pin(*v), *v)).collect();
                let same = |v: &ValueId| by_pin.get(&a.pin(*v)).is_none_or(|w| self.same(*v, *w));
                if !reads[n..].iter().all(same) {
                    return fail(x, "the other side of the call gets another value");
                }
            } else if reads.len() != others.len()
                || !reads[n..].iter().zip(&others[m..]).all(|(v, w)| self.same(*v, *w))
            {
                return fail(x, "what is looked for in a register is another value");
            }
        }
        let edges = |k: &Kernel| k.block(block).successors().map(|(to, _)| to).collect::<Vec<_>>();
        if edges(a) != edges(b) {
            return Err(format!("block {} leads elsewhere", block.0));
        }
        for ((to, from), (_, into)) in a.block(block).successors().zip(b.block(block).successors()) {
            let passed: HashMap<ValueId, ValueId> = b.block(to).args().zip(into.iter().copied()).collect();
            let mut count = 0;
            for (arg, &value) in a
                .block(to)
                .args()
                .zip(from)
                .filter(|(arg, _)| self.named[a.pin(*arg).index()])
            {
                count += 1;
                let other = passed.get(&self.to[arg.index()]);
                if !other.is_some_and(|w| self.same(value, *w)) {
                    let pin = a.pin(arg);
                    return Err(format!(
                        "block {} passes another value in {pin} to block {}",
                        block.0, to.0
                    ));
                }
            }
            if count != b.block(to).args().len() {
                return Err(format!("block {} has another number of arguments", to.0));
            }
        }
        Ok(())
    }

    fn same(&self, v: ValueId, w: ValueId) -> bool {
        let zero = self.a.pin(v).is_zero();
        if zero {
            self.b.pin(w) == self.a.pin(v)
        } else {
            self.to[v.index()] == w
        }
    }
}
