//! Integers and bits: add, multiply, shift, logic, select.

use isa::RegFile;

use crate::build::{Builder, Built, Decode};
use crate::compare::{self, Order};
use crate::minmax::Parts;
use crate::op::on_lanes;
use crate::regs::{LANES, Mask, NO_PRED, Pred, Regs, Row, Src, lanes};
use crate::rows;
use crate::sign::{AsSigned, AsUnsigned};
use crate::wide;

/// What executes which mnemonic. `U` in front is the same on the uniform datapath.
pub const TABLE: &[(&str, Builder)] = &[
    ("BMSK", bmsk),
    ("BREV", |i| unary(i, u32::reverse_bits)),
    ("FLO", flo),
    ("IABS", |i| unary(i, |x| x.signed().unsigned_abs())),
    ("IADD3", iadd3),
    ("IADD", iadd),
    ("IDP", idp),
    ("IMAD", imad),
    ("ISETP", isetp),
    ("LEA", lea),
    ("LOP3", lop3),
    ("MOV", mov),
    ("POPC", |i| unary(i, u32::count_ones)),
    ("PRMT", prmt),
    ("SEL", sel),
    ("SGXT", sgxt),
    ("SHF", shf),
    ("UBMSK", bmsk),
    ("UBREV", |i| unary(i, u32::reverse_bits)),
    ("UFLO", flo),
    ("UIADD3", iadd3),
    ("UIMAD", imad),
    ("UISETP", isetp),
    ("ULEA", lea),
    ("ULOP3", lop3),
    ("UMOV", mov),
    ("UPOPC", |i| unary(i, u32::count_ones)),
    ("UPRMT", prmt),
    ("USEL", sel),
    ("USGXT", sgxt),
    ("USHF", shf),
    ("VABSDIFF", vabsdiff),
    ("VABSDIFF4", vabsdiff4),
    ("VIADD", viadd),
];

fn unary(i: &mut Decode<'_>, f: fn(u32) -> u32) -> Built {
    let (d, a) = (i.dst()?, i.src()?);
    i.end()?;
    Ok(on_lanes(move |r, m| {
        let v = r.int(a).map(f);
        r.set(d, m, v);
    }))
}

fn mov(i: &mut Decode<'_>) -> Built {
    if wide::is_wide(i) {
        return wide::mov(i);
    }
    let (d, a) = (i.dst()?, i.src()?);
    // The mask of bytes; compilers always write all of them.
    if i.left() > 0 && i.int()? != 0xf {
        return Err("a MOV of single bytes".to_owned());
    }
    i.end()?;
    Ok(on_lanes(move |r, m| {
        let v = r.int(a);
        r.set(d, m, v);
    }))
}

/// An addend as it enters a carry chain: `-x` is `!x + 1`, so that its carry is that of a subtraction.
#[inline(always)]
fn addend(r: &Regs, s: Src) -> [u64; LANES] {
    let flip = s.neg || s.not;
    let one = u64::from(s.neg);
    r.row(s.row).map(|x| u64::from(if flip { !x } else { x }) + one)
}

#[inline(always)]
fn carry(r: &Regs, p: Pred) -> [u64; LANES] {
    let m = r.pred(p);
    std::array::from_fn(|l| u64::from(m >> l & 1))
}

/// Predicates that stand for no carry.
pub(crate) const NO_CARRY: Pred = Pred {
    number: crate::regs::PT,
    not: true,
};

