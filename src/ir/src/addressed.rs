//! Functions of the section that a call through a pointer cannot enter: they are called by their name, and their address is nowhere.

use isa::FieldKind;

use crate::cfg::{Cfg, Decoded};
use crate::layout::Flow;
use crate::source::Source;

/// Whether there is a call of which the code does not show whom it enters.
pub(crate) fn calls_pointers(source: &Source<'_>, cfg: &Cfg) -> bool {
    let is_open = |at: u32| !source.relocated.contains(&(u64::from(at) * 16));
    cfg.calls.iter().any(|c| c.callee.is_none() && is_open(c.at))
}

/// Byte offsets of functions that an instruction may have as an immediate, with that instruction, in the order of the code. The low
/// half is enough: an address may be put together from halves.
pub(crate) fn immediates<'a>(code: &'a Decoded<'_>, functions: &'a [u64]) -> impl Iterator<Item = (usize, u64)> + 'a {
    (0..code.words.len())
        .filter(|i| has_immediate(code, *i))
        .flat_map(move |i| {
            let low = code.words[i].bits(47, 32);
            let same = functions.iter().filter(move |f| **f & 0xffff == low);
            same.map(move |f| (i, *f))
        })
}

/// Whether it has a number of 16 bits or more from bit 32 on, where all instructions have it.
fn has_immediate(code: &Decoded<'_>, i: usize) -> bool {
    let form = code.layout_of(i).and_then(|l| code.isa.form(l.form));
    form.is_some_and(|form| {
        let number = |kind| !matches!(kind, FieldKind::Reg(_) | FieldKind::Scoreboard | FieldKind::Rel);
        let mut numbers = form.fields().iter().filter(|f| number(f.kind));
        numbers.any(|f| f.bits().mask() >> 32 & 0xffff == 0xffff)
    })
}

/// The blocks of functions that only calls by name enter, ascending; none where the code may have an address that its words do not show.
pub(crate) fn called_by_name(source: &Source<'_>, code: &Decoded<'_>, cfg: &Cfg) -> Vec<u32> {
    if source.private.is_empty() || !calls_pointers(source, cfg) {
        return Vec::new();
    }
    let label_of = |i: u32| cfg.label_uses.binary_search_by_key(&i, |u| u.0).ok();
    // What nobody knows, and the place of an instruction from which others can be reckoned.
    let untold = |i: usize| match code.layout_of(i) {
        None => true,
        Some(layout) => {
            let name = code.isa.form(layout.form).map_or("", |f| f.mnemonic());
            matches!(name, "LEPC" | "ULEPC") && label_of(i as u32).is_none() && !is_for_return(code, i)
        }
    };
    if (0..cfg.code_end()).any(untold) {
        return Vec::new();
    }
    let mut functions = source.private.clone();
    functions.retain(|f| !source.labels.contains(f));
    functions.sort_unstable();
    let immediates: Vec<u64> = immediates(code, &functions).map(|(_, f)| f).collect();
    functions.retain(|f| !immediates.contains(f));
    let places = cfg.label_uses.iter().filter(|(i, label)| {
        let is_call = code.layout_of(*i as usize).is_some_and(|l| l.flow == Flow::Call);
        !is_call && (*label as usize) < cfg.labels.len()
    });
    let named: Vec<u32> = places.map(|(_, label)| cfg.labels[*label as usize]).collect();
    let blocks = functions
        .iter()
        .filter_map(|f| cfg.start[..cfg.len()].binary_search(&((f / 16) as u32)).ok());
    let mut blocks: Vec<u32> = blocks.map(|b| b as u32).collect();
    blocks.retain(|b| !named.contains(b) && cfg.calls.iter().any(|c| c.callee == Some(*b)));
    blocks
}

/// Whether the place that `LEPC` gives is there for the return address of the call at the end of its run: immediates have both offsets, and one
/// instruction adds to it what lies between. Wherever else it were added to, an immediate would have the offset of the function.
fn is_for_return(code: &Decoded<'_>, i: usize) -> bool {
    let flow = |n: &usize| code.layout_of(*n).is_none_or(|l| l.flow != Flow::None);
    let start = (0..i).rev().find(flow).map_or(0, |n| n + 1);
    let Some(call) = (i..code.words.len()).find(flow) else {
        return false;
    };
    let mut place = None;
    if let Some(layout) = code.layout_of(i) {
        layout.each_write(code.words[i], |pin| place = place.or(Some(pin)));
    }
    let reads = |n: &usize| {
        let pins = code.layout_of(*n).map(|l| l.read_pins(code.words[*n]));
        pins.into_iter().flatten().any(|pin| Some(pin) == place)
    };
    let has = |offset: usize| {
        let same = |n: usize| has_immediate(code, n) && code.words[n].bits(63, 32) == offset as u64;
        (start..call).any(same)
    };
    let is_call = code.layout_of(call).is_some_and(|l| l.flow == Flow::Call);
    is_call && has(i * 16) && has((call + 1) * 16) && (i + 1..call).filter(reads).count() == 1
}
