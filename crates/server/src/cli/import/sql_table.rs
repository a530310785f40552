//! Imports rows into a table that SQL defined.

use std::{cell::RefCell, sync::Arc};

use remora_engine::{ChangeBatch, Database, Selection};
use remora_source::files::{self, RowSink};
use remora_sql::{EmbeddedHost, Identity, Instance};
use tokio::runtime::Runtime;

use crate::{
    Error, Result,
    settings::Settings,
    sql_rows::{RefusedRows, SqlRows},
};

/// The most rows of a batch, which is one transaction. To find a row that is refused, parts of it are tried again.
const BATCH_ROWS: usize = 2_000;
/// A batch ends after the record that brings it to this size, in bytes.
const BATCH_BYTES: usize = 4 << 20;

/// How much is written at once.
pub(super) fn sizes() -> files::ImportOptions {
    let (batch_rows, batch_bytes) = (BATCH_ROWS, BATCH_BYTES);
    files::ImportOptions { batch_rows, batch_bytes, ..files::ImportOptions::default() }
}

/// A table that SQL defined.
pub(super) struct SqlSink<'d> {
    database: &'d Database,
    runtime: Runtime,
    rows: RefCell<SqlRows>,
}

impl<'d> SqlSink<'d> {
    /// `are_whole`: rows are documents of a collection, which keep their form.
    pub(super) fn new(database: &'d Database, are_whole: bool) -> Result<Self> {
        let settings = Settings::default();
        let own = remora_sql::Settings {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            max_query_memory_bytes: settings.sql.max_query_memory_mb << 20,
            max_total_memory_bytes: settings.sql.max_total_query_memory_mb << 20,
            max_temporary_memory_bytes: settings.sql.max_temporary_memory_mb << 20,
            spill: None,
            max_spill_bytes: settings.sql.max_spill_mb << 20,
            max_direct_rows: remora_sql::MAX_DIRECT_ROWS,
            default_database: settings.sql.default_database.clone(),
        };
        let instance = Instance::new(database.clone(), Arc::new(EmbeddedHost), own);
        let identity = Identity { user: "root".into(), host: "localhost".into(), rights: None };
        let rows = RefCell::new(SqlRows::new(&instance, identity, are_whole));
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_time()
            .build()
            .map_err(|source| Error::Io { what: "cannot start a thread".to_owned(), source })?;
        Ok(Self { database, runtime, rows })
    }
}

impl RowSink for SqlSink<'_> {
    fn apply(&self, batch: ChangeBatch) -> remora_source::Result<()> {
        let mut rows = self.rows.borrow_mut();
        self.runtime.block_on(rows.apply(&batch)).map_err(|refused| match refused {
            RefusedRows::Row(place, message) => remora_source::Error::Row { place, message },
            RefusedRows::Batch(error) => remora_source::Error::Sink(error.to_string()),
        })
    }

    fn finish(&self) -> remora_source::Result<()> {
        // Batches may be visible before they are synced. This empty one syncs them.
        self.database.apply(ChangeBatch::default())?;
        Ok(())
    }

    fn source_position(&self, source: &str) -> remora_source::Result<Option<String>> {
        Ok(self.database.source_position(source)?)
    }

    fn is_empty(&self, table: &str) -> remora_source::Result<bool> {
        let all = Selection { table: table.to_owned(), ..Selection::default() };
        Ok(self.database.count(&all)?.count == 0)
    }

    fn largest_row_number(&self, _table: &str) -> remora_source::Result<u64> {
        // SQL numbers rows itself.
        Ok(0)
    }
}
