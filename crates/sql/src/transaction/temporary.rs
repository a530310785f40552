//! Temporary tables of a session, in memory that is limited for the session and for all sessions together.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use remora_engine::{Row, Schema};
use remora_mysql::ErrorCode;
use rustc_hash::FxHashMap;

use super::{Overlay, RowKey};
use crate::{Error, Result, catalog::TableName, shared::Settings};

/// The memory of a table without its rows, and of each column.
const TABLE_BYTES: u64 = 2_048;
const COLUMN_BYTES: u64 = 256;

/// A temporary table.
#[derive(Clone)]
pub(crate) struct TemporaryTable {
    /// Its definition.
    pub schema: Arc<Schema>,
    /// Its rows.
    pub rows: Arc<Overlay>,
    /// The next AUTO_INCREMENT value, or the next hidden row number if there is no AUTO_INCREMENT.
    pub next: u64,
    /// The next hidden row number, if there is also AUTO_INCREMENT.
    pub next_row: u64,
}

impl TemporaryTable {
    /// The approximate memory of the table.
    fn bytes(&self) -> u64 {
        let columns = self.schema.columns.len() as u64;
        TABLE_BYTES + columns * COLUMN_BYTES + self.rows.bytes()
    }
}

/// The temporary tables of a session.
pub(crate) struct TemporaryTables {
    tables: FxHashMap<TableName, TemporaryTable>,
    /// The approximate memory of these tables.
    bytes: u64,
    /// The memory of all sessions' temporary tables.
    all_bytes: Arc<AtomicU64>,
    most_bytes: u64,
    most_bytes_of_all: u64,
}

impl TemporaryTables {
    /// No tables yet. `all_bytes` is the memory of all sessions' temporary tables.
    pub(crate) fn new(settings: &Settings, all_bytes: Arc<AtomicU64>) -> Self {
        Self {
            tables: FxHashMap::default(),
            bytes: 0,
            all_bytes,
            most_bytes: settings.max_query_memory_bytes,
            most_bytes_of_all: settings.max_temporary_memory_bytes,
        }
    }

    /// The table of this name.
    pub(crate) fn get(&self, name: &TableName) -> Option<&TemporaryTable> {
        self.tables.get(name)
    }

    /// Adds a table. Returns the one of that name that it replaces.
    pub(crate) fn put(&mut self, name: TableName, table: TemporaryTable) -> Option<TemporaryTable> {
        let bytes = table.bytes();
        let replaced = self.tables.insert(name, table);
        self.count(replaced.as_ref().map_or(0, TemporaryTable::bytes), bytes);
        replaced
    }

    /// Removes a table.
    pub(crate) fn take(&mut self, name: &TableName) -> Option<TemporaryTable> {
        let taken = self.tables.remove(name)?;
        self.count(taken.bytes(), 0);
        Some(taken)
    }

    /// A table's AUTO_INCREMENT counter, or its counter of hidden row numbers if `beside`.
    pub(crate) fn counter(&mut self, name: &TableName, beside: bool) -> Option<&mut u64> {
        let table = self.tables.get_mut(name)?;
        Some(if beside { &mut table.next_row } else { &mut table.next })
    }

    /// Sets or deletes the row of a key and returns its previous state. No snapshot lies below these tables, so a
    /// deleted key is removed.
    pub(crate) fn set(
        &mut self,
        name: &TableName,
        key: RowKey,
        row: Option<Arc<Row>>,
    ) -> Option<Option<Arc<Row>>> {
        let rows = Arc::make_mut(&mut self.tables.get_mut(name)?.rows);
        let before_bytes = rows.bytes();
        let before = match row {
            Some(row) => rows.set(key, Some(row)),
            None => rows.forget(&key),
        };
        let bytes = rows.bytes();
        self.count(before_bytes, bytes);
        before
    }

    /// Error 1114 if this session's tables, or those of all sessions, exceed their limit.
    pub(crate) fn check_room(&self, name: &TableName) -> Result<()> {
        let all_bytes = self.all_bytes.load(Ordering::Relaxed);
        if self.bytes <= self.most_bytes && all_bytes <= self.most_bytes_of_all {
            return Ok(());
        }
        Err(Error::new(ErrorCode::TableFull, format!("The table '{}' is full", name.table)))
    }

    fn count(&mut self, before: u64, after: u64) {
        self.bytes = self.bytes.saturating_sub(before).saturating_add(after);
        if after >= before {
            self.all_bytes.fetch_add(after - before, Ordering::Relaxed);
        } else {
            self.all_bytes.fetch_sub(before - after, Ordering::Relaxed);
        }
    }
}

impl Drop for TemporaryTables {
    fn drop(&mut self) {
        self.all_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
