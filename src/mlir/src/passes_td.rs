//! Passes.td and the engine list the same passes with the same options, or this does not compile.

use passes::{BUILTIN_OPTIONS, OptionSpec};

/// The portable passes of Passes.td with their options, as the build script read them.
const PASSES_TD: &[(&str, &[&str])] = include!(concat!(env!("OUT_DIR"), "/passes_td.rs"));

/// What Passes.td gives every portable pass beside its own options.
const COMMON: &[&str] = &["entry", "report"];

const _: () = {
    if let Some(name) = only_in_one(PASSES_TD, BUILTIN_OPTIONS) {
        panic!("{}", name) // the pass that differs between dialect/include/Sass/Passes.td and passes::BUILTIN
    }
};

/// A pass that one of the lists lacks, or has with other options.
const fn only_in_one(
    listed: &[(&'static str, &[&str])],
    engine: &[(&'static str, &[OptionSpec])],
) -> Option<&'static str> {
    let mut i = 0;
    while i < listed.len() || i < engine.len() {
        let (mut listed_found, mut engine_found) = (i >= listed.len(), i >= engine.len());
        let mut j = 0;
        while j < listed.len() || j < engine.len() {
            listed_found |= i < listed.len() && j < engine.len() && same_pass(listed[i], engine[j]);
            engine_found |= j < listed.len() && i < engine.len() && same_pass(listed[j], engine[i]);
            j += 1;
        }
        if !listed_found {
            return Some(listed[i].0);
        }
        if !engine_found {
            return Some(engine[i].0);
        }
        i += 1;
    }
    None
}

/// Whether Passes.td says `sass-NAME`, the engine's options in their order, and the common ones.
const fn same_pass(listed: (&str, &[&str]), engine: (&str, &[OptionSpec])) -> bool {
    let own = engine.1.len();
    let Some((b"sass-", name)) = listed.0.as_bytes().split_first_chunk() else {
        return false;
    };
    if !same(name, engine.0.as_bytes()) || listed.1.len() != own + COMMON.len() {
        return false;
    }
    let mut i = 0;
    while i < listed.1.len() {
        let wanted = if i < own { engine.1[i].name } else { COMMON[i - own] };
        if !same(listed.1[i].as_bytes(), wanted.as_bytes()) {
            return false;
        }
        i += 1;
    }
    true
}

const fn same(a: &[u8], b: &[u8]) -> bool {
    let mut equal = a.len() == b.len();
    let mut i = 0;
    while equal && i < a.len() {
        equal = a[i] == b[i];
        i += 1;
    }
    equal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_or_option_that_one_list_lacks_is_found() {
        assert_eq!(only_in_one(PASSES_TD, BUILTIN_OPTIONS), None);
        let (name, options) = PASSES_TD[1];
        assert_eq!(
            only_in_one(&PASSES_TD[..1], BUILTIN_OPTIONS),
            Some(BUILTIN_OPTIONS[1].0)
        );
        assert_eq!(only_in_one(PASSES_TD, &BUILTIN_OPTIONS[..1]), Some(name));
        for other in [
            (name, &options[1..]),
            ("sass-other", options),
            ("ffma-deftz", options),
            ("x", options),
            (name, &["to", "from", "entry", "report"]),
        ] {
            let listed = [PASSES_TD[0], other];
            assert_eq!(only_in_one(&listed, BUILTIN_OPTIONS), Some(other.0), "{other:?}");
        }
    }
}
