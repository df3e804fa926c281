//! Rows of the two hand-written tables that all targets share: `semantics.tsv` and `aliases.tsv`.

use crate::tsv::Row;

/// `semantics.tsv`: what an instruction does beyond the registers that it names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SemanticsRow {
    /// First dotted part of the printed name.
    pub mnemonic: String,
    /// Tokens that must all be present; empty for `*`.
    pub modifiers: Vec<String>,
    /// Bits of [`EFFECTS`].
    pub effects: u16,
    /// Index into [`SPACES`].
    pub space: u8,
    /// Whether it depends on which lanes are active.
    pub convergence: bool,
    /// Index into [`TERMINATORS`].
    pub terminator: u8,
    /// Control can go on behind it though its guard and predicates hold.
    pub conditional: bool,
    /// Mnemonic on the uniform datapath, or empty.
    pub uniform: String,
    /// Index into [`PIPES`].
    pub pipe: u8,
    /// Index into [`LATENCIES`].
    pub latency: u8,
    /// Registers touched though no operand names them.
    pub implicit: Vec<Implicit>,
    /// Where the facts come from.
    pub source: String,
}

/// A range of registers touched implicitly: `rw:P0-P6`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Implicit {
    /// 1 read, 2 written, 3 both.
    pub access: u8,
    /// Index into [`crate::names::FILES`].
    pub file: u8,
    /// First register.
    pub first: u8,
    /// Last register.
    pub last: u8,
}

/// Effect names; the position is the bit.
pub const EFFECTS: [&str; 7] = ["read", "write", "atomic", "fence", "barrier", "control", "state"];
/// Address spaces; the position is the code.
pub const SPACES: [&str; 10] = [
    "-",
    "generic",
    "global",
    "shared",
    "local",
    "constant",
    "texture",
    "surface",
    "attribute",
    "tensor",
];
/// Terminator kinds; the position is the code.
pub const TERMINATORS: [&str; 8] = [
    "-",
    "branch",
    "branch_indirect",
    "exit",
    "return",
    "call",
    "kill",
    "trap",
];
/// Pipe classes; the position is the code.
pub const PIPES: [&str; 12] = [
    "-", "alu", "fma", "fp16", "fp64", "xu", "lsu", "tex", "tensor", "uniform", "adu", "cbu",
];
/// Latency kinds; the position is the code.
pub const LATENCIES: [&str; 4] = ["-", "fixed", "scoreboard", "either"];

fn code(column: &str, names: &[&str], text: &str) -> Result<u8, String> {
    let found = names.iter().position(|n| *n == text);
    found
        .map(|i| i as u8)
        .ok_or_else(|| format!("column {column}: `{text}` is none of {}", names.join(" ")))
}

impl Implicit {
    fn parse(text: &str) -> Result<Self, String> {
        let bad = || format!("column implicit: `{text}` is not like rw:P0-P6");
        let (access, range) = text.split_once(':').ok_or_else(bad)?;
        let access = match access {
            "r" => 1,
            "w" => 2,
            "rw" => 3,
            _ => return Err(bad()),
        };
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let register = |t: &str| {
            let digits = t.find(|c: char| c.is_ascii_digit())?;
            let file = crate::names::FILES.iter().position(|f| *f == &t[..digits])?;
            Some((file as u8, t[digits..].parse::<u8>().ok()?))
        };
        let (file, first) = register(first).ok_or_else(bad)?;
        let (file2, last) = register(last).ok_or_else(bad)?;
        if file != file2 || last < first {
            return Err(bad());
        }
        Ok(Self {
            access,
            file,
            first,
            last,
        })
    }

    fn text(&self) -> String {
        let access = ["-", "r", "w", "rw"][usize::from(self.access)];
        let file = crate::names::FILES[usize::from(self.file)];
        if self.first == self.last {
            format!("{access}:{file}{}", self.first)
        } else {
            format!("{access}:{file}{}-{file}{}", self.first, self.last)
        }
    }
}

