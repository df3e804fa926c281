//! The checker: every way through a kernel, every dependence, against the latency model.

use std::collections::HashSet;
use std::fmt;

use ir::Kernel;
use isa::{Control, Isa, Word};

use crate::arrive;
use crate::code::{Code, GROUPS, Reg, VIEWS, file_of};
use crate::model::{Lack, Model};
use crate::reuse;
use crate::source::Source;
use crate::state::Flight;
use crate::walk::{self, Cursor, Dependence, InFlight, Kind, Listener};

/// Cycles between an instruction that will signal a scoreboard and one that waits for it; with fewer the wait can come before the count
/// went up (mined: no vendor kernel has less, tens of thousands have exactly that).
pub const SIGNAL: u16 = 2;
/// The same for what counts groups of matrix products (seen: `ptxas` never has less).
const GROUP_SIGNAL: u16 = 3;

/// Cycles between an instruction that will signal and one that waits for it, by the first one's signals that are waited for.
pub(crate) fn signal(release: u8) -> u16 {
    if release >> GROUPS & 1 == 1 {
        GROUP_SIGNAL
    } else {
        SIGNAL
    }
}

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Hazard {
    /// Too few cycles for a result of fixed latency.
    Stall,
    /// A result or an operand that only a scoreboard could tell of, and none will.
    NoScoreboard,
    /// A scoreboard will tell, and is not waited for.
    NotAwaited,
    /// A scoreboard is waited for before it can have been set.
    EarlyWait,
    /// An operand is kept for the next instruction though its register is overwritten.
    Reuse,
    /// A product of a warpgroup has a register that was accessed since the warpgroup arrived.
    NotArrived,
    /// Scheduling bits that the form does not allow.
    Control,
    /// Nobody knows what the word is or how long it takes: no verdict.
    Unknown,
    /// No instruction of the kernel has scheduling bits of its own: no verdict.
    Unscheduled,
}

impl Hazard {
    /// All of them.
    pub const ALL: [Hazard; 9] = [
        Hazard::Stall,
        Hazard::NoScoreboard,
        Hazard::NotAwaited,
        Hazard::EarlyWait,
        Hazard::Reuse,
        Hazard::NotArrived,
        Hazard::Control,
        Hazard::Unknown,
        Hazard::Unscheduled,
    ];

    /// Whether it is known to go wrong; else there is no verdict.
    pub fn is_error(self) -> bool {
        !matches!(self, Hazard::Unknown | Hazard::Unscheduled)
    }

    /// As reports name it.
    pub fn name(self) -> &'static str {
        match self {
            Hazard::Stall => "stall",
            Hazard::NoScoreboard => "no-scoreboard",
            Hazard::NotAwaited => "not-awaited",
            Hazard::EarlyWait => "early-wait",
            Hazard::Reuse => "reuse",
            Hazard::NotArrived => "not-arrived",
            Hazard::Control => "control",
            Hazard::Unknown => "unknown",
            Hazard::Unscheduled => "unscheduled",
        }
    }

    /// What it means and how it is cured.
    pub fn explain(self) -> &'static str {
        match self {
            Hazard::Stall => {
                "The later instruction issues before the result of the earlier one is there, and reads or loses a stale value. Raise the \
                 stall counts between them until their sum is what is required."
            }
            Hazard::NoScoreboard => {
                "How long the earlier instruction takes is not fixed, and it sets no scoreboard that is waited for. Give it a write \
                 barrier (for its result) or a read barrier (for its operands), and wait for that in the later one."
            }
            Hazard::NotAwaited => {
                "The earlier instruction signals a scoreboard when it is done, and on some way the later one is reached without a wait \
                 for it. Set the scoreboard's bit in the wait mask of the later instruction, or of one before it."
            }
            Hazard::EarlyWait => {
                "A scoreboard counts up a cycle after the instruction that will signal it issues; a wait that comes sooner sees 0 and goes \
                 on. Put as many cycles between them as are required."
            }
            Hazard::Reuse => {
                "The .reuse flag keeps an operand for the same slot of the next instructions; its register is overwritten before they \
                 read it. Clear the flag."
            }
            Hazard::NotArrived => {
                "A product of a warpgroup reads or overwrites a register that another instruction accessed before, and no WARPGROUP.ARRIVE \
                 (wgmma.fence) stands between the two: the product may see the register as it was. Put one there; no scheduling bit cures it."
            }
            Hazard::Control => "The stall, the yield bit, or a barrier is one that this form cannot have.",
            Hazard::Unknown => {
                "No table knows this word, or what it does, or how long it takes. The kernel may be free of hazards; it cannot be told."
            }
            Hazard::Unscheduled => {
                "The kernel was compiled for a debugger (-G, -O0): every stall count is 0, and no scoreboard is set or waited for. Such code \
                 runs, but what the hardware waits for then is not known here: nothing can be told of the kernel, and it is never \
                 scheduled anew. Compile it without that option."
            }
        }
    }
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Finding {
    /// What.
    pub hazard: Hazard,
    /// How the two instructions depend on each other, where there are two.
    pub kind: Option<Kind>,
    /// Byte offset of the earlier instruction.
    pub earlier: Option<u64>,
    /// Byte offset of the instruction where it goes wrong.
    pub at: u64,
    /// The first register that is at stake.
    pub register: Option<Reg>,
    /// Cycles that are needed.
    pub required: Option<u16>,
    /// Cycles that there are on the shortest way.
    pub found: Option<u16>,
    /// Where the requirement comes from.
    pub source: Option<Source>,
    /// Scoreboards that would tell, as bits; [`GROUPS`] among them.
    pub scoreboards: u8,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#06x}: {}", self.at, self.hazard.name())?;
        if self.hazard == Hazard::Unscheduled {
            f.write_str(": compiled for a debugger, no instruction has scheduling bits of its own")?;
        }
        if let (Some(kind), Some(earlier)) = (self.kind, self.earlier) {
            write!(
                f,
                ": {} on {}, behind {earlier:#06x}",
                kind.name(),
                self.register_name()
            )?;
        }
        if self.scoreboards != 0 {
            let name = |n| {
                if n == GROUPS {
                    "gsb0".to_owned()
                } else {
                    format!("SB{n}")
                }
            };
            let names = (0..=GROUPS).filter(|n| self.scoreboards >> n & 1 == 1).map(name);
            write!(f, ", {}", names.collect::<Vec<_>>().join(" or "))?;
        }
        if let (Some(required), Some(found)) = (self.required, self.found) {
            write!(f, ": {required} cycles required, {found} found")?;
        }
        match self.source {
            Some(source) => write!(f, " ({source})"),
            None => Ok(()),
        }
    }
}

