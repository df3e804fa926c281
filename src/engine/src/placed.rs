//! New code for a kernel, and the rest of its file where instructions have other places than they had: every code offset follows.
//!
//! The code comes twice: from the kernel, whose branches lead to blocks, and from the mover, which knows words only. Both must agree on all
//! that no edit names.

use std::collections::BTreeSet;

use cubin::{Code, CodeMove, Image};
use ir::{Kernel, Movement, Put, Source};
use isa::{Isa, Word};

use crate::mask::{AllowedBits, Origin, WORD, mask_verify};
use crate::moving;
use crate::replace;

/// New code.
pub(crate) struct Placed<'c> {
    /// With what the file says of it once it is there.
    source: Source<'c>,
    /// The section's bytes.
    pub code: Vec<u8>,
    /// Where instructions went, if they have other places.
    pub moved: Option<CodeMove>,
    /// What the code would be if instructions had gone to their places and nothing else had changed.
    followed: Vec<u8>,
    /// Instructions that came or that went.
    exchanged: usize,
}

impl<'c> Placed<'c> {
    /// Lowers what edits made of a kernel that was `before`, and holds it against what they name.
    pub fn new(
        isa: &'static Isa,
        image: &Image<'_>,
        code: &Code<'c>,
        before: &Kernel,
        kernel: &Kernel,
        allowed: &AllowedBits,
    ) -> Result<Placed<'c>, String> {
        let source = Source::from_code(image.target(), code);
        let lowered = ir::lower(kernel).map_err(|e| e.to_string())?;
        let Some(order) = allowed.order() else {
            mask_verify(code.bytes, &lowered, allowed).map_err(|e| e.to_string())?;
            replace::still_true(isa, code, &lowered, &Some)?;
            return Ok(Placed {
                source,
                code: lowered,
                moved: None,
                followed: code.bytes.to_vec(),
                exchanged: 0,
            });
        };
        let put = |at: usize| Word(allowed.word((at * WORD) as u64, 0));
        let there = follow(isa, image, code, (before, kernel), order, &lowered, &put)?;
        mask_verify(&there.followed, &there.moved.code, allowed).map_err(|e| e.to_string())?;
        Ok(Placed {
            source: there.source,
            code: there.moved.code.clone(),
            moved: Some(there.moved),
            followed: there.followed,
            exchanged: there.exchanged,
        })
    }

    /// The new code with what the file says of it.
    pub fn source(&self) -> Source<'_> {
        Source {
            code: &self.code,
            ..self.source.clone()
        }
    }

    /// Puts the code in with other scheduling bits.
    pub fn put(&mut self, code: Vec<u8>) {
        if let Some(moved) = &mut self.moved {
            moved.code.clone_from(&code);
        }
        self.code = code;
    }

    /// How many instructions are others than they were, came or went.
    pub fn changed(&self) -> usize {
        others(&self.followed, &self.code) + self.exchanged
    }

    /// Where an instruction of the old code is now.
    pub fn now(&self, offset: u64) -> Option<u64> {
        self.moved.as_ref().map_or(Some(offset), |m| m.instruction_at(offset))
    }
}

/// Code whose instructions have other places than they had.
pub(crate) struct There<'c> {
    /// What the file says of it, with the old code.
    pub source: Source<'c>,
    pub moved: CodeMove,
    /// What the code would be if instructions had gone to their places and nothing else had changed.
    followed: Vec<u8>,
    /// Instructions that came or that went.
    exchanged: usize,
}

impl There<'_> {
    /// How many instructions are others than they were, came or went.
    pub fn changed(&self) -> usize {
        others(&self.followed, &self.moved.code) + self.exchanged
    }
}

/// How many instructions of two codes differ.
pub(crate) fn others(old: &[u8], new: &[u8]) -> usize {
    old.chunks(WORD).zip(new.chunks(WORD)).filter(|(a, b)| a != b).count()
}

