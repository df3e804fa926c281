//! Fences that a scoreboard tells of: what threads wrote is seen by what works asynchronously once it says so (`latency/views.csv`).
//!
//! Each such view is as a register that the fence writes, and that is read by whatever must come behind.

use isa::{Inst, Isa};

use crate::class::{ClassId, Classes};
use crate::code::{Port, Touch, VIEWS};

const TEXT: &str = include_str!("../latency/views.csv");
const NAMES: [&str; VIEWS.len()] = ["S", "G", "T"];

struct Row {
    mnemonics: &'static str,
    sets: u8,
    awaits: u8,
}

/// What sets views and what waits for them, by class.
#[derive(Default)]
pub(crate) struct Views(Vec<Vec<Row>>);

impl Views {
    /// The table that is built in.
    pub fn new(classes: &Classes) -> Views {
        let mut rows: Vec<Vec<Row>> = classes.all().map(|_| Vec::new()).collect();
        let set = |names: &str| {
            let named = names
                .split('|')
                .filter_map(|n| NAMES.iter().position(|name| *name == n));
            named.fold(0, |set, n| set | 1u8 << n)
        };
        for line in TEXT.lines().skip(1) {
            let cells: Vec<&'static str> = line.splitn(5, ',').collect();
            let [class, sets, mnemonics, awaits, _] = cells[..] else {
                panic!("latency/views.csv: `{line}` has not 5 cells");
            };
            let class = classes
                .named(class)
                .unwrap_or_else(|| panic!("latency/views.csv: no class {class}"));
            rows[usize::from(class.0)].push(Row {
                mnemonics,
                sets: set(sets),
                awaits: set(awaits),
            });
        }
        Views(rows)
    }

    /// Adds the views that an instruction waits for to what it reads, and those that it sets to what it writes.
    pub fn touches(
        &self,
        isa: &Isa,
        inst: Inst,
        class: Option<ClassId>,
        reads: &mut Vec<Touch>,
        writes: &mut Vec<Touch>,
    ) {
        let Some(class) = class else { return };
        let rows = &self.0[usize::from(class.0)];
        let mnemonic = || isa.form(inst.form).map_or("", |f| f.mnemonic());
        for row in rows
            .iter()
            .filter(|r| r.mnemonics == "*" || r.mnemonics.split('|').any(|m| m == mnemonic()))
        {
            let touch = |n: usize| Touch {
                first: VIEWS[n],
                width: 1,
                port: Port::View,
                class,
            };
            let each = |set: u8| (0..VIEWS.len()).filter(move |n| set >> n & 1 == 1).map(touch);
            reads.extend(each(row.awaits));
            writes.extend(each(row.sets));
        }
    }
}
