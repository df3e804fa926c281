//! The same instruction on the uniform datapath, or with a uniform register or a number of the constant banks for an operand.
//!
//! They are found by their text: the assembler knows which forms a target has, and refuses what it has not. What it gives is held against
//! the registers that are wanted, so that no text can mean another instruction than the one asked for.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use isa::asm::{Assembler, Statement};
use isa::{Access, Control, Inst, Isa, OperandIx, RegFile, Target};

/// Makes instructions for one target.
pub(crate) struct OtherForms {
    /// The target's instruction set.
    pub isa: &'static Isa,
    /// Made when it is needed, and given back at the end.
    learned: Option<Learned>,
}

/// What kernels before have asked for, for the next ones: most have the same few texts.
struct Learned {
    assembler: Assembler<'static>,
    /// What became of a text.
    texts: HashMap<String, Option<Inst>>,
}

/// More texts than a usual kernel has; what grew beyond this is not kept for the next one.
const TEXTS: usize = 1 << 14;

/// By target: what is in nobody's hands now.
fn pool(isa: &Isa) -> MutexGuard<'static, Vec<Learned>> {
    static POOLS: [Mutex<Vec<Learned>>; Target::ALL.len()] = [const { Mutex::new(Vec::new()) }; Target::ALL.len()];
    POOLS[isa.target() as usize]
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
}

impl Drop for OtherForms {
    fn drop(&mut self) {
        pool(self.isa).extend(self.learned.take().filter(|l| l.texts.len() <= TEXTS));
    }
}

impl OtherForms {
    /// For the target of `isa`.
    pub fn new(isa: &'static Isa) -> OtherForms {
        let learned = pool(isa).pop();
        OtherForms { isa, learned }
    }

    /// What computes the one result of `inst` into uniform register `to`, `renamed` saying which uniform register holds what general register
    /// `inst` reads. `None`: the uniform datapath of the target has no such instruction.
    pub fn on_uniform(&mut self, inst: Inst, to: u8, renamed: &dyn Fn(u8) -> Option<u8>) -> Option<Inst> {
        let mnemonic = self.isa.form(inst.form)?.mnemonic();
        let counterpart = self.isa.semantics(inst).uniform;
        if counterpart.is_none() && !PLAIN.contains(&mnemonic) {
            return None;
        }
        if self
            .isa
            .guard(inst)
            .is_some_and(|(file, reg, negated)| negated || !self.isa.is_zero(file, reg))
        {
            return None;
        }
        let mut read: Vec<u8> = Vec::new();
        for access in self.isa.accesses(inst).filter(counts) {
            match (access.file, access.dir.reads()) {
                (RegFile::P, _) => return None,
                (RegFile::R, true) => read.push(renamed(access.reg)?),
                (_, true) => read.push(access.reg),
                _ => {}
            }
        }
        let parts = Parts::of(self.isa, inst)?;
        let texts = uniform_texts(mnemonic, counterpart, &parts, to, renamed)?;
        read.sort_unstable();
        let wanted = |made: &[Access]| {
            let mut now: Vec<u8> = made.iter().filter(|a| a.dir.reads()).map(|a| a.reg).collect();
            now.sort_unstable();
            let mut general = made
                .iter()
                .filter(|a| matches!(a.file, RegFile::R | RegFile::P) && !a.is_zero);
            let mut written = made.iter().filter(|a| a.dir.writes() && !a.is_zero);
            now == read
                && general.next().is_none()
                && written
                    .next()
                    .is_some_and(|a| (a.file, a.reg, a.width) == (RegFile::UR, to, 1))
                && written.next().is_none()
        };
        let control = Control {
            reuse: 0,
            ..Control::of(inst.word)
        };
        texts
            .iter()
            .find_map(|text| self.assembled(text, control).filter(|i| wanted(&self.accesses(*i))))
    }

    /// The number of the constant banks, `c[0x0][0x160]`, that an instruction copies into a general register; `None` if it does something else.
    pub fn copied_constant(&self, inst: Inst) -> Option<String> {
        // Without a register in it.
        self.copied(inst)
            .filter(|source| source.starts_with("c[") && !source.contains('R'))
    }

