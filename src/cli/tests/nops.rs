//! `nops --take-out` takes out what `nops` put in, and nothing else.

mod common;

use std::fs;

use common::{kernels, run, s};

fn cubin() -> String {
    s(&kernels("sm_87/own_mul_mat.cubin")).to_owned()
}

struct Moved {
    dir: tempfile::TempDir,
}

impl Moved {
    fn new() -> Moved {
        let moved = Moved {
            dir: tempfile::tempdir().expect("a folder"),
        };
        let (code, said) = moved.run(&[&cubin(), "--list", &moved.path("list"), "-o", &moved.path("moved")]);
        assert_eq!(code, 0, "{said}");
        moved
    }

    fn path(&self, name: &str) -> String {
        s(&self.dir.path().join(name)).to_owned()
    }

    fn run(&self, args: &[&str]) -> (i32, String) {
        let done = run(&[&["nops"], args].concat());
        (done.code, done.out + &done.err)
    }

    /// Takes out what the changed list names.
    fn take_out(&self, change: impl Fn(&str) -> String) -> (i32, String, Vec<u8>) {
        let list = fs::read_to_string(self.path("list")).expect("a list");
        fs::write(self.path("changed"), change(&list)).expect("a list");
        let args = [&self.path("moved"), "--take-out", "--list", &self.path("changed")];
        let (code, said) = self.run(&[&args[..], &["-o", &self.path("out")]].concat());
        (code, said, fs::read(self.path("out")).unwrap_or_default())
    }
}

#[test]
fn only_nops_come_out() {
    let moved = Moved::new();
    let other = |list: &str, add: u32| {
        let (head, offset) = list.lines().next().expect("a line").rsplit_once('\t').expect("cells");
        let offset = u32::from_str_radix(offset.trim_start_matches("0x"), 16).expect("an offset");
        format!("{head}\t{:#x}\n", offset + add)
    };
    for add in [1, 16, 1 << 20] {
        let (code, said, bytes) = moved.take_out(|list| other(list, add));
        assert_eq!(code, 1, "{said}");
        assert!(said.contains("there is no NOP that was put in"), "{said}");
        assert!(
            bytes == fs::read(moved.path("moved")).expect("the cubin"),
            "other bytes"
        );
    }
}

#[test]
fn a_list_of_another_file_is_an_error() {
    let moved = Moved::new();
    for (list, says) in [
        ("0\tnowhere\t0x10\n", "has no kernel nowhere"),
        ("9\tmul_mat_q4_K\t0x10\n", "image 9 of this file has no kernel"),
        ("0\tmul_mat_q4_K\t16\n", "changed: line 1"),
    ] {
        let (code, said, bytes) = moved.take_out(|_| list.to_owned());
        assert_eq!(code, 2, "{said}");
        assert!(said.contains(says), "{said}");
        assert!(bytes.is_empty(), "an output is there");
    }
}

#[test]
fn a_list_stays_with_its_cubin() {
    let moved = Moved::new();
    let list = fs::read(moved.path("list")).expect("a list");
    let nowhere = moved.path("no/such/folder");
    let (code, said) = moved.run(&[&cubin(), "--seed", "99", "--list", &moved.path("list"), "-o", &nowhere]);
    assert_eq!(code, 2, "{said}");
    assert_eq!(
        fs::read(moved.path("list")).expect("a list"),
        list,
        "the cubin could not be written"
    );
    assert!(
        fs::read_dir(moved.dir.path()).expect("a folder").count() == 2,
        "temporary files are left"
    );
}

#[test]
fn the_report_says_what_went_in_and_what_came_out() {
    let moved = Moved::new();
    let count = |args: &[&str], list: &str| {
        let (code, said) = moved.run(args);
        assert_eq!(code, 0, "{said}");
        let kernels: serde_json::Value = serde_json::from_str(&said).expect("JSON");
        let kernels = kernels.as_array().expect("a list").clone();
        let sum = kernels
            .iter()
            .map(|k| k[list].as_array().expect("offsets").len())
            .sum::<usize>();
        (kernels.len(), sum)
    };
    let [list, again, out] = ["list", "again", "out"].map(|n| moved.path(n));
    let lines = fs::read_to_string(&list).expect("a list").lines().count();
    assert!(lines > 0);
    let file = cubin();
    let put_in = [&file, "--list", &again, "-o", &out, "--json"];
    assert_eq!(count(&put_in, "inserted"), (4, lines));
    let take_out = [
        &moved.path("moved"),
        "--take-out",
        "--list",
        &list,
        "-o",
        &out,
        "--json",
    ];
    assert_eq!(count(&take_out, "taken_out"), (4, lines));
    let (_, said) = moved.run(&take_out[..take_out.len() - 1]);
    assert!(said.ends_with(&format!("{lines} instructions taken out\n")), "{said}");
}

