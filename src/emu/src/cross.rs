//! Across lanes and files: shuffles, votes, matches, reductions, special registers, block barriers.

use crate::arg::Kind;
use crate::build::{Builder, Built, Decode, Missing};
use crate::cta::{Env, Reduction};
use crate::memory::SHARED_WINDOW;
use crate::op::{on_lanes, outside};
use crate::regs::{ALL, LANES, Mask, Pred, Row, each, lanes};
use crate::sign::AsSigned;
use crate::warp::Warp;

/// What executes which mnemonic.
pub const TABLE: &[(&str, Builder)] = &[
    ("B2R", b2r),
    ("BAR", bar),
    ("CS2R", cs2r),
    ("CS2UR", cs2r),
    ("ELECT", elect),
    ("MATCH", matches),
    ("MOVM", movm),
    ("NOP", |i| {
        i.end()?;
        Ok(on_lanes(|_, _| {}))
    }),
    ("P2R", p2r),
    ("PLOP3", crate::int::plop3),
    ("R2P", r2p),
    ("R2UR", r2ur),
    ("CREDUX", redux),
    ("REDUX", redux),
    ("S2R", s2r),
    ("S2UR", s2r),
    ("SHFL", shfl),
    ("UP2UR", p2r),
    ("UPLOP3", crate::int::plop3),
    ("UR2UP", r2p),
    ("VOTE", vote),
    ("VOTEU", vote),
];

/// The way a shuffle goes.
#[derive(Clone, Copy)]
enum Way {
    Index,
    Up,
    Down,
    Butterfly,
}

fn shfl(i: &mut Decode<'_>) -> Built {
    let way = i.need(&[
        ("IDX", Way::Index),
        ("UP", Way::Up),
        ("DOWN", Way::Down),
        ("BFLY", Way::Butterfly),
    ])?;
    let p = i.pdst()?;
    let d = i.dst()?;
    let (a, by, limits) = (i.src()?, i.src()?, i.src()?);
    i.end()?;
    Ok(on_lanes(move |r, m| {
        let (a, by, limits) = (r.int(a), r.int(by), r.int(limits));
        let (mut v, mut inside) = (a, 0);
        for l in 0..LANES {
            let (lane, by) = (l as u32, by[l] & 31);
            let (clamp, segment) = (limits[l] & 31, limits[l] >> 8 & 31);
            let least = lane & segment;
            let most = least | clamp & !segment;
            let (from, fits) = match way {
                Way::Index => (least | by & !segment, (least | by & !segment) <= most),
                Way::Up => (lane.wrapping_sub(by), lane.wrapping_sub(by).signed() >= most.signed()),
                Way::Down => (lane + by, lane + by <= most),
                Way::Butterfly => (lane ^ by, lane ^ by <= most),
            };
            // From a lane that does not take part nothing defined comes; the own value stands in for it.
            if fits && m >> from & 1 != 0 {
                v[l] = a[from as usize];
            }
            inside |= Mask::from(fits) << l;
        }
        r.set(d, m, v);
        r.set_pred(p, m, inside);
    }))
}

fn vote(i: &mut Decode<'_>) -> Built {
    #[derive(Clone, Copy)]
    enum Kind {
        All,
        Any,
        Equal,
    }
    let kind = i.need(&[("ALL", Kind::All), ("ANY", Kind::Any), ("EQ", Kind::Equal)])?;
    let uniform = i.mnemonic == "VOTEU";
    let d = i.dst()?;
    let (p, a) = (i.pdst()?, i.psrc()?);
    i.end()?;
    Ok(on_lanes(move |r, m| {
        let ballot = r.pred(a) & m;
        let holds = match kind {
            Kind::All => ballot == m,
            Kind::Any => ballot != 0,
            Kind::Equal => ballot == 0 || ballot == m,
        };
        let to = if uniform { ALL } else { m };
        r.set(d, to, [ballot; LANES]);
        r.set_pred(p, to, if holds { ALL } else { 0 });
    }))
}

