//! From one decoded instruction to what executes it: operands become rows, modifiers are taken one by one, and what is left over is a form
//! that the emulator does not know.

use isa::{FieldKind, Inst, Isa, RegFile};

use crate::arg::{self, Address, Arg, Kind, Reg};
use crate::driver::Driver;
use crate::op::Run;
use crate::pool::Pool;
use crate::regs::{NO_PRED, PT, Pred, Src};

/// Why an instruction has no execution.
pub type Missing = String;
/// What a builder gives.
pub type Built = Result<Run, Missing>;
/// Makes what executes an instruction.
pub type Builder = fn(&mut Decode<'_>) -> Built;

/// Where the register files lie among the rows of a warp.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// Rows of general registers: `R0` up.
    pub general: u16,
    /// Rows of uniform registers, behind them.
    pub uniform: u16,
}

impl Layout {
    /// Rows that take what is written to `RZ` and `URZ`.
    const SINK: u16 = 16;

    /// Rows of a warp; the pool begins there.
    pub fn rows(self) -> u16 {
        self.general + self.uniform + Self::SINK
    }

    fn sink(self) -> u16 {
        self.general + self.uniform
    }
}

/// One instruction while it is built.
pub struct Decode<'a> {
    /// Address of the instruction, and of the start of its section.
    pub(crate) address: u64,
    pub(crate) section: u64,
    /// First dotted part of the name.
    pub(crate) mnemonic: &'static str,
    /// Operands that are not taken yet, in printed order.
    args: std::vec::IntoIter<Arg>,
    /// Modifiers that are not taken yet.
    mods: Vec<&'static str>,
    pool: &'a mut Pool,
    layout: Layout,
    driver: &'static Driver,
}

impl<'a> Decode<'a> {
    /// Takes an instruction apart.
    pub fn new(
        isa: &'a Isa,
        inst: Inst,
        (pc, address): (u64, u64),
        pool: &'a mut Pool,
        layout: Layout,
        driver: &'static Driver,
    ) -> Result<Self, Missing> {
        let form = isa.form(inst.form).ok_or("no table knows the word")?;
        Ok(Self {
            address,
            section: address - pc,
            mnemonic: form.mnemonic(),
            args: arg::args(isa, inst, pc)?.into_iter(),
            mods: isa.modifiers(inst).collect(),
            pool,
            layout,
            driver,
        })
    }

    /// Takes a modifier; whether it was there.
    pub fn take(&mut self, token: &str) -> bool {
        let at = self.mods.iter().position(|m| *m == token);
        at.map(|at| self.mods.remove(at)).is_some()
    }

    /// Takes the first of the modifiers that a table names.
    pub fn choose<T: Copy>(&mut self, table: &[(&str, T)]) -> Option<T> {
        let at = self.mods.iter().position(|m| table.iter().any(|(t, _)| t == m))?;
        let token = self.mods.remove(at);
        table.iter().find(|(t, _)| *t == token).map(|(_, v)| *v)
    }

    /// Like [`Decode::choose`]; one of them must be there.
    pub fn need<T: Copy>(&mut self, table: &[(&str, T)]) -> Result<T, Missing> {
        let names = || table.iter().map(|(t, _)| *t).collect::<Vec<_>>().join(", ");
        self.choose(table)
            .ok_or_else(|| format!("none of the modifiers {}", names()))
    }

    /// Drops modifiers that change nothing here.
    pub fn ignore(&mut self, tokens: &[&str]) {
        self.mods.retain(|m| !tokens.contains(m));
    }

