//! What nvdisasm says of the lines that instructions come from.

use std::collections::BTreeMap;
use std::path::Path;

/// The lines of every instruction, by kernel and byte offset, as nvdisasm writes them: with `-g`, or with `-gi` those of inlined calls, too,
/// or with `-gp` those of the PTX.
pub fn lines(oracles: &Path, cubin: &Path, option: &str) -> BTreeMap<(String, u64), Vec<String>> {
    let text = crate::common::nvdisasm_c(oracles, cubin, &[option]);
    let (mut kernel, mut at, mut is_new, mut all) = (String::new(), Vec::new(), false, BTreeMap::new());
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix(".text.").and_then(|l| l.strip_suffix(':')) {
            (kernel, at) = (name.to_owned(), Vec::new());
        } else if let Some(source) = line.strip_prefix("//## ") {
            if !std::mem::replace(&mut is_new, true) {
                at.clear();
            }
            at.push(source.to_owned());
        } else if let Some((offset, _)) = line.strip_prefix("/*").and_then(|l| l.split_once("*/")) {
            let offset = u64::from_str_radix(offset, 16).expect("an offset");
            all.insert((kernel.clone(), offset), at.clone());
            is_new = false;
        }
    }
    all
}
