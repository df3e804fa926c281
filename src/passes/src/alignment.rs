//! Which addresses of global memory are known to be multiples of 8 or 16: by the arithmetic that made them, and by accesses that would have failed
//! otherwise.

use std::collections::BTreeMap;
use std::rc::Rc;

use ir::{BlockId, Def, Flow, Kernel, Op, OpId, OpKind, Pin, ValueId};
use isa::{FieldKind, Inst, Isa};

use crate::frame::parse;
use crate::instructions;
use crate::other_form::Parts;

/// The widest alignment that counts, in bytes: all numbers here are modulo this.
const MOST: i64 = 16;
/// How far arithmetic is followed back.
const DEPTH: u32 = 8;
/// How many ways to write a number are kept.
const FORMS: usize = 12;

/// Where an instruction accesses memory: registers, or pairs of them, and a number, added up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    /// The lower words of what the registers hold, at most two.
    pub bases: Vec<ValueId>,
    /// In bytes.
    pub offset: i64,
}

impl Address {
    /// `[R2.64+UR4+0x8]` of an instruction; `None` for what is written in another way.
    pub fn of(isa: &Isa, kernel: &Kernel, op: Op<'_>, inst: Inst) -> Option<Address> {
        let mut text = String::new();
        isa.write_text(inst, 0, &mut text, None).ok()?;
        // Behind a descriptor, `desc[UR4][R2.64]`, if there is one.
        let inside = text.rsplit_once('[')?.1.split_once(']')?.0;
        let mut address = Address {
            bases: Vec::new(),
            offset: 0,
        };
        for (n, term) in inside.split('+').enumerate() {
            match (n, parse(term)) {
                (1.., Some(offset)) => address.offset += offset,
                _ => {
                    let name = term.strip_suffix(".64").or(term.strip_suffix(".U32")).unwrap_or(term);
                    address.bases.push(read(kernel, op, name)?);
                }
            }
        }
        (1..=2).contains(&address.bases.len()).then_some(address)
    }
}

/// When an instruction is executed, in code that is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Guard {
    Always,
    /// Where a predicate is true, or, with `true`, false.
    If(ValueId, bool),
    Never,
}

impl Guard {
    pub fn of(kernel: &Kernel, op: Op<'_>) -> Guard {
        match op.guard() {
            Some((value, negated)) if kernel.pin(value).is_zero() => match negated {
                true => Guard::Never,
                false => Guard::Always,
            },
            Some((value, negated)) => Guard::If(value, negated),
            None => Guard::Always,
        }
    }
}

/// What is the same number wherever it is read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Root {
    Value(ValueId),
    /// Both, added up.
    Sum(ValueId, ValueId),
    /// A word of the constant banks, as `c[0x0][0x160]`.
    Constant(String),
}

/// One way to write a number: `root`, if there is one, and `plus`, and a multiple of `step`, which is a power of two.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Form {
    root: Option<Root>,
    plus: i64,
    step: i64,
}

impl Form {
    fn new(root: Option<Root>, plus: i64, step: i64) -> Form {
        let step = step.min(MOST);
        let plus = plus.rem_euclid(step);
        Form { root, plus, step }
    }

    /// Any multiple of `step`.
    fn multiple(step: i64) -> Form {
        Form::new(None, 0, step)
    }
}

/// `root + plus` is a multiple of `align` wherever this access was executed.
struct Proof {
    op: OpId,
    guard: Guard,
    plus: i64,
    align: i64,
}

/// What a kernel shows of its addresses.
pub(crate) struct Alignment<'k> {
    isa: &'k Isa,
    kernel: &'k Kernel,
    /// By value, under which guard it is read, and how far back it was followed.
    forms: BTreeMap<(ValueId, Guard, u32), Rc<[Form]>>,
    proofs: BTreeMap<Root, Vec<Proof>>,
    dominance: Dominance,
}

