//! Files whose kernels are there in Mercury form too (sm_100 and up).

use crate::Error;
use crate::Which;
use crate::open::Opened;

/// What a user should know when such a file is rewritten.
pub const WARNING: &str = "the kernels are there in Mercury form too, which stays as it was: a driver may build its code from that (--strip-mercury takes it out)";

/// True if an image of the file that has Mercury sections was rewritten: `new` is `old` with some of its images replaced.
pub fn is_stale(old: &[u8], new: &[u8]) -> Result<bool, Error> {
    if old == new {
        return Ok(false);
    }
    let (old, new) = (Opened::new(old)?, Opened::new(new)?);
    let (before, after) = (old.images(Which::default())?, new.images(Which::default())?);
    let mut pairs = before.list.iter().zip(&after.list);
    Ok(pairs.any(|(b, a)| a.image.abi().mercury && b.image.bytes() != a.image.bytes()))
}

/// The file with the Mercury sections of every image taken out.
pub fn strip(bytes: &[u8]) -> Result<Vec<u8>, Error> {
    let opened = Opened::new(bytes)?;
    let images = opened.images(Which::default())?;
    let mut replaced = Vec::new();
    for open in &images.list {
        let stripped = cubin::mercury::strip(&open.image).map_err(|cause| Error::Cubin {
            image: open.path.to_owned(),
            cause,
        })?;
        replaced.extend(stripped.map(|b| (open.index, b)));
    }
    opened.rebuild(&replaced)
}
