//! Kernel arguments and dimensions as they are typed.

use std::str::FromStr;

use anyhow::{Context, Result, anyhow, bail};
use emu::Image;

use crate::{image_args, npy, output};

/// A grid or block: `64`, `8,8` or `4,4,2`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dim(pub [u32; 3]);

impl FromStr for Dim {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut out = [1; 3];
        let parts: Vec<&str> = text.split([',', 'x']).collect();
        if parts.len() > 3 {
            return Err("at most three numbers: X,Y,Z".to_owned());
        }
        for (to, part) in out.iter_mut().zip(parts) {
            *to = part
                .trim()
                .parse()
                .map_err(|_| format!("`{part}` is no number; write X,Y,Z"))?;
        }
        Ok(Self(out))
    }
}

/// A type of numbers: name, bytes, NumPy's name.
type Kind = (&'static str, usize, &'static str);

const KINDS: &[Kind] = &[
    ("i8", 1, "|i1"),
    ("u8", 1, "|u1"),
    ("i16", 2, "<i2"),
    ("u16", 2, "<u2"),
    ("f16", 2, "<f2"),
    ("i32", 4, "<i4"),
    ("u32", 4, "<u4"),
    ("f32", 4, "<f4"),
    ("i64", 8, "<i8"),
    ("u64", 8, "<u8"),
    ("f64", 8, "<f8"),
];

/// A buffer in device memory.
#[derive(Clone, Debug)]
pub struct Buffer {
    /// What it is called.
    pub name: String,
    /// Type of its elements.
    pub kind: Kind,
    /// Contents.
    pub data: Vec<u8>,
    /// Whether the contents were given; otherwise it is zero, and the checker counts it as not written.
    pub given: bool,
    /// Where it is a texture or surface: what it is like, at address 0.
    pub image: Option<Image>,
}

/// One argument.
#[derive(Clone, Debug)]
pub enum Arg {
    /// A number, or bytes.
    Bytes(Vec<u8>),
    /// The address of a buffer, or the handle of an image.
    Buffer(Buffer),
}

/// What `--arg` takes, for `--help` and for messages.
pub const SYNTAX: &str = "\
  i32=5, f32=1.5, u64=0x10        a number: i8 u8 i16 u16 f16 i32 u32 f32 i64 u64 f64
  hex=0001ff                      bytes, for a structure
  f32[1024]                       a buffer of zeros; [NAME:]TYPE[COUNT][=CONTENTS]
  x:f32[1024]=random              named x; contents: random, random:SEED, iota, or a number
  u8=@FILE, x:f32=@FILE.npy       a buffer with the contents of a file, raw or .npy
  image(linear):u8x4[64,32]=...   a texture or surface, 1 to 3 sizes; point, linear, clamp, border, wrap, mirror,
                                  normalized (coordinates from 0 to 1), fractions (integers are read from 0 to 1)";

/// Reads argument number `n`.
pub fn parse(n: usize, text: &str) -> Result<Arg> {
    parse_one(n, text).with_context(|| format!("--arg {text}"))
}

fn parse_one(n: usize, text: &str) -> Result<Arg> {
    let Some((image, text)) = image_args::split(text)? else {
        return parse_plain(n, text);
    };
    match parse_plain(n, &text)? {
        Arg::Buffer(buffer) => Ok(Arg::Buffer(Buffer {
            image: Some(image),
            ..buffer
        })),
        Arg::Bytes(_) => bail!("an image without contents"),
    }
}

fn parse_plain(n: usize, text: &str) -> Result<Arg> {
    let (name, rest) = match text.split_once(':') {
        Some((name, rest)) if !name.contains(['=', '[']) => (name.to_owned(), rest),
        _ => (n.to_string(), text),
    };
    let (what, value) = match rest.split_once('=') {
        Some((what, value)) => (what, Some(value)),
        None => (rest, None),
    };
    if what == "hex" {
        return hex(value.unwrap_or("")).map(Arg::Bytes);
    }
    let (kind, count) = match what.split_once('[') {
        Some((kind, count)) => {
            let count = count.strip_suffix(']').and_then(|c| c.parse().ok());
            (kind, Some(count.ok_or_else(|| anyhow!("a buffer is TYPE[COUNT]"))?))
        }
        None => (what, None::<usize>),
    };
    let Some(&kind) = KINDS.iter().find(|k| k.0 == kind) else {
        bail!("no type `{kind}`; write one of\n{SYNTAX}");
    };
    if let Some(bytes) = count.map(|c| c.checked_mul(kind.1)) {
        const MOST: usize = 1 << 32;
        if bytes.is_none_or(|b| b > MOST) {
            bail!("a buffer of more than {MOST} bytes");
        }
    }
    if let Some(path) = value.and_then(|v| v.strip_prefix('@')) {
        let file = output::read(path.as_ref())?;
        let data = npy::contents(&file, kind.2).with_context(|| path.to_owned())?.to_vec();
        if data.len() % kind.1 != 0 {
            bail!("{path}: {} bytes are no whole number of {}", data.len(), kind.0);
        }
        if let Some(count) = count.filter(|c| c * kind.1 != data.len()) {
            bail!(
                "{path} holds {} numbers, {count} are asked for; without [{count}] the buffer is as large as the file",
                data.len() / kind.1
            );
        }
        return Ok(Arg::Buffer(Buffer {
            name,
            kind,
            data,
            given: true,
            image: None,
        }));
    }
    match (count, value) {
        (None, Some(value)) => number(kind, value).map(Arg::Bytes),
        (None, None) => bail!("no value; write one of\n{SYNTAX}"),
        (Some(count), value) => Ok(Arg::Buffer(Buffer {
            name,
            kind,
            data: contents(kind, count, value)?,
            given: value.is_some(),
            image: None,
        })),
    }
}

