//! `spill-elim`: values that the compiler keeps in local memory, in registers that are free.
//!
//! **What.** `STL [R1+0x8], R4` and, later, `LDL R6, [R1+0x8]` become `MOV R40, R4` and `MOV R6, R40`, with `R40` free all the way between. All
//! accesses of a word of the frame become copies, or none; a copy that is read in few places may then go for good, by `copy-prop` and `dce`.
//!
//! **When legal.** The frame's address is the stack pointer, which is used for nothing but loads and stores at fixed places of it, as whole
//! words: no number of it is in another register, nothing that is called may read it, no access is indexed. No word is read before it is written. A register is
//! free for a word where it holds nothing that is needed and nobody writes it, from every write to every read; as the file counts them there may
//! be more registers than before, as long as as many warps are resident. What the file notes of an access as a spill it then notes of the copy.
//! All results stay bit for bit.
//!
//! **What it costs.** Registers that are free, and nothing else. The frame keeps its size. Words with most accesses, those in loops first, get
//! registers before others.

use std::collections::BTreeMap;

use ir::{Edit, Kernel, Liveness, OpId, Pin, ValueId};
use isa::RegFile;

use crate::copies::{Copies, merges, operands};
use crate::frame::{FrameAccess, accesses};
use crate::occupancy::{MOST, RESERVED, launchable, same_occupancy};
use crate::threads::{Held, Thread, Touch};
use crate::{Context, OptionKind, OptionSpec, Options, Pass, PassResult, Refusal, Skipped, count};

/// See the module's text.
pub struct SpillElim;

impl SpillElim {
    pub(crate) const NAME: &str = "spill-elim";
    pub(crate) const OPTIONS: &[OptionSpec] = &[OptionSpec {
        name: "registers",
        kind: OptionKind::Int { min: 0, max: 255 },
        required: false,
        help: "how many registers a thread may be given, as far as a block of the declared size still fits; 0, or nothing, for as many as leave as many warps resident",
    }];
}

impl Pass for SpillElim {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn summary(&self) -> &str {
        "keep values in free registers instead of local memory"
    }

    fn is_for_gain(&self) -> bool {
        true
    }

    fn options(&self) -> &[OptionSpec] {
        Self::OPTIONS
    }

    fn run(&self, cx: &Context<'_>, kernel: &Kernel, options: &Options) -> Result<PassResult, Refusal> {
        let accesses = accesses(cx.isa, kernel)?;
        let mut result = PassResult::default();
        if accesses.is_empty() {
            return Ok(result);
        }
        ir::may_take_registers(cx.isa, kernel).map_err(Refusal)?;
        let Some(fixed) = &cx.resources.fixed else {
            return Err(Refusal(
                "its file names registers in a way that nobody here can read".to_owned(),
            ));
        };
        let limit = match options.int("registers") {
            Some(registers @ 1..) => (registers as u32).min(launchable(kernel, cx.resources)),
            _ => same_occupancy(kernel, cx.resources),
        };
        let mut free = Free::new(kernel, fixed, limit.min(MOST).saturating_sub(RESERVED) as usize);
        let mut homes: BTreeMap<i64, Home> = BTreeMap::new();
        for group in groups(kernel, &accesses) {
            match homes_of(kernel, &accesses, &group, &mut free) {
                Ok(found) => homes.extend(found),
                Err(reason) => result.skipped.push(Skipped {
                    offset: accesses[group.accesses[0]].offset,
                    reason: reason.to_owned(),
                }),
            }
        }
        let rewritten = |access: &&FrameAccess| homes.contains_key(&access.bytes.start);
        let accesses: Vec<&FrameAccess> = accesses.iter().filter(rewritten).collect();
        result.sites = homes.len();
        result.ops = accesses.len();
        result.headline = Some(format!("{} of the frame in registers now", count(result.sites, "word")));
        result.edits.edits = Rewrite::new(cx, kernel, &homes)
            .edits(&accesses)
            .ok_or_else(|| Refusal("the target has no copy under such a guard".to_owned()))?;
        Ok(result)
    }
}

/// Words that are accessed together.
struct Group {
    /// Places in the frame.
    words: Vec<i64>,
    /// By position, ascending.
    accesses: Vec<usize>,
    /// How often they are executed, very roughly.
    weight: u64,
}

