//! Moving the code of a whole file: NOPs put in at random places, and taken out again. The proof that everything that holds a code
//! offset follows.

use std::collections::BTreeMap;

use cubin::{Code, CodeMove, Image, TableEntry};
use ir::{Moved, Movement, Source};
use isa::{Isa, Terminator, Word};
use rayon::prelude::*;
use serde::Serialize;

use crate::Error;
use crate::open::{Images, Opened};

/// What happened to one kernel.
#[derive(Clone, Debug, Serialize)]
pub struct KernelMove {
    /// Position of the image in the file.
    pub image: usize,
    /// The target, as `sm_87`.
    pub target: String,
    /// The kernel's name.
    pub name: String,
    /// Byte offsets of the instructions put in, in the new code.
    pub inserted: Vec<u32>,
    /// Byte offsets of the instructions taken out, in the old code.
    pub taken_out: Vec<u32>,
    /// Why the kernel stayed where it was.
    pub left_alone: Option<String>,
}

/// What came out for a file.
pub struct Outcome {
    /// The new file.
    pub bytes: Vec<u8>,
    /// Every kernel, in file order.
    pub kernels: Vec<KernelMove>,
}

/// What to do with one section of code, if anything; or why it has to stay as it is.
type Plan<'a> = dyn Fn(usize, &'static Isa, &Source<'_>) -> Result<Option<Movement>, String> + Sync + 'a;

/// Puts NOPs in before about one instruction in `every`, chosen by the seed. A NOP goes where it cuts off no operand-cache flag.
pub fn put_nops(opened: &Opened<'_>, images: &Images<'_>, seed: u64, every: u64) -> Result<Outcome, Error> {
    move_all(opened, images, &|_, isa, source| {
        let Some(nop) = ir::nop(isa) else { return Ok(None) };
        let mut state = source.name.bytes().fold(seed ^ 0x9e37_79b9_7f4a_7c15, |h, b| {
            (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3)
        });
        let mut chosen = |_: &u32| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % every.max(1) == 0
        };
        let places = ir::free_places(isa, source).into_iter().filter(&mut chosen);
        let insert = places.map(|p| (p, ir::Put::New(nop))).collect();
        Ok(Some(Movement {
            insert,
            ..Movement::default()
        }))
    })
}

/// Takes NOPs out, by image, kernel and byte offset. What [`put_nops`] does not put in stays, and so does the kernel that holds it; a
/// kernel that the file does not have is an error.
pub fn take_out(
    opened: &Opened<'_>,
    images: &Images<'_>,
    places: &BTreeMap<(usize, String), Vec<u32>>,
) -> Result<Outcome, Error> {
    let is_here = |index: usize, name: &str| {
        let mut named = images.list.iter().filter(|open| open.index == index);
        named.any(|open| open.image.codes().iter().any(|code| code.name == name))
    };
    if let Some((image, name)) = places.keys().find(|(image, name)| !is_here(*image, name)) {
        return Err(Error::NoKernel {
            image: *image,
            name: name.clone(),
        });
    }
    move_all(opened, images, &|image, isa, source| {
        let Some(offsets) = places.get(&(image, source.name.clone())) else {
            return Ok(None);
        };
        let nop = ir::nop(isa).map(Word::to_le_bytes);
        let is_nop = |at: u32| {
            at.is_multiple_of(16)
                && nop.is_some_and(|nop| source.code[..].get(at as usize..at as usize + 16) == Some(&nop))
        };
        match offsets.iter().find(|at| !is_nop(**at)) {
            Some(at) => Err(format!("at {at:#x} there is no NOP that was put in")),
            None => Ok(Some(Movement {
                delete: offsets.iter().map(|o| o / 16).collect(),
                ..Movement::default()
            })),
        }
    })
}

fn move_all(opened: &Opened<'_>, images: &Images<'_>, plan: &Plan<'_>) -> Result<Outcome, Error> {
    let mut done = Outcome {
        bytes: Vec::new(),
        kernels: Vec::new(),
    };
    let mut replaced = Vec::new();
    for open in &images.list {
        let image = &open.image;
        let isa = Isa::for_target(image.target()).map_err(|cause| Error::Isa {
            image: open.path.to_owned(),
            cause,
        })?;
        let parts: Vec<(KernelMove, Option<CodeMove>)> = image
            .codes()
            .par_iter()
            .map(|code| one_section(open.index, isa, image, code, plan))
            .collect();
        let (mut kernels, moves): (Vec<KernelMove>, Vec<Option<CodeMove>>) = parts.into_iter().unzip();
        let moves: Vec<CodeMove> = moves.into_iter().flatten().collect();
        match cubin::movement::move_code(image, &moves) {
            Ok(bytes) => replaced.push((open.index, bytes)),
            Err(why) => {
                for kernel in kernels.iter_mut().filter(|k| k.left_alone.is_none()) {
                    kernel.left_alone = Some(why.to_string());
                    kernel.inserted.clear();
                    kernel.taken_out.clear();
                }
            }
        }
        done.kernels.append(&mut kernels);
    }
    done.bytes = opened.rebuild(&replaced)?;
    Ok(done)
}

