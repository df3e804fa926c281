//! Which bits an edit list may move. It is worked out from the edits and the tables alone, not from what applying them did,
//! so that mask-verify is a check and not an echo.

use isa::Isa;

use crate::mask::AllowedBits;

/// Adds the bits of the fields and modifiers that the edits name.
pub fn by_edits(isa: &Isa, kernel: &ir::Kernel, edits: &ir::EditList, allowed: &mut AllowedBits) -> Result<(), String> {
    let mut named: Vec<(ir::OpId, Named)> = Vec::with_capacity(edits.edits.len());
    let mut list = edits.edits.iter().peekable();
    while let Some(edit) = list.next() {
        match edit {
            ir::Edit::SetField { op, field, .. } => {
                let form = form_of(isa, kernel, *op)?;
                let field = form
                    .fields()
                    .get(*field)
                    .ok_or_else(|| format!("{} has no field {field}", form.name()))?;
                named.push((*op, Named::Bits(field.mask())));
            }
            ir::Edit::EditModifiers { op, drop, add } => {
                let inst = inst_of(kernel, *op)?;
                let edited = isa
                    .edit_modifiers(inst, &tokens(drop), &tokens(add))
                    .map_err(|e| e.to_string())?;
                named.push((*op, Named::Bits(edited.word.0 ^ inst.word.0)));
            }
            ir::Edit::Replace { op, inst, .. } => {
                inst_of(kernel, *op)?;
                named.push((*op, Named::Word(inst.word.0)));
            }
            // One goes, and one that is put before it comes: everything keeps its place.
            ir::Edit::Insert { before, inst, .. } => {
                let erased = list.next_if(|next| matches!(next, ir::Edit::Erase { op } if op == before));
                if erased.is_none() {
                    return Err(format!("{edit:?}: this engine cannot check code that moves yet"));
                }
                inst_of(kernel, *before)?;
                named.push((*before, Named::Word(inst.word.0)));
            }
            other => return Err(format!("{other:?}: this engine cannot check edits of that kind yet")),
        }
    }
    named.sort_by_key(|(op, _)| *op);
    let mut rest = named.iter().peekable();
    for (offset, op, _) in passes::instructions(kernel) {
        while let Some((_, bits)) = rest.next_if(|(o, _)| *o == op) {
            match bits {
                Named::Bits(bits) => allowed.allow(offset, *bits),
                Named::Word(word) => allowed.replace(offset, *word),
            }
        }
    }
    match rest.next() {
        Some((op, _)) => Err(format!("operation {} is no instruction of the kernel", op.0)),
        None => Ok(()),
    }
}

/// What an edit says of a word.
enum Named {
    /// It may change these bits.
    Bits(u128),
    /// It puts this word there.
    Word(u128),
}

fn tokens(list: &[String]) -> Vec<&str> {
    list.iter().map(String::as_str).collect()
}

fn form_of<'i>(isa: &'i Isa, kernel: &ir::Kernel, op: ir::OpId) -> Result<isa::Form<'i>, String> {
    isa.form(inst_of(kernel, op)?.form)
        .ok_or_else(|| format!("operation {} is opaque", op.0))
}

fn inst_of(kernel: &ir::Kernel, op: ir::OpId) -> Result<isa::Inst, String> {
    if op.index() >= kernel.op_count() {
        return Err(format!("operation {} is not in the kernel", op.0));
    }
    kernel
        .op(op)
        .inst()
        .ok_or_else(|| format!("operation {} is no instruction", op.0))
}
