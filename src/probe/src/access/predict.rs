//! What `isa` says an instruction touches, in the terms of the oracle.

use isa::{Access, Dir, FormId, Isa, RegFile, Word};

use crate::plr::{File, Usage};

/// Registers touched and the mnemonic; none if the word is opaque.
pub fn usage(isa: &Isa, word: u128) -> Option<(Usage, &'static str)> {
    usage_where(isa, word, |_| true)
}

/// As [`usage`], without what no field of the word names.
pub fn named_usage(isa: &Isa, word: u128) -> Option<Usage> {
    usage_where(isa, word, |a| a.field.is_some()).map(|u| u.0)
}

fn usage_where(isa: &Isa, word: u128, counts: impl Fn(&Access) -> bool) -> Option<(Usage, &'static str)> {
    let inst = isa.decode(Word(word));
    if inst.form == FormId::OPAQUE {
        return None;
    }
    let mut usage = Usage::default();
    for access in isa.accesses(inst).filter(|a| !a.is_zero && counts(a)) {
        let file = match access.file {
            RegFile::R => File::R,
            RegFile::P => File::P,
            RegFile::UR => File::Ur,
            RegFile::UP => File::Up,
            RegFile::B => continue, // the oracle has no column for it
        };
        for reg in access.reg..access.reg.saturating_add(access.width) {
            if isa.is_zero(access.file, reg) {
                break; // a tuple may run into RZ
            }
            if matches!(access.dir, Dir::Read | Dir::ReadWrite) {
                usage.read[file as usize].add(reg.into());
            }
            if matches!(access.dir, Dir::Write | Dir::ReadWrite) {
                usage.write[file as usize].add(reg.into());
            }
        }
    }
    Some((usage, isa.form(inst.form)?.mnemonic()))
}
