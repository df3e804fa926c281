//! Physical registers as the intermediate representation names them.

use std::fmt;

use isa::RegFile;

/// The register files, in the order that prints, numbers and sorts them.
pub const FILES: [RegFile; 5] = [RegFile::R, RegFile::UR, RegFile::P, RegFile::UP, RegFile::B];

/// The position of a file in [`FILES`].
pub fn file_index(file: RegFile) -> usize {
    match file {
        RegFile::R => 0,
        RegFile::UR => 1,
        RegFile::P => 2,
        RegFile::UP => 3,
        RegFile::B => 4,
    }
}

/// The letters in front of a register number.
pub fn file_letters(file: RegFile) -> &'static str {
    match file {
        RegFile::R => "R",
        RegFile::UR => "UR",
        RegFile::P => "P",
        RegFile::UP => "UP",
        RegFile::B => "B",
    }
}

/// The MLIR type of a 32-bit register (or predicate, or barrier) of the file.
pub const fn file_type(file: RegFile) -> &'static str {
    match file {
        RegFile::R => "!sass.reg",
        RegFile::UR => "!sass.ureg",
        RegFile::P => "!sass.pred",
        RegFile::UP => "!sass.upred",
        RegFile::B => "!sass.barrier",
    }
}

/// [`file_type`] as an array, and how long it is.
pub(crate) fn file_type_array(file: RegFile) -> &'static ([u8; 16], usize) {
    const fn array(text: &str) -> ([u8; 16], usize) {
        let mut bytes = [0; 16];
        let mut at = 0;
        while at < text.len() {
            bytes[at] = text.as_bytes()[at];
            at += 1;
        }
        (bytes, text.len())
    }
    static TYPES: [([u8; 16], usize); 5] = [
        array(file_type(RegFile::R)),
        array(file_type(RegFile::UR)),
        array(file_type(RegFile::P)),
        array(file_type(RegFile::UP)),
        array(file_type(RegFile::B)),
    ];
    &TYPES[file_index(file)]
}

/// The number that names the constant register of the file (`RZ`, `URZ`, `PT`, `UPT`): `None` for `B`, which has none.
pub fn zero_number(target: isa::Target, file: RegFile) -> Option<u8> {
    match file {
        RegFile::R => Some(255),
        RegFile::UR => Some(target.uniform_zero()),
        RegFile::P | RegFile::UP => Some(7),
        RegFile::B => None,
    }
}

/// A physical 32-bit register, a predicate, a convergence barrier, or the constant register of a file.
///
/// Bits 7:0 are the number, 10:8 the file, bit 11 marks the constant register (its number is then 0 here, because the number that
/// names it depends on the target).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pin(u16);

impl Pin {
    /// How many different values [`Pin::index`] has.
    pub const COUNT: usize = 5 * 256;

    /// The first register.
    pub const R0: Pin = Pin(0);

    /// Above all values of [`Pin::to_bits`].
    pub(crate) const END: usize = 0x800 + Pin::COUNT;

    /// Register `number` of `file`. The constant register is [`Pin::zero`].
    pub fn new(file: RegFile, number: u8) -> Pin {
        Pin((file_index(file) as u16) << 8 | number as u16)
    }

    /// The register of that number in the file of this one, which must be number 0; the constant register for numbers from `end` on.
    #[inline]
    pub(crate) fn behind(self, number: u16, end: u16) -> Pin {
        Pin(self.0 | if number >= end { 0x800 } else { number })
    }

    /// `RZ`, `URZ`, `PT` or `UPT`.
    pub fn zero(file: RegFile) -> Pin {
        Pin((file_index(file) as u16) << 8 | 0x800)
    }

    /// The file it is in.
    pub fn file(self) -> RegFile {
        FILES[((self.0 >> 8) & 7) as usize]
    }

    /// The register's number, 0 for the constant register.
    pub fn number(self) -> u8 {
        self.0 as u8
    }

    /// True for `RZ`, `URZ`, `PT`, `UPT`.
    pub fn is_zero(self) -> bool {
        self.0 & 0x800 != 0
    }

    /// A dense number below [`Pin::COUNT`]; not meaningful for the constant registers.
    pub fn index(self) -> usize {
        (self.0 & 0x7ff) as usize
    }

    /// The inverse of [`Pin::index`].
    pub fn from_index(index: usize) -> Pin {
        debug_assert!(index < Pin::COUNT);
        Pin(index as u16)
    }

    /// Bits 7:0 the number, 10:8 the file, 11 set for the constant register.
    pub fn to_bits(self) -> u16 {
        self.0
    }

    /// The inverse of [`Pin::to_bits`]; `None` for bits that mean no register.
    pub fn from_bits(bits: u16) -> Option<Pin> {
        (bits >> 12 == 0 && usize::from(bits >> 8 & 7) < FILES.len()).then_some(Pin(bits))
    }

    /// Its name, `R4` or `URZ`, and how long that is.
    pub(crate) fn text(self) -> ([u8; 8], usize) {
        let mut text = [0; 8];
        let letters = file_letters(self.file()).as_bytes();
        let mut len = letters.len();
        text[..len].copy_from_slice(letters);
        let number = self.number();
        let digits = match (self.is_zero(), self.file()) {
            (true, RegFile::P | RegFile::UP) => [0, 0, b'T'],
            (true, _) => [0, 0, b'Z'],
            (false, _) => [number / 100, number / 10 % 10, number % 10 + b'0'],
        };
        for (digit, least) in digits.into_iter().zip([100, 10, 0]) {
            if least == 0 || number >= least {
                text[len] = if least > 0 { digit + b'0' } else { digit };
                len += 1;
            }
        }
        (text, len)
    }

    /// Reads `R4`, `UR63`, `PT`, ...
    pub fn parse(text: &str) -> Option<Pin> {
        let digits = text.find(|c: char| c.is_ascii_digit());
        let Some(at) = digits else {
            return match text {
                "RZ" => Some(Pin::zero(RegFile::R)),
                "URZ" => Some(Pin::zero(RegFile::UR)),
                "PT" => Some(Pin::zero(RegFile::P)),
                "UPT" => Some(Pin::zero(RegFile::UP)),
                _ => None,
            };
        };
        let file = FILES.into_iter().find(|f| file_letters(*f) == &text[..at])?;
        let number = &text[at..];
        if number.len() > 1 && number.starts_with('0') {
            return None;
        }
        Some(Pin::new(file, number.parse().ok()?))
    }
}

impl fmt::Display for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (text, len) = self.text();
        f.write_str(std::str::from_utf8(&text[..len]).unwrap_or("?"))
    }
}

impl fmt::Debug for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