impl Row for SemanticsRow {
    const FILE: &'static str = "semantics.tsv";
    const COLUMNS: &'static [&'static str] = &[
        "mnemonic",
        "modifiers",
        "effects",
        "space",
        "convergence",
        "terminator",
        "uniform",
        "pipe",
        "latency",
        "implicit",
        "source",
    ];

    fn from_cells(c: &[&str]) -> Result<Self, String> {
        let mut effects = 0;
        if c[2] != "none" {
            for e in c[2].split('+') {
                effects |= 1 << code("effects", &EFFECTS, e)?;
            }
        }
        let terminator = c[5].strip_suffix('?').unwrap_or(c[5]);
        Ok(Self {
            mnemonic: c[0].to_owned(),
            modifiers: if c[1] == "*" {
                vec![]
            } else {
                c[1].split('.').map(str::to_owned).collect()
            },
            effects,
            space: code("space", &SPACES, c[3])?,
            convergence: code("convergence", &["-", "yes"], c[4])? == 1,
            terminator: code("terminator", &TERMINATORS, terminator)?,
            conditional: terminator != c[5],
            uniform: if c[6] == "-" { String::new() } else { c[6].to_owned() },
            pipe: code("pipe", &PIPES, c[7])?,
            latency: code("latency", &LATENCIES, c[8])?,
            implicit: if c[9] == "-" {
                vec![]
            } else {
                c[9].split(' ').map(Implicit::parse).collect::<Result<_, _>>()?
            },
            source: c[10].to_owned(),
        })
    }

    fn to_cells(&self) -> Vec<String> {
        let dash = |s: String| if s.is_empty() { "-".to_owned() } else { s };
        let effects: Vec<&str> = (0..EFFECTS.len())
            .filter(|i| self.effects >> i & 1 == 1)
            .map(|i| EFFECTS[i])
            .collect();
        let implicit: Vec<String> = self.implicit.iter().map(Implicit::text).collect();
        vec![
            self.mnemonic.clone(),
            if self.modifiers.is_empty() {
                "*".to_owned()
            } else {
                self.modifiers.join(".")
            },
            if effects.is_empty() {
                "none".to_owned()
            } else {
                effects.join("+")
            },
            SPACES[usize::from(self.space)].to_owned(),
            if self.convergence { "yes" } else { "-" }.to_owned(),
            TERMINATORS[usize::from(self.terminator)].to_owned() + if self.conditional { "?" } else { "" },
            dash(self.uniform.clone()),
            PIPES[usize::from(self.pipe)].to_owned(),
            LATENCIES[usize::from(self.latency)].to_owned(),
            dash(implicit.join(" ")),
            self.source.clone(),
        ]
    }
}

/// `aliases.tsv`: another spelling of `mnemonic` when every condition holds; the first row that fits is taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AliasRow {
    /// First dotted part of the printed name; it stays.
    pub mnemonic: String,
    /// Place among the rows of the mnemonic.
    pub order: u8,
    /// Conditions, all of which must hold.
    pub when: Vec<Condition>,
    /// Modifier tokens left out.
    pub drop: Vec<String>,
    /// Modifier tokens printed before the others.
    pub add: Vec<String>,
    /// A word (32 hex digits) that shows it, or another source.
    pub source: String,
}

/// Added to a hole in [`Condition::Value`]: the shape is a `-` and the hole.
pub const NEGATIVE: u8 = 0x80;

/// One condition of an alias.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// `operands=4`: how many operands the form has.
    Operands(u8),
    /// `1=RZ`, `1=-RZ`, `2!=0x10000`: operand 1 is (is not) exactly that register or number.
    Value {
        /// Index in printed order.
        operand: u8,
        /// Hole of the shape, `R` or `X`; [`NEGATIVE`] is added where a `-` stands before it.
        hole: u8,
        /// The value.
        value: i64,
        /// `=` or `!=`.
        equal: bool,
    },
    /// `2=pow2`: operand 2 is a plain number above 0 with one bit set.
    PowerOfTwo(u8),
    /// `3!UR`: no shape hole of operand 3 is of that kind.
    NoHole {
        /// Index in printed order.
        operand: u8,
        /// Hole kind, an index into [`crate::names::HOLES`].
        hole: u8,
    },
    /// `.WIDE` or `!.WIDE`: the token is (is not) among the modifiers.
    Token {
        /// The token.
        token: String,
        /// Whether it must be there.
        present: bool,
    },
    /// `109:105!=0`: a bit range is not zero.
    NotZero {
        /// Highest bit.
        high: u8,
        /// Lowest bit.
        low: u8,
    },
}

