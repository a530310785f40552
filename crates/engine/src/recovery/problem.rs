//! Problems of a data directory that recovery or a check found.

use std::fmt;

use crate::storage::rows::DAMAGED_ROWS;

/// One problem of a data directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The table, if the problem concerns one.
    pub table: Option<String>,
    /// What is wrong, and in which file.
    pub what: String,
    /// Whether the next start or a repair rebuilds it from the rows. If not, only a backup or the
    /// table's source can restore it.
    pub can_be_rebuilt: bool,
}

impl Problem {
    pub(crate) fn of_database(what: String) -> Self {
        Self { table: None, what, can_be_rebuilt: true }
    }

    pub(crate) fn of_table(table: &str, what: String) -> Self {
        Self { table: Some(table.to_owned()), what, can_be_rebuilt: true }
    }

    /// A problem that nothing can rebuild.
    pub(crate) fn lost(table: Option<&str>, what: String) -> Self {
        let what = what.strip_suffix(DAMAGED_ROWS).map(str::to_owned).unwrap_or(what);
        Self { table: table.map(str::to_owned), what, can_be_rebuilt: false }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.table {
            Some(table) => write!(out, "table {table:?}: {}", self.what),
            None => out.write_str(&self.what),
        }
    }
}
