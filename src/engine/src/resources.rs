//! What code takes of the hardware, as its file declares it: a kernel that is launched with less does not work, and nothing says so.

use cubin::{Code, Image};
use isa::{Inst, Isa, RegFile};
use passes::Resources;

use crate::named::Named;

/// Named barriers of a block; a register can name any.
const ALL_BARRIERS: u32 = 16;
/// The kind of a relocatable file: the linker counts registers once more.
const RELOCATABLE: u16 = 1;

/// What a kernel takes, as its file says.
pub(crate) fn of(image: &Image<'_>, code: &Code<'_>) -> Resources {
    Resources {
        registers: code.registers.filter(|_| code.is_entry),
        threads: code.threads(),
        shared: u32::try_from(code.shared_size).unwrap_or(u32::MAX / 2),
        fixed: Named::of(image, code).ok().map(|named| named.all()),
    }
}

/// The register count for new code in place of a section's, if it names higher registers than the old one and the file gives too few: one
/// past the highest, and the two that the hardware keeps. With `less` a kernel that names lower ones only gets as many fewer. The error says why
/// the count cannot rise, or that barriers do not suffice.
pub(crate) fn registers(
    isa: &Isa,
    image: &Image<'_>,
    code: &Code<'_>,
    new: &[u8],
    less: bool,
) -> Result<Option<u32>, String> {
    barriers(isa, code, new)?;
    let (top, old) = (top_register(isa, new), top_register(isa, code.bytes));
    let fewer = old.saturating_sub(top);
    if less && fewer > 0 && code.is_entry {
        return Ok(code.registers.and_then(|given| given.checked_sub(fewer)));
    }
    let Some(given) = code.registers.filter(|_| top > old) else {
        return Ok(None);
    };
    let needed = top + 2;
    if needed <= given {
        return Ok(None);
    }
    let refused = |why: &str| Err(format!("R{} needs {needed} registers, not {given}: {why}", top - 1));
    if needed > 255 {
        return refused("a thread has at most 255");
    }
    if let Err(why) = fits(image, code, needed) {
        return refused(&why);
    }
    if isa.decode_all(new).any(|inst| is(isa, inst, "USETMAXREG")) {
        return refused("USETMAXREG says how many registers its warps have: it cannot take more");
    }
    if !code.is_entry && image.header().kind != RELOCATABLE {
        return refused("the kernels that call this function were linked with what it had");
    }
    Ok(Some(needed))
}

/// Refuses more registers than a kernel has if a block of as many threads as it declares would no longer fit a multiprocessor: it could not be
/// launched.
pub(crate) fn fits(image: &Image<'_>, code: &Code<'_>, registers: u32) -> Result<(), String> {
    let (Some(limits), Some(threads), Some(given)) =
        (ir::Multiprocessor::of(image.target()), code.threads(), code.registers)
    else {
        return Ok(());
    };
    let blocks = |registers| limits.resident_warps(registers, threads, 0);
    match registers > given && blocks(registers) == 0 && blocks(given) > 0 {
        true => Err(format!(
            "a block of the {threads} threads that it declares would not fit a multiprocessor"
        )),
        false => Ok(()),
    }
}

/// One past the highest general register that code names.
fn top_register(isa: &Isa, code: &[u8]) -> u32 {
    let named = isa.decode_all(code).flat_map(|inst| isa.accesses(inst));
    let general = named.filter(|a| a.file == RegFile::R && !a.is_zero);
    general
        .map(|a| u32::from(a.reg) + u32::from(a.width.max(1)))
        .max()
        .unwrap_or(0)
}

/// Refuses code that uses more named barriers than the file declares and than the old code used.
fn barriers(isa: &Isa, code: &Code<'_>, new: &[u8]) -> Result<(), String> {
    let used = |bytes: &[u8]| {
        isa.decode_all(bytes)
            .map(|inst| barriers_of(isa, inst))
            .max()
            .unwrap_or(0)
    };
    let (needed, given) = (used(new), code.barriers);
    if needed <= given || needed <= used(code.bytes) {
        return Ok(());
    }
    Err(format!(
        "the new code uses barriers up to {:#x}, and the file declares {given}: name one that it declares",
        needed - 1
    ))
}

/// One past the highest named barrier that an instruction may use.
fn barriers_of(isa: &Isa, inst: Inst) -> u32 {
    let barrier = match is(isa, inst, "BAR") {
        true => isa.operand(inst, 0),
        false => None,
    };
    let field = barrier.and_then(|view| view.fields().next());
    field.map_or(0, |(_, field)| match field.kind.file() {
        None => field.get(inst.word) as u32 + 1,
        Some(RegFile::P | RegFile::UP) => 0,
        Some(_) => ALL_BARRIERS,
    })
}

fn is(isa: &Isa, inst: Inst, mnemonic: &str) -> bool {
    isa.form(inst.form).is_some_and(|form| form.mnemonic() == mnemonic)
}
