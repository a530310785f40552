//! Transactions: a snapshot to read, and a batch that is applied only if no other writer was first.
//!
//! This is optimistic snapshot isolation. Nothing is locked: a transaction's writes stay with its owner until the
//! commit. The writer thread refuses the commit if one of its keys was written after the snapshot (see
//! `write::conflict`). Rows that were only read do not count, unless they are protected.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    ChangeBatch, Error, Pending, Position, Reader, RequestPart, Result, Value,
    encode::encode_key,
    shared::{CommitPrecondition, DatabaseState, Job, ProtectedKeys},
    write::{RowColumns, prepare},
};

/// An open transaction. Dropping it rolls it back. While one is open, the writer records every written key, up to a
/// million; beyond that the transaction must start again.
pub struct Transaction {
    reader: Reader,
    protected: BTreeMap<u32, ProtectedKeys>,
    protected_count: usize,
}

impl Transaction {
    pub(crate) fn begin(shared: &Arc<DatabaseState>) -> Self {
        let snapshot = shared.transactions.begin(&shared.published);
        let reader = Reader::of(shared, snapshot);
        Self { reader, protected: BTreeMap::new(), protected_count: 0 }
    }

    /// A reader of the transaction's snapshot, taken when it began. Its own changes are not in it.
    pub fn reader(&self) -> &Reader {
        &self.reader
    }

    /// Protects a key, with or without a row: the commit fails if another writer changed it since the snapshot. Of
    /// two transactions that protect the same key and have changes, only the first one commits.
    ///
    /// # Errors
    /// - [`Error::NotFound`]: there is no such table.
    /// - [`Error::Request`]: the key cannot be one of the table's, or as many rows are protected as
    ///   [`Options::max_batch_changes`](crate::Options::max_batch_changes) allows.
    /// - [`Error::Closed`]: the database was closed.
    pub fn protect(&mut self, table: &str, key: &[Value]) -> Result<()> {
        let most = self.reader.shared().options.max_batch_changes;
        if self.protected_count >= most {
            let message = format!("a transaction can protect at most {most} rows");
            return Err(Error::request(RequestPart::Batch, message));
        }
        let view = self.reader.table(table)?;
        if view.schema.is_distributed() {
            let message = format!(
                "rows of table {table:?} cannot be protected: it is distributed over {}",
                view.schema.parts().join(", ")
            );
            return Err(Error::request(RequestPart::Key, message));
        }
        let key = encode_key(&view.schema, key)?;
        let protected = self.protected.entry(view.number).or_insert_with(|| ProtectedKeys {
            number: view.number,
            schema: Arc::clone(&view.schema),
            defined: view.defined,
            keys: Vec::new(),
        });
        protected.keys.push(key);
        self.protected_count += 1;
        Ok(())
    }

    /// Applies the batch as [`crate::Database::apply`] does, if since the snapshot no key of it and no protected key
    /// was written and none of its tables was altered. A batch without changes costs nothing unless keys are
    /// protected.
    ///
    /// # Errors
    /// [`Error::Conflict`] if that is not so, or if too many keys were written to tell. Nothing is applied then;
    /// start again. Otherwise those of [`crate::Database::apply`].
    pub fn commit(self, batch: ChangeBatch) -> Result<Position> {
        self.commit_rows(batch, RowColumns::Visible)
    }

    /// As [`Transaction::commit`], for a batch whose rows include the values of hidden columns (those of key
    /// expressions), computed by the caller.
    ///
    /// # Errors
    /// Those of [`Transaction::commit`].
    pub fn commit_computed(self, batch: ChangeBatch) -> Result<Position> {
        self.commit_rows(batch, RowColumns::Computed)
    }

    fn commit_rows(mut self, batch: ChangeBatch, row_columns: RowColumns) -> Result<Position> {
        let shared = Arc::clone(self.reader.shared());
        shared.check_open()?;
        let mut prepared = prepare(batch, row_columns, self.reader.snapshot(), &shared)?;
        let protected: Vec<ProtectedKeys> =
            std::mem::take(&mut self.protected).into_values().collect();
        if prepared.is_empty() && protected.is_empty() {
            return Ok(self.reader.position());
        }
        prepared.precondition =
            Some(CommitPrecondition { position: self.reader.position(), protected });
        let (waiter, pending) = Pending::new(&shared);
        shared.queue.push(Job::Apply(prepared, waiter))?;
        // The transaction stays registered until the writer has answered, so that the recorded keys
        // are kept.
        pending.wait()
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        self.reader.shared().transactions.end(self.reader.position());
    }
}
