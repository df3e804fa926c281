//! Line tables. The lines are those that `nvdisasm -g` says.

use std::fs;
use std::path::Path;

use sass2mlir_cubin::{Image, Lines};

fn own(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/kernels");
    fs::read(folder.join(name)).expect(name)
}

#[test]
fn lines_are_those_of_the_table() {
    let bytes = own("lines/lined.cubin");
    let image = Image::parse(&bytes).unwrap();
    let lines = Lines::read(&image).unwrap();
    // Two functions whose tables begin at address 0. What is at 0x1f0 was inlined.
    for (kernel, wanted) in [
        (
            "lined",
            &[
                (0x0, 7),
                (0x140, 7),
                (0x150, 9),
                (0x190, 10),
                (0x1a0, 12),
                (0x1e0, 13),
                (0x1f0, 4),
                (0x200, 13),
                (0x220, 14),
            ][..],
        ),
        ("other", &[(0x0, 16), (0x150, 18), (0x1b0, 19), (0x270, 19)]),
    ] {
        let section = image.code(kernel).unwrap().section;
        for (offset, line) in wanted {
            let at = lines.at(section, *offset).unwrap();
            assert_eq!((at.file, at.line), ("lined.cu", *line), "{kernel} at {offset:#x}");
        }
        let size = image.code(kernel).unwrap().bytes.len() as u64;
        assert_eq!(lines.at(section, size), None, "{kernel}: behind the end");
    }
    assert_eq!(lines.at(0, 0), None);
}

#[test]
fn a_cubin_without_a_table_has_no_lines() {
    let bytes = own("sm_87/own_mul_mat.cubin");
    let image = Image::parse(&bytes).unwrap();
    let lines = Lines::read(&image).unwrap();
    assert!(image.codes().iter().all(|code| lines.at(code.section, 0).is_none()));
}

#[test]
fn a_damaged_table_is_an_error_or_other_lines() {
    let bytes = own("lines/lined.cubin");
    let image = Image::parse(&bytes).unwrap();
    let table = image.elf().section_by_name(".debug_line").unwrap();
    let (start, size) = (table.offset as usize, table.size as usize);
    for at in start..start + size {
        for value in [0, 0x7f, 0xff] {
            let mut damaged = bytes.clone();
            damaged[at] = value;
            let image = Image::parse(&damaged).unwrap();
            if let Ok(lines) = Lines::read(&image) {
                let _ = lines.at(image.codes()[0].section, 0x150);
            }
        }
    }
}
