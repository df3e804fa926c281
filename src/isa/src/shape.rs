//! Shapes: the text of one operand with holes, taken apart once.

/// A part of a shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Text(&'static str),
    /// A hole: its text (`R#`), its kind, an index into the hole names of the tables, and its ordinal.
    Hole(&'static str, u8, u8),
    /// `[` of a bracket group with several terms: the number of parts up to and with its `]`, and each term's mark.
    Open(u8, [Mark; TERMS]),
    /// `+` between terms of a bracket group.
    Plus,
    /// `]` of such a group.
    Close,
}

/// Most terms of an address.
pub(crate) const TERMS: usize = 3;

/// When a term of an address is left out at zero (RZ, URZ, 0): one term always stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// No mark: a uniform register never, other terms from right to left.
    Usual,
    /// `!`: never.
    Never,
    /// `?`: before the others, from left to right.
    First,
    /// `*`: after the others.
    Last,
}

impl Mark {
    /// The mark at the end of `term`, and the term without it.
    fn split(term: &str) -> (&str, Self) {
        let marks = [('!', Self::Never), ('?', Self::First), ('*', Self::Last)];
        let found = marks.into_iter().find_map(|(c, m)| Some((term.strip_suffix(c)?, m)));
        found.unwrap_or((term, Self::Usual))
    }
}

/// Hole kinds in the order of the tables: R UR P UP B SB X F L.
pub(crate) const HOLES: [&str; 9] = ["R", "UR", "P", "UP", "B", "SB", "X", "F", "L"];
/// Index of `R`.
pub(crate) const HOLE_R: u8 = 0;
/// Index of `UR`.
pub(crate) const HOLE_UR: u8 = 1;
/// Index of `X`.
pub(crate) const HOLE_X: u8 = 6;
/// Index of `L`.
pub(crate) const HOLE_L: u8 = 8;

/// A shape and its parts.
#[derive(Debug)]
pub(crate) struct Shape {
    pub(crate) text: &'static str,
    pub(crate) parts: Box<[Part]>,
}

impl Shape {
    /// Takes a shape apart; `-` is one without text.
    pub(crate) fn parse(text: &'static str) -> Self {
        let text = if text == "-" { "" } else { text };
        let mut parts = Vec::new();
        let mut counts = [0u8; HOLES.len()];
        let mut open: Option<usize> = None; // where the current group's `[` is in `parts`
        let mut marks = [Mark::Usual; TERMS];
        let mut term = 0;
        let mut start = 0;
        let bytes = text.as_bytes();
        let flush = |parts: &mut Vec<Part>, from: usize, to: usize| {
            if from < to {
                parts.push(Part::Text(&text[from..to]));
            }
        };
        for (i, &b) in bytes.iter().enumerate() {
            match b {
                b'[' => {
                    let close = text[i..].find(']').map_or(text.len(), |c| i + c);
                    if text[i..close].contains('+') {
                        flush(&mut parts, start, i);
                        open = Some(parts.len());
                        parts.push(Part::Open(0, marks));
                        (start, term) = (i + 1, 0);
                    }
                }
                b']' | b'+' => {
                    let Some(at) = open else { continue };
                    let (bare, mark) = Mark::split(&text[start..i]);
                    flush(&mut parts, start, start + bare.len());
                    if let Some(slot) = marks.get_mut(term) {
                        *slot = mark;
                    }
                    (start, term) = (i + 1, term + 1);
                    if b == b'+' {
                        parts.push(Part::Plus);
                    } else {
                        parts.push(Part::Close);
                        parts[at] = Part::Open((parts.len() - at - 1) as u8, marks);
                        (open, marks) = (None, [Mark::Usual; TERMS]);
                    }
                }
                b'#' => {
                    let kind = (0..HOLES.len())
                        .filter(|&k| text[start..i].ends_with(HOLES[k]))
                        .max_by_key(|&k| HOLES[k].len());
                    if let Some(kind) = kind {
                        let from = i - HOLES[kind].len();
                        flush(&mut parts, start, from);
                        parts.push(Part::Hole(&text[from..=i], kind as u8, counts[kind]));
                        counts[kind] += 1;
                        start = i + 1;
                    }
                }
                _ => {}
            }
        }
        flush(&mut parts, start, text.len());
        Self {
            text,
            parts: parts.into(),
        }
    }

    /// The hole if the shape is nothing but one hole.
    pub(crate) fn plain(&self) -> Option<(u8, u8)> {
        match *self.parts {
            [Part::Hole(_, kind, ordinal)] => Some((kind, ordinal)),
            _ => None,
        }
    }

    /// All holes.
    pub(crate) fn holes(&self) -> impl Iterator<Item = (u8, u8)> + '_ {
        self.parts.iter().filter_map(|p| match *p {
            Part::Hole(_, kind, ordinal) => Some((kind, ordinal)),
            _ => None,
        })
    }

    /// Whether it has that hole.
    pub(crate) fn has(&self, hole: (u8, u8)) -> bool {
        self.holes().any(|h| h == hole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_shapes() {
        assert_eq!(
            *Shape::parse("desc[UR#][R#.64+X#]").parts,
            [
                Part::Text("desc["),
                Part::Hole("UR#", 1, 0),
                Part::Text("]"),
                Part::Open(5, [Mark::Usual; TERMS]),
                Part::Hole("R#", 0, 0),
                Part::Text(".64"),
                Part::Plus,
                Part::Hole("X#", 6, 0),
                Part::Close,
            ]
        );
        assert_eq!(
            *Shape::parse("-|c[X#] [X#].H0|").parts,
            [
                Part::Text("-|c["),
                Part::Hole("X#", 6, 0),
                Part::Text("] ["),
                Part::Hole("X#", 6, 1),
                Part::Text("].H0|"),
            ]
        );
        assert_eq!(
            *Shape::parse("a[R#.64?+UR#*+X#!]").parts,
            [
                Part::Text("a"),
                Part::Open(7, [Mark::First, Mark::Last, Mark::Never]),
                Part::Hole("R#", 0, 0),
                Part::Text(".64"),
                Part::Plus,
                Part::Hole("UR#", 1, 0),
                Part::Plus,
                Part::Hole("X#", 6, 0),
                Part::Close,
            ]
        );
        assert_eq!(Shape::parse("UP#").plain(), Some((3, 0)));
        assert_eq!(Shape::parse("-R#").plain(), None);
        assert_eq!(*Shape::parse("SR_TID.X").parts, [Part::Text("SR_TID.X")]);
        assert!(Shape::parse("").parts.is_empty());
    }
}
