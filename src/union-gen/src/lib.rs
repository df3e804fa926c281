//! Reads the instruction tables in `opcodes/` and packs them for `isa` (build time only).
//!
//! The schema is `opcodes/README.md`; [`tsv`] is its only reader and writer, shared with the prober.

pub mod bits;
pub mod tsv;