impl<'k> Alignment<'k> {
    /// Looks at every access of the kernel.
    pub fn new(isa: &'k Isa, kernel: &'k Kernel) -> Alignment<'k> {
        let mut all = Alignment {
            isa,
            kernel,
            forms: BTreeMap::new(),
            proofs: BTreeMap::new(),
            dominance: Dominance::new(kernel),
        };
        for (_, id, inst) in instructions(kernel) {
            all.learn(kernel.op(id), inst);
        }
        all
    }

    /// The address is a multiple of `width` wherever `at`, which has that guard, is executed.
    pub fn is_multiple(&mut self, address: &Address, width: i64, at: OpId, guard: Guard) -> bool {
        let forms = self.written(address, guard);
        let within = |plus: i64| plus.rem_euclid(width) == 0;
        forms.iter().filter(|form| form.step >= width).any(|form| {
            let plus = form.plus + address.offset;
            let Some(root) = &form.root else { return within(plus) };
            self.proofs.get(root).into_iter().flatten().any(|proof| {
                let as_often = proof.guard == Guard::Always || proof.guard == guard;
                proof.align >= width
                    && within(plus - proof.plus)
                    && as_often
                    && self.dominance.comes_before(self.kernel, proof.op, at)
            })
        })
    }

    /// What an access says of its address: a pair or four words at once must lie at a multiple of their size.
    fn learn(&mut self, op: Op<'_>, inst: Inst) {
        let mnemonic = self.isa.form(inst.form).map_or("", |form| form.mnemonic());
        let is_load = mnemonic == "LDG";
        // A load into nothing might not be one.
        if !is_load && mnemonic != "STG" || is_load && op.results().len() == 0 {
            return;
        }
        let mut align = 4;
        for modifier in self.isa.modifiers(inst) {
            match modifier {
                "64" => align = 8,
                "128" => align = 16,
                // `U.128` lies anywhere; what others mean to alignment is not known.
                "U" | "U8" | "S8" | "U16" | "S16" | "ZD" => return,
                _ if modifier.starts_with("INVALID") => return,
                _ => {}
            }
        }
        let guard = Guard::of(self.kernel, op);
        let address = Address::of(self.isa, self.kernel, op, inst);
        let Some(address) = address.filter(|_| align > 4) else {
            return;
        };
        for form in self.written(&address, guard) {
            let Some(root) = form.root else { continue };
            self.proofs.entry(root).or_default().push(Proof {
                op: op.id(),
                guard,
                plus: form.plus + address.offset,
                align: align.min(form.step),
            });
        }
    }

    /// Ways to write what is in the registers of an address.
    fn written(&mut self, address: &Address, guard: Guard) -> Vec<Form> {
        match address.bases[..] {
            [a] => self.forms(a, guard, DEPTH).to_vec(),
            [a, b] => {
                let mut forms = sum(&self.forms(a, guard, DEPTH), &self.forms(b, guard, DEPTH));
                forms.push(Form::new(Some(Root::Sum(a, b)), 0, MOST));
                forms
            }
            _ => Vec::new(),
        }
    }

    /// Ways to write the value where it is read under a guard, itself among them.
    fn forms(&mut self, value: ValueId, guard: Guard, depth: u32) -> Rc<[Form]> {
        if let Some(known) = self.forms.get(&(value, guard, depth)) {
            return known.clone();
        }
        let mut forms = vec![Form::new(Some(Root::Value(value)), 0, MOST)];
        if depth > 0 {
            forms.extend(self.made(value, guard, depth).unwrap_or_default());
        }
        forms.truncate(FORMS);
        let forms: Rc<[Form]> = forms.into();
        self.forms.insert((value, guard, depth), forms.clone());
        forms
    }

    /// Ways to write what an instruction computes into the first register of its result. `None` if it is not known how.
    fn made(&mut self, value: ValueId, guard: Guard, depth: u32) -> Option<Vec<Form>> {
        let Def::Result(id, _) = self.kernel.def(value) else {
            return None;
        };
        let op = self.kernel.op(id);
        op.layout()
            .filter(|l| op.kind() == OpKind::Inst && l.flow == Flow::None)?;
        // Where the instruction is skipped the value is another one, but then it is not read either.
        if ![Guard::Always, guard].contains(&Guard::of(self.kernel, op)) {
            return None;
        }
        let inst = op.inst()?;
        let mnemonic = self.isa.form(inst.form)?.mnemonic();
        let parts = Parts::of(self.isa, inst)?;
        let (_, modifiers) = parts.head.split_once(mnemonic)?;
        let (to, sources) = parts.operands.split_first()?;
        if *to != self.kernel.pin(value).to_string() {
            return None;
        }
        // Carries that go out, and predicates that are not used.
        let is_predicate = |o: &&String| {
            let name = o.trim_start_matches('!');
            name.starts_with('P') || name.starts_with("UP")
        };
        let sources: Vec<&str> = sources.iter().filter(|o| !is_predicate(o)).map(|o| &**o).collect();
        let mut term = |text: &str| self.term(op, text, guard, depth - 1);
        // The uniform datapath computes the same.
        match (mnemonic.strip_prefix('U').unwrap_or(mnemonic), modifiers, &sources[..]) {
            ("MOV", "", [a]) => Some(term(a)),
            ("LDC" | "LDCU", "" | ".64", [a]) if a.starts_with("c[") => Some(term(a)),
            ("IADD3", "" | ".64", [a, b, c]) => Some(sum(&sum(&term(a), &term(b)), &term(c))),
            ("IADD" | "VIADD", "" | ".64", [a, b]) => Some(sum(&term(a), &term(b))),
            ("IMAD", "" | ".U32" | ".WIDE" | ".WIDE.U32" | ".MOV.U32" | ".IADD" | ".SHL" | ".SHL.U32", [a, b, c]) => {
                let product = match (number(a), number(b)) {
                    (Some(a), _) => product(&term(b), a),
                    (_, Some(b)) => product(&term(a), b),
                    _ => vec![Form::multiple(divisor(&term(a)) * divisor(&term(b)))],
                };
                Some(sum(&product, &term(c)))
            }
            ("LEA", "", [a, b, by]) => Some(sum(&product(&term(a), shift(by)?), &term(b))),
            ("SHF", ".L.U32", [a, by, "RZ" | "URZ"]) => Some(product(&term(a), shift(by)?)),
            // A number, half by half.
            ("HFMA2", "" | ".MMA", ["-RZ", "RZ", _, _]) => {
                let form = self.isa.form(inst.form)?;
                let low = form.fields().iter().rfind(|f| f.kind == FieldKind::F16)?;
                Some(vec![Form::new(None, low.get(inst.word), MOST)])
            }
            // And.
            ("LOP3", ".LUT", [_, mask, _, "0xc0"]) => Some(vec![Form::multiple(power(number(mask)?))]),
            // Or.
            ("LOP3", ".LUT", [a, more, _, "0xfc"]) => {
                let more = number(more)?;
                let known = term(a).into_iter().filter(|form| form.root.is_none());
                Some(known.map(|form| Form::new(None, form.plus | more, form.step)).collect())
            }
            _ => None,
        }
    }

    /// Ways to write an operand.
    fn term(&mut self, op: Op<'_>, text: &str, guard: Guard, depth: u32) -> Vec<Form> {
        if let Some(n) = number(text) {
            return vec![Form::new(None, n, MOST)];
        }
        // Without a register in it.
        if text.starts_with("c[") && !text.contains('R') {
            return vec![Form::new(Some(Root::Constant(text.to_owned())), 0, MOST)];
        }
        if let Some(text) = text.strip_prefix('-') {
            let forms = self.term(op, text, guard, depth);
            let multiples = forms.into_iter().filter(|form| form.root.is_none());
            return multiples.map(|form| Form::new(None, -form.plus, form.step)).collect();
        }
        match read(self.kernel, op, text) {
            Some(value) => self.forms(value, guard, depth).to_vec(),
            None => Vec::new(),
        }
    }
}

