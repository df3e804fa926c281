//! Cubins and what holds them: read any, patch code in place.
//!
//! [`Image`] reads one cubin (ABI 7 or 8, executable or relocatable, every target of [`isa::Target`]): sections, symbols,
//! relocations, `.nv.info` attributes, and a [`Code`] for each section of machine code. [`Patch`] writes it back with code
//! replaced and every other byte as it was.
//!
//! [`Container`] finds the cubins in fatbins and in host programs, libraries, object files and archives, and puts changed
//! ones back.
//!
//! Every reader here takes hostile bytes: what is cut off, overlaps or contradicts itself is a [`CubinError`] that names
//! the section and the offset.

mod bytes;
pub mod code;
pub mod container;
mod debug_frame;
mod debug_moves;
pub mod elf;
mod error;
pub mod fatbin;
pub mod image;
mod line_program;
pub mod lines;
mod lz4;
pub mod mercury;
pub mod movement;
pub mod nvinfo;
mod params;
mod patch;
mod pointers;
mod rebuild;
mod relayout;
pub mod reloc;
mod rewrite;
mod target;

pub use code::Code;
pub use container::Container;
pub use debug_frame::frame_registers;
pub use error::CubinError;
pub use image::Image;
pub use lines::Lines;
pub use movement::{CodeMove, TableEntry};
pub use params::Param;
pub use patch::Patch;
pub use pointers::Pointer;
pub use target::Abi;
