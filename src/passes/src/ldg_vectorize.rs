//! `ldg-vectorize`: loads of neighbouring words of global memory as one.
//!
//! **What.** `LDG.E R4, [R2.64+0x8]` and `LDG.E R9, [R2.64+0xc]` become `LDG.E.64 R4, [R2.64+0x8]`, and what read `R9` reads `R5`. So do up to four
//! words, and pairs, become an `LDG.E.128`. The joined load stands where one of them stood, the first that can be.
//!
//! **When legal.** The loads are in one block, under the same guard, and differ in destination, offset and size only; they are weak, and none is of less
//! than a word. The wider address is proven to be a multiple of its size: by arithmetic, or by a wide access that every way to them goes
//! through, under no guard or theirs, at an address that differs by a known number. Nothing between the first and the last writes memory, orders accesses,
//! waits, is a call, or is unknown. No register is overwritten while it is needed, and none read before it is there. The results get registers
//! side by side: those that they have, or, where all that reads them is in the block and names them one by one, registers that are free,
//! with as many warps resident. The file names neither a load nor a reader that changes. All results stay bit for bit.
//!
//! **What it costs.** A result of the first load may be there later, those of the others are needed in registers earlier.

use std::collections::{BTreeMap, BTreeSet};

use ir::{Edit, EditList, Flow, Kernel, Liveness, Op, OpId, OpKind, Pin, Use, Uses, ValueId};
use isa::{Control, Effects, FieldKind, Inst, Isa, OperandIx, RegFile, Word};

use crate::alignment::{Address, Alignment, Guard};
use crate::block_order::BlockOrder;
use crate::copies::merges;
use crate::occupancy::{MOST, RESERVED, same_occupancy};
use crate::values::reads_by_name;
use crate::{
    Context, OptionError, OptionKind, OptionSpec, Options, Pass, PassResult, Refusal, Skipped, count, instructions,
};

/// See the module's text.
pub struct LdgVectorize;

impl LdgVectorize {
    pub(crate) const NAME: &str = "ldg-vectorize";
    pub(crate) const OPTIONS: &[OptionSpec] = &[OptionSpec {
        name: "widest",
        kind: OptionKind::Int { min: 0, max: 128 },
        required: false,
        help: "bits of a joined load at most: 64 or 128; 0, or nothing, for 128",
    }];
}

/// Sizes of joined loads in bytes, with their modifiers.
const WIDE: [(i64, &str); 2] = [(16, "128"), (8, "64")];

/// Modifiers of weak loads: how wide they and the address are, that nobody writes what they read, and what they tell caches. Targets before
/// sm_80 print `SYS` on all.
const WEAK: [&str; 13] = [
    "E", "64", "128", "SYS", "CONSTANT", "EF", "EL", "LU", "EU", "NA", "LTC64B", "LTC128B", "LTC256B",
];

impl Pass for LdgVectorize {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn summary(&self) -> &str {
        "join loads of neighbouring words of global memory"
    }

    fn is_for_gain(&self) -> bool {
        true
    }

    fn options(&self) -> &[OptionSpec] {
        Self::OPTIONS
    }

    fn check(&self, options: &Options) -> Result<(), OptionError> {
        match options.int("widest") {
            None | Some(0 | 64 | 128) => Ok(()),
            Some(bits) => Err(OptionError {
                option: "widest",
                message: format!("no load has {bits} bits and joins others: 64 or 128"),
            }),
        }
    }

