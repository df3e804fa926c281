//! A kernel with everything that it can reach, decoded once.

use cubin::Image;
use cubin::nvinfo::{Value, code};
use isa::{Inst, Isa, RegFile, Word};

use crate::build::{Builder, Decode, Layout};
use crate::driver::Driver;
use crate::error::{Fault, MissingForm, PrepareError, Trap};
use crate::host;
use crate::link::Link;
use crate::memory::{Buffer, CODE};
use crate::op::{Op, Run};
use crate::pool::Pool;
use crate::regs::Pred;
use crate::timing::{Latencies, Timing};
use crate::warp::Warp;
use crate::{access, atomic, convert, cross, double, float, flow, half, int, mbarrier, minmax, tensor, texture, xu};

/// The tables of all rooms that execute.
const TABLES: &[&[(&str, Builder)]] = &[
    int::TABLE,
    minmax::TABLE,
    float::TABLE,
    double::TABLE,
    half::TABLE,
    convert::TABLE,
    xu::TABLE,
    tensor::TABLE,
    flow::TABLE,
    cross::TABLE,
    access::TABLE,
    atomic::TABLE,
    mbarrier::TABLE,
    texture::TABLE,
];

fn builder(mnemonic: &str) -> Option<Builder> {
    TABLES
        .iter()
        .flat_map(|t| t.iter())
        .find(|(name, _)| *name == mnemonic)
        .map(|(_, b)| *b)
}

/// Code of one section within a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// Name without `.text.`.
    pub name: String,
    /// Index of its first op.
    pub start: u32,
    /// Number of its instructions.
    pub len: u32,
}

/// A parameter of the kernel.
pub use cubin::Param;

/// A kernel, ready to be launched.
pub struct Program {
    /// The kernel's name.
    pub name: String,
    /// The instructions of all sections, one after another, and behind them the functions that the driver brings.
    pub ops: Vec<Op>,
    /// What is not emulated, in order.
    pub missing: Vec<MissingForm>,
    /// Where each section's ops are.
    pub sections: Vec<Section>,
    /// The decoded instructions of all sections.
    pub insts: Vec<Inst>,
    /// The instruction set.
    pub isa: &'static Isa,
    /// Where execution begins.
    pub entry: u32,
    /// Parameters by ordinal.
    pub params: Vec<Param>,
    /// Byte offset of parameter 0 in constant bank 0, and bytes of all parameters.
    pub param_bank: (u32, u32),
    /// Static shared memory in bytes.
    pub shared_size: u64,
    /// Most threads of a block, where the kernel says.
    pub max_threads: Option<u32>,
    /// The block that the kernel asks for.
    pub required_block: Option<[u32; 3]>,
    /// Local memory in bytes, as far as the file says.
    pub local_size: u64,
    /// Whether functions are called, whose frames the file may not know.
    pub calls: bool,
    pub(crate) layout: Layout,
    pub(crate) pool: Pool,
    /// Constant banks but bank 0, relocated.
    pub(crate) banks: Vec<(u8, Vec<u8>)>,
    /// The program's variables, relocated.
    pub(crate) globals: Vec<Buffer>,
    pub(crate) driver: &'static Driver,
    pub(crate) timing: Option<Timing>,
}