fn hex(text: &str) -> Result<Vec<u8>> {
    let bytes = (0..text.len()).step_by(2).map(|at| {
        let pair = text.get(at..at + 2).and_then(|p| u8::from_str_radix(p, 16).ok());
        pair.ok_or_else(|| anyhow!("`{text}` is no row of bytes in hexadecimal"))
    });
    bytes.collect()
}

/// The bytes of one number.
fn number((name, size, _): Kind, text: &str) -> Result<Vec<u8>> {
    let bad = || anyhow!("`{text}` is no {name}");
    let bits = match name {
        "f64" => text.parse::<f64>().map_err(|_| bad())?.to_bits(),
        "f32" => text.parse::<f32>().map_err(|_| bad())?.to_bits().into(),
        "f16" => half(text.parse().map_err(|_| bad())?),
        _ => {
            let (digits, radix) = match text.strip_prefix("0x") {
                Some(digits) => (digits, 16),
                None => (text, 10),
            };
            let value = i128::from_str_radix(digits, radix).map_err(|_| bad())?;
            let bits = 8 * size as u32;
            let range = if name.starts_with('i') {
                -(1i128 << (bits - 1))..1 << (bits - 1)
            } else {
                0..1 << bits
            };
            if !range.contains(&value) {
                return Err(bad());
            }
            value as u64
        }
    };
    Ok(bits.to_le_bytes()[..size].to_vec())
}

fn half(value: f64) -> u64 {
    emu::soft::convert(
        emu::soft::F64,
        emu::soft::F16,
        value.to_bits(),
        emu::soft::Round::Nearest,
    )
}

fn contents(kind: Kind, count: usize, value: Option<&str>) -> Result<Vec<u8>> {
    match value {
        None => Ok(vec![0; count * kind.1]),
        Some("iota") => {
            let mut out = Vec::with_capacity(count * kind.1);
            for n in 0..count {
                out.extend(element(kind, n as f64, n as u64));
            }
            Ok(out)
        }
        Some(v) if v == "random" || v.starts_with("random:") => {
            let seed = match v.strip_prefix("random:") {
                Some(seed) => seed.parse().map_err(|_| anyhow!("`{seed}` is no seed"))?,
                None => 1,
            };
            Ok(random(kind, count, seed))
        }
        Some(v) => Ok(number(kind, v)?.repeat(count)),
    }
}

/// An element of a type, from a number in both forms.
fn element((name, size, _): Kind, float: f64, int: u64) -> Vec<u8> {
    let bits = match name {
        "f64" => float.to_bits(),
        "f32" => (float as f32).to_bits().into(),
        "f16" => half(float),
        _ => int,
    };
    bits.to_le_bytes()[..size].to_vec()
}

/// Floats between -1 and 1; integers of all sizes.
fn random(kind: Kind, count: usize, seed: u64) -> Vec<u8> {
    let mut state = seed
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .wrapping_add(0x1234_5678_9abc_def1);
    let mut out = Vec::with_capacity(count * kind.1);
    for _ in 0..count {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let int = state.wrapping_mul(0x2545_f491_4f6c_dd1d);
        let float = (int >> 11) as f64 / (1u64 << 52) as f64 - 1.0;
        out.extend(element(kind, float, int >> 7));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &str) -> Vec<u8> {
        match parse(3, text).unwrap() {
            Arg::Bytes(b) => b,
            Arg::Buffer(b) => b.data,
        }
    }

    #[test]
    fn numbers() {
        assert_eq!(bytes("i32=-2"), [0xfe, 0xff, 0xff, 0xff]);
        assert_eq!(bytes("f32=1"), [0, 0, 0x80, 0x3f]);
        assert_eq!(bytes("f16=1.5"), [0, 0x3e]);
        assert_eq!(bytes("u64=0x10").len(), 8);
        assert_eq!(bytes("hex=0a0b"), [10, 11]);
    }

    #[test]
    fn buffers() {
        assert_eq!(bytes("u16[3]=iota"), [0, 0, 1, 0, 2, 0]);
        assert_eq!(bytes("x:f32[2]"), [0; 8]);
        assert_eq!(bytes("f64[4]=random").len(), 32);
        assert_ne!(bytes("u8[64]=random:1"), bytes("u8[64]=random:2"));
        let Arg::Buffer(b) = parse(3, "u8[2]").unwrap() else {
            panic!("a buffer");
        };
        assert_eq!((b.name.as_str(), b.given), ("3", false));
    }

    #[test]
    fn mistakes_say_what_is_possible() {
        for text in [
            "f33=1",
            "i32",
            "i8=200",
            "u32=-1",
            "f32[x]",
            "hex=0",
            "u8=@/no/such/file",
            "f32[9999999999]",
            "f32[9999999999]=@/dev/null",
            "f64[2305843009213693953]=@/dev/null",
        ] {
            assert!(parse(0, text).is_err(), "{text}");
        }
        assert!(format!("{:#}", parse(0, "f33=1").unwrap_err()).contains("TYPE[COUNT]"));
        assert!("1,2,3,4".parse::<Dim>().is_err());
        assert_eq!("8x4".parse::<Dim>().unwrap().0, [8, 4, 1]);
    }
}
