//! What the packer accepts, refuses and shares, on a family small enough to write down.

use std::fs;
use std::path::Path;

use union_gen::{GenError, pack};

const FORMS: &str = "#form\tmnemonic\topcode\tguard\tfiller\twbar\trbar\treuse
MOV_0x202_R_R\tMOV\t0x202\tP\t000fe200000000000000000000007202\t1\t1\t-
";
const MATCH: &str = "#form\tmask\tvalue
MOV_0x202_R_R\t00000000000000000000000000000fff\t00000000000000000000000000000202
";
const LEGAL: &str = "#form\trule\tmask\tvalue\tlegal\n";
const OPERANDS: &str = "#form\toperand\tbits\tvalue\tshape
MOV_0x202_R_R\t0\t-\t0\tR#
MOV_0x202_R_R\t1\t72\t0\tR#
MOV_0x202_R_R\t1\t72\t1\t-R#
";
const FIELDS: &str = "#form\tfield\tkind\tbits\tmap\telide\taccess\twidth\twhen
MOV_0x202_R_R\t0.R0\tR\t23:16\tu\t-\tw\t1\tprinted
MOV_0x202_R_R\t1.R0\tR\t39:32\tu\t-\tr\t1\tprinted
MOV_0x202_R_R\tg\tP\t14:12\tu\t-\tr\t1\tprinted
";
const WIDTHS: &str = "#form\tfield\tbits\tvalue\taccess\twidth\n";
const MODIFIERS: &str = "#form\tslot\tbits\tvalue\ttext
MOV_0x202_R_R\t0\t73\t0\t-
MOV_0x202_R_R\t0\t73\t1\tWIDE
";
const SEMANTICS: &str =
    "#mnemonic\tmodifiers\teffects\tspace\tconvergence\tterminator\tuniform\tpipe\tlatency\timplicit\tsource
MOV\t*\tnone\t-\t-\t-\tUMOV\talu\tfixed\t-\ttest
";
const ALIASES: &str = "#mnemonic\torder\twhen\tdrop\tadd\tsource\n";

fn write(dir: &Path, name: &str, text: &str) {
    let path = dir.join(name);
    fs::create_dir_all(path.parent().expect("a name in a folder")).expect("a writable folder");
    fs::write(path, text).expect("a writable folder");
}

/// The whole small `opcodes/`, with one file replaced.
fn opcodes(changed: &str, text: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a temporary folder");
    for (name, content) in [
        ("SM87/forms.tsv", FORMS),
        ("SM87/match.tsv", MATCH),
        ("SM87/legal.tsv", LEGAL),
        ("SM87/operands.tsv", OPERANDS),
        ("SM87/fields.tsv", FIELDS),
        ("SM87/widths.tsv", WIDTHS),
        ("SM87/modifiers.tsv", MODIFIERS),
        ("SM86/same-as.tsv", "SM87\n"),
        ("semantics.tsv", SEMANTICS),
        ("aliases.tsv", ALIASES),
    ] {
        write(dir.path(), name, if name == changed { text } else { content });
    }
    dir
}

fn error(changed: &str, text: &str) -> String {
    let dir = opcodes(changed, text);
    let error = pack(dir.path(), None).expect_err("the tables are wrong");
    error.to_string().replace(&dir.path().display().to_string(), "")
}

#[test]
fn a_good_family_packs_once_for_all_its_targets() {
    let dir = opcodes("", "");
    let both = pack(dir.path(), None).expect("the tables are right");
    let lines: Vec<String> = both.tables.iter().map(ToString::to_string).collect();
    assert_eq!(
        lines,
        [
            "union-gen: opcodes/SM87/*.tsv -> sm_86 decode table (10 rows)",
            "union-gen: opcodes/SM87/*.tsv -> sm_87 decode table (10 rows)"
        ]
    );
    let one = pack(dir.path(), Some("sm_87")).expect("the tables are right");
    assert_eq!(one.tables.len(), 1);
    assert!(
        both.blob.len() - one.blob.len() < 32,
        "a target that shares costs a name"
    );
    for file in ["SM87", "SM80"].map(|d| format!("{d}/forms.tsv")) {
        write(dir.path(), &file, FORMS);
    }
    for (name, text) in [
        ("match", MATCH),
        ("legal", LEGAL),
        ("operands", OPERANDS),
        ("fields", FIELDS),
        ("widths", WIDTHS),
    ] {
        write(dir.path(), &format!("SM80/{name}.tsv"), text);
    }
    write(dir.path(), "SM80/modifiers.tsv", MODIFIERS);
    let three = pack(dir.path(), None).expect("the tables are right");
    assert!(
        three.blob.len() - both.blob.len() < 32,
        "an equal family is stored once"
    );
}

#[test]
fn the_variable_chooses_targets_by_any_spelling() {
    let dir = opcodes("", "");
    for spelling in ["sm_87", "SM87", "87", "sm_87,sm_87"] {
        let packed = pack(dir.path(), Some(spelling)).expect("the target is there");
        assert_eq!(packed.tables.len(), 1, "{spelling}");
    }
    assert_eq!(pack(dir.path(), Some("")).expect("all").tables.len(), 2);
    let error = pack(dir.path(), Some("sm_99")).expect_err("no such target");
    assert!(matches!(error, GenError::NoTarget { .. }));
    assert!(
        error.to_string().contains("`sm_99`") && error.to_string().contains("sm_86 sm_87"),
        "{error}"
    );
}