impl Program {
    /// Prepares a kernel of a cubin. Forms that are not emulated are listed in [`Program::missing`].
    pub fn new(image: &Image<'_>, name: &str) -> Result<Self, PrepareError> {
        let isa = Isa::for_target(image.target())?;
        let kernel = image
            .code(name)
            .filter(|c| c.is_entry)
            .ok_or_else(|| PrepareError::NoKernel(name.to_owned()))?;
        let other = |what: String| PrepareError::Other {
            kernel: name.to_owned(),
            what,
        };
        let driver = Driver::of(image.target()).ok_or_else(|| {
            other(format!(
                "what the driver gives a kernel on {} is not known",
                image.target()
            ))
        })?;
        let mut link = Link::new(image, kernel)?;
        let codes = link.code().map_err(other)?;
        let decoded: Vec<Vec<Inst>> = codes.iter().map(|(_, b)| isa.decode_all(b).collect()).collect();
        let layout = layout(isa, decoded.iter().flatten());
        let mut pool = Pool::new(layout.rows());
        let (mut ops, mut missing, mut sections, mut insts) = (vec![], vec![], vec![], vec![]);
        for ((code, bytes), decoded) in codes.iter().zip(decoded) {
            let start = ops.len() as u32;
            for (n, inst) in decoded.into_iter().enumerate() {
                let offset = (n * Word::BYTES) as u64;
                let at = (offset, CODE + ops.len() as u64 * 16);
                let op = match link.unresolved(code, offset) {
                    None => build(isa, inst, at, &mut pool, layout, driver),
                    Some(why) => Err(why),
                };
                insts.push(inst);
                ops.push(op.unwrap_or_else(|why| {
                    missing.push(MissingForm {
                        form: spelling(isa, inst),
                        section: (*code).to_owned(),
                        offset,
                        why,
                    });
                    opaque(isa, inst, missing.len() as u32 - 1)
                }));
            }
            sections.push(Section {
                name: (*code).to_owned(),
                start,
                len: (bytes.len() / 16) as u32,
            });
        }
        for function in link.external() {
            ops.push(host::function(function));
            ops.push(host::back(layout));
        }
        let calls = ops.iter().any(|o| matches!(o.run, Run::Flow(flow::Flow::Indirect(..))));
        let param_bank = kernel
            .param_bank
            .map_or((driver.params, 0), |b| (b.offset.into(), b.size.into()));
        let reach = kernel
            .params
            .iter()
            .map(|p| u64::from(p.offset) + u64::from(p.size))
            .max();
        if reach > Some(param_bank.1.into()) {
            return Err(other(format!(
                "a parameter lies outside of the {} bytes of parameters that the file says there are",
                param_bank.1
            )));
        }
        Ok(Self {
            name: name.to_owned(),
            ops,
            missing,
            sections,
            insts,
            isa,
            entry: 0,
            params: kernel.params.clone(),
            param_bank,
            shared_size: link.shared_size(),
            max_threads: words(kernel, code::MAX_THREADS).map(|[x, y, z]| x.saturating_mul(y).saturating_mul(z)),
            required_block: words(kernel, code::REQNTID),
            local_size: kernel.local_size,
            calls,
            layout,
            pool,
            banks: link.banks()?,
            globals: link.globals(),
            driver,
            timing: None,
        })
    }

    /// From now on results are there only when their time has passed, or when they were waited for ([`crate::timing`]).
    pub fn set_timing(&mut self, latencies: Box<dyn Latencies>) {
        self.timing = Some(Timing::new(self, latencies));
    }

    /// True when another program is the same in all that a launch can see: code, functions that it calls, constants, variables, sizes.
    pub fn is_same(&self, other: &Self) -> bool {
        let sizes = |p: &Self| {
            (
                p.param_bank,
                p.shared_size,
                p.local_size,
                p.max_threads,
                p.required_block,
            )
        };
        let reached = |p: &Self| {
            p.missing
                .iter()
                .map(|m| (m.section.clone(), m.offset))
                .collect::<Vec<_>>()
        };
        self.isa.target() == other.isa.target()
            && self.insts == other.insts
            && self.sections == other.sections
            && self.ops.len() == other.ops.len()
            && reached(self) == reached(other)
            && self.params == other.params
            && sizes(self) == sizes(other)
            && self.banks == other.banks
            && self.globals == other.globals
    }

    /// The section that holds an op.
    pub fn section(&self, pc: u32) -> Option<&Section> {
        let n = self.sections.partition_point(|s| s.start <= pc).checked_sub(1)?;
        let s = &self.sections[n];
        (pc - s.start < s.len).then_some(s)
    }

    /// The first op of the section that holds an op.
    pub(crate) fn section_start(&self, pc: u32) -> u32 {
        self.section(pc).map_or(0, |s| s.start)
    }

    /// The op at a byte offset in the section that holds `pc`. An offset beyond any code gives a number that no op has.
    pub(crate) fn local(&self, pc: u32, offset: u64) -> u32 {
        let op = u64::from(self.section_start(pc)).saturating_add(offset / 16);
        u32::try_from(op).unwrap_or(u32::MAX)
    }

    /// The op at an address.
    pub(crate) fn index_of(&self, address: u64) -> Option<u32> {
        let at = address.checked_sub(CODE).filter(|a| a % 16 == 0)? / 16;
        (at < self.ops.len() as u64).then_some(at as u32)
    }

    /// The op behind the last one of the kernel's section that is no padding: NOPs, and the branch to itself before them.
    pub(crate) fn code_end(&self) -> u32 {
        let len = self.sections.first().map_or(0, |s| s.len);
        let padding = |pc: &u32| match &self.ops[*pc as usize].run {
            Run::Flow(flow::Flow::Branch(p, to)) => *p == Pred::TRUE && *to == u64::from(*pc) * 16,
            _ => self.mnemonic(*pc) == Some("NOP"),
        };
        (0..len).rev().find(|pc| !padding(pc)).map_or(0, |pc| pc + 1)
    }

