//! Seed files: lines of PTX with alternatives, and the kernels that are made of them.
//!
//! `opcodes/README.md` describes the format.

use std::collections::BTreeSet;
use std::fmt::Write;

/// What a seed file holds.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SeedFile {
    /// Declarations that stand before all kernels.
    pub(super) module: String,
    /// The first target that can have any of it.
    pub(super) since: u32,
    /// Instructions, alternatives spelled out.
    pub(super) seeds: Vec<Seed>,
}

/// A line of PTX to compile, and where its registers come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seed {
    /// Number of the line in its file, continued lines as one.
    pub(super) line: usize,
    pub(super) text: String,
    /// Directives of the kernel that it stands in.
    pub(super) kernel: String,
    inputs: Inputs,
}

/// Where the registers of a seed get their values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Inputs {
    /// All from memory.
    Memory,
    /// All from the kernel's parameters, so that they are constants or uniform registers.
    Parameters,
    /// One from the parameters, the others from memory.
    Parameter(usize),
    /// One is a number, the others come from memory.
    Number(usize),
}

impl SeedFile {
    /// Reads a file. A line that starts with a space goes on with the line before.
    pub(super) fn parse(text: &str) -> Self {
        let mut lines: Vec<String> = Vec::new();
        for line in text.lines().filter(|l| !l.trim().is_empty() && !l.starts_with('#')) {
            match lines.last_mut().filter(|_| line.starts_with(' ')) {
                Some(last) => {
                    last.push(' ');
                    last.push_str(line.trim());
                }
                None => lines.push(line.trim_end().to_owned()),
            }
        }
        let mut file = Self::default();
        let mut kernel = String::new();
        for (number, line) in lines.into_iter().enumerate() {
            if let Some(declaration) = line.strip_prefix("module:") {
                file.module.push_str(declaration.trim());
                file.module.push('\n');
            } else if let Some(number) = line.strip_prefix("since: sm_") {
                file.since = number.parse().unwrap_or(0);
            } else if let Some(directives) = line.strip_prefix("kernel:") {
                kernel = directives.trim().to_owned();
            } else {
                let (all_operands, line) = match line.strip_prefix('*') {
                    Some(rest) => (true, rest.trim()),
                    None => (false, &*line),
                };
                for text in alternatives(line) {
                    let text = ranges(&text);
                    let registers = registers(&text).len();
                    let mut inputs = vec![Inputs::Memory, Inputs::Parameters];
                    if all_operands {
                        let each = 1..registers;
                        inputs.extend(each.clone().map(Inputs::Parameter));
                        inputs.extend(each.map(Inputs::Number));
                    }
                    file.seeds.extend(inputs.into_iter().map(|inputs| Seed {
                        line: number,
                        text: text.clone(),
                        kernel: kernel.clone(),
                        inputs,
                    }));
                }
            }
        }
        file
    }
}

/// Every choice of `<a|b|c>` in `line`. Groups with the same letter, as `<n=8|16>` and `<n=%l0|%l1>`, choose together.
fn alternatives(line: &str) -> Vec<String> {
    let Some((before, choices, after)) = group(line) else {
        return vec![line.to_owned()];
    };
    let (letter, choices) = name(choices);
    let spell = |(n, choice): (usize, &str)| {
        let after = match letter {
            Some(letter) => together(after, letter, n),
            None => after.to_owned(),
        };
        alternatives(&format!("{before}{choice}{after}"))
    };
    choices.split('|').enumerate().flat_map(spell).collect()
}

/// The first `<..>` of `line`: what stands before it, in it, and after it.
fn group(line: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = line.split_once('<')?;
    let (choices, after) = rest.split_once('>')?;
    Some((before, choices, after))
}

/// Splits `n=a|b` into the letter and the choices.
fn name(choices: &str) -> (Option<char>, &str) {
    match choices.split_once('=') {
        Some((letter, rest)) if letter.len() == 1 => (letter.chars().next(), rest),
        _ => (None, choices),
    }
}

/// `line` with choice number `n` of every group of that letter.
fn together(line: &str, letter: char, n: usize) -> String {
    let Some((before, choices, after)) = group(line) else {
        return line.to_owned();
    };
    let after = together(after, letter, n);
    match name(choices) {
        (Some(l), own) if l == letter => format!("{before}{}{after}", own.split('|').nth(n).unwrap_or("")),
        _ => format!("{before}<{choices}>{after}"),
    }
}

