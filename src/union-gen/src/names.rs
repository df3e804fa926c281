//! The small vocabularies of the tables: register files, field kinds, shape holes, field maps.

use crate::bits::Bits;

/// Register files; the position is the code in the packed tables.
pub const FILES: [&str; 5] = ["R", "UR", "P", "UP", "B"];
/// Field kinds; the position is the code. The first five are the register files.
pub const KINDS: [&str; 12] = [
    "R", "UR", "P", "UP", "B", "SB", "I", "REL", "F16", "BF16", "F32", "F64H",
];
/// Hole kinds of shapes; the position is the code.
pub const HOLES: [&str; 9] = ["R", "UR", "P", "UP", "B", "SB", "X", "F", "L"];

/// Which operand a field belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Owner {
    /// The guard, `g`.
    Guard,
    /// `2.R0`: operand 2 in printed order.
    Printed(u8),
    /// `h0.UR0`: an operand that no text shows.
    Hidden(u8),
}

/// A field's name taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FieldName {
    /// The operand.
    pub owner: Owner,
    /// Hole kind, an index into [`HOLES`]; `P` or `UP` does not matter for the guard.
    pub hole: u8,
    /// Which hole of that kind.
    pub ordinal: u8,
}

impl FieldName {
    /// Reads `g`, `2.R0`, `h0.UR0`.
    pub fn parse(name: &str) -> Option<Self> {
        if name == "g" {
            return Some(Self {
                owner: Owner::Guard,
                hole: 2,
                ordinal: 0,
            });
        }
        let (owner, component) = name.split_once('.')?;
        let owner = match owner.strip_prefix('h') {
            Some(n) => Owner::Hidden(n.parse().ok()?),
            None => Owner::Printed(owner.parse().ok()?),
        };
        let digits = component.find(|c: char| c.is_ascii_digit())?;
        let hole = HOLES.iter().position(|h| *h == &component[..digits])?;
        Some(Self {
            owner,
            hole: hole as u8,
            ordinal: component[digits..].parse().ok()?,
        })
    }
}

/// The holes of a shape, in order, as (hole kind, ordinal among its kind).
pub fn holes(shape: &str) -> Vec<(u8, u8)> {
    let mut counts = [0u8; HOLES.len()];
    let mut out = Vec::new();
    for (at, _) in shape.match_indices('#') {
        let before = &shape[..at];
        // The longest kind that ends here: `UR` before `R`.
        let kind = (0..HOLES.len())
            .filter(|&k| before.ends_with(HOLES[k]))
            .max_by_key(|&k| HOLES[k].len());
        if let Some(kind) = kind {
            out.push((kind as u8, counts[kind]));
            counts[kind] += 1;
        }
    }
    out
}

/// A field's kind: a default and overrides by modifier bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Index into [`KINDS`].
    pub default: u8,
    /// (selector bits, value, kind).
    pub overrides: Vec<(Bits, u64, u8)>,
}

impl Kind {
    /// Reads `F32` or `F32;80:78=2:F64H`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let code = |t: &str| {
            let found = KINDS.iter().position(|k| *k == t);
            found
                .map(|i| i as u8)
                .ok_or_else(|| format!("kind `{t}` is none of {}", KINDS.join(" ")))
        };
        let mut parts = text.split(';');
        let default = code(parts.next().unwrap_or_default())?;
        let mut overrides = Vec::new();
        for part in parts {
            let bad = || format!("kind override `{part}` is not like 80:78=2:F64H");
            let (bits, rest) = part.split_once('=').ok_or_else(bad)?;
            let (value, kind) = rest.split_once(':').ok_or_else(bad)?;
            overrides.push((
                bits.parse().map_err(|_| bad())?,
                value.parse().map_err(|_| bad())?,
                code(kind)?,
            ));
        }
        Ok(Self { default, overrides })
    }
}

