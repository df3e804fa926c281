//! What each fuzz target does with its bytes. A target fails by panicking: no input may do that, and what is accepted
//! must come back as it went in.

use cubin::{Image, Patch};

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