    /// Whether the same instructions are at two places, up to the end of a collective.
    pub(crate) fn same_until_end_of_collective(&self, a: u32, b: u32) -> bool {
        // The scheduling bits may differ.
        let word = |pc: u32| self.insts.get(pc as usize).map(|i| i.word.with_bits(124, 105, 0));
        let is_end = |pc| self.mnemonic(pc).is_none_or(|m| m == "ENDCOLLECTIVE");
        a == b
            || (0..)
                .map_while(|n| (!is_end(a + n)).then_some(word(a + n) == word(b + n)))
                .all(|same| same)
    }

    fn mnemonic(&self, pc: u32) -> Option<&'static str> {
        self.isa.form(self.insts.get(pc as usize)?.form).map(|f| f.mnemonic())
    }

    /// An instruction's text.
    pub fn text(&self, pc: u32) -> String {
        let (Some(section), Some(inst)) = (self.section(pc), self.insts.get(pc as usize)) else {
            return "(a function of the driver)".to_owned();
        };
        let mut text = String::new();
        let _ = self
            .isa
            .write_text(*inst, u64::from(pc - section.start) * 16, &mut text, None);
        text
    }

    /// Section and byte offset of an op.
    pub fn place(&self, pc: u32) -> (&str, u64) {
        match self.section(pc) {
            Some(s) => (&s.name, u64::from(pc - s.start) * 16),
            None => ("", 0),
        }
    }

    pub(crate) fn fault(&self, pc: u32, block: [u32; 3], w: &Warp, trap: Trap) -> Fault {
        let (section, offset) = self.place(pc);
        let lane = match trap {
            Trap::OutOfBounds { .. } | Trap::Misaligned { .. } | Trap::Check(_) => w.accessing,
            _ => (w.active & w.alive).trailing_zeros() as usize % 32,
        };
        Fault {
            kernel: self.name.clone(),
            section: section.to_owned(),
            offset,
            text: self.text(pc),
            block,
            thread: w.tid.map(|row| row[lane]),
            trap,
        }
    }
}

/// The three words of an attribute.
fn words(kernel: &cubin::Code<'_>, attribute: u8) -> Option<[u32; 3]> {
    let Ok(Value::Words(list)) = kernel.attribute(attribute)?.value() else {
        return None;
    };
    let list: Vec<u32> = list.iter().collect();
    list.try_into().ok().filter(|w: &[u32; 3]| !w.contains(&0))
}

/// Rows for as many registers as the code names.
fn layout<'a>(isa: &Isa, insts: impl Iterator<Item = &'a Inst>) -> Layout {
    // The return address of a driver's function is in R20 and R21, and its results are in R4 and R5.
    let (mut general, mut uniform) = (24, 4);
    for access in insts.flat_map(|i| isa.accesses(*i)).filter(|a| !a.is_zero) {
        let end = u16::from(access.reg) + u16::from(access.width.max(1));
        match access.file {
            RegFile::R => general = general.max(end),
            RegFile::UR => uniform = uniform.max(end),
            _ => {}
        }
    }
    Layout { general, uniform }
}

fn build(
    isa: &Isa,
    inst: Inst,
    at: (u64, u64),
    pool: &mut Pool,
    layout: Layout,
    driver: &'static Driver,
) -> Result<Op, String> {
    let mut i = Decode::new(isa, inst, at, pool, layout, driver)?;
    let build = builder(i.mnemonic).ok_or("no such mnemonic")?;
    let run = build(&mut i)?;
    Ok(guarded(isa, inst, run))
}

fn guarded(isa: &Isa, inst: Inst, run: Run) -> Op {
    let (guard, uniform) = match isa.guard(inst) {
        Some((RegFile::UP, number, not)) => (
            Pred {
                number: 8 + number,
                not,
            },
            true,
        ),
        Some((_, number, not)) => (Pred { number, not }, false),
        None => (Pred::TRUE, false),
    };
    Op { guard, uniform, run }
}

fn opaque(isa: &Isa, inst: Inst, n: u32) -> Op {
    guarded(isa, inst, Run::Missing(n))
}

/// Mnemonic and modifiers as they are printed.
fn spelling(isa: &Isa, inst: Inst) -> String {
    let mut text = String::new();
    let _ = isa.write_text(inst, 0, &mut text, None);
    let text = text
        .trim_start_matches(|c| c != ' ' && text.starts_with('@'))
        .trim_start();
    text.split(' ').next().unwrap_or(text).to_owned()
}