/// The groups, those that gain most first.
fn groups(kernel: &Kernel, accesses: &[FrameAccess]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut by_place: Vec<usize> = (0..accesses.len()).collect();
    by_place.sort_by_key(|n| accesses[*n].bytes.start);
    let mut end = i64::MIN;
    for n in by_place {
        let bytes = &accesses[n].bytes;
        if bytes.start >= end {
            groups.push(Group {
                words: Vec::new(),
                accesses: Vec::new(),
                weight: 0,
            });
        }
        end = end.max(bytes.end);
        if let Some(group) = groups.last_mut() {
            group.accesses.push(n);
            group.weight += 8u64.pow(depth(kernel, accesses[n].op));
            let words = bytes.clone().step_by(4).filter(|word| !group.words.contains(word));
            let words: Vec<i64> = words.collect();
            group.words.extend(words);
        }
    }
    groups.iter_mut().for_each(|group| group.accesses.sort_unstable());
    groups.sort_by_key(|group| std::cmp::Reverse(group.weight / group.words.len().max(1) as u64));
    groups
}

/// How many branches back lead around an operation, up to a few.
fn depth(kernel: &Kernel, op: OpId) -> u32 {
    let block = kernel.op(op).block();
    let around = |from: ir::BlockId, to: ir::BlockId| to <= block && block <= from;
    let back = kernel
        .blocks()
        .flat_map(|b| b.successors().map(move |(to, _)| (b.id(), to)));
    back.filter(|(from, to)| around(*from, *to)).count().min(4) as u32
}

/// Where a word is from now on.
struct Home {
    pin: Pin,
    thread: Thread,
}

/// Registers for all words of a group; none are taken where that cannot be.
fn homes_of(
    kernel: &Kernel,
    accesses: &[FrameAccess],
    group: &Group,
    free: &mut Free,
) -> Result<Vec<(i64, Home)>, &'static str> {
    let own = || group.accesses.iter().map(|n| &accesses[*n]);
    if own().any(|access| access.values.is_empty()) {
        return Err("it is accessed as less than a word, or in a way that is not known");
    }
    if own().all(|access| !access.is_load) {
        return Err("nothing reads it");
    }
    let mut homes = Vec::new();
    let before = free.clone();
    for &word in &group.words {
        let touches = own().filter(|access| access.bytes.contains(&word)).map(|access| {
            let op = kernel.op(access.op);
            let guarded = op.layout().is_none_or(|l| l.is_guarded(op.word()));
            let touch = match (access.is_load, guarded) {
                (true, _) => Touch::Read,
                (false, false) => Touch::Write,
                (false, true) => Touch::MayWrite,
            };
            (access.op, touch)
        });
        let thread = Thread::new(kernel, touches.collect()).ok_or("it may be read before it is written");
        let home = thread.and_then(|thread| match free.take(kernel, &thread) {
            Some(pin) => Ok(Home { pin, thread }),
            None => Err("no register is free all the way from where it is written to where it is read"),
        });
        match home {
            Ok(home) => homes.push((word, home)),
            Err(reason) => {
                *free = before;
                return Err(reason);
            }
        }
    }
    Ok(homes)
}

/// A set of general registers.
type Registers = [u64; 4];

/// Which registers are in use where.
#[derive(Clone)]
struct Free {
    /// By operation: those that hold something that is needed, or that it writes.
    taken: Vec<Registers>,
    /// Registers that may be taken: all below it, these aside.
    limit: usize,
    never: Registers,
}

impl Free {
    fn new(kernel: &Kernel, fixed: &[Pin], limit: usize) -> Free {
        let mut taken = vec![[0; 4]; kernel.op_count()];
        let code: Vec<OpId> = kernel
            .ops()
            .filter(|op| op.kind().is_code())
            .map(|op| op.id())
            .collect();
        ir::each_instruction(kernel, &Liveness::new(kernel), |offset, live| {
            let at = code[(offset / 16) as usize].index();
            live.iter().for_each(|v| add(&mut taken[at], kernel.pin(*v)));
        });
        let mut never = [0; 4];
        fixed.iter().for_each(|pin| add(&mut never, *pin));
        Free { taken, limit, never }
    }

