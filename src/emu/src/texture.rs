//! Textures and surfaces. A handle comes from a constant bank or from uniform registers; there is one level of detail, whatever is asked for.

use isa::RegFile;

use crate::access::Width;
use crate::arg::{Address, Arg, Kind};
use crate::build::{Builder, Built, Decode, Missing};
use crate::cta::Env;
use crate::error::Trap;
use crate::image::{Image, Texel};
use crate::op::outside;
use crate::regs::{LANES, Pred, Row, Src, each};
use crate::sign::AsSigned;
use crate::warp::Warp;

/// What executes which mnemonic.
pub const TABLE: &[(&str, Builder)] = &[
    ("SULD", |i| surface(i, false)),
    ("SUST", |i| surface(i, true)),
    ("TEX", |i| texture(i, Fetch::Sample)),
    ("TLD", |i| texture(i, Fetch::Texel)),
    ("TLD4", gather),
];

/// What is read around the coordinates.
#[derive(Clone, Copy)]
enum Fetch {
    /// By floating-point coordinates, filtered.
    Sample,
    /// By indices.
    Texel,
    /// One component of four texels.
    Gather(usize),
}

/// Consecutive rows.
#[derive(Clone, Copy)]
struct Rows {
    first: u16,
    count: u16,
}

fn rows(i: &mut Decode<'_>) -> Result<Rows, Missing> {
    let r = i.arg()?.reg().ok_or("an operand that is no register")?;
    let count = if r.is_zero { 0 } else { r.width.into() };
    Ok(Rows {
        first: i.source_row(r, count)?,
        count,
    })
}

/// So many registers of a result.
fn registers(i: &Decode<'_>, arg: Arg, count: u16) -> Result<Vec<u16>, Missing> {
    let r = arg.reg().ok_or("a result that is no register")?;
    if r.is_zero {
        return Ok(vec![i.sink(); count.into()]);
    }
    let first = i.source_row(r, count)?;
    Ok((first..first + count).collect())
}

/// The handle: a word of a constant bank, by two numbers, or the first of two uniform registers.
fn handle(i: &mut Decode<'_>) -> Result<Src, Missing> {
    if i.next_is(RegFile::UR) {
        let s = i.src()?;
        // On sm_120 another register, which compilers leave out.
        if i.next_is(RegFile::UR) && i.arg()?.reg().is_some_and(|r| !r.is_zero) {
            return Err("a texture with two uniform operands".to_owned());
        }
        // Up to sm_100 a number follows, which compilers leave 0.
        if matches!(i.peek().map(|a| a.kind), Some(Kind::Int(_))) && i.int()? != 0 {
            return Err("a handle with an index".to_owned());
        }
        return Ok(s);
    }
    let (bank, index) = (i.int()?, i.int()?);
    i.constant_word(bank as u8, index * 4)
}

/// Axes of an image, and whether it has layers.
fn shape(i: &mut Decode<'_>) -> Result<(usize, bool), Missing> {
    match i.arg()?.kind {
        Kind::Name("1D") => Ok((1, false)),
        Kind::Name("2D") => Ok((2, false)),
        Kind::Name("3D") => Ok((3, false)),
        Kind::Name("ARRAY_1D") => Ok((1, true)),
        Kind::Name("ARRAY_2D") => Ok((2, true)),
        k => Err(format!("a texture of the shape {k}")),
    }
}

fn gather(i: &mut Decode<'_>) -> Built {
    let component = i.need(&[("R", 0), ("G", 1), ("B", 2), ("A", 3)])?;
    texture(i, Fetch::Gather(component))
}

/// `TEX`, `TLD` and `TLD4`: two results of up to two registers, of which the second takes the first two components that the mask names;
/// coordinates in one or two operands: the layer, the place, and a level of detail.
fn texture(i: &mut Decode<'_>, fetch: Fetch) -> Built {
    i.ignore(&["SCR", "NODEP"]);
    let levels = i.choose(&[("LL", 1), ("LZ", 0)]).unwrap_or(0);
    if i.pdst_if()? != crate::regs::NO_PRED {
        return Err("the predicate result of a texture".to_owned());
    }
    let (second, first) = (i.arg()?, i.arg()?);
    let (a, b) = (rows(i)?, rows(i)?);
    let handle = handle(i)?;
    let (axes, layered) = shape(i)?;
    let mask = i.int()?;
    i.end()?;
    let coordinates: Vec<u16> = [a, b].iter().flat_map(|r| (0..r.count).map(|n| r.first + n)).collect();
    if coordinates.len() != axes + usize::from(layered) + levels {
        return Err(format!("{} coordinates", coordinates.len()));
    }
    let components: Vec<usize> = (0..4).filter(|n| mask >> n & 1 != 0).collect();
    let count = components.len() as u16;
    let mut results = registers(i, first, count.min(2))?;
    results.extend(registers(i, second, count.saturating_sub(2))?);
    Ok(outside(move |w, env, m| {
        let handle = w.regs.int(handle);
        let place: Vec<Row> = coordinates.iter().map(|&row| *w.regs.row(row)).collect();
        let mut out: [Row; 4] = [[0; LANES]; 4];
        for lane in each(m) {
            let image = env.image(handle[lane])?;
            let coordinates: Vec<u32> = place.iter().map(|row| row[lane]).collect();
            let texel = read(env, &image, fetch, &coordinates, axes, layered)?;
            // Four texels are there for any channel; else there must be as many channels.
            if !matches!(fetch, Fetch::Gather(_)) && components.iter().any(|&n| n >= image.channels as usize) {
                let what = format!("a texture of {} channels, of which more are read", image.channels);
                return Err(Trap::Check(what));
            }
            for (n, &component) in components.iter().enumerate() {
                out[n][lane] = texel[component];
            }
        }
        for (row, v) in results.iter().zip(out) {
            w.regs.set(*row, m, v);
        }
        Ok(())
    }))
}

