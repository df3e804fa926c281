//! The portable passes for C: a pass looks at a kernel, its edits are handed out one by one, the caller applies them.

use std::ffi::c_void;

use ir::{Edit, Pin};
use isa::Isa;
use passes::{OptionKind, OptionSpec, OptionValue, Options, Pass, Resources};
use plugin::abi::{Edit as CEdit, EditFn, NONE, PassContext, RemarkFn, Sink, Str, edit as kind, slice};

use super::kernel::kernel;
use super::{CKernel, guarded, status};
use crate::config::Mode;
use crate::step::{Found, Place, look};

/// `SassPassRun`: what a pass found in a kernel.
pub struct PassRun {
    /// The report, the edits, and the bits they name.
    pub found: Found,
    /// The instruction set that the fields of edits belong to.
    isa: &'static Isa,
    kernel: ir::Kernel,
    /// The kernel with its values where the edits put them, if they do so.
    elsewhere: Option<ir::Kernel>,
}

/// Pass and options of `ffma-deftz{mode=apply}`, as MLIR prints a pass. `mode` and `entry` are not the pass's own.
fn parse(text: &str) -> Result<(&'static dyn Pass, Options), String> {
    let (name, rest) = text.split_once('{').unwrap_or((text, ""));
    let name = name.strip_prefix("sass-").unwrap_or(name);
    let all = passes::BUILTIN;
    let pass = all.iter().find(|p| p.name() == name);
    let pass = *pass.ok_or_else(|| format!("the engine has no pass `{name}`"))?;
    let mut options = Options::default();
    for (key, value) in rest
        .trim_end_matches('}')
        .split_whitespace()
        .filter_map(|o| o.split_once('='))
    {
        if let Some(spec) = pass.options().iter().find(|s| s.name == key) {
            options.set(key, option(spec, value).map_err(|e| format!("option `{key}`: {e}"))?);
        }
    }
    if let Some(missing) = pass
        .options()
        .iter()
        .find(|s| s.required && options.get(s.name).is_none())
    {
        return Err(format!("option `{}` is missing: {}", missing.name, missing.help));
    }
    pass.check(&options).map_err(|e| e.to_string())?;
    Ok((pass, options))
}

fn option(spec: &OptionSpec, text: &str) -> Result<OptionValue, String> {
    let value = match spec.kind {
        OptionKind::Bool => text.parse().ok().map(OptionValue::Bool),
        OptionKind::Int { .. } => text.parse().ok().map(OptionValue::Int),
        OptionKind::Text | OptionKind::Choice(_) => Some(OptionValue::Text(text.to_owned())),
    };
    let value = value.ok_or_else(|| format!("expected {}", spec.kind))?;
    value.check(spec.kind)?;
    Ok(value)
}

pub(super) unsafe extern "C" fn run_pass(
    pass: Str,
    c_kernel: &CKernel,
    context: &PassContext,
    out: *mut *mut PassRun,
    error: Sink,
    user: *mut c_void,
) -> i32 {
    status(Some(error), user, || {
        // SAFETY: a string of the header's type.
        let (pass, options) = parse(unsafe { pass.get() }.unwrap_or("?"))?;
        // SAFETY: arrays as the header says.
        let mut kernel = unsafe { kernel(c_kernel) }.map_err(|e| e.to_string())?;
        // A pass before this one may have changed what its operands are, and where its labels lead.
        kernel.write_words().map_err(|e| e.to_string())?;
        let mode = if context.report != 0 { Mode::Report } else { Mode::Apply };
        let [start, end] = context.params;
        // SAFETY: an array as the header says.
        let pinned = unsafe { slice(context.pinned, context.pinned_count as usize) };
        let given = |n: u32| (n > 0).then_some(n);
        let fixed = (context.fixed_count != NONE).then(|| {
            // SAFETY: an array as the header says.
            let bits = unsafe { slice(context.fixed, context.fixed_count as usize) };
            bits.iter().filter_map(|bits| Pin::from_bits(*bits)).collect()
        });
        let place = Place {
            params: (start < end).then_some((start, end)),
            pinned: pinned.to_vec(),
            resources: Resources {
                registers: given(context.registers),
                threads: given(context.threads),
                shared: context.shared,
                fixed,
            },
        };
        let run = Box::new(PassRun::new(kernel, &place, pass, &options, mode)?);
        // SAFETY: the caller's variable.
        unsafe { out.write(Box::into_raw(run)) };
        Ok(())
    })
}

impl PassRun {
    /// Runs a pass on a kernel. An error: there are no tables of its target.
    pub fn new(
        kernel: ir::Kernel,
        place: &Place,
        pass: &dyn Pass,
        options: &Options,
        mode: Mode,
    ) -> Result<PassRun, String> {
        let isa = Isa::for_target(kernel.target).map_err(|e| e.to_string())?;
        let found = look(isa, &kernel, place, pass, options, mode);
        let elsewhere = kernel.elsewhere(&found.edits).map_err(|e| e.to_string())?;
        Ok(PassRun {
            found,
            isa,
            kernel,
            elsewhere,
        })
    }

