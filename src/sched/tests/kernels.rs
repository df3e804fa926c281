//! The project's own kernels, made by ptxas: they have no hazards, and what is broken in them is found.

use std::path::Path;

use cubin::Image;
use ir::Source;
use isa::Isa;
use sass2mlir_sched::code::Code;
use sass2mlir_sched::plant::{self, Fault};
use sass2mlir_sched::{Model, check};

/// Calls `f` with every kernel of the sm_87 files.
fn each_kernel(mut f: impl FnMut(&'static Isa, &Model, &Source<'_>)) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/kernels/sm_87");
    let mut files = 0;
    for file in std::fs::read_dir(folder).expect("the kernels are there") {
        let path = file.expect("a file").path();
        if path.extension().is_none_or(|e| e != "cubin") {
            continue;
        }
        files += 1;
        let bytes = std::fs::read(&path).expect("a file");
        let image = Image::parse(&bytes).expect("a cubin");
        let isa = Isa::for_target(image.target()).expect("the target is embedded");
        let model = Model::of(image.target());
        for code in image.codes() {
            f(isa, model, &Source::from_code(image.target(), code));
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
