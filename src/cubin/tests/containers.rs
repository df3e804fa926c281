//! Fatbins and host files of our own: what is found in them, and what a replacement changes.

mod common;

use std::collections::BTreeMap;

use common::{FATBINS, read};
use sass2mlir_cubin::container::{Container, Kind};
use sass2mlir_cubin::fatbin::Compression;
use sass2mlir_cubin::{CubinError, Image, Patch};

/// The cubins from which the containers were made, by target.
fn originals() -> BTreeMap<String, Vec<u8>> {
    ["sm_75", "sm_87", "sm_100"]
        .into_iter()
        .map(|sm| (sm.to_owned(), read(&format!("two_kernels.{sm}.cubin"))))
        .collect()
}

/// A cubin with every instruction word of its first code changed.
fn changed(cubin: &[u8]) -> Vec<u8> {
    let image = Image::parse(cubin).expect("it parses");
    let code = &image.codes()[0];
    let bytes: Vec<u8> = code
        .bytes
        .iter()
        .enumerate()
        .map(|(i, b)| if i % 16 == 4 { b ^ 0x10 } else { *b })
        .collect();
    let mut patch = Patch::new(&image);
    patch.replace_code(code, &bytes).expect("same size");
    patch.finish()
}

fn sm(cubin: &[u8]) -> String {
    Image::parse(cubin)
        .unwrap_or_else(|e| panic!("{e}"))
        .target()
        .to_string()
}

#[test]
fn every_fatbin_gives_the_cubins_it_was_made_from() {
    let originals = originals();
    for (name, compression, concat) in [
        ("stored.fatbin", Compression::Stored, false),
        ("lz4.fatbin", Compression::Lz4, false),
        ("zstd.fatbin", Compression::Zstd, false),
        ("concat.fatbin", Compression::Zstd, true),
        ("concat_lz4.fatbin", Compression::Lz4, true),
    ] {
        let file = read(name);
        let container = Container::parse(&file).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(container.kind(), Kind::Fatbin);
        let mut seen = Vec::new();
        let mut parts = 0;
        for image in container.images() {
            let image = image.unwrap_or_else(|e| panic!("{name}: {e}"));
            let sm = sm(&image.bytes);
            // nvcc names the toolkit's input file in a note, so only fatbinary's inputs are equal to the last byte.
            assert_eq!(image.bytes.len(), originals[&sm].len(), "{name} {}", image.path);
            if name.contains("lz4") {
                assert!(*image.bytes == originals[&sm], "{name} {}", image.path);
            }
            assert_eq!(image.compression, compression, "{name} {}", image.path);
            parts += usize::from(image.path.contains("part"));
            seen.push(sm);
        }
        seen.sort();
        assert_eq!(seen, ["sm_100", "sm_75", "sm_87"], "{name}");
        assert_eq!(parts, if concat { 2 } else { 0 }, "{name}");
    }
}

#[test]
fn a_host_library_gives_the_cubins_of_every_place() {
    for (name, prefix, kind) in [
        ("libtwo.so", "", Kind::HostElf),
        ("libtwo.a", "member host.o, ", Kind::Archive),
    ] {
        let file = read(name);
        let container = Container::parse(&file).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(container.kind(), kind);
        let images: Vec<_> = container
            .images()
            .map(|i| i.unwrap_or_else(|e| panic!("{name}: {e}")))
            .collect();
        let per_place = |place: &str| images.iter().filter(|i| i.path.contains(place)).count();
        assert_eq!(per_place(&format!("{prefix}section .nv_fatbin, fatbin ")), 6, "{name}");
        assert_eq!(
            per_place(&format!("{prefix}section __nv_relfatbin, fatbin ")),
            3,
            "{name}"
        );
        assert_eq!(per_place(&format!("{prefix}section .rodata, fatbin ")), 3, "{name}");
        assert_eq!(per_place(&format!("{prefix}section .rodata, cubin 1")), 1, "{name}");
        assert_eq!(
            per_place("member two_kernels.sm_87.rel.cubin"),
            usize::from(kind == Kind::Archive),
            "{name}"
        );
        assert_eq!(images.len(), if kind == Kind::Archive { 14 } else { 13 }, "{name}");
        for (i, image) in images.iter().enumerate() {
            assert_eq!(image.index, i);
            sm(&image.bytes);
        }
    }
}

