//! Binary floating point in integers: any format up to 64 bits, any rounding, exact fused multiply-add.
//!
//! The fast paths use the processor's arithmetic for round-to-nearest on 32 and 64 bits; everything else comes here. NaN results are
//! the GPU's: all bits below the sign set in the narrow formats, see [`Format::nan`].

/// A rounding direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Round {
    /// To nearest, ties to even.
    Nearest,
    /// Toward zero.
    Zero,
    /// Toward minus infinity.
    Down,
    /// Toward plus infinity.
    Up,
    /// To nearest, ties away from zero (conversions only).
    Away,
}

/// A binary interchange format: sign, `exp` bits of exponent, `man` bits of fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    exp: u32,
    man: u32,
    /// What an operation without a number as its result gives.
    nan: u64,
}

/// IEEE half.
pub const F16: Format = Format {
    exp: 5,
    man: 10,
    nan: 0x7fff,
};
/// bfloat16.
pub const BF16: Format = Format {
    exp: 8,
    man: 7,
    nan: 0x7fff,
};
/// IEEE single.
pub const F32: Format = Format {
    exp: 8,
    man: 23,
    nan: 0x7fff_ffff,
};
/// IEEE double.
pub const F64: Format = Format {
    exp: 11,
    man: 52,
    nan: 0xfff8_0000_0000_0000,
};

/// A number taken apart: `mant * 2^exp`, where a set lowest bit may also stand for "and a little more".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    Nan,
    Infinite(bool),
    Finite { neg: bool, mant: u128, exp: i32 },
}

/// The top bit of a normalised mantissa; what is above is room for a carry.
const TOP: u32 = 124;

impl Format {
    /// Bits of the quiet NaN that the GPU gives.
    pub const fn nan(self) -> u64 {
        self.nan
    }

    /// Bits of infinity.
    pub const fn infinity(self) -> u64 {
        ((1 << self.exp) - 1) << self.man
    }

    /// The sign bit.
    pub const fn sign(self) -> u64 {
        1 << (self.exp + self.man)
    }

    /// Bits of the largest finite number.
    pub const fn max(self) -> u64 {
        self.infinity() - 1
    }

    const fn bias(self) -> i32 {
        (1 << (self.exp - 1)) - 1
    }

    /// Whether the bits are a NaN.
    pub const fn is_nan(self, bits: u64) -> bool {
        bits & (self.sign() - 1) > self.infinity()
    }

    /// The bits with a subnormal number replaced by a zero of its sign.
    pub const fn flush(self, bits: u64) -> u64 {
        if bits & self.infinity() == 0 {
            bits & self.sign()
        } else {
            bits
        }
    }

    fn unpack(self, bits: u64) -> Value {
        let neg = bits & self.sign() != 0;
        let exp = bits >> self.man & ((1 << self.exp) - 1);
        let man = u128::from(bits & ((1 << self.man) - 1));
        let lowest = 1 - self.bias() - self.man as i32;
        if exp == (1 << self.exp) - 1 {
            return if man == 0 { Value::Infinite(neg) } else { Value::Nan };
        }
        match exp {
            0 => Value::Finite {
                neg,
                mant: man,
                exp: lowest,
            },
            e => Value::Finite {
                neg,
                mant: man | 1 << self.man,
                exp: lowest + e as i32 - 1,
            },
        }
    }

    fn pack(self, value: Value, round: Round) -> u64 {
        let (neg, mant, exp) = match value {
            Value::Nan => return self.nan,
            Value::Infinite(neg) => return self.infinity() | self.signed(neg),
            Value::Finite { neg, mant, exp } => (neg, mant, exp),
        };
        let sign = self.signed(neg);
        if mant == 0 {
            return sign;
        }
        let top = 127 - mant.leading_zeros() as i32;
        let lowest = 1 - self.bias() - self.man as i32;
        // The exponent of the result's last place.
        let last = (exp + top - self.man as i32).max(lowest);
        let man = shift(mant, last - exp, neg, round);
        let carry = u64::from(man >> (self.man + 1) != 0);
        let man = (man >> carry) as u64;
        let last = last + carry as i32;
        if man >> self.man == 0 {
            return sign | man;
        }
        let field = (last - lowest + 1) as u64;
        if field >= (1 << self.exp) - 1 {
            let stays = match round {
                Round::Nearest | Round::Away => false,
                Round::Zero => true,
                Round::Down => !neg,
                Round::Up => neg,
            };
            return sign | if stays { self.max() } else { self.infinity() };
        }
        sign | field << self.man | man & ((1 << self.man) - 1)
    }

