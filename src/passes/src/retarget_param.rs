//! `retarget-param`: kernel-parameter reads moved to another offset of constant bank 0.
//!
//! **What.** Every read of `c[0x0][from]` becomes a read of `c[0x0][to]`: constant operands of any instruction
//! (`IMAD.MOV.U32 R9, RZ, RZ, c[0x0][0x210]`), and the loads LDC and ULDC. Only reads that start at exactly `from`
//! move; a wide read that merely covers `from`, or an indexed one (`c[0x0][R5+0x210]`), stays and is listed. Where a word
//! moves and the kernel reads the other half of the same eight bytes as a word too, which may be one parameter, a note says
//! that these stay.
//!
//! **When legal.** The new offset must fit the instruction's field and the alignment of the access. Where it does not,
//! at any site, the whole kernel is refused: half a retargeting is worse than none. Whether the value at `to` means the
//! same is for the user to know; the pass says when `to` lies outside the kernel's declared parameters.
//!
//! **What it costs.** Nothing: the same instruction with another offset. (A constant line that was not touched before may
//! miss the constant cache once.)

use isa::{FieldKind, Inst, Isa, OperandView};

use crate::other_form::OtherForms;
use crate::{
    Context, OptionError, OptionKind, OptionSpec, Options, Pass, PassResult, Refusal, Skipped, count, instructions,
};

const OFFSET: OptionKind = OptionKind::Int { min: 0, max: 0xffff };

/// See the module's text.
pub struct RetargetParam;

impl RetargetParam {
    pub(crate) const NAME: &str = "retarget-param";
    pub(crate) const OPTIONS: &[OptionSpec] = &[
        OptionSpec {
            name: "from",
            kind: OFFSET,
            required: true,
            help: "byte offset in c[0x0] whose reads move",
        },
        OptionSpec {
            name: "to",
            kind: OFFSET,
            required: true,
            help: "byte offset in c[0x0] to read instead",
        },
    ];
}

impl Pass for RetargetParam {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn summary(&self) -> &str {
        "move reads of a kernel parameter (constant bank 0) to another offset"
    }

    fn options(&self) -> &[OptionSpec] {
        Self::OPTIONS
    }

    fn check(&self, options: &Options) -> Result<(), OptionError> {
        match (options.int("from"), options.int("to")) {
            (Some(from), Some(to)) if from == to => Err(OptionError {
                option: "to",
                message: "the same as `from`, so nothing would move".into(),
            }),
            _ => Ok(()),
        }
    }

    fn run(&self, cx: &Context<'_>, kernel: &ir::Kernel, options: &Options) -> Result<PassResult, Refusal> {
        let need = |name: &str| {
            options
                .int(name)
                .ok_or_else(|| Refusal(format!("option `{name}` is missing")))
        };
        let (from, to) = (need("from")?, need("to")?);
        let mut result = PassResult::default();
        let mut forms = OtherForms::new(cx.isa);
        // How wide the reads are that move, at most, and whether words beside them are read.
        let (mut moved, mut beside) = (0, false);
        for (offset, op, inst) in instructions(kernel) {
            let Some(form) = cx.isa.form(inst.form) else { continue };
            let edits_before = result.edits.edits.len();
            for n in 0..cx.isa.operand_count(inst) {
                let operand = cx.isa.operand(inst, n);
                let read = operand.and_then(|o| bank0_read(cx.isa, inst, &o));
                let Some(read) = read.filter(|read| (read.offset - from).abs() < WIDEST) else {
                    continue;
                };
                let size = AccessSize::of(&mut forms, inst, form.mnemonic(), n);
                if read.offset == from && !read.indexed {
                    let refuse = |why: String| Refusal(format!("{} at {:#06x}: {why}", form.mnemonic(), offset));
                    if to % size.most() != 0 {
                        let align = size.most();
                        return Err(refuse(format!(
                            "to = {to:#x} is not a multiple of {align}, as this read needs"
                        )));
                    }
                    if let Err(e) = cx.isa.set_field(inst, read.field, to) {
                        return Err(refuse(format!("to = {to:#x} does not fit the instruction: {e}")));
                    }
                    result.edits.edits.push(ir::Edit::SetField {
                        op,
                        field: read.field,
                        value: to,
                    });
                    moved = moved.max(size.most());
                } else if read.offset == from ^ 4 && !read.indexed && size == AccessSize::Bytes(4) {
                    beside = true;
                } else if let Some(reason) = near_miss(&read, size, from) {
                    result.skipped.push(Skipped { offset, reason });
                }
            }
            result.ops += usize::from(result.edits.edits.len() > edits_before);
        }
        result.sites = result.edits.edits.len();
        result.headline = Some(format!(
            "{} moved from c[0x0][{from:#x}] to c[0x0][{to:#x}]",
            count(result.sites, "read")
        ));
        if let Some(range) = cx.param_range()
            && result.sites > 0
            && !(i64::from(range.start)..i64::from(range.end)).contains(&to)
        {
            let (start, end) = (range.start, range.end);
            result.notes.push(format!(
                "{to:#x} is outside the kernel's declared parameters, {start:#x} to {end:#x}"
            ));
        }
        if moved == 4 && from % 4 == 0 && beside {
            result.notes.push(format!(
                "reads of {:#x} stay: if that is the other half of a parameter of 8 bytes, only one half has moved",
                from ^ 4
            ));
        }
        Ok(result)
    }
}

