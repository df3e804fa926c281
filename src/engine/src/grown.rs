//! Code of another length than it had, as a text gives it: which instructions stayed, came and went.

use cubin::{Code, Image};
use ir::Kernel;
use isa::{Isa, Word};
use similar::{Algorithm, DiffOp, capture_diff_slices};

use crate::mask::{Origin, WORD};
use crate::placed::{There, follow};

/// The places of the instructions of a kernel whose code, `lowered`, is longer or shorter than the section that it replaces.
pub(crate) fn grown<'c>(
    isa: &'static Isa,
    image: &Image<'_>,
    code: &Code<'c>,
    (before, after): (&Kernel, &Kernel),
    lowered: &[u8],
) -> Result<There<'c>, String> {
    let order = order(isa, before, code.bytes, after, lowered);
    let put = |at: usize| word(lowered, at);
    follow(isa, image, code, (before, after), &order, lowered, &put)
}

fn word(code: &[u8], at: usize) -> Word {
    Word::all(code.get(at * WORD..).unwrap_or_default())
        .next()
        .unwrap_or(Word(0))
}

/// Where each instruction comes from. Block by block, what reads alike stayed, in order; of what lies between, as many as there were
/// changed in their places, and the rest is new.
fn order(isa: &Isa, before: &Kernel, old: &[u8], after: &Kernel, new: &[u8]) -> Vec<Origin> {
    let (mut from, mut to) = (0, 0);
    let mut order = Vec::new();
    for (old_block, new_block) in before.blocks().zip(after.blocks()) {
        let (old_end, new_end) = (from + old_block.instruction_count(), to + new_block.instruction_count());
        // Scheduling is no part of what an instruction is, nor is the place where a label is by now.
        let keys = |code: &[u8], range: std::ops::Range<usize>| -> Vec<u128> {
            let key = |at| {
                let inst = isa.decode(word(code, at));
                let label = |f: &isa::Field| f.kind == isa::FieldKind::Rel;
                let fields = isa.form(inst.form).map_or(&[][..], |form| form.fields());
                let labels = fields.iter().filter(|f| label(f)).fold(0, |m, f| m | f.mask());
                inst.word.0 & !isa::control::MASK & !labels
            };
            range.map(key).collect()
        };
        let kept = |at: usize| Origin::Kept((from + at) as u32);
        for step in capture_diff_slices(Algorithm::Myers, &keys(old, from..old_end), &keys(new, to..new_end)) {
            let (here, stay, come) = match step {
                DiffOp::Equal { old_index, len, .. } => (old_index, len, 0),
                DiffOp::Replace {
                    old_index,
                    old_len,
                    new_len,
                    ..
                } => (old_index, old_len.min(new_len), new_len.saturating_sub(old_len)),
                DiffOp::Insert { old_index, new_len, .. } => (old_index, 0, new_len),
                DiffOp::Delete { .. } => continue,
            };
            order.extend((here..here + stay).map(kept));
            order.extend((0..come).map(|_| Origin::New));
        }
        (from, to) = (old_end, new_end);
    }
    order
}
