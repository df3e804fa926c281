//! Scheduling bits from scratch for the kernels of a file, and another order of the instructions of each block, with the proof that every
//! operand still reads what it read.

use std::panic::{AssertUnwindSafe, catch_unwind};

use cubin::nvinfo::Value;
use cubin::{Code, CodeMove, Image};
use ir::{Def, Kernel, Source, ValueId};
use isa::Isa;
use rayon::prelude::*;
use sched::{Model, time};
use serde::Serialize;

use crate::Error;
use crate::mask::WORD;
use crate::open::{Images, Opened};
use crate::replace;

/// One kernel.
#[derive(Clone, Debug, Serialize)]
pub struct KernelSchedule {
    /// The target, as `sm_87`.
    pub target: String,
    /// The kernel's name.
    pub name: String,
    /// Instructions, padding aside.
    pub instructions: usize,
    /// Instructions that have another place now.
    pub moved: usize,
    /// Sums of the stall counts, before and after.
    pub issue_cycles: (u64, u64),
    /// The same with the waits, every load taken to come from L2.
    pub cycles: (u64, u64),
    /// Why the kernel stayed as it was.
    pub left_alone: Option<String>,
}

impl std::fmt::Display for KernelSchedule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "schedule: {} {} - {} instructions: ",
            self.target, self.name, self.instructions
        )?;
        match &self.left_alone {
            Some(why) => write!(f, "left alone: {why}"),
            None => write!(
                f,
                "{} moved, {} -> {} cycles of stalls, {} -> {} with waits",
                self.moved, self.issue_cycles.0, self.issue_cycles.1, self.cycles.0, self.cycles.1
            ),
        }
    }
}

/// What came out for a file.
pub struct Outcome {
    /// The new file.
    pub bytes: Vec<u8>,
    /// Every kernel, in file order.
    pub kernels: Vec<KernelSchedule>,
}

/// Schedules the kernels that `wanted` chooses; with `keep_order` only their scheduling bits are new. What goes wrong for one kernel leaves it
/// as it was, with the reason.
pub fn reschedule(
    opened: &Opened<'_>,
    images: &Images<'_>,
    keep_order: bool,
    wanted: &(dyn Fn(&str) -> bool + Sync),
    tick: &(dyn Fn() + Sync),
) -> Result<Outcome, Error> {
    let mut kernels = Vec::new();
    let mut replaced = Vec::new();
    for open in &images.list {
        let image = &open.image;
        let codes: Vec<_> = image.codes().iter().filter(|c| wanted(c.name)).collect();
        let isa = Isa::for_target(image.target()).map_err(|cause| Error::Isa {
            image: open.path.to_owned(),
            cause,
        })?;
        let model = Model::of(image.target());
        let done: Vec<(KernelSchedule, Option<CodeMove>)> = codes
            .par_iter()
            .map(|code| {
                let one = one_kernel(isa, model, image, code, keep_order);
                tick();
                one
            })
            .collect();
        let (mut reports, moves): (Vec<KernelSchedule>, Vec<Option<CodeMove>>) = done.into_iter().unzip();
        let moves: Vec<CodeMove> = moves.into_iter().flatten().collect();
        match cubin::movement::move_code(image, &moves) {
            Ok(bytes) => replaced.push((open.index, bytes)),
            Err(why) => reports
                .iter_mut()
                .filter(|k| k.left_alone.is_none())
                .for_each(|k| k.left_alone = Some(why.to_string())),
        }
        kernels.append(&mut reports);
    }
    Ok(Outcome {
        bytes: opened.rebuild(&replaced)?,
        kernels,
    })
}

fn one_kernel(
    isa: &'static Isa,
    model: &Model,
    image: &Image<'_>,
    code: &Code<'_>,
    keep_order: bool,
) -> (KernelSchedule, Option<CodeMove>) {
    let mut report = KernelSchedule {
        target: image.target().to_string(),
        name: code.name.to_owned(),
        instructions: code.bytes.len() / WORD,
        moved: 0,
        issue_cycles: (0, 0),
        cycles: (0, 0),
        left_alone: None,
    };
    let done = catch_unwind(AssertUnwindSafe(|| {
        rewrite(isa, model, image, code, keep_order, &mut report)
    }));
    match done.unwrap_or_else(|_| Err("a panic inside; please report it with this file".to_owned())) {
        Ok(moved) => (report, Some(moved)),
        Err(why) => {
            report.left_alone = Some(why);
            (report, None)
        }
    }
}

