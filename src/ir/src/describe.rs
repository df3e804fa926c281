//! Makes a layout: asks isa everything about one instruction that does not depend on its register numbers and immediates.

use isa::{Access, Dir, Field, FieldKind, Inst, Isa, OperandIx, RegFile, Target, Terminator, Word};

use crate::layout::{Chunk, Flow, GUARD_NEGATED, Imm, Item, Layout, Number, Phrase, Register, Seg, Slot, Types};
use crate::pin::{file_type, zero_number};
use crate::shape::{self, Part, Piece};

/// The layout of an instruction; `None` if its register fields are not of the kind that layouts can describe (then the word is opaque).
pub(crate) fn describe(isa: &Isa, target: Target, inst: Inst) -> Option<Layout> {
    let form = isa.form(inst.form)?;
    let fields = form.fields();
    let mut slots = Vec::new();
    let mut implied = Vec::new();
    let accesses: Vec<Access> = isa.accesses(inst).collect();
    for access in &accesses {
        match access.field {
            Some(_) if is_part_of_another(fields, access, &accesses) => {}
            Some(f) => slots.push(field_slot(
                target,
                f,
                fields.get(f as usize)?,
                access.dir,
                access.width,
            )?),
            None => implied.push(implied_slot(target, access)),
        }
    }
    for (f, field) in fields.iter().enumerate() {
        // Registers that this instruction names and does not touch.
        if field.kind.file().is_some() && !accesses.iter().any(|a| a.field == Some(f as u8)) {
            slots.push(field_slot(target, u8::try_from(f).ok()?, field, Dir::None, 1)?);
        }
    }
    slots.append(&mut implied);
    let touched = |s: &&Slot| s.reads() || s.writes();
    let register_mask = slots.iter().filter(touched).fold(0, |m, s| m | s.bits());
    let semantics = isa.semantics(inst);
    let flow = match semantics.terminator {
        Terminator::None | Terminator::Trap => Flow::None,
        Terminator::Branch => Flow::Branch,
        Terminator::BranchIndirect => Flow::Indirect,
        Terminator::Exit | Terminator::Kill => Flow::Exit,
        Terminator::Return => Flow::Return,
        Terminator::Call => Flow::Call,
    };
    let mut name = format!("sass.{}_0x{:03x}", form.mnemonic(), form.opcode());
    let mut no_increment = false;
    let mut quoted = Vec::new();
    for token in isa.modifiers(inst) {
        no_increment |= token == "NOINC";
        let lexes = token.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_') && !token.is_empty();
        if lexes && quoted.is_empty() {
            name.push('.');
            name.push_str(token);
        } else {
            quoted.push(shape::quote(token));
        }
    }
    if !quoted.is_empty() {
        name.push_str(&format!(" mods({})", quoted.join(", ")));
    }
    let guard = slots.first().filter(|s: &&Slot| s.operand == OperandIx::Guard);
    let unguarded = guard.map_or((0, 0), |s| {
        let constant = s.put(Word(0), s.zero as u8).unwrap_or(Word(0));
        (s.bits() | GUARD_NEGATED, constant.0)
    });
    let registers = |which: fn(&Slot) -> bool| -> Box<[Register]> {
        slots.iter().filter(|s| which(s)).flat_map(Slot::registers).collect()
    };
    let mut layout = Layout {
        unguarded,
        reads: registers(Slot::reads),
        writes: registers(Slot::writes),
        form: inst.form,
        name,
        nop: form.mnemonic() == "NOP",
        flow,
        has_label: false,
        no_increment,
        register_mask,
        reuse: form.reuse().iter().fold(0, |m, (bit, _)| m | 1 << bit),
        rel_field: None,
        head: Phrase::new(""),
        segs: Box::default(),
        imms: Box::default(),
        types: Types::shared(&[], None),
        slots,
    };
    write_text(isa, inst, fields, &mut layout)?;
    Some(layout)
}

/// The same bits name a register further on in a tuple that the instruction reads as another operand: `idesc[UR5]` where `tmem[UR4]` is a
/// pair. It is no operand of its own.
fn is_part_of_another(fields: &[Field], access: &Access, accesses: &[Access]) -> bool {
    let field = |a: &Access| a.field.and_then(|f| fields.get(f as usize));
    let Some(own) = field(access).filter(|_| access.dir == Dir::Read && access.width == 1) else {
        return false;
    };
    let mask = own.mask();
    accesses
        .iter()
        .filter(|a| a.dir == Dir::Read && a.file == access.file)
        .any(|other| {
            let Some(first) = field(other).filter(|f| f.mask() == mask && mask != 0) else {
                return false;
            };
            let distance = |w| own.get(Word(w)) - first.get(Word(w));
            let further = distance(0);
            let alike = (0..128)
                .filter(|b| mask >> b & 1 == 1)
                .all(|b| distance(1 << b) == further);
            alike && (1..i64::from(other.width)).contains(&further)
        })
}

