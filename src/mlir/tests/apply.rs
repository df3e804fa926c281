//! Passes in MLIR and without it: the same bytes, the same reports.
#![cfg(feature = "mlir")]

mod common;

use std::fs;

use common::files;
use engine::{Config, Internal, Options, apply_in};
use ir::{Edit, EditList, ValueId};
use passes::{Context, Pass, PassResult, Refusal, Registry};
use sass2mlir_mlir::{Mlir, NativePass};

/// Keeps denormals in additions. In Rust, and in no table of MLIR's.
struct DropAddFtz;

impl Pass for DropAddFtz {
    fn name(&self) -> &str {
        "drop-add-ftz"
    }

    fn summary(&self) -> &str {
        "FADD.FTZ becomes FADD"
    }

    fn run(&self, cx: &Context<'_>, kernel: &ir::Kernel, _: &passes::Options) -> Result<PassResult, Refusal> {
        if kernel.name == "scale_add" {
            return Err(Refusal("not this one".to_owned()));
        }
        let mut edits = EditList::default();
        for (_, op, inst) in passes::instructions(kernel) {
            let is_add = cx.isa.form(inst.form).is_some_and(|form| form.mnemonic() == "FADD");
            if is_add && cx.isa.has_modifier(inst, "FTZ") {
                edits.edits.push(Edit::EditModifiers {
                    op,
                    drop: vec!["FTZ".to_owned()],
                    add: Vec::new(),
                });
            }
        }
        let sites = edits.edits.len();
        Ok(PassResult {
            edits,
            sites,
            ops: sites,
            ..PassResult::default()
        })
    }
}

/// NOPs before every third instruction. In Rust, and in no table of MLIR's.
struct PutNops;

impl Pass for PutNops {
    fn name(&self) -> &str {
        "put-nops"
    }

    fn summary(&self) -> &str {
        "code grows"
    }

    fn run(&self, cx: &Context<'_>, kernel: &ir::Kernel, _: &passes::Options) -> Result<PassResult, Refusal> {
        let nop = ir::nop(cx.isa).map(|word| cx.isa.decode(word));
        let inst = nop.ok_or_else(|| Refusal("there is no NOP".to_owned()))?;
        let places = passes::instructions(kernel).step_by(3);
        let edits: Vec<Edit> = places
            .map(|(_, before, _)| Edit::Insert {
                before,
                inst,
                operands: vec![ValueId::constant(isa::RegFile::P)],
            })
            .collect();
        let sites = edits.len();
        Ok(PassResult {
            edits: EditList { edits },
            sites,
            ops: sites,
            ..PassResult::default()
        })
    }
}

/// Runs a configuration over the files with `part` in their names in both; how many it changed.
fn same_in_both(text: &str, part: &str) -> usize {
    let mut registry = Registry::default();
    registry.add(&DropAddFtz).unwrap();
    registry.add(&PutNops).unwrap();
    let config = Config::parse(text, "pass.toml", &registry).unwrap();
    let mut changed = 0;
    for file in files() {
        if !file.to_string_lossy().contains(part) {
            continue;
        }
        let bytes = fs::read(&file).unwrap();
        let place = file.display();
        let options = Options::default();
        let (internal, mlir) = (
            apply_in(&Internal, &bytes, &config, &options),
            apply_in(&Mlir::default(), &bytes, &config, &options),
        );
        match (internal, mlir) {
            (Ok(internal), Ok(mlir)) => {
                assert_eq!(
                    format!("{:#?}", mlir.report),
                    format!("{:#?}", internal.report),
                    "{place}"
                );
                assert!(mlir.bytes == internal.bytes, "{place}: other bytes in MLIR");
                changed += usize::from(mlir.bytes.is_some());
            }
            (Err(internal), Err(mlir)) => assert_eq!(mlir.to_string(), internal.to_string(), "{place}"),
            (internal, mlir) => panic!("{place}: {:?} and {:?}", internal.err(), mlir.err()),
        }
    }
    changed
}

#[test]
fn portable_passes_do_the_same_with_and_without_mlir() {
    let text = "[[pass]]\nname = \"ffma-deftz\"\nmode = \"apply\"\n\
                [[pass]]\nname = \"retarget-param\"\nmode = \"apply\"\nfrom = 0x160\nto = 0x168\n\
                [[pass]]\nname = \"retarget-param\"\nmode = \"report\"\nfrom = 0x210\nto = 0x218\n";
    assert!(same_in_both(text, "") > 0);
}

#[test]
fn code_that_moves_and_grows_is_the_same_with_and_without_mlir() {
    let entry = |name: &&str| format!("[[pass]]\nname = \"{name}\"\nmode = \"apply\"\n");
    let list = [
        "reschedule",
        "put-nops",
        "copy-prop",
        "const-bank-fold",
        "scalar-to-uniform",
        "ldg-vectorize",
        "dce",
        "reuse-flags",
        "reg-shrink",
        "spill-elim",
        "yield-tune",
    ];
    // Some files, for without optimisation all take minutes.
    for one in ["reschedule", "scalar-to-uniform"] {
        assert!(same_in_both(&entry(&one), "own_mul_mat") > 0, "{one}");
    }
    assert!(same_in_both(&list.iter().map(entry).collect::<String>(), "own_mul_mat") > 0);
}

#[test]
fn a_pass_that_mlir_has_no_name_for_runs_between_others() {
    let text = "[[pass]]\nname = \"ffma-deftz\"\nmode = \"apply\"\n\
                [[pass]]\nname = \"drop-add-ftz\"\nmode = \"apply\"\n\
                [[pass]]\nname = \"drop-add-ftz\"\nmode = \"report\"\n\
                [[pass]]\nname = \"retarget-param\"\nmode = \"report\"\nfrom = 0x160\nto = 0x168\n";
    assert!(same_in_both(text, "") > 0);
}

#[test]
fn options_of_a_pass_of_mlir_are_checked_before_any_kernel_is_read() {
    let cse = NativePass("cse".to_owned());
    let canonicalize = NativePass("canonicalize".to_owned());
    let mut registry = Registry::default();
    registry.add(&cse).unwrap();
    registry.add(&canonicalize).unwrap();
    let entry = |rest: &str| format!("[[pass]]\nmode = \"report\"\n{rest}\n");
    for good in [
        "name = \"cse\"",
        "name = \"canonicalize\"\nmax-iterations = 3\ntop-down = false\nregion-simplify = \"disabled\"",
    ] {
        assert!(Config::parse(&entry(good), "pass.toml", &registry).is_ok(), "{good}");
    }
    for (bad, part) in [
        ("name = \"cse\"\nrounds = 3", "rounds"),
        ("name = \"canonicalize\"\nmax-iterations = \"many\"", "max-iterations"),
        ("name = \"canonicalize\"\ntop-down = [1]", "`top-down` is an array"),
    ] {
        let error = Config::parse(&entry(bad), "pass.toml", &registry)
            .err()
            .expect(bad)
            .to_string();
        assert!(error.contains(part), "{bad}: {error}");
    }
}
