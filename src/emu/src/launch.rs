//! Launches: a grid, parameters, memory in; memory and counts out.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::cta::Block;
use crate::error::{Fault, PrepareError, Space, Trap};
use crate::image::Image;
use crate::memory::{LOCAL_WINDOW, Memory, SHARED_WINDOW};
use crate::parallel;
use crate::program::Program;
use crate::regs::Row;
use crate::timing::Early;
use crate::watch::Watch;

/// What a kernel is launched with.
#[derive(Clone, Debug)]
pub struct Launch {
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub dynamic_shared: u32,
    /// The parameters' bytes.
    pub params: Vec<u8>,
    /// What handles of textures and surfaces stand for ([`Image::handle`]).
    pub images: Vec<Image>,
    /// Bytes of local memory a thread for functions whose frames the file does not know.
    pub stack: u32,
    /// Warp instructions after which a launch is given up.
    pub max_steps: u64,
    /// Instructions that a warp executes before the next one of its block has its turn.
    pub turn: u64,
    /// Cores to run on. Somebody who looks on sees one block after another.
    pub cores: usize,
    /// UR2 at the start. Kernels of newer compilers clear their convergence barriers themselves if it is 0.
    pub initialised: u32,
}

impl Default for Launch {
    fn default() -> Self {
        Self {
            grid: [1; 3],
            block: [32, 1, 1],
            dynamic_shared: 0,
            params: Vec::new(),
            images: Vec::new(),
            stack: 4096,
            max_steps: 1 << 40,
            turn: 20_000,
            cores: 1,
            initialised: 1,
        }
    }
}

/// What a launch that ended says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Warp instructions executed.
    pub steps: u64,
    /// What `printf` printed.
    pub printed: Vec<u8>,
    /// How often an instruction used a register before another one's result was there: by the index of both. Only with a timing.
    pub early: BTreeMap<Early, u64>,
}

/// Why a launch did not end well.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// It could not start.
    #[error(transparent)]
    Prepare(#[from] PrepareError),
    /// It stopped.
    #[error(transparent)]
    Fault(#[from] Box<Fault>),
}

/// Constant banks of a launch.
#[derive(Clone, Debug, Default)]
pub struct Banks {
    list: Vec<(u8, Vec<u8>)>,
}

impl Banks {
    /// Bytes of a bank.
    pub fn read(&self, bank: u8, address: u64, size: u32) -> Result<&[u8], Trap> {
        let misaligned = !address.is_multiple_of(u64::from(size));
        let bytes = self.list.iter().find(|(n, _)| *n == bank).map_or(&[][..], |(_, b)| b);
        let range = usize::try_from(address)
            .ok()
            .and_then(|a| Some(a..a.checked_add(size as usize)?));
        match range.and_then(|r| bytes.get(r)) {
            Some(b) if !misaligned => Ok(b),
            Some(_) => Err(Trap::Misaligned {
                access: "load",
                space: Space::Constant,
                address,
                size,
            }),
            None => Err(Trap::OutOfBounds {
                access: "load",
                space: Space::Constant,
                address,
                size,
                near: format!("; bank {bank} has {} bytes", bytes.len()),
            }),
        }
    }
}

/// A launch with its constants worked out.
pub(crate) struct Prepared<'p> {
    pub block: [u32; 3],
    pub pool: Arc<[Row]>,
    pub banks: Banks,
    pub local_size: usize,
    pub shared_size: usize,
    pub max_steps: u64,
    pub turn: u64,
    pub initialised: u32,
    pub images: &'p [Image],
    _program: &'p Program,
}

/// Bytes of shared memory that any target could give a block.
const MOST_SHARED: u64 = 256 << 10;
/// Threads that a block can have, in all and in each direction.
const MOST_THREADS: u64 = 1024;
const MOST_BLOCK: [u32; 3] = [1024, 1024, 64];
/// Blocks that a grid can have in each direction.
const MOST_GRID: [u32; 3] = [(1 << 31) - 1, 65535, 65535];

