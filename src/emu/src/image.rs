//! What textures and surfaces read and write: arrays of texels in device memory.

use crate::cta::Env;
use crate::error::Trap;
use crate::soft::{self, F16, F32, Round};

/// What a channel of a texel is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Channel {
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    F16,
    F32,
}

impl Channel {
    /// Bytes of it.
    pub fn bytes(self) -> u32 {
        match self {
            Self::U8 | Self::I8 => 1,
            Self::U16 | Self::I16 | Self::F16 => 2,
            _ => 4,
        }
    }
}

/// What is beyond the edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// The last texel again.
    Clamp,
    /// Zeros.
    Border,
    /// The image again.
    Wrap,
    /// The image again, the other way round.
    Mirror,
}

/// An array of texels as a kernel sees it through a handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Image {
    /// Where its first texel is in device memory; rows and layers follow each other without gaps.
    pub address: u64,
    /// Width, height, depth or layers, in texels; 1 where it has none.
    pub size: [u32; 3],
    /// Channels of a texel: 1, 2 or 4.
    pub channels: u32,
    /// What each is.
    pub channel: Channel,
    /// Between texels it is interpolated.
    pub linear: bool,
    /// What is beyond the edge.
    pub edge: Edge,
    /// Coordinates go from 0 to 1.
    pub normalized: bool,
    /// Integers are read as fractions of the greatest.
    pub fractions: bool,
}

/// The components of a texel, as bits: single-precision floats, or integers.
pub(crate) type Texel = [u32; 4];

impl Image {
    /// The handle that stands for image `n` of a launch.
    pub fn handle(n: usize) -> u64 {
        FIRST_HANDLE + n as u64
    }

    /// Bytes of a texel.
    pub fn texel_bytes(&self) -> u32 {
        self.channels * self.channel.bytes()
    }

    /// Bytes of all of it.
    pub fn bytes(&self) -> u64 {
        let texels: u64 = self.size.iter().map(|&n| u64::from(n)).product();
        texels * u64::from(self.texel_bytes())
    }

    /// Whether reading gives floats.
    pub(crate) fn gives_floats(&self) -> bool {
        self.fractions || matches!(self.channel, Channel::F16 | Channel::F32)
    }

    /// Where a byte of a row is, if it is inside.
    pub(crate) fn place(&self, byte: i64, y: i64, z: i64) -> Option<u64> {
        let [width, height, depth] = self.size.map(i64::from);
        let row = width * i64::from(self.texel_bytes());
        let inside = (0..row).contains(&byte) && (0..height).contains(&y) && (0..depth).contains(&z);
        inside.then(|| self.address.wrapping_add_signed((z * height + y) * row + byte))
    }

    /// A texel inside of the image, or zeros.
    pub(crate) fn texel(&self, env: &mut Env<'_>, at: [i64; 3]) -> Result<Texel, Trap> {
        let Some(address) = self.place(at[0] * i64::from(self.texel_bytes()), at[1], at[2]) else {
            return Ok([0; 4]);
        };
        let size = self.channel.bytes() as usize;
        let bytes = env.memory.read(address, self.texel_bytes() as usize)?;
        let mut texel = [0; 4];
        for (to, b) in texel.iter_mut().zip(bytes.chunks_exact(size)) {
            let mut word = [0; 4];
            word[..size].copy_from_slice(b);
            *to = self.component(u32::from_le_bytes(word));
        }
        Ok(texel)
    }

    fn component(&self, x: u32) -> u32 {
        let fraction = |x: f32, most: f32| (x / most).max(-1.0).to_bits();
        match (self.channel, self.fractions) {
            (Channel::F16, _) => soft::convert(F16, F32, x.into(), Round::Nearest) as u32,
            (Channel::U8, true) => fraction(x as f32, 255.0),
            (Channel::I8, true) => fraction(f32::from(x as i8), 127.0),
            (Channel::U16, true) => fraction(x as f32, 65535.0),
            (Channel::I16, true) => fraction(f32::from(x as i16), 32767.0),
            (Channel::I8, false) => i32::from(x as i8) as u32,
            (Channel::I16, false) => i32::from(x as i16) as u32,
            _ => x,
        }
    }