fn iadd3(i: &mut Decode<'_>) -> Built {
    let extended = i.take("X");
    let d = i.dst()?;
    let (p, q) = (i.pdst_if()?, i.pdst_if()?);
    let (a, b, c) = (i.src()?, i.src()?, i.src()?);
    let (x, y) = match (extended, i.left()) {
        (true, 2) => (i.psrc()?, i.psrc()?),
        (true, 1) => (i.psrc()?, NO_CARRY),
        _ => (NO_CARRY, NO_CARRY),
    };
    i.end()?;
    let chained = extended || (p, q) != (NO_PRED, NO_PRED);
    if !chained {
        if [a, b, c].iter().all(|s| s.is_plain()) {
            return Ok(on_lanes(move |r, m| {
                let v = rows::iadd3(r.row(a.row), r.row(b.row), r.row(c.row));
                r.set(d, m, v);
            }));
        }
        return Ok(on_lanes(move |r, m| {
            let v = rows::iadd3(&r.int(a), &r.int(b), &r.int(c));
            r.set(d, m, v);
        }));
    }
    Ok(on_lanes(move |r, m| {
        let (a, b, c) = (addend(r, a), addend(r, b), addend(r, c));
        let (x, y) = (carry(r, x), carry(r, y));
        let sum: [u64; LANES] = std::array::from_fn(|l| a[l] + b[l] + c[l] + x[l] + y[l]);
        r.set(d, m, sum.map(|s| s as u32));
        // The two carries count together; which of them is set first shows only in code that reads one alone.
        r.set_pred(p, m, lanes(|l| sum[l] >> 32 >= 1));
        r.set_pred(q, m, lanes(|l| sum[l] >> 32 >= 2));
    }))
}

fn lea(i: &mut Decode<'_>) -> Built {
    let (high, extended, signed) = (i.take("HI"), i.take("X"), i.take("SX32"));
    let d = i.dst()?;
    let p = i.pdst_if()?;
    let (a, b) = (i.src()?, i.src()?);
    let top = if high && !signed { i.src()? } else { i.zero() };
    let by = (i.int()? & 31) as u32;
    let x = if extended { i.psrc()? } else { NO_CARRY };
    i.end()?;
    Ok(on_lanes(move |r, m| {
        let (low, top) = (r.int(a), r.int(top));
        let (b, x) = (addend(r, b), carry(r, x));
        let sum: [u64; LANES] = std::array::from_fn(|l| {
            let wide = match signed {
                true => i64::from(low[l].signed()).unsigned(),
                false => u64::from(top[l]) << 32 | u64::from(low[l]),
            };
            let shifted = wide << by;
            let part = if high { shifted >> 32 } else { shifted & 0xffff_ffff };
            part + b[l] + x[l]
        });
        r.set(d, m, sum.map(|s| s as u32));
        r.set_pred(p, m, lanes(|l| sum[l] >> 32 != 0));
    }))
}

/// The product of two rows as 64 bits.
#[inline(always)]
fn product(a: u32, b: u32, unsigned: bool) -> u64 {
    match unsigned {
        true => u64::from(a) * u64::from(b),
        false => (i64::from(a.signed()) * i64::from(b.signed())).unsigned(),
    }
}

fn imad(i: &mut Decode<'_>) -> Built {
    let (wide, high, extended, unsigned) = (i.take("WIDE"), i.take("HI"), i.take("X"), i.take("U32"));
    let d = i.dst_wide(if wide { 2 } else { 1 })?;
    let p = i.pdst_if()?;
    let (a, b) = (i.src()?, i.src()?);
    let long = wide || high;
    let c = i.src_wide(if long { 2 } else { 1 })?;
    let x = if extended { i.psrc()? } else { NO_CARRY };
    i.end()?;
    if !long && !extended && [a, b, c].iter().all(|s| s.is_plain()) {
        return Ok(on_lanes(move |r, m| {
            let v = rows::imad(r.row(a.row), r.row(b.row), r.row(c.row));
            r.set(d, m, v);
        }));
    }
    if !long {
        return Ok(on_lanes(move |r, m| {
            let v = rows::imad(&r.int(a), &r.int(b), &r.int(c));
            match extended {
                false => r.set(d, m, v),
                true => {
                    let x = r.pred(x);
                    r.set(d, m, std::array::from_fn(|l| v[l].wrapping_add(x >> l & 1)));
                }
            }
        }));
    }
    Ok(on_lanes(move |r, m| {
        let (a, b, c, x) = (r.int(a), r.int(b), r.wide(c), carry(r, x));
        let (mut sum, mut over) = ([0; LANES], 0);
        for l in 0..LANES {
            let total = u128::from(product(a[l], b[l], unsigned)) + u128::from(c[l]) + u128::from(x[l]);
            sum[l] = total as u64;
            over |= Mask::from(total >> 64 != 0) << l;
        }
        match wide {
            true => r.set_wide(d, m, sum),
            false => r.set(d, m, sum.map(|s| (s >> 32) as u32)),
        }
        r.set_pred(p, m, over);
    }))
}

