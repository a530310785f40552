//! A transaction's own changes, read together with its snapshot.
//!
//! A transaction writes nothing before its commit. For a read that needs more than the rows themselves (a ranked search
//! counts the words of the whole table), the changes are indexed as at the commit, and the reader's tables get them as
//! the newest segments:
//!
//! ```text
//! segments  [a] [b] [c]   rows deleted or replaced are tombstones      [a'] [b] [c'] [own rows]
//! rows      the store     own rows and deletions come first            own > the store
//! ```
//! So every read answers as it would after the commit, and no read path knows of transactions.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use crate::{
    ChangeBatch, Position, Reader, Result, Row,
    encode::RowFormat,
    snapshot::TableView,
    storage::{
        rows::RowReader,
        store::{RowVersion, StoredBytes},
    },
    write::{IndexedGroup, RowColumns, prepare},
};

/// The number of readers with changes made so far: each has its own version of the changed tables.
static MADE: AtomicU64 = AtomicU64::new(0);

impl Reader {
    /// The snapshot with these changes, as every reader would see it if they were committed now. The changes are those
    /// of a transaction with this reader's definitions; their rows include the values of hidden columns. Cost: checks,
    /// encodes and indexes the changed rows, and looks up each changed key in every segment.
    ///
    /// Changed tables have a [`TableVersion`](crate::TableVersion) that no other reader has. The reader's position stays.
    ///
    /// # Errors
    /// Those of [`Database::apply`](crate::Database::apply) for a batch that is refused before it is written.
    pub fn with_changes(&self, batch: ChangeBatch) -> Result<Self> {
        let mut prepared = prepare(batch, RowColumns::Computed, self.snapshot(), self.shared())?;
        prepared.wait_until_indexed()?;
        let prepared = [prepared];
        let group = IndexedGroup::new(&prepared)?;
        let mut tables = self.snapshot().tables.clone();
        for view in tables.values_mut() {
            let Some(runs) = group.tables.get(&view.number) else { continue };
            let changes = prepared.iter().flat_map(|batch| &batch.tables);
            let changes = changes.filter(|table| table.number == view.number);
            let own = changes.flat_map(|table| &table.changes);
            let own = own.map(|change| (change.key.clone(), change.stored.clone()));
            let rows = OwnRows {
                own: own.collect(),
                below: Arc::clone(&view.rows),
                format: Arc::clone(&view.format),
            };
            let mut changed = TableView::clone(view);
            runs.apply_to(&mut changed.segments, &view.schema);
            changed.rows = Arc::new(rows);
            changed.changed = Position(u64::MAX - MADE.fetch_add(1, Ordering::Relaxed));
            *view = Arc::new(changed);
        }
        Ok(self.at(Arc::new(self.snapshot().with_tables(tables))))
    }
}

/// A transaction's own rows of a table, encoded, over those of its snapshot.
struct OwnRows {
    /// By encoded key; `None` is a deletion.
    own: BTreeMap<Vec<u8>, Option<StoredBytes>>,
    below: Arc<dyn RowReader>,
    format: Arc<RowFormat>,
}

impl RowReader for OwnRows {
    fn get(
        &self,
        key: &[u8],
        version: Option<RowVersion>,
        wanted: &dyn Fn(usize) -> bool,
    ) -> Result<Option<Row>> {
        match self.own.get(key) {
            None => self.below.get(key, version, wanted),
            Some(own) => {
                own.as_ref().map(|row| self.format.decode_columns(row, wanted)).transpose()
            }
        }
    }

    fn stored(&self, key: &[u8]) -> Result<Option<StoredBytes>> {
        match self.own.get(key) {
            None => self.below.stored(key),
            Some(own) => Ok(own.clone()),
        }
    }

    fn scan(&self, from: &[u8], visit: &mut dyn FnMut(&[u8], Row) -> Result<bool>) -> Result<()> {
        let mut own = self.own.range(from.to_vec()..).peekable();
        let mut continues = true;
        self.below.scan(from, &mut |key, row| {
            while let Some((before, stored)) = own.next_if(|(own, _)| own.as_slice() < key) {
                if let Some(stored) = stored
                    && !visit(before, self.format.decode(stored)?)?
                {
                    continues = false;
                    return Ok(false);
                }
            }
            continues = match own.next_if(|(own, _)| own.as_slice() == key) {
                None => visit(key, row)?,
                Some((_, None)) => true,
                Some((_, Some(stored))) => visit(key, self.format.decode(stored)?)?,
            };
            Ok(continues)
        })?;
        while continues && let Some((key, stored)) = own.next() {
            if let Some(stored) = stored {
                continues = visit(key, self.format.decode(stored)?)?;
            }
        }
        Ok(())
    }
}
