//! Loads, stores, atomics.

use crate::arg::{Address, Kind};
use crate::build::{Builder, Built, Decode, Missing};
use crate::cta::Env;
use crate::error::{Space, Trap};
use crate::memory::{LOCAL_WINDOW, SHARED_WINDOW, WINDOW};
use crate::op::outside;
use crate::regs::{LANES, Mask, Regs, Row, Src, Wide, each};
use crate::sign::{AsSigned, AsUnsigned};
use crate::warp::Warp;
use crate::watch::{Access, Doing};

/// What executes which mnemonic.
pub const TABLE: &[(&str, Builder)] = &[
    ("CCTL", |i| nothing(i, &["IVALL", "E", "PF1", "PF2", "IV", "RS"])),
    ("DEPBAR", depbar),
    ("ACQBULK", |i| nothing(i, &[])),
    ("CGAERRBAR", |i| nothing(i, &[])),
    ("ERRBAR", |i| nothing(i, &[])),
    ("FENCE", |i| nothing(i, &["VIEW", "ASYNC", "S", "T", "G"])),
    ("PREEXIT", |i| nothing(i, &[])),
    ("LD", |i| load(i, Where::Generic)),
    ("LDC", ldc),
    ("LDG", |i| load(i, Where::Generic)),
    ("LDGDEPBAR", |i| nothing(i, &[])),
    ("LDGSTS", ldgsts),
    ("LDL", |i| load(i, Where::Local)),
    ("LDS", |i| load(i, Where::Shared)),
    ("LDSM", ldsm),
    ("MEMBAR", |i| nothing(i, &["SC", "ALL", "CTA", "GPU", "SYS", "VC"])),
    ("QSPC", qspc),
    ("ST", |i| store(i, Where::Generic)),
    ("STG", |i| store(i, Where::Generic)),
    ("STL", |i| store(i, Where::Local)),
    ("STS", |i| store(i, Where::Shared)),
    ("STSM", stsm),
    ("LDCU", ldc),
    ("ULDC", ldc),
];

/// Modifiers that say how to cache and order, which changes nothing where accesses happen one by one.
pub(crate) const CACHING: &[&str] = &[
    "E", "CONSTANT", "STRONG", "WEAK", "MMIO", "CTA", "SM", "GPU", "SYS", "EF", "EL", "LU", "EU", "NA", "BYPASS",
    "LTC64B", "LTC128B", "LTC256B", "ACCESS", "PRIVATE",
];

/// Which addresses an instruction takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Where {
    /// Any, by windows; those of global memory are a part.
    Generic,
    Shared,
    Local,
}

/// An address as it is computed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    base: Src,
    wide: bool,
    scale: u32,
    uniform: Option<(Src, bool)>,
    offset: i64,
    kind: Where,
}

impl Place {
    pub(crate) fn take(i: &mut Decode<'_>, kind: Where) -> Result<Self, Missing> {
        match i.arg()?.kind {
            Kind::Memory(address) => Self::of(i, address, kind),
            k => Err(format!("{k:?} as an address")),
        }
    }

    fn of(i: &mut Decode<'_>, a: Address, kind: Where) -> Result<Self, Missing> {
        let source = |i: &Decode<'_>, r: crate::arg::Reg| {
            Ok::<_, Missing>(Src {
                row: i.source_row(r, r.width.min(2).into())?,
                ..i.zero()
            })
        };
        Ok(Self {
            base: match a.base {
                Some(r) => source(i, r)?,
                None => i.zero(),
            },
            wide: a.base.is_some_and(|r| r.width == 2),
            scale: a.scale.max(1).into(),
            uniform: match a.uniform {
                Some(r) => Some((source(i, r)?, r.width == 2)),
                None => None,
            },
            offset: a.offset,
            kind,
        })
    }

    /// The place so many bytes further on.
    pub(crate) fn behind(self, bytes: i64) -> Self {
        Self {
            offset: self.offset + bytes,
            ..self
        }
    }

    /// The address of every lane: 64 bits, or 32 for shared, local and constant memory.
    pub(crate) fn addresses(&self, r: &Regs) -> Wide {
        let read = |s: Src, wide: bool| if wide { r.wide(s) } else { r.int(s).map(u64::from) };
        let mut v = read(self.base, self.wide);
        let uniform = self.uniform.map_or([0; LANES], |(s, wide)| read(s, wide));
        for l in 0..LANES {
            v[l] = v[l]
                .wrapping_mul(self.scale.into())
                .wrapping_add(uniform[l])
                .wrapping_add_signed(self.offset);
        }
        let narrow = self.kind != Where::Generic || !(self.wide || self.uniform.is_some_and(|u| u.1));
        if narrow { v.map(|a| a & 0xffff_ffff) } else { v }
    }
}

