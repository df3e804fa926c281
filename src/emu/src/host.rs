//! Functions that the driver brings: `printf`, `malloc`, assertions. They follow the ABI that compilers call them by: arguments from R4
//! on, wide ones in even pairs, the result in R4, the return address in R20 and R21.

use crate::build::Layout;
use crate::cta::Env;
use crate::error::Trap;
use crate::flow::{Base, Flow};
use crate::op::{Op, Run, outside};
use crate::regs::{LANES, Mask, Pred, Regs, Src, each};
use crate::sign::AsSigned;
use crate::warp::Warp;

fn register(n: u16) -> Src {
    Src {
        row: n,
        neg: false,
        abs: false,
        not: false,
    }
}

fn argument(r: &Regs, n: u16, lane: usize) -> u64 {
    r.wide(register(n))[lane]
}

type Function = fn(&mut Warp, &mut Env<'_>, Mask) -> Result<(), Trap>;

const FUNCTIONS: &[(&str, Function)] = &[
    ("__assertfail", assert_fail),
    ("free", |_, _, _| Ok(())),
    ("malloc", malloc),
    ("vprintf", vprintf),
];

/// What executes a call of the function of that name.
pub fn function(name: &str) -> Op {
    let found = FUNCTIONS.iter().find(|(n, _)| *n == name);
    let name = name.to_owned();
    let run = match found {
        Some((_, f)) => outside(f),
        None => outside(move |_, _, _| Err(Trap::Missing(format!("the driver's function `{name}`")))),
    };
    Op {
        guard: Pred::TRUE,
        uniform: false,
        run,
    }
}

/// The return behind it.
pub fn back(_layout: Layout) -> Op {
    Op {
        guard: Pred::TRUE,
        uniform: false,
        run: Run::Flow(Flow::Indirect(Pred::TRUE, register(20), Base::Absolute(0))),
    }
}

fn malloc(w: &mut Warp, env: &mut Env<'_>, m: Mask) -> Result<(), Trap> {
    /// What the heap of a real device has by default.
    const HEAP: u64 = 8 << 20;
    let mut v = [0; LANES];
    for lane in each(m) {
        let size = argument(&w.regs, 4, lane);
        if size <= HEAP {
            v[lane] = env.memory.place("malloc", vec![0; size as usize], 0);
        }
    }
    w.regs.set_wide(4, m, v);
    Ok(())
}

/// A byte at a generic address.
fn byte(w: &mut Warp, env: &mut Env<'_>, lane: usize, address: u64) -> Result<u8, Trap> {
    let touch = crate::access::Touch {
        doing: crate::watch::Doing::Load,
        kind: crate::access::Where::Generic,
        address,
        size: 1,
        lane,
    };
    Ok(crate::access::bytes(w, env, touch)?[0])
}

/// A string that ends in zero.
fn string(w: &mut Warp, env: &mut Env<'_>, lane: usize, address: u64) -> Result<Vec<u8>, Trap> {
    const LONGEST: u64 = 1 << 16;
    let mut out = Vec::new();
    for n in 0..LONGEST {
        match byte(w, env, lane, address.wrapping_add(n))? {
            0 => break,
            b => out.push(b),
        }
    }
    Ok(out)
}

fn assert_fail(w: &mut Warp, env: &mut Env<'_>, m: Mask) -> Result<(), Trap> {
    let lane = m.trailing_zeros() as usize;
    let mut text = |n| {
        let address = argument(&w.regs, n, lane);
        string(w, env, lane, address).map(|b| String::from_utf8_lossy(&b).into_owned())
    };
    let (what, file) = (text(4)?, text(6)?);
    let line = w.regs.row(8)[lane];
    Err(Trap::Assert(format!("`{what}` in {file}, line {line}")))
}

fn vprintf(w: &mut Warp, env: &mut Env<'_>, m: Mask) -> Result<(), Trap> {
    let mut count = [0; LANES];
    for lane in each(m) {
        let (format, arguments) = (argument(&w.regs, 4, lane), argument(&w.regs, 6, lane));
        let format = string(w, env, lane, format)?;
        let text = print(w, env, lane, &format, arguments, &mut count[lane])?;
        env.printed.extend_from_slice(&text);
    }
    w.regs.set(4, m, count);
    Ok(())
}

/// Fills in a format: `%[flags][width][.precision][length]conversion`.
fn print(
    w: &mut Warp,
    env: &mut Env<'_>,
    lane: usize,
    format: &[u8],
    mut at: u64,
    count: &mut u32,
) -> Result<Vec<u8>, Trap> {
    let mut out = Vec::new();
    let mut rest = format;
    while let Some((&b, tail)) = rest.split_first() {
        rest = tail;
        if b != b'%' {
            out.push(b);
            continue;
        }
        let end = rest.iter().position(u8::is_ascii_alphabetic).unwrap_or(rest.len());
        let lengths = rest[end..]
            .iter()
            .take_while(|c| matches!(c, b'l' | b'h' | b'z' | b'j' | b't'))
            .count();
        let Some(&conversion) = rest.get(end + lengths).filter(|_| rest.first() != Some(&b'%')) else {
            out.push(b'%');
            rest = rest.get(1..).unwrap_or(&[]);
            continue;
        };
        let (flags, length) = (rest[..end].to_vec(), &rest[end..end + lengths]);
        let wide = matches!(conversion, b'p' | b's') || conversion.is_ascii_alphabetic() && is_float(conversion);
        let size = if wide || !length.is_empty() && length[0] != b'h' {
            8
        } else {
            4
        };
        at = at.next_multiple_of(size);
        let mut value = 0u64;
        for n in 0..size {
            value |= u64::from(byte(w, env, lane, at + n)?) << (8 * n);
        }
        at += size;
        *count += 1;
        let text = match conversion {
            b's' => string(w, env, lane, value)?,
            c => number(c, value, size, &flags),
        };
        pad(&mut out, text, &flags);
        rest = &rest[end + lengths + 1..];
    }
    Ok(out)
}

fn is_float(c: u8) -> bool {
    matches!(c, b'f' | b'F' | b'e' | b'E' | b'g' | b'G' | b'a' | b'A')
}

/// The number behind a dot in the flags.
fn precision(flags: &[u8]) -> Option<usize> {
    let text = std::str::from_utf8(flags).ok()?;
    text.split_once('.').map(|(_, p)| p.parse().unwrap_or(0))
}

fn number(conversion: u8, value: u64, size: u64, flags: &[u8]) -> Vec<u8> {
    let float = f64::from_bits(value);
    let digits = precision(flags).unwrap_or(6);
    let signed = if size == 8 {
        value.signed()
    } else {
        i64::from((value as u32).signed())
    };
    let text = match conversion {
        b'd' | b'i' => signed.to_string(),
        b'u' => value.to_string(),
        b'x' => format!("{value:x}"),
        b'X' => format!("{value:X}"),
        b'o' => format!("{value:o}"),
        b'p' => format!("{value:#x}"),
        b'c' => return vec![value as u8],
        b'f' | b'F' => format!("{float:.digits$}"),
        b'e' | b'E' => format!("{float:.digits$e}"),
        _ => format!("{float}"),
    };
    let sign =
        flags.contains(&b'+') && !text.starts_with('-') && !matches!(conversion, b'u' | b'x' | b'X' | b'o' | b'p');
    if sign { format!("+{text}").into() } else { text.into() }
}

fn pad(out: &mut Vec<u8>, text: Vec<u8>, flags: &[u8]) {
    let digits: Vec<u8> = flags
        .iter()
        .copied()
        .skip_while(|c| !matches!(c, b'1'..=b'9'))
        .take_while(u8::is_ascii_digit)
        .collect();
    const WIDEST: usize = 1024;
    let width = std::str::from_utf8(&digits)
        .ok()
        .and_then(|d| d.parse().ok())
        .unwrap_or(0usize)
        .min(WIDEST);
    let missing = width.saturating_sub(text.len());
    let zero = flags.first() == Some(&b'0');
    match flags.contains(&b'-') {
        true => {
            out.extend(text);
            out.extend(vec![b' '; missing]);
        }
        false => {
            out.extend(vec![if zero { b'0' } else { b' ' }; missing]);
            out.extend(text);
        }
    }
}
