//! A library that holds the same kernels several times, for several targets: `--image` says which is meant, and nothing is taken by chance.

mod common;

use std::fs;
use std::path::Path;

use common::{bad, kernels, ok, s};

fn library() -> String {
    s(&kernels("containers/libtwo.so")).to_owned()
}

fn path(dir: &Path, name: &str) -> String {
    dir.join(name).display().to_string()
}

#[test]
fn info_numbers_the_images() {
    let library = library();
    let all = ok(&["info", &library]);
    assert!(
        all.contains("image 2, section .rodata, fatbin 1 entry 2: sm_87"),
        "{all}"
    );
    let one = ok(&["info", &library, "--image", "5"]);
    assert_eq!(one.lines().filter(|l| l.contains(" image ")).count(), 1, "{one}");
    assert!(
        one.contains("image 5, section .nv_fatbin, fatbin 2 entry 2: sm_87"),
        "{one}"
    );
    let json = ok(&["info", &library, "--image", "5", "--json"]);
    assert!(json.contains("\"number\": 5"), "{json}");
    bad(
        &["info", &library, "--image", "99"],
        &["libtwo.so: has no image 99; `sass2mlir info` numbers"],
    );
    bad(
        &["info", &library, "--image", "1", "--arch", "sm_87"],
        &["has no image 1 for sm_87"],
    );
}

#[test]
fn text_goes_back_into_the_image_that_is_named() {
    let dir = tempfile::tempdir().expect("a folder");
    let (library, text, out) = (library(), path(dir.path(), "k.mlir"), path(dir.path(), "out.so"));
    ok(&["lift", &library, "--image", "5", "-o", &text]);
    bad(
        &["lower", &text, "--into", &library, "-o", &out],
        &["holds poly for sm_87 in images 2, 5, 8, 11, 13; say with --image"],
    );
    ok(&["lower", &text, "--into", &library, "--image", "5", "-o", &out]);
    assert_eq!(fs::read(&out).unwrap(), fs::read(&library).unwrap());
}

#[test]
fn a_listing_goes_into_the_image_that_is_named() {
    let dir = tempfile::tempdir().expect("a folder");
    let (library, listing, out) = (library(), path(dir.path(), "k.sass"), path(dir.path(), "out.so"));
    let text = ok(&["disasm", &library, "--image", "5", "--asm"]);
    let edited = text.replacen(":S01]", ":S02]", 1);
    assert_ne!(text, edited);
    fs::write(&listing, edited).unwrap();
    bad(
        &["asm", &listing, "--into", &library, "-o", &out],
        &["in images 2, 5, 8, 11, 13; say with --image"],
    );
    ok(&["asm", &listing, "--into", &library, "--image", "5", "-o", &out]);
    for image in ["2", "5"] {
        let same =
            ok(&["disasm", &library, "--image", image, "--asm"]) == ok(&["disasm", &out, "--image", image, "--asm"]);
        assert_eq!(same, image == "2", "image {image}");
    }
}

#[test]
fn the_kernel_that_runs_is_the_one_that_is_named() {
    let library = library();
    bad(
        &["run", &library, "--kernel", "scale", "--arch", "sm_87"],
        &["kernel scale is in images 2 (sm_87), 5 (sm_87)"],
    );
    bad(
        &["run", &library, "--image", "5"],
        &["2 kernels match; name one with --kernel"],
    );
    let args = [
        "--kernel",
        "scale",
        "--block",
        "32",
        "--arg",
        "y:f32[8]",
        "--arg",
        "x:f32[8]=iota",
        "--arg",
        "f32=2",
        "--arg",
        "i32=8",
    ];
    let ran = ok(&[&["run", &library, "--image", "5"][..], &args].concat());
    assert!(ran.contains("elements changed"), "{ran}");
}
