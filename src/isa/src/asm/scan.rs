//! Takes one instruction's text apart: the skeleton (the text with holes for registers and numbers, as shapes have them) and what
//! stands in the holes.

use super::AsmError;
use crate::field::RegFile;

/// What stands in a hole.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value {
    /// Number of a register; `None` for `RZ`, `URZ`, `PT`, `UPT`.
    Register(RegFile, Option<u8>),
    /// A scoreboard's number, or a hexadecimal number.
    Number(i64),
    /// A number in decimal.
    Float(f64),
    /// A quiet or signaling NaN: which bits it has cannot be told from the text.
    Nan,
}

/// The most holes that an instruction's text has.
pub(super) const MAX_VALUES: usize = 24;

/// Gives code labels their byte offsets in the section.
pub type Places<'a> = &'a dyn Fn(&str) -> Option<u64>;

/// The scanner's result; the buffers are used again for the next line.
#[derive(Default)]
pub(super) struct Scanned {
    /// Mnemonic with modifiers, a blank, and the operands with holes, without other blanks.
    pub(super) skeleton: String,
    /// The text without blanks, labels replaced by numbers.
    pub(super) plain: String,
    /// What stands in the holes, in order.
    pub(super) values: Vec<Value>,
    /// For each operand: its end in `skeleton`, its end in `plain`, and the end of its values.
    pub(super) operands: Vec<(usize, usize, usize)>,
    /// Where the operands start in `plain`.
    pub(super) operands_start: usize,
    /// A bit for each operand that is marked `.reuse`.
    pub(super) reuse: u32,
    /// The guard: negated, register file, register.
    pub(super) guard: Option<(bool, RegFile, Option<u8>)>,
}

fn is_word(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_'
}

/// The end of the run of letters, digits and `_` that starts at `at`.
fn word_end(bytes: &[u8], at: usize) -> usize {
    bytes[at..]
        .iter()
        .position(|&b| !is_word(b))
        .map_or(bytes.len(), |n| at + n)
}

/// `R12`, `URZ`, `PT`, `SB3` as a hole's name and value.
fn register(word: &[u8]) -> Option<(&'static str, Value)> {
    use RegFile::{B, P, R, UP, UR};
    let (hole, file, rest) = match word {
        [b'U', b'R', rest @ ..] => ("UR#", UR, rest),
        [b'U', b'P', rest @ ..] => ("UP#", UP, rest),
        [b'S', b'B', rest @ ..] => return Some(("SB#", Value::Number(i64::from(decimal(rest)?)))),
        [b'R', rest @ ..] => ("R#", R, rest),
        [b'P', rest @ ..] => ("P#", P, rest),
        [b'B', rest @ ..] => ("B#", B, rest),
        _ => return None,
    };
    let is_zero = match file {
        R | UR => rest == b"Z",
        P | UP => rest == b"T",
        B => false,
    };
    // The highest number of a file is the constant register, which has a name of its own.
    let number = if is_zero { None } else { Some(decimal(rest)?) };
    if matches!((file, number), (R, Some(255)) | (P | UP, Some(7))) {
        return None;
    }
    Some((hole, Value::Register(file, number)))
}

/// A decimal number below 256, written as the tools write it: without leading zeros.
fn decimal(digits: &[u8]) -> Option<u8> {
    if digits.is_empty() || digits.len() > 3 || digits[0] == b'0' && digits.len() > 1 {
        return None;
    }
    let mut value = 0u32;
    for &d in digits {
        value = value * 10 + u32::from(d.is_ascii_digit().then_some(d - b'0')?);
    }
    u8::try_from(value).ok()
}

/// The end of a decimal number: digits, a fraction, an exponent.
fn float_end(bytes: &[u8], at: usize) -> usize {
    let digits = |at: usize| {
        bytes[at..]
            .iter()
            .position(|b| !b.is_ascii_digit())
            .map_or(bytes.len(), |n| at + n)
    };
    let mut end = digits(at);
    if bytes.get(end) == Some(&b'.') && bytes.get(end + 1).is_some_and(u8::is_ascii_digit) {
        end = digits(end + 1);
    }
    if bytes.get(end) == Some(&b'e') {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        if bytes.get(end + 1 + sign).is_some_and(u8::is_ascii_digit) {
            end = digits(end + 1 + sign);
        }
    }
    end
}

impl Scanned {
    /// Reads `@P0 MNEMONIC.MODIFIERS operands`, without the final `;`.
    pub(super) fn read(&mut self, text: &str, places: Option<Places<'_>>) -> Result<(), AsmError> {
        self.skeleton.clear();
        self.plain.clear();
        self.values.clear();
        self.operands.clear();
        (self.reuse, self.guard) = (0, None);
        let mut rest = text.trim();
        if rest.starts_with('@') {
            let (guard, tail) = rest.split_once(' ').unwrap_or((rest, ""));
            self.read_guard(guard)?;
            rest = tail.trim_start();
        }
        let (head, operands) = rest.split_once(' ').unwrap_or((rest, ""));
        if head.is_empty() {
            return Err(AsmError::Syntax("there is no mnemonic".into()));
        }
        self.skeleton.push_str(head);
        self.plain.push_str(head);
        self.operands_start = self.plain.len();
        self.skeleton.push(' ');
        if !operands.trim().is_empty() {
            self.read_operands(operands, places)?;
        }
        Ok(())
    }