impl Finding {
    /// The register's name, or nothing.
    pub fn register_name(&self) -> String {
        let Some(r) = self.register else {
            return String::new();
        };
        if VIEWS.contains(&r) {
            return "what a fence lets be seen".to_owned();
        }
        let (file, n) = file_of(r);
        format!("{}{n}", file.name())
    }

    fn at(hazard: Hazard, at: u32) -> Finding {
        Finding {
            hazard,
            kind: None,
            earlier: None,
            at: u64::from(at) * 16,
            register: None,
            required: None,
            found: None,
            source: None,
            scoreboards: 0,
        }
    }
}

/// What is wrong with a kernel.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Instructions looked at, padding behind the code excluded.
    pub instructions: usize,
    /// Findings in the order of the code; what nobody knows among them.
    pub findings: Vec<Finding>,
}

impl Report {
    /// Findings that are errors.
    pub fn errors(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|f| f.hazard.is_error())
    }

    /// No hazard, and nothing that nobody knows.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }
}

/// Checks a kernel.
pub fn check(isa: &'static Isa, model: &Model, kernel: &Kernel) -> Report {
    check_code(model, &Code::new(isa, model.classes(), kernel))
}

/// Whether something is wrong with what the rest of a block and the blocks right behind it meet, if no more is in flight at its start than was
/// solved for.
pub(crate) fn goes_wrong_from(model: &Model, code: &Code, solved: &InFlight, from: &Cursor) -> bool {
    let mut wrong = Wrong { model, any: false };
    solved.replay_from(from, code, model, &mut wrong);
    wrong.any
}

/// Checks a kernel that was read already.
pub fn check_code(model: &Model, code: &Code) -> Report {
    check_solved(model, code, &walk::solve(code, model))
}

/// [`check_code`] where it is known what is in flight.
pub(crate) fn check_solved(model: &Model, code: &Code, solved: &InFlight) -> Report {
    found(Found::new(model), code, solved)
}

/// [`check_code`] up to an error: the report is whole if there is none in it.
pub(crate) fn check_for_errors(model: &Model, code: &Code) -> Report {
    let first = Found {
        first: true,
        ..Found::new(model)
    };
    found(first, code, &walk::solve(code, model))
}

fn found(mut found: Found<'_>, code: &Code, solved: &InFlight) -> Report {
    let model = found.model;
    if code.is_unscheduled() {
        return Report {
            instructions: code.steps.len(),
            findings: vec![Finding::at(Hazard::Unscheduled, 0)],
        };
    }
    for (at, step) in code.steps.iter().enumerate() {
        if step.class.is_none() {
            let hazard = if is_illegal_control(code.isa, step.word) {
                Hazard::Control
            } else {
                Hazard::Unknown
            };
            found.findings.push(Finding::at(hazard, at as u32));
        }
    }
    let stale = reuse::stale(code).into_iter().map(|(at, by, register)| Finding {
        earlier: Some(u64::from(by) * 16),
        register: Some(register),
        ..Finding::at(Hazard::Reuse, at)
    });
    found.findings.extend(stale);
    found
        .findings
        .extend(arrive::early(code, model).into_iter().map(|early| Finding {
            earlier: early.earlier.map(|at| u64::from(at) * 16),
            register: Some(early.register),
            // Whether a function that was called accesses it is not known.
            ..Finding::at(
                if early.called {
                    Hazard::Unknown
                } else {
                    Hazard::NotArrived
                },
                early.at,
            )
        }));
    found.wrong = found.findings.iter().any(|f| f.hazard.is_error());
    if !found.is_done() {
        solved.replay(code, model, &mut found);
    }
    found.findings.sort_by_key(|f| (f.at, f.earlier, f.hazard));
    Report {
        instructions: code.steps.len(),
        findings: found.findings,
    }
}

