//! Device memory: buffers at addresses of their own, with nothing between them.

use crate::error::{Space, Trap};
use crate::sign::AsSigned;

/// Where generic addresses of shared memory begin; the low 24 bits are the address in shared memory.
pub const SHARED_WINDOW: u64 = 0x7f01_0000_0000;
/// Where generic addresses of local memory begin.
pub const LOCAL_WINDOW: u64 = 0x7f02_0000_0000;
/// Bytes of each window.
pub const WINDOW: u64 = 1 << 24;
/// Where code lies.
pub const CODE: u64 = 0x7e00_0000_0000;
/// Where buffers begin.
const BUFFERS: u64 = 0x7f10_0000_0000;
/// Bytes between buffers, at least, that belong to none.
const GAP: u64 = 1 << 16;

/// One buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// What it is called in messages.
    pub name: String,
    /// First address.
    pub address: u64,
    /// The address that kernels are given, which need not be the first one that they touch.
    pub origin: u64,
    /// Contents.
    pub data: Vec<u8>,
    /// Memory that appears where it is touched, up to so many bytes.
    pub growth: Option<(u64, Fill)>,
}

/// Random contents that depend on nothing but a seed and the place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fill {
    seed: u64,
    kind: u8,
}

impl Fill {
    /// Contents of some kind: floats, small integers, anything.
    pub fn random(seed: u64) -> Self {
        Self {
            seed,
            kind: (seed >> 60) as u8,
        }
    }

    /// The word that holds an offset.
    fn word(self, offset: u64) -> u32 {
        let r = mix(self.seed ^ (offset / 4).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        match self.kind {
            // Floats between -2 and 2.
            0..8 => ((r >> 40) as f32 / (1 << 22) as f32 - 2.0).to_bits(),
            // Small integers.
            8..12 => (r % 64) as u32,
            // Two halves between 1 and 2, of either sign.
            12 | 13 => r as u32 & 0x83ff_83ff | 0x3c00_3c00,
            _ => r as u32,
        }
    }

    /// The byte at an offset.
    pub fn byte(self, offset: u64) -> u8 {
        self.word(offset).to_le_bytes()[(offset % 4) as usize]
    }
}

/// Bits that look random.
pub fn mix(x: u64) -> u64 {
    let x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

impl Buffer {
    fn covers(&self, address: u64, size: usize) -> Option<usize> {
        let at = address.checked_sub(self.address)?;
        let end = at.checked_add(size as u64)?;
        (end <= self.data.len() as u64).then_some(at as usize)
    }
}

/// All buffers of a device, in the order of their addresses.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    buffers: Vec<Buffer>,
    /// The buffer of the last access, which is nearly always that of the next.
    last: usize,
}

impl Memory {
    /// No buffers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Places a buffer; its address is a multiple of 256, plus `shift`.
    pub fn place(&mut self, name: &str, data: Vec<u8>, shift: u64) -> u64 {
        let end = self
            .buffers
            .last()
            .map_or(BUFFERS, |b| b.address + b.data.len() as u64 + GAP);
        let address = end.next_multiple_of(256) + shift;
        self.buffers.push(Buffer {
            name: name.to_owned(),
            address,
            origin: address,
            data,
            growth: None,
        });
        address
    }

    /// Puts in a buffer that has an address already, unless it is there.
    pub fn insert(&mut self, buffer: &Buffer) {
        let n = self.buffers.partition_point(|b| b.address < buffer.address);
        if self.buffers.get(n).is_none_or(|b| b.address != buffer.address) {
            self.buffers.insert(n, buffer.clone());
        }
    }

    /// The buffers by address.
    pub fn buffers(&self) -> &[Buffer] {
        &self.buffers
    }

    /// The buffers by address, to change their contents.
    pub fn buffers_mut(&mut self) -> &mut [Buffer] {
        &mut self.buffers
    }

    /// The buffer that holds an address, and where in it.
    pub fn find(&self, address: u64) -> Option<(usize, usize)> {
        let n = self.buffers.partition_point(|b| b.address <= address).checked_sub(1)?;
        Some((n, self.buffers[n].covers(address, 1)?))
    }

