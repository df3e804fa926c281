//! Makes and checks `opcodes/*.tsv` by asking NVIDIA's `nvdisasm` what words mean: inputs we make, outputs it prints.
//!
//! An offline tool: users of sass2mlir never run it.

pub mod access;
pub mod assign;
pub mod check;
mod corpus;
pub mod fillers;
pub mod flow;
pub mod hazards;
mod memory;
pub mod mine;
pub mod mutants;
pub mod nvdisasm;
pub mod options;
pub mod plr;
mod reasons;
pub mod repair;
mod rules;
pub mod seeds;
pub mod tables;
pub mod text;
pub mod told;
