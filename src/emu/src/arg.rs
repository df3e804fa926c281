//! Operands of one instruction, taken from the tables' shapes: what is read, written or named, with its signs and suffixes.

use std::fmt;

use isa::{FieldKind, Inst, Isa, Piece, RegFile};

/// Signs and suffixes around an operand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// `-`.
    pub neg: bool,
    /// `|x|`.
    pub abs: bool,
    /// `~` on numbers, `!` on predicates.
    pub not: bool,
}

/// A register of a file with the number of consecutive registers that are touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reg {
    /// File.
    pub file: RegFile,
    /// Number; [`Reg::is_zero`] where it is `RZ`, `URZ`, `PT` or `UPT`.
    pub number: u8,
    /// Consecutive registers.
    pub width: u8,
    /// Reads as zero (true), ignores writes.
    pub is_zero: bool,
}

/// The sum inside an address: `[R2.64+UR4+0x10]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Address {
    /// General register, one or two wide.
    pub base: Option<Reg>,
    /// Factor of the general register.
    pub scale: u8,
    /// Uniform register.
    pub uniform: Option<Reg>,
    /// Constant part.
    pub offset: i64,
}

/// What an operand is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A register.
    Reg(Reg),
    /// An integer.
    Int(i64),
    /// Bits of a float of the given kind.
    Float(FieldKind, u32),
    /// `c[bank][address]`.
    Const(u8, Address),
    /// `[address]`.
    Memory(Address),
    /// Absolute byte offset in the section.
    Label(u64),
    /// A register added to a constant, as indirect branches have it.
    Indirect(Reg, Target),
    /// A name: a special register, `PR`.
    Name(&'static str),
}

impl fmt::Display for Kind {
    /// What it is, for a message.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Reg(r) => write!(f, "a register of file {}", r.file.name()),
            Kind::Int(_) => f.write_str("an integer"),
            Kind::Float(..) => f.write_str("a floating-point number"),
            Kind::Const(..) => f.write_str("a constant in a bank"),
            Kind::Memory(_) => f.write_str("an address"),
            Kind::Label(_) | Kind::Indirect(..) => f.write_str("a place in the code"),
            Kind::Name(name) => f.write_str(name),
        }
    }
}

/// What the register of an indirect branch is added to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// Byte offset in the section.
    Section(u64),
    /// A number; what it counts from depends on the instruction.
    Number(i64),
}

/// One operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arg {
    /// What it is.
    pub kind: Kind,
    /// Signs.
    pub marks: Marks,
    /// Text after the register: `H0_H0`, `SIGN`, `ROW`; empty where there is none.
    pub suffix: &'static str,
    /// It has the value at which `nvdisasm` leaves it out: as if it were not there.
    pub is_elided: bool,
}

/// The operands in printed order, elided ones included; an operand without text is left out. `pc` is the byte offset in the section.
pub fn args(isa: &Isa, inst: Inst, pc: u64) -> Result<Vec<Arg>, String> {
    (0..isa.operand_count(inst))
        .filter_map(|n| arg(isa, inst, pc, n).transpose())
        .collect()
}

fn arg(isa: &Isa, inst: Inst, pc: u64, n: usize) -> Result<Option<Arg>, String> {
    let view = isa.operand(inst, n).ok_or("an operand without a shape")?;
    let shape = view.shape();
    if shape.is_empty() {
        return Ok(None);
    }
    let unknown = || format!("the operand shape `{shape}` is not understood");
    let body = shape.trim_start_matches(['-', '~', '!', '|']);
    let prefix = &shape[..shape.len() - body.len()];
    let marks = Marks {
        neg: prefix.contains('-'),
        abs: prefix.contains('|'),
        not: prefix.contains(['~', '!']),
    };
    let mut terms = Vec::new();
    let mut pieces = view.pieces().peekable();
    while let Some(piece) = pieces.next() {
        let Piece::Field(field) = piece else { continue };
        let suffix = match pieces.peek() {
            Some(Piece::Text(t)) => suffix_of(t),
            _ => "",
        };
        terms.push((term(isa, inst, pc, field).ok_or_else(unknown)?, suffix));
    }
    let plain = |kind, suffix| {
        Ok(Some(Arg {
            kind,
            marks,
            suffix,
            is_elided: view.is_elided(),
        }))
    };
    if body.starts_with("c[") {
        let Some(((Kind::Int(bank), _), rest)) = terms.split_first() else {
            return Err(unknown());
        };
        let suffix = rest.last().map_or("", |t| t.1);
        return plain(Kind::Const(*bank as u8, address(rest).ok_or_else(unknown)?), suffix);
    }
    if let Some(at) = body.find('[') {
        // A descriptor in front of the bracket says how to cache, not where.
        let skipped = match &body[..at] {
            "" => 0,
            "desc" => 1,
            _ => return Err(unknown()),
        };
        return plain(Kind::Memory(address(&terms[skipped..]).ok_or_else(unknown)?), "");
    }
    match terms[..] {
        [] => plain(Kind::Name(shape), ""),
        [(kind, suffix)] => plain(kind, suffix),
        [(Kind::Reg(r), _), (Kind::Label(l), _)] => plain(Kind::Indirect(r, Target::Section(l)), ""),
        [(Kind::Reg(r), _), (Kind::Int(i), _)] => plain(Kind::Indirect(r, Target::Number(i)), ""),
        _ => Err(unknown()),
    }
}

/// `.H0_H0|` -> `H0_H0`.
fn suffix_of(text: &'static str) -> &'static str {
    let Some((_, rest)) = text.split_once('.') else {
        return "";
    };
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    &rest[..end.unwrap_or(rest.len())]
}

fn term(isa: &Isa, inst: Inst, pc: u64, field: usize) -> Option<Kind> {
    let form = isa.form(inst.form)?;
    let f = form.fields().get(field)?;
    let value = f.get(inst.word);
    Some(match f.kind_in(inst.word) {
        FieldKind::Reg(file) => {
            let access = isa.access(inst, field)?;
            Kind::Reg(Reg {
                file,
                number: access.reg,
                width: access.width.max(1),
                is_zero: access.is_zero,
            })
        }
        FieldKind::Int | FieldKind::Scoreboard => Kind::Int(value),
        FieldKind::Rel => Kind::Label(pc.wrapping_add(16).wrapping_add(value as u64)),
        kind => Kind::Float(kind, value as u32),
    })
}

fn address(terms: &[(Kind, &'static str)]) -> Option<Address> {
    let mut out = Address {
        scale: 1,
        ..Address::default()
    };
    for (kind, suffix) in terms {
        match kind {
            Kind::Reg(r) if r.file == RegFile::R && out.base.is_none() => {
                out.base = Some(*r);
                out.scale = match *suffix {
                    "" | "64" | "U32" => 1,
                    "X4" => 4,
                    "X8" => 8,
                    "X16" => 16,
                    _ => return None,
                };
            }
            Kind::Reg(r) if r.file == RegFile::UR && out.uniform.is_none() => out.uniform = Some(*r),
            Kind::Int(i) => out.offset = out.offset.wrapping_add(*i),
            _ => return None,
        }
    }
    Some(out)
}

impl Arg {
    /// The register, where the operand is nothing else.
    pub fn reg(&self) -> Option<Reg> {
        match self.kind {
            Kind::Reg(r) => Some(r),
            _ => None,
        }
    }

    /// The integer, where the operand is nothing else.
    pub fn int(&self) -> Option<i64> {
        match self.kind {
            Kind::Int(i) => Some(i),
            _ => None,
        }
    }
}
