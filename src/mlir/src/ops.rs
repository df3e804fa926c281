//! The ops that are no instructions (functions, constants, labels, pseudo terminators), as melior makes them from SassOps.td: for Rust
//! that builds functions op by op. Instructions need the engine, and whole kernels cross in one call: [`crate::Bridge::module`].

melior::dialect! {
    name: "sass",
    files: ["Sass/SassOps.td"],
    include_directory_env_vars: ["SASS_DIALECT_INCLUDE"],
}

pub use sass::*;