/// An address in the space that it is in.
pub(crate) fn resolve(kind: Where, address: u64) -> (Space, u64) {
    match kind {
        Where::Shared => (Space::Shared, address),
        Where::Local => (Space::Local, address),
        Where::Generic if address.wrapping_sub(SHARED_WINDOW) < WINDOW => (Space::Shared, address - SHARED_WINDOW),
        Where::Generic if address.wrapping_sub(LOCAL_WINDOW) < WINDOW => (Space::Local, address - LOCAL_WINDOW),
        Where::Generic => (Space::Global, address),
    }
}

/// What is accessed, by one lane.
#[derive(Clone, Copy)]
pub(crate) struct Touch {
    pub doing: Doing,
    pub kind: Where,
    pub address: u64,
    pub size: u32,
    pub lane: usize,
}

/// An access in words that those who look on understand.
fn describe(w: &Warp, env: &Env<'_>, t: Touch) -> Access {
    let (space, address) = resolve(t.kind, t.address);
    Access {
        doing: t.doing,
        space,
        address,
        size: t.size,
        ctaid: env.ctaid,
        warp: w.number,
        lane: t.lane as u32,
        pc: w.pc,
        number: env.steps,
    }
}

impl Env<'_> {
    /// Tells who looks on what an access left behind.
    #[cold]
    fn wrote(&mut self, w: &Warp, t: Touch, bytes: &[u8]) {
        let access = describe(w, self, t);
        if let Some(watch) = self.watch.as_deref_mut() {
            watch.wrote(&access, bytes);
        }
    }
}

/// The bytes that a lane accesses, after all checks.
#[inline]
pub(crate) fn bytes<'m>(w: &'m mut Warp, env: &'m mut Env<'_>, t: Touch) -> Result<&'m mut [u8], Trap> {
    let (space, address) = resolve(t.kind, t.address);
    w.accessing = t.lane;
    let access = match t.doing {
        Doing::Load => "load",
        Doing::Store => "store",
        Doing::Atomic => "atomic",
    };
    if address & u64::from(t.size - 1) != 0 {
        return Err(Trap::Misaligned {
            access,
            space,
            address: t.address,
            size: t.size,
        });
    }
    if env.watch.is_some() {
        env.accessed(describe(w, env, t))?;
    }
    let size = t.size as usize;
    match space {
        Space::Shared => env.shared.bytes(access, address, size, (0, 0)),
        Space::Local => w.local.bytes(access, address, size, (t.lane, w.local_size)),
        _ => env.memory.write(access, address, size),
    }
}

/// Size in bytes, and how a narrow number fills the register.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Width {
    pub bytes: u32,
    signed: bool,
}

impl Width {
    pub(crate) fn take(i: &mut Decode<'_>) -> Self {
        let (bytes, signed) = i
            .choose(&[
                ("U8", (1, false)),
                ("S8", (1, true)),
                ("U16", (2, false)),
                ("S16", (2, true)),
                ("32", (4, false)),
                ("64", (8, false)),
                ("128", (16, false)),
            ])
            .unwrap_or((4, false));
        Self { bytes, signed }
    }