    /// The same of a general register: its number.
    pub fn copied_register(&self, inst: Inst) -> Option<u8> {
        self.copied(inst)?.strip_prefix('R')?.parse().ok()
    }

    fn copied(&self, inst: Inst) -> Option<String> {
        let parts = Parts::of(self.isa, inst)?;
        let mnemonic = self.isa.form(inst.form)?.mnemonic();
        let modifiers = parts.head.strip_prefix(mnemonic)?;
        copied(mnemonic, modifiers, parts.operands.get(1..)?, "RZ").cloned()
    }

    /// `inst` with uniform register `from` in place of general register `register`, wherever it reads that. `None`: an operand takes no
    /// uniform register, or the others leave none.
    pub fn reading(&mut self, inst: Inst, register: u8, from: u8) -> Option<Inst> {
        self.reading_instead(inst, register, &format!("UR{from}"), Some((RegFile::UR, from)))
    }

    /// `inst` with a number of the constant banks, `c[0x0][0x160]`, in place of general register `register`. `None` as above.
    pub fn reading_constant(&mut self, inst: Inst, register: u8, constant: &str) -> Option<Inst> {
        self.reading_instead(inst, register, constant, None)
    }

    /// How many registers `inst` reads where a number of the constant banks is its operand `n`, if a register is there instead. `None`: no
    /// register can be there.
    pub fn registers_in_place(&mut self, inst: Inst, n: usize) -> Option<u8> {
        let parts = Parts::of(self.isa, inst)?;
        let at = parts.numbers.iter().position(|m| *m == n)?;
        let constant = &parts.operands[at];
        let (start, end) = (constant.find("c[")?, constant.rfind(']')? + 1);
        let named: Vec<u8> = self.accesses(inst).iter().map(|a| a.reg & !3).collect();
        let free = (8..248).step_by(8).find(|register| !named.contains(register))?;
        let mut operands = parts.operands.clone();
        operands[at] = format!("{}R{free}{}", &constant[..start], &constant[end..]);
        let control = Control::of(inst.word);
        let made = self.assembled(&parts.joined(&operands), Control { reuse: 0, ..control })?;
        let accesses = self.accesses(made);
        let mut own = accesses.iter().filter(|a| a.file == RegFile::R && a.reg == free);
        own.next().filter(|a| a.dir.reads()).map(|a| a.width)
    }

    /// `by` is the text that takes the place of the register, and `named` the register in it.
    fn reading_instead(&mut self, inst: Inst, register: u8, by: &str, named: Option<(RegFile, u8)>) -> Option<Inst> {
        let before = self.accesses(inst);
        let reads = |a: &&Access| a.file == RegFile::R && a.dir.reads() && a.reg == register && !a.is_zero;
        let own: Vec<&Access> = before.iter().filter(reads).collect();
        let [access] = own[..] else { return None };
        let OperandIx::Printed(n) = access.operand else {
            return None;
        };
        if access.width != 1 || access.dir.writes() {
            return None;
        }
        let mut expected: Vec<(RegFile, u8, u8, bool)> = before.iter().map(touched).collect();
        let at = expected.iter().position(|t| *t == touched(access))?;
        match named {
            Some((file, number)) => (expected[at].0, expected[at].1) = (file, number),
            None => drop(expected.remove(at)),
        }
        expected.sort_unstable_by_key(|t| (t.0 as u8, t.1, t.2, t.3));
        let mnemonic = self.isa.form(inst.form)?.mnemonic();
        let control = Control {
            reuse: 0,
            ..Control::of(inst.word)
        };
        let parts = Parts::of(self.isa, inst)?;
        let texts = parts.with_operand(usize::from(n), register, by, mnemonic);
        texts.iter().find_map(|text| {
            let made = self.assembled(text, control)?;
            let mut now: Vec<_> = self.accesses(made).iter().map(touched).collect();
            now.sort_unstable_by_key(|t| (t.0 as u8, t.1, t.2, t.3));
            (now == expected).then_some(made)
        })
    }