fn one_section(
    index: usize,
    isa: &'static Isa,
    image: &Image<'_>,
    code: &Code<'_>,
    plan: &Plan<'_>,
) -> (KernelMove, Option<CodeMove>) {
    let mut report = KernelMove {
        image: index,
        target: image.target().to_string(),
        name: code.name.to_owned(),
        inserted: Vec::new(),
        taken_out: Vec::new(),
        left_alone: None,
    };
    let source = Source::from_code(image.target(), code);
    let moved = plan(index, isa, &source).and_then(|movement| {
        let Some(movement) = movement else { return Ok(None) };
        let moved = ir::move_code(isa, &source, &movement)?;
        Ok(Some((movement.delete, tables(isa, image, code, &source)?, moved)))
    });
    match moved {
        Ok(None) => (report, None),
        Ok(Some((
            deleted,
            tables,
            Moved {
                code: bytes,
                instruction,
                label,
                inserted,
            },
        ))) => {
            report.inserted = inserted;
            report.taken_out = deleted.into_iter().map(|at| at * Word::BYTES as u32).collect();
            let section = code.section;
            let moved = CodeMove {
                section,
                code: bytes,
                instruction,
                label,
                tables,
            };
            (report, Some(moved))
        }
        Err(why) => {
            report.left_alone = Some(why);
            (report, None)
        }
    }
}

/// Tables of code offsets in the kernel's own constant banks: those of indirect branches, whose contents the file tells, and pointers to
/// functions of the section where it makes indirect calls. What a relocation fills in is none of them. Pointers elsewhere are refused: there
/// they cannot be told from other numbers.
pub(crate) fn tables(
    isa: &'static Isa,
    image: &Image<'_>,
    code: &Code<'_>,
    source: &Source<'_>,
) -> Result<Vec<TableEntry>, String> {
    let mut entries = Vec::new();
    let banks: Vec<_> = code.constants.iter().filter(|b| b.bank != 0).collect();
    let mut relocated = std::collections::HashSet::new();
    for bank in &banks {
        let list = image.relocations(bank.section).map_err(|e| e.to_string())?;
        relocated.extend(list.iter().map(|r| (bank.section, r.offset as usize)));
    }
    for branch in &code.indirect_branches {
        let base = ir::indirect_base(isa, source, branch.offset.into()).ok_or_else(|| {
            format!(
                "the indirect branch at {:#x} is none that the tables know",
                branch.offset
            )
        })?;
        let wanted: Vec<u8> = branch
            .targets
            .iter()
            .flat_map(|t| t.wrapping_sub(base).to_le_bytes())
            .collect();
        let mut found = false;
        for bank in &banks {
            let starts = (0..bank.bytes.len())
                .step_by(4)
                .filter(|&at| bank.bytes[at..].starts_with(&wanted));
            for at in starts.filter(|_| !wanted.is_empty()) {
                found = true;
                let own = (at..at + wanted.len())
                    .step_by(4)
                    .filter(|o| !relocated.contains(&(bank.section, *o)));
                entries.extend(own.map(|offset| TableEntry {
                    section: bank.section,
                    offset,
                    size: 4,
                    base,
                }));
            }
        }
        if !found {
            return Err(format!(
                "the table of the indirect branch at {:#x} is not found",
                branch.offset
            ));
        }
    }
    let calls_pointers = Word::all(code.bytes).any(|w| {
        let inst = isa.decode(w);
        let register =
            |a: isa::Access| a.dir.reads() && !a.is_zero && matches!(a.file, isa::RegFile::R | isa::RegFile::UR);
        isa.semantics(inst).terminator == Terminator::Call && isa.accesses(inst).any(register)
    });
    // A number of 64 bits; in the kernel's own constants nothing else looks like one.
    let upper = |p: &cubin::Pointer| {
        let data = image.section_data(p.section).unwrap_or(&[]);
        data.get(p.offset as usize + 4..p.offset as usize + 8) == Some(&[0; 4])
    };
    let pointers = code
        .pointers
        .iter()
        .filter(|p| calls_pointers && p.offset.is_multiple_of(8) && upper(p));
    for pointer in pointers {
        let section = &image.sections()[pointer.section];
        let list = image.relocations(pointer.section).map_err(|e| e.to_string())?;
        if list.iter().any(|r| r.offset == pointer.offset) {
            continue;
        }
        if banks.iter().all(|b| b.section != pointer.section) {
            return Err(format!(
                "it calls through pointers, and at {:#x} of {} there may be one to its function at {:#x}",
                pointer.offset, section.name, pointer.function
            ));
        }
        entries.push(TableEntry {
            section: pointer.section,
            offset: pointer.offset as usize,
            size: 8,
            base: 0,
        });
    }
    entries.sort_by_key(|e| (e.section, e.offset));
    entries.dedup_by_key(|e| (e.section, e.offset));
    Ok(entries)
}
