//! What each fuzz target does with its bytes. A target fails by panicking: no input may do that, and what is accepted
//! must come back as it went in.

use cubin::{Container, Image, Patch};

/// Reads a cubin and everything in it; writes it back unchanged.
pub fn cubin_parse(data: &[u8]) {
    let image = match Image::parse(data) {
        Ok(image) => image,
        Err(e) => return assert!(!e.to_string().is_empty()),
    };
    for section in 0..image.sections().len() {
        let _ = image.section_data(section);
        let _ = image.relocations(section);
        for attribute in image.attributes(section).unwrap_or_default() {
            let _ = (attribute.name(), attribute.value(), attribute.code_offsets());
        }
    }
    let _ = (image.global_attributes(), image.call_graph(), image.producer());
    let mut patch = Patch::new(&image);
    for code in image.codes() {
        let bytes = data[code.range.clone()].to_vec();
        patch.replace_code(code, &bytes).expect("code as it was fits");
    }
    assert!(patch.finish() == data, "an unchanged cubin came back changed");
}

/// Finds the cubins in a fatbin, host file or archive, decompresses and reads them, and puts them back: unchanged ones give
/// the file as it was, a changed one can be read again.
pub fn fatbin_parse(data: &[u8]) {
    let container = match Container::parse(data) {
        Ok(container) => container,
        Err(e) => return assert!(!e.to_string().is_empty()),
    };
    let mut kept = Vec::new();
    for image in container.images() {
        match image {
            Ok(image) => {
                let _ = Image::parse(&image.bytes);
                if kept.len() < 8 && image.bytes.len() < 1 << 18 {
                    kept.push((image.index, image.bytes.into_owned()));
                }
            }
            Err(e) => assert!(!e.to_string().is_empty()),
        }
    }
    let same: Vec<_> = kept.iter().map(|(index, bytes)| (*index, &bytes[..])).collect();
    assert!(
        container.rebuild(&same).expect("what is there fits") == data,
        "an unchanged file came back changed"
    );
    let Some((index, bytes)) = kept.first_mut() else { return };
    if let Some(last) = bytes.last_mut() {
        *last = !*last;
        if let Ok(rebuilt) = container.rebuild(&[(*index, bytes)]) {
            let again = Container::parse(&rebuilt).expect("a rebuilt file can be read");
            let image = again
                .image(*index)
                .expect("the image is still there")
                .expect("it can be read");
            assert!(
                image.bytes.starts_with(bytes) || bytes.starts_with(&image.bytes),
                "another image came back"
            );
        }
    }
}
