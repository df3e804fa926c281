//! Edits that give instructions other places: everything that names a place in the code follows, and the kernels do what they did.

use std::collections::BTreeSet;
use std::path::Path;

use cubin::Image;
use cubin::nvinfo::code as attribute;
use emu::Program;
use ir::{Edit, Flow, Kernel, Op, OpId, ValueId};
use isa::{Inst, Isa, RegFile};
use passes::{Context, Pass, PassResult, Refusal, Registry, instructions};
use sass2mlir_engine::{self as engine, Config, Options};

fn kernels(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/kernels")
        .join(name);
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

struct Test(&'static str, fn(&Context<'_>, &Kernel) -> Vec<Edit>);

impl Pass for Test {
    fn name(&self) -> &str {
        self.0
    }
    fn summary(&self) -> &str {
        "moves code"
    }
    fn run(&self, cx: &Context<'_>, kernel: &Kernel, _: &passes::Options) -> Result<PassResult, Refusal> {
        let edits = (self.1)(cx, kernel);
        Ok(PassResult {
            sites: edits.len(),
            ops: edits.len(),
            edits: ir::EditList { edits },
            ..PassResult::default()
        })
    }
}

fn nop(isa: &Isa) -> Inst {
    isa.decode(ir::nop(isa).expect("a NOP"))
}

/// NOPs before every third instruction, and before each operation that some other one names.
static NOPS: Test = Test("nops", |cx, kernel| {
    let ops = instructions(kernel).map(|(offset, op, _)| (offset / 16, op));
    let starts: BTreeSet<OpId> = kernel
        .blocks()
        .filter_map(|b| b.ops().find(|op| op.kind().is_code()).map(|op| op.id()))
        .collect();
    ops.filter(|(n, op)| n % 3 == 1 || starts.contains(op))
        .map(|(_, before)| Edit::Insert {
            before,
            inst: nop(cx.isa),
            operands: vec![ValueId::constant(RegFile::P)],
        })
        .collect()
});

/// Takes them out again.
static NO_NOPS: Test = Test("no-nops", |cx, kernel| {
    let word = nop(cx.isa).word;
    let nops = instructions(kernel).filter(|(.., inst)| inst.word == word);
    nops.map(|(_, op, _)| Edit::Erase { op }).collect()
});

/// Computes only, from registers that the other does not write.
fn may_pass(cx: &Context<'_>, kernel: &Kernel, op: Op<'_>, offset: u64, other: Op<'_>) -> bool {
    let plain = |op: Op<'_>| {
        let calm = op.inst().is_some_and(|inst| {
            let semantics = cx.isa.semantics(inst);
            semantics.known && semantics.effects.is_none() && !semantics.convergence
        });
        calm && op.label().is_none() && op.layout().is_some_and(|l| l.flow == Flow::None && !l.has_label)
    };
    let pins = |list: &mut dyn Iterator<Item = ValueId>| -> BTreeSet<_> { list.map(|v| kernel.pin(v)).collect() };
    let written = pins(&mut op.results());
    let theirs = pins(&mut other.results());
    let read = pins(&mut op.operands().iter().copied());
    let they_read = pins(&mut other.operands().iter().copied());
    plain(op)
        && plain(other)
        && !cx.pinned.contains(&offset)
        && written.is_disjoint(&theirs)
        && read.is_disjoint(&theirs)
        && they_read.is_disjoint(&written)
}

/// Lets every instruction that can pass the one before it do so.
static SWAPS: Test = Test("swaps", |cx, kernel| {
    let list: Vec<_> = instructions(kernel).collect();
    let mut edits = Vec::new();
    let mut n = 1;
    while n < list.len() {
        let ((_, first, _), (offset, second, _)) = (list[n - 1], list[n]);
        let (first, second) = (kernel.op(first), kernel.op(second));
        if first.block() == second.block() && may_pass(cx, kernel, second, offset, first) {
            edits.push(Edit::Move {
                op: second.id(),
                before: first.id(),
            });
            n += 1;
        }
        n += 1;
    }
    edits
});

