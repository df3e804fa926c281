//! Which values are the same in all lanes of a warp.
//!
//! What changes from lane to lane comes from thread indices, lane numbers, memory, registers at entry, and from which way a lane came. All
//! else computes the same from the same operands. Where the lanes of a warp are not together ([`Convergence`]), one value of the program is
//! several of the warp at different times: only what never changes in a launch is the same there.

use ir::{Def, Kernel, Op, OpKind, Use, Uses, ValueId};
use isa::{Effects, Inst, Isa, RegFile, Space};

use crate::convergence::Convergence;

/// How much the lanes of a warp agree about a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Agreement {
    /// The same in all lanes whenever they look: it hangs on the launch and the block only.
    Always,
    /// The same in all lanes that run, which are together where it is computed.
    Together,
    /// It may differ.
    Differs,
}

/// Special registers that are the same for all threads of a block as long as it runs.
const OF_THE_BLOCK: [&str; 7] = [
    "SR_CTAID.X",
    "SR_CTAID.Y",
    "SR_CTAID.Z",
    "SR_NTID.X",
    "SR_NTID.Y",
    "SR_NTID.Z",
    "SRZ",
];

/// What is known of every value of a kernel.
pub struct Uniformity {
    agreement: Vec<Agreement>,
    /// Where the lanes are together.
    pub convergence: Convergence,
}

impl Uniformity {
    /// Begins with all values agreed upon and takes back what cannot be, until nothing changes.
    pub fn new(isa: &Isa, kernel: &Kernel) -> Uniformity {
        let rules: Vec<Rule> = kernel.ops().map(|op| rule(isa, kernel, op)).collect();
        let uses = kernel.uses();
        let mut agreement = vec![Agreement::Always; kernel.values().len()];
        loop {
            let differs = |op: Op<'_>| op.operands().iter().any(|v| agreement[v.index()] == Agreement::Differs);
            let convergence = Convergence::new(isa, kernel, &differs);
            let before = agreement.clone();
            spread(kernel, &uses, &rules, &convergence, &mut agreement);
            if before == agreement {
                return Uniformity { agreement, convergence };
            }
        }
    }

    /// How much lanes agree about a value.
    pub fn of(&self, value: ValueId) -> Agreement {
        self.agreement[value.index()]
    }
}

/// What the results of an operation hang on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// On the operands only.
    Operands,
    /// On all lanes together.
    Warp,
    /// On the lane.
    Lane,
}

fn rule(isa: &Isa, kernel: &Kernel, op: Op<'_>) -> Rule {
    match op.kind() {
        OpKind::Constant(_) => Rule::Operands,
        // A warp has one of each.
        OpKind::LiveIn => {
            let of_warp = |v| matches!(kernel.pin(v).file(), RegFile::UR | RegFile::UP | RegFile::B);
            let of_warp = op.results().all(of_warp);
            if of_warp { Rule::Warp } else { Rule::Lane }
        }
        OpKind::Inst => op.inst().map_or(Rule::Lane, |inst| instruction(isa, inst)),
        _ => Rule::Lane,
    }
}

fn instruction(isa: &Isa, inst: Inst) -> Rule {
    let semantics = isa.semantics(inst);
    let mnemonic = isa.form(inst.form).map_or("", |f| f.mnemonic());
    match mnemonic {
        "S2R" | "S2UR" | "CS2R" | "CS2UR" => {
            let mut text = String::new();
            let known = isa.write_text(inst, 0, &mut text, None).is_ok();
            let named = text.rsplit([' ', ',']).next().unwrap_or_default();
            if known && OF_THE_BLOCK.contains(&named) {
                Rule::Operands
            } else {
                Rule::Lane
            }
        }
        "VOTE" | "VOTEU" | "R2UR" | "REDUX" => Rule::Warp,
        _ if !semantics.known => Rule::Lane,
        _ if semantics.effects.is_none() && !semantics.convergence => Rule::Operands,
        "LDC" | "ULDC" | "LDCU" if semantics.effects == Effects::READ && semantics.space == Space::Constant => {
            Rule::Operands
        }
        _ => Rule::Lane,
    }
}

/// Takes agreement back along operands and block arguments.
fn spread(kernel: &Kernel, uses: &Uses, rules: &[Rule], convergence: &Convergence, agreement: &mut [Agreement]) {
    let mut work: Vec<ValueId> = Vec::new();
    let lower = |agreement: &mut [Agreement], work: &mut Vec<ValueId>, v: ValueId, to: Agreement| {
        if agreement[v.index()] < to {
            agreement[v.index()] = to;
            work.push(v);
        }
    };
    let result = |agreement: &[Agreement], op: Op<'_>| {
        let of_operands = op.operands().iter().map(|v| agreement[v.index()]).max();
        let own = match rules[op.id().index()] {
            Rule::Operands => of_operands.unwrap_or(Agreement::Always),
            Rule::Warp => match op.guard() {
                Some((guard, _)) if agreement[guard.index()] == Agreement::Differs => Agreement::Differs,
                _ => Agreement::Together,
            },
            Rule::Lane => Agreement::Differs,
        };
        match own {
            Agreement::Together if !convergence.together(op) => Agreement::Differs,
            own => own,
        }
    };
    for op in kernel.ops() {
        let own = result(agreement, op);
        op.results().for_each(|v| lower(agreement, &mut work, v, own));
    }
    let mut together = vec![true; kernel.block_count()];
    for block in kernel.blocks() {
        for (to, _) in block.successors() {
            together[to.index()] &= convergence.at_start(to) && (block.id().0 == 0 || convergence.at_end(block.id()));
        }
    }
    for block in kernel.blocks() {
        for v in block.args() {
            let own = match together[block.id().index()] {
                true => Agreement::Together,
                false => Agreement::Differs,
            };
            lower(agreement, &mut work, v, own);
        }
        for (to, values) in block.successors() {
            for (arg, value) in kernel.block(to).args().zip(values) {
                let own = agreement[value.index()];
                lower(agreement, &mut work, arg, own);
            }
        }
    }
    while let Some(v) = work.pop() {
        for used in uses.of(v) {
            match *used {
                Use::Operand(op, _) => {
                    let op = kernel.op(op);
                    let own = result(agreement, op);
                    op.results().for_each(|v| lower(agreement, &mut work, v, own));
                }
                Use::Edge { from, successor, arg } => {
                    let to = kernel
                        .block(from)
                        .successors()
                        .nth(successor as usize)
                        .map(|(to, _)| to);
                    let arg = to.and_then(|to| kernel.block(to).args().nth(arg as usize));
                    let own = agreement[v.index()];
                    arg.into_iter().for_each(|arg| lower(agreement, &mut work, arg, own));
                }
            }
        }
    }
    debug_assert!(
        kernel
            .values()
            .all(|v| !matches!(kernel.def(v), Def::Arg(..)) || agreement[v.index()] > Agreement::Always)
    );
}
