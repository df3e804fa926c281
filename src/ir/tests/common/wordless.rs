//! Text whose instructions have registers and scheduling in place of their words. (Another crate's tests include this file.)

use super::ir::{self, LayoutCache, Pin};
use isa::control::{Control, REUSE_MASK};
use isa::{Inst, Isa, Word};

/// The registers that a word writes, the first of each access.
pub fn written(layout: &ir::Layout, word: Word) -> Vec<Pin> {
    let slots = layout.slots.iter().filter(|s| s.writes() && s.field.is_some());
    slots.map(|s| s.pin(word)).collect()
}

/// Its scheduling without operand-cache flags.
pub fn control(word: Word) -> Control {
    let control = Control::of(word);
    let reuse = if control.yield_ { 0 } else { control.reuse };
    Control { reuse, ..control }
}

/// The bits that text without words tells: not operand-cache flags, nor bits that mean nothing.
pub fn told(isa: &Isa, word: Word) -> u128 {
    let flags = if Control::of(word).yield_ { REUSE_MASK } else { 0 };
    let inst: Inst = isa.decode(word);
    isa.known_mask(inst) | isa::control::MASK & !flags
}

/// The text with `regs(...) sched("...")` for `raw 0x...`.
pub fn without_words(isa: &'static Isa, text: &str) -> String {
    let cache = LayoutCache::new(isa, isa.target());
    let line = |line: &str| {
        let (before, behind) = line.split_once(" raw 0x").filter(|_| !line.contains("sass.opaque"))?;
        let word = Word(u128::from_str_radix(&behind[..32], 16).ok()?);
        let layout = cache.get(word)?;
        let names: Vec<String> = written(&layout, word).iter().map(|pin| format!("\"{pin}\"")).collect();
        let regs = match names.is_empty() {
            true => String::new(),
            false => format!(" regs({})", names.join(", ")),
        };
        Some(format!(
            "{before}{regs} sched(\"{}\"){}\n",
            control(word),
            &behind[32..]
        ))
    };
    let lines = text.lines().map(|l| line(l).unwrap_or_else(|| format!("{l}\n")));
    lines.collect()
}