impl Condition {
    fn parse(text: &str) -> Result<Self, String> {
        let bad = || format!("column when: `{text}` is not a condition");
        let number = |t: &str| t.parse::<u8>().map_err(|_| bad());
        if let Some(n) = text.strip_prefix("operands=") {
            return Ok(Self::Operands(number(n)?));
        }
        if let Some(token) = text.strip_prefix("!.") {
            return Ok(Self::Token {
                token: token.to_owned(),
                present: false,
            });
        }
        if let Some(token) = text.strip_prefix('.') {
            return Ok(Self::Token {
                token: token.to_owned(),
                present: true,
            });
        }
        if let Some((range, "0")) = text.split_once("!=")
            && let Some((high, low)) = range.split_once(':')
        {
            let (high, low) = (number(high)?, number(low)?);
            return if low <= high && high < 128 && high - low < 64 {
                Ok(Self::NotZero { high, low })
            } else {
                Err(bad())
            };
        }
        let hole_code = |h: &str| crate::names::HOLES.iter().position(|n| *n == h).map(|i| i as u8);
        if let Some((n, hole)) = text.split_once('!').filter(|(_, h)| !h.starts_with('=')) {
            return Ok(Self::NoHole {
                operand: number(n)?,
                hole: hole_code(hole).ok_or_else(bad)?,
            });
        }
        let (n, value) = text.split_once('=').ok_or_else(bad)?;
        let (n, equal) = n.strip_suffix('!').map_or((n, true), |n| (n, false));
        let operand = number(n)?;
        if value == "pow2" && equal {
            return Ok(Self::PowerOfTwo(operand));
        }
        let (value, negative) = match value.strip_prefix('-') {
            Some(v) => (v, NEGATIVE),
            None => (value, 0),
        };
        let (hole, value) = match value {
            "RZ" => ("R", 255),
            "PT" => ("P", 7),
            v => (
                "X",
                v.strip_prefix("0x")
                    .and_then(|h| i64::from_str_radix(h, 16).ok())
                    .ok_or_else(bad)?,
            ),
        };
        Ok(Self::Value {
            operand,
            hole: hole_code(hole).ok_or_else(bad)? | negative,
            value,
            equal,
        })
    }

    fn text(&self) -> String {
        let holes = crate::names::HOLES;
        match self {
            Self::Operands(n) => format!("operands={n}"),
            Self::Value {
                operand,
                hole,
                value,
                equal,
            } => {
                let sign = if hole & NEGATIVE != 0 { "-" } else { "" };
                let value = match holes[usize::from(hole & !NEGATIVE)] {
                    "R" => "RZ".to_owned(),
                    "P" => "PT".to_owned(),
                    _ => format!("{value:#x}"),
                };
                format!("{operand}{}={sign}{value}", if *equal { "" } else { "!" })
            }
            Self::PowerOfTwo(n) => format!("{n}=pow2"),
            Self::NoHole { operand, hole } => format!("{operand}!{}", holes[usize::from(*hole)]),
            Self::Token { token, present } => format!("{}.{token}", if *present { "" } else { "!" }),
            Self::NotZero { high, low } => format!("{high}:{low}!=0"),
        }
    }
}

impl Row for AliasRow {
    const FILE: &'static str = "aliases.tsv";
    const COLUMNS: &'static [&'static str] = &["mnemonic", "order", "when", "drop", "add", "source"];

    fn from_cells(c: &[&str]) -> Result<Self, String> {
        let tokens = |s: &str| -> Vec<String> {
            if s == "-" {
                vec![]
            } else {
                s.split('.').map(str::to_owned).collect()
            }
        };
        Ok(Self {
            mnemonic: c[0].to_owned(),
            order: c[1]
                .parse()
                .map_err(|_| format!("column order: `{}` is not a number", c[1]))?,
            when: c[2].split(' ').map(Condition::parse).collect::<Result<_, _>>()?,
            drop: tokens(c[3]),
            add: tokens(c[4]),
            source: c[5].to_owned(),
        })
    }

    fn to_cells(&self) -> Vec<String> {
        let join = |t: &[String]| if t.is_empty() { "-".to_owned() } else { t.join(".") };
        vec![
            self.mnemonic.clone(),
            self.order.to_string(),
            self.when.iter().map(Condition::text).collect::<Vec<_>>().join(" "),
            join(&self.drop),
            join(&self.add),
            self.source.clone(),
        ]
    }
}
