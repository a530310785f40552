//! Changes: the only input of a table.

use std::{collections::BTreeMap, sync::Arc};

use crate::{Row, Schema, Value};

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
    /// The row is now this, and its key was not there: else the batch is refused as a whole
    /// ([`crate::Error::Exists`]). What the batch itself did to the key before counts.
    Insert(Row),
    /// The row with this key (the primary key's values, in order) is gone.
    Delete(Row),
}

/// A batch that is applied whole or not at all.
#[derive(Clone, Debug, Default)]
pub struct ChangeBatch {
    /// The tables' changes.
    pub tables: Vec<TableChanges>,
    /// Names of sources and their positions, stored in the same commit (a GTID set, a line number
    /// of an import, how far a copy is). Those that are not named stay as they are; an empty
    /// position takes its name away.
    pub positions: Vec<(String, String)>,
}

/// A change of which tables there are or what they are. A list of them is one atomic step.
#[derive(Clone, Debug)]
pub enum Definition {
    /// No table has this name by now; [`Error::Taken`](crate::Error::Taken) and nothing of the list
    /// if one has.
    Vacant(String),
    /// A new table; nothing happens if it is there with the same definition, whatever SQL says
    /// of it, and another one is a conflict.
    Create(Schema),
    /// The table of this name and its rows are gone.
    Drop(String),
    /// The table `from` is now named `to`; one that had that name before is dropped.
    Rename {
        /// The name of a table.
        from: String,
        /// Its new name.
        to: String,
    },
    /// The table of the schema's name has this definition from now on, and its rows stay as they
    /// are. Columns and text indexes are known by their numbers: columns may be renamed, moved,
    /// dropped, added, widened, made nullable or indexed, text indexes dropped and added; the
    /// primary key stays. What SQL says of it may change as well, at no cost. What the segments cannot answer as they are costs a new indexing of the
    /// table, for as long as which writes wait: an indexed column with a value for the rows that
    /// lack it, a column or a text that is newly indexed, other required rows.
    Alter {
        /// The new definition.
        schema: Schema,
        /// Numbers of new columns and what the rows hold there that were written before: NULL
        /// where nothing is said.
        fills: Vec<(u32, Value)>,
    },
}

/// The stored positions of all sources at one moment. A clone costs a pointer.
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

    /// These with the named ones replaced; an empty position takes its name away.
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

    /// Whether the source stands where it stood in `earlier`, told by the pointers: true only if
    /// it does.
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
