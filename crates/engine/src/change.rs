//! Changes: the only thing that enters a table.

use std::sync::Arc;

use crate::Row;

/// Changes to one table that become visible together with the others of their batch, and durable
/// before the acknowledgement.
#[derive(Clone, Debug)]
pub struct TableChanges {
    /// The table's name.
    pub table: Arc<str>,
    /// What happens to it, in order; of several changes to one key the last one stands.
    pub changes: Vec<Change>,
}

/// What happens to one row.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// The row is now this, whether its key was there or not.
    Put(Row),
    /// The row with this key (the primary key's values, in order) is gone.
    Delete(Row),
}

/// A batch that is applied whole or not at all.
#[derive(Clone, Debug, Default)]
pub struct ChangeBatch {
    /// The tables' changes.
    pub tables: Vec<TableChanges>,
    /// A name and a position of the source, stored in the same commit (a GTID set, a line number
    /// of an import). `None` leaves what is stored.
    pub source: Option<(String, String)>,
}

/// The position of a batch in the database's change log: 1, 2, 3 …
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Position(pub u64);
