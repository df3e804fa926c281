//! The second output: `dialect/include/Sass/SassInsts.td`, one MLIR op class per mnemonic of all targets.
//!
//! The file is committed, so that building the dialect needs no Rust, and it does not depend on `SASS_ACTIVE_SMS`.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use crate::hand::{SemanticsRow, TERMINATORS};
use crate::tsv::{self, FormRow, Row, TsvError};

/// Every mnemonic in the family folders of `opcodes`.
fn mnemonics(opcodes: &Path) -> Result<BTreeSet<String>, TsvError> {
    let io = |source| TsvError::Io {
        path: opcodes.to_owned(),
        source,
    };
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(opcodes).map_err(io)? {
        let dir = entry.map_err(io)?.path();
        if dir.join(FormRow::FILE).is_file() {
            names.extend(tsv::read::<FormRow>(&dir)?.into_iter().map(|row| row.mnemonic));
        }
    }
    Ok(names)
}

/// The text of `SassInsts.td` for the tables in `opcodes`.
pub fn insts_td(opcodes: &Path) -> Result<String, TsvError> {
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
    for name in mnemonics(opcodes)? {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn committed_op_classes_are_current() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let wanted = insts_td(&root.join("opcodes")).unwrap();
        let committed = fs::read_to_string(root.join("dialect/include/Sass/SassInsts.td")).unwrap();
        assert!(
            committed == wanted,
            "SassInsts.td is out of date: run `cargo run -p sass2mlir-union-gen -- ods`"
        );
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