impl<'p> Prepared<'p> {
    fn new(program: &'p Program, launch: &'p Launch) -> Result<Self, PrepareError> {
        let other = |what: String| PrepareError::Other {
            kernel: program.name.clone(),
            what,
        };
        if !program.missing.is_empty() {
            return Err(PrepareError::Missing {
                kernel: program.name.clone(),
                list: program.missing.clone(),
            });
        }
        let threads: u64 = launch.block.iter().map(|&n| u64::from(n)).fold(1, u64::saturating_mul);
        if threads == 0 || threads > MOST_THREADS {
            return Err(other(format!(
                "a block of {threads} threads; 1 to {MOST_THREADS} are possible"
            )));
        }
        for (what, size, most) in [("block", launch.block, MOST_BLOCK), ("grid", launch.grid, MOST_GRID)] {
            if size.iter().zip(most).any(|(&n, most)| n == 0 || n > most) {
                return Err(other(format!("a {what} of {size:?}; from 1 to {most:?} is possible")));
            }
        }
        let shared_size = program.shared_size.saturating_add(launch.dynamic_shared.into());
        if shared_size > MOST_SHARED {
            return Err(other(format!(
                "{shared_size} bytes of shared memory; a block can have {MOST_SHARED}"
            )));
        }
        let (_, size) = program.param_bank;
        if (launch.params.len() as u32) < size {
            return Err(other(format!(
                "{} bytes of parameters, the kernel takes {size}",
                launch.params.len()
            )));
        }
        // The file says what the kernel's own frame takes; frames of functions that are called are a guess with room to spare.
        let local = program.local_size + if program.calls { launch.stack.into() } else { 0 };
        let local_size = local.min(1 << 20).next_multiple_of(16);
        let mut list = vec![(0, bank0(program, launch, local_size as u32))];
        list.extend(program.banks.iter().cloned());
        let banks = Banks { list };
        // A constant past the end of its bank is an error only where it is used; such code is never reached.
        let pool = program.pool.resolve(|bank, offset| {
            let bytes = banks.read(bank, offset.into(), 4).map(crate::access::first_word);
            Ok::<_, PrepareError>(bytes.unwrap_or(0))
        })?;
        Ok(Self {
            block: launch.block,
            pool,
            banks,
            local_size: local_size as usize,
            shared_size: shared_size as usize,
            max_steps: launch.max_steps,
            turn: launch.turn.max(1),
            initialised: launch.initialised,
            images: &launch.images,
            _program: program,
        })
    }
}

/// Constant bank 0: what the driver knows, and the parameters.
fn bank0(program: &Program, launch: &Launch, local_size: u32) -> Vec<u8> {
    let driver = program.driver;
    let at = program.param_bank.0 as usize;
    let mut bank = vec![0; (at + launch.params.len()).max(driver.params as usize)];
    let mut put = |offset: u32, bytes: &[u8]| {
        let offset = offset as usize;
        if let Some(to) = bank.get_mut(offset..offset + bytes.len()) {
            to.copy_from_slice(bytes);
        }
    };
    for n in 0..3 {
        put(driver.block + 4 * n, &launch.block[n as usize].to_le_bytes());
        put(driver.grid + 4 * n, &launch.grid[n as usize].to_le_bytes());
    }
    put(driver.shared_window, &SHARED_WINDOW.to_le_bytes());
    put(driver.local_window, &LOCAL_WINDOW.to_le_bytes());
    put(driver.stack, &local_size.to_le_bytes());
    put(at as u32, &launch.params);
    bank
}

/// The same watcher for a while.
fn shorter<'s>(watch: &'s mut Option<&mut (dyn Watch + '_)>) -> Option<&'s mut (dyn Watch + 's)> {
    match watch {
        Some(w) => Some(&mut **w),
        None => None,
    }
}

/// Runs a kernel: block after block, in the order of their indices, so that equal launches give equal memory; on several cores where that makes
/// no difference.
pub fn launch(
    program: &Program,
    launch: &Launch,
    memory: &mut Memory,
    mut watch: Option<&mut (dyn Watch + '_)>,
) -> Result<Outcome, LaunchError> {
    let prepared = Prepared::new(program, launch)?;
    for buffer in &program.globals {
        memory.insert(buffer);
    }
    if watch.is_none()
        && let Some(outcome) = parallel::run(program, &prepared, launch.grid, launch.cores, memory)
    {
        return Ok(outcome);
    }
    let mut outcome = Outcome::default();
    for n in 0..launch.grid.iter().map(|&n| u64::from(n)).product() {
        let ctaid = parallel::block(launch.grid, n);
        if let Some(w) = watch.as_deref_mut() {
            w.block(ctaid);
        }
        let block = Block::new(program, &prepared, ctaid);
        block.run(program, &prepared, memory, shorter(&mut watch), &mut outcome)?;
    }
    Ok(outcome)
}
