//! Arithmetic on whole rows. Each function is compiled twice, for any processor and for one with AVX2 and FMA, and the better one is taken
//! at run time; both give the same bits, because a fused multiply-add is rounded once either way.

use std::sync::atomic::{AtomicU8, Ordering};

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
fn argument<const FLUSH: bool>(x: u32) -> f32 {
    f32::from_bits(if FLUSH { flush(x) } else { x })
}

#[inline(always)]
fn outcome<const FLUSH: bool, const SATURATE: bool>(x: f32) -> u32 {
    let mode = Mode {
        flush: FLUSH,
        saturate: SATURATE,
    };
    result(x, mode)
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

/// What arithmetic may use: 0 is not known yet, 1 any processor's instructions, 2 AVX2 and FMA.
static LEVEL: AtomicU8 = AtomicU8::new(0);

/// Whether arithmetic leaves the processor's vector instructions unused, for tests and measurements: results are the same.
pub fn use_portable(portable: bool) {
    LEVEL.store(if portable { 1 } else { 0 }, Ordering::Relaxed);
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn is_fast() -> bool {
    match LEVEL.load(Ordering::Relaxed) {
        0 => detect(),
        level => level == 2,
    }
}

#[cfg(target_arch = "x86_64")]
#[cold]
fn detect() -> bool {
    let fast = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
    LEVEL.store(if fast { 2 } else { 1 }, Ordering::Relaxed);
    fast
}

macro_rules! on_rows {
    ($($(#[$doc:meta])* $name:ident($($arg:ident: $row:ty),*; $($extra:ident: $kind:ty),*) -> $out:ty { $rows:expr })*) => {$(
        $(#[$doc])*
        pub fn $name($($arg: &$row,)* $($extra: $kind,)*) -> $out {
            #[inline(always)]
            fn body($($arg: &$row,)* $($extra: $kind,)*) -> $out {
                $rows
            }
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,fma")]
                unsafe fn fast($($arg: &$row,)* $($extra: $kind,)*) -> $out {
                    body($($arg,)* $($extra,)*)
                }
                if is_fast() {
                    // SAFETY: the processor has both features.
                    return unsafe { fast($($arg,)* $($extra,)*) };
                }
            }
            body($($arg,)* $($extra,)*)
        }
    )*};
}

/// One loop for each mode, so that none asks for it in every lane.
macro_rules! by_mode {
    ($mode:ident, |$flush:ident, $saturate:ident| $row:expr) => {
        match ($mode.flush, $mode.saturate) {
            (false, false) => by_mode!(@ $flush false, $saturate false, $row),
            (true, false) => by_mode!(@ $flush true, $saturate false, $row),
            (false, true) => by_mode!(@ $flush false, $saturate true, $row),
            (true, true) => by_mode!(@ $flush true, $saturate true, $row),
        }
    };
    (@ $flush:ident $f:literal, $saturate:ident $s:literal, $row:expr) => {{
        const $flush: bool = $f;
        const $saturate: bool = $s;
        $row
    }};
}

on_rows! {
    /// `a * b + c` in single precision, rounded once to nearest.
    fma(a: Row, b: Row, c: Row; mode: Mode) -> Row {
        by_mode!(mode, |F, S| std::array::from_fn(|l| {
            outcome::<F, S>(argument::<F>(a[l]).mul_add(argument::<F>(b[l]), argument::<F>(c[l])))
        }))
    }
    /// `a + b` in single precision, to nearest.
    add(a: Row, b: Row; mode: Mode) -> Row {
        by_mode!(mode, |F, S| std::array::from_fn(|l| outcome::<F, S>(argument::<F>(a[l]) + argument::<F>(b[l]))))
    }
    /// `a * b` in single precision, to nearest.
    mul(a: Row, b: Row; mode: Mode) -> Row {
        by_mode!(mode, |F, S| std::array::from_fn(|l| outcome::<F, S>(argument::<F>(a[l]) * argument::<F>(b[l]))))
    }
    /// `a * b + c` in double precision, to nearest.
    fma64(a: Wide, b: Wide, c: Wide;) -> Wide {
        std::array::from_fn(|l| {
            let v = f64::from_bits(a[l]).mul_add(f64::from_bits(b[l]), f64::from_bits(c[l]));
            if v.is_nan() { nan64(&[a[l], b[l], c[l]]) } else { v.to_bits() }
        })
    }
    /// `a + b` in double precision, to nearest.
    add64(a: Wide, b: Wide;) -> Wide {
        std::array::from_fn(|l| {
            let v = f64::from_bits(a[l]) + f64::from_bits(b[l]);
            if v.is_nan() { nan64(&[a[l], b[l]]) } else { v.to_bits() }
        })
    }
    /// `a * b` in double precision, to nearest.
    mul64(a: Wide, b: Wide;) -> Wide {
        std::array::from_fn(|l| {
            let v = f64::from_bits(a[l]) * f64::from_bits(b[l]);
            if v.is_nan() { nan64(&[a[l], b[l]]) } else { v.to_bits() }
        })
    }
    /// `a * b + c` of integers, the low half.
    imad(a: Row, b: Row, c: Row;) -> Row {
        std::array::from_fn(|l| a[l].wrapping_mul(b[l]).wrapping_add(c[l]))
    }
    /// A function of three bits, given as masks of the products of its algebraic normal form: 1, c, b, bc, a, ac, ab, abc.
    lop3(a: Row, b: Row, c: Row; k: &[u32; 8]) -> Row {
        std::array::from_fn(|l| {
            let (a, b, c) = (a[l], b[l], c[l]);
            let without_a = k[0] ^ k[1] & c ^ k[2] & b ^ k[3] & b & c;
            let with_a = k[4] ^ k[5] & c ^ k[6] & b ^ k[7] & b & c;
            without_a ^ with_a & a
        })
    }
    /// To the right by 0 to 32 bits, with copies of the sign or zeros.
    shift_right(a: Row, by: Row; signed: bool) -> Row {
        match signed {
            true => std::array::from_fn(|l| (a[l] as i32 >> by[l].min(31)) as u32),
            false => std::array::from_fn(|l| if by[l] < 32 { a[l] >> (by[l] & 31) } else { 0 }),
        }
    }
    /// To the left by 0 to 32 bits.
    shift_left(a: Row, by: Row;) -> Row {
        std::array::from_fn(|l| if by[l] < 32 { a[l] << (by[l] & 31) } else { 0 })
    }
    /// Integers as floats, rounded to nearest.
    to_float(a: Row; signed: bool) -> Row {
        match signed {
            true => a.map(|x| (x as i32 as f32).to_bits()),
            false => a.map(|x| (x as f32).to_bits()),
        }
    }
    /// `a + b + c` of integers.
    iadd3(a: Row, b: Row, c: Row;) -> Row {
        std::array::from_fn(|l| a[l].wrapping_add(b[l]).wrapping_add(c[l]))
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
    fn both_ways_give_the_same_bits() {
        let mut state = 7u64;
        let mut row = || -> Row {
            std::array::from_fn(|l| {
                state = state
                    .wrapping_mul(6364136223846793005)
                    .wrapping_add(1442695040888963407);
                let bits = (state >> 32) as u32;
                if l % 3 == 0 {
                    bits
                } else {
                    bits & 0x83ff_ffff | 0x3800_0000
                }
            })
        };
        for n in 0..2000 {
            let (a, b, c) = (row(), row(), row());
            let wide = |x: &Row, y: &Row| -> Wide { std::array::from_fn(|l| u64::from(x[l]) << 32 | u64::from(y[l])) };
            let (p, q, r) = (wide(&a, &b), wide(&b, &c), wide(&c, &a));
            let mode = Mode {
                flush: n & 1 != 0,
                saturate: n & 2 != 0,
            };
            let all = || {
                let narrow = [fma(&a, &b, &c, mode), add(&a, &b, mode), mul(&a, &b, mode)];
                (narrow, [fma64(&p, &q, &r), add64(&p, &q), mul64(&p, &q)])
            };
            use_portable(false);
            let fast = all();
            use_portable(true);
            let portable = all();
            use_portable(false);
            assert_eq!(fast, portable);
        }
    }

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