/// The product of integers of `bits` in one pair of lanes of bytes or halves.
fn idp(i: &mut Decode<'_>) -> Built {
    let bytes = i.need(&[("4A", true), ("2A", false)])?;
    let upper = i.choose(&[("HI", true), ("LO", false)]).unwrap_or(false);
    let kinds = &[("S8", true), ("U8", false), ("S16", true), ("U16", false)];
    let (signed_a, signed_b) = (i.need(kinds)?, i.need(kinds)?);
    let d = i.dst()?;
    let (a, b, c) = (i.src()?, i.src()?, i.src()?);
    i.end()?;
    let byte = |v: u32, n: u32, signed: bool| {
        let v = (v >> (8 * n)) as u8;
        if signed { i32::from(v.signed()) } else { i32::from(v) }
    };
    let half = |v: u32, n: u32, signed: bool| {
        let v = (v >> (16 * n)) as u16;
        if signed { i32::from(v.signed()) } else { i32::from(v) }
    };
    Ok(on_lanes(move |r, m| {
        let (a, b, c) = (r.int(a), r.int(b), r.int(c));
        let v = std::array::from_fn(|l| {
            let dot: i32 = match bytes {
                true => (0..4).map(|n| byte(a[l], n, signed_a) * byte(b[l], n, signed_b)).sum(),
                false => (0..2)
                    .map(|n| half(a[l], n, signed_a).wrapping_mul(byte(b[l], n + 2 * u32::from(upper), signed_b)))
                    .fold(0, i32::wrapping_add),
            };
            c[l].wrapping_add(dot.unsigned())
        });
        r.set(d, m, v);
    }))
}

fn shf(i: &mut Decode<'_>) -> Built {
    let right = i.need(&[("L", false), ("R", true)])?;
    let wrap = i.take("W");
    let (signed, bits) = i.need(&[
        ("U32", (false, 32)),
        ("S32", (true, 32)),
        ("U64", (false, 64)),
        ("S64", (true, 64)),
    ])?;
    let high = i.take("HI");
    let d = i.dst()?;
    let (low, by, top) = (i.src()?, i.src()?, i.src()?);
    i.end()?;
    // Half of the number alone, as compilers shift 32 bits.
    if bits == 32 && right == high {
        return Ok(on_lanes(move |r, m| {
            let by = r.int(by).map(|n| if wrap { n & 31 } else { n });
            let v = match right {
                true => rows::shift_right(&r.int(top), &by, signed),
                false => rows::shift_left(&r.int(low), &by),
            };
            r.set(d, m, v);
        }));
    }
    Ok(on_lanes(move |r, m| {
        let (low, by, top) = (r.int(low), r.int(by), r.int(top));
        let v = std::array::from_fn(|l| {
            let wide = u64::from(top[l]) << 32 | u64::from(low[l]);
            let by = if wrap { by[l] & (bits - 1) } else { by[l].min(bits) };
            let shifted = match (right, signed) {
                (true, true) => (wide.signed() >> by.min(63)).unsigned(),
                (true, false) => wide.checked_shr(by).unwrap_or(0),
                (false, _) => wide.checked_shl(by).unwrap_or(0),
            };
            if high { (shifted >> 32) as u32 } else { shifted as u32 }
        });
        r.set(d, m, v);
    }))
}

