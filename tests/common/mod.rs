//! What the checks of the whole program share. Nothing here uses the project's crates: the program is run as a user runs
//! it, cubins are found by the checks' own reading of ELF, and the text to compare with is NVIDIA's.

#![allow(dead_code)] // each test program uses its own part

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Runs `sass2mlir ARGS`.
pub fn run(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sass2mlir"))
        .args(args)
        .output()
        .expect("sass2mlir does not start")
}

/// Runs `sass2mlir ARGS` and gives its standard output; fails with its error text if it does not succeed.
pub fn succeed(args: &[&str]) -> String {
    let out = run(args);
    let text = |b: Vec<u8>| String::from_utf8(b).expect("output is UTF-8");
    assert!(
        out.status.success(),
        "sass2mlir {} failed:\n{}",
        args.join(" "),
        text(out.stderr)
    );
    text(out.stdout)
}

/// Runs `sass2mlir ARGS`, which must fail without a panic, and gives its error text.
pub fn fail(args: &[&str]) -> String {
    let out = run(args);
    let text = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(
        !out.status.success(),
        "sass2mlir {} succeeded, an error was due",
        args.join(" ")
    );
    assert!(
        out.status.code().is_some_and(|c| c != 101),
        "sass2mlir {} panicked:\n{text}",
        args.join(" ")
    );
    text
}

/// A path as an argument.
pub fn arg(p: &Path) -> &str {
    p.to_str().expect("paths of the checks are UTF-8")
}

/// The project's own cubin with one kernel a feature, for sm_87.
pub fn features() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/kernels/sm_87/own_features.cubin")
}

/// The kernels that the project brings along: `tests/kernels/SM/*.cubin`.
pub fn own_cubins(sm: &str) -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/kernels")
        .join(sm);
    let found = cubins_below(&dir);
    assert!(!found.is_empty(), "no cubin in {}", dir.display());
    found
}

