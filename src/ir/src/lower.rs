//! From a kernel back to code.
//!
//! The registers of every word are cleared and written again from the pins of the operation's values, so the bytes come out right only
//! if the values are. Nothing else in a word changes, but for code labels whose target moved.

use isa::{Inst, Isa, Word};

use crate::check::{self, Disagreement};
use crate::kernel::{Kernel, NONE, OpId, OpKind};
use crate::layout::{Flow, Layout, Register};
use crate::pin::Pin;

/// Why a kernel cannot be lowered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LowerError {
    /// The build has no tables for the target.
    #[error("{kernel}: {reason}")]
    Tables {
        /// Section name.
        kernel: String,
        /// What isa says.
        reason: String,
    },
    /// An operation cannot be written as it is.
    #[error("{kernel} at {offset:#x}: {reason}")]
    Op {
        /// Section name.
        kernel: String,
        /// Byte offset in the lowered code.
        offset: u64,
        /// The operation.
        op: OpId,
        /// What is wrong.
        reason: String,
    },
}

/// The bytes of a kernel, padding included.
pub fn lower(kernel: &Kernel) -> Result<Vec<u8>, LowerError> {
    check::pins_hold(kernel).map_err(|d| refused(kernel, d))?;
    encoded(kernel)
}

/// The same, whatever the registers hold by the time they are read.
fn encoded(kernel: &Kernel) -> Result<Vec<u8>, LowerError> {
    let isa = Isa::for_target(kernel.target).map_err(|e| LowerError::Tables {
        kernel: kernel.name.clone(),
        reason: e.to_string(),
    })?;
    emit(kernel, isa).map_err(|d| refused(kernel, d))
}

fn refused(kernel: &Kernel, d: Disagreement) -> LowerError {
    LowerError::Op {
        kernel: kernel.name.clone(),
        offset: kernel.op(d.op).offset(),
        op: d.op,
        reason: d.message,
    }
}

fn emit(kernel: &Kernel, isa: &Isa) -> Result<Vec<u8>, Disagreement> {
    let offsets = check::block_offsets(kernel);
    let labels = check::label_blocks(kernel)?;
    let mut out = Vec::with_capacity(kernel.byte_size());
    for b in 0..kernel.block_count() {
        let mut last = None;
        for i in kernel.block_start[b]..kernel.block_start[b + 1] {
            let at = i as usize;
            match kernel.kinds[at] {
                OpKind::Inst => {}
                OpKind::Opaque => {
                    out.extend_from_slice(&kernel.words[at].to_le_bytes());
                    continue;
                }
                _ => continue,
            }
            let layout = &kernel.layouts[kernel.op_layout[at] as usize];
            let mut word = registers(kernel, layout, i)?;
            if kernel.labels[at] != NONE {
                let pc = out.len() as u64;
                let inst = Inst {
                    word,
                    form: layout.form,
                };
                let target = check::label_target(kernel, OpId(i), b, &offsets, &labels)?;
                if let Some(target) = target.filter(|t| isa.branch_target(inst, pc) != Some(*t)) {
                    let relative = target as i64 - pc as i64 - 16;
                    let moved = layout.rel_field.map(|f| isa.set_field(inst, f as usize, relative));
                    word = match moved {
                        Some(Ok(inst)) => inst.word,
                        Some(Err(e)) => {
                            return Err(Disagreement {
                                op: OpId(i),
                                message: e.to_string(),
                            });
                        }
                        None => {
                            return Err(Disagreement {
                                op: OpId(i),
                                message: "it has no code label".into(),
                            });
                        }
                    };
                }
            }
            out.extend_from_slice(&word.to_le_bytes());
            last = Some(Inst {
                word,
                form: layout.form,
            });
        }
        flows_on(kernel, b, || last.is_some_and(|inst| isa.is_conditional(inst)))?;
    }
    kernel.tail.iter().for_each(|w| out.extend_from_slice(&w.to_le_bytes()));
    Ok(out)
}

