//! Atomics and reductions on memory. Lanes take their turns in ascending order.

use crate::access::{self, Place, Touch, Where, bytes, word};
use crate::build::{Builder, Built, Decode, Missing};
use crate::op::outside;
use crate::regs::{ALL, LANES, NO_PRED, Src, Wide, each};
use crate::rows::{self, Mode};
use crate::sign::{AsSigned, AsUnsigned};
use crate::soft::{self, BF16, F16, Format, Round};
use crate::watch::Doing;

/// What executes which mnemonic.
pub const TABLE: &[(&str, Builder)] = &[
    ("ATOM", |i| global(i, true)),
    ("ATOMG", |i| global(i, true)),
    ("ATOMS", shared),
    ("RED", |i| global(i, false)),
    ("REDG", |i| global(i, false)),
];

/// What an atomic makes of the old value and its operands.
type Change = fn(u64, u64, u64) -> u64;

/// The type that an atomic works on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Type {
    U32,
    S32,
    U64,
    S64,
    F32 { flush: bool },
    F64,
    Halves(Format),
}

impl Type {
    fn take(i: &mut Decode<'_>) -> Self {
        let base = i.choose(&[
            ("S32", Self::S32),
            ("64", Self::U64),
            ("U64", Self::U64),
            ("S64", Self::S64),
            ("F64", Self::F64),
            ("F32", Self::F32 { flush: false }),
            ("F16x2", Self::Halves(F16)),
            ("BF16x2", Self::Halves(BF16)),
            ("32", Self::U32),
        ]);
        let flush = i.take("FTZ");
        i.ignore(&["RN"]);
        match base {
            Some(Self::F32 { .. }) => Self::F32 { flush },
            b => b.unwrap_or(Self::U32),
        }
    }

