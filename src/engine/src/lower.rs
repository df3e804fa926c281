//! Text that a person or a pass changed, back into the code of a file.

use cubin::{Code, Image};
use ir::{Constraints, Kernel};

use crate::named::Named;

/// The new code of a kernel.
pub struct Lowered {
    /// The code, padding included.
    pub code: Vec<u8>,
    /// Groups of values that are in other registers than the kernel says.
    pub moved: usize,
}

/// Lowers a kernel of a file. Where a register holds something else by the time it is read, values move ([`ir::settle`]), but for those
/// whose registers the file names. The error says which use cannot be helped, or what cannot be encoded.
pub fn lower(image: &Image<'_>, code: &Code<'_>, kernel: &Kernel) -> Result<Lowered, String> {
    match ir::lower(kernel) {
        Ok(code) => Ok(Lowered { code, moved: 0 }),
        Err(refused) => {
            let mut settled = kernel.clone();
            let moved = ir::settle(&mut settled, &named(image, code)?)?;
            match moved {
                0 => Err(refused.to_string()),
                _ => ir::lower(&settled)
                    .map(|code| Lowered { code, moved })
                    .map_err(|e| e.to_string()),
            }
        }
    }
}

/// Registers that the file names stay.
fn named(image: &Image<'_>, code: &Code<'_>) -> Result<Constraints, String> {
    Ok(Constraints {
        reserved: Named::of(image, code)?.all(),
        in_flight: None,
    })
}
