//! Temporary tables: a session's own, in memory, which is counted with that of all sessions.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use remora_engine::{Row, Schema};
use remora_mysql::ErrorCode;
use rustc_hash::FxHashMap;

use super::{Key, Overlay};
use crate::{Error, Result, catalog::TableName, shared::Settings};

/// What a table takes besides its rows, and each of its columns.
const TABLE_BYTES: u64 = 2_048;
const COLUMN_BYTES: u64 = 256;

/// A table of one session, in memory.
#[derive(Clone)]
pub(crate) struct TemporaryTable {
    /// Its definition.
    pub schema: Arc<Schema>,
    /// Its rows.
    pub rows: Arc<Overlay>,
    /// The next AUTO_INCREMENT value, or hidden row number where there is none.
    pub next: u64,
    /// The next hidden row number beside AUTO_INCREMENT.
    pub next_row: u64,
}

impl TemporaryTable {
    /// What it takes in memory, about.
    fn bytes(&self) -> u64 {
        let columns = self.schema.columns.len() as u64;
        TABLE_BYTES + columns * COLUMN_BYTES + self.rows.bytes()
    }
}

/// The temporary tables of a session.
pub(crate) struct TemporaryTables {
    tables: FxHashMap<TableName, TemporaryTable>,
    /// What they take in memory, about.
    bytes: u64,
    /// What those of all sessions take.
    all_bytes: Arc<AtomicU64>,
    most_bytes: u64,
    most_bytes_of_all: u64,
}

impl TemporaryTables {
    /// None yet; `all_bytes` is what those of all sessions take.
    pub(crate) fn new(settings: &Settings, all_bytes: Arc<AtomicU64>) -> Self {
        Self {
            tables: FxHashMap::default(),
            bytes: 0,
            all_bytes,
            most_bytes: settings.max_query_memory_bytes,
            most_bytes_of_all: settings.max_temporary_memory_bytes,
        }
    }

    /// The table of a name.
    pub(crate) fn get(&self, name: &TableName) -> Option<&TemporaryTable> {
        self.tables.get(name)
    }

    /// Puts a table; one of that name is replaced and returned.
    pub(crate) fn put(&mut self, name: TableName, table: TemporaryTable) -> Option<TemporaryTable> {
        let bytes = table.bytes();
        let replaced = self.tables.insert(name, table);
        self.count(replaced.as_ref().map_or(0, TemporaryTable::bytes), bytes);
        replaced
    }

    /// Takes a table away.
    pub(crate) fn take(&mut self, name: &TableName) -> Option<TemporaryTable> {
        let taken = self.tables.remove(name)?;
        self.count(taken.bytes(), 0);
        Some(taken)
    }

    /// The counter of a table, or that of its row numbers beside AUTO_INCREMENT.
    pub(crate) fn counter(&mut self, name: &TableName, beside: bool) -> Option<&mut u64> {
        let table = self.tables.get_mut(name)?;
        Some(if beside { &mut table.next_row } else { &mut table.next })
    }

    /// Sets what a key's row is now; gives what it was. There is nothing beneath these tables, so
    /// that a key without a row is not known.
    pub(crate) fn set(
        &mut self,
        name: &TableName,
        key: Key,
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

    /// 1114 where this session's tables, or those of all sessions, take more than they may.
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
