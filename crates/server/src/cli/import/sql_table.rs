//! Imports rows into a table that SQL defined: SQL converts them as INSERT does, and keeps its keys and conditions.

use std::{cell::RefCell, sync::Arc};

use remora_engine::{Change, ChangeBatch, Database, Row, Selection, Value};
use remora_mysql::ErrorCode;
use remora_source::files::{self, RowSink, is_not_given};
use remora_sql::{EmbeddedHost, Identity, Instance, Session};
use tokio::runtime::Runtime;

use crate::{Error, Result, settings::Settings};

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
    session: RefCell<Session>,
    /// Whether rows are whole as they are, as those of collections: then documents keep their form.
    are_whole: bool,
}

impl<'d> SqlSink<'d> {
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
        let mut session = instance.session(1, identity);
        // Tables have such dates from other sessions and servers, and exports write them.
        session.allow_zero_dates();
        let session = RefCell::new(session);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_time()
            .build()
            .map_err(|source| Error::Io { what: "cannot start a thread".to_owned(), source })?;
        Ok(Self { database, runtime, session, are_whole })
    }

    /// Writes the first `count` rows of a batch, and its positions, and commits them if `commits`.
    fn write(&self, batch: &ChangeBatch, count: usize, commits: bool) -> remora_sql::Result<()> {
        let mut session = self.session.borrow_mut();
        let session = &mut *session;
        self.runtime.block_on(async {
            session.begin_transaction().await?;
            let written = self.write_open(session, batch, count).await;
            match written {
                Ok(()) if commits => session.commit_transaction().await,
                written => {
                    session.roll_back();
                    written
                }
            }
        })
    }

    async fn write_open(
        &self,
        session: &mut Session,
        batch: &ChangeBatch,
        count: usize,
    ) -> remora_sql::Result<()> {
        let mut left = count;
        for table in &batch.tables {
            let some = table.changes.get(..left.min(table.changes.len())).unwrap_or_default();
            left -= some.len();
            if self.are_whole {
                session.change_rows(&table.table, some).await?;
                continue;
            }
            let rows = some.iter().filter_map(|change| match change {
                Change::Put(row) | Change::Insert(row) => Some(cells(row)),
                Change::Delete(_) => None,
            });
            session.put_rows(&table.table, &rows.collect::<Vec<_>>()).await?;
        }
        for (name, position) in &batch.positions {
            session.store_position(name.clone(), position.clone())?;
        }
        Ok(())
    }

    /// The first row of a batch that is refused, with the error; `None` if none is, or if no row is at fault.
    fn refused_row(&self, batch: &ChangeBatch) -> Option<(usize, remora_sql::Error)> {
        let (mut good, mut bad) =
            (0, batch.tables.iter().map(|table| table.changes.len()).sum::<usize>());
        self.write(batch, good, false).ok()?;
        let mut error = self.write(batch, bad, false).err()?;
        // Small parts first: where many rows are refused, the next one is near.
        let mut part = 1;
        while good + part < bad {
            match self.write(batch, good + part, false) {
                Ok(()) => (good, part) = (good + part, part * 2),
                Err(earlier) => (bad, error) = (good + part, earlier),
            }
        }
        while bad - good > 1 {
            let middle = good + (bad - good) / 2;
            match self.write(batch, middle, false) {
                Ok(()) => good = middle,
                Err(earlier) => (bad, error) = (middle, earlier),
            }
        }
        Some((good, error))
    }
}

/// A row's cells; `None` stands for the column's default.
fn cells(row: &Row) -> Vec<Option<Value>> {
    row.iter().map(|value| (!is_not_given(value)).then(|| value.clone())).collect()
}

/// The message of a row's error, without the number that the row has among those that were written together.
fn of_one_row(error: &remora_sql::Error) -> String {
    let message = &error.message;
    let plain = message.rsplit_once(" at row ").filter(|(_, number)| {
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    });
    plain.map_or(message.as_str(), |(plain, _)| plain).to_owned()
}

/// Whether an error says nothing about the rows.
fn is_of_database(error: &remora_sql::Error) -> bool {
    matches!(
        error.code,
        ErrorCode::OutOfMemory
            | ErrorCode::DiskFull
            | ErrorCode::ServerShutdown
            | ErrorCode::Unknown
            | ErrorCode::Deadlock
            | ErrorCode::Interrupted
    )
}

impl RowSink for SqlSink<'_> {
    fn apply(&self, batch: ChangeBatch) -> remora_source::Result<()> {
        let Err(error) = self.write(&batch, usize::MAX, true) else { return Ok(()) };
        let row = if is_of_database(&error) { None } else { self.refused_row(&batch) };
        Err(match row {
            Some((place, error)) => {
                remora_source::Error::Row { place, message: of_one_row(&error) }
            }
            None => remora_source::Error::Sink(error.to_string()),
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
