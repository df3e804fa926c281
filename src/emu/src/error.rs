//! What can go wrong, and where.

use std::fmt;

/// An address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Space {
    /// Device memory.
    Global,
    /// Memory of a block.
    Shared,
    /// Memory of a thread.
    Local,
    /// A constant bank.
    Constant,
}

impl fmt::Display for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Global => "global",
            Self::Shared => "shared",
            Self::Local => "local",
            Self::Constant => "constant",
        })
    }
}

/// Why execution stopped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Trap {
    /// An address that no buffer covers.
    #[error("{access} of {size} bytes at {space} address {address:#x} is out of bounds{near}")]
    OutOfBounds {
        /// `load`, `store`, `atomic`.
        access: &'static str,
        /// Space.
        space: Space,
        /// First byte.
        address: u64,
        /// Bytes.
        size: u32,
        /// The nearest buffer, in words.
        near: String,
    },
    /// An address that is no multiple of the access's size.
    #[error("{access} of {size} bytes at {space} address {address:#x} is misaligned")]
    Misaligned {
        /// `load`, `store`, `atomic`.
        access: &'static str,
        /// Space.
        space: Space,
        /// First byte.
        address: u64,
        /// Bytes.
        size: u32,
    },
    /// What a whole warp must do together was reached by some of its lanes.
    #[error("only lanes {0:#010x} are here, and the whole warp has to be")]
    PartOfWarp(u32),
    /// A rule of the memory checker.
    #[error("{0}")]
    Check(String),
    /// A form that the emulator does not know was reached.
    #[error("not emulated: {0}")]
    Missing(String),
    /// Control went where there is no code.
    #[error("a jump to {0:#x}, where there is no code")]
    BadJump(u64),
    /// `BPT.TRAP`, `__trap()`.
    #[error("the kernel trapped")]
    Trapped,
    /// `assert()` in the kernel.
    #[error("assertion failed: {0}")]
    Assert(String),
    /// Nothing can run any more, and not everything has ended.
    #[error("deadlock: {0}")]
    Deadlock(String),
    /// More steps than allowed.
    #[error("no end after {0} warp instructions (--max-steps raises the limit)")]
    TooLong(u64),
}

/// A trap and where it was raised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Kernel.
    pub kernel: String,
    /// Code section, which is another one in a device function.
    pub section: String,
    /// Byte offset in the section.
    pub offset: u64,
    /// The instruction's text.
    pub text: String,
    /// Block.
    pub block: [u32; 3],
    /// The first thread concerned.
    pub thread: [u32; 3],
    /// Why.
    pub trap: Trap,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.block;
        let [a, b, c] = self.thread;
        write!(f, "{}", self.kernel)?;
        if self.section != self.kernel {
            write!(f, " ({})", self.section)?;
        }
        write!(
            f,
            " at {:#06x} `{}`, block ({x},{y},{z}), thread ({a},{b},{c}): {}",
            self.offset, self.text, self.trap
        )
    }
}

impl std::error::Error for Fault {}

/// Why a kernel cannot be prepared or launched.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// No code of that name.
    #[error("no kernel `{0}`; `sass2mlir info` lists them")]
    NoKernel(String),
    /// The target's tables are missing.
    #[error(transparent)]
    Isa(#[from] isa::IsaError),
    /// The file is damaged.
    #[error(transparent)]
    Cubin(#[from] cubin::CubinError),
    /// Forms without an execution.
    #[error("{kernel}: not emulated: {}", shortened(.list))]
    Missing {
        /// Kernel.
        kernel: String,
        /// Instructions, in order.
        list: Vec<MissingForm>,
    },
    /// Anything else.
    #[error("{kernel}: {what}")]
    Other {
        /// Kernel.
        kernel: String,
        /// What, and the cure.
        what: String,
    },
}

/// The first few of a list, and how many more there are.
fn shortened(list: &[MissingForm]) -> String {
    const SHOWN: usize = 4;
    let shown: Vec<String> = list.iter().take(SHOWN).map(ToString::to_string).collect();
    match list.len().saturating_sub(SHOWN) {
        0 => shown.join("; "),
        more => format!("{}; and {more} more", shown.join("; ")),
    }
}

/// An instruction without an execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingForm {
    /// Mnemonic with modifiers, as it is printed.
    pub form: String,
    /// Code section.
    pub section: String,
    /// Byte offset in the section.
    pub offset: u64,
    /// What of it is not known.
    pub why: String,
}

impl fmt::Display for MissingForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {:#06x} ({})", self.form, self.offset, self.why)
    }
}
