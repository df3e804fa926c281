//! Hazards of machine code: what the scheduling bits must guarantee, and whether they do.
//!
//! The hardware does not interlock results of fixed latency: a stall count that is too short reads a stale register, silently. What takes
//! a variable time signals a scoreboard, and whoever needs it must wait for that. [`check`] follows every way through a kernel
//! ([`walk`], over [`state`]; into functions, but not what they leave in flight when they come back) and compares each dependence with the latency [`model`]. The numbers are data, in `latency/`:
//!
//! - `classes.csv`: what the model calls an instruction: its pipe of `opcodes/semantics.tsv`, split where latencies within a pipe differ.
//! - `nak.csv`: cycles between classes, from Mesa's NAK compiler (MIT): `sm75_instr_latencies.rs`, `sm80_instr_latencies.rs` (matrix products
//!   as of 2026: 16 and 24 cycles), `latencies/sm100/*.csv`, and what `sm120_instr_latencies.rs` adds to matrix products; there it adds to
//!   what overwrites the operands of `HMMA` only, and compilers leave as much behind `IMMA`. That the hardware waits for convergence
//!   barriers is what all of these say (1 cycle). Targets that it knows nothing of take the rows of
//!   the nearest: sm_70 and sm_72 those of sm_75, sm_90 those of sm_80 (of sm_100 for `R2UR`), all above sm_100 those of sm_100.
//! - `SM87.csv` and the like: the least gaps in vendor code, by `probe mine`. Of targets whose rows are another's they decide.
//! - `apart.csv`: rows of these that are not for some of the targets that share them.
//! - `spread.csv`: how much sooner or later than `alu` other classes read what only `alu` was seen to read.
//! - `akin.csv`: classes that were seen too rarely, and those whose numbers they take.
//! - `queues.csv`: which classes read operands or give results in order, and hand on what they sum up.
//! - `told.csv`: classes of whose results, or operands, only a scoreboard tells on some targets (`new`: only where bits are assigned anew).
//! - `views.csv`: fences that a scoreboard tells of, and what must come behind: seen in what `ptxas` makes of each PTX instruction behind
//!   each fence.

mod arrive;
mod assign;
mod check;
pub mod class;
pub mod code;
mod estimate;
mod fix;
pub mod model;
mod order;
pub mod plant;
mod repair;
mod returns;
mod reuse;
mod scoreboard;
mod sharing;
mod source;
pub mod state;
pub mod time;
mod views;
pub mod walk;

pub use assign::{Scheduled, assign, schedule};
pub use check::{Finding, Hazard, Report, SIGNAL, check, check_code};
pub use estimate::{Block, estimate};
pub use model::Model;
pub use repair::{Repaired, Unrepaired, repair, repair_code};
pub use reuse::more_reuse;
pub use sharing::conflicts;
pub use source::Source;
