//! Control flow: branches, calls, convergence barriers, exit.

use isa::RegFile;

use crate::arg::{Kind, Target};
use crate::build::{Builder, Built, Decode, Missing};
use crate::op::{Run, on_lanes, outside};
use crate::regs::{LANES, Pred, Src, each};
use crate::sign::AsUnsigned;

/// Where an indirect jump counts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// The start of the instruction's section, plus bytes.
    Section(u64),
    /// Address zero, plus bytes.
    Absolute(i64),
    /// The instruction behind, plus bytes.
    Next(i64),
}

/// A change of control.
#[derive(Clone, Copy, Debug)]
pub enum Flow {
    /// To a byte offset in the section, for the lanes where the predicate holds.
    Branch(Pred, u64),
    /// To a byte offset in the section, for all lanes, if the warp is (is not) converged: if the lanes where the predicate holds are those that
    /// the mask says should be together. So a predicate that holds nowhere sends them the way of a warp that is not converged, without which
    /// the code that compilers make for votes with a mask in a register would be wrong.
    IfConverged(Pred, Src, bool, u64),
    /// To a byte offset in the section, for all lanes, if the predicate holds for any of them.
    IfAny(Pred, u64),
    /// To an address.
    Absolute(Pred, u64),
    /// To an address in two registers.
    Indirect(Pred, Src, Base),
    /// The thread ends.
    Exit(Pred),
    /// The lanes that are here will wait for each other at this barrier.
    Gather(Pred, u8),
    /// Waits for the lanes of a barrier.
    Wait(Pred, u8),
    /// Leaves a barrier.
    Leave(Pred, u8),
    /// Waits for the lanes of a mask; if it is exclusive, lanes with other masks stay apart until they meet again.
    WarpWait(Pred, Src, bool),
    /// Waits for the lanes of a mask, which then do together what follows, up to the end of it; each goes on at the offset that it named.
    Collective(Pred, Src, u64),
    /// The end of what lanes do together.
    EndCollective,
    /// Lets other lanes run.
    Yield,
    /// Stops everything.
    Trap,
}

/// What executes which mnemonic.
pub const TABLE: &[(&str, Builder)] = &[
    ("BMOV", bmov),
    ("BPT", |i| {
        i.need(&[("TRAP", ())])?;
        i.int()?;
        finish(i, Flow::Trap)
    }),
    ("BRA", bra),
    ("BREAK", |i| barrier(i, Flow::Leave)),
    ("BRX", indirect),
    ("BRXU", indirect),
    ("BSSY", bssy),
    ("BSYNC", bsync),
    ("CALL", call),
    ("ENDCOLLECTIVE", |i| finish(i, Flow::EndCollective)),
    ("EXIT", |i| {
        let p = i.psrc_or_true()?;
        finish(i, Flow::Exit(p))
    }),
    ("JMP", call),
    ("JMX", call),
    ("LEPC", lepc),
    ("NANOSLEEP", nanosleep),
    ("RET", call),
    ("WARPSYNC", warpsync),
    ("YIELD", |i| {
        i.psrc_or_true()?;
        finish(i, Flow::Yield)
    }),
];

fn finish(i: &mut Decode<'_>, flow: Flow) -> Built {
    i.end()?;
    Ok(Run::Flow(flow))
}

fn label(i: &mut Decode<'_>) -> Result<u64, Missing> {
    match i.arg()?.kind {
        Kind::Label(l) => Ok(l),
        k => Err(format!("{k} as a label")),
    }
}

fn bra(i: &mut Decode<'_>) -> Built {
    let p = i.psrc_or_true()?;
    if let Some(converged) = i.choose(&[("DIV", false), ("CONV", true)]) {
        // On sm_75 it is always the whole warp.
        let mask = match i.left() {
            1 => i.number(!0),
            _ => i.src()?,
        };
        let to = label(i)?;
        return finish(i, Flow::IfConverged(p, mask, converged, to));
    }
    if i.take("ANY") {
        i.ignore(&["U"]);
        let to = label(i)?;
        return finish(i, Flow::IfAny(p, to));
    }
    // `.U` says that the warp is converged, which the emulator need not be told. It can have a uniform predicate of its own.
    i.ignore(&["U"]);
    let p = match i.next_is(RegFile::UP) {
        true if p == Pred::TRUE => i.psrc()?,
        true => return Err("two predicates".to_owned()),
        false => p,
    };
    let to = label(i)?;
    finish(i, Flow::Branch(p, to))
}

fn barrier_number(i: &mut Decode<'_>) -> Result<u8, Missing> {
    match i.arg()?.reg() {
        Some(r) if r.file == RegFile::B && r.number < 16 => Ok(r.number),
        _ => Err("an operand that is no convergence barrier".to_owned()),
    }
}

fn barrier(i: &mut Decode<'_>, flow: fn(Pred, u8) -> Flow) -> Built {
    i.ignore(CERTAINTY);
    let p = i.psrc_or_true()?;
    let b = barrier_number(i)?;
    finish(i, flow(p, b))
}