    fn assembled(&mut self, text: &str, control: Control) -> Option<Inst> {
        let learned = self.learned.get_or_insert_with(|| Learned {
            assembler: Assembler::new(self.isa),
            texts: HashMap::new(),
        });
        let made = match learned.texts.get(text) {
            Some(known) => *known,
            None => {
                let statement = Statement {
                    text,
                    ..Statement::default()
                };
                let made = learned.assembler.assemble(&statement, control).ok();
                learned.texts.insert(text.to_owned(), made);
                made
            }
        }?;
        let word = control.apply(made.word);
        let again = self.isa.decode(word);
        (again.form == made.form).then_some(again)
    }

    fn accesses(&self, inst: Inst) -> Vec<Access> {
        self.isa.accesses(inst).filter(counts).collect()
    }
}

/// What can do on the uniform datapath what another instruction does there ([`uniform_texts`]), beside counterparts.
const PLAIN: [&str; 3] = ["MOV", "LDC", "IMAD"];

/// Registers that count: constants are not told apart from what is not there.
fn counts(a: &Access) -> bool {
    a.width > 0 && !a.is_zero
}

fn touched(a: &Access) -> (RegFile, u8, u8, bool) {
    (a.file, a.reg, a.width, a.dir.writes())
}

/// The text of an instruction, taken apart.
pub(crate) struct Parts {
    /// Guard, mnemonic and modifiers.
    pub head: String,
    /// Printed operands, without operand-cache flags.
    pub operands: Vec<String>,
    /// By printed operand: its number in the form.
    numbers: Vec<usize>,
}

impl Parts {
    pub fn of(isa: &Isa, inst: Inst) -> Option<Parts> {
        let mut text = String::new();
        isa.write_text(inst, 0, &mut text, None).ok()?;
        let guard = if text.starts_with('@') { text.find(' ')? + 1 } else { 0 };
        let end = text[guard..].find(' ').map(|at| guard + at)?;
        let operand = |o: &str| match o.contains(".reuse") {
            true => o.replace(".reuse", ""),
            false => o.to_owned(),
        };
        let operands: Vec<String> = text[end + 1..].split(", ").map(operand).collect();
        let shown = |n: &usize| isa.operand(inst, *n).is_some_and(|o| !o.is_elided());
        let numbers: Vec<usize> = (0..isa.operand_count(inst)).filter(shown).collect();
        (numbers.len() == operands.len()).then(|| Parts {
            head: text[..end].to_owned(),
            operands,
            numbers,
        })
    }

    /// Texts with `by` in operand `n`, or in one that it may change places with.
    fn with_operand(&self, n: usize, register: u8, by: &str, mnemonic: &str) -> Vec<String> {
        let Some(at) = self.numbers.iter().position(|m| *m == n) else {
            return Vec::new();
        };
        let replaced = renamed(&self.operands[at], register, by);
        let mut texts = Vec::new();
        let mut operands = self.operands.clone();
        operands[at] = replaced;
        texts.push(self.joined(&operands));
        let modifiers: Vec<&str> = self
            .head
            .rsplit(' ')
            .next()
            .unwrap_or_default()
            .split('.')
            .skip(1)
            .collect();
        // Products by 1 and sums with RZ have other spellings, which have room for a uniform register.
        match (mnemonic, &modifiers[..], &operands[..]) {
            ("IMAD", ["MOV", "U32"], [to, a, b, source]) if a == "RZ" && b == "RZ" => {
                texts.push(self.spelled("MOV", &[to, source]));
            }
            ("IMAD", ["IADD"], [to, a, one, c]) if one == "0x1" => {
                texts.push(self.spelled("IADD3", &[to, a, c, "RZ"]));
                texts.push(self.spelled("IADD3", &[to, c, a, "RZ"]));
            }
            _ => {}
        }
        let sources = sources(mnemonic, &modifiers, &operands);
        if sources.contains(&at) {
            for other in sources.filter(|other| *other != at) {
                let mut swapped = operands.clone();
                swapped.swap(at, other);
                texts.push(self.joined(&swapped));
            }
        }
        texts
    }

    /// Another instruction under the same guard.
    fn spelled(&self, mnemonic: &str, operands: &[&str]) -> String {
        let guard = self.head.rfind(' ').map_or("", |at| &self.head[..=at]);
        format!("{guard}{mnemonic} {}", operands.join(", "))
    }

    fn joined(&self, operands: &[String]) -> String {
        format!("{} {}", self.head, operands.join(", "))
    }
}

