//! Where `-plr` is not believed. Each rule is explained in `opcodes/README.md`.

use super::model::{Model, RegField};
use super::table::Table;
use super::words::Touch;
use crate::plr::File;
use std::collections::BTreeSet;
use union_gen::bits::Bits;
use union_gen::family::{Family, FieldRow};

/// Loads whose source predicate the tool shows as read and written.
const PREDICATED_LOADS: &[&str] = &["LD", "LDG", "LDGSTS"];

/// Whether the instruction has tuples of more registers than the numbers in one word are apart: accumulators of warpgroups, what
/// moves from and to tensor memory, and the lists of uniform registers of MMAs on that.
pub fn is_wide(mnemonic: &str) -> bool {
    mnemonic.ends_with("GMMA") || mnemonic.starts_with("UTC") || matches!(mnemonic, "LDTM" | "STTM")
}

/// The table as it is written.
pub fn corrected(model: &Model, field: &RegField, table: &Table) -> Table {
    let mut table = table.clone();
    if unsupported(&model.mnemonic) {
        // What a callee may clobber is not what the instruction does with its own operands.
        let reads = table.rows.iter().map(|(_, t)| t.0).fold(table.default.0, u8::max);
        return Table {
            bits: Bits::default(),
            default: (reads.max(1), 0),
            rows: Vec::new(),
        };
    }
    if field.file == File::P && PREDICATED_LOADS.contains(&model.mnemonic.as_str()) {
        let source = |t: &mut Touch| {
            if t.0 > 0 {
                t.1 = 0;
            }
        };
        source(&mut table.default);
        table.rows.iter_mut().for_each(|(_, t)| source(t));
    }
    table
}

/// Access of a field that the tool cannot show: a register that is always RZ (`bits` is empty: part of an address), and the
/// convergence barriers B0 to B15, which have no column. None for other fields.
pub fn unseen(mnemonic: &str, row: &FieldRow, clears: bool) -> Option<&'static str> {
    match row.kind.as_str() {
        "R" | "UR" | "P" | "UP" if row.bits.is_empty() => Some("r"),
        "B" => Some(match mnemonic {
            "BSSY" => "w",
            "BSYNC" => "r",
            "BREAK" => "rw", // takes threads out of the set
            _ if row.field.starts_with("0.") => "w",
            _ if clears => "rw", // BMOV.CLEAR
            _ => "r",
        }),
        _ => None,
    }
}

/// Instructions that may leave the straight line.
const ALONE: &[&str] = &[
    "BPT", "BRA", "BREAK", "BRX", "BRXU", "BSSY", "BSYNC", "CALL", "EXIT", "IDE", "JMP", "JMX", "JMXU", "KILL", "LEPC",
    "NANOTRAP", "RET", "RPCMOV", "RTT", "WARPSYNC", "YIELD",
];

/// Opcodes of instructions that may leave the straight line.
pub fn alone(family: &Family) -> BTreeSet<u16> {
    let forms = family.forms.iter().filter(|f| ALONE.contains(&f.mnemonic.as_str()));
    forms.map(|f| f.opcode).collect()
}

/// Instructions that are not asked about: the tool follows a `JMP` only through relocations, and refuses the whole file. Their
/// register fields are taken to be read, one register wide.
pub const UNASKED: &[&str] = &["JMP"];

/// Instructions whose row says nothing about their operands: the tool shows what a callee may clobber.
pub fn unsupported(mnemonic: &str) -> bool {
    mnemonic == "CALL"
}

/// Whether a difference on a register is a documented one, `first` being the first of the run of registers that the tables touch there. The pairs are
/// (read, written).
pub fn excepted(mnemonic: &str, file: File, first: u32, tables: (bool, bool), tool: (bool, bool)) -> bool {
    let set_of_predicates = matches!(mnemonic, "P2R" | "R2P" | "UP2UR" | "UR2UP") && matches!(file, File::P | File::Up);
    // The predicates that are moved as a set are shown only where an operand names one of them.
    (set_of_predicates && (tables.0 || !tool.0) && (tables.1 || !tool.1))
    // UR0 to UR3 are never shown, nor what lies past them in a pair.
        || (file == File::Ur && first < 4 && tool == (false, false))
        || (file == File::P && PREDICATED_LOADS.contains(&mnemonic) && tables == (true, false) && tool == (true, true))
}