fn matches(i: &mut Decode<'_>) -> Built {
    let all = i.need(&[("ALL", true), ("ANY", false)])?;
    let wide = i.take("U64");
    let p = i.pdst_if()?;
    let d = i.dst()?;
    let a = i.src_wide(if wide { 2 } else { 1 })?;
    i.end()?;
    Ok(on_lanes(move |r, m| {
        let v = if wide { r.wide(a) } else { r.int(a).map(u64::from) };
        let same: Row = std::array::from_fn(|l| lanes(|k| v[k] == v[l]) & m);
        let agree = each(m).all(|l| same[l] == m);
        match all {
            true => r.set(d, m, [if agree { m } else { 0 }; LANES]),
            false => r.set(d, m, same),
        }
        r.set_pred(p, m, if agree { ALL } else { 0 });
    }))
}

/// The first of the lanes that are here.
fn elect(i: &mut Decode<'_>) -> Built {
    let (p, d) = (i.pdst()?, i.dst()?);
    if d != i.sink() || i.psrc()? != Pred::TRUE {
        return Err("ELECT with more than a predicate".to_owned());
    }
    i.end()?;
    Ok(on_lanes(move |r, m| r.set_pred(p, m, m & m.wrapping_neg())))
}

/// `MOVM`: an 8x8 matrix of halves, of which each lane has two of a row, gets rows for columns.
fn movm(i: &mut Decode<'_>) -> Built {
    i.need(&[("16", ())])?;
    i.need(&[("MT88", ())])?;
    let (d, a) = (i.dst()?, i.src()?);
    i.end()?;
    Ok(outside(move |w, _, m| {
        if m != ALL {
            return Err(crate::error::Trap::PartOfWarp(m));
        }
        let a = w.regs.int(a);
        let element = |row: usize, column: usize| a[row * 4 + column / 2] >> (column % 2 * 16) & 0xffff;
        let v = std::array::from_fn(|l| {
            let (r, c) = (l / 4, 2 * (l % 4));
            element(c, r) | element(c + 1, r) << 16
        });
        w.regs.set(d, m, v);
        Ok(())
    }))
}

/// `REDUX`; without a name it is AND, which compilers show by what they use it for.
fn redux(i: &mut Decode<'_>) -> Built {
    type Fold = fn(u32, u32, u32) -> u32;
    let fold = i.choose::<Fold>(&[
        ("SUM", |a, b, _| a.wrapping_add(b)),
        ("MIN", |a, b, flip| (a ^ flip).min(b ^ flip) ^ flip),
        ("MAX", |a, b, flip| (a ^ flip).max(b ^ flip) ^ flip),
        ("OR", |a, b, _| a | b),
        ("XOR", |a, b, _| a ^ b),
        ("AND", |a, b, _| a & b),
    ]);
    let fold = fold.unwrap_or(|a, b, _| a & b);
    let flip = if i.take("S32") { 0x8000_0000 } else { 0 };
    let (d, a) = (i.dst()?, i.src()?);
    i.end()?;
    Ok(on_lanes(move |r, m| {
        let a = r.int(a);
        if let Some(v) = each(m).map(|l| a[l]).reduce(|x, y| fold(x, y, flip)) {
            r.set(d, ALL, [v; LANES]);
        }
    }))
}

/// To the uniform file from the first lane that is active. The predicate says that another lane has another value: where compilers use it, before
/// a vote with a mask in a register, the lanes go the slow way then (see [`crate::flow::Flow::IfConverged`]).
fn r2ur(i: &mut Decode<'_>) -> Built {
    let p = i.pdst_if()?;
    let (d, a) = (i.dst()?, i.src()?);
    i.end()?;
    Ok(on_lanes(move |r, m| {
        let a = r.int(a);
        let v = a[m.trailing_zeros() as usize];
        r.set(d, ALL, [v; LANES]);
        r.set_pred(p, m, if each(m).any(|l| a[l] != v) { ALL } else { 0 });
    }))
}

