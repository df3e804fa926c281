//! The emulator with times: `run` and `verify` with `--timing`.

use anyhow::Result;
use cubin::Image;
use emu::timing::Latencies;
use emu::{Outcome, Program};
use engine::timing::Timing;
use isa::Isa;

/// How long instructions of an image's target take.
pub fn of(image: &Image<'_>) -> Result<Box<dyn Latencies>> {
    let target = image.target();
    Ok(Box::new(Timing::new(Isa::for_target(target)?, target)))
}

/// What came too early, in words.
pub fn findings(program: &Program, outcome: &Outcome) -> impl Iterator<Item = String> {
    let text = |pc: u32| {
        let (section, offset) = program.place(pc);
        format!("{section} at {offset:#06x} `{}`", program.text(pc))
    };
    outcome.early.iter().map(move |((at, of), times)| {
        format!(
            "timing: {} comes before the result of {} is there; {times} times",
            text(*at),
            text(*of)
        )
    })
}
