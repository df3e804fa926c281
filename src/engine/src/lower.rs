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
    /// The register count, if the file gives too few.
    pub registers: Option<u32>,
}

/// Lowers a kernel of a file. Where a register holds something else by the time it is read, values move ([`ir::settle`]), but for those
/// whose registers the file names. The error says which use cannot be helped, or what cannot be encoded.
pub fn lower(image: &Image<'_>, code: &Code<'_>, kernel: &Kernel) -> Result<Lowered, String> {
    let mut lowered = match ir::lower(kernel) {
        Ok(bytes) => Lowered {
            code: bytes,
            moved: 0,
            registers: None,
        },
        Err(refused) => {
            let mut settled = kernel.clone();
            let moved = ir::settle(&mut settled, &named(image, code)?)?;
            let bytes = match moved {
                0 => return Err(refused.to_string()),
                _ => ir::lower(&settled).map_err(|e| e.to_string())?,
            };
            Lowered {
                code: bytes,
                moved,
                registers: None,
            }
        }
    };
    // Two registers are the hardware's. (Those that move go no higher.)
    let needed = u32::from(ir::top_register(kernel)) + 2;
    let too_few = |given: &u32| *given < needed && lowered.code != code.bytes;
    lowered.registers = code.registers.filter(too_few).map(|_| needed);
    if lowered.registers.is_some() && ir::sets_its_limit(kernel) {
        return Err("USETMAXREG says how many registers its warps have: it cannot take more".to_owned());
    }
    Ok(lowered)
}

/// Registers that the file names stay.
fn named(image: &Image<'_>, code: &Code<'_>) -> Result<Constraints, String> {
    let named = Named::of(image, code)?;
    let mut reserved: Vec<ir::Pin> = named.held().into_iter().map(|(_, pin)| pin).collect();
    reserved.extend(&named.fixed);
    Ok(Constraints {
        reserved,
        in_flight: None,
    })
}
