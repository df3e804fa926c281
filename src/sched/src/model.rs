//! How many cycles an instruction must issue behind another that it depends on, where no scoreboard says so.

mod tables;

use std::collections::HashMap;
use std::sync::OnceLock;

use isa::{Effects, Latency, RegFile, Target};

use crate::class::{ClassId, Classes};
use crate::code::{Code, Port, Step, reg};
use crate::source::Source;
use crate::state::{FAR, Flight};
use crate::time::Times;
use crate::walk::{Dependence, Kind, Rules};
use tables::{QUEUES, Tables, is_apart};

/// What a dependence needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// That many cycles between the two issues.
    Cycles(u16, Source),
    /// A scoreboard that is waited for: the time is not fixed.
    Scoreboard,
    /// Nobody knows.
    Unknown,
}

/// What a dependence lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lack {
    /// Nothing.
    Nothing,
    /// It needs that many cycles, and has fewer.
    Cycles(u16, Source),
    /// A scoreboard tells, and is not waited for.
    Wait,
    /// Only a scoreboard could tell, and none does.
    Scoreboard,
    /// What it needs is not known.
    Number,
}

/// What is in order between two classes.
#[derive(Clone, Copy, Default)]
struct Order {
    reads: bool,
    writes: bool,
    /// What the earlier sums up is handed on to the later inside of the pipe.
    sums: bool,
}

/// The latency model of a family of targets.
pub struct Model {
    classes: Classes,
    /// By kind, port, earlier and later class.
    needs: Vec<Option<(u16, Source)>>,
    /// By kind, port and earlier class.
    largest: Vec<Option<u16>>,
    /// By class: after how many cycles its operands are read, its results written for every other, and convergence barriers that it writes;
    /// [`FAR`] + 1 if only a scoreboard tells.
    done: Vec<[u16; 3]>,
    /// By class, with each class.
    order: Vec<Order>,
    /// Classes of the uniform datapath that take its registers late, and all but the last its predicates too.
    late: [Option<ClassId>; 3],
    adu: Option<ClassId>,
    times: Times,
    /// By class: only a scoreboard tells of it, though on other targets it takes a number of cycles.
    told: Vec<bool>,
    /// The model for code that is scheduled anew, where that asks for more.
    anew: Option<Box<Model>>,
    /// The least stall count behind a mnemonic in vendor code.
    stalls: HashMap<&'static str, u8>,
}

/// The kind of rows with the least stall count behind a mnemonic.
pub const STALL: &str = "STALL";