    /// What differs between generations.
    pub fn driver(&self) -> &'static Driver {
        self.driver
    }

    /// Whether a modifier is still there.
    pub fn has(&self, token: &str) -> bool {
        self.mods.contains(&token)
    }

    /// The next operand.
    pub fn arg(&mut self) -> Result<Arg, Missing> {
        self.args.next().ok_or_else(|| "an operand is missing".to_owned())
    }

    /// The next operand, which stays.
    pub fn peek(&self) -> Option<&Arg> {
        self.args.as_slice().first()
    }

    /// Operands that are left.
    pub fn left(&self) -> usize {
        self.args.as_slice().len()
    }

    /// Whether the next operand is a register of that file.
    pub fn next_is(&self, file: RegFile) -> bool {
        self.peek().and_then(Arg::reg).is_some_and(|r| r.file == file)
    }

    /// Fails if a modifier or operand was not taken.
    pub fn end(&mut self) -> Result<(), Missing> {
        if let Some(m) = self.mods.first() {
            return Err(format!("the modifier {m}"));
        }
        match self.args.find(|a| !a.is_elided) {
            Some(a) => Err(format!("an operand too many: {}", a.kind)),
            None => Ok(()),
        }
    }

    /// The rows of a register that is written.
    pub fn row_of(&self, r: Reg) -> Result<u16, Missing> {
        match r.file {
            _ if r.is_zero => Ok(self.layout.sink()),
            RegFile::R => Ok(r.number.into()),
            RegFile::UR => Ok(self.layout.general + u16::from(r.number)),
            _ => Err(format!("a register of file {} as a number", r.file.name())),
        }
    }

    /// The next operand as a destination of one row.
    pub fn dst(&mut self) -> Result<u16, Missing> {
        self.dst_wide(1)
    }

    /// The next operand as a destination of several rows.
    pub fn dst_wide(&mut self, rows: u16) -> Result<u16, Missing> {
        let arg = self.arg()?;
        let reg = arg.reg().ok_or("a destination that is no register")?;
        if !arg.suffix.is_empty() {
            return Err(format!("the operand suffix {}", arg.suffix));
        }
        if reg.is_zero {
            return self.row_of(reg);
        }
        self.tuple(reg, rows)
    }

    /// The next operand as a predicate that is written.
    pub fn pdst(&mut self) -> Result<u8, Missing> {
        let p = self.psrc()?;
        if p.not {
            return Err("a negated destination".to_owned());
        }
        Ok(if p.number & 7 == PT { NO_PRED } else { p.number })
    }

    /// The next operand as a predicate that is written, if it is one.
    pub fn pdst_if(&mut self) -> Result<u8, Missing> {
        if self.next_is(RegFile::P) || self.next_is(RegFile::UP) {
            self.pdst()
        } else {
            Ok(NO_PRED)
        }
    }

    /// The next operand as a predicate that is read.
    pub fn psrc(&mut self) -> Result<Pred, Missing> {
        let arg = self.arg()?;
        let reg = arg.reg().ok_or("a predicate that is no register")?;
        let first = match reg.file {
            RegFile::P => 0,
            RegFile::UP => 8,
            _ => return Err(format!("a register of file {} as a predicate", reg.file.name())),
        };
        if arg.marks.neg || arg.marks.abs {
            return Err("signs on a predicate".to_owned());
        }
        Ok(Pred {
            number: first + reg.number,
            not: arg.marks.not,
        })
    }

    /// The next operand as a predicate that is read, or true if there is none.
    pub fn psrc_or_true(&mut self) -> Result<Pred, Missing> {
        if self.next_is(RegFile::P) || self.next_is(RegFile::UP) {
            self.psrc()
        } else {
            Ok(Pred::TRUE)
        }
    }

    /// The next operand as a source of one row.
    pub fn src(&mut self) -> Result<Src, Missing> {
        let (src, suffix) = self.src_with_suffix(1)?;
        if suffix.is_empty() {
            Ok(src)
        } else {
            Err(format!("the operand suffix {suffix}"))
        }
    }

    /// The next operand as a source of several rows.
    pub fn src_wide(&mut self, rows: u16) -> Result<Src, Missing> {
        let (src, suffix) = self.src_with_suffix(rows)?;
        if suffix.is_empty() {
            Ok(src)
        } else {
            Err(format!("the operand suffix {suffix}"))
        }
    }

    /// The next operand as a source, and the text behind it.
    pub fn src_with_suffix(&mut self, rows: u16) -> Result<(Src, &'static str), Missing> {
        let arg = self.arg()?;
        let row = match arg.kind {
            Kind::Reg(r) => self.source_row(r, rows)?,
            // An immediate is sign-extended to 64 bits; the only float that is wide is the high half of a double.
            Kind::Int(i) => self.pool.numbers(&[i as u32, (i >> 32) as u32]),
            Kind::Float(FieldKind::F64High, bits) if rows == 2 => self.pool.numbers(&[0, bits]),
            Kind::Float(_, bits) => self.pool.numbers(&[bits]),
            Kind::Const(
                bank,
                Address {
                    offset,
                    base: None,
                    uniform: None,
                    ..
                },
            ) => self.constant(bank, offset, rows)?,
            Kind::Const(..) => return Err("a constant with a register in its address".to_owned()),
            _ => return Err(format!("{:?} as a source", arg.kind)),
        };
        let src = Src {
            row,
            neg: arg.marks.neg,
            abs: arg.marks.abs,
            not: arg.marks.not,
        };
        Ok((src, arg.suffix))
    }

    /// A word of a constant bank as a source.
    pub fn constant_word(&mut self, bank: u8, offset: i64) -> Result<Src, Missing> {
        Ok(Src {
            row: self.constant(bank, offset, 1)?,
            ..self.zero()
        })
    }

    fn constant(&mut self, bank: u8, offset: i64, rows: u16) -> Result<u16, Missing> {
        let known = u32::try_from(offset).is_ok_and(|o| (0..u32::from(rows)).all(|n| self.driver.knows(o + 4 * n)));
        if bank == 0 && !known {
            return Err(format!("c[0x0][{offset:#x}], which the driver fills"));
        }
        self.pool.constants(bank, offset, rows)
    }

    /// The rows of a register that is read.
    pub fn source_row(&self, r: Reg, rows: u16) -> Result<u16, Missing> {
        if r.is_zero {
            return Ok(self.pool.zero());
        }
        self.tuple(r, rows)
    }

    fn tuple(&self, r: Reg, rows: u16) -> Result<u16, Missing> {
        let row = self.row_of(r)?;
        let end = match r.file {
            RegFile::R => self.layout.general,
            _ => self.layout.general + self.layout.uniform,
        };
        if row + rows > end {
            return Err(format!("a register tuple past the last of file {}", r.file.name()));
        }
        Ok(row)
    }

    /// A source that is the number zero.
    pub fn zero(&self) -> Src {
        Src {
            row: self.pool.zero(),
            neg: false,
            abs: false,
            not: false,
        }
    }

    /// The destination that stands for `RZ`.
    pub fn sink(&self) -> u16 {
        self.layout.sink()
    }

    /// A source that is a given number.
    pub fn number(&mut self, n: u32) -> Src {
        Src {
            row: self.pool.numbers(&[n]),
            ..self.zero()
        }
    }

    /// The next operand as a number.
    pub fn int(&mut self) -> Result<i64, Missing> {
        self.arg()?
            .int()
            .ok_or_else(|| "an operand that should be a number".to_owned())
    }
}
