//! The project's own kernels, made by ptxas: they have no hazards, and what is broken in them is found.

use std::path::{Path, PathBuf};

use cubin::Image;
use ir::Source;
use isa::{Control, Isa, Word};
use sass2mlir_sched::code::Code;
use sass2mlir_sched::plant::{self, Fault};
use sass2mlir_sched::{Model, assign, check};

/// Calls `f` with every kernel of a file of the test kernels.
fn each_kernel_of(path: &Path, f: &mut impl FnMut(&'static Isa, &Model, &Source<'_>)) {
    let bytes = std::fs::read(path).expect("a file");
    let image = Image::parse(&bytes).expect("a cubin");
    let isa = Isa::for_target(image.target()).expect("the target is embedded");
    let model = Model::of(image.target());
    for code in image.codes() {
        f(isa, model, &Source::from_code(image.target(), code));
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/kernels")
}

/// Calls `f` with every kernel of the sm_87 files.
fn each_kernel(mut f: impl FnMut(&'static Isa, &Model, &Source<'_>)) {
    let mut files = 0;
    for file in std::fs::read_dir(folder().join("sm_87")).expect("the kernels are there") {
        let path = file.expect("a file").path();
        if path.extension().is_some_and(|e| e == "cubin") {
            files += 1;
            each_kernel_of(&path, &mut f);
        }
    }
    assert!(files >= 4, "only {files} files");
}

#[test]
fn own_kernels_are_clean() {
    let (mut kernels, mut instructions) = (0, 0);
    each_kernel(|isa, model, source| {
        let report = check(isa, model, &ir::lift(isa, source).expect("whole words"));
        let errors: Vec<String> = report.errors().map(|f| f.to_string()).collect();
        assert!(errors.is_empty(), "{}: {errors:#?}", source.name);
        (kernels, instructions) = (kernels + 1, instructions + report.instructions);
    });
    assert!(
        kernels >= 60 && instructions > 8000,
        "{kernels} kernels, {instructions} instructions"
    );
}

#[test]
fn planted_faults_are_found() {
    let mut planted = [0; 4];
    let mut missed = Vec::new();
    each_kernel(|isa, model, source| {
        let kernel = ir::lift(isa, source).expect("whole words");
        let plants = plant::plants(&Code::new(isa, model.classes(), &kernel), model);
        for fault in Fault::ALL {
            for plant in plants.iter().filter(|p| p.fault == fault).step_by(3).take(2) {
                let mut bytes = source.code.to_vec();
                for (at, word) in &plant.words {
                    bytes[*at as usize * 16..][..16].copy_from_slice(&word.0.to_le_bytes());
                }
                let broken = Source {
                    code: &bytes,
                    ..source.clone()
                };
                let report = check(isa, model, &ir::lift(isa, &broken).expect("whole words"));
                planted[fault as usize] += 1;
                if !report.errors().any(|f| f.at == u64::from(plant.at) * 16) {
                    missed.push(format!("{}: {plant:?}", source.name));
                }
            }
        }
    });
    assert!(planted.iter().all(|n| *n >= 20), "{planted:?}");
    assert!(missed.is_empty(), "{} of {planted:?}: {missed:#?}", missed.len());
}

/// The words of some code, each as `change` wants it.
fn changed(code: &[u8], change: impl Fn(u128) -> u128) -> Vec<u8> {
    let words = code
        .chunks_exact(16)
        .map(|w| u128::from_le_bytes(w.try_into().expect("16 bytes")));
    words.flat_map(|w| change(w).to_le_bytes()).collect()
}

/// Products of warpgroups, and what works on tensor memory: clean as they are, and with scheduling bits from scratch.
#[test]
fn what_runs_on_after_its_issue_is_understood() {
    let mut kernels = 0;
    for file in ["sm_90a/warpgroup.cubin", "sm_100a/tensor_memory.cubin"] {
        each_kernel_of(&folder().join(file), &mut |isa, model, source| {
            let kernel = ir::lift(isa, source).expect("whole words");
            let found = check(isa, model, &kernel).findings;
            assert!(found.is_empty(), "{}: {found:#?}", source.name);
            let words = assign(isa, model, &kernel).unwrap_or_else(|e| panic!("{}: {e}", source.name));
            let code: Vec<u8> = words.iter().flat_map(|w| w.0.to_le_bytes()).collect();
            let new = Source {
                code: &code,
                ..source.clone()
            };
            let found = check(isa, model, &ir::lift(isa, &new).expect("whole words")).findings;
            assert!(found.is_empty(), "{}: {found:#?}", source.name);
            // What stands behind a wait for tensor memory may overwrite it: these waits and their signals stay.
            let old: Vec<Word> = Word::all(source.code).take(words.len()).collect();
            let tensor = |w: &Word| isa.semantics(isa.decode(*w)).space == isa::Space::Tensor;
            let bit = |b: Option<u8>| b.map_or(0, |b| 1u8 << b);
            let told = |w: &Word| bit(Control::of(*w).write_barrier) | bit(Control::of(*w).read_barrier);
            let kept = old.iter().filter(|w| tensor(w)).fold(0, |all, w| all | told(w));
            let waits = |words: &[Word]| words.iter().map(|w| Control::of(*w).wait & kept).collect::<Vec<_>>();
            let signals = |words: &[Word]| words.iter().map(|w| told(w) & kept).collect::<Vec<_>>();
            assert_eq!(waits(&old), waits(&words), "{}", source.name);
            assert_eq!(signals(&old), signals(&words), "{}", source.name);
            kernels += 1;
        });
    }
    assert!(kernels >= 25, "{kernels}");
}

/// One group more is under way than each wait leaves; or none is ever told of.
#[test]
fn groups_that_are_not_waited_for_are_found() {
    let isa = Isa::for_target(isa::Target::Sm90a).expect("embedded");
    let is_product = |inst: isa::Inst| isa.form(inst.form).is_some_and(|f| f.mnemonic().ends_with("GMMA"));
    let late = |word: u128| match isa.has_modifier(isa.decode(Word(word)), "DEPBAR") {
        true => word + (1 << 72),
        false => word,
    };
    let silent = |word: u128| match is_product(isa.decode(Word(word))) {
        true => word | 7 << 84,
        false => word,
    };
    each_kernel_of(&folder().join("sm_90a/warpgroup.cubin"), &mut |isa, model, source| {
        for code in [changed(source.code, late), changed(source.code, silent)] {
            let broken = Source {
                code: &code,
                ..source.clone()
            };
            let report = check(isa, model, &ir::lift(isa, &broken).expect("whole words"));
            assert!(report.errors().next().is_some(), "{}", source.name);
        }
    });
}

/// What a call through a pointer enters: not what is called by name only, but all of it where the file or the code may name it.
#[test]
fn a_call_through_a_pointer_enters_what_has_an_address() {
    for (name, wrong) in [
        ("sm_75/chosen", 1),
        ("sm_75/table", 1),
        ("sm_80/chosen", 1),
        ("sm_80/table", 1),
        // The place of an instruction is there for a return address only.
        ("sm_80/printed", 0),
    ] {
        let path = folder().join(format!("calls/{name}.cubin"));
        each_kernel_of(&path, &mut |isa, model, source| {
            let errors = |source: &Source<'_>| {
                let kernel = ir::lift(isa, source).expect("whole words");
                (kernel.called_by_name.len(), check(isa, model, &kernel).errors().count())
            };
            assert_eq!(errors(source), (1, 0), "{name}");
            let anyone = Source {
                private: Vec::new(),
                ..source.clone()
            };
            assert_eq!(
                errors(&anyone),
                (0, wrong),
                "{name}: the long way of the division leaves a result in flight"
            );
            // The same, when an instruction makes its address.
            let last = source.functions.iter().max().expect("functions");
            let mut words: Vec<Word> = Word::all(source.code).collect();
            let made = words
                .iter()
                .position(|w| w.bits(63, 32) == 4 && matches!(w.bits(11, 9), 2 | 4));
            let made = made.expect("an immediate");
            words[made] = words[made].with_bits(63, 32, *last);
            let code: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
            let making = Source {
                code: &code,
                ..source.clone()
            };
            assert_eq!(errors(&making), (0, wrong), "{name}");
        });
    }
}
