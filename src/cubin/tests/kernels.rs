//! Our own cubins against `object`, an ELF reader that shares no code with ours, and against what the source says.

use std::path::PathBuf;

use cubin::elf::SymbolSection;
use cubin::{Image, Patch};
use object::elf::{FileHeader64, SectionHeader64};
use object::read::elf::{FileHeader, SectionHeader, Sym};
use object::{LittleEndian, SymbolIndex};
use sass2mlir_cubin as cubin;

fn kernels() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/kernels")
}

fn read(name: &str) -> Vec<u8> {
    let path = kernels().join(name);
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Every `.cubin` in the targets' folders.
fn cubins() -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for folder in std::fs::read_dir(kernels()).expect("tests/kernels is there") {
        let folder = folder.expect("a folder entry").path();
        let Ok(files) = std::fs::read_dir(&folder) else {
            continue;
        };
        for file in files {
            let path = file.expect("a folder entry").path();
            if folder
                .file_name()
                .is_some_and(|n| n.to_string_lossy().starts_with("sm_"))
                && path.extension().is_some_and(|e| e == "cubin")
            {
                let name = path
                    .strip_prefix(kernels())
                    .expect("it lies there")
                    .display()
                    .to_string();
                all.push((name.clone(), read(&name)));
            }
        }
    }
    assert!(all.len() >= 5, "{} cubins found", all.len());
    all
}

#[test]
fn the_target_is_the_folders_name() {
    for (name, bytes) in cubins() {
        let image = Image::parse(&bytes).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(
            image.target().to_string(),
            name.split('/').next().unwrap_or(""),
            "{name}"
        );
        assert_eq!(
            image.abi().version == 7,
            name.contains("cuda12.9") && !name.starts_with("sm_100"),
            "{name}"
        );
    }
}

#[test]
fn sections_and_symbols_are_what_object_reads() {
    for (name, bytes) in cubins() {
        let image = Image::parse(&bytes).unwrap_or_else(|e| panic!("{name}: {e}"));
        let header = FileHeader64::<LittleEndian>::parse(&*bytes).expect("object reads the header");
        let le = LittleEndian;
        let sections = header.sections(le, &*bytes).expect("object reads the sections");
        assert_eq!(image.sections().len(), sections.len(), "{name}");
        for (ours, theirs) in image.sections().iter().zip(sections.iter()) {
            let theirs: &SectionHeader64<LittleEndian> = theirs;
            assert_eq!(
                ours.name.as_bytes(),
                sections.section_name(le, theirs).expect("a name"),
                "{name}"
            );
            assert_eq!(ours.kind, theirs.sh_type(le));
            assert_eq!(ours.flags, theirs.sh_flags(le));
            assert_eq!((ours.offset, ours.size), (theirs.sh_offset(le), theirs.sh_size(le)));
            assert_eq!((ours.link, ours.info), (theirs.sh_link(le), theirs.sh_info(le)));
            assert_eq!(
                (ours.align, ours.entry_size),
                (theirs.sh_addralign(le), theirs.sh_entsize(le))
            );
            if ours.has_bytes() {
                let data = theirs.data(le, &*bytes).expect("object reads the data");
                assert_eq!(
                    image.section_data(ours.index).expect("data"),
                    data,
                    "{name} {}",
                    ours.name
                );
            }
        }
        let symbols = sections
            .symbols(le, &*bytes, object::elf::SHT_SYMTAB)
            .expect("object reads the symbols");
        assert_eq!(image.symbols().len(), symbols.len(), "{name}");
        for (i, ours) in image.symbols().iter().enumerate().skip(1) {
            let theirs = symbols.symbol(SymbolIndex(i)).expect("a symbol");
            assert_eq!(
                ours.name.as_bytes(),
                symbols.symbol_name(le, theirs).expect("a name"),
                "{name} symbol {i}"
            );
            assert_eq!((ours.value, ours.size), (theirs.st_value(le), theirs.st_size(le)));
            assert_eq!((ours.kind, ours.binding), (theirs.st_type(), theirs.st_bind()));
            assert_eq!(ours.other, theirs.st_other());
            if let SymbolSection::Section(n) = ours.section {
                assert_eq!(n, usize::from(theirs.st_shndx(le)));
            }
        }
    }
}