    #[inline]
    fn locate(&mut self, access: &'static str, address: u64, size: usize) -> Result<(usize, usize), Trap> {
        if let Some(at) = self.buffers.get(self.last).and_then(|b| b.covers(address, size)) {
            return Ok((self.last, at));
        }
        let n = self.buffers.partition_point(|b| b.address <= address).saturating_sub(1);
        match self.buffers.get(n).and_then(|b| b.covers(address, size)) {
            Some(at) => {
                self.last = n;
                Ok((n, at))
            }
            None if self.grow(n, address, size) => self.locate(access, address, size),
            None => Err(self.out_of_bounds(access, address, size)),
        }
    }

    /// Makes room in a buffer that grows.
    #[cold]
    fn grow(&mut self, n: usize, address: u64, size: usize) -> bool {
        let Some(b) = self.buffers.get_mut(n) else { return false };
        let Some((limit, fill)) = b.growth else { return false };
        let Some(end) = address.checked_sub(b.address).map(|at| at.saturating_add(size as u64)) else {
            return false;
        };
        let have = b.data.len() as u64;
        if end > limit || end <= have {
            return false;
        }
        let to = end.next_multiple_of(1 << 10).min(limit);
        b.data.extend((have..to).map(|at| fill.byte(at)));
        true
    }

    #[cold]
    fn out_of_bounds(&self, access: &'static str, address: u64, size: usize) -> Trap {
        let distance = |b: &Buffer| {
            let end = b.address + b.data.len() as u64;
            if address < b.address {
                b.address - address
            } else {
                address.saturating_sub(end)
            }
        };
        let near = self
            .buffers
            .iter()
            .min_by_key(|b| distance(b))
            .map_or(String::new(), |b| {
                let offset = address.wrapping_sub(b.address).signed();
                format!(
                    "; nearest is {} of {} bytes, at its offset {offset}",
                    b.name,
                    b.data.len()
                )
            });
        Trap::OutOfBounds {
            access,
            space: Space::Global,
            address,
            size: size as u32,
            near,
        }
    }

    /// The bytes between two addresses, if they are in one buffer.
    #[inline]
    pub(crate) fn within(&mut self, start: u64, end: u64) -> Option<&[u8]> {
        let size = end.checked_sub(start)? as usize;
        if self.buffers.get(self.last)?.covers(start, size).is_none() {
            self.last = self.find(start)?.0;
        }
        let buffer = &self.buffers[self.last];
        let at = buffer.covers(start, size)?;
        Some(&buffer.data[at..at + size])
    }

    /// The bytes at an address.
    #[inline]
    pub fn read(&mut self, address: u64, size: usize) -> Result<&[u8], Trap> {
        let (n, at) = self.locate("load", address, size)?;
        Ok(&self.buffers[n].data[at..at + size])
    }

    /// The bytes at an address, to change.
    #[inline]
    pub fn write(&mut self, access: &'static str, address: u64, size: usize) -> Result<&mut [u8], Trap> {
        let (n, at) = self.locate(access, address, size)?;
        Ok(&mut self.buffers[n].data[at..at + size])
    }
}

/// A block's shared memory, or the local memory of one warp, from address 0.
#[derive(Clone, Debug)]
pub struct Flat {
    space: Space,
    data: Vec<u8>,
}

impl Flat {
    /// Zeroed memory.
    pub fn new(space: Space, size: usize) -> Self {
        Self {
            space,
            data: vec![0; size],
        }
    }

    /// The bytes at an address; `lane_size` and `lane` select a lane's part of local memory.
    #[inline]
    pub fn bytes(
        &mut self,
        access: &'static str,
        address: u64,
        size: usize,
        (lane, lane_size): (usize, usize),
    ) -> Result<&mut [u8], Trap> {
        let limit = if lane_size == 0 { self.data.len() } else { lane_size };
        let start = lane * lane_size;
        match usize::try_from(address)
            .ok()
            .filter(|a| a.checked_add(size).is_some_and(|end| end <= limit))
        {
            Some(at) => Ok(&mut self.data[start + at..start + at + size]),
            None => Err(Trap::OutOfBounds {
                access,
                space: self.space,
                address,
                size: size as u32,
                near: format!("; there are {limit} bytes"),
            }),
        }
    }

    /// Bytes in all.
    pub fn len(&self) -> usize {
        self.data.len()
    }
}
