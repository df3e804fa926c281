//! Registers that a file names beside the code: in attributes of single instructions, which follow when values move to other registers,
//! and in call frames and attributes of longer stretches of code, whose registers stay as they are.

use cubin::nvinfo::{self, Attribute, Value, code as attribute};
use cubin::{Code, CubinError, Image, Patch};
use ir::{Kernel, OpKind, Pin};
use isa::RegFile;

/// In place of a register in an attribute.
const NONE: u32 = u32::MAX;
/// Kind of a register number in bits 31:24, as DWARF of these files has it too: the general ones.
const GENERAL: u32 = 5;
/// Kinds of operands in `EIATTR_INSTR_REG_MAP`: none, and a general register.
const OPERANDS: [u8; 2] = [1, 2];

/// What a file says of a kernel's registers.
pub struct Named<'i> {
    places: Vec<Place<'i>>,
    /// General registers that keep their values: call frames name them, or attributes.
    pub fixed: Vec<Pin>,
}

/// A register number in an attribute.
struct Place<'i> {
    attribute: Attribute<'i>,
    /// Position in the payload; it is the low byte of what is there.
    at: usize,
    /// Byte offset of the instruction at which the register holds what is meant.
    offset: u64,
    pin: Pin,
}

impl<'i> Named<'i> {
    /// Refuses what names registers in a way that nobody here can read.
    pub fn of(image: &'i Image<'_>, code: &'i Code<'_>) -> Result<Named<'i>, String> {
        let debug = |name: &str| name.contains("reg_sass") || name.contains("reg_type") || name == ".debug_loc";
        if let Some(section) = image.sections().iter().find(|s| debug(s.name)) {
            return Err(format!(
                "`{}` names registers: strip the debug information first",
                section.name
            ));
        }
        let frames = cubin::frame_registers(image, code.section).map_err(|e| e.to_string())?;
        let mut named = Named {
            places: Vec::new(),
            fixed: frames.into_iter().map(general).collect(),
        };
        for a in &code.attributes {
            match a.code {
                attribute::COOP_GROUP_MASK_REGIDS => named.masks(code, a)?,
                attribute::MBARRIER_INSTR_OFFSETS => named.barriers(image, a)?,
                attribute::INSTR_REG_MAP => named.operands(a)?,
                attribute::ATOM16_EMUL_INSTR_REG_MAP => named.addresses(a)?,
                _ => {}
            }
        }
        named.places.sort_by_key(|p| p.offset);
        Ok(named)
    }

    /// One word for each entry of `COOP_GROUP_INSTR_OFFSETS`: where the mask of the threads that take part is.
    fn masks(&mut self, code: &Code<'_>, masks: &Attribute<'i>) -> Result<(), String> {
        let places = code.attribute(attribute::COOP_GROUP_INSTR_OFFSETS);
        let offsets = places.map_or(Ok(Vec::new()), |a: &Attribute<'_>| a.code_offsets());
        let offsets = offsets.map_err(|e: CubinError| e.to_string())?;
        let numbers: Vec<u32> = masks.payload.chunks_exact(4).map(word).collect();
        if offsets.len() != numbers.len() && numbers.iter().any(|n| *n != NONE) {
            return Err(unreadable(masks));
        }
        for ((n, number), offset) in numbers.into_iter().enumerate().zip(offsets) {
            if number == NONE {
                continue;
            }
            if number >> 24 != GENERAL || number & 0xff_ffff >= 0xff {
                return Err(unreadable(masks));
            }
            self.add(masks, 4 * n, offset, general(number as u8));
        }
        Ok(())
    }

    /// The registers of the address of a barrier in shared memory: u32 offset, u32 general register, u32 immediate, u8 kind, u8, u8 uniform
    /// register, u8.
    fn barriers(&mut self, image: &Image<'_>, barriers: &Attribute<'i>) -> Result<(), String> {
        let zero = ir::zero_number(image.target(), RegFile::UR).unwrap_or(0xff);
        for (at, record) in records(barriers)? {
            let (offset, address, uniform) = (word(&record[..4]), word(&record[4..8]), record[14]);
            if address > 0xff {
                return Err(unreadable(barriers));
            }
            if address != 0xff {
                self.add(barriers, at + 4, offset, general(address as u8));
            }
            if uniform != 0xff && uniform != zero {
                self.add(barriers, at + 14, offset, Pin::new(RegFile::UR, uniform));
            }
        }
        Ok(())
    }

    /// What instructions on barriers work with: u32 offset, u8 kind of instruction, u8 kind of operand, u16 general register, u32 all ones.
    /// Kinds of instructions: 1 `SYNCS.ARRIVE`, 2 the load of a barrier's phase, 3 the `NOP` before `ARRIVES`, which has no operand. The phase
    /// is compared with the register, which the code may make only behind the load: so it stays in its place all along.
    fn operands(&mut self, map: &Attribute<'_>) -> Result<(), String> {
        let [none, register] = OPERANDS;
        for (_, record) in records(map)? {
            let (kind, number, rest) = (record[5], word(&record[6..8]), word(&record[8..12]));
            match (record[4], number) {
                (1 | 2, 0..0xff) if kind == register && rest == NONE => self.fixed.push(general(number as u8)),
                (3, 0) if kind == none && rest == NONE => {}
                _ => return Err(unreadable(map)),
            }
        }
        Ok(())
    }

    /// The address of 16 bits on which a loop of wider atomics works: u32 offset, u32 general register, of which the next may be part.
    fn addresses(&mut self, map: &Attribute<'_>) -> Result<(), String> {
        for (_, record) in records(map)? {
            match word(&record[4..8]) {
                first @ 0..0xfe => self.fixed.extend([first, first + 1].map(|n| general(n as u8))),
                _ => return Err(unreadable(map)),
            }
        }
        Ok(())
    }

    fn add(&mut self, attribute: &Attribute<'i>, at: usize, offset: u32, pin: Pin) {
        self.places.push(Place {
            attribute: *attribute,
            at,
            offset: offset.into(),
            pin,
        });
    }

    /// For [`ir::Source::held`].
    pub fn held(&self) -> Vec<(u64, Pin)> {
        self.places.iter().map(|p| (p.offset, p.pin)).collect()
    }

    /// All registers that the file names, now.
    pub fn all(&self) -> Vec<Pin> {
        let places = self.places.iter().map(|p| p.pin);
        places.chain(self.fixed.iter().copied()).collect()
    }

    /// The registers now, given the kernel that was lifted with [`Named::held`]. An instruction that is not there is an error.
    pub fn follow(&mut self, kernel: &Kernel) -> Result<(), String> {
        let mut places = self.places.iter_mut().peekable();
        let code = kernel.ops().filter(|op| op.kind().is_code());
        for (op, offset) in code.zip((0u64..).step_by(16)) {
            let own = op.layout().map_or(0, |l| l.own_operands(op.word()));
            let mut held = op.operands().iter().skip(own).filter(|_| op.kind() == OpKind::Inst);
            while let Some(place) = places.next_if(|p| p.offset == offset) {
                let value = held
                    .next()
                    .ok_or_else(|| format!("an attribute names a register at {offset:#x}"))?;
                place.pin = kernel.pin(*value);
            }
        }
        match places.next() {
            Some(place) => Err(format!(
                "{}, and there is no instruction at {:#x}",
                unreadable(&place.attribute),
                place.offset
            )),
            None => Ok(()),
        }
    }

    /// Writes the registers into the attributes.
    pub fn write(&self, patch: &mut Patch<'_, '_>) -> Result<(), CubinError> {
        let mut places = self.places.iter();
        places.try_for_each(|p| patch.set_attribute(&p.attribute, p.at, &[p.pin.number()]))
    }
}

/// The records of an attribute, with their positions in the payload.
fn records<'a>(a: &Attribute<'a>) -> Result<impl Iterator<Item = (usize, &'a [u8])>, String> {
    match a.value().map_err(|e| e.to_string())? {
        Value::Records { size, bytes } => Ok((0..).step_by(size).zip(bytes.chunks_exact(size))),
        _ => Err(unreadable(a)),
    }
}

fn general(number: u8) -> Pin {
    Pin::new(RegFile::R, number)
}

fn word(bytes: &[u8]) -> u32 {
    bytes.iter().rev().fold(0, |n, b| n << 8 | u32::from(*b))
}

fn unreadable(a: &Attribute<'_>) -> String {
    format!("EIATTR_{} names registers", nvinfo::name(a.code).unwrap_or("?"))
}
