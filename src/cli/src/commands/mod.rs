//! One command a file.

pub mod apply;
pub mod asm;
pub mod check;
pub mod cycles;
pub mod diff;
pub mod disasm;
pub mod info;
pub mod lift;
pub mod lower;
pub mod nops;
pub mod passes;
pub mod pressure;
pub mod regalloc;
pub mod roundtrip;
pub mod run;
pub mod schedule;
pub mod verify;
