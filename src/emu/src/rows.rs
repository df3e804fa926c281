//! Arithmetic on whole rows. Each function is compiled twice, for any processor and for one with AVX2 and FMA, and the better one is taken
//! at run time; both give the same bits, because a fused multiply-add is rounded once either way.

use crate::regs::{LANES, Row, Wide};

/// Results below the normal range become a zero of their sign, and so do arguments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mode {
    /// `.FTZ`.
    pub flush: bool,
    /// `.SAT`: to 0..=1, a NaN to 0.
    pub saturate: bool,
}

const NAN: u32 = 0x7fff_ffff;

/// A subnormal number as a zero of its sign.
#[inline(always)]
pub fn flush(x: u32) -> u32 {
    if x & 0x7f80_0000 == 0 { x & 0x8000_0000 } else { x }
}

#[inline(always)]
fn argument(x: u32, mode: Mode) -> f32 {
    f32::from_bits(if mode.flush { flush(x) } else { x })
}

/// A result as the hardware gives it: one NaN, flushed, saturated.
#[inline(always)]
pub fn result(x: f32, mode: Mode) -> u32 {
    let bits = if x.is_nan() { NAN } else { x.to_bits() };
    let bits = if mode.flush { flush(bits) } else { bits };
    if mode.saturate { saturate(bits) } else { bits }
}

/// To 0..=1, a NaN to 0.
#[inline(always)]
pub fn saturate(bits: u32) -> u32 {
    const ONE: u32 = 0x3f80_0000;
    if bits >> 31 != 0 || bits > 0x7f80_0000 {
        0
    } else {
        bits.min(ONE)
    }
}

macro_rules! on_rows {
    ($($(#[$doc:meta])* $name:ident($($arg:ident: $row:ty),*; $($extra:ident: $kind:ty),*) -> $out:ty { $lane:expr })*) => {$(
        $(#[$doc])*
        pub fn $name($($arg: &$row,)* $($extra: $kind,)*) -> $out {
            #[inline(always)]
            fn body($($arg: &$row,)* $($extra: $kind,)*) -> $out {
                let lane = $lane;
                std::array::from_fn(|l| lane($($arg[l],)* $($extra,)*))
            }
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,fma")]
                unsafe fn fast($($arg: &$row,)* $($extra: $kind,)*) -> $out {
                    body($($arg,)* $($extra,)*)
                }
                if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                    // SAFETY: the processor has both features.
                    return unsafe { fast($($arg,)* $($extra,)*) };
                }
            }
            body($($arg,)* $($extra,)*)
        }
    )*};
}

on_rows! {
    /// `a * b + c` in single precision, rounded once to nearest.
    fma(a: Row, b: Row, c: Row; mode: Mode) -> Row {
        |a, b, c, mode| result(argument(a, mode).mul_add(argument(b, mode), argument(c, mode)), mode)
    }
    /// `a + b` in single precision, to nearest.
    add(a: Row, b: Row; mode: Mode) -> Row {
        |a, b, mode| result(argument(a, mode) + argument(b, mode), mode)
    }
    /// `a * b` in single precision, to nearest.
    mul(a: Row, b: Row; mode: Mode) -> Row {
        |a, b, mode| result(argument(a, mode) * argument(b, mode), mode)
    }
    /// `a * b + c` in double precision, to nearest.
    fma64(a: Wide, b: Wide, c: Wide;) -> Wide {
        |a, b, c| {
            let v = f64::from_bits(a).mul_add(f64::from_bits(b), f64::from_bits(c));
            if v.is_nan() { nan64(&[a, b, c]) } else { v.to_bits() }
        }
    }
    /// `a + b` in double precision, to nearest.
    add64(a: Wide, b: Wide;) -> Wide {
        |a, b| {
            let v = f64::from_bits(a) + f64::from_bits(b);
            if v.is_nan() { nan64(&[a, b]) } else { v.to_bits() }
        }
    }
    /// `a * b` in double precision, to nearest.
    mul64(a: Wide, b: Wide;) -> Wide {
        |a, b| {
            let v = f64::from_bits(a) * f64::from_bits(b);
            if v.is_nan() { nan64(&[a, b]) } else { v.to_bits() }
        }
    }
}

/// The NaN that double-precision arithmetic gives: the first argument that is one, made quiet, or the default.
pub fn nan64(arguments: &[u64]) -> u64 {
    let first = arguments.iter().find(|x| f64::from_bits(**x).is_nan());
    first.map_or(0xfff8_0000_0000_0000, |x| x | 1 << 51)
}

/// One lane after another, for what is rare.
#[inline(always)]
pub fn each_lane<T>(f: impl FnMut(usize) -> T) -> [T; LANES] {
    std::array::from_fn(f)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flushes_saturates_and_knows_one_nan() {
        let flushing = Mode {
            flush: true,
            saturate: false,
        };
        let clamped = Mode {
            flush: false,
            saturate: true,
        };
        let row = |x: f32| [x.to_bits(); LANES];
        assert_eq!(add(&row(1e-40), &row(0.0), flushing)[3], 0);
        assert_eq!(add(&row(-1e-40), &row(-0.0), flushing)[3], 0x8000_0000);
        assert_eq!(add(&row(1e-40), &row(0.0), Mode::default())[3], 1e-40f32.to_bits());
        assert_eq!(fma(&row(f32::INFINITY), &row(0.0), &row(1.0), Mode::default())[0], NAN);
        assert_eq!(fma(&row(f32::INFINITY), &row(0.0), &row(1.0), clamped)[0], 0);
        assert_eq!(mul(&row(2.0), &row(3.0), clamped)[31], 1f32.to_bits());
        assert_eq!(mul(&row(2.0), &row(-3.0), clamped)[31], 0);
        assert_eq!(nan64(&[0, 0x7ff0_0000_0000_0001]), 0x7ff8_0000_0000_0001);
    }
}