#[test]
fn every_kernel_says_what_a_driver_needs() {
    for (name, bytes) in cubins() {
        let image = Image::parse(&bytes).unwrap_or_else(|e| panic!("{name}: {e}"));
        let entries: Vec<_> = image.codes().iter().filter(|c| c.is_entry).collect();
        assert!(
            entries.len() >= if name.contains("own_features") { 20 } else { 1 },
            "{name}: {} kernels",
            entries.len()
        );
        for code in image.codes() {
            assert_eq!(code.bytes, &bytes[code.range.clone()]);
            assert!(code.bytes.len() % 128 == 0, "{name} {}", code.name);
            assert!(code.function().is_some(), "{name} {}", code.name);
            assert!(
                code.registers.is_some_and(|n| (2..=255).contains(&n)),
                "{name} {}: {:?}",
                code.name,
                code.registers
            );
            for &exit in &code.exit_offsets {
                assert!(exit % 16 == 0 && (exit as usize) < code.bytes.len());
            }
        }
        for code in entries {
            assert!(!code.exit_offsets.is_empty(), "{name} {}", code.name);
            let bank = code
                .param_bank
                .unwrap_or_else(|| panic!("{name} {}: no parameter bank", code.name));
            let end = code
                .params
                .iter()
                .map(|p| u32::from(p.offset) + p.size)
                .max()
                .unwrap_or(0);
            assert_eq!(end, u32::from(bank.size), "{name} {}", code.name);
            for (i, p) in code.params.iter().enumerate() {
                assert_eq!(usize::from(p.ordinal), i, "{name} {}", code.name);
            }
        }
    }
}

/// The source: `int_ops(int*, const int*, const unsigned*, int)`, `switch_k` with a jump table, `spill_regs` that spills.
#[test]
fn the_source_shows_in_the_attributes() {
    let bytes = read("sm_87/own_features.cubin");
    let image = Image::parse(&bytes).expect("it parses");
    let int_ops = image.code("int_ops").expect("int_ops");
    let params: Vec<_> = int_ops.params.iter().map(|p| (p.offset, p.size)).collect();
    assert_eq!(params, [(0, 8), (8, 8), (16, 8), (24, 4)]);
    assert_eq!(int_ops.param_bank.map(|b| (b.offset, b.size)), Some((0x160, 28)));
    assert_eq!(int_ops.constant_bank(0).map(|c| c.bytes.len()), Some(0x160 + 28));
    assert!(image.codes().iter().any(|c| c.shared_size > 0));
    assert!(image.codes().iter().any(|c| c.local_size > 0));
    assert!(image.codes().iter().any(|c| c.functions.len() > 1));
    assert!(!image.call_graph().expect("a call graph").is_empty());
    let producer = image.producer().expect("a producer");
    assert!(
        producer.starts_with("ptxas 13.5.") && producer.contains("-arch sm_87"),
        "{producer}"
    );
    let bytes = read("sm_87/own_features.cuda12.9.cubin");
    assert_eq!(
        Image::parse(&bytes).expect("it parses").producer().as_deref(),
        Some("ptxas 12.9")
    );
}

#[test]
fn parameters_can_be_large() {
    let bytes = read("sm_90/big_parameters.cubin");
    let image = Image::parse(&bytes).expect("it parses");
    let code = image.code("big_parameters").expect("big_parameters");
    let params: Vec<_> = code.params.iter().map(|p| (p.offset, p.size)).collect();
    assert_eq!(params, [(0, 20000), (20000, 8), (20008, 12)]);
    assert_eq!(code.param_bank.map(|b| b.size), Some(20020));
}

/// `switch_k` becomes a jump table on sm_100 and up (compare instructions before that).
#[test]
fn an_indirect_branch_has_its_targets() {
    let bytes = read("sm_100a/own_features.cubin");
    let image = Image::parse(&bytes).expect("it parses");
    assert!(image.abi().mercury);
    let code = image.code("switch_k").expect("switch_k");
    assert!(code.indirect_branches.len() > 2, "{:?}", code.indirect_branches);
    for branch in &code.indirect_branches {
        assert!(branch.targets.len() > 2, "{branch:?}");
        for at in branch.targets.iter().chain([&branch.offset]) {
            assert!(at % 16 == 0 && (*at as usize) < code.bytes.len(), "{branch:?}");
        }
    }
}