    const fn signed(self, neg: bool) -> u64 {
        if neg { self.sign() } else { 0 }
    }
}

/// `mant / 2^by`, rounded to an integer; a negative `by` shifts left.
fn shift(mant: u128, by: i32, neg: bool, round: Round) -> u128 {
    if by <= 0 {
        return mant.checked_shl(by.unsigned_abs()).unwrap_or(0);
    }
    let (kept, lost, half) = match by {
        128.. => (0, mant, u128::MAX),
        127 => (mant >> 127, mant & (u128::MAX >> 1), 1 << 126),
        _ => (mant >> by, mant & ((1 << by) - 1), 1 << (by - 1)),
    };
    let up = match round {
        Round::Nearest => lost > half || lost == half && kept & 1 == 1,
        Round::Away => lost >= half && lost != 0,
        Round::Zero => false,
        Round::Down => neg && lost != 0,
        Round::Up => !neg && lost != 0,
    };
    kept + u128::from(up)
}

/// Moves the top bit of `mant` to [`TOP`].
fn normalise(mant: u128, exp: i32) -> (u128, i32) {
    let left = TOP as i32 - (127 - mant.leading_zeros() as i32);
    (mant << left, exp - left)
}

fn add_values(a: Value, b: Value, round: Round) -> Value {
    let (an, am, ae, bn, bm, be) = match (a, b) {
        (Value::Nan, _) | (_, Value::Nan) => return Value::Nan,
        (Value::Infinite(x), Value::Infinite(y)) => return if x == y { a } else { Value::Nan },
        (Value::Infinite(_), _) => return a,
        (_, Value::Infinite(_)) => return b,
        (
            Value::Finite {
                neg: an,
                mant: am,
                exp: ae,
            },
            Value::Finite {
                neg: bn,
                mant: bm,
                exp: be,
            },
        ) => (an, am, ae, bn, bm, be),
    };
    let zero = |neg| Value::Finite { neg, mant: 0, exp: 0 };
    match (am, bm) {
        (0, 0) if an == bn => return zero(an),
        (0, 0) => return zero(round == Round::Down),
        (0, _) => return b,
        (_, 0) => return a,
        _ => {}
    }
    let (mut big, mut small) = ((an, normalise(am, ae)), (bn, normalise(bm, be)));
    if ((big.1).1, (big.1).0) < ((small.1).1, (small.1).0) {
        std::mem::swap(&mut big, &mut small);
    }
    let ((neg, (bm, exp)), (sn, (sm, se))) = (big, small);
    let by = (exp - se) as u32;
    let kept = sm.checked_shr(by).unwrap_or(0);
    let sticky = u128::from(kept.checked_shl(by).unwrap_or(0) != sm);
    let mant = match neg == sn {
        true => bm + (kept | sticky),
        // A little less than the difference: the sticky bit borrows.
        false => (bm - kept - sticky) | sticky,
    };
    if mant == 0 {
        return zero(round == Round::Down);
    }
    Value::Finite { neg, mant, exp }
}

fn mul_values(a: Value, b: Value) -> Value {
    match (a, b) {
        (Value::Nan, _) | (_, Value::Nan) => Value::Nan,
        (Value::Infinite(n), Value::Infinite(m)) => Value::Infinite(n != m),
        (Value::Infinite(n), Value::Finite { neg, mant, .. })
        | (Value::Finite { neg, mant, .. }, Value::Infinite(n)) => {
            if mant == 0 {
                Value::Nan
            } else {
                Value::Infinite(n != neg)
            }
        }
        (
            Value::Finite { neg, mant, exp },
            Value::Finite {
                neg: n,
                mant: m,
                exp: e,
            },
        ) => Value::Finite {
            neg: neg != n,
            mant: mant * m,
            exp: exp + e,
        },
    }
}