    fn read_guard(&mut self, guard: &str) -> Result<(), AsmError> {
        let name = &guard[1..];
        let (negated, name) = name.strip_prefix('!').map_or((false, name), |n| (true, n));
        match register(name.as_bytes()) {
            Some((_, Value::Register(file @ (RegFile::P | RegFile::UP), n))) => {
                self.guard = Some((negated, file, n));
                if negated || n.is_some() {
                    self.plain.push_str(guard);
                }
                Ok(())
            }
            _ => Err(AsmError::Syntax(format!(
                "`{guard}` is no guard like @P0, @!P3 or @UP1"
            ))),
        }
    }

    /// Reads one operand or several.
    pub(super) fn read_operands(&mut self, text: &str, places: Option<Places<'_>>) -> Result<(), AsmError> {
        let bytes = text.as_bytes();
        let (mut at, mut depth) = (0, 0i32);
        while at < bytes.len() {
            let b = bytes[at];
            match b {
                b' ' | b'\t' => at += 1,
                b',' if depth == 0 => {
                    self.end_operand();
                    self.both(",");
                    at += 1;
                }
                b'[' | b'{' | b'(' => {
                    depth += 1;
                    self.both(&text[at..at + 1]);
                    at += 1;
                }
                b']' | b'}' | b')' => {
                    depth -= 1;
                    self.both(&text[at..at + 1]);
                    at += 1;
                }
                b'`' => at = self.read_label(text, at, places)?,
                b'.' => {
                    let end = word_end(bytes, at + 1);
                    if &bytes[at..end] == b".reuse" {
                        self.reuse |= 1u32.checked_shl(self.operands.len() as u32).unwrap_or(0);
                        self.plain.push_str(".reuse");
                    } else {
                        self.both(&text[at..end]);
                    }
                    at = end;
                }
                b'0'..=b'9' => at = self.read_number(text, at, at)?,
                b'-' if bytes.get(at + 1).is_some_and(u8::is_ascii_digit) => at = self.read_number(text, at, at + 1)?,
                b'+' | b'-' if matches!(&bytes[at + 1..word_end(bytes, at + 1)], b"INF" | b"QNAN" | b"SNAN") => {
                    let end = word_end(bytes, at + 1);
                    let value = match &text[at..end] {
                        "+INF" => Value::Float(f64::INFINITY),
                        "-INF" => Value::Float(f64::NEG_INFINITY),
                        _ => Value::Nan,
                    };
                    self.hole("F#", value, &text[at..end])?;
                    at = end;
                }
                _ if is_word(b) => {
                    let end = word_end(bytes, at);
                    match register(&bytes[at..end]) {
                        Some((hole, value)) => self.hole(hole, value, &text[at..end])?,
                        None => self.both(&text[at..end]),
                    }
                    at = end;
                }
                _ if b.is_ascii() => {
                    self.both(&text[at..at + 1]);
                    at += 1;
                }
                _ => return Err(AsmError::Syntax(format!("`{}` is not ASCII", &text[at..]))),
            }
        }
        self.end_operand();
        Ok(())
    }

    fn both(&mut self, text: &str) {
        self.skeleton.push_str(text);
        self.plain.push_str(text);
    }

    fn hole(&mut self, hole: &str, value: Value, text: &str) -> Result<(), AsmError> {
        if self.values.len() == MAX_VALUES {
            return Err(AsmError::Syntax(
                "more numbers and registers than any instruction has".into(),
            ));
        }
        self.skeleton.push_str(hole);
        self.plain.push_str(text);
        self.values.push(value);
        Ok(())
    }

    fn end_operand(&mut self) {
        self.operands
            .push((self.skeleton.len(), self.plain.len(), self.values.len()));
    }

    /// A number that starts at `at`, sign included; its digits start at `digits`.
    fn read_number(&mut self, text: &str, at: usize, digits: usize) -> Result<usize, AsmError> {
        let bytes = text.as_bytes();
        if bytes[digits..].starts_with(b"0x") {
            let end = word_end(bytes, digits);
            let magnitude = u64::from_str_radix(&text[digits + 2..end], 16)
                .map_err(|_| AsmError::Syntax(format!("`{}` is no number of 64 bits", &text[at..end])))?;
            let value = if digits > at {
                (magnitude as i64).wrapping_neg()
            } else {
                magnitude as i64
            };
            self.hole("X#", Value::Number(value), &text[at..end])?;
            return Ok(end);
        }
        let end = float_end(bytes, digits);
        if bytes.get(end).is_some_and(|&b| is_word(b)) {
            let end = word_end(bytes, digits); // `2D`
            self.both(&text[at..end]);
            return Ok(end);
        }
        let value = text[at..end]
            .parse()
            .map_err(|_| AsmError::Syntax(format!("`{}` is no number", &text[at..end])))?;
        self.hole("F#", Value::Float(value), &text[at..end])?;
        Ok(end)
    }

    /// `` `(NAME) ``: a place in the code.
    fn read_label(&mut self, text: &str, at: usize, places: Option<Places<'_>>) -> Result<usize, AsmError> {
        let name = text[at..].strip_prefix("`(").and_then(|t| t.split_once(')'));
        let Some((name, _)) = name else {
            return Err(AsmError::Syntax(format!(
                "`{}` is no label like `(.L_x_0)",
                &text[at..]
            )));
        };
        let place = places
            .and_then(|p| p(name))
            .ok_or_else(|| AsmError::Label(name.to_owned()))?;
        self.hole("X#", Value::Number(place as i64), &format!("{place:#x}"))?;
        Ok(at + name.len() + 3)
    }

    /// The skeleton of operand `n`.
    pub(super) fn operand(&self, n: usize) -> &str {
        let start = match n {
            0 => self.skeleton.find(' ').map_or(0, |at| at + 1),
            n => self.operands[n - 1].0 + 1,
        };
        &self.skeleton[start..self.operands[n].0]
    }
}
