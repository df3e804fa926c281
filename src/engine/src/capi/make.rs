//! For C: instructions that are made anew, from the name of their form.

use std::ffi::c_void;

use ir::{Layout, Pin};
use isa::{FormId, Isa, Word};

use super::{CLayout, CWord, SinkFn, Str, guarded, known, status};

pub(super) unsafe extern "C" fn filler(target: u32, form: Str, word: *mut CWord) -> i32 {
    status(None, std::ptr::null_mut(), || {
        let isa = known(target).ok_or("the target's tables are not built in")?.isa;
        // SAFETY: a string of the header's type.
        let form = unsafe { form.get() }
            .and_then(|name| isa.form_by_name(name))
            .ok_or("no such form")?;
        let inst = isa.filler(form).ok_or("no such form")?;
        // SAFETY: the caller's variable.
        unsafe { *word = inst.word.0.into() };
        Ok(())
    })
}

/// The form, or which forms of the same mnemonic there are.
fn find(isa: &Isa, name: &str) -> Result<FormId, String> {
    if let Some(form) = isa.form_by_name(name) {
        return Ok(form);
    }
    let mnemonic = name.split('_').next().unwrap_or(name);
    let forms = isa.forms().filter(|form| form.mnemonic() == mnemonic);
    let forms: Vec<&str> = forms.map(|form| form.name()).collect();
    Err(match forms.as_slice() {
        [] => format!("{} has no instruction `{mnemonic}`", isa.target()),
        some => format!(
            "{} has no form `{name}`; {mnemonic} has {}",
            isa.target(),
            some.join(", ")
        ),
    })
}

pub(super) unsafe extern "C" fn find_form(target: u32, name: Str, error: Option<SinkFn>, user: *mut c_void) -> i32 {
    let mut found = -1;
    status(error, user, || {
        let isa = known(target).ok_or("the target's tables are not built in")?.isa;
        // SAFETY: a string of the header's type.
        found = i32::from(find(isa, unsafe { name.get() }.unwrap_or("?"))?.0);
        Ok(())
    });
    found
}

pub(super) extern "C" fn form_name(target: u32, form: u32) -> Str {
    guarded(Str::new(""), || {
        let form = known(target).and_then(|k| k.isa.form(FormId(u16::try_from(form).ok()?)));
        form.map_or(Str::new(""), |form| Str::new(form.name()))
    })
}

/// `word` with `pin` as its operand `operand`, which counts registers: the second of a pair has to be the one behind the first.
fn with_operand(layout: &Layout, word: Word, operand: usize, pin: Pin) -> Result<Word, String> {
    let none = || format!("there is no operand {operand}");
    let (slot, k) = layout.read_slot(operand).ok_or_else(none)?;
    if k > 0 || slot.field.is_none() {
        return match slot.pins(word).nth(k).ok_or_else(none)? {
            wanted if wanted == pin => Ok(word),
            wanted => Err(format!("operand {operand} is {pin} and has to be {wanted}")),
        };
    }
    let number = slot.encode(pin).filter(|_| pin.file() == slot.file);
    let changed = number.and_then(|number| slot.set(word, number));
    changed.ok_or_else(|| format!("operand {operand} cannot be {pin}"))
}

pub(super) unsafe extern "C" fn set_operand(
    layout: &CLayout,
    word: *mut CWord,
    operand: u32,
    pin: u16,
    error: Option<SinkFn>,
    user: *mut c_void,
) -> i32 {
    status(error, user, || {
        let own = layout.layout().ok_or("the word is in no table")?;
        let pin = Pin::from_bits(pin).ok_or("it is no register")?;
        // SAFETY: the caller's variable.
        let changed = with_operand(own, unsafe { *word }.into(), operand as usize, pin)?;
        // SAFETY: the caller's variable.
        unsafe { *word = changed.0.into() };
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use ir::LayoutCache;
    use isa::{RegFile, Target};

    use super::*;

    fn isa() -> &'static Isa {
        Isa::for_target(Target::Sm87).unwrap()
    }

    #[test]
    fn an_unknown_form_says_which_there_are() {
        let error = find(isa(), "FADD_0x999_R").unwrap_err();
        assert!(error.contains("FADD_0x221_R_R_R"), "{error}");
        assert_eq!(find(isa(), "FROB_0x1").unwrap_err(), "sm_87 has no instruction `FROB`");
    }

    #[test]
    fn operands_are_written_into_the_word() {
        let cache = LayoutCache::new(isa(), Target::Sm87);
        // STG [R16.64], R4: guard, the address' pair, the value, the descriptor.
        let word = Word(0x000f_e200_0c10_1924_0000_0004_1000_7986);
        let layout = cache.get(word).unwrap();
        let r = |n| Pin::new(RegFile::R, n);
        let moved = with_operand(&layout, word, 1, r(8)).unwrap();
        assert_eq!(moved.0 ^ word.0, 0x1800_0000, "bits 31:24 and no others");
        assert!(with_operand(&layout, moved, 2, r(9)).is_ok());
        let error = with_operand(&layout, moved, 2, r(17)).unwrap_err();
        assert_eq!(error, "operand 2 is R17 and has to be R9");
        let error = with_operand(&layout, word, 1, Pin::new(RegFile::UR, 8)).unwrap_err();
        assert_eq!(error, "operand 1 cannot be UR8");
    }
}