/// The printed operands of which any two may change places: their order does not change a bit of any result.
fn sources(mnemonic: &str, modifiers: &[&str], operands: &[String]) -> std::ops::Range<usize> {
    // The first operands that are no predicates are the destination, then the sources.
    let is_predicate =
        |o: &String| o.trim_start_matches('!').starts_with('P') || o.trim_start_matches('!').starts_with("UP");
    let first = 1 + operands.iter().skip(1).take_while(|o| is_predicate(o)).count();
    let count = match mnemonic {
        "IADD3" => 3,
        // MOV, SHL and IADD are spellings of products with RZ or 1, which have one order.
        "IMAD" if !modifiers.iter().any(|m| ["MOV", "SHL", "IADD", "X"].contains(m)) => 2,
        "FADD" | "FMUL" | "FFMA" => 2,
        _ => 0,
    };
    first..(first + count).min(operands.len())
}

/// An operand with its register replaced: `-R4` becomes `-UR9`.
fn renamed(operand: &str, register: u8, by: &str) -> String {
    let name = format!("R{register}");
    let Some(at) = operand.find(&name) else {
        return operand.to_owned();
    };
    format!("{}{by}{}", &operand[..at], &operand[at + name.len()..])
}

/// Texts of what does on the uniform datapath what an instruction does: its counterpart, or a plainer instruction.
fn uniform_texts(
    mnemonic: &str,
    counterpart: Option<&str>,
    parts: &Parts,
    to: u8,
    rename: &dyn Fn(u8) -> Option<u8>,
) -> Option<Vec<String>> {
    let mut operands = Vec::new();
    for operand in &parts.operands[1..] {
        operands.push(on_uniform(operand, rename)?);
    }
    let to = format!("UR{to}");
    let modifiers = parts.head.strip_prefix(mnemonic).unwrap_or_default();
    let constant = |o: &String| o.starts_with("c[");
    if let Some(source) = copied(mnemonic, modifiers, &operands, "URZ") {
        return Some(match constant(source) {
            true => vec![format!("ULDC {to}, {source}"), format!("LDCU {to}, {source}")],
            false => vec![format!("UMOV {to}, {source}")],
        });
    }
    if operands.iter().any(constant) {
        return None;
    }
    if let ("IMAD", ".IADD", [a, one, c]) = (mnemonic, modifiers, &operands[..])
        && one == "0x1"
    {
        return Some(vec![format!("UIADD3 {to}, {a}, {c}, URZ")]);
    }
    let counterpart = counterpart?;
    let mut texts = vec![format!("{counterpart}{modifiers} {to}, {}", operands.join(", "))];
    // A number can stand in the second place only.
    if counterpart == "UIADD3" && operands.len() == 3 {
        for (a, b) in [(0, 1), (1, 2)] {
            operands.swap(a, b);
            texts.push(format!("{counterpart}{modifiers} {to}, {}", operands.join(", ")));
            operands.swap(a, b);
        }
    }
    Some(texts)
}

/// What an instruction copies, in any spelling; `zero` is what the constant register is called.
fn copied<'o>(mnemonic: &str, modifiers: &str, operands: &'o [String], zero: &str) -> Option<&'o String> {
    match (mnemonic, modifiers, operands) {
        ("MOV", "", [source]) | ("LDC", "", [source]) => Some(source),
        ("IMAD", ".MOV.U32" | ".U32", [a, b, source]) if a == zero && b == zero => Some(source),
        _ => None,
    }
}

/// An operand in uniform registers; `None` if a register of it is in none.
fn on_uniform(operand: &str, rename: &dyn Fn(u8) -> Option<u8>) -> Option<String> {
    let start = operand.trim_start_matches(['-', '~', '!', '|']);
    let sign = &operand[..operand.len() - start.len()];
    let end = start.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(start.len());
    let (name, rest) = start.split_at(end);
    let name = match name {
        "RZ" => "URZ".to_owned(),
        "PT" => "UPT".to_owned(),
        _ => match name.strip_prefix('R').and_then(|n| n.parse::<u8>().ok()) {
            Some(n) => format!("UR{}", rename(n)?),
            None if name.starts_with('P') && name.len() == 2 => return None,
            None => name.to_owned(),
        },
    };
    Some(format!("{sign}{name}{rest}"))
}
