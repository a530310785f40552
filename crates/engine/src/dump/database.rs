//! Dumping an open database and loading a dump into one.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Arc, atomic::AtomicBool},
    time::{Duration, SystemTime},
};

use super::{DumpInfo, DumpMeta, DumpProgress, DumpVisitor, read, verify, write::save};
use crate::{
    Change, ChangeBatch, Database, Error, Result, Row, Schema, TableChanges,
    catalog::read_position,
    snapshot::RowReader,
    store::{Keyspace, StoreSnapshot},
    write::no_table,
};

/// A commit is published right after it is made; longer than this only if the writer has stopped.
const PUBLISH_TIMEOUT: Duration = Duration::from_secs(10);
const SOURCE_PREFIX: &[u8] = b"source/";
const RESTORE_BATCH_ROWS: usize = 1_000;

impl Database {
    /// Writes the named tables (all if none is named) as they are at one position to the file
    /// `path`, while writes go on. The stored source positions are those of that position or a
    /// little before: a source that resumes from them repeats changes and misses none.
    pub fn dump(
        &self,
        tables: &[String],
        path: &Path,
        progress: &mut dyn FnMut(&DumpProgress<'_>),
        cancel: &AtomicBool,
    ) -> Result<DumpInfo> {
        let store = self.shared().store()?.snapshot();
        let sources = read_sources(&*store)?;
        self.wait_for(read_position(&*store)?, PUBLISH_TIMEOUT)?;
        let snapshot = self.snapshot();
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

    /// Makes the tables of a dump, which must not be there, with their rows, and then stores its
    /// source positions. The dump is verified first; a failure behind that leaves the tables that
    /// were made.
    pub fn restore(&self, path: &Path) -> Result<DumpInfo> {
        let verified = verify(path)?;
        if let Some(table) = verified.tables.iter().find(|table| self.schema(&table.name).is_ok()) {
            let message = format!("table {:?} is there already: drop it first", table.name);
            return Err(Error::Conflict(message));
        }
        let mut restore = Restore { database: self, table: Arc::from(""), changes: Vec::new() };
        let info = read(path, &mut restore)?;
        restore.flush()?;
        for source in info.meta.sources.clone() {
            self.apply(ChangeBatch { tables: Vec::new(), source: Some(source) })?;
        }
        Ok(info)
    }
}

/// Every stored source position by its source's name; see `catalog` for the keys.
fn read_sources(store: &dyn StoreSnapshot) -> Result<BTreeMap<String, String>> {
    let mut sources = BTreeMap::new();
    store.scan(Keyspace::Meta, SOURCE_PREFIX, &mut |key, position| {
        let Some(name) = key.strip_prefix(SOURCE_PREFIX) else { return Ok(false) };
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec());
        let (Ok(name), Ok(position)) = (text(name), text(position)) else {
            return Err(Error::Corrupt("a stored source position".to_owned()));
        };
        sources.insert(name, position);
        Ok(true)
    })?;
    Ok(sources)
}

struct Restore<'d> {
    database: &'d Database,
    table: Arc<str>,
    changes: Vec<Change>,
}

impl Restore<'_> {
    fn flush(&mut self) -> Result<()> {
        if self.changes.is_empty() {
            return Ok(());
        }
        let changes = std::mem::take(&mut self.changes);
        let tables = vec![TableChanges { table: Arc::clone(&self.table), changes }];
        self.database.apply(ChangeBatch { tables, source: None }).map(|_| ())
    }
}

impl DumpVisitor for Restore<'_> {
    fn table(&mut self, schema: Schema) -> Result<()> {
        self.flush()?;
        self.table = Arc::from(schema.name.as_str());
        self.database.create_table(schema)
    }

    fn row(&mut self, row: Row) -> Result<()> {
        self.changes.push(Change::Put(row));
        if self.changes.len() >= RESTORE_BATCH_ROWS { self.flush() } else { Ok(()) }
    }
}
