//! The second output, for the MLIR dialect: `SassInsts.td`, one op class per mnemonic of all targets, and `SassEnums.td`, the classes
//! of opcodes and the modifiers.
//!
//! The files are committed, so that building the dialect needs no Rust, and they do not depend on `SASS_ACTIVE_SMS`.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use crate::family::{FormRow, ModifierRow};
use crate::hand::{PIPES, SemanticsRow, TERMINATORS};
use crate::tsv::{self, Row, TsvError};

/// Where the files are, from the root of the repository.
pub const FOLDER: &str = "dialect/include/Sass";

/// Every file with its text, for the tables in `opcodes`.
pub fn files(opcodes: &Path) -> Result<[(&'static str, String); 2], TsvError> {
    Ok([
        ("SassInsts.td", insts_td(opcodes)?),
        ("SassEnums.td", enums_td(opcodes)?),
    ])
}

/// What `pick` finds in the rows of a table, over the family folders of `opcodes`.
fn collect<R: Row>(opcodes: &Path, pick: impl Fn(R) -> Vec<String>) -> Result<BTreeSet<String>, TsvError> {
    let io = |source| TsvError::Io {
        path: opcodes.to_owned(),
        source,
    };
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(opcodes).map_err(io)? {
        let dir = entry.map_err(io)?.path();
        if dir.join(R::FILE).is_file() {
            names.extend(tsv::read::<R>(&dir)?.into_iter().flat_map(&pick));
        }
    }
    Ok(names)
}

/// The text of `SassInsts.td`.
fn insts_td(opcodes: &Path) -> Result<String, TsvError> {
    let semantics: Vec<SemanticsRow> = tsv::read(opcodes)?;
    // In MLIR it is a property of the op class whether an op ends its block. A call does not: control comes back.
    let ends = |name: &str| {
        let rows = semantics.iter().filter(|r| r.mnemonic == name);
        let mut kinds = rows.map(|r| TERMINATORS[usize::from(r.terminator)]);
        kinds.any(|kind| !matches!(kind, "-" | "call"))
    };
    let mut out = String::from(
        "// Generated from opcodes/ by `cargo run -p sass2mlir-union-gen -- ods`. Do not edit.\n\n\
         #ifndef SASS_INSTS_TD\n#define SASS_INSTS_TD\n\ninclude \"Sass/SassBase.td\"\n\n\
         // A word that no table knows. It may do anything, and it never ends a block.\n\
         def Sass_OpaqueInst : Sass_Inst<\"opaque\">;\n\n\
         // A CALL that leaves no return address is a branch, and whether an op ends its block is fixed for its class in MLIR. The name is\n\
         // a prefix of the text's (`sass.CALL_0x944.REL.NOINC`).\n\
         def Sass_CALLBranchInst : Sass_TermInst<\"CALL_\">;\n\n",
    );
    for name in collect(opcodes, |row: FormRow| vec![row.mnemonic])? {
        let base = match name.as_str() {
            "CALL" => "Sass_CallInst",
            n if ends(n) => "Sass_TermInst",
            _ => "Sass_Inst",
        };
        writeln!(out, "def Sass_{name}Inst : {base}<\"{name}\">;").expect("writing to a string");
    }
    out.push_str("\n#endif // SASS_INSTS_TD\n");
    Ok(out)
}

/// The text of `SassEnums.td`.
fn enums_td(opcodes: &Path) -> Result<String, TsvError> {
    let tokens = |row: ModifierRow| row.text.split('.').map(str::to_owned).collect();
    let mut modifiers = collect(opcodes, tokens)?;
    // What a table calls INVALID3 or ???3 is a value without a name.
    modifiers.retain(|m| {
        !m.is_empty() && !m.starts_with("INVALID") && m.bytes().all(|b| b == b'_' || b.is_ascii_alphanumeric())
    });
    let mut out = String::from(
        "// Generated from opcodes/ by `cargo run -p sass2mlir-union-gen -- ods`. Do not edit.\n\n\
         #ifndef SASS_ENUMS_TD\n#define SASS_ENUMS_TD\n\ninclude \"mlir/IR/EnumAttr.td\"\n\n",
    );
    let classes = PIPES.iter().map(|pipe| match *pipe {
        "-" => ("None".to_owned(), "none"),
        name => (name[..1].to_uppercase() + &name[1..], name),
    });
    enumeration(&mut out, "OpcodeClass", "the pipe that executes an opcode", classes);
    let modifiers = modifiers.iter().map(|m| (symbol(m), m.as_str()));
    enumeration(
        &mut out,
        "Modifier",
        "a modifier of any instruction of any target",
        modifiers,
    );
    out.push_str("#endif // SASS_ENUMS_TD\n");
    Ok(out)
}

fn enumeration<'t>(out: &mut String, name: &str, summary: &str, cases: impl Iterator<Item = (String, &'t str)>) {
    let case = |(value, (symbol, text))| format!("  I32EnumCase<\"{symbol}\", {value}, \"{text}\">");
    let cases: Vec<String> = cases.enumerate().map(case).collect();
    write!(
        out,
        "def Sass_{name} : I32Enum<\"{name}\", \"{summary}\", [\n{}",
        cases.join(",\n")
    )
    .expect("writing to a string");
    out.push_str("\n]> {\n  let cppNamespace = \"::sass\";\n}\n\n");
}

/// A modifier as a name in C++.
fn symbol(modifier: &str) -> String {
    match modifier {
        "NAN" => "NAN_".to_owned(), // a macro of <math.h>
        digits if digits.starts_with(|c: char| c.is_ascii_digit()) => format!("_{digits}"),
        name => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn committed_files_are_current() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for (name, wanted) in files(&root.join("opcodes")).unwrap() {
            let committed = fs::read_to_string(root.join(FOLDER).join(name)).unwrap();
            assert!(
                committed == wanted,
                "{name} is out of date: run `cargo run -p sass2mlir-union-gen -- ods`"
            );
        }
    }

    #[test]
    fn what_ends_a_block_has_its_own_class() {
        let wanted = insts_td(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../opcodes")).unwrap();
        for line in [
            "def Sass_BRAInst : Sass_TermInst<\"BRA\">;",
            "def Sass_EXITInst : Sass_TermInst<\"EXIT\">;",
            "def Sass_CALLInst : Sass_CallInst<\"CALL\">;",
            "def Sass_BSSYInst : Sass_Inst<\"BSSY\">;",
        ] {
            assert!(wanted.contains(line), "{line}");
        }
    }
}
