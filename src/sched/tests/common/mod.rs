//! Small kernels from listings.

use ir::{Kernel, Source};
use isa::asm::{Assembler, Line, Statement};
use isa::{Isa, Target};

/// A kernel from lines with the scheduling column in brackets.
pub fn kernel(listing: &str) -> Kernel {
    let isa = isa();
    let mut assembler = Assembler::new(isa);
    let mut code = Vec::new();
    for line in listing.lines().map(str::trim).filter(|l| !l.is_empty()) {
        let line = Line::parse(line).unwrap_or_else(|e| panic!("{line}: {e}"));
        let statement = Statement {
            text: line.text,
            pc: code.len() as u64,
            notes: &line.notes.0,
            places: None,
        };
        let control = line.control.expect("every line has a scheduling column");
        let inst = assembler.assemble(&statement, control);
        code.extend(
            inst.unwrap_or_else(|e| panic!("{}: {e}", line.text))
                .word
                .0
                .to_le_bytes(),
        );
    }
    ir::lift(isa, &Source::new("k", Target::Sm87, &code)).expect("whole words")
}

/// The tables that the tests use.
pub fn isa() -> &'static Isa {
    Isa::for_target(Target::Sm87).expect("the target is embedded")
}
