//! Executes kernels on the CPU, instruction by instruction: what a kernel computes, without a GPU.
//!
//! [`Program::new`] decodes a kernel once; [`launch`] runs it over [`Memory`], block after block. What the emulator does not know is listed
//! in [`Program::missing`] and refused before anything runs. [`Watch`] looks on: traces, checks, coverage.
//!
//! Results are those of the hardware, but for choices that no document settles, which the rooms that make them state: `xu` (`MUFU` is
//! exact and rounded), `tensor` (rounding inside a dot product), `float` (`FCHK`).

mod access;
mod arg;
mod atomic;
mod build;
mod bytes;
pub mod check;
mod compare;
mod convert;
mod cross;
mod cta;
mod double;
mod driver;
mod error;
mod float;
mod flow;
mod half;
mod host;
mod image;
mod int;
mod launch;
mod link;
mod mbarrier;
mod memory;
mod minmax;
mod op;
mod parallel;
mod pool;
mod program;
mod regs;
mod rows;
mod sign;
pub mod soft;
mod tensor;
mod texture;
pub mod timing;
pub mod verify;
mod warp;
mod watch;
mod wide;
mod xu;

pub use error::{Fault, MissingForm, PrepareError, Space, Trap};
pub use image::{Channel, Edge, Image};
pub use launch::{Launch, LaunchError, Outcome, launch};
pub use memory::{Buffer, Memory};
pub use program::{Param, Program, Section};
pub use regs::{LANES, Mask};
pub use rows::use_portable;
pub use warp::Warp;
pub use watch::{Access, Doing, Step, Watch};
