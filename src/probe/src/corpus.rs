//! Cubins of the corpora, for the gates that look at whole kernels.

use cubin::{CubinError, Image};
use isa::{Isa, Target};

/// Reads a cubin; none if it is for a GPU that the project does not serve, of which old libraries hold many.
pub fn image(bytes: &[u8]) -> Result<Option<Image<'_>>, CubinError> {
    match Image::parse(bytes) {
        Err(CubinError::UnknownTarget { .. }) => Ok(None),
        read => read.map(Some),
    }
}

/// Whether a target's tables are those of the one that is asked for, if one is, which must be one that is embedded.
pub fn is_wanted(target: Target, sm: Option<Target>) -> bool {
    let tables = |target| Isa::for_target(target).ok();
    sm.is_none_or(|sm| tables(sm).zip(tables(target)).is_some_and(|(a, b)| a.same_tables(b)))
}
