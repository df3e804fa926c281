//! How many kernels of the given cubins the emulator can run, and what keeps it from running the rest.
//!
//!     cargo run --release -p sass2mlir-emu --example survey -- FILE.cubin ...

use std::collections::BTreeMap;

fn main() {
    let (mut kernels, mut runnable) = (0, 0);
    let mut reasons: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for path in std::env::args().skip(1) {
        let bytes = std::fs::read(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
        let image = cubin::Image::parse(&bytes).unwrap_or_else(|e| panic!("{path}: {e}"));
        for code in image.codes().iter().filter(|c| c.is_entry) {
            kernels += 1;
            match emu::Program::new(&image, code.name) {
                Ok(p) if p.missing.is_empty() => runnable += 1,
                Ok(p) => {
                    let mut here: BTreeMap<String, usize> = BTreeMap::new();
                    for m in &p.missing {
                        *here.entry(format!("{} ({})", m.form, m.why)).or_default() += 1;
                    }
                    let alone = here.len() == 1;
                    for reason in here.into_keys() {
                        let r = reasons.entry(reason).or_default();
                        r.0 += 1;
                        r.1 += usize::from(alone);
                    }
                }
                Err(e) => {
                    reasons.entry(e.to_string()).or_default().0 += 1;
                }
            }
        }
    }
    println!("{runnable} of {kernels} kernels are runnable");
    let mut list: Vec<_> = reasons.into_iter().collect();
    list.sort_by_key(|(_, (n, _))| std::cmp::Reverse(*n));
    for (reason, (n, alone)) in list {
        println!("{n:6} kernels ({alone} by it alone): {reason}");
    }
}