    pub(crate) fn rows(self) -> u16 {
        (self.bytes.div_ceil(4)) as u16
    }

    /// Puts the bytes into a lane of as many rows as they take.
    #[inline(always)]
    pub(crate) fn spread(self, b: &[u8], lane: usize, rows: &mut [Row; 4]) {
        rows[0][lane] = self.word(b);
        for (n, row) in rows.iter_mut().enumerate().take(self.rows().into()).skip(1) {
            row[lane] = word(b, n);
        }
    }

    /// The first word of the bytes, extended.
    pub(crate) fn word(self, b: &[u8]) -> u32 {
        match (self.bytes, self.signed) {
            (1, false) => b[0].into(),
            (1, true) => i32::from(b[0].signed()).unsigned(),
            (2, false) => u16::from_le_bytes([b[0], b[1]]).into(),
            (2, true) => i32::from(i16::from_le_bytes([b[0], b[1]])).unsigned(),
            _ => word(b, 0),
        }
    }
}

/// Word `n` of some bytes.
pub(crate) fn word(b: &[u8], n: usize) -> u32 {
    u32::from_le_bytes([b[4 * n], b[4 * n + 1], b[4 * n + 2], b[4 * n + 3]])
}

/// The first word of some bytes.
pub(crate) fn first_word(b: &[u8]) -> u32 {
    word(b, 0)
}

fn nothing(i: &mut Decode<'_>, known: &[&str]) -> Built {
    i.ignore(known);
    // Prefetches name an address; without caches they have nothing to do.
    while i.left() > 0 {
        i.arg()?;
    }
    i.end()?;
    Ok(outside(|_, _, _| Ok(())))
}

/// Asynchronous copies are done at once, and scoreboards are not needed: every wait is over.
fn depbar(i: &mut Decode<'_>) -> Built {
    nothing(i, &["LE"])
}

fn load(i: &mut Decode<'_>, kind: Where) -> Built {
    i.ignore(CACHING);
    // sm_75 has it on loads of shared memory, where compilers put it on every one.
    i.ignore(&["U"]);
    let width = Width::take(i);
    if i.pdst_if()? != crate::regs::NO_PRED {
        return Err("the predicate result of a load".to_owned());
    }
    let d = i.dst_wide(width.rows())?;
    let place = Place::take(i, kind)?;
    if i.psrc_or_true()? != crate::regs::Pred::TRUE {
        return Err("a load with a source predicate".to_owned());
    }
    i.end()?;
    Ok(outside(move |w, env, m| {
        let addresses = place.addresses(&w.regs);
        let mut rows: [Row; 4] = [[0; LANES]; 4];
        if kind == Where::Generic && env.watch.is_none() && load_together(env, m, &addresses, width, &mut rows) {
            for n in 0..width.rows() {
                w.regs.set(d + n, m, rows[usize::from(n)]);
            }
            return Ok(());
        }
        for lane in each(m) {
            let touch = Touch {
                doing: Doing::Load,
                kind,
                address: addresses[lane],
                size: width.bytes,
                lane,
            };
            let b = bytes(w, env, touch)?;
            width.spread(b, lane, &mut rows);
        }
        for n in 0..width.rows() {
            w.regs.set(d + n, m, rows[usize::from(n)]);
        }
        Ok(())
    }))
}

/// Loads what lies in one buffer, and is aligned; otherwise false, and the lanes are to load one by one.
#[inline]
fn load_together(env: &mut Env<'_>, m: Mask, addresses: &Wide, width: Width, rows: &mut [Row; 4]) -> bool {
    let (mut low, mut high, mut bits) = (u64::MAX, 0, 0);
    for (l, &address) in addresses.iter().enumerate() {
        let here = m >> l & 1 != 0;
        low = low.min(if here { address } else { u64::MAX });
        high = high.max(if here { address } else { 0 });
        bits |= if here { address } else { 0 };
    }
    let size = u64::from(width.bytes);
    if bits & (size - 1) != 0 {
        return false;
    }
    let Some(data) = env.memory.within(low, high.wrapping_add(size)) else {
        return false;
    };
    for lane in each(m) {
        let at = (addresses[lane] - low) as usize;
        let b = &data[at..at + size as usize];
        width.spread(b, lane, rows);
    }
    true
}

