//! What the tables in `latency/` say, read into a model.

use isa::Target;

use super::{Model, STALL};
use crate::class::ClassId;
use crate::code::Port;
use crate::source::Source;
use crate::walk::Kind;

/// The tables of a target.
pub(super) struct Tables {
    /// Named as the folders in `opcodes/`.
    pub name: &'static str,
    /// Where NAK's rows are from, if it has none for these targets.
    pub akin: Option<&'static str>,
    /// What vendor code shows, and the target whose name the file has.
    pub mined: (&'static str, &'static str),
}

impl Tables {
    pub fn of(target: Target) -> Tables {
        let sm70 = ("SM70", include_str!("../../latency/SM70.csv"));
        let sm75 = ("SM75", include_str!("../../latency/SM75.csv"));
        let sm80 = ("SM80", include_str!("../../latency/SM80.csv"));
        let sm87 = ("SM87", include_str!("../../latency/SM87.csv"));
        let sm89 = ("SM89", include_str!("../../latency/SM89.csv"));
        let sm90 = ("SM90", include_str!("../../latency/SM90.csv"));
        let sm100 = ("SM100", include_str!("../../latency/SM100.csv"));
        let sm110 = ("SM110", include_str!("../../latency/SM110.csv"));
        let sm120 = ("SM120", include_str!("../../latency/SM120.csv"));
        let (name, akin, mined) = match target {
            Target::Sm70 | Target::Sm72 => ("SM70", Some("SM75"), sm70),
            Target::Sm75 => ("SM75", None, sm75),
            Target::Sm80 => ("SM80", None, sm80),
            Target::Sm86 | Target::Sm87 | Target::Sm88 => ("SM87", None, sm87),
            Target::Sm89 => ("SM89", None, sm89),
            Target::Sm90 | Target::Sm90a => ("SM90", Some("SM80 and SM100"), sm90),
            Target::Sm100 | Target::Sm100a => ("SM100", None, sm100),
            // As 100, but for 64-bit floating point and 8-bit matrix products.
            Target::Sm101 | Target::Sm101a | Target::Sm103 | Target::Sm103a | Target::Sm110 | Target::Sm110a => {
                ("SM110", Some("SM100"), sm110)
            }
            Target::Sm120 | Target::Sm120a | Target::Sm121 | Target::Sm121a => ("SM120", Some("SM100"), sm120),
        };
        Tables { name, akin, mined }
    }

    /// Where the numbers of `nak.csv` come from.
    pub fn source(&self) -> Source {
        self.akin.map_or(Source::Nak, Source::Kin)
    }
}

pub(super) const NAK: &str = include_str!("../../latency/nak.csv");
pub(super) const SPREAD: &str = include_str!("../../latency/spread.csv");
pub(super) const QUEUES: &str = include_str!("../../latency/queues.csv");
pub(super) const SPLIT: &str = include_str!("../../latency/split.csv");
pub(super) const AKIN: &str = include_str!("../../latency/akin.csv");
pub(super) const APART: &str = include_str!("../../latency/apart.csv");
pub(super) const TOLD: &str = include_str!("../../latency/told.csv");

/// Whether a row of a table that several targets share is not for one of them, which keeps NAK's number.
pub(super) fn is_apart(target: &str, row: &str) -> bool {
    APART.lines().skip(1).any(|line| {
        let mut cells = line.splitn(6, ',');
        let here = cells.next().is_some_and(|of| of.split(' ').any(|t| t == target));
        here && cells.take(4).eq(row.split(',').take(4))
    })
}

impl Model {
    /// The classes of a cell, each with those that are split off from it: what is said of all is said of them, unless a later row says more.
    pub(super) fn list(&self, names: &str) -> Vec<ClassId> {
        if names == "*" {
            return self.classes.all().collect();
        }
        let mut all = Vec::new();
        for name in names.split('|') {
            all.extend(self.classes.named(name));
            for line in SPLIT.lines().skip(1) {
                let mut cells = line.splitn(3, ',');
                let part = cells.next().filter(|_| cells.next() == Some(name));
                all.extend(part.and_then(|part| self.classes.named(part)));
            }
        }
        all
    }

    pub(super) fn read_nak(&mut self, tables: &Tables) {
        for line in NAK.lines().skip(1) {
            let cells: Vec<&str> = line.split(',').collect();
            let [of, kind, port, producers, consumers, cycles] = cells[..] else {
                continue;
            };
            if !of.split(' ').any(|t| t == tables.name) {
                continue;
            }
            for a in self.list(producers) {
                for b in self.list(consumers) {
                    self.set(kind, port, a, b, cycles, tables.source());
                }
            }
        }
    }

    pub(super) fn read_mined(&mut self, line: &'static str) {
        let cells: Vec<&str> = line.split(',').collect();
        let [kind, port, producer, consumer, cycles, sites, kernels, waits] = cells[..] else {
            return;
        };
        if kind == STALL {
            self.stalls.extend(cycles.parse().ok().map(|n: u8| (producer, n)));
            return;
        }
        let source = Source::Mined {
            sites: sites.parse().unwrap_or(0),
            kernels: kernels.parse().unwrap_or(0),
            waits: waits == "yes",
        };
        for a in self.list(producer) {
            for b in self.list(consumer) {
                self.set(kind, port, a, b, cycles, source);
            }
        }
    }

