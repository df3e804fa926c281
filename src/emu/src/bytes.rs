//! Floats of eight bits, two of them side by side.

use crate::build::{Built, Decode};
use crate::op::on_lanes;
use crate::regs::Row;

/// `E4M3`, which has no infinity, or `E5M2`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    E4M3,
    E5M2,
}

const FORMATS: &[(&str, Format)] = &[("E4M3", Format::E4M3), ("E5M2", Format::E5M2)];

impl Format {
    /// Bits of fraction, bias, and the greatest number.
    fn shape(self) -> (u32, i32, u32) {
        match self {
            Self::E4M3 => (3, 7, 0x7e),
            Self::E5M2 => (2, 15, 0x7b),
        }
    }

    /// The size of a number that is not above the greatest one.
    fn size(self, byte: u32) -> f64 {
        let (fraction, bias, _) = self.shape();
        let (e, m) = ((byte >> fraction) as i32, byte & ((1 << fraction) - 1));
        let (m, e) = if e == 0 { (m, 1) } else { (m | 1 << fraction, e) };
        f64::from(m) * 2f64.powi(e - bias - fraction as i32)
    }

    /// To the nearest, ties to even; what is too large becomes the greatest number.
    fn narrow(self, x: f32) -> u32 {
        if x.is_nan() {
            return 0x7f;
        }
        let (_, _, most) = self.shape();
        let (sign, size) = (x.to_bits() >> 31 << 7, f64::from(x.abs()));
        // Bytes are in the order of their values.
        let (mut low, mut high) = (0, most);
        if size >= self.size(most) {
            return sign | most;
        }
        while high - low > 1 {
            let middle = (low + high) / 2;
            if self.size(middle) <= size {
                low = middle
            } else {
                high = middle
            }
        }
        let (below, above) = (size - self.size(low), self.size(high) - size);
        let up = above < below || above == below && low & 1 != 0;
        sign | if up { high } else { low }
    }

    /// As a half, which is exact.
    fn half(self, byte: u32) -> u32 {
        let (_, _, most) = self.shape();
        let (sign, size) = ((byte & 0x80) << 8, byte & 0x7f);
        match self {
            Self::E5M2 if size > 0x7c => 0x7fff,
            Self::E5M2 => byte << 8 & 0xffff,
            Self::E4M3 if size > most => 0x7fff,
            Self::E4M3 => {
                let (single, half) = (crate::soft::F32, crate::soft::F16);
                let bits = (self.size(size) as f32).to_bits();
                sign | crate::soft::convert(single, half, bits.into(), crate::soft::Round::Nearest) as u32
            }
        }
    }
}

/// `F2FP` from single precision to bytes, and from bytes to halves; `None` where it is neither.
pub fn convert(i: &mut Decode<'_>) -> Option<Built> {
    let unpacks = i.has("UNPACK_B");
    let packs = i.has("PACK_AB_MERGE_C");
    (unpacks || packs).then(|| if unpacks { unpack(i) } else { pack(i) })
}

fn unpack(i: &mut Decode<'_>) -> Built {
    i.need(&[("UNPACK_B", ())])?;
    i.need(&[("F16", ())])?;
    let format = i.need(FORMATS)?;
    let d = i.dst()?;
    let (a, suffix) = i.src_with_suffix(1)?;
    let by = match suffix {
        "" | "H0" => 0,
        "H1" => 16,
        _ => return Err(format!("the operand suffix {suffix}")),
    };
    i.end()?;
    Ok(on_lanes(move |r, m| {
        let v = r.int(a).map(|x| {
            let x = x >> by;
            format.half(x & 0xff) | format.half(x >> 8 & 0xff) << 16
        });
        r.set(d, m, v);
    }))
}

fn pack(i: &mut Decode<'_>) -> Built {
    for modifier in ["PACK_AB_MERGE_C", "SATFINITE", "F32"] {
        i.need(&[(modifier, ())])?;
    }
    let format = i.need(FORMATS)?;
    let d = i.dst()?;
    let (high, low, above) = (i.src()?, i.src()?, i.src()?);
    if above != i.zero() {
        return Err("bytes merged with others".to_owned());
    }
    i.end()?;
    Ok(on_lanes(move |r, m| {
        let (high, low) = (r.float(high), r.float(low));
        let byte = |x: u32| format.narrow(f32::from_bits(x));
        let v: Row = std::array::from_fn(|l| byte(high[l]) << 8 | byte(low[l]));
        r.set(d, m, v);
    }))
}
