//! Texts of words from the bundled kernels, kept in `golden/sm_87.tsv`, and each against `nvdisasm` where it is installed.

mod common;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{own_words, sm87, text};
use isa::Word;

const GOLDEN: &str = include_str!("golden/sm_87.tsv");

fn golden() -> Vec<(Word, &'static str)> {
    let row = |line: &'static str| {
        let (word, text) = line.split_once('\t').expect("a row is a word and a text");
        let word = u128::from_str_radix(word, 16).expect("a word is hex digits");
        (Word(word), text)
    };
    GOLDEN.lines().filter(|l| !l.starts_with('#')).map(row).collect()
}

/// One word for each way that the kernels use an instruction: form, modifiers, shapes, and the special registers.
fn chosen() -> Vec<(Word, String)> {
    let isa = sm87();
    let mut seen = BTreeSet::new();
    let mut out = Vec::new();
    for w in own_words() {
        let t = text(isa, w);
        let mut key: String = t.chars().filter(|c| !c.is_ascii_digit()).collect();
        key.truncate(48);
        if seen.insert(key) {
            out.push((w, t));
        }
    }
    out.sort_by(|a, b| (&a.1, a.0).cmp(&(&b.1, b.0)));
    out
}

#[test]
fn texts_are_as_before() {
    let isa = sm87();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        let rows: String = chosen().iter().map(|(w, t)| format!("{w:032x}\t{t}\n")).collect();
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/sm_87.tsv");
        std::fs::write(path, format!("#word\ttext at address 0\n{rows}")).expect("the source tree is writable");
        return;
    }
    assert!(golden().len() > 300, "the golden file is there");
    let wrong: Vec<String> = golden()
        .into_iter()
        .filter(|(w, expected)| text(isa, *w) != *expected)
        .map(|(w, expected)| format!("{w:032x}: `{}`, expected `{expected}`", text(isa, w)))
        .collect();
    assert!(
        wrong.is_empty(),
        "{} texts differ from tests/golden/sm_87.tsv (if the change is right: UPDATE_GOLDEN=1 cargo test -p sass2mlir-isa):\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn texts_of_own_kernels_equal_nvdisasm() {
    let Some(root) = std::env::var_os("SASS_ORACLES") else {
        eprintln!(
            "skipped: SASS_ORACLES names no folder with bin/nvdisasm (tests/oracles/setup.sh installs it); the golden file stands in"
        );
        return;
    };
    let tool = PathBuf::from(root).join("bin/nvdisasm");
    let mut words = own_words();
    words.extend(golden().into_iter().map(|(w, _)| w));
    let dir = tempfile::tempdir().expect("a temporary folder");
    let file = dir.path().join("words.bin");
    let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
    std::fs::write(&file, bytes).expect("a temporary file");
    let output = Command::new(&tool).args(["-b", "SM87", "-ndf"]).arg(&file).output();
    let output = output.unwrap_or_else(|e| panic!("{}: {e}", tool.display()));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let listing = String::from_utf8_lossy(&output.stdout);
    let instruction = |line: &str| -> Option<String> {
        let (_, rest) = line.trim().strip_prefix("/*")?.split_once("*/")?;
        Some(rest.rsplit_once(';')?.0.trim().to_owned())
    };
    let expected: Vec<String> = listing.lines().filter_map(instruction).collect();
    assert_eq!(expected.len(), words.len());
    let isa = sm87();
    for (n, (w, expected)) in words.iter().zip(&expected).enumerate() {
        let mut ours = String::new();
        isa.write_text(isa.decode(*w), n as u64 * 16, &mut ours, None)
            .expect("strings take any text");
        assert_eq!(&ours, expected, "{w:032x}");
    }
}

#[test]
fn labels_stand_for_targets() {
    let isa = sm87();
    let mut text = String::new();
    let bra = isa.decode(Word(0x000fc0000383fffffffffff000007947));
    assert_eq!(isa.branch_target(bra, 0x40), Some(0x40));
    let labels = |at: u64| (at == 0x40).then_some(".L_x_0");
    isa.write_text(bra, 0x40, &mut text, Some(&labels))
        .expect("strings take any text");
    text.push('\n');
    isa.write_text(bra, 0x50, &mut text, Some(&labels))
        .expect("strings take any text");
    assert_eq!(text, "BRA `(.L_x_0)\nBRA 0x50");
}