    /// The lowest register that is free wherever a variable is needed; it is taken then.
    fn take(&mut self, kernel: &Kernel, thread: &Thread) -> Option<Pin> {
        let mut all = self.never;
        thread.each_live(kernel, |op| {
            let taken = self.taken[op.index()];
            all.iter_mut().zip(taken).for_each(|(all, taken)| *all |= taken);
        });
        let number = (0..self.limit).find(|n| all[n / 64] >> (n % 64) & 1 == 0)?;
        let pin = Pin::new(RegFile::R, number as u8);
        thread.each_live(kernel, |op| add(&mut self.taken[op.index()], pin));
        Some(pin)
    }
}

fn add(registers: &mut Registers, pin: Pin) {
    if pin.file() == RegFile::R && !pin.is_zero() {
        registers[usize::from(pin.number()) / 64] |= 1 << (pin.number() % 64);
    }
}

/// The edits that put words of the frame into registers.
struct Rewrite<'a> {
    copies: Copies,
    kernel: &'a Kernel,
    homes: &'a BTreeMap<i64, Home>,
    /// By word and what it may hold: which of the values that the edits make.
    made: BTreeMap<(i64, Held), ValueId>,
    edits: Vec<Edit>,
}

impl<'a> Rewrite<'a> {
    fn new(cx: &Context<'_>, kernel: &'a Kernel, homes: &'a BTreeMap<i64, Home>) -> Rewrite<'a> {
        Rewrite {
            copies: Copies::new(cx.isa),
            kernel,
            homes,
            made: BTreeMap::new(),
            edits: Vec::new(),
        }
    }

    /// Arguments first, then stores, then loads, so that nothing names what is made behind it.
    fn edits(mut self, accesses: &[&FrameAccess]) -> Option<Vec<Edit>> {
        let mut numbers = 0..;
        let mut number = |key: (i64, Held)| numbers.next().map(|n| (key, ValueId::made(n)));
        for (&word, home) in self.homes {
            let arguments = home.thread.arguments.keys();
            self.made
                .extend(arguments.filter_map(|b| number((word, Held::Argument(*b)))));
        }
        for access in accesses.iter().filter(|access| !access.is_load) {
            let words = access.bytes.clone().step_by(4);
            self.made
                .extend(words.filter_map(|word| number((word, Held::Written(access.op)))));
        }
        let loaded = self.made.len();
        for (&word, home) in self.homes {
            for (&block, passed) in &home.thread.arguments {
                self.edits.push(Edit::Argument {
                    block: ir::BlockId(block as u32),
                    pin: home.pin,
                    passed: passed.iter().map(|held| self.made[&(word, *held)]).collect(),
                });
            }
        }
        accesses
            .iter()
            .filter(|access| !access.is_load)
            .try_for_each(|a| self.store(a))?;
        let mut next = loaded;
        accesses
            .iter()
            .filter(|access| access.is_load)
            .try_for_each(|a| self.load(a, &mut next))?;
        Some(self.edits)
    }

    fn store(&mut self, access: &FrameAccess) -> Option<()> {
        let op = self.kernel.op(access.op);
        for (word, &value) in access.bytes.clone().step_by(4).zip(&access.values) {
            let home = &self.homes[&word];
            let before = home.thread.before.get(&access.op).map(|held| self.made[&(word, *held)]);
            self.edits.push(Edit::Insert {
                before: access.op,
                inst: self.copies.copy(op.inst()?, home.pin, self.kernel.pin(value))?,
                operands: operands(op, value, before),
            });
        }
        self.edits.push(Edit::Erase { op: access.op });
        Some(())
    }

    /// `next`: how many values are made before.
    fn load(&mut self, access: &FrameAccess, next: &mut usize) -> Option<()> {
        let op = self.kernel.op(access.op);
        let mut kept = merges(op).iter().copied();
        let words = access.bytes.clone().step_by(4).zip(&access.values);
        for (word, &value) in words {
            let home = &self.homes[&word];
            let from = self.made[&(word, home.thread.before[&access.op])];
            let inst = self.copies.copy(op.inst()?, self.kernel.pin(value), home.pin)?;
            let operands = operands(op, from, kept.next());
            if access.values.len() == 1 {
                self.edits.push(Edit::Replace {
                    op: access.op,
                    inst,
                    operands,
                });
                return Some(());
            }
            self.edits.push(Edit::Insert {
                before: access.op,
                inst,
                operands,
            });
            self.edits.push(Edit::ReplaceValue {
                value,
                by: ValueId::made(*next),
            });
            *next += 1;
        }
        self.edits.push(Edit::Erase { op: access.op });
        Some(())
    }
}