    /// Readers take their operands at different depths of their pipes: where only some were seen to read a result, the others follow; and so
    /// they do where it was seen to be there later than NAK says.
    pub(super) fn spread(&mut self, nak: &[Option<(u16, Source)>]) {
        let Some(alu) = self.classes.named("alu") else { return };
        let mut offsets: Vec<(Vec<ClassId>, Vec<ClassId>, i16)> = Vec::new();
        for line in SPREAD.lines().skip(1) {
            let cells: Vec<&str> = line.splitn(4, ',').collect();
            if let [producers, consumers, offset, _] = cells[..] {
                offsets.push((self.list(producers), self.list(consumers), offset.parse().unwrap_or(0)));
            }
        }
        let mut producers: Vec<ClassId> = offsets.iter().flat_map(|o| o.0.clone()).collect();
        producers.sort();
        producers.dedup();
        for a in producers {
            let readers = offsets.iter().filter(|o| o.0.contains(&a));
            let mut readers: Vec<(ClassId, i16)> = readers.flat_map(|o| o.1.iter().map(|b| (*b, o.2))).collect();
            readers.extend(self.list("alu").into_iter().map(|alu| (alu, 0)));
            let mined = |&(b, offset): &(ClassId, i16)| match self.row(Kind::Raw, Port::R, a, b) {
                Some((cycles, Source::Mined { .. })) => cycles.checked_add_signed(-offset),
                _ => None,
            };
            let seen = mined(&(alu, 0)).or_else(|| readers.iter().filter_map(mined).max());
            let Some(base) = seen else { continue };
            let said = nak[self.place_of(Kind::Raw, Port::R, a, alu)].map_or(base, |(cycles, _)| cycles);
            for (b, offset) in readers {
                let cycles = match self.row(Kind::Raw, Port::R, a, b) {
                    None => base.saturating_add_signed(offset),
                    Some((cycles, Source::Nak | Source::Kin(_))) if base > said => cycles + (base - said),
                    Some(_) => continue,
                };
                self.set(
                    Kind::Raw.name(),
                    Port::R.name(),
                    a,
                    b,
                    &cycles.to_string(),
                    Source::Spread,
                );
            }
        }
    }

    /// What comes from memory is there no sooner than what comes from shared memory: where NAK only knows of a target that is akin, both may
    /// overwrite an operand as early.
    pub(super) fn loads_overwrite(&mut self) {
        let Some((lds, lsu)) = self.classes.named("lds").zip(self.classes.named("lsu")) else {
            return;
        };
        let all: Vec<ClassId> = self.classes.all().collect();
        for a in all {
            let (shared, other) = (
                self.row(Kind::War, Port::R, a, lds),
                self.row(Kind::War, Port::R, a, lsu),
            );
            if let (Some((cycles, Source::Mined { .. })), Some((_, Source::Kin(_)))) = (shared, other) {
                let at = self.place_of(Kind::War, Port::R, a, lsu);
                self.needs[at] = Some((cycles, Source::Sooner));
            }
        }
    }

    /// Classes that are too rare take what is known of those that read and overwrite registers alike.
    pub(super) fn take_from_kin(&mut self, tables: &Tables) {
        let all: Vec<ClassId> = self.classes.all().collect();
        for line in AKIN.lines().skip(1) {
            let cells: Vec<&str> = line.splitn(5, ',').collect();
            let [of, ports, classes, kin, _] = cells[..] else {
                continue;
            };
            let (Some(kin), true) = (self.classes.named(kin), of.split(' ').any(|t| t == tables.mined.0)) else {
                continue;
            };
            let ports = Port::ALL.into_iter().filter(|p| ports == "*" || ports == p.name());
            let ways = ports.flat_map(|port| Kind::ALL.map(|kind| (kind, port)));
            for ((kind, port), earlier) in ways.flat_map(|way| all.iter().map(move |class| (way, *class))) {
                let known = self.row(kind, port, earlier, kin);
                for class in self.list(classes) {
                    let at = self.place_of(kind, port, earlier, class);
                    self.needs[at] = self.needs[at].or(known.map(|(cycles, _)| (cycles, Source::Akin)));
                }
            }
        }
    }

    pub(super) fn read_told(&mut self, target: Target, tables: &Tables, anew: bool) {
        let target = target.to_string();
        for line in TOLD.lines().skip(1) {
            let cells: Vec<&str> = line.splitn(5, ',').collect();
            let [of, classes, what, code, _] = cells[..] else {
                continue;
            };
            let is_here = of.split(' ').any(|t| t == tables.mined.0 || t == target);
            if !is_here || code == "new" && !anew {
                continue;
            }
            let of_results = |kind: &Kind| (*kind != Kind::War) == (what == "results");
            for class in self.list(classes) {
                self.told[usize::from(class.0)] = true;
                // Numbers that are another target's, or another compiler's.
                let n = self.classes.all().count();
                for kind in Kind::ALL.iter().filter(|k| what == "all" || of_results(k)) {
                    for port in Port::ALL.iter().filter(|p| **p != Port::B) {
                        let at = self.place_of(*kind, *port, class, ClassId(0));
                        self.needs[at..at + n].fill(None);
                    }
                }
            }
        }
    }
}
