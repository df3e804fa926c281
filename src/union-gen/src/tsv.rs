//! The one reader and writer of tables: what a row is, its cells, its file. The rows themselves are in [`crate::family`] and
//! [`crate::hand`].

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// What is wrong with a table, and where.
#[derive(Debug, thiserror::Error)]
pub enum TsvError {
    /// The file cannot be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A row does not fit the schema.
    #[error("{}:{line}: {message} (the schema is opcodes/README.md)", path.display())]
    Row {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// What was expected.
        message: String,
    },
}

/// One row type of one file.
pub trait Row: Sized {
    /// File name inside the family's folder.
    const FILE: &'static str;
    /// Column names; the number of cells in a row.
    const COLUMNS: &'static [&'static str];
    /// Reads the cells; there are exactly `COLUMNS.len()` of them. The error says what was expected.
    fn from_cells(cells: &[&str]) -> Result<Self, String>;
    /// The cells as text.
    fn to_cells(&self) -> Vec<String>;
}

pub(crate) fn cell<T: FromStr>(column: &str, text: &str) -> Result<T, String>
where
    T::Err: fmt::Display,
{
    text.parse().map_err(|e| format!("column {column}: `{text}`: {e}"))
}

pub(crate) fn word(column: &str, text: &str) -> Result<u128, String> {
    if text.len() != 32 {
        return Err(format!("column {column}: `{text}` is not 32 hex digits"));
    }
    u128::from_str_radix(text, 16).map_err(|e| format!("column {column}: `{text}`: {e}"))
}

pub(crate) fn flag(column: &str, text: &str) -> Result<bool, String> {
    match text {
        "0" => Ok(false),
        "1" => Ok(true),
        _ => Err(format!("column {column}: `{text}` is neither 0 nor 1")),
    }
}

/// `-` means empty.
pub(crate) fn text(cell: &str) -> String {
    if cell == "-" { String::new() } else { cell.to_owned() }
}

pub(crate) fn dash(s: &str) -> String {
    if s.is_empty() { "-".to_owned() } else { s.to_owned() }
}

/// Reads one file of rows, for [`Family`] and for the hand-written tables beside it.
pub fn read<R: Row>(dir: &Path) -> Result<Vec<R>, TsvError> {
    let path = dir.join(R::FILE);
    let content = fs::read_to_string(&path).map_err(|source| TsvError::Io {
        path: path.clone(),
        source,
    })?;
    let fail = |line: usize, message: String| TsvError::Row {
        path: path.clone(),
        line,
        message,
    };
    let mut rows = Vec::new();
    for (i, line) in content.lines().enumerate() {
        if i == 0 {
            let header = format!("#{}", R::COLUMNS.join("\t"));
            if line != header {
                return Err(fail(1, format!("the header must be `{header}`")));
            }
            continue;
        }
        let cells: Vec<&str> = line.split('\t').collect();
        if cells.len() != R::COLUMNS.len() {
            return Err(fail(
                i + 1,
                format!("{} cells, expected {}", cells.len(), R::COLUMNS.len()),
            ));
        }
        rows.push(R::from_cells(&cells).map_err(|m| fail(i + 1, m))?);
    }
    Ok(rows)
}

/// Writes one file of rows in the order given.
pub fn write<R: Row>(dir: &Path, rows: &[R]) -> Result<(), TsvError> {
    let mut out = format!("#{}\n", R::COLUMNS.join("\t"));
    for row in rows {
        out.push_str(&row.to_cells().join("\t"));
        out.push('\n');
    }
    let path = dir.join(R::FILE);
    fs::write(&path, out).map_err(|source| TsvError::Io { path, source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::family::MatchRow;

    #[test]
    fn a_bad_row_names_file_and_line() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("match.tsv"), "#form\tmask\tvalue\nX\t0\t0\n").unwrap();
        let error = read::<MatchRow>(dir.path()).unwrap_err().to_string();
        assert!(error.contains("match.tsv:2: column mask"), "{error}");
    }
}
