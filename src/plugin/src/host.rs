//! What a pass asks of its host.

use std::ffi::{c_char, c_void};
use std::marker::PhantomData;

use crate::Refusal;
use crate::abi::{self, Edit, Str, Word, edit};

/// The host of one run. Operations and values are those of the kernel before any edit.
pub struct Host<'h> {
    table: &'h abi::PluginHost,
    run: *mut abi::PluginRun,
    during: PhantomData<&'h ()>,
}

impl Host<'_> {
    /// # Safety
    /// Both are what `run` of the header got.
    pub(crate) unsafe fn new(table: &abi::PluginHost, run: *mut abi::PluginRun) -> Host<'_> {
        Host {
            table,
            run,
            during: PhantomData,
        }
    }

    /// A whole number, if the user gave it.
    pub fn option_int(&self, name: &str) -> Option<i64> {
        let mut value = 0;
        // SAFETY: a function of the header's type, with the run that it belongs to; the same below.
        let given = unsafe { (self.table.option_int)(self.run, Str::lent(name), &mut value) };
        (given != 0).then_some(value)
    }

    /// A truth value, if the user gave it.
    pub fn option_bool(&self, name: &str) -> Option<bool> {
        self.option_int(name).map(|value| value != 0)
    }

    /// A text, if the user gave it.
    pub fn option_text(&self, name: &str) -> Option<&str> {
        let mut value = Str::new("");
        // SAFETY: the text lives until the run ends, and the host with it.
        unsafe {
            let given = (self.table.option_text)(self.run, Str::lent(name), &mut value);
            value.get().filter(|_| given != 0)
        }
    }

    /// Where an operation is in the kernel's code (bytes).
    pub fn offset(&self, op: u32) -> u64 {
        // SAFETY: see `option_int`.
        unsafe { (self.table.offset)(self.run, op) }
    }

    /// Gives a field of an instruction another value: an immediate, a constant address, an offset.
    pub fn set_field(&self, op: u32, field: &str, value: i64) -> Result<(), Refusal> {
        self.edit(&Edit {
            field: Str::lent(field),
            value,
            ..Edit::new(edit::FIELD, op)
        })
    }

    /// Takes modifiers away and adds others: dotted lists.
    pub fn edit_modifiers(&self, op: u32, drop: &str, add: &str) -> Result<(), Refusal> {
        self.edit(&Edit {
            drop: Str::lent(drop),
            add: Str::lent(add),
            ..Edit::new(edit::MODIFIERS, op)
        })
    }

    /// Lets an operand read another value.
    pub fn replace_operand(&self, op: u32, operand: u32, value: u32) -> Result<(), Refusal> {
        self.edit(&Edit {
            operand,
            new_value: value,
            ..Edit::new(edit::OPERAND, op)
        })
    }

    /// Puts a new instruction before an operation.
    pub fn insert(&self, before: u32, word: Word, operands: &[u32]) -> Result<(), Refusal> {
        self.edit(&made(edit::INSERT, before, word, operands))
    }

    /// Puts another instruction in the place of one, whose results it has.
    pub fn replace(&self, op: u32, word: Word, operands: &[u32]) -> Result<(), Refusal> {
        self.edit(&made(edit::REPLACE, op, word, operands))
    }

    /// Takes an instruction out.
    pub fn erase(&self, op: u32) -> Result<(), Refusal> {
        self.edit(&Edit::new(edit::ERASE, op))
    }

    /// Takes an instruction from its place and puts it before another operation.
    pub fn move_before(&self, op: u32, before: u32) -> Result<(), Refusal> {
        self.edit(&Edit {
            operand: before,
            ..Edit::new(edit::MOVE, op)
        })
    }

    /// Gives an instruction other scheduling bits: bits 125:105 of its word.
    pub fn set_control(&self, op: u32, bits: u32) -> Result<(), Refusal> {
        self.edit(&Edit {
            value: bits.into(),
            ..Edit::new(edit::CONTROL, op)
        })
    }

    /// Asks for an edit. One that cannot be fails the run.
    pub fn edit(&self, edit: &Edit) -> Result<(), Refusal> {
        let mut why = String::new();
        // SAFETY: see `option_int`; what `text` writes to outlives the call.
        match unsafe { (self.table.edit)(self.run, edit, Some(text), (&raw mut why).cast()) } {
            0 => Ok(()),
            _ => Err(Refusal(why)),
        }
    }

    /// Says why an operation stays as it is.
    pub fn skip(&self, op: u32, reason: &str) {
        // SAFETY: see `option_int`.
        unsafe { (self.table.skip)(self.run, op, Str::lent(reason)) }
    }

    /// A remark for the user.
    pub fn note(&self, text: &str) {
        // SAFETY: see `option_int`.
        unsafe { (self.table.note)(self.run, Str::lent(text)) }
    }

    /// What was done, as `3 loads hinted`.
    pub fn headline(&self, text: &str) {
        // SAFETY: see `option_int`.
        unsafe { (self.table.headline)(self.run, Str::lent(text)) }
    }

    /// How many places the pass fires at, where that is not the number of operations it edits.
    pub fn sites(&self, count: u32) {
        // SAFETY: see `option_int`.
        unsafe { (self.table.sites)(self.run, count) }
    }

    pub(crate) fn refuse(&self, why: &str) {
        // SAFETY: see `option_int`.
        unsafe { (self.table.refuse)(self.run, Str::lent(why)) }
    }
}

fn made(kind: u32, op: u32, word: Word, operands: &[u32]) -> Edit {
    Edit {
        word,
        operands: operands.as_ptr(),
        operand_count: operands.len() as u32,
        ..Edit::new(kind, op)
    }
}

/// A sink that adds to the `String` behind `user`.
pub(crate) unsafe extern "C" fn text(user: *mut c_void, data: *const c_char, size: usize) {
    // SAFETY: whoever hands this out gives a string with it; the bytes live during the call.
    let (out, piece) = unsafe { (&mut *user.cast::<String>(), abi::slice(data.cast::<u8>(), size)) };
    out.push_str(&String::from_utf8_lossy(piece));
}
