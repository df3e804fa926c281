//! Code that somebody else wrote in place of a file's: what the file holds about single instructions must still be true of it.

use cubin::nvinfo::{self, Value};
use cubin::{Code, Patch};
use isa::{Isa, Word};

use crate::resources;

/// Replaces the code of one section by new code of the same size, if [`still_true`] has nothing against it. Where that needs more registers
/// than the file gives, their count rises too: to the number that comes back.
pub fn replace_code(isa: &Isa, patch: &mut Patch<'_, '_>, code: &Code<'_>, new: &[u8]) -> Result<Option<u32>, String> {
    patch.replace_code(code, new).map_err(|e| e.to_string())?;
    still_true(isa, code, new, &Some)?;
    let raised = resources::registers(isa, patch.image(), code, new, false)?;
    if let Some(count) = raised {
        patch.set_registers(code, count).map_err(|e| e.to_string())?;
    }
    Ok(raised)
}

/// Refuses new code, with the place, where the loader would patch or believe something of an instruction that is not there any more: a
/// relocated instruction keeps its word but for scheduling, one that `.nv.info` names its form. `now`: the byte offset of what was at one.
pub fn still_true(isa: &Isa, code: &Code<'_>, new: &[u8], now: &dyn Fn(u64) -> Option<u64>) -> Result<(), String> {
    if new == code.bytes {
        return Ok(());
    }
    for r in &code.relocations {
        let (before, after) = both(code, new, r.offset, now);
        if (before.0 ^ after.0) & !isa::control::MASK != 0 {
            let stays = "an instruction that is relocated has to stay as it is";
            return Err(changed(isa, r.offset, before, after, "the linker fills in", stays));
        }
    }
    for attribute in &code.attributes {
        // Remarks for people: at a spill, say, which a copy may be too.
        if attribute.code == nvinfo::code::ANNOTATIONS {
            continue;
        }
        let name = attribute.name().unwrap_or_default();
        for offset in instructions(attribute).map_err(|e| e.to_string())? {
            let (before, after) = both(code, new, offset, now);
            if isa.decode(before).form != isa.decode(after).form {
                let what = format!("EIATTR_{name} is about");
                return Err(changed(
                    isa,
                    offset,
                    before,
                    after,
                    &what,
                    "it has to stay in its place",
                ));
            }
        }
    }
    Ok(())
}

/// Byte offsets of all instructions that the file names: relocated ones, and those that attributes are about.
pub(crate) fn named(code: &Code<'_>) -> Result<Vec<u64>, String> {
    let mut offsets: Vec<u64> = code.relocations.iter().map(|r| r.offset).collect();
    for attribute in &code.attributes {
        offsets.extend(instructions(attribute).map_err(|e| e.to_string())?);
    }
    Ok(offsets)
}

/// Byte offsets of the instructions that an attribute is about. What it names as a place to go to may be any instruction.
pub(crate) fn instructions(attribute: &nvinfo::Attribute<'_>) -> Result<Vec<u64>, cubin::CubinError> {
    let offsets = match attribute.value()? {
        Value::IndirectBranches(list) => list.iter().map(|b| b.offset).collect(),
        _ if attribute.code == nvinfo::code::COROUTINE_RESUME_ID_OFFSETS => Vec::new(),
        _ => attribute.code_offsets()?,
    };
    Ok(offsets.into_iter().map(u64::from).collect())
}

/// The words of what was at a byte offset, before and after; outside of the code there is nothing.
fn both(code: &Code<'_>, new: &[u8], offset: u64, now: &dyn Fn(u64) -> Option<u64>) -> (Word, Word) {
    let word = |bytes: &[u8], at: u64| {
        let at = at as usize & !(Word::BYTES - 1);
        bytes.get(at..).and_then(|b| Word::all(b).next()).unwrap_or(Word(0))
    };
    (
        word(code.bytes, offset),
        now(offset).map_or(Word(0), |at| word(new, at)),
    )
}

fn changed(isa: &Isa, offset: u64, before: Word, after: Word, what: &str, cure: &str) -> String {
    let text = |word: Word| {
        let mut text = String::new();
        let written = isa.write_text(isa.decode(word), offset, &mut text, None);
        written.map_or_else(|_| format!("{word:#x}"), |()| text)
    };
    format!(
        "{offset:#x}: {what} `{}`, and the new code has `{}` there; {cure}",
        text(before),
        text(after)
    )
}
