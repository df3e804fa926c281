//! One kernel: control-flow graph, SSA, text without LLVM, lowering to code, edits.
//!
//! [`lift`] makes a [`Kernel`] from the code of a `.text` section, [`print_module`] and [`parse_module`] write and read the text of
//! lit/GRAMMAR.md, [`lower`] makes code again. What nobody edited comes back byte for byte.

mod addressed;
mod assemble;
mod calls;
mod cfg;
mod check;
mod collective;
mod describe;
mod edit;
mod graph;
mod isomorphism;
mod kernel;
mod layout;
mod layouts;
mod lex;
mod lift;
mod liveness;
mod lower;
mod made;
mod moving;
mod occupancy;
mod out;
mod parse;
mod parse_body;
mod parse_exact;
mod parse_inst;
mod parse_values;
mod parse_wordless;
mod parts;
mod pin;
mod print;
mod rebuild;
mod regalloc;
mod returns;
mod scan;
mod shape;
mod source;
mod ssa;
mod syntax;

pub use assemble::{MARK, Wordless, assemble, bind};
pub use collective::{Collective, collectives, same_body, same_collectives};
pub use edit::{Change, Changes, Edit, EditError, EditList};
pub use isomorphism::same_def_use;
pub use kernel::{Block, BlockId, Def, Kernel, Op, OpAccess, OpId, OpKind, Use, Uses, ValueId};
pub use layout::{Flow, Layout, Slot};
pub use layouts::LayoutCache;
pub use lex::ParseError;
pub use lift::{LiftError, lift};
pub use liveness::{Liveness, Pressure, each_instruction, pressure};
pub use lower::{LowerError, lower};
pub use moving::{Moved, Movement, Put, free_places, indirect_base, move_code, nop};
pub use occupancy::Multiprocessor;
pub use parse::parse_module;
pub use parts::{Parts, PartsError};
pub use pin::{Pin, zero_number};
pub use print::print_module;
pub use regalloc::{Allocated, Allocation, Constraints, allocate, may_take_registers, settle, top_register};
pub use source::Source;
pub use syntax::{Buffer, Sink, walk};