/// From sm_100 on compilers say `RECONVERGENT` where lanes must meet. Where they do not, as behind a loop in which lanes wait for a lock that one
/// of them holds, those that are there may go on; so they do.
fn bsync(i: &mut Decode<'_>) -> Built {
    if i.driver().barriers_say_if_lanes_meet && !i.has("RECONVERGENT") && !i.has("RELIABLE") {
        i.psrc_or_true()?;
        barrier_number(i)?;
        i.end()?;
        return Ok(on_lanes(|_, _| {}));
    }
    barrier(i, Flow::Wait)
}

/// Modifiers of barriers from sm_90 on. No document says what they promise; here every lane that is gathered is waited for.
const CERTAINTY: &[&str] = &["RECONVERGENT", "RELIABLE"];

fn bssy(i: &mut Decode<'_>) -> Built {
    i.ignore(CERTAINTY);
    let p = i.psrc_or_true()?;
    let b = barrier_number(i)?;
    // Where the lanes will meet; BSYNC is there, so that nothing needs it.
    label(i)?;
    finish(i, Flow::Gather(p, b))
}

fn call(i: &mut Decode<'_>) -> Built {
    // The depth that the other bits count is for the debugger.
    i.ignore(&["NOINC", "NODEC"]);
    let relative = i.choose(&[("REL", true), ("ABS", false)]).unwrap_or(false);
    let p = i.psrc_or_true()?;
    let flow = match i.arg()?.kind {
        Kind::Label(l) => Flow::Branch(p, l),
        Kind::Int(address) if !relative => Flow::Absolute(p, address.unsigned()),
        Kind::Indirect(r, Target::Section(at)) => Flow::Indirect(p, wide(i, r)?, Base::Section(at)),
        Kind::Indirect(r, Target::Number(n)) if !relative => Flow::Indirect(p, wide(i, r)?, Base::Absolute(n)),
        Kind::Reg(r) if !relative => Flow::Indirect(p, wide(i, r)?, Base::Absolute(0)),
        k => return Err(format!("{k} as a target")),
    };
    finish(i, flow)
}

fn indirect(i: &mut Decode<'_>) -> Built {
    let p = i.psrc_or_true()?;
    let flow = match i.arg()?.kind {
        Kind::Indirect(r, Target::Section(at)) => Flow::Indirect(p, wide(i, r)?, Base::Section(at)),
        Kind::Indirect(r, Target::Number(n)) => Flow::Indirect(p, wide(i, r)?, Base::Next(n)),
        k => return Err(format!("{k} as a target")),
    };
    finish(i, flow)
}

fn wide(i: &mut Decode<'_>, r: crate::arg::Reg) -> Result<Src, Missing> {
    Ok(Src {
        row: i.source_row(r, 2)?,
        ..i.zero()
    })
}

fn warpsync(i: &mut Decode<'_>) -> Built {
    if i.take("COLLECTIVE") {
        let (p, mask) = (i.psrc_or_true()?, i.src()?);
        let to = label(i)?;
        return finish(i, Flow::Collective(p, mask, to));
    }
    let exclusive = i.take("EXCLUSIVE");
    i.ignore(&["ALL"]);
    let p = i.psrc_or_true()?;
    let mask = match i.left() {
        0 => i.number(!0),
        _ => i.src()?,
    };
    finish(i, Flow::WarpWait(p, mask, exclusive))
}

fn nanosleep(i: &mut Decode<'_>) -> Built {
    i.ignore(&["WARP"]);
    i.psrc_or_true()?;
    i.src()?;
    finish(i, Flow::Yield)
}

/// `BMOV`: between convergence barriers, registers and numbers. Each lane keeps the barriers as it knows them.
fn bmov(i: &mut Decode<'_>) -> Built {
    i.need(&[("32", ())])?;
    let clear = i.take("CLEAR");
    let is_barrier = |i: &Decode<'_>| i.next_is(RegFile::B);
    if !is_barrier(i) {
        let d = i.dst()?;
        let b = usize::from(barrier_number(i)?);
        i.end()?;
        return Ok(outside(move |w, _, m| {
            let v = w.barriers[b];
            w.regs.set(d, m, v);
            if clear {
                each(m).for_each(|l| w.barriers[b][l] = 0);
            }
            Ok(())
        }));
    }
    let d = usize::from(barrier_number(i)?);
    if is_barrier(i) {
        let b = usize::from(barrier_number(i)?);
        i.end()?;
        return Ok(outside(move |w, _, m| {
            for l in each(m) {
                w.barriers[d][l] = w.barriers[b][l];
                if clear {
                    w.barriers[b][l] = 0;
                }
            }
            Ok(())
        }));
    }
    let a = i.src()?;
    i.end()?;
    Ok(outside(move |w, _, m| {
        let v = w.regs.int(a);
        each(m).for_each(|l| w.barriers[d][l] = v[l]);
        Ok(())
    }))
}

fn lepc(i: &mut Decode<'_>) -> Built {
    let d = i.dst_wide(2)?;
    let at = match i.left() {
        0 => i.address,
        // From sm_90 on it takes the address of any place.
        _ => i.section.wrapping_add(label(i)?),
    };
    i.end()?;
    Ok(on_lanes(move |r, m| r.set_wide(d, m, [at; LANES])))
}