impl Model {
    /// The model of a target, made at its first use.
    pub fn of(target: Target) -> &'static Model {
        static MODELS: [OnceLock<Model>; Target::ALL.len()] = [const { OnceLock::new() }; Target::ALL.len()];
        MODELS[target as usize].get_or_init(|| {
            let mut model = Model::new(target, false);
            let anew = Model::new(target, true);
            model.anew = (anew.told != model.told).then(|| Box::new(anew));
            model
        })
    }

    /// For whoever assigns scheduling bits: as this one, but a scoreboard tells of all of which the newest compiler has one tell, also where
    /// code that an older one made relies on a number of cycles.
    pub fn anew(&self) -> &Model {
        self.anew.as_deref().unwrap_or(self)
    }

    fn new(target: Target, anew: bool) -> Model {
        let tables = Tables::of(target);
        let mut model = Model::bare();
        model.read_nak(&tables);
        let nak = model.needs.clone();
        let name = target.to_string();
        for line in tables.mined.1.lines().skip(1).filter(|l| !is_apart(&name, l)) {
            model.read_mined(line);
        }
        model.spread(&nak);
        model.loads_overwrite();
        model.take_from_kin(&tables);
        model.read_told(target, &tables, anew);
        model.sum_up();
        model
    }

    /// Mesa NAK's numbers only, to mine with.
    pub fn of_nak(target: Target) -> Model {
        let tables = Tables::of(target);
        let mut model = Model::bare();
        model.read_nak(&tables);
        model.sum_up();
        model
    }

    /// The name of a target's tables.
    pub fn tables(target: Target) -> &'static str {
        Tables::of(target).name
    }

    /// Whether one table of mined numbers is for both.
    pub fn is_shared(a: Target, b: Target) -> bool {
        Tables::of(a).mined.0 == Tables::of(b).mined.0
    }

    fn bare() -> Model {
        let classes = Classes::new();
        let n = classes.all().count();
        let mut model = Model {
            needs: vec![None; Kind::ALL.len() * Port::ALL.len() * n * n],
            largest: vec![None; Kind::ALL.len() * Port::ALL.len() * n],
            done: vec![[FAR + 1; 3]; n],
            order: vec![Order::default(); n * n],
            late: ["ldcu", "tma", "utc"].map(|c| classes.named(c)),
            adu: classes.named("adu"),
            times: Times::new(&classes),
            told: vec![false; n],
            anew: None,
            stalls: HashMap::new(),
            classes,
        };
        for line in QUEUES.lines().skip(1) {
            let mut cells = line.split(',').skip(1);
            let classes = model.list(cells.next().unwrap_or(""));
            let [reads, writes, sums] = [(); 3].map(|()| cells.next() == Some("in order"));
            for a in &classes {
                for b in &classes {
                    let order = &mut model.order[usize::from(a.0) * n + usize::from(b.0)];
                    order.reads |= reads;
                    order.writes |= writes;
                    order.sums |= sums;
                }
            }
        }
        model
    }

    /// How long things take that only a scoreboard tells of.
    pub fn times(&self) -> &Times {
        &self.times
    }

    /// The least stall count that vendor code has behind a mnemonic, at 8 places in 3 kernels or more.
    pub fn least_stall(&self, mnemonic: &str) -> Option<u8> {
        self.stalls.get(mnemonic).copied()
    }

    /// Cycles after which all results of a class are there for everyone; more than [`FAR`] if only a scoreboard tells.
    pub(crate) fn settles(&self, class: ClassId) -> u16 {
        self.done[usize::from(class.0)][1]
    }

    /// The classes.
    pub fn classes(&self) -> &Classes {
        &self.classes
    }

    fn set(&mut self, kind: &str, port: &str, a: ClassId, b: ClassId, cycles: &str, source: Source) {
        let kind = Kind::ALL.into_iter().find(|k| k.name() == kind);
        let port = Port::ALL.into_iter().find(|p| p.name() == port);
        if let (Some(kind), Some(port), Ok(cycles)) = (kind, port, cycles.parse()) {
            let at = self.place_of(kind, port, a, b);
            self.needs[at] = Some((cycles, source));
        }
    }

    fn place_of(&self, kind: Kind, port: Port, a: ClassId, b: ClassId) -> usize {
        self.place(kind, port, a) * self.classes.all().count() + usize::from(b.0)
    }

    fn place(&self, kind: Kind, port: Port, a: ClassId) -> usize {
        (kind as usize * Port::ALL.len() + port as usize) * self.classes.all().count() + usize::from(a.0)
    }

    fn sum_up(&mut self) {
        let n = self.classes.all().count();
        for (place, rows) in self.needs.chunks(n).enumerate() {
            self.largest[place] = rows.iter().flatten().map(|r| r.0).max();
        }
        for class in self.classes.all() {
            // A number for one of its results says nothing of the others.
            if self.told[usize::from(class.0)] {
                continue;
            }
            let most = |kinds: &[Kind], barriers: bool| {
                let ports = Port::ALL.iter().filter(|p| (**p == Port::B) == barriers);
                let places = ports.flat_map(|p| kinds.iter().map(move |k| (*k, *p)));
                let cycles = places.filter_map(|(k, p)| self.largest[self.place(k, p, class)]).max();
                cycles.unwrap_or(FAR + 1)
            };
            let writes = [Kind::Raw, Kind::Waw];
            self.done[usize::from(class.0)] = [most(&[Kind::War], false), most(&writes, false), most(&writes, true)];
        }
    }

    /// The number for a pair of classes, if there is one.
    pub fn row(&self, kind: Kind, port: Port, earlier: ClassId, later: ClassId) -> Option<(u16, Source)> {
        self.needs[self.place_of(kind, port, earlier, later)]
    }

    /// What is needed between two instructions of which the earlier has that latency kind.
    pub fn need(&self, kind: Kind, port: Port, earlier: ClassId, later: ClassId, latency: Latency) -> Need {
        if let Some((cycles, source)) = self.row(kind, port, earlier, later) {
            return Need::Cycles(cycles, source);
        }
        let (reads, writes) = self.in_order(earlier, later);
        if kind == Kind::War && reads || kind == Kind::Waw && writes {
            return Need::Cycles(1, Source::InOrder);
        }
        if kind == Kind::Waw
            && let Some(cycles) = self.write_order(port, earlier, later)
        {
            return Need::Cycles(cycles, Source::Derived);
        }
        let same_kind = self.largest[self.place(kind, port, earlier)];
        // A result that is there to be read is there to be overwritten.
        let largest = same_kind.or_else(|| match kind {
            Kind::Waw => self.largest[self.place(Kind::Raw, port, earlier)],
            _ => None,
        });
        match (largest, latency) {
            // Convergence barriers stay inside of one unit, where one pair says nothing about another.
            (Some(cycles), _) if port != Port::B => Need::Cycles(cycles, Source::Largest),
            // What may be of fixed latency, and of which no number is known, is no error without a scoreboard.
            (_, Latency::Fixed | Latency::Either) if !self.told[usize::from(earlier.0)] => Need::Unknown,
            _ => Need::Scoreboard,
        }
    }

    /// Whether instructions of one class read their operands before later ones of another class do anything.
    pub(crate) fn in_order_reads(&self, earlier: ClassId, later: ClassId) -> bool {
        self.in_order(earlier, later).0
    }

    fn order(&self, earlier: ClassId, later: ClassId) -> Order {
        self.order[usize::from(earlier.0) * self.classes.all().count() + usize::from(later.0)]
    }

    /// What a dependence lacks; of instructions that no table knows nothing is asked, they are a finding of their own.
    pub(crate) fn lack(&self, code: &Code, d: &Dependence) -> Lack {
        let earlier = &code.steps[d.flight.step as usize];
        if earlier.class.is_none() || code.steps[d.at as usize].class.is_none() {
            return Lack::Nothing;
        }
        // A barrier register is written inside of the unit; the scoreboard tells of the general register beside it.
        let told = d.port != Port::B;
        // Whoever must come behind a fence waits, however soon it may be over.
        if d.port == Port::View && d.kind == Kind::Raw {
            return if d.flight.release == 0 {
                Lack::Scoreboard
            } else {
                Lack::Wait
            };
        }
        if d.kind == Kind::Raw && self.order(d.flight.class, d.class).sums {
            return Lack::Nothing;
        }
        if told && d.kind == Kind::Raw && earlier.control.write_barrier.is_some() {
            return Lack::Wait;
        }
        match self.need(d.kind, d.port, d.flight.class, d.class, earlier.latency) {
            Need::Cycles(cycles, _) if d.flight.elapsed >= cycles => Lack::Nothing,
            Need::Cycles(cycles, source) => Lack::Cycles(cycles, source),
            Need::Scoreboard | Need::Unknown if told && d.flight.release != 0 => Lack::Wait,
            Need::Scoreboard => Lack::Scoreboard,
            Need::Unknown => Lack::Number,
        }
    }

    /// How much later a write must issue that is to land after another, both of fixed latency: by how much longer the earlier takes until
    /// the same reader may follow, and 1.
    fn write_order(&self, port: Port, earlier: ClassId, later: ClassId) -> Option<u16> {
        let until = |writer, reader| self.row(Kind::Raw, port, writer, reader);
        let pairs = || {
            self.classes
                .all()
                .filter_map(|reader| until(earlier, reader).zip(until(later, reader)))
        };
        let behind = |((first, _), (second, _)): ((u16, Source), (u16, Source))| first.saturating_sub(second) + 1;
        // What vendor code shows and what NAK says are not measured from the same place: only where nothing else is there they are compared.
        let alike = |((_, a), (_, b)): &(_, _)| std::mem::discriminant(a) == std::mem::discriminant(b);
        let best = pairs().filter(alike).map(behind).max();
        best.or_else(|| pairs().map(behind).max())
    }
}