    fn run(&self, cx: &Context<'_>, kernel: &Kernel, options: &Options) -> Result<PassResult, Refusal> {
        let widest = match options.int("widest") {
            Some(64) => 8,
            _ => 16,
        };
        let mut result = PassResult::default();
        let loads: Vec<Load> = instructions(kernel)
            .filter(|(offset, ..)| cx.pinned.binary_search(offset).is_err())
            .filter_map(|(offset, op, inst)| Load::of(cx.isa, kernel, kernel.op(op), inst, offset))
            .collect();
        let wide = || WIDE.into_iter().filter(|(size, _)| *size <= widest);
        let by_block = loads.chunk_by(|a, b| kernel.op(a.op).block() == kernel.op(b.op).block());
        let by_block =
            by_block.filter(|own| wide().any(|wide| !windows(cx.isa, own, wide, &BTreeSet::new()).is_empty()));
        let by_block: Vec<&[Load]> = by_block.collect();
        if by_block.is_empty() {
            return Ok(result);
        }
        let mut work = Work::new(cx, kernel);
        for own in by_block {
            let mut block = work.block(kernel.op(own[0].op));
            for wide in wide() {
                for window in windows(cx.isa, own, wide, &block.joined) {
                    work.try_one(&mut block, &window);
                }
            }
            let rest = block.reasons.into_iter().filter(|(op, _)| !block.joined.contains(op));
            let offset = |op: OpId| own.iter().find(|load| load.op == op).map_or(0, |load| load.offset);
            result.skipped.extend(rest.map(|(op, reason)| Skipped {
                offset: offset(op),
                reason,
            }));
        }
        (result.sites, result.ops) = (work.sites, work.ops);
        result.headline = Some(format!(
            "{} joined into {}",
            count(work.ops, "load"),
            count(work.sites, "wider one")
        ));
        result.edits = work.edits;
        Ok(result)
    }
}

/// A load that may be joined with others.
struct Load {
    op: OpId,
    /// Byte offset of the instruction.
    offset: u64,
    inst: Inst,
    address: Address,
    guard: Guard,
    /// Bytes.
    size: i64,
    /// What it reads, what a guarded one keeps not included.
    reads: Vec<ValueId>,
    values: Vec<ValueId>,
}

impl Load {
    fn of(isa: &Isa, kernel: &Kernel, op: Op<'_>, inst: Inst, offset: u64) -> Option<Load> {
        let layout = op.layout().filter(|_| op.kind() == OpKind::Inst)?;
        let semantics = isa.semantics(inst);
        let is_load = isa.form(inst.form)?.mnemonic() == "LDG" && semantics.known && semantics.effects == Effects::READ;
        let weak = |modifier| WEAK.contains(&modifier);
        if !is_load || !isa.has_modifier(inst, "E") || !isa.modifiers(inst).all(weak) {
            return None;
        }
        let wide = WIDE.into_iter().find(|(_, name)| isa.has_modifier(inst, name));
        let size = wide.map_or(4, |(size, _)| size);
        let values: Vec<ValueId> = op.results().collect();
        let general = values.iter().all(|v| kernel.pin(*v).file() == RegFile::R);
        let mut targets = layout
            .slots
            .iter()
            .filter(|slot| slot.writes() && slot.file == RegFile::R);
        let tuple = targets
            .next()
            .is_some_and(|slot| usize::from(slot.width) == values.len());
        let whole = general && tuple && targets.next().is_none() && values.len() as i64 * 4 == size;
        whole.then_some(())?;
        Some(Load {
            op: op.id(),
            offset,
            inst,
            address: Address::of(isa, kernel, op, inst)?,
            guard: Guard::of(kernel, op),
            size,
            reads: op.operands()[..layout.read_count()].to_vec(),
            values,
        })
    }

    /// The field of the number in its address.
    fn offset_field(&self, isa: &Isa) -> Option<usize> {
        let form = isa.form(self.inst.form)?;
        let fields = form.fields().iter().enumerate();
        let mut numbers = fields.filter(|(n, f)| f.kind == FieldKind::Int && isa.is_active(self.inst, *n));
        let (n, field) = numbers.next().filter(|_| numbers.next().is_none())?;
        (field.get(self.inst.word) == self.address.offset).then_some(n)
    }

