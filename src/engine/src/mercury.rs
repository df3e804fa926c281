//! Files whose kernels are there in Mercury form too (sm_100 and up).

use crate::Error;
use crate::Which;
use crate::open::Opened;

/// What a user should know when such a file is rewritten.
pub const WARNING: &str = "the kernels are there in Mercury form too, which stays as it was: a driver may build its code from that (--strip-mercury takes it out)";

/// True if an image of the file has Mercury sections.
pub fn is_in(bytes: &[u8]) -> Result<bool, Error> {
    let opened = Opened::new(bytes)?;
    let images = opened.images(Which::default())?;
    Ok(images.list.iter().any(|i| i.image.abi().mercury))
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