fn read(
    env: &mut Env<'_>,
    image: &Image,
    fetch: Fetch,
    coordinates: &[u32],
    axes: usize,
    layered: bool,
) -> Result<Texel, Trap> {
    let (layer, place) = match layered {
        true => (i64::from(coordinates[0]), &coordinates[1..]),
        false => (0, coordinates),
    };
    let mut at = [0.0; 3];
    (0..axes).for_each(|axis| at[axis] = f32::from_bits(place[axis]));
    // An image without height has one row, whatever is asked for.
    if axes == 2 && image.size[1] == 1 {
        at[1] = 0.5;
    }
    match fetch {
        Fetch::Sample => image.sample(env, at, axes, layer),
        Fetch::Gather(component) => image.gather(env, at, component),
        Fetch::Texel => {
            let mut index = [0, 0, layer];
            (0..axes).for_each(|axis| index[axis] = place[axis].signed().into());
            image.texel(env, index)
        }
    }
}

/// What happens outside of a surface.
#[derive(Clone, Copy)]
enum Outside {
    Trap,
    /// Loads give zeros, stores do nothing.
    Ignore,
    Clamp,
}

/// `SULD` and `SUST` of bytes as they are; the first coordinate counts bytes.
fn surface(i: &mut Decode<'_>, stores: bool) -> Built {
    i.need(&[("D", ())])?;
    i.need(&[("BA", ())])?;
    let axes = i.need(&[("1D", 1), ("2D", 2), ("3D", 3)])?;
    i.ignore(crate::access::CACHING);
    let beyond = i
        .choose(&[("TRAP", Outside::Trap), ("IGN", Outside::Ignore)])
        .unwrap_or(Outside::Clamp);
    let width = Width::take(i);
    if !stores && i.pdst_if()? != crate::regs::NO_PRED {
        return Err("the predicate result of a surface".to_owned());
    }
    let data = if stores { 0 } else { i.dst_wide(width.rows())? };
    let place = coordinates(i, axes)?;
    let data = if stores { i.src_wide(width.rows())?.row } else { data };
    let handle = handle(i)?;
    if i.psrc_or_true()? != Pred::TRUE {
        return Err("a surface with a source predicate".to_owned());
    }
    i.end()?;
    Ok(outside(move |w, env, m| {
        let handle = w.regs.int(handle);
        let mut out: [Row; 4] = [[0; LANES]; 4];
        for lane in each(m) {
            let image = env.image(handle[lane])?;
            let at: [i64; 3] = std::array::from_fn(|axis| match axis < usize::from(axes) {
                true => w.regs.row(place + axis as u16)[lane].signed().into(),
                false => 0,
            });
            let Some(address) = locate(&image, at, width.bytes, beyond)? else {
                continue;
            };
            if stores {
                store(w, env, (address, width), data, lane)?;
                continue;
            }
            let b = env.memory.read(address, width.bytes as usize)?;
            width.spread(b, lane, &mut out);
        }
        if !stores {
            for n in 0..width.rows() {
                w.regs.set(data + n, m, out[usize::from(n)]);
            }
        }
        Ok(())
    }))
}

/// The first register of a surface's coordinates.
fn coordinates(i: &mut Decode<'_>, axes: u16) -> Result<u16, Missing> {
    match i.arg()?.kind {
        Kind::Memory(Address {
            base: Some(r),
            uniform: None,
            offset: 0,
            ..
        }) if !r.is_zero => i.source_row(r, axes),
        k => Err(format!("{k} as the coordinates of a surface")),
    }
}

/// Where the bytes are; `None` where nothing is to be done.
fn locate(image: &Image, mut at: [i64; 3], bytes: u32, beyond: Outside) -> Result<Option<u64>, Trap> {
    let bytes = i64::from(bytes);
    if at[0] % bytes != 0 {
        return Err(Trap::Check(format!(
            "a surface accessed at byte {} of a row, {bytes} bytes at once",
            at[0]
        )));
    }
    if matches!(beyond, Outside::Clamp) {
        let row = i64::from(image.size[0] * image.texel_bytes());
        at[0] = at[0].clamp(0, (row - bytes).max(0));
        (1..3).for_each(|axis| at[axis] = at[axis].clamp(0, i64::from(image.size[axis]) - 1));
    }
    let found = image.place(at[0], at[1], at[2]);
    match beyond {
        Outside::Trap if found.is_none() => Err(Trap::Check(format!("a surface accessed outside, at {at:?}"))),
        _ => Ok(found),
    }
}

fn store(w: &Warp, env: &mut Env<'_>, (address, width): (u64, Width), data: u16, lane: usize) -> Result<(), Trap> {
    let to = env.memory.write("store", address, width.bytes as usize)?;
    for (n, chunk) in to.chunks_mut(4).enumerate() {
        let v = w.regs.row(data + n as u16)[lane];
        chunk.copy_from_slice(&v.to_le_bytes()[..chunk.len()]);
    }
    Ok(())
}