    /// The load with another size and address, into registers from `first` on, without scheduling bits. `None` if there is none.
    fn widened(&self, isa: &Isa, (size, name): (i64, &str), offset: i64, first: u8) -> Option<Inst> {
        let now = WIDE.into_iter().find(|(size, _)| *size == self.size);
        let drop: Vec<&str> = now.iter().map(|(_, name)| *name).collect();
        let wide = match self.size == size {
            true => return None,
            false => isa.edit_modifiers(self.inst, &drop, &[name]).ok()?,
        };
        let there = isa.set_field(wide, self.offset_field(isa)?, offset).ok()?;
        let form = isa.form(there.form)?;
        let written = |n: &OperandIx| {
            isa.accesses(there)
                .any(|a| a.dir.writes() && !a.is_zero && a.operand == *n)
        };
        let is_target = |f: &isa::Field| f.kind == FieldKind::Reg(RegFile::R) && written(&f.operand);
        let mut targets = form.fields().iter().enumerate().filter(|(_, f)| is_target(f));
        let (target, _) = targets.next().filter(|_| targets.next().is_none())?;
        let made = isa.set_field(there, target, first.into()).ok()?;
        let word = Word(made.word.0 & !isa::control::MASK);
        let made = isa.decode(word);
        let mut results = isa.accesses(made).filter(|a| a.dir.writes() && !a.is_zero);
        let result = results.next().filter(|_| results.next().is_none())?;
        let fits = (result.file, result.reg, i64::from(result.width) * 4) == (RegFile::R, first, size);
        (fits && made.form == there.form).then_some(made)
    }
}

/// Loads that together read what a wider one would.
struct Window<'l> {
    wide: (i64, &'static str),
    /// In the order of the memory.
    loads: Vec<&'l Load>,
}

impl Window<'_> {
    fn values(&self) -> Vec<ValueId> {
        self.loads.iter().flat_map(|load| load.values.iter().copied()).collect()
    }

    /// In the order of the code.
    fn ops(&self) -> Vec<OpId> {
        let mut ops: Vec<OpId> = self.loads.iter().map(|load| load.op).collect();
        ops.sort_unstable();
        ops
    }
}

/// All windows of a block's loads but for those of `gone`, which may overlap.
fn windows<'l>(isa: &Isa, loads: &'l [Load], wide: (i64, &'static str), gone: &BTreeSet<OpId>) -> Vec<Window<'l>> {
    let mut alike: BTreeMap<(u128, &[ValueId]), BTreeMap<i64, &'l Load>> = BTreeMap::new();
    for load in loads
        .iter()
        .filter(|load| !gone.contains(&load.op) && load.size < wide.0)
    {
        // Those that would be the same word at the same address differ in nothing else.
        if let Some(key) = load.widened(isa, wide, 0, 0) {
            let own = alike.entry((key.word.0, &load.reads)).or_default();
            own.entry(load.address.offset).or_insert(load);
        }
    }
    let mut windows = Vec::new();
    for loads in alike.values() {
        for &start in loads.keys() {
            let mut found = Vec::new();
            let mut at = start;
            while let Some(load) = loads.get(&at).filter(|load| at + load.size <= start + wide.0) {
                found.push(*load);
                at += load.size;
            }
            if at == start + wide.0 {
                windows.push(Window { wide, loads: found });
            }
        }
    }
    windows
}

/// One kernel.
struct Work<'k> {
    cx: &'k Context<'k>,
    kernel: &'k Kernel,
    uses: Uses,
    liveness: Liveness,
    alignment: Alignment<'k>,
    /// By number, registers that a result may be given; or why none.
    free: Result<[bool; 256], String>,
    edits: EditList,
    /// How many values the edits make.
    made: usize,
    sites: usize,
    ops: usize,
}

/// What became of a block.
struct Here<'k> {
    order: BlockOrder<'k>,
    /// Loads that are joined.
    joined: BTreeSet<OpId>,
    /// Why others are not.
    reasons: BTreeMap<OpId, String>,
}