#[test]
fn errors_name_file_and_line() {
    for (file, text, expected) in [
        (
            "SM87/forms.tsv",
            FORMS.replace("\tP\t", "\tQ\t"),
            "/SM87/forms.tsv:2: guard `Q`",
        ),
        (
            "SM87/forms.tsv",
            FORMS.replace("7202\t", "7203\t"),
            "/SM87/forms.tsv:2: filler has opcode 0x203",
        ),
        (
            "SM87/forms.tsv",
            FORMS.replace("\t1\t1\t-\n", "\t1\t1\t122:7\n"),
            "/SM87/forms.tsv:2: reuse is",
        ),
        (
            "SM87/match.tsv",
            MATCH.replace("MOV", "MUV"),
            "/SM87/match.tsv:2: no form MUV_0x202_R_R",
        ),
        (
            "SM87/match.tsv",
            MATCH.replace("202\n", "a02\n"),
            "/SM87/match.tsv:2: the row must compare",
        ),
        (
            "SM87/operands.tsv",
            OPERANDS.replace("\t1\t-R#", "\t2\t-R#"),
            "/SM87/operands.tsv:4: value 2 does not fit",
        ),
        (
            "SM87/operands.tsv",
            OPERANDS.replace("72\t1", "73\t1"),
            "/SM87/operands.tsv:4: bits 73 here, 72 above",
        ),
        (
            "SM87/operands.tsv",
            OPERANDS.replace("\t1\t72", "\t2\t72"),
            "/SM87/operands.tsv:3: MOV_0x202_R_R has 2 but not 1",
        ),
        (
            "SM87/fields.tsv",
            FIELDS.replace("1.R0", "1.R1"),
            "/SM87/fields.tsv:3: no shape of operand 1",
        ),
        (
            "SM87/fields.tsv",
            FIELDS.replace("\tR\t23", "\tQ\t23"),
            "/SM87/fields.tsv:2: kind `Q`",
        ),
        (
            "SM87/fields.tsv",
            FIELDS.replace("39:32\tu", "39:32\tx"),
            "/SM87/fields.tsv:3: map `x`",
        ),
        (
            "SM87/fields.tsv",
            FIELDS.replace("39:32", "32:39"),
            "/SM87/fields.tsv:3: column bits: `32:39`",
        ),
        (
            "SM87/widths.tsv",
            format!("{WIDTHS}MOV_0x202_R_R\t9.R0\t73\t1\tw\t2\n"),
            "/SM87/widths.tsv:2: no field 9.R0",
        ),
        (
            "SM87/modifiers.tsv",
            MODIFIERS.replace("73\t1", "73\t0"),
            "/SM87/modifiers.tsv:3: value 0 is there twice",
        ),
        ("SM86/same-as.tsv", "SM90\n".into(), "/SM86/same-as.tsv:1: `SM90`"),
        ("SM86/same-as.tsv", "SM86\n".into(), "/SM86/same-as.tsv:1: `SM86`"),
        (
            "semantics.tsv",
            SEMANTICS.replace("none", "nothing"),
            "/semantics.tsv:2: column effects: `nothing`",
        ),
        (
            "aliases.tsv",
            format!("{ALIASES}MOV\t0\t1~RZ\t-\tX\t-\n"),
            "/aliases.tsv:2: column when: `1~RZ`",
        ),
    ] {
        let error = error(file, &text);
        assert!(error.contains(expected), "expected `{expected}` in:\n{error}");
    }
}

#[test]
fn rows_that_tie_are_refused() {
    let forms = format!(
        "{FORMS}{}",
        FORMS.lines().nth(1).expect("a row").replace("R_R\t", "R_R~2\t") + "\n"
    );
    let dir = opcodes("SM87/forms.tsv", &forms);
    write(
        dir.path(),
        "SM87/match.tsv",
        "#form\tmask\tvalue
MOV_0x202_R_R\t00000000000000000000000000001fff\t00000000000000000000000000001202
MOV_0x202_R_R~2\t00000000000000000000000000002fff\t00000000000000000000000000002202
",
    );
    let error = pack(dir.path(), None).expect_err("both match").to_string();
    assert!(
        error.contains("match.tsv:3: MOV_0x202_R_R~2 and MOV_0x202_R_R (line 2) match the same words"),
        "{error}"
    );
}

#[test]
fn a_shape_with_an_unexplained_hole_is_left_out_and_counted() {
    let dir = opcodes("SM87/operands.tsv", &OPERANDS.replace("-R#", "[R#+X#]"));
    let packed = pack(dir.path(), Some("sm_87")).expect("the other shapes are right");
    assert_eq!(packed.tables[0].left_out, 1);
}

#[test]
fn hand_written_rows_round_trip() {
    use union_gen::hand::{AliasRow, SemanticsRow};
    use union_gen::tsv::{read, write};
    let opcodes = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../opcodes");
    let dir = tempfile::tempdir().expect("a temporary folder");
    let semantics = read::<SemanticsRow>(&opcodes).expect("semantics.tsv is well-formed");
    let aliases = read::<AliasRow>(&opcodes).expect("aliases.tsv is well-formed");
    write(dir.path(), &semantics).expect("written");
    write(dir.path(), &aliases).expect("written");
    assert_eq!(read::<SemanticsRow>(dir.path()).expect("written so"), semantics);
    assert_eq!(read::<AliasRow>(dir.path()).expect("written so"), aliases);
}
