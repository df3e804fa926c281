//! Small kernels from listings.
#![allow(dead_code)]

use ir::{Kernel, Source};
use isa::asm::Assembler;
use isa::{Isa, Target};

/// A kernel for sm_87 from lines with the scheduling column in brackets.
pub fn kernel(listing: &str) -> Kernel {
    kernel_for(Target::Sm87, listing)
}

/// A kernel for any target.
pub fn kernel_for(target: Target, listing: &str) -> Kernel {
    let isa = Isa::for_target(target).expect("the target is embedded");
    let sections = Assembler::new(isa).listing(listing, None);
    let sections = sections.unwrap_or_else(|e| panic!("{listing}: {e:?}"));
    let code: Vec<u8> = sections[0].words.iter().flat_map(|w| w.to_le_bytes()).collect();
    ir::lift(isa, &Source::new("k", target, &code)).expect("whole words")
}

/// The tables that the tests use.
pub fn isa() -> &'static Isa {
    Isa::for_target(Target::Sm87).expect("the target is embedded")
}