/// A function of three bits as masks of the products of its algebraic normal form: 1, c, b, bc, a, ac, ab, abc.
fn polynomial(table: u8) -> [u32; 8] {
    let mut k: [u8; 8] = std::array::from_fn(|n| table >> n & 1);
    for bit in [1, 2, 4] {
        for n in 0..8 {
            if n & bit != 0 {
                k[n] ^= k[n ^ bit];
            }
        }
    }
    k.map(|x| if x != 0 { !0 } else { 0 })
}

#[inline(always)]
fn evaluate(k: &[u32; 8], a: u32, b: u32, c: u32) -> u32 {
    let bc = k[0] ^ k[1] & c ^ k[2] & b ^ k[3] & b & c;
    let abc = k[4] ^ k[5] & c ^ k[6] & b ^ k[7] & b & c;
    bc ^ abc & a
}

fn lop3(i: &mut Decode<'_>) -> Built {
    i.ignore(&["LUT"]);
    let and = i.take("PAND");
    let p = i.pdst_if()?;
    let d = i.dst()?;
    let (a, b, c) = (i.src()?, i.src()?, i.src()?);
    let k = polynomial(i.int()? as u8);
    let q = i.psrc_or_true()?;
    i.end()?;
    Ok(on_lanes(move |r, m| {
        let (a, b, c) = (r.int(a), r.int(b), r.int(c));
        let v = rows::lop3(&a, &b, &c, &k);
        r.set(d, m, v);
        if p != NO_PRED {
            let some = lanes(|l| v[l] != 0);
            let q = r.pred(q);
            r.set_pred(p, m, if and { some & q } else { some | q });
        }
    }))
}

/// `PLOP3` and `UPLOP3`, which work on whole masks.
pub fn plop3(i: &mut Decode<'_>) -> Built {
    i.ignore(&["LUT"]);
    let (p, q) = (i.pdst()?, i.pdst()?);
    let (a, b, c) = (bit(i)?, bit(i)?, bit(i)?);
    let (k, l) = (polynomial(i.int()? as u8), polynomial(i.int()? as u8));
    i.end()?;
    Ok(on_lanes(move |r, m| {
        let (a, b, c) = (a.mask(r), b.mask(r), c.mask(r));
        r.set_pred(p, m, evaluate(&k, a, b, c));
        r.set_pred(q, m, evaluate(&l, a, b, c));
    }))
}

/// One bit of every lane: a predicate, or the sign of a number.
#[derive(Clone, Copy)]
enum Bit {
    Pred(Pred),
    Sign(Src),
}

fn bit(i: &mut Decode<'_>) -> Result<Bit, String> {
    if i.next_is(RegFile::P) || i.next_is(RegFile::UP) {
        return i.psrc().map(Bit::Pred);
    }
    match i.src_with_suffix(1)? {
        (s, "SIGN") if s == s.plain() => Ok(Bit::Sign(s)),
        _ => Err("an operand that is no bit".to_owned()),
    }
}

impl Bit {
    fn mask(self, r: &Regs) -> Mask {
        match self {
            Self::Pred(p) => r.pred(p),
            Self::Sign(s) => {
                let v = r.row(s.row);
                lanes(|l| v[l] >> 31 != 0)
            }
        }
    }
}

fn isetp(i: &mut Decode<'_>) -> Built {
    if wide::is_wide(i) {
        return wide::compare(i);
    }
    let order = i.need(compare::INTEGER)?;
    let unsigned = i.take("U32");
    let combine = i.need(compare::COMBINE)?;
    let extended = i.take("EX");
    let (p, q) = (i.pdst()?, i.pdst()?);
    let (a, b) = (i.src()?, i.src()?);
    let with = i.psrc_or_true()?;
    let low = if extended { i.psrc()? } else { Pred::TRUE };
    i.end()?;
    // Flipping the sign bit makes signed order unsigned.
    let flip = if unsigned { 0 } else { 0x8000_0000 };
    Ok(on_lanes(move |r, m| {
        let (a, b) = (r.int(a).map(|x| x ^ flip), r.int(b).map(|x| x ^ flip));
        let less = lanes(|l| a[l] < b[l]);
        let equal = lanes(|l| a[l] == b[l]);
        let holds = match extended {
            false => order.of(less, equal, 0),
            true => extend(order, less, equal, r.pred(low)),
        };
        let with = r.pred(with);
        r.set_pred(p, m, combine.of(holds, with));
        r.set_pred(q, m, combine.of(!holds, with));
    }))
}