/// Whether a word that no table knows would be known with other scheduling bits.
fn is_illegal_control(isa: &Isa, word: Word) -> bool {
    isa.decode(word).form.is_opaque() && !isa.decode(Control::PLAIN.apply(word)).form.is_opaque()
}

struct Found<'m> {
    model: &'m Model,
    findings: Vec<Finding>,
    seen: HashSet<(u32, u32, Hazard, Option<Kind>)>,
    /// There is an error among them.
    wrong: bool,
    /// One error is enough.
    first: bool,
}

impl<'m> Found<'m> {
    fn new(model: &'m Model) -> Self {
        Found {
            model,
            findings: Vec::new(),
            seen: HashSet::new(),
            wrong: false,
            first: false,
        }
    }

    fn add(&mut self, hazard: Hazard, kind: Option<Kind>, at: u32, flight: &Flight, need: Option<(u16, Source)>) {
        self.wrong |= hazard.is_error();
        if self.seen.insert((at, flight.step, hazard, kind)) {
            self.findings.push(Finding {
                kind,
                earlier: Some(u64::from(flight.step) * 16),
                register: Some(flight.first),
                required: need.map(|n| n.0),
                found: need.map(|_| flight.elapsed),
                source: need.map(|n| n.1),
                scoreboards: flight.release,
                ..Finding::at(hazard, at)
            });
        }
    }
}

impl Listener for Found<'_> {
    fn dependence(&mut self, code: &Code, d: &Dependence) {
        let lack = self.model.lack(code, d);
        let mut add = |hazard, need| self.add(hazard, Some(d.kind), d.at, &d.flight, need);
        match lack {
            Lack::Nothing => {}
            Lack::Cycles(cycles, source) => add(Hazard::Stall, Some((cycles, source))),
            Lack::Wait => add(Hazard::NotAwaited, None),
            Lack::Scoreboard => add(Hazard::NoScoreboard, None),
            Lack::Number => add(Hazard::Unknown, None),
        }
    }

    fn wait(&mut self, _code: &Code, at: u32, flight: &Flight) {
        let needed = signal(flight.release);
        if flight.elapsed < needed {
            self.add(Hazard::EarlyWait, None, at, flight, Some((needed, Source::Signal)));
        }
    }

    fn is_done(&self) -> bool {
        self.first && self.wrong
    }
}

/// Whether there is any error.
struct Wrong<'m> {
    model: &'m Model,
    any: bool,
}

impl Listener for Wrong<'_> {
    fn dependence(&mut self, code: &Code, d: &Dependence) {
        let lack = self.model.lack(code, d);
        self.any |= matches!(lack, Lack::Cycles(..) | Lack::Wait | Lack::Scoreboard);
    }

    fn wait(&mut self, _code: &Code, _at: u32, flight: &Flight) {
        self.any |= flight.elapsed < signal(flight.release);
    }

    fn is_done(&self) -> bool {
        self.any
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plant::{Fault, plants};

    /// Each own kernel as it is, and with each fault that scheduling bits alone can have.
    #[test]
    fn who_looks_for_one_error_finds_one_where_there_is_any() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../tests/kernels/sm_87/own_mul_mat.cubin"
        );
        let bytes = std::fs::read(path).expect("the bundled cubin");
        let image = cubin::Image::parse(&bytes).expect("a cubin");
        let (isa, model) = (
            Isa::for_target(image.target()).expect("embedded"),
            Model::of(image.target()),
        );
        let mut wrong = 0;
        let mut both = |code: &Code| {
            let (whole, first) = (check_code(model, code), check_for_errors(model, code));
            match whole.errors().next() {
                Some(_) => assert!(first.errors().next().is_some(), "{:?}", whole.findings),
                None => assert_eq!(first.findings, whole.findings),
            }
            wrong += usize::from(whole.errors().next().is_some());
        };
        for code in image.codes() {
            let kernel = ir::lift(isa, &ir::Source::from_code(image.target(), code)).expect("it lifts");
            let right = Code::new(isa, model.classes(), &kernel);
            both(&right);
            for plant in plants(&right, model)
                .iter()
                .filter(|p| p.fault != Fault::Swap)
                .step_by(8)
            {
                let mut broken = right.clone();
                let set = |(at, word): &(u32, Word)| broken.set_control(*at, Control::of(*word));
                assert!(plant.words.iter().all(set), "{plant:?}");
                both(&broken);
            }
        }
        assert!(wrong > 30, "{wrong} kernels had an error");
    }
}
