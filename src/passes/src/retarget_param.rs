//! `retarget-param`: kernel-parameter reads moved to another offset of constant bank 0.
//!
//! **What.** Every read of `c[0x0][from]` becomes a read of `c[0x0][to]`: constant operands of any instruction
//! (`IMAD.MOV.U32 R9, RZ, RZ, c[0x0][0x210]`), and the loads LDC and ULDC. Only reads that start at exactly `from`
//! move; a wide read that merely covers `from`, or an indexed one (`c[0x0][R5+0x210]`), stays and is listed.
//!
//! **When legal.** The new offset must fit the instruction's field and the alignment of the access. Where it does not,
//! at any site, the whole kernel is refused: half a retargeting is worse than none. Whether the value at `to` means the
//! same is for the user to know; the pass says when `to` lies outside the kernel's declared parameters.
//!
//! **What it costs.** Nothing: the same instruction with another offset. (A constant line that was not touched before may
//! miss the constant cache once.)

use isa::{FieldKind, Inst, Isa, OperandView};

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
        for (offset, op, inst) in instructions(kernel) {
            let Some(form) = cx.isa.form(inst.form) else { continue };
            let size = AccessSize::of(form.mnemonic(), cx.isa.modifiers(inst));
            let edits_before = result.edits.edits.len();
            for n in 0..cx.isa.operand_count(inst) {
                let operand = cx.isa.operand(inst, n);
                let Some(read) = operand.and_then(|o| bank0_read(cx.isa, inst, &o)) else {
                    continue;
                };
                if read.offset == from && !read.indexed {
                    let refuse = |why: String| Refusal(format!("{} at {:#06x}: {why}", form.mnemonic(), offset));
                    if to % size.alignment() != 0 {
                        let align = size.alignment();
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
        Ok(result)
    }
}

/// Why a read that has to do with `from` stays where it is.
fn near_miss(read: &Bank0Read, size: AccessSize, from: i64) -> Option<String> {
    if read.offset == from {
        return Some(format!("indexed read from {from:#x}: which byte it reads is not known"));
    }
    let covered = !read.indexed && read.offset < from && from < read.offset + size.least();
    covered.then(|| {
        format!(
            "reads {} bytes from {:#x}, which cover {from:#x}",
            size.least(),
            read.offset
        )
    })
}

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

/// How many bytes an access reads, as far as the modifiers and the mnemonic tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AccessSize {
    /// Exactly so many bytes.
    Bytes(u8),
    /// An operand of an instruction that may read a pair of registers there.
    FourOrEight,
}

impl AccessSize {
    /// The constant loads name their width; a constant operand is one word, except in double-precision and wide
    /// integer instructions, where it depends on the operand.
    fn of<'m>(mnemonic: &str, modifiers: impl Iterator<Item = &'m str>) -> AccessSize {
        let is_load = mnemonic.trim_start_matches('U').starts_with("LDC");
        let mut size = if mnemonic.starts_with('D') {
            AccessSize::FourOrEight
        } else {
            AccessSize::Bytes(4)
        };
        for token in modifiers {
            match (is_load, token) {
                (true, "U8" | "S8") => size = AccessSize::Bytes(1),
                (true, "U16" | "S16") => size = AccessSize::Bytes(2),
                (true, "64") => size = AccessSize::Bytes(8),
                (true, "128") => size = AccessSize::Bytes(16),
                (false, t) if t.contains("64") || t == "WIDE" => size = AccessSize::FourOrEight,
                _ => {}
            }
        }
        size
    }

    /// The bytes that are read for certain.
    fn least(self) -> i64 {
        match self {
            AccessSize::Bytes(n) => i64::from(n),
            AccessSize::FourOrEight => 4,
        }
    }

    /// The alignment that the new offset needs: eight where the read may be eight bytes wide.
    fn alignment(self) -> i64 {
        match self {
            AccessSize::Bytes(n) => i64::from(n),
            AccessSize::FourOrEight => 8,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn access_sizes() {
        let of = |m: &str, mods: &[&str]| AccessSize::of(m, mods.iter().copied());
        assert_eq!(of("ULDC", &["64"]), AccessSize::Bytes(8));
        assert_eq!(of("LDC", &["U16"]), AccessSize::Bytes(2));
        assert_eq!(of("LDCU", &["128"]), AccessSize::Bytes(16));
        assert_eq!(of("LDC", &[]), AccessSize::Bytes(4));
        assert_eq!(of("IMAD", &["MOV", "U32"]), AccessSize::Bytes(4));
        assert_eq!(of("IMAD", &["WIDE"]).alignment(), 8);
        assert_eq!(of("DFMA", &[]).alignment(), 8);
        assert_eq!(of("F2F", &["F32", "F64"]).alignment(), 8);
    }
}
