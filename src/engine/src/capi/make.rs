//! For C: instructions that are made anew, from the name of their form.

use std::ffi::c_void;

use ir::{Pin, Wordless};
use isa::control::ControlError;
use isa::{FormId, Isa, Target, Word};

use plugin::abi::{Sink, Str, Word as CWord, slice};

use super::{CLayout, guarded, known, status};

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

pub(super) unsafe extern "C" fn find_form(target: u32, name: Str, error: Option<Sink>, user: *mut c_void) -> i32 {
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

pub(super) unsafe extern "C" fn set_operand(
    layout: &CLayout,
    word: *mut CWord,
    operand: u32,
    pin: u16,
    error: Option<Sink>,
    user: *mut c_void,
) -> i32 {
    status(error, user, || {
        let own = layout.layout().ok_or("the word is in no table")?;
        let pin = Pin::from_bits(pin).ok_or("it is no register")?;
        // SAFETY: the caller's variable.
        let changed = own.with_operand(Word(unsafe { *word }.into()), operand as usize, pin)?;
        // SAFETY: the caller's variable.
        unsafe { *word = changed.0.into() };
        Ok(())
    })
}

/// Registers of the header's type; none of them is left out.
///
/// # Safety
/// `pins` are `count` of them, or there are none.
unsafe fn registers(pins: *const u16, count: usize) -> Result<Vec<Pin>, String> {
    // SAFETY: as the caller says.
    let bits = unsafe { slice(pins, count) };
    let pin = |bits: &u16| Pin::from_bits(*bits).ok_or("it is no register");
    Ok(bits.iter().map(pin).collect::<Result<_, _>>()?)
}

pub(super) unsafe extern "C" fn assemble(
    target: u32,
    text: Str,
    types: Str,
    pins: *const u16,
    count: usize,
    schedule: Str,
    word: *mut CWord,
    error: Option<Sink>,
    user: *mut c_void,
) -> i32 {
    status(error, user, || {
        let known = known(target).ok_or("the target's tables are not built in")?;
        // SAFETY: strings and registers of the header's types.
        let (text, types, schedule, registers) =
            unsafe { (text.get(), types.get(), schedule.get(), registers(pins, count)?) };
        let wordless = Wordless {
            text: text.unwrap_or("?"),
            types: types.unwrap_or("?"),
            registers: &registers,
            control: schedule
                .unwrap_or("?")
                .parse()
                .map_err(|e: ControlError| e.to_string())?,
        };
        let made = ir::assemble(known.isa, Target::ALL[target as usize], &wordless)?;
        // SAFETY: the caller's variable.
        unsafe { *word = made.0.into() };
        Ok(())
    })
}

pub(super) unsafe extern "C" fn bind(
    layout: &CLayout,
    word: *mut CWord,
    pins: *const u16,
    count: usize,
    label: Option<&i64>,
    error: Option<Sink>,
    user: *mut c_void,
) -> i32 {
    status(error, user, || {
        let own = layout.layout().ok_or("the word is in no table")?;
        // SAFETY: registers of the header's type.
        let pins = unsafe { registers(pins, count)? };
        let target = Target::ALL[usize::from(layout.target)];
        // SAFETY: the caller's variable.
        let old = Word(unsafe { *word }.into());
        let bound = ir::bind(layout.isa, target, own, old, &pins, label.copied())?;
        // SAFETY: the caller's variable.
        unsafe { *word = bound.0.into() };
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use ir::LayoutCache;
    use isa::RegFile;

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
    fn the_header_shows_how_to_write_an_instruction() {
        let (text, types) = ("FADD_0x221.FTZ guard(\x01) \x01, -\x01", "!sass.reg, !sass.reg");
        let wordless = Wordless {
            text,
            types,
            registers: &[Pin::new(RegFile::R, 5)],
            control: "B0-----:R-:W-:-:S04".parse().unwrap(),
        };
        let word = ir::assemble(isa(), Target::Sm87, &wordless).unwrap();
        let form = isa()
            .form(isa().decode(word).form)
            .map(|form| form.mnemonic().to_owned());
        assert_eq!(form.as_deref(), Some("FADD"));
        let header = include_str!("../../include/sass_engine.h");
        for shown in [text.replace(ir::MARK, "\\x01"), types.to_owned()] {
            assert!(header.contains(&format!("\"{shown}\"")), "{shown}");
        }
    }

    #[test]
    fn operands_are_written_into_the_word() {
        let cache = LayoutCache::new(isa(), Target::Sm87);
        // STG [R16.64], R4: guard, the address' pair, the value, the descriptor.
        let word = Word(0x000f_e200_0c10_1924_0000_0004_1000_7986);
        let layout = cache.get(word).unwrap();
        let r = |n| Pin::new(RegFile::R, n);
        let moved = layout.with_operand(word, 1, r(8)).unwrap();
        assert_eq!(moved.0 ^ word.0, 0x1800_0000, "bits 31:24 and no others");
        assert!(layout.with_operand(moved, 2, r(9)).is_ok());
        let error = layout.with_operand(moved, 2, r(17)).unwrap_err();
        assert_eq!(error, "operand 2 is R17 and has to be R9");
        let error = layout.with_operand(word, 1, Pin::new(RegFile::UR, 8)).unwrap_err();
        assert_eq!(error, "operand 1 cannot be UR8");
    }
}