/// Position of the slot of a field.
fn slot_of(slots: &[Slot], field: usize) -> Option<usize> {
    slots.iter().position(|s| s.field == Some(field as u8))
}

/// First operand index of every slot.
fn operand_indices(slots: &[Slot]) -> Vec<u16> {
    let mut at = 0u16;
    let start = |s: &Slot| {
        let start = at;
        at += if s.reads() { s.width as u16 } else { 0 };
        start
    };
    slots.iter().map(start).collect()
}

/// Collects the parts of a text.
#[derive(Default)]
struct Writer {
    /// The text up to the first item.
    head: String,
    segs: Vec<Seg>,
    types: Vec<&'static str>,
    imms: Vec<Imm>,
}

impl Writer {
    fn lit(&mut self, text: &str) {
        let Some(last) = self.segs.last_mut() else {
            return self.head.push_str(text);
        };
        let rest = last.text.push(text);
        let more = Chunk::split(rest);
        self.segs.extend(more.map(|text| Seg { item: Item::None, text }));
    }

    fn item(&mut self, item: Item) {
        let text = Chunk::EMPTY;
        self.segs.push(Seg { item, text });
    }

    fn values(&mut self, slot: &Slot, first: u16) {
        for k in 0..slot.width as u16 {
            self.lit(if k > 0 { ", " } else { "" });
            self.item(Item::Value(first + k));
            self.types.push(file_type(slot.file));
        }
    }

    fn imm(&mut self, imm: Imm) -> u16 {
        self.imms.push(imm);
        self.imms.len() as u16 - 1
    }
}

fn write_text(isa: &Isa, inst: Inst, fields: &[Field], layout: &mut Layout) -> Option<()> {
    let starts = operand_indices(&layout.slots);
    let mut out = Writer::default();
    out.lit(&layout.name);
    if layout.has_guard() {
        out.lit(" guard(");
        out.item(Item::Guard);
        out.lit(")");
    }
    let mut first = true;
    let mut label = None;
    let mut shown = vec![false; layout.slots.len()];
    for n in 0..isa.operand_count(inst) {
        let pieces: Vec<Piece<'_>> = isa.operand(inst, n)?.pieces().map(Piece::from).collect();
        let rel = pieces.iter().find_map(|p| match p {
            Piece::Hole(f) if fields[*f].kind == FieldKind::Rel => Some(*f),
            _ => None,
        });
        let follows = !matches!(layout.flow, Flow::Indirect | Flow::Return);
        if let Some(f) = rel.filter(|_| follows && pieces.len() == 1 && label.is_none()) {
            label = Some(f);
            continue;
        }
        let parts = shape::translate(pieces);
        // An operand that is nothing but a destination is a result and not written again.
        if let [Part::Hole { field, .. }] = parts[..]
            && slot_of(&layout.slots, field).is_some_and(|s| layout.slots[s].dir == Dir::Write)
        {
            continue;
        }
        out.lit(if first { " " } else { ", " });
        first = false;
        let is_register = |field: usize| fields.get(field).is_some_and(|f| f.kind.file().is_some());
        let lone_number = matches!(parts[..], [Part::Hole { field, .. }] if !is_register(field));
        if lone_number {
            out.types.push("!sass.imm");
        }
        for part in parts {
            match part {
                Part::Lit(text) => out.lit(&text),
                Part::Hole { field, bracketed } => match slot_of(&layout.slots, field) {
                    Some(s) => {
                        let slot = &layout.slots[s];
                        if slot.dir == Dir::None {
                            out.item(Item::Named(s as u16));
                        } else if slot.dir == Dir::Write {
                            out.lit("_");
                        } else {
                            let braces = slot.width > 1 && !bracketed;
                            out.lit(if braces { "{" } else { "" });
                            out.values(slot, starts[s]);
                            shown[s] = true;
                            out.lit(if braces { "}" } else { "" });
                        }
                    }
                    // Another operand has it.
                    None if is_register(field) => out.lit("_"),
                    None => {
                        let imm = number(fields.get(field)?, inst.word, lone_number);
                        let at = out.imm(imm);
                        out.item(Item::Imm(at));
                    }
                },
            }
        }
    }
    if let Some(f) = label {
        let imm = out.imm(number(&fields[f], inst.word, false));
        out.item(Item::Label { first, imm });
        layout.has_label = true;
        layout.rel_field = u8::try_from(f).ok();
    }
    if layout.has_guard() && layout.slots.iter().any(|s| s.dir == Dir::Write) {
        out.item(Item::Merge);
    }
    // Read, and not in the text of any operand: hidden operands, and registers that only some shapes show.
    let hidden = |n: usize, s: &Slot| s.reads() && s.field.is_some() && s.operand != OperandIx::Guard && !shown[n];
    let descriptor = |s: &Slot| s.file == RegFile::UR && s.width == 2;
    for (keyword, wanted) in [("desc", true), ("hidden", false)] {
        let slots = layout.slots.iter().enumerate();
        clause(
            &mut out,
            keyword,
            slots.filter(|(n, s)| hidden(*n, s) && descriptor(s) == wanted),
            &starts,
        );
    }
    clause(
        &mut out,
        "implicit",
        layout
            .slots
            .iter()
            .enumerate()
            .filter(|(_, s)| s.field.is_none() && s.reads()),
        &starts,
    );
    let one = layout.slots.iter().find(|s| s.writes()).map(|s| s.file);
    layout.types = Types::shared(&out.types, one);
    layout.head = Phrase::new(&out.head);
    layout.segs = out.segs.into();
    layout.imms = out.imms.into();
    Some(())
}

