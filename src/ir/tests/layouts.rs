//! Layouts describe every word that the tables know.

use isa::{Isa, Target};

#[test]
fn every_form_has_a_layout() {
    let mut without = Vec::new();
    for target in Target::ALL {
        let isa = Isa::for_target(target).expect("all tables");
        let layouts = sass2mlir_ir::LayoutCache::new(isa, target);
        for form in isa.forms() {
            let filler = form.filler();
            match layouts.get(filler) {
                Some(layout) => {
                    for slot in &layout.slots {
                        let numbers = (0..=255).filter(|n| slot.set(filler, *n).is_some_and(|w| slot.number(w) == *n));
                        assert_eq!(
                            numbers.count(),
                            1 << slot.bits().count_ones(),
                            "{target} {}: {slot:?}",
                            form.name()
                        );
                    }
                }
                None => without.push(format!("{target} {}", form.name())),
            }
        }
    }
    assert_eq!(without, Vec::<String>::new());
}
