//! Code that moves: instructions put in and taken out, and everything in the words that holds a code offset follows.
//!
//! Offsets are in code labels (branches, `BSSY`, `RET`, ...), and in the immediates that make return addresses. What a word holds that
//! cannot be followed for certain is refused.
//!
//! The rule for an instruction that is put in where a label is: whoever went to the label executes it. What names the instruction
//! itself (attributes, relocations) goes on naming that one.

use isa::{Control, FieldKind, Inst, Isa, Word};

use crate::addressed;
use crate::cfg::{Cfg, Decoded, Role, roles};
use crate::collective::Mark;
use crate::layouts::Layouts;
use crate::returns::Addresses;
use crate::source::Source;

/// What to put in and take out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Movement {
    /// (position of the instruction that it goes before, what goes there), by position.
    pub insert: Vec<(u32, Put)>,
    /// The same, of what belongs to the block before: whoever goes to a label at the position does not execute it. It comes first.
    pub append: Vec<(u32, Put)>,
    /// Positions of the instructions to take out, ascending.
    pub delete: Vec<u32>,
}

/// What goes before an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    /// A word that holds no code offset.
    New(Word),
    /// The instruction at that position, which is one of those to take out.
    Old(u32),
}

/// Code that moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    /// The new code, padded as the old one was.
    pub code: Vec<u8>,
    /// By position before, and one more for the end: the byte offset of the instruction now; of the next one if it was taken out and not put
    /// anywhere.
    pub instruction: Vec<u32>,
    /// By position before, and one more for the end: where a label at that instruction is now.
    pub label: Vec<u32>,
    /// Instructions put in, by byte offset now.
    pub inserted: Vec<u32>,
}

impl Moved {
    /// In place of an offset inside the padding.
    pub const LOST: u32 = u32::MAX;
}

/// Instructions in a group that padding fills up: 128 bytes.
const GROUP: usize = 8;

/// Moves the code of one section. An error says what cannot be followed.
pub fn move_code(isa: &'static Isa, source: &Source<'_>, movement: &Movement) -> Result<Moved, String> {
    let words: Vec<Word> = Word::all(source.code).collect();
    let mut layouts = Layouts::new(isa, source.target);
    let layout: Vec<u32> = words.iter().map(|w| layouts.get(*w)).collect();
    let code = Decoded {
        isa,
        words: &words,
        layout: &layout,
        layouts: &layouts.list,
    };
    let cfg = Cfg::new(source, &code);
    let place = Places::new(&code, cfg.code_end(), movement)?;
    pointers_hold(source, &code, &cfg, &place)?;
    let addresses = return_addresses(source, &code, &cfg)?;
    let put_back = |i: &u32| {
        let puts = movement.append.iter().chain(&movement.insert);
        puts.into_iter().any(|(_, what)| *what == Put::Old(*i))
    };
    let lost = |(i, _): &&(u32, Address)| movement.delete.binary_search(i).is_ok() && !put_back(i);
    if let Some((i, _)) = addresses.iter().find(lost) {
        return Err(format!("the instruction at {:#x} makes a return address", i * 16));
    }
    let mut out: Vec<Word> = Vec::with_capacity(place.total);
    let followed = |i: u32, out: &[Word]| match addresses.binary_search_by_key(&i, |(at, _)| *at) {
        Ok(n) => Ok(words[i as usize].with_bits(63, 32, u64::from(addresses[n].1.now(&place)))),
        Err(_) => relabelled(source, &code, i as usize, out.len() as u64 * 16, &place.label),
    };
    let put = |put: Put, out: &[Word]| match put {
        Put::New(word) => Ok(word),
        Put::Old(i) => followed(i, out),
    };
    let (mut appends, mut inserts) = (movement.append.iter().peekable(), movement.insert.iter().peekable());
    for i in 0..words.len() as u32 {
        for puts in [&mut appends, &mut inserts] {
            while let Some((_, what)) = puts.next_if(|(at, _)| *at == i) {
                out.push(put(*what, &out)?);
            }
        }
        if movement.delete.binary_search(&i).is_err() && (i as usize) < cfg.code_end() + place.lead {
            out.push(followed(i, &out)?);
        }
    }
    out.resize(place.total, padding(&code, cfg.code_end())?);
    Ok(Moved {
        code: out.iter().flat_map(|w| w.to_le_bytes()).collect(),
        instruction: place.instruction,
        label: place.label,
        inserted: place.inserted,
    })
}

