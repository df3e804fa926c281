//! One instruction: targets, tables, decode, encode, text.

pub mod target;

pub use target::Target;
