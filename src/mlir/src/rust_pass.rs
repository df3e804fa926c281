//! Passes that are written in Rust and are in no table of MLIR's: somebody gave them to the engine at run time.

use engine::capi::PassRun;
use engine::{Mode, Place};
use ir::Pin;
use melior::ContextRef;
use melior::ir::OperationRef;
use melior::ir::attribute::{DenseI32ArrayAttribute, DenseI64ArrayAttribute};
use melior::ir::operation::OperationLike;
use melior::ir::r#type::TypeId;
use melior::pass::{ExternalPass, RunExternalPass, create_external};
use mlir_sys::{mlirEmitError, mlirOperationGetLocation};
use passes::{Options, Pass, Resources};

use crate::bridge::{Labels, kernel_of};
use crate::ffi;

/// A pass over functions whose attribute `sass.entries` has a number.
#[derive(Clone)]
pub struct RustPass<'p> {
    pub(crate) pass: &'p dyn Pass,
    pub(crate) options: &'p Options,
    pub(crate) mode: Mode,
    pub(crate) entry: i32,
}

#[repr(align(8))]
struct PassId;

impl RustPass<'_> {
    /// For a pass manager that lives no longer than the pass.
    pub(crate) fn into_melior(self) -> melior::pass::Pass {
        static ID: PassId = PassId;
        let (name, summary) = (self.pass.name().to_owned(), self.pass.summary().to_owned());
        create_external(self, TypeId::create(&ID), &name, &name, &summary, "sass.func", &[])
    }

    /// The numbers of an attribute; none if it is not there.
    fn numbers(func: OperationRef<'_, '_>, name: &str) -> Vec<i32> {
        let attribute = func.attribute(name).ok();
        let list = attribute.and_then(|a| DenseI32ArrayAttribute::try_from(a).ok());
        list.map_or_else(Vec::new, |list| {
            (0..list.len()).filter_map(|i| list.element(i).ok()).collect()
        })
    }

    /// The error is empty where MLIR has said why.
    fn look(&self, func: OperationRef<'_, '_>) -> Result<(), String> {
        if !Self::numbers(func, "sass.entries").contains(&self.entry) {
            return Ok(());
        }
        let kernel = kernel_of(func.to_raw(), Labels::Anywhere).ok_or_else(String::new)??;
        let params = match Self::numbers(func, "sass.params")[..] {
            [start, end] => Some((start as u32, end as u32)),
            _ => None,
        };
        let pinned = func.attribute("sass.pinned").ok();
        let pinned = pinned.and_then(|a| DenseI64ArrayAttribute::try_from(a).ok());
        let pinned = pinned.map_or_else(Vec::new, |list| {
            (0..list.len())
                .filter_map(|i| Some(list.element(i).ok()? as u64))
                .collect()
        });
        let [registers, threads, shared] = Self::numbers(func, "sass.resources")[..]
            .try_into()
            .map_or([0; 3], |numbers: [i32; 3]| numbers.map(|n| n as u32));
        let given = |n: u32| (n > 0).then_some(n);
        let fixed = func.attribute("sass.fixed").is_ok().then(|| {
            let bits = Self::numbers(func, "sass.fixed").into_iter();
            bits.filter_map(|bits| Pin::from_bits(bits as u16)).collect()
        });
        let resources = Resources {
            registers: given(registers),
            threads: given(threads),
            shared,
            fixed,
        };
        let place = Place {
            params,
            pinned,
            resources,
        };
        let run = PassRun::new(kernel, &place, self.pass, self.options, self.mode)?;
        // SAFETY: the function is alive, and nobody else touches it while its pass runs; the run is handed over.
        match unsafe { ffi::sassApplyPassRun(func.to_raw(), Box::into_raw(Box::new(run))) } {
            true => Ok(()),
            false => Err(String::new()),
        }
    }
}

impl<'c> RunExternalPass<'c> for RustPass<'_> {
    fn initialize(&mut self, _: ContextRef<'c>) {}

    fn run(&mut self, func: OperationRef<'c, '_>, state: ExternalPass<'_>) {
        let Err(why) = self.look(func) else { return };
        if !why.is_empty() {
            let message = std::ffi::CString::new(why.replace('\0', " ")).unwrap_or_default();
            // SAFETY: the operation is alive, the text ends with a NUL.
            unsafe { mlirEmitError(mlirOperationGetLocation(func.to_raw()), message.as_ptr()) };
        }
        state.signal_failure();
    }
}
