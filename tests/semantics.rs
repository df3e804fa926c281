//! `opcodes/semantics.tsv` keeps to its schema (opcodes/README.md) and to the tables beside it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Mnemonics that have no row on purpose; opcodes/README.md says why.
const LEFT_OUT: &[&str] = &[
    "CSMTEST",
    "IMUL",
    "MOV64IUR",
    "QADD4",
    "QFMA4",
    "QMUL4",
    "UFHADD",
    "UFHFMA",
    "UMEMSETS",
    "UREDGR",
    "__HIR0X1E0",
    "__HIR0X1F0",
];

fn opcodes() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../opcodes")
}

/// Rows of a table, without its header.
fn rows(path: &Path) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    text.lines()
        .filter(|l| !l.starts_with('#'))
        .map(|l| l.split('\t').map(String::from).collect())
        .collect()
}

/// Every folder of `opcodes/` that holds tables of its own.
fn families() -> Vec<PathBuf> {
    let mut found: Vec<_> = std::fs::read_dir(opcodes())
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    found.retain(|p| p.join("forms.tsv").is_file());
    found.sort();
    assert!(!found.is_empty());
    found
}

/// Mnemonic of each form id, and the modifier tokens that its forms can show.
fn mnemonics() -> BTreeMap<String, BTreeSet<String>> {
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for family in families() {
        let of_form: BTreeMap<_, _> = rows(&family.join("forms.tsv"))
            .into_iter()
            .map(|r| (r[0].clone(), r[1].clone()))
            .collect();
        for mnemonic in of_form.values() {
            all.entry(mnemonic.clone()).or_default();
        }
        for row in rows(&family.join("modifiers.tsv")) {
            let tokens = row.last().unwrap().split('.').map(String::from);
            all.get_mut(&of_form[&row[0]]).unwrap().extend(tokens);
        }
    }
    all
}

#[test]
fn rows_keep_to_the_schema() {
    let lists = |column: usize| -> &[&str] {
        match column {
            2 => &["read", "write", "atomic", "fence", "barrier", "control", "state"],
            3 => &[
                "generic",
                "global",
                "shared",
                "local",
                "constant",
                "texture",
                "surface",
                "attribute",
                "tensor",
                "-",
            ],
            4 => &["yes", "-"],
            5 => &["branch", "branch_indirect", "exit", "return", "call", "kill", "-"],
            7 => &[
                "alu", "fma", "fp16", "fp64", "xu", "lsu", "tex", "tensor", "uniform", "adu", "cbu", "-",
            ],
            8 => &["fixed", "scoreboard", "either"],
            _ => unreachable!(),
        }
    };
    let rows = rows(&opcodes().join("semantics.tsv"));
    assert!(rows.len() > 150);
    for row in &rows {
        assert_eq!(row.len(), 11, "{row:?}");
        for column in [3, 4, 5, 7, 8] {
            // `branch?`: control can also fall through.
            let cell = match column {
                5 => row[5].trim_end_matches('?'),
                _ => &row[column],
            };
            assert!(lists(column).contains(&cell), "column {column} of {row:?}");
        }
        assert!(
            row[2] == "none" || row[2].split('+').all(|e| lists(2).contains(&e)),
            "effects of {row:?}"
        );
        let memory = row[2]
            .split('+')
            .any(|e| ["read", "write", "atomic", "fence"].contains(&e));
        assert!(
            memory == (row[3] != "-") || row[2] == "state",
            "effects and space of {row:?}"
        );
        let registers = |text: &str| {
            text.strip_prefix("U")
                .unwrap_or(text)
                .strip_prefix('P')
                .and_then(|n| n.parse::<u8>().ok())
        };
        if row[9] != "-" {
            let (how, range) = row[9].split_once(':').expect("access:range");
            let (first, last) = range.split_once('-').expect("first-last");
            assert!(
                ["r", "w", "rw"].contains(&how) && registers(first) < registers(last),
                "{row:?}"
            );
        }
        let known =
            |s: &str| ["bu", "ncu", "nak", "plr", "bbcfg", "corpus", "tool"].contains(&s) || s.starts_with("ptx:");
        assert!(
            !row[10].is_empty() && row[10].split(' ').all(known),
            "source of {row:?}"
        );
    }
    let keys: Vec<_> = rows.iter().map(|r| (r[0].clone(), r[1].clone())).collect();
    assert!(
        keys.windows(2).all(|w| w[0] < w[1]),
        "sorted by mnemonic and modifiers, each once"
    );
}

#[test]
fn every_mnemonic_has_a_row() {
    let rows = rows(&opcodes().join("semantics.tsv"));
    let general: BTreeSet<_> = rows.iter().filter(|r| r[1] == "*").map(|r| r[0].as_str()).collect();
    let mut missing: Vec<_> = mnemonics()
        .into_keys()
        .filter(|m| !general.contains(m.as_str()))
        .collect();
    missing.retain(|m| !LEFT_OUT.contains(&m.as_str()));
    assert!(
        missing.is_empty(),
        "without a row, so opaque to every pass: {missing:?}"
    );
}

#[test]
fn rows_name_what_the_tables_know() {
    let mnemonics = mnemonics();
    for row in rows(&opcodes().join("semantics.tsv")) {
        // rows may speak of targets whose tables are not here yet; a modifier of a known mnemonic must exist
        let Some(tokens) = mnemonics.get(&row[0]) else { continue };
        for token in row[1].split('.').filter(|&t| t != "*") {
            assert!(tokens.contains(token), "{} never shows .{token}", row[0]);
        }
        assert!(
            row[6] == "-" || mnemonics.contains_key(&row[6]),
            "{}: no mnemonic {}",
            row[0],
            row[6]
        );
    }
}
