//! Where an import puts its rows: a database in this process, or something behind a wire.

use std::{cell::RefCell, collections::VecDeque};

use remora_engine::{
    ChangeBatch, Database, Pending, Pipeline, SearchRequest, Selection, SortBy, SortKey, Value,
};

use super::row::ROW_NUMBER_COLUMN;
use crate::{Error, Result};

/// Takes batches of rows. All calls come from one thread.
pub trait RowSink {
    /// Applies a batch whole, behind those before it. It is as safe as the sink makes it when
    /// [`RowSink::finish`] has returned, or sooner.
    ///
    /// # Errors
    /// The batch or one before it was refused or its fate is unknown; `Engine(Request { .. })`
    /// means that a row of this one is wrong and nothing of it was applied.
    fn apply(&self, batch: ChangeBatch) -> Result<()>;

    /// Waits until all batches are applied, and as durable as the database makes them.
    ///
    /// # Errors
    /// One of them was not, and none behind it.
    fn finish(&self) -> Result<()> {
        Ok(())
    }

    /// The position stored with the newest batch of this source.
    ///
    /// # Errors
    /// It cannot be read.
    fn source_position(&self, source: &str) -> Result<Option<String>>;

    /// The largest value of the table's `_row` key, 0 if it has no row. Asked only for tables
    /// with such a key.
    ///
    /// # Errors
    /// It cannot be read.
    fn largest_row_number(&self, table: &str) -> Result<u64>;
}

/// Batches of a [`DatabaseSink`] that are under way while the next one is made: a core indexes each.
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

    /// Waits until at most so many batches are under way.
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
        // Batches of a pipeline are visible before they are synced; this one syncs them too.
        self.database.apply(ChangeBatch::default())?;
        Ok(())
    }

    fn source_position(&self, source: &str) -> Result<Option<String>> {
        self.finish()?;
        Ok(self.database.source_position(source)?)
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