/// The word of an instruction with its registers written from the pins of its values.
pub(crate) fn registers(kernel: &Kernel, layout: &Layout, op: u32) -> Result<Word, Disagreement> {
    let at = op as usize;
    let operands = &kernel.operands[kernel.operand_start[at] as usize..kernel.operand_start[at + 1] as usize];
    let results = &kernel.pins[kernel.result_start[at] as usize..kernel.result_start[at + 1] as usize];
    let original = kernel.words[at];
    let mut word = Word(original.0 & !layout.register_mask);
    // The number in the field of the slot that is gone through.
    let mut first = 0;
    let fail = |message| Err(disagreement(op, message));
    let misfit = |register, pin| Err(misfit(op, register, pin));
    if operands.len() < layout.reads.len() {
        return fail("it has too few operands");
    }
    for (register, value) in layout.reads.iter().zip(operands) {
        let pin = kernel.pins[value.index()];
        if register.is_first() {
            first = register.put(&mut word, pin);
        }
        if register.behind(first) != pin {
            return misfit(register, pin);
        }
    }
    let mut results = results.iter().copied();
    let mut merged = operands[layout.reads.len()..].iter().map(|v| kernel.pins[v.index()]);
    let guarded = layout.is_guarded(word);
    for register in &layout.writes {
        // A register that is read and written is in the word already. The constant register has no value: the word says that it is written.
        if register.is_first() {
            first = match register.tied {
                true => register.first_number(word),
                false if register.pin(original).is_zero() => register.put_zero(&mut word),
                false => match results.clone().next() {
                    Some(pin) => register.put(&mut word, pin),
                    None => return fail("it has too few results"),
                },
            };
        }
        let pin = register.behind(first);
        if pin.is_zero() {
            continue;
        }
        match results.next() {
            Some(result) if result == pin => {}
            Some(result) => return misfit(register, result),
            None => return fail("it has too few results"),
        }
        if guarded && !register.tied && merged.next() != Some(pin) {
            return fail("a guarded write merges with a value that is in another register");
        }
    }
    Ok(word)
}

#[cold]
fn disagreement(op: u32, message: &str) -> Disagreement {
    Disagreement {
        op: OpId(op),
        message: message.into(),
    }
}

/// The register of a value is not one that can stand there.
#[cold]
fn misfit(op: u32, register: &Register, pin: Pin) -> Disagreement {
    match register.is_first() {
        true => disagreement(op, &format!("{pin} cannot be encoded in this operand")),
        false => disagreement(
            op,
            &format!("a tuple needs consecutive registers, {pin} is out of line"),
        ),
    }
}

/// Control that goes on behind a block must go to the next one. `conditional`: it can, at the block's last instruction.
fn flows_on(kernel: &Kernel, b: usize, conditional: impl FnOnce() -> bool) -> Result<(), Disagreement> {
    let Some(last) = kernel.block_start[b + 1]
        .checked_sub(1)
        .filter(|l| *l >= kernel.block_start[b])
    else {
        return Ok(());
    };
    let edges = &kernel.edges[kernel.edge_start[b] as usize..kernel.edge_start[b + 1] as usize];
    if edges.last().is_some_and(|e| e.to.index() == b + 1) {
        return Ok(());
    }
    let at = last as usize;
    let falls = match kernel.kinds[at] {
        OpKind::Fall => true,
        OpKind::Inst => {
            let branch = kernel.labels[at] == crate::kernel::SUCCESSOR;
            let exits = kernel.layouts[kernel.op_layout[at] as usize].flow == Flow::Exit;
            (!edges.is_empty() || branch || exits) && b + 2 < kernel.block_start.len() && conditional()
        }
        _ => false,
    };
    if falls {
        let message = "control goes on to the next block in the code, which is not its last successor".into();
        return Err(Disagreement {
            op: OpId(last),
            message,
        });
    }
    Ok(())
}

impl Kernel {
    /// Writes into the words what lowering would: the registers of the values, and where code labels lead. The kernel then is what its text
    /// gives when it is read.
    pub fn write_words(&mut self) -> Result<(), LowerError> {
        let code = encoded(self)?;
        let places = self.kinds.iter().zip(&mut self.words);
        let places = places.filter(|(kind, _)| kind.is_code());
        for ((_, word), new) in places.zip(Word::all(&code)) {
            *word = new;
        }
        Ok(())
    }

    /// Zeroes every register field whose register is a value of the kernel: what lowering writes there then comes from the values alone.
    /// Only fields that name the constant register as a destination stay, for that is no value. Use it to prove a round trip; the text of
    /// such a kernel means nothing.
    pub fn clear_registers(&mut self) {
        for at in 0..self.kinds.len() {
            if self.kinds[at] != OpKind::Inst {
                continue;
            }
            let layout = &self.layouts[self.op_layout[at] as usize];
            let word = self.words[at];
            let kept = layout.writes.iter().filter(|r| r.is_first() && r.pin(word).is_zero());
            let kept = kept.fold(0, |m, r| m | r.bits());
            self.words[at] = Word(word.0 & (!layout.register_mask | kept));
        }
    }

    /// Clears every operand-cache flag: they are hints about which registers the next instructions read.
    pub fn drop_reuse(&mut self) {
        let code = self.kinds.iter().zip(&mut self.words).zip(&self.op_layout);
        for ((_, word), layout) in code.filter(|((kind, _), _)| **kind == OpKind::Inst) {
            word.0 &= !self.layouts[*layout as usize].reuse_flags(*word);
        }
    }
}