fn store(i: &mut Decode<'_>, kind: Where) -> Built {
    i.ignore(CACHING);
    let width = Width::take(i);
    let place = Place::take(i, kind)?;
    let a = i.src_wide(width.rows())?;
    i.end()?;
    Ok(outside(move |w, env, m| {
        let addresses = place.addresses(&w.regs);
        let rows: [Row; 4] = std::array::from_fn(|n| *w.regs.row(a.row + (n as u16).min(width.rows() - 1)));
        for lane in each(m) {
            let touch = Touch {
                doing: Doing::Store,
                kind,
                address: addresses[lane],
                size: width.bytes,
                lane,
            };
            let b = bytes(w, env, touch)?;
            for (n, chunk) in b.chunks_mut(4).enumerate() {
                chunk.copy_from_slice(&rows[n][lane].to_le_bytes()[..chunk.len()]);
            }
            if env.watch.is_some() {
                let mut all = [0; 16];
                for n in 0..4 {
                    all[4 * n..4 * n + 4].copy_from_slice(&rows[n][lane].to_le_bytes());
                }
                env.wrote(w, touch, &all[..width.bytes as usize]);
            }
        }
        Ok(())
    }))
}

/// `LDC` and `ULDC`: a constant bank by an address that may be in a register. Constants with a fixed address are rows of the pool.
fn ldc(i: &mut Decode<'_>) -> Built {
    let width = Width::take(i);
    let d = i.dst_wide(width.rows())?;
    let Some(Kind::Const(bank, address)) = i.peek().map(|a| a.kind) else {
        return Err("a constant load without a constant".to_owned());
    };
    if address.base.is_none() && address.uniform.is_none() && width.bytes >= 4 {
        let a = i.src_wide(width.rows())?;
        i.end()?;
        return Ok(crate::op::on_lanes(move |r, m| {
            for n in 0..width.rows() {
                let v = *r.row(a.row + n);
                r.set(d + n, m, v);
            }
        }));
    }
    i.arg()?;
    let place = Place::of(i, address, Where::Shared)?;
    i.end()?;
    Ok(outside(move |w, env, m| {
        let addresses = place.addresses(&w.regs);
        for lane in each(m) {
            let b = env.banks.read(bank, addresses[lane], width.bytes)?;
            w.regs.set_lane(d, lane, width.word(b));
            for n in 1..usize::from(width.rows()) {
                w.regs.set_lane(d + n as u16, lane, word(b, n));
            }
        }
        Ok(())
    }))
}

/// A copy from global to shared memory, done at once.
fn ldgsts(i: &mut Decode<'_>) -> Built {
    i.ignore(CACHING);
    if i.has("ZFILL") {
        return Err("LDGSTS.ZFILL".to_owned());
    }
    let width = Width::take(i);
    let to = Place::take(i, Where::Shared)?;
    let from = Place::take(i, Where::Generic)?;
    if i.psrc_or_true()? != crate::regs::Pred::TRUE {
        return Err("LDGSTS with a source predicate".to_owned());
    }
    i.end()?;
    Ok(outside(move |w, env, m| {
        let (to, from) = (to.addresses(&w.regs), from.addresses(&w.regs));
        for lane in each(m) {
            let touch = |doing, kind, address| Touch {
                doing,
                kind,
                address,
                size: width.bytes,
                lane,
            };
            let mut copy = [0; 16];
            let copy = &mut copy[..width.bytes as usize];
            copy.copy_from_slice(bytes(w, env, touch(Doing::Load, Where::Generic, from[lane]))?);
            bytes(w, env, touch(Doing::Store, Where::Shared, to[lane]))?.copy_from_slice(copy);
        }
        Ok(())
    }))
}

