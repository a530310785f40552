//! A transaction's changes as part of the tables that it reads, for statements to which the rows alone are not enough:
//! the weights of ranked search depend on the words of all rows.

use std::sync::{Arc, OnceLock};

use remora_engine::{ChangeBatch, TableChanges};

use super::Overlay;
use crate::{Result, catalog::Reader, error::from_engine};

/// The changes of a transaction at one moment. They are indexed when they are first needed, and then serve all
/// statements until the next change.
pub(crate) struct OwnChanges {
    tables: Vec<(Arc<str>, Arc<Overlay>)>,
    snapshot: Reader,
    indexed: OnceLock<Reader>,
}

impl OwnChanges {
    /// The changes of these tables since a snapshot.
    pub(super) fn new(tables: Vec<(Arc<str>, Arc<Overlay>)>, snapshot: Reader) -> Self {
        Self { tables, snapshot, indexed: OnceLock::new() }
    }

    /// The statement's reader, with the changes. Cost of the first call: encodes and indexes the changed rows, as the
    /// commit does.
    ///
    /// # Errors
    /// Those with which a commit would refuse the changes, except conflicts.
    pub(crate) fn seen_by(&self, reader: &Reader) -> Result<Reader> {
        if let Some(indexed) = self.indexed.get() {
            return Ok(reader.reading_as(indexed));
        }
        let table = |(table, overlay): &(Arc<str>, Arc<Overlay>)| TableChanges {
            table: Arc::clone(table),
            changes: overlay.changes(),
        };
        let tables = self.tables.iter().map(table).collect();
        let batch = ChangeBatch { tables, positions: Vec::new() };
        let indexed = self.snapshot.with_changes(batch).map_err(|error| from_engine(&error))?;
        Ok(reader.reading_as(self.indexed.get_or_init(|| indexed)))
    }
}
