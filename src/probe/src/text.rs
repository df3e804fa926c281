//! A printed instruction, taken apart: guard, mnemonic, modifiers, and operands as shapes with values in their holes.

use std::fmt;

/// What stands in a hole of a shape.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Value {
    /// A register number or an integer. RZ, URZ, PT and UPT are the file's last number.
    Int(i64),
    /// A float, as printed.
    Float(Box<str>),
}

/// A kind of hole; the names are those of the tables (`R#`, `X#`, ...).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Hole {
    /// General register.
    R,
    /// Uniform register.
    Ur,
    /// Predicate.
    P,
    /// Uniform predicate.
    Up,
    /// Convergence barrier register.
    B,
    /// Scoreboard.
    Sb,
    /// Hexadecimal integer.
    X,
    /// Float.
    F,
    /// Code address.
    L,
}

impl Hole {
    const ALL: [(Hole, &'static str); 9] = [
        (Hole::Ur, "UR"),
        (Hole::R, "R"),
        (Hole::Up, "UP"),
        (Hole::P, "P"),
        (Hole::Sb, "SB"),
        (Hole::B, "B"),
        (Hole::X, "X"),
        (Hole::F, "F"),
        (Hole::L, "L"),
    ];

    /// The name without `#`.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|h| h.0 == self).map_or("?", |h| h.1)
    }

    /// The register number that prints as RZ, URZ, PT or UPT.
    pub fn zero(self, uniform_zero: i64) -> Option<i64> {
        match self {
            Hole::R => Some(255),
            Hole::Ur => Some(uniform_zero),
            Hole::P | Hole::Up => Some(7),
            _ => None,
        }
    }

    /// Whether it holds a register of some file.
    pub fn is_register(self) -> bool {
        !matches!(self, Hole::X | Hole::F | Hole::L | Hole::Sb)
    }
}

/// The holes of a shape, in order.
pub fn holes(shape: &str) -> Vec<Hole> {
    let mut out = Vec::new();
    let bytes = shape.as_bytes();
    for (i, _) in shape.match_indices('#') {
        let mut start = i;
        while start > 0 && bytes[start - 1].is_ascii_uppercase() {
            start -= 1;
        }
        out.extend(Hole::ALL.iter().find(|(_, n)| *n == &shape[start..i]).map(|h| h.0));
    }
    out
}

/// One operand.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Operand {
    /// Its text with holes, addresses in canonical form (`[R#+UR#+X#]`, the parts that were left out put back).
    pub shape: Box<str>,
    /// The holes' values.
    pub values: Vec<Value>,
    /// Printed with `.reuse`, which is not part of the shape.
    pub reuse: bool,
    /// The terms of its address that are printed.
    pub terms: Terms,
}

/// A set of terms of an address: register, uniform register, offset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Terms(pub u8);

impl Terms {
    /// The bit of a kind of term.
    pub fn of(hole: Hole) -> u8 {
        match hole {
            Hole::R => 1,
            Hole::Ur => 2,
            _ => 4,
        }
    }
}

/// One instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    /// `@P`, `@!P`, `@UP`, `@!UP`, or empty where no guard is printed.
    pub guard: &'static str,
    /// The guard's number, 7 where none is printed.
    pub guard_number: i64,
    /// First dotted part of the name.
    pub mnemonic: Box<str>,
    /// The other parts.
    pub modifiers: Vec<Box<str>>,
    /// Operands in printed order.
    pub operands: Vec<Operand>,
}

/// Spellings of IMAD that depend on operand values; the tables hold IMAD's own modifiers (see aliases.tsv).
const IMAD_SPELLINGS: [&str; 3] = ["MOV", "IADD", "SHL"];