/// `LDSM`: 8x8 matrices of halves. Lanes 8n to 8n+7 give the addresses of the rows of matrix n; lane l gets the two elements of row l/4 at
/// Whether 8 by 8 matrices are transposed on their way, and how many there are.
fn matrices(i: &mut Decode<'_>) -> Result<(bool, u16), String> {
    i.need(&[("16", ())])?;
    let transposed = i.need(&[("M88", false), ("MT88", true)])?;
    Ok((transposed, i.choose(&[("2", 2u16), ("4", 4)]).unwrap_or(1)))
}

/// A row of a matrix in shared memory: eight lanes have the addresses of one matrix.
fn matrix_row(doing: Doing, addresses: &Wide, matrix: u16, row: usize) -> Touch {
    let lane = usize::from(matrix) * 8 + row;
    Touch {
        doing,
        kind: Where::Shared,
        address: addresses[lane],
        size: 16,
        lane,
    }
}

/// columns 2(l%4), or, transposed, of column l/4.
fn ldsm(i: &mut Decode<'_>) -> Built {
    let (transposed, count) = matrices(i)?;
    let d = i.dst_wide(count)?;
    let place = Place::take(i, Where::Shared)?;
    i.end()?;
    Ok(outside(move |w, env, m| {
        if m != crate::regs::ALL {
            return Err(Trap::PartOfWarp(m));
        }
        let addresses = place.addresses(&w.regs);
        for n in 0..count {
            let mut tile = [[0u16; 8]; 8];
            for (row, out) in tile.iter_mut().enumerate() {
                let b = bytes(w, env, matrix_row(Doing::Load, &addresses, n, row))?;
                *out = std::array::from_fn(|c| u16::from_le_bytes([b[2 * c], b[2 * c + 1]]));
            }
            let element = |r: usize, c: usize| u32::from(if transposed { tile[c][r] } else { tile[r][c] });
            let v = std::array::from_fn(|l| {
                let (r, c) = (l / 4, 2 * (l % 4));
                element(r, c) | element(r, c + 1) << 16
            });
            w.regs.set(d + n, m, v);
        }
        Ok(())
    }))
}

/// `STSM`: the way back of `LDSM`.
fn stsm(i: &mut Decode<'_>) -> Built {
    let (transposed, count) = matrices(i)?;
    let place = Place::take(i, Where::Shared)?;
    let a = i.src_wide(count)?;
    i.end()?;
    Ok(outside(move |w, env, m| {
        if m != crate::regs::ALL {
            return Err(Trap::PartOfWarp(m));
        }
        let addresses = place.addresses(&w.regs);
        for n in 0..count {
            let v = *w.regs.row(a.row + n);
            let element = |r: usize, c: usize| {
                let (r, c) = if transposed { (c, r) } else { (r, c) };
                (v[r * 4 + c / 2] >> (c % 2 * 16)) as u16
            };
            for row in 0..8 {
                let b = bytes(w, env, matrix_row(Doing::Store, &addresses, n, row))?;
                for (c, to) in b.chunks_exact_mut(2).enumerate() {
                    to.copy_from_slice(&element(row, c).to_le_bytes());
                }
            }
        }
        Ok(())
    }))
}

/// Whether a generic address is in a space.
fn qspc(i: &mut Decode<'_>) -> Built {
    i.ignore(&["E"]);
    let asked = i.need(&[("S", Space::Shared), ("L", Space::Local), ("G", Space::Global)])?;
    let p = i.pdst()?;
    if i.dst()? != i.sink() {
        return Err("the number that QSPC gives".to_owned());
    }
    let place = Place::take(i, Where::Generic)?;
    i.end()?;
    Ok(crate::op::on_lanes(move |r, m| {
        let addresses = place.addresses(r);
        let inside: Mask = crate::regs::lanes(|l| resolve(Where::Generic, addresses[l]).0 == asked);
        r.set_pred(p, m, inside);
    }))
}
