//! What an instruction does beyond the registers that it names: rows of `opcodes/semantics.tsv`.

use crate::blob::Reader;
use crate::field::{Dir, RegFile};

/// A set of effects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Effects(u16);

impl Effects {
    /// Reads memory.
    pub const READ: Self = Self(1);
    /// Writes memory.
    pub const WRITE: Self = Self(1 << 1);
    /// Reads and writes memory in one step.
    pub const ATOMIC: Self = Self(1 << 2);
    /// Orders memory accesses: nothing moves across it.
    pub const FENCE: Self = Self(1 << 3);
    /// Waits for or signals others.
    pub const BARRIER: Self = Self(1 << 4);
    /// Convergence state, call stack, scheduling.
    pub const CONTROL: Self = Self(1 << 5);
    /// A value that no operand names and that can change: clocks, special registers.
    pub const STATE: Self = Self(1 << 6);

    /// Whether there are none.
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Whether any of `other` is in it.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Both sets together.
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

macro_rules! coded {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $($(#[$vdoc])* $variant,)* }

        impl $name {
            fn from_code(code: u8) -> Self {
                let all = [$(Self::$variant,)*];
                all.get(usize::from(code)).copied().unwrap_or(all[0])
            }
        }
    };
}

coded! {
    /// What memory the effects are on.
    Space {
        /// No memory.
        None,
        /// Any of global, shared, local.
        Generic,
        /// Device memory.
        Global,
        /// Shared memory of the block.
        Shared,
        /// Memory of the thread.
        Local,
        /// Does not change while the kernel runs.
        Constant,
        /// Through the texture units.
        Texture,
        /// Through the surface units.
        Surface,
        /// Graphics stages.
        Attribute,
        /// Tensor memory of the multiprocessor.
        Tensor,
    }
}

coded! {
    /// How an instruction ends a block; if its guard can be false, control also falls through.
    Terminator {
        /// It does not.
        None,
        /// To a label.
        Branch,
        /// To an address in a register.
        BranchIndirect,
        /// The thread ends.
        Exit,
        /// To an address that a call left.
        Return,
        /// Ends a block only if it does not come back.
        Call,
        /// The thread ends (graphics).
        Kill,
        /// Into the trap handler.
        Trap,
    }
}

coded! {
    /// The hardware pipe.
    Pipe {
        /// None.
        None,
        /// Integer and logic.
        Alu,
        /// Single-precision multiply-add and integer multiply.
        Fma,
        /// Half precision.
        Fp16,
        /// Double precision.
        Fp64,
        /// Transcendentals and conversions.
        Xu,
        /// Loads and stores.
        Lsu,
        /// Textures.
        Tex,
        /// Matrix multiply.
        Tensor,
        /// The uniform datapath.
        Uniform,
        /// Barriers and address divergence.
        Adu,
        /// Control and branches.
        Cbu,
    }
}

coded! {
    /// How a consumer knows that the result is there.
    Latency {
        /// There is no result.
        None,
        /// After a number of cycles that stall counts must cover.
        Fixed,
        /// By a scoreboard.
        Scoreboard,
        /// Depends on target or operands.
        Either,
    }
}

/// Registers touched though no operand names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Implicit {
    /// File.
    pub file: RegFile,
    /// Direction.
    pub dir: Dir,
    /// First register.
    pub first: u8,
    /// Last register.
    pub last: u8,
}

/// One row: what an instruction does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Semantics {
    /// False where the table has no row: passes must leave the kernel alone.
    pub known: bool,
    /// Effects.
    pub effects: Effects,
    /// On what memory.
    pub space: Space,
    /// Depends on which lanes are active: may not move into or out of divergent code.
    pub convergence: bool,
    /// How it ends a block.
    pub terminator: Terminator,
    /// Control can go on behind it though its guard and predicates hold: which lanes are active decides.
    pub conditional: bool,
    /// Mnemonic that does the same on the uniform datapath, where the target has it.
    pub uniform: Option<&'static str>,
    /// Pipe class.
    pub pipe: Pipe,
    /// How its result is awaited.
    pub latency: Latency,
    /// Registers touched implicitly.
    pub implicit: Box<[Implicit]>,
    pub(crate) mnemonic: &'static str,
    pub(crate) tokens: Box<[&'static str]>,
}

impl Semantics {
    /// What stands for a form without a row.
    pub(crate) fn opaque() -> Self {
        Self {
            known: false,
            effects: Effects(0x7f),
            space: Space::Generic,
            convergence: true,
            terminator: Terminator::None,
            conditional: false,
            uniform: None,
            pipe: Pipe::None,
            latency: Latency::Either,
            implicit: [].into(),
            mnemonic: "",
            tokens: [].into(),
        }
    }

    pub(crate) fn read(mut r: Reader) -> Self {
        let mnemonic = r.string();
        let tokens = r.list(|r| r.string()).into();
        let effects = Effects(r.size() as u16);
        let space = Space::from_code(r.u8());
        let convergence = r.flag();
        let terminator = Terminator::from_code(r.u8());
        let conditional = r.flag();
        let uniform = Some(r.string()).filter(|s| !s.is_empty());
        Self {
            known: true,
            effects,
            space,
            convergence,
            terminator,
            conditional,
            uniform,
            pipe: Pipe::from_code(r.u8()),
            latency: Latency::from_code(r.u8()),
            implicit: r
                .list(|r| {
                    let dir = Dir::from_code(r.u8());
                    let file = RegFile::from_code(r.u8()).unwrap_or(RegFile::R);
                    Implicit {
                        file,
                        dir,
                        first: r.u8(),
                        last: r.u8(),
                    }
                })
                .into(),
            mnemonic,
            tokens,
        }
    }
}
