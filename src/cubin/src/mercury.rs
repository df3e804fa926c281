//! Mercury: from sm_100 on, cubins hold their kernels in a second form, from which a driver may build the code again.

use crate::{CubinError, Image};

/// Section headers in the file.
const SECTION_HEADER: usize = 64;
/// Low byte of `e_flags` (ABI 8): the file has Mercury, or SASS alone.
const WITH: u8 = 2;
const SASS_ONLY: u8 = 4;

/// The file without its Mercury sections; `None` if it has none. Their headers become null ones and their bytes stay where they are, so
/// that no index and no offset moves.
pub fn strip(image: &Image<'_>) -> Result<Option<Vec<u8>>, CubinError> {
    if !image.abi().mercury {
        return Ok(None);
    }
    let mut bytes = image.bytes().to_vec();
    let table = image.header().section_table as usize;
    let is_mercury = |name: &str| name.starts_with(".nv.merc.") || name.starts_with(".nv.capmerc.");
    for section in image.sections().iter().filter(|s| is_mercury(s.name)) {
        let header = table + SECTION_HEADER * section.index;
        bytes[header..header + SECTION_HEADER].fill(0);
    }
    // `e_flags` is at 48.
    bytes[48] = bytes[48] & !WITH | SASS_ONLY;
    Ok(Some(bytes))
}
