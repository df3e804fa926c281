//! A library that is loaded into this process.

use std::ffi::c_int;
use std::path::Path;

use libloading::os::unix::{Library as Object, RTLD_LOCAL, RTLD_NOW};
use passes::{Context, Options};
use plugin::abi::{self, ENGINE_ABI, GET_PLUGIN, GetPlugin, PLUGIN_ABI};

use super::message::{Answer, PassInfo};
use super::{describe, host};
use crate::capi::Arrays;

/// Everything that the library refers to is looked up at once, so that what is missing is said here and not in the middle of a run.
const FLAGS: c_int = RTLD_NOW | RTLD_LOCAL;

/// It is never unloaded: nobody knows which of its functions somebody still holds.
pub struct Library {
    table: &'static abi::Plugin,
}

// SAFETY: the table is never changed.
unsafe impl Send for Library {}
// SAFETY: as above; the header says that runs may overlap.
unsafe impl Sync for Library {}

impl Library {
    /// Loads it, which runs whatever it has to run at its start.
    pub fn open(file: &Path) -> Result<Library, String> {
        // Without a folder in its name the system's folders would be searched.
        let file = std::path::absolute(file).map_err(|e| e.to_string())?;
        // SAFETY: whoever names the library answers for what it runs at its start.
        let object = unsafe { Object::open(Some(file), FLAGS) }.map_err(|e| format!("cannot be loaded: {e}"))?;
        // SAFETY: a function of that name has the header's type.
        let get = unsafe { object.get::<GetPlugin>(GET_PLUGIN.as_bytes()) };
        let get = *get.map_err(|_| format!("it exports no `{GET_PLUGIN}`"))?;
        std::mem::forget(object);
        // SAFETY: as the header says of the function and of what it returns.
        let table = unsafe { get().as_ref() }.ok_or_else(|| format!("`{GET_PLUGIN}` returned nothing"))?;
        fits("SASS_PLUGIN_ABI", table.abi, PLUGIN_ABI)?;
        fits("SASS_ENGINE_ABI", table.engine_abi, ENGINE_ABI)?;
        Ok(Library { table })
    }

    /// What it says of its passes.
    pub fn passes(&self) -> Result<Vec<PassInfo>, String> {
        // SAFETY: as the header says of the table.
        unsafe { describe::read(self.table) }
    }

    /// Runs a pass, by position. The error says why it could not be run.
    pub fn run(&self, at: usize, cx: &Context<'_>, kernel: &ir::Kernel, options: &Options) -> Result<Answer, String> {
        // SAFETY: as the header says of the table.
        let passes = unsafe { abi::slice(self.table.passes, self.table.pass_count) };
        let run = passes
            .get(at)
            .and_then(|pass| pass.run)
            .ok_or("there is no such pass")?;
        let arrays = Arrays::new(kernel).ok_or("the target's tables are not built in")?;
        let view = arrays.view(kernel);
        let (start, end) = cx.params.unwrap_or_default();
        let resources = cx.resources;
        let fixed = resources.fixed.as_ref();
        let fixed: Option<Vec<u16>> = fixed.map(|pins| pins.iter().map(|pin| pin.to_bits()).collect());
        let context = abi::PassContext {
            report: 0,
            params: [start, end],
            pinned: cx.pinned.as_ptr(),
            pinned_count: cx.pinned.len() as u32,
            registers: resources.registers.unwrap_or(0),
            threads: resources.threads.unwrap_or(0),
            shared: resources.shared,
            fixed: fixed.as_ref().map_or(std::ptr::null(), |bits| bits.as_ptr()),
            fixed_count: fixed.as_ref().map_or(abi::NONE, |bits| bits.len() as u32),
        };
        let mut own = host::Run::new(cx.isa, kernel, options);
        // SAFETY: everything lives until the call returns. A layout of this side begins with what the header shows of it.
        let returned = unsafe {
            let view = &*(&raw const view).cast::<abi::Kernel>();
            run(&host::table(), (&raw mut own).cast(), view, &context)
        };
        Ok(own.answer(returned))
    }
}

fn fits(what: &str, has: u32, wanted: u32) -> Result<(), String> {
    match has == wanted {
        true => Ok(()),
        false => Err(format!(
            "it was compiled with {what} {has}, this program has {wanted}: compile it again with this version's sass_plugin.h"
        )),
    }
}
