//! One pass on one kernel: what it found, what its edits may change. The same for every representation.

use std::panic::{AssertUnwindSafe, catch_unwind};

use isa::Isa;
use passes::{Context, Options, Pass, PassResult, Resources};

use crate::allowed;
use crate::config::Mode;
use crate::mask::AllowedBits;
use crate::report::{PassReport, SkippedSite};

/// What a pass found.
pub struct Found {
    /// For people and `--json`.
    pub report: PassReport,
    /// What is to be done; empty in mode `report`.
    pub edits: ir::EditList,
    /// The bits that the edits name.
    pub allowed: AllowedBits,
    /// Why the kernel is to stay as it was.
    pub failed: Option<String>,
}

/// What the file says about a kernel that its code does not show.
#[derive(Clone, Debug, Default)]
pub struct Place {
    /// Where its parameters lie in constant bank 0 (bytes), where the file says so.
    pub params: Option<(u32, u32)>,
    /// Byte offsets, ascending, of instructions that have to stay what and where they are.
    pub pinned: Vec<u64>,
    /// What it takes of the hardware.
    pub resources: Resources,
}

/// Runs a pass on a kernel and changes nothing.
pub fn look(
    isa: &'static Isa,
    kernel: &ir::Kernel,
    place: &Place,
    pass: &dyn Pass,
    options: &Options,
    mode: Mode,
) -> Found {
    let name = pass.name();
    let cx = Context {
        isa,
        params: place.params,
        pinned: &place.pinned,
        resources: &place.resources,
    };
    let nothing = |refused: String, failed| Found {
        report: report(name, mode, PassResult::default(), Some(refused)),
        edits: ir::EditList::default(),
        allowed: AllowedBits::default(),
        failed,
    };
    let broken = |why: String| nothing(why.clone(), (mode == Mode::Apply).then_some(why));
    let mut result = match guarded(|| pass.run(&cx, kernel, options)) {
        Ok(Ok(PassResult { broken: Some(why), .. })) => return broken(format!("pass {name}: {why}")),
        Ok(Ok(result)) => result,
        Ok(Err(refusal)) => return nothing(refusal.to_string(), None),
        Err(panic) => return broken(format!("pass {name} panicked: {panic}")),
    };
    let edits = std::mem::take(&mut result.edits);
    let mut found = Found {
        report: report(name, mode, result, None),
        edits: ir::EditList::default(),
        allowed: AllowedBits::default(),
        failed: None,
    };
    if mode == Mode::Apply {
        match allowed::by_edits(isa, kernel, &edits, &mut found.allowed) {
            Ok(()) => found.edits = edits,
            Err(e) => found.failed = Some(format!("pass {name}: {e}")),
        }
    }
    found
}

fn report(name: &str, mode: Mode, found: PassResult, refused: Option<String>) -> PassReport {
    PassReport {
        name: name.to_owned(),
        mode,
        sites: found.sites,
        ops: found.ops,
        headline: found.headline,
        skipped: found
            .skipped
            .into_iter()
            .map(|s| SkippedSite {
                offset: s.offset,
                reason: s.reason,
            })
            .collect(),
        notes: found.notes,
        refused,
    }
}

/// Runs something that may panic (a pass may be anybody's code) and gives the panic's message.
pub(crate) fn guarded<T>(f: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(f)).map_err(|payload| {
        let text = payload.downcast_ref::<&str>().map(|s| (*s).to_owned());
        text.or_else(|| payload.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "no message".to_owned())
    })
}
