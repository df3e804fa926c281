//! From an operand's shape, as NVIDIA's disassembler writes it, to text that MLIR can lex.
//!
//! `-|R#|.H1_H1` becomes `-|%x|<H1_H1>`, `~UR#` becomes `not %x`, `[R#.64+X#]` becomes `[%x, %y<"64"> + 0x10]`. The rules are in
//! lit/GRAMMAR.md.

/// A part of the shape: text between holes, or the index of the field that fills a hole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    Text(&'a str),
    Hole(usize),
}

impl From<isa::Piece> for Piece<'static> {
    fn from(piece: isa::Piece) -> Self {
        match piece {
            isa::Piece::Text(text) => Piece::Text(text),
            isa::Piece::Field(field) => Piece::Hole(field),
        }
    }
}

/// A part of the MLIR text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Lit(String),
    /// The field that fills it, and whether it is inside square brackets.
    Hole {
        field: usize,
        bracketed: bool,
    },
}

/// True if MLIR lexes the text as one bare identifier.
pub(crate) fn is_identifier(text: &str) -> bool {
    let mut chars = text.bytes();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == b'_')
        && chars.all(|c| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'$' | b'.'))
}

/// A word as it stands in the text: verbatim if MLIR can lex it, else quoted.
pub(crate) fn word(text: &str) -> String {
    if is_identifier(text) || (!text.is_empty() && text.bytes().all(|c| c.is_ascii_digit())) {
        text.to_owned()
    } else {
        quote(text)
    }
}

/// A string literal with MLIR's escapes.
pub(crate) fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.bytes() {
        match c {
            b'\\' => out.push_str("\\\\"),
            b' '..=b'~' if c != b'"' => out.push(c as char),
            _ => out.push_str(&format!("\\{c:02X}")),
        }
    }
    out.push('"');
    out
}

/// A character of the shape, or a hole.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unit {
    Char(char),
    Hole(usize),
}

/// Translates one operand.
pub(crate) fn translate<'a>(pieces: impl IntoIterator<Item = Piece<'a>>) -> Vec<Part> {
    let mut units = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Text(text) => units.extend(text.chars().map(Unit::Char)),
            Piece::Hole(field) => units.push(Unit::Hole(field)),
        }
    }
    let mut parts = Vec::new();
    let mut lit = String::new();
    let (mut at, mut depth) = (0, 0usize);
    let word_end = |from: usize, dots: bool| {
        let more = |u: &Unit| matches!(u, Unit::Char(c) if c.is_alphanumeric() || matches!(c, '_' | '?' | '$') || (dots && *c == '.'));
        from + units[from..].iter().take_while(|u| more(u)).count()
    };
    let text_of = |from: usize, to: usize| {
        units[from..to]
            .iter()
            .filter_map(|u| if let Unit::Char(c) = u { Some(*c) } else { None })
            .collect::<String>()
    };
    while at < units.len() {
        let unit = units[at];
        at += 1;
        match unit {
            Unit::Hole(field) => {
                if !lit.is_empty() {
                    parts.push(Part::Lit(std::mem::take(&mut lit)));
                }
                parts.push(Part::Hole {
                    field,
                    bracketed: depth > 0,
                });
            }
            Unit::Char('.') if word_end(at, false) > at => {
                let end = word_end(at, false);
                let suffix = text_of(at, end);
                lit.push_str(&if is_identifier(&suffix) {
                    format!("<{suffix}>")
                } else {
                    format!("<{}>", quote(&suffix))
                });
                at = end;
            }
            Unit::Char('!' | '~') => lit.push_str("not "),
            Unit::Char('+') => lit.push_str(" + "),
            Unit::Char('*') => lit.push_str(" * "),
            Unit::Char(',') => lit.push_str(", "),
            Unit::Char(c @ ('-' | '|' | '{' | '}' | '(' | ')' | ' ')) => lit.push(c),
            Unit::Char('[') => {
                depth += 1;
                lit.push('[');
            }
            Unit::Char(']') => {
                depth = depth.saturating_sub(1);
                lit.push(']');
            }
            Unit::Char(c) if c.is_alphanumeric() || c == '_' || c == '?' => {
                let end = word_end(at, true);
                lit.push_str(&word(&text_of(at - 1, end)));
                at = end;
            }
            Unit::Char(c) => lit.push_str(&quote(&c.to_string())),
        }
    }
    if !lit.is_empty() {
        parts.push(Part::Lit(lit));
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Renders with `%fN` for holes.
    fn show(shape: &str) -> String {
        let mut pieces = Vec::new();
        for (i, text) in shape.split('#').enumerate() {
            if i > 0 {
                pieces.push(Piece::Hole(i - 1));
            }
            pieces.push(Piece::Text(text));
        }
        translate(pieces)
            .iter()
            .map(|p| match p {
                Part::Lit(s) => s.clone(),
                Part::Hole { field, bracketed } => format!("%{field}{}", if *bracketed { "b" } else { "" }),
            })
            .collect()
    }

    #[test]
    fn shapes_become_mlir_text() {
        for (shape, text) in [
            ("#", "%0"),
            ("-|#|.H1_H1", "-|%0|<H1_H1>"),
            ("|c[#] [#].F32|", "|c[%0b] [%1b]<F32>|"),
            ("~#", "not %0"),
            ("!#", "not %0"),
            ("[#.64+#+#]", "[%0b<\"64\"> + %1b + %2b]"),
            ("desc[#][#.64+#]", "desc[%0b][%1b<\"64\"> + %2b]"),
            ("SR_TID.X", "SR_TID.X"),
            ("2D", "\"2D\""),
            ("???3", "\"???3\""),
            ("#.???1", "%0<\"???1\">"),
            ("{5,#,#}", "{5, %0, %1}"),
            ("# #", "%0 %1"),
            ("a[#+#]", "a[%0b + %1b]"),
        ] {
            assert_eq!(show(shape), text, "{shape}");
        }
    }

    #[test]
    fn strings_are_escaped_as_mlir_does() {
        assert_eq!(quote("a\"b\\c\n"), "\"a\\22b\\\\c\\0A\"");
    }
}
