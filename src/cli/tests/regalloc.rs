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

/// Lanes that come from several places meet in the body of one of them, which finds what they brought in the registers where they have it.
#[test]
fn lanes_that_meet_find_what_they_brought() {
    let dir = tempfile::tempdir().expect("a folder");
    let other = s(&dir.path().join("other.cubin")).to_owned();
    for target in ["sm_75", "sm_80", "sm_87", "sm_90a", "sm_120a"] {
        let file = s(&kernels(&format!("passes/{target}/meeting.cubin"))).to_owned();
        for how in [&[][..], &["--scramble", "7", "--fresh"]] {
            let said = ok(&[&["regalloc", &file, "-o", &other, "--strip-mercury"], how].concat());
            assert!(said.contains("2 kernels, 0 left alone"), "{target}: {said}");
            assert!(!said.contains("byte-identical"), "{target}: {said}");
            ok(&["verify", &file, &other, "--launches", "6"]);
        }
    }
}

/// Debug information that names registers is not followed: its kernels stay as they are.
#[test]
fn registers_that_debug_information_names_stay() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = |name: &str| s(&dir.path().join(name)).to_owned();
    let bytes = std::fs::read(kernels("lines/lined.cubin")).expect("a cubin");
    let (lines, locations) = (b"\0.debug_line\0", b"\0.debug_loc\0\0");
    let at = bytes
        .windows(lines.len())
        .position(|w| w == lines)
        .expect("line tables");
    let named = [&bytes[..at], locations, &bytes[at + lines.len()..]].concat();
    std::fs::write(path("named"), &named).expect("written");
    let done = run(&["regalloc", &path("named"), "--scramble", "3", "-o", &path("other")]);
    assert_eq!(done.code, 1, "{}", done.out);
    let why = "`.debug_loc` names registers: strip the debug information first";
    assert_eq!(done.out.matches(why).count(), 2, "{}", done.out);
    assert!(std::fs::read(path("other")).expect("a cubin") == named);
}

/// A text that reads a value where its register holds another by then: the value, or the other, gets a register of its own.
#[test]
fn values_that_text_stretches_move_apart() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = |name: &str| s(&dir.path().join(name)).to_owned();
    let file = s(&kernels("sm_87/own_mul_mat.cubin")).to_owned();
    ok(&["lift", &file, "--kernel", "scale_add", "-o", &path("text")]);
    let text = std::fs::read_to_string(path("text")).expect("the text");
    // The store writes the element size, 4, whose register is part of the store's address by then.
    let store = "%31 desc(%26#0, %26#1) raw 0x000fe2000c1019040000000704007986";
    assert!(text.contains(store), "{text}");
    let text = text.replace(store, "%25 desc(%26#0, %26#1) sched(\"B------:R-:W-:-:S01\")");
    std::fs::write(path("text"), text).expect("written");
    let said = ok(&["lower", &path("text"), "--into", &file, "-o", &path("out")]);
    assert!(said.ends_with(", 1 groups of values in other registers\n"), "{said}");
    ok(&["check", &path("out"), "--kernel", "scale_add"]);
    let launch = [
        "--grid",
        "2",
        "--block",
        "64",
        "--arg",
        "f32[100]=iota",
        "--arg",
        "y:i32[100]",
    ];
    let numbers = ["--arg", "f32=2", "--arg", "f32=0.5", "--arg", "i32=100"];
    let said = ok(&[&["run", &path("out"), "--kernel", "scale_add"], &launch[..], &numbers].concat());
    assert!(said.contains("y: 100 elements changed: 4 4 4 4"), "{said}");
}
