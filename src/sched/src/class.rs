//! What the latency model calls an instruction: its pipe of `opcodes/semantics.tsv`, split where latencies within a pipe differ
//! (`latency/classes.csv`).

use isa::{Inst, Isa, Pipe, Space};

use crate::code::Port;
use crate::views::Views;

/// A class's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClassId(pub u8);

struct Row {
    class: ClassId,
    mnemonic: &'static str,
    /// All of these, joined with `.`; `*`: whichever.
    modifier: &'static str,
    space: Option<Space>,
}

/// Classes of the parts of an instruction's registers, where latencies tell them apart.
#[derive(Clone, Copy)]
pub(crate) enum Parts {
    /// 64-bit results and operands come in halves: lower and upper half of a result, then of an operand.
    Halves([ClassId; 4]),
    /// What is summed up stays in the pipe: the sum, read and written, and other operands.
    Sums([ClassId; 2]),
}

/// All classes.
pub struct Classes {
    names: Vec<String>,
    /// By pipe.
    rows: [Vec<Row>; PIPES],
    /// By class.
    parts: Vec<Option<Parts>>,
    views: Views,
}

/// Pipes that there are.
const PIPES: usize = Pipe::Cbu as usize + 1;

const TEXT: &str = include_str!("../latency/classes.csv");

impl Classes {
    /// The classes that are built in.
    pub fn new() -> Classes {
        let mut classes = Classes {
            names: Vec::new(),
            rows: Default::default(),
            parts: Vec::new(),
            views: Views::default(),
        };
        let mut parted = Vec::new();
        for line in TEXT.lines().skip(1) {
            let cells: Vec<&'static str> = line.splitn(7, ',').collect();
            let [name, pipe, mnemonic, modifier, space, parts, _] = cells[..] else {
                panic!("latency/classes.csv: `{line}` has not 7 cells");
            };
            let class = classes.intern(name);
            parted.push((class, parts));
            let row = Row {
                class,
                mnemonic,
                modifier,
                space: (space == "shared").then_some(Space::Shared),
            };
            classes.rows[pipe_named(pipe) as usize].push(row);
        }
        for (class, parts) in parted {
            let part = |suffix| format!("{}.{suffix}", classes.name(class));
            classes.parts[usize::from(class.0)] = match parts {
                "halves" => Some(Parts::Halves(
                    ["lo", "hi", "clo", "chi"].map(part).map(|n| classes.intern(&n)),
                )),
                "sums" => Some(Parts::Sums(["sum", "operand"].map(part).map(|n| classes.intern(&n)))),
                _ => None,
            };
        }
        classes.views = Views::new(&classes);
        classes
    }

    fn intern(&mut self, name: &str) -> ClassId {
        let n = self.names.iter().position(|n| n == name).unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.parts.push(None);
            self.names.len() - 1
        });
        ClassId(n as u8)
    }

    /// The class of an instruction; `None` if no table knows what it does.
    pub fn of(&self, isa: &Isa, inst: Inst) -> Option<ClassId> {
        let semantics = isa.semantics(inst);
        let mnemonic = isa.form(inst.form)?.mnemonic();
        let fits = |r: &&Row| {
            (r.mnemonic == "*" || r.mnemonic == mnemonic)
                && r.space.is_none_or(|s| s == semantics.space)
                && (r.modifier == "*" || r.modifier.split('.').all(|m| isa.has_modifier(inst, m)))
        };
        let rows = &self.rows[semantics.pipe as usize];
        let row = rows.iter().find(fits).filter(|_| semantics.known)?;
        Some(row.class)
    }

    /// The classes of the parts of what an instruction touches through a port.
    pub(crate) fn parts(&self, class: ClassId, port: Port) -> Option<Parts> {
        self.parts[usize::from(class.0)].filter(|_| port == Port::R)
    }

    /// What sets views of memory, and what waits for them.
    pub(crate) fn views(&self) -> &Views {
        &self.views
    }

    /// The name.
    pub fn name(&self, class: ClassId) -> &str {
        &self.names[usize::from(class.0)]
    }

    /// By name.
    pub fn named(&self, name: &str) -> Option<ClassId> {
        self.names.iter().position(|n| n == name).map(|n| ClassId(n as u8))
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = ClassId> + use<> {
        (0..self.names.len() as u8).map(ClassId)
    }
}

impl Default for Classes {
    fn default() -> Self {
        Self::new()
    }
}

fn pipe_named(name: &str) -> Pipe {
    match name {
        "alu" => Pipe::Alu,
        "fma" => Pipe::Fma,
        "fp16" => Pipe::Fp16,
        "fp64" => Pipe::Fp64,
        "xu" => Pipe::Xu,
        "lsu" => Pipe::Lsu,
        "tex" => Pipe::Tex,
        "tensor" => Pipe::Tensor,
        "uniform" => Pipe::Uniform,
        "adu" => Pipe::Adu,
        "cbu" => Pipe::Cbu,
        _ => Pipe::None,
    }
}