    fn bytes(self) -> u32 {
        if matches!(self, Self::U64 | Self::S64 | Self::F64) {
            8
        } else {
            4
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Name {
    Add,
    Min,
    Max,
    Inc,
    Dec,
    And,
    Or,
    Xor,
    Exch,
    Cas,
}

const NAMES: &[(&str, Name)] = &[
    ("ADD", Name::Add),
    ("MIN", Name::Min),
    ("MAX", Name::Max),
    ("INC", Name::Inc),
    ("DEC", Name::Dec),
    ("AND", Name::And),
    ("OR", Name::Or),
    ("XOR", Name::Xor),
    ("EXCH", Name::Exch),
    ("CAS", Name::Cas),
];

fn halves(format: Format, a: u64, b: u64) -> u64 {
    let add = |by: u32| soft::add(format, a >> by & 0xffff, b >> by & 0xffff, Round::Nearest) << by;
    add(0) | add(16)
}

fn single(a: u64, b: u64, flush: bool) -> u64 {
    let mode = Mode { flush, saturate: false };
    rows::add(&[a as u32; LANES], &[b as u32; LANES], mode)[0].into()
}

/// Signed values as unsigned ones of the same order.
fn flip(x: u64, kind: Type) -> u64 {
    match kind {
        Type::S32 => x ^ 0x8000_0000,
        Type::S64 => x ^ 1 << 63,
        _ => x,
    }
}

fn change(name: Name, kind: Type) -> Result<Change, Missing> {
    Ok(match (name, kind) {
        (Name::Exch, _) => |_, b, _| b,
        (Name::Cas, _) => |a, b, c| if a == b { c } else { a },
        (Name::Add, Type::F32 { flush: true }) => |a, b, _| single(a, b, true),
        (Name::Add, Type::F32 { flush: false }) => |a, b, _| single(a, b, false),
        (Name::Add, Type::F64) => |a, b, _| rows::add64(&[a; LANES], &[b; LANES])[0],
        (Name::Add, Type::Halves(F16)) => |a, b, _| halves(F16, a, b),
        (Name::Add, Type::Halves(_)) => |a, b, _| halves(BF16, a, b),
        (_, Type::F32 { .. } | Type::F64 | Type::Halves(_)) => {
            return Err("an atomic of floats other than ADD".to_owned());
        }
        (Name::Add, _) => |a, b, _| a.wrapping_add(b),
        (Name::Min, Type::S32) => |a, b, _| if flip(a, Type::S32) < flip(b, Type::S32) { a } else { b },
        (Name::Max, Type::S32) => |a, b, _| if flip(a, Type::S32) > flip(b, Type::S32) { a } else { b },
        (Name::Min, Type::S64) => |a, b, _| a.signed().min(b.signed()).unsigned(),
        (Name::Max, Type::S64) => |a, b, _| a.signed().max(b.signed()).unsigned(),
        (Name::Min, _) => |a, b, _| a.min(b),
        (Name::Max, _) => |a, b, _| a.max(b),
        (Name::Inc, _) => |a, b, _| if a >= b { 0 } else { a + 1 },
        (Name::Dec, _) => |a, b, _| if a == 0 || a > b { b } else { a - 1 },
        (Name::And, _) => |a, b, _| a & b,
        (Name::Or, _) => |a, b, _| a | b,
        (Name::Xor, _) => |a, b, _| a ^ b,
    })
}

/// A memory location, what is done to it, and where the old value goes.
struct Atomic {
    kind: Where,
    place: Place,
    bytes: u32,
    change: Change,
    operands: [Option<Src>; 2],
    result: Option<u16>,
}

impl Atomic {
    /// Does it, lane by lane, and gives the old values.
    fn perform(
        &self,
        w: &mut crate::warp::Warp,
        env: &mut crate::cta::Env<'_>,
        m: u32,
    ) -> Result<Wide, crate::error::Trap> {
        let addresses = self.place.addresses(&w.regs);
        let wide = self.bytes == 8;
        let operands = self.operands.map(|s| match s {
            Some(s) if wide => w.regs.wide(s),
            Some(s) => w.regs.int(s).map(u64::from),
            None => [0; LANES],
        });
        let mut old = [0; LANES];
        for lane in each(m) {
            let touch = Touch {
                doing: Doing::Atomic,
                kind: self.kind,
                address: addresses[lane],
                size: self.bytes,
                lane,
            };
            let b = bytes(w, env, touch)?;
            let high = if wide { u64::from(word(b, 1)) << 32 } else { 0 };
            old[lane] = high | u64::from(word(b, 0));
            let new = (self.change)(old[lane], operands[0][lane], operands[1][lane]);
            b.copy_from_slice(&new.to_le_bytes()[..self.bytes as usize]);
        }
        if let Some(d) = self.result {
            match wide {
                true => w.regs.set_wide(d, m, old),
                false => w.regs.set(d, m, old.map(|x| x as u32)),
            }
        }
        Ok(old)
    }
}

fn global(i: &mut Decode<'_>, returns: bool) -> Built {
    let name = i.need(NAMES)?;
    i.ignore(access::CACHING);
    // Several numbers side by side.
    let parts = i
        .choose(&[("F32x2", 2u16), ("F32x4", 4)])
        .filter(|_| !returns && name == Name::Add);
    let kind = match parts {
        Some(_) => {
            i.ignore(&["RN"]);
            Type::F32 { flush: i.take("FTZ") }
        }
        None => Type::take(i),
    };
    let (mut p, mut result) = (NO_PRED, None);
    let rows = (kind.bytes() / 4) as u16;
    if returns {
        p = i.pdst_if()?;
        result = Some(i.dst_wide(rows)?);
    }
    let place = Place::take(i, Where::Generic)?;
    let first = i.src_wide(parts.unwrap_or(rows))?;
    let second = if name == Name::Cas {
        Some(i.src_wide(rows)?)
    } else {
        None
    };
    i.end()?;
    let change = change(name, kind)?;
    let atomics: Vec<Atomic> = (0..parts.unwrap_or(1))
        .map(|n| Atomic {
            kind: Where::Generic,
            place: place.behind(4 * i64::from(n)),
            bytes: kind.bytes(),
            change,
            operands: [Some(first.at(n)), second],
            result,
        })
        .collect();
    Ok(outside(move |w, env, m| {
        for atomic in &atomics {
            atomic.perform(w, env, m)?;
        }
        // The predicate says that the memory could do it; where it cannot, code goes another way to the same result.
        w.regs.set_pred(p, m, ALL);
        Ok(())
    }))
}

fn shared(i: &mut Decode<'_>) -> Built {
    if i.take("ARRIVE") {
        return arrive(i);
    }
    if i.take("CAST") {
        return compare_and_store(i);
    }
    let counts = i.take("POPC");
    let name = i.need(NAMES)?;
    let kind = Type::take(i);
    let rows = (kind.bytes() / 4) as u16;
    let result = Some(i.dst_wide(rows)?);
    let place = Place::take(i, Where::Shared)?;
    let (change, operands): (Change, _) = match counts {
        // Each lane counts one.
        true if name == Name::Inc => (|a, _, _| a.wrapping_add(1), [None, None]),
        true => return Err("ATOMS.POPC other than INC".to_owned()),
        false => {
            let first = Some(i.src_wide(rows)?);
            let second = if name == Name::Cas {
                Some(i.src_wide(rows)?)
            } else {
                None
            };
            (change(name, kind)?, [first, second])
        }
    };
    i.end()?;
    let atomic = Atomic {
        kind: Where::Shared,
        place,
        bytes: kind.bytes(),
        change,
        operands,
        result,
    };
    Ok(outside(move |w, env, m| atomic.perform(w, env, m).map(|_| ())))
}

/// `ATOMS.CAST`: like CAS, but gives whether it stored, as the loops that compilers put around it show.
fn compare_and_store(i: &mut Decode<'_>) -> Built {
    i.ignore(&["SPIN"]);
    let kind = Type::take(i);
    let rows = (kind.bytes() / 4) as u16;
    // From sm_120 on a predicate says it.
    let (p, d) = match i.next_is(isa::RegFile::P) {
        true => (i.pdst()?, i.sink()),
        false => (NO_PRED, i.dst()?),
    };
    let place = Place::take(i, Where::Shared)?;
    let (expected, new) = (i.src_wide(rows)?, i.src_wide(rows)?);
    i.end()?;
    let atomic = Atomic {
        kind: Where::Shared,
        place,
        bytes: kind.bytes(),
        change: change(Name::Cas, kind)?,
        operands: [Some(expected), Some(new)],
        result: None,
    };
    Ok(outside(move |w, env, m| {
        let expected = match rows {
            2 => w.regs.wide(expected),
            _ => w.regs.int(expected).map(u64::from),
        };
        let old = atomic.perform(w, env, m)?;
        let stored = crate::regs::lanes(|l| old[l] == expected[l]);
        w.regs.set(d, m, std::array::from_fn(|l| stored >> l & 1));
        w.regs.set_pred(p, m, stored);
        Ok(())
    }))
}

/// `ATOMS.ARRIVE.64` on an mbarrier. From how compilers set one up for n arrivals, the low word is 2^30 - n and the high word counts up from
/// -n in its low 31 bits; when they run over, bit 31, the phase, flips and the count begins again.
fn arrive(i: &mut Decode<'_>) -> Built {
    i.need(&[("64", ())])?;
    let d = i.dst_wide(2)?;
    let place = Place::take(i, Where::Shared)?;
    i.end()?;
    let change: Change = |old, _, _| {
        let (low, high) = (old as u32, (old >> 32) as u32);
        let next = high.wrapping_add(1);
        let expected = 0x4000_0000u32.wrapping_sub(low) & 0xf_ffff;
        let count = match next & 0x7fff_ffff {
            0 => 0u32.wrapping_sub(expected) & 0x7fff_ffff,
            c => c,
        };
        u64::from(next & 0x8000_0000 | count) << 32 | u64::from(low)
    };
    let atomic = Atomic {
        kind: Where::Shared,
        place,
        bytes: 8,
        change,
        operands: [None, None],
        result: Some(d),
    };
    Ok(outside(move |w, env, m| atomic.perform(w, env, m).map(|_| ())))
}
