//! What the latency model calls an instruction: its pipe of `opcodes/semantics.tsv`, split where latencies within a pipe differ
//! (`latency/classes.csv`).

use isa::{Inst, Isa, Pipe, Space};

use crate::code::Port;

/// A class's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClassId(pub u8);

struct Row {
    class: ClassId,
    mnemonic: &'static str,
    /// All of these, joined with `.`; `*`: whichever.
    modifier: &'static str,
    space: Option<Space>,
    halves: bool,
}

/// All classes.
pub struct Classes {
    names: Vec<String>,
    /// By pipe.
    rows: [Vec<Row>; PIPES],
    /// By class: those of the lower and upper half of a 64-bit result, and of a 64-bit operand.
    halves: Vec<Option<[ClassId; 4]>>,
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
            halves: Vec::new(),
        };
        for line in TEXT.lines().skip(1) {
            let cells: Vec<&'static str> = line.splitn(7, ',').collect();
            let [name, pipe, mnemonic, modifier, space, halves, _] = cells[..] else {
                panic!("latency/classes.csv: `{line}` has not 7 cells");
            };
            let row = Row {
                class: classes.intern(name),
                mnemonic,
                modifier,
                space: (space == "shared").then_some(Space::Shared),
                halves: halves == "yes",
            };
            classes.rows[pipe_named(pipe) as usize].push(row);
        }
        let whole = classes.rows.iter().flatten().filter(|r| r.halves).map(|r| r.class);
        for class in whole.collect::<Vec<_>>() {
            let half = |classes: &mut Classes, suffix| {
                let name = format!("{}.{suffix}", classes.name(class));
                classes.intern(&name)
            };
            let four = ["lo", "hi", "clo", "chi"].map(|s| half(&mut classes, s));
            classes.halves[usize::from(class.0)] = Some(four);
        }
        classes
    }

    fn intern(&mut self, name: &str) -> ClassId {
        let n = self.names.iter().position(|n| n == name).unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.halves.push(None);
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

    /// Whether 64-bit results and operands of the class come in halves: the classes of lower and upper half of a result, then of an operand.
    pub(crate) fn halves(&self, class: ClassId, port: Port) -> Option<[ClassId; 4]> {
        self.halves[usize::from(class.0)].filter(|_| port == Port::R)
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