    /// An index that may be beyond the edge.
    fn wrapped(&self, at: i64, axis: usize) -> i64 {
        let n = i64::from(self.size[axis]);
        match self.edge {
            Edge::Clamp => at.clamp(0, n - 1),
            Edge::Border => at,
            Edge::Wrap => at.rem_euclid(n),
            Edge::Mirror => match at.rem_euclid(2 * n) {
                m if m < n => m,
                m => 2 * n - 1 - m,
            },
        }
    }

    /// A coordinate in texels.
    fn scaled(&self, x: f32, axis: usize) -> f32 {
        if self.normalized { x * self.size[axis] as f32 } else { x }
    }

    /// The lower of the two texels around a coordinate on each axis, and how far the coordinate is from it, in 256ths, as documents say that
    /// the hardware counts.
    fn around(&self, at: [f32; 3], axes: usize) -> ([i64; 3], [f64; 3]) {
        let (mut low, mut part) = ([0; 3], [0.0; 3]);
        for axis in 0..axes {
            let x = f64::from(self.scaled(at[axis], axis)) - 0.5;
            low[axis] = x.floor() as i64;
            part[axis] = ((x - x.floor()) * 256.0).round() / 256.0;
        }
        (low, part)
    }

    /// What a texture gives at a coordinate on the first axes; the others are indices.
    pub(crate) fn sample(&self, env: &mut Env<'_>, at: [f32; 3], axes: usize, layer: i64) -> Result<Texel, Trap> {
        let with_layer = |mut at: [i64; 3]| {
            if axes < 3 {
                at[2] = layer.clamp(0, i64::from(self.size[2]) - 1);
            }
            at
        };
        let wrapped = |mut at: [i64; 3]| {
            (0..axes).for_each(|axis| at[axis] = self.wrapped(at[axis], axis));
            with_layer(at)
        };
        if !self.linear {
            let mut index = [0; 3];
            (0..axes).for_each(|axis| index[axis] = self.scaled(at[axis], axis).floor() as i64);
            return self.texel(env, wrapped(index));
        }
        if !self.gives_floats() {
            return Err(Trap::Check("linear filtering of a texture of integers".to_owned()));
        }
        let (low, part) = self.around(at, axes);
        // Added up exactly enough, and rounded once, where no document says how the hardware rounds.
        let mut sum = [0.0f64; 4];
        for corner in 0..1usize << axes {
            let (mut index, mut weight) = (low, 1.0);
            for axis in 0..axes {
                let upper = corner >> axis & 1 != 0;
                index[axis] += i64::from(upper);
                weight *= if upper { part[axis] } else { 1.0 - part[axis] };
            }
            if weight != 0.0 {
                let texel = self.texel(env, wrapped(index))?;
                (0..4).for_each(|n| sum[n] += weight * f64::from(f32::from_bits(texel[n])));
            }
        }
        Ok(sum.map(|x| (x as f32).to_bits()))
    }

    /// One component of the four texels around a coordinate: counter-clockwise from the one at the lower left.
    pub(crate) fn gather(&self, env: &mut Env<'_>, at: [f32; 3], component: usize) -> Result<Texel, Trap> {
        let (low, _) = self.around(at, 2);
        let mut out = [0; 4];
        for (to, (x, y)) in out.iter_mut().zip([(0, 1), (1, 1), (1, 0), (0, 0)]) {
            let at = [self.wrapped(low[0] + x, 0), self.wrapped(low[1] + y, 1), 0];
            *to = self.texel(env, at)?[component];
        }
        Ok(out)
    }
}

/// The number of the first handle; small numbers are none.
const FIRST_HANDLE: u64 = 0x10_0000;

impl Env<'_> {
    /// The image that a handle stands for.
    pub(crate) fn image(&self, handle: u32) -> Result<Image, Trap> {
        let n = u64::from(handle).checked_sub(FIRST_HANDLE);
        let found = n.and_then(|n| self.images.get(n as usize));
        found.copied().ok_or_else(|| {
            Trap::Check(format!(
                "no texture or surface has the handle {handle:#x}; the launch gives {}",
                self.images.len()
            ))
        })
    }
}