/// The PTX: a 5-way `brx.idx` over 4 cases, a call through a table of two functions, 4 constants.
#[test]
fn jump_tables_lie_in_the_constant_banks() {
    let bytes = read("sm_87/jump_table.cubin");
    let image = Image::parse(&bytes).expect("it parses");
    let code = image.code("jump_table").expect("jump_table");
    let [branch] = &code.indirect_branches[..] else {
        panic!("{:?}", code.indirect_branches)
    };
    let bank = code.constant_bank(2).expect("bank 2");
    let table: Vec<u32> = bank
        .bytes
        .chunks_exact(4)
        .map(|w| u32::from_le_bytes([w[0], w[1], w[2], w[3]]))
        .collect();
    assert_eq!(table.len(), 5);
    assert_eq!(table[1], table[4]);
    assert!(
        table.iter().all(|t| branch.targets.contains(t)),
        "{table:x?} {branch:x?}"
    );
    let weights = image.constant_bank(3).expect("it can be read").expect("bank 3");
    assert_eq!(weights.bytes, [3, 0, 0, 0, 5, 0, 0, 0, 7, 0, 0, 0, 11, 0, 0, 0]);
    let addresses = image.constant_bank(4).expect("it can be read").expect("bank 4");
    let relocations = image.relocations(addresses.section).expect("relocations");
    assert_eq!(cubin::reloc::name(relocations[0].kind), Some("R_CUDA_64"));
    assert_eq!(image.symbols()[relocations[0].symbol as usize].name, "functions");
    let call = image.code("pointer_call").expect("pointer_call");
    let functions: Vec<_> = call.functions.iter().map(|f| f.name).collect();
    assert_eq!(
        functions,
        ["pointer_call", "$pointer_call$square", "$pointer_call$twice"]
    );
    let bank = call.constant_bank(2).expect("bank 2");
    for f in &call.functions[1..] {
        assert!(
            bank.bytes.chunks_exact(8).any(|w| w == f.offset.to_le_bytes()),
            "{} at {:#x}",
            f.name,
            f.offset
        );
    }
}

#[test]
fn a_patch_changes_the_code_and_nothing_else() {
    for (name, bytes) in cubins() {
        let image = Image::parse(&bytes).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(Patch::new(&image).finish(), bytes, "{name}: an empty patch");
        let code = &image.codes()[image.codes().len() / 2];
        let flipped: Vec<u8> = code.bytes.iter().map(|b| !b).collect();
        let mut patch = Patch::new(&image);
        patch.replace_code(code, &flipped).expect("same size");
        assert!(patch.replace_code(code, &flipped[16..]).is_err(), "another size");
        let patched = patch.finish();
        assert_eq!(patched.len(), bytes.len());
        for (at, (new, old)) in patched.iter().zip(&bytes).enumerate() {
            let expected = if code.range.contains(&at) { !old } else { *old };
            assert_eq!(*new, expected, "{name} at {at:#x}");
        }
    }
}

#[test]
fn a_patch_refuses_the_code_of_another_image() {
    let (a, b) = (read("sm_87/own_features.cubin"), read("sm_90a/own_features.cubin"));
    let (a, b) = (Image::parse(&a).expect("a"), Image::parse(&b).expect("b"));
    let foreign = &b.codes()[3];
    assert!(Patch::new(&a).replace_code(foreign, foreign.bytes).is_err());
}

#[test]
fn mercury_is_taken_out_and_nothing_moves() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/kernels/sm_100a/own_features.cubin");
    let bytes = std::fs::read(path).expect("readable");
    let image = cubin::Image::parse(&bytes).expect("a cubin");
    let stripped = cubin::mercury::strip(&image)
        .expect("can be read")
        .expect("has Mercury");
    let new = cubin::Image::parse(&stripped).expect("still a cubin");
    assert!(!new.abi().mercury && image.abi().mercury);
    assert_eq!(new.target(), image.target());
    for (a, b) in image.codes().iter().zip(new.codes()) {
        assert_eq!((a.name, a.bytes, &a.range), (b.name, b.bytes, &b.range));
    }
    assert_eq!(image.codes().len(), new.codes().len());
    assert!(cubin::mercury::strip(&new).expect("can be read").is_none());
}

/// What of a section's functions the rest of the file can name: a table in global memory two, the code alone the division's.
#[test]
fn data_tells_the_addresses_of_functions() {
    for (name, pointers) in [("chosen", 0), ("table", 2)] {
        let bytes = read(&format!("calls/sm_80/{name}.cubin"));
        let image = Image::parse(&bytes).expect(name);
        let code = image.code(name).expect(name);
        assert_eq!(code.pointers.len(), pointers, "{name}");
        let private = code.functions.iter().filter(|f| f.is_private);
        assert_eq!(private.count(), 3 - pointers, "{name}");
        let function = |offset: u64| code.functions.iter().find(|f| f.offset == offset);
        for pointer in &code.pointers {
            let f = function(pointer.function).expect("a function");
            assert!(!f.is_private && f.name.starts_with("$table$_Z"), "{}", f.name);
            assert_eq!(image.sections()[pointer.section].name, ".nv.global.init");
        }
    }
}
