//! Runs passes over the kernels of a file and writes the result back into it.
//!
//! [`apply`] is the whole job as one call: bytes and a [`Config`] in, new bytes and a [`Report`] out. It prints nothing and
//! touches no file, so that the program and a load-time hook run the same code.
//!
//! The promise: kernels that the configuration does not name come back byte-identical; in the others only bits change that an edit names
//! ([`mask`]), scheduling bits where the edits would make a hazard, and code offsets where edits give instructions other places; whatever goes
//! wrong leaves that kernel as it was, with the reason in the report.

mod allowed;
pub mod capi;
pub mod config;
mod cost;
mod error;
mod grown;
mod lower;
pub mod mask;
pub mod mercury;
pub mod moving;
mod named;
mod open;
mod placed;
pub mod plugins;
pub mod regalloc;
mod replace;
pub mod report;
mod representation;
pub mod reschedule;
mod resources;
pub mod roundtrip;
mod run;
mod schedule;
mod step;
pub mod timing;

pub use config::{Config, ConfigError, ConfigErrors, Entry, Mode};
pub use cost::Costs;
pub use error::Error;
pub use lower::{Lowered, lower, put_lowered};
pub use mask::AllowedBits;
pub use open::{Images, OpenImage, Opened, Which};
pub use regalloc::regalloc;
pub use replace::replace_code;
pub use report::Report;
pub use representation::{Internal, Job, Ran, Representation};
pub use reschedule::reschedule;
pub use roundtrip::{roundtrip, roundtrip_in};
pub use run::{KernelText, Options, Outcome, apply, apply_in};
pub use step::{Found, Place, look};
