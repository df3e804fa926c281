//! Puts a kernel's code, the functions that it calls, constants and variables at addresses, and fills in the relocations.

use std::collections::BTreeMap;

use cubin::elf::{Relocation, SymbolSection, section_type};
use cubin::{Code, Image};
use isa::{Isa, Word};

use crate::error::PrepareError;
use crate::memory::{Buffer, CODE};
use crate::sign::AsSigned;

/// Where variables begin.
const GLOBALS: u64 = 0x7f08_0000_0000;
/// Room for the variables of one section.
const GLOBALS_STEP: u64 = 1 << 32;

/// Lowest bit of the number of a constant bank in an instruction.
const BANK_BIT: u32 = 54;

/// `.nv.constant2.NAME` -> 2.
fn bank_of(section: &str) -> Option<u8> {
    let rest = section.strip_prefix(".nv.constant")?;
    rest.split('.').next()?.parse().ok()
}

/// In a file that no linker has seen, shared variables have a size and an alignment, but no place: those that the kernel names get one, behind
/// what it has already.
fn place_shared(image: &Image<'_>, kernel: &Code<'_>) -> (BTreeMap<u32, u64>, u64) {
    /// `st_other` of a variable in shared memory.
    const SHARED: u8 = 0x40;
    let mut places = BTreeMap::new();
    let mut end = kernel.shared_size;
    if !image.abi().relocatable {
        return (places, end);
    }
    let names: std::collections::BTreeSet<u32> = kernel.relocations.iter().map(|r| r.symbol).collect();
    for n in names {
        let Some(s) = image.symbols().get(n as usize).filter(|s| s.other & 0xf0 == SHARED) else {
            continue;
        };
        let SymbolSection::Section(section) = s.section else {
            continue;
        };
        if image
            .sections()
            .get(section)
            .is_some_and(|s| !s.name.starts_with(".nv.shared."))
        {
            // The value is the alignment.
            let at = end.next_multiple_of(s.value.clamp(1, 1024));
            places.insert(n, at);
            end = at.saturating_add(s.size);
        }
    }
    (places, end)
}