impl Rules for Model {
    fn reads_late(&self, step: &Step, port: Port) -> bool {
        step.latency != Latency::Fixed
            && match port {
                Port::R => true,
                // Vector instructions take them at issue (NAK: 1 cycle).
                Port::Ur => step.class.is_some() && self.late.contains(&step.class),
                // What works on tensor memory takes the predicate at once: ptxas overwrites it without a wait.
                Port::Up => step.class.is_some() && self.late.split_last().is_some_and(|l| l.1.contains(&step.class)),
                // NAK: 1 cycle.
                Port::P | Port::B | Port::Guard | Port::UGuard | Port::View => false,
            }
    }

    fn in_order(&self, earlier: ClassId, later: ClassId) -> (bool, bool) {
        let order = self.order(earlier, later);
        (order.reads, order.writes)
    }

    fn drains_reads(&self, step: &Step) -> bool {
        step.class.is_some() && step.class == self.adu && step.guard.is_none() && step.effects.has(Effects::FENCE)
    }

    fn limit(&self, _code: &Code, flight: &Flight) -> u16 {
        // Convergence barriers, and views, which are as these.
        let barrier = flight.first >= reg(RegFile::B, 0);
        self.done[usize::from(flight.class.0)][usize::from(flight.write) + usize::from(flight.write && barrier)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tables::{AKIN, NAK, SPLIT, TOLD};

    /// The rows of a table whose cells name no kind, port or class, or whose number is none.
    fn wrong_rows(text: &str, kind: usize, cells: usize) -> Vec<String> {
        let classes = Classes::new();
        let known = |names: &str| names == "*" || names.split('|').all(|n| classes.named(n).is_some());
        let good = |line: &&str| {
            let row: Vec<&str> = line.split(',').collect();
            if row[kind] == STALL {
                return row.len() == cells && row[kind + 4].parse::<u8>().is_ok_and(|n| (1..16).contains(&n));
            }
            row.len() == cells
                && Kind::ALL.iter().any(|k| k.name() == row[kind])
                && Port::ALL.iter().any(|p| p.name() == row[kind + 1])
                && known(row[kind + 2])
                && known(row[kind + 3])
                && row[kind + 4].parse::<u16>().is_ok_and(|n| n < FAR)
        };
        text.lines().skip(1).filter(|l| !good(l)).map(str::to_owned).collect()
    }

    #[test]
    fn tables_are_whole() {
        assert_eq!(wrong_rows(NAK, 1, 6), [""; 0]);
        for target in Target::ALL {
            let tables = Tables::of(target);
            assert_eq!(wrong_rows(tables.mined.1, 0, 8), [""; 0], "{}", tables.name);
            let of = |l: &str| {
                l.split(',')
                    .next()
                    .is_some_and(|t| t.split(' ').any(|t| t == tables.name))
            };
            assert!(NAK.lines().any(of), "{}", tables.name);
        }
        let classes = Classes::new();
        let named = |line: &str, cell| {
            let names = line.split(',').nth(cell).unwrap_or("");
            assert!(names.split('|').all(|n| classes.named(n).is_some()), "{line}");
        };
        SPLIT
            .lines()
            .skip(1)
            .for_each(|line| (0..2).for_each(|cell| named(line, cell)));
        QUEUES.lines().skip(1).for_each(|line| named(line, 1));
        TOLD.lines().skip(1).for_each(|line| named(line, 1));
        for line in AKIN.lines().skip(1) {
            named(line, 2);
            named(line, 3);
        }
    }

    #[test]
    fn a_mined_number_is_never_below_naks() {
        for target in Target::ALL {
            let (all, nak) = (Model::of(target), Model::of_nak(target));
            for (mine, base) in all.needs.iter().zip(&nak.needs) {
                if let (Some((mine, _)), Some((base, Source::Nak))) = (mine, base) {
                    assert!(mine >= base, "{target}: {mine} below {base}");
                }
            }
        }
    }

    /// All that is known of a class holds for what is split off from it, but where a table has rows of that.
    #[test]
    fn what_is_split_off_stays_as_it_was() {
        for target in Target::ALL {
            let model = Model::of(target);
            let mined = Tables::of(target).mined.1;
            let all: Vec<ClassId> = model.classes.all().collect();
            for line in SPLIT.lines().skip(1) {
                let names: Vec<&str> = line.split(',').collect();
                let [part, of] = [names[0], names[1]].map(|n| model.classes.named(n).expect("a class"));
                if mined.lines().any(|row| row.split(',').any(|cell| cell == names[0])) {
                    continue;
                }
                let ports = Port::ALL.iter().flat_map(|p| Kind::ALL.map(|k| (k, *p)));
                for ((kind, port), other) in ports.flat_map(|way| all.iter().map(move |c| (way, *c))) {
                    let cycles = |a, b| model.row(kind, port, a, b).map(|row| row.0);
                    assert_eq!(
                        cycles(part, other),
                        cycles(of, other),
                        "{target} {line} {kind:?} {port:?}"
                    );
                    assert_eq!(
                        cycles(other, part),
                        cycles(other, of),
                        "{target} {line} {kind:?} {port:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_target_may_stand_apart_from_its_table() {
        let row = |target| {
            let model = Model::of(target);
            let class = |name| model.classes().named(name).expect("a class");
            model
                .row(Kind::Raw, Port::P, class("alu"), class("fp16alu"))
                .map(|r| r.0)
        };
        let targets = [Target::Sm101, Target::Sm103, Target::Sm103a, Target::Sm110];
        assert_eq!(targets.map(row), [Some(13), Some(5), Some(5), Some(13)]);
    }

    #[test]
    fn write_order_follows_from_how_long_both_take() {
        let model = Model::of(Target::Sm87);
        let class = |name| model.classes().named(name).expect("a class");
        let need = |a, b| model.need(Kind::Waw, Port::P, class(a), class(b), Latency::Fixed);
        assert_eq!(need("alu", "alu"), Need::Cycles(1, Source::Nak));
        // 14 and 13 cycles until a guard may follow.
        assert_eq!(need("hfma2mma", "alu"), Need::Cycles(3, Source::Derived));
    }
}