    /// The word that defines a value, with the registers that the edits give it.
    fn word_of(&self, value: ir::ValueId) -> u128 {
        match (&self.elsewhere, self.kernel.def(value)) {
            (Some(kernel), ir::Def::Result(op, _)) => kernel.op(op).word().0,
            _ => 0,
        }
    }

    /// The name of a field of an instruction.
    fn field_name(&self, op: ir::OpId, field: usize) -> &'static str {
        let form = self.isa.form(self.kernel.op(op).form());
        form.and_then(|f| f.fields().get(field).map(|f| f.name)).unwrap_or("?")
    }
}

pub(super) unsafe extern "C" fn pass_edits(run: &PassRun, each: EditFn, user: *mut c_void) {
    guarded((), || {
        for edit in &run.found.edits.edits {
            let mut c = CEdit::new(kind::FIELD, 0);
            let (dropped, added);
            match edit {
                Edit::SetField { op, field, value } => {
                    (c.op, c.value) = (op.0, *value);
                    c.field = Str::new(run.field_name(*op, *field));
                }
                Edit::EditModifiers { op, drop, add } => {
                    (c.kind, c.op) = (kind::MODIFIERS, op.0);
                    (dropped, added) = (drop.join("."), add.join("."));
                    (c.drop, c.add) = (Str::lent(&dropped), Str::lent(&added));
                }
                Edit::ReplaceOperand { op, operand, value } => {
                    (c.kind, c.op, c.operand, c.new_value) = (kind::OPERAND, op.0, *operand as u32, value.0);
                }
                Edit::Insert { before, inst, operands } => {
                    (c.kind, c.op, c.word) = (kind::INSERT, before.0, inst.word.0.into());
                    (c.operands, c.operand_count) = (operands.as_ptr().cast(), operands.len() as u32);
                }
                Edit::Replace { op, inst, operands } => {
                    (c.kind, c.op, c.word) = (kind::REPLACE, op.0, inst.word.0.into());
                    (c.operands, c.operand_count) = (operands.as_ptr().cast(), operands.len() as u32);
                }
                Edit::Move { op, before } => (c.kind, c.op, c.operand) = (kind::MOVE, op.0, before.0),
                Edit::SetControl { op, control } => {
                    let bits = control.apply(isa::Word(0)).0 >> isa::control::MASK.trailing_zeros();
                    (c.kind, c.op, c.value) = (kind::CONTROL, op.0, bits as i64);
                }
                Edit::Erase { op } => (c.kind, c.op) = (kind::ERASE, op.0),
                Edit::Argument { block, pin, passed } => {
                    (c.kind, c.op, c.operand) = (kind::ARGUMENT, block.0, pin.to_bits().into());
                    (c.operands, c.operand_count) = (passed.as_ptr().cast(), passed.len() as u32);
                }
                Edit::ReplaceValue { value, by } => {
                    (c.kind, c.operand, c.new_value) = (kind::VALUE, value.0, by.0);
                }
                Edit::SetPin { value, pin } => {
                    (c.kind, c.new_value, c.operand) = (kind::PIN, value.0, pin.to_bits().into());
                    c.word = run.word_of(*value).into();
                }
            }
            // SAFETY: a function of the header's type.
            unsafe { each(user, &c) };
        }
    });
}

pub(super) unsafe extern "C" fn pass_remarks(run: &PassRun, each: RemarkFn, user: *mut c_void) {
    guarded((), || {
        // SAFETY: a function of the header's type.
        let say = |op: u32, text: &str| unsafe { each(user, op, Str::lent(text)) };
        let report = &run.found.report;
        say(u32::MAX, &report.to_string());
        for skipped in &report.skipped {
            let at = passes::instructions(&run.kernel).find(|(offset, ..)| *offset == skipped.offset);
            say(
                at.map_or(u32::MAX, |(_, op, _)| op.0),
                &format!("stays: {}", skipped.reason),
            );
        }
        report.notes.iter().for_each(|note| say(u32::MAX, note));
        if let Some(why) = &run.found.failed {
            say(u32::MAX, why);
        }
    });
}

pub(super) unsafe extern "C" fn free_pass_run(run: *mut PassRun) {
    if !run.is_null() {
        // SAFETY: made by `run_pass`, freed once.
        drop(unsafe { Box::from_raw(run) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_are_named_as_mlir_prints_them() {
        let (pass, options) = parse("sass-retarget-param{entry=4294967295 from=352 mode=apply to=360}")
            .ok()
            .unwrap();
        assert_eq!(
            (pass.name(), options.int("from"), options.int("to")),
            ("retarget-param", Some(352), Some(360))
        );
        assert!(parse("sass-ffma-deftz").is_ok());
        for (text, part) in [
            ("sass-nothing", "no pass `nothing`"),
            ("sass-retarget-param{from=352}", "`to` is missing"),
            (
                "sass-retarget-param{from=352 to=70000}",
                "`to`: expected a whole number",
            ),
            ("sass-retarget-param{from=352 to=352}", "the same as `from`"),
        ] {
            let error = parse(text).err().unwrap();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
