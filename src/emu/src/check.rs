//! The memory checker: reads of what nobody wrote, and accesses to shared memory that nothing orders.

use std::collections::{BTreeMap, HashMap};

use crate::error::{Space, Trap};
use crate::memory::Memory;
use crate::program::Program;
use crate::watch::{Access, Doing, Watch};

/// Something that a kernel should not do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What it is.
    pub what: &'static str,
    /// The memory.
    pub space: Space,
    /// Address in the space.
    pub address: u64,
    /// Index of the instruction that was found at it.
    pub pc: u32,
    /// The instruction at the other end of a race.
    pub other: Option<u32>,
    /// Block.
    pub ctaid: [u32; 3],
    /// Warp and lane.
    pub thread: (u32, u32),
    /// How often the same pair of instructions did it.
    pub count: u64,
}

impl Finding {
    /// In words.
    pub fn text(&self, program: &Program) -> String {
        let place = |pc| {
            let (section, offset) = program.place(pc);
            format!("{section} at {offset:#06x} `{}`", program.text(pc))
        };
        let [x, y, z] = self.ctaid;
        let (warp, lane) = self.thread;
        let other = self.other.map_or(String::new(), |pc| format!(", with {}", place(pc)));
        format!(
            "{}: {}{other}; {} address {:#x}, block ({x},{y},{z}), warp {warp}, lane {lane}; {} times",
            self.what,
            place(self.pc),
            self.space,
            self.address,
            self.count
        )
    }
}

/// What is known about one byte of shared memory since the last barrier of the block.
#[derive(Clone, Copy, Default)]
struct Shadow {
    written: bool,
    /// Warp + 1 and instruction of the last write.
    writer: (u32, u32),
    writer_is_atomic: bool,
    /// Warp + 1 and instruction of the last read by another warp than the writer's.
    reader: (u32, u32),
}

/// A buffer whose first contents are not the caller's.
struct Region {
    start: u64,
    written: Vec<bool>,
}

/// Looks on and collects findings.
#[derive(Default)]
pub struct Checker {
    findings: BTreeMap<(&'static str, u32, Option<u32>), Finding>,
    regions: Vec<Region>,
    shared: Vec<Shadow>,
    local: HashMap<(u32, u32), Vec<bool>>,
}

impl Checker {
    /// A checker; `unwritten` says by name which buffers hold nothing yet.
    pub fn new(memory: &Memory, unwritten: impl Fn(&str) -> bool) -> Self {
        let regions = memory.buffers().iter().filter(|b| unwritten(&b.name)).map(|b| Region {
            start: b.address,
            written: vec![false; b.data.len()],
        });
        Self {
            regions: regions.collect(),
            ..Self::default()
        }
    }

    /// What was found, by kind and instruction.
    pub fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.findings.values()
    }

    fn found(&mut self, what: &'static str, a: &Access, other: Option<u32>) {
        let finding = self.findings.entry((what, a.pc, other)).or_insert(Finding {
            what,
            space: a.space,
            address: a.address,
            pc: a.pc,
            other,
            ctaid: a.ctaid,
            thread: (a.warp, a.lane),
            count: 0,
        });
        finding.count += 1;
    }

    fn global(&mut self, a: &Access) {
        let n = self.regions.partition_point(|r| r.start <= a.address);
        let Some(region) = n.checked_sub(1).and_then(|n| self.regions.get_mut(n)) else {
            return;
        };
        let at = (a.address - region.start) as usize;
        let Some(bytes) = region.written.get_mut(at..at + a.size as usize) else {
            return;
        };
        let unwritten = bytes.iter().any(|w| !w);
        if a.doing != Doing::Load {
            bytes.fill(true);
        }
        if unwritten && a.doing != Doing::Store {
            self.found(UNWRITTEN, a, None);
        }
    }

    fn local(&mut self, a: &Access) {
        let bytes = self.local.entry((a.warp, a.lane)).or_default();
        let end = a.address as usize + a.size as usize;
        if bytes.len() < end {
            bytes.resize(end, false);
        }
        let bytes = &mut bytes[a.address as usize..end];
        match a.doing {
            Doing::Load if bytes.iter().any(|w| !w) => self.found(UNWRITTEN, a, None),
            Doing::Load => {}
            _ => bytes.fill(true),
        }
    }

    fn shared(&mut self, a: &Access) {
        let end = a.address as usize + a.size as usize;
        if self.shared.len() < end {
            self.shared.resize(end, Shadow::default());
        }
        let me = a.warp + 1;
        let (mut unwritten, mut race) = (false, None);
        for s in &mut self.shared[a.address as usize..end] {
            let atomic = a.doing == Doing::Atomic;
            let theirs = |(warp, pc): (u32, u32)| (warp != 0 && warp != me).then_some(pc);
            if let Some(pc) = theirs(s.writer).filter(|_| !(atomic && s.writer_is_atomic)) {
                race = Some(pc);
            }
            if a.doing != Doing::Load {
                race = race.or(theirs(s.reader));
                s.writer = (me, a.pc);
                s.writer_is_atomic = atomic;
            }
            unwritten |= !s.written && a.doing != Doing::Store;
            if a.doing == Doing::Load {
                s.reader = (me, a.pc);
            } else {
                s.written = true;
            }
        }
        if unwritten {
            self.found(UNWRITTEN, a, None);
        }
        if race.is_some() {
            self.found(RACE, a, race);
        }
    }
}

const UNWRITTEN: &str = "read of memory that nobody wrote";
const RACE: &str = "race between warps";

impl Watch for Checker {
    fn access(&mut self, access: &Access) -> Result<(), Trap> {
        // What is out of bounds is an error of its own; its size could be anything.
        const WINDOW: u64 = 1 << 24;
        match access.space {
            Space::Global => self.global(access),
            _ if access.address >= WINDOW => {}
            Space::Shared => self.shared(access),
            _ => self.local(access),
        }
        Ok(())
    }

    fn barrier(&mut self, _ctaid: [u32; 3]) {
        for s in &mut self.shared {
            *s = Shadow {
                written: s.written,
                ..Shadow::default()
            };
        }
    }

    fn block(&mut self, _ctaid: [u32; 3]) {
        self.shared.clear();
        self.local.clear();
    }
}
