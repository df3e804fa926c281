//! A library that holds the same kernels several times, for several targets: `--image` says which is meant, and nothing is taken by chance.

use std::fs;
use std::path::Path;
use std::process::Command;

fn library() -> String {
    format!(
        "{}/../../tests/kernels/containers/libtwo.so",
        env!("CARGO_MANIFEST_DIR")
    )
}

/// Exit code, standard output, standard error.
fn run(args: &[&str]) -> (i32, String, String) {
    let mut program = Command::new(env!("CARGO_BIN_EXE_sass2mlir"));
    let output = program.args(args).output().expect("the program runs");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (
        output.status.code().expect("a status"),
        text(output.stdout),
        text(output.stderr),
    )
}

fn done(args: &[&str]) -> String {
    let (code, out, said) = run(args);
    assert_eq!(code, 0, "{args:?}: {said}");
    out
}

fn refused(args: &[&str]) -> String {
    let (code, _, said) = run(args);
    assert_eq!(code, 2, "{args:?}");
    said
}

fn path(dir: &Path, name: &str) -> String {
    dir.join(name).display().to_string()
}

#[test]
fn info_numbers_the_images() {
    let library = library();
    let all = done(&["info", &library]);
    assert!(
        all.contains("image 2, section .rodata, fatbin 1 entry 2: sm_87"),
        "{all}"
    );
    let one = done(&["info", &library, "--image", "5"]);
    assert_eq!(one.lines().filter(|l| l.contains(" image ")).count(), 1, "{one}");
    assert!(
        one.contains("image 5, section .nv_fatbin, fatbin 2 entry 2: sm_87"),
        "{one}"
    );
    let json = done(&["info", &library, "--image", "5", "--json"]);
    assert!(json.contains("\"number\": 5"), "{json}");
    let said = refused(&["info", &library, "--image", "99"]);
    assert!(
        said.contains("libtwo.so: has no image 99; `sass2mlir info` numbers"),
        "{said}"
    );
    let said = refused(&["info", &library, "--image", "1", "--arch", "sm_87"]);
    assert!(said.contains("has no image 1 for sm_87"), "{said}");
}

#[test]
fn text_goes_back_into_the_image_that_is_named() {
    let dir = tempfile::tempdir().expect("a folder");
    let (library, text, out) = (library(), path(dir.path(), "k.mlir"), path(dir.path(), "out.so"));
    done(&["lift", &library, "--image", "5", "-o", &text]);
    let said = refused(&["lower", &text, "--into", &library, "-o", &out]);
    assert!(
        said.contains("holds poly for sm_87 in images 2, 5, 8, 11, 13; say with --image"),
        "{said}"
    );
    done(&["lower", &text, "--into", &library, "--image", "5", "-o", &out]);
    assert_eq!(fs::read(&out).unwrap(), fs::read(&library).unwrap());
}

#[test]
fn a_listing_goes_into_the_image_that_is_named() {
    let dir = tempfile::tempdir().expect("a folder");
    let (library, listing, out) = (library(), path(dir.path(), "k.sass"), path(dir.path(), "out.so"));
    let text = done(&["disasm", &library, "--image", "5", "--asm"]);
    let edited = text.replacen(":S01]", ":S02]", 1);
    assert_ne!(text, edited);
    fs::write(&listing, edited).unwrap();
    let said = refused(&["asm", &listing, "--into", &library, "-o", &out]);
    assert!(said.contains("in images 2, 5, 8, 11, 13; say with --image"), "{said}");
    done(&["asm", &listing, "--into", &library, "--image", "5", "-o", &out]);
    for image in ["2", "5"] {
        let same = done(&["disasm", &library, "--image", image, "--asm"])
            == done(&["disasm", &out, "--image", image, "--asm"]);
        assert_eq!(same, image == "2", "image {image}");
    }
}

#[test]
fn the_kernel_that_runs_is_the_one_that_is_named() {
    let library = library();
    let said = refused(&["run", &library, "--kernel", "scale", "--arch", "sm_87"]);
    assert!(
        said.contains("kernel scale is in images 2 (sm_87), 5 (sm_87)"),
        "{said}"
    );
    let said = refused(&["run", &library, "--image", "5"]);
    assert!(said.contains("2 kernels match; name one with --kernel"), "{said}");
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
    let ran = done(&[&["run", &library, "--image", "5"][..], &args].concat());
    assert!(ran.contains("elements changed"), "{ran}");
}