/// The value that an operand of an instruction names: a register, or the first of several.
fn read(kernel: &Kernel, op: Op<'_>, name: &str) -> Option<ValueId> {
    let pin = Pin::parse(name).filter(|pin| !pin.is_zero())?;
    op.operands().iter().copied().find(|v| kernel.pin(*v) == pin)
}

/// The number that an operand is.
fn number(text: &str) -> Option<i64> {
    match text {
        "RZ" | "URZ" => Some(0),
        _ => parse(text),
    }
}

/// What a shift to the left multiplies by.
fn shift(by: &str) -> Option<i64> {
    number(by).filter(|by| (0..32).contains(by)).map(|by| 1 << by)
}

/// The highest power of two that divides a number, up to the highest that counts.
fn power(n: i64) -> i64 {
    1 << n.trailing_zeros().min(MOST.trailing_zeros())
}

fn sum(a: &[Form], b: &[Form]) -> Vec<Form> {
    let mut sums = Vec::new();
    for a in a {
        for b in b.iter().filter(|b| a.root.is_none() || b.root.is_none()) {
            let root = a.root.clone().or_else(|| b.root.clone());
            let form = Form::new(root, a.plus + b.plus, a.step.min(b.step));
            if form.step > 1 && !sums.contains(&form) {
                sums.push(form);
            }
        }
    }
    sums.truncate(FORMS);
    sums
}

