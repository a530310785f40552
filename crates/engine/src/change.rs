//! Changes: the only input of a table.

use std::{collections::BTreeMap, sync::Arc};

use crate::{Row, Schema, Value};

/// Changes to one table. They become visible together with the other changes of their batch, and durable before
/// the acknowledgement.
#[derive(Clone, Debug)]
pub struct TableChanges {
    /// The table's name.
    pub table: Arc<str>,
    /// The changes in order; if a key has several, the last one counts.
    pub changes: Vec<Change>,
}

/// A change of one row.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Inserts or replaces the row (upsert).
    Put(Row),
    /// Inserts the row. If its key exists, the whole batch is rejected ([`crate::Error::Exists`]). Earlier changes
    /// of the batch to the key are taken into account.
    Insert(Row),
    /// Deletes the row with this key (the primary key's values, in order), if it exists.
    Delete(Row),
}

/// An atomic batch of changes.
#[derive(Clone, Debug, Default)]
pub struct ChangeBatch {
    /// The tables' changes.
    pub tables: Vec<TableChanges>,
    /// Names and positions of sources, stored in the same commit (a GTID set, a line number of an import, the
    /// progress of a copy). Names not listed keep their positions; an empty position removes its name.
    pub positions: Vec<(String, String)>,
}

/// A change of table definitions. A list of them is one atomic step.
#[derive(Clone, Debug)]
pub enum Definition {
    /// Requires that no table has this name. Otherwise nothing of the list is done:
    /// [`Error::Taken`](crate::Error::Taken).
    Vacant(String),
    /// Creates a table. Does nothing if it exists with the same definition, apart from what only SQL declares of it;
    /// a different definition is a conflict.
    Create(Schema),
    /// Drops the table and its rows.
    Drop(String),
    /// Renames a table. A table that has the new name is dropped.
    Rename {
        /// The name of a table.
        from: String,
        /// The new name of the table.
        to: String,
    },
    /// Changes the definition of the table with the schema's name; its rows stay as they are. Columns and text
    /// indexes are identified by their ids. Columns can be renamed, moved, dropped, added, widened, made nullable or
    /// indexed; text indexes can be dropped and added; the primary key cannot change. Changes of what only SQL
    /// declares of the table cost nothing. The table is indexed again, while writes wait, if segments cannot serve
    /// the new definition: an indexed column with a value for old rows, a newly indexed column or text, another
    /// condition on rows.
    Alter {
        /// The new definition.
        schema: Schema,
        /// Ids of new columns, with their values in rows written before; NULL by default.
        fills: Vec<(u32, Value)>,
    },
}

/// A snapshot of the stored positions of all sources. Cloning copies one pointer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourcePositions(Arc<BTreeMap<Arc<str>, Arc<str>>>);

impl SourcePositions {
    /// The position of a source.
    pub fn get(&self, source: &str) -> Option<&str> {
        self.0.get(source).map(|position| &**position)
    }

    /// Names and positions, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(source, position)| (&**source, &**position))
    }

    /// A copy with the named positions replaced; an empty position removes its name.
    pub(crate) fn with<'p>(&self, changed: impl Iterator<Item = (&'p String, &'p String)>) -> Self {
        let mut all = Arc::clone(&self.0);
        for (source, position) in changed {
            let all = Arc::make_mut(&mut all);
            match position.as_str() {
                "" => _ = all.remove(source.as_str()),
                position => _ = all.insert(source.as_str().into(), position.into()),
            }
        }
        Self(all)
    }

    /// Whether the source has the same position as in `earlier`. Compares pointers, so false does not mean that it
    /// has changed.
    pub(crate) fn is_still(&self, earlier: &Self, source: &str) -> bool {
        match (self.0.get(source), earlier.0.get(source)) {
            (Some(now), Some(then)) => Arc::ptr_eq(now, then),
            (None, None) => true,
            _ => false,
        }
    }
}

/// The position of a batch in the database's change log: 1, 2, 3 …
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Position(pub u64);
