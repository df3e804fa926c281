//! Barriers in shared memory as sm_90 has them (`SYNCS`), and bulk copies, which tell them of their bytes.
//!
//! Of a barrier's 64 bits compilers show these: it begins as `2^20 - n` at bit 1 and again at bit 43, for n arrivals, and bit 63 tells phases
//! apart. So bits 20:1 count arrivals until they run over, bits 62:43 say where the count begins again, and bits 42:21 hold the bytes that
//! are still to come.

use crate::access::{Place, Touch, Where, bytes, word};
use crate::arg::{Address, Kind};
use crate::build::{Builder, Built, Decode, Missing};
use crate::cta::Env;
use crate::error::Trap;
use crate::op::outside;
use crate::regs::{LANES, Src, each};
use crate::warp::Warp;
use crate::watch::Doing;

/// What executes which mnemonic.
pub const TABLE: &[(&str, Builder)] = &[("SYNCS", syncs), ("UBLKCP", bulk_copy)];

const COUNT: u64 = 0xf_ffff;
const BYTES: u64 = 0x3f_ffff;
const PHASE: u32 = 63;

/// A barrier after so many arrivals and so many more bytes to wait for.
fn arrived(state: u64, arrivals: u64, expected: i64) -> u64 {
    let begin = state >> 43 & COUNT;
    let count = (state >> 1 & COUNT) + arrivals;
    let left = (state >> 21).wrapping_add_signed(expected) & BYTES;
    let (count, phase) = match count > COUNT && left == 0 {
        true => (begin, state >> PHASE ^ 1),
        false => (count & COUNT, state >> PHASE),
    };
    // A count that has run over stays at 0 until the bytes are there.
    phase << PHASE | begin << 43 | left << 21 | count << 1 | state & 1
}

/// The bytes that were waited for have come.
fn complete(state: u64, size: u64) -> u64 {
    let all_arrived = state >> 1 & COUNT == 0;
    arrived(state, if all_arrived { COUNT + 1 } else { 0 }, -(size as i64))
}

fn touch(lane: usize, doing: Doing, address: u64) -> Touch {
    Touch {
        doing,
        kind: Where::Shared,
        address,
        size: 8,
        lane,
    }
}

/// Changes a barrier; gives what it was.
fn change(w: &mut Warp, env: &mut Env<'_>, (lane, address): (usize, u64), f: impl Fn(u64) -> u64) -> Result<u64, Trap> {
    let b = bytes(w, env, touch(lane, Doing::Atomic, address))?;
    let old = u64::from(word(b, 1)) << 32 | u64::from(word(b, 0));
    b.copy_from_slice(&f(old).to_le_bytes());
    Ok(old)
}

fn syncs(i: &mut Decode<'_>) -> Built {
    if i.take("CCTL") {
        return Err("SYNCS.CCTL".to_owned());
    }
    if i.take("PHASECHK") {
        return phase_check(i);
    }
    if i.take("ARRIVE") {
        return arrive(i);
    }
    let stores = i.need(&[("EXCH", true), ("LD", false)])?;
    i.need(&[("64", ())])?;
    let d = i.dst_wide(2)?;
    let place = Place::take(i, Where::Shared)?;
    let new = if stores { Some(i.src_wide(2)?) } else { None };
    i.end()?;
    Ok(outside(move |w, env, m| {
        let addresses = place.addresses(&w.regs);
        let new = new.map(|s| w.regs.wide(s));
        // On the uniform datapath all lanes are one.
        let lanes = if m == crate::regs::ALL { 1 } else { m };
        let mut old = [0; LANES];
        for l in each(lanes) {
            old[l] = change(w, env, (l, addresses[l]), |x| new.map_or(x, |n| n[l]))?;
        }
        w.regs.set_wide(d, m, if lanes == m { old } else { [old[0]; LANES] });
        Ok(())
    }))
}