/// A kernel's surroundings while they are put together.
pub struct Link<'i, 'a> {
    image: &'i Image<'a>,
    kernel: &'i Code<'a>,
    /// The kernel's section first, then those of functions, with the index of the first op.
    codes: Vec<(&'i Code<'a>, u32)>,
    /// Sections of variables and their addresses.
    globals: BTreeMap<usize, u64>,
    /// Functions that the file does not define, and where they are put.
    external: Vec<(&'a str, u64)>,
    /// Shared variables that no linker has placed yet, by symbol, and where they are put.
    shared: BTreeMap<u32, u64>,
    /// Bytes of shared memory up to the end of the last of them.
    shared_size: u64,
    /// Relocations that nothing understands: (section, offset) and the reason.
    unresolved: BTreeMap<(&'a str, u64), String>,
}

impl<'i, 'a> Link<'i, 'a> {
    /// Gives everything an address.
    pub fn new(image: &'i Image<'a>, kernel: &'i Code<'a>) -> Result<Self, PrepareError> {
        let mut codes = vec![(kernel, 0)];
        let mut next = (kernel.bytes.len() / Word::BYTES) as u32;
        for code in image.codes().iter().filter(|c| !c.is_entry) {
            codes.push((code, next));
            next += (code.bytes.len() / Word::BYTES) as u32;
        }
        let variables = image
            .sections()
            .iter()
            .filter(|s| matches!(s.name, ".nv.global" | ".nv.global.init") || s.kind == section_type::CUDA_GLOBAL);
        let globals = variables
            .enumerate()
            .map(|(n, s)| (s.index, GLOBALS + n as u64 * GLOBALS_STEP))
            .collect();
        let mut external = Vec::new();
        for s in image.symbols() {
            if s.section == SymbolSection::Undefined && !s.name.is_empty() {
                external.push((s.name, CODE + u64::from(next) * 16));
                next += 2;
            }
        }
        let (shared, shared_size) = place_shared(image, kernel);
        Ok(Self {
            image,
            kernel,
            codes,
            globals,
            external,
            shared,
            shared_size,
            unresolved: BTreeMap::new(),
        })
    }

    /// Bytes of static shared memory.
    pub fn shared_size(&self) -> u64 {
        self.shared_size
    }

    /// Names of functions that the file does not define, in the order of their addresses; each takes two ops.
    pub fn external(&self) -> impl Iterator<Item = &'a str> {
        self.external.iter().map(|e| e.0)
    }

    /// What could not be filled in at a place.
    pub fn unresolved(&self, section: &str, offset: u64) -> Option<String> {
        self.unresolved.get(&(section, offset)).cloned()
    }

    /// Where a relocation's symbol is.
    fn address(&self, symbol: u32) -> Result<u64, String> {
        let s = self
            .image
            .symbols()
            .get(symbol as usize)
            .ok_or("a relocation without a symbol")?;
        let base = match s.section {
            SymbolSection::Undefined => {
                let found = self.external.iter().find(|e| e.0 == s.name);
                return found.map(|e| e.1).ok_or_else(|| format!("`{}` is not defined", s.name));
            }
            SymbolSection::Section(_) if self.shared.contains_key(&symbol) => return Ok(self.shared[&symbol]),
            SymbolSection::Section(n) => {
                let code = self.codes.iter().find(|(c, _)| c.section == n);
                let code = code.map(|(_, start)| CODE + u64::from(*start) * 16);
                let name = self.image.sections().get(n).map_or("", |s| s.name);
                // Shared memory and constant banks have addresses of their own.
                let own = (name.starts_with(".nv.shared") || bank_of(name).is_some()).then_some(0);
                let variable = self.globals.get(&n).copied();
                code.or(variable)
                    .or(own)
                    .ok_or_else(|| format!("`{}` has no address here", s.name))?
            }
            SymbolSection::Absolute => 0,
            SymbolSection::Reserved(_) => return Err(format!("`{}` has no address here", s.name)),
        };
        Ok(base + s.value)
    }

    /// The code of all sections, relocated: name and bytes.
    pub fn code(&mut self) -> Result<Vec<(&'a str, Vec<u8>)>, String> {
        let isa = Isa::for_target(self.image.target()).map_err(|e| e.to_string())?;
        let mut out = Vec::new();
        for (code, _) in self.codes.clone() {
            let mut bytes = code.bytes.to_vec();
            for r in &code.relocations {
                if let Err(why) = self.patch(isa, r, &mut bytes) {
                    self.unresolved.insert((code.name, r.offset), why);
                }
            }
            out.push((code.name, bytes));
        }
        Ok(out)
    }

    /// Fills in a field of an instruction.
    fn patch(&self, isa: &Isa, r: &Relocation, code: &mut [u8]) -> Result<(), String> {
        let name = cubin::reloc::name(r.kind).ok_or_else(|| format!("a relocation of kind {}", r.kind))?;
        // Marks of the driver's, which change nothing for us.
        if name.contains("YIELD") || name.contains("UNUSED") {
            return Ok(());
        }
        let at = r.offset as usize;
        let word = code
            .get(at..at + Word::BYTES)
            .ok_or("a relocation outside of the code")?;
        let inst = isa.decode(Word::all(word).next().ok_or("a relocation outside of the code")?);
        let bit: u32 = name
            .rsplit('_')
            .next()
            .and_then(|n| n.parse().ok())
            .ok_or("a relocation without a place")?;
        let form = isa.form(inst.form).ok_or("a relocation of an unknown word")?;
        let field_at = |bit: u32| {
            let covers = |f: &isa::Field| f.mask() >> bit & 1 == 1 && f.kind.file().is_none();
            form.fields().iter().position(covers).ok_or("a relocation of no field")
        };
        let field = field_at(bit)?;
        // Without an addend of its own, the field holds it.
        let addend = r.addend.unwrap_or_else(|| form.fields()[field].get(inst.word));
        let value = self.address(r.symbol)?.wrapping_add_signed(addend);
        let set = |inst, field, value: i64| {
            // A 32-bit field may be signed.
            let set = isa.set_field(inst, field, value);
            set.or_else(|_| isa.set_field(inst, field, i64::from(value as i32)))
                .map_err(|e| e.to_string())
        };
        let inst = match () {
            _ if name.contains("_LO_") => set(inst, field, i64::from(value as u32))?,
            _ if name.contains("_HI_") => set(inst, field, i64::from((value >> 32) as u32))?,
            _ if name.starts_with("R_CUDA_ABS") => set(inst, field, value.signed())?,
            _ if name.contains("CONST_FIELD") => {
                let bank = self.bank(r.symbol).ok_or("a constant in no bank")?;
                let inst = set(inst, field_at(BANK_BIT)?, bank.into())?;
                set(inst, field, value.signed())?
            }
            _ => return Err(format!("the relocation {name}")),
        };
        code[at..at + Word::BYTES].copy_from_slice(&inst.word.to_le_bytes());
        Ok(())
    }

    /// The constant bank that a symbol is in.
    fn bank(&self, symbol: u32) -> Option<u8> {
        match self.image.symbols().get(symbol as usize)?.section {
            SymbolSection::Section(n) => bank_of(self.image.sections().get(n)?.name),
            _ => None,
        }
    }

    /// A section's bytes with addresses filled in; room without bytes is zero.
    fn data(&self, section: usize) -> Result<Vec<u8>, PrepareError> {
        let mut bytes = self.image.section_data(section)?.to_vec();
        if let Some(s) = self.image.sections().get(section).filter(|_| bytes.is_empty()) {
            // A size from the file, which could be anything.
            const LIMIT: u64 = 1 << 30;
            bytes.resize(s.size.min(LIMIT) as usize, 0);
        }
        for r in self.image.relocations(section)? {
            let at = r.offset as usize;
            let Some(place) = bytes.get_mut(at..at + 8) else {
                continue;
            };
            // Without an addend of its own, the field holds it.
            let held = i64::from_le_bytes(place.try_into().unwrap_or_default());
            if let (Some("R_CUDA_64"), Ok(value)) = (cubin::reloc::name(r.kind), self.address(r.symbol)) {
                let value = value.wrapping_add_signed(r.addend.unwrap_or(held));
                place.copy_from_slice(&value.to_le_bytes());
            }
        }
        Ok(bytes)
    }

    /// The kernel's constant banks and those of the file, but bank 0.
    pub fn banks(&self) -> Result<Vec<(u8, Vec<u8>)>, PrepareError> {
        let mut out = Vec::new();
        for bank in self.kernel.constants.iter().filter(|b| b.bank != 0) {
            out.push((bank.bank, self.data(bank.section)?));
        }
        for n in 1..=17 {
            if let Some(bank) = self.image.constant_bank(n)? {
                out.push((n, self.data(bank.section)?));
            }
        }
        Ok(out)
    }

    /// The file's variables.
    pub fn globals(&self) -> Vec<Buffer> {
        let buffer = |(&section, &address): (&usize, &u64)| {
            Some(Buffer {
                name: self.image.sections().get(section)?.name.to_owned(),
                address,
                origin: address,
                data: self.data(section).ok()?,
                growth: None,
            })
        };
        self.globals
            .iter()
            .filter_map(buffer)
            .filter(|b| !b.data.is_empty())
            .collect()
    }
}
