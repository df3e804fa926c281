//! The description that a library exports.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::abi::{self, Str};
use crate::{Host, Kernel, OptionKind, OptionSpec, Pass, Refusal};

/// What `run` of `sass_plugin.h` returns.
const DONE: i32 = 0;
const REFUSED: i32 = 1;
const FAILED: i32 = 2;

/// A pass as the header has it.
pub struct PassTable(abi::PluginPass);

impl PassTable {
    /// Describes a pass. The description is never freed, as the header asks.
    pub fn of<P: Pass>() -> PassTable {
        let options: Vec<abi::PluginOption> = P::OPTIONS.iter().map(option).collect();
        PassTable(abi::PluginPass {
            name: Str::new(P::NAME),
            summary: Str::new(P::SUMMARY),
            caution: Str::new(P::CAUTION),
            option_count: options.len(),
            options: options.leak().as_ptr(),
            run: Some(run::<P>),
        })
    }
}

fn option(spec: &OptionSpec) -> abi::PluginOption {
    let (kind, min, max, words) = match spec.kind {
        OptionKind::Bool => (abi::option::BOOL, 0, 0, &[][..]),
        OptionKind::Int { min, max } => (abi::option::INT, min, max, &[][..]),
        OptionKind::Text => (abi::option::TEXT, 0, 0, &[][..]),
        OptionKind::Choice(words) => (abi::option::CHOICE, 0, 0, words),
    };
    let choices: Vec<Str> = words.iter().map(|word| Str::new(word)).collect();
    abi::PluginOption {
        name: Str::new(spec.name),
        help: Str::new(spec.help),
        kind,
        required: spec.required.into(),
        min,
        max,
        choice_count: choices.len(),
        choices: choices.leak().as_ptr(),
    }
}

unsafe extern "C" fn run<P: Pass>(
    host: &abi::PluginHost,
    run: *mut abi::PluginRun,
    kernel: &abi::Kernel,
    _: &abi::PassContext,
) -> i32 {
    // SAFETY: what the header says of the arguments of `run`.
    let (host, kernel) = unsafe { (Host::new(host, run), Kernel::new(kernel, &*host.engine)) };
    match catch_unwind(AssertUnwindSafe(|| P::run(&host, &kernel))) {
        Ok(Ok(())) => DONE,
        Ok(Err(Refusal(why))) => {
            host.refuse(&why);
            REFUSED
        }
        Err(panic) => {
            let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
            let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
            host.refuse(&format!("panicked: {}", text.as_deref().unwrap_or("no message")));
            FAILED
        }
    }
}

/// What `sassGetPlugin` gives; [`export!`](crate::export) makes it.
pub struct Exported(abi::Plugin);

// SAFETY: the pointers are to memory that is never changed and never freed.
unsafe impl Send for Exported {}
// SAFETY: as above.
unsafe impl Sync for Exported {}

impl Exported {
    /// A library of these passes.
    pub fn new<const N: usize>(passes: [PassTable; N]) -> Exported {
        let passes: Vec<abi::PluginPass> = passes.into_iter().map(|table| table.0).collect();
        Exported(abi::Plugin {
            abi: abi::PLUGIN_ABI,
            engine_abi: abi::ENGINE_ABI,
            pass_count: passes.len(),
            passes: passes.leak().as_ptr(),
        })
    }

    /// The table of the header.
    pub fn table(&self) -> *const abi::Plugin {
        &self.0
    }
}

/// Exports passes: types that implement [`Pass`](crate::Pass).
#[macro_export]
macro_rules! export {
    ($($pass:ty),+ $(,)?) => {
        /// What `sass_plugin.h` asks of a library.
        #[unsafe(no_mangle)]
        pub extern "C" fn sassGetPlugin() -> *const $crate::abi::Plugin {
            static EXPORTED: ::std::sync::LazyLock<$crate::Exported> =
                ::std::sync::LazyLock::new(|| $crate::Exported::new([$($crate::PassTable::of::<$pass>()),+]));
            EXPORTED.table()
        }
    };
}
