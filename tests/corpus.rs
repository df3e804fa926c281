//! The gates over real kernels: every one comes back byte-identical, and a rewrite changes what it says and nothing else.
//!
//! Run by `make check-corpus`, which sets `SASS_CORPUS` and `SASS_ORACLES` to what `tests/oracles/` brought.

mod common;
#[path = "common/lined.rs"]
mod lined;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use common::*;

/// The cubins, of the corpus and of the project, of targets that the program has tables for.
fn known() -> Vec<PathBuf> {
    let mut files = all_cubins();
    let mut targets = BTreeMap::new();
    files.retain(|f| {
        let sm = sm_of(&std::fs::read(f).unwrap());
        *targets
            .entry(sm)
            .or_insert_with(|| !is_unknown_target(&run(&["disasm", arg(f)])))
    });
    files
}

/// The q4_K matrix kernels of llama.cpp.
fn q4_k() -> PathBuf {
    let path = folder("SASS_CORPUS").join("llama/mmq-instance-q4_k.sm_87.cubin");
    assert!(path.is_file(), "{} is missing: run `make oracles`", path.display());
    path
}

#[test]
fn lifted_text_lowers_to_the_same_file() {
    let dir = tempfile::tempdir().unwrap();
    let (text, back) = (dir.path().join("k.mlir"), dir.path().join("k.cubin"));
    let mut files = 0;
    for file in known() {
        let bytes = std::fs::read(&file).unwrap();
        succeed(&["lift", arg(&file), "-o", arg(&text)]);
        succeed(&["lower", arg(&text), "--into", arg(&file), "-o", arg(&back)]);
        assert!(
            std::fs::read(&back).unwrap() == bytes,
            "{}: lift and lower changed the file",
            file.display()
        );
        files += 1;
    }
    println!("lift, lower: {files} files byte-identical");
}

/// Labels with their numbers, directives and remarks included: all lines of `nvdisasm -c` but for its list of symbols at the end.
#[test]
fn listing_is_nvdisasms() {
    let oracles = folder("SASS_ORACLES");
    let (mut lines, mut wrong) = (0, Vec::new());
    for file in known() {
        let bytes = std::fs::read(&file).unwrap();
        // For Volta the tool is an older one, which lays out a listing in another way; its texts are compared above.
        if code_size(&bytes) == 0 || [70, 72].contains(&sm_of(&bytes)) {
            continue;
        }
        let theirs = nvdisasm_c(&oracles, &file, &[]);
        let theirs = theirs
            .split("\n\n\n//--------------------- SYMBOLS")
            .next()
            .unwrap_or_default();
        let ours = succeed(&["disasm", arg(&file)]);
        let (ours, theirs): (Vec<_>, Vec<_>) = (ours.trim_end().lines().collect(), theirs.trim_end().lines().collect());
        assert_eq!(ours.len(), theirs.len(), "{}: number of lines", file.display());
        lines += theirs.len();
        let differ = ours.iter().zip(&theirs).filter(|(a, b)| a != b);
        wrong.extend(differ.map(|(a, b)| format!("ours: {a}  nvdisasm: {b}")));
    }
    println!("listing: {lines} lines, {} differ", wrong.len());
    wrong.iter().take(20).for_each(|w| println!("  {w}"));
    assert!(wrong.len() * 10_000 <= lines, "more than 0.01% of the lines differ");
}

