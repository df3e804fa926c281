//! Makes and checks `opcodes/*.tsv` by asking NVIDIA's `nvdisasm` what words mean: inputs we make, outputs it prints.
//!
//! An offline tool: users of sass2mlir never run it.

pub mod access;
pub mod plr;
