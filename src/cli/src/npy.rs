//! NumPy's `.npy` files: a header that says type and shape, then the numbers.

use anyhow::{Result, bail};

const MAGIC: &[u8] = b"\x93NUMPY";

/// The numbers' bytes of a file that may be `.npy`, and has numbers of that type then; any other file is its own bytes.
pub fn contents<'f>(file: &'f [u8], kind: &str) -> Result<&'f [u8]> {
    if !file.starts_with(MAGIC) {
        return Ok(file);
    }
    let length = match file.get(6) {
        Some(1) => file
            .get(8..10)
            .map(|b| (10usize, usize::from(u16::from_le_bytes([b[0], b[1]])))),
        _ => file
            .get(8..12)
            .map(|b| (12, u32::from_le_bytes([b[0], b[1], b[2], b[3]]) as usize)),
    };
    let parts = length.and_then(|(start, len)| {
        let end = start.checked_add(len)?;
        Some((file.get(start..end)?, file.get(end..)?))
    });
    let Some((header, data)) = parts else {
        bail!("the .npy header is cut off");
    };
    let header = String::from_utf8_lossy(header);
    if header.contains("'fortran_order': True") {
        bail!("a .npy file in Fortran order; save it with numpy.ascontiguousarray");
    }
    if header.contains("'descr': '>") {
        bail!("a .npy file of big-endian numbers; save it as little-endian");
    }
    if !header.contains(&format!("'descr': '{kind}'")) {
        let found = header.split("'descr': ").nth(1).and_then(|d| d.split('\'').nth(1));
        bail!(
            "a .npy file of {}, where {kind} is asked for",
            found.unwrap_or("structures")
        );
    }
    Ok(data)
}

/// A `.npy` file of one dimension; `kind` is NumPy's name of the type, such as `<f4`.
pub fn file(kind: &str, size: usize, data: &[u8]) -> Vec<u8> {
    let count = data.len() / size;
    let mut header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({count},), }}");
    // The numbers begin at a multiple of 64.
    let end = (10 + header.len() + 1).next_multiple_of(64);
    header.push_str(&" ".repeat(end - 11 - header.len()));
    header.push('\n');
    let mut out = MAGIC.to_vec();
    out.extend([1, 0]);
    out.extend((header.len() as u16).to_le_bytes());
    out.extend(header.as_bytes());
    out.extend(data);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let data = [1, 2, 3, 4, 5, 6, 7, 8];
        let npy = file("<f4", 4, &data);
        assert_eq!((npy.len() - data.len()) % 64, 0);
        assert_eq!(contents(&npy, "<f4").unwrap(), data);
        assert_eq!(contents(&data, "<f4").unwrap(), data);
        assert!(contents(&npy[..9], "<f4").is_err());
        let why = contents(&npy, "<i8").unwrap_err().to_string();
        assert!(why.contains("of <f4, where <i8"), "{why}");
    }
}
