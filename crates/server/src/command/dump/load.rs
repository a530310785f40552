//! Loading a dump: each of its tables replaces the one of that name.
//!
//! The rows go through the ordinary write path in batches, so a load that is cut off leaves tables
//! by halves. A marker file in the data directory stands for that: while it is there, nothing but
//! another load opens the directory.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use remora_engine::{
    Change, ChangeBatch, Database, Row, Schema, TableChanges,
    dump::{DumpInfo, DumpVisitor},
};

use crate::{Error, Result, settings::Settings};

const MARKER: &str = "half-loaded-dump";
const BATCH_ROWS: usize = 10_000;
/// Bytes of the values of a batch.
const BATCH_BYTES: usize = 16 << 20;

/// Loads a dump whose checksums are verified first. `at_table` is told each table as it begins.
pub(crate) fn load_dump(
    database: &Database,
    path: &Path,
    at_table: &mut dyn FnMut(&str),
) -> Result<DumpInfo> {
    remora_engine::dump::verify(path)?;
    let marker = marker(&database.path());
    std::fs::write(&marker, path.display().to_string())
        .map_err(|source| Error::io("cannot write", &marker, source))?;
    let mut loader = Loader { database, at_table, table: None, changes: Vec::new(), bytes: 0 };
    let info = remora_engine::dump::read(path, &mut loader)?;
    loader.flush()?;
    for (name, position) in &info.meta.sources {
        let source = Some((name.clone(), position.clone()));
        database.apply(ChangeBatch { tables: Vec::new(), source })?;
    }
    database.checkpoint()?;
    std::fs::remove_file(&marker).map_err(|source| Error::io("cannot remove", &marker, source))?;
    Ok(info)
}

/// Loads the newest dump of the dump directory, if there is one.
pub(crate) fn load_newest_dump(database: &Database, settings: &Settings) -> Result<()> {
    let Some(path) = super::schedule::dumps_by_age(&settings.dump.dir, "").pop() else {
        tracing::info!("dump.load_on_startup: {} holds no dump", settings.dump.dir.display());
        return Ok(());
    };
    let info = load_dump(database, &path, &mut |_| {})?;
    tracing::info!(path = %path.display(), rows = info.rows, "a dump was loaded");
    Ok(())
}

/// Refuses a data directory into which a dump was loaded by halves.
pub(crate) fn refuse_half_loaded(data: &Path) -> Result<()> {
    match std::fs::read_to_string(marker(data)) {
        Err(_) => Ok(()),
        Ok(dump) => Err(Error::Settings(format!(
            "a load of the dump {dump} into {0} was cut off: run 'remora dump load --data {0} \
             {dump}' again",
            data.display()
        ))),
    }
}

fn marker(data: &Path) -> PathBuf {
    data.join(MARKER)
}

struct Loader<'l> {
    database: &'l Database,
    at_table: &'l mut dyn FnMut(&str),
    table: Option<Arc<str>>,
    changes: Vec<Change>,
    bytes: usize,
}

impl Loader<'_> {
    fn flush(&mut self) -> remora_engine::Result<()> {
        let changes = std::mem::take(&mut self.changes);
        self.bytes = 0;
        let Some(table) = self.table.clone().filter(|_| !changes.is_empty()) else {
            return Ok(());
        };
        let tables = vec![TableChanges { table, changes }];
        self.database.apply(ChangeBatch { tables, source: None })?;
        Ok(())
    }
}

impl DumpVisitor for Loader<'_> {
    fn table(&mut self, schema: Schema) -> remora_engine::Result<()> {
        self.flush()?;
        (self.at_table)(&schema.name);
        if self.database.tables().contains(&schema.name) {
            self.database.drop_table(&schema.name)?;
        }
        self.table = Some(Arc::from(schema.name.as_str()));
        self.database.create_table(schema)
    }

    fn row(&mut self, row: Row) -> remora_engine::Result<()> {
        self.bytes += row.iter().map(bytes_of).sum::<usize>();
        self.changes.push(Change::Put(row));
        if self.changes.len() >= BATCH_ROWS || self.bytes >= BATCH_BYTES {
            self.flush()?;
        }
        Ok(())
    }
}

fn bytes_of(value: &remora_engine::Value) -> usize {
    use remora_engine::Value;
    match value {
        Value::Text(text) | Value::Json(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        _ => 16,
    }
}
