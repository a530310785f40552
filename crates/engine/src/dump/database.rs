//! Dumps an open database, and restores a dump into one.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Arc, atomic::AtomicBool},
    time::SystemTime,
};

use super::{DumpInfo, DumpMeta, DumpProgress, DumpVisitor, read, verify, write::save};
use crate::{
    Change, ChangeBatch, Database, Error, Result, Row, Schema, TableChanges,
    error::no_table,
    storage::{feed::WATCH_POSITION, rows::RowReader},
};

/// Bytes of encoded rows per batch of a restore. Each batch becomes one segment, so large batches leave little to
/// merge.
const RESTORE_BATCH_BYTES: usize = 16 << 20;
/// The most rows of such a batch.
const RESTORE_BATCH_ROWS: usize = 100_000;

impl Database {
    /// Writes the named tables (all if none is named) at one position to the file `path`, with the positions of
    /// sources at that position. Writes to the database continue meanwhile.
    ///
    /// # Errors
    /// - [`Error::NotFound`]: there is no table of one of the names.
    /// - [`Error::Request`]: the path has no file name, or a row is too large for a dump.
    /// - [`Error::Busy`]: `cancel` was set.
    /// - [`Error::Io`] or [`Error::Full`]: the file cannot be written.
    /// - [`Error::Corrupt`]: a row cannot be read.
    /// - [`Error::Conflict`]: the row store was reopened after a full disk, which ended the snapshot.
    /// - [`Error::Closed`]: the database was closed.
    pub fn dump(
        &self,
        tables: &[String],
        path: &Path,
        progress: &mut dyn FnMut(&DumpProgress<'_>),
        cancel: &AtomicBool,
    ) -> Result<DumpInfo> {
        self.shared().check_open()?;
        let snapshot = self.snapshot();
        // Positions of watchers mean nothing in another database.
        let sources = snapshot.sources.iter().filter(|(name, _)| !name.starts_with(WATCH_POSITION));
        let sources = sources.map(|(name, position)| (name.to_owned(), position.to_owned()));
        let sources = sources.collect();
        let names = if tables.is_empty() { self.tables() } else { tables.to_vec() };
        let chosen = names.iter().map(|name| {
            let view = snapshot.tables.get(name.as_str()).ok_or_else(|| no_table(name))?;
            Ok((Arc::clone(&view.schema), Arc::clone(&view.rows)))
        });
        let chosen = chosen.collect::<Result<Vec<(Arc<Schema>, Arc<dyn RowReader>)>>>()?;
        let created = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let created_micros = created.map_or(0, |since| since.as_micros() as i64);
        let meta = DumpMeta { position: snapshot.position.0, sources, created_micros };
        save(&chosen, &meta, path, progress, cancel)
    }

    /// Creates the tables of a dump with their rows, then stores its source positions. The tables must not exist.
    /// Sources that the dump does not know start over, because the tables may lack their changes. The dump is
    /// verified first; a later failure leaves the tables that were created.
    ///
    /// # Errors
    /// Those of [`verify`]; [`Error::Conflict`] if a table of the dump exists; and those of
    /// [`Database::create_table`] and [`Database::apply`].
    pub fn restore(&self, path: &Path) -> Result<DumpInfo> {
        let verified = verify(path)?;
        if let Some(table) = verified.tables.iter().find(|table| self.schema(&table.name).is_ok()) {
            let message = format!("table {:?} exists already: drop it first", table.name);
            return Err(Error::Conflict(message));
        }
        let rows = RESTORE_BATCH_ROWS.min(self.shared().options.max_batch_changes).max(1);
        let mut restore = Restore {
            database: self,
            table: Arc::from(""),
            changes: Vec::new(),
            bytes: 0,
            most_rows: rows,
        };
        let info = read(path, &mut restore)?;
        restore.flush()?;
        self.set_sources(&info.meta.sources)?;
        Ok(info)
    }

    /// Stores these positions and clears those of all other sources, except watchers.
    fn set_sources(&self, sources: &BTreeMap<String, String>) -> Result<()> {
        let stored = self.source_positions();
        let unknown = stored
            .iter()
            .filter(|(name, _)| !sources.contains_key(*name) && !name.starts_with(WATCH_POSITION));
        let emptied = unknown.map(|(name, _)| (name.to_owned(), String::new()));
        let known = sources.iter().map(|(name, position)| (name.clone(), position.clone()));
        let positions: Vec<_> = emptied.chain(known).collect();
        if positions.is_empty() {
            return Ok(());
        }
        self.apply(ChangeBatch { tables: Vec::new(), positions }).map(|_| ())
    }
}

struct Restore<'d> {
    database: &'d Database,
    table: Arc<str>,
    changes: Vec<Change>,
    /// Encoded bytes of these changes.
    bytes: usize,
    most_rows: usize,
}

impl Restore<'_> {
    fn flush(&mut self) -> Result<()> {
        if self.changes.is_empty() {
            return Ok(());
        }
        self.bytes = 0;
        let changes = std::mem::take(&mut self.changes);
        let tables = vec![TableChanges { table: Arc::clone(&self.table), changes }];
        // The rows already hold the values of key expressions.
        let batch = ChangeBatch { tables, positions: Vec::new() };
        self.database.apply_computed(batch).map(|_| ())
    }
}

impl DumpVisitor for Restore<'_> {
    fn table(&mut self, schema: Schema) -> Result<()> {
        self.flush()?;
        self.table = Arc::from(schema.name.as_str());
        self.database.create_table(schema)
    }

    fn row(&mut self, row: Row, bytes: usize) -> Result<()> {
        self.changes.push(Change::Put(row));
        self.bytes += bytes;
        let full = self.bytes >= RESTORE_BATCH_BYTES || self.changes.len() >= self.most_rows;
        if full { self.flush() } else { Ok(()) }
    }
}
