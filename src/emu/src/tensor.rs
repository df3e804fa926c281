//! Matrix multiply-add of a warp. Which lane holds which element is as the PTX ISA lays out for `mma`.
//!
//! The hardware's rounding inside a dot product is not documented. Integers are exact. For floats the products are exact and are summed in
//! double precision in the order of k, with the addend first, and the sum is rounded once to nearest.

use crate::build::{Builder, Built, Decode};
use crate::error::Trap;
use crate::half::single;
use crate::op::{Run, outside};
use crate::regs::{ALL, LANES, Mask, Pred, Regs, Row, Src};
use crate::sign::AsSigned;
use crate::soft::{F16, F64, Round, convert};

/// What executes which mnemonic.
pub const TABLE: &[(&str, Builder)] = &[("DMMA", dmma), ("HMMA", hmma), ("IMMA", imma)];

/// Rows of `A` and `C`, columns of `B` and `C`, and the dimension that is summed over.
#[derive(Clone, Copy)]
struct Size {
    m: usize,
    n: usize,
    k: usize,
}

/// What a source register holds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Element {
    F16,
    BF16,
    TF32,
    S8,
    U8,
}

impl Element {
    /// Elements of a register.
    fn packed(self) -> usize {
        match self {
            Self::F16 | Self::BF16 => 2,
            Self::TF32 => 1,
            Self::S8 | Self::U8 => 4,
        }
    }

    fn float(self, word: u32, n: usize) -> f64 {
        let half = word >> (16 * n) & 0xffff;
        let bits = match self {
            Self::F16 => single(half),
            Self::BF16 => half << 16,
            _ => word & 0xffff_e000,
        };
        f32::from_bits(bits).into()
    }

    fn integer(self, word: u32, n: usize) -> i32 {
        let byte = (word >> (8 * n)) as u8;
        if self == Self::S8 {
            byte.signed().into()
        } else {
            byte.into()
        }
    }
}

/// Where element (row, k) of `A` is: lane, register, place in the register. Registers go through the row halves first, then through k.
fn in_a(size: Size, packed: usize, row: usize, k: usize) -> (usize, usize, usize) {
    let chunk = 4 * packed;
    let register = row / 8 + k / chunk * (size.m / 8);
    (row % 8 * 4 + k % chunk / packed, register, k % packed)
}

/// Where element (k, column) of `B` is.
fn in_b(packed: usize, k: usize, column: usize) -> (usize, usize, usize) {
    let chunk = 4 * packed;
    (column * 4 + k % chunk / packed, k / chunk, k % packed)
}

/// Where element (row, column) of `C` is: lane, and which of its elements.
fn in_c(row: usize, column: usize) -> (usize, usize) {
    (row % 8 * 4 + column / 2, row / 8 * 2 + column % 2)
}

/// Something that all lanes of a warp do together; a part of them cannot.
fn by_warp(f: impl Fn(&mut Regs, Mask) + Send + Sync + 'static) -> Run {
    outside(move |w, _, m| match m {
        ALL => {
            f(&mut w.regs, m);
            Ok(())
        }
        _ => Err(Trap::PartOfWarp(m)),
    })
}

fn registers(r: &Regs, s: Src, count: usize) -> Vec<Row> {
    (0..count as u16).map(|n| *r.row(s.row + n)).collect()
}

/// `c + a * b` for every element of the result.
fn multiply<T: Copy>(
    size: Size,
    packed: usize,
    (a, b): (&[Row], &[Row]),
    first: impl Fn(usize, usize) -> T,
    step: impl Fn(T, (u32, usize), (u32, usize)) -> T,
    mut put: impl FnMut(usize, usize, T),
) {
    for row in 0..size.m {
        for column in 0..size.n {
            let mut sum = first(row, column);
            for k in 0..size.k {
                let (la, ra, na) = in_a(size, packed, row, k);
                let (lb, rb, nb) = in_b(packed, k, column);
                sum = step(sum, (a[ra][la], na), (b[rb][lb], nb));
            }
            put(row, column, sum);
        }
    }
}

/// The uniform predicate at the end says whether something is left out; compilers leave it true.
fn no_predicate(i: &mut Decode<'_>) -> Result<(), String> {
    match i.psrc_or_true()? {
        Pred {
            number: 7 | 15,
            not: false,
        } => Ok(()),
        _ => Err("a matrix product with a predicate".to_owned()),
    }
}

