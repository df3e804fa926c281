//! One line of a listing: comments, scheduling column, instruction, notes, or a label.

use super::{AsmError, Notes};
use crate::control::Control;

/// What a line holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line<'t> {
    /// `NAME:`.
    pub label: Option<&'t str>,
    /// The directive, with its leading dot, if the line is one.
    pub directive: Option<&'t str>,
    /// The address in the comment before the instruction, `/*0010*/`.
    pub address: Option<u64>,
    /// The scheduling column, before the instruction or in a comment after it.
    pub control: Option<Control>,
    /// The instruction's text; empty if there is none.
    pub text: &'t str,
    /// What the text does not show.
    pub notes: Notes,
}

impl<'t> Line<'t> {
    /// Takes a line apart. Comments are `/* */`, `//` and, at the start, `#`. A comment may hold an address, a scheduling column and
    /// notes; any other is ignored, as is the word in hexadecimal that `nvdisasm -hex` writes.
    pub fn parse(line: &'t str) -> Result<Self, AsmError> {
        let mut out = Self::default();
        let mut rest = line.trim();
        while !rest.is_empty() && !rest.starts_with("//") && !rest.starts_with('#') {
            if let Some(comment) = rest.strip_prefix("/*") {
                let (comment, tail) = comment
                    .split_once("*/")
                    .ok_or_else(|| AsmError::Syntax("`/*` without `*/`".into()))?;
                out.comment(comment.trim())?;
                rest = tail.trim_start();
            } else if let Some(column) = rest.strip_prefix("[B") {
                let (column, tail) = column
                    .split_once(']')
                    .ok_or_else(|| AsmError::Syntax("`[` without `]`".into()))?;
                out.control = Some(column_of(&rest[1..=column.len() + 1])?);
                rest = tail.trim_start();
            } else if let Some(column) = first_word(rest).strip_prefix('B').filter(|c| c.contains(":R")) {
                out.control = Some(column_of(&rest[..=column.len()])?);
                rest = rest[1 + column.len()..].trim_start();
            } else if let Some(notes) = rest.strip_prefix('<') {
                let (notes, tail) = notes
                    .split_once('>')
                    .ok_or_else(|| AsmError::Syntax("`<` without `>`".into()))?;
                out.notes.0.extend(Notes::parse(notes)?.0);
                rest = tail.trim_start();
            } else if let Some(tail) = rest.strip_prefix(';') {
                rest = tail.trim_start();
            } else {
                rest = out.body(rest)?;
            }
        }
        Ok(out)
    }

    /// A label, a directive, or an instruction; gives what stands behind it.
    fn body(&mut self, rest: &'t str) -> Result<&'t str, AsmError> {
        if !self.text.is_empty() || self.label.is_some() || self.directive.is_some() {
            return Err(AsmError::Syntax(format!("`{rest}` is one thing too many on the line")));
        }
        let end = [";", "/*", "//", " <"]
            .iter()
            .filter_map(|e| rest.find(e))
            .min()
            .unwrap_or(rest.len());
        let body = rest[..end].trim_end();
        if let Some(label) = body.strip_suffix(':').filter(|l| !l.contains(' ')) {
            self.label = Some(label);
        } else if body.starts_with('.') && !body.starts_with(".opaque ") {
            self.directive = Some(body);
            return Ok(""); // strings in it may hold anything
        } else {
            self.text = body;
        }
        Ok(rest[end..].trim_start())
    }

    fn comment(&mut self, comment: &str) -> Result<(), AsmError> {
        if self.text.is_empty() && !comment.is_empty() && comment.bytes().all(|b| b.is_ascii_hexdigit()) {
            self.address = u64::from_str_radix(comment, 16).ok();
        } else if let Some((column, notes)) = comment.strip_prefix('B').map(|c| c.split_once(' ').unwrap_or((c, "")))
            && column.contains(":R")
        {
            self.control = Some(column_of(&comment[..=column.len()])?);
            if let Some(notes) = notes.trim().strip_prefix('<').and_then(|n| n.strip_suffix('>')) {
                self.notes.0.extend(Notes::parse(notes)?.0);
            }
        }
        Ok(())
    }
}

fn first_word(text: &str) -> &str {
    text.split(' ').next().unwrap_or_default()
}

fn column_of(text: &str) -> Result<Control, AsmError> {
    text.parse()
        .map_err(|e: crate::control::ControlError| AsmError::Syntax(e.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ways_a_line_is_written() {
        let column: Control = "B------:R-:W2:-:S01".parse().expect("a column");
        for line in [
            "[B------:R-:W2:-:S01]    /*0010*/   LDG.E R0, [R2.64] <2.UR0=UR4> ;",
            "B------:R-:W2:-:S01 /*0010*/ LDG.E R0, [R2.64] <2.UR0=UR4>;",
            "  /*0010*/  LDG.E R0, [R2.64] ;  /* 0x0000000402007981 */ /* B------:R-:W2:-:S01 <2.UR0=UR4> */ // why",
        ] {
            let read = Line::parse(line).expect("a line");
            assert_eq!(
                (read.text, read.address, read.control),
                ("LDG.E R0, [R2.64]", Some(16), Some(column)),
                "{line}"
            );
            assert_eq!(read.notes.to_string(), "2.UR0=UR4", "{line}");
        }
        assert_eq!(Line::parse(".L_x_0:").map(|l| l.label), Ok(Some(".L_x_0")));
        assert_eq!(
            Line::parse("\t.section\t.text.k,\"ax\"").map(|l| l.directive),
            Ok(Some(".section\t.text.k,\"ax\""))
        );
        assert_eq!(Line::parse("//------ .text.k"), Ok(Line::default()));
        assert_eq!(Line::parse(".opaque 0x12 ;").map(|l| l.text), Ok(".opaque 0x12"));
        for bad in ["/* x", "[B", "B--:R-", "EXIT ; EXIT ;", "EXIT <", "EXIT <x> ;"] {
            assert!(Line::parse(bad).is_err(), "{bad}");
        }
    }
}