/// Refuses code that calls through pointers and may make one itself, to a function that moves: an address among its immediates is a number
/// like any other.
fn pointers_hold(source: &Source<'_>, code: &Decoded<'_>, cfg: &Cfg, place: &Places) -> Result<(), String> {
    let moves = |f: &u64| *f != 0 && place.label.get(*f as usize / 16).is_some_and(|to| u64::from(*to) != *f);
    let functions: Vec<u64> = source.functions.iter().copied().filter(moves).collect();
    if functions.is_empty() || !addressed::calls_pointers(source, cfg) {
        return Ok(());
    }
    match addressed::immediates(code, &functions).next() {
        Some((i, function)) => Err(format!(
            "it calls through pointers, and the instruction at {:#x} may make one to its function at {function:#x}",
            i * 16
        )),
        None => Ok(()),
    }
}

/// Where everything goes.
struct Places {
    instruction: Vec<u32>,
    label: Vec<u32>,
    inserted: Vec<u32>,
    /// Words of the padding that are no NOPs.
    lead: usize,
    /// Words of the new code.
    total: usize,
}

impl Places {
    fn new(code: &Decoded<'_>, code_end: usize, movement: &Movement) -> Result<Places, String> {
        let n = code.words.len();
        let puts = [&movement.append, &movement.insert];
        let sorted = puts.iter().all(|list| list.is_sorted_by_key(|(at, _)| *at));
        let sorted = sorted && movement.delete.is_sorted_by(|a, b| a < b);
        let last = puts.iter().filter_map(|list| Some(list.last()?.0)).max();
        let last = last.max(movement.delete.last().copied());
        if !sorted || last.is_some_and(|at| at as usize >= code_end) {
            return Err("positions must ascend and lie before the padding".into());
        }
        let is_nop = |i: usize| code.layout_of(i).is_some_and(|l| l.nop);
        let lead = (code_end..n)
            .rev()
            .find(|i| !is_nop(*i))
            .map_or(0, |i| i + 1 - code_end);
        let (mut instruction, mut label, mut inserted) = (Vec::new(), Vec::new(), Vec::new());
        let mut at = 0u32;
        let [mut appends, mut inserts] = puts.map(|list| list.iter().peekable());
        let mut moved = Vec::new();
        let mut put = |what: Put, at: &mut u32| {
            match what {
                Put::New(_) => inserted.push(*at),
                Put::Old(from) => moved.push((from as usize, *at)),
            }
            *at += 16;
        };
        for i in 0..code_end + lead {
            while let Some((_, what)) = appends.next_if(|(before, _)| *before as usize == i) {
                put(*what, &mut at);
            }
            label.push(at);
            while let Some((_, what)) = inserts.next_if(|(before, _)| *before as usize == i) {
                put(*what, &mut at);
            }
            instruction.push(at);
            at += if movement.delete.binary_search(&(i as u32)).is_ok() {
                0
            } else {
                16
            };
        }
        let used = at as usize / 16;
        // As many whole groups of padding as there were.
        let total = match n % GROUP {
            0 => used.next_multiple_of(GROUP) + (n - (code_end + lead).next_multiple_of(GROUP)),
            _ => used + (n - code_end - lead),
        };
        // Within the padding only its beginning and its end have a place.
        for i in code_end + lead..n {
            let place = if i == code_end + lead { at } else { Moved::LOST };
            instruction.push(place);
            label.push(place);
        }
        instruction.push(total as u32 * 16);
        label.push(total as u32 * 16);
        for (from, at) in moved {
            match instruction.get_mut(from) {
                Some(place) if movement.delete.binary_search(&(from as u32)).is_ok() => *place = at,
                _ => return Err("what is put elsewhere has to be taken out".into()),
            }
        }
        Ok(Places {
            instruction,
            label,
            inserted,
            lead,
            total,
        })
    }
}