/// Which predicate file a name stands for: the number of its first predicate.
fn predicate_file(i: &mut Decode<'_>) -> Result<u8, Missing> {
    match i.arg()?.kind {
        Kind::Name("PR") => Ok(0),
        Kind::Name("UPR") => Ok(8),
        k => Err(format!("{k:?} as a predicate file")),
    }
}

fn byte_of(suffix: &str) -> Result<u32, Missing> {
    match suffix {
        "" => Ok(0),
        "B1" => Ok(8),
        "B2" => Ok(16),
        "B3" => Ok(24),
        _ => Err(format!("the operand suffix {suffix}")),
    }
}

/// Predicates into the bits of a byte that a mask selects.
fn p2r(i: &mut Decode<'_>) -> Built {
    let d = i.dst()?;
    let file = predicate_file(i)?;
    let (a, suffix) = i.src_with_suffix(1)?;
    let by = byte_of(suffix)?;
    let select = i.src()?;
    i.end()?;
    Ok(on_lanes(move |r, m| {
        let (a, select) = (r.int(a), r.int(select));
        let file: [Mask; 7] = std::array::from_fn(|n| {
            r.pred(Pred {
                number: file + n as u8,
                not: false,
            })
        });
        let v = std::array::from_fn(|l| {
            let bits = file.iter().enumerate().fold(0, |b, (n, p)| b | (p >> l & 1) << n);
            let select = (select[l] & 0x7f) << by;
            a[l] & !select | bits << by & select
        });
        r.set(d, m, v);
    }))
}

/// The bits of a byte that a mask selects into predicates.
fn r2p(i: &mut Decode<'_>) -> Built {
    let file = predicate_file(i)?;
    let (a, suffix) = i.src_with_suffix(1)?;
    let by = byte_of(suffix)?;
    let select = i.src()?;
    i.end()?;
    Ok(on_lanes(move |r, m| {
        let (a, select) = (r.int(a), r.int(select));
        for n in 0..7 {
            let chosen = lanes(|l| select[l] >> n & 1 != 0);
            r.set_pred(file + n, m & chosen, lanes(|l| a[l] >> by >> n & 1 != 0));
        }
    }))
}

