//! Where `-plr` is not believed. Each rule is explained in `opcodes/README.md`.

use super::model::{Model, RegField};
use super::table::Table;

/// The table as it is written.
pub fn corrected(_model: &Model, _field: &RegField, table: &Table) -> Table {
    table.clone()
}