/// The NOP that pads: the one that is there, else as ptxas pads on every target, with a stall count of 0 and no barriers.
fn padding(code: &Decoded<'_>, code_end: usize) -> Result<Word, String> {
    let last = code.words.len().saturating_sub(1);
    if code.words.len() > code_end && code.layout_of(last).is_some_and(|l| l.nop) {
        return Ok(code.words[last]);
    }
    let nop = nop(code.isa).ok_or_else(|| "the target's tables have no NOP".to_owned())?;
    let idle = Control {
        stall: 0,
        yield_: false,
        write_barrier: None,
        read_barrier: None,
        wait: 0,
        reuse: 0,
    };
    Ok(idle.apply(nop))
}

/// A NOP of the target.
pub fn nop(isa: &Isa) -> Option<Word> {
    let form = isa.forms().find(|f| f.mnemonic() == "NOP" && f.guard().is_some())?;
    Some(form.filler())
}

/// The word with its code label where the target is now.
fn relabelled(source: &Source<'_>, code: &Decoded<'_>, i: usize, pc: u64, label: &[u32]) -> Result<Word, String> {
    let (word, old) = (code.words[i], i as u64 * 16);
    let Some(layout) = code.layout_of(i) else {
        return Err(format!(
            "the word at {old:#x} is in no table, so whether it holds a code offset is not known"
        ));
    };
    let inst = Inst {
        word,
        form: layout.form,
    };
    let Some(field) = displacement(code.isa, inst).filter(|_| !source.relocated.contains(&old)) else {
        return Ok(word);
    };
    let form = code.isa.form(layout.form);
    let distance = form.and_then(|f| f.fields().get(field)).map_or(0, |f| f.get(word));
    let target = (old + 16).wrapping_add_signed(distance);
    if target % 16 != 0 || target as usize / 16 >= label.len() {
        return Err(format!(
            "the label of the instruction at {old:#x} lies outside of the code"
        ));
    }
    let relative = i64::from(label[target as usize / 16]) - pc as i64 - 16;
    let moved = code
        .isa
        .set_field(inst, field, relative)
        .map_err(|e| format!("at {old:#x}: {e}"))?;
    Ok(moved.word)
}

/// The code offset that the table of the indirect branch at `pc` is counted from.
pub fn indirect_base(isa: &Isa, source: &Source<'_>, pc: u64) -> Option<u32> {
    let word = Word::all(source.code).nth(usize::try_from(pc / 16).ok()?)?;
    let inst = isa.decode(word);
    let field = displacement(isa, inst)?;
    let distance = isa.form(inst.form)?.fields().get(field)?.get(word);
    u32::try_from((pc + 16).checked_add_signed(distance)?).ok()
}

/// The field that holds a distance from the next instruction: a code label, or what an indirect branch adds to its register.
fn displacement(isa: &Isa, inst: Inst) -> Option<usize> {
    let form = isa.form(inst.form)?;
    let label = |f: &isa::Field| f.kind == FieldKind::Rel;
    let added = |f: &isa::Field| matches!(form.mnemonic(), "BRX" | "BRXU") && f.kind == FieldKind::Int;
    let fields = form.fields().iter().enumerate();
    let mut found = fields.filter(|(n, f)| (label(f) || added(f)) && isa.is_active(inst, *n));
    found.next().map(|(n, _)| n)
}

/// A code offset that an immediate makes, as a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Address {
    /// Where control goes.
    Label(u32),
    /// Of the instruction itself, which reads the program counter.
    Instruction(u32),
}

impl Address {
    fn now(self, place: &Places) -> u32 {
        match self {
            Address::Label(at) => place.label[at as usize],
            Address::Instruction(at) => place.instruction[at as usize],
        }
    }
}