/// The comparison of high words, where `low` is what that of the low words gave.
fn extend(order: Order, less: Mask, equal: Mask, low: Mask) -> Mask {
    let greater = !less & !equal;
    match order {
        Order::LT | Order::LE => less | equal & low,
        Order::GT | Order::GE => greater | equal & low,
        Order::EQ => equal & low,
        Order::NE => !equal | low,
        _ => order.of(less, equal, 0),
    }
}

/// Two numbers, with a carry out and in.
fn iadd(i: &mut Decode<'_>) -> Built {
    if wide::is_wide(i) {
        return wide::add(i);
    }
    let extended = i.take("X");
    let d = i.dst()?;
    let p = i.pdst_if()?;
    let (a, b) = (i.src()?, i.src()?);
    let x = if extended { i.psrc()? } else { NO_CARRY };
    i.end()?;
    if !extended && p == NO_PRED {
        return Ok(on_lanes(move |r, m| {
            let (a, b) = (r.int(a), r.int(b));
            r.set(d, m, std::array::from_fn(|l| a[l].wrapping_add(b[l])));
        }));
    }
    Ok(on_lanes(move |r, m| {
        let (a, b, x) = (addend(r, a), addend(r, b), carry(r, x));
        let sum: [u64; LANES] = std::array::from_fn(|l| a[l] + b[l] + x[l]);
        r.set(d, m, sum.map(|s| s as u32));
        r.set_pred(p, m, lanes(|l| sum[l] >> 32 != 0));
    }))
}

/// `VIADD`, of one number or of its parts.
fn viadd(i: &mut Decode<'_>) -> Built {
    let parts = Parts::take(i);
    if parts.bits == 32 {
        return iadd(i);
    }
    let d = i.dst()?;
    let (a, b) = (i.src()?, i.src()?);
    i.end()?;
    let signed = move |s: Src, v: &Row| v.map(|x| if s.neg { parts.each(0, x, u32::wrapping_sub) } else { x });
    Ok(on_lanes(move |r, m| {
        let (a, b) = (signed(a, r.row(a.row)), signed(b, r.row(b.row)));
        r.set(d, m, std::array::from_fn(|l| parts.each(a[l], b[l], u32::wrapping_add)));
    }))
}

fn sel(i: &mut Decode<'_>) -> Built {
    if wide::is_wide(i) {
        return wide::select(i);
    }
    let d = i.dst()?;
    let (a, b, p) = (i.src()?, i.src()?, i.psrc()?);
    i.end()?;
    Ok(on_lanes(move |r, m| {
        let (a, b, p) = (r.int(a), r.int(b), r.pred(p));
        r.set(d, m, std::array::from_fn(|l| if p >> l & 1 != 0 { a[l] } else { b[l] }));
    }))
}

fn prmt(i: &mut Decode<'_>) -> Built {
    let d = i.dst()?;
    let (a, by, c) = (i.src()?, i.src()?, i.src()?);
    i.end()?;
    Ok(on_lanes(move |r, m| {
        let (a, by, c) = (r.int(a), r.int(by), r.int(c));
        let v = std::array::from_fn(|l| {
            let bytes = u64::from(c[l]) << 32 | u64::from(a[l]);
            (0..4).fold(0, |out, n| {
                let pick = by[l] >> (4 * n);
                let byte = (bytes >> (8 * (pick & 7))) as u8;
                let byte = if pick & 8 != 0 {
                    (byte.signed() >> 7).unsigned()
                } else {
                    byte
                };
                out | u32::from(byte) << (8 * n)
            })
        });
        r.set(d, m, v);
    }))
}