fn rewrite(
    isa: &'static Isa,
    model: &Model,
    image: &Image<'_>,
    code: &Code<'_>,
    keep_order: bool,
    report: &mut KernelSchedule,
) -> Result<CodeMove, String> {
    let source = Source::from_code(image.target(), code);
    let lift = |source: &Source<'_>| ir::lift(isa, source).map_err(|e| e.to_string());
    let kernel = lift(&source)?;
    let pinned = pinned(code);
    let insts: Vec<_> = isa.decode_all(code.bytes).collect();
    let may_move = |at: u32| {
        let (offset, known) = (u64::from(at) * WORD as u64, insts.get(at as usize));
        !keep_order && known.is_some_and(|inst| passes::may_move(isa, &pinned, offset, *inst))
    };
    let done = sched::schedule(isa, model, &kernel, &may_move).map_err(|e| e.to_string())?;
    let mut bytes: Vec<u8> = done.words.iter().flat_map(|w| w.0.to_le_bytes()).collect();
    bytes.extend_from_slice(&code.bytes[bytes.len()..]);
    let again = lift(&Source {
        code: &bytes,
        ..source.clone()
    })?;
    if let Some(left) = sched::check(isa, model, &again).findings.first() {
        return Err(format!("scheduled anew it is not free of hazards: {left}"));
    }
    let mut place: Vec<u32> = (0..(code.bytes.len() / WORD) as u32 + 1).collect();
    (0..).zip(&done.order).for_each(|(to, from)| place[*from as usize] = to);
    same_operands(&kernel, &again, &place)?;
    let cost = |kernel| time::straight(&sched::code::Code::new(isa, model.classes(), kernel), model);
    let (before, after) = (cost(&kernel), cost(&again));
    report.instructions = done.words.len();
    report.moved = (0..).zip(&done.order).filter(|(to, from)| to != *from).count();
    (report.issue_cycles, report.cycles) = ((before.0, after.0), (before.1, after.1));
    let offset = |at: u32| at * WORD as u32;
    Ok(CodeMove {
        section: code.section,
        code: bytes,
        instruction: place.iter().map(|at| offset(*at)).collect(),
        // Blocks stay where they are, and so does what names a place and no instruction.
        label: (0..place.len() as u32).map(offset).collect(),
        tables: Vec::new(),
    })
}

/// Byte offsets, sorted, of instructions that the file names: they are told apart by where they are.
pub(crate) fn pinned(code: &Code<'_>) -> Vec<u64> {
    let mut offsets: Vec<u64> = code.relocations.iter().map(|r| r.offset).collect();
    for attribute in &code.attributes {
        if let Ok(Value::Offsets(list)) = attribute.value() {
            offsets.extend(list.iter().map(u64::from));
        }
        offsets.extend(replace::instructions(attribute).unwrap_or_default());
    }
    offsets.iter_mut().for_each(|offset| *offset &= !15);
    offsets.sort_unstable();
    offsets.dedup();
    offsets
}

/// Proves by their def-use graphs that two kernels with the same instructions, each in its block, compute the same but for memory: `place`
/// says where the instruction is now that was at a place.
fn same_operands(old: &Kernel, new: &Kernel, place: &[u32]) -> Result<(), String> {
    let (before, after) = (Numbers::new(old), Numbers::new(new));
    let source = |numbers: &Numbers, kernel: &Kernel, place: Option<&[u32]>, v: ValueId| match kernel.def(v) {
        Def::Result(op, n) => {
            let at = numbers.0[op.index()];
            let named = at.map(|at| place.map_or(at, |p| p[at as usize]));
            (
                named,
                named.map_or(0, |_| n),
                named.is_none().then(|| kernel.pin(v)),
                None,
            )
        }
        Def::Arg(block, _) => (None, 0, Some(kernel.pin(v)), Some(block)),
    };
    let sources = |numbers: &Numbers, kernel: &Kernel, place: Option<&[u32]>, values: &[ValueId]| -> Vec<_> {
        values.iter().map(|v| source(numbers, kernel, place, *v)).collect()
    };
    let mut ops = vec![None; place.len()];
    for op in new.ops() {
        if let Some(at) = after.0[op.id().index()] {
            ops[at as usize] = Some(op);
        }
    }
    for op in old.ops() {
        let Some(at) = before.0[op.id().index()] else { continue };
        let now = ops.get(place[at as usize] as usize).copied().flatten();
        let reads = sources(&before, old, Some(place), op.operands());
        if now.is_none_or(|now| reads != sources(&after, new, None, now.operands())) {
            return Err(format!(
                "the instruction at {:#06x} would read something else",
                at as usize * WORD
            ));
        }
    }
    for (a, b) in old.blocks().zip(new.blocks()) {
        for ((to, left), (there, right)) in a.successors().zip(b.successors()) {
            let by_pin = |kernel: &Kernel, block: ir::BlockId, list: Vec<_>| {
                let pins = kernel.block(block).args().map(|v| kernel.pin(v));
                let mut pairs: Vec<_> = pins.zip(list).collect();
                pairs.sort_by_key(|p| p.0.index());
                pairs
            };
            let left = by_pin(old, to, sources(&before, old, Some(place), left));
            let right = by_pin(new, there, sources(&after, new, None, right));
            if to != there || left != right {
                return Err(format!("block {} would be entered with other values", to.index()));
            }
        }
    }
    Ok(())
}

/// By operation: the number of its instruction, in the order of the code.
struct Numbers(Vec<Option<u32>>);

impl Numbers {
    fn new(kernel: &Kernel) -> Numbers {
        let mut next = 0;
        let number = |op: ir::Op<'_>| {
            op.kind().is_code().then(|| {
                next += 1;
                next - 1
            })
        };
        Numbers(kernel.ops().map(number).collect())
    }
}
