//! The classes of the latency model against what is known about each instruction.

use std::collections::BTreeSet;

use isa::{Isa, Latency, Target};
use sass2mlir_sched::Model;
use sass2mlir_sched::code::Port;
use sass2mlir_sched::walk::Kind;

/// An instruction of whose result a scoreboard tells is in no class whose results are there after a number of cycles: no gate over real code
/// would see it, for what looks like a number is where the planter and the emulator get theirs.
#[test]
fn no_scoreboard_is_taken_for_a_number() {
    // NAK: from sm_90 on its result is there after 13 cycles; before that no number is known, and a scoreboard tells.
    let known = ["R2UR"];
    let results = [Port::R, Port::Ur, Port::P, Port::Up];
    let (mut wrong, mut told) = (BTreeSet::new(), 0);
    for target in Target::ALL {
        let isa = Isa::for_target(target).expect("all tables");
        let model = Model::of(target);
        for form in isa.forms() {
            let inst = isa.decode(form.filler());
            let Some(class) = model.classes().of(isa, inst) else {
                continue;
            };
            if isa.semantics(inst).latency != Latency::Scoreboard || known.contains(&form.mnemonic()) {
                continue;
            }
            told += 1;
            let numbers = results.iter().any(|port| {
                model
                    .classes()
                    .all()
                    .any(|c| model.row(Kind::Raw, *port, class, c).is_some())
            });
            if numbers {
                wrong.insert(format!("{target} {}", form.name()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(told > 1000, "{told}");
}
