//! The fuzz targets of `fuzz/` on generated inputs: noise, and real files with some bytes changed or the end cut off.
//! A stand-in for coverage-guided fuzzing that runs on a stable toolchain in every `make test`.

#[path = "../fuzz/src/lib.rs"]
mod targets;

use std::path::Path;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

fn bundled(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/kernels")
        .join(name);
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// `whole` with up to eight bytes overwritten, half of them near the start or the end where the tables are, and
/// sometimes cut short.
fn damaged(whole: Vec<u8>) -> impl Strategy<Value = Vec<u8>> {
    let place = (any::<Index>(), 0..4u8);
    (
        vec((place, any::<u8>()), 0..8),
        proptest::option::weighted(0.2, any::<Index>()),
    )
        .prop_map(move |(changes, cut)| {
            let mut bytes = whole.clone();
            for ((index, region), value) in changes {
                let n = bytes.len();
                let at = match region {
                    0 => index.index(n.min(64)),
                    1 => n - 1 - index.index(n.min(8192)),
                    _ => index.index(n),
                };
                bytes[at] = value;
            }
            if let Some(cut) = cut {
                bytes.truncate(cut.index(bytes.len()));
            }
            bytes
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn cubin_parse_does_not_panic(data in prop_oneof![1 => vec(any::<u8>(), 0..256), 4 => damaged(bundled("sm_87/own_features.cubin"))]) {
        targets::cubin_parse(&data);
    }

    #[test]
    fn fatbin_parse_does_not_panic(data in prop_oneof![
        1 => damaged(bundled("containers/stored.fatbin")),
        1 => damaged(bundled("containers/lz4.fatbin")),
        1 => damaged(bundled("containers/zstd.fatbin")),
        1 => damaged(bundled("containers/concat.fatbin")),
        1 => damaged(bundled("containers/concat_lz4.fatbin")),
        1 => damaged(bundled("containers/libtwo.so")),
        1 => damaged(bundled("containers/libtwo.a")),
    ]) {
        targets::fatbin_parse(&data);
    }
}