/// Instructions whose immediate is a code offset: what calls leave for their callee to come back to.
fn return_addresses(source: &Source<'_>, code: &Decoded<'_>, cfg: &Cfg) -> Result<Vec<(u32, Address)>, String> {
    let local = |offset: u64| {
        (offset.is_multiple_of(16) && offset / 16 < code.words.len() as u64).then_some((offset / 16) as u32)
    };
    let roles = roles(source, code, &local);
    let addresses = Addresses::new(code);
    let mut made = Vec::new();
    for (i, role) in &roles {
        let pc = u64::from(*i) * 16;
        match role {
            Role::Call { .. } if code.layout_of(*i as usize).is_some_and(|l| l.no_increment) => {
                // First the pattern, whose other number would go unnoticed otherwise.
                let found = match lepc_before(code, cfg, *i) {
                    Some(lepc) => beside_lepc(source, code, cfg, &addresses, lepc, *i),
                    None => {
                        let makers = addresses.reaching(code, &roles, *i).into_iter();
                        let made: Vec<_> = makers.map(|m| (m, Address::Label(*i + 1))).collect();
                        (!made.is_empty()).then_some(made)
                    }
                };
                if let Some(found) = found {
                    made.extend(found);
                } else if !relocated_before(source, cfg, *i) {
                    return Err(format!(
                        "where the call at {pc:#x} has its return address from is not known"
                    ));
                }
            }
            Role::Indirect { targets: None, .. } => {
                return Err(format!("the indirect branch at {pc:#x} has no table"));
            }
            _ => {}
        }
    }
    made.sort_unstable();
    made.dedup();
    Ok(made)
}

/// The instruction that reads the program counter in the call's block before it, if there is one.
fn lepc_before(code: &Decoded<'_>, cfg: &Cfg, call: u32) -> Option<u32> {
    let mnemonic = |i: u32| code.isa.form(code.layout_of(i as usize)?.form).map(|f| f.mnemonic());
    (block_start(cfg, call)..call)
        .rev()
        .find(|i| mnemonic(*i) == Some("LEPC"))
}

/// `LEPC R2; MOV R11, (behind the call); MOV R20, (the LEPC); R20 = R2 + R11 - R20; CALL`: the return address as a distance from where
/// the program counter was read.
fn beside_lepc(
    source: &Source<'_>,
    code: &Decoded<'_>,
    cfg: &Cfg,
    addresses: &Addresses,
    lepc: u32,
    call: u32,
) -> Option<Vec<(u32, Address)>> {
    let start = block_start(cfg, call);
    if code.layout_of(lepc as usize)?.has_label && !source.relocated.contains(&(u64::from(lepc) * 16)) {
        return Some(Vec::new()); // it reads the address behind the call itself
    }
    let behind = addresses.made_between((call + 1) * 16, start, call);
    let here = addresses.made_between(lepc * 16, start, call);
    match (&behind[..], &here[..]) {
        (&[a], &[b]) => Some(vec![(a, Address::Label(call + 1)), (b, Address::Instruction(lepc))]),
        _ => None,
    }
}

/// A relocation fills the address in: there is one in the call's block before it.
fn relocated_before(source: &Source<'_>, cfg: &Cfg, call: u32) -> bool {
    let block = u64::from(block_start(cfg, call)) * 16..u64::from(call) * 16;
    source.relocated.iter().any(|r| block.contains(r))
}

fn block_start(cfg: &Cfg, at: u32) -> u32 {
    let block = cfg.start.partition_point(|&s| s <= at);
    cfg.start.get(block.saturating_sub(1)).copied().unwrap_or(0)
}

/// Places where an instruction may go without cutting off an operand-cache flag: positions before the padding.
pub fn free_places(isa: &'static Isa, source: &Source<'_>) -> Vec<u32> {
    let words: Vec<Word> = Word::all(source.code).collect();
    let mut layouts = Layouts::new(isa, source.target);
    let layout: Vec<u32> = words.iter().map(|w| layouts.get(*w)).collect();
    let code = Decoded {
        isa,
        words: &words,
        layout: &layout,
        layouts: &layouts.list,
    };
    let end = Cfg::new(source, &code).code_end();
    let cached = |i: usize| {
        code.layout_of(i)
            .is_some_and(|l| words[i].0 & l.reuse_flags(words[i]) != 0)
    };
    // What lanes of several places run stays as it is.
    let mut collective = false;
    let mut in_collective = |i: usize| {
        let inside = collective;
        match code.layout_of(i).and_then(Mark::of) {
            Some(Mark::Begin) => collective = true,
            Some(Mark::End) => collective = false,
            None => {}
        }
        inside
    };
    (0..end)
        .filter(|&i| !in_collective(i) && (i == 0 || !cached(i - 1)))
        .map(|i| i as u32)
        .collect()
}
