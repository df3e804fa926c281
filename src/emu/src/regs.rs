//! The registers of one warp, as rows of 32 lanes. Uniform registers, immediates and constants are rows too, all lanes alike, so that one
//! piece of code serves the vector and the uniform datapath.

use crate::sign::AsSigned;
use std::sync::Arc;

/// Threads of a warp.
pub const LANES: usize = 32;
/// One 32-bit register of every lane.
pub type Row = [u32; LANES];
/// Two registers of every lane as one number.
pub type Wide = [u64; LANES];
/// One bit a lane.
pub type Mask = u32;
/// All lanes.
pub const ALL: Mask = !0;

/// The predicate that is true: `PT` and, 8 further, `UPT`.
pub const PT: u8 = 7;
/// Where writes to `PT` and `UPT` go.
pub const NO_PRED: u8 = 16;
const PREDICATES: usize = 17;

/// A source: a row, and what is done to it on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Src {
    pub(crate) row: u16,
    pub(crate) neg: bool,
    pub(crate) abs: bool,
    pub(crate) not: bool,
}

impl Src {
    /// The row next to it: the high half of a wide number.
    pub(crate) fn at(self, n: u16) -> Self {
        Self {
            row: self.row + n,
            ..self
        }
    }

    /// Whether nothing is done to it on the way.
    pub(crate) fn is_plain(self) -> bool {
        self == self.plain()
    }

    /// The same row without signs.
    pub(crate) fn plain(self) -> Self {
        Self {
            row: self.row,
            neg: false,
            abs: false,
            not: false,
        }
    }
}

/// A predicate that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pred {
    pub(crate) number: u8,
    pub(crate) not: bool,
}

impl Pred {
    /// Always true.
    pub const TRUE: Self = Self { number: PT, not: false };
}

/// Registers of a warp.
#[derive(Clone, Debug)]
pub struct Regs {
    rows: Vec<Row>,
    /// Immediates and constants, the same for all warps: rows from `rows.len()` on.
    pool: Arc<[Row]>,
    preds: [Mask; PREDICATES],
}

impl Regs {
    /// Registers at zero; `rows` is how many are the warp's own.
    pub fn new(rows: usize, pool: Arc<[Row]>) -> Self {
        let mut preds = [0; PREDICATES];
        preds[usize::from(PT)] = ALL;
        preds[usize::from(PT) + 8] = ALL;
        Self {
            rows: vec![[0; LANES]; rows],
            pool,
            preds,
        }
    }

    /// A row as it is.
    #[inline(always)]
    pub fn row(&self, row: u16) -> &Row {
        let row = usize::from(row);
        match self.rows.get(row) {
            Some(r) => r,
            None => &self.pool[row - self.rows.len()],
        }
    }

    /// An integer source.
    #[inline(always)]
    pub fn int(&self, s: Src) -> Row {
        let mut v = *self.row(s.row);
        if s.abs {
            v = v.map(|x| x.signed().unsigned_abs());
        }
        if s.neg {
            v = v.map(u32::wrapping_neg);
        }
        if s.not {
            v = v.map(|x| !x);
        }
        v
    }

    /// A single-precision source, as bits.
    #[inline(always)]
    pub fn float(&self, s: Src) -> Row {
        self.signed(s, 0x8000_0000)
    }

    /// A source whose signs are the given bits.
    #[inline(always)]
    pub fn signed(&self, s: Src, bits: u32) -> Row {
        let mut v = *self.row(s.row);
        if s.abs {
            v = v.map(|x| x & !bits);
        }
        if s.neg {
            v = v.map(|x| x ^ bits);
        }
        v
    }

    /// A 64-bit integer source in two rows; a sign is applied to the whole.
    #[inline(always)]
    pub fn wide(&self, s: Src) -> Wide {
        let (low, high) = (self.row(s.row), self.row(s.row + 1));
        let mut v: Wide = std::array::from_fn(|l| u64::from(high[l]) << 32 | u64::from(low[l]));
        if s.neg {
            v = v.map(u64::wrapping_neg);
        }
        if s.not {
            v = v.map(|x| !x);
        }
        v
    }

    /// A double-precision source, as bits.
    #[inline(always)]
    pub fn double(&self, s: Src) -> Wide {
        let mut v = self.wide(s.plain());
        if s.abs {
            v = v.map(|x| x & !(1 << 63));
        }
        if s.neg {
            v = v.map(|x| x ^ 1 << 63);
        }
        v
    }

    /// Writes the lanes of `mask`.
    #[inline(always)]
    pub fn set(&mut self, row: u16, mask: Mask, v: Row) {
        let to = &mut self.rows[usize::from(row)];
        if mask == ALL {
            *to = v;
        } else {
            for l in 0..LANES {
                to[l] = if mask >> l & 1 != 0 { v[l] } else { to[l] };
            }
        }
    }

    /// Writes two rows.
    #[inline(always)]
    pub fn set_wide(&mut self, row: u16, mask: Mask, v: Wide) {
        self.set(row, mask, v.map(|x| x as u32));
        self.set(row + 1, mask, v.map(|x| (x >> 32) as u32));
    }

    /// Writes one lane.
    #[inline(always)]
    pub fn set_lane(&mut self, row: u16, lane: usize, v: u32) {
        self.rows[usize::from(row)][lane] = v;
    }

    /// A predicate's lanes.
    #[inline(always)]
    pub fn pred(&self, p: Pred) -> Mask {
        let v = self.preds[usize::from(p.number)];
        if p.not { !v } else { v }
    }

    /// A predicate's lanes, by its number.
    pub fn pred_bits(&self, p: u8) -> Mask {
        self.preds[usize::from(p)]
    }

    /// Writes a predicate's lanes.
    #[inline(always)]
    pub fn set_pred(&mut self, p: u8, mask: Mask, v: Mask) {
        let to = &mut self.preds[usize::from(p)];
        *to = *to & !mask | v & mask;
    }
}

/// The lanes for which a condition holds.
#[inline(always)]
pub fn lanes(f: impl Fn(usize) -> bool) -> Mask {
    (0..LANES).fold(0, |m, l| m | Mask::from(f(l)) << l)
}

/// The numbers of the lanes in a mask.
pub fn each(mut mask: Mask) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lane = mask.trailing_zeros() as usize;
        mask &= mask.wrapping_sub(1);
        (lane < LANES).then_some(lane)
    })
}