/// Sections of coarse alignment follow code that grows and shrinks, and go back where they were.
#[test]
fn what_follows_keeps_its_alignment() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = |name: &str| s(&dir.path().join(name)).to_owned();
    let [list, moved, back] = ["list", "moved", "back"].map(path);
    let nops = |args: &[&str]| {
        let done = run(&[&["nops"], args].concat());
        assert_eq!(done.code, 0, "{}", done.out);
    };
    for sm in ["sm_90a", "sm_110a", "sm_120a"] {
        let file = s(&kernels(&format!("seeds/{sm}/hopper.cubin"))).to_owned();
        for every in ["1", "2", "3", "5", "8", "50"] {
            nops(&[&file, "--every", every, "--list", &list, "-o", &moved]);
            let bytes = fs::read(&moved).expect("the cubin");
            let image = cubin::Image::parse(&bytes).expect("a cubin");
            let misplaced = |s: &&cubin::elf::Section<'_>| !s.offset.is_multiple_of(s.align.max(1));
            assert_eq!(image.sections().iter().find(misplaced), None, "{sm}");
            nops(&[&moved, "--take-out", "--list", &list, "-o", &back]);
            let same = fs::read(&back).expect("a cubin") == fs::read(&file).expect("a cubin");
            assert!(same, "{sm}, every {every}");
        }
    }
}

/// Kernel and offset of a NOP in the list.
fn nop(line: &str) -> (&str, u64) {
    let cells: Vec<&str> = line.split('\t').collect();
    (
        cells[1],
        u64::from_str_radix(cells[2].trim_start_matches("0x"), 16).expect("an offset"),
    )
}

/// Debug information follows: each instruction comes from the line that it came from, and each address that a relocation fills in is that of the
/// instruction that it was.
#[test]
fn debug_information_follows() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = |name: &str| s(&dir.path().join(name)).to_owned();
    let [list, moved, back] = ["list", "moved", "back"].map(path);
    for name in ["lines/lined.cubin", "lines/units.cubin"] {
        let file = s(&kernels(name)).to_owned();
        let old = fs::read(&file).expect("a cubin");
        let old = cubin::Image::parse(&old).expect("a cubin");
        for seed in ["1", "2", "3", "4"] {
            common::ok(&[
                "nops", &file, "--every", "3", "--seed", seed, "--list", &list, "-o", &moved,
            ]);
            let new = fs::read(&moved).expect("a cubin");
            let new = cubin::Image::parse(&new).expect("a cubin");
            let text = fs::read_to_string(&list).expect("a list");
            let nops: Vec<(&str, u64)> = text.lines().map(nop).collect();
            // Where a label at the offset goes: NOPs that were put in there are behind it.
            let label = |kernel: &str, offset: u64| {
                let before = nops.iter().filter(|(k, _)| *k == kernel);
                before.fold(offset, |now, (_, nop)| now + if *nop < now { 16 } else { 0 })
            };
            let (mut lines, mut addresses) = (0, 0);
            let tables = [&old, &new].map(|image| cubin::Lines::read(image).expect("tables"));
            for code in old.codes() {
                let end = new.code(code.name).expect("its code").bytes.len() as u64;
                let offsets = (0..code.bytes.len() as u64).step_by(16);
                // Less padding may be left at the end.
                for offset in offsets.filter(|offset| label(code.name, *offset) < end) {
                    let at = tables[0].at(code.section, offset);
                    assert_eq!(
                        at,
                        tables[1].at(code.section, label(code.name, offset)),
                        "{name}: {offset:#x}"
                    );
                    lines += usize::from(at.is_some());
                }
            }
            for section in old.sections().iter().filter(|s| s.name.contains("debug_")) {
                let targets = |image: &cubin::Image<'_>| -> Vec<(String, u64)> {
                    let bytes = image.section_data(section.index).expect("bytes");
                    let target = |r: &cubin::elf::Relocation| {
                        let inline =
                            || u64::from_le_bytes(bytes[r.offset as usize..][..8].try_into().expect("8 bytes"));
                        let symbol = image.symbols()[r.symbol as usize];
                        (
                            symbol.name.to_owned(),
                            symbol.value + r.addend.map_or_else(inline, |a| a as u64),
                        )
                    };
                    image
                        .relocations(section.index)
                        .expect("relocations")
                        .iter()
                        .map(target)
                        .collect()
                };
                for ((kernel, at), (_, now)) in targets(&old).into_iter().zip(targets(&new)) {
                    let [was, is] = [&old, &new].map(|image| image.code(&kernel).expect("its code").bytes.len() as u64);
                    // The end of the code is that of its padding.
                    let wanted = if at == was { is } else { label(&kernel, at) };
                    assert_eq!(now, wanted, "{name} {}: {at:#x}", section.name);
                    addresses += 1;
                }
            }
            assert!(
                lines > 40 && addresses > 5,
                "{name}: {lines} lines, {addresses} addresses"
            );
            common::ok(&["nops", &moved, "--take-out", "--list", &list, "-o", &back]);
            let same = fs::read(&back).expect("a cubin") == fs::read(&file).expect("a cubin");
            assert!(same, "{name}, seed {seed}");
        }
    }
}
