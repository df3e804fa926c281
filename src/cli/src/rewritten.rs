//! Kernels that `apply` rewrote, executed on the emulator before and after.

use std::collections::BTreeMap;

use anyhow::Result;
use cubin::Image;
use emu::Program;
use emu::verify::{self, Options};
use engine::report::{Report, Verified};
use engine::{Opened, Which};

/// What the emulator says of every kernel that changed, and those of which it says that they compute something else: by image and name, the
/// reason.
pub struct Tried {
    verified: BTreeMap<(String, String), Verified>,
    /// Kernels that have to stay as they were.
    pub different: BTreeMap<(String, String), String>,
}

/// Launches every kernel that `report` says was rewritten, as it was in `old` and as it is in `new`.
pub fn try_rewritten(old: &[u8], new: &[u8], which: Which, report: &Report, options: &Options) -> Result<Tried> {
    let (old, new) = (Opened::new(old)?, Opened::new(new)?);
    let (before, after) = (old.images(which)?, new.images(which)?);
    let mut tried = Tried {
        verified: BTreeMap::new(),
        different: BTreeMap::new(),
    };
    for (a, b) in before.list.iter().zip(&after.list) {
        let images = report.images.iter().filter(|i| i.path == a.path);
        for kernel in images.flat_map(|i| &i.kernels).filter(|k| k.changed > 0) {
            let key = (a.path.to_owned(), kernel.name.clone());
            match one(&a.image, &b.image, &kernel.name, options) {
                Ok(verified) => drop(tried.verified.insert(key, verified)),
                Err(why) => drop(tried.different.insert(key, why)),
            }
        }
    }
    Ok(tried)
}

/// The error says that the kernels compute different things, and where that shows.
fn one(before: &Image<'_>, after: &Image<'_>, name: &str, options: &Options) -> Result<Verified, String> {
    let not_tried = |why: String| {
        Ok(Verified {
            launches: 0,
            not_tried: Some(why),
        })
    };
    let (first, second) = match (Program::new(before, name), Program::new(after, name)) {
        (Ok(first), Ok(second)) => (first, second),
        (Err(e), _) | (_, Err(e)) => return not_tried(e.to_string()),
    };
    let found = match verify::verify(&first, &second, options) {
        Ok(found) => found,
        Err(e) => return not_tried(e.to_string()),
    };
    if let Some(d) = &found.difference {
        let place = match (&d.at, &d.stop) {
            (Some((buffer, offset)), _) => format!("{buffer} at offset {offset}"),
            (None, Some(stop)) => format!("it stops: {stop}"),
            (None, None) => "what it leaves behind".to_owned(),
        };
        return Err(format!("on the emulator it does something else: {place}"));
    }
    if found.compared == 0 {
        return not_tried("no launch was found on which the kernel ends".to_owned());
    }
    Ok(Verified {
        launches: found.compared,
        not_tried: None,
    })
}

impl Tried {
    /// Writes down what was found.
    pub fn note(self, report: &mut Report) {
        for image in &mut report.images {
            for kernel in &mut image.kernels {
                kernel.verified = self.verified.get(&(image.path.clone(), kernel.name.clone())).cloned();
            }
        }
    }
}