impl Text {
    /// Takes `text` apart.
    pub fn parse(text: &str, uniform_zero: i64) -> Self {
        let (guard, guard_number, rest) = split_guard(text);
        let (name, arguments) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let mut parts = name.split('.');
        let mnemonic: Box<str> = parts.next().unwrap_or("").into();
        let mut modifiers: Vec<Box<str>> = parts.map(Box::from).collect();
        if &*mnemonic == "IMAD" && modifiers.first().is_some_and(|m| IMAD_SPELLINGS.contains(&&**m)) {
            modifiers.remove(0);
        }
        let pieces = split_operands(arguments.trim());
        let operands = pieces.into_iter().map(|p| Operand::parse(p, uniform_zero)).collect();
        Self {
            guard,
            guard_number,
            mnemonic,
            modifiers,
            operands,
        }
    }

    /// The value of component `ordinal` of kind `hole` of operand `operand`: `(2, R, 0)` is `2.R0`.
    pub fn value(&self, operand: u8, hole: Hole, ordinal: u8) -> Option<&Value> {
        let operand = self.operands.get(operand as usize)?;
        let kinds = holes(&operand.shape);
        let index = kinds
            .iter()
            .enumerate()
            .filter(|(_, k)| **k == hole)
            .nth(ordinal as usize)?
            .0;
        operand.values.get(index)
    }

    /// The components of all operands, in order.
    pub fn components(&self) -> Vec<(u8, Hole, u8)> {
        let mut out: Vec<(u8, Hole, u8)> = Vec::new();
        for (i, operand) in self.operands.iter().enumerate() {
            for hole in holes(&operand.shape) {
                let ordinal = out.iter().filter(|c| c.0 == i as u8 && c.1 == hole).count();
                out.push((i as u8, hole, ordinal as u8));
            }
        }
        out
    }
}

fn split_guard(text: &str) -> (&'static str, i64, &str) {
    let Some(rest) = text.strip_prefix('@') else {
        return ("", 7, text);
    };
    let (guard, rest) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let (not, register) = guard.strip_prefix('!').map_or((false, guard), |g| (true, g));
    let (uniform, number) = match register.strip_prefix("UP") {
        Some(n) => (true, n),
        None => (false, register.strip_prefix('P').unwrap_or("T")),
    };
    let kind = match (uniform, not) {
        (false, false) => "@P",
        (false, true) => "@!P",
        (true, false) => "@UP",
        (true, true) => "@!UP",
    };
    (kind, number.parse().unwrap_or(7), rest.trim_start())
}

/// Splits at top-level commas.
fn split_operands(s: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let (mut depth, mut start) = (0i32, 0);
    for (i, c) in s.char_indices() {
        match c {
            '[' | '{' | '(' => depth += 1,
            ']' | '}' | ')' => depth -= 1,
            ',' if depth == 0 => {
                out.push(s[start..i].trim());
                start = i + 1;
            }
            _ => {}
        }
    }
    let last = s[start..].trim();
    if !last.is_empty() {
        out.push(last);
    }
    out
}

fn is_register(s: &str) -> bool {
    let n = s.strip_prefix("UR").or_else(|| s.strip_prefix('R')).unwrap_or("");
    n == "Z" || !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit())
}

impl Operand {
    fn parse(text: &str, uniform_zero: i64) -> Self {
        // A space sets off the suffix of a special float: `-QNAN .H1`.
        let text = text.replace("N .", "N.").replace("INF .", "INF.");
        let (canonical, terms) = canonical_addresses(&text);
        let s = canonical.as_str();
        let mut shape = String::with_capacity(s.len());
        let mut values = Vec::new();
        let (mut i, mut braces) = (0, 0);
        while i < s.len() {
            let before = s[..i].bytes().last();
            let fresh = braces == 0
                && !before.is_some_and(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'?' | b'{'));
            if fresh && let Some((hole, length, value)) = hole_at(&s[i..], uniform_zero) {
                shape.push_str(hole.name());
                shape.push('#');
                values.push(value);
                i += length;
                continue;
            }
            let c = s[i..].chars().next().unwrap_or(' ');
            match c {
                '{' => braces += 1, // a set such as {3,2} is one word, chosen by its bits
                '}' => braces -= 1,
                _ => {}
            }
            shape.push(c);
            i += c.len_utf8();
        }
        let plain = shape.replace(".reuse", "");
        Self {
            reuse: plain.len() != shape.len(),
            shape: plain.into(),
            values,
            terms,
        }
    }
}