fn apply(bytes: &[u8], passes: &[&'static Test]) -> engine::Outcome {
    let mut registry = Registry::default();
    let mut text = String::new();
    for pass in passes {
        if registry.get(pass.0).is_none() {
            registry.add(*pass).unwrap();
        }
        text += &format!("[[pass]]\nname = \"{}\"\nmode = \"apply\"\n", pass.0);
    }
    let config = Config::parse(&text, "pass.toml", &registry).unwrap();
    engine::apply(bytes, &config, &Options::default()).unwrap()
}

/// Why kernels stayed as they were.
fn reasons(outcome: &engine::Outcome) -> Vec<&str> {
    let kernels = outcome.report.images.iter().flat_map(|i| &i.kernels);
    kernels.filter_map(|k| k.left_alone.as_deref()).collect()
}

/// Whatever names an instruction names the same one; the kernels that the emulator can run leave the same memory behind.
fn does_the_same(name: &str, old: &[u8], new: &[u8], outcome: &engine::Outcome) -> usize {
    let (before, after) = (Image::parse(old).expect(name), Image::parse(new).expect(name));
    let isa = Isa::for_target(before.target()).expect("embedded");
    let mut executed = 0;
    let launches = emu::verify::Options {
        launches: 6,
        ..emu::verify::Options::default()
    };
    for kernel in &outcome.report.images[0].kernels {
        let (a, b) = (before.code(&kernel.name).unwrap(), after.code(&kernel.name).unwrap());
        if kernel.left_alone.is_some() {
            assert_eq!(a.bytes, b.bytes, "{name}: {}", kernel.name);
            continue;
        }
        let form = |code: &cubin::Code<'_>, at: u32| {
            let word = isa::Word::all(code.bytes).nth(at as usize / 16);
            isa.form(isa.decode(word.expect("inside")).form)
                .map(|f| f.mnemonic().to_owned())
        };
        // Those of indirect branches name places to go to, whatever is there.
        let is_list = |(x, _): &(&cubin::nvinfo::Attribute<'_>, _)| x.code != attribute::INDIRECT_BRANCH_TARGETS;
        for (x, y) in a.attributes.iter().zip(&b.attributes).filter(is_list) {
            let (x, y) = (x.code_offsets().unwrap(), y.code_offsets().unwrap());
            for (x, y) in x.into_iter().zip(y) {
                assert_eq!(form(a, x), form(b, y), "{name}: {} at {x:#x}", kernel.name);
            }
        }
        let source = ir::Source::from_code(after.target(), b);
        let lifted = ir::lift(isa, &source).expect(name);
        let model = sched::Model::of(after.target());
        let found = sched::check(isa, model, &lifted);
        assert!(found.errors().next().is_none(), "{name}: {}", kernel.name);
        let (Ok(a), Ok(b)) = (Program::new(&before, &kernel.name), Program::new(&after, &kernel.name)) else {
            continue;
        };
        // The clock tells how many instructions there are.
        if (0..a.insts.len() as u32).any(|pc| a.text(pc).contains("SR_CLOCK")) {
            continue;
        }
        if let Ok(report) = emu::verify::verify(&a, &b, &launches) {
            assert!(report.difference.is_none(), "{name}: {}: {report:?}", kernel.name);
            executed += usize::from(report.compared > 0);
        }
    }
    executed
}

#[test]
fn code_that_grows_and_changes_its_order_does_the_same() {
    for (name, passes, least) in [
        ("sm_87/own_mul_mat.cubin", &[&NOPS, &SWAPS, &NOPS][..], 4),
        ("sm_87/jump_table.cubin", &[&SWAPS, &NOPS], 1),
        ("sm_90/own_mul_mat.cubin", &[&SWAPS, &NOPS], 4),
        ("sm_120a/own_mul_mat.cubin", &[&NOPS, &SWAPS], 4),
    ] {
        let old = kernels(name);
        let outcome = apply(&old, passes);
        let new = outcome
            .bytes
            .as_deref()
            .unwrap_or_else(|| panic!("{name}: {:?}", reasons(&outcome)));
        let patch = outcome.report.images[0].patch.expect("it did");
        let why: Vec<_> = outcome.report.images[0]
            .kernels
            .iter()
            .filter_map(|k| k.left_alone.as_ref())
            .collect();
        assert!(patch.moved > 0 && patch.nv_info_updated, "{name}: {why:?}");
        let executed = does_the_same(name, &old, new, &outcome);
        assert!(executed >= least, "{name}: {executed} kernels executed; {why:?}");
    }
}

#[test]
fn what_is_put_in_and_taken_out_again_leaves_the_file_as_it_was() {
    for name in [
        "sm_87/own_mul_mat.cubin",
        "sm_87/jump_table.cubin",
        "sm_87/own_features.cubin",
    ] {
        let old = kernels(name);
        let grown = apply(&old, &[&NOPS]);
        let new = grown
            .bytes
            .as_deref()
            .unwrap_or_else(|| panic!("{name}: {:?}", reasons(&grown)));
        assert!(new.len() > old.len());
        assert!(
            apply(&old, &[&NOPS, &NO_NOPS]).bytes.is_none_or(|same| same == old),
            "{name}"
        );
    }
}

#[test]
fn an_image_for_which_its_file_has_no_room_stays_as_it_was() {
    let old = kernels("containers/libtwo.so");
    let outcome = apply(&old, &[&NOPS; 6]);
    let why = reasons(&outcome);
    assert!(why.iter().any(|why| why.contains("the new image needs")), "{why:?}");
    let stays = |i: &&engine::report::ImageReport| i.kernels.iter().all(|k| k.left_alone.is_some());
    assert!(outcome.report.images.iter().filter(stays).all(|i| i.patch.is_none()));
    assert!(outcome.bytes.is_none_or(|new| new.len() == old.len()));
}

#[test]
fn edits_that_make_no_sense_leave_the_kernel_alone() {
    static ENDS: Test = Test("ends", |cx, kernel| {
        let exit =
            instructions(kernel).find(|(.., inst)| cx.isa.form(inst.form).is_some_and(|f| f.mnemonic() == "EXIT"));
        exit.into_iter().map(|(_, op, _)| Edit::Erase { op }).collect()
    });
    static READ: Test = Test("read", |_, kernel| {
        let uses = kernel.uses();
        let mut ops = instructions(kernel).map(|(_, op, _)| op);
        let read = ops.find(|op| kernel.op(*op).results().any(|v| !uses.of(v).is_empty()));
        read.into_iter().map(|op| Edit::Erase { op }).collect()
    });
    static NAMED: Test = Test("named", |cx, kernel| {
        let plain = |op: OpId| !kernel.op(op).is_terminator() && kernel.op(op).label().is_none();
        let named = |at: &u64, op: OpId| cx.pinned.contains(at) && plain(op) && kernel.op(op).results().len() == 0;
        let found = instructions(kernel).find(|(at, op, _)| named(at, *op));
        found.into_iter().map(|(_, op, _)| Edit::Erase { op }).collect()
    });
    for (file, pass, why) in [
        ("sm_87/own_mul_mat.cubin", &ENDS, "a terminator cannot be taken out"),
        ("sm_87/own_mul_mat.cubin", &READ, "its results are still read"),
        ("sm_87/own_features.cubin", &NAMED, "the file names the instruction"),
    ] {
        let old = kernels(file);
        let outcome = apply(&old, &[pass]);
        assert!(outcome.bytes.is_none_or(|new| new == old), "{}", pass.0);
        let reasons: Vec<_> = outcome.report.images[0]
            .kernels
            .iter()
            .filter_map(|k| k.left_alone.clone())
            .collect();
        assert!(reasons.iter().any(|r| r.contains(why)), "{}: {reasons:?}", pass.0);
    }
}

/// After the last link a pointer to a function is a number like any other: in the code, and in global memory.
#[test]
fn code_whose_functions_are_called_through_pointers_stays() {
    for (name, why) in [
        (
            "calls/sm_80/chosen.cubin",
            "the instruction at 0x170 may make one to its function at 0x260",
        ),
        (
            "calls/sm_80/table.cubin",
            "at 0x0 of .nv.global.init there may be one to its function at 0x290",
        ),
    ] {
        let outcome = apply(&kernels(name), &[&NOPS]);
        assert!(outcome.bytes.is_none(), "{name}");
        let said = reasons(&outcome).join("; ");
        assert!(
            said.contains(&format!("it calls through pointers, and {why}")),
            "{name}: {said}"
        );
    }
}
