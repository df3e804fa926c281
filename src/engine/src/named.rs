//! Registers that a file names beside the code: in attributes of single instructions, which follow when values move to other registers,
//! and in call frames, whose registers then stay as they are.

use cubin::nvinfo::{self, Attribute, code as attribute};
use cubin::{Code, CubinError, Image, Patch};
use ir::{Kernel, OpKind, Pin};
use isa::RegFile;

/// In place of a register in an attribute.
const NONE: u32 = u32::MAX;
/// Kind of a register number in bits 31:24, as DWARF of these files has it too: the general ones.
const GENERAL: u32 = 5;
/// What an `EIATTR_MBARRIER_INSTR_OFFSETS` record is: u32 offset, u32 general register, u32 immediate, u8 kind, u8, u8 uniform register, u8.
const MBARRIER: usize = 16;

/// What a file says of a kernel's registers.
pub struct Named<'i> {
    places: Vec<Place<'i>>,
    /// General registers that call frames name.
    pub frames: Vec<Pin>,
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
            frames: frames.into_iter().map(|n| Pin::new(RegFile::R, n)).collect(),
        };
        for a in &code.attributes {
            match a.code {
                attribute::COOP_GROUP_MASK_REGIDS => named.masks(code, a)?,
                attribute::MBARRIER_INSTR_OFFSETS => named.barriers(image, a)?,
                attribute::INSTR_REG_MAP | attribute::ATOM16_EMUL_INSTR_REG_MAP => return Err(unreadable(a)),
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
            self.add(masks, 4 * n, offset, Pin::new(RegFile::R, number as u8));
        }
        Ok(())
    }

    /// The registers of the address of a barrier in shared memory.
    fn barriers(&mut self, image: &Image<'_>, barriers: &Attribute<'i>) -> Result<(), String> {
        let zero = isa::RegFile::UR;
        let zero = ir::zero_number(image.target(), zero).unwrap_or(0xff);
        for (n, record) in barriers.payload.chunks_exact(MBARRIER).enumerate() {
            let (offset, general, uniform) = (word(&record[..4]), word(&record[4..8]), record[14]);
            if general > 0xff {
                return Err(unreadable(barriers));
            }
            if general != 0xff {
                self.add(barriers, MBARRIER * n + 4, offset, Pin::new(RegFile::R, general as u8));
            }
            if uniform != 0xff && uniform != zero {
                self.add(barriers, MBARRIER * n + 14, offset, Pin::new(RegFile::UR, uniform));
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

fn word(bytes: &[u8]) -> u32 {
    bytes.iter().rev().fold(0, |n, b| n << 8 | u32::from(*b))
}

fn unreadable(a: &Attribute<'_>) -> String {
    format!("EIATTR_{} names registers", nvinfo::name(a.code).unwrap_or("?"))
}
