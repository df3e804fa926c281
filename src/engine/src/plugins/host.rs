//! What a pass of a library may ask while it runs: the functions of `SassPluginHost`.

use std::ffi::c_void;

use isa::Isa;
use passes::{OptionValue, Options};
use plugin::abi::{self, PluginRun, Sink, Str};

use super::asked::Asked;
use super::message::{Answer, Ended};
use crate::capi::{guarded, sassEngineTable, status};

/// One run: `SassPluginRun`.
pub struct Run<'k> {
    isa: &'static Isa,
    kernel: &'k ir::Kernel,
    options: &'k Options,
    offsets: Vec<u64>,
    answer: Answer,
    /// The first thing that it asks for and that cannot be.
    failed: Option<String>,
    /// What the pass gives as its reason.
    reason: Option<String>,
}

/// Where each operation is in the code (bytes).
pub fn offsets(kernel: &ir::Kernel) -> Vec<u64> {
    let starts = kernel.ops().scan(0, |at, op| {
        let start = *at;
        *at += if op.kind().is_code() { 16 } else { 0 };
        Some(start)
    });
    starts.collect()
}

impl<'k> Run<'k> {
    pub fn new(isa: &'static Isa, kernel: &'k ir::Kernel, options: &'k Options) -> Run<'k> {
        Run {
            isa,
            kernel,
            options,
            offsets: offsets(kernel),
            answer: Answer {
                ended: Ended::Done,
                edits: Vec::new(),
                sites: None,
                headline: None,
                skipped: Vec::new(),
                notes: Vec::new(),
            },
            failed: None,
            reason: None,
        }
    }

    /// What came out, given what `run` of the pass returned.
    pub fn answer(mut self, returned: i32) -> Answer {
        self.answer.ended = match (self.failed, returned, self.reason) {
            (Some(why), ..) => Ended::Failed(why),
            (None, 0, _) => Ended::Done,
            (None, 1, why) => Ended::Refused(why.unwrap_or_else(|| "it gives no reason".to_owned())),
            (None, other, why) => Ended::Failed(why.unwrap_or_else(|| format!("it returned {other}"))),
        };
        self.answer
    }

    /// Fails the run; the first reason counts.
    fn fail(&mut self, why: String) {
        self.failed.get_or_insert(why);
    }

    /// As much as a pass can mean, so that one that asks without end does not take all memory.
    fn has_room(&self) -> bool {
        let answer = &self.answer;
        answer.edits.len() + answer.skipped.len() + answer.notes.len() < 16 * self.offsets.len() + 4096
    }

    unsafe fn ask(&mut self, edit: *const abi::Edit) -> Result<(), String> {
        if !self.has_room() {
            return Err(format!("it asks for more than {} edits", self.answer.edits.len()));
        }
        // SAFETY: the caller's promise.
        let asked = unsafe { Asked::copy(edit.as_ref().ok_or("an edit at address 0")?)? };
        asked.edit(self.isa, self.kernel)?;
        self.answer.edits.push(asked);
        Ok(())
    }
}

/// The table for a run.
pub fn table() -> abi::PluginHost {
    abi::PluginHost {
        abi: abi::PLUGIN_ABI,
        size: size_of::<abi::PluginHost>() as u32,
        engine: sassEngineTable().cast(),
        option_int,
        option_text,
        offset,
        edit,
        skip,
        note,
        headline,
        sites,
        refuse,
    }
}

/// # Safety
/// `run` is what the pass was given.
unsafe fn of<'r>(run: *mut PluginRun) -> &'r mut Run<'r> {
    // SAFETY: the caller's promise.
    unsafe { &mut *run.cast() }
}

/// # Safety
/// A string of the header's type.
unsafe fn owned(text: Str) -> String {
    // SAFETY: the caller's promise.
    unsafe { text.get() }.unwrap_or("(no UTF-8)").to_owned()
}

unsafe extern "C" fn option_int(run: *mut PluginRun, name: Str, value: *mut i64) -> i32 {
    guarded(0, || {
        // SAFETY: arguments as the header says.
        let given = unsafe { of(run).options.get(name.get().unwrap_or("?")) };
        let number = match given {
            Some(OptionValue::Int(v)) => *v,
            Some(OptionValue::Bool(v)) => i64::from(*v),
            _ => return 0,
        };
        // SAFETY: the pass's variable.
        unsafe { value.write(number) };
        1
    })
}

unsafe extern "C" fn option_text(run: *mut PluginRun, name: Str, value: *mut Str) -> i32 {
    guarded(0, || {
        // SAFETY: arguments as the header says.
        match unsafe { of(run).options.text(name.get().unwrap_or("?")) } {
            Some(text) => {
                // SAFETY: the pass's variable.
                unsafe { value.write(Str::lent(text)) };
                1
            }
            None => 0,
        }
    })
}

unsafe extern "C" fn offset(run: *mut PluginRun, op: u32) -> u64 {
    // SAFETY: arguments as the header says.
    guarded(0, || unsafe {
        of(run).offsets.get(op as usize).copied().unwrap_or_default()
    })
}

unsafe extern "C" fn edit(run: *mut PluginRun, edit: *const abi::Edit, error: Option<Sink>, user: *mut c_void) -> i32 {
    status(error, user, || {
        // SAFETY: arguments as the header says.
        let run = unsafe { of(run) };
        // SAFETY: as above.
        unsafe { run.ask(edit) }.inspect_err(|why| {
            run.fail(why.clone());
        })
    })
}

unsafe extern "C" fn skip(run: *mut PluginRun, op: u32, reason: Str) {
    guarded((), || {
        // SAFETY: arguments as the header says.
        let (run, reason) = unsafe { (of(run), owned(reason)) };
        if op as usize >= run.offsets.len() {
            run.fail(format!(
                "it skips operation {op}, and the kernel has {}",
                run.offsets.len()
            ));
        } else if run.has_room() {
            run.answer.skipped.push((op, reason));
        }
    });
}

unsafe extern "C" fn note(run: *mut PluginRun, text: Str) {
    guarded((), || {
        // SAFETY: arguments as the header says.
        let (run, text) = unsafe { (of(run), owned(text)) };
        if run.has_room() {
            run.answer.notes.push(text);
        }
    });
}

unsafe extern "C" fn headline(run: *mut PluginRun, text: Str) {
    // SAFETY: arguments as the header says.
    guarded((), || unsafe { of(run).answer.headline = Some(owned(text)) });
}

unsafe extern "C" fn sites(run: *mut PluginRun, count: u32) {
    guarded((), || {
        // SAFETY: arguments as the header says.
        let run = unsafe { of(run) };
        // A place is an operation or one of its values.
        let places = run.kernel.op_count() + run.kernel.values().len();
        match count as usize <= places {
            true => run.answer.sites = Some(count),
            false => run.fail(format!(
                "it says that it fires at {count} places, and the kernel has {places}"
            )),
        }
    });
}

unsafe extern "C" fn refuse(run: *mut PluginRun, reason: Str) {
    // SAFETY: arguments as the header says.
    guarded((), || unsafe { of(run).reason = Some(owned(reason)) });
}
