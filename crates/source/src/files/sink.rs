//! Where an import puts its rows: a database in this process, or something behind a wire.

use remora_engine::{ChangeBatch, Database, SearchRequest, Selection, SortBy, SortKey, Value};

use super::row::ROW_NUMBER_COLUMN;
use crate::{Error, Result};

/// Takes batches of rows. All calls come from one thread.
pub trait RowSink {
    /// Applies a batch whole; returns when it is as safe as the sink makes it.
    ///
    /// # Errors
    /// The batch was refused or its fate is unknown; `Engine(Request { .. })` means that a row of
    /// it is wrong and nothing was applied.
    fn apply(&self, batch: ChangeBatch) -> Result<()>;

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

impl RowSink for Database {
    fn apply(&self, batch: ChangeBatch) -> Result<()> {
        Database::apply(self, batch)?;
        Ok(())
    }

    fn source_position(&self, source: &str) -> Result<Option<String>> {
        Ok(Database::source_position(self, source)?)
    }

    fn largest_row_number(&self, table: &str) -> Result<u64> {
        let request = SearchRequest {
            selection: Selection { table: table.to_owned(), ..Selection::default() },
            sort: vec![SortKey { by: SortBy::Key, descending: true }],
            limit: 1,
            ..SearchRequest::default()
        };
        match self.search(&request)?.hits.first().and_then(|hit| hit.key.first()) {
            None => Ok(0),
            Some(Value::Uint(number)) => Ok(*number),
            Some(other) => Err(Error::Schema(format!(
                "the key {ROW_NUMBER_COLUMN} of {table} holds {other:?}, not a row number"
            ))),
        }
    }
}
