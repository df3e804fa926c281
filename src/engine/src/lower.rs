//! Text that a person or a pass changed, back into the code of a file.

use cubin::{Code, CodeMove, CubinError, Image, Patch};
use ir::{Constraints, Kernel, Source};
use isa::Isa;
use sched::Model;

use crate::grown::grown;
use crate::named::Named;
use crate::placed::others;
use crate::schedule::{self, Timed};
use crate::{replace, resources};

/// The new code of a kernel.
pub struct Lowered {
    /// The code, padding included.
    pub code: Vec<u8>,
    /// Instructions that are others than they were, came or went.
    pub changed: usize,
    /// Groups of values that are in other registers than the kernel says.
    pub moved: usize,
    /// What the hazard checker finds and did not find in the old code.
    pub hazard: Option<String>,
    /// Where the instructions went, if the code has another length.
    places: Option<CodeMove>,
}

/// Lowers a kernel of a file. Where a register holds something else by the time it is read, values move ([`ir::settle`]), but for those
/// whose registers the file names. Code that is longer or shorter moves. The error says which use cannot be helped, or what cannot be
/// encoded or followed.
pub fn lower(image: &Image<'_>, code: &Code<'_>, kernel: &Kernel) -> Result<Lowered, String> {
    let isa = Isa::for_target(image.target()).map_err(|e| e.to_string())?;
    let mut settled = None;
    let mut moved = 0;
    let new = match ir::lower(kernel) {
        Ok(new) => new,
        Err(refused) => {
            let kernel = settled.insert(kernel.clone());
            moved = ir::settle(kernel, &named(image, code)?)?;
            match moved {
                0 => return Err(refused.to_string()),
                _ => ir::lower(kernel).map_err(|e| e.to_string())?,
            }
        }
    };
    let kernel = settled.as_ref().unwrap_or(kernel);
    let old = Source::from_code(image.target(), code);
    let before = Timed::lift(isa, &old)?;
    let (new, changed, source, places) = if new.len() == code.bytes.len() {
        let changed = others(code.bytes, &new);
        (new, changed, old.clone(), None)
    } else {
        let there = grown(isa, image, code, (&before.kernel, kernel), &new)?;
        let changed = there.changed();
        (there.moved.code.clone(), changed, there.source, Some(there.moved))
    };
    let now = |at: u64| places.as_ref().map_or(Some(at), |m| m.instruction_at(at));
    let source = Source { code: &new, ..source };
    let hazard = schedule::added(Model::of(image.target()), &before, &Timed::lift(isa, &source)?, &now);
    Ok(Lowered {
        code: new,
        changed,
        moved,
        hazard,
        places,
    })
}

/// The image with new code in place of sections', and for each the register count if it had to rise. Everything that holds a code offset
/// follows.
pub fn put_lowered(image: &Image<'_>, all: &[(&Code<'_>, &Lowered)]) -> Result<(Vec<u8>, Vec<Option<u32>>), String> {
    let isa = Isa::for_target(image.target()).map_err(|e| e.to_string())?;
    let told = |e: CubinError| e.to_string();
    let mut patch = Patch::new(image);
    let mut counts = Vec::new();
    for (code, lowered) in all {
        counts.push(match lowered.places {
            None => replace::replace_code(isa, &mut patch, code, &lowered.code)?,
            Some(_) => resources::registers(isa, image, code, &lowered.code, false)?,
        });
    }
    let bytes = patch.finish();
    let moves: Vec<CodeMove> = all.iter().filter_map(|(_, lowered)| lowered.places.clone()).collect();
    if moves.is_empty() {
        return Ok((bytes, counts));
    }
    let bytes = cubin::movement::move_code(&Image::parse(&bytes).map_err(told)?, &moves).map_err(told)?;
    let moved = Image::parse(&bytes).map_err(told)?;
    let mut patch = Patch::new(&moved);
    for ((old, lowered), count) in all.iter().zip(&counts) {
        let code = moved.codes().iter().find(|code| code.section == old.section);
        if let (Some(code), Some(count), Some(_)) = (code, count, &lowered.places) {
            patch.set_registers(code, *count).map_err(told)?;
        }
    }
    Ok((patch.finish(), counts))
}

/// Registers that the file names stay.
fn named(image: &Image<'_>, code: &Code<'_>) -> Result<Constraints, String> {
    Ok(Constraints {
        reserved: Named::of(image, code)?.all(),
        in_flight: None,
    })
}