/// Brings the instructions of a section into `order`. `kernels` are the old and the new one, whose code is `lowered`; `put` tells the words that
/// are new in it, by position.
pub(crate) fn follow<'c>(
    isa: &'static Isa,
    image: &Image<'_>,
    code: &Code<'c>,
    (before, after): (&Kernel, &Kernel),
    order: &[Origin],
    lowered: &[u8],
    put: &dyn Fn(usize) -> Word,
) -> Result<There<'c>, String> {
    let source = Source::from_code(image.target(), code);
    let words: Vec<Word> = Word::all(code.bytes).collect();
    let movement = movement(before, after, order, put)?;
    let gone = |offset: u64| movement.delete.binary_search(&((offset / WORD as u64) as u32)).is_ok();
    if let Some(offset) = replace::named(code)?.into_iter().find(|offset| gone(*offset)) {
        return Err(format!(
            "the file names the instruction at {offset:#06x}, which is not where it was"
        ));
    }
    let tables = moving::tables(isa, image, code, &source)?;
    let followed = ir::move_code(isa, &source, &movement)?;
    let moved = CodeMove {
        section: code.section,
        code: agreed(after, order, &words, lowered, &followed.code),
        instruction: followed.instruction,
        label: followed.label,
        tables,
    };
    replace::still_true(isa, code, &moved.code, &|offset| moved.instruction_at(offset))?;
    let source = followed_source(&source, &moved)
        .ok_or_else(|| "the file names a place in the padding behind the code".to_owned())?;
    returns_hold(isa, &source, &moved.code)?;
    Ok(There {
        source,
        moved,
        followed: followed.code,
        exchanged: (movement.append.len() + movement.insert.len()).max(movement.delete.len()),
    })
}

/// What to do to the old code for its instructions to come into `order`. What is put in goes before an instruction of its own block that was
/// kept, or else behind the last one that the block had.
fn movement(
    before: &Kernel,
    after: &Kernel,
    order: &[Origin],
    put: &dyn Fn(usize) -> Word,
) -> Result<Movement, String> {
    if before.block_count() != after.block_count() {
        return Err("the blocks of the code are others than they were".to_owned());
    }
    let mut movement = Movement::default();
    let mut gone: BTreeSet<u32> = (0..before.instruction_count() as u32).collect();
    let (mut at, mut end) = (0, 0);
    for (old, new) in before.blocks().zip(after.blocks()) {
        end += old.instruction_count();
        let mut waiting = Vec::new();
        for _ in 0..new.instruction_count() {
            let origin = *order.get(at).ok_or("edits and code have other lengths")?;
            match origin {
                Origin::Kept(n) => {
                    gone.remove(&n);
                    movement.insert.extend(waiting.drain(..).map(|put| (n, put)));
                }
                Origin::Moved(n) => waiting.push(Put::Old(n)),
                Origin::New => waiting.push(Put::New(put(at))),
            }
            at += 1;
        }
        movement.append.extend(waiting.into_iter().map(|put| (end as u32, put)));
    }
    movement.delete = gone.into_iter().collect();
    Ok(movement)
}

/// The code as the kernel has it, with the padding and the return addresses as the mover has them: to the kernel those are numbers.
fn agreed(kernel: &Kernel, order: &[Origin], old: &[Word], lowered: &[u8], followed: &[u8]) -> Vec<u8> {
    let mut new = lowered[..order.len() * WORD].to_vec();
    let labelled = passes::instructions(kernel).map(|(_, op, _)| kernel.op(op).layout().is_some_and(|l| l.has_label));
    for ((at, origin), labelled) in order.iter().enumerate().zip(labelled) {
        let (Some(n), false) = (origin.number(), labelled) else {
            continue;
        };
        let word = |bytes: &[u8]| Word::all(&bytes[at * WORD..]).next().unwrap_or(Word(0)).0;
        let (own, follows) = (word(&new), word(followed));
        let bits = old[n as usize].0 ^ follows;
        if (own ^ old[n as usize].0) & bits == 0 {
            new[at * WORD..(at + 1) * WORD].copy_from_slice(&(own ^ bits).to_le_bytes());
        }
    }
    new.extend_from_slice(&followed[order.len() * WORD..]);
    new
}

/// Code that moves nowhere stays as it is, return addresses too, if those are right.
fn returns_hold(isa: &'static Isa, source: &Source<'_>, code: &[u8]) -> Result<(), String> {
    let source = Source { code, ..source.clone() };
    let again = ir::move_code(isa, &source, &Movement::default())?;
    match again.code == code {
        true => Ok(()),
        false => Err("a call would come back to another place".to_owned()),
    }
}

/// What the file says of the code, once that has moved.
fn followed_source<'c>(source: &Source<'c>, moved: &CodeMove) -> Option<Source<'c>> {
    let labels = |list: &[u64]| list.iter().map(|at| moved.label_at(*at)).collect::<Option<Vec<_>>>();
    let branches = source
        .indirect_branches
        .iter()
        .map(|(at, targets)| Some((moved.instruction_at(*at)?, labels(targets)?)));
    Some(Source {
        functions: labels(&source.functions)?,
        private: labels(&source.private)?,
        labels: labels(&source.labels)?,
        indirect_branches: branches.collect::<Option<Vec<_>>>()?,
        relocated: source
            .relocated
            .iter()
            .map(|at| moved.instruction_at(*at))
            .collect::<Option<Vec<_>>>()?,
        ..source.clone()
    })
}
