//! Targets of an import: a database in this process, or one behind a connection.

use std::{cell::RefCell, collections::VecDeque};

use remora_engine::{
    ChangeBatch, Database, Pending, Pipeline, SearchRequest, Selection, SortBy, SortKey, Value,
};

use super::row::ROW_NUMBER_COLUMN;
use crate::{Error, Result};

/// Takes batches of rows. All calls come from one thread.
pub trait RowSink {
    /// Applies a batch atomically, after earlier ones. It is durable, as far as the sink guarantees that, when
    /// [`RowSink::finish`] has returned, or earlier.
    ///
    /// # Errors
    /// The batch or an earlier one was refused, or its outcome is unknown. `Engine(Request { .. })` means that a row of
    /// this batch is wrong and nothing of it was applied, [`crate::Error::Row`] the same of a row that it names.
    fn apply(&self, batch: ChangeBatch) -> Result<()>;

    /// Waits until all batches are applied and as durable as the database makes them.
    ///
    /// # Errors
    /// A batch was not applied; then none after it was.
    fn finish(&self) -> Result<()> {
        Ok(())
    }

    /// The position stored with the newest batch of this source.
    ///
    /// # Errors
    /// It cannot be read.
    fn source_position(&self, source: &str) -> Result<Option<String>>;

    /// Whether the table has no rows.
    ///
    /// # Errors
    /// It cannot be read.
    fn is_empty(&self, table: &str) -> Result<bool>;

    /// The largest value of the table's `_row` key, 0 for an empty table. Called only for tables with such a key.
    ///
    /// # Errors
    /// It cannot be read.
    fn largest_row_number(&self, table: &str) -> Result<u64>;
}

/// Batches of a [`DatabaseSink`] in flight while the next one is made. Each is indexed by one core.
const UNDER_WAY: usize = 2;

/// A database in this process.
pub struct DatabaseSink<'d> {
    database: &'d Database,
    pipeline: Pipeline,
    under_way: RefCell<VecDeque<Pending>>,
}

impl<'d> DatabaseSink<'d> {
    /// Rows go into tables of this database.
    pub fn new(database: &'d Database) -> Self {
        Self { database, pipeline: database.pipeline(), under_way: RefCell::default() }
    }

    /// Waits until at most `left` batches are in flight.
    fn wait_for_all_but(&self, left: usize) -> Result<()> {
        let mut under_way = self.under_way.borrow_mut();
        while under_way.len() > left
            && let Some(first) = under_way.pop_front()
        {
            first.wait()?;
        }
        Ok(())
    }
}

impl RowSink for DatabaseSink<'_> {
    fn apply(&self, batch: ChangeBatch) -> Result<()> {
        let pending = self.pipeline.submit(batch)?;
        self.under_way.borrow_mut().push_back(pending);
        self.wait_for_all_but(UNDER_WAY)
    }

    fn finish(&self) -> Result<()> {
        self.wait_for_all_but(0)?;
        // Batches of a pipeline are visible before they are synced. This empty batch syncs them.
        self.database.apply(ChangeBatch::default())?;
        Ok(())
    }

    fn source_position(&self, source: &str) -> Result<Option<String>> {
        self.finish()?;
        Ok(self.database.source_position(source)?)
    }

    fn is_empty(&self, table: &str) -> Result<bool> {
        self.finish()?;
        let all = Selection { table: table.to_owned(), ..Selection::default() };
        Ok(self.database.count(&all)?.count == 0)
    }

    fn largest_row_number(&self, table: &str) -> Result<u64> {
        let request = SearchRequest {
            selection: Selection { table: table.to_owned(), ..Selection::default() },
            sort: vec![SortKey { by: SortBy::Key, descending: true }],
            limit: 1,
            ..SearchRequest::default()
        };
        self.finish()?;
        match self.database.search(&request)?.hits.first().and_then(|hit| hit.key.first()) {
            None => Ok(0),
            Some(Value::Uint(number)) => Ok(*number),
            Some(other) => Err(Error::Schema(format!(
                "the key {ROW_NUMBER_COLUMN} of {table} holds {other:?}, not a row number"
            ))),
        }
    }
}
