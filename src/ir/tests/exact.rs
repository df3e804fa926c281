//! The reader has a quick way for lines that are exactly as printed and a thorough one for all others. They must agree on every text, so each
//! is the other's check: with a space at the end of every line only the thorough one is left.

use sass2mlir_ir as ir;

/// What comes of a text: the kernels' text and code, or the error.
fn outcome(text: &str) -> Result<(String, Vec<Vec<u8>>), ir::ParseError> {
    let kernels = ir::parse_module(text)?;
    let code = kernels.iter().map(|k| ir::lower(k).unwrap_or_default()).collect();
    Ok((ir::print_module(&kernels), code))
}

fn both(text: &str) -> bool {
    let quick = outcome(text);
    let thorough = outcome(&text.replace('\n', " \n"));
    assert!(quick == thorough, "{quick:?}\nis not\n{thorough:?}\n{text}");
    quick.is_ok()
}

/// Pseudo-random numbers below `n`; the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n as u64) as usize
    }
}

#[test]
fn the_quick_reader_and_the_thorough_one_agree() {
    let texts = [
        include_str!("golden/recur_k.mlir"),
        include_str!("golden/f16_ops.mlir"),
        include_str!("golden/ldst_widths.mlir"),
        include_str!("golden/mul_mat_q4_K.mlir"),
        include_str!("golden/words.mlir"),
    ];
    let mut random = Random(0x5a55);
    let mut read = 0;
    for text in texts {
        assert!(both(text), "a golden text is not read");
        for _ in 0..1000 {
            let mut changed = text.as_bytes().to_vec();
            let at = random.below(changed.len());
            let byte = b"0123459fxaRPTUnot%#(),<>[]{}|-.:^\" \n"[random.below(36)];
            match random.below(4) {
                0 => changed.insert(at, byte),
                1 => drop(changed.remove(at)),
                _ => changed[at] = byte,
            }
            read += usize::from(both(&String::from_utf8(changed).expect("ASCII")));
        }
    }
    assert!(
        read > 100,
        "only {read} of the changed texts are read: too few to compare kernels"
    );
}