/// Lines of the source as `nvdisasm -g` says them, in own kernels with line tables, some of them compiled here.
#[test]
fn lines_are_nvdisasms() {
    let oracles = folder("SASS_ORACLES");
    let dir = tempfile::tempdir().unwrap();
    let kernels = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/kernels");
    let mut files = own_cubins("lines");
    for (n, (source, arch, flag)) in [
        ("features.cu", "sm_87", "-lineinfo"),
        ("features.cu", "sm_90", "-lineinfo"),
        ("lines/lined.cu", "sm_87", "-G"),
        ("relocatable.cu", "sm_87", "-rdc=true"),
    ]
    .into_iter()
    .enumerate()
    {
        let out = dir.path().join(format!("{n}.cubin"));
        let compiled = Command::new(oracles.join("bin/nvcc"))
            .args([
                "-cubin",
                "-std=c++17",
                "-lineinfo",
                flag,
                "-arch",
                arch,
                "-o",
                arg(&out),
            ])
            .arg(kernels.join(source))
            .output()
            .expect("nvcc");
        assert!(compiled.status.success(), "{source}: {compiled:?}");
        files.push(out);
    }
    for file in files {
        let bytes = std::fs::read(&file).unwrap();
        let image = cubin::Image::parse(&bytes).unwrap();
        let lines = cubin::Lines::read(&image).unwrap();
        let theirs = lined::lines(&oracles, &file, "-g");
        for ((kernel, offset), wanted) in &theirs {
            let section = image.code(kernel).unwrap_or_else(|| panic!("no code {kernel}")).section;
            let ours = lines.at(section, *offset).map(|at| (at.file.to_owned(), at.line));
            assert_eq!(
                ours,
                wanted.last().map(|text| file_and_number(text)),
                "{}: {kernel} at {offset:#x}",
                file.display()
            );
        }
        let known = theirs.values().filter(|at| !at.is_empty()).count();
        println!("lines: {}: {known} of {} instructions", file.display(), theirs.len());
        assert!(known > 0);
    }
}

/// File and number of a line as nvdisasm writes it.
fn file_and_number(text: &str) -> (String, u32) {
    let (file, number) = text
        .strip_prefix("File \"")
        .and_then(|t| t.split_once("\", line "))
        .expect("a file and a line");
    (file.to_owned(), number.parse().expect("a line"))
}

/// Words of a listing that `ffma-deftz` is to change.
fn flushing(l: &Listed) -> bool {
    l.kernel.contains("mul_mat")
        && mnemonic(&l.text).split('.').next() == Some("FFMA")
        && mnemonic(&l.text).contains(".FTZ")
}

fn mnemonic(text: &str) -> &str {
    let body = if text.starts_with('@') {
        text.split_once(' ').map_or("", |(_, t)| t)
    } else {
        text
    };
    body.split_whitespace().next().unwrap_or("")
}

#[test]
fn ffma_deftz_changes_the_ftz_bits_and_nothing_else() {
    let (oracles, cubin, dir) = (folder("SASS_ORACLES"), q4_k(), tempfile::tempdir().unwrap());
    let out = dir.path().join("out.cubin");
    let before = nvdisasm(&oracles, &cubin);
    let sites: Vec<&Listed> = before.iter().filter(|l| flushing(l)).collect();
    assert!(
        sites.len() > 1000,
        "the file should hold many FFMA.FTZ, nvdisasm shows {}",
        sites.len()
    );

    let rest = "sm = [\"sm_87\"]\nfn = [\"*mul_mat*\"]\nmode = \"apply\"";
    let toml = config(dir.path(), "ffma-deftz", rest);
    let said = succeed(&["apply", arg(&cubin), "--config", arg(&toml), "-o", arg(&out)]);
    let listed = nvdisasm(&oracles, &out);
    assert_eq!(listed.iter().filter(|l| flushing(l)).count(), 0, "FFMA.FTZ left over");

    // Each site lost `.FTZ` and nothing else; every other instruction reads as before.
    assert_eq!(listed.len(), before.len());
    let mut masks = BTreeSet::new();
    for (a, b) in before.iter().zip(&listed) {
        if flushing(a) {
            masks.insert(a.word ^ b.word);
            assert_eq!(a.text.replacen(".FTZ", "", 1), b.text, "{}+{:#x}", a.kernel, a.offset);
        } else {
            assert_eq!(a, b);
        }
    }
    assert_eq!(masks.len(), 1, "the same field everywhere: {masks:x?}");
    let mask = *masks.first().unwrap();
    assert_eq!(mask.count_ones(), 1, "one bit of the word: {mask:#x}");

    // The file: the old one with that bit flipped at each site.
    let mut wanted = std::fs::read(&cubin).unwrap();
    let sections = elf_sections(&wanted);
    for site in &sites {
        let at = sections[&format!(".text.{}", site.kernel)].0 + site.offset;
        let word = u128::from_le_bytes(wanted[at..at + 16].try_into().unwrap());
        assert_eq!(word, site.word, "the listing's offset is not the file's");
        wanted[at..at + 16].copy_from_slice(&(word ^ mask).to_le_bytes());
    }
    assert!(
        std::fs::read(&out).unwrap() == wanted,
        "other bytes of the file changed"
    );
    println!(
        "ffma-deftz: {} sites, bit {} of each, every other byte identical",
        sites.len(),
        mask.trailing_zeros()
    );
    println!(
        "{}",
        said.lines()
            .filter(|l| l.contains("ffma-deftz"))
            .take(3)
            .collect::<Vec<_>>()
            .join("\n")
    );

    // Report mode counts the same sites, whether the configuration or the command line asks for it, and changes nothing.
    let original = std::fs::read(&cubin).unwrap();
    let toml = config(dir.path(), "ffma-deftz", &rest.replace("apply", "report"));
    let said = succeed(&["apply", arg(&cubin), "--config", arg(&toml), "-o", arg(&out)]);
    assert_eq!(reported_sites(&said, "ffma-deftz"), sites.len(), "{said}");
    assert!(std::fs::read(&out).unwrap() == original, "report mode changed the file");

    let toml = config(dir.path(), "ffma-deftz", rest);
    let said = succeed(&[
        "apply",
        arg(&cubin),
        "--config",
        arg(&toml),
        "--report-only",
        "-o",
        arg(&out),
    ]);
    assert_eq!(reported_sites(&said, "ffma-deftz"), sites.len(), "{said}");
    assert!(
        std::fs::read(&out).unwrap() == original,
        "--report-only changed the file"
    );
}