/// Why a read that has to do with `from` stays where it is.
fn near_miss(read: &Bank0Read, size: AccessSize, from: i64) -> Option<String> {
    if read.offset == from {
        return Some(format!("indexed read from {from:#x}: which byte it reads is not known"));
    }
    let most = size.most();
    let covered = !read.indexed && read.offset < from && from < read.offset + most;
    covered.then(|| match size {
        AccessSize::Bytes(_) => format!("reads {most} bytes from {:#x}, which cover {from:#x}", read.offset),
        AccessSize::FourOrEight => format!("may read {most} bytes from {:#x}, which cover {from:#x}", read.offset),
    })
}

/// Bytes that an access reads at most.
const WIDEST: i64 = 16;

/// A constant-bank-0 operand.
struct Bank0Read {
    /// Index of the field that holds the byte offset.
    field: usize,
    /// The byte offset.
    offset: i64,
    /// True when a register is added to the offset.
    indexed: bool,
}

/// Recognises `c[B][X]`, also inside `-` and `|..|`, with a suffix, or with registers in the second bracket.
/// A bank that a register names (`cx[UR4][X]`) is not bank 0 of the kernel.
fn bank0_read(isa: &Isa, inst: Inst, operand: &OperandView<'_>) -> Option<Bank0Read> {
    let shape = operand.shape().trim_start_matches(['-', '|', '~', '!']);
    let mut fields = operand.fields();
    let (_, bank) = fields.next().filter(|_| shape.starts_with("c[X#]"))?;
    let (mut offset, mut indexed) = (None, false);
    for (ix, field) in fields {
        match field.kind {
            FieldKind::Int if offset.is_none() => offset = Some((ix, field.get(inst.word))),
            _ => indexed |= isa.access(inst, ix).is_some_and(|a| !a.is_zero),
        }
    }
    let (field, offset) = offset.filter(|_| bank.get(inst.word) == 0)?;
    Some(Bank0Read { field, offset, indexed })
}

/// How many bytes an access reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AccessSize {
    /// Exactly so many.
    Bytes(u8),
    /// One register's or two: the instruction has no form that tells.
    FourOrEight,
}

impl AccessSize {
    /// The constant loads name their width. Of other instructions operand `n` is as wide as the register that can stand there.
    fn of(forms: &mut OtherForms, inst: Inst, mnemonic: &str, n: usize) -> AccessSize {
        if mnemonic.trim_start_matches('U').starts_with("LDC") {
            return AccessSize::of_load(forms.isa.modifiers(inst));
        }
        match forms.registers_in_place(inst, n) {
            Some(registers) => AccessSize::Bytes(4 * registers),
            None => AccessSize::FourOrEight,
        }
    }

    fn of_load<'m>(modifiers: impl Iterator<Item = &'m str>) -> AccessSize {
        let sizes = modifiers.filter_map(|token| match token {
            "U8" | "S8" => Some(1),
            "U16" | "S16" => Some(2),
            "64" => Some(8),
            "128" => Some(16),
            _ => None,
        });
        AccessSize::Bytes(sizes.last().unwrap_or(4))
    }

    /// The bytes that it reads at most: its new offset is a multiple of that.
    fn most(self) -> i64 {
        match self {
            AccessSize::Bytes(n) => i64::from(n),
            AccessSize::FourOrEight => 8,
        }
    }
}

#[cfg(test)]
mod tests {
    use isa::asm::{Assembler, Statement};
    use isa::{Control, Isa, Target};

    use super::*;

    #[test]
    fn access_sizes() {
        let isa = Isa::for_target(Target::Sm87).expect("built with sm_87");
        let mut forms = OtherForms::new(isa);
        let mut of = |text: &str, operand: usize| {
            let statement = Statement {
                text,
                ..Statement::default()
            };
            let made = Assembler::new(isa).assemble(&statement, Control::PLAIN).expect(text);
            let mnemonic = isa.form(made.form).expect("a form").mnemonic();
            let mut operands =
                (0..isa.operand_count(made)).filter(|n| isa.operand(made, *n).is_some_and(|o| !o.is_elided()));
            let n = operands.nth(operand).expect("an operand");
            AccessSize::of(&mut forms, made, mnemonic, n)
        };
        for (text, operand, bytes) in [
            ("ULDC.64 UR4, c[0x0][0x160]", 1, 8),
            ("LDC.U16 R4, c[0x0][0x160]", 1, 2),
            ("LDC R4, c[0x0][0x160]", 1, 4),
            ("IMAD.MOV.U32 R4, RZ, RZ, c[0x0][0x160]", 3, 4),
            ("IMAD.WIDE.U32 R8, R5, c[0x0][0x180], R6", 2, 4),
            ("IMAD.WIDE R4, R5, R4, c[0x0][0x160]", 3, 8),
            ("DFMA R4, R6, c[0x0][0x160], R8", 2, 8),
            ("DADD R4, R6, -c[0x0][0x160]", 2, 8),
            ("F2F.F32.F64 R4, c[0x0][0x160]", 1, 8),
            ("I2F.F64 R4, c[0x0][0x160]", 1, 4),
        ] {
            assert_eq!(of(text, operand), AccessSize::Bytes(bytes), "{text}");
        }
    }
}