fn clause<'a>(out: &mut Writer, keyword: &str, slots: impl Iterator<Item = (usize, &'a Slot)>, starts: &[u16]) {
    let mut open = false;
    for (s, slot) in slots {
        out.lit(if open { ", " } else { " " });
        if !open {
            out.lit(keyword);
            out.lit("(");
        }
        open = true;
        out.values(slot, starts[s]);
    }
    out.lit(if open { ")" } else { "" });
}

/// A register field, if its number is straight or inverted bits of one place in a half of the word, or of eight bits in two places, or a
/// constant.
fn field_slot(target: Target, index: u8, field: &Field, dir: Dir, width: u8) -> Option<Slot> {
    let file = field.kind.file()?;
    let number = number_of(field)?;
    Some(Slot {
        field: Some(index),
        file,
        dir,
        width: width.max(1),
        operand: field.operand,
        zero: zero_number(target, file).map_or(256, u16::from),
        number,
    })
}

fn number_of(field: &Field) -> Option<Number> {
    let mask = field.mask();
    let xor = u8::try_from(field.get(Word(0))).ok()?;
    // The place of each bit of the number, the lowest first.
    let place = |k: u8| (0..128u8).find(|b| mask >> b & 1 == 1 && field.get(Word(1 << b)) == i64::from(xor ^ (1 << k)));
    let places: Vec<u8> = (0..8).map_while(place).collect();
    let first = places.first().copied().unwrap_or(0);
    let low = places
        .iter()
        .zip(first..)
        .take_while(|(place, wanted)| *place == wanted)
        .count();
    let number = Number {
        lo: first,
        mask: ((1u16 << low) - 1) as u8,
        xor,
        rest: places.get(low).copied().unwrap_or(0),
    };
    let in_one_half = low == 0 || first / 64 == (first + low as u8 - 1) / 64;
    let whole = number.rest == 0 || places.len() == 8;
    (in_one_half && whole && number.bits() == mask).then_some(number)
}

fn implied_slot(target: Target, access: &Access) -> Slot {
    Slot {
        field: None,
        file: access.file,
        dir: access.dir,
        width: access.width.max(1),
        operand: access.operand,
        zero: zero_number(target, access.file).map_or(256, u16::from),
        number: Number {
            xor: access.reg,
            ..Number::default()
        },
    }
}

/// How a number is written: an operand of its own is padded to the width of its field where it is unsigned.
fn number(field: &Field, word: Word, pad: bool) -> Imm {
    let mask = field.mask();
    let base = i128::from(field.get(Word(0)));
    let weights: Vec<i128> = (0..128)
        .filter(|b| mask >> b & 1 == 1)
        .map(|b| i128::from(field.get(Word(1 << b))) - base)
        .collect();
    let float = field.kind_in(word).is_float();
    let least: i128 = base + weights.iter().filter(|w| **w < 0).sum::<i128>();
    let most: i128 = base + weights.iter().filter(|w| **w > 0).sum::<i128>();
    let signed = !float && least < 0;
    let digits = if signed || !(pad || float) {
        1
    } else {
        (128 - most.max(1).leading_zeros()).div_ceil(4).min(16) as u8
    };
    let bits = weights.len();
    let lo = mask.trailing_zeros() as u8;
    let unit = weights.first().copied().unwrap_or(0);
    let plain = base == 0
        && (1..=64).contains(&bits)
        && mask >> lo == (u128::MAX >> (128 - bits))
        && unit > 0
        && (unit as u128).is_power_of_two()
        && weights.iter().enumerate().all(|(k, w)| {
            let magnitude = unit << k;
            *w == if signed && k + 1 == bits { -magnitude } else { magnitude }
        });
    match plain {
        true => Imm::Plain {
            lo,
            bits: bits as u8,
            signed,
            shift: unit.trailing_zeros() as u8,
            digits,
        },
        false => Imm::Field {
            field: Box::new(field.clone()),
            signed,
            digits,
        },
    }
}