/// What a special register reads as, for one warp.
type Special = fn(&Warp, &Env<'_>) -> Row;

const SPECIAL: &[(&str, Special)] = &[
    ("SRZ", |_, _| [0; LANES]),
    // A launch without clusters: each block is one of its own.
    ("SR_CgaCtaId", |_, _| [0; LANES]),
    ("SR_CgaSize", |_, _| [1; LANES]),
    ("SR_CLOCKHI", |_, e| [(e.steps >> 32) as u32; LANES]),
    ("SR_CLOCKLO", |_, e| [e.steps as u32; LANES]),
    ("SR_CTAID.X", |_, e| [e.ctaid[0]; LANES]),
    ("SR_CTAID.Y", |_, e| [e.ctaid[1]; LANES]),
    ("SR_CTAID.Z", |_, e| [e.ctaid[2]; LANES]),
    ("SR_EQMASK", |_, _| per_lane(|l| 1 << l)),
    ("SR_GEMASK", |_, _| per_lane(|l| ALL << l)),
    ("SR_GLOBALTIMERHI", |_, e| [(e.steps >> 32) as u32; LANES]),
    ("SR_GLOBALTIMERLO", |_, e| [e.steps as u32; LANES]),
    ("SR_GTMASK", |_, _| per_lane(|l| ALL << l & !(1 << l))),
    ("SR_LANEID", |_, _| per_lane(|l| l)),
    ("SR_LEMASK", |_, _| per_lane(|l| ALL >> (31 - l))),
    ("SR_LTMASK", |_, _| per_lane(|l| (1 << l) - 1)),
    ("SR_SWINHI", |_, _| [(SHARED_WINDOW >> 32) as u32; LANES]),
    ("SR_TID.X", |w, _| w.tid[0]),
    ("SR_TID.Y", |w, _| w.tid[1]),
    ("SR_TID.Z", |w, _| w.tid[2]),
    ("SR_VIRTUALSMID", |_, _| [0; LANES]),
];

fn per_lane(f: impl Fn(u32) -> u32) -> Row {
    std::array::from_fn(|l| f(l as u32))
}

fn special(i: &mut Decode<'_>) -> Result<(&'static str, Special), Missing> {
    let Kind::Name(name) = i.arg()?.kind else {
        return Err("a special register without a name".to_owned());
    };
    let found = SPECIAL.iter().find(|(n, _)| *n == name);
    found.copied().ok_or_else(|| format!("the special register {name}"))
}

fn s2r(i: &mut Decode<'_>) -> Built {
    let d = i.dst()?;
    let (_, value) = special(i)?;
    i.end()?;
    Ok(outside(move |w, env, m| {
        let v = value(w, env);
        w.regs.set(d, m, v);
        Ok(())
    }))
}

fn cs2r(i: &mut Decode<'_>) -> Built {
    let narrow = i.take("32");
    let d = i.dst_wide(if narrow { 1 } else { 2 })?;
    let (name, low) = special(i)?;
    let high = match name {
        _ if narrow => None,
        "SRZ" => Some(low),
        _ if name.ends_with("LO") => {
            let of = |(other, _): &&(&str, Special)| other.strip_suffix("HI") == name.strip_suffix("LO");
            let high = SPECIAL.iter().find(of).ok_or_else(|| format!("{name} as 64 bits"))?;
            Some(high.1)
        }
        _ => return Err(format!("{name} as 64 bits")),
    };
    i.end()?;
    Ok(outside(move |w, env, m| {
        let (a, b) = (low(w, env), high.map(|h| h(w, env)));
        w.regs.set(d, m, a);
        if let Some(b) = b {
            w.regs.set(d + 1, m, b);
        }
        Ok(())
    }))
}

fn bar(i: &mut Decode<'_>) -> Built {
    i.ignore(&["DEFER_BLOCKING"]);
    let waits = i.need(&[("SYNC", true), ("RED", true), ("ARV", false)])?;
    let reduction = i
        .choose(&[
            ("POPC", Reduction::Count),
            ("OR", Reduction::Or),
            ("AND", Reduction::And),
        ])
        .unwrap_or(Reduction::None);
    let id = i.src()?;
    let count = if i.left() > 0 && !i.next_is(isa::RegFile::P) {
        i.src()?
    } else {
        i.zero()
    };
    let p = i.psrc_or_true()?;
    i.end()?;
    Ok(outside(move |w, env, m| {
        let first = m.trailing_zeros() as usize;
        let id = (w.regs.int(id)[first] & 15) as u8;
        let bar = &mut env.bars[usize::from(id)];
        bar.arrive(w.number, m, w.regs.int(count)[first]);
        if reduction != Reduction::None {
            let p = w.regs.pred(p);
            bar.reduce(reduction, p & m, !p & m);
        }
        if waits {
            w.wait_for_block(m, id);
        }
        Ok(())
    }))
}

fn b2r(i: &mut Decode<'_>) -> Built {
    i.need(&[("RESULT", ())])?;
    let d = i.dst()?;
    let p = i.pdst_if()?;
    i.end()?;
    Ok(outside(move |w, _, m| {
        let v = w.reduced;
        w.regs.set(d, m, [v; LANES]);
        w.regs.set_pred(p, m, if v != 0 { ALL } else { 0 });
        Ok(())
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::regs::Regs;

    #[test]
    fn predicates_pack_and_unpack() {
        let mut r = Regs::new(4, std::sync::Arc::from([[0; LANES]]));
        r.set_pred(3, ALL, 0xff00);
        assert_eq!(r.pred(Pred { number: 3, not: true }), !0xff00);
        assert_eq!(r.pred(Pred::TRUE), ALL);
    }
}