/// `%r[2..4]` as `%r2, %r3, %r4`.
fn ranges(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find('[') {
        let (before, after) = rest.split_at(start);
        let range = after[1..].split_once(']').and_then(|(range, tail)| {
            let (from, to) = range.split_once("..")?;
            Some((from.parse::<u32>().ok()?, to.parse::<u32>().ok()?, tail))
        });
        let Some((from, to, tail)) = range else {
            out.push_str(&rest[..=start]);
            rest = &rest[start + 1..];
            continue;
        };
        let at = before.rfind('%').unwrap_or(before.len());
        out.push_str(&before[..at]);
        let names: Vec<String> = (from..=to).map(|n| format!("{}{n}", &before[at..])).collect();
        out.push_str(&names.join(", "));
        rest = tail;
    }
    out + rest
}

/// Kinds of registers: letter and type.
const KINDS: [(char, &str); 6] = [
    ('b', "b8"),
    ('h', "b16"),
    ('r', "b32"),
    ('l', "b64"),
    ('q', "b128"),
    ('p', "pred"),
];

/// The registers that a seed names, as (letter, number).
fn registers(text: &str) -> BTreeSet<(char, u32)> {
    let name = |part: &str| {
        let letter = part.chars().next()?;
        let digits = &part[letter.len_utf8()..];
        let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        let known = KINDS.iter().any(|k| k.0 == letter);
        Some((letter, digits[..end].parse().ok()?)).filter(|_| known)
    };
    text.split('%').skip(1).filter_map(name).collect()
}

impl Seed {
    /// The seed as one line of a kernel: its registers get values before, and are stored after, so that nothing of it is left out.
    pub(super) fn line(&self) -> String {
        let mut declared = String::new();
        let mut before = String::new();
        let mut after = String::new();
        for (n, (letter, number)) in registers(&self.text).into_iter().enumerate() {
            let kind = KINDS.iter().find(|k| k.0 == letter).map_or("b32", |k| k.1);
            // A predicate is a register that is not 0.
            let (held, width) = match kind {
                "pred" => (format!("%t{number}"), "b32"),
                _ => (format!("%{letter}{number}"), kind),
            };
            let offset = 16 * n;
            let from_memory = format!("ld.global.{width} {held}, [%in+{offset}];");
            let from_parameters = format!("ld.param.{width} {held}, [values+{offset}];");
            // Wide enough that no short immediate holds it, with the low half of a double clear.
            let number_of_it = match width {
                "b64" => format!("mov.b64 {held}, 0x4019340000000000;"),
                "b16" => format!("mov.b16 {held}, 0x3a51;"),
                _ => format!("mov.b32 {held}, 0x409a5321;"),
            };
            let value = match self.inputs {
                Inputs::Parameters => from_parameters,
                Inputs::Parameter(i) if i == n => from_parameters,
                Inputs::Number(i) if i == n && width != "b128" && width != "b8" => number_of_it,
                _ => from_memory,
            };
            before.push_str(&value);
            // Writing into a String cannot fail.
            let _ = write!(declared, ".reg .{width} {held}; ");
            if kind == "pred" {
                let _ = write!(declared, ".reg .pred %p{number}; ");
                let _ = write!(before, "setp.ne.b32 %p{number}, {held}, 0;");
                let _ = write!(after, "selp.b32 {held}, 1, 0, %p{number};");
            }
            let _ = write!(after, "st.global.{width} [%in+{}], {held};", 4096 + offset);
        }
        format!("{{ {declared}{before} {} {after} }}", self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_choice_is_spelled_out() {
        assert_eq!(alternatives("a<.x|>.<b|c>;"), ["a.x.b;", "a.x.c;", "a.b;", "a.c;"]);
        assert_eq!(
            alternatives("<n=8|16><x|y> <n=a|b>;"),
            ["8x a;", "8y a;", "16x b;", "16y b;"]
        );
    }

    #[test]
    fn ranges_are_lists_and_addresses_stay() {
        assert_eq!(
            ranges("f {%r[0..2]}, [%l1, 4], %r[7..7];"),
            "f {%r0, %r1, %r2}, [%l1, 4], %r7;"
        );
    }

    #[test]
    fn special_registers_are_no_registers_of_a_seed() {
        let found = registers("mov.b32 %r12, %laneid; @%p1 mov.b64 %l0, %clock64;");
        assert_eq!(found.into_iter().collect::<Vec<_>>(), [('l', 0), ('p', 1), ('r', 12)]);
    }

    #[test]
    fn lines_go_on_and_kernels_have_directives() {
        let file = SeedFile::parse("# c\nmodule: .global .b32 g;\nkernel: .reqntid 32\n*a %r0, %r1;\n  b;\n");
        assert_eq!(file.module, ".global .b32 g;\n");
        assert_eq!(file.seeds.len(), 4);
        assert_eq!(
            (&*file.seeds[0].text, &*file.seeds[0].kernel),
            ("a %r0, %r1; b;", ".reqntid 32")
        );
    }
}