fn hmma(i: &mut Decode<'_>) -> Built {
    let size = i.need(&[
        ("16816", Size { m: 16, n: 8, k: 16 }),
        ("1688", Size { m: 16, n: 8, k: 8 }),
        ("1684", Size { m: 16, n: 8, k: 4 }),
    ])?;
    let to_single = i.need(&[("F32", true), ("F16", false)])?;
    let element = i
        .choose(&[("BF16", Element::BF16), ("TF32", Element::TF32), ("F16", Element::F16)])
        .unwrap_or(Element::F16);
    let packed = element.packed();
    let (ra, rb) = (size.m / 8 * size.k / (4 * packed), size.k / (4 * packed));
    let rc = if to_single { 4 } else { 2 };
    if rb == 0 {
        return Err("this size of HMMA with this element".to_owned());
    }
    let d = i.dst_wide(rc)?;
    let (a, b, c) = (i.src_wide(ra as u16)?, i.src_wide(rb as u16)?, i.src_wide(rc)?);
    no_predicate(i)?;
    i.end()?;
    Ok(by_warp(move |r, m| {
        let (a, b, c) = (registers(r, a, ra), registers(r, b, rb), registers(r, c, rc.into()));
        let mut out = [[0u32; LANES]; 4];
        let first = |row, column| {
            let (lane, n) = in_c(row, column);
            match to_single {
                true => f64::from(f32::from_bits(c[n][lane])),
                false => Element::F16.float(c[n / 2][lane], n % 2),
            }
        };
        let step = |sum, (x, n), (y, k)| sum + element.float(x, n) * element.float(y, k);
        multiply(size, packed, (&a, &b), first, step, |row, column, sum| {
            let (lane, n) = in_c(row, column);
            match to_single {
                true if sum.is_nan() => out[n][lane] = 0x7fff_ffff,
                true => out[n][lane] = (sum as f32).to_bits(),
                false => {
                    let half = convert(F64, F16, sum.to_bits(), Round::Nearest) as u32;
                    out[n / 2][lane] |= half << (16 * (n % 2));
                }
            }
        });
        for n in 0..rc {
            r.set(d + n, m, out[usize::from(n)]);
        }
    }))
}

fn imma(i: &mut Decode<'_>) -> Built {
    let size = i.need(&[
        ("16832", Size { m: 16, n: 8, k: 32 }),
        ("16816", Size { m: 16, n: 8, k: 16 }),
        ("8816", Size { m: 8, n: 8, k: 16 }),
    ])?;
    const KINDS: &[(&str, Element)] = &[("S8", Element::S8), ("U8", Element::U8)];
    let (ea, eb) = (i.need(KINDS)?, i.need(KINDS)?);
    let saturate = i.take("SAT");
    let (ra, rb, rc) = (size.m / 8 * size.k / 16, size.k / 16, size.m as u16 / 4);
    let d = i.dst_wide(rc)?;
    let (a, sa) = i.src_with_suffix(ra as u16)?;
    let (b, sb) = i.src_with_suffix(rb as u16)?;
    if (sa, sb) != ("ROW", "COL") {
        return Err(format!("the layout {sa} {sb}"));
    }
    let c = i.src_wide(rc)?;
    no_predicate(i)?;
    i.end()?;
    Ok(by_warp(move |r, m| {
        let (a, b, c) = (registers(r, a, ra), registers(r, b, rb), registers(r, c, rc.into()));
        let mut out = [[0u32; LANES]; 4];
        let first = |row, column| {
            let (lane, n) = in_c(row, column);
            i64::from(c[n][lane].signed())
        };
        let step = |sum, (x, n), (y, k)| sum + i64::from(ea.integer(x, n) * eb.integer(y, k));
        multiply(size, 4, (&a, &b), first, step, |row, column, sum| {
            let (lane, n) = in_c(row, column);
            let sum = if saturate {
                sum.clamp(i32::MIN.into(), i32::MAX.into())
            } else {
                sum
            };
            out[n][lane] = sum as u32;
        });
        for n in 0..rc {
            r.set(d + n, m, out[usize::from(n)]);
        }
    }))
}

fn dmma(i: &mut Decode<'_>) -> Built {
    i.need(&[("884", ()), ("8x8x4", ())])?;
    let d = i.dst_wide(4)?;
    let (a, b, c) = (i.src_wide(2)?, i.src_wide(2)?, i.src_wide(4)?);
    no_predicate(i)?;
    i.end()?;
    Ok(by_warp(move |r, m| {
        let (a, b) = (r.double(a), r.double(b));
        let c = [r.double(c.plain()), r.double(c.at(2).plain())];
        let mut out = [[0u64; LANES]; 2];
        for lane in 0..LANES {
            for n in 0..2 {
                let (row, column) = (lane / 4, lane % 4 * 2 + n);
                let sum = (0..4).fold(f64::from_bits(c[n][lane]), |sum, k| {
                    f64::from_bits(a[row * 4 + k]).mul_add(f64::from_bits(b[column * 4 + k]), sum)
                });
                out[n][lane] = if sum.is_nan() { F64.nan() } else { sum.to_bits() };
            }
        }
        r.set_wide(d, m, out[0]);
        r.set_wide(d + 2, m, out[1]);
    }))
}
