//! Passes on listings.
#![allow(dead_code)]

use isa::asm::Assembler;
use isa::{Control, Isa, Target, Word};
use sass2mlir_passes::{Context, Options, Pass, PassResult, Refusal, Resources};

pub fn isa() -> &'static Isa {
    Isa::for_target(Target::Sm87).expect("built with sm_87")
}

/// A kernel from a listing, without regard to its scheduling.
pub fn kernel(listing: &str) -> ir::Kernel {
    kernel_for(Target::Sm87, listing)
}

pub fn kernel_for(target: Target, listing: &str) -> ir::Kernel {
    let isa = Isa::for_target(target).expect("the target is embedded");
    let control: Control = "B------:R-:W-:-:S05".parse().expect("a scheduling column");
    let sections = Assembler::new(isa).listing(listing, Some(control)).expect(listing);
    let words: &[Word] = &sections[0].words;
    let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
    ir::lift(isa, &ir::Source::new("k", target, &bytes)).expect(listing)
}

/// Runs a pass; the listing after its edits, and what it found.
pub fn run(pass: &dyn Pass, listing: &str, pinned: &[u64]) -> Result<(String, PassResult), Refusal> {
    run_with(pass, listing, pinned, &Options::default(), &Resources::default())
}

/// The same with options, for a kernel that takes so much.
pub fn run_with(
    pass: &dyn Pass,
    listing: &str,
    pinned: &[u64],
    options: &Options,
    resources: &Resources,
) -> Result<(String, PassResult), Refusal> {
    let mut kernel = kernel(listing);
    let cx = Context {
        isa: isa(),
        params: None,
        pinned,
        resources,
    };
    let found = pass.run(&cx, &kernel, options)?;
    kernel.apply(isa(), &found.edits).expect("the edits fit");
    let code = ir::lower(&kernel).expect("the pins hold");
    let mut text = String::new();
    for (n, inst) in isa().decode_all(&code).enumerate() {
        isa().write_text(inst, 16 * n as u64, &mut text, None).expect("text");
        text.push_str(" ;\n");
    }
    Ok((text, found))
}

/// The listing without the spaces that indent it.
pub fn trimmed(listing: &str) -> String {
    listing.lines().map(|l| format!("{}\n", l.trim())).collect()
}