fn bmsk(i: &mut Decode<'_>) -> Built {
    let wrap = i.take("W");
    i.ignore(&["C"]);
    let d = i.dst()?;
    let (at, width) = (i.src()?, i.src()?);
    i.end()?;
    Ok(on_lanes(move |r, m| {
        let (at, width) = (r.int(at), r.int(width));
        let v = std::array::from_fn(|l| {
            let limit = |x: u32| if wrap { x & 31 } else { x };
            let ones = 1u32.checked_shl(limit(width[l])).map_or(!0, |x| x - 1);
            ones.checked_shl(limit(at[l])).unwrap_or(0)
        });
        r.set(d, m, v);
    }))
}

fn sgxt(i: &mut Decode<'_>) -> Built {
    let (wrap, unsigned) = (i.take("W"), i.take("U32"));
    i.ignore(&["C"]);
    let d = i.dst()?;
    let (a, bits) = (i.src()?, i.src()?);
    i.end()?;
    Ok(on_lanes(move |r, m| {
        let (a, bits) = (r.int(a), r.int(bits));
        let v = std::array::from_fn(|l| match if wrap { bits[l] & 31 } else { bits[l] } {
            0 => 0,
            n @ 1..32 if unsigned => a[l] << (32 - n) >> (32 - n),
            n @ 1..32 => ((a[l] << (32 - n)).signed() >> (32 - n)).unsigned(),
            _ => a[l],
        });
        r.set(d, m, v);
    }))
}

fn flo(i: &mut Decode<'_>) -> Built {
    let (unsigned, from_top) = (i.take("U32"), i.take("SH"));
    i.ignore(&["S32"]);
    let d = i.dst()?;
    if i.pdst_if()? != NO_PRED {
        return Err("the predicate result of FLO".to_owned());
    }
    let a = i.src()?;
    i.end()?;
    Ok(on_lanes(move |r, m| {
        let v = r.int(a).map(|x| {
            let x = if !unsigned && x >> 31 != 0 { !x } else { x };
            match x.leading_zeros() {
                32 => !0,
                n if from_top => n,
                n => 31 - n,
            }
        });
        r.set(d, m, v);
    }))
}

fn vabsdiff(i: &mut Decode<'_>) -> Built {
    let unsigned = i.take("U32");
    let d = i.dst()?;
    if i.pdst_if()? != NO_PRED {
        return Err("the predicate result of VABSDIFF".to_owned());
    }
    let (a, b, c) = (i.src()?, i.src()?, i.src()?);
    i.end()?;
    Ok(on_lanes(move |r, m| {
        let (a, b, c) = (r.int(a), r.int(b), r.int(c));
        let v = std::array::from_fn(|l| {
            let difference = match unsigned {
                true => a[l].abs_diff(b[l]),
                false => a[l].signed().abs_diff(b[l].signed()),
            };
            difference.wrapping_add(c[l])
        });
        r.set(d, m, v);
    }))
}

fn vabsdiff4(i: &mut Decode<'_>) -> Built {
    let (sum, unsigned) = (i.take("ACC"), i.take("U8"));
    if !unsigned {
        return Err("VABSDIFF4 of signed bytes".to_owned());
    }
    let d = i.dst()?;
    if i.pdst_if()? != NO_PRED {
        return Err("the predicate result of VABSDIFF4".to_owned());
    }
    let (a, b, c) = (i.src()?, i.src()?, i.src()?);
    if !sum && c.plain() != i.zero() {
        return Err("VABSDIFF4 with a third operand and without ACC".to_owned());
    }
    i.end()?;
    Ok(on_lanes(move |r, m| {
        let (a, b, c) = (r.int(a), r.int(b), r.int(c));
        let v = std::array::from_fn(|l| {
            let (x, y) = (a[l].to_le_bytes(), b[l].to_le_bytes());
            let differences: [u8; 4] = std::array::from_fn(|n| x[n].abs_diff(y[n]));
            match sum {
                true => differences.iter().fold(c[l], |s, &d| s.wrapping_add(d.into())),
                false => u32::from_le_bytes(differences),
            }
        });
        r.set(d, m, v);
    }))
}