/// Every `.cubin` file below a folder, sorted.
pub fn cubins_below(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut todo = vec![dir.to_path_buf()];
    while let Some(dir) = todo.pop() {
        for entry in std::fs::read_dir(&dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display())) {
            let path = entry.expect("folder entry").path();
            if path.is_dir() {
                todo.push(path);
            } else if path.extension().is_some_and(|e| e == "cubin") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// True if a command failed because the program does not know the target's instructions.
pub fn is_unknown_target(out: &Output) -> bool {
    let error = String::from_utf8_lossy(&out.stderr);
    out.status.code() == Some(2)
        && (error.contains("no tables for") || error.contains("not among the supported targets"))
}

/// Every cubin of the corpus and of the project.
pub fn all_cubins() -> Vec<PathBuf> {
    let mut files = cubins_below(&folder("SASS_CORPUS"));
    assert!(!files.is_empty(), "no cubin in the corpus: run `make oracles`");
    files.extend(own_cubins("."));
    files
}

/// The folder that an environment variable names; says how to get it when it is not set.
pub fn folder(variable: &str) -> PathBuf {
    let value = std::env::var(variable).unwrap_or_else(|_| {
        panic!("{variable} is not set: run `make check-corpus`, which brings what this check needs")
    });
    let path = PathBuf::from(value);
    assert!(
        path.is_dir(),
        "{variable}: {} is not a folder: run `make oracles`",
        path.display()
    );
    path
}

/// Number of the target of a cubin, from its ELF flags: 87 for sm_87.
pub fn sm_of(cubin: &[u8]) -> u32 {
    let flags = u32::from_le_bytes(cubin[48..52].try_into().unwrap());
    if cubin[7] == 0x41 {
        flags >> 8 & 0xffff
    } else {
        flags & 0xff
    }
}

/// Sections of an ELF64 file that hold bytes: name -> (file offset, size).
pub fn elf_sections(file: &[u8]) -> BTreeMap<String, (usize, usize)> {
    let u = |at: usize, n: usize| {
        let mut b = [0; 8];
        b[..n].copy_from_slice(&file[at..at + n]);
        u64::from_le_bytes(b) as usize
    };
    let (table, size, count, names) = (u(40, 8), u(58, 2), u(60, 2), u(62, 2));
    let header = |i: usize| table + i * size;
    let strings = u(header(names) + 24, 8);
    let mut out = BTreeMap::new();
    for h in (0..count).map(header) {
        const NOBITS: usize = 8;
        if u(h + 4, 4) != NOBITS {
            let name = &file[strings + u(h, 4)..];
            let name = &name[..name.iter().position(|&c| c == 0).unwrap()];
            out.insert(String::from_utf8_lossy(name).into_owned(), (u(h + 24, 8), u(h + 32, 8)));
        }
    }
    out
}

/// Numbers of the symbols of functions of an ELF64 file, by name.
pub fn function_symbols(file: &[u8]) -> BTreeMap<String, usize> {
    const SYMBOL: usize = 24;
    const FUNCTION: u8 = 2;
    let sections = elf_sections(file);
    let (Some((start, size)), Some((names, _))) = (sections.get(".symtab"), sections.get(".strtab")) else {
        return BTreeMap::new();
    };
    let symbols = file[*start..start + size].chunks_exact(SYMBOL).enumerate();
    let functions = symbols.filter(|(_, symbol)| symbol[4] & 15 == FUNCTION);
    let name = |symbol: &[u8]| {
        let name = &file[names + u32::from_le_bytes(symbol[..4].try_into().unwrap()) as usize..];
        String::from_utf8_lossy(name.split(|c| *c == 0).next().unwrap()).into_owned()
    };
    functions.map(|(n, symbol)| (name(symbol), n)).collect()
}

/// Bytes of machine code in a cubin.
pub fn code_size(file: &[u8]) -> usize {
    elf_sections(file)
        .iter()
        .filter(|(name, _)| name.starts_with(".text."))
        .map(|(_, &(_, size))| size)
        .sum()
}

/// One instruction of nvdisasm's listing.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    /// Section without `.text.`: the kernel or function.
    pub kernel: String,
    /// Byte offset in the section.
    pub offset: usize,
    /// Text without the semicolon, inner runs of blanks kept.
    pub text: String,
    /// The 128 bits.
    pub word: u128,
}

/// The nvdisasm that knows a cubin's target.
fn disassembler(oracles: &Path, cubin: &Path) -> Command {
    // Version 13 forgot Volta.
    let name = match sm_of(&std::fs::read(cubin).expect("readable")) {
        70 | 72 => "nvdisasm-12.8",
        _ => "nvdisasm",
    };
    Command::new(oracles.join("bin").join(name))
}

/// What `nvdisasm -c`, with more options, prints of a cubin.
pub fn nvdisasm_c(oracles: &Path, cubin: &Path, options: &[&str]) -> String {
    let out = disassembler(oracles, cubin)
        .arg("-c")
        .args(options)
        .arg(cubin)
        .output()
        .expect("nvdisasm");
    assert!(out.status.success(), "nvdisasm {}", cubin.display());
    String::from_utf8(out.stdout).expect("nvdisasm's output is UTF-8")
}

/// Every instruction of a cubin, as `nvdisasm -c -hex` lists it. `oracles` is the folder that setup.sh filled.
pub fn nvdisasm(oracles: &Path, cubin: &Path) -> Vec<Listed> {
    nvdisasm_if_legal(oracles, cubin).unwrap_or_else(|why| panic!("nvdisasm {}: {why}", cubin.display()))
}

/// The same; what nvdisasm says where it calls an instruction of the file illegal. (For sm_70 it does so with some that ptxas makes.)
pub fn nvdisasm_if_legal(oracles: &Path, cubin: &Path) -> Result<Vec<Listed>, String> {
    nvdisasm_of(oracles, cubin, None)
}

/// The same, of some functions only, which saves most of the time where they are few.
pub fn nvdisasm_of(oracles: &Path, cubin: &Path, functions: Option<&[String]>) -> Result<Vec<Listed>, String> {
    let only = functions.map(|names| {
        let symbols = function_symbols(&std::fs::read(cubin).expect("readable"));
        let symbol = |name: &String| symbols.get(name).expect("a function's symbol").to_string();
        format!("-fun={}", names.iter().map(symbol).collect::<Vec<_>>().join(","))
    });
    let out = disassembler(oracles, cubin)
        .args(["-c", "-hex"])
        .args(only)
        .arg(cubin)
        .output()
        .expect("nvdisasm");
    let said = String::from_utf8_lossy(&out.stderr);
    if said.contains("Illegal instruction found") {
        return Err(said.into_owned());
    }
    assert!(out.status.success(), "nvdisasm {}: {said}", cubin.display());
    let listing = String::from_utf8(out.stdout).expect("nvdisasm's output is UTF-8");
    let mut all: Vec<Listed> = Vec::new();
    let mut kernel = String::new();
    for line in listing.lines() {
        if let Some(name) = line.strip_prefix(".text.").and_then(|l| l.strip_suffix(':')) {
            kernel = name.to_string();
            continue;
        }
        // `/*0010*/   TEXT ;   /* 0xLOW */`, then a line with only `/* 0xHIGH */`
        let Some((rest, hex)) = line.trim_end().strip_suffix("*/").and_then(|l| l.rsplit_once("/*")) else {
            continue;
        };
        let Some(half) = hex
            .trim()
            .strip_prefix("0x")
            .and_then(|h| u64::from_str_radix(h, 16).ok())
        else {
            continue;
        };
        let rest = rest.trim();
        if rest.is_empty() {
            all.last_mut().expect("a high half follows a low half").word |= u128::from(half) << 64;
        } else if let Some((offset, text)) = rest.strip_prefix("/*").and_then(|r| r.split_once("*/")) {
            all.push(Listed {
                kernel: kernel.clone(),
                offset: usize::from_str_radix(offset, 16).expect("offset in hex"),
                text: without_remark(text).trim_end_matches(';').trim_end().to_string(),
                word: u128::from(half),
            });
        }
    }
    assert!(
        !all.is_empty() || !listing.contains("EXIT"),
        "could not read nvdisasm's listing of {}",
        cubin.display()
    );
    Ok(all)
}

/// nvdisasm writes what `.nv.info` says about an instruction behind it: `STL [R1], R5  (*"SpillRefill"*) ;`
fn without_remark(text: &str) -> &str {
    text.split("(*\"").next().unwrap_or(text).trim()
}

/// Writes a pass.toml with one pass into `dir`, `rest` being the lines after its name.
pub fn config(dir: &Path, name: &str, rest: &str) -> PathBuf {
    let path = dir.join("pass.toml");
    std::fs::write(&path, format!("[[pass]]\nname = \"{name}\"\n{rest}\n")).unwrap();
    path
}

/// Adds up the sites that `apply` reports: `NAME [report]: would fire at 61 sites - no bytes changed`.
pub fn reported_sites(output: &str, pass: &str) -> usize {
    let head = format!("{pass} [report]: would fire at ");
    let number = |l: &str| l.trim().strip_prefix(&head)?.split(' ').next()?.parse::<usize>().ok();
    output.lines().filter_map(number).sum()
}

/// Checks what `roundtrip` printed: one line a kernel, none with a mismatch. Gives (kernels, instructions).
pub fn roundtrip_lines(output: &str) -> (usize, usize) {
    let (mut kernels, mut instructions) = (0, 0);
    for line in output.lines().filter(|l| l.starts_with("roundtrip: ")) {
        let counts = line.strip_suffix(" instructions byte-identical (0 mismatches)");
        let counts = counts.unwrap_or_else(|| panic!("not byte-identical: {line}"));
        let (same, all) = counts.rsplit(' ').next().unwrap().split_once('/').expect("a/b");
        assert_eq!(same, all, "{line}");
        kernels += 1;
        instructions += all.parse::<usize>().expect("a count");
    }
    (kernels, instructions)
}

/// Calls `f` for every item, on as many threads as there are cores; results in order.
pub fn parallel<T: Sync, R: Send>(items: &[T], f: impl Fn(&T) -> R + Sync) -> Vec<R> {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, R)>> = Mutex::new(Vec::new());
    std::thread::scope(|s| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            s.spawn(|| {
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(i) else { return };
                    let result = f(item);
                    done.lock().unwrap().push((i, result));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap();
    done.sort_by_key(|(i, _)| *i);
    done.into_iter().map(|(_, r)| r).collect()
}
