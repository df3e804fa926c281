//! What happened to a file: data for `--json`, and the lines that people read.
//!
//! The lines are made here, not in the program, so that the log of a load-time rewrite and the output of `apply` are the
//! same words.

use std::fmt;

use passes::count;
use serde::Serialize;

use crate::config::Mode;
use crate::cost::Costs;

/// The outcome for a whole file, image by image in file order.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// The device images of the file.
    pub images: Vec<ImageReport>,
    /// Images for GPUs that the project does not know: place and reason.
    pub passed_over: Vec<String>,
}

/// One device image (a cubin, alone or inside a container).
#[derive(Clone, Debug, Serialize)]
pub struct ImageReport {
    /// Where in the file it is; empty when the file is the image.
    pub path: String,
    /// The target, as `sm_87`.
    pub target: String,
    /// Kernels that the configuration names, in file order.
    pub kernels: Vec<KernelReport>,
    /// How many kernels the configuration does not name; they are byte-identical.
    pub not_named: usize,
    /// Why the image was left alone as a whole, if it was.
    pub left_alone: Option<String>,
    /// What was written, if anything was.
    pub patch: Option<PatchReport>,
}

/// What a patch changed.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct PatchReport {
    /// Kernels whose code changed.
    pub kernels: usize,
    /// Instructions that changed, came or went.
    pub instructions: usize,
    /// Kernels whose instructions have other places now.
    pub moved: usize,
    /// Bytes that the file has more than before.
    pub grown: i64,
    /// True when attributes were rewritten too.
    pub nv_info_updated: bool,
}

impl fmt::Display for PatchReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let info = if self.nv_info_updated { "updated" } else { "unchanged" };
        let how = match (self.moved, self.grown) {
            (0, _) => "in place".to_owned(),
            (n, 0) => format!("with other places in {}", count(n, "kernel")),
            (n, bytes) => format!("with other places in {} ({bytes:+} bytes)", count(n, "kernel")),
        };
        write!(f, "patch: .text rewritten {how}, .nv.info {info} - ABI unchanged")
    }
}

/// One kernel that the configuration names.
#[derive(Clone, Debug, Serialize)]
pub struct KernelReport {
    /// The kernel's name as the file has it.
    pub name: String,
    /// The target, as `sm_87`.
    pub target: String,
    /// Number of instructions, padding included.
    pub instructions: usize,
    /// What each pass did, in the order they ran.
    pub passes: Vec<PassReport>,
    /// Instructions that changed, came or went.
    pub changed: usize,
    /// Of these, or beside them: instructions that got other scheduling bits, because with the old ones the edits would make a hazard.
    pub rescheduled: usize,
    /// The register count, where the new code needs more than the file gave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub registers: Option<u32>,
    /// The maximum that the file declared (`EIATTR_MAXREG_COUNT`), where `registers` is more, so that it rises to that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raised_maximum: Option<u32>,
    /// Why the kernel is byte-identical although a pass in apply mode was to rewrite it.
    pub left_alone: Option<String>,
    /// What passes that are for speed or registers cost and bring, where they changed something.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub costs: Option<Costs>,
    /// What executing the kernel before and after has shown, where somebody did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verified: Option<Verified>,
}

/// What executing a kernel and what became of it has shown.
#[derive(Clone, Debug, Serialize)]
pub struct Verified {
    /// Launches after which memory was compared.
    pub launches: u32,
    /// Why none could be, if so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_tried: Option<String>,
}

impl fmt::Display for Verified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.not_tried {
            Some(why) => write!(f, "verify: not tried: {why}"),
            None => write!(
                f,
                "verify: {}, the same memory",
                count(self.launches as usize, "launch")
            ),
        }
    }
}

impl KernelReport {
    /// `lift: sm_87 mul_mat_q4_K - 1204 instructions`
    pub fn lift_line(&self) -> String {
        format!(
            "lift: {} {} - {} instructions",
            self.target, self.name, self.instructions
        )
    }
}

/// One pass on one kernel.
#[derive(Clone, Debug, Serialize)]
pub struct PassReport {
    /// The pass.
    pub name: String,
    /// Rewrite or report.
    pub mode: Mode,
    /// Places it fires at.
    pub sites: usize,
    /// Instructions it rewrites.
    pub ops: usize,
    /// What it did, in its own words.
    pub headline: Option<String>,
    /// Places it looked at and left alone.
    pub skipped: Vec<SkippedSite>,
    /// Remarks.
    pub notes: Vec<String>,
    /// Why it did nothing at all.
    pub refused: Option<String>,
}

/// A place that a pass left alone.
#[derive(Clone, Debug, Serialize)]
pub struct SkippedSite {
    /// Byte offset in the kernel's code.
    pub offset: u64,
    /// Why.
    pub reason: String,
}

impl fmt::Display for PassReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} [{}]: ", self.name, self.mode)?;
        match (&self.refused, self.mode) {
            (Some(why), _) => write!(f, "refused - {why}"),
            (None, Mode::Report) => write!(f, "would fire at {} - no bytes changed", count(self.sites, "site")),
            (None, Mode::Apply) if self.sites == 0 => f.write_str("fires nowhere - no bytes changed"),
            (None, Mode::Apply) => match &self.headline {
                Some(headline) => write!(f, "{headline} ({} rewritten)", count(self.ops, "op")),
                None => write!(f, "{} rewritten ({})", count(self.sites, "site"), count(self.ops, "op")),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pass(mode: Mode, sites: usize) -> PassReport {
        PassReport {
            name: "ffma-deftz".into(),
            mode,
            sites,
            ops: sites,
            headline: None,
            skipped: vec![],
            notes: vec![],
            refused: None,
        }
    }

    #[test]
    fn lines() {
        assert_eq!(
            pass(Mode::Report, 61).to_string(),
            "ffma-deftz [report]: would fire at 61 sites - no bytes changed"
        );
        assert_eq!(
            pass(Mode::Report, 1).to_string(),
            "ffma-deftz [report]: would fire at 1 site - no bytes changed"
        );
        assert_eq!(
            pass(Mode::Apply, 0).to_string(),
            "ffma-deftz [apply]: fires nowhere - no bytes changed"
        );
        let mut p = pass(Mode::Apply, 2);
        p.headline = Some("2 warp-uniform webs migrated".into());
        p.ops = 14;
        assert_eq!(
            p.to_string(),
            "ffma-deftz [apply]: 2 warp-uniform webs migrated (14 ops rewritten)"
        );
        p.refused = Some("IMAD at 0x0010: no".into());
        assert_eq!(p.to_string(), "ffma-deftz [apply]: refused - IMAD at 0x0010: no");
        let patch = PatchReport {
            kernels: 1,
            instructions: 61,
            moved: 0,
            grown: 0,
            nv_info_updated: false,
        };
        assert_eq!(
            patch.to_string(),
            "patch: .text rewritten in place, .nv.info unchanged - ABI unchanged"
        );
        let moved = PatchReport {
            moved: 1,
            grown: 128,
            nv_info_updated: true,
            ..patch
        };
        assert_eq!(
            moved.to_string(),
            "patch: .text rewritten with other places in 1 kernel (+128 bytes), .nv.info updated - ABI unchanged"
        );
    }
}
