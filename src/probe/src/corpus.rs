//! Cubins of the corpora, for the gates that look at whole kernels.

use cubin::{CubinError, Image};

/// Reads a cubin; none if it is for a GPU that the project does not serve, of which old libraries hold many.
pub fn image(bytes: &[u8]) -> Result<Option<Image<'_>>, CubinError> {
    match Image::parse(bytes) {
        Err(CubinError::UnknownTarget { .. }) => Ok(None),
        read => read.map(Some),
    }
}
