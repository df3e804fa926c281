//! What differs between generations for all kernels: what the driver puts into constant bank 0 below the parameters, as the code that compilers
//! make for built-in variables shows, and what barriers mean.

use isa::Target;

/// Byte offsets in constant bank 0.
#[derive(Debug)]
pub struct Driver {
    /// Block dimensions, three words.
    pub block: u32,
    /// Grid dimensions, three words.
    pub grid: u32,
    /// Generic address of shared memory, two words.
    pub shared_window: u32,
    /// Generic address of local memory, two words.
    pub local_window: u32,
    /// Where the stack begins, in local memory.
    pub stack: u32,
    /// What loads and stores of global memory are told about caching, two words; nothing here needs it.
    pub descriptor: u32,
    /// Parameters, where the kernel does not say.
    pub params: u32,
    /// `BSYNC` has modifiers that say whether lanes must meet there.
    pub barriers_say_if_lanes_meet: bool,
}

/// sm_70 to sm_89.
const VOLTA: Driver = Driver {
    block: 0x0,
    grid: 0xc,
    shared_window: 0x18,
    local_window: 0x20,
    stack: 0x28,
    descriptor: 0x118,
    params: 0x160,
    barriers_say_if_lanes_meet: false,
};

/// sm_90.
const HOPPER: Driver = Driver {
    descriptor: 0x208,
    params: 0x210,
    ..VOLTA
};

/// sm_100 and up. Shared memory's window is where the first ones have it, next to local memory's; compilers read it from `SR_SWINHI`.
const BLACKWELL: Driver = Driver {
    block: 0x360,
    grid: 0x370,
    shared_window: 0x2f0,
    local_window: 0x2f8,
    stack: 0x37c,
    descriptor: 0x358,
    params: 0x380,
    barriers_say_if_lanes_meet: true,
};

impl Driver {
    /// The layout for a target, where it is known.
    pub fn of(target: Target) -> Option<&'static Self> {
        match target.number() {
            70..90 => Some(&VOLTA),
            90 => Some(&HOPPER),
            100..130 => Some(&BLACKWELL),
            _ => None,
        }
    }

    /// Whether a word of bank 0 is one that a launch can fill.
    pub fn knows(&self, offset: u32) -> bool {
        let within = |start: u32, words: u32| (start..start + 4 * words).contains(&offset);
        within(self.block, 3)
            || within(self.grid, 3)
            || within(self.shared_window, 2)
            || within(self.local_window, 2)
            || within(self.stack, 1)
            || within(self.descriptor, 2)
            || offset >= self.params
    }
}
