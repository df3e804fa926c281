//! The emulator's floating point against a software implementation that it shares nothing with.

use emu::soft::{self, BF16, F16, F32, F64, Format, Round};
use proptest::prelude::*;
use rustc_apfloat::ieee::{BFloat, Double, Half, Single};
use rustc_apfloat::{Float, FloatConvert};

const ROUNDS: [(Round, rustc_apfloat::Round); 5] = [
    (Round::Nearest, rustc_apfloat::Round::NearestTiesToEven),
    (Round::Zero, rustc_apfloat::Round::TowardZero),
    (Round::Down, rustc_apfloat::Round::TowardNegative),
    (Round::Up, rustc_apfloat::Round::TowardPositive),
    (Round::Away, rustc_apfloat::Round::NearestTiesToAway),
];

/// A pattern of a format with exponents that are near each other, at the ends of the range, or anything.
fn patterns(bits: u32, man: u32) -> impl Strategy<Value = u64> {
    let ones = u64::MAX >> (64 - bits);
    let middle = ((1u64 << (bits - man - 2)) - 1) << man;
    let near =
        move |x: u64| x & !(ones >> 1 & !((1 << man) - 1)) | middle.wrapping_add((x >> 20 & 31) << man) & ones >> 1;
    prop_oneof![
        any::<u64>().prop_map(move |x| x & ones),
        any::<u64>().prop_map(move |x| near(x) & ones),
        // Subnormal and just above, largest and just below.
        any::<u64>().prop_map(move |x| x & (1 << (bits - 1) | ((4 << man) - 1))),
        any::<u64>()
            .prop_map(move |x| (x & (1 << (bits - 1)) | (ones >> 1)).wrapping_sub(x >> 1 & ((4 << man) - 1)) & ones),
        Just(0),
        Just(1 << (bits - 1)),
    ]
}

fn check<T: Float>(f: Format, a: u64, b: u64, c: u64) -> Result<(), TestCaseError> {
    let of = |x: u64| T::from_bits(x.into());
    let same = |what: &str, got: u64, want: T| {
        let equal = if want.is_nan() {
            f.is_nan(got)
        } else {
            u128::from(got) == want.to_bits()
        };
        prop_assert!(
            equal,
            "{what} of {a:#x} {b:#x} {c:#x}: {got:#x}, not {:#x}",
            want.to_bits()
        );
        Ok(())
    };
    for (round, theirs) in ROUNDS {
        same("sum", soft::add(f, a, b, round), of(a).add_r(of(b), theirs).value)?;
        same("product", soft::mul(f, a, b, round), of(a).mul_r(of(b), theirs).value)?;
        same(
            "fma",
            soft::fma(f, a, b, c, round),
            of(a).mul_add_r(of(b), of(c), theirs).value,
        )?;
        same(
            "integral",
            soft::to_integral(f, a, round),
            of(a).round_to_integral(theirs).value,
        )?;
        for (signed, bits) in [(true, 32), (false, 32), (true, 64), (false, 64), (true, 8), (false, 16)] {
            let mut exact = false;
            let want = match signed {
                true => of(a).to_i128_r(bits, theirs, &mut exact).value as u128,
                false => of(a).to_u128_r(bits, theirs, &mut exact).value,
            };
            let want = want as u64 & u64::MAX >> (64 - bits);
            let got = soft::to_integer(f, a, signed, bits as u32, round);
            prop_assert!(
                got.map_or(of(a).is_nan(), |got| got == want),
                "integer of {a:#x}: {got:x?}, not {want:#x}"
            );
        }
        let want = T::from_u128_r(b.into(), theirs).value;
        same("from integer", soft::from_integer(f, false, b, round), want)?;
        let negative = T::from_i128_r(-i128::from(b.max(1)), theirs).value;
        same(
            "from negative integer",
            soft::from_integer(f, true, b.max(1), round),
            negative,
        )?;
    }
    Ok(())
}

fn check_conversion<A: Float + FloatConvert<B>, B: Float>(
    from: Format,
    to: Format,
    a: u64,
) -> Result<(), TestCaseError> {
    for (round, theirs) in ROUNDS {
        let mut lossy = false;
        let want: B = A::from_bits(a.into()).convert_r(theirs, &mut lossy).value;
        let got = soft::convert(from, to, a, round);
        let equal = if want.is_nan() {
            to.is_nan(got)
        } else {
            u128::from(got) == want.to_bits()
        };
        prop_assert!(equal, "{a:#x} {round:?}: {got:#x}, not {:#x}", want.to_bits());
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn halves((a, b, c) in (patterns(16, 10), patterns(16, 10), patterns(16, 10))) {
        check::<Half>(F16, a, b, c)?;
        check_conversion::<Half, Single>(F16, F32, a)?;
    }

    #[test]
    fn bfloats((a, b, c) in (patterns(16, 7), patterns(16, 7), patterns(16, 7))) {
        check::<BFloat>(BF16, a, b, c)?;
    }

    #[test]
    fn singles((a, b, c) in (patterns(32, 23), patterns(32, 23), patterns(32, 23))) {
        check::<Single>(F32, a, b, c)?;
        check_conversion::<Single, Half>(F32, F16, a)?;
        check_conversion::<Single, BFloat>(F32, BF16, a)?;
        check_conversion::<Single, Double>(F32, F64, a)?;
    }

    #[test]
    fn doubles((a, b, c) in (patterns(64, 52), patterns(64, 52), patterns(64, 52))) {
        check::<Double>(F64, a, b, c)?;
        check_conversion::<Double, Single>(F64, F32, a)?;
        check_conversion::<Double, Half>(F64, F16, a)?;
    }
}
