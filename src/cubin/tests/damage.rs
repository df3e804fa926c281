//! Damaged files, systematically: every field of every table set to values that break careless readers, and files cut off
//! at every length. (Random damage: the fuzz targets.)

mod common;

use common::{FATBINS, read};
use sass2mlir_cubin::{Container, CubinError, Image, Patch};

/// Reads all there is to read; true if the file is taken.
fn exercise(bytes: &[u8]) -> Result<(), CubinError> {
    let image = Image::parse(bytes)?;
    for section in image.sections() {
        let _ = image.section_data(section.index);
        let _ = image.relocations(section.index);
        for attribute in image.attributes(section.index).unwrap_or_default() {
            let _ = (attribute.value(), attribute.code_offsets());
        }
    }
    let _ = (image.global_attributes(), image.call_graph(), image.producer());
    let mut patch = Patch::new(&image);
    for code in image.codes() {
        patch.replace_code(code, code.bytes).expect("code as it was fits");
    }
    assert!(patch.finish() == bytes);
    Ok(())
}

fn exercise_container(bytes: &[u8]) -> Result<(), CubinError> {
    let container = Container::parse(bytes)?;
    for image in container.images() {
        exercise(&image?.bytes)?;
    }
    Ok(())
}

/// Every message says where.
fn names_the_offset(e: &CubinError) {
    let text = e.to_string();
    assert!(text.contains("offset 0x"), "{text}");
}

fn values(len: u64) -> impl Iterator<Item = u64> {
    let near = [0, 1, 2, 4, 7, 16, 63, 64, len - 1, len, len + 1, len - 64, len / 2];
    let far = [
        0xffff,
        0xff00,
        0x7fff_ffff,
        0xffff_fff0,
        0xffff_ffff,
        1 << 32,
        1 << 63,
        u64::MAX - 15,
        u64::MAX,
    ];
    near.into_iter().chain(far)
}

/// Sets each of the fields (offset, bytes) to each of the values.
fn damage_fields(file: &[u8], fields: &[(usize, usize)], exercise: impl Fn(&[u8]) -> Result<(), CubinError>) -> usize {
    let mut bytes = file.to_vec();
    let mut refused = 0;
    for &(at, size) in fields {
        for value in values(file.len() as u64) {
            bytes[at..at + size].copy_from_slice(&value.to_le_bytes()[..size]);
            if let Err(e) = exercise(&bytes) {
                names_the_offset(&e);
                refused += 1;
            }
        }
        bytes[at..at + size].copy_from_slice(&file[at..at + size]);
    }
    refused
}

const EHDR: [(usize, usize); 13] = [
    (16, 2),
    (18, 2),
    (20, 4),
    (24, 8),
    (32, 8),
    (40, 8),
    (48, 4),
    (52, 2),
    (54, 2),
    (56, 2),
    (58, 2),
    (60, 2),
    (62, 2),
];
const SHDR: [(usize, usize); 10] = [
    (0, 4),
    (4, 4),
    (8, 8),
    (16, 8),
    (24, 8),
    (32, 8),
    (40, 4),
    (44, 4),
    (48, 8),
    (56, 8),
];
const PHDR: [(usize, usize); 8] = [(0, 4), (4, 4), (8, 8), (16, 8), (24, 8), (32, 8), (40, 8), (48, 8)];
const SYM: [(usize, usize); 6] = [(0, 4), (4, 1), (5, 1), (6, 2), (8, 8), (16, 8)];

#[test]
fn every_header_field_can_lie() {
    for name in [
        "two_kernels.sm_87.cubin",
        "two_kernels.sm_87.rel.cubin",
        "two_kernels.sm_100.cubin",
    ] {
        let file = read(name);
        let image = Image::parse(&file).expect("it parses");
        let mut fields = EHDR.to_vec();
        let mut table = |start: u64, count: usize, record: usize, layout: &[(usize, usize)]| {
            for i in 0..count {
                fields.extend(
                    layout
                        .iter()
                        .map(|(at, size)| (start as usize + i * record + at, *size)),
                );
            }
        };
        table(image.header().section_table, image.sections().len(), 64, &SHDR);
        table(image.header().segment_table, image.segments().len(), 56, &PHDR);
        let symbols = &image.sections()[image.elf().symbol_table.expect("a symbol table")];
        table(symbols.offset, image.symbols().len(), 24, &SYM);
        let refused = damage_fields(&file, &fields, exercise);
        assert!(
            refused > fields.len() * 2,
            "{name}: only {refused} of {} fields refused",
            fields.len()
        );
    }
}

#[test]
fn every_attribute_and_relocation_byte_can_lie() {
    let file = read("two_kernels.sm_87.rel.cubin");
    let image = Image::parse(&file).expect("it parses");
    let of_interest = |name: &str| name.starts_with(".nv.info") || name.starts_with(".rel") || name == ".nv.compat";
    for section in image.sections().iter().filter(|s| of_interest(s.name)) {
        let range = section.offset as usize..(section.offset + section.size) as usize;
        let mut bytes = file.clone();
        for at in range {
            for value in [0, 1, 4, 5, 0x7f, 0x80, 0xff] {
                bytes[at] = value;
                if let Err(e) = exercise(&bytes) {
                    names_the_offset(&e);
                }
            }
            bytes[at] = file[at];
        }
    }
}

