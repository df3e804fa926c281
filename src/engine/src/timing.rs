//! The latency model as the emulator asks for it, so that neither room needs to know the other.

use emu::timing::{Facts, Latencies, Role, Touch, Until};
use isa::{Inst, Isa, Latency, Target};
use sched::class::ClassId;
use sched::code::{self, Port, file_of};
use sched::model::Need;
use sched::walk::{Kind, Rules};
use sched::{Model, SIGNAL};

/// The latency model of a target.
pub struct Timing {
    isa: &'static Isa,
    model: &'static Model,
}

impl Timing {
    /// That of the target whose tables these are.
    pub fn new(isa: &'static Isa, target: Target) -> Self {
        Self {
            isa,
            model: Model::of(target),
        }
    }

    fn need(&self, kind: Kind, earlier: Role, later: Role) -> Until {
        let ((_, a, latency), (port, b, _)) = (unpack(earlier), unpack(later));
        match self.model.need(kind, port, a, b, latency) {
            Need::Cycles(n, _) => Until::Cycles(n),
            Need::Scoreboard => Until::Scoreboard,
            Need::Unknown => Until::Unknown,
        }
    }
}

const LATENCIES: [Latency; 4] = [Latency::None, Latency::Fixed, Latency::Scoreboard, Latency::Either];

fn pack(port: Port, class: ClassId, latency: Latency) -> Role {
    let latency = LATENCIES.iter().position(|l| *l == latency).unwrap_or(0) as u32;
    Role(port as u32 | u32::from(class.0) << 8 | latency << 16)
}

fn unpack(role: Role) -> (Port, ClassId, Latency) {
    let [port, class, latency, _] = role.0.to_le_bytes();
    (
        Port::ALL[usize::from(port)],
        ClassId(class),
        LATENCIES[usize::from(latency)],
    )
}

impl Latencies for Timing {
    fn facts(&self, inst: Inst) -> Facts {
        let Some(class) = self.model.classes().of(self.isa, inst) else {
            return Facts::default();
        };
        let latency = self.isa.semantics(inst).latency;
        let (mut reads, mut writes) = (Vec::new(), Vec::new());
        code::touches(self.isa, self.model.classes(), inst, &mut reads, &mut writes);
        let touch = |t: &code::Touch| {
            let (file, first) = file_of(t.first);
            Touch {
                file,
                first,
                width: t.width,
                role: pack(t.port, t.class, latency),
            }
        };
        Facts {
            reads: reads.iter().map(touch).collect(),
            writes: writes.iter().map(touch).collect(),
            role: Some(pack(Port::R, class, latency)),
        }
    }

    fn read(&self, writer: Role, reader: Role) -> Until {
        self.need(Kind::Raw, writer, reader)
    }

    fn overwrite(&self, earlier: Role, later: Role) -> Until {
        self.need(Kind::Waw, earlier, later)
    }

    fn in_order(&self, earlier: Role, later: Role) -> bool {
        self.model.in_order(unpack(earlier).1, unpack(later).1).1
    }

    fn signal(&self) -> u16 {
        SIGNAL
    }
}
