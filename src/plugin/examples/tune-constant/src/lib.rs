//! `tune-constant`: another number in the place of a floating-point constant that is part of the instructions.
//!
//! **What.** `FMUL R0, R0, 0.5` becomes `FMUL R0, R0, 0.25` with `from = "0.5"` and `to = "0.25"`; with `mnemonic = "FMUL"` in these
//! instructions only. Constants that `from` equals in all bits are meant, so `-0` is not `0`. What is in constant memory stays.
//!
//! **When legal.** Whether the kernel still computes what it is for is for the user to know, and the caution says so.

use plugin::{Host, Kernel, OptionKind, OptionSpec, Pass, Refusal};

struct TuneConstant;

const fn text(name: &'static str, help: &'static str, required: bool) -> OptionSpec {
    OptionSpec {
        name,
        help,
        kind: OptionKind::Text,
        required,
    }
}

impl Pass for TuneConstant {
    const NAME: &str = "tune-constant";
    const SUMMARY: &str = "put another number in the place of a floating-point constant";
    const CAUTION: &str = "changes what the kernel computes";
    const OPTIONS: &[OptionSpec] = &[
        text("from", "the number that is there", true),
        text("to", "the number to put there", true),
        text(
            "mnemonic",
            "the instructions that are meant, all where it is left out",
            false,
        ),
    ];

    fn run(host: &Host<'_>, kernel: &Kernel<'_>) -> Result<(), Refusal> {
        let (from, to) = (number(host, "from")?, number(host, "to")?);
        let only = host.option_text("mnemonic");
        let meant = kernel
            .instructions()
            .filter(|inst| only.is_none_or(|name| name == inst.mnemonic()));
        let mut count = 0;
        for inst in meant {
            // Fields are named after the operand, the kind and the number of that kind: 2.F0.
            for field in inst.field_names().filter(|name| name.ends_with(".F0")) {
                if inst.field(field) == Some(from) {
                    host.set_field(inst.id(), field, to)?;
                    count += 1;
                }
            }
        }
        let ending = if count == 1 { "" } else { "s" };
        host.headline(&format!("{count} constant{ending} tuned"));
        Ok(())
    }
}

/// The bits of the single-precision number that an option gives.
fn number(host: &Host<'_>, option: &str) -> Result<i64, Refusal> {
    let text = host.option_text(option).unwrap_or_default();
    let number: f32 = text
        .parse()
        .map_err(|_| Refusal(format!("option `{option}`: `{text}` is no number")))?;
    Ok(i64::from(number.to_bits()))
}

plugin::export!(TuneConstant);