/// How raw bits become a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Map {
    /// `[~](u|s)[*N][+N]`: invert, extend the sign, scale, add.
    Linear {
        /// Bits are inverted first.
        invert: bool,
        /// Two's complement.
        signed: bool,
        /// Factor.
        scale: i64,
        /// Added last.
        offset: i64,
    },
    /// `w:1,4,-8+2`: a signed weight for each bit, least significant first, then an offset.
    Weights(Vec<i64>, i64),
}

impl Map {
    /// Reads the `map` cell.
    pub fn parse(text: &str) -> Result<Self, String> {
        let bad = || format!("map `{text}` is not like u, s*4, ~u, u+1, w:1,2,-4");
        let split_offset = |t: &str| -> Result<(String, i64), String> {
            match t.rfind(['+', '-']) {
                Some(at) if at > 0 && !t[..at].ends_with([',', ':']) => {
                    let n: i64 = t[at..].trim_start_matches('+').parse().map_err(|_| bad())?;
                    Ok((t[..at].to_owned(), n))
                }
                _ => Ok((t.to_owned(), 0)),
            }
        };
        if let Some(weights) = text.strip_prefix("w:") {
            let (list, offset) = split_offset(&format!(",{weights}"))?;
            let list = list.trim_start_matches(',');
            let weights = if list.is_empty() {
                vec![]
            } else {
                list.split(',')
                    .map(|w| w.parse().map_err(|_| bad()))
                    .collect::<Result<_, _>>()?
            };
            return Ok(Self::Weights(weights, offset));
        }
        let (head, offset) = split_offset(text)?;
        let (head, scale) = match head.split_once('*') {
            Some((h, n)) => (h, n.parse().map_err(|_| bad())?),
            None => (head.as_str(), 1),
        };
        let (head, invert) = head.strip_prefix('~').map_or((head, false), |h| (h, true));
        let signed = match head {
            "u" => false,
            "s" => true,
            _ => return Err(bad()),
        };
        if scale == 0 {
            return Err(bad());
        }
        Ok(Self::Linear {
            invert,
            signed,
            scale,
            offset,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps() {
        let linear = |invert, signed, scale, offset| Map::Linear {
            invert,
            signed,
            scale,
            offset,
        };
        assert_eq!(Map::parse("u"), Ok(linear(false, false, 1, 0)));
        assert_eq!(Map::parse("~u"), Ok(linear(true, false, 1, 0)));
        assert_eq!(Map::parse("s*4-8"), Ok(linear(false, true, 4, -8)));
        assert_eq!(Map::parse("u+255"), Ok(linear(false, false, 1, 255)));
        assert_eq!(Map::parse("w:1,-4"), Ok(Map::Weights(vec![1, -4], 0)));
        assert_eq!(Map::parse("w:-1,-4-6"), Ok(Map::Weights(vec![-1, -4], -6)));
        assert_eq!(Map::parse("w:1,4+6"), Ok(Map::Weights(vec![1, 4], 6)));
        for bad in ["", "x", "u*0", "u+", "w:a"] {
            assert!(Map::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn shape_holes() {
        let names = |s: &str| -> Vec<String> {
            holes(s)
                .iter()
                .map(|(k, n)| format!("{}{n}", HOLES[usize::from(*k)]))
                .collect()
        };
        assert_eq!(names("cx[UR#][R#+UR#+X#]"), ["UR0", "R0", "UR1", "X0"]);
        assert_eq!(names("c[X#][X#]"), ["X0", "X1"]);
        assert_eq!(names("SB#"), ["SB0"]);
        assert_eq!(names("a[R#+X#]"), ["R0", "X0"]);
        assert!(names("???1").is_empty());
    }

    #[test]
    fn field_names() {
        assert_eq!(FieldName::parse("h0.UR1").map(|f| f.owner), Some(Owner::Hidden(0)));
        assert_eq!(FieldName::parse("2.X1").map(|f| (f.hole, f.ordinal)), Some((6, 1)));
        for bad in ["", "x", "2.", "2.R", "2.Q0", "h.R0"] {
            assert_eq!(FieldName::parse(bad), None, "{bad}");
        }
    }
}