fn product(a: &[Form], by: i64) -> Vec<Form> {
    if by == 1 {
        return a.to_vec();
    }
    let known = a.iter().filter(|form| form.root.is_none());
    let products = known.map(|form| Form::new(None, form.plus * (by % MOST), form.step * power(by)));
    products.chain([Form::multiple(power(by))]).collect()
}

/// A power of two that divides a number.
fn divisor(forms: &[Form]) -> i64 {
    let known = forms.iter().filter(|form| form.root.is_none());
    known.map(|form| power(form.plus).min(form.step)).max().unwrap_or(1)
}

/// By block, which blocks all ways to it go through, as a set of bits; none for a block that nothing leads to.
struct Dominance(Vec<Option<Vec<u64>>>);

impl Dominance {
    fn new(kernel: &Kernel) -> Dominance {
        let blocks = kernel.block_count();
        let mut through: Vec<Option<Vec<u64>>> = vec![None; blocks];
        through[0] = Some(with(&vec![0; blocks.div_ceil(64)], 0));
        loop {
            let mut changed = false;
            for block in kernel.blocks() {
                let Some(here) = through[block.id().index()].clone() else {
                    continue;
                };
                for (to, _) in block.successors().filter(|(to, _)| to.index() != 0) {
                    let to = to.index();
                    let now = match &through[to] {
                        None => with(&here, to),
                        Some(before) => with(&before.iter().zip(&here).map(|(a, b)| a & b).collect::<Vec<_>>(), to),
                    };
                    if through[to].as_ref() != Some(&now) {
                        through[to] = Some(now);
                        changed = true;
                    }
                }
            }
            if !changed {
                return Dominance(through);
            }
        }
    }

    /// Whoever gets to `then` has come through `first` before.
    fn comes_before(&self, kernel: &Kernel, first: OpId, then: OpId) -> bool {
        let [a, b]: [BlockId; 2] = [first, then].map(|op| kernel.op(op).block());
        if a == b {
            return first < then;
        }
        let through = self.0[b.index()].as_ref();
        through.is_some_and(|set| set[a.index() / 64] >> (a.index() % 64) & 1 == 1)
    }
}

fn with(set: &[u64], member: usize) -> Vec<u64> {
    let mut set = set.to_vec();
    set[member / 64] |= 1 << (member % 64);
    set
}
