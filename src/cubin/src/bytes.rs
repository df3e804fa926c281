//! Reads of little-endian fields that can fail but never panic.

use crate::CubinError;

/// `bytes[offset..offset + size]`, or an error that names `place`. `base` is what to add to an offset that is reported.
pub(crate) fn slice(bytes: &[u8], offset: u64, size: u64, place: impl FnOnce() -> String) -> Result<&[u8], CubinError> {
    let have = (bytes.len() as u64).saturating_sub(offset);
    if size > have || offset > bytes.len() as u64 {
        return Err(CubinError::Truncated {
            place: place(),
            offset,
            need: size,
            have,
        });
    }
    // Both fit into the slice's length, hence into usize.
    Ok(&bytes[offset as usize..(offset + size) as usize])
}

macro_rules! getter {
    ($name:ident, $t:ty) => {
        /// The little-endian value at `at`; 0 when it reaches past the end (callers check the record's size first).
        pub(crate) fn $name(bytes: &[u8], at: usize) -> $t {
            let size = size_of::<$t>();
            match at.checked_add(size).and_then(|end| bytes.get(at..end)) {
                Some(b) => <$t>::from_le_bytes(b.try_into().expect("the slice has the type's size")),
                None => 0,
            }
        }
    };
}

getter!(u16_at, u16);
getter!(u32_at, u32);
getter!(u64_at, u64);

/// The NUL-terminated string at `offset` of a string table, at most [`MAX_NAME`] bytes long.
pub(crate) fn name_at(
    table: &[u8],
    table_offset: u64,
    offset: u64,
    place: impl Fn() -> String,
) -> Result<&str, CubinError> {
    let at = table_offset.saturating_add(offset);
    let malformed = |what: &str| CubinError::Malformed {
        place: place(),
        offset: at,
        what: what.to_owned(),
    };
    let tail = usize::try_from(offset)
        .ok()
        .and_then(|o| table.get(o..))
        .filter(|t| !t.is_empty() || offset == 0);
    let tail = tail.ok_or_else(|| malformed("a name's offset lies outside of its string table"))?;
    if tail.is_empty() {
        return Ok("");
    }
    let window = &tail[..tail.len().min(MAX_NAME)];
    let end = window
        .iter()
        .position(|&b| b == 0)
        .ok_or_else(|| malformed("a name has no end"))?;
    std::str::from_utf8(&window[..end]).map_err(|_| malformed("a name is not UTF-8"))
}

/// The longest symbol or section name that is accepted, in bytes. C++ templates reach about ten thousand.
pub(crate) const MAX_NAME: usize = 1 << 18;

#[cfg(test)]
mod tests {
    use super::slice;

    /// Found by fuzzing: an empty section whose offset lies past the end. Its range must not be handed out.
    #[test]
    fn a_slice_lies_within_the_bytes_even_when_empty() {
        let read = |offset, size| slice(&[1, 2], offset, size, || "here".to_owned()).map(<[u8]>::len).ok();
        assert_eq!([read(0, 2), read(2, 0)], [Some(2), Some(0)]);
        for (offset, size) in [(3, 0), (u64::MAX, 0), (1, 2), (3, 1), (u64::MAX, u64::MAX)] {
            assert_eq!(read(offset, size), None, "{offset} {size}");
        }
    }
}