#[test]
fn a_file_cut_off_anywhere_is_an_error() {
    for name in [
        "two_kernels.sm_87.cubin",
        "two_kernels.sm_87.rel.cubin",
        "two_kernels.sm_75.cubin",
    ] {
        let file = read(name);
        for len in (0..256)
            .chain((256..file.len()).step_by(7))
            .chain(file.len() - 256..file.len())
        {
            let e = exercise(&file[..len]).expect_err("a part of a cubin is none");
            names_the_offset(&e);
        }
    }
}

#[test]
fn a_container_cut_off_anywhere_is_an_error_or_holds_fewer() {
    for name in FATBINS {
        let file = read(name);
        for len in (0..file.len()).step_by(if file.len() > 8000 { 37 } else { 11 }) {
            let e = exercise_container(&file[..len]).expect_err("a part of a fatbin is none");
            names_the_offset(&e);
        }
    }
    let file = read("libtwo.so");
    let all = Container::parse(&file).expect("it parses").len();
    for len in (0..file.len()).step_by(509) {
        match Container::parse(&file[..len]) {
            Ok(container) => assert!(container.len() <= all),
            Err(e) => names_the_offset(&e),
        }
    }
}

#[test]
fn every_field_of_a_fatbin_can_lie() {
    for name in FATBINS {
        let file = read(name);
        let container = Container::parse(&file).expect("it parses");
        let mut fields = vec![(0, 4), (4, 2), (6, 2), (8, 8)];
        for entry in &container.fatbins()[0].entries {
            // The header and its extension, as words of each size.
            for at in (entry.offset as usize..entry.payload_offset() as usize).step_by(4) {
                fields.push((at, 4));
            }
            fields.extend([(entry.offset as usize + 8, 8), (entry.offset as usize + 56, 8)]);
        }
        let refused = damage_fields(&file, &fields, exercise_container);
        assert!(refused > fields.len(), "{name}: {refused} refused");
    }
}

/// 64 KB of zstd that decompress to 2 GB must not be tried, nor an LZ4 block with an impossible ratio.
#[test]
fn a_claim_of_gigabytes_is_refused_before_it_is_allocated() {
    for name in ["lz4.fatbin", "zstd.fatbin"] {
        let mut file = read(name);
        let entry = Container::parse(&file).expect("it parses").fatbins()[0].entries[0].clone();
        let at = entry.offset as usize + 56;
        for claim in [1u64 << 31, 1 << 40, u64::MAX] {
            file[at..at + 8].copy_from_slice(&claim.to_le_bytes());
            let e = Container::parse(&file).expect_err("too much");
            assert!(matches!(e, CubinError::Compression { .. }), "{e}");
            assert!(e.to_string().contains("fatbin 1 entry 1"), "{e}");
        }
    }
}

/// Images that are small enough each, and together more than such a file can hold.
#[test]
fn many_claims_of_megabytes_are_refused_together() {
    let mut file = read("lz4.fatbin");
    let fatbin = Container::parse(&file).expect("it parses").fatbins()[0].clone();
    let entry = &fatbin.entries[0];
    let (start, end) = (
        entry.offset as usize,
        (entry.payload_offset() + entry.slot_size) as usize,
    );
    let mut bytes = file[start..end].to_vec();
    bytes[56..64].copy_from_slice(&(1u64 << 29).to_le_bytes());
    file.truncate(fatbin.offset as usize + 16);
    for many in 1..=3 {
        file.extend_from_slice(&bytes);
        let body = (file.len() - fatbin.offset as usize - 16) as u64;
        file[fatbin.offset as usize + 8..][..8].copy_from_slice(&body.to_le_bytes());
        match Container::parse(&file) {
            Ok(_) => assert!(many < 3),
            Err(e) => {
                assert!(many == 3 && matches!(e, CubinError::Compression { .. }), "{many}: {e}");
                assert!(e.to_string().contains("fatbin 1 entry 3"), "{e}");
            }
        }
    }
}

#[test]
fn two_sections_on_the_same_code_are_an_error() {
    let file = read("two_kernels.sm_87.cubin");
    let image = Image::parse(&file).expect("it parses");
    let [a, b] = [&image.codes()[0], &image.codes()[1]];
    let header = |section: usize| image.header().section_table as usize + section * 64;
    let mut bytes = file.clone();
    let offset = (a.range.start as u64 + 16).to_le_bytes();
    bytes[header(b.section) + 24..header(b.section) + 32].copy_from_slice(&offset);
    let e = Image::parse(&bytes).expect_err("they overlap");
    assert!(matches!(&e, CubinError::Overlap { .. }), "{e}");
    assert!(e.to_string().contains(".text."), "{e}");
}
