//! `regalloc` on what a file says of registers beside its code.

mod common;

use std::collections::BTreeMap;

use common::{kernels, ok, run, s};
use cubin::nvinfo::code as attribute;

/// The lines of `disasm`, by kernel and byte offset.
fn listing(file: &str) -> BTreeMap<(String, u32), String> {
    let mut lines = BTreeMap::new();
    let mut kernel = String::new();
    for line in ok(&["disasm", file]).lines() {
        if let Some(name) = line.strip_prefix(".text.").and_then(|l| l.strip_suffix(':')) {
            kernel = name.to_owned();
        } else if let Some((offset, text)) = line.trim_start().strip_prefix("/*").and_then(|l| l.split_once("*/")) {
            let offset = u32::from_str_radix(offset, 16).expect("an offset");
            lines.insert((kernel.clone(), offset), text.trim().trim_end_matches(" ;").to_owned());
        }
    }
    lines
}

/// The registers that `EIATTR_INSTR_REG_MAP` and `EIATTR_ATOM16_EMUL_INSTR_REG_MAP` name are those with which the code still works: what a
/// barrier's phase is compared with, the state that arrives, the address whose second bit chooses the half.
#[test]
fn registers_that_attributes_name_are_those_of_the_code() {
    let dir = tempfile::tempdir().expect("a folder");
    let other = s(&dir.path().join("other.cubin")).to_owned();
    let mut seen = BTreeMap::<&str, usize>::new();
    let files = ["sm_87/own_features.cubin", "emu/sm_87/newer.cubin"].map(str::to_owned);
    let seeds = ["sm_75", "sm_80", "sm_87", "sm_90a", "sm_110a", "sm_120a"];
    for file in files
        .into_iter()
        .chain(seeds.map(|sm| format!("seeds/{sm}/memory.cubin")))
    {
        let file = s(&kernels(&file)).to_owned();
        let done = run(&["regalloc", &file, "--scramble", "3", "--fresh", "-o", &other]);
        let bytes = std::fs::read(&other).expect("the cubin");
        let image = cubin::Image::parse(&bytes).expect("a cubin");
        let lines = listing(&other);
        for code in image.codes() {
            let following = |offset: u32| {
                let from = (code.name.to_owned(), offset);
                lines
                    .range(from..)
                    .take_while(|((name, _), _)| name == code.name)
                    .map(|(_, text)| text)
            };
            let word =
                |record: &[u8], at: usize| u32::from_le_bytes(record[at..at + 4].try_into().expect("four bytes"));
            let named = [attribute::INSTR_REG_MAP, attribute::ATOM16_EMUL_INSTR_REG_MAP];
            if code.attributes.iter().any(|a| named.contains(&a.code)) {
                let left = format!("{}: left alone", code.name);
                assert!(!done.out.contains(&left), "{file}: {}", done.out);
            }
            for a in code.attributes.iter().filter(|a| a.code == attribute::INSTR_REG_MAP) {
                for record in a.payload.chunks_exact(12) {
                    let (offset, register) = (word(record, 0), format!(", R{}", word(record, 4) >> 16));
                    let mut text = following(offset);
                    let found = match record[4] {
                        1 => text
                            .next()
                            .is_some_and(|t| t.contains("SYNCS.ARRIVE") && t.ends_with(&register)),
                        2 => text
                            .find(|t| t.contains("LOP3") && t.contains("0x80000000"))
                            .is_some_and(|t| t.contains(&(register.clone() + ", 0x48"))),
                        _ => text.next().is_some_and(|t| t == "NOP"),
                    };
                    assert!(found, "{file} {}: at {offset:#x} {register}", code.name);
                    *seen
                        .entry(["", "arrive", "phase", "none"][usize::from(record[4])])
                        .or_default() += 1;
                }
            }
            for a in code
                .attributes
                .iter()
                .filter(|a| a.code == attribute::ATOM16_EMUL_INSTR_REG_MAP)
            {
                for record in a.payload.chunks_exact(8) {
                    let half = format!(", R{}, 0x2, RZ, 0xc0", word(record, 4));
                    assert!(following(0).any(|t| t.contains(&half)), "{file} {}: {half}", code.name);
                    *seen.entry("address").or_default() += 1;
                }
            }
        }
    }
    assert!(seen.len() == 4 && seen.values().all(|n| *n > 1), "{seen:?}");
}

/// Debug information that names registers is not followed: its kernels stay as they are.
#[test]
fn registers_that_debug_information_names_stay() {
    let file = kernels("lines/debug.cubin");
    let dir = tempfile::tempdir().expect("a folder");
    let other = dir.path().join("other.cubin");
    let done = run(&["regalloc", s(&file), "--scramble", "3", "-o", s(&other)]);
    assert_eq!(done.code, 1, "{}", done.out);
    assert_eq!(
        done.out
            .matches("names registers: strip the debug information first")
            .count(),
        2,
        "{}",
        done.out
    );
    assert!(std::fs::read(&other).expect("a cubin") == std::fs::read(&file).expect("a cubin"));
}
