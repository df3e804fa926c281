//! The bridge between kernels and MLIR: `ir::Kernel` to a module of the sass dialect and back, text, bytecode, pass pipelines.
//!
//! Everything is behind the feature `mlir`; without it the crate is empty.

#[cfg(feature = "mlir")]
mod bridge;
#[cfg(feature = "mlir")]
mod ffi;
#[cfg(feature = "mlir")]
#[allow(missing_docs, clippy::all, reason = "melior writes it")]
pub mod ops;
#[cfg(feature = "mlir")]
mod passes_td;
#[cfg(feature = "mlir")]
mod representation;
#[cfg(feature = "mlir")]
mod rust_pass;

#[cfg(feature = "mlir")]
pub use bridge::{Bridge, Diagnostic, LineOf, MlirError, Module, PipelineOptions, Step, has_pass, load_pass_plugin};
#[cfg(feature = "mlir")]
pub use representation::{Mlir, NativePass};
#[cfg(feature = "mlir")]
pub use rust_pass::RustPass;
