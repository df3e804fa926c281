//! Comparisons and what is done with their outcome.

use crate::regs::Mask;

/// An order relation. Those on floats are false for a NaN, but for those that end in `U`, and `NAN`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, clippy::upper_case_acronyms)]
pub enum Order {
    False,
    LT,
    EQ,
    LE,
    GT,
    NE,
    GE,
    Number,
    Nan,
    LTU,
    EQU,
    LEU,
    GTU,
    NEU,
    GEU,
    True,
}

impl Order {
    /// The lanes in which it holds, from those where a < b, a == b and where the two have no order.
    pub fn of(self, less: Mask, equal: Mask, nan: Mask) -> Mask {
        let greater = !(less | equal | nan);
        match self {
            Self::False => 0,
            Self::LT => less,
            Self::EQ => equal,
            Self::LE => less | equal,
            Self::GT => greater,
            Self::NE => less | greater,
            Self::GE => greater | equal,
            Self::Number => !nan,
            Self::Nan => nan,
            Self::LTU => less | nan,
            Self::EQU => equal | nan,
            Self::LEU => !greater,
            Self::GTU => greater | nan,
            Self::NEU => !equal,
            Self::GEU => !less,
            Self::True => !0,
        }
    }
}

/// Modifiers of `ISETP`.
pub const INTEGER: &[(&str, Order)] = &[
    ("F", Order::False),
    ("LT", Order::LT),
    ("EQ", Order::EQ),
    ("LE", Order::LE),
    ("GT", Order::GT),
    ("NE", Order::NE),
    ("GE", Order::GE),
    ("T", Order::True),
];

/// Modifiers of `FSETP`, `DSETP`, `HSETP2`.
pub const FLOAT: &[(&str, Order)] = &[
    ("F", Order::False),
    ("LT", Order::LT),
    ("EQ", Order::EQ),
    ("LE", Order::LE),
    ("GT", Order::GT),
    ("NE", Order::NE),
    ("GE", Order::GE),
    ("NUM", Order::Number),
    ("NAN", Order::Nan),
    ("LTU", Order::LTU),
    ("EQU", Order::EQU),
    ("LEU", Order::LEU),
    ("GTU", Order::GTU),
    ("NEU", Order::NEU),
    ("GEU", Order::GEU),
    ("T", Order::True),
];

/// How an outcome joins another predicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Combine {
    And,
    Or,
    Xor,
}

/// Modifiers for it.
pub const COMBINE: &[(&str, Combine)] = &[("AND", Combine::And), ("OR", Combine::Or), ("XOR", Combine::Xor)];

impl Combine {
    /// Both together.
    pub fn of(self, a: Mask, b: Mask) -> Mask {
        match self {
            Self::And => a & b,
            Self::Or => a | b,
            Self::Xor => a ^ b,
        }
    }
}
