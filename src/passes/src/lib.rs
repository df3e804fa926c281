//! The portable passes: each looks at one kernel in SSA and returns an edit list; it changes nothing itself.
//!
//! One pass a file. A pass is written once, over [`ir::Kernel`], and runs wherever the engine runs: on the command line,
//! on the device, inside a process that loads kernels. To add one: write the file, implement [`Pass`], list it in
//! `builtin!`.

mod alignment;
mod block_order;
mod const_bank_fold;
pub mod convergence;
mod copies;
mod copy_prop;
mod dce;
mod ffma_deftz;
mod frame;
mod ldg_vectorize;
mod occupancy;
mod options;
mod other_form;
mod reg_shrink;
mod reschedule;
mod retarget_param;
mod reuse_flags;
mod scalar_to_uniform;
mod spill_elim;
mod threads;
mod uniform_registers;
pub mod uniformity;
mod values;
mod yield_tune;

use std::ops::Range;

pub use const_bank_fold::ConstBankFold;
pub use copy_prop::CopyProp;
pub use dce::Dce;
pub use ffma_deftz::FfmaDeftz;
pub use ldg_vectorize::LdgVectorize;
pub use options::{OptionError, OptionKind, OptionSpec, OptionValue, Options};
pub use reg_shrink::RegShrink;
pub use reschedule::{Reschedule, may_move};
pub use retarget_param::RetargetParam;
pub use reuse_flags::ReuseFlags;
pub use scalar_to_uniform::ScalarToUniform;
pub use spill_elim::SpillElim;
pub use yield_tune::YieldTune;

/// What a pass may know beside the kernel.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The instruction set of the kernel's target.
    pub isa: &'static isa::Isa,
    /// Where the kernel's parameters lie in constant bank 0 (bytes), where the file says so.
    pub params: Option<(u32, u32)>,
    /// Byte offsets, ascending, of instructions that have to stay what and where they are: the file names them, or they are of a collective
    /// ([`ir::Collective`]), which lanes of other places run too.
    pub pinned: &'a [u64],
    /// What the kernel takes of the hardware.
    pub resources: &'a Resources,
}

/// What a kernel takes of the hardware, as its file says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resources {
    /// Registers of a thread, where the file says so.
    pub registers: Option<u32>,
    /// Threads of a block, where the kernel fixes or limits them.
    pub threads: Option<u32>,
    /// Bytes of static shared memory of a block.
    pub shared: u32,
    /// Registers that the file names: they keep their values, and get no others. `None` where they cannot be told.
    pub fixed: Option<Vec<ir::Pin>>,
}

impl Context<'_> {
    /// The parameter area as a range of byte offsets in constant bank 0.
    pub fn param_range(&self) -> Option<Range<u32>> {
        self.params.map(|(start, end)| start..end)
    }
}

/// A rewriting pass.
pub trait Pass: Send + Sync {
    /// The name in `pass.toml`.
    fn name(&self) -> &str;

    /// One line for people: what it does.
    fn summary(&self) -> &str;

    /// What the user accepts by asking for it, if the rewritten kernel may compute other bits. Printed with every report.
    fn caution(&self) -> Option<&str> {
        None
    }

    /// True for a pass that is there to make a kernel faster or to free registers: where estimates say that it does neither, the kernel stays.
    fn is_for_gain(&self) -> bool {
        false
    }

    /// True for a pass after which the kernel may need fewer registers than its file gives, and is to get no more than it needs.
    fn gives_registers_back(&self) -> bool {
        false
    }

    /// True for a pass that only MLIR has: `run` refuses.
    fn is_native(&self) -> bool {
        false
    }

    /// The options it takes.
    fn options(&self) -> &[OptionSpec] {
        &[]
    }

    /// Checks what types and ranges cannot say, before any kernel is read.
    fn check(&self, _options: &Options) -> Result<(), OptionError> {
        Ok(())
    }