impl<'k> Work<'k> {
    fn new(cx: &'k Context<'k>, kernel: &'k Kernel) -> Work<'k> {
        Work {
            cx,
            kernel,
            uses: kernel.uses(),
            liveness: Liveness::new(kernel),
            alignment: Alignment::new(cx.isa, kernel),
            free: free(cx, kernel),
            edits: EditList::default(),
            made: 0,
            sites: 0,
            ops: 0,
        }
    }

    fn block(&self, op: Op<'_>) -> Here<'k> {
        Here {
            order: BlockOrder::new(self.kernel, &self.liveness, self.kernel.block(op.block())),
            joined: BTreeSet::new(),
            reasons: BTreeMap::new(),
        }
    }

    /// Joins the loads of a window, if none of them is joined already.
    fn try_one(&mut self, here: &mut Here<'k>, window: &Window<'_>) {
        let ops = window.ops();
        if ops.iter().any(|op| here.joined.contains(op)) {
            return;
        }
        match self.join(here, window, &ops) {
            Ok(()) => {
                here.joined.extend(&ops);
                self.sites += 1;
                self.ops += ops.len();
            }
            Err(why) => {
                here.reasons.insert(ops[0], why);
            }
        }
    }

    fn join(&mut self, here: &mut Here<'k>, window: &Window<'_>, ops: &[OpId]) -> Result<(), String> {
        let lowest = window.loads[0];
        let (size, _) = window.wide;
        if !self.alignment.is_multiple(&lowest.address, size, ops[0], lowest.guard) {
            return Err(format!("nothing proves that the address is a multiple of {size}"));
        }
        let between = (ops[0].0 + 1..ops[ops.len() - 1].0).map(OpId);
        if let Some(op) = between.filter(|op| !ops.contains(op)).find(|op| !self.is_quiet(*op)) {
            let inst = self.kernel.op(op).inst();
            let name = inst
                .and_then(|inst| self.cx.isa.form(inst.form))
                .map_or("a label", |form| form.mnemonic());
            return Err(format!("{name} is between them"));
        }
        let mut why = "a register of theirs has another use between them".to_owned();
        for place in ops {
            let order = here.order.joined(ops, *place);
            match self.registers(&order, window, *place) {
                Ok((first, order)) => {
                    self.rewrite(window, *place, first)
                        .ok_or("the target has no such load")?;
                    here.order = order;
                    return Ok(());
                }
                Err(Some(other)) => why = other,
                Err(None) => {}
            }
        }
        Err(why)
    }

    /// It reads memory at most, and goes on to the next instruction whatever others do.
    fn is_quiet(&self, op: OpId) -> bool {
        let op = self.kernel.op(op);
        let (Some(inst), Some(layout)) = (op.inst(), op.layout()) else {
            return false;
        };
        let semantics = self.cx.isa.semantics(inst);
        op.kind() == OpKind::Inst
            && layout.flow == Flow::None
            && !layout.has_label
            && semantics.known
            && !semantics.convergence
            && (semantics.effects.is_none() || semantics.effects == Effects::READ)
    }

    /// The first of the registers that the results get where the loads are joined at `place`, and the block with them there. `None`: it cannot be
    /// in any registers.
    fn registers(
        &self,
        order: &BlockOrder<'k>,
        window: &Window<'_>,
        place: OpId,
    ) -> Result<(u8, BlockOrder<'k>), Option<String>> {
        let values = window.values();
        let words = values.len();
        let now: Vec<usize> = values
            .iter()
            .map(|v| usize::from(self.kernel.pin(*v).number()))
            .collect();
        let there = |first: usize| {
            let moved = values
                .iter()
                .zip(first..)
                .filter(|(v, n)| usize::from(self.kernel.pin(**v).number()) != *n);
            let moved = moved.fold(order.clone(), |order, (v, n)| {
                order.moved(*v, Pin::new(RegFile::R, n as u8))
            });
            moved.holds().then_some((first as u8, moved))
        };
        if now[0].is_multiple_of(words) && now.iter().copied().eq(now[0]..now[0] + words) {
            return there(now[0]).ok_or(None);
        }
        let free = self.free.as_ref().map_err(|why| Some(why.clone()))?;
        let fixed: Vec<bool> = values.iter().map(|v| !self.may_change(*v)).collect();
        if window.loads[0].guard != Guard::Always || fixed.iter().filter(|fixed| **fixed).count() == words {
            return Err(Some(
                "their results have to be in registers that are not side by side".to_owned(),
            ));
        }
        let taken = order.taken(place, &values).ok_or(None)?;
        let fits = |first: usize| {
            let mut words = now.iter().zip(&fixed).zip(&taken).zip(first..);
            words.all(|(((now, fixed), taken), n)| *now == n || !fixed && free[n] && !taken[n])
        };
        let own = now.iter().enumerate().filter_map(|(k, n)| n.checked_sub(k));
        let own = own.filter(|first| first.is_multiple_of(words) && first + words <= usize::from(u8::MAX));
        let all = own.chain((0..=usize::from(u8::MAX) - words).step_by(words));
        let found = all.filter(|first| fits(*first)).find_map(there);
        found.ok_or_else(|| Some("no registers side by side are free for their results".to_owned()))
    }

    /// All that reads the value can read it in another register: it is in the same block, and names it by itself.
    fn may_change(&self, value: ValueId) -> bool {
        let kernel = self.kernel;
        let ir::Def::Result(home, _) = kernel.def(value) else {
            return false;
        };
        let fixed = self.cx.resources.fixed.as_ref();
        fixed.is_some_and(|fixed| !fixed.contains(&kernel.pin(value)))
            && self.uses.of(value).iter().all(|used| {
                let Use::Operand(id, operand) = *used else {
                    return false;
                };
                let op = kernel.op(id);
                let slot = op.layout().and_then(|l| l.read_slot(operand as usize));
                let form = op.inst().and_then(|inst| self.cx.isa.form(inst.form));
                op.block() == kernel.op(home).block()
                    && reads_by_name(op, value)
                    // Another one may be joined as well.
                    && form.is_some_and(|form| form.mnemonic() != "LDG")
                    && slot.is_some_and(|(slot, _)| slot.width == 1 && !slot.writes() && slot.field.is_some())
                    && self.cx.pinned.binary_search(&op.offset()).is_err()
            })
    }

    /// The edits. `None` if the load cannot be made; nothing is edited then.
    fn rewrite(&mut self, window: &Window<'_>, place: OpId, first: u8) -> Option<()> {
        let (lowest, op) = (window.loads[0], self.kernel.op(place));
        let made = lowest.widened(self.cx.isa, window.wide, lowest.address.offset, first)?;
        let control = Control {
            reuse: 0,
            ..Control::of(op.word())
        };
        let inst = self.cx.isa.decode(control.apply(made.word));
        let kept = window.loads.iter().flat_map(|load| merges(self.kernel.op(load.op)));
        let edits = &mut self.edits.edits;
        edits.push(Edit::Insert {
            before: place,
            inst,
            operands: lowest.reads.iter().chain(kept).copied().collect(),
        });
        for (value, n) in window.values().into_iter().zip(first..) {
            let by = ValueId::made(self.made);
            self.made += 1;
            if self.kernel.pin(value) == Pin::new(RegFile::R, n) {
                edits.push(Edit::ReplaceValue { value, by });
                continue;
            }
            edits.extend(self.uses.of(value).iter().filter_map(|used| match *used {
                Use::Operand(op, operand) => Some(Edit::ReplaceOperand {
                    op,
                    operand: operand as usize,
                    value: by,
                }),
                Use::Edge { .. } => None,
            }));
        }
        edits.extend(window.ops().into_iter().map(|op| Edit::Erase { op }));
        Some(())
    }
}

/// By number, registers that a value may be given which has another one.
fn free(cx: &Context<'_>, kernel: &Kernel) -> Result<[bool; 256], String> {
    ir::may_take_registers(cx.isa, kernel)?;
    let Some(fixed) = &cx.resources.fixed else {
        return Err("its file names registers in a way that nobody here can read".to_owned());
    };
    let limit = same_occupancy(kernel, cx.resources).min(MOST).saturating_sub(RESERVED);
    let mut free = [false; 256];
    // Who is called, or calls code that is not known, may have only what it names.
    let shares = kernel.ops().any(|op| match op.layout().map(|l| l.flow) {
        Some(Flow::Call) => op.label().is_none(),
        Some(Flow::Return) => true,
        _ => false,
    });
    match shares {
        true => {
            let named = kernel.values().map(|v| kernel.pin(v));
            let general = named.filter(|pin| pin.file() == RegFile::R && !pin.is_zero());
            general.for_each(|pin| free[usize::from(pin.number())] = true);
        }
        false => free[..limit as usize].fill(true),
    }
    // The stack pointer is others' as well.
    free[1] = false;
    for pin in fixed.iter().filter(|pin| pin.file() == RegFile::R) {
        free[usize::from(pin.number())] = false;
    }
    Ok(free)
}
