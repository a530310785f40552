//! Rows that a program reads and changes by key, in the session's transaction.

use std::sync::Arc;

use remora_engine::{Change, Reader, Row, Value};
use remora_mysql::ErrorCode;

use super::Session;
use crate::{
    Error, Result,
    error::from_engine_write,
    parse::StatementKind,
    transaction::{RowKey, TableStorage},
    write,
};

impl Session {
    /// Begins a transaction, as BEGIN does. An open one is committed first.
    ///
    /// # Errors
    /// Those of BEGIN.
    pub async fn begin_transaction(&mut self) -> Result<()> {
        self.begin();
        let begun = Box::pin(write::begin_transaction(&mut self.state)).await;
        self.end(begun)
    }

    /// Commits the open transaction, if there is one, as COMMIT does.
    ///
    /// # Errors
    /// Those of COMMIT; then nothing of it is done, and it is over.
    pub async fn commit_transaction(&mut self) -> Result<()> {
        self.begin();
        let done = Box::pin(self.state.commit()).await;
        self.end(done)
    }

    /// Undoes the open transaction, if there is one, as ROLLBACK does.
    pub fn roll_back(&mut self) {
        self.state.transaction.roll_back();
    }

    /// Changes rows of a table by key, in the open transaction or else in one of their own: all of them, or none.
    /// `table` is the engine's name. Rows have all visible columns, in their order. Whatever SQL declared of the table
    /// is kept as by INSERT, UPDATE and DELETE: unique keys, keys over expressions, conditions, generated columns,
    /// types. Documents are stored as they are given. Returns how many rows were written or deleted. In READ COMMITTED the
    /// snapshot stays that of the last read, so that a change of what was read is noticed at the commit.
    ///
    /// # Errors
    /// Those of INSERT and DELETE, with MySQL's codes: 1062 for an inserted row whose key exists and for a value of a
    /// unique key that another row has; 1146 if there is no such table; 1290 if it follows a source.
    pub async fn change_rows(&mut self, table: &str, changes: &[Change]) -> Result<u64> {
        self.begin();
        self.state.warnings.clear();
        self.state.failed_row = None;
        let done = Box::pin(write::change_rows(&mut self.state, table, changes)).await;
        self.end(done.map(|outcome| outcome.affected_rows))
    }

    /// Inserts rows into a table, each in place of the one with its primary key, with the conversions and the defaults of
    /// INSERT: in the open transaction or else in one of their own, all of them or none. `table` is the engine's name.
    /// A row has a cell for each column of the engine's definition, up to the last one that is not computed of others;
    /// `None` means the column's default. Cells of generated and hidden columns are passed over. Returns the number of
    /// rows.
    ///
    /// # Errors
    /// Those of INSERT, with MySQL's codes: 1062 for a value of a unique key that another row has.
    pub async fn put_rows(&mut self, table: &str, rows: &[Vec<Option<Value>>]) -> Result<u64> {
        self.begin();
        self.state.warnings.clear();
        self.state.failed_row = None;
        let done = Box::pin(write::put_rows(&mut self.state, table, rows)).await;
        self.end(done.map(|outcome| outcome.affected_rows))
    }

    /// The place, from 0 on, of the row for which the last [`Session::change_rows`] or [`Session::put_rows`] failed;
    /// `None` if it is not known, as where a condition refused one of several.
    pub fn failed_row(&self) -> Option<usize> {
        self.state.failed_row
    }

    /// Begins to read: in READ COMMITTED, the open transaction gets a new snapshot, as for each of its statements.
    ///
    /// # Errors
    /// 1317 if the session is killed while it waits for the position of a source that it should wait for.
    pub async fn begin_reading(&mut self) -> Result<()> {
        self.state.begin_reading(StatementKind::Select).await
    }

    /// The row with this key as the open transaction has it, or else as it is now.
    ///
    /// # Errors
    /// 1146 if there is no such table, and those of reading the row store.
    pub fn row(&self, table: &str, key: &[Value]) -> Result<Option<Row>> {
        let state = &self.state;
        if !state.transaction.is_begun() {
            let found = state.reader().get(table, key);
            return found.map_err(from_engine_write);
        }
        let place = TableStorage::Engine(table.into());
        let found = state.transaction.row(&place, &RowKey(key.iter().cloned().collect()))?;
        Ok(found.map(Arc::unwrap_or_clone))
    }

    /// The snapshot that the open transaction reads, or else the newest. It has none of the transaction's own changes.
    pub fn reader(&self) -> Reader {
        self.state.reader()
    }

    /// Like [`Session::reader`], with the transaction's own changes as part of the tables. Cost: indexes the rows that were
    /// changed since the last call, or the last search that needed it, and at times more.
    ///
    /// # Errors
    /// Those with which a commit would refuse the rows, 1038 if the changes and their index take more memory than
    /// [`crate::Settings::max_query_memory_bytes`], and that of an interrupt.
    pub fn reader_with_changes(&self) -> Result<Reader> {
        self.state.reading_own()
    }

    /// The rows of a table that the open transaction has changed, in the order of their keys. `None` is a deleted row.
    pub fn changed_rows(&self, table: &str) -> Vec<(Vec<Value>, Option<Arc<Row>>)> {
        match self.state.transaction.overlay(table) {
            Some(overlay) => {
                overlay.all().map(|(key, row)| (key.0.to_vec(), row.cloned())).collect()
            }
            None => Vec::new(),
        }
    }

    /// Stores a position, such as that of a watcher, with the open transaction.
    ///
    /// # Errors
    /// 1792 if no transaction is open, or a READ ONLY one.
    pub fn store_position(&mut self, name: String, position: String) -> Result<()> {
        let transaction = &mut self.state.transaction;
        if !transaction.is_open() || transaction.only_reads() == Some(true) {
            let message = "A position is stored with a transaction that may write: begin one.";
            return Err(Error::new(ErrorCode::ReadOnlyTransaction, message));
        }
        transaction.keep_position(name, position);
        Ok(())
    }
}