/// A register or number at the start of `s`: its kind, length and value.
fn hole_at(s: &str, uniform_zero: i64) -> Option<(Hole, usize, Value)> {
    let ends = |n: usize| !s[n..].starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    for (hole, name) in &Hole::ALL[..6] {
        let Some(rest) = s.strip_prefix(name) else { continue };
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        if digits > 0 && ends(name.len() + digits) {
            let value = rest[..digits].parse().ok()?;
            return Some((*hole, name.len() + digits, Value::Int(value)));
        }
        let zero = if matches!(hole, Hole::P | Hole::Up) { 'T' } else { 'Z' };
        if rest.starts_with(zero) && ends(name.len() + 1) {
            return Some((*hole, name.len() + 1, Value::Int(hole.zero(uniform_zero)?)));
        }
    }
    let negative = s.starts_with('-');
    let unsigned = s.strip_prefix(['-', '+']).unwrap_or(s);
    let sign = s.len() - unsigned.len();
    if !s.starts_with('+')
        && let Some(hex) = unsigned.strip_prefix("0x")
    {
        let digits = hex.bytes().take_while(u8::is_ascii_hexdigit).count();
        let value = u64::from_str_radix(&hex[..digits], 16).ok()? as i64;
        return Some((
            Hole::X,
            sign + 2 + digits,
            Value::Int(if negative { value.wrapping_neg() } else { value }),
        ));
    }
    let length = sign + float_length(unsigned)?;
    ends(length).then(|| (Hole::F, length, Value::Float(s[..length].into())))
}

/// Length of `12.5e+10`, `INF`, `QNAN` or `SNAN` at the start of `s`.
fn float_length(s: &str) -> Option<usize> {
    if let Some(word) = ["INF", "QNAN", "SNAN"].iter().find(|w| s.starts_with(**w)) {
        return Some(word.len());
    }
    let digits = |t: &str| t.bytes().take_while(u8::is_ascii_digit).count();
    let mut n = digits(s);
    if n == 0 {
        return None;
    }
    if s[n..].starts_with('.') {
        let fraction = digits(&s[n + 1..]);
        n += if fraction > 0 { 1 + fraction } else { 0 }; // `-8.H1` has a suffix, no fraction
    }
    if let Some(exponent) = s[n..].strip_prefix('e') {
        let sign = usize::from(exponent.starts_with(['+', '-']));
        let d = digits(&exponent[sign..]);
        if d > 0 {
            n += 1 + sign + d;
        }
    }
    Some(n)
}

/// Puts back what an address leaves out: `[0x10]` is `[RZ+0x10]`, `[R2]` is `[R2+0x0]`. Also the terms that were there.
fn canonical_addresses(text: &str) -> (String, Terms) {
    let constant = text.trim_start_matches(['-', '|', '~', '!']);
    let constant = constant.starts_with("c[") || constant.starts_with("cx[");
    let mut out = String::with_capacity(text.len() + 8);
    let mut rest = text;
    let mut group = 0;
    let mut terms = 0;
    while let Some(open) = rest.find('[') {
        let Some(close) = rest[open..].find(']').map(|n| open + n) else {
            break;
        };
        let inner = &rest[open + 1..close];
        let head = &rest[..open];
        out.push_str(head);
        let descriptor = head.ends_with("desc") || head.ends_with("cx");
        let plain_bank = constant && (group == 0 || is_hex(inner));
        match address_parts(inner).filter(|_| !descriptor && !plain_bank) {
            Some((register, uniform, offset)) => {
                let printed = [(Hole::R, register), (Hole::Ur, uniform), (Hole::X, offset)];
                terms = printed
                    .iter()
                    .filter(|p| p.1.is_some())
                    .fold(0, |m, p| m | Terms::of(p.0));
                out.push('[');
                out.push_str(register.unwrap_or("RZ"));
                if let Some(u) = uniform {
                    out.push('+');
                    out.push_str(u);
                }
                out.push('+');
                out.push_str(offset.unwrap_or("0x0"));
                out.push(']');
            }
            None => {
                if constant && group > 0 {
                    terms = Terms::of(Hole::X);
                }
                out.push_str(&rest[open..=close]);
            }
        }
        group += 1;
        rest = &rest[close + 1..];
    }
    out.push_str(rest);
    (out, Terms(terms))
}