    /// Looks at one kernel and says what it would change.
    fn run(&self, cx: &Context<'_>, kernel: &ir::Kernel, options: &Options) -> Result<PassResult, Refusal>;
}

/// What a pass found in one kernel.
#[derive(Clone, Debug, Default)]
pub struct PassResult {
    /// The changes, to be applied only in apply mode.
    pub edits: ir::EditList,
    /// How many places the pass fires at.
    pub sites: usize,
    /// How many instructions the edits rewrite.
    pub ops: usize,
    /// What was done, as `2 warp-uniform webs migrated`; the default is `N sites rewritten`.
    pub headline: Option<String>,
    /// Places that the pass looked at and left alone, with the reason.
    pub skipped: Vec<Skipped>,
    /// Remarks for the user.
    pub notes: Vec<String>,
    /// Why the pass itself failed: its kernel stays as it was, and nothing else here counts.
    pub broken: Option<String>,
}

/// A place that a pass left alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// Byte offset of the instruction in the kernel's code.
    pub offset: u64,
    /// Why.
    pub reason: String,
}

/// The pass will not touch this kernel, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refusal(pub String);

/// The instructions of a kernel with their byte offsets in the code, in address order.
pub fn instructions(kernel: &ir::Kernel) -> impl Iterator<Item = (u64, ir::OpId, isa::Inst)> + '_ {
    let code = kernel.ops().filter_map(|op| op.inst().map(|inst| (op.id(), inst)));
    code.zip((0u64..).step_by(16))
        .map(|((id, inst), offset)| (offset, id, inst))
}

/// Whether an operation is of a collective, which lanes of other places run too: then it stays as it is.
pub(crate) fn of_collective(isa: &isa::Isa, kernel: &ir::Kernel) -> impl Fn(ir::OpId) -> bool + use<> {
    let all = ir::collectives(isa, kernel);
    move |op| all.iter().any(|c| c.holds(op))
}

/// `1 site`, `2 sites`; `2 launches`.
pub fn count(n: usize, what: &str) -> String {
    let ending = match n {
        1 => "",
        _ if what.ends_with("ch") => "es",
        _ => "s",
    };
    format!("{n} {what}{ending}")
}

macro_rules! builtin {
    ($($pass:ident),*) => {
        /// The passes of this crate.
        pub const BUILTIN: &[&dyn Pass] = &[$(&$pass),*];

        /// The name of each and its options, for lists elsewhere that are held against these while they are compiled.
        pub const BUILTIN_OPTIONS: &[(&str, &[OptionSpec])] = &[$(($pass::NAME, $pass::OPTIONS)),*];
    };
}
builtin!(
    ConstBankFold,
    CopyProp,
    Dce,
    FfmaDeftz,
    LdgVectorize,
    RegShrink,
    Reschedule,
    RetargetParam,
    ReuseFlags,
    ScalarToUniform,
    SpillElim,
    YieldTune
);

/// The passes that a configuration can name.
#[derive(Clone)]
pub struct Registry<'a> {
    passes: Vec<&'a dyn Pass>,
    /// Where passes are that are not here, to tell whoever names one.
    pub elsewhere: Option<String>,
}

impl Default for Registry<'_> {
    fn default() -> Self {
        Registry {
            passes: BUILTIN.to_vec(),
            elsewhere: None,
        }
    }
}

impl<'a> Registry<'a> {
    /// Adds a pass; a name that is already taken is an error, so that nothing is replaced in silence.
    pub fn add(&mut self, pass: &'a dyn Pass) -> Result<(), DuplicatePass> {
        if self.get(pass.name()).is_some() {
            return Err(DuplicatePass(pass.name().to_owned()));
        }
        self.passes.push(pass);
        Ok(())
    }

    /// Finds a pass by name.
    pub fn get(&self, name: &str) -> Option<&'a dyn Pass> {
        self.passes.iter().copied().find(|p| p.name() == name)
    }

    /// All passes, in the order they were added.
    pub fn iter(&self) -> impl Iterator<Item = &'a dyn Pass> + '_ {
        self.passes.iter().copied()
    }
}

/// Two passes of one name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a pass named `{0}` is already there; give the plugin's pass another name")]
pub struct DuplicatePass(pub String);
