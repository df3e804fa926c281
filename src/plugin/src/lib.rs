//! Passes for `sass2mlir apply --passes DIR`, written in Rust: `sass_plugin.h` with types that see to its rules.
//!
//! ```no_run
//! use sass2mlir_plugin::{Host, Kernel, Pass, Refusal};
//!
//! /// Lists the barriers of a kernel.
//! struct CountBarriers;
//!
//! impl Pass for CountBarriers {
//!     const NAME: &str = "count-barriers";
//!     const SUMMARY: &str = "list the barriers of a kernel";
//!
//!     fn run(host: &Host<'_>, kernel: &Kernel<'_>) -> Result<(), Refusal> {
//!         for inst in kernel.instructions().filter(|i| i.mnemonic() == "BAR") {
//!             host.note(&format!("{:#06x}: {}", host.offset(inst.id()), inst.text(0)));
//!         }
//!         Ok(())
//!     }
//! }
//!
//! sass2mlir_plugin::export!(CountBarriers);
//! # fn main() {}
//! ```
//!
//! The crate knows the C ABI and nothing else of the project. A library is a package with `crate-type = ["cdylib"]`.

pub mod abi;
mod export;
mod host;
mod kernel;

pub use export::{Exported, PassTable};
pub use host::Host;
pub use kernel::{Block, File, Kernel, Op, Register};

/// A pass of a library; [`export!`] lists them.
pub trait Pass {
    /// The name in `pass.toml`.
    const NAME: &str;
    /// One line: what it does.
    const SUMMARY: &str;
    /// What the user accepts if the kernel may compute other bits; else empty.
    const CAUTION: &str = "";
    /// The options it takes.
    const OPTIONS: &[OptionSpec] = &[];

    /// Looks at one kernel and asks for what it would change. A panic fails the run as a crash would, with its message.
    fn run(host: &Host<'_>, kernel: &Kernel<'_>) -> Result<(), Refusal>;
}

/// An option of a pass: a key of its table in `pass.toml`.
#[derive(Clone, Copy, Debug)]
pub struct OptionSpec {
    /// The key.
    pub name: &'static str,
    /// One line for people.
    pub help: &'static str,
    /// Type and range.
    pub kind: OptionKind,
    /// True when the pass cannot run without it.
    pub required: bool,
}

/// The type of an option and the values that are legal.
#[derive(Clone, Copy, Debug)]
pub enum OptionKind {
    /// `true` or `false`.
    Bool,
    /// A whole number, both ends included.
    Int {
        /// Smallest legal value.
        min: i64,
        /// Largest legal value.
        max: i64,
    },
    /// Any text.
    Text,
    /// One of a few words.
    Choice(&'static [&'static str]),
}

/// The pass does not touch this kernel, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal(pub String);
