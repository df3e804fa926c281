//! Rows that every warp of a launch shares: immediates, and constants as soon as the launch says what they are.

use std::collections::HashMap;
use std::sync::Arc;

use crate::regs::{LANES, Row};

/// One row of the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Entry {
    Number(u32),
    Constant { bank: u8, offset: u32 },
}

/// Collects the rows while a program is built.
#[derive(Clone, Debug, Default)]
pub struct Pool {
    /// Number of the first row.
    base: u16,
    entries: Vec<Entry>,
    /// Where a run of entries begins.
    known: HashMap<Vec<Entry>, u16>,
}

impl Pool {
    /// Rows of zero that lie side by side, for `RZ` as a wide operand.
    const ZEROS: usize = 8;

    /// A pool whose first row has that number.
    pub fn new(base: u16) -> Self {
        Self {
            base,
            entries: vec![Entry::Number(0); Self::ZEROS],
            known: HashMap::new(),
        }
    }

    /// The first of several rows of zero.
    pub fn zero(&self) -> u16 {
        self.base
    }

    /// Rows that hold these numbers.
    pub fn numbers(&mut self, numbers: &[u32]) -> u16 {
        self.rows(numbers.iter().map(|&n| Entry::Number(n)).collect())
    }

    /// Rows that hold words of a constant bank.
    pub fn constants(&mut self, bank: u8, offset: i64, rows: u16) -> Result<u16, String> {
        let offset = u32::try_from(offset).map_err(|_| "a negative constant address")?;
        let entries = (0..u32::from(rows)).map(|n| Entry::Constant {
            bank,
            offset: offset + 4 * n,
        });
        Ok(self.rows(entries.collect()))
    }

    fn rows(&mut self, entries: Vec<Entry>) -> u16 {
        let next = self.base + self.entries.len() as u16;
        *self.known.entry(entries).or_insert_with_key(|entries| {
            self.entries.extend_from_slice(entries);
            next
        })
    }

    /// The rows, with constants read by `word`.
    pub fn resolve<E>(&self, mut word: impl FnMut(u8, u32) -> Result<u32, E>) -> Result<Arc<[Row]>, E> {
        let row = |e: &Entry| {
            Ok([match *e {
                Entry::Number(n) => n,
                Entry::Constant { bank, offset } => word(bank, offset)?,
            }; LANES])
        };
        self.entries.iter().map(row).collect()
    }
}