#[test]
fn what_is_replaced_by_itself_leaves_the_file_as_it_was() {
    for name in [
        "stored.fatbin",
        "lz4.fatbin",
        "zstd.fatbin",
        "concat.fatbin",
        "libtwo.so",
        "libtwo.a",
    ] {
        let file = read(name);
        let container = Container::parse(&file).expect("it parses");
        let images: Vec<_> = container.images().map(|i| i.expect("an image")).collect();
        let same: Vec<_> = images.iter().map(|i| (i.index, &*i.bytes)).collect();
        assert!(container.rebuild(&same).expect("it rebuilds") == file, "{name}");
        assert!(container.rebuild(&[]).expect("it rebuilds") == file, "{name}");
    }
}

#[test]
fn a_rebuilt_fatbin_holds_the_new_image_and_the_old_ones() {
    for name in FATBINS {
        let file = read(name);
        let container = Container::parse(&file).expect("it parses");
        let old: Vec<_> = container.images().map(|i| i.expect("an image")).collect();
        for target in &old {
            let new = changed(&target.bytes);
            let rebuilt = container.rebuild(&[(target.index, &new)]).expect("it rebuilds");
            let again = Container::parse(&rebuilt).unwrap_or_else(|e| panic!("{name}: {e}"));
            let images: Vec<_> = again
                .images()
                .map(|i| i.unwrap_or_else(|e| panic!("{name}: {e}")))
                .collect();
            assert_eq!(images.len(), old.len(), "{name}");
            for (after, before) in images.iter().zip(&old) {
                let expected = if before.index == target.index {
                    &new
                } else {
                    &*before.bytes
                };
                assert!(*after.bytes == *expected, "{name} {}", before.path);
            }
            assert_eq!(images[target.index].compression, Compression::Stored, "{name}");
            let ptx =
                |c: &Container<'_>| -> usize { c.fatbins().iter().map(|f| f.entries.len()).sum::<usize>() - c.len() };
            if !name.contains("concat") {
                assert_eq!(ptx(&again), ptx(&container), "{name}");
            }
        }
    }
}

#[test]
fn a_longer_image_makes_a_longer_fatbin() {
    let file = read("stored.fatbin");
    let container = Container::parse(&file).expect("it parses");
    let mut longer = container
        .image(0)
        .expect("image 0")
        .expect("it reads")
        .bytes
        .into_owned();
    longer.extend([0u8; 40]);
    let rebuilt = container.rebuild(&[(0, &longer)]).expect("it rebuilds");
    assert_eq!(rebuilt.len(), file.len() + 40);
    assert_eq!(Container::parse(&rebuilt).expect("it parses").len(), 3);
}

#[test]
fn in_a_host_file_only_the_slot_changes_or_the_error_says_why_not() {
    for name in ["libtwo.so", "libtwo.a"] {
        let file = read(name);
        let container = Container::parse(&file).expect("it parses");
        let (mut done, mut refused) = (0, 0);
        for image in container.images() {
            let image = image.expect("an image");
            let new = changed(&image.bytes);
            match container.rebuild(&[(image.index, &new)]) {
                Ok(rebuilt) => {
                    done += 1;
                    assert_eq!(rebuilt.len(), file.len());
                    let again = Container::parse(&rebuilt).expect("it parses");
                    assert!(*again.image(image.index).expect("there").expect("it reads").bytes == new);
                    // The slot, and before it the entry's header (at most 0x78 bytes in these files).
                    let slot = image.offset as usize - 0x78..(image.offset + image.slot_size) as usize;
                    let outside = |at: &usize| !slot.contains(at);
                    assert!(
                        (0..file.len()).filter(outside).all(|at| rebuilt[at] == file[at]),
                        "{name} {}",
                        image.path
                    );
                    if image.compression == Compression::Stored {
                        let differing = (0..file.len()).filter(|&at| rebuilt[at] != file[at]).count();
                        let expected = new.iter().zip(&*image.bytes).filter(|(a, b)| a != b).count();
                        assert_eq!(differing, expected, "{name} {}", image.path);
                    }
                }
                Err(e @ CubinError::DoesNotFit { .. }) => {
                    refused += 1;
                    assert_ne!(image.compression, Compression::Stored, "{name} {}: {e}", image.path);
                    assert!(e.to_string().contains(&image.path), "{e}");
                }
                Err(e) => panic!("{name} {}: {e}", image.path),
            }
        }
        assert!(done >= 4, "{name}: {done} replaced, {refused} refused");
    }
}

#[test]
fn a_relocatable_cubin_is_read_like_a_linked_one() {
    let bytes = read("two_kernels.sm_87.rel.cubin");
    let image = Image::parse(&bytes).expect("it parses");
    assert!(image.abi().relocatable);
    let scale = image.code("scale").expect("scale");
    assert!(scale.is_entry && scale.params.len() == 4);
    let helper = image
        .codes()
        .iter()
        .find(|c| c.name.contains("square_plus_one"))
        .expect("the device function");
    assert!(!helper.is_entry);
}