/// `a + b`.
pub fn add(f: Format, a: u64, b: u64, round: Round) -> u64 {
    f.pack(add_values(f.unpack(a), f.unpack(b), round), round)
}

/// `a * b`.
pub fn mul(f: Format, a: u64, b: u64, round: Round) -> u64 {
    f.pack(mul_values(f.unpack(a), f.unpack(b)), round)
}

/// `a * b + c`, rounded once.
pub fn fma(f: Format, a: u64, b: u64, c: u64, round: Round) -> u64 {
    fma_into(f, f, f, a, b, c, round)
}

/// `a * b + c` with the factors in `from`, the addend in `add` and the result in `to`, rounded once.
pub fn fma_into(from: Format, add: Format, to: Format, a: u64, b: u64, c: u64, round: Round) -> u64 {
    let product = mul_values(from.unpack(a), from.unpack(b));
    to.pack(add_values(product, add.unpack(c), round), round)
}

/// A number of one format in another.
pub fn convert(from: Format, to: Format, bits: u64, round: Round) -> u64 {
    to.pack(from.unpack(bits), round)
}

/// An integer, given as sign and size, in a format.
pub fn from_integer(to: Format, neg: bool, size: u64, round: Round) -> u64 {
    let value = Value::Finite {
        neg,
        mant: size.into(),
        exp: 0,
    };
    to.pack(value, round)
}

/// The integer of `bits` bits that a number rounds to, saturated; `None` for a NaN.
pub fn to_integer(from: Format, value: u64, signed: bool, bits: u32, round: Round) -> Option<u64> {
    let limit = if signed { 1u128 << (bits - 1) } else { 1u128 << bits };
    let (neg, size) = match from.unpack(value) {
        Value::Nan => return None,
        Value::Infinite(neg) => (neg, limit),
        Value::Finite { neg, mant: 0, .. } => (neg, 0),
        Value::Finite { neg, mant, exp } if exp + (128 - mant.leading_zeros() as i32) > 70 => (neg, limit),
        Value::Finite { neg, mant, exp } => (neg, shift(mant, -exp, neg, round)),
    };
    let ones = u64::MAX >> (64 - bits);
    Some(match (signed, neg) {
        (false, true) => 0,
        (true, true) => (size.min(limit) as u64).wrapping_neg() & ones,
        (_, false) => size.min(limit - 1) as u64,
    })
}

/// The nearest integral number in the same format.
pub fn to_integral(f: Format, bits: u64, round: Round) -> u64 {
    match f.unpack(bits) {
        Value::Finite { neg, mant, exp } if exp < 0 => {
            let mant = shift(mant, -exp, neg, round);
            f.pack(Value::Finite { neg, mant, exp: 0 }, round)
        }
        Value::Nan => f.nan,
        _ => bits,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_processor_to_nearest() {
        let mut state = 1u64;
        let mut next = || {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            // Exponents near each other, so that cancellation and subnormals happen.
            let bits = (state >> 32) as u32;
            if state & 7 == 0 { bits } else { bits & 0x83ff_ffff }
        };
        for _ in 0..100_000 {
            let (a, b, c) = (next(), next(), next());
            let (x, y, z) = (f32::from_bits(a), f32::from_bits(b), f32::from_bits(c));
            let same = |got: u64, want: f32| match want.is_nan() {
                true => assert_eq!(got, F32.nan()),
                false => assert_eq!(got, u64::from(want.to_bits()), "{x:e} {y:e} {z:e}"),
            };
            let (a, b, c) = (a.into(), b.into(), c.into());
            same(add(F32, a, b, Round::Nearest), x + y);
            same(mul(F32, a, b, Round::Nearest), x * y);
            same(fma(F32, a, b, c, Round::Nearest), x.mul_add(y, z));
            same(to_integral(F32, a, Round::Nearest), x.round_ties_even());
            same(to_integral(F32, a, Round::Down), x.floor());
            let int = |signed, bits| to_integer(F32, a, signed, bits, Round::Zero).unwrap_or(0);
            assert_eq!(int(true, 32) as u32 as i32, x as i32);
            assert_eq!(int(false, 32) as u32, x as u32);
            assert_eq!(int(true, 64) as i64, x as i64);
            assert_eq!(int(false, 64), x as u64);
        }
    }
}