fn is_hex(s: &str) -> bool {
    let digits = s.strip_prefix('-').unwrap_or(s).strip_prefix("0x");
    digits.is_some_and(|d| !d.is_empty() && d.bytes().all(|b| b.is_ascii_hexdigit()))
}

type AddressParts<'a> = (Option<&'a str>, Option<&'a str>, Option<&'a str>);

/// The register, uniform register and offset of `R2.64+UR4+-0x10`, each at most once.
fn address_parts(inner: &str) -> Option<AddressParts<'_>> {
    let mut parts: AddressParts<'_> = (None, None, None);
    for part in inner.split('+') {
        let name = part.split('.').next().unwrap_or("");
        let slot = if name.starts_with("UR") && is_register(name) {
            &mut parts.1
        } else if is_register(name) {
            &mut parts.0
        } else if is_hex(part) {
            &mut parts.2
        } else {
            return None;
        };
        if slot.replace(part).is_some() {
            return None;
        }
    }
    Some(parts)
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{} {}", self.guard, self.guard_number, self.mnemonic)?;
        self.modifiers.iter().try_for_each(|m| write!(f, ".{m}"))?;
        self.operands
            .iter()
            .try_for_each(|o| write!(f, " {} {:?}", o.shape, o.values))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shapes(text: &str) -> Vec<String> {
        Text::parse(text, 63)
            .operands
            .iter()
            .map(|o| o.shape.to_string())
            .collect()
    }

    #[test]
    fn takes_instructions_apart() {
        let t = Text::parse("@!P0 LDG.E.128 R4, [R2.64+-0x10], !PT", 63);
        assert_eq!((t.guard, t.guard_number, &*t.mnemonic), ("@!P", 0, "LDG"));
        assert_eq!(t.modifiers.len(), 2);
        assert_eq!(shapes("LDG.E.128 R4, [R2.64+-0x10], !PT"), ["R#", "[R#.64+X#]", "!P#"]);
        assert_eq!(t.value(1, Hole::X, 0), Some(&Value::Int(-16)));
        assert_eq!(t.value(2, Hole::P, 0), Some(&Value::Int(7)));
    }

    #[test]
    fn addresses_are_canonical_and_banks_are_not() {
        assert_eq!(shapes("LDS R1, [0x10]"), ["R#", "[R#+X#]"]);
        assert_eq!(shapes("LDS R1, [UR4]"), ["R#", "[R#+UR#+X#]"]);
        assert_eq!(shapes("MOV R1, c[0x0][0x160]"), ["R#", "c[X#][X#]"]);
        assert_eq!(shapes("LDC R1, c[0x3][R2]"), ["R#", "c[X#][R#+X#]"]);
        assert_eq!(shapes("LDG.E R1, desc[UR4][R2.64]"), ["R#", "desc[UR#][R#.64+X#]"]);
        assert_eq!(shapes("FADD R1, -|R2|.reuse, 1.5"), ["R#", "-|R#|", "F#"]);
        assert_eq!(shapes("DEPBAR.LE SB0, 0x1, {3,2}"), ["SB#", "X#", "{3,2}"]);
        assert_eq!(shapes("TEX R1, R2, R3, 2D"), ["R#", "R#", "R#", "2D"]);
        assert_eq!(shapes("FMUL R1, R2, +INF "), ["R#", "R#", "F#"]);
    }

    #[test]
    fn holes_of_a_shape() {
        assert_eq!(holes("desc[UR#][R#.64+X#]"), [Hole::Ur, Hole::R, Hole::X]);
        assert_eq!(holes("SR_TID.X"), []);
    }
}