#[test]
fn a_glob_without_a_match_changes_nothing() {
    let (cubin, dir) = (q4_k(), tempfile::tempdir().unwrap());
    let out = dir.path().join("out.cubin");
    let toml = config(
        dir.path(),
        "ffma-deftz",
        "sm = [\"sm_87\"]\nfn = [\"*no_such_kernel*\"]\nmode = \"apply\"",
    );
    succeed(&["apply", arg(&cubin), "--config", arg(&toml), "-o", arg(&out)]);
    assert!(std::fs::read(&out).unwrap() == std::fs::read(&cubin).unwrap());
}

/// The checks' own reading of nvdisasm's listing sees each word of the file: without this, an empty listing would pass.
#[test]
fn the_listing_is_the_file() {
    let oracles = folder("SASS_ORACLES");
    let check = |file: &Path| {
        let bytes = std::fs::read(file).unwrap();
        let sections = elf_sections(&bytes);
        let listed = nvdisasm(&oracles, file);
        for l in &listed {
            let at = sections[&format!(".text.{}", l.kernel)].0 + l.offset;
            assert_eq!(
                bytes[at..at + 16],
                l.word.to_le_bytes(),
                "{} {}+{:#x}",
                file.display(),
                l.kernel,
                l.offset
            );
        }
        let code = code_size(&bytes) / 16;
        assert_eq!(listed.len(), code, "{}", file.display());
    };
    check(&q4_k());
    own_cubins("sm_87").iter().for_each(|f| check(f));
}

/// Kernels of the Orin family of which the emulator knows every form, and what it lacks for the others.
#[test]
fn the_emulator_can_run_most_kernels() {
    let (mut kernels, mut runnable) = (0, 0);
    let mut missing: BTreeMap<String, u64> = BTreeMap::new();
    let mut files = all_cubins();
    files.retain(|f| [86, 87, 88].contains(&sm_of(&std::fs::read(f).unwrap())));
    for file in files {
        let report: serde_json::Value =
            serde_json::from_str(&succeed(&["run", arg(&file), "--survey", "--json"])).expect("JSON");
        kernels += report["kernels"].as_u64().expect("a count");
        runnable += report["runnable"].as_u64().expect("a count");
        for reason in report["missing"].as_array().expect("a list") {
            let what = reason["what"].as_str().expect("text").to_owned();
            *missing.entry(what).or_default() += reason["kernels"].as_u64().expect("a count");
        }
    }
    println!("the emulator can run {runnable} of {kernels} kernels");
    for (what, kernels) in missing {
        println!("  {kernels} kernels: {what}");
    }
    assert!(runnable * 100 >= kernels * 85, "{runnable} of {kernels}");
}