/// How many arrive, and whether the operand is a count or bytes.
fn arrive(i: &mut Decode<'_>) -> Built {
    type Change = fn(u64, u64) -> u64;
    i.need(&[("TRANS64", ())])?;
    let f: Change = i
        .choose::<Change>(&[
            ("A1T0", |x, _| arrived(x, 1, 0)),
            ("A0TR", |x, n| arrived(x, 0, n as i64)),
            ("ART0", |x, n| arrived(x, n, 0)),
        ])
        .unwrap_or(|x, n| arrived(x, 1, n as i64));
    let d = i.dst_wide(2)?;
    let place = Place::take(i, Where::Shared)?;
    let n = i.src()?;
    i.end()?;
    Ok(outside(move |w, env, m| {
        let (addresses, n) = (place.addresses(&w.regs), w.regs.int(n));
        let mut old = [0; LANES];
        for l in each(m) {
            old[l] = change(w, env, (l, addresses[l]), |x| f(x, n[l].into()))?;
        }
        w.regs.set_wide(d, m, old);
        Ok(())
    }))
}

/// Whether the phase that bit 31 of the operand tells is over.
fn phase_check(i: &mut Decode<'_>) -> Built {
    i.need(&[("TRANS64", ())])?;
    // It may wait for a while, which is as good as not to.
    i.ignore(&["TRYWAIT"]);
    let p = i.pdst()?;
    let place = Place::take(i, Where::Shared)?;
    let phase = i.src()?;
    i.end()?;
    Ok(outside(move |w, env, m| {
        let (addresses, phase) = (place.addresses(&w.regs), w.regs.int(phase));
        let mut over = 0;
        for l in each(m) {
            let high = word(bytes(w, env, touch(l, Doing::Atomic, addresses[l]))?, 1);
            over |= ((high ^ phase[l]) >> 31) << l;
        }
        w.regs.set_pred(p, m, over);
        Ok(())
    }))
}

/// The two words of a pair of uniform registers.
fn pair(i: &mut Decode<'_>) -> Result<Src, Missing> {
    match i.arg()?.kind {
        Kind::Memory(Address {
            base,
            uniform: Some(r),
            offset: 0,
            ..
        }) if base.is_none_or(|b| b.is_zero) => Ok(Src {
            row: i.source_row(r, 2)?,
            ..i.zero()
        }),
        k => Err(format!("{k} as the address of a bulk copy")),
    }
}

/// `UBLKCP.S.G`: from global to shared memory, done at once. A pair says where to and which barrier is told, another where from, the size counts 16
/// bytes.
fn bulk_copy(i: &mut Decode<'_>) -> Built {
    if !(i.take("S") && i.take("G")) {
        return Err("a bulk copy other than from global to shared memory".to_owned());
    }
    let (to, from) = (pair(i)?, pair(i)?);
    let size = i.src()?;
    i.end()?;
    Ok(outside(move |w, env, _| {
        let (to, from, size) = (w.regs.wide(to)[0], w.regs.wide(from)[0], w.regs.int(size)[0] & 0xffff);
        let (to, barrier) = (to & 0xffff_ffff, to >> 32);
        for n in (0..u64::from(size)).map(|n| n * 16) {
            let one = |doing, kind, address| Touch {
                doing,
                kind,
                address,
                size: 16,
                lane: 0,
            };
            let mut copy = [0; 16];
            copy.copy_from_slice(bytes(w, env, one(Doing::Load, Where::Generic, from.wrapping_add(n)))?);
            bytes(w, env, one(Doing::Store, Where::Shared, to + n))?.copy_from_slice(&copy);
        }
        change(w, env, (0, barrier), |x| complete(x, u64::from(size) * 16))?;
        Ok(())
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phase_ends_when_all_have_come() {
        let begin = (COUNT + 1 - 3) << 1 | (COUNT + 1 - 3) << 43;
        let one = arrived(begin, 1, 0);
        let three = arrived(arrived(one, 1, 0), 1, 0);
        assert_eq!(three, begin | 1 << PHASE);
        assert_eq!(arrived(begin, 3, 0), three);
        let waiting = arrived(arrived(one, 1, 64), 1, 0);
        assert_eq!(waiting >> PHASE, 0);
        assert_eq!(complete(complete(waiting, 16), 48), three);
        // Bytes that come first wait for the arrivals.
        let early = complete(begin, 64);
        assert_eq!(arrived(arrived(early, 2, 0), 1, 64), three);
    }
}
